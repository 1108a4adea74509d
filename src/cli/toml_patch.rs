//! `KEY=VALUE` → the same TOML text with that one value changed: comments, blank lines, order and line ends stay.
//! Pure: text in, text out.

use toml_edit::{DocumentMut, Item, Key, Table, Value};

/// A change a person asked for.
#[derive(Debug, Clone)]
pub struct Patch {
    /// The parts of the dotted key.
    pub path: Vec<String>,
    /// The value as it was typed.
    pub value: String,
}

impl Patch {
    /// `rule.x.default.A=1-2`. Parts that hold dots are quoted as in TOML: `merge.A."b.c"=1`.
    ///
    /// # Errors
    /// In words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted = "expected KEY=VALUE, for example `param.link.default=hccs`";
        let (path, value) = split(text).ok_or(wanted)?;
        let keys = Key::parse(path.trim()).map_err(|_| format!("`{path}` is not a key: {wanted}"))?;
        let path: Vec<String> = keys.iter().map(|key| key.get().to_owned()).collect();
        if path.is_empty() {
            Err(wanted.to_owned())
        } else {
            Ok(Self { path, value: value.trim().to_owned() })
        }
    }

    /// The key as it would be written.
    pub fn key(&self) -> String {
        self.path.iter().map(|part| Key::new(part).display_repr().into_owned()).collect::<Vec<_>>().join(".")
    }

    /// The text with the change made. `is_text`: the value that holds now is text, so `8080` becomes `"8080"`.
    ///
    /// # Errors
    /// In words: the text is no TOML, or the key runs through something that is no table.
    pub fn apply(&self, text: &str, is_text: bool) -> Result<String, String> {
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        let value = typed(&self.value, is_text);
        insert(document.as_item_mut(), &self.path, value, 0)
            .map_err(|part| format!("`{part}` is not a table"))?;
        // The printer knows one kind of line end; a file from elsewhere keeps its own.
        let changed = document.to_string();
        Ok(if text.contains("\r\n") { changed.replace('\n', "\r\n") } else { changed })
    }
}

/// At the first `=` that is not inside quotes.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (None, '=') => return Some((text.get(..at)?, text.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

/// What was typed as a TOML value: lists, tables and quoted text as such; numbers and truths unless text is wanted;
/// anything else is text.
fn typed(value: &str, is_text: bool) -> Value {
    match value.parse::<Value>() {
        Ok(Value::Array(array)) => Value::Array(array),
        Ok(Value::InlineTable(table)) => Value::InlineTable(table),
        Ok(Value::String(text)) => Value::String(text),
        Ok(other) if !is_text => other,
        Ok(_) | Err(_) => Value::from(value),
    }
}

/// Puts a value where the path leads; what was there keeps its comments. The error is the part that is no table.
fn insert(item: &mut Item, path: &[String], mut value: Value, depth: usize) -> Result<(), String> {
    let Some((part, rest)) = path.split_first() else { return Ok(()) };
    let Some(table) = item.as_table_like_mut() else { return Err(part.clone()) };
    if rest.is_empty() {
        if let Some(known) = table.get_mut(part).and_then(Item::as_value_mut) {
            *value.decor_mut() = known.decor().clone();
            *known = value;
        } else {
            table.insert(part, Item::Value(value));
        }
        return Ok(());
    }
    if table.get(part).is_none() {
        let mut fresh = Table::new();
        // `[rule.x]`, then `default.A = …`: headings for the first two parts, dots for the rest.
        fresh.set_implicit(depth == 0 && rest.len() > 1);
        fresh.set_dotted(depth > 1);
        table.insert(part, Item::Table(fresh));
    }
    match table.get_mut(part) {
        Some(next) if next.is_table_like() => insert(next, rest, value, depth + 1),
        Some(_) | None => Err(part.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, change: &str, is_text: bool, after: &str) {
        let patch = Patch::parse(change).unwrap();
        assert_eq!(patch.apply(before, is_text).unwrap(), after);
    }

    #[test]
    fn one_value_changes_and_everything_else_stays() {
        check(
            "# top\r\na = 1 # one\r\n\r\n[rule.x] # why\r\ndefault = { A = \"1\", B = \"2\" } # both\r\n",
            "rule.x.default.A=16900-17000",
            true,
            "# top\r\na = 1 # one\r\n\r\n[rule.x] # why\r\ndefault = { A = \"16900-17000\", B = \"2\" } # both\r\n",
        );
        check(
            "[param.link]\ndefault   = 'ub'   # the bus\n",
            "param.link.default=uboe",
            true,
            "[param.link]\ndefault   = \"uboe\"   # the bus\n",
        );
        check("param.x.default = 1 # n\n", "param.x.default=2", false, "param.x.default = 2 # n\n");
    }

    #[test]
    fn what_is_not_there_is_added() {
        check("", "description=a b", true, "description = \"a b\"\n");
        check("", "rule.x.enabled=false", false, "[rule.x]\nenabled = false\n");
        check("", "rule.x.default.A=1", true, "[rule.x]\ndefault.A = \"1\"\n");
        check(
            "# mine\n[rule.x]\nwhy = \"w\"\n",
            "rule.x.default.A=1",
            true,
            "# mine\n[rule.x]\nwhy = \"w\"\ndefault.A = \"1\"\n",
        );
        check("", "rule.x.merge.G.\"b.c\"=1", true, "[rule.x]\nmerge.G.\"b.c\" = \"1\"\n");
    }

    #[test]
    fn values_as_typed() {
        check("", "a=[1, 2]", true, "a = [1, 2]\n");
        check("", "a=\"x\"", false, "a = \"x\"\n");
        check("", "a=8080", false, "a = 8080\n");
        check("", "a=8080", true, "a = \"8080\"\n");
        check("", "a=1-2", false, "a = \"1-2\"\n");
        check("", "a=", false, "a = \"\"\n");
        check("", "a=x=y", true, "a = \"x=y\"\n");
    }

    #[test]
    fn what_cannot_be() {
        assert!(Patch::parse("no value").is_err());
        assert!(Patch::parse("a b=1").is_err());
        assert!(Patch::parse("=1").is_err());
        let patch = Patch::parse("a.b=1").unwrap();
        assert_eq!(patch.apply("a = 1\n", false).unwrap_err(), "`a` is not a table");
        assert!(patch.apply("a = [\n", false).is_err());
    }
}
