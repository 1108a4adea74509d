//! Pieces of messages: did you mean, lists of names, quoted values.

/// The candidate that `word` is most likely a slip of.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let length = lower.chars().count();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            let others = candidate.chars().count();
            *distance <= length.max(others).div_ceil(3) && *distance < length.min(others)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A list of names in backticks, shortened after a few.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
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
