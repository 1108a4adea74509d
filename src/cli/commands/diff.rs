//! `tenon diff`: the plan of the files as they are now against the plan that runs, or against another folder's.
//!
//! What runs is what processes were started with: a change that the runner has read and that waits for a restart is a
//! difference as long as it waits.

use super::client::{Inherited, SOON, as_the_runner_sees, connect};
use super::reload::PLANNING;
use crate::cli::args::DiffArgs;
use crate::cli::error::CliError;
use crate::cli::pipeline::{Context, Sees};
use crate::control::client::Client;
use crate::control::message::{PlanChange, PlanReply, ReloadCall, ReloadReply, StatusCall, StatusReply};
use crate::diagnostic::MASK;
use crate::plan::view::{self, Change, Changed};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Runs the verb: 0 if they are the same, 1 if they differ.
pub fn run(context: &Context, args: &DiffArgs) -> Result<ExitCode, CliError> {
    let (now, old, old_name, inherited, pending) = if let Some(folder) = &args.against {
        let mut other = context.clone();
        other.global.dir = vec![folder.clone()];
        let name = folder.display().to_string();
        (plan(context)?, plan(&other)?, name, Inherited::NoRunner, Pending::default())
    } else {
        let mut runner = connect(context)?;
        let (seen, inherited) = as_the_runner_sees(context, Some(&runner));
        let now = plan(&seen)?;
        let reply: PlanReply = runner.call("GetPlan", &json!({}), SOON)?;
        let status: StatusReply = runner.call("Status", &StatusCall { units: None }, SOON)?;
        let open = if status.pending.is_empty() { None } else { still_open(&mut runner) };
        let pending = Pending { changes: status.pending, open };
        (now, reply.plan, "what runs".to_owned(), inherited, pending)
    };
    let read = view::compare(&old, &now);
    // Everything that differs was taken back before it counted.
    let taken_back = !read.is_empty() && !pending.changes.is_empty();
    let changed = pending.since_started(read);
    let node = view::compare_node(&old, &now);
    let same =
        changed.is_empty() && node.is_empty() && (taken_back || old["fingerprint"] == now["fingerprint"]);
    let caveat = inherited.caveat().filter(|_| !same && !context.output.is_json());
    if context.output.is_json() {
        context.output.json(&json!({
            "same": same,
            "units": view::compare_json(&changed),
            "node": view::changes_json(&node),
            "environment": inherited.word(),
        }))?;
    } else if !changed.is_empty() || !node.is_empty() {
        let of_node =
            if node.is_empty() { String::new() } else { format!("the node\n{}", view::changes_text(&node)) };
        context.output.data(&(view::compare_text(&changed) + &of_node))?;
    } else if same {
        context.output.data(&format!("the files are the same plan as {old_name}"))?;
    } else {
        context.output.data(&format!(
            "the files differ from {old_name} in something that is not shown (a secret, a hint, how it is restarted)"
        ))?;
    }
    if let Some(caveat) = caveat {
        context.output.say(&caveat);
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn plan(context: &Context) -> Result<Value, CliError> {
    let planned = context.plan(&[], Sees::Machine)?;
    Ok(view::json(&planned.plan, &planned.resolved.sources))
}

/// What waits for a restart.
#[derive(Default)]
struct Pending {
    changes: Vec<PlanChange>,
    /// The units that would still be other ones with the files as they are now, as the runner tells it: it knows what it
    /// has started, secrets and all. `None`: it does not tell.
    open: Option<Vec<String>>,
}

/// Asks the runner for that; nothing changes.
fn still_open(runner: &mut Client) -> Option<Vec<String>> {
    let call = ReloadCall { dry_run: Some(true), ..ReloadCall::default() };
    let reply: ReloadReply = runner.call("Reload", &call, PLANNING).ok()?;
    reply.accepted.then(|| reply.changes.into_iter().map(|change| change.unit).collect())
}

impl Pending {
    /// What differs from the runner's plan, and what of that plan waits: what differs from what runs.
    fn since_started(&self, changed: Vec<Changed>) -> Vec<Changed> {
        let mut all = joined(changed, &self.changes);
        if let Some(open) = &self.open {
            let waits = |unit: &str| self.changes.iter().any(|change| change.unit == unit);
            all.retain(|one| !waits(&one.unit) || open.contains(&one.unit));
        }
        all
    }
}

/// The same, as far as the words tell.
fn joined(mut changed: Vec<Changed>, pending: &[PlanChange]) -> Vec<Changed> {
    for waits in pending {
        let at = changed.iter().position(|unit| unit.unit == waits.unit);
        let what = match waits.what.as_str() {
            "added" => "added",
            "removed" => "removed",
            _ => "changed",
        };
        match at {
            // It was to go, and is there again.
            Some(at) if what == "removed" => drop(changed.remove(at)),
            Some(at) if changed[at].what == "changed" => {
                waits.lines.iter().for_each(|line| add(&mut changed[at].changes, line, &waits.class));
                if changed[at].changes.is_empty() {
                    changed.remove(at);
                }
            }
            Some(_) => {}
            None => {
                let holds_data = waits.class == "destructive";
                let mut unit = Changed { unit: waits.unit.clone(), what, holds_data, changes: Vec::new() };
                waits.lines.iter().for_each(|line| add(&mut unit.changes, line, &waits.class));
                changed.push(unit);
            }
        }
    }
    changed
}

/// `env V: 1 → 2` waits, and the files say `env V: 2 → 3`: `env V: 1 → 3`. Back at the start it is no change.
fn add(changes: &mut Vec<Change>, waits: &str, class: &str) {
    let parts = |line: &str| {
        let (head, values) = line.split_once(": ")?;
        let (before, after) = values.split_once(" → ")?;
        Some((head.to_owned(), before.to_owned(), after.to_owned()))
    };
    let because = format!("pending ({class}): it runs with what it was started with");
    let known = parts(waits).and_then(|(head, before, after)| {
        let (at, now) = changes.iter().enumerate().find_map(|(at, change)| {
            let (other, from, now) = parts(&change.words)?;
            (other == head && from == after).then_some((at, now))
        })?;
        Some((at, head, before, now))
    });
    let Some((at, head, before, now)) = known else {
        changes.push(Change { words: waits.to_owned(), because });
        return;
    };
    // Two secrets look alike.
    if before == now && !now.contains(MASK) {
        changes.remove(at);
    } else {
        changes[at].words = format!("{head}: {before} → {now}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `env V: 1 → 2; argv: a → b` of a unit: what the files change, what waits, what is told.
    #[track_caller]
    fn check(files: &str, waits: &str, expected: &str) {
        let lines = |text: &str| -> Vec<String> {
            text.split("; ").filter(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        let change = |words: String| Change { words, because: String::new() };
        let read: Vec<Change> = lines(files).into_iter().map(change).collect();
        let unit = Changed { unit: "a".to_owned(), what: "changed", holds_data: false, changes: read };
        let changed = if files.is_empty() { Vec::new() } else { vec![unit] };
        let pending = PlanChange {
            unit: "a".to_owned(),
            what: "changed".to_owned(),
            class: "needs restart".to_owned(),
            lines: lines(waits),
            applied: false,
        };
        let told = joined(changed, &[pending]);
        let words: Vec<&str> =
            told.iter().flat_map(|unit| &unit.changes).map(|change| change.words.as_str()).collect();
        assert_eq!(words.join("; "), expected);
        assert_eq!(told.is_empty(), expected.is_empty());
    }

    #[test]
    fn what_waits_is_a_difference() {
        check("", "env V: 1 → 2", "env V: 1 → 2");
        check("env V: 2 → 3", "env V: 1 → 2", "env V: 1 → 3");
        check("env W: 2 → 3", "env V: 1 → 2", "env W: 2 → 3; env V: 1 → 2");
        check("", "argv changed since it was started", "argv changed since it was started");
    }

    #[test]
    fn what_was_taken_back_is_none() {
        check("env V: 2 → 1", "env V: 1 → 2", "");
        check("env V: 2 → 1", "env V: 1 → 2; argv: a → b", "argv: a → b");
        check("env T: *** → ***", "env T: *** → ***", "env T: *** → ***");
    }

    #[test]
    fn what_was_to_go_and_is_back_is_none() {
        let unit = |what| Changed { unit: "a".to_owned(), what, holds_data: true, changes: Vec::new() };
        let waits = PlanChange {
            unit: "a".to_owned(),
            what: "removed".to_owned(),
            class: "destructive".to_owned(),
            lines: Vec::new(),
            applied: false,
        };
        assert!(joined(vec![unit("added")], std::slice::from_ref(&waits)).is_empty());
        assert_eq!(joined(Vec::new(), &[waits]), [unit("removed")]);
    }
}
