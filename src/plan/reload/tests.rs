//! Two plans in, what counts and what waits out.

use super::*;
use crate::plan::policy::{EdgeKind, Health, OnFailure, PlanPolicy, Restart, RestartPolicy, Until};
use std::time::Duration;

/// `a needs=b data argv=x skipped`, one unit a line.
fn plan(text: &str) -> Plan {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|row: &Vec<_>| !row.is_empty())
        .collect();
    let id = |name: &str| UnitId(rows.iter().position(|row| row[0] == name).unwrap() as u32);
    let mut out = Plan::default();
    for row in &rows {
        let mut policy = UnitPolicy::plain(row[0], Restart::plain(RestartPolicy::Always, Duration::ZERO));
        let mut exec = UnitExec { argv: vec!["x".to_owned()], ..UnitExec::default() };
        for word in &row[1..] {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "needs" => policy.edges.push(Edge { to: id(value), ..needs() }),
                "after" => policy.stop_after.push(id(value)),
                "data" => policy.holds_data = true,
                "argv" => exec.argv = vec![value.to_owned()],
                "priority" => exec.sched.priority = Some(value.parse().unwrap()),
                "memory" => {
                    let setting = ("memory_max".to_owned(), "memory.max".to_owned(), value.to_owned());
                    exec.cgroup.settings.push(setting);
                }
                "rate" => exec.log.rate = Some(value.parse().unwrap()),
                "skipped" => policy.skipped = Some("no".to_owned()),
                "group" => policy.kind = Kind::Group { members: Vec::new() },
                "holds" => policy.kind = Kind::Group { members: vec![id(value)] },
                "external" => policy.kind = Kind::External { stop_on_loss: value == "stop" },
                "health" => {
                    policy.health = Some(Health {
                        interval: Duration::from_secs(value.parse().unwrap()),
                        start_period: Duration::ZERO,
                        failures: 3,
                        successes: 1,
                        on_failure: OnFailure::Restart,
                    });
                }
                other => panic!("{other}"),
            }
        }
        let argv = crate::plan::Traced {
            name: "0".to_owned(),
            value: exec.argv.first().cloned(),
            unknown: false,
            secret: false,
            chain: Vec::new(),
        };
        out.about.push(About { argv: vec![argv], ..About::default() });
        out.policy.units.push(policy);
        out.exec.push(exec);
    }
    out
}

fn needs() -> Edge {
    Edge {
        to: UnitId(0),
        kind: EdgeKind::Needs,
        until: Until::Spawned,
        orders_start: true,
        timeout: None,
        restart_with: false,
        keep_on_stop: false,
    }
}

/// Everything that is not skipped is up.
fn go(old: &Plan, new: &str, words: &str) -> Result<Merged, String> {
    let allowed = Allowed {
        restarts: words.contains("restarts"),
        destructive: words
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("lose="))
            .map(str::to_owned)
            .collect(),
    };
    let up = |id: UnitId| old.policy.get(id).is_some_and(|unit| unit.skipped.is_none());
    let free = |id: UnitId| old.policy.get(id).is_some_and(|unit| unit.skipped.is_some());
    let now = Now { is_up: &up, is_free: &free, started: &|_| None };
    merge(old, &plan(new), &now, &allowed)
}

/// `web changed, needs restart, pending: argv: x → y`.
fn lines(merged: &Merged) -> Vec<String> {
    let all = merged.changes.iter().map(|change| {
        let state = if change.applied { "applied" } else { "pending" };
        let lines =
            if change.lines.is_empty() { String::new() } else { format!(": {}", change.lines.join("; ")) };
        format!("{} {}, {}, {state}{lines}", change.unit, change.what, change.class.word())
    });
    all.collect()
}

#[track_caller]
fn check(old: &str, new: &str, words: &str, expectation: &[&str]) -> Merged {
    let merged = go(&plan(old), new, words).unwrap();
    assert_eq!(lines(&merged), expectation);
    merged
}

#[test]
fn nothing_changes() {
    let merged = check("a\nb needs=a", "a\nb needs=a", "", &[]);
    assert_eq!(merged.plan, plan("a\nb needs=a"));
    assert!(merged.next.is_empty() && merged.restart.is_empty());
}

#[test]
fn what_needs_a_new_process_waits_for_it() {
    let old = "a health=1";
    let merged = check(
        old,
        "a argv=y health=2",
        "",
        &["a changed, needs restart, pending: argv: x → y; health changed"],
    );
    let now = &merged.plan;
    // Probes may ask at an address the old process does not have.
    assert_eq!(
        (&now.exec[0].argv[0], now.policy.units[0].health.as_ref().unwrap().interval.as_secs()),
        (&"x".to_owned(), 1)
    );
    let (policy, exec, _) = &merged.next[&UnitId(0)];
    assert_eq!((exec.argv[0].as_str(), policy.health.as_ref().unwrap().interval.as_secs()), ("y", 2));
    assert!(merged.restart.is_empty());
    let merged =
        check(old, "a argv=y health=1", "restarts", &["a changed, needs restart, applied: argv: x → y"]);
    assert_eq!(merged.restart, [UnitId(0)]);
}

