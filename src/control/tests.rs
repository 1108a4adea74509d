//! What a client sees: calls as text in, replies as text out, over a runner that is a plain value.
#![expect(
    clippy::needless_pass_by_value,
    reason = "`check(method, json!(…), json!(…))` reads better without `&`"
)]

use super::client::{Client, ClientError};
use super::message::{HoldCall, StatusReply, WaitCall};
use super::*;
use crate::supervisor::snapshot::{Goal, Progress, State, UnitSnapshot, WhyLink};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A runner of three units that remembers what was asked of it.
struct Fake {
    units: Vec<UnitSnapshot>,
    events: Vec<EventRecord>,
    begun: Vec<JobRequest>,
    shutdown: Option<(bool, Option<MachineEnd>)>,
}

pub(super) fn unit(name: &str, state: State) -> UnitSnapshot {
    UnitSnapshot { since: 1.0, ..UnitSnapshot::sample(name, state) }
}

fn event(sequence: u64, unit: UnitSnapshot) -> EventRecord {
    EventRecord { sequence, time: 1000.0 + sequence as f64, unit, sign: None }
}

impl Fake {
    fn new() -> Self {
        Self {
            units: vec![
                unit("master", State::Ready),
                unit("store", State::Starting),
                unit("engine@0", State::Waiting),
            ],
            events: vec![
                event(1, unit("master", State::Starting)),
                event(2, unit("master", State::Ready)),
                event(3, unit("store", State::Starting)),
            ],
            begun: Vec::new(),
            shutdown: None,
        }
    }
}

impl Runner for Fake {
    fn info(&self) -> RunnerInfo {
        RunnerInfo {
            version: "0".to_owned(),
            pid: 1,
            now: 9.0,
            plan: "p".to_owned(),
            ..RunnerInfo::default()
        }
    }
    fn units(&self) -> Vec<UnitSnapshot> {
        self.units.clone()
    }
    fn has_label(&self, unit: &str, label: &str) -> bool {
        unit == "engine@0" && label == "engine"
    }
    fn info_lines(&self, unit: &str) -> Vec<(String, String)> {
        if unit == "store" { vec![("segment".to_owned(), "400GB".to_owned())] } else { Vec::new() }
    }
    fn progress(&self, unit: &str, goal: Goal) -> Progress {
        let unit = self.units.iter().find(|candidate| candidate.unit == unit).unwrap();
        match (goal, unit.state) {
            (Goal::Ready, State::Ready) | (Goal::Down, State::Inactive) => Progress::Reached,
            (Goal::Ready, State::Failed) => Progress::Hopeless(format!("{} gave up", unit.unit)),
            _ => Progress::Pending,
        }
    }
    fn why(&self, unit: &str) -> Vec<WhyLink> {
        let unit = self.units.iter().find(|candidate| candidate.unit == unit).unwrap();
        vec![WhyLink {
            unit: unit.unit.clone(),
            state: unit.state,
            detail: unit.detail.clone(),
            degraded: unit.degraded.clone(),
            cause: unit.cause.clone(),
            since: unit.since,
            retry_at: unit.retry_at,
        }]
    }
    fn events(&self) -> Vec<EventRecord> {
        self.events.clone()
    }
    fn logs(&self, unit: &str, lines: usize) -> Result<Vec<LogLine>, Error> {
        if unit == "master" {
            return Err(Error::Unavailable("the output of `master` is not kept".to_owned()));
        }
        let line = |at: usize| LogLine { unit: unit.to_owned(), time: None, text: format!("line {at}") };
        Ok((1..=20).map(line).skip(20_usize.saturating_sub(lines)).collect())
    }
    fn begin(&mut self, request: JobRequest) -> Result<Ticket, Error> {
        self.begun.push(request);
        Ok(Ticket(self.begun.len() as u64))
    }
    fn plan(&self) -> Value {
        json!({ "units": [] })
    }
    fn shutdown(&mut self, fast: bool, machine: Option<MachineEnd>) -> Result<(), Error> {
        if machine == Some(MachineEnd::Halt) {
            return Err(Error::Unavailable("this runner is not the first process of a machine".to_owned()));
        }
        self.shutdown = Some((fast, machine));
        Ok(())
    }
}

