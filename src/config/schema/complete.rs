//! A merged tree, for what only all layers together can have wrong: keys a table cannot do without, keys that exclude
//! each other, keys of another kind of unit, tables inside merged JSON.

use super::a;
use super::unknown::is_variable;
use crate::config::keys::FileKind;
use crate::config::parse::quoted;
use crate::config::tree::{Entry, Item, Node, Table};
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span, nearest};

/// Named things, the keys of which one must be there, and what it is for.
const REQUIRED: &[(&str, &[&str], &str)] = &[
    ("file", &["path"], "path = \"/where/it/goes\""),
    ("require", &["test", "same"], "test = \"EXPR\""),
    ("ports", &["value"], "value = 8800"),
    ("reserve", &["value"], "value = \"60000-60015\""),
    ("signature", &["pattern"], "pattern = 'REGEX'"),
    ("bootstrap", &["inject", "wrap", "run", "check"], "run = [\"program\"]"),
    ("managed", &["flags"], "flags = [\"--port\"]"),
    (
        "rule",
        &["default", "fill", "set", "unset", "prepend", "append", "merge"],
        "default = { NAME = \"value\" }",
    ),
];

/// Ways to ask; a table of probes has one of them.
pub(super) const PROBES: [&str; 8] = ["notify", "fd", "tcp", "http", "exec", "log", "path", "all"];

/// Keys that only make sense for some kinds of unit.
const PROCESS_KEYS: [&str; 13] = [
    "command",
    "args",
    "interpreter",
    "env",
    "env_file",
    "restart",
    "stop",
    "health",
    "reload",
    "rlimits",
    "log",
    "main",
    "bootstrap",
];

/// Checks a merged and finished tree.
pub fn complete(kind: FileKind, node: &Node, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let Some(root) = node.as_table() else { return out };
    for (section, keys, example) in REQUIRED {
        for (name, key, thing) in tables(root, section) {
            // A bare variable has been told what it needs.
            let told = *section == "rule" && thing.iter().any(|(key, _, _)| is_variable(key));
            if !told && !is_whole(thing, keys) {
                let words = keys.iter().map(|wanted| format!("`{wanted}`")).collect::<Vec<_>>().join(" or ");
                // Half a thing is most often an override whose name is misspelt.
                let others = tables(root, section).filter(|(_, _, other)| is_whole(other, keys));
                let message = format!("[{section}.{name}] has no {words}");
                out.push(match nearest(name, others.map(|(other, _, _)| other)) {
                    Some(near) => Diagnostic::error(Code::MissingKey, message)
                        .at(key, "no layer below has one of this name")
                        .with_patch(format!("did you mean `{near}`?"), key, near)
                        .with_help(format!("if it is a new one, add `{example}`")),
                    None => missing(key, message, example),
                });
            }
            out.extend(does_nothing(section, name, thing, keys));
        }
    }
    for (name, key, param) in tables(root, "param") {
        let is_enum = param.get("type").and_then(Node::as_str) == Some("enum");
        if is_enum && param.get("choices").is_none() {
            out.push(missing(
                key,
                format!("[param.{name}] is an enum without `choices`"),
                "choices = [\"a\", \"b\"]",
            ));
        }
    }
    exclusive(root, &mut out);
    for (_, _, rule) in tables(root, "rule") {
        merged_json(rule, sources, &mut out);
    }
    if kind == FileKind::Unit {
        unit_kind(root, &mut out);
        super::effect::without_effect(root, &mut out);
    }
    out
}

/// Whether a thing of a named section has what things of this section cannot do without.
pub fn is_complete(section: &str, thing: &Table) -> bool {
    REQUIRED.iter().all(|(of, keys, _)| *of != section || is_whole(thing, keys))
}

/// Whether a thing has one of the keys it cannot do without.
pub(super) fn is_whole(thing: &Table, keys: &[&str]) -> bool {
    keys.iter().any(|wanted| thing.get(wanted).is_some())
}

