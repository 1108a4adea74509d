//! The stories of `tests/scenarios` in the simulation: each time is exact, and the oracle agrees.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::story::{Done, Event, Followed, Line, Story, follow, span};
use tenon::diagnostic::{SourceMap, has_errors, human};
use tenon::load::{SearchPath, load};
use tenon::plan::exec::UnitExec;
use tenon::plan::policy::{PlanPolicy, Scope, UnitId, UnitPolicy};
use tenon::plan::reload::{Allowed, Now, merge};
use tenon::plan::{About, EnvFileText, Inputs, Plan, build};
use tenon::resolve::{self, Dirs, Options};
use tenon::sim::{Act, Entry, Fate, Faults, Happening, LeftOvers, Report, Scenario, Sickness, Trouble, run};
use tenon::supervisor::snapshot::State;
use tenon::supervisor::{
    Action, ExitStatus, JobId, Outcome, PlanChange, Request, Supervisor, Time, signal_name,
};

/// Nothing more happens for so long after the last line.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// The plan of a node file, as `tenon check` would make it, without jitter: times are to be exact.
fn plan(text: &str) -> Plan {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tenon.toml"), text).expect("the node file");
    let mut sources = SourceMap::default();
    let path = SearchPath::system().or_dirs(&[folder.path().to_owned()]);
    let (files, mut diagnostics) = load(&path, &mut sources);
    let prepared = resolve::prepare(&files, &sources);
    let inputs =
        resolve::Inputs { files: &files, options: Options::default(), environment: None, facts: None };
    let (graph, more) = resolve::resolve_prepared(prepared, &inputs, &mut sources);
    diagnostics.extend(more);
    let dirs = Dirs::default();
    let env_file = |_: &str| EnvFileText::NotAsked;
    let inputs =
        Inputs { sources: &sources, environ: None, env_file: &env_file, dirs: &dirs, container: false };
    let (mut plan, more) = build(&graph, &inputs);
    diagnostics.extend(more);
    assert!(!has_errors(&diagnostics), "{}", human(&diagnostics, &sources, false));
    for unit in &mut plan.policy.units {
        unit.restart.jitter = 0.0;
    }
    plan
}

/// A story being turned into a script.
struct Teller<'a> {
    story: &'a Story,
    folder: PathBuf,
    plan: Plan,
    scenario: Scenario,
    requests: Vec<Done>,
    /// What was said of units that are yet to come.
    later: Vec<Done>,
    /// What counts of a unit from its next start on, and its starts so far.
    pending: Vec<(UnitId, u64, (UnitPolicy, UnitExec, About))>,
}

pub fn play(name: &str) {
    let story = Story::read(name);
    let folder = Path::new("/nonexistent/story").to_owned();
    let plan = plan(&story.node_file(None, &folder));
    let scenario = Scenario {
        seed: 1,
        acts: vec![Vec::new(); plan.policy.units.len()],
        plan: plan.policy.clone(),
        script: Vec::new(),
        faults: Faults::default(),
        until: Time(story.lines.last().expect("a line").at() + AFTERWARDS),
        calm: None,
    };
    let mut teller = Teller {
        story: &story,
        folder,
        plan,
        scenario,
        requests: Vec::new(),
        later: Vec::new(),
        pending: Vec::new(),
    };
    for line in &story.lines {
        if let Line::Done(done) = line {
            teller.tell(done);
        }
    }
    let report = run(&teller.scenario, &mut Supervisor::new(1));
    let events = events(&report, &teller.plan.policy);
    let log = || format!("{}\n{}{}", report.log(), report.timeline(), report.verdict());
    assert!(report.findings.is_empty(), "{}", log());
    let followed = follow(&story.lines, &events);
    assert!(followed == Followed::All, "{}: {followed:?}\n{}", story.name, log());
    if let Some(Line::Exit(_, status)) = story.lines.last() {
        assert_eq!(report.exit(), Some(*status), "{}", log());
    }
    for (at, done) in teller.requests.iter().enumerate() {
        let outcome = outcome(&report, JobId(at as u64 + 1));
        let (kind, words) = done.outcome.split_once(' ').unwrap_or((&done.outcome, ""));
        let good =
            outcome.as_ref().is_some_and(|outcome| outcome.starts_with(kind) && outcome.contains(words));
        assert!(good, "{done:?}: {outcome:?}\n{}", log());
    }
}

fn outcome(report: &Report, job: JobId) -> Option<String> {
    report.entries.iter().find_map(|(_, entry)| match entry {
        Entry::Action(Action::Reply { job: answered, outcome }) if *answered == job => Some(match outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Failed(why) => format!("failed: {why}"),
            Outcome::Refused(why) => format!("refused: {why}"),
            Outcome::Superseded => "superseded".to_owned(),
        }),
        _ => None,
    })
}

/// Changes of states, repetitions left out.
fn events(report: &Report, plan: &PlanPolicy) -> Vec<Event> {
    let mut last: Vec<Option<State>> = vec![None; plan.units.len()];
    let mut events = Vec::new();
    for (time, entry) in &report.entries {
        let Entry::Action(Action::Publish(change)) = entry else { continue };
        let after = &change.after;
        if last[change.unit.0 as usize].replace(after.state) != Some(after.state) {
            let words = [Some(&after.cause), after.detail.as_ref(), after.degraded.as_ref()];
            events.push(Event {
                at: Some(time.0),
                unit: after.unit.clone(),
                state: after.state.word().to_owned(),
                words: words.into_iter().flatten().cloned().collect::<Vec<_>>().join("; "),
            });
        }
    }
    events
}

