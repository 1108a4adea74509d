//! How a diagnostic looks, to people and to programs.

use super::*;

fn sources() -> SourceMap {
    let mut sources = SourceMap::default();
    sources.add("units/web.toml", "kind = \"service\"\n[stop]\nroles = [\"x\"]\n");
    sources.add("tenon.toml", "run = [\"wéb\"]\n");
    sources
}

fn span(sources: &SourceMap, file: u32, piece: &str) -> Span {
    let start = sources.text(FileId(file)).find(piece).unwrap();
    Span::new(FileId(file), start..start + piece.len())
}

#[test]
fn a_diagnostic_for_people() {
    let sources = sources();
    let diagnostic =
        Diagnostic::error(Code::WrongTable, "`roles` belongs at the top; here it is inside [stop]")
            .at(span(&sources, 0, "roles"), "here")
            .context(span(&sources, 0, "[stop]"), "this table starts here")
            .with_note("keys of [stop]: signal")
            .with_help("move it up");
    assert_eq!(
        human(&[diagnostic], &sources, false),
        "\
error[wrong-table]: `roles` belongs at the top; here it is inside [stop]
 --> units/web.toml:3:1
  |
2 | [stop]
  | ------ this table starts here
3 | roles = [\"x\"]
  | ^^^^^ here
  |
  = note: keys of [stop]: signal
  = help: move it up

error: 1 error
"
    );
}

#[test]
fn a_patch_shows_the_corrected_line() {
    let sources = sources();
    let diagnostic = Diagnostic::warning(Code::UnknownKey, "unknown key")
        .at(span(&sources, 0, "kind"), "")
        .with_patch("did you mean `kinds`?", span(&sources, 0, "kind"), "kinds");
    let text = human(&[diagnostic], &sources, false);
    assert!(text.contains("help: did you mean `kinds`?\n"), "{text}");
    assert!(text.contains("1 | kinds = \"service\"\n"), "{text}");
    assert!(text.ends_with("warning: 1 warning\n"), "{text}");
}

#[test]
fn two_files_are_both_shown_the_primary_one_first() {
    let sources = sources();
    let diagnostic = Diagnostic::error(Code::UnknownName, "x")
        .context(span(&sources, 0, "kind"), "declared here")
        .at(span(&sources, 1, "wéb"), "used here");
    let text = human(&[diagnostic], &sources, false);
    let (node, unit) = (text.find("tenon.toml:1:9").unwrap(), text.find("units/web.toml:1").unwrap());
    assert!(node < unit, "{text}");
}

#[test]
fn places_that_are_not_in_the_text_do_no_harm() {
    let sources = sources();
    for (start, end) in [(0, 9999), (500, 600), (10, 9), (45, 45)] {
        let wrong = Span { file: FileId(1), start, end };
        let diagnostic = Diagnostic::error(Code::Syntax, "x").at(wrong, "here").with_patch("p", wrong, "y");
        assert!(human(std::slice::from_ref(&diagnostic), &sources, false).starts_with("error[syntax]: x"));
        assert!(human(&[diagnostic], &sources, true).contains("syntax"));
    }
    let unknown =
        Diagnostic::error(Code::Syntax, "x").at(Span { file: FileId(77), start: 0, end: 3 }, "here");
    assert!(human(&[unknown], &sources, false).starts_with("error[syntax]: x"));
}

#[test]
fn the_count_is_the_last_line() {
    let of = |levels: &[Level]| {
        let all: Vec<_> = levels.iter().map(|level| Diagnostic::new(Code::Syntax, *level, "x")).collect();
        summary(&all)
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[Level::Warning]).unwrap(), "warning: 1 warning");
    assert_eq!(
        of(&[Level::Error, Level::Note, Level::Error, Level::Warning, Level::Error]).unwrap(),
        "error: 3 errors, 1 warning, 1 note"
    );
}

#[test]
fn json_says_the_same() {
    let sources = sources();
    let diagnostic = Diagnostic::error(Code::UnknownKey, "m")
        .at(span(&sources, 0, "roles"), "here")
        .with_note("n")
        .with_patch("h", span(&sources, 0, "roles"), "role");
    assert_eq!(
        json(&[diagnostic], &sources),
        serde_json::json!({
            "diagnostics": [{
                "code": "unknown-key", "level": "error", "message": "m",
                "labels": [{ "file": "units/web.toml", "line": 3, "column": 1, "start": 24, "end": 29,
                             "text": "here", "primary": true }],
                "notes": ["n"],
                "helps": [{ "message": "h", "patch": { "file": "units/web.toml", "line": 3, "column": 1,
                            "start": 24, "end": 29, "replacement": "role" } }],
            }],
            "errors": 1, "warnings": 0, "notes": 0,
        })
    );
}

