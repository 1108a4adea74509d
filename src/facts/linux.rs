//! Built-in facts: what every Linux machine tells in `/proc` and `/sys`. Pure functions over texts.

use super::{Fact, Machine};
use crate::expr::Value;
use indexmap::IndexMap;
use std::collections::HashMap;

/// Every built-in fact: its name and what it is. `fact.NAME` is known everywhere.
pub const BUILTIN: &[(&str, &str)] = &[
    ("hostname", "name of this machine"),
    ("kernel", "release of the running kernel"),
    ("cpus", "number of processors that are online"),
    ("memory", "`total` and `available` memory in bytes (MemTotal, MemAvailable)"),
    (
        "hugepages",
        "huge pages of the default size: `total`, `free` (numbers), `size` (bytes), and `nodes`: free ones by NUMA node",
    ),
    (
        "memlock",
        "limit of locked memory of the runner: `soft` and `hard`, bytes or `infinity`; `ipc_lock`: it may lock without limit; `may_raise`: it may raise the hard one",
    ),
    ("nofile", "limit of open descriptors of units that set none: `soft`, `hard` and `may_raise`"),
    ("shm", "/dev/shm: `total` and `free` bytes"),
    ("numa", "`nodes`: numbers of the NUMA nodes that are online"),
    ("net", "`interface` and `address` of the default route"),
    ("cgroup", "`memory_max` and `memory_free` of the tightest control group above, in bytes"),
    (
        "listening",
        "TCP ports somebody listens on: list of `port`, `address`, and where known `pid` and `program`",
    ),
    ("ephemeral", "range the kernel takes ports of outgoing connections from"),
    ("reserved_ports", "ports the kernel leaves out of that range (`net.ipv4.ip_local_reserved_ports`)"),
];

/// What a built-in fact looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Text.
    Text,
    /// A whole number.
    Number,
    /// A whole number, or the word `infinity`.
    NumberOrInfinity,
    /// A truth value.
    Truth,
    /// A list.
    List,
    /// A table with members of any name.
    Any,
    /// A table with these members.
    Table(&'static [(&'static str, Shape)]),
}

impl Shape {
    /// As messages say it.
    pub fn words(self) -> &'static str {
        match self {
            Shape::Text => "text",
            Shape::Number => "a whole number",
            Shape::NumberOrInfinity => "a whole number or \"infinity\"",
            Shape::Truth => "true or false",
            Shape::List => "a list",
            Shape::Any | Shape::Table(_) => "a table",
        }
    }
}

/// What the built-in fact of this name looks like; `None` = there is none.
pub fn shape(name: &str) -> Option<Shape> {
    use Shape::{Any, List, Number, NumberOrInfinity, Table, Text, Truth};
    Some(match name {
        "hostname" | "kernel" | "ephemeral" | "reserved_ports" => Text,
        "cpus" => Number,
        "memory" => Table(&[("total", Number), ("available", Number)]),
        "hugepages" => Table(&[("total", Number), ("free", Number), ("size", Number), ("nodes", Any)]),
        "memlock" => Table(&[
            ("soft", NumberOrInfinity),
            ("hard", NumberOrInfinity),
            ("ipc_lock", Truth),
            ("may_raise", Truth),
        ]),
        "nofile" => Table(&[("soft", NumberOrInfinity), ("hard", NumberOrInfinity), ("may_raise", Truth)]),
        "shm" => Table(&[("total", Number), ("free", Number)]),
        "numa" => Table(&[("nodes", List)]),
        "net" => Table(&[("interface", Text), ("address", Text)]),
        "cgroup" => Table(&[("memory_max", Number), ("memory_free", Number)]),
        "listening" => List,
        _ => return None,
    })
}

/// The most control groups that are walked up.
const MAX_CGROUP_DEPTH: usize = 64;

