//! Lists: commands, arguments, edges, conditional and repeated elements.

use super::nearest::nearest;
use super::{At, Checker, Want, a};
use crate::config::command::{CommandProblem, CommandProblemKind, split_all};
use crate::config::keys::{self, FileKind, Form, Type};
use crate::config::parse::{key_path, quoted};
use crate::config::signal;
use crate::config::text::sub_span;
use crate::config::tree::{Item, Node};
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::duration;

/// What an edge may wait for.
const UNTIL: [&str; 3] = ["spawned", "ready", "finished"];

impl Checker<'_> {
    pub(super) fn list(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Array(items) => items.iter().for_each(|item| self.list_element(want, item)),
            Item::Str(_) if matches!(want.ty, Type::OneOrMore | Type::Entries) => {}
            Item::Str(_) if matches!(want.ty, Type::Texts(Form::IoMax)) => self.list_element(want, node),
            // One element without the brackets.
            Item::Str(_) => {
                let right = format!("[{}]", self.raw(node));
                self.wrong(want, node, Some(right));
            }
            Item::Table(_) if matches!(want.ty, Type::Edges | Type::Tables(_)) => {
                let raw = self.raw(node);
                let right = raw.starts_with('{').then(|| format!("[{raw}]"));
                self.wrong(want, node, right);
            }
            _ => {
                let right = self.in_quotes(node).map(|text| format!("[{text}]"));
                let numbers = matches!(want.ty, Type::Ids).then(|| format!("[{}]", self.raw(node)));
                self.wrong(want, node, numbers.or(right));
            }
        }
    }

    fn list_element(&mut self, want: &Want<'_>, item: &Node) {
        let one = |ty| Want { ty, ..*want };
        match want.ty {
            Type::Tables(section) => self.table_element(want, item, section),
            Type::Edges => self.edge(want, item),
            Type::Exprs => self.value(&one(Type::Expr), item),
            Type::Durations => self.value(&one(Type::Duration), item),
            Type::WordList(words) => self.value(&one(Type::Words(words)), item),
            Type::Ladder => self.rung(want, item),
            Type::Causes => self.cause(want, item),
            Type::KeyPaths => self.key_path(want, item),
            Type::Ids if matches!(item.item, Item::Int(_)) => {}
            Type::Ids | Type::Args | Type::Strings | Type::OneOrMore | Type::Entries => {
                self.argument(want, item);
            }
            Type::Texts(_) if item.as_table().is_some() => self.argument(want, item),
            Type::Texts(form) => self.value(&one(Type::Text(form)), item),
            _ => self.value(&one(Type::Str), item),
        }
    }

    /// A text or number, or a conditional or repeated element.
    fn argument(&mut self, want: &Want<'_>, item: &Node) {
        match &item.item {
            Item::Table(_) if want.plain => self.wrong_element(want, item),
            Item::Table(_) => self.element(want, item),
            Item::Int(_) | Item::Float(_) if matches!(want.ty, Type::Args | Type::Command) => {}
            _ => {
                let text = Want { ty: Type::Str, ..*want };
                if item.as_str().is_some() {
                    self.value(&text, item);
                } else {
                    self.wrong_element(want, item);
                }
            }
        }
    }

    fn wrong_element(&mut self, want: &Want<'_>, item: &Node) {
        let diagnostic = Diagnostic::error(Code::WrongType, format!("an element of `{}` is text", want.name))
            .at(item.span, format!("this is {}", a(item.item.kind())));
        self.out.push(match self.in_quotes(item) {
            Some(right) => diagnostic.with_patch("write", item.span, right),
            None => diagnostic,
        });
    }

    /// `{ when, use }`, `{ each, use }`.
    pub(super) fn element(&mut self, want: &Want<'_>, item: &Node) {
        let Some(table) = item.as_table() else { return };
        let at = At {
            section: "element[]",
            path: want.name.to_owned(),
            header: Some(item.span),
            ..want.at.clone()
        };
        let shape = |message: String| {
            Diagnostic::error(Code::BadElement, message).at(item.span, "").with_help(
                "write `{ when = \"EXPR\", use = [...] }` or `{ each = \"x in LIST\", use = [...] }`",
            )
        };
        for (name, key, value) in table.iter() {
            match (name, keys::find(FileKind::Unit, "element[]", name)) {
                ("use", _) => self.used(want, value),
                (_, Some(known)) => {
                    self.value(&Want { name, ty: known.ty, plain: false, at: &at }, value);
                }
                (_, None) => {
                    let message = format!("an element of `{}` has no `{name}`", want.name);
                    self.out.push(Diagnostic { labels: Vec::new(), ..shape(message) }.at(key, "unknown key"));
                    return;
                }
            }
        }
        if table.get("use").is_none() {
            self.out.push(shape("an element without `use`".to_owned()));
        } else if table.get("when").is_none() && table.get("each").is_none() {
            self.out.push(shape("an element with neither `when` nor `each`".to_owned()));
        }
    }

    fn used(&mut self, want: &Want<'_>, value: &Node) {
        match (&value.item, want.ty) {
            (_, Type::Any) => self.value(want, value),
            (Item::Array(items), _) => items.iter().for_each(|item| self.list_element(want, item)),
            _ => self.list_element(want, value),
        }
    }

    fn table_element(&mut self, want: &Want<'_>, item: &Node, section: &'static str) {
        let Some(table) = item.as_table() else {
            let message = format!("an element of `{}` is a table", want.name);
            self.out.push(
                Diagnostic::error(Code::WrongType, message)
                    .at(item.span, format!("this is {}", a(item.item.kind()))),
            );
            return;
        };
        let path = keys::join(&want.at.path, want.name);
        let at = At { section, path, header: Some(item.span), ..want.at.clone() };
        self.table(&at, table);
    }

    fn edge(&mut self, want: &Want<'_>, item: &Node) {
        match &item.item {
            Item::Str(text) if text.contains("{{") => self.value(&Want { ty: Type::Str, ..*want }, item),
            Item::Str(text) => self.edge_text(item, text),
            Item::Table(table) => {
                let at = At {
                    section: "edge[]",
                    path: want.name.to_owned(),
                    header: Some(item.span),
                    ..want.at.clone()
                };
                self.table(&at, table);
                if table.get("unit").is_none() {
                    self.out.push(
                        Diagnostic::error(Code::MissingKey, "an edge without `unit`")
                            .at(item.span, "to which unit?")
                            .with_help("add `unit = \"NAME\"`"),
                    );
                }
            }
            _ => self.wrong_element(want, item),
        }
    }

    /// `engine@*:spawned`, `label:engine`, `label:engine:ready`.
    fn edge_text(&mut self, item: &Node, text: &str) {
        let (name, until) = match text.strip_prefix("label:") {
            Some(label) => match label.split_once(':') {
                Some((label, until)) => (label, Some(until)),
                None => (label, None),
            },
            None => match text.split_once(':') {
                Some((name, until)) => (name, Some(until)),
                None => (text, None),
            },
        };
        if name.trim().is_empty() || name.contains(char::is_whitespace) {
            self.out.push(
                Diagnostic::error(Code::BadEdge, format!("`{text}` names no unit"))
                    .at(item.span, "")
                    .with_help(
                        "write a unit's name, a glob or `label:NAME`; several are elements of the list",
                    ),
            );
        }
        let Some(until) = until.filter(|until| !UNTIL.contains(until)) else { return };
        let start = text.len() - until.len();
        let span = sub_span(item, start..text.len(), self.sources);
        let diagnostic = Diagnostic::error(Code::BadEdge, format!("nothing to wait for is called `{until}`"))
            .at(span, "")
            .with_note("it is one of `spawned`, `ready`, `finished`");
        self.out.push(match nearest(until, UNTIL) {
            Some(near) => diagnostic.with_patch(format!("did you mean `{near}`?"), span, near),
            None => diagnostic,
        });
    }

    /// `SIGINT 5s`.
    fn rung(&mut self, want: &Want<'_>, item: &Node) {
        let Some(text) = item.as_str() else { return self.wrong_element(want, item) };
        if text.contains("{{") {
            return self.value(&Want { ty: Type::Str, ..*want }, item);
        }
        let trimmed = text.trim();
        let Some((name, time)) = trimmed.split_once(char::is_whitespace) else {
            let right = signal::number(trimmed).map(|_| quoted(&format!("{trimmed} 10s")));
            let message = format!("`{text}` does not say how long the signal is given");
            return self.bad(Code::BadDuration, item, message, right);
        };
        let start = text.len() - text.trim_start().len();
        self.signal_name(item, text, start..start + name.len());
        if let Err(cause) = duration::parse(time.trim()) {
            self.bad(Code::BadDuration, item, cause, None);
        }
    }

    /// `exit:78`.
    fn cause(&mut self, want: &Want<'_>, item: &Node) {
        let Some(text) = item.as_str() else { return self.wrong_element(want, item) };
        if text.contains("{{") {
            return self.value(&Want { ty: Type::Str, ..*want }, item);
        }
        let right = match text.split_once(':') {
            Some(("exit", code)) if code.parse::<u8>().is_ok() => return,
            Some(("signal", name)) if signal::number(name).is_some() => return,
            Some(("signal", name)) => {
                let start = text.len() - name.len();
                return self.signal_name(item, text, start..text.len());
            }
            None if matches!(text, "oom" | "start") => return,
            None if text.parse::<u8>().is_ok() => Some(format!("exit:{text}")),
            None if signal::number(text).is_some() => Some(format!("signal:{text}")),
            _ => nearest(text, ["oom", "start"]).map(str::to_owned),
        };
        self.bad(
            Code::BadCause,
            item,
            format!("`{text}` is no cause of an end"),
            right.map(|right| quoted(&right)),
        );
    }

    fn key_path(&mut self, want: &Want<'_>, item: &Node) {
        let Some(text) = item.as_str() else { return self.wrong_element(want, item) };
        let Some(path) = key_path(text) else {
            return self.bad(Code::BadKeyPath, item, format!("`{text}` is no key"), None);
        };
        let mut section = keys::section(want.at.kind, "");
        for (index, name) in path.iter().enumerate() {
            let Some(here) = section else { return };
            if here.open.is_some() || keys::find(want.at.kind, here.path, name).is_some() {
                return;
            }
            section = keys::child_section(want.at.kind, here.path, name);
            if section.is_none() {
                let known = keys::keys_of(want.at.kind, here.path).map(|key| key.name);
                let near = nearest(name, known).map(|near| {
                    let mut right = path.clone();
                    near.clone_into(&mut right[index]);
                    quoted(&right.join("."))
                });
                return self.bad(Code::BadKeyPath, item, format!("no key is called `{text}`"), near);
            }
        }
    }

    pub(super) fn instances(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Int(number) if (0..=4096).contains(number) => {}
            Item::Int(number) => {
                self.out.push(
                    Diagnostic::error(
                        Code::OutOfRange,
                        format!("`{}` may have 0 to 4096 instances", want.name),
                    )
                    .at(node.span, format!("{number} is outside")),
                );
            }
            Item::Array(items) => {
                for item in items {
                    self.value(&Want { ty: Type::Str, plain: true, ..*want }, item);
                }
            }
            Item::Table(table) => {
                for (name, _, item) in table.iter() {
                    let path = format!("{}.{}.{name}", want.at.path, want.name);
                    let at = At {
                        kind: FileKind::Unit,
                        section: "",
                        path: path.clone(),
                        header: Some(item.span),
                        file: path,
                    };
                    match item.as_table() {
                        Some(table) => self.table(&at, table),
                        None => self.wrong_element(want, item),
                    }
                }
            }
            Item::Str(text) if text.parse::<u16>().is_ok() => self.wrong(want, node, Some(text.clone())),
            Item::Str(_) => {
                let right = format!("[{}]", self.raw(node));
                self.wrong(want, node, Some(right));
            }
            Item::Float(_) | Item::Bool(_) | Item::Datetime(_) => self.wrong(want, node, None),
        }
    }

    pub(super) fn command(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Str(text) => self.command_text(want, node, text),
            Item::Array(items) => {
                if items.is_empty() && want.name != "interpreter" {
                    self.bad(Code::CommandSyntax, node, format!("`{}` is empty", want.name), None);
                }
                let through_shell = items.iter().take(3).any(|item| item.as_str() == Some("-c"));
                for item in items {
                    match item.as_str() {
                        // What a shell is given is the shell's to read.
                        Some(text) if through_shell && !text.contains("{{") => {}
                        _ => self.argument(want, item),
                    }
                }
            }
            Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_) | Item::Table(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    fn command_text(&mut self, want: &Want<'_>, node: &Node, text: &str) {
        let (words, problems) = split_all(text);
        let shell =
            problems.iter().find(|problem| matches!(problem.kind, CommandProblemKind::ShellCharacter(_)));
        let other =
            problems.iter().find(|problem| !matches!(problem.kind, CommandProblemKind::ShellCharacter(_)));
        if let Some(problem) = other {
            let message = match problem.kind {
                CommandProblemKind::UnclosedQuote(quote) => format!("the quote {quote} is not closed"),
                CommandProblemKind::TrailingBackslash => "a backslash at the end keeps nothing".to_owned(),
                CommandProblemKind::Empty | CommandProblemKind::ShellCharacter(_) => {
                    format!("`{}` is empty", want.name)
                }
            };
            let span = sub_span(node, problem.range.clone(), self.sources);
            let diagnostic = Diagnostic::error(Code::CommandSyntax, message).at(span, "");
            self.out.push(diagnostic.with_help("a list needs no quoting: `[\"program\", \"an argument\"]`"));
        } else if let Some(problem) = shell {
            self.shell_characters(want, node, (text, &words), problem, problems.len());
        } else if !words.iter().any(|word| word == "-c") {
            self.literals(node, text);
        }
    }

    fn shell_characters(
        &mut self,
        want: &Want<'_>,
        node: &Node,
        (text, words): (&str, &[String]),
        problem: &CommandProblem,
        count: usize,
    ) {
        let CommandProblemKind::ShellCharacter(char) = problem.kind else { return };
        let span = sub_span(node, problem.range.clone(), self.sources);
        let list = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
        let message = format!("`{char}` does nothing here: `{}` is run without a shell", want.name);
        let mut diagnostic =
            Diagnostic::error(Code::ShellCharacter, message).at(span, "only a shell acts on it");
        if count > 1 {
            diagnostic = diagnostic.with_note(format!("{count} such characters stand in it"));
        }
        let variable = text[problem.range.end..].trim_start_matches('{');
        let length =
            variable.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(variable.len());
        if char == '$' && length > 0 {
            diagnostic = diagnostic
                .with_help(format!("a variable's value is `{{{{ env.{} }}}}`", &variable[..length]));
        }
        let shell = format!(
            "/bin/sh -c \"exec {}\"",
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$")
        );
        self.out.push(
            diagnostic
                .with_patch("to pass it as it is, write a list", node.span, format!("[{list}]"))
                .with_patch("to have a shell, call one", node.span, quoted(&shell)),
        );
    }
}
