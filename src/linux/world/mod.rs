//! Everything real that a runner holds, and the one place where actions are executed.
//!
//! Events wait in `inbox`; [`World::pump`] gives them to the supervisor one by one and executes what comes back, so
//! nothing acts inside the reaction to something else.

mod adopt;
mod asked;
mod end;
mod first;
mod hear;
mod left;
mod pipes;
mod record;
mod reexec;
mod reload;
mod say;
pub mod signs;
mod start;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::cgroup::Cgroups;
use super::clock::{self, Clock};
use super::eventlog::EventLog;
use super::fault::{self, AtWork};
use super::helper::{Helpers, Purpose};
use super::log::{Console, Signatures, UnitLog};
use super::oom::OomWatch;
use super::poller::Poller;
use super::probe::{Asked, Asker, Probes, Tools};
use super::recorder::Kind;
use super::run::RunOptions;
use super::rundir::RunDir;
use super::serve::News;
use super::slots::{Before, Slots};
use super::tree::{Evidence, Memory};
use super::unit::{Question, Unit};
use super::upward::{Messages, Upward};
use super::watch::Watch;
use crate::control::{self, MachineEnd, PlanChange, ProbeFinding, Ticket};
use crate::plan::Plan;
use crate::plan::exec::{Probe, UnitExec};
use crate::plan::policy::{Scope, UnitId};
use crate::supervisor::snapshot::State;
use crate::supervisor::{Action, Change, Event, Generation, Outcome, Phase, ProbeKind, Supervisor, Time};
use say::Unsaid;
pub(in crate::linux) use say::in_words;

/// Events given to the supervisor in one turn; what is left waits for the next.
const EVENTS_A_PUMP: usize = 4096;

/// A spawn that waits for its turn.
struct Pending {
    unit: UnitId,
    generation: Generation,
    phase: Phase,
}

/// A `probe` request under way.
struct ProbeJob {
    open: usize,
    findings: Vec<ProbeFinding>,
}

pub use adopt::Adopted;
pub use reexec::{CAN_GO_ON, CHECK_ONLY, check_state};
pub use reload::{Planner, Replanned};

/// What a runner works with.
pub struct Hands {
    /// Descriptors and the timer.
    pub poller: Poller,
    /// Standard error.
    pub console: Console,
    /// The run directory, if it can be used.
    pub run_dir: Option<RunDir>,
    /// Where the runner's own messages wait.
    pub messages: Messages,
    /// Whom an event is about, for whoever goes on after a panic.
    pub at_work: Rc<AtWork>,
}

/// Everything real.
pub struct World {
    /// What waits for the next start of a unit.
    next: reload::Next,
    /// The units to be shown, in the order of the plan.
    order: Vec<UnitId>,
    /// Changes of the configuration that do not count yet.
    pending: Vec<PlanChange>,
    watch: Watch,
    /// What outlives this runner.
    slots: Option<Rc<Slots>>,
    pub(super) at_work: Rc<AtWork>,
    flight: record::Flight,
    /// The binary that is to take this one's place.
    successor: Option<PathBuf>,
    /// The one that is being asked whether it could.
    asked_binary: Option<PathBuf>,
    pub(super) clock: Clock,
    pub(super) poller: Poller,
    pub(super) console: Console,
    pub(super) supervisor: Supervisor,
    pub(super) inbox: VecDeque<Event>,
    /// What clients may want to hear.
    pub(super) news: Vec<News>,
    /// Clients are there to hear about lines.
    pub(super) has_audience: bool,
    /// Leave, with this status.
    pub(super) exit: Option<i32>,
    /// What was asked to become of the machine then.
    pub(super) ending: Option<MachineEnd>,
    plan: Plan,
    pub(super) options: RunOptions,
    units: Vec<Unit>,
    spawns: VecDeque<Pending>,
    helpers: Helpers,
    probes: Probes,
    jobs: BTreeMap<Ticket, ProbeJob>,
    next_ticket: u64,
    events: EventLog,
    messages: Messages,
    upward: Upward,
    changed: bool,
    /// Somebody waits for an empty tree and something has ended since it was last looked at.
    look_at_trees: bool,
    shutting_down: bool,
    run_dir: Option<RunDir>,
    cgroups: Cgroups,
    oom: OomWatch,
    memory: RefCell<Memory>,
    nofile: Option<(u64, u64)>,
    started: f64,
    /// Distinguishes this runner's marks from those of others on the machine.
    mark: String,
    said_abstract: bool,
    /// The last process that ended was none: its program could not be executed.
    pub(super) never_ran: bool,
    /// Units whose own folder cannot be made, which has been said.
    said_missing: BTreeSet<UnitId>,
    /// The last message about each unit.
    said: BTreeMap<UnitId, String>,
    /// Messages about units that wait for the end of the turn.
    unsaid: Unsaid,
}

