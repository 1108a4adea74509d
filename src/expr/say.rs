//! Pieces of messages: lists of names, quoted values.

/// A list of names in backticks, shortened after a few.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<_> = names.into_iter().collect();
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// A text in backticks, on one line, shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == SHOWN {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    format!("`{shown}`")
}
