//! The word that was probably meant: one measure for keys, words, names of units, parameters, profiles, facts and verbs.

/// The nearest of `known`, if it is near enough. Case, `-`, `_` and blanks do not count.
/// Failing that, one of which the word has left out some letters (`prm`), or of which it is the beginning, or the reverse.
pub fn nearest<T: AsRef<str>>(word: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    nearest_few(word, known, 1).pop()
}

/// The nearest ones, the likeliest first; of two that are equally near, the one that is known first.
pub fn nearest_few<T: AsRef<str>>(word: &str, known: impl IntoIterator<Item = T>, most: usize) -> Vec<T> {
    let plain = plain(word);
    let mut near: Vec<(Likeness, T)> = known
        .into_iter()
        .filter_map(|candidate| Some((likeness(&plain, &self::plain(candidate.as_ref()))?, candidate)))
        .collect();
    near.sort_by_key(|(likeness, _)| *likeness);
    near.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// How one word may be another, the likeliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// So many slips of the hand.
    Slips(usize),
    /// Letters of the other are left out.
    Short,
    /// One is the beginning of the other.
    Beginning,
}

fn likeness(word: &str, candidate: &str) -> Option<Likeness> {
    let length = word.chars().count();
    let limit = match length {
        0 => return None,
        1..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    let slips = strsim::damerau_levenshtein(word, candidate);
    // Something of the word must be left.
    if slips <= limit && slips < length.max(candidate.chars().count()) {
        return Some(Likeness::Slips(slips));
    }
    if length >= 3 && length * 2 > candidate.chars().count() && is_left_of(word, candidate) {
        return Some(Likeness::Short);
    }
    let begins = |long: &str, short: &str| short.len() >= 4 && long.starts_with(short);
    (begins(word, candidate) || begins(candidate, word)).then_some(Likeness::Beginning)
}

/// Whether a word is what is left of another one that begins with the same letter.
fn is_left_of(word: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    word.chars().next() == whole.chars().next() && word.chars().all(|c| rest.any(|other| other == c))
}

fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_few};

    /// A word, what is known, and what was probably meant, the likeliest first.
    fn check(word: &str, known: &[&str], expected: &[&str]) {
        assert_eq!(nearest_few(word, known.iter().copied(), 9), expected, "{word}");
        assert_eq!(nearest(word, known.iter().copied()), expected.first().copied(), "{word}");
    }

    #[test]
    fn near_enough_or_not_at_all() {
        let keys = ["timeout", "signal", "ladder", "scope", "on_failure"];
        check("timout", &keys, &["timeout"]);
        check("Signal", &keys, &["signal"]);
        check("on-failure", &keys, &["on_failure"]);
        check("colour", &keys, &[]);
        check("", &keys, &[]);
    }

    #[test]
    fn something_of_a_word_is_left() {
        check("x", &["y"], &[]);
        check("bb", &["b", "c"], &["b"]);
        check("b", &["bb"], &["bb"]);
    }

    #[test]
    fn the_longer_a_word_the_more_slips() {
        check("stroe", &["store"], &["store"]);
        check("enigne@0", &["engine@0", "engine@1"], &["engine@0", "engine@1"]);
        check("postgers-pirmary", &["postgres-primary"], &["postgres-primary"]);
        check("pool", &["pail"], &[]);
    }

    #[test]
    fn letters_are_left_out() {
        check("prm", &["param", "perm"], &["perm", "param"]);
        check("cmd", &["command"], &[]);
        check("rst", &["start"], &[]);
    }

    #[test]
    fn the_beginning_of_a_word_is_less_than_a_slip() {
        check("on_failure_do", &["on_failure"], &["on_failure"]);
        check("sign", &["signal"], &["signal"]);
        check("stor", &["storage", "store"], &["store", "storage"]);
        check("st", &["storage", "status"], &[]);
    }
}
