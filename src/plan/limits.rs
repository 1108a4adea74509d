//! `[sched]`, `[security]`, `[cgroup]` and `[credentials]` → what the shell sets before exec.

use super::exec::{Capability, CgroupLimits, Credential, IoClass, Sched, SchedPolicy, Security};
use super::read::{Reader, plain_text};
use super::render::{self, Cx, Out};
use crate::config::kernel;
use crate::config::signal;
use crate::config::tree::Node;
use crate::expr::size;
use std::cell::Cell;
use std::path::PathBuf;

/// `[sched]` without niceness and the kernel's choice of victims, which are part of the identity.
pub(super) fn sched(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Sched {
    let rendered = render::path(cx, tree, "sched");
    let reader = Reader::new(cx, "sched", rendered.as_ref(), unknown);
    let policies = [
        ("other", SchedPolicy::Other),
        ("batch", SchedPolicy::Batch),
        ("idle", SchedPolicy::Idle),
        ("fifo", SchedPolicy::Fifo),
        ("rr", SchedPolicy::RoundRobin),
    ];
    let classes =
        [("realtime", IoClass::Realtime), ("best-effort", IoClass::BestEffort), ("idle", IoClass::Idle)];
    let class = reader.word("io_class", &classes);
    let level = reader.int::<u8>("io_priority");
    Sched {
        policy: reader.word("policy", &policies),
        priority: reader.int("priority"),
        cpus: parsed(&reader, "cpus", kernel::cpus),
        numa: parsed(&reader, "numa", kernel::numa),
        io: (class.is_some() || level.is_some())
            .then(|| (class.unwrap_or(IoClass::BestEffort), level.unwrap_or(4))),
        timer_slack: reader.duration("timer_slack"),
        degrade: degrade(&reader),
    }
}

fn degrade(reader: &Reader<'_>) -> bool {
    reader.word("degrade", &[("warn", true), ("fail", false)]).unwrap_or(false)
}

fn parsed<T>(reader: &Reader<'_>, key: &str, parse: fn(&str) -> Result<T, String>) -> Option<T> {
    let value = reader.get(key)?;
    let text = reader.text(key)?;
    match parse(&text) {
        Ok(found) => Some(found),
        Err(why) => reader.refuse(key, value, &why),
    }
}

/// `[security]` without `no_new_privs`, which is part of the identity.
pub(super) fn security(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Security {
    let rendered = render::path(cx, tree, "security");
    let reader = Reader::new(cx, "security", rendered.as_ref(), unknown);
    let bits = reader.list("secure_bits").unwrap_or_default();
    let bits = bits.into_iter().filter_map(|item| match plain_text(item).as_deref() {
        Some("keep-caps") => Some(1 << 4),
        Some("no-setuid-fixup") => Some(1 << 2),
        Some("noroot") => Some(1),
        _ => reader.refuse("secure_bits", item, "expected `keep-caps`, `no-setuid-fixup` or `noroot`"),
    });
    let bits: u32 = bits.fold(0, |all, bit: u32| all | bit);
    Security {
        capabilities: capabilities(&reader, "capabilities"),
        ambient: capabilities(&reader, "ambient_capabilities").unwrap_or_default(),
        secure_bits: (bits != 0).then_some(bits),
        dumpable: reader.flag("dumpable"),
        parent_death_signal: reader.text("parent_death_signal").and_then(|name| signal::number(&name)),
        degrade: degrade(&reader),
    }
}

fn capabilities(reader: &Reader<'_>, key: &str) -> Option<Vec<Capability>> {
    let items = reader.list(key)?;
    Some(
        items
            .into_iter()
            .filter_map(|item| {
                let name = plain_text(item)?;
                kernel::capability(&name).map_or_else(|why| reader.refuse(key, item, &why), Some)
            })
            .collect(),
    )
}

/// `[cgroup]`: each key as the file and the text that go to the kernel.
pub(super) fn cgroup(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> CgroupLimits {
    let rendered = render::path(cx, tree, "cgroup");
    let reader = Reader::new(cx, "cgroup", rendered.as_ref(), unknown);
    let mut limits = CgroupLimits {
        settings: Vec::new(),
        delegate: reader.flag("delegate").unwrap_or(false),
        degrade: degrade(&reader),
    };
    for (key, value) in reader.entries() {
        if matches!(key, "delegate" | "degrade") || value.item == Out::Unknown {
            continue;
        }
        if key == "io_max" {
            limits.settings.extend(io_max(&reader, key).map(|line| setting(key, "io.max", line)));
            continue;
        }
        let text = match &value.item {
            Out::Bool(flag) => u8::from(*flag).to_string(),
            _ => plain_text(value).unwrap_or_default(),
        };
        match kernel_words(key, &text) {
            Ok((file, text)) => limits.settings.push(setting(key, &file, text)),
            Err(why) => {
                reader.refuse::<()>(key, value, &why);
            }
        }
    }
    limits
}

/// The lines of `io_max`, of which each goes to the kernel alone.
fn io_max<'a>(reader: &'a Reader<'_>, key: &'a str) -> impl Iterator<Item = String> + 'a {
    reader.list(key).into_iter().flatten().filter_map(move |item| {
        let line = reader.element(key, item)?;
        match kernel::io_max(&line) {
            Ok(()) => Some(line),
            Err(why) => reader.refuse(key, item, &why),
        }
    })
}

fn setting(key: &str, file: &str, text: String) -> (String, String, String) {
    (key.to_owned(), file.to_owned(), text)
}

/// The file of a key, and its value as the kernel reads it.
fn kernel_words(key: &str, text: &str) -> Result<(String, String), String> {
    let bytes = |file: &str| {
        if text == "max" {
            return Ok((file.to_owned(), "max".to_owned()));
        }
        size::parse(text).map(|bytes| (file.to_owned(), bytes.to_string()))
    };
    let plain = |file: &str| Ok((file.to_owned(), text.to_owned()));
    match key {
        "memory_max" => bytes("memory.max"),
        "memory_high" => bytes("memory.high"),
        "memory_low" => bytes("memory.low"),
        "memory_min" => bytes("memory.min"),
        "memory_swap_max" => bytes("memory.swap.max"),
        "memory_zswap_max" => bytes("memory.zswap.max"),
        "hugetlb_2mb_max" => bytes("hugetlb.2MB.max"),
        "hugetlb_1gb_max" => bytes("hugetlb.1GB.max"),
        "memory_oom_group" => plain("memory.oom.group"),
        "cpu_max" => Ok(("cpu.max".to_owned(), kernel::cpu_max(text)?)),
        "cpu_weight" if text == "idle" => Ok(("cpu.idle".to_owned(), "1".to_owned())),
        "cpu_weight" => plain("cpu.weight"),
        "io_weight" => Ok(("io.weight".to_owned(), format!("default {text}"))),
        "pids_max" => plain("pids.max"),
        "cpuset_cpus" => kernel::numbers(text).map(|_| ("cpuset.cpus".to_owned(), text.to_owned())),
        "cpuset_mems" => kernel::numbers(text).map(|_| ("cpuset.mems".to_owned(), text.to_owned())),
        _ => Err(format!("`{key}` is not known to this version")),
    }
}

/// `[credentials]`: name → path of the source.
pub(super) fn credentials(cx: &Cx<'_>, tree: &Node, unknown: &Cell<bool>) -> Vec<Credential> {
    let rendered = render::path(cx, tree, "credentials");
    let reader = Reader::new(cx, "credentials", rendered.as_ref(), unknown);
    let mut found = Vec::new();
    for (name, value) in reader.entries() {
        if name.contains('/') || name.starts_with('.') {
            reader.refuse::<()>(name, value, "a credential's name becomes a file's: no `/`, no `.` in front");
            continue;
        }
        if let Some(path) = reader.text(name) {
            found.push(Credential { name: name.to_owned(), from: PathBuf::from(path) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files() {
        let check = |key: &str, text: &str, expected: Option<(&str, &str)>| {
            let found = kernel_words(key, text).ok();
            assert_eq!(found.as_ref().map(|(file, text)| (&**file, &**text)), expected, "{key} {text}");
        };
        check("memory_max", "1GB", Some(("memory.max", "1073741824")));
        check("memory_max", "max", Some(("memory.max", "max")));
        check("cpu_max", "150%", Some(("cpu.max", "150000 100000")));
        check("cpu_max", "5000 10000", Some(("cpu.max", "5000 10000")));
        check("cpu_max", "much", None);
        check("cpu_weight", "idle", Some(("cpu.idle", "1")));
        check("cpu_weight", "200", Some(("cpu.weight", "200")));
        check("hugetlb_2mb_max", "4MB", Some(("hugetlb.2MB.max", "4194304")));
        check("io_weight", "50", Some(("io.weight", "default 50")));
    }
}
