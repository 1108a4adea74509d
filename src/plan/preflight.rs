//! What a plan needs of the machine against what the machine has, as far as facts know.
//!
//! Pure: nothing is asked here. What only a start can ask (names, paths, the flags of a program) is `not asked`.

use super::Plan;
use super::exec::{Preflight, UnitExec};
use crate::expr::{Value, size};
use crate::facts::Facts;
use std::net::IpAddr;
use std::path::Path;

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
            Verdict::NotAsked => "asked at start",
            Verdict::Unknown => "unknown",
        }
    }
}

/// What may be looked at beside facts: nothing here runs a program or waits.
pub trait Look {
    /// Whether a path exists; `None` = not asked.
    fn exists(&self, path: &Path) -> Option<bool>;
    /// Free bytes where a path lies; `None` = not asked.
    fn space(&self, path: &Path) -> Option<u64>;
    /// Whether this machine's own files tell the address of a name; `None` = only a start asks.
    fn host(&self, name: &str) -> Option<bool>;
    /// Whether there is a user of this name; `None` = only a start can tell.
    fn user(&self, name: &str) -> Option<bool>;
    /// Whether there is a group of this name; `None` = only a start can tell.
    fn group(&self, name: &str) -> Option<bool>;
}

/// Looks at nothing: another machine is meant.
#[derive(Debug, Clone, Copy)]
pub struct Blind;

impl Look for Blind {
    fn exists(&self, _: &Path) -> Option<bool> {
        None
    }
    fn space(&self, _: &Path) -> Option<u64> {
        None
    }
    fn host(&self, _: &str) -> Option<bool> {
        None
    }
    fn user(&self, _: &str) -> Option<bool> {
        None
    }
    fn group(&self, _: &str) -> Option<bool> {
        None
    }
}

/// Compares every need of the plan with the facts.
pub fn preflight(plan: &Plan, facts: &Facts) -> Vec<Need> {
    preflight_with(plan, facts, &Blind)
}

/// The same, looking at paths, too.
pub fn preflight_with(plan: &Plan, facts: &Facts, look: &dyn Look) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut claimed = Claimed::default();
    let all = plan.policy.units.iter().zip(&plan.exec).zip(&plan.about);
    for ((unit, exec), about) in all.filter(|((unit, _), _)| unit.skipped.is_none()) {
        let asker = Asker { unit: &unit.name, exec, facts, look };
        needs.extend(exec.preflight.iter().map(|asked| asker.ask(asked, &mut claimed)));
        needs.extend(asker.accounts());
        for claim in about.ports.iter().filter(|claim| claim.on.iter().any(|place| place == "host")) {
            needs.extend(listening(&unit.name, claim, facts));
        }
    }
    needs
}

/// What units before have claimed of what there is once, in bytes.
#[derive(Debug, Clone, Default)]
struct Claimed {
    memory: u64,
    /// Bytes, and the memory nodes they are bound to.
    hugepages: Vec<(Option<Vec<u32>>, u64)>,
    shm: u64,
}

/// Who asks, and whom.
struct Asker<'a> {
    unit: &'a str,
    exec: &'a UnitExec,
    facts: &'a Facts,
    look: &'a dyn Look,
}

