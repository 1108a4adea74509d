//! Secrets are kept out of what leaves the machine: by their values, wherever those stand, and by the names they have
//! where no value is known. Pure.

use crate::diagnostic::secret::{Settings, tells};
use crate::diagnostic::{MASK, SourceMap, is_secret_name, masked};
use crate::plan::{Plan, ordered};
use serde_json::Value;

/// Everything that is secret.
pub struct Mask {
    values: Vec<String>,
    settings: Settings,
}

impl Mask {
    /// What a plan knows to be secret, what these variables hold, and what the files say under the name of a secret, also
    /// of units that are not planned.
    pub fn new(plan: &Plan, environ: &[(String, Vec<u8>)], sources: &SourceMap) -> Self {
        let settings = Settings::new();
        let env = environ.iter().filter_map(|(name, value)| {
            let value = std::str::from_utf8(value).ok()?;
            tells(name, value).then(|| value.to_owned())
        });
        let written = sources.all().flat_map(|(_, text)| settings.values(text));
        let values = ordered(plan.secrets.iter().cloned().chain(env).chain(written));
        Self { values, settings }
    }

    /// A text.
    pub fn text(&self, text: &str) -> String {
        masked(text, self.values.iter().map(String::as_str))
    }

    /// A file of settings: the value of every key with a secret's name too.
    pub fn settings(&self, text: &str) -> String {
        self.settings.masked(&self.text(text))
    }

    /// Every text of a document.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    match member {
                        Value::String(text) if is_secret_name(name) => MASK.clone_into(text),
                        member => self.json(member),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        let plan = Plan { secrets: vec!["hunter22".to_owned()], ..Plan::default() };
        let mut sources = SourceMap::default();
        sources.add("tenon.toml", "[env]\nDB_PASSWORD = \"written-down\"\n");
        Mask::new(&plan, &[("MY_TOKEN".to_owned(), b"hunter22-and-more".to_vec())], &sources)
    }

    #[test]
    fn by_value_and_by_name() {
        let check = |text: &str, expected: &str| assert_eq!(mask().settings(text), expected);
        check("args = [\"--key\", \"hunter22\"]", "args = [\"--key\", \"***\"]");
        check("x = \"hunter22-and-more\"", "x = \"***\"");
        check("API_KEY = \"unknown to all\" # why", "API_KEY = \"***\" # why");
        check("env = { A = \"1\", DB_PASSWORD = 'p w' }", "env = { A = \"1\", DB_PASSWORD = \"***\" }");
        check("env.HF_TOKEN = '''a\nb'''\nb = 1", "env.HF_TOKEN = \"***\"\nb = 1");
        check("\"X_SECRET\" = \"a\\\"b\"", "\"X_SECRET\" = \"***\"");
        check("path = \"/a\"\nkeys = 3", "path = \"/a\"\nkeys = 3");
    }

    #[test]
    fn in_documents() {
        let mut value = serde_json::json!({ "a": ["--x=hunter22", "written-down"], "B_TOKEN": "q", "n": 1 });
        mask().json(&mut value);
        assert_eq!(value, serde_json::json!({ "a": ["--x=***", "***"], "B_TOKEN": "***", "n": 1 }));
    }
}
