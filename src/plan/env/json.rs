//! Merging keys into a variable that holds a JSON object, without disturbing the rest of it.
//!
//! The text is re-spaced (`{"a": 1, "b": 2}`), never re-encoded: numbers, escapes and the order of other keys stay
//! as somebody wrote them, because another program reads them. Must not know rules, units or layers.

use serde_json::Value;

/// How keys meet keys that are already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeOptions {
    /// A key already there wins.
    pub keep: bool,
    /// Objects merge key by key instead of being replaced whole.
    pub nested: bool,
}

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// The new text; `None`: nothing changed, the bytes stay.
    pub text: Option<String>,
    /// The old text, if it was no JSON object and had to go.
    pub dropped: Option<String>,
}

/// One member of an object, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    /// The key with its quotes and escapes.
    token: String,
    /// The key.
    key: String,
    /// The value, re-spaced.
    value: String,
}

/// Merges `entries` into the object in `existing` (absent or blank: an empty object).
pub fn merge(existing: Option<&[u8]>, entries: &[(String, Value)], options: MergeOptions) -> Merged {
    let text = existing.map(String::from_utf8_lossy).unwrap_or_default();
    let blank = text.trim().is_empty();
    let (mut members, dropped) = match members(&text) {
        Some(members) => (members, None),
        None if blank => (Vec::new(), None),
        None => (Vec::new(), Some(text.clone().into_owned())),
    };
    let changed = merge_members(&mut members, entries, options);
    let text = (changed || dropped.is_some()).then(|| write(&members));
    Merged { text, dropped }
}

/// JSON text with one blank after `,` and `:` and none elsewhere, strings and numbers untouched.
pub fn spaced(value: &Value) -> String {
    respace(&value.to_string())
}

fn merge_members(members: &mut Vec<Member>, entries: &[(String, Value)], options: MergeOptions) -> bool {
    let mut changed = false;
    for (key, value) in entries {
        let Some(member) = members.iter_mut().find(|member| member.key == *key) else {
            members.push(Member {
                token: Value::from(key.as_str()).to_string(),
                key: key.clone(),
                value: spaced(value),
            });
            changed = true;
            continue;
        };
        changed |= merge_value(member, value, options);
    }
    changed
}

fn merge_value(member: &mut Member, value: &Value, options: MergeOptions) -> bool {
    if let (true, Value::Object(map), Some(mut inner)) = (options.nested, value, members(&member.value)) {
        let entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let changed = merge_members(&mut inner, &entries, options);
        if changed {
            member.value = write(&inner);
        }
        return changed;
    }
    let same = serde_json::from_str::<Value>(&member.value).is_ok_and(|old| old == *value);
    if options.keep || same {
        return false;
    }
    member.value = spaced(value);
    true
}

fn write(members: &[Member]) -> String {
    let parts: Vec<String> =
        members.iter().map(|member| format!("{}: {}", member.token, member.value)).collect();
    format!("{{{}}}", parts.join(", "))
}

/// The members of an object; `None` if the text is none. Of a key written twice the last value counts, as for
/// every reader of JSON.
fn members(text: &str) -> Option<Vec<Member>> {
    // Checks the syntax and bounds the depth, so that the scanner below may trust the text.
    if !serde_json::from_str::<Value>(text).ok()?.is_object() {
        return None;
    }
    let flat = respace(text);
    let body = flat.strip_prefix('{')?.strip_suffix('}')?;
    let mut members: Vec<Member> = Vec::new();
    for part in split_top(body) {
        let token_end = string_end(part)?;
        let token = part.get(..token_end)?;
        let value = part.get(token_end..)?.strip_prefix(": ")?.to_owned();
        let key: String = serde_json::from_str(token).ok()?;
        match members.iter_mut().find(|member| member.key == key) {
            Some(member) => member.value = value,
            None => members.push(Member { token: token.to_owned(), key, value }),
        }
    }
    Some(members)
}

/// Where the string that `text` begins with ends (after its quote).
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Splits re-spaced text at the commas outside of strings, objects and arrays.
fn split_top(body: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quoted, mut escaped) = (0, 0_u32, false, false);
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&body[start..at]);
                start = at + 2; // the blank that `respace` wrote
            }
            _ => {}
        }
    }
    if start < body.len() {
        parts.push(&body[start..]);
    }
    parts
}