/// Asks the machine for every built-in fact.
pub(super) fn builtin(machine: &dyn Machine) -> IndexMap<String, Fact> {
    let answers = [
        ("hostname", "/proc/sys/kernel/hostname", line(machine, "/proc/sys/kernel/hostname")),
        ("kernel", "/proc/sys/kernel/osrelease", line(machine, "/proc/sys/kernel/osrelease")),
        ("cpus", "/sys/devices/system/cpu/online", cpus(machine)),
        ("memory", "/proc/meminfo", memory(machine)),
        ("hugepages", "/proc/meminfo", hugepages(machine)),
        ("memlock", "getrlimit", memlock(machine)),
        ("nofile", "getrlimit", nofile(machine)),
        ("shm", "/dev/shm", shm(machine)),
        ("numa", "/sys/devices/system/node/online", numa(machine)),
        ("net", "/proc/net/route", net(machine)),
        ("cgroup", "/proc/self/cgroup", cgroup(machine)),
        ("listening", "/proc/net/tcp", listening(machine)),
        ("ephemeral", "/proc/sys/net/ipv4/ip_local_port_range", ephemeral(machine)),
        (
            "reserved_ports",
            "/proc/sys/net/ipv4/ip_local_reserved_ports",
            line(machine, "/proc/sys/net/ipv4/ip_local_reserved_ports"),
        ),
    ];
    answers
        .into_iter()
        .map(|(name, source, value)| {
            let known = value.is_some();
            let fact = Fact {
                value: value.unwrap_or(Value::Nothing),
                source: if known { source.to_owned() } else { format!("no answer from {source}") },
                not_asked: false,
                by_program: false,
            };
            (name.to_owned(), fact)
        })
        .collect()
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(std::sync::Arc::new(
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<IndexMap<_, _>>(),
    ))
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

fn number(value: u64) -> Value {
    Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

fn list(values: Vec<Value>) -> Value {
    Value::List(values.into())
}

fn line(machine: &dyn Machine, path: &str) -> Option<Value> {
    let content = machine.read(path)?;
    let line = content.trim();
    (!line.is_empty()).then(|| text(line))
}

/// `0-3,8` → 0, 1, 2, 3, 8; at most 4096 of them.
fn number_list(content: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for piece in content.trim().split(',').filter(|piece| !piece.is_empty()) {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
            let room = 4096_usize.saturating_sub(numbers.len());
            numbers.extend((first..=last).take(room));
        }
    }
    numbers
}

fn cpus(machine: &dyn Machine) -> Option<Value> {
    let online = number_list(&machine.read("/sys/devices/system/cpu/online")?);
    (!online.is_empty()).then(|| number(online.len() as u64))
}

fn numa(machine: &dyn Machine) -> Option<Value> {
    let nodes = number_list(&machine.read("/sys/devices/system/node/online")?);
    Some(map([("nodes", list(nodes.into_iter().map(number).collect()))]))
}

/// The number of a line `Name:  123 kB` of `/proc/meminfo`.
fn meminfo(content: &str, name: &str) -> Option<u64> {
    let rest = content.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn memory(machine: &dyn Machine) -> Option<Value> {
    let content = machine.read("/proc/meminfo")?;
    let bytes = |name| meminfo(&content, name).map(|kib| number(kib.saturating_mul(1024)));
    Some(map([("total", bytes("MemTotal")?), ("available", bytes("MemAvailable")?)]))
}

fn hugepages(machine: &dyn Machine) -> Option<Value> {
    let content = machine.read("/proc/meminfo")?;
    let size = meminfo(&content, "Hugepagesize")?;
    let mut entries = IndexMap::from([
        ("total".to_owned(), number(meminfo(&content, "HugePages_Total")?)),
        ("free".to_owned(), number(meminfo(&content, "HugePages_Free")?)),
        ("size".to_owned(), number(size.saturating_mul(1024))),
    ]);
    let online = machine.read("/sys/devices/system/node/online").unwrap_or_default();
    let free = |node: u64| {
        let folder = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB");
        let free = machine.read(&format!("{folder}/free_hugepages"))?.trim().parse().ok()?;
        Some((node.to_string(), number(free)))
    };
    let nodes: IndexMap<String, Value> = number_list(&online).into_iter().filter_map(free).collect();
    if !nodes.is_empty() {
        entries.insert("nodes".to_owned(), Value::Map(std::sync::Arc::new(nodes)));
    }
    Some(Value::Map(std::sync::Arc::new(entries)))
}

/// The bit of `CAP_IPC_LOCK` in `CapEff`.
const IPC_LOCK: u64 = 1 << 14;
/// The bit of `CAP_SYS_RESOURCE`.
const SYS_RESOURCE: u64 = 1 << 24;

/// The capabilities of this process.
fn capabilities(machine: &dyn Machine) -> u64 {
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn nofile(machine: &dyn Machine) -> Option<Value> {
    let limit = |value: Option<u64>| value.map_or_else(|| text("infinity"), number);
    let (soft, hard) = machine.nofile()?;
    let mut entries = IndexMap::from([("soft".to_owned(), limit(soft)), ("hard".to_owned(), limit(hard))]);
    if capabilities(machine) & SYS_RESOURCE != 0 {
        entries.insert("may_raise".to_owned(), Value::Bool(true));
    }
    Some(Value::Map(std::sync::Arc::new(entries)))
}

fn shm(machine: &dyn Machine) -> Option<Value> {
    let (total, free) = machine.space("/dev/shm")?;
    Some(map([("total", number(total)), ("free", number(free))]))
}

fn memlock(machine: &dyn Machine) -> Option<Value> {
    let limit = |value: Option<u64>| value.map_or_else(|| text("infinity"), number);
    let (soft, hard) = machine.memlock()?;
    let mut entries = IndexMap::from([("soft".to_owned(), limit(soft)), ("hard".to_owned(), limit(hard))]);
    let rights = [("ipc_lock", IPC_LOCK), ("may_raise", SYS_RESOURCE)];
    let held = rights.into_iter().filter(|(_, bit)| capabilities(machine) & bit != 0);
    entries.extend(held.map(|(name, _)| (name.to_owned(), Value::Bool(true))));
    Some(Value::Map(std::sync::Arc::new(entries)))
}

fn net(machine: &dyn Machine) -> Option<Value> {
    let interface = machine
        .read("/proc/net/route")
        .and_then(|table| default_route(&table))
        .or_else(|| machine.read("/proc/net/ipv6_route").and_then(|table| default_route6(&table)))?;
    let address = machine.address_of(&interface).map_or(Value::Nothing, |address| text(&address));
    Some(map([("interface", text(&interface)), ("address", address)]))
}

/// The interface of the default route of `/proc/net/route` with the smallest metric.
fn default_route(table: &str) -> Option<String> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
            let metric: u32 = fields.get(6)?.parse().ok()?;
            let default = fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000");
            (default && flags & 1 == 1).then(|| (metric, (*fields.first().unwrap_or(&"")).to_owned()))
        })
        .min_by_key(|(metric, _)| *metric)
        .map(|(_, interface)| interface)
}

