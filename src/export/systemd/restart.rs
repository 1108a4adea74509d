//! When a unit is started again, and how it is stopped.

use super::file::UnitFile;
use super::settings::{self, signal, span};
use super::{Options, quote};
use crate::plan::exec::Reload;
use crate::plan::policy::{CausePattern, Kind, OnLimit, Restart, RestartPolicy, Rung, Stop, UnitPolicy};
use std::time::Duration;

const UNIT: &str = "Unit";
const SERVICE: &str = "Service";
/// A constant delay below this would be a busy loop.
const LEAST: Duration = Duration::from_secs(1);
/// The shortest time limit: 0 would be none.
const AT_ONCE: Duration = Duration::from_millis(1);
/// What a start ends with that never got as far as the program: 203 of `tenon become`, and of systemd for what an export
/// asks of it (nice, limits, output, scheduling, CPUs, memory nodes).
const NOT_EXECUTED: &str = "201 203 205 206 209 211 214 215 222 242";
/// Deaths that systemd takes for a clean end, and tenon does not.
const CLEAN_SIGNALS: [i32; 4] = [1, 2, 13, 15];

/// `[restart]`.
pub fn restart(policy: &UnitPolicy, file: &mut UnitFile) {
    let restart = &policy.restart;
    let task = matches!(policy.kind, Kind::Task { .. });
    let wanted = if restart.enabled { restart.policy } else { RestartPolicy::Never };
    let word = match (wanted, &restart.only) {
        // Only what RestartForceExitStatus= names.
        (RestartPolicy::Never, _) | (_, Some(_)) => "no",
        (RestartPolicy::Always, None) if task => {
            file.lose("`restart.policy = \"always\"`: a task that has succeeded is not run again");
            "on-failure"
        }
        (RestartPolicy::Always, None) => "always",
        (RestartPolicy::OnFailure, None) => "on-failure",
        (RestartPolicy::OnAbnormal, None) => "on-abnormal",
    };
    file.set(SERVICE, "Restart", word);
    if wanted == RestartPolicy::Never {
        return;
    }
    if task && restart.only.is_some() {
        file.lose(
            "`restart.only`: a task is not run again (RestartForceExitStatus= is refused for Type=oneshot)",
        );
        return;
    }
    causes(restart, task, file);
    let delay = delay(restart, file);
    limit(policy, delay, file);
}

/// `except` and `only`. systemd refuses `RestartForceExitStatus=` for a oneshot, and takes no signal for a clean end of one.
fn causes(restart: &Restart, task: bool, file: &mut UnitFile) {
    let names = |list: &[CausePattern], file: &mut UnitFile, key: &str| -> Vec<String> {
        let mut words = Vec::new();
        for cause in list {
            match cause {
                CausePattern::Exit(code) => words.push(code.to_string()),
                CausePattern::Signal(number) => words.push(signal(*number)),
                CausePattern::Oom => file.lose(format!("`restart.{key}`: `oom` is no cause of its own")),
                CausePattern::Start => {
                    words.push(NOT_EXECUTED.to_owned());
                    file.lose(format!(
                        "`restart.{key}`: `start` is a unit that was not executed; an end before readiness is its code or signal"
                    ));
                }
            }
        }
        words
    };
    let never = names(&restart.except, file, "except");
    if !never.is_empty() {
        file.set(SERVICE, "RestartPreventExitStatus", never.join(" "));
    }
    let mut force = restart.only.as_ref().map(|only| names(only, file, "only")).unwrap_or_default();
    if !task && restart.only.is_none() && restart.policy != RestartPolicy::Always {
        force.extend(CLEAN_SIGNALS.iter().map(|number| signal(*number)).filter(|name| !never.contains(name)));
    }
    if !force.is_empty() {
        file.set(SERVICE, "RestartForceExitStatus", force.join(" "));
    }
}