impl Teller<'_> {
    fn unit(&self, name: &str) -> UnitId {
        self.plan.policy.find(name).unwrap_or_else(|| panic!("a unit of the plan: {name}"))
    }

    fn tell(&mut self, done: &Done) {
        let named: Vec<&String> = done.args.iter().filter(|arg| !arg.starts_with("--")).collect();
        let flag = |name: &str| done.args.iter().any(|arg| arg == name);
        let units = || named.iter().map(|name| self.unit(name)).collect::<Vec<_>>();
        let unit = || self.unit(named[0]);
        if matches!(done.verb.as_str(), "sick" | "break" | "doom")
            && self.plan.policy.find(named[0]).is_none()
        {
            self.later.push(done.clone());
            return;
        }
        let happening = match done.verb.as_str() {
            "start" => Happening::Ask(Request::Start { units: units(), replace: flag("--replace") }),
            "stop" => {
                Happening::Ask(Request::Stop { units: units(), with_dependents: flag("--with-dependents") })
            }
            "restart" => Happening::Ask(Request::Restart {
                units: units(),
                with_dependents: flag("--with-dependents"),
            }),
            "kill" => {
                Happening::Ask(Request::Kill { unit: unit(), signal: signal(named[1]), scope: Scope::Main })
            }
            "shutdown" => Happening::Shutdown { fast: false },
            "reload" => self.reload(done.at, named[0], &done.args),
            "end" => Happening::Crash { unit: unit(), status: status(named[1]) },
            "doom" => Happening::Troubled { unit: unit(), trouble: Some(Trouble::Ends(status(named[1]))) },
            "break" => Happening::Troubled { unit: unit(), trouble: Some(Trouble::NotExecuted) },
            "spare" | "mend" => Happening::Troubled { unit: unit(), trouble: None },
            "sick" => Happening::Sick { unit: unit(), sickness: Some(Sickness::Fails) },
            "well" => Happening::Sick { unit: unit(), sickness: None },
            "deaf" => return self.act(unit(), |act| act.on_stop = Fate::Ignores),
            "leaves" => {
                let left = LeftOvers { live: span("300s"), obey: false };
                return self.act(unit(), |act| act.left_overs = Some(left));
            }
            other => panic!("nobody can do `{other}`"),
        };
        if matches!(happening, Happening::Ask(_)) {
            self.requests.push(done.clone());
        }
        self.scenario.script.push((Time(done.at), happening));
        if done.verb == "reload" {
            for later in std::mem::take(&mut self.later) {
                self.tell(&Done { at: done.at, ..later });
            }
        }
    }

    fn act(&mut self, unit: UnitId, change: impl Fn(&mut Act)) {
        let acts = &mut self.scenario.acts[unit.0 as usize];
        if acts.is_empty() {
            acts.push(Act::default());
        }
        acts.iter_mut().for_each(change);
    }

    /// What the files become, given who is up at that moment.
    fn reload(&mut self, at: Duration, name: &str, args: &[String]) -> Happening {
        let mut machine = Supervisor::new(1);
        let before = Scenario { until: Time(at), ..self.scenario.clone() };
        run(&before, &mut machine);
        let state = |id: UnitId| machine.unit(id).map_or(State::Skipped, |unit| unit.state);
        let is_up = |id| state(id).has_process();
        let is_free = |id| state(id) == State::Skipped;
        let destructive = args.windows(2).filter(|pair| pair[0] == "--allow-destructive");
        let allowed = Allowed {
            restarts: args.iter().any(|arg| arg == "--apply-restarts"),
            destructive: destructive.map(|pair| pair[1].clone()).collect(),
        };
        // Who has started since the last reload is what that one made it.
        let starts = |id: UnitId| machine.unit(id).map_or(0, |unit| unit.starts);
        for (id, before, (policy, exec, about)) in std::mem::take(&mut self.pending) {
            let at = id.0 as usize;
            if starts(id) > before {
                (self.plan.policy.units[at], self.plan.exec[at], self.plan.about[at]) = (policy, exec, about);
            }
        }
        let new = plan(&self.story.node_file(Some(name), &self.folder));
        let now = Now { is_up: &is_up, is_free: &is_free, started: &|_| None };
        let merged = merge(&self.plan, &new, &now, &allowed).expect("a plan that can take its place");
        self.plan = merged.plan;
        self.pending = merged.next.iter().map(|(id, what)| (*id, starts(*id), what.clone())).collect();
        self.scenario.acts.resize(self.plan.policy.units.len(), Vec::new());
        Happening::Reload(Box::new(PlanChange {
            plan: self.plan.policy.clone(),
            next: merged.next.into_iter().map(|(id, (policy, _, _))| (id, policy)).collect(),
            restart: merged.restart,
        }))
    }
}

fn status(text: &str) -> ExitStatus {
    match text.split_once(':') {
        Some(("exit", code)) => ExitStatus::Code(code.parse().expect("a code")),
        Some(("signal", name)) => ExitStatus::Signal { signal: signal(name), core: false, oom: false },
        _ => panic!("exit:N or signal:NAME: {text}"),
    }
}

fn signal(name: &str) -> i32 {
    (1..=31).find(|number| signal_name(*number) == name).unwrap_or_else(|| panic!("a signal: {name}"))
}

include!("../scenarios/all.rs");
