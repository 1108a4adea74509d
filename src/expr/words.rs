//! Words for yes and no.

/// The words that are accepted, for messages.
pub const BOOL_WORDS: &str = "1/0, true/false, yes/no, on/off";

/// What a bool word means; case and blanks around it do not matter. `None` = not one of [`BOOL_WORDS`].
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
