//! One connection: bytes in, bytes out, and what is under way in between. Pure; the shell moves the bytes.
//!
//! - Calls on one connection are answered in order: while one is under way, later ones wait undecoded (bounded by
//!   [`framing::BUFFER_MAX`](super::framing::BUFFER_MAX)).
//! - A client that does not read is let go: once [`OUTPUT_MAX`] bytes wait, the next message closes the session.
//! - Bytes that are no varlink call close the session, as varlink wants it.

use super::framing::{Decoder, MESSAGE_MAX, encode};
use super::message::{
    Access, Call, Error, EventRecord, EventsReply, LogLine, LogsReply, Outcome, ProbeReply, Reply,
};
use super::service::{Answer, Runner, Ticket, dispatch, waited};
use crate::supervisor::snapshot::Goal;

/// Bytes that may wait for a slow reader before the next message closes the session.
pub const OUTPUT_MAX: usize = 256 * 1024;

/// One connection.
#[derive(Debug)]
pub struct Session {
    access: Access,
    decoder: Decoder,
    output: Vec<u8>,
    under_way: UnderWay,
    /// The call under way wants no reply.
    oneway: bool,
    closing: bool,
}

/// What the current call waits for.
#[derive(Debug)]
enum UnderWay {
    Nothing,
    Job(Ticket),
    Wait { units: Vec<String>, goal: Goal },
    Events { units: Vec<String> },
    Logs { units: Vec<String> },
}

impl Session {
    /// A new connection of somebody with this access.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            decoder: Decoder::default(),
            output: Vec::new(),
            under_way: UnderWay::Nothing,
            oneway: false,
            closing: false,
        }
    }

    /// Takes what was read from the peer and answers what can be answered.
    pub fn feed(&mut self, bytes: &[u8], runner: &mut dyn Runner) {
        if self.closing {
            return;
        }
        match self.decoder.push(bytes) {
            Ok(()) => self.proceed(runner),
            Err(_) => self.closing = true,
        }
    }

    /// What is to be written to the peer.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// So many bytes of [`output`](Self::output) have been written.
    pub fn written(&mut self, count: usize) {
        self.output.drain(..count.min(self.output.len()));
    }

    /// The connection is to be closed, once what is in [`output`](Self::output) has been offered to the peer.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// The job this session waits for, if any.
    pub fn job(&self) -> Option<Ticket> {
        match self.under_way {
            UnderWay::Job(ticket) => Some(ticket),
            UnderWay::Nothing | UnderWay::Wait { .. } | UnderWay::Events { .. } | UnderWay::Logs { .. } => {
                None
            }
        }
    }

    /// Whether this session wants the lines of a unit as they come.
    pub fn follows(&self, unit: &str) -> bool {
        match &self.under_way {
            UnderWay::Logs { units } => units.iter().any(|name| name == unit),
            UnderWay::Nothing | UnderWay::Job(_) | UnderWay::Wait { .. } | UnderWay::Events { .. } => false,
        }
    }

    /// A job has come to an end. One that this session does not wait for is ignored.
    pub fn job_done(&mut self, ticket: Ticket, outcome: &Outcome, runner: &mut dyn Runner) {
        if self.job() == Some(ticket) {
            self.finish(&outcome_reply(outcome), runner);
        }
    }

    /// A unit has changed.
    pub fn unit_changed(&mut self, event: &EventRecord, runner: &mut dyn Runner) {
        let unit = &event.unit.unit;
        match &self.under_way {
            UnderWay::Events { units } if units.is_empty() || units.contains(unit) => {
                let reply = Reply::of(&EventsReply { events: vec![event.clone()] }).continued();
                self.send(&reply);
            }
            UnderWay::Wait { units, goal } if units.contains(unit) => {
                if let Some(reply) = waited(units, *goal, runner) {
                    self.finish(&reply, runner);
                }
            }
            UnderWay::Nothing
            | UnderWay::Job(_)
            | UnderWay::Wait { .. }
            | UnderWay::Events { .. }
            | UnderWay::Logs { .. } => {}
        }
    }

    /// Units have written lines. Only those that this session [follows](Self::follows) are sent.
    pub fn lines_written(&mut self, lines: &[LogLine]) {
        let wanted: Vec<LogLine> = lines.iter().filter(|line| self.follows(&line.unit)).cloned().collect();
        if !wanted.is_empty() {
            self.send(&Reply::of(&LogsReply { lines: wanted }).continued());
        }
    }

    /// Answers whole calls one after the other until one is under way.
    fn proceed(&mut self, runner: &mut dyn Runner) {
        while !self.closing && matches!(self.under_way, UnderWay::Nothing) {
            let call: Call = match self.decoder.next_message() {
                Ok(None) => return,
                Ok(Some(message)) => match serde_json::from_slice(message) {
                    Ok(call) => call,
                    Err(_) => return self.closing = true,
                },
                Err(_) => return self.closing = true,
            };
            self.oneway = call.oneway;
            match dispatch(&call, self.access, runner) {
                Answer::Reply(reply) => self.send(&reply),
                Answer::Job(ticket) => self.under_way = UnderWay::Job(ticket),
                Answer::Wait { units, goal } => self.under_way = UnderWay::Wait { units, goal },
                Answer::Events { first, units } => {
                    self.send(&first);
                    self.under_way = UnderWay::Events { units };
                }
                Answer::Logs { first, units } => {
                    self.send(&first);
                    self.under_way = UnderWay::Logs { units };
                }
            }
        }
    }

    /// Sends the last reply of the call under way and goes on with what waits behind it.
    fn finish(&mut self, reply: &Reply, runner: &mut dyn Runner) {
        self.send(reply);
        self.under_way = UnderWay::Nothing;
        self.proceed(runner);
    }

    fn send(&mut self, reply: &Reply) {
        if self.oneway || self.closing {
            return;
        }
        if self.output.len() > OUTPUT_MAX {
            self.closing = true;
            return;
        }
        let mut bytes = encode(reply);
        if bytes.len() > MESSAGE_MAX {
            bytes =
                encode(&Error::Failed("the answer is larger than a message may be".to_owned()).to_reply());
        }
        self.output.append(&mut bytes);
    }
}

fn outcome_reply(outcome: &Outcome) -> Reply {
    match outcome {
        Outcome::Done => Reply::default(),
        Outcome::Probed(findings) => Reply::of(&ProbeReply { findings: findings.clone() }),
        Outcome::Failed(why) => Error::Failed(why.clone()).to_reply(),
        Outcome::Refused(why) => Error::Refused(why.clone()).to_reply(),
        Outcome::Superseded => Error::Superseded.to_reply(),
    }
}
