//! The runner goes on as another binary in the same process, so its children stay its children.
//!
//! First the new binary, as a child, is started with the very arguments of this one and [`CHECK_ONLY`]: it reads the
//! command line, the configuration and a copy of the state, and says whether it could go on. Only then, and once no
//! child is on its way to exec, everything is left as a killed runner would leave it, all signals are blocked, and
//! `execve` follows. If that returns, this one goes on. What can fail after it: the new one's taking of the run
//! directory and of its signals; it then ends with the status it would end with at any start, and the units stay.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};

use super::World;
use crate::control::{Outcome, Ticket};
use crate::linux::clock;
use crate::linux::helper::{End, Finished, Helpers, Purpose};
use crate::linux::machine;
use crate::linux::recorder::Kind;
use crate::linux::signals::Blocked;
use crate::linux::slots::Slots;
use crate::linux::spawn::{self, Stdio, What};
use crate::plan::exec::UnitExec;
use crate::supervisor::ExitStatus;

/// The variable that names a copy of the state: the plan is made, the copy is read, and nothing is run.
pub const CHECK_ONLY: &str = "TENON_CHECK_STATE";

/// What a binary says on standard output that could read the copy.
pub const CAN_GO_ON: &str = "tenon: can go on from here";
/// The new binary reads everything within this time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// Whether this binary could go on from a state.
///
/// # Errors
/// In words, if not.
pub fn check_state(path: &Path) -> Result<(), String> {
    match Slots::open(path)? {
        (_, Some(_)) => Ok(()),
        (_, None) => Err("this version cannot read the state of the running one".to_owned()),
    }
}

impl World {
    /// Somebody asks for it.
    pub(super) fn begin_reexec(&mut self, ticket: Ticket, binary: Option<String>) {
        let binary = binary.map(PathBuf::from).or_else(own_binary);
        let asked = match binary {
            Some(binary) => self.ask_binary(ticket, &binary).map(|()| binary),
            None => Err("the path of the running binary is not known; name one with `--binary`".to_owned()),
        };
        match asked {
            Ok(binary) => self.asked_binary = Some(binary),
            Err(why) => self.done(ticket, Outcome::Failed(why)),
        }
    }

    fn ask_binary(&mut self, ticket: Ticket, binary: &Path) -> Result<(), String> {
        if self.shutting_down {
            return Err("the runner shuts down".to_owned());
        }
        if self.asked_binary.is_some() || self.successor.is_some() {
            return Err("another one is being asked already".to_owned());
        }
        let Some(dir) = self.run_dir.as_ref().filter(|_| self.slots.is_some()) else {
            return Err("without a run directory there is nothing the next one could go on from".to_owned());
        };
        let copy = dir.path().join("slots.check");
        let copied = std::fs::copy(dir.slots(), &copy);
        copied.map_err(|error| format!("cannot copy the state: {error}"))?;
        let mut argv = vec![binary.display().to_string()];
        for word in machine::arguments().into_iter().skip(1) {
            argv.push(word.into_string().map_err(|_| "an argument of this runner is no text".to_owned())?);
        }
        let mut env: Vec<(String, Vec<u8>)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_vec())))
            .collect();
        env.push((CHECK_ONLY.to_owned(), copy.as_os_str().as_bytes().to_vec()));
        let exec = UnitExec { env, ..UnitExec::default() };
        let (read, write) = Helpers::output_pipe().map_err(|errno| errno.desc().to_owned())?;
        let stdio = Stdio::helper(write).map_err(|error| error.to_string())?;
        let what = What::helper(&argv, stdio, self.nofile);
        let context = spawn::prepare(&exec, what).map_err(|failure| failure.message)?;
        let deadline = self.now() + CHECK_TIMEOUT;
        self.helpers.run(context, read, Purpose::Reexec(ticket.0), deadline, &self.poller)
    }

    /// The new binary has said whether it could go on.
    pub(super) fn binary_checked(&mut self, ticket: Ticket, finished: &Finished) {
        if let Some(dir) = &self.run_dir {
            // Nobody needs it any more; the next copy replaces it.
            let _ = std::fs::remove_file(dir.path().join("slots.check"));
        }
        let Some(binary) = self.asked_binary.take() else { return };
        let said = String::from_utf8_lossy(&finished.output);
        let outcome = match &finished.end {
            End::Exited(ExitStatus::Code(0)) if said.contains(CAN_GO_ON) => {
                self.successor = Some(binary);
                Outcome::Done
            }
            // Any program may exit with 0.
            End::Exited(ExitStatus::Code(0)) => Outcome::Failed(format!(
                "`{}` does not say that it can go on: is it a tenon?",
                binary.display()
            )),
            End::Exited(status) => {
                let words = status.words();
                Outcome::Failed(format!("`{}` could not go on ({words}): {}", binary.display(), said.trim()))
            }
            End::TimedOut => Outcome::Failed(format!("`{}` has not answered in time", binary.display())),
            End::NotStarted(why) => Outcome::Failed(why.clone()),
        };
        self.done(ticket, outcome);
    }

    /// Goes on as the new binary, once nothing is half done. Returns if there is nothing to do, or it cannot be.
    pub fn reexec_if_due(&mut self) {
        let half_done = self.has_work()
            || self.units.iter().any(|unit| {
                let launching = unit.current.as_ref().is_some_and(|current| current.launch.is_some());
                launching || unit.ready_fd.is_some()
            });
        if half_done {
            return;
        }
        let Some(binary) = self.successor.take() else { return };
        let why = self.become_binary(&binary);
        tracing::error!("cannot go on as `{}`: {why}; this one stays", binary.display());
    }

    fn become_binary(&mut self, binary: &Path) -> String {
        tracing::info!("goes on as `{}`", binary.display());
        self.record(Kind::Runner, &format!("goes on as `{}`", binary.display()));
        let wall = clock::wall();
        for unit in &mut self.units {
            unit.log.drain(wall, &mut self.console);
        }
        self.write_out_pipes();
        // Programs that read output go on to its end; the next runner starts its own.
        self.helpers.cancel(|purpose| !matches!(purpose, Purpose::LogPipe(_)), &self.poller);
        self.remember_all();
        self.write_messages();
        self.console.finish();
        let Ok(path) = CString::new(binary.as_os_str().as_bytes()) else {
            return "an argument or a variable holds a NUL byte".to_owned();
        };
        // Until the handlers of the new one stand, signals wait.
        let blocked = Blocked::all();
        let hand_over = |whether| self.slots.iter().for_each(|slots| slots.hand_over(whether));
        hand_over(true);
        let why = machine::execute_anew(&path, self.nofile);
        hand_over(false);
        if let Some((_, hard)) = self.nofile {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        drop(blocked);
        why
    }
}

/// Where the running binary lies; if it was replaced there, the new one is meant.
fn own_binary() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/exe").ok()?;
    let bytes = path.as_os_str().as_bytes();
    let there = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    Some(PathBuf::from(OsString::from_vec(there.to_vec())))
}