fn respace(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut quoted, mut escaped) = (false, false);
    for letter in text.chars() {
        if quoted {
            out.push(letter);
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match letter {
            ' ' | '\t' | '\n' | '\r' => {}
            ',' => out.push_str(", "),
            ':' => out.push_str(": "),
            _ => {
                quoted = letter == '"';
                out.push(letter);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `entries` is the JSON object that is merged in.
    fn check(existing: Option<&str>, entries: &str, options: MergeOptions, expected: Option<&str>) {
        let Ok(Value::Object(map)) = serde_json::from_str(entries) else { panic!("entries: {entries}") };
        let entries: Vec<_> = map.into_iter().collect();
        let merged = merge(existing.map(str::as_bytes), &entries, options);
        assert_eq!(merged.text.as_deref(), expected, "{existing:?} + {entries:?}");
    }

    const PLAIN: MergeOptions = MergeOptions { keep: false, nested: false };
    const KEEP: MergeOptions = MergeOptions { keep: true, nested: false };
    const NESTED: MergeOptions = MergeOptions { keep: false, nested: true };

    #[test]
    fn keys_are_added_behind_what_is_there() {
        check(None, r#"{"c.port":"26666"}"#, PLAIN, Some(r#"{"c.port": "26666"}"#));
        check(Some(""), r#"{"a":1}"#, PLAIN, Some(r#"{"a": 1}"#));
        check(Some("{}"), r#"{"a":1}"#, PLAIN, Some(r#"{"a": 1}"#));
        check(
            Some(r#"{"f.max": "64"}"#),
            r#"{"c.port":"26666"}"#,
            PLAIN,
            Some(r#"{"f.max": "64", "c.port": "26666"}"#),
        );
        check(
            Some(r#"{"p": ["uboe:device"]}"#),
            r#"{"c.port":"26666"}"#,
            PLAIN,
            Some(r#"{"p": ["uboe:device"], "c.port": "26666"}"#),
        );
    }

    #[test]
    fn a_key_already_there_keeps_its_place() {
        check(Some(r#"{"a":1,"b":2}"#), r#"{"a":3}"#, PLAIN, Some(r#"{"a": 3, "b": 2}"#));
        check(Some(r#"{"a":1,"b":2}"#), r#"{"a":3,"c":4}"#, KEEP, Some(r#"{"a": 1, "b": 2, "c": 4}"#));
        check(Some(r#"{"a":[1,2]}"#), r#"{"a":[3]}"#, PLAIN, Some(r#"{"a": [3]}"#));
        check(Some(r#"{"a":1,"a":2}"#), r#"{"b":3}"#, PLAIN, Some(r#"{"a": 2, "b": 3}"#));
    }

    #[test]
    fn nothing_new_leaves_the_bytes_alone() {
        check(Some(r#"{"a":1}"#), r#"{"a":1}"#, PLAIN, None);
        check(Some(r#"{"a":1}"#), r#"{"a":9}"#, KEEP, None);
        check(Some("{\"a\" :\t1}"), "{}", PLAIN, None);
    }

    #[test]
    fn what_others_wrote_is_not_re_encoded() {
        check(
            Some(
                r#"{"n":1.10,"big":123456789012345678901,"s":"a\u00e9\\\"c, : {","o":{"x":[1,{"y":null}]}}"#,
            ),
            r#"{"z":true}"#,
            PLAIN,
            Some(
                r#"{"n": 1.10, "big": 123456789012345678901, "s": "a\u00e9\\\"c, : {", "o": {"x": [1, {"y": null}]}, "z": true}"#,
            ),
        );
    }

    #[test]
    fn nested_objects() {
        check(
            Some(r#"{"o":{"x":1,"y":2}}"#),
            r#"{"o":{"y":3,"z":4}}"#,
            NESTED,
            Some(r#"{"o": {"x": 1, "y": 3, "z": 4}}"#),
        );
        check(Some(r#"{"o":5}"#), r#"{"o":{"y":3}}"#, NESTED, Some(r#"{"o": {"y": 3}}"#));
        check(Some(r#"{"o":{"x":1}}"#), r#"{"o":{"y":3}}"#, PLAIN, Some(r#"{"o": {"y": 3}}"#));
    }

    #[test]
    fn text_that_is_no_object_is_dropped_and_shown() {
        for text in ["garbage", "[1]", "\"x\"", "{\"a\":", "1"] {
            let merged = merge(Some(text.as_bytes()), &[("a".into(), 1.into())], PLAIN);
            assert_eq!(merged.text.as_deref(), Some(r#"{"a": 1}"#));
            assert_eq!(merged.dropped.as_deref(), Some(text));
        }
    }
}
