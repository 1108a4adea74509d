//! The table of keys (under construction).

/// Sections whose members are named things.
pub fn named_sections() -> impl Iterator<Item = &'static str> {
    ["param", "file", "rule", "require", "bootstrap", "ports", "signature", "reserve", "fact"].into_iter()
}