impl World {
    /// Nothing has been started yet.
    pub fn new(mut plan: Plan, options: RunOptions, hands: Hands) -> Self {
        let Hands { poller, console, run_dir, messages, at_work } = hands;
        let (slots, before) = open_slots(run_dir.as_ref(), options.foreground);
        let kept = left::keep(&mut plan, before.as_ref(), run_dir.as_ref(), options.keep_units);
        let mark = before.as_ref().map_or_else(
            || format!("{:x}-{:x}", std::process::id(), clock::wall().as_micros()),
            |before| before.mark.clone(),
        );
        let clock = before.as_ref().map_or_else(Clock::new, |before| Clock::since(before.clock));
        let units = new_units(&plan, before.as_ref(), run_dir.as_ref(), &mark);
        let events_dir =
            options.state_dir.clone().or_else(|| run_dir.as_ref().map(|dir| dir.path().to_owned()));
        let events = EventLog::new(events_dir.map(|dir| dir.join("events.jsonl")));
        let supervisor = Supervisor::new(options.seed);
        let cgroups = find_cgroups(&options, run_dir.as_ref(), &mark);
        let upward = Upward::new(options.ready);
        let order = (0..plan.policy.units.len()).map(|at| UnitId(at as u32)).collect();
        let watch = Watch::new(&options.watch, &poller);
        let mut world = Self {
            next: reload::Next::new(),
            slots,
            at_work,
            flight: record::Flight::default(),
            successor: None,
            asked_binary: None,
            order,
            pending: Vec::new(),
            watch,
            clock,
            poller,
            console,
            supervisor,
            inbox: VecDeque::from([Event::PlanLoaded(plan.policy.clone())]),
            news: Vec::new(),
            has_audience: false,
            exit: None,
            ending: None,
            plan,
            options,
            units,
            spawns: VecDeque::new(),
            helpers: Helpers::default(),
            probes: Probes::default(),
            jobs: BTreeMap::new(),
            next_ticket: 1,
            events,
            messages,
            upward,
            changed: true,
            look_at_trees: false,
            shutting_down: false,
            run_dir,
            cgroups,
            oom: OomWatch::new(),
            memory: RefCell::default(),
            nofile: raise_nofile(),
            started: clock::wall().as_secs_f64(),
            mark,
            said_abstract: false,
            never_ran: false,
            said_missing: BTreeSet::new(),
            said: BTreeMap::new(),
            unsaid: Unsaid::default(),
        };
        world.begin(before.as_ref(), kept);
        world
    }

    /// Goes on from what is left, and from now on leaves something itself.
    fn begin(&mut self, before: Option<&Before>, kept: left::Kept) {
        self.open_recorder();
        let Some(before) = before else {
            self.say_info();
            self.write_first(0..self.units.len());
            if let Some(slots) = &self.slots {
                slots.begin(&self.mark, self.clock.start());
            }
            return;
        };
        self.adopt(before, kept);
        // As at a reload: those nobody has heard of before.
        let new =
            |number: &usize| before.units.iter().all(|left| left.name != self.name(UnitId(*number as u32)));
        let new: Vec<usize> = (0..self.units.len()).filter(new).collect();
        self.write_first(new);
        if before.leaving == u64::from(std::process::id()) {
            self.begin_shutdown(false);
        }
        if let Some(slots) = &self.slots {
            slots.hand_over(false);
        }
    }

