//! `tenon why`: the causal chain, in words.

use super::client::{SOON, connect};
use crate::cli::args::UnitArg;
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::cli::status_view::{ago, clean, sign_words};
use crate::control::message::{StatusCall, StatusReply, UnitCall, WhyReply};
use crate::supervisor::snapshot::{State, WhyLink};
use std::fmt::Write as _;
use std::time::Duration;

/// Runs the verb.
pub fn run(context: &Context, args: &UnitArg) -> Result<(), CliError> {
    let mut client = connect(context)?;
    let why: WhyReply = client.call("Why", &UnitCall { unit: args.unit.clone() }, SOON)?;
    if context.output.is_json() {
        return context.output.json(&why);
    }
    let status: StatusReply =
        client.call("Status", &StatusCall { units: Some(vec![args.unit.clone()]) }, SOON)?;
    let mut text = render(&why, status.runner.now);
    for unit in &status.in_force {
        if let Some(hint) = &unit.hint {
            let _ = writeln!(text, "reason: {}", clean(hint));
        }
        if !unit.last_words.is_empty() {
            text.push_str("last words:\n");
            for line in &unit.last_words {
                let _ = writeln!(text, "  {}", clean(line));
            }
        }
    }
    if let Some(cure) = why.chain.last().and_then(cure) {
        let _ = writeln!(text, "cure: {cure}");
    }
    context.output.data(&text)
}

/// What an operator can do about the root of the matter, where that is one verb.
fn cure(root: &WhyLink) -> Option<String> {
    let unit = &root.unit;
    match root.state {
        State::Failed => Some(format!("once its reason is gone, `tenon start {unit}` starts it anew")),
        State::Inactive => Some(format!("`tenon start {unit}` starts it")),
        State::Waiting if root.detail.as_ref().is_some_and(|detail| detail.starts_with("held: ")) => {
            Some(format!("`tenon unhold {unit}` lets it start"))
        }
        State::Waiting
        | State::Preparing
        | State::Starting
        | State::Ready
        | State::Unhealthy
        | State::Stopping
        | State::Backoff
        | State::Finished
        | State::Skipped => None,
    }
}

/// One line a link, each further one a step nearer to the root.
fn render(why: &WhyReply, now: f64) -> String {
    let mut text = String::new();
    for (depth, link) in why.chain.iter().enumerate() {
        if depth > 0 {
            text.push_str(&"  ".repeat(depth - 1));
            text.push_str("└ ");
        }
        text.push_str(&sentence(link, now));
        text.push('\n');
        for sign in why.signs.iter().filter(|sign| sign.unit == link.unit) {
            let _ = writeln!(text, "{}  it has said {}", "  ".repeat(depth), sign_words(sign));
            let _ = writeln!(text, "{}    {}", "  ".repeat(depth), sign.line.escape_debug());
        }
    }
    text
}

/// `web waits for its next start (back-off, due in 1s) because it was killed by SIGKILL`.
fn sentence(link: &WhyLink, now: f64) -> String {
    let (unit, cause) = (&link.unit, in_past(&link.cause));
    let since = span(now - link.since);
    let more = link.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    match link.state {
        State::Backoff => {
            let due = link.retry_at.map(|at| format!(", due in {}", span(at - now))).unwrap_or_default();
            // What has a subject makes a sentence.
            let because = if cause == link.cause { ": " } else { " because " };
            format!("{unit} waits for its next start (back-off{due}){because}{cause}")
        }
        State::Waiting => match link.detail.as_ref().map(|detail| (detail.strip_prefix("on "), detail)) {
            Some((Some(on), _)) => format!("{unit} has waited {since} for {on} ({cause})"),
            Some((None, detail)) => format!("{unit} has waited {since}: {detail}"),
            None => format!("{unit} has waited {since}: {cause}"),
        },
        State::Failed => format!("{unit} failed {since} ago: {cause}"),
        State::Finished => format!("{unit} finished {since} ago: {cause}"),
        State::Inactive => format!("{unit} has been down for {since}: {cause}"),
        State::Skipped => format!("{unit} is skipped: its `when` does not hold: {cause}"),
        State::Unhealthy => {
            let found = link.detail.as_ref().unwrap_or(&link.cause);
            format!("{unit} has been unhealthy for {since}: {found}")
        }
        State::Starting => match &link.detail {
            Some(found) => format!("{unit} has been starting for {since}, not ready yet: {found}"),
            None => format!("{unit} has been starting for {since}, not ready yet"),
        },
        State::Ready => {
            let degraded = link.degraded.as_ref().map(|why| format!(", but degraded ({why})"));
            format!("{unit} has been ready for {since}{}: {cause}", degraded.unwrap_or_default())
        }
        State::Preparing | State::Stopping => {
            format!("{unit} has been {} for {since}{more}: {cause}", link.state.word())
        }
    }
}

