//! The loop: wait, hear, decide, act; and what stands around it.

use std::path::PathBuf;

use super::poller::{Interest, Token};
use super::rundir::{Missing, RunDir};
use super::serve::Server;
use super::signals::Signals;
use super::sys;
use super::upward::Messages;
use super::world::World;
use crate::plan::Plan;

pub use super::log::{Colour, Style};
pub use super::upward::ReadyWhen;

/// Exit status for a fault of the runner itself.
const EXIT_INTERNAL: i32 = 70;
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
    /// For the jitter of back-off.
    pub seed: u64,
    /// The node's role, for those who ask.
    pub role: Option<String>,
    /// The chosen profile, for those who ask.
    pub profile: Option<String>,
    /// The plan as `tenon plan --output json` shows it, for those who ask.
    pub plan_view: serde_json::Value,
}

/// Runs a plan until its end and returns the exit status. Takes over signals and standard error of this process.
pub fn run(plan: Plan, options: RunOptions) -> i32 {
    let messages = Messages::install();
    let taken = take_directory(&options);
    let (run_dir, missing) = match taken {
        Ok(dir) => (dir, None),
        Err(missing) => (None, Some(missing)),
    };
    let mut world = match World::new(plan, options.clone(), run_dir, messages) {
        Ok(world) => world,
        Err(_) => return EXIT_INTERNAL,
    };
    let mut runner = match missing {
        Some(Missing::Taken(who)) => {
            world.last_words(&who);
            return EXIT_CONFIG;
        }
        Some(Missing::NotWritable(why)) => {
            tracing::warn!("{why}; there is no control socket, everything else works");
            Loop::new(world, &options, None)
        }
        None => {
            let socket = options.socket.clone().or_else(|| world.socket_path());
            Loop::new(world, &options, socket)
        }
    };
    match &mut runner {
        Ok(runner) => runner.run(),
        Err((world, why)) => {
            world.last_words(why);
            EXIT_INTERNAL
        }
    }
}

fn take_directory(options: &RunOptions) -> Result<Option<RunDir>, Missing> {
    options.run_dir.as_deref().map(RunDir::take).transpose()
}

/// Everything the loop turns around.
struct Loop {
    world: World,
    server: Server,
    signals: Signals,
    foreground: bool,
    reap_again: bool,
}

impl Loop {
    fn new(
        world: World,
        options: &RunOptions,
        socket: Option<PathBuf>,
    ) -> Result<Self, (Box<World>, String)> {
        let prepared =
            sys::ensure_stdio().map_err(|error| format!("cannot open `/dev/null`: {error}")).and_then(|()| {
                Signals::take(options.foreground).map_err(|error| format!("cannot take signals: {error}"))
            });
        let signals = match prepared {
            Ok(signals) => signals,
            Err(why) => return Err((Box::new(world), why)),
        };
        let watched = world.poller.add(signals.fd(), Token::Signals, Interest::Read);
        if let Err(errno) = watched {
            return Err((Box::new(world), format!("cannot watch for signals: {}", errno.desc())));
        }
        if let Err(errno) = nix::sys::prctl::set_child_subreaper(true) {
            tracing::warn!("cannot become a subreaper: {}; orphans of units are lost", errno.desc());
        }
        let mut server = Server::default();
        if let Some(path) = socket
            && let Err(why) = server.listen(&path, options.control_group.as_deref(), &world.poller)
        {
            tracing::warn!("{why}; there is no control socket");
        }
        Ok(Self { world, server, signals, foreground: options.foreground, reap_again: false })
    }

    /// Turns until the supervisor has said its last word.
    fn run(&mut self) -> i32 {
        let mut ready = Vec::new();
        loop {
            self.act();
            if let Some(code) = self.world.exit {
                self.server.close(&self.world.poller);
                self.world.leave();
                return code;
            }
            let awake = self.world.has_work() || self.reap_again;
            if let Err(errno) = self.world.poller.wait(awake, &mut ready) {
                self.world.last_words(&format!("cannot wait for events: {}", errno.desc()));
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
        }
    }

    /// Events become actions, actions become facts, facts become news.
    fn act(&mut self) {
        self.world.has_audience = self.server.has_clients();
        self.world.pump();
        for news in std::mem::take(&mut self.world.news) {
            self.server.tell(&news, &mut self.world);
        }
        self.world.settle();
        self.server.flush(&self.world.poller);
    }

    fn signals(&mut self) {
        for signal in self.signals.pending() {
            match signal {
                libc::SIGCHLD => self.reap_again = self.world.reap(),
                _ if self.foreground => self.pass_on(signal),
                libc::SIGTERM | libc::SIGINT => self.world.begin_shutdown(false),
                libc::SIGQUIT => self.world.begin_shutdown(true),
                libc::SIGUSR1 => self.world.reopen(),
                libc::SIGUSR2 => self.world.tell_state(),
                libc::SIGHUP => tracing::warn!("reload is not available yet; SIGHUP changes nothing"),
                _ => {}
            }
        }
    }

    /// Unchanged, to the one command; what should end a runner that has none any more ends it.
    fn pass_on(&mut self, signal: i32) {
        let ends = matches!(signal, libc::SIGTERM | libc::SIGINT | libc::SIGQUIT | libc::SIGHUP);
        if !self.world.pass_on(signal) && ends {
            self.world.begin_shutdown(false);
        }
    }
}
