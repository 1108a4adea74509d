//! What units say: lines, notify messages, readiness descriptors; and what probes have found.
//!
//! A unit can say nothing before its exec, so before listening to it the report of its exec is taken: the supervisor
//! hears of the spawn first, whatever order the kernel shows the descriptors in.

use super::World;
use crate::control::{self, LogLine, ProbeFinding};
use crate::linux::log::{Line, Read};
use crate::linux::probe::{Answer, Asker, Pushed, Tools};
use crate::linux::serve::News;
use crate::linux::{clock, tree};
use crate::plan::exec::Probe;
use crate::plan::policy::{ReadyBy, UnitId};
use crate::supervisor::{Event, Notify, Phase, ProbeKind, Verdict};

/// How long the compression of one log file may take.
const COMPRESS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

impl World {
    /// Output of a unit can be read.
    pub fn log_ready(&mut self, number: u32) {
        self.launch_ready(number);
        let Some(unit) = self.units.get_mut(number as usize) else { return };
        let read = unit.log.readable(clock::wall(), &mut self.console, &self.poller);
        self.heard_lines(UnitId(number), read);
    }

    pub(super) fn heard_lines(&mut self, id: UnitId, read: Read) {
        for trouble in &read.troubles {
            let unit = self.name(id);
            tracing::warn!(unit, "{unit}: {trouble}");
        }
        if let Some(path) = &read.compress {
            let deadline = self.clock.now() + COMPRESS_TIMEOUT;
            // Not having been compressed is no loss.
            if self.helpers.compress(path, id, deadline, &self.poller).is_err()
                && let Some(unit) = self.unit(id)
            {
                unit.log.compressed();
            }
        }
        self.record_lines(id, &read.lines);
        if self.has_audience && !read.lines.is_empty() {
            let name = self.name(id).to_owned();
            let lines = read.lines.iter().map(|line| log_line(&name, line)).collect();
            self.news.push(News::Lines(lines));
        }
        if read.matched {
            self.push_readiness(id);
        }
        self.signs_seen(id, read.signs);
    }

    /// Datagrams have come on a unit's notify socket.
    pub fn notify_ready(&mut self, number: u32) {
        self.launch_ready(number);
        let id = UnitId(number);
        let Some(unit) = self.units.get(number as usize) else { return };
        let Some(socket) = &unit.notify else { return };
        let evidence = unit.evidence(id);
        let user = self.plan.exec.get(number as usize).and_then(|exec| exec.identity.user.clone());
        let uid = || {
            let declared = user.as_deref().and_then(|name| crate::linux::identity::owner(name).ok());
            declared.map_or_else(nix::unistd::Uid::effective, |(uid, _)| uid).as_raw()
        };
        let generation = unit.generation;
        for message in socket.receive() {
            let Some((pid, sender_uid)) = message.sender else { continue };
            // Who has gone already can only be known by the user the kernel vouches for.
            let ours = tree::belongs(pid, &evidence).unwrap_or_else(|| sender_uid == uid());
            if !ours {
                tracing::warn!(
                    "{}: a notify message of {} is ignored: it is no process of this unit",
                    self.name(id),
                    tree::shown(pid)
                );
                continue;
            }
            for message in message.notes {
                if message == Notify::Ready
                    && let Some(unit) = self.units.get_mut(number as usize)
                {
                    unit.heard.notified = true;
                }
                self.inbox.push_back(Event::Notify { unit: id, generation, message });
            }
            self.push_readiness(id);
        }
    }

    /// A unit has written to its readiness descriptor, or closed it.
    pub fn ready_fd_ready(&mut self, number: u32) {
        self.launch_ready(number);
        let Some(unit) = self.units.get_mut(number as usize) else { return };
        let Some((fd, expected)) = &unit.ready_fd else { return };
        let expected = *expected;
        let mut bytes = [0; 256];
        match nix::unistd::read(fd, &mut bytes) {
            Ok(count) if bytes.get(..count).unwrap_or_default().contains(&b'\n') => {
                unit.heard.fds.insert(expected);
                unit.drop_ready_fd(&self.poller);
                self.push_readiness(UnitId(number));
            }
            // Not a whole line yet.
            Ok(1..) | Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {}
            Ok(_) | Err(_) => unit.drop_ready_fd(&self.poller),
        }
    }

    /// Tells the supervisor, once a start, that everything a unit was to say of its readiness has been said.
    fn push_readiness(&mut self, id: UnitId) {
        let number = id.0 as usize;
        let pushes = self.plan.policy.get(id).is_some_and(|policy| policy.ready.by == ReadyBy::Push);
        let (Some(exec), Some(unit)) = (self.plan.exec.get(number), self.units.get_mut(number)) else {
            return;
        };
        let runs = unit.current.as_ref().is_some_and(|current| current.phase == Phase::Main);
        if !pushes || !runs || unit.heard.pushed {
            return;
        }
        let said = exec.ready.probes.iter().all(|probe| match probe {
            Probe::Notify => unit.notified(),
            Probe::Fd(number) => unit.fd(*number),
            Probe::Log { pattern } => unit.log(pattern),
            Probe::Tcp { .. } | Probe::Http { .. } | Probe::Exec { .. } | Probe::Path { .. } => true,
        });
        if said {
            unit.heard.pushed = true;
            let generation = unit.generation;
            self.inbox.push_back(Event::ProbeResult {
                unit: id,
                generation,
                kind: ProbeKind::Ready,
                verdict: Verdict::Pass,
            });
        }
    }

    /// The socket of a probe can do something.
    pub fn probe_ready(&mut self, socket: u32) {
        let mut tools = Tools { poller: &self.poller, helpers: &mut self.helpers, now: self.clock.now() };
        if let Some(answer) = self.probes.ready(socket, &mut tools) {
            self.answered(answer);
        }
    }

    /// A helper has written.
    pub fn helper_ready(&mut self, id: u32) {
        self.helpers.readable(id, &self.poller);
    }

    /// A probe set has a verdict.
    pub(super) fn answered(&mut self, (asked, verdict): Answer) {
        let verdict = match verdict {
            Verdict::Pass => Verdict::Pass,
            Verdict::Fail(found) => Verdict::Fail(self.plan.masked(&found)),
            Verdict::Degraded(found) => Verdict::Degraded(self.plan.masked(&found)),
        };
        self.record_probe(asked.unit, asked.kind, &verdict);
        let ticket = match asked.by {
            Asker::Machine(generation) => {
                let (unit, kind) = (asked.unit, asked.kind);
                return self.inbox.push_back(Event::ProbeResult { unit, generation, kind, verdict });
            }
            Asker::Job(ticket) => ticket,
        };
        let Some(job) = self.jobs.get_mut(&ticket) else { return };
        let (verdict, detail) = match verdict {
            Verdict::Pass => ("pass", String::new()),
            Verdict::Fail(why) => ("fail", why),
            Verdict::Degraded(why) => ("degraded", why),
        };
        let probe = match asked.kind {
            ProbeKind::Ready => "ready",
            ProbeKind::Health => "health",
        };
        job.findings.push(ProbeFinding { probe: probe.to_owned(), verdict: verdict.to_owned(), detail });
        job.open = job.open.saturating_sub(1);
        if job.open == 0
            && let Some(job) = self.jobs.remove(&ticket)
        {
            self.news.push(News::Done(ticket, control::Outcome::Probed(job.findings)));
        }
    }
}

/// A line as clients see it.
pub(super) fn log_line(unit: &str, line: &Line) -> LogLine {
    LogLine { unit: unit.to_owned(), time: Some(line.at.as_secs_f64()), text: line.text.clone() }
}
