//! Secrets are kept out of what leaves the machine: by their values, wherever those stand, and by the names they have
//! where no value is known. Pure.

use crate::plan::{Plan, is_secret_name, masked};
use regex_lite::Regex;
use serde_json::Value;

const MASK: &str = "***";

/// Everything that is secret.
pub struct Mask {
    values: Vec<String>,
    setting: Option<Regex>,
}

impl Mask {
    /// What a plan knows to be secret, and what these variables hold.
    pub fn new(plan: &Plan, environ: &[(String, Vec<u8>)]) -> Self {
        let env = plan.exec.iter().flat_map(|exec| &exec.env).chain(environ);
        let env = env.filter(|(name, _)| is_secret_name(name));
        let env = env.filter_map(|(_, value)| Some(std::str::from_utf8(value).ok()?.to_owned()));
        let mut values: Vec<String> = plan.secrets.iter().cloned().chain(env).collect();
        // A secret that holds another one goes first, so that nothing of it is left.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let value = r#""""(?s:.*?)"""|'''(?s:.*?)'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,}\]#]+"#;
        let setting = Regex::new(&format!(r#"([A-Za-z0-9_.-]+)(["']?\s*=\s*)({value})"#)).ok();
        Self { values, setting }
    }

    /// A text.
    pub fn text(&self, text: &str) -> String {
        masked(text, self.values.iter().map(String::as_str))
    }

    /// A file of settings: the value of every key with a secret's name too.
    pub fn settings(&self, text: &str) -> String {
        let text = self.text(text);
        let Some(setting) = &self.setting else { return text };
        let masked = setting.replace_all(&text, |found: &regex_lite::Captures<'_>| {
            let part = |number: usize| found.get(number).map_or("", |part| part.as_str());
            let name = part(1).rsplit('.').next().unwrap_or_default();
            if is_secret_name(name) && !matches!(part(3).chars().next(), Some('{' | '[')) {
                format!("{}{}\"{MASK}\"", part(1), part(2))
            } else {
                part(0).to_owned()
            }
        });
        masked.into_owned()
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
        Mask::new(&plan, &[("MY_TOKEN".to_owned(), b"hunter22-and-more".to_vec())])
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
        let mut value = serde_json::json!({ "a": ["--x=hunter22"], "B_TOKEN": "q", "n": 1 });
        mask().json(&mut value);
        assert_eq!(value, serde_json::json!({ "a": ["--x=***"], "B_TOKEN": "***", "n": 1 }));
    }
}
