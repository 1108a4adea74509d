//! The command line as people type it.

use super::args::*;
use super::*;
use std::time::Duration;

fn parse(line: &str) -> Result<CommandLine, clap::Error> {
    CommandLine::try_parse_from(std::iter::once("tenon").chain(line.split_whitespace()))
}

/// The line is understood, and this holds of it.
fn check(line: &str, expected: impl FnOnce(&CommandLine) -> bool) {
    match parse(line) {
        Ok(parsed) => assert!(expected(&parsed), "{line}: {parsed:?}"),
        Err(error) => panic!("{line}: {error}"),
    }
}

/// The line is refused with a message that holds this text.
fn check_refused(line: &str, expected: &str) {
    let error = parse(line).unwrap_err();
    let text = if error.kind() == ErrorKind::InvalidSubcommand {
        let error = unknown_verb(&error);
        format!("{} {}", error.message, error.hints.join(" "))
    } else {
        error.to_string()
    };
    assert!(text.contains(expected), "{line}: {text}");
}

#[test]
fn the_definition_holds_together() {
    CommandLine::command().debug_assert();
}

#[test]
fn run_takes_units_a_file_or_a_command() {
    check(
        "run",
        |line| matches!(&line.verb, Verb::Run(run) if run.units.is_empty() && run.command.is_empty()),
    );
    check(
        "run store engine@*",
        |line| matches!(&line.verb, Verb::Run(run) if run.units == ["store", "engine@*"]),
    );
    check("run ./web.toml", |line| matches!(&line.verb, Verb::Run(run) if run.units == ["./web.toml"]));
    check(
        "run -- sleep --help -n 5",
        |line| matches!(&line.verb, Verb::Run(run) if run.command == ["sleep", "--help", "-n", "5"]),
    );
    check_refused("run store -- sleep 5", "cannot be used with");
}

#[test]
fn global_options_stand_before_or_after_the_verb() {
    let dirs =
        |line: &CommandLine| line.global.dir.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
    check("--dir a --dir b check", |line| dirs(line) == ["a", "b"]);
    check("check --dir a --dir b", |line| dirs(line) == ["a", "b"]);
    check("status --output json --socket /s", |line| {
        line.global.output == Format::Json && line.global.socket.as_deref() == Some("/s".as_ref())
    });
    check("plan --set store.mode=a=b --set engine@.first_port=1", |line| {
        line.global.set == ["store.mode=a=b", "engine@.first_port=1"]
    });
    check("plan --env A=b=c --env D=", |line| line.global.env == ["A=b=c", "D="]);
    check_refused("plan --set store", "expected UNIT.PARAM=VALUE");
    check_refused("plan --set store=1", "expected UNIT.PARAM=VALUE");
    check_refused("plan --env =1", "expected NAME=VALUE");
}

#[test]
fn verbs_take_what_the_specification_gives_them() {
    check("plan --dot", |line| matches!(&line.verb, Verb::Plan(plan) if plan.dot));
    check(
        "plan store --format mermaid",
        |line| matches!(&line.verb, Verb::Plan(plan) if plan.format == Some(PlanFormat::Mermaid) && plan.units == ["store"]),
    );
    check("env store", |line| matches!(&line.verb, Verb::Env(env) if env.why.is_none()));
    check("env store --why", |line| matches!(&line.verb, Verb::Env(env) if env.why == Some(None)));
    check(
        "env store --why PATH",
        |line| matches!(&line.verb, Verb::Env(env) if env.why == Some(Some("PATH".to_owned()))),
    );
    check(
        "stop store --with-dependents --yes",
        |line| matches!(&line.verb, Verb::Stop(stop) if stop.with_dependents && stop.yes),
    );
    check_refused("stop store --yes", "--with-dependents");
    check_refused("stop", "required");
    check(
        "kill store -s HUP --scope tree",
        |line| matches!(&line.verb, Verb::Kill(kill) if kill.signal == "HUP" && kill.scope == KillWhom::Tree),
    );
    check(
        "logs -f -n 50 store",
        |line| matches!(&line.verb, Verb::Logs(logs) if logs.follow && logs.lines == Some(50) && logs.units == ["store"]),
    );
    check("events -f", |line| matches!(&line.verb, Verb::Events(events) if events.follow));
    check("wait a b --for settled --timeout 90s", |line| {
        matches!(&line.verb, Verb::Wait(wait)
            if wait.goal == WaitFor::Settled && wait.timeout == Some(Duration::from_secs(90)))
    });
    check_refused("wait a --timeout 90", "write a number with a unit");
    check("profile detect", |line| matches!(line.verb, Verb::Profile(ProfileVerb::Detect)));
    check("status -w", |line| matches!(&line.verb, Verb::Status(status) if status.watch));
}

#[test]
fn unknown_verbs_name_tenons_word() {
    check_refused("up", "there is no verb `up` try `tenon run`");
    check_refused("ps", "try `tenon status`");
    check_refused("down", "try `tenon shutdown`");
    check_refused("statsu", "try `tenon status`");
    check_refused("validate", "try `tenon check`");
    check_refused("frobnicate", "`tenon --help` lists the verbs");
}

#[test]
fn exit_codes_are_stable_and_each_kind_has_its_row() {
    use error::EXIT_CODES;
    let codes: Vec<u8> = EXIT_CODES.iter().map(|(code, _, _)| *code).collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 69, 70, 75, 78, 203]);
    let names = [
        (Kind::Failed, "failed"),
        (Kind::Usage, "usage"),
        (Kind::NotRunning, "not-running"),
        (Kind::UnknownUnit, "unknown-unit"),
        (Kind::Refused, "refused"),
        (Kind::NotPermitted, "not-permitted"),
        (Kind::TimedOut, "timed-out"),
        (Kind::Unavailable, "unavailable"),
        (Kind::Internal, "internal"),
        (Kind::Config, "config"),
        (Kind::NotExecuted, "not-executed"),
    ];
    for (kind, name) in names {
        assert_eq!(kind.name(), name);
    }
}

#[test]
fn completions_and_man_pages_know_every_verb() {
    let mut script = Vec::new();
    clap_complete::generate(clap_complete::Shell::Bash, &mut CommandLine::command(), "tenon", &mut script);
    let script = String::from_utf8(script).unwrap();
    for verb in CommandLine::command().get_subcommands() {
        assert!(script.contains(verb.get_name()), "{}", verb.get_name());
    }
}