/// What has been written so far, one value a message.
fn taken(session: &mut Session) -> Vec<Value> {
    let output = session.output().to_vec();
    session.written(output.len());
    output
        .split(|byte| *byte == 0)
        .filter(|message| !message.is_empty())
        .map(|message| serde_json::from_slice(message).unwrap())
        .collect()
}

fn send(session: &mut Session, runner: &mut Fake, call: &Value) {
    let mut bytes = call.to_string().into_bytes();
    bytes.push(0);
    session.feed(&bytes, runner);
}

/// One call to a new runner, and the replies that come at once.
fn call(method: &str, parameters: &Value) -> Vec<Value> {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    send(&mut session, &mut runner, &json!({ "method": method, "parameters": parameters }));
    taken(&mut session)
}

/// The call is answered at once, with this.
fn check(method: &str, parameters: Value, expected: Value) {
    assert_eq!(call(method, &parameters), [expected], "{method} {parameters}");
}

/// The call begins this job, and is answered with what its outcome says.
fn check_job(method: &str, parameters: Value, expected: JobRequest) {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    send(
        &mut session,
        &mut runner,
        &json!({ "method": format!("dev.tenon.Runner.{method}"), "parameters": parameters }),
    );
    assert_eq!(runner.begun, [expected]);
    assert_eq!(taken(&mut session), [] as [Value; 0], "no reply before the job is done");
    session.job_done(Ticket(7), &Outcome::Done, &mut runner);
    assert_eq!(taken(&mut session), [] as [Value; 0], "somebody else's job");
    session.job_done(Ticket(1), &Outcome::Done, &mut runner);
    assert_eq!(taken(&mut session), [json!({ "parameters": {} })]);
}

