//! The word that was probably meant.

/// The nearest of `known`, if it is near enough. Case, `-`, `_` and blanks do not count.
/// Failing that, one that begins with the word, or that the word begins with.
pub fn nearest<'a, T: AsRef<str> + 'a>(word: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    let plain = plain(word);
    let limit = match plain.chars().count() {
        0 => return None,
        1..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    let known: Vec<T> = known.into_iter().collect();
    let begins = |candidate: &T| {
        let candidate = self::plain(candidate.as_ref());
        candidate.len() >= 4
            && (plain.starts_with(&candidate) || (plain.len() >= 4 && candidate.starts_with(&plain)))
    };
    let prefix = known.iter().position(begins);
    let near = known
        .iter()
        .enumerate()
        .map(|(at, candidate)| (strsim::damerau_levenshtein(&plain, &self::plain(candidate.as_ref())), at))
        .filter(|(distance, at)| *distance <= limit && *distance < known[*at].as_ref().chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, at)| at);
    near.or(prefix).and_then(|at| known.into_iter().nth(at))
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
        assert_eq!(nearest("on_failure_do", keys), Some("on_failure"));
        assert_eq!(nearest("sign", keys), Some("signal"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