    /// Where the control socket lies: as asked, else in the run directory.
    pub fn socket_path(&self) -> Option<std::path::PathBuf> {
        let own = self.run_dir.as_ref()?.socket();
        Some(self.options.socket.clone().unwrap_or(own))
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Gives waiting events to the supervisor and executes what it wants.
    pub fn pump(&mut self) {
        for _ in 0..EVENTS_A_PUMP {
            let Some(event) = self.inbox.pop_front() else { break };
            self.works_on(fault::unit_of(&event));
            #[cfg(debug_assertions)]
            fault::planted(&event, fault::unit_of(&event).map_or("", |unit| self.name(unit)));
            let mut actions = Vec::new();
            let wide = matches!(event, Event::Request(..) | Event::PlanChanged(_) | Event::PlanResumed(..));
            self.supervisor.step(self.clock.now(), event, &mut actions);
            // Before anything is done: whoever goes on from here is to know what for.
            if wide {
                self.remember_all();
            }
            for action in actions {
                self.execute(action);
            }
        }
        self.works_on(None);
    }

    /// Whatever happens now is about this unit.
    pub(super) fn works_on(&self, unit: Option<UnitId>) {
        let place = unit.and_then(|unit| self.units.get(unit.0 as usize)).map(|unit| unit.place);
        self.at_work.set(place);
    }

    fn execute(&mut self, action: Action) {
        match action {
            Action::Prepare { unit, generation } => self.prepare(unit, generation),
            Action::Spawn { unit, generation, phase } => {
                self.spawns.push_back(Pending { unit, generation, phase });
            }
            Action::AwaitEmpty { unit, generation, scope } => self.await_empty(unit, generation, scope),
            Action::Signal { unit, generation, signal, scope } => {
                if signal == libc::SIGKILL {
                    self.name_the_killed(unit, generation, scope);
                }
                if let Some(it) =
                    self.unit(unit).filter(|it| it.generation == generation && it.current.is_some())
                {
                    it.asked = true;
                }
                self.signal(unit, generation, signal, scope);
                // Someone who is stopped would not even see it.
                if !matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGKILL | libc::SIGCONT) {
                    self.signal(unit, generation, libc::SIGCONT, scope);
                }
            }
            Action::Kill { unit, generation, signal, scope } => self.signal(unit, generation, signal, scope),
            Action::Probe { unit, generation, kind } => {
                self.ask_probes(Asked { unit, kind, by: Asker::Machine(generation) });
            }
            Action::Publish(change) => self.publish(change),
            Action::Reply { job, outcome } => {
                let outcome = match outcome {
                    Outcome::Done => control::Outcome::Done,
                    Outcome::Failed(why) => control::Outcome::Failed(why),
                    Outcome::Refused(why) => control::Outcome::Refused(why),
                    Outcome::Superseded => control::Outcome::Superseded,
                };
                self.done(Ticket(job.0), outcome);
            }
            Action::Exit(code) => self.exit = Some(code),
        }
    }

    /// A request has come to its end. What programs say when they fail may hold anything.
    fn done(&mut self, ticket: Ticket, outcome: control::Outcome) {
        let outcome = match outcome {
            control::Outcome::Failed(why) => control::Outcome::Failed(self.plan.masked(&why)),
            known @ (control::Outcome::Done
            | control::Outcome::Probed(_)
            | control::Outcome::Refused(_)
            | control::Outcome::Superseded) => known,
        };
        self.news.push(News::Done(ticket, outcome));
    }

    fn publish(&mut self, change: Change) {
        let Change { unit, after } = change;
        let after = self.may_be_shown(unit, after);
        self.remember(unit);
        self.remember_restarts();
        self.record_state(&after);
        if let (State::Ready, Some(pid)) = (after.state, after.pid)
            && !self.cgroups.is_there()
        {
            super::tree::remember(pid, unit, &self.memory);
        }
        let words = in_words(&after);
        // A step that changes nothing people see (the pid, a counter) is an event, not a message.
        let news = self.said.get(&unit) != Some(&words);
        if self.options.foreground {
            // The command speaks for itself, unless it never came to that.
            if news && after.state == State::Failed && after.last_exit.is_none() {
                tracing::error!("{words}");
            }
            self.said.insert(unit, words);
        } else if news {
            self.unsaid.add(unit, after.state, words.clone());
            self.said.insert(unit, words);
        }
        let (record, trouble) = self.events.add(after, None);
        if let Some(trouble) = trouble {
            tracing::warn!("{trouble}");
        }
        self.news.push(News::Event(Box::new(record)));
        self.changed = true;
    }

    /// What is due by time alone.
    pub fn expire(&mut self) {
        let now = self.now();
        for finished in self.helpers.expire(now, &self.poller) {
            self.helped(&finished);
        }
        let mut tools = Tools { poller: &self.poller, helpers: &mut self.helpers, now };
        for answer in self.probes.expire(&mut tools) {
            self.answered(answer);
        }
        self.expire_steps(now);
        self.expire_adopted();
        self.upward.expire(now);
        if self.watch.is_due(now) {
            self.reload_by_itself("its files have changed");
        }
        if self.supervisor.deadline().is_some_and(|at| at <= now) {
            self.inbox.push_back(Event::DeadlineReached);
        }
    }

