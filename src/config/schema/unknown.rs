//! A key that is not known here: misspelt, in the wrong table, or another program's word.

use super::{At, Checker};
use crate::config::keys::{self, FileKind, KEYS, SECTIONS};
use crate::config::tree::Node;
use crate::diagnostic::{Code, Diagnostic, Span, nearest};

/// Words of other programs, and ours: `(theirs, section, key or table)`.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("depends_on", "", "needs"),
    ("dependson", "", "needs"),
    ("requires", "", "needs"),
    ("bindsto", "", "needs"),
    ("environment", "", "env"),
    ("environmentfile", "", "env_file"),
    ("execstart", "", "command"),
    ("exec", "", "command"),
    ("cmd", "", "command"),
    ("entrypoint", "", "interpreter"),
    ("cwd", "", "directory"),
    ("workdir", "", "directory"),
    ("workingdirectory", "", "directory"),
    ("chdir", "", "directory"),
    ("healthcheck", "", "health"),
    ("readiness", "", "ready"),
    ("readinessprobe", "", "ready"),
    ("livenessprobe", "", "health"),
    ("killsignal", "stop", "signal"),
    ("stopsignal", "stop", "signal"),
    ("killmode", "stop", "scope"),
    ("timeoutstopsec", "stop", "timeout"),
    ("stopgraceperiod", "stop", "timeout"),
    ("timeoutstartsec", "ready", "timeout"),
    ("restartsec", "restart", "delays"),
    ("backoff", "restart", "delays"),
    ("startlimitburst", "restart", "max_restarts"),
    ("retries", "health", "failures"),
    ("autostart", "", "enabled"),
    ("disabled", "", "enabled"),
    ("limitnofile", "rlimits", "nofile"),
    ("limitmemlock", "rlimits", "memlock"),
    ("oomscoreadjust", "sched", "oom_score_adj"),
    ("memorymax", "cgroup", "memory_max"),
    ("type", "", "kind"),
    ("if", "", "when"),
    ("condition", "", "when"),
    ("requirements", "", "require"),
    ("params", "", "param"),
    ("files", "", "file"),
    ("rules", "", "rule"),
    ("logging", "", "log"),
];

impl Checker<'_> {
    pub(super) fn unknown(&mut self, at: &At, name: &str, span: Span, node: &Node) {
        if let Some(diagnostic) = misplaced(at, name, span, node) {
            self.out.push(diagnostic);
            return;
        }
        let here: Vec<&str> = names(at);
        let near = nearest(name, here.iter().copied());
        let elsewhere = elsewhere(at, name);
        let did_you_mean = |near: &str| {
            unknown_key(at, name, span).with_patch(format!("did you mean `{near}`?"), span, near)
        };
        let diagnostic = match near {
            // `delay` in [restart] is `delays`, whoever else has a `delay`.
            Some(near) if strsim::damerau_levenshtein(name, near) == 1 => did_you_mean(near),
            _ if !elsewhere.is_empty() => self.wrong_table(at, name, span, node, &elsewhere),
            _ => foreign(at, name, span, node)
                .or_else(|| near.map(did_you_mean))
                .unwrap_or_else(|| unknown_key(at, name, span)),
        };
        // The right place or word says more than a long list would.
        let show = diagnostic.code == Code::UnknownKey && (diagnostic.helps.is_empty() || here.len() <= 16);
        let diagnostic = if show && !here.is_empty() {
            let place = if at.path.is_empty() { "here".to_owned() } else { at.place() };
            diagnostic.with_note(format!("known {place}: {}", here.join(", ")))
        } else {
            diagnostic
        };
        self.out.push(diagnostic);
    }

    fn wrong_table(
        &self,
        at: &At,
        name: &str,
        span: Span,
        node: &Node,
        sections: &[&'static str],
    ) -> Diagnostic {
        let here = if at.path.is_empty() {
            "here it is at the top".to_owned()
        } else {
            at.place().replacen("in ", "here it is inside ", 1)
        };
        let to_top = sections.contains(&"");
        let right = if to_top && at.file.is_empty() {
            "at the top".to_owned()
        } else if to_top {
            format!("in [{}]", at.file)
        } else {
            let names: Vec<String> = sections.iter().take(4).map(|section| at.name_of(section)).collect();
            match names.split_last() {
                Some((last, [])) => format!("in {last}"),
                Some((last, others)) => format!("in {} or {last}", others.join(", ")),
                None => String::new(),
            }
        };
        let mut diagnostic = Diagnostic::error(Code::WrongTable, format!("`{name}` belongs {right}; {here}"))
            .at(span, "not known here");
        if let Some(header) = at.header.filter(|header| header.file == span.file && *header != span) {
            diagnostic = diagnostic.context(header, "the table it stands in");
        }
        let line = self.sources.snippet(Span { end: node.span.end, ..span });
        let line = if line.contains('\n') || node.as_table().is_some() { name } else { line };
        diagnostic.with_help(match sections {
            _ if to_top && at.file.is_empty() => format!("move `{line}` up, above the first `[table]`"),
            _ if to_top => format!("move `{line}` to [{}], above its first sub-table", at.file),
            [one] => format!("move `{line}` to {}", at.name_of(one)),
            _ => format!("move `{line}` to the table it is meant for"),
        })
    }
}

