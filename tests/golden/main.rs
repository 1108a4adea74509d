//! Texts in, texts out: what is said about wrong input, the shipped units and profiles against values worked out by
//! hand, and whole plans as people read them.

mod diagnostics;
mod plan;
mod vectors;
mod world;