    /// The end of a turn: trees are looked at, spawns take their turn, messages are written, the timer is set.
    pub fn settle(&mut self) {
        self.look_at_trees();
        self.spawn_some();
        self.pump();
        self.feed_pipes();
        if std::mem::take(&mut self.changed) {
            let shown = |text: &str| self.plan.masked(text);
            self.upward.units(self.clock.now(), &self.supervisor.snapshot(), &shown);
        }
        self.upward.flush();
        self.write_messages();
        self.console.flush(&self.poller);
        let at = self.next_deadline().map(|at| self.clock.absolute(at));
        if let Err(errno) = self.poller.set_deadline(at) {
            tracing::error!("cannot set the timer: {}", errno.desc());
        }
    }

    /// Whether the next turn should not sleep.
    pub fn has_work(&self) -> bool {
        !self.inbox.is_empty() || !self.spawns.is_empty() || !self.news.is_empty()
    }

    fn next_deadline(&self) -> Option<Time> {
        let steps = self.units.iter().filter_map(|unit| unit.current.as_ref()?.deadline);
        let steps = steps.chain(self.units.iter().filter_map(|unit| unit.log.program_deadline()));
        let own = [
            self.supervisor.deadline(),
            self.helpers.deadline(),
            self.probes.deadline(),
            self.watch.deadline(),
            self.adopted_deadline(),
            self.upward.deadline(),
        ];
        own.into_iter().flatten().chain(steps).min()
    }

    fn unit(&mut self, id: UnitId) -> Option<&mut Unit> {
        self.units.get_mut(id.0 as usize)
    }

    fn name(&self, id: UnitId) -> &str {
        self.plan.policy.get(id).map_or("?", |unit| &*unit.name)
    }

    fn evidence(&self) -> Vec<Evidence> {
        self.units.iter().enumerate().map(|(number, unit)| unit.evidence(UnitId(number as u32))).collect()
    }

    /// Ends what is asked about a unit's start that is over.
    fn forget_questions(&mut self, id: UnitId) {
        let mut tools = Tools { poller: &self.poller, helpers: &mut self.helpers, now: self.clock.now() };
        self.probes.forget(id, &mut tools);
        let Some(preparing) = self.unit(id).and_then(|unit| unit.preparing.take()) else { return };
        if let Some(Question::Gone(_, pidfd)) = &preparing.question {
            self.poller.remove(pidfd);
        }
        self.helpers.cancel(|purpose| purpose == Purpose::Preflight(id), &self.poller);
    }

    fn ask_probes(&mut self, asked: Asked) {
        let number = asked.unit.0 as usize;
        let (Some(exec), Some(unit)) = (self.plan.exec.get(number), self.units.get(number)) else { return };
        let set = match asked.kind {
            ProbeKind::Ready => &exec.ready,
            ProbeKind::Health => &exec.health,
        };
        let mut tools = Tools { poller: &self.poller, helpers: &mut self.helpers, now: self.clock.now() };
        if let Some(answer) = self.probes.ask(asked, set, exec, unit, &mut tools) {
            self.answered(answer);
        }
    }

    /// The run directory is left clean, nobody is left behind, and everything that was said is written.
    pub fn leave(&mut self, status: i32) {
        self.record(Kind::Runner, &format!("leaves with {status}"));
        self.upward.stopping();
        self.upward.flush();
        self.end_strays();
        if self.options.machine {
            tracing::info!("everything has stopped (status {status}): the machine {}", self.ending().words());
        }
        super::termination::write(status, &self.snapshot(), |name| {
            let id = self.plan.policy.find(name)?;
            self.units.get(id.0 as usize)?.facts.hint.clone()
        });
        let wall = clock::wall();
        for unit in &mut self.units {
            unit.log.drain(wall, &mut self.console);
            unit.log.close(&self.poller);
            if let Some(socket) = unit.notify.take() {
                socket.close(&self.poller);
            }
        }
        self.finish_pipes();
        if let Some(slots) = &self.slots {
            slots.forget_all();
        }
        if let Some(dir) = &self.run_dir {
            dir.clean();
        }
        self.cgroups.clean();
        self.write_messages();
        self.console.finish();
    }

    fn write_messages(&mut self) {
        self.unsaid.say(|id| self.plan.policy.get(id).map_or("?", |unit| &*unit.name));
        for message in self.messages.take() {
            let level = match message.level {
                tracing::Level::ERROR => "error",
                tracing::Level::WARN => "warning",
                _ => "info",
            };
            self.console.say(level, message.unit.as_deref(), &self.plan.masked(&message.text));
        }
    }

    /// Log files and the event file are opened anew.
    pub fn reopen(&mut self) {
        for unit in &mut self.units {
            unit.log.reopen();
        }
        self.events.reopen();
        tracing::info!("log files are opened anew");
    }

