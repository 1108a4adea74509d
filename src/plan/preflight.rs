//! What a plan needs of the machine against what the machine has, as far as facts know.
//!
//! Pure: nothing is asked here. What only a start can ask (names, paths, the flags of a program) is `not asked`.

use super::exec::Preflight;
use super::{Compared, Plan};
use crate::expr::{Value, size};
use crate::facts::Facts;
use std::net::IpAddr;

/// One need of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The unit.
    pub unit: String,
    /// What: `memory`, `port http`, `resolve`, ….
    pub what: String,
    /// How much, or which.
    pub need: String,
    /// What there is.
    pub have: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What to do about it; empty unless it is not enough.
    pub fix: String,
}

/// Whether a need is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not: a start would be refused.
    Short,
    /// It probably is not (a port that somebody listens on may be this unit itself, already running).
    Doubtful,
    /// Only a start can tell.
    NotAsked,
    /// No fact tells.
    Unknown,
}

impl Verdict {
    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Met => "ok",
            Verdict::Short => "not enough",
            Verdict::Doubtful => "taken",
            Verdict::NotAsked => "not asked",
            Verdict::Unknown => "unknown",
        }
    }
}

/// Compares every need of the plan with the facts.
pub fn preflight(plan: &Plan, facts: &Facts) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut claimed = 0_u64;
    let all = plan.policy.units.iter().zip(&plan.exec).zip(&plan.about);
    for ((unit, exec), about) in all.filter(|((unit, _), _)| unit.skipped.is_none()) {
        for asked in &exec.preflight {
            let need = match asked {
                Preflight::Memory(bytes) => {
                    let need = memory(&unit.name, *bytes, claimed, facts);
                    claimed = claimed.saturating_add(*bytes);
                    need
                }
                Preflight::Resolve(name) => resolve(&unit.name, name),
                Preflight::Flags(argv) => not_asked(&unit.name, "flags", argv.join(" ")),
                Preflight::Path(path) => not_asked(&unit.name, "path", path.display().to_string()),
            };
            needs.push(need);
        }
        needs.extend(about.compared.iter().map(|(kind, bytes)| compared(&unit.name, kind, *bytes, facts)));
        for claim in about.ports.iter().filter(|claim| claim.on.iter().any(|place| place == "host")) {
            needs.extend(listening(&unit.name, claim, facts));
        }
    }
    needs
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// A number inside a built-in fact that is a table.
fn member(facts: &Facts, fact: &str, member: &str) -> Option<u64> {
    match &facts.get([], fact)?.value {
        Value::Map(entries) => number(entries.get(member)?),
        _ => None,
    }
}

fn memory(unit: &str, bytes: u64, claimed: u64, facts: &Facts) -> Need {
    let available = member(facts, "memory", "available");
    let cgroup = member(facts, "cgroup", "memory_free");
    let (have, whose) = match (available, cgroup) {
        (Some(machine), Some(cgroup)) if cgroup < machine => (Some(cgroup), "left in the control group"),
        (Some(machine), _) => (Some(machine), "available"),
        (None, cgroup) => (cgroup, "left in the control group"),
    };
    let mut need = Need {
        unit: unit.to_owned(),
        what: "memory".into(),
        need: size::words(bytes),
        have: "unknown".into(),
        verdict: Verdict::Unknown,
        fix: String::new(),
    };
    let Some(have) = have else { return need };
    let left = have.saturating_sub(claimed);
    need.have = match claimed {
        0 => format!("{} {whose}", size::words(have)),
        _ => format!(
            "{} ({} {whose}, {} of it claimed by units before)",
            size::words(left),
            size::words(have),
            size::words(claimed)
        ),
    };
    need.verdict = if bytes <= left { Verdict::Met } else { Verdict::Short };
    if need.verdict == Verdict::Short {
        need.fix = format!("ask for at most {}, or free {}", size::words(left), size::words(bytes - left));
    }
    need
}

fn compared(unit: &str, kind: &Compared, bytes: u64, facts: &Facts) -> Need {
    let (what, have, fix) = match kind {
        Compared::Memlock => {
            let hard = facts.get([], "memlock").map(|fact| &fact.value);
            let have = match hard {
                Some(Value::Map(entries)) => match entries.get("hard") {
                    Some(Value::Str(word)) if &**word == "infinity" => Some(u64::MAX),
                    Some(value) => number(value),
                    None => None,
                },
                _ => None,
            };
            (
                "memlock".to_owned(),
                have,
                "raise the hard limit of locked memory (`ulimit -l`, `LimitMEMLOCK=`)",
            )
        }
        Compared::Hugepages => {
            let free = member(facts, "hugepages", "free");
            let each = member(facts, "hugepages", "size");
            let have = free.zip(each).map(|(free, each)| free.saturating_mul(each));
            ("hugepages".to_owned(), have, "reserve more huge pages (`vm.nr_hugepages`)")
        }
        Compared::Disk(path) => return not_asked(unit, "disk", format!("{} at {path}", size::words(bytes))),
    };
    let verdict = match have {
        None => Verdict::Unknown,
        Some(have) if have >= bytes => Verdict::Met,
        Some(_) => Verdict::Short,
    };
    let have = match have {
        None => "unknown".to_owned(),
        Some(u64::MAX) => "infinity".to_owned(),
        Some(have) => size::words(have),
    };
    let fix = if verdict == Verdict::Short { fix.to_owned() } else { String::new() };
    Need { unit: unit.to_owned(), what, need: size::words(bytes), have, verdict, fix }
}

fn not_asked(unit: &str, what: &str, need: String) -> Need {
    Need {
        unit: unit.to_owned(),
        what: what.to_owned(),
        need,
        have: "not asked".to_owned(),
        verdict: Verdict::NotAsked,
        fix: String::new(),
    }
}

fn resolve(unit: &str, name: &str) -> Need {
    let mut need = not_asked(unit, "resolve", name.to_owned());
    if name.parse::<IpAddr>().is_ok() || name == "localhost" {
        "needs no asking".clone_into(&mut need.have);
        need.verdict = Verdict::Met;
    }
    need
}

/// A port that somebody listens on already.
fn listening(unit: &str, claim: &super::PortClaim, facts: &Facts) -> Vec<Need> {
    let Some(Value::List(sockets)) = facts.get([], "listening").map(|fact| &fact.value) else {
        return Vec::new();
    };
    let mut out: Vec<Need> = Vec::new();
    for socket in sockets.iter() {
        let Value::Map(socket) = socket else { continue };
        let port = socket.get("port").and_then(number).and_then(|port| u16::try_from(port).ok());
        let Some(port) =
            port.filter(|port| claim.ranges.iter().any(|(low, high)| (low..=high).contains(&port)))
        else {
            continue;
        };
        let text = |key: &str| socket.get(key).and_then(Value::text);
        let who = match (text("program"), text("pid")) {
            (Some(program), Some(pid)) => format!("{program} (pid {pid})"),
            (None, Some(pid)) => format!("pid {pid}"),
            _ => "somebody".to_owned(),
        };
        let need = Need {
            unit: unit.to_owned(),
            what: format!("port {}", claim.name),
            need: port.to_string(),
            have: format!("{who} listens on it"),
            verdict: Verdict::Doubtful,
            fix: "stop it, or choose another port; nothing is wrong if it is this very unit".to_owned(),
        };
        if !out.contains(&need) {
            out.push(need);
        }
    }
    out
}
