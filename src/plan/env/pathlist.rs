//! Variables that are lists (`PATH`): prepend and append without repeating.
//!
//! On bytes, because a search path need not be UTF-8. Must not know rules, units or layers.

/// Puts `entries` to the front, in their order; one already there moves. Empty entries are dropped.
pub fn prepend(existing: Option<&[u8]>, entries: &[Vec<u8>], separator: &[u8]) -> Vec<u8> {
    let new = distinct(entries, separator);
    let old: Vec<&[u8]> = split(existing.unwrap_or_default(), separator)
        .into_iter()
        .filter(|entry| !new.contains(entry))
        .collect();
    [new, old].concat().join(separator)
}

/// Puts `entries` to the end, in their order; one already there stays where it is. Empty entries are dropped.
pub fn append(existing: Option<&[u8]>, entries: &[Vec<u8>], separator: &[u8]) -> Vec<u8> {
    let old = split(existing.unwrap_or_default(), separator);
    let new: Vec<&[u8]> =
        distinct(entries, separator).into_iter().filter(|entry| !old.contains(entry)).collect();
    [old, new].concat().join(separator)
}

/// The entries one by one (an entry may itself be a list), each once.
fn distinct<'a>(entries: &'a [Vec<u8>], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut all: Vec<&[u8]> = Vec::new();
    for entry in entries.iter().flat_map(|entry| split(entry, separator)) {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

/// The entries of a list that are not empty. An empty separator splits nothing.
fn split<'a>(list: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = list;
    while let Some(at) = find(rest, separator) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts.retain(|part| !part.is_empty());
    parts
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    if pattern.is_empty() {
        return None;
    }
    text.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Op = fn(Option<&[u8]>, &[Vec<u8>], &[u8]) -> Vec<u8>;

    fn check(op: Op, existing: Option<&str>, entries: &[&str], expected: &str) {
        let entries: Vec<Vec<u8>> = entries.iter().map(|entry| entry.as_bytes().to_vec()).collect();
        let result = op(existing.map(str::as_bytes), &entries, b":");
        assert_eq!(String::from_utf8_lossy(&result), expected, "{existing:?} {entries:?}");
    }

    #[test]
    fn prepend_moves_what_is_there_to_the_front() {
        check(
            prepend,
            Some("/x:/lib64"),
            &["/usr/local/lib", "/usr/lib64", "/lib64"],
            "/usr/local/lib:/usr/lib64:/lib64:/x",
        );
        check(prepend, None, &["/a", "/b"], "/a:/b");
        check(prepend, Some(""), &["/a"], "/a");
        check(prepend, Some("/a:/b"), &["/b"], "/b:/a");
        check(prepend, Some("/a"), &["/b", "/b"], "/b:/a");
    }

    #[test]
    fn append_leaves_what_is_there_where_it_is() {
        check(append, Some("/bin"), &["/usr/local/go/bin"], "/bin:/usr/local/go/bin");
        check(append, Some("/a:/b"), &["/a", "/c"], "/a:/b:/c");
        check(append, None, &["/a"], "/a");
    }

    #[test]
    fn empty_entries_are_dropped() {
        check(append, Some("/a::/b:"), &["/c"], "/a:/b:/c");
        check(prepend, Some(":/a"), &["", "/c"], "/c:/a");
    }

    #[test]
    fn an_entry_may_be_a_list() {
        check(append, Some("/a"), &["/b:/c"], "/a:/b:/c");
        check(prepend, Some("/c"), &["/b:/c"], "/b:/c");
    }

    #[test]
    fn other_separators() {
        assert_eq!(append(Some(b"a b"), &[b"c".to_vec()], b" "), b"a b c");
        assert_eq!(append(Some(b"a, b"), &[b"c".to_vec()], b", "), b"a, b, c");
    }
}
