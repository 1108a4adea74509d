//! The loop: wait, hear, decide, act; and what stands around it.

use std::path::PathBuf;

use super::fault::Guard;
use super::log::Console;
use super::machine;
use super::poller::{Interest, Poller, Token};
use super::rundir::{Missing, RunDir};
use super::serve::Server;
use super::signals::Signals;
use super::sys;
use super::upward::Messages;
use super::world::{Hands, World};
use crate::plan::Plan;

pub use super::recorder::{Kind as RecordedKind, NAME_END, Recorded, read as read_recorder};
pub use super::world::{CAN_GO_ON, CHECK_ONLY, Planner, Replanned, check_state};

pub use super::identity::{group_name, user_name};
pub use super::log::{Colour, Style};
pub use super::upward::ReadyWhen;

/// Exit status for a fault of the runner itself.
const EXIT_INTERNAL: i32 = 70;
/// Exit status of `run -- CMD` whose command cannot be executed.
const EXIT_NOT_EXECUTED: i32 = 127;
/// Exit status for a directory that another runner holds.
const EXIT_CONFIG: i32 = 78;

/// How to run a plan: everything that is not of a unit. Final, nothing is looked up later.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Where the lock, the control socket, pipes and notify sockets lie. None, or not writable: no control socket.
    pub run_dir: Option<PathBuf>,
    /// Where `events.jsonl` lies; left out = the run directory.
    pub state_dir: Option<PathBuf>,
    /// The control socket, if it is to lie elsewhere than in the run directory.
    pub socket: Option<PathBuf>,
    /// Members of this group may control the runner like its own user.
    pub control_group: Option<String>,
    /// How lines on standard error look.
    pub style: Style,
    /// Whether they are coloured.
    pub colour: Colour,
    /// When the service manager above is told `READY=1`.
    pub ready: ReadyWhen,
    /// One command in the foreground (`run -- CMD`): it has the runner's standard streams and terminal, and every
    /// signal is passed on to it unchanged.
    pub foreground: bool,
    /// This process is the first of a machine, which ends with it.
    pub machine: bool,
    /// Units outlive a runner that is killed, and the next one goes on with them.
    pub keep_units: bool,
    /// For the jitter of back-off.
    pub seed: u64,
    /// The node's role, for those who ask.
    pub role: Option<String>,
    /// The chosen profile, for those who ask.
    pub profile: Option<String>,
    /// The plan as `tenon plan --output json` shows it, for those who ask.
    pub plan_view: serde_json::Value,
    /// Makes another plan from the files as they are then; left out: there are none.
    pub planner: Option<Planner>,
    /// Reload when something changes in these folders; empty: not by itself.
    pub watch: Vec<PathBuf>,
}

/// Runs a plan until its end and returns the exit status. Takes over signals and standard error of this process.
/// As the first process of a machine it does not return once the plan has begun to run: the machine ends.
pub fn run(plan: Plan, options: RunOptions) -> i32 {
    if !options.foreground {
        sys::hide_from(3);
    }
    let messages = Messages::install();
    let names = plan.policy.units.iter().map(|unit| &*unit.name);
    let mut console = Console::new(options.style, options.colour, names);
    let run_dir = match options.run_dir.as_deref().map(RunDir::take).transpose() {
        Ok(run_dir) => run_dir,
        Err(Missing::Taken(who)) => {
            console.last_words(&who);
            return EXIT_CONFIG;
        }
        Err(Missing::NotWritable(why)) => {
            tracing::warn!("{why}; there is no control socket, everything else works");
            None
        }
    };
    let prepared = Poller::new()
        .map_err(|errno| format!("cannot make an epoll set: {}", errno.desc()))
        .and_then(|poller| Ok((take_signals(&poller, &options)?, poller)));
    match prepared {
        Ok((signals, poller)) => {
            let slots = run_dir.as_ref().filter(|_| !options.foreground).map(RunDir::slots);
            let guard = Guard::new(slots, plan.policy.stop_budget);
            let hands = Hands { poller, console, run_dir, messages, at_work: guard.at_work() };
            guard.run(|| Loop::new(World::new(plan, options, hands), signals).run())
        }
        Err(why) => {
            console.last_words(&why);
            EXIT_INTERNAL
        }
    }
}

/// Signals come through a descriptor from now on, and orphans of units come to the runner.
fn take_signals(poller: &Poller, options: &RunOptions) -> Result<Signals, String> {
    sys::ensure_stdio().map_err(|error| format!("cannot open `/dev/null`: {error}"))?;
    let signals = Signals::take(options.foreground, options.machine)
        .map_err(|error| format!("cannot take signals: {error}"))?;
    poller
        .add(signals.fd(), Token::Signals, Interest::Read)
        .map_err(|errno| format!("cannot watch for signals: {}", errno.desc()))?;
    if let Err(errno) = nix::sys::prctl::set_child_subreaper(true) {
        tracing::warn!("cannot become a subreaper: {}; orphans of units are lost", errno.desc());
    }
    Ok(signals)
}

