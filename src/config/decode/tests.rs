//! Typed getters: what is read, what is said, what the table's default is.

use super::*;
use crate::config::parse;
use crate::config::tree::Layer;
use crate::diagnostic::FileId;

/// Reads a text and gives it to `read`, then the messages and causes of what did not fit.
#[expect(clippy::needless_pass_by_value, reason = "expectations read better without `&`")]
fn check<T: PartialEq + std::fmt::Debug>(
    text: &str,
    read: impl Fn(&Decoder<'_>) -> T,
    expected: T,
    misfits: &[&str],
) {
    let (node, diagnostics) = parse(text, FileId(0), Layer::File);
    assert_eq!(diagnostics, [], "{text}");
    let decoder = Decoder::new(FileKind::Unit, &node);
    assert_eq!(read(&decoder), expected, "{text}");
    let causes: Vec<_> =
        decoder.finish().iter().map(|diagnostic| diagnostic.labels[0].text.clone()).collect();
    assert_eq!(causes, misfits, "{text}");
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_value_or_its_default() {
    let timeout = |decoder: &Decoder<'_>| decoder.section("stop").duration("timeout");
    check("[stop]\ntimeout = '22s'", timeout, Some(s(22)), &[]);
    check("", timeout, Some(s(10)), &[]);
    check(
        "[stop]\ntimeout = '22 parsecs'",
        timeout,
        Some(s(10)),
        &["`22 parsecs` is not a time; write it like `90s`, `1m 30s` or `500ms`"],
    );
    check("[stop]\ntimeout = true", timeout, Some(s(10)), &["this is a boolean"]);
}

#[test]
fn words_in_place_of_values() {
    let timeout = |decoder: &Decoder<'_>| decoder.section("ready").duration_or("timeout");
    check("[ready]\ntimeout = 'never'", timeout, Some(Or::Word("never")), &[]);
    check("", timeout, Some(Or::Value(s(90))), &[]);
    let restarts = |decoder: &Decoder<'_>| decoder.section("restart").int_or("max_restarts");
    check("", restarts, Some(Or::Word("unlimited")), &[]);
    check("[restart]\nmax_restarts = 5", restarts, Some(Or::Value(5)), &[]);
    check(
        "[restart]\nmax_restarts = -1",
        restarts,
        Some(Or::Word("unlimited")),
        &["-1 is outside 0 to 1000000"],
    );
    check(
        "[restart]\nwithin = '60s'",
        |decoder| decoder.section("restart").duration("within"),
        Some(s(60)),
        &[],
    );
    check("", |decoder| decoder.section("restart").duration("within"), None, &[]);
}

#[test]
fn texts_numbers_and_flags() {
    check("user = 1000", |decoder| decoder.top().text("user"), Some("1000".to_owned()), &[]);
    check("env_file = '/a'", |decoder| decoder.top().texts("env_file"), vec!["/a".to_owned()], &[]);
    check("main = true", |decoder| decoder.top().flag("main"), true, &[]);
    check("", |decoder| decoder.top().flag("enabled"), true, &[]);
    check("", |decoder| decoder.section("security").opt_flag("dumpable"), None, &[]);
    check("[restart]\njitter = 0.5", |decoder| decoder.section("restart").float("jitter"), Some(0.5), &[]);
    check(
        "[restart]\njitter = 2",
        |decoder| decoder.section("restart").float("jitter"),
        Some(0.1),
        &["2 is outside 0 to 1"],
    );
    check("[health]\nfailures = '5'", |decoder| decoder.section("health").int("failures"), Some(5), &[]);
}

#[test]
fn lists_signals_causes_modes() {
    let delays = |decoder: &Decoder<'_>| decoder.section("restart").durations("delays");
    check("", delays, [0, 1, 2, 4, 8, 16, 30].map(s).to_vec(), &[]);
    check("[stop]\nsignal = 'INT'", |decoder| decoder.section("stop").signal("signal"), Some(2), &[]);
    check(
        "[stop]\nladder = ['SIGINT 5s', 'SIGTERM 20s']",
        |decoder| decoder.section("stop").ladder("ladder"),
        Some(vec![(2, s(5)), (15, s(20))]),
        &[],
    );
    check(
        "[restart]\nexcept = ['exit:78', 'signal:SIGSEGV', 'oom', 'start']",
        |decoder| decoder.section("restart").causes("except"),
        Some(vec![Cause::Exit(78), Cause::Signal(11), Cause::Oom, Cause::Start]),
        &[],
    );
    check("umask = '0027'", |decoder| decoder.top().mode("umask"), Some(0o27), &[]);
    check(
        "[log]\nto = ['file', 'journal']",
        |decoder| decoder.section("log").words("to"),
        Some(vec!["file", "journal"]),
        &[],
    );
    check(
        "[stop]\nscope = 'all'",
        |decoder| decoder.section("stop").word("scope"),
        Some("tree"),
        &["it is one of tree, group, main"],
    );
}

#[test]
fn sizes_limits_and_ports() {
    check(
        "[preflight]\nmemory = '1.5GB'",
        |decoder| decoder.section("preflight").size("memory"),
        Some(1_610_612_736),
        &[],
    );
    let limit = |decoder: &Decoder<'_>| decoder.section("rlimits").limit("memlock");
    check("[rlimits]\nmemlock = 'infinity'", limit, Some((None, None)), &[]);
    check("[rlimits]\nmemlock = '1KB:infinity'", limit, Some((Some(1024), None)), &[]);
    check("[rlimits]\nmemlock = { soft = 10, hard = 20 }", limit, Some((Some(10), Some(20))), &[]);
    check("[rlimits]\nmemlock = { hard = 20 }", limit, Some((Some(20), Some(20))), &[]);
    let ports =
        |decoder: &Decoder<'_>| decoder.named("ports").first().map(|(_, _, claim)| claim.ports("value"));
    check("[ports.x]\nvalue = 8800", ports, Some(vec![(8800, 8800)]), &[]);
    check("[ports.x]\nvalue = ['16700-16800', 0, '5']", ports, Some(vec![(16700, 16800), (5, 5)]), &[]);
    check(
        "[ports.x]\nvalue = 'x'",
        |decoder| ports(decoder).map(|ports| ports.len()),
        Some(0),
        &["`x` is not a port; write `16700`, `16700-16800`, a comma list, or `auto`"],
    );
}

#[test]
fn commands() {
    let command = |decoder: &Decoder<'_>| decoder.top().command("command");
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    check("command = 'a \"b c\"'", command, words(&["a", "b c"]), &[]);
    check("command = ['a', 8]", command, words(&["a", "8"]), &[]);
    check("", command, None, &[]);
}

#[test]
fn elements_of_lists_are_sections_too() {
    let text = "[[ready.all]]\nhttp = 'http://x'\nstatus = 204";
    check(
        text,
        |decoder| {
            let items = decoder.section("ready").node("all").unwrap().as_array().unwrap();
            let probe = decoder.table(&items[0], "ready.all[]");
            (probe.text("http"), probe.int("status"))
        },
        (Some("http://x".to_owned()), Some(204)),
        &[],
    );
}