/// The one delay there is: the first that is no busy loop, or the last.
fn delay(restart: &Restart, file: &mut UnitFile) -> Duration {
    let delays = &restart.delays;
    let chosen = delays.iter().find(|delay| **delay >= LEAST).or(delays.last());
    let chosen = chosen.copied().unwrap_or(LEAST);
    file.set(SERVICE, "RestartSec", span(chosen));
    if delays.iter().any(|delay| *delay != chosen) {
        let list = delays.iter().map(|delay| span(*delay)).collect::<Vec<_>>().join(", ");
        file.lose(format!(
            "`restart.delays` ({list}): every restart waits {} (RestartSteps= comes with systemd 254)",
            span(chosen)
        ));
    }
    if restart.jitter > 0.0 && !chosen.is_zero() {
        file.lose(format!("`restart.jitter = {}`", restart.jitter));
    }
    chosen
}

/// `max_restarts`, `within` and `on_limit`. systemd counts starts, the first one too.
fn limit(policy: &UnitPolicy, delay: Duration, file: &mut UnitFile) {
    let restart = &policy.restart;
    let Some(most) = restart.max_restarts else {
        file.set(UNIT, "StartLimitIntervalSec", "0");
        return;
    };
    let within = restart.within.unwrap_or_else(|| {
        let one = delay.saturating_add(policy.ready.timeout.unwrap_or(Duration::from_secs(60)));
        let window = one.saturating_mul(most.saturating_add(1));
        file.lose(format!(
            "`restart.max_restarts` counts until a reset after `reset_after`: here it counts within {}",
            span(window)
        ));
        window
    });
    file.set(UNIT, "StartLimitIntervalSec", span(within));
    file.set(UNIT, "StartLimitBurst", most.saturating_add(1).to_string());
    file.lose("after `restart.max_restarts` a start by hand is refused until `systemctl reset-failed`");
    if restart.on_limit == OnLimit::Shutdown {
        file.lose("`restart.on_limit = \"shutdown\"`: the other units go on");
    }
}

/// `[stop]`: the last rung is systemd's own, those before it are commands. `before`: how long the stop waits for others.
pub fn stop(stop: &Stop, before: Duration, file: &mut UnitFile) {
    let Some((last, rungs)) = stop.ladder.split_last() else { return };
    for rung in rungs {
        file.set(SERVICE, "ExecStop", quote::command(&["/bin/sh", "-c", &step(rung)]));
    }
    file.set(SERVICE, "KillSignal", signal(last.signal));
    // One limit for every command of a stop. Those that wait end by themselves a little before.
    let slack = Duration::from_secs(if before.is_zero() { 0 } else { 5 });
    let longest = stop.ladder.iter().map(|rung| rung.timeout).max().unwrap_or_default().max(before + slack);
    file.set(SERVICE, "TimeoutStopSec", span(longest.max(AT_ONCE)));
    if longest != last.timeout {
        file.lose(format!(
            "`stop`: one time limit for every step of it, so KILL comes after {} instead of {}",
            span(longest),
            span(last.timeout)
        ));
    }
    settings::scope(stop.scope, file);
}

/// Sends a signal to the main process and waits for its end, so long. It may have gone already.
fn step(rung: &Rung) -> String {
    let seconds = rung.timeout.as_secs_f64();
    let kill = kill(rung.signal);
    // For `timeout`, 0 is no limit.
    if rung.timeout.is_zero() {
        return format!("[ -z \"$MAINPID\" ] || {{ {kill}; }}; :");
    }
    format!("[ -z \"$MAINPID\" ] || {{ {kill} && timeout {seconds} tail --pid=$MAINPID -f /dev/null; }}; :")
}

/// `[reload]`.
pub fn reload(policy: &UnitPolicy, reload: &Reload, options: &Options, file: &mut UnitFile) {
    let line = match reload {
        Reload::Signal(number) => quote::command(&["/bin/sh", "-c", &kill(*number)]),
        Reload::Command(argv) => {
            let mut words = vec!["shell", &*policy.name, "--"];
            words.extend(argv.iter().map(String::as_str));
            options.tenon(&words)
        }
    };
    file.set(SERVICE, "ExecReload", line);
}

/// Sends a signal to the main process; one that is stopped would not even see it.
fn kill(number: i32) -> String {
    let name = signal(number);
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    format!("kill -{name} $MAINPID && kill -CONT $MAINPID")
}
