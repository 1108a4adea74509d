//! The word that was probably meant.

/// The nearest of `known`, if it is near enough. Case, `-`, `_` and blanks do not count.
pub fn nearest<'a, T: AsRef<str> + 'a>(word: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    let plain = plain(word);
    let limit = match plain.chars().count() {
        0 => return None,
        1..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&plain, &self::plain(candidate.as_ref())), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.as_ref().chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_enough_or_not_at_all() {
        let keys = ["timeout", "signal", "ladder", "scope", "on_failure"];
        assert_eq!(nearest("timout", keys), Some("timeout"));
        assert_eq!(nearest("Signal", keys), Some("signal"));
        assert_eq!(nearest("on-failure", keys), Some("on_failure"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
