//! Declared facts: the first source whose text holds something answers.

use super::{Declaration, Fact, FactKind, FactSource, Looked, Machine, Sort};
use crate::expr::{Handle, Scope, Template, Value};
use indexmap::IndexMap;
use std::sync::Arc;

/// More matches than this are not looked at.
const MAX_MATCHES: usize = 4096;

/// Asks the sources of a declaration in order.
pub(super) fn ask(machine: &dyn Machine, declaration: &Declaration) -> Fact {
    let mut not_asked = None;
    for source in &declaration.from {
        match texts(machine, source) {
            Ok(Some((words, texts))) => {
                if let Some(value) = read(&texts, declaration.kind, source) {
                    let by_program = matches!(source.what, Looked::Exec(_));
                    return Fact { value, source: words, not_asked: false, by_program };
                }
            }
            Ok(None) => {}
            Err(program) => {
                not_asked.get_or_insert(program);
            }
        }
    }
    match not_asked {
        Some(program) => {
            let source = format!("not asked (`{program}`)");
            Fact { value: Value::Nothing, source, not_asked: true, by_program: false }
        }
        None => Fact {
            value: Value::Nothing,
            source: "no source answered".to_owned(),
            not_asked: false,
            by_program: false,
        },
    }
}

/// What a source says: the words where from, and texts. `Err` = a program that may not be run.
fn texts(machine: &dyn Machine, source: &FactSource) -> Result<Option<(String, Vec<String>)>, String> {
    let answer = match &source.what {
        Looked::File(pattern) => expand(machine, pattern).map(|pattern| {
            let paths = if is_pattern(&pattern) { machine.glob(&pattern) } else { vec![pattern.clone()] };
            let texts: Vec<String> = paths.iter().filter_map(|path| machine.read(path)).collect();
            (pattern, texts)
        }),
        Looked::Glob(pattern) => expand(machine, pattern).map(|pattern| {
            let paths = machine.glob(&pattern);
            (pattern, paths)
        }),
        Looked::Env(name) => machine.env(name).map(|text| (format!("env {name}"), vec![text])),
        Looked::Exec(argv) => {
            let argv: Option<Vec<String>> = argv.iter().map(|arg| expand(machine, arg)).collect();
            match argv {
                None => None,
                Some(argv) => match machine.exec(&argv) {
                    Ok(output) => output.map(|text| (format!("`{}`", argv.join(" ")), vec![text])),
                    Err(super::NotAllowed) => return Err(argv.join(" ")),
                },
            }
        }
    };
    Ok(answer.filter(|(_, texts)| texts.iter().any(|text| !text.trim().is_empty())))
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// A source's text with `{{ env.X }}` filled in; `None` (no answer) where a variable is absent.
fn expand(machine: &dyn Machine, text: &str) -> Option<String> {
    let template = Template::parse(text).ok()?;
    match template.render(&EnvOnly(machine)).ok()? {
        Value::Str(text) => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The only name a source may use.
struct EnvOnly<'a>(&'a dyn Machine);

impl Scope for EnvOnly<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        (name == "env").then_some(Value::Handle(Handle(0)))
    }

    fn member(&self, _: Handle, name: &str) -> Result<Value, String> {
        Ok(self.0.env(name).map_or(Value::Nothing, |text| Value::Str(text.as_str().into())))
    }

    fn call(&self, function: &str, _: &[Value]) -> Result<Value, String> {
        Err(format!("`{function}` cannot be used in a fact"))
    }
}

/// Reads texts as the wanted kind; `None` = they hold nothing.
fn read(texts: &[String], kind: FactKind, source: &FactSource) -> Option<Value> {
    match kind {
        FactKind::Map => return read_map(texts, source),
        FactKind::Json => return read_json(texts, source),
        FactKind::Text | FactKind::Int | FactKind::Float | FactKind::Bool | FactKind::List => {}
    }
    let mut pieces = pieces(texts, source)?;
    match source.sort {
        Some(Sort::Number) => pieces.sort_by_key(|piece| piece.parse::<i64>().unwrap_or(i64::MAX)),
        Some(Sort::Text) => pieces.sort(),
        None => {}
    }
    if source.renumber {
        pieces = (0..pieces.len()).map(|at| at.to_string()).collect();
    }
    let first = pieces.first()?;
    match kind {
        FactKind::List => {
            Some(Value::List(pieces.iter().map(|piece| Value::Str(piece.as_str().into())).collect()))
        }
        FactKind::Text | FactKind::Map | FactKind::Json => Some(Value::Str(first.as_str().into())),
        FactKind::Int => first.parse().ok().map(Value::Int),
        FactKind::Float => first.parse().ok().map(Value::Float),
        FactKind::Bool => match first.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(Value::Bool(true)),
            "0" | "false" | "no" | "off" => Some(Value::Bool(false)),
            _ => None,
        },
    }
}

/// The pieces of the texts that count, in order, blank ones left out. `None` if the pattern is no pattern.
fn pieces(texts: &[String], source: &FactSource) -> Option<Vec<String>> {
    let mut pieces: Vec<String> = match &source.matching {
        None => texts
            .iter()
            .flat_map(|text| text.lines().map(|line| line.trim().to_owned()))
            .take(MAX_MATCHES)
            .collect(),
        Some(pattern) => {
            let regex = regex_lite::Regex::new(pattern).ok()?;
            let groups = texts.iter().flat_map(|text| {
                regex.captures_iter(text).take(MAX_MATCHES).filter_map(|found| {
                    found.get(1).or_else(|| found.get(0)).map(|group| group.as_str().trim().to_owned())
                })
            });
            groups.take(MAX_MATCHES).collect()
        }
    };
    if let Some(separator) = source.split.as_deref().filter(|separator| !separator.is_empty()) {
        pieces = pieces
            .iter()
            .flat_map(|piece| piece.split(separator).map(|part| part.trim().to_owned()))
            .take(MAX_MATCHES)
            .collect();
    }
    pieces.retain(|piece| !piece.is_empty());
    Some(pieces)
}

/// The first text that is JSON; one that is not does not answer.
fn read_json(texts: &[String], source: &FactSource) -> Option<Value> {
    let matched = match &source.matching {
        Some(pattern) => Some(regex_lite::Regex::new(pattern).ok()?),
        None => None,
    };
    texts.iter().find_map(|text| {
        let part = match &matched {
            None => text.as_str(),
            Some(regex) => {
                let found = regex.captures(text)?;
                found.get(1).or_else(|| found.get(0))?.as_str()
            }
        };
        super::saved::from_json(&serde_json::from_str(part).ok()?)
    })
}

fn read_map(texts: &[String], source: &FactSource) -> Option<Value> {
    let regex = regex_lite::Regex::new(source.matching.as_deref()?).ok()?;
    let mut entries: Vec<(String, Value)> = texts
        .iter()
        .flat_map(|text| regex.captures_iter(text).take(MAX_MATCHES))
        .filter_map(|found| {
            let key = found.get(1)?.as_str().trim().to_owned();
            Some((key, Value::Str(found.get(2)?.as_str().trim().into())))
        })
        .take(MAX_MATCHES)
        .collect();
    match source.sort {
        Some(Sort::Number) => entries.sort_by_key(|(key, _)| key.parse::<i64>().unwrap_or(i64::MAX)),
        Some(Sort::Text) => entries.sort_by(|a, b| a.0.cmp(&b.0)),
        None => {}
    }
    (!entries.is_empty()).then(|| Value::Map(Arc::new(entries.into_iter().collect::<IndexMap<_, _>>())))
}