fn error(name: &str, parameters: Value) -> Value {
    json!({ "error": name, "parameters": parameters })
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn introspection_describes_both_interfaces() {
    let info = call("org.varlink.service.GetInfo", &json!({}));
    assert_eq!(info[0]["parameters"]["interfaces"], json!(["org.varlink.service", "dev.tenon.Runner"]));
    for interface in ["org.varlink.service", "dev.tenon.Runner"] {
        let reply =
            call("org.varlink.service.GetInterfaceDescription", &json!({ "interface": interface })).remove(0);
        let text = reply["parameters"]["description"].as_str().unwrap();
        assert!(text.lines().any(|line| line == format!("interface {interface}")), "{text}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    check(
        "nonsense",
        json!({}),
        error("org.varlink.service.InterfaceNotFound", json!({ "interface": "nonsense" })),
    );
    check("a.b.C", json!({}), error("org.varlink.service.InterfaceNotFound", json!({ "interface": "a.b" })));
    check(
        "dev.tenon.Runner.Explode",
        json!({}),
        error("org.varlink.service.MethodNotFound", json!({ "method": "Explode" })),
    );
    check(
        "org.varlink.service.GetInterfaceDescription",
        json!({ "interface": "x.y" }),
        error("org.varlink.service.InterfaceNotFound", json!({ "interface": "x.y" })),
    );
    check(
        "dev.tenon.Runner.Start",
        json!({}),
        error("org.varlink.service.InvalidParameter", json!({ "parameter": "units" })),
    );
    check(
        "dev.tenon.Runner.Start",
        json!({ "units": [] }),
        error("org.varlink.service.InvalidParameter", json!({ "parameter": "units" })),
    );
    check(
        "dev.tenon.Runner.Stop",
        json!({ "units": ["store"], "force": true }),
        error("org.varlink.service.InvalidParameter", json!({ "parameter": "force" })),
    );
    check(
        "dev.tenon.Runner.Kill",
        json!({ "unit": "store", "signal": "SIGNONE" }),
        error("org.varlink.service.InvalidParameter", json!({ "parameter": "signal" })),
    );
    check(
        "dev.tenon.Runner.Why",
        json!({ "unit": "stroe" }),
        error("dev.tenon.Runner.UnknownUnit", json!({ "unit": "stroe", "suggestions": ["store"] })),
    );
    check(
        "dev.tenon.Runner.Status",
        json!({ "units": ["zzz*"] }),
        error("dev.tenon.Runner.UnknownUnit", json!({ "unit": "zzz*", "suggestions": [] })),
    );
    check(
        "dev.tenon.Runner.Logs",
        json!({ "units": ["master"] }),
        error("dev.tenon.Runner.Unavailable", json!({ "message": "the output of `master` is not kept" })),
    );
}

#[test]
fn units_are_chosen_by_name_glob_and_label_in_plan_order() {
    let chosen = |selectors: Value| {
        let reply = call("dev.tenon.Runner.Status", &json!({ "units": selectors })).remove(0);
        let units = reply["parameters"]["units"].as_array().unwrap().clone();
        units.iter().map(|unit| unit["unit"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(chosen(json!([])), ["master", "store", "engine@0"]);
    assert_eq!(chosen(json!(["store"])), ["store"]);
    assert_eq!(chosen(json!(["engine@*", "master", "master"])), ["master", "engine@0"]);
    assert_eq!(chosen(json!(["label:engine"])), ["engine@0"]);
}

#[test]
fn status_carries_the_lines_that_units_have_of_their_own() {
    let info = |units: Value| {
        call("dev.tenon.Runner.Status", &json!({ "units": units })).remove(0)["parameters"]["info"].clone()
    };
    assert_eq!(info(json!([])), json!([{ "unit": "store", "name": "segment", "value": "400GB" }]));
    assert_eq!(info(json!(["master"])), json!([]));
}

#[test]
fn changes_are_jobs_answered_by_their_outcome() {
    let units = names(&["store"]);
    check_job(
        "Start",
        json!({ "units": ["store"] }),
        JobRequest::Start { units: units.clone(), replace: false },
    );
    check_job(
        "Start",
        json!({ "units": ["store"], "replace": true }),
        JobRequest::Start { units: units.clone(), replace: true },
    );
    check_job(
        "Stop",
        json!({ "units": ["sto*"] }),
        JobRequest::Stop { units: units.clone(), with_dependents: false },
    );
    check_job(
        "Restart",
        json!({ "units": ["store"], "with_dependents": true }),
        JobRequest::Restart { units, with_dependents: true },
    );
    check_job(
        "Kill",
        json!({ "unit": "store" }),
        JobRequest::Kill { unit: "store".to_owned(), signal: 15, scope: KillScope::Main },
    );
    for (signal, number) in [("SIGHUP", 1), ("kill", 9), ("34", 34)] {
        check_job(
            "Kill",
            json!({ "unit": "store", "signal": signal, "scope": "tree" }),
            JobRequest::Kill { unit: "store".to_owned(), signal: number, scope: KillScope::Tree },
        );
    }
    check_job("Probe", json!({ "unit": "store" }), JobRequest::Probe { unit: "store".to_owned() });
}

#[test]
fn outcomes_carry_the_runners_words() {
    let outcome = |outcome: Outcome| {
        let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
        let stop = json!({ "method": "dev.tenon.Runner.Stop", "parameters": { "units": ["store"] } });
        send(&mut session, &mut runner, &stop);
        session.job_done(Ticket(1), &outcome, &mut runner);
        taken(&mut session).remove(0)
    };
    assert_eq!(
        outcome(Outcome::Refused("store holds data".to_owned())),
        error("dev.tenon.Runner.Refused", json!({ "message": "store holds data" }))
    );
    assert_eq!(
        outcome(Outcome::Failed("exited with 1".to_owned())),
        error("dev.tenon.Runner.Failed", json!({ "message": "exited with 1" }))
    );
    assert_eq!(outcome(Outcome::Superseded)["error"], "dev.tenon.Runner.Superseded");
}

#[test]
fn strangers_may_look_at_the_interface_and_nothing_else() {
    let (mut session, mut runner) = (Session::new(Access::Introspection), Fake::new());
    send(&mut session, &mut runner, &json!({ "method": "org.varlink.service.GetInfo" }));
    assert_eq!(taken(&mut session)[0].get("error"), None);
    for method in ["Status", "Stop", "Shutdown", "Events", "GetPlan"] {
        send(&mut session, &mut runner, &json!({ "method": format!("dev.tenon.Runner.{method}") }));
        assert_eq!(taken(&mut session)[0]["error"], "dev.tenon.Runner.NotPermitted");
    }
    assert_eq!((runner.begun.len(), runner.shutdown), (0, None));
}

#[test]
fn calls_on_one_connection_are_answered_in_order() {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    send(
        &mut session,
        &mut runner,
        &json!({ "method": "dev.tenon.Runner.Start", "parameters": { "units": ["store"] } }),
    );
    send(&mut session, &mut runner, &json!({ "method": "dev.tenon.Runner.Shutdown" }));
    assert_eq!(runner.shutdown, None, "the second call waits for the first");
    session.job_done(Ticket(1), &Outcome::Failed("no".to_owned()), &mut runner);
    assert_eq!(runner.shutdown, Some((false, None)));
    let replies = taken(&mut session);
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0]["error"], "dev.tenon.Runner.Failed");
}

#[test]
fn what_becomes_of_the_machine_is_said_to_who_has_one() {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    let call = |end: &str| json!({ "method": "dev.tenon.Runner.Shutdown", "parameters": { "machine": end } });
    send(&mut session, &mut runner, &call("reboot"));
    assert_eq!(runner.shutdown, Some((false, Some(MachineEnd::Reboot))));
    send(&mut session, &mut runner, &call("halt"));
    send(&mut session, &mut runner, &call("sleep"));
    let replies = taken(&mut session);
    assert_eq!(replies[0].get("error"), None);
    assert_eq!(replies[1]["error"], "dev.tenon.Runner.Unavailable");
    assert_eq!(replies[2]["error"], "org.varlink.service.InvalidParameter");
}

#[test]
fn a_oneway_call_is_done_and_not_answered() {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    let shutdown =
        json!({ "method": "dev.tenon.Runner.Shutdown", "oneway": true, "parameters": { "fast": true } });
    send(&mut session, &mut runner, &shutdown);
    assert_eq!(runner.shutdown, Some((true, None)));
    assert_eq!(session.output(), b"");
}

#[test]
fn events_tell_the_past_once_and_with_more_the_future() {
    let sequences = |reply: &Value| {
        let events = reply["parameters"]["events"].as_array().unwrap();
        events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let past = |parameters: Value| sequences(&call("dev.tenon.Runner.Events", &parameters)[0]);
    assert_eq!(past(json!({})), [1, 2, 3]);
    assert_eq!(past(json!({ "last": 1 })), [3]);
    assert_eq!(past(json!({ "units": ["master"] })), [1, 2]);
    assert_eq!(past(json!({ "units": ["master"], "last": 0 })), [] as [u64; 0]);

    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    let follow =
        json!({ "method": "dev.tenon.Runner.Events", "more": true, "parameters": { "units": ["store"] } });
    send(&mut session, &mut runner, &follow);
    session.unit_changed(&event(4, unit("master", State::Backoff)), &mut runner);
    session.unit_changed(&event(5, unit("store", State::Ready)), &mut runner);
    let replies = taken(&mut session);
    assert_eq!(replies.iter().map(sequences).collect::<Vec<_>>(), [vec![3], vec![5]]);
    assert!(replies.iter().all(|reply| reply["continues"] == true));
}

#[test]
fn logs_give_the_last_lines_and_follow_the_units_asked_for() {
    let reply = call("dev.tenon.Runner.Logs", &json!({ "units": ["store"], "lines": 2 })).remove(0);
    let texts = |reply: &Value| {
        let lines = reply["parameters"]["lines"].as_array().unwrap();
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&reply), ["line 19", "line 20"]);
    assert_eq!(reply.get("continues"), None);

    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    let follow = json!({
        "method": "dev.tenon.Runner.Logs", "more": true, "parameters": { "units": ["store"], "lines": 1 }
    });
    send(&mut session, &mut runner, &follow);
    let line = |unit: &str, text: &str| LogLine { unit: unit.to_owned(), time: None, text: text.to_owned() };
    assert!(session.follows("store") && !session.follows("master"));
    session.lines_written(&[line("master", "not asked for"), line("store", "new")]);
    session.lines_written(&[line("master", "not asked for")]);
    let replies = taken(&mut session);
    assert_eq!(replies.iter().map(texts).collect::<Vec<_>>(), [["line 20"], ["new"]]);
}

#[test]
fn wait_answers_when_all_have_got_there_or_one_never_will() {
    let waiting = |until: &str, units: Value| {
        let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
        let wait =
            json!({ "method": "dev.tenon.Runner.Wait", "parameters": { "units": units, "until": until } });
        send(&mut session, &mut runner, &wait);
        (session, runner)
    };
    let (mut session, _) = waiting("ready", json!(["master"]));
    assert_eq!(taken(&mut session)[0]["parameters"]["units"][0]["unit"], "master", "there already");

    let (mut session, mut runner) = waiting("ready", json!(["master", "store"]));
    assert_eq!(taken(&mut session), [] as [Value; 0]);
    session.unit_changed(&event(4, unit("engine@0", State::Failed)), &mut runner);
    assert_eq!(taken(&mut session), [] as [Value; 0], "not waited for");
    runner.units[1] = unit("store", State::Ready);
    session.unit_changed(&event(5, unit("store", State::Ready)), &mut runner);
    assert_eq!(taken(&mut session)[0]["parameters"]["units"].as_array().map(Vec::len), Some(2));

    let (mut session, mut runner) = waiting("ready", json!(["master", "store"]));
    runner.units[1] = unit("store", State::Failed);
    session.unit_changed(&event(4, unit("store", State::Failed)), &mut runner);
    assert_eq!(
        taken(&mut session),
        [error("dev.tenon.Runner.Failed", json!({ "message": "store gave up" }))]
    );

    let (mut session, mut runner) = waiting("down", json!(["store"]));
    runner.units[1] = unit("store", State::Stopping);
    session.unit_changed(&event(4, unit("store", State::Stopping)), &mut runner);
    assert_eq!(taken(&mut session), [] as [Value; 0]);
    runner.units[1] = unit("store", State::Inactive);
    session.unit_changed(&event(5, unit("store", State::Inactive)), &mut runner);
    assert_eq!(taken(&mut session)[0].get("error"), None);
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    send(&mut session, &mut runner, &json!({ "method": "dev.tenon.Runner.Events", "more": true }));
    let mut sent = 0;
    while !session.is_closing() {
        session.unit_changed(&event(sent, unit("store", State::Ready)), &mut runner);
        sent += 1;
        assert!(session.output().len() < OUTPUT_MAX + 4096 && sent < 10_000, "bounded");
    }
    session.written(usize::MAX);
    session.unit_changed(&event(sent, unit("store", State::Ready)), &mut runner);
    assert_eq!(session.output(), b"", "nothing more for a session that is closing");
}

#[test]
fn bytes_that_are_no_call_close_the_session() {
    for bytes in ["hello\0", "[]\0", "{}\0", "\0", "{\"method\": 1}\0"] {
        let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
        session.feed(bytes.as_bytes(), &mut runner);
        assert!(session.is_closing(), "{bytes:?}");
        assert_eq!(session.output(), b"");
    }
}

#[test]
fn why_is_the_runners_own_chain() {
    check(
        "dev.tenon.Runner.Why",
        json!({ "unit": "store" }),
        json!({ "parameters": { "chain": [
            { "unit": "store", "state": "starting", "cause": "start requested", "since": 1.0 }
        ], "signs": [] } }),
    );
}

/// The members of `type NAME (…)` or of a method's parameters or reply, as the description has them.
fn described(after: &str) -> Vec<String> {
    let start = DESCRIPTION.find(after).unwrap_or_else(|| panic!("`{after}` is not described")) + after.len();
    let body: String = DESCRIPTION[start..]
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join(" ");
    let mut depth = 0;
    let mut member = String::new();
    let mut members = Vec::new();
    for letter in body.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match (depth, letter) {
            (0, _) | (1, ',') => members.push(std::mem::take(&mut member)),
            (1, '(') => {}
            _ => member.push(letter),
        }
        if depth == 0 {
            break;
        }
    }
    let name = |member: &String| member.split(':').next().unwrap_or("").trim().to_owned();
    members.iter().map(name).filter(|name| !name.is_empty()).collect()
}

#[test]
fn records_have_the_members_that_the_description_names() {
    fn keys<T: serde::Serialize>(value: &T) -> Vec<String> {
        serde_json::to_value(value).unwrap().as_object().unwrap().keys().cloned().collect()
    }
    let mut full = unit("x", State::Ready);
    full.detail = Some(String::new());
    full.degraded = Some(String::new());
    full.pid = Some(1);
    full.last_exit = Some(String::new());
    full.held = true;
    full.says = Some(String::new());
    full.retry_at = Some(0.0);
    full.waits_for = names(&["y"]);
    assert_eq!(keys(&full), described("type Unit "));
    let info =
        RunnerInfo { role: Some(String::new()), profile: Some(String::new()), ..RunnerInfo::default() };
    assert_eq!(keys(&info), described("type RunnerInfo "));
    let sign = Sign {
        unit: "x".to_owned(),
        name: "E14".to_owned(),
        hint: String::new(),
        line: String::new(),
        count: 1,
        time: 0.0,
    };
    assert_eq!(keys(&sign), described("type Sign "));
    let event = EventRecord { sign: Some(sign), ..event(1, full) };
    assert_eq!(keys(&event), described("type Event "));
    let line = LogLine { unit: String::new(), time: Some(0.0), text: String::new() };
    assert_eq!(keys(&line), described("type LogLine "));
    let states = described("type State ");
    for state in ["inactive", "waiting", "preparing", "starting", "ready", "unhealthy", "stopping"] {
        assert!(states.iter().any(|known| known == state));
    }
    assert_eq!(states.len(), 11);
    let hold = HoldCall { units: Some(Vec::new()) };
    assert_eq!((keys(&hold), keys(&hold)), (described("method Hold"), described("method Unhold")));
    let wait = WaitCall { units: Vec::new(), until: Some(Goal::Ready) };
    assert_eq!(keys(&wait), described("method Wait"));
}

/// A server over one end of a socket pair, as the shell would drive it, until the client leaves.
fn serve(mut stream: UnixStream) {
    let (mut session, mut runner) = (Session::new(Access::Full), Fake::new());
    let mut chunk = [0; 7];
    while let Ok(count) = stream.read(&mut chunk) {
        if count == 0 || session.is_closing() {
            return;
        }
        session.feed(&chunk[..count], &mut runner);
        if let Some(ticket) = session.job() {
            session.job_done(ticket, &Outcome::Done, &mut runner);
        }
        if session.follows("store") {
            let line = LogLine { unit: "store".to_owned(), time: None, text: "followed".to_owned() };
            session.lines_written(&[line]);
        }
        let output = session.output().to_vec();
        stream.write_all(&output).unwrap();
        session.written(output.len());
        if runner.shutdown.is_some() {
            return;
        }
    }
}

#[test]
fn the_client_calls_streams_and_sees_the_end() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || serve(theirs));
    let mut client = Client::over(ours, Path::new("test"));
    let soon = Some(Duration::from_secs(10));

    let status: StatusReply = client.call("Status", &message::StatusCall::default(), soon).unwrap();
    assert_eq!(status.units, Fake::new().units);
    let start = message::StartCall { units: names(&["store"]), replace: None };
    let _: serde_json::Map<String, Value> = client.call("Start", &start, soon).unwrap();
    let unknown = message::UnitCall { unit: "maste".to_owned() };
    match client.call::<_, Value>("Why", &unknown, soon) {
        Err(ClientError::Runner(Error::UnknownUnit { unit, suggestions })) => {
            assert_eq!((unit.as_str(), suggestions), ("maste", names(&["master"])));
        }
        other => panic!("{other:?}"),
    }
    let follow = message::LogsCall { units: names(&["store"]), lines: Some(1), follow: Some(true) };
    let mut texts = Vec::new();
    client
        .stream("Logs", &follow, |reply: message::LogsReply| {
            texts.extend(reply.lines.into_iter().map(|line| line.text));
            if texts.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
    assert_eq!(texts, ["line 20", "followed"]);
    drop(client);
    server.join().unwrap();
}

#[test]
fn a_runner_that_is_not_there_or_says_nothing_is_told_apart() {
    let nowhere = Path::new("/nonexistent/tenon/control");
    assert!(matches!(Client::connect(nowhere), Err(ClientError::NotRunning { path }) if path == nowhere));
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut client = Client::over(ours, nowhere);
    let brief = Some(Duration::from_millis(10));
    assert!(matches!(
        client.call::<_, Value>("Status", &message::StatusCall::default(), brief),
        Err(ClientError::Timeout)
    ));
}
