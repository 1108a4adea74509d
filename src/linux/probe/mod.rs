//! Probes, asked in the loop: one attempt asks all probes of a set at once, has one time-out and gives one verdict.
//!
//! Numeric addresses and `localhost` are connected to without blocking; programs and other names go through a
//! [`Helpers`] child. What pushes (`notify`, `fd`, `log`) is looked up in what the unit has said since its start.

pub(super) mod http;
mod net;

use std::collections::BTreeMap;
use std::time::Duration;

use super::helper::{self, End, Finished, Helpers, Purpose};
use super::poller::Poller;
use super::spawn::{self, Stdio, What};
use super::words;
use crate::control::Ticket;
use crate::plan::exec::{HttpExpect, Probe, ProbeSet, UnitExec};
use crate::plan::policy::UnitId;
use crate::supervisor::{ExitStatus, Generation, ProbeKind, Time, Verdict};

use net::{Net, Step, Target};

/// Who wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The supervisor, about this start.
    Machine(Generation),
    /// Somebody who asked for it.
    Job(Ticket),
}

/// What an attempt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whose probes.
    pub unit: UnitId,
    /// Which set.
    pub kind: ProbeKind,
    /// Who wants to know.
    pub by: Asker,
}

/// What has been pushed since the start of the unit.
pub trait Pushed {
    /// `READY=1` came.
    fn notified(&self) -> bool;
    /// A newline came on this descriptor.
    fn fd(&self, number: i32) -> bool;
    /// A line matched.
    fn log(&self, pattern: &str) -> bool;
}

/// One probe of an attempt.
enum Item {
    /// Answered.
    Done(Verdict),
    /// A helper child is at it; the words that begin its failure.
    Helper { subject: String, then: Option<Target> },
    /// A connection is at it.
    Net(Box<Net>),
}

struct Attempt {
    asked: Asked,
    deadline: Time,
    timeout: Duration,
    degraded_if: Option<HttpExpect>,
    items: Vec<Item>,
}

/// All attempts under way.
#[derive(Default)]
pub struct Probes {
    next: u32,
    attempts: BTreeMap<u32, Attempt>,
    /// Socket number (token) → attempt and item.
    sockets: BTreeMap<u32, (u32, usize)>,
    next_socket: u32,
}

/// What probes work with.
pub struct Tools<'a> {
    /// For sockets.
    pub poller: &'a Poller,
    /// For children.
    pub helpers: &'a mut Helpers,
    /// Now.
    pub now: Time,
}

/// A verdict, and on what.
pub type Answer = (Asked, Verdict);

impl Probes {
    /// Begins an attempt; it may be over at once.
    pub fn ask(
        &mut self,
        asked: Asked,
        set: &ProbeSet,
        unit: &UnitExec,
        pushed: &dyn Pushed,
        tools: &mut Tools<'_>,
    ) -> Option<Answer> {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let deadline = tools.now + set.timeout;
        let mut attempt = Attempt {
            asked,
            deadline,
            timeout: set.timeout,
            degraded_if: set.degraded_if.clone(),
            items: Vec::new(),
        };
        for (index, probe) in set.probes.iter().enumerate() {
            let place = Purpose::Probe { attempt: id, item: index };
            let item = match probe {
                Probe::Notify => told(pushed.notified(), "`READY=1` has not come yet"),
                Probe::Fd(number) => told(pushed.fd(*number), &format!("nothing on descriptor {number} yet")),
                Probe::Log { pattern } => {
                    told(pushed.log(pattern), &format!("no line matches `{pattern}` yet"))
                }
                Probe::Path { path } => {
                    told(path.symlink_metadata().is_ok(), &format!("`{}` does not exist", path.display()))
                }
                Probe::Exec { argv } => program(argv, unit, place, deadline, tools),
                Probe::Tcp { address } => match Target::tcp(address) {
                    Ok(target) => self.connect(target, place, deadline, tools),
                    Err(why) => Item::Done(Verdict::Fail(why)),
                },
                Probe::Http { url, expect } => {
                    self.connect(Target::http(url, expect), place, deadline, tools)
                }
            };
            attempt.items.push(item);
        }
        self.attempts.insert(id, attempt);
        self.settle(id, tools)
    }

