//! The environment of a unit: plain values layer by layer, then rules. Every variable knows its story.

mod dotenv;
mod json;
pub(super) mod layers;
mod pathlist;
pub(super) mod rules;
pub(super) mod state;
#[cfg(test)]
mod tests;