/// A thing whose every action is an empty list or table.
fn does_nothing(section: &str, name: &str, thing: &Table, keys: &[&str]) -> Option<Diagnostic> {
    let mut actions = keys.iter().filter_map(|key| Some((*key, thing.get(key)?)));
    let (key, node) = actions.next()?;
    if !is_empty(node) || !actions.all(|(_, node)| is_empty(node)) {
        return None;
    }
    let message = format!("[{section}.{name}] does nothing: `{key}` is empty");
    Some(Diagnostic::warning(Code::DoesNothing, message).at(node.span, "").with_help(
        "say what it is to do, or remove it; what a layer below does is switched off by `enabled = false`",
    ))
}

/// Whether a value is a list or a table in which nothing stands.
fn is_empty(node: &Node) -> bool {
    match &node.item {
        Item::Array(items) => items.is_empty(),
        Item::Table(table) => table.iter().all(|(_, _, node)| node.as_table().is_some() && is_empty(node)),
        Item::Str(_) | Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => false,
    }
}

fn missing(place: Span, message: String, example: &str) -> Diagnostic {
    Diagnostic::error(Code::MissingKey, message).at(place, "").with_help(format!("add `{example}`"))
}

/// The members of a table of named things.
fn tables<'a>(root: &'a Table, section: &str) -> impl Iterator<Item = (&'a str, Span, &'a Table)> {
    let things = root.get(section).and_then(Node::as_table);
    things
        .into_iter()
        .flat_map(Table::iter)
        .filter_map(|(name, key, node)| Some((name, key, node.as_table()?)))
}

fn exclusive(root: &Table, out: &mut Vec<Diagnostic>) {
    let section = |name: &str| root.get(name).and_then(Node::as_table);
    for probes in ["ready", "health"] {
        let Some(table) = section(probes) else { continue };
        one_of(table, &PROBES, &format!("[{probes}] asks one probe; several stand in `all = [...]`"), out);
        let items = table.get("all").and_then(Node::as_array).unwrap_or_default();
        for item in items {
            let Some(element) = item.as_table() else { continue };
            one_of(element, &PROBES, "an element of `all` is one probe", out);
            if !is_whole(element, &PROBES) {
                out.push(missing(
                    item.span,
                    format!("an element of `{probes}.all` asks nothing"),
                    "http = \"http://…\"",
                ));
            }
        }
        // [ready] may hold a `settle` alone.
        let empty = table.get("all").is_some_and(|all| all.as_array().is_some_and(<[Node]>::is_empty));
        if empty || (probes == "health" && !is_whole(table, &PROBES)) {
            let place = root.entries.get(probes).map(|entry| entry.key);
            out.extend(
                place.map(|key| missing(key, format!("[{probes}] asks nothing"), "http = \"http://…\"")),
            );
        }
    }
    if let Some(stop) = section("stop") {
        one_of(stop, &["ladder", "signal"], "`ladder` stands instead of `signal` and `timeout`", out);
        one_of(stop, &["ladder", "timeout"], "`ladder` stands instead of `signal` and `timeout`", out);
    }
    if let Some(reload) = section("reload") {
        one_of(reload, &["signal", "command"], "a reload is a signal or a command", out);
    }
    if let Some(restart) = section("restart") {
        one_of(restart, &["except", "only"], "`only` says all that `except` could", out);
    }
}

/// At most one of these keys.
fn one_of(table: &Table, keys: &[&str], message: &str, out: &mut Vec<Diagnostic>) {
    let mut present = keys.iter().filter_map(|key| table.entries.get(*key));
    let (Some(first), Some(second)) = (present.next(), present.next()) else { return };
    let (first, second) = if before(first, second) { (first, second) } else { (second, first) };
    out.push(
        Diagnostic::error(Code::ExclusiveKeys, message)
            .at(second.key, "this one")
            .context(first.key, "and this one")
            .with_help("keep one of them"),
    );
}

fn before(one: &Entry, other: &Entry) -> bool {
    (one.key.file, one.key.start) <= (other.key.file, other.key.start)
}