impl Asker<'_> {
    fn ask(&self, asked: &Preflight, claimed: &mut Claimed) -> Need {
        match asked {
            Preflight::Memory(bytes) => {
                let need = memory(self.unit, *bytes, claimed.memory, self.facts);
                claimed.memory = claimed.memory.saturating_add(*bytes);
                need
            }
            Preflight::Memlock(bytes) => self.memlock(*bytes),
            Preflight::Hugepages(bytes, Some(each))
                if member(self.facts, "hugepages", "size") != Some(*each) =>
            {
                // Facts count pages of the default size only.
                let of = format!("{} in pages of {}", size::words(*bytes), size::words(*each));
                not_asked(self.unit, "hugepages", of)
            }
            Preflight::Hugepages(bytes, _) => {
                let need = self.hugepages(*bytes, &claimed.hugepages);
                claimed.hugepages.push((self.exec.bound_nodes().map(<[u32]>::to_vec), *bytes));
                need
            }
            Preflight::Shm(bytes) => {
                let free = member(self.facts, "shm", "free");
                let fix = "mount a larger /dev/shm (`--shm-size`, an emptyDir with `medium: Memory`)";
                let need = self.bytes("shm", *bytes, free, claimed.shm, fix);
                claimed.shm = claimed.shm.saturating_add(*bytes);
                need
            }
            Preflight::Nofile(count) => self.nofile(*count),
            Preflight::Disk(path, bytes) => match self.look.space(path) {
                None => {
                    not_asked(self.unit, "disk", format!("{} at {}", size::words(*bytes), path.display()))
                }
                free => Need {
                    need: format!("{} at {}", size::words(*bytes), path.display()),
                    ..self.bytes("disk", *bytes, free, 0, "free some, or use another place")
                },
            },
            Preflight::Path(path) => self.path(path),
            Preflight::Resolve(name) => self.resolve(name),
            Preflight::Flags(argv) => not_asked(self.unit, "flags", argv.join(" ")),
        }
    }

    /// Bytes needed against bytes there are, less what units before have claimed.
    fn bytes(&self, what: &str, bytes: u64, have: Option<u64>, claimed: u64, fix: &str) -> Need {
        let left = have.map(|have| have.saturating_sub(claimed));
        let have = match (have, claimed) {
            (None, _) => "unknown".to_owned(),
            (Some(u64::MAX), _) => "infinity".to_owned(),
            (Some(have), 0) => size::words(have),
            (Some(have), _) => {
                format!("{} ({} claimed by units before)", size::words(have), size::words(claimed))
            }
        };
        let verdict = match left {
            None => Verdict::Unknown,
            Some(left) if left >= bytes => Verdict::Met,
            Some(_) => Verdict::Short,
        };
        let fix = if verdict == Verdict::Short { fix.to_owned() } else { String::new() };
        Need {
            unit: self.unit.to_owned(),
            what: what.to_owned(),
            need: size::words(bytes),
            have,
            verdict,
            fix,
        }
    }

    /// The soft limit counts: hardly a program raises it itself.
    fn memlock(&self, bytes: u64) -> Need {
        let free = self.exec.keeps_privileges() && flag(self.facts, "memlock", "ipc_lock");
        let have = if free { Some(u64::MAX) } else { self.limit("memlock") };
        let fix = "set `[rlimits] memlock = \"infinity\"` in the unit, or start tenon with a higher limit (`ulimit -l`, `LimitMEMLOCK=`)";
        self.bytes("memlock", bytes, have, 0, fix)
    }

    /// The soft limit that the unit will have, as far as facts tell; the largest number = infinity.
    fn limit(&self, name: &str) -> Option<u64> {
        let finite = |member| {
            let limit = limit(self.facts, name, member)?;
            Some((limit != u64::MAX).then_some(limit))
        };
        match (finite("soft"), finite("hard")) {
            (Some(soft), Some(hard)) => {
                let raises = flag(self.facts, name, "may_raise");
                Some(self.exec.soft_limit(name, soft, hard, raises).unwrap_or(u64::MAX))
            }
            _ => self.exec.own_limit(name).map(|own| own.unwrap_or(u64::MAX)),
        }
    }

    fn nofile(&self, count: u64) -> Need {
        let have = self.limit("nofile");
        let fix = format!(
            "set `[rlimits] nofile = {count}` in the unit, or start tenon with a higher limit (`ulimit -n`, `LimitNOFILE=`)"
        );
        let words = |count: u64| if count == u64::MAX { "infinity".to_owned() } else { count.to_string() };
        let need = self.bytes("nofile", count, have, 0, &fix);
        Need { need: count.to_string(), have: have.map_or_else(|| need.have.clone(), words), ..need }
    }

    /// A unit that is bound to memory nodes has the pages of those nodes alone.
    fn hugepages(&self, bytes: u64, claimed: &[(Option<Vec<u32>>, u64)]) -> Need {
        let each = member(self.facts, "hugepages", "size");
        let bound = self.exec.bound_nodes();
        let of_nodes = bound.and_then(|bound| {
            let known = nodes(self.facts)?;
            let own = known.iter().filter(|(node, _)| bound.iter().any(|number| number.to_string() == *node));
            Some(own.map(|(_, free)| free).sum::<u64>())
        });
        let free = of_nodes.or_else(|| member(self.facts, "hugepages", "free"));
        let here = |theirs: &Option<Vec<u32>>| match (bound, theirs) {
            (None, _) => true,
            (Some(own), Some(theirs)) => own.iter().any(|node| theirs.contains(node)),
            (Some(_), None) => false,
        };
        let claimed: u64 = claimed.iter().filter(|(theirs, _)| here(theirs)).map(|(_, bytes)| bytes).sum();
        let have = free.zip(each).map(|(free, each)| free.saturating_mul(each));
        let more = each.filter(|each| *each > 0).map(|each| bytes.saturating_add(claimed).div_ceil(each));
        let fix = match (more, bound.filter(|_| of_nodes.is_some())) {
            (Some(pages), Some(bound)) => format!(
                "reserve huge pages on the unit's own node: {pages} in `/sys/devices/system/node/node{}/hugepages/`, or leave `sched.numa` out",
                bound.first().copied().unwrap_or(0)
            ),
            (Some(pages), None) => format!(
                "reserve huge pages: `sysctl vm.nr_hugepages={pages}` before anything takes the memory"
            ),
            (None, _) => "reserve huge pages (`vm.nr_hugepages`)".to_owned(),
        };
        let mut need = self.bytes("hugepages", bytes, have, claimed, &fix);
        if let (Some(each), Some(nodes)) = (each, nodes(self.facts).filter(|nodes| nodes.len() > 1)) {
            let words = nodes
                .iter()
                .map(|(node, free)| format!("node {node}: {}", size::words(free.saturating_mul(each))));
            need.have = format!("{}; {}", need.have, words.collect::<Vec<_>>().join(", "));
        }
        need
    }

    /// What only a server knows a start asks: a plan waits for nobody.
    fn resolve(&self, name: &str) -> Need {
        let mut need = not_asked(self.unit, "resolve", name.to_owned());
        let have = if name.parse::<IpAddr>().is_ok() || name == "localhost" {
            "needs no asking"
        } else if self.look.host(name) == Some(true) {
            "in the hosts file"
        } else {
            return need;
        };
        have.clone_into(&mut need.have);
        need.verdict = Verdict::Met;
        need
    }

    /// Users and groups that are surely not there; others go without saying.
    fn accounts(&self) -> Vec<Need> {
        let identity = &self.exec.identity;
        let users = identity.user.iter().map(|name| ("user", name, self.look.user(name)));
        let groups = identity.group.iter().chain(identity.groups.iter().flatten());
        let groups = groups.map(|name| ("group", name, self.look.group(name)));
        let absent = users.chain(groups).filter(|(_, _, there)| *there == Some(false));
        let need = |(what, name, _): (&str, &String, Option<bool>)| Need {
            have: "does not exist".to_owned(),
            verdict: Verdict::Short,
            fix: format!("create the {what} `{name}`, or name another one"),
            ..not_asked(self.unit, what, name.clone())
        };
        absent.map(need).collect()
    }

    fn path(&self, path: &Path) -> Need {
        let words = path.display().to_string();
        match self.look.exists(path) {
            None => not_asked(self.unit, "path", words),
            Some(true) => Need {
                have: "is there".to_owned(),
                verdict: Verdict::Met,
                ..not_asked(self.unit, "path", words)
            },
            Some(false) => Need {
                have: "does not exist".to_owned(),
                verdict: Verdict::Short,
                fix: format!("make {words} visible here (in a container: mount it, or pass the device)"),
                ..not_asked(self.unit, "path", words.clone())
            },
        }
    }
}

/// A truth inside a built-in fact that is a table.
fn flag(facts: &Facts, fact: &str, member: &str) -> bool {
    match facts.get([], fact).map(|fact| &fact.value) {
        Some(Value::Map(entries)) => matches!(entries.get(member), Some(Value::Bool(true))),
        _ => false,
    }
}

/// A limit of a fact that has them: `infinity` is the largest number.
fn limit(facts: &Facts, fact: &str, member: &str) -> Option<u64> {
    match &facts.get([], fact)?.value {
        Value::Map(entries) => match entries.get(member)? {
            Value::Str(word) if &**word == "infinity" => Some(u64::MAX),
            value => number(value),
        },
        _ => None,
    }
}

/// Free huge pages by NUMA node.
fn nodes(facts: &Facts) -> Option<Vec<(String, u64)>> {
    let Value::Map(entries) = &facts.get([], "hugepages")?.value else { return None };
    let Value::Map(nodes) = entries.get("nodes")? else { return None };
    let nodes: Vec<_> = nodes.iter().filter_map(|(node, free)| Some((node.clone(), number(free)?))).collect();
    (!nodes.is_empty()).then_some(nodes)
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
