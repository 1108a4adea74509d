//! The environment of a unit.

mod dotenv;
mod json;
mod pathlist;
