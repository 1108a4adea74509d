//! `tenon explain`: a key, a section or a code, from the tables that decode and report them.

use crate::cli::args::ExplainArgs;
use crate::cli::error::{CliError, Kind};
use crate::cli::pipeline::Context;
use crate::config::explain::{explain_code, explain_key};
use crate::config::keys::KEYS;
use crate::diagnostic::Code;
use serde_json::{Value, json};

/// Runs the verb.
pub fn run(context: &Context, args: &ExplainArgs) -> Result<(), CliError> {
    let Some(topic) = &args.topic else { return list(context) };
    let text = match explain_code(topic) {
        Some(text) => text,
        None => explain_key(topic).map_err(|near| not_found(topic, &near))?,
    };
    if context.output.is_json() {
        return context.output.json(&json!({ "topic": topic, "text": text }));
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

fn not_found(topic: &str, near: &[String]) -> CliError {
    let error = CliError::new(Kind::Failed, format!("there is no key, section or code `{topic}`"));
    match near {
        [] => error.hint("`tenon explain` lists them all"),
        near => error.hint(format!("did you mean `{}`?", near.join("` or `"))),
    }
}