/// The interface of the default route of `/proc/net/ipv6_route`.
fn default_route6(table: &str) -> Option<String> {
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let default = fields.first()?.bytes().all(|byte| byte == b'0') && fields.get(1) == Some(&"00");
            let metric = u32::from_str_radix(fields.get(5)?, 16).ok()?;
            let interface = *fields.last()?;
            (default && interface != "lo" && metric != u32::MAX).then(|| (metric, interface.to_owned()))
        })
        .min_by_key(|(metric, _)| *metric)
        .map(|(_, interface)| interface)
}

fn cgroup(machine: &dyn Machine) -> Option<Value> {
    let table = machine.read("/proc/self/cgroup")?;
    let unified = table.lines().find_map(|line| line.strip_prefix("0::"));
    let legacy = table.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|name| name == "memory").then(|| fields.next()).flatten()
    });
    let (root, path, max, current) = match (legacy, unified) {
        (Some(path), _) => ("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes"),
        (None, Some(path)) => ("/sys/fs/cgroup", path, "memory.max", "memory.current"),
        (None, None) => return None,
    };
    let mut tightest: Option<(u64, u64)> = None;
    let mut at = path.trim_end_matches('/');
    for _ in 0..MAX_CGROUP_DEPTH {
        let number = |file: &str| machine.read(&format!("{root}{at}/{file}"))?.trim().parse::<u64>().ok();
        // Version 1 writes "no limit" as a number near 2^63.
        if let Some(limit) = number(max).filter(|limit| *limit < 1 << 62) {
            let free = limit.saturating_sub(number(current).unwrap_or(0));
            if tightest.is_none_or(|(_, known)| free < known) {
                tightest = Some((limit, free));
            }
        }
        let Some(cut) = at.rfind('/') else { break };
        at = &at[..cut];
    }
    let (limit, free) = tightest?;
    Some(map([("memory_max", number(limit)), ("memory_free", number(free))]))
}

fn ephemeral(machine: &dyn Machine) -> Option<Value> {
    let content = machine.read("/proc/sys/net/ipv4/ip_local_port_range")?;
    let mut ends = content.split_whitespace();
    Some(text(&format!("{}-{}", ends.next()?, ends.next()?)))
}

fn listening(machine: &dyn Machine) -> Option<Value> {
    let tables = [machine.read("/proc/net/tcp"), machine.read("/proc/net/tcp6")];
    if tables.iter().all(Option::is_none) {
        return None;
    }
    let sockets: Vec<Socket> =
        tables.iter().flatten().flat_map(|table| table.lines().filter_map(listener)).collect();
    let inodes: Vec<u64> = sockets.iter().map(|socket| socket.inode).collect();
    let owners: HashMap<u64, u32> = machine.socket_owners(&inodes);
    let mut seen: Vec<(u16, Value)> = Vec::new();
    for socket in sockets {
        let mut entry = IndexMap::from([
            ("port".to_owned(), number(socket.port.into())),
            ("address".to_owned(), text(&socket.address)),
        ]);
        if let Some(pid) = owners.get(&socket.inode) {
            entry.insert("pid".to_owned(), number((*pid).into()));
            if let Some(program) = machine.read(&format!("/proc/{pid}/comm")) {
                entry.insert("program".to_owned(), text(program.trim()));
            }
        }
        seen.push((socket.port, Value::Map(std::sync::Arc::new(entry))));
    }
    seen.sort_by_key(|(port, _)| *port);
    Some(list(seen.into_iter().map(|(_, entry)| entry).collect()))
}

struct Socket {
    port: u16,
    address: String,
    inode: u64,
}

/// A line of `/proc/net/tcp` or `tcp6` in state LISTEN.
fn listener(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if *fields.get(3)? != "0A" {
        return None;
    }
    let (address, port) = fields.get(1)?.rsplit_once(':')?;
    Some(Socket {
        port: u16::from_str_radix(port, 16).ok()?,
        address: hex_address(address)?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// The kernel prints addresses as words of 32 bits in the byte order of the machine (here: little endian).
fn hex_address(hex: &str) -> Option<String> {
    let mut bytes = Vec::new();
    for word in hex.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|b| std::net::Ipv4Addr::from(b).to_string()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|b| std::net::Ipv6Addr::from(b).to_string()),
        _ => None,
    }
}
