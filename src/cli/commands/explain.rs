//! `tenon explain`: a key, a section or a code, from the tables that decode and report them; and a line or code of a
//! program's output, from the signatures of units and profiles.

mod signatures;

use crate::cli::args::ExplainArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::config::explain::{explain_code, explain_key};
use crate::config::keys::KEYS;
use crate::diagnostic::{Code, nearest};
use serde_json::{Value, json};

/// Runs the verb.
pub fn run(context: &Context, args: &ExplainArgs) -> Result<(), CliError> {
    let Some(topic) = &args.topic else { return list(context) };
    let own = match explain_code(topic) {
        Some(text) => Ok(text),
        None => explain_key(topic),
    };
    // The words of what runs are looked up in the files; tenon's own need none.
    let is_signature = topic.trim_start_matches('[').starts_with("signature.");
    let (text, found) = match own {
        Ok(text) if !is_signature => (text, None),
        Ok(text) => {
            let (found, _) = signatures::find(context, topic);
            (if found.is_empty() { text } else { found.text() }, Some(found))
        }
        Err(near) => {
            let (found, names) = signatures::find(context, topic);
            if found.is_empty() {
                return Err(not_found(topic, near, &names));
            }
            (found.text(), Some(found))
        }
    };
    if context.output.is_json() {
        let found = found.map(|found| found.json());
        return context.output.json(&json!({ "topic": topic, "text": text, "signatures": found }));
    }
    context.output.data(&text)
}

/// Every key and every code, a line each; for programs with all that is known of them.
fn list(context: &Context) -> Result<(), CliError> {
    if context.output.is_json() {
        let key = |key: &crate::config::keys::Key| {
            json!({
                "key": key.path(),
                "type": key.ty.words(),
                "default": key.default,
                "since": key.since,
                "help": key.help,
            })
        };
        let keys: Vec<Value> = KEYS.iter().map(key).collect();
        let code = |code: &Code| json!({ "code": code.name(), "about": code.about() });
        let codes: Vec<Value> = Code::ALL.iter().map(code).collect();
        return context.output.json(&json!({ "keys": keys, "codes": codes }));
    }
    let keys = KEYS.iter().map(|key| format!("{:<34}  {}", key.path(), key.help));
    let codes = Code::ALL.iter().map(|code| format!("{:<34}  {}", code.name(), code.about()));
    context.output.data(&keys.chain(codes).collect::<Vec<_>>().join("\n"))
}

fn not_found(topic: &str, mut near: Vec<String>, signatures: &[String]) -> CliError {
    let message = format!("there is no key, section, code or signature `{topic}`");
    let error = CliError::new(Kind::Failed, message);
    near.extend(nearest(topic, signatures.iter().cloned()));
    match near.as_slice() {
        [] => error.hint("`tenon explain` lists them all"),
        near => error.hint(format!("did you mean `{}`?", near.join("` or `"))),
    }
}
