//! `[file.NAME]` → bytes.

use super::env::layers::origin;
use super::exec::File;
use super::read::Reader;
use super::render::{self, Cx, Out, Rendered};
use super::{Origin, OriginLayer, Traced};
use crate::config::tree::Node;
use crate::diagnostic::secret::Settings;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::resolve::values;
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A rendered file and what is to be told of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    /// The file.
    pub file: File,
    /// Each key of its content and where it is from (`json`, `toml`, `env`).
    pub keys: Vec<Traced>,
    /// A secret went into it.
    pub secret: bool,
    /// Its path or some of its content is not known in this run.
    pub unknown: bool,
    /// Where it is written.
    pub span: Span,
}

/// Every file of a unit, in the order written.
pub(super) fn files(cx: &Cx<'_>, tree: &Node) -> Vec<Made> {
    let Some(table) = tree.get("file").and_then(Node::as_table) else { return Vec::new() };
    table.iter().filter_map(|(name, key, node)| file(cx, name, key, node)).collect()
}

fn file(cx: &Cx<'_>, name: &str, key: Span, node: &Node) -> Option<Made> {
    let unknown = Cell::new(false);
    match node.get("when").map(|when| cx.holds(when)) {
        None | Some(Some(true)) => {}
        Some(Some(false)) => return None,
        Some(None) => unknown.set(true),
    }
    let whole = render::node(&cx.structured(), node)?;
    let path_name = format!("file.{name}");
    let reader = Reader::new(cx, &path_name, Some(&whole), &unknown);
    let path = path(cx, &reader, node.get("path").map_or(key, |path| path.span), &unknown)?;
    let content_node = node.get("content");
    let content = reader.get("content");
    unknown.set(unknown.get() || content.is_some_and(Rendered::has_unknown));
    let format = reader.word("format", &FORMATS).unwrap_or(Format::Text);
    let secret = content.is_some_and(|content| content.secret);
    let bytes = match write(format, content) {
        Ok(bytes) => bytes,
        Err(message) => {
            let span = content_node.map_or(key, |node| node.span);
            cx.error(Code::WrongValue, format!("`{path_name}`: {message}"), span);
            return None;
        }
    };
    let keys = match (content, content_node) {
        (Some(content), Some(node)) => keys(content, node),
        _ => Vec::new(),
    };
    // What is a secret by its name counts too, though it was written down and not marked as one.
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let private = secret || Settings::new().tell(text);
    let mode = mode(&reader, private)?;
    let file = File { name: name.to_owned(), path, content: bytes, mode, owner: reader.text("owner") };
    Some(Made { file, keys, secret, unknown: unknown.get(), span: key })
}

/// Where the file is to be; empty if this run does not know.
fn path(cx: &Cx<'_>, reader: &Reader<'_>, span: Span, unknown: &Cell<bool>) -> Option<PathBuf> {
    let problem = |message: String, help: String| {
        cx.report(Diagnostic::error(Code::WrongValue, message).at(span, "").with_help(help));
        None
    };
    match reader.text("path") {
        Some(path) if path.starts_with('/') => Some(PathBuf::from(path)),
        Some(path) => problem(
            format!("the path `{path}` is not absolute"),
            format!("write `{{{{ dirs.unit }}}}/{path}`, or a path that begins with `/`"),
        ),
        None if unknown.get() => Some(PathBuf::new()),
        None => problem("a rendered file has no path".into(), "set `path`".into()),
    }
}

/// Permission bits; a file with a secret is its owner's alone unless it says otherwise.
fn mode(reader: &Reader<'_>, secret: bool) -> Option<u32> {
    let Some(value) = reader.get("mode") else { return Some(if secret { 0o600 } else { 0o644 }) };
    let text = reader.text("mode")?;
    match u32::from_str_radix(text.trim_start_matches("0o"), 8) {
        Ok(mode) if mode <= 0o7777 => Some(mode),
        _ => reader.refuse("mode", value, &format!("`{text}` is not octal like `\"0640\"`")),
    }
}

const FORMATS: [(&str, Format); 4] =
    [("json", Format::Json), ("toml", Format::Toml), ("env", Format::Env), ("text", Format::Text)];

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Toml,
    Env,
    Text,
}

fn write(format: Format, content: Option<&Rendered>) -> Result<Vec<u8>, String> {
    let empty = serde_json::Value::Object(serde_json::Map::new());
    let json = content.map_or(empty, Rendered::json);
    match format {
        // As `json.dumps(…, indent=2)` writes it: no line end after the last brace.
        Format::Json => serde_json::to_vec_pretty(&json).map_err(|error| error.to_string()),
        Format::Toml => {
            toml::to_string(&without_null(json)).map(String::into_bytes).map_err(|error| error.to_string())
        }
        Format::Env => env(content).map(String::into_bytes),
        Format::Text => match content.map(|content| &content.item) {
            None | Some(Out::Unknown) => Ok(Vec::new()),
            Some(Out::Str(text)) => Ok(text.clone().into_bytes()),
            Some(_) => Err("a table as `content` wants `format = \"json\"`, `\"toml\"` or `\"env\"`".into()),
        },
    }
}

/// TOML has no null: only what this run does not know is one.
fn without_null(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => serde_json::Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_null(v))).collect(),
        ),
        serde_json::Value::Array(items) => {
            items.into_iter().filter(|item| !item.is_null()).map(without_null).collect()
        }
        other => other,
    }
}

/// `NAME=value` lines as an `env_file` reads them back.
fn env(content: Option<&Rendered>) -> Result<String, String> {
    let entries = match content.map(|content| &content.item) {
        None => return Ok(String::new()),
        Some(Out::Table(entries)) => entries,
        Some(_) => return Err("`format = \"env\"` wants a table as `content`".into()),
    };
    let mut text = String::new();
    for (name, value) in entries {
        let value = match &value.item {
            Out::Unknown => continue,
            Out::Str(value) => value.clone(),
            Out::Int(_) | Out::Float(_) => value.value().text().unwrap_or_default(),
            Out::Bool(_) | Out::List(_) | Out::Table(_) => return Err(format!("`{name}` is not text")),
        };
        let literal =
            value.trim() == value && !value.contains(['\n', '\r']) && !value.starts_with(['"', '\'']);
        let value = if literal { value } else { serde_json::Value::from(value).to_string() };
        let _ = writeln!(text, "{name}={value}");
    }
    Ok(text)
}

/// Each key of the content, with the values it replaced.
fn keys(content: &Rendered, node: &Node) -> Vec<Traced> {
    let (Out::Table(entries), Some(table)) = (&content.item, node.as_table()) else { return Vec::new() };
    table
        .iter()
        .map(|(name, _, node)| {
            let rendered = entries.get(name);
            let value = rendered.map(|rendered| rendered.json().to_string());
            let mut chain: Vec<Origin> = node
                .losers
                .iter()
                .rev()
                .map(|loser| word(loser, Some(values::as_written(loser)), "set"))
                .collect();
            let action = if rendered.is_some() { "set" } else { "unset" };
            chain.push(word(node, value.clone(), action));
            let unknown = rendered.is_some_and(Rendered::has_unknown);
            Traced {
                name: name.to_owned(),
                value,
                unknown,
                secret: rendered.is_some_and(|r| r.secret),
                chain,
            }
        })
        .collect()
}

fn word(node: &Node, value: Option<String>, action: &'static str) -> Origin {
    Origin { value, span: Some(node.span), ..origin(OriginLayer::Tree(node.layer), action) }
}
