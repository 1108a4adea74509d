//! What may not be shown, as values. One list for whoever shows anything: the views of a plan, what a runner says of its
//! units, and a report.
//!
//! A value is a secret because it was declared as one, or because of its name: a variable `HF_TOKEN`, a key `api_key` of
//! a rendered file, an option `--api-key`. Wherever it is found, it is masked everywhere. By its name alone nothing is
//! taken for one that could not be: a number of tokens, a switch, the path of a file.

use super::exec::{Probe, UnitExec};
use super::{About, Traced};
use crate::config::tree::{Item, Node};
use crate::diagnostic::secret::{MIN, Settings, tells};

/// A line of a secret of several lines that is worth being masked alone.
const LINE_MIN: usize = 8;

/// In the order in which they are to be masked: one that holds another goes first, so that nothing of it is left. With
/// the forms in which they are met: as text in JSON, and line by line.
pub fn ordered(secrets: impl IntoIterator<Item = String>) -> Vec<String> {
    in_order(secrets.into_iter().flat_map(forms))
}

/// Several such lists as one. No form of a form is made: otherwise a list that is made of lists would grow for ever.
pub(super) fn in_order(all: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = all.into_iter().filter(|secret| secret.len() >= MIN).collect();
    all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    all.dedup();
    all
}

/// How a secret is met.
fn forms(secret: String) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let quoted = serde_json::to_string(&secret).unwrap_or_default();
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if inner != secret {
        all.push(inner.to_owned());
    }
    if secret.contains('\n') {
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_MIN);
        all.extend(lines.map(str::to_owned));
    }
    all.push(secret);
    all
}

/// What units are given under the name of a secret.
pub(super) fn of_units<'a>(units: impl Iterator<Item = (&'a UnitExec, &'a About)>) -> Vec<String> {
    let mut found = Found { settings: Settings::new(), values: Vec::new() };
    units.for_each(|(exec, about)| found.unit(exec, about));
    found.values
}

/// What stands in their data under the name of one.
pub(super) fn of_data<'a>(data: impl Iterator<Item = &'a Node>) -> Vec<String> {
    let mut found = Found { settings: Settings::new(), values: Vec::new() };
    data.for_each(|node| found.data("", node));
    found.values
}

struct Found {
    settings: Settings,
    values: Vec<String>,
}

impl Found {
    fn unit(&mut self, exec: &UnitExec, about: &About) {
        for variable in &about.env {
            self.traced(&variable.name, variable);
        }
        for (file, told) in exec.files.iter().zip(&about.files) {
            for key in &told.keys {
                self.traced(key.name.rsplit('.').next().unwrap_or_default(), key);
            }
            if let Ok(text) = std::str::from_utf8(&file.content) {
                self.values.extend(self.settings.values(text));
            }
        }
        self.words(&exec.argv);
        for step in &exec.steps {
            self.words(&step.argv);
        }
        for probe in exec.ready.probes.iter().chain(&exec.health.probes) {
            match probe {
                Probe::Exec { argv } => self.words(argv),
                Probe::Http { url, .. } => self.values.extend(self.settings.values(&url.path)),
                Probe::Notify | Probe::Fd(_) | Probe::Tcp { .. } | Probe::Log { .. } | Probe::Path { .. } => {
                }
            }
        }
        self.words(exec.log.pipe.as_deref().unwrap_or_default());
    }

    /// Also what was overruled.
    fn traced(&mut self, name: &str, traced: &Traced) {
        let chain = traced.chain.iter().flat_map(|origin| [&origin.value, &origin.offered]);
        for value in chain.chain([&traced.value]).flatten() {
            self.named(name, value);
        }
    }

    /// `--api-key VALUE`, `--api-key=VALUE`, `token=VALUE` within a word.
    fn words(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let option = word.strip_prefix("--").filter(|name| !name.contains('='));
            if let (Some(name), Some(value)) =
                (option, words.get(at + 1).filter(|next| !next.starts_with('-')))
            {
                self.named(name, value);
            }
            self.values.extend(self.settings.values(word));
        }
    }

    fn data(&mut self, name: &str, node: &Node) {
        match &node.item {
            Item::Str(text) => self.named(name, text),
            Item::Array(items) => items.iter().for_each(|item| self.data(name, item)),
            Item::Table(table) => table.iter().for_each(|(key, _, node)| self.data(key, node)),
            Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => {}
        }
    }

    fn named(&mut self, name: &str, value: &str) {
        if tells(name, value) {
            self.values.push(value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::masked;

    #[test]
    fn in_the_order_in_which_nothing_is_left() {
        let all =
            ordered(["abcd", "abcd-and-more", "x\"yz", "one line of it\nshort", "abc"].map(str::to_owned));
        assert_eq!(
            all,
            [
                "one line of it\\nshort",
                "one line of it\nshort",
                "one line of it",
                "abcd-and-more",
                "x\\\"yz",
                "abcd",
                "x\"yz"
            ]
        );
        // A list of lists is no longer for it: not one form of a form.
        assert_eq!(in_order(all.iter().chain(&all).cloned()), all);
        let text = masked("abcd-and-more, abcd, abc, one line of it", all.iter().map(String::as_str));
        assert_eq!(text, "***, ***, abc, ***");
    }

    #[test]
    fn what_a_unit_is_given() {
        let traced = |name: &str, value: &str| Traced {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            unknown: false,
            secret: false,
            chain: Vec::new(),
        };
        let words = ["serve", "--api-key", "sk-in-argv", "--port", "80", "--db-password=in-a-word"];
        let exec = UnitExec { argv: words.map(str::to_owned).to_vec(), ..UnitExec::default() };
        let about = About {
            env: vec![traced("HF_TOKEN", "in-env"), traced("A", "plain"), traced("password.db", "whole")],
            ..About::default()
        };
        let found = of_units([(&exec, &about)].into_iter());
        assert_eq!(ordered(found), ["sk-in-argv", "in-a-word", "in-env", "whole"]);
    }
}
