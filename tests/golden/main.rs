//! Texts in, texts out: the shipped units and profiles against values worked out by hand, and whole plans as people
//! read them.

mod plan;
mod vectors;
mod world;