#[test]
fn code_names_are_unique_and_explained() {
    let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for code in Code::ALL {
        assert!(code.about().ends_with('.') && code.about().len() > 20, "{}", code.name());
        assert!(code.name().chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        assert_eq!(Code::named(code.name()), Some(*code));
    }
}

#[test]
fn in_order_is_by_file_and_place() {
    let sources = sources();
    let at = |file, piece| Diagnostic::error(Code::Syntax, piece).at(span(&sources, file, piece), "");
    let all = in_order(vec![
        at(1, "run"),
        at(0, "roles"),
        Diagnostic::error(Code::NoFolder, "none"),
        at(0, "kind"),
        at(0, "kind"),
    ]);
    let messages: Vec<_> = all.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(messages, ["none", "kind", "roles", "run"]);
}

/// What is wrong stands last, the worst at the very end; variables of the environment are one line.
#[test]
fn errors_stand_out_below_one_note_about_the_environment() {
    let read = |name: &str| {
        Diagnostic::note(
            Code::EnvironmentRead,
            format!("no file sets `{name}`: it comes from the runner's environment"),
        )
    };
    let said = summed_up(vec![
        Diagnostic::error(Code::UnknownUnit, "e"),
        read("A"),
        Diagnostic::warning(Code::EmptySelector, "w"),
        read("B"),
    ]);
    let shown: Vec<&str> = said.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(shown, ["2 variables come from the runner's environment, no file sets them", "w", "e"]);
    assert_eq!(said[0].notes, ["A, B"]);
    assert_eq!(summed_up(vec![read("A")]), [read("A")]);
}

/// A file with a problem at `here`: how its line is shown when `secrets` are known and `hidden` is written as one.
#[track_caller]
fn check_shown(text: &str, secrets: &[&str], hidden: &str, expected: &str) {
    let mut sources = SourceMap::default();
    let file = sources.add("tenon.toml", text);
    for secret in secrets {
        sources.hide(secret);
    }
    if let Some(at) = text.find(hidden).filter(|_| !hidden.is_empty()) {
        sources.hide_at(Span::new(file, at..at + hidden.len()));
    }
    let problem = Diagnostic::error(Code::UnknownName, format!("not {}", secrets.join(" and ")))
        .at(Span::new(file, 0..1), secrets.join(" and "));
    let shown = human(std::slice::from_ref(&problem), &sources, false);
    assert!(shown.contains(&format!("1 | {expected}\n")), "{shown}");
    let words = shown + &json(&[problem], &sources).to_string();
    assert!(
        secrets.iter().filter(|secret| secret.len() > 3).all(|secret| !words.contains(secret)),
        "{words}"
    );
}

#[test]
fn secrets_are_not_shown() {
    // By value, wherever it stands; one that holds another leaves nothing of itself.
    check_shown("p = \"hushhush\" # hushhush", &["hushhush"], "", "p = \"********\" # ********");
    check_shown("p = \"hushhush1\"", &["hushhush", "hushhush1"], "", "p = \"*********\"");
    // Where it is written, however short; what an expression reads is none.
    check_shown("p = \"ab\"", &["ab"], "\"ab\"", "p = \"**\"");
    check_shown("p = \"ü{{ env.X }}b\"", &[], "\"ü{{ env.X }}b\"", "p = \"**{{ env.X }}*\"");
    // By its name.
    check_shown(
        "env = { API_TOKEN = \"tok-111\", B = \"${FOO}\" }",
        &[],
        "",
        "env = { API_TOKEN = \"*******\", B = \"${FOO}\" }",
    );
    check_shown("env.DB_PASSWORD = 'p w'", &[], "", "env.DB_PASSWORD = '***'");
    check_shown("API_KEY = \"${FOO}\"", &[], "", "API_KEY = \"${FOO}\"");
    check_shown("max_tokens = 4096", &[], "", "max_tokens = 4096");
    // A secret's name alone hides nothing that could be none: a switch, the path of a file.
    check_shown("tokenizer = \"slow\"", &[], "", "tokenizer = \"slow\"");
    check_shown("API_KEY = \"auto\"", &[], "", "API_KEY = \"auto\"");
    check_shown("HF_TOKEN_FILE = '/t'", &[], "", "HF_TOKEN_FILE = '/t'");
    check_shown("API_TOKEN = \"a{{ env.X }}\"", &[], "", "API_TOKEN = \"*{{ env.X }}\"");
}