#[test]
fn what_is_pending_stays_so_until_it_is_taken_back() {
    let first = go(&plan("a"), "a argv=y", "").unwrap();
    let again = go(&first.plan, "a argv=y", "").unwrap();
    assert_eq!(lines(&again), ["a changed, needs restart, pending: argv: x → y"]);
    assert_eq!(lines(&go(&again.plan, "a", "").unwrap()), [""; 0]);
}

#[test]
fn what_is_live_of_a_unit_that_needs_a_restart_is_told_apart() {
    check(
        "a",
        "a data argv=y",
        "",
        &["a changed, live, applied: holds_data changed", "a changed, needs restart, pending: argv: x → y"],
    );
}

#[test]
fn what_is_live_counts_at_once() {
    let merged = check("a health=1", "a health=2", "", &["a changed, live, applied: health changed"]);
    assert_eq!(merged.plan, plan("a health=2"));
    assert!(merged.next.is_empty());
}

#[test]
fn what_a_process_was_started_with_waits_and_where_its_output_goes_does_not() {
    for word in ["priority=5", "memory=1G"] {
        let merged = go(&plan("a"), &format!("a {word}"), "").unwrap();
        assert_eq!(merged.plan, plan("a"), "{word}");
        assert!(merged.next.contains_key(&UnitId(0)), "{word}");
    }
    let merged = check("a", "a rate=5", "", &["a changed, live, applied: log changed"]);
    assert_eq!(merged.plan, plan("a rate=5"));
    assert!(merged.next.is_empty());
}

#[test]
fn a_unit_that_is_down_takes_everything_at_once() {
    let merged =
        check("a skipped", "a argv=y", "", &["a changed, live, applied: skipped: no → runs; argv: x → y"]);
    assert_eq!(merged.plan.exec[0].argv, ["y"]);
}

