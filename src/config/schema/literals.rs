//! Text that looks as if somebody else would replace it: `${POD_IP}`, `$POD_IP`, `%i`.

use super::Checker;
use crate::config::text::sub_span;
use crate::config::tree::Node;
use crate::diagnostic::{Code, Diagnostic};
use std::ops::Range;

impl Checker<'_> {
    /// Warns of shell variables and specifiers in a text that is passed on as it is.
    pub(super) fn literals(&mut self, node: &Node, text: &str) {
        // Whole scripts and documents may mean what they say.
        if text.contains('\n') {
            return;
        }
        for (range, name) in shell_variables(text) {
            let span = sub_span(node, range.clone(), self.sources);
            self.out.push(
                Diagnostic::warning(
                    Code::ShellVariable,
                    format!("`{}` is passed as it is: there is no shell", &text[range]),
                )
                .at(span, "not replaced")
                .with_patch("the variable's value is", span, format!("{{{{ env.{name} }}}}")),
            );
        }
        for (range, instead) in specifiers(text) {
            let span = sub_span(node, range.clone(), self.sources);
            self.out.push(
                Diagnostic::warning(Code::Specifier, format!("`{}` is passed as it is", &text[range]))
                    .at(span, "not replaced")
                    .with_patch("write", span, instead),
            );
        }
    }
}

/// `$NAME` and `${NAME}` with a name in capitals, outside of `{{ }}`.
fn shell_variables(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('$') {
        if inside_template(text, at) || text[..at].ends_with(['$', '\\']) {
            continue;
        }
        let rest = &text[at + 1..];
        let braced = rest.strip_prefix('{');
        let name = braced.unwrap_or(rest);
        let length = name
            .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
            .unwrap_or(name.len());
        let name = &name[..length];
        let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') && length > 1;
        let closed = braced.is_none_or(|braced| braced[length..].starts_with('}'));
        if starts_well && closed {
            let end = at + 1 + length + if braced.is_some() { 2 } else { 0 };
            found.push((at..end, name));
        }
    }
    found
}

/// `%i`, `%I`, `%n`, `%N` as words of their own or at the end of one.
fn specifiers(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('%') {
        let mut rest = text[at + 1..].chars();
        let instead = match rest.next() {
            Some('i' | 'I') => "{{ unit.instance }}",
            Some('n' | 'N') => "{{ unit.name }}",
            _ => continue,
        };
        let alone = !rest.next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '%');
        // `%d:%n` and the like are formats of other programs.
        let format = text[..at].contains('%') || inside_template(text, at);
        if alone && !format {
            found.push((at..at + 2, instead));
        }
    }
    found
}

fn inside_template(text: &str, at: usize) -> bool {
    let open = text[..at].rfind("{{");
    let close = text[..at].rfind("}}");
    open.is_some_and(|open| close.is_none_or(|close| close < open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_variables_are_names_in_capitals() {
        let names =
            |text| shell_variables(text).into_iter().map(|(range, _)| &text[range]).collect::<Vec<_>>();
        assert_eq!(names("a ${POD_IP}:1 $HOST_IP"), ["${POD_IP}", "$HOST_IP"]);
        assert_eq!(names("$1x $$HOME \\$HOME ${a} $x ${POD_IP cost$"), [""; 0]);
        assert_eq!(names("{{ '$HOME' }} $HOME"), ["$HOME"]);
    }

    #[test]
    fn specifiers_stand_alone() {
        let found = |text| specifiers(text).into_iter().map(|(range, _)| &text[range]).collect::<Vec<_>>();
        assert_eq!(found("--id=%i"), ["%i"]);
        assert_eq!(found("/run/%n.sock"), ["%n"]);
        assert_eq!(found("100%in %H:%n 5%"), [""; 0]);
    }
}