/// Tables as values of `merge`: an unquoted dotted key, or nesting.
fn merged_json(rule: &Table, sources: &SourceMap, out: &mut Vec<Diagnostic>) {
    if rule.get("nested").and_then(Node::as_bool) == Some(true) {
        return;
    }
    let Some(variables) = rule.get("merge").and_then(Node::as_table) else { return };
    for (_, _, variable) in variables.iter() {
        for (name, key, node) in variable.as_table().into_iter().flat_map(Table::iter) {
            if node.as_table().is_none() {
                continue;
            }
            out.push(match dotted(name, key, node) {
                Some((span, path)) => Diagnostic::error(
                    Code::DottedMergeKey,
                    format!("`{path}` is a table within a table, not one key"),
                )
                .at(span, "dots make tables unless they are quoted")
                .with_patch("to set one key with dots in its name, quote it", span, quoted(&path))
                .with_help("if tables are meant, add `nested = true` to the rule"),
                None => Diagnostic::error(
                    Code::NestedMerge,
                    format!("`{name}` would be merged as {}", a("table")),
                )
                .at(node.span, "merging is one level deep")
                .with_help("quote the dotted key (`\"a.b\" = …`), or add `nested = true` to the rule"),
            });
        }
    }
    let _ = sources;
}

/// Whether a table was made by the dots of a key; then the whole dotted key and its place.
fn dotted(name: &str, key: Span, node: &Node) -> Option<(Span, String)> {
    let (mut node, mut path, mut end, mut previous) = (node, name.to_owned(), key.end, key);
    while let Item::Table(table) = &node.item {
        // The parser gives a table of a dotted key the place of the key.
        if node.span != previous {
            break;
        }
        let (name, entry) = table.entries.first()?;
        path = format!("{path}.{name}");
        end = entry.key.end;
        previous = entry.key;
        node = &entry.node;
    }
    (path != name).then_some((Span { end, ..key }, path))
}

/// A unit without a process has no command, and the like.
fn unit_kind(root: &Table, out: &mut Vec<Diagnostic>) {
    let kind = root.get("kind").and_then(Node::as_str).unwrap_or("service");
    let is_abstract = root.get("abstract").and_then(Node::as_bool) == Some(true);
    let kind_key = root.entries.get("kind").map(|entry| entry.key);
    let forbidden: &[&str] = match kind {
        "settings" | "group" => &PROCESS_KEYS,
        "external" => {
            &["command", "args", "interpreter", "restart", "stop", "reload", "rlimits", "main", "bootstrap"]
        }
        _ => &[],
    };
    for name in forbidden {
        let Some(entry) = root.entries.get(*name) else { continue };
        let mut diagnostic = Diagnostic::error(
            Code::KindMismatch,
            format!("{} unit has no process, so it has no `{name}`", a(kind)),
        )
        .at(entry.key, "without effect");
        if let Some(key) = kind_key {
            diagnostic = diagnostic.context(key, "its kind");
        }
        out.push(diagnostic.with_help("remove it, or make the unit a service or a task"));
    }
    if let Some(members) = root.entries.get("members").filter(|_| kind != "group") {
        out.push(
            Diagnostic::error(Code::KindMismatch, "only a group has `members`")
                .at(members.key, "")
                .with_help("add `kind = \"group\"`, or remove it"),
        );
    }
    if kind != "settings" && !is_abstract {
        facts(root, kind, out);
    }
    let ready = root.get("ready").and_then(Node::as_table);
    let asks = ready.is_some_and(|ready| is_whole(ready, &PROBES));
    if kind == "external" && !is_abstract && !asks {
        let place = kind_key.unwrap_or(Span { file: crate::diagnostic::FileId(0), start: 0, end: 0 });
        out.push(missing(
            place,
            "an external unit says in [ready] how it is asked".to_owned(),
            "[ready] tcp = \"host:port\"",
        ));
    }
}

/// What is true of a machine is read before any unit is: by the profile, and by settings units.
fn facts(root: &Table, kind: &str, out: &mut Vec<Diagnostic>) {
    let Some(entry) = root.entries.get("fact") else { return };
    let message = format!("{} unit reads no facts of its own", a(kind));
    out.push(Diagnostic::error(Code::KindMismatch, message).at(entry.key, "without effect").with_help(
        "move it to the profile, or to a unit with `kind = \"settings\"`: `fact.NAME` is readable everywhere",
    ));
}