#[test]
fn units_come_and_go_and_ids_stay() {
    let merged = check(
        "a\nb needs=a",
        "c\nb needs=c",
        "",
        &[
            "c added, live, applied",
            "b changed, live, applied: order: needs a:spawned → needs c:spawned",
            "a removed, live, applied: its process is stopped",
        ],
    );
    let names: Vec<&str> = merged.plan.policy.units.iter().map(|unit| &*unit.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(merged.plan.policy.units[1].edges[0].to, UnitId(2));
    assert_eq!(merged.plan.policy.units[0].skipped.as_deref(), Some(GONE));
    assert_eq!(merged.order, [UnitId(2), UnitId(1), UnitId(0)]);
    // The place of who is gone goes to the next new one; and who comes back is new.
    let again = go(&merged.plan, "c\nb needs=c\nd", "").unwrap();
    assert_eq!(lines(&again), ["d added, live, applied"]);
    assert_eq!(&*again.plan.policy.units[0].name, "d");
    let again = go(&merged.plan, "c\nb needs=c\na", "").unwrap();
    assert_eq!(lines(&again), ["a added, live, applied"]);
    assert_eq!(again.plan.policy.units[0].skipped, None);
}

#[test]
fn data_is_lost_by_name_only() {
    let merged = check("a data\nb", "b", "", &["a removed, destructive, pending"]);
    assert_eq!(merged.plan.policy.units[0].skipped, None);
    let merged = check("a data\nb", "b", "lose=a", &["a removed, destructive, applied"]);
    assert_eq!(merged.plan.policy.units[0].skipped.as_deref(), Some(GONE));
    check("a data", "a data argv=y", "", &["a changed, needs restart, pending: argv: x → y"]);
    let merged =
        check("a data", "a data argv=y", "restarts", &["a changed, destructive, pending: argv: x → y"]);
    assert!(merged.restart.is_empty() && merged.next.contains_key(&UnitId(0)));
    let merged = check(
        "a data",
        "a data argv=y",
        "restarts lose=a",
        &["a changed, destructive, applied: argv: x → y"],
    );
    assert_eq!(merged.restart, [UnitId(0)]);
    check("a data", "a data skipped", "", &["a changed, destructive, pending: runs → skipped: no"]);
}

#[test]
fn no_two_reloads_lose_what_one_may_not() {
    let first = check("a data", "a", "", &["a changed, destructive, pending: holds_data changed"]);
    assert!(first.plan.policy.units[0].holds_data);
    assert!(!first.next[&UnitId(0)].0.holds_data);
    // It holds them until it is gone, whatever follows.
    for (new, line) in [
        ("b", "a removed, destructive, pending"),
        ("a skipped", "a changed, destructive, pending: runs → skipped: no; holds_data changed"),
        ("a", "a changed, destructive, pending: holds_data changed"),
    ] {
        let again = go(&first.plan, new, "").unwrap();
        assert!(lines(&again).contains(&line.to_owned()), "{:?}", lines(&again));
        assert!(again.plan.policy.units[0].holds_data);
    }
    let again = go(&first.plan, "a argv=y", "restarts").unwrap();
    assert_eq!(
        lines(&again),
        [
            "a changed, destructive, pending: holds_data changed",
            "a changed, destructive, pending: argv: x → y"
        ]
    );
    assert!(again.restart.is_empty() && again.plan.policy.units[0].holds_data);
    // By name it may go; and what is down holds nothing.
    let named = check("a data", "a", "lose=a", &["a changed, destructive, applied: holds_data changed"]);
    assert!(!named.plan.policy.units[0].holds_data);
    assert_eq!(lines(&go(&first.plan, "a data", "").unwrap()), [""; 0]);
    let down = Now { is_up: &|_| false, is_free: &|_| false, started: &|_| None };
    let merged = merge(&first.plan, &plan("a"), &down, &Allowed::default()).unwrap();
    assert_eq!(lines(&merged), ["a changed, live, applied: holds_data changed"]);
    assert!(!merged.plan.policy.units[0].holds_data);
}

#[test]
fn a_process_of_an_earlier_runner_is_known_by_what_it_was_started_with() {
    let of = |text: &str| {
        let plan = plan(text);
        Started::of(&plan.policy.units[0], &plan.exec[0])
    };
    let check = |started: Started, new: &str, words: &str, expectation: &[&str]| {
        let allowed = Allowed { restarts: !words.is_empty(), destructive: Vec::new() };
        let now = Now { is_up: &|_| true, is_free: &|_| false, started: &|_| Some(&started) };
        let merged = merge(&plan("a argv=y"), &plan(new), &now, &allowed).unwrap();
        assert_eq!(lines(&merged), expectation);
        merged
    };
    // What the runner has found is not what the process was started with.
    let waits = "a changed, needs restart, pending: argv changed since it was started";
    check(of("a argv=x"), "a argv=y", "", &[waits]);
    let unknown = Started::recalled(of("a argv=x").fingerprint(), None);
    check(unknown, "a argv=y", "", &["a changed, needs restart, pending: changed since it was started"]);
    let restarted = check(
        of("a argv=x"),
        "a argv=y",
        "restarts",
        &["a changed, needs restart, applied: argv changed since it was started"],
    );
    assert_eq!(restarted.restart, [UnitId(0)]);
    // The files are as they were: nothing waits.
    let back = check(of("a argv=x"), "a argv=x", "", &["a changed, live, applied: argv: y → x"]);
    assert_eq!(back.plan.exec[0].argv, ["x"]);
    assert!(back.next.is_empty());
}

#[test]
fn of_instances_that_go_the_highest_goes_first() {
    let merged = check(
        "e@0\ne@1\ne@2\ne@10",
        "e@0",
        "",
        &[
            "e@1 removed, live, applied: its process is stopped",
            "e@2 removed, live, applied: its process is stopped",
            "e@10 removed, live, applied: its process is stopped",
        ],
    );
    let after = |at: usize| merged.plan.policy.units[at].stop_after.clone();
    assert_eq!((after(1), after(2), after(3)), (vec![UnitId(2), UnitId(3)], vec![UnitId(3)], vec![]));
}

#[test]
fn what_has_no_process_of_its_own_takes_everything_at_once() {
    let merged = check("x external=keep", "x external=stop", "", &[]);
    assert!(merged.next.is_empty());
    assert_eq!(merged.plan.policy.units[0].kind, Kind::External { stop_on_loss: true });
    let merged = check("a\ng holds=a", "a\nb\ng holds=b", "", &["b added, live, applied"]);
    assert!(merged.next.is_empty());
    assert_eq!(merged.plan.policy.units[1].kind, Kind::Group { members: vec![UnitId(2)] });
}

#[test]
fn a_unit_does_not_turn_into_a_group() {
    let refused = go(&plan("a"), "a group", "");
    assert!(refused.unwrap_err().starts_with("`a` was a unit with a process and is now a group"));
}

#[test]
fn the_rest_is_the_new_plans() {
    let mut new = plan("a");
    new.policy = PlanPolicy { stop_budget: Duration::from_secs(7), ..new.policy };
    new.fingerprint = "new".to_owned();
    let now = Now { is_up: &|_| true, is_free: &|_| false, started: &|_| None };
    let merged = merge(&plan("a"), &new, &now, &Allowed::default()).unwrap();
    assert_eq!((merged.plan.policy.stop_budget.as_secs(), merged.plan.fingerprint.as_str()), (7, "new"));
}