/// `killed by SIGKILL` → `it was killed by SIGKILL`: what happened to the unit, as the end of a sentence.
fn in_past(cause: &str) -> String {
    let subjects = [
        ("killed by ", "it was "),
        ("not ready ", "it was "),
        ("unhealthy", "it was "),
        ("exited with ", "it "),
        ("ended in a way ", "it "),
        ("waited ", "it "),
        ("bootstrap step ", "its "),
    ];
    let subject =
        subjects.iter().find(|(start, _)| cause.starts_with(start)).map_or("", |(_, subject)| subject);
    format!("{subject}{cause}")
}

/// A number of seconds, for people.
fn span(seconds: f64) -> String {
    ago(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Sign;
    use snapbox::{assert_data_eq, str};

    fn link(unit: &str, state: State, detail: &str, cause: &str, since: f64) -> WhyLink {
        WhyLink {
            unit: unit.to_owned(),
            state,
            detail: (!detail.is_empty()).then(|| detail.to_owned()),
            degraded: None,
            cause: cause.to_owned(),
            since,
            retry_at: None,
        }
    }

    #[test]
    fn the_chain_goes_from_the_unit_to_the_root_of_the_matter() {
        let chain = [
            link("proxy", State::Waiting, "on engine@0: waiting itself", "start requested", 10.0),
            link("engine@0", State::Waiting, "on master: exited with 1", "start requested", 10.0),
            WhyLink { retry_at: Some(74.0), ..link("master", State::Backoff, "", "exited with 1", 68.0) },
        ];
        let sign = Sign {
            unit: "master".to_owned(),
            name: "E14".to_owned(),
            hint: "two processes share an address".to_owned(),
            line: "[ERROR] E14".to_owned(),
            count: 1,
            time: 0.0,
        };
        assert_data_eq!(
            render(&WhyReply { chain: chain.to_vec(), signs: vec![sign] }, 70.0),
            str![[r"
proxy has waited 1m for engine@0: waiting itself (start requested)
└ engine@0 has waited 1m for master: exited with 1 (start requested)
  └ master waits for its next start (back-off, due in 4s) because it exited with 1
      it has said E14: two processes share an address
        [ERROR] E14

"]]
        );
    }

    #[test]
    fn what_one_verb_can_do_about_it() {
        let check = |state, detail: &str, expected: Option<&str>| {
            assert_eq!(cure(&link("db", state, detail, "", 0.0)).as_deref(), expected, "{state:?}");
        };
        check(State::Failed, "", Some("once its reason is gone, `tenon start db` starts it anew"));
        check(State::Inactive, "", Some("`tenon start db` starts it"));
        check(State::Waiting, "held: killed by SIGKILL", Some("`tenon unhold db` lets it start"));
        check(State::Waiting, "on cache: backoff", None);
        check(State::Backoff, "", None);
    }

    #[test]
    fn every_state_makes_a_sentence() {
        let check = |state, detail: &str, cause: &str, expected: &str| {
            assert_eq!(sentence(&link("a", state, detail, cause, 65.0), 70.0), expected);
        };
        check(State::Inactive, "", "stop requested", "a has been down for 5s: stop requested");
        check(State::Waiting, "", "start requested", "a has waited 5s: start requested");
        let refused = "unreachable: refused";
        check(State::Waiting, refused, refused, "a has waited 5s: unreachable: refused");
        check(
            State::Backoff,
            "",
            "cannot execute `/x`: no such file",
            "a waits for its next start (back-off): cannot execute `/x`: no such file",
        );
        check(
            State::Preparing,
            "bootstrap step 1",
            "nothing left to wait for",
            "a has been preparing for 5s (bootstrap step 1): nothing left to wait for",
        );
        check(State::Starting, "", "prepared", "a has been starting for 5s, not ready yet");
        check(
            State::Starting,
            "GET /: 503",
            "prepared",
            "a has been starting for 5s, not ready yet: GET /: 503",
        );
        check(State::Ready, "", "readiness probe passed", "a has been ready for 5s: readiness probe passed");
        check(
            State::Unhealthy,
            "GET /: 500",
            "unhealthy: GET /: 500",
            "a has been unhealthy for 5s: GET /: 500",
        );
        check(
            State::Stopping,
            "its left-overs",
            "killed by SIGKILL",
            "a has been stopping for 5s (its left-overs): it was killed by SIGKILL",
        );
        check(
            State::Backoff,
            "",
            "not ready within 90s",
            "a waits for its next start (back-off) because it was not ready within 90s",
        );
        check(State::Finished, "", "succeeded", "a finished 5s ago: succeeded");
        let gone = "exited with 3; 2 restarts used up";
        check(State::Failed, gone, gone, "a failed 5s ago: it exited with 3; 2 restarts used up");
        check(State::Skipped, "x == 1", "x == 1", "a is skipped: its `when` does not hold: x == 1");
        let degraded =
            WhyLink { degraded: Some("503".to_owned()), ..link("a", State::Ready, "", "spawned", 65.0) };
        assert_eq!(sentence(&degraded, 70.0), "a has been ready for 5s, but degraded (503): spawned");
    }
}