    fn connect(&mut self, target: Target, place: Purpose, deadline: Time, tools: &mut Tools<'_>) -> Item {
        let Some(name) = target.unresolved() else { return self.open(target, place, tools) };
        let subject = target.subject();
        match tools.helpers.resolve(&name, place, deadline, tools.poller) {
            Ok(()) => Item::Helper { subject, then: Some(target) },
            Err(why) => Item::Done(Verdict::Fail(format!("{subject}: {why}"))),
        }
    }

    fn open(&mut self, target: Target, place: Purpose, tools: &mut Tools<'_>) -> Item {
        let Purpose::Probe { attempt, item } = place else {
            return Item::Done(Verdict::Fail("not a probe".to_owned()));
        };
        let socket = self.next_socket;
        self.next_socket = self.next_socket.wrapping_add(1);
        self.sockets.insert(socket, (attempt, item));
        let degraded_if = self.attempts.get(&attempt).and_then(|attempt| attempt.degraded_if.clone());
        let mut net = Net::new(target, socket, degraded_if);
        match net.begin(tools.poller) {
            Step::Again => Item::Net(Box::new(net)),
            Step::Done(verdict) => {
                self.sockets.remove(&socket);
                Item::Done(verdict)
            }
        }
    }

    /// A socket can be read or written.
    pub fn ready(&mut self, socket: u32, tools: &mut Tools<'_>) -> Option<Answer> {
        let &(id, index) = self.sockets.get(&socket)?;
        let attempt = self.attempts.get_mut(&id)?;
        let degraded_if = attempt.degraded_if.clone();
        let item = attempt.items.get_mut(index)?;
        let Item::Net(net) = item else { return None };
        net.degraded_if = degraded_if;
        match net.ready(tools.poller) {
            Step::Again => None,
            Step::Done(verdict) => {
                *item = Item::Done(verdict);
                self.sockets.remove(&socket);
                self.settle(id, tools)
            }
        }
    }

    /// A helper child has an answer.
    pub fn helped(&mut self, finished: &Finished, tools: &mut Tools<'_>) -> Option<Answer> {
        let Purpose::Probe { attempt: id, item: index } = finished.purpose else { return None };
        let attempt = self.attempts.get_mut(&id)?;
        let timeout = attempt.timeout;
        let slot = attempt.items.get_mut(index)?;
        let Item::Helper { subject, then } = slot else { return None };
        let subject = std::mem::take(subject);
        let item = match then.take() {
            Some(mut target) => match helper::addresses(finished) {
                Ok(addresses) => {
                    target.resolved(&addresses);
                    self.open(target, finished.purpose, tools)
                }
                Err(why) => Item::Done(Verdict::Fail(format!("{subject}: {why}"))),
            },
            None => Item::Done(judge_program(&subject, finished, timeout)),
        };
        if let Some(slot) = self.attempts.get_mut(&id).and_then(|attempt| attempt.items.get_mut(index)) {
            *slot = item;
        }
        self.settle(id, tools)
    }