/// Everything the loop turns around.
struct Loop {
    world: World,
    server: Server,
    signals: Signals,
    foreground: bool,
    machine: bool,
    reap_again: bool,
}

impl Loop {
    fn new(world: World, signals: Signals) -> Self {
        let mut server = Server::default();
        let (foreground, machine) = (world.options.foreground, world.options.machine);
        let group = world.options.control_group.as_deref();
        if let Some(path) = world.socket_path()
            && let Err(why) = server.listen(&path, group, &world.poller)
        {
            tracing::warn!("{why}; there is no control socket");
        }
        Self { world, server, signals, foreground, machine, reap_again: true }
    }

    /// Turns until the supervisor has said its last word.
    fn run(&mut self) -> i32 {
        let mut ready = Vec::new();
        loop {
            self.act();
            if let Some(code) = self.world.exit {
                self.server.close(&self.world.poller);
                self.world.leave(code);
                if self.machine {
                    machine::end(self.world.ending());
                }
                // As a shell would say it.
                return if self.foreground && self.world.never_ran { EXIT_NOT_EXECUTED } else { code };
            }
            self.world.reexec_if_due();
            let awake = self.world.has_work() || self.reap_again;
            if let Err(errno) = self.world.poller.wait(awake, &mut ready) {
                self.world.console.last_words(&format!("cannot wait for events: {}", errno.desc()));
                return EXIT_INTERNAL;
            }
            if std::mem::take(&mut self.reap_again) {
                self.reap_again = self.world.reap();
            }
            for token in &ready {
                self.hear(*token);
            }
            self.world.expire();
        }
    }

    fn hear(&mut self, token: Token) {
        self.world.works_on(token.unit());
        match token {
            Token::Signals => self.signals(),
            Token::Timer => self.world.poller.timer_fired(),
            // There is room again: the end of the turn writes.
            Token::Console => {}
            Token::Listener => self.server.accept(&self.world.poller),
            Token::Client(id) => self.server.ready(id, &mut self.world),
            Token::Log(unit) => self.world.log_ready(unit),
            Token::Notify(unit) => self.world.notify_ready(unit),
            Token::Launch(unit) => self.world.launch_ready(unit),
            Token::ReadyFd(unit) => self.world.ready_fd_ready(unit),
            Token::Probe(socket) => self.world.probe_ready(socket),
            Token::Helper(id) => self.world.helper_ready(id),
            Token::Watch => self.world.files_changed(),
            Token::LogPipe(unit) => self.world.pipe_ready(unit),
            Token::Adopted(unit) => self.world.adopted_ended(unit),
            Token::Other(unit) => self.world.other_ended(unit),
        }
        self.world.works_on(None);
    }

    /// Events become actions, actions become facts, facts become news.
    fn act(&mut self) {
        self.world.has_audience = self.server.has_clients();
        self.world.pump();
        self.tell();
        self.world.settle();
        self.tell();
        self.server.flush(&self.world.poller);
    }

    fn tell(&mut self) {
        for news in std::mem::take(&mut self.world.news) {
            self.server.tell(&news, &mut self.world);
        }
    }

    fn signals(&mut self) {
        for signal in self.signals.pending() {
            if signal != libc::SIGCHLD {
                self.world.record(RecordedKind::Received, &super::signals::name(signal));
            }
            match signal {
                libc::SIGCHLD => self.reap_again = self.world.reap(),
                _ if self.foreground => self.pass_on(signal),
                _ if self.machine && self.end_machine(signal) => {}
                libc::SIGTERM | libc::SIGINT => self.world.begin_shutdown(false),
                libc::SIGQUIT => self.world.begin_shutdown(true),
                libc::SIGUSR1 => self.world.reopen(),
                libc::SIGUSR2 => self.world.tell_state(),
                libc::SIGHUP => self.world.reload_by_itself("SIGHUP"),
                _ => {}
            }
        }
    }

    /// Whether a signal says what is to become of the machine; then everything is to stop. Who said it first is heard.
    fn end_machine(&mut self, signal: i32) -> bool {
        let Some(how) = machine::asked_by(signal) else { return false };
        self.world.ending.get_or_insert(how);
        self.world.begin_shutdown(signal == libc::SIGQUIT);
        true
    }

    /// Unchanged, to the one command; what should end a runner that has none any more ends it.
    fn pass_on(&mut self, signal: i32) {
        let ends = matches!(signal, libc::SIGTERM | libc::SIGINT | libc::SIGQUIT | libc::SIGHUP);
        if !self.world.pass_on(signal) && ends {
            self.world.begin_shutdown(false);
        }
    }
}
