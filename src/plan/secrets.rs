//! What may not be shown, as values. One list for whoever shows anything: the views of a plan, what a runner says of its
//! units, and a report.
//!
//! A value is a secret because it was declared as one, or because of its name: a variable `HF_TOKEN`, a key `api_key` of
//! a rendered file, an option `--api-key`. Wherever it is found, it is masked everywhere. By its name alone nothing is
//! taken for one that could not be: a number of tokens, a switch, the path of a file.

use super::exec::{Probe, UnitExec};
use super::{About, Traced, is_secret_name};
use regex_lite::{Captures, Regex};

/// What stands where a secret would.
pub const MASK: &str = "***";

/// Shorter ones would mask half of everything.
const MIN: usize = 4;
/// A line of a secret of several lines that is worth being masked alone.
const LINE_MIN: usize = 8;
/// What stands in places of secrets and is none.
const WORDS: [&str; 14] = [
    "true", "false", "none", "null", "auto", "default", "empty", "yes", "no", "on", "off", "enabled",
    "disabled", MASK,
];

/// A text with these secrets masked.
pub fn masked<'a>(text: &str, secrets: impl Iterator<Item = &'a str>) -> String {
    let mut out = text.to_owned();
    for secret in secrets.filter(|secret| secret.len() >= MIN) {
        if out.contains(secret) {
            out = out.replace(secret, MASK);
        }
    }
    out
}

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
    let settings = Settings::new();
    let mut found = Found { settings, values: Vec::new() };
    for (exec, about) in units {
        found.unit(exec, about);
    }
    found.values
}

struct Found {
    settings: Settings,
    values: Vec<String>,
}

impl Found {
    fn unit(&mut self, exec: &UnitExec, about: &About) {
        for (name, value) in &exec.env {
            if let Ok(value) = std::str::from_utf8(value) {
                self.named(name, value);
            }
        }
        self.traced(&about.env);
        for (file, told) in exec.files.iter().zip(&about.files) {
            self.traced(&told.keys);
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

    fn traced(&mut self, all: &[Traced]) {
        for traced in all {
            let chain = traced.chain.iter().flat_map(|origin| [&origin.value, &origin.offered]);
            for value in chain.chain([&traced.value]).flatten() {
                let name = traced.name.rsplit('.').next().unwrap_or_default();
                self.named(name, value);
            }
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

    fn named(&mut self, name: &str, value: &str) {
        if tells(name, value) {
            self.values.push(value.to_owned());
        }
    }
}

/// Whether a value of this name is taken for a secret.
pub fn tells(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase().replace('-', "_");
    let counts = upper.contains("TOKENS") || upper.ends_with("_KEY");
    let place = ["_FILE", "_PATH", "_DIR"].iter().any(|end| upper.ends_with(end));
    is_secret_name(name)
        && value.len() >= MIN
        && !place
        && !upper.contains("TOKENIZ")
        && !value.contains("{{")
        && !WORDS.contains(&value.to_ascii_lowercase().as_str())
        && !(counts && (value.parse::<f64>().is_ok() || value.starts_with('/')))
}

/// Finds `name = value` in texts of all kinds: TOML, JSON, variables, options.
pub struct Settings(Option<Regex>);

impl Settings {
    /// Ready to look.
    pub fn new() -> Self {
        let value = r#""""(?s:.*?)"""|'''(?s:.*?)'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,}\]#&"']+"#;
        Self(Regex::new(&format!(r#"([A-Za-z0-9_.-]+)(["']?\s*=\s*|["']\s*:\s*)({value})"#)).ok())
    }

    /// The values of names that tell of a secret.
    pub fn values(&self, text: &str) -> Vec<String> {
        let Some(setting) = &self.0 else { return Vec::new() };
        let found = setting.captures_iter(text).filter_map(|found| {
            let (name, _, value) = parts(&found);
            tells(name, bare(value)).then(|| bare(value).to_owned())
        });
        found.collect()
    }

    /// The text with the values of all names of secrets masked.
    pub fn masked(&self, text: &str) -> String {
        let Some(setting) = &self.0 else { return text.to_owned() };
        let masked = setting.replace_all(text, |found: &Captures<'_>| {
            let (name, between, value) = parts(found);
            let all = found.get(0).map_or("", |all| all.as_str());
            let whole = found.get(1).map_or("", |name| name.as_str());
            if is_secret_name(name) && !matches!(value.chars().next(), Some('{' | '[')) {
                format!("{whole}{between}\"{MASK}\"")
            } else {
                all.to_owned()
            }
        });
        masked.into_owned()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// The last part of the name, what stands between, the value.
fn parts<'a>(found: &Captures<'a>) -> (&'a str, &'a str, &'a str) {
    let part = |number: usize| found.get(number).map_or("", |part| part.as_str());
    (part(1).rsplit('.').next().unwrap_or_default(), part(2), part(3))
}

/// Without its quotes.
fn bare(value: &str) -> &str {
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.strip_prefix('\n').filter(|_| quote.len() == 3).unwrap_or(inner);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_tells() {
        let check = |name: &str, value: &str, expectation: bool| {
            assert_eq!(tells(name, value), expectation, "{name}={value}");
        };
        check("HF_TOKEN", "hf_abcdef", true);
        check("api-key", "sk-12345", true);
        check("DB_PASSWORD", "12345", true);
        check("PORT", "hunter22", false);
        // Counts, switches, places and what is still to be worked out are none.
        check("max_tokens", "4096", false);
        check("SORT_KEY", "1234", false);
        check("TOKENIZERS_PARALLELISM", "false", false);
        check("tokenizer-mode", "slow", false);
        check("HF_TOKEN_FILE", "/etc/hf-token", false);
        check("HF_TOKEN", "{{ param.key }}", false);
        check("HF_TOKEN", "abc", false);
    }

    #[test]
    fn in_texts() {
        let check = |text: &str, expectation: &[&str]| {
            assert_eq!(Settings::new().values(text), expectation, "{text}");
        };
        check("env = { A = \"1\", DB_PASSWORD = 'p w q' }", &["p w q"]);
        check("{\"api_key\": \"sk-9\\\"x\", \"port\": 80}", &["sk-9\\\"x"]);
        check("--api-key=sk-123", &["sk-123"]);
        check("/health?token=abcd&x=1", &["abcd"]);
        check("auth.secret = \"\"\"\none\ntwo\"\"\"", &["one\ntwo"]);
        // Prose is no setting.
        check("a token: first come, first served", &[]);
    }

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
        let exec = UnitExec {
            argv: words.map(str::to_owned).to_vec(),
            env: vec![("HF_TOKEN".to_owned(), b"in-env".to_vec()), ("A".to_owned(), b"plain".to_vec())],
            ..UnitExec::default()
        };
        let about =
            About { env: vec![traced("HF_TOKEN", "in-env"), traced("A", "plain")], ..About::default() };
        let found = of_units([(&exec, &about)].into_iter());
        assert_eq!(ordered(found), ["sk-in-argv", "in-a-word", "in-env"]);
    }
}
