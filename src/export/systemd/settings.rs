//! Limits, resources, scheduling: numbers that systemd knows under names of its own.

use super::file::UnitFile;
use crate::plan::exec::{IoClass, Journaled, MemoryPolicy, Place, Rlimit, SchedPolicy, UnitExec};
use crate::plan::policy::Scope;
use std::time::Duration;

const SERVICE: &str = "Service";

/// systemd keeps `CPUQuota=` as hundredths of a percent in 31 bits.
const MOST_PERCENT: u128 = (i32::MAX / 100) as u128;

/// A time as systemd writes it.
pub fn span(time: Duration) -> String {
    let millis = time.as_millis();
    match millis {
        0 => "0".to_owned(),
        // Longer than any machine is up.
        _ if millis > u128::from(u32::MAX) * 1000 => "infinity".to_owned(),
        _ if millis.is_multiple_of(1000) => format!("{}s", millis / 1000),
        _ => format!("{millis}ms"),
    }
}

/// A signal by name.
pub fn signal(number: i32) -> String {
    crate::config::signal::name(number)
}

/// `[rlimits]`. `tenon become` sets them as well; here they can be seen, and are there to be raised to.
pub fn limits(exec: &UnitExec, file: &mut UnitFile) {
    for limit in exec.rlimits.iter().filter(|limit| !limit.degrade) {
        let name = limit.name.to_ascii_uppercase();
        file.set(SERVICE, &format!("Limit{name}"), amount(limit));
    }
}

fn amount(limit: &Rlimit) -> String {
    let one = |value: Option<u64>| value.map_or_else(|| "infinity".to_owned(), |value| value.to_string());
    if limit.soft == limit.hard {
        one(limit.soft)
    } else {
        format!("{}:{}", one(limit.soft), one(limit.hard))
    }
}

/// `[cgroup]`: only the manager of the group can set these.
pub fn resources(exec: &UnitExec, file: &mut UnitFile) {
    let settings = &exec.cgroup.settings;
    let mut oom = "continue";
    for (key, kernel, text) in settings {
        match kernel.as_str() {
            "memory.max" => file.set(SERVICE, "MemoryMax", bytes(text)),
            "memory.high" => file.set(SERVICE, "MemoryHigh", bytes(text)),
            "memory.low" => file.set(SERVICE, "MemoryLow", bytes(text)),
            "memory.min" => file.set(SERVICE, "MemoryMin", bytes(text)),
            "memory.swap.max" => file.set(SERVICE, "MemorySwapMax", bytes(text)),
            "cpu.weight" => file.set(SERVICE, "CPUWeight", text.as_str()),
            "cpu.idle" => file.set(SERVICE, "CPUWeight", "idle"),
            "cpu.max" => quota(text, file),
            "io.weight" => file.set(SERVICE, "IOWeight", text.trim_start_matches("default ")),
            "pids.max" => file.set(SERVICE, "TasksMax", bytes(text)),
            "cpuset.cpus" => file.set(SERVICE, "AllowedCPUs", text.as_str()),
            "cpuset.mems" => file.set(SERVICE, "AllowedMemoryNodes", text.as_str()),
            "memory.oom.group" if text == "1" => oom = "kill",
            "memory.oom.group" => {}
            _ => file.lose(format!("`cgroup.{key} = {text}`")),
        }
    }
    if !settings.iter().any(|(_, kernel, _)| kernel == "pids.max") {
        file.set(SERVICE, "TasksMax", "infinity");
    }
    // Whether the main process of a unit lives decides about the unit; the kernel's choice of a victim does not.
    file.set(SERVICE, "OOMPolicy", oom);
    if exec.cgroup.delegate {
        file.set(SERVICE, "Delegate", "yes");
    }
}

fn bytes(text: &str) -> String {
    if text == "max" { "infinity".to_owned() } else { text.to_owned() }
}

/// `quota period` in microseconds, or `max period`.
fn quota(text: &str, file: &mut UnitFile) {
    let mut words = text.split(' ');
    let quota = words.next().and_then(|word| word.parse::<u64>().ok());
    let period = words.next().and_then(|word| word.parse::<u64>().ok()).filter(|period| *period > 0);
    let (Some(quota), period) = (quota, period.unwrap_or(100_000)) else { return };
    let hundredfold = u128::from(quota) * 100;
    let percent = hundredfold.div_ceil(u128::from(period)).max(1);
    if percent > MOST_PERCENT {
        file.lose(format!("`cgroup.cpu_max = {text}`: more than systemd can write, so there is no limit"));
        return;
    }
    file.set(SERVICE, "CPUQuota", format!("{percent}%"));
    if period != 100_000 {
        file.set(SERVICE, "CPUQuotaPeriodSec", format!("{period}us"));
    }
    if !hundredfold.is_multiple_of(u128::from(period)) {
        file.lose(format!("`cgroup.cpu_max = {text}` to the microsecond: whole percents only"));
    }
}