    /// The state of everything, as messages.
    pub fn tell_state(&self) {
        for unit in self.snapshot() {
            let detail = unit.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            let pid = unit.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            tracing::info!("{}: {}{detail}{pid}, {} restarts", unit.unit, unit.state.word(), unit.restarts);
        }
    }

    /// What becomes of the machine.
    pub fn ending(&self) -> MachineEnd {
        self.ending.unwrap_or(MachineEnd::Poweroff)
    }

    /// Everything is to stop.
    pub fn begin_shutdown(&mut self, fast: bool) {
        self.shutting_down = true;
        self.upward.stopping();
        if let Some(slots) = &self.slots {
            slots.leaving();
        }
        self.inbox.push_back(Event::Shutdown { fast });
    }
}

/// The slots of the run directory, and what is left in them.
fn open_slots(run_dir: Option<&RunDir>, foreground: bool) -> (Option<Rc<Slots>>, Option<Before>) {
    let Some(dir) = run_dir.filter(|_| !foreground) else { return (None, None) };
    match Slots::open(&dir.slots()) {
        Ok((slots, before)) => (Some(Rc::new(slots)), before),
        Err(why) => {
            tracing::warn!("{why}; a runner that is killed and started again would not know its units");
            (None, None)
        }
    }
}

/// The slot of each unit: the one it had, or one that nobody has.
fn places(plan: &Plan, before: Option<&Before>) -> Vec<u32> {
    let left = before.map(|before| before.units.as_slice()).unwrap_or_default();
    let mut taken: BTreeSet<u32> = left.iter().map(|left| left.place).collect();
    let units = plan.policy.units.iter();
    units
        .map(|unit| {
            let old = left.iter().find(|left| *left.name == *unit.name).map(|left| left.place);
            let place =
                old.unwrap_or_else(|| (0..u32::MAX).find(|place| !taken.contains(place)).unwrap_or(u32::MAX));
            taken.insert(place);
            place
        })
        .collect()
}

/// The shell's side of all units, none of which has been started.
fn new_units(plan: &Plan, before: Option<&Before>, run_dir: Option<&RunDir>, mark: &str) -> Vec<Unit> {
    let places = places(plan, before);
    let units = plan.policy.units.iter().zip(&plan.exec).zip(places).enumerate();
    units
        .map(|(number, ((policy, exec), place))| {
            new_unit((&policy.name, number as u32, place), exec, run_dir, mark)
        })
        .collect()
}

/// The shell's side of a unit (its name, number and slot) that has not been started.
fn new_unit(who: (&str, u32, u32), exec: &UnitExec, run_dir: Option<&RunDir>, mark: &str) -> Unit {
    let (name, number, place) = who;
    let fifo = run_dir.map(|dir| dir.fifo(place));
    let log = UnitLog::new(name, number, &exec.log, fifo, patterns(exec))
        .looking_for(Signatures::new(&exec.signatures));
    Unit { place, ..Unit::new(log, format!("{name}/{mark}")) }
}

/// Where units get their cgroups. One command in the foreground has everything below the runner to itself anyway.
fn find_cgroups(options: &RunOptions, run_dir: Option<&RunDir>, mark: &str) -> Cgroups {
    if options.foreground {
        return Cgroups::default();
    }
    let cgroups = Cgroups::find(&run_dir.map_or_else(|| mark.to_owned(), RunDir::key));
    if let Some(notice) = cgroups.notice.as_ref().filter(|_| !cgroups.is_there()) {
        tracing::info!("{notice}");
    }
    cgroups
}

/// The regular expressions that wait for a line of this unit.
fn patterns(exec: &UnitExec) -> Vec<regex_lite::Regex> {
    let probes = exec.ready.probes.iter().chain(&exec.health.probes);
    probes
        .filter_map(|probe| match probe {
            Probe::Log { pattern } => regex_lite::Regex::new(pattern).ok(),
            Probe::Notify
            | Probe::Fd(_)
            | Probe::Tcp { .. }
            | Probe::Http { .. }
            | Probe::Exec { .. }
            | Probe::Path { .. } => None,
        })
        .collect()
}

/// Raises the soft limit on descriptors to the hard one; what it was before, for the children.
fn raise_nofile() -> Option<(u64, u64)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    // What is not allowed to be raised stays.
    let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    Some((soft, hard))
}

/// Whether this scope is about more than one process.
fn is_wide(scope: Scope) -> bool {
    match scope {
        Scope::Main => false,
        Scope::Group | Scope::Tree => true,
    }
}
