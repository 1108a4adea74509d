//! `tenon why`: the causal chain, in words.

use super::client::{SOON, connect};
use crate::cli::args::UnitArg;
use crate::cli::error::CliError;
use crate::cli::pipeline::Context;
use crate::cli::status_view::{ago, sign_words};
use crate::control::message::{StatusCall, StatusReply, UnitCall, WhyReply};
use crate::supervisor::snapshot::WhyLink;
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
    context.output.data(&render(&why, status.runner.now))
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

/// `store has been waiting for 3m 2s (on master): start requested`.
fn sentence(link: &WhyLink, now: f64) -> String {
    let since = ago(Duration::from_secs_f64((now - link.since).clamp(0.0, 1e12)));
    let mut text = format!("{} has been {} for {since}", link.unit, link.state.word());
    if let Some(detail) = &link.detail {
        let _ = write!(text, " ({detail})");
    }
    if !link.cause.is_empty() {
        let _ = write!(text, ": {}", link.cause);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Sign;
    use crate::supervisor::snapshot::State;
    use snapbox::{assert_data_eq, str};

    #[test]
    fn the_chain_goes_from_the_unit_to_the_root_of_the_matter() {
        let link = |unit: &str, state, detail: Option<&str>, cause: &str, since| WhyLink {
            unit: unit.to_owned(),
            state,
            detail: detail.map(str::to_owned),
            cause: cause.to_owned(),
            since,
        };
        let chain = [
            link("proxy", State::Waiting, Some("on engine@0"), "start requested", 10.0),
            link("engine@0", State::Waiting, Some("on master"), "start requested", 10.0),
            link("master", State::Backoff, Some("next start in 4s"), "exited with 1", 68.0),
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
proxy has been waiting for 1m (on engine@0): start requested
└ engine@0 has been waiting for 1m (on master): start requested
  └ master has been backoff for 2s (next start in 4s): exited with 1
      it has said E14: two processes share an address
        [ERROR] E14

"]]
        );
    }
}