/// `[sched]`. `tenon become` sets them as well, and alone what may be left out, or is known only where a device is.
pub fn scheduling(exec: &UnitExec, file: &mut UnitFile) {
    let sched = &exec.sched;
    if sched.degrade {
        return;
    }
    if let Some(nice) = exec.identity.nice {
        file.set(SERVICE, "Nice", nice.to_string());
    }
    if let Some(score) = exec.identity.oom_score_adj {
        file.set(SERVICE, "OOMScoreAdjust", score.to_string());
    }
    if let Some(policy) = sched.policy {
        let (word, real_time) = match policy {
            SchedPolicy::Other => ("other", false),
            SchedPolicy::Batch => ("batch", false),
            SchedPolicy::Idle => ("idle", false),
            SchedPolicy::Fifo => ("fifo", true),
            SchedPolicy::RoundRobin => ("rr", true),
        };
        file.set(SERVICE, "CPUSchedulingPolicy", word);
        if real_time {
            file.set(SERVICE, "CPUSchedulingPriority", sched.priority.unwrap_or(1).to_string());
        }
    }
    if let Some((class, level)) = sched.io {
        let word = match class {
            IoClass::Realtime => "realtime",
            IoClass::BestEffort => "best-effort",
            IoClass::Idle => "idle",
        };
        file.set(SERVICE, "IOSchedulingClass", word);
        if class != IoClass::Idle {
            file.set(SERVICE, "IOSchedulingPriority", level.to_string());
        }
    }
    if let Some(Place::Numbers(cpus)) = sched.cpus.as_ref().map(|cpus| &cpus.0) {
        file.set(SERVICE, "CPUAffinity", numbers(cpus));
    }
    if let Some(numa) = &sched.numa
        && let Place::Numbers(nodes) = &numa.nodes
    {
        let word = match numa.policy {
            MemoryPolicy::Preferred => "preferred",
            MemoryPolicy::Bind => "bind",
            MemoryPolicy::Interleave => "interleave",
            MemoryPolicy::Local => "local",
        };
        file.set(SERVICE, "NUMAPolicy", word);
        if numa.policy != MemoryPolicy::Local {
            file.set(SERVICE, "NUMAMask", numbers(nodes));
        }
    }
}

fn numbers(list: &[u32]) -> String {
    list.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// `[log]`: output goes to the journal under the unit's name.
pub fn output(name: &str, exec: &UnitExec, file: &mut UnitFile) {
    let log = &exec.log;
    let nowhere = !log.console && log.file.is_none() && log.pipe.is_none() && log.journal == Journaled::Never;
    file.set(SERVICE, "StandardOutput", if nowhere { "null" } else { "journal" });
    file.set(SERVICE, "StandardError", "inherit");
    file.set(SERVICE, "SyslogIdentifier", super::quote::value(name));
    match log.rate {
        Some(rate) => {
            file.set(SERVICE, "LogRateLimitIntervalSec", "1s");
            file.set(SERVICE, "LogRateLimitBurst", rate.to_string());
        }
        None => file.set(SERVICE, "LogRateLimitIntervalSec", "0"),
    }
    if let Some(to) = &log.file {
        let path = to.path.display();
        file.lose(format!("`log.to = [\"file\"]`: nothing goes to `{path}`, all of it to the journal"));
    }
    if log.pipe.is_some() {
        file.lose("`log.to = [\"pipe\"]`: no program reads the output, all of it goes to the journal");
    }
    if !exec.signatures.is_empty() {
        file.lose("`[signature.*]`: lines of the output are not explained".to_owned());
    }
}

/// `stop.scope`.
pub fn scope(scope: Scope, file: &mut UnitFile) {
    match scope {
        Scope::Main => file.set(SERVICE, "KillMode", "process"),
        Scope::Tree => {
            file.set(SERVICE, "KillMode", "mixed");
            file.lose(
                "`stop`: what the main process leaves behind is killed at once, without a signal before",
            );
        }
        Scope::Group => {
            file.set(SERVICE, "KillMode", "mixed");
            file.lose("`stop.scope = \"group\"`: the whole tree is killed");
        }
    }
}
