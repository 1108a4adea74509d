//! `tenon explain`: a key, a section or a code, from the tables that decode and report them.

use crate::cli::args::ExplainArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::config::keys::{KEYS, Key, SECTIONS, Section};
use crate::diagnostic::Code;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Runs the verb.
pub fn run(context: &Context, args: &ExplainArgs) -> Result<(), CliError> {
    let topics = match &args.topic {
        None => all(),
        Some(topic) => find(topic),
    };
    if topics.is_empty() {
        return Err(not_found(args.topic.as_deref().unwrap_or_default()));
    }
    if context.output.is_json() {
        return context.output.json(&topics.iter().map(Topic::json).collect::<Vec<_>>());
    }
    let texts: Vec<String> = match &args.topic {
        None => topics.iter().map(Topic::line).collect(),
        Some(_) => topics.iter().map(Topic::text).collect(),
    };
    context.output.data(&texts.join(if args.topic.is_none() { "\n" } else { "\n\n" }))
}

/// Something that can be explained.
enum Topic {
    Key(&'static Key),
    Section(&'static Section),
    Code(Code),
}

fn all() -> Vec<Topic> {
    let keys = KEYS.iter().map(Topic::Key);
    keys.chain(Code::ALL.iter().copied().map(Topic::Code)).collect()
}

/// `stop.timeout`, `[stop]`, `timeout`, `rule.npu-ports.why` (the name of a thing stands for `*`), `unknown-key`.
fn find(topic: &str) -> Vec<Topic> {
    let wanted = topic.trim_matches(['[', ']']);
    if let Some(code) = Code::named(wanted) {
        return vec![Topic::Code(code)];
    }
    let same = |path: &str| {
        let (ours, theirs) = (path.split('.'), wanted.split('.'));
        ours.clone().count() == theirs.clone().count()
            && ours.zip(theirs).all(|(ours, theirs)| ours == "*" || ours == theirs)
    };
    let mut topics: Vec<Topic> = KEYS.iter().filter(|key| same(&key.path())).map(Topic::Key).collect();
    for section in SECTIONS.iter().filter(|section| !section.path.is_empty() && same(section.path)) {
        topics.push(Topic::Section(section));
        topics.extend(KEYS.iter().filter(|key| key.section == section.path).map(Topic::Key));
    }
    if topics.is_empty() {
        topics.extend(KEYS.iter().filter(|key| key.name == wanted).map(Topic::Key));
    }
    topics
}

fn not_found(topic: &str) -> CliError {
    let error = CliError::new(Kind::Failed, format!("there is no key, section or code `{topic}`"));
    let keys = KEYS.iter().map(Key::path);
    let names = keys.chain(Code::ALL.iter().map(|code| code.name().to_owned()));
    let near = names
        .map(|name| (strsim::jaro_winkler(topic, &name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((_, name)) => error.hint(format!("did you mean `{name}`?")),
        None => error.hint("`tenon explain` lists them all"),
    }
}

impl Topic {
    /// One line of the list.
    fn line(&self) -> String {
        match self {
            Topic::Key(key) => format!("{:<34}  {}", key.path(), key.help),
            Topic::Section(section) => format!("{:<34}  {}", format!("[{}]", section.path), section.help),
            Topic::Code(code) => format!("{:<34}  {}", code.name(), code.about()),
        }
    }

    fn text(&self) -> String {
        match self {
            Topic::Key(key) => {
                let mut text = format!("{}: {}\n  {}", key.path(), key.ty.words(), key.help);
                let _ = write!(text, "\n  default: {}", key.default.unwrap_or("none"));
                let _ = write!(text, "\n  since: {}", key.since);
                if key.plain {
                    text.push_str("\n  holds no {{ }}: it is read before values are known");
                }
                text
            }
            Topic::Section(section) => format!("[{}]\n  {}", section.path, section.help),
            Topic::Code(code) => format!("{}\n  {}", code.name(), code.about()),
        }
    }

    fn json(&self) -> Value {
        match self {
            Topic::Key(key) => json!({
                "key": key.path(),
                "type": key.ty.words(),
                "default": key.default,
                "since": key.since,
                "help": key.help,
            }),
            Topic::Section(section) => json!({ "section": section.path, "help": section.help }),
            Topic::Code(code) => json!({ "code": code.name(), "about": code.about() }),
        }
    }
}
