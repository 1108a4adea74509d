//! The programs that units' output is piped into (`log.pipe`): when they run, and how they end.

use super::World;
use crate::linux::helper::{End, Finished, Helpers, Purpose, last_line};
use crate::linux::spawn::{self, Stdio, What};
use crate::plan::policy::UnitId;

/// Looks at those who still read when the runner leaves, and the pause between two of them, in milliseconds.
const LAST_LOOKS: u32 = 60;
const LAST_PAUSE: u16 = 50;

impl World {
    /// The pipe of a unit's output has room again.
    pub fn pipe_ready(&mut self, number: u32) {
        if let Some(feed) = self.units.get_mut(number as usize).and_then(|unit| unit.log.feed()) {
            feed.flush(number, &self.poller);
        }
    }

    /// The end of a turn: new lines are written, and programs that are due are started.
    pub(super) fn feed_pipes(&mut self) {
        let now = self.clock.now();
        for number in 0..self.units.len() {
            let Some(feed) = self.units.get_mut(number).and_then(|unit| unit.log.feed()) else { continue };
            feed.flush(number as u32, &self.poller);
            if feed.wants_program(now) {
                self.start_reader(UnitId(number as u32));
            }
        }
    }

    fn start_reader(&mut self, id: UnitId) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let now = self.clock.now();
        let started = self.spawn_reader(id, ticket);
        let Some(feed) = self.units.get_mut(id.0 as usize).and_then(|unit| unit.log.feed()) else { return };
        let trouble = match started {
            Ok(()) => {
                feed.started(ticket, now);
                None
            }
            Err(why) => feed.ended(&format!("cannot be started ({why})"), now),
        };
        if let Some(trouble) = trouble {
            tracing::warn!("{}: {trouble}", self.name(id));
        }
    }

    fn spawn_reader(&mut self, id: UnitId, ticket: u64) -> Result<(), String> {
        let number = id.0 as usize;
        let exec = self.plan.exec.get(number).ok_or("no such unit")?;
        let feed = self.units.get_mut(number).and_then(|unit| unit.log.feed()).ok_or("no such unit")?;
        let argv = feed.argv().to_vec();
        let (read, write) = Helpers::output_pipe().map_err(|errno| errno.desc().to_owned())?;
        let stdio = Stdio::helper(write).map_err(|error| error.to_string())?;
        let stdio = Stdio { input: Some(feed.input().map_err(|error| error.to_string())?), ..stdio };
        let what = What::helper(&argv, stdio, self.nofile);
        let context = spawn::prepare(exec, what).map_err(|failure| failure.message)?;
        self.helpers.run_on(context, read, Purpose::LogPipe(ticket), &self.poller)
    }

    /// A program has ended. Another one may be fed by now: then nobody cares.
    pub(super) fn reader_ended(&mut self, ticket: u64, finished: &Finished) {
        let now = self.clock.now();
        let said = last_line(&finished.output).map(|line| format!(": {}", self.plan.masked(&line)));
        let said = said.unwrap_or_default();
        let how = match &finished.end {
            End::Exited(status) => format!("has ended ({}{said})", status.words()),
            End::NotStarted(why) => format!("cannot be started ({why})"),
            End::TimedOut => "was ended".to_owned(),
        };
        let found = self.units.iter_mut().enumerate().find_map(|(number, unit)| {
            unit.log.feed().filter(|feed| feed.is_fed_to(ticket)).map(|feed| (number, feed))
        });
        let Some((number, feed)) = found else { return };
        if let Some(trouble) = feed.ended(&how, now) {
            tracing::warn!("{}: {trouble}", self.name(UnitId(number as u32)));
        }
    }

    /// Before another binary takes over, or the last word of all: as much as possible is in the pipes.
    pub(super) fn write_out_pipes(&mut self) {
        for _ in 0..LAST_LOOKS {
            let mut waiting = false;
            for unit in &mut self.units {
                waiting |= unit.log.feed().is_some_and(|feed| !feed.write_all());
            }
            if !waiting {
                return;
            }
            // Nothing else is left to be done meanwhile.
            let _ = nix::poll::poll(&mut [], LAST_PAUSE);
        }
    }

    /// Before leaving: the programs read what there is, see the end, and are waited for; but not for ever.
    pub(super) fn finish_pipes(&mut self) {
        for _ in 0..LAST_LOOKS {
            self.reap();
            for ticket in self.helpers.gone() {
                // Reaped elsewhere.
                let nobody =
                    Finished { purpose: Purpose::LogPipe(ticket), end: End::TimedOut, output: Vec::new() };
                self.reader_ended(ticket, &nobody);
            }
            let mut done = true;
            for number in 0..self.units.len() {
                let Some(feed) = self.units.get_mut(number).and_then(|unit| unit.log.feed()) else {
                    continue;
                };
                if feed.finish() {
                    continue;
                }
                done = false;
                feed.hurry();
                if feed.wants_program(self.clock.now()) {
                    self.start_reader(UnitId(number as u32));
                }
            }
            if done {
                return;
            }
            let _ = nix::poll::poll(&mut [], LAST_PAUSE);
        }
        for number in 0..self.units.len() {
            let Some(feed) = self.units.get_mut(number).and_then(|unit| unit.log.feed()) else { continue };
            if !feed.finish() {
                let (left, program) = (feed.left(), feed.argv().first().cloned().unwrap_or_default());
                let lines = if left == 0 { String::new() } else { format!("; {left} lines are lost") };
                let name = self.name(UnitId(number as u32));
                tracing::warn!("{name}: `{program}` of `log.pipe` has not taken its end in time{lines}");
            }
        }
        self.helpers.cancel(|purpose| matches!(purpose, Purpose::LogPipe(_)), &self.poller);
    }
}