    /// Attempts whose time is over fail, with the probes that have not answered.
    pub fn expire(&mut self, tools: &mut Tools<'_>) -> Vec<Answer> {
        let over: Vec<u32> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.deadline <= tools.now)
            .map(|(&id, _)| id)
            .collect();
        let mut answers = Vec::new();
        for id in over {
            let Some(attempt) = self.attempts.get_mut(&id) else { continue };
            let within = words::span(attempt.timeout);
            for item in &mut attempt.items {
                let subject = match item {
                    Item::Done(_) => continue,
                    Item::Helper { subject, .. } => subject.clone(),
                    Item::Net(net) => {
                        net.close(tools.poller);
                        net.subject()
                    }
                };
                *item = Item::Done(Verdict::Fail(format!("{subject}: no answer within {within}")));
            }
            answers.extend(self.settle(id, tools));
        }
        answers
    }

    /// Nobody asks any more about this unit's start (jobs are left to end by themselves).
    pub fn forget(&mut self, unit: UnitId, tools: &mut Tools<'_>) {
        let gone: Vec<u32> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| {
                attempt.asked.unit == unit && matches!(attempt.asked.by, Asker::Machine(_))
            })
            .map(|(&id, _)| id)
            .collect();
        for id in gone {
            self.end(id, tools);
        }
    }

    /// Removes an attempt with all it holds.
    fn end(&mut self, id: u32, tools: &mut Tools<'_>) -> Option<Attempt> {
        let mut attempt = self.attempts.remove(&id)?;
        for item in &mut attempt.items {
            if let Item::Net(net) = item {
                net.close(tools.poller);
            }
        }
        self.sockets.retain(|_, (attempt, _)| *attempt != id);
        tools.helpers.cancel(
            |purpose| matches!(purpose, Purpose::Probe { attempt, .. } if attempt == id),
            tools.poller,
        );
        Some(attempt)
    }

    /// Gives the verdict, if all probes have answered.
    fn settle(&mut self, id: u32, tools: &mut Tools<'_>) -> Option<Answer> {
        let attempt = self.attempts.get(&id)?;
        if !attempt.items.iter().all(|item| matches!(item, Item::Done(_))) {
            return None;
        }
        let attempt = self.end(id, tools)?;
        let verdicts = attempt.items.into_iter().filter_map(|item| match item {
            Item::Done(verdict) => Some(verdict),
            Item::Helper { .. } | Item::Net(_) => None,
        });
        Some((attempt.asked, aggregate(verdicts)))
    }

    /// When the next attempt is over.
    pub fn deadline(&self) -> Option<Time> {
        self.attempts.values().map(|attempt| attempt.deadline).min()
    }
}

/// A failure of the unit itself counts before somebody else's; all of a kind are named.
fn aggregate(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let (mut failed, mut degraded) = (Vec::new(), Vec::new());
    for verdict in verdicts {
        match verdict {
            Verdict::Pass => {}
            Verdict::Fail(why) => failed.push(why),
            Verdict::Degraded(why) => degraded.push(why),
        }
    }
    match (failed.is_empty(), degraded.is_empty()) {
        (false, _) => Verdict::Fail(failed.join("; ")),
        (true, false) => Verdict::Degraded(degraded.join("; ")),
        (true, true) => Verdict::Pass,
    }
}

fn told(yes: bool, otherwise: &str) -> Item {
    Item::Done(if yes { Verdict::Pass } else { Verdict::Fail(otherwise.to_owned()) })
}

fn program(argv: &[String], unit: &UnitExec, place: Purpose, deadline: Time, tools: &mut Tools<'_>) -> Item {
    let subject = format!("`{}`", argv.join(" "));
    let started =
        Helpers::output_pipe().map_err(|errno| errno.desc().to_owned()).and_then(|(read, write)| {
            let stdio = Stdio::helper(write).map_err(|error| error.to_string())?;
            let what = What::helper(argv, stdio, None);
            let context = spawn::prepare(unit, what).map_err(|failure| failure.message)?;
            tools.helpers.run(context, read, place, deadline, tools.poller)
        });
    match started {
        Ok(()) => Item::Helper { subject, then: None },
        Err(why) => Item::Done(Verdict::Fail(format!("{subject}: {why}"))),
    }
}

fn judge_program(subject: &str, finished: &Finished, timeout: Duration) -> Verdict {
    let said = helper::last_line(&finished.output).map(|line| format!(": {line}")).unwrap_or_default();
    Verdict::Fail(match &finished.end {
        End::Exited(ExitStatus::Code(0)) => return Verdict::Pass,
        End::Exited(status) => format!("{subject} {}{said}", helper::status_words(*status)),
        End::TimedOut => format!("{subject}: no answer within {}", words::span(timeout)),
        End::NotStarted(why) => why.clone(),
    })
}

#[cfg(test)]
mod tests;
