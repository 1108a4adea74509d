//! Single values against their type.

use super::{Checker, Want, a};
use crate::config::keys::{Form, Type};
use crate::config::parse::quoted;
use crate::config::signal;
use crate::config::text::sub_span;
use crate::config::tree::{Item, Node};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::expr::{Each, Expr, Template, duration, port_range::PortRange, size};
use std::ops::Range;

/// A sentence as messages are written: it begins small and has no full stop.
fn in_a_line(sentence: &str) -> String {
    let mut rest = sentence.trim_end_matches('.').chars();
    rest.next().into_iter().flat_map(char::to_lowercase).chain(rest).collect()
}

impl Checker<'_> {
    pub(super) fn value(&mut self, want: &Want<'_>, node: &Node) {
        if let Item::Str(text) = &node.item
            && self.text(want, node, text)
        {
            return;
        }
        match want.ty {
            Type::Str => self.str(want, node),
            Type::Bool => self.bool(want, node),
            Type::Int(low, high) => self.int(want, node, low, high, &[]),
            Type::IntOr(low, high, words) => self.int(want, node, low, high, words),
            Type::Float(low, high) => self.float(want, node, low, high),
            Type::Duration => self.duration(want, node, &[]),
            Type::DurationOr(words) => self.duration(want, node, words),
            Type::Size => self.size(want, node, &[]),
            Type::SizeOr(words) => self.size(want, node, words),
            Type::Words(words) => self.word(want, node, words),
            Type::Expr | Type::Each => self.expression_kind(want, node),
            Type::Regex => self.regex(want, node),
            Type::Signal => self.signal(want, node),
            Type::Mode => self.mode(want, node),
            Type::Scalar => self.scalar(want, node),
            Type::Ports => self.ports(want, node),
            Type::Limit => self.limit(want, node),
            Type::Instances => self.instances(want, node),
            Type::Inherit => self.inherit(want, node),
            Type::Any => self.any(want, node),
            Type::Command => self.command(want, node),
            Type::Text(form) => self.form(want, node, form),
            Type::Durations
            | Type::WordList(_)
            | Type::Strings
            | Type::OneOrMore
            | Type::Args
            | Type::Exprs
            | Type::Ladder
            | Type::Causes
            | Type::Entries
            | Type::Edges
            | Type::Selectors
            | Type::KeyPaths
            | Type::Ids
            | Type::Texts(_)
            | Type::Tables(_) => self.list(want, node),
        }
    }

    /// What any string may have wrong. True: it holds a template (or a broken one), so its type is not known yet.
    fn text(&mut self, want: &Want<'_>, node: &Node, text: &str) -> bool {
        match want.ty {
            Type::Expr | Type::Exprs => {
                self.expression(node, text);
                return true;
            }
            Type::Each => {
                if let Err(found) = Each::parse(text) {
                    self.out.push(super::problem(node, &found, self.sources));
                }
                return true;
            }
            Type::Regex => return false,
            _ => {}
        }
        let Some(at) = text.find("{{") else {
            let means_itself = matches!(
                want.ty,
                Type::Str | Type::Text(_) | Type::Scalar | Type::OneOrMore | Type::Strings | Type::Args
            );
            let is_help =
                matches!(want.name, "help" | "why" | "hint" | "message" | "description" | "pattern_help");
            if means_itself && !is_help {
                self.literals(node, text);
            }
            return false;
        };
        if want.plain {
            let span = sub_span(node, at..text.len(), self.sources);
            self.out.push(
                Diagnostic::error(
                    Code::TemplateNotAllowed,
                    format!("`{}` is read before values are known", want.name),
                )
                .at(span, "no `{{ }}` here")
                .with_help("write the value itself; conditions go to `when`"),
            );
            return true;
        }
        if let Err(found) = Template::parse(text) {
            self.out.push(super::problem(node, &found, self.sources));
            return true;
        }
        // Words of a command are split before templates are evaluated.
        !matches!(want.ty, Type::Command)
    }

    /// A bare expression.
    pub(super) fn expression(&mut self, node: &Node, text: &str) {
        let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        if let Some(inner) = inner {
            self.out.push(
                Diagnostic::error(Code::BracesInExpression, "this is an expression already")
                    .at(node.span, "`{{ }}` is for text")
                    .with_patch("write", node.span, quoted(inner.trim())),
            );
        } else if let Err(found) = Expr::parse(text) {
            self.out.push(super::problem(node, &found, self.sources));
        }
    }

    /// `true` and `false` are expressions too.
    fn expression_kind(&mut self, want: &Want<'_>, node: &Node) {
        if !(want.ty == Type::Expr && matches!(node.item, Item::Bool(_))) {
            self.wrong(want, node, None);
        }
    }

    /// The value is of the wrong kind; `right` is how it would be written.
    pub(super) fn wrong(&mut self, want: &Want<'_>, node: &Node, right: Option<String>) {
        let diagnostic =
            Diagnostic::error(Code::WrongType, format!("`{}` wants {}", want.name, want.ty.words()))
                .at(node.span, format!("this is {}", a(node.item.kind())));
        self.out.push(match right {
            Some(right) => diagnostic.with_patch("write", node.span, right),
            None => diagnostic,
        });
    }

    /// The text of a value as it is written.
    pub(super) fn raw(&self, node: &Node) -> &str {
        self.sources.snippet(node.span)
    }

    /// A scalar as text.
    pub(super) fn in_quotes(&self, node: &Node) -> Option<String> {
        matches!(node.item, Item::Int(_) | Item::Float(_) | Item::Bool(_) | Item::Datetime(_))
            .then(|| format!("\"{}\"", self.raw(node)))
    }

    fn str(&mut self, want: &Want<'_>, node: &Node) {
        if node.as_str().is_none() {
            self.wrong(want, node, self.in_quotes(node));
        }
    }

    /// A text that somebody else reads.
    fn form(&mut self, want: &Want<'_>, node: &Node, form: Form) {
        let Some(text) = node.as_str() else { return self.wrong(want, node, self.in_quotes(node)) };
        if let Err(cause) = form.check(text) {
            let message = format!("`{}`: {cause}", want.name);
            let diagnostic = Diagnostic::error(Code::WrongValue, message).at(node.span, "");
            self.out.push(match nearest(text, form.known()) {
                Some(near) => {
                    diagnostic.with_patch(format!("did you mean `{near}`?"), node.span, quoted(&near))
                }
                None => diagnostic,
            });
        }
    }

    fn bool(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Bool(_) => {}
            Item::Str(text) => {
                let truth = crate::expr::words::parse_bool(text);
                self.wrong(want, node, truth.map(|truth| truth.to_string()));
            }
            Item::Int(number @ (0 | 1)) => self.wrong(want, node, Some((*number == 1).to_string())),
            Item::Int(_) | Item::Float(_) | Item::Datetime(_) | Item::Array(_) | Item::Table(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    fn int(&mut self, want: &Want<'_>, node: &Node, low: i64, high: i64, words: &[&'static str]) {
        match &node.item {
            Item::Int(number) if (low..=high).contains(number) => {}
            Item::Int(number) => self.out_of_range(want, node, &number.to_string()),
            Item::Str(text) if words.contains(&text.as_str()) => {}
            Item::Str(text) if text.trim().parse::<i64>().is_ok() => {
                self.wrong(want, node, Some(text.trim().to_owned()));
            }
            Item::Str(text) if nearest(text, words.iter().copied()).is_some() => {
                self.unknown_word(want, node, text, words);
            }
            Item::Str(_)
            | Item::Float(_)
            | Item::Bool(_)
            | Item::Datetime(_)
            | Item::Array(_)
            | Item::Table(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    fn float(&mut self, want: &Want<'_>, node: &Node, low: f64, high: f64) {
        let number = match &node.item {
            Item::Int(number) => *number as f64,
            Item::Float(number) => *number,
            Item::Str(text) => {
                let right = text.trim().parse::<f64>().ok().map(|_| text.trim().to_owned());
                return self.wrong(want, node, right);
            }
            Item::Bool(_) | Item::Datetime(_) | Item::Array(_) | Item::Table(_) => {
                return self.wrong(want, node, None);
            }
        };
        if !(low..=high).contains(&number) {
            self.out_of_range(want, node, &number.to_string());
        }
    }

    fn out_of_range(&mut self, want: &Want<'_>, node: &Node, number: &str) {
        self.out.push(
            Diagnostic::error(Code::OutOfRange, format!("`{}` wants {}", want.name, want.ty.words()))
                .at(node.span, format!("{number} is outside")),
        );
    }

    /// A text of the wrong form.
    pub(super) fn bad(&mut self, code: Code, node: &Node, message: impl Into<String>, right: Option<String>) {
        let diagnostic = Diagnostic::error(code, message).at(node.span, "");
        self.out.push(match right {
            Some(right) => diagnostic.with_patch("write", node.span, right),
            None => diagnostic.with_help(in_a_line(code.about())),
        });
    }

    pub(super) fn duration(&mut self, want: &Want<'_>, node: &Node, words: &[&'static str]) {
        match &node.item {
            Item::Str(text) if words.contains(&text.as_str()) => {}
            Item::Str(text) => {
                let Err(cause) = duration::parse(text) else { return };
                if let Some(near) = nearest(text, words.iter().copied()) {
                    return self.bad(Code::BadDuration, node, cause, Some(quoted(near)));
                }
                let number = text.trim().parse::<f64>().is_ok();
                self.bad(Code::BadDuration, node, cause, number.then(|| format!("\"{}s\"", text.trim())));
            }
            Item::Int(_) | Item::Float(_) => {
                let right = format!("\"{}s\"", self.raw(node));
                self.wrong(want, node, Some(right));
            }
            Item::Bool(_) | Item::Datetime(_) | Item::Array(_) | Item::Table(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    fn size(&mut self, want: &Want<'_>, node: &Node, words: &[&'static str]) {
        match &node.item {
            Item::Int(number) if *number >= 0 => {}
            Item::Int(number) => self.out_of_range(want, node, &number.to_string()),
            Item::Str(text) if words.contains(&text.as_str()) => {}
            Item::Str(text) => {
                if let Err(cause) = size::parse(text) {
                    let near = nearest(text, words.iter().copied()).map(quoted);
                    self.bad(Code::BadSize, node, cause, near);
                }
            }
            Item::Float(_) => self.wrong(want, node, self.in_quotes(node)),
            Item::Bool(_) | Item::Datetime(_) | Item::Array(_) | Item::Table(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    pub(super) fn word(&mut self, want: &Want<'_>, node: &Node, words: &[&'static str]) {
        match &node.item {
            Item::Str(text) if words.contains(&text.as_str()) => {}
            Item::Str(text) => self.unknown_word(want, node, text, words),
            _ => self.wrong(want, node, None),
        }
    }

    pub(super) fn unknown_word(&mut self, want: &Want<'_>, node: &Node, text: &str, words: &[&'static str]) {
        let all = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let diagnostic = Diagnostic::error(Code::UnknownWord, format!("`{}` knows no `{text}`", want.name))
            .at(node.span, "unknown word")
            .with_note(format!("it is one of {all}"));
        self.out.push(match nearest(text, words.iter().copied()) {
            Some(near) => diagnostic.with_patch(format!("did you mean `{near}`?"), node.span, quoted(near)),
            None => diagnostic,
        });
    }

    fn regex(&mut self, want: &Want<'_>, node: &Node) {
        let Some(text) = node.as_str() else { return self.wrong(want, node, self.in_quotes(node)) };
        if let Err(error) = regex_lite::Regex::new(text) {
            self.out.push(
                Diagnostic::error(Code::BadPattern, format!("not a regular expression: {error}"))
                    .at(node.span, "")
                    .with_help("look-around and back-references do not exist here"),
            );
        }
    }

    pub(super) fn signal(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Str(text) => self.signal_name(node, text, 0..text.len()),
            Item::Int(number) => {
                if signal::number(&number.to_string()).is_none() {
                    self.out_of_range(want, node, &number.to_string());
                }
            }
            _ => self.wrong(want, node, None),
        }
    }

    /// A signal's name at a place of a string.
    pub(super) fn signal_name(&mut self, node: &Node, text: &str, range: Range<usize>) {
        let name = &text[range.clone()];
        if signal::number(name).is_some() {
            return;
        }
        let span = sub_span(node, range, self.sources);
        let upper = name.to_uppercase();
        let right = if signal::number(&upper).is_some() {
            Some(upper)
        } else {
            let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
            nearest(bare, signal::names().map(|name| name[3..].to_owned())).map(|name| format!("SIG{name}"))
        };
        let diagnostic =
            Diagnostic::error(Code::BadSignal, format!("no signal is called `{name}`")).at(span, "");
        self.out.push(match right {
            Some(right) => diagnostic.with_patch(format!("did you mean `{right}`?"), span, right),
            None => diagnostic.with_help("write a name such as `SIGTERM`"),
        });
    }

    fn mode(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Str(text) => {
                let octal =
                    (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
                if !octal {
                    self.bad(Code::BadMode, node, format!("`{text}` is no permission bits"), None);
                }
            }
            Item::Int(_) => {
                let digits = self.raw(node).trim_start_matches("0o").to_owned();
                let octal = digits.len() <= 4 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
                self.wrong(want, node, octal.then(|| format!("\"{digits:0>4}\"")));
            }
            _ => self.wrong(want, node, None),
        }
    }

    /// The value of a variable.
    pub(super) fn scalar(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Str(_) | Item::Int(_) | Item::Float(_) => {}
            Item::Bool(truth) => {
                let number = if *truth { "\"1\"" } else { "\"0\"" };
                self.out.push(
                    Diagnostic::error(
                        Code::EnvBoolean,
                        format!("variables are text: `{}` is a truth value here", want.name),
                    )
                    .at(node.span, "neither text nor a number")
                    .with_patch("write the text the program wants", node.span, format!("\"{truth}\""))
                    .with_patch("or, for many programs", node.span, number),
                );
            }
            Item::Datetime(_) => self.wrong(want, node, self.in_quotes(node)),
            Item::Array(_) | Item::Table(_) => {
                let mut diagnostic = Diagnostic::error(
                    Code::WrongType,
                    format!("the variable `{}` wants {}", want.name, want.ty.words()),
                )
                .at(node.span, format!("this is {}", a(node.item.kind())));
                diagnostic = if node.as_table().is_some() {
                    diagnostic.with_help("for JSON write `'{ \"key\": \"value\" }'`, or a rule with `merge`")
                } else {
                    diagnostic.with_help("write one text, such as `\"a:b\"`, or a rule with `append`")
                };
                self.out.push(diagnostic);
            }
        }
    }

    pub(super) fn ports(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Int(number) if (0..=65535).contains(number) => {}
            Item::Int(number) => {
                self.bad(Code::BadPorts, node, format!("{number} is no port: they go from 0 to 65535"), None);
            }
            Item::Str(text) if matches!(text.as_str(), "" | "0" | "auto") => {}
            Item::Str(text) => {
                if let Err(cause) = PortRange::parse(text) {
                    self.bad(Code::BadPorts, node, cause, None);
                }
            }
            Item::Array(items) => {
                for item in items {
                    if item.as_array().is_some() {
                        self.wrong(want, item, None);
                    } else if item.as_table().is_some() {
                        self.element(want, item);
                    } else {
                        self.value(want, item);
                    }
                }
            }
            Item::Float(_) | Item::Bool(_) | Item::Datetime(_) | Item::Table(_) => {
                self.wrong(want, node, self.in_quotes(node));
            }
        }
    }

    fn limit(&mut self, want: &Want<'_>, node: &Node) {
        let good = |text: &str| text == "infinity" || size::parse(text).is_ok();
        match &node.item {
            Item::Int(number) if *number >= 0 => {}
            Item::Int(number) => self.out_of_range(want, node, &number.to_string()),
            Item::Str(text) => {
                let good = match text.split_once(':') {
                    Some((soft, hard)) => good(soft) && good(hard),
                    None => good(text),
                };
                if !good {
                    let near =
                        nearest(text, ["infinity", "unlimited", "max"]).map(|_| "\"infinity\"".to_owned());
                    self.bad(Code::BadSize, node, format!("`{text}` is no limit"), near);
                }
            }
            Item::Table(table) => {
                let at = super::At { section: "limit[]", header: Some(node.span), ..want.at.clone() };
                self.table(&at, table);
            }
            Item::Float(_) | Item::Bool(_) | Item::Datetime(_) | Item::Array(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    fn inherit(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Bool(_) => {}
            Item::Array(items) => items.iter().for_each(|item| self.str(want, item)),
            Item::Str(_) => {
                let right = format!("[{}]", self.raw(node));
                self.wrong(want, node, Some(right));
            }
            Item::Int(_) | Item::Float(_) | Item::Datetime(_) | Item::Table(_) => {
                self.wrong(want, node, None);
            }
        }
    }

    /// Anything, but the expressions in it must parse, and elements must be well formed.
    pub(super) fn any(&mut self, want: &Want<'_>, node: &Node) {
        match &node.item {
            Item::Array(items) => {
                for item in items {
                    match item.as_table() {
                        Some(table) if table.get("each").is_some() && table.get("use").is_some() => {
                            self.element(want, item);
                        }
                        Some(table) if table.get("when").is_some() && table.get("use").is_some() => {
                            self.element(want, item);
                        }
                        _ => self.value(want, item),
                    }
                }
            }
            Item::Table(table) => table.iter().for_each(|(_, _, value)| self.value(want, value)),
            _ => {}
        }
    }
}