/// What belongs in another file or needs a word before it, and no list of keys would tell.
fn misplaced(at: &At, name: &str, span: Span, node: &Node) -> Option<Diagnostic> {
    let tables =
        node.as_table().is_some_and(|table| table.iter().any(|(_, _, node)| node.as_table().is_some()));
    let is_file = at.section.is_empty();
    match (at.kind, name) {
        (FileKind::Unit | FileKind::Profile, "set") if is_file && tables => {
            let cure = if at.kind == FileKind::Profile {
                "write it into `tenon.toml`; a profile gives a choice its default: `[param.NAME]` with `default = …`"
            } else {
                "write it into `tenon.toml`; a unit gives a parameter its default: `[param.NAME]` with `default = …`"
            };
            let message = format!("`[{name}.…]` gives values to parameters: it belongs in the node file");
            Some(Diagnostic::error(Code::WrongTable, message).at(span, "not known here").with_help(cure))
        }
        (FileKind::Profile, "env") if is_file => {
            let message =
                "`[env]` belongs in a unit or in the node file: a profile changes variables by rules";
            Some(Diagnostic::error(Code::WrongTable, message).at(span, "not known here").with_help(
                "write a rule: `[rule.NAME]` with `labels`, `why`, and `default = { VARIABLE = \"…\" }` (or `set`)",
            ))
        }
        (_, _) if at.section == "rule.*" && is_variable(name) && node.as_table().is_none() => {
            let message = format!("`{name}` is a variable: a rule says first what it does with it");
            Some(
                Diagnostic::error(Code::WrongTable, message)
                    .at(span, "not known here")
                    .with_patch("where nothing else sets it", span, format!("default.{name}"))
                    .with_note("`default` sets it where nothing else does, `fill` also where it is empty, `set` in any case"),
            )
        }
        (_, _) => None,
    }
}

/// Spelt as variables are: capitals, digits, `_`.
pub(super) fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && name.len() > 1
        && letters.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn unknown_key(at: &At, name: &str, span: Span) -> Diagnostic {
    let place = if at.path.is_empty() { format!("of a {}", at.kind.words()) } else { at.place() };
    let message = format!("`{name}` is no key {place}");
    Diagnostic::error(Code::UnknownKey, message).at(span, "unknown key")
}

/// Keys and tables of this place.
fn names(at: &At) -> Vec<&'static str> {
    let keys = keys::keys_of(at.kind, at.section).map(|key| key.name);
    let tables = SECTIONS
        .iter()
        .filter(|section| {
            section.kinds.contains(at.kind) && !section.path.is_empty() && !section.path.ends_with("[]")
        })
        .filter_map(|section| match at.section {
            "" => Some(section.path),
            parent => section.path.strip_prefix(parent)?.strip_prefix('.'),
        })
        .filter(|rest| !rest.contains('.') && *rest != "*");
    let mut names: Vec<&str> = keys.chain(tables).collect();
    names.dedup();
    names
}

/// Sections of this kind of file that have such a key or table; the top first, then by nearness.
fn elsewhere(at: &At, name: &str) -> Vec<&'static str> {
    let keys = KEYS
        .iter()
        .filter(|key| key.name == name && key.kinds.contains(at.kind))
        .map(|key| key.section)
        .filter(|section| !section.ends_with("[]"));
    let tables = SECTIONS
        .iter()
        .filter(|section| section.kinds.contains(at.kind) && !section.path.ends_with("[]"))
        .filter_map(|section| match section.path.rsplit_once('.') {
            Some((parent, last)) if last == name => Some(parent),
            None if section.path == name => Some(""),
            _ => None,
        });
    let mut sections: Vec<&str> = keys.chain(tables).filter(|section| *section != at.section).collect();
    sections.sort_by_key(|section| !section.is_empty());
    sections.dedup();
    sections
}

fn foreign(at: &At, name: &str, span: Span, node: &Node) -> Option<Diagnostic> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let (_, section, key) = FOREIGN.iter().find(|(theirs, _, _)| theirs.replace('_', "") == plain)?;
    let known =
        keys::find(at.kind, section, key).is_some() || keys::child_section(at.kind, section, key).is_some();
    if !known {
        return None;
    }
    let diagnostic = unknown_key(at, name, span);
    let is_table = keys::find(at.kind, section, key).is_none();
    if is_table && node.as_table().is_none() {
        return Some(
            diagnostic
                .with_help(format!("tenon's word is `{key}`, a table: `[{}]`", keys::join(section, key))),
        );
    }
    Some(if *section == at.section {
        diagnostic.with_patch(format!("tenon's word is `{key}`"), span, *key)
    } else {
        let place =
            if section.is_empty() { "at the top".to_owned() } else { format!("in {}", at.name_of(section)) };
        diagnostic.with_help(format!("tenon's word is `{key}`, {place}"))
    })
}
