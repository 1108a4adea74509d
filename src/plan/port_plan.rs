//! The port plan as one list: what units listen on, what others take at random, what the kernel hands out, and what
//! is listened on already; and where they meet.
//!
//! Two meet only where they share an `on`: the host, or one card's own interface.

use super::policy::Kind;
use super::ports::{free_from, overlap, words};
use super::{Plan, PortClaim, may_share};
use crate::diagnostic::Span;
use crate::expr::Value;
use crate::expr::port_range::PortRange;
use crate::facts::Facts;

/// The place that the kernel and other programs share with units.
const HOST: &str = "host";

/// One line of the port plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PortRow {
    /// Where: `host`, or the name of an interface.
    pub on: String,
    /// The ports, as inclusive ranges.
    pub ranges: Vec<(u16, u16)>,
    /// A unit, the owner of a reservation, a program with its pid, `kernel`.
    pub owner: String,
    /// `[ports.NAME]`, `[reserve.NAME]`, an address.
    pub name: String,
    /// What it is.
    pub kind: PortKind,
    /// Who may share them.
    pub shares: Option<String>,
    /// Where it is written.
    pub span: Option<Span>,
    /// Why, in the words of whoever wrote it.
    pub why: Option<String>,
    /// Whom it meets (claims of units only).
    pub meets: Vec<Meeting>,
}

/// What a line of the port plan is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortKind {
    /// A unit listens there.
    Claim,
    /// A program takes ports of it at random.
    Reserve,
    /// The kernel takes ports of it for outgoing connections.
    Ephemeral,
    /// Somebody listens there now.
    Listening,
}

/// Two that share a port and a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The lowest port that both have.
    pub port: u16,
    /// What the other one is.
    pub with: Met,
    /// What to do.
    pub fix: String,
}

/// The other one of a [`Meeting`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    /// A claim of a unit: both cannot be had. Unit, name of the claim.
    Claim(String, String),
    /// A random range: sometimes the port is taken. Its owner.
    Reserve(String),
    /// The kernel's range for outgoing connections: seldom the port is taken.
    Ephemeral,
    /// Somebody listens there, or this very unit does.
    Listening(String),
}

impl PortKind {
    /// As people and programs read it.
    pub fn word(self) -> &'static str {
        match self {
            PortKind::Claim => "listens",
            PortKind::Reserve => "random",
            PortKind::Ephemeral => "outgoing",
            PortKind::Listening => "taken now",
        }
    }
}

/// Every line, by place, then by port.
pub fn port_plan(plan: &Plan, facts: Option<&Facts>) -> Vec<PortRow> {
    let mut rows = others(plan, facts);
    let claims: Vec<Owned<'_>> = claims(plan).collect();
    let keep = reserving(&claims, &rows, facts);
    for (at, (unit, claim)) in claims.iter().enumerate() {
        for on in &claim.on {
            let mut meets = Vec::new();
            let peers = claims.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
            for (other, peer) in peers.filter(|(_, peer)| peer.on.contains(on)) {
                let same = other == unit && peer.name == claim.name
                    || may_share(claim.shares.as_deref(), peer.shares.as_deref());
                if let (false, Some(port)) =
                    (same || in_conflict(plan, unit, other), overlap(&claim.ranges, &peer.ranges))
                {
                    meets.push(Meeting {
                        port,
                        with: Met::Claim((*other).to_owned(), peer.name.clone()),
                        fix: fix(claim, on, port, &claims, &rows),
                    });
                }
            }
            for row in rows.iter().filter(|row| row.on == *on) {
                let Some(port) = overlap(&claim.ranges, &row.ranges) else { continue };
                if may_share(claim.shares.as_deref(), row.shares.as_deref()) {
                    continue;
                }
                let (with, fix) = match row.kind {
                    PortKind::Claim => continue,
                    PortKind::Reserve => {
                        (Met::Reserve(row.owner.clone()), fix(claim, on, port, &claims, &rows))
                    }
                    PortKind::Ephemeral => {
                        (Met::Ephemeral, format!("keep it out of the kernel's range: `sysctl {keep}`"))
                    }
                    PortKind::Listening => {
                        let fix = format!(
                            "stop {}, or change the port; nothing is wrong if it is `{unit}` itself",
                            row.owner
                        );
                        (Met::Listening(row.owner.clone()), fix)
                    }
                };
                meets.push(Meeting { port, with, fix });
            }
            rows.push(PortRow {
                on: on.clone(),
                ranges: claim.ranges.clone(),
                owner: (*unit).to_owned(),
                name: claim.name.clone(),
                kind: PortKind::Claim,
                shares: claim.shares.clone(),
                span: claim.span,
                why: claim.reason(),
                meets,
            });
        }
    }
    let low = |row: &PortRow| row.ranges.iter().map(|(low, _)| *low).min().unwrap_or(0);
    // The host first, then interfaces by name.
    rows.sort_by(|a, b| {
        (a.on != HOST, &a.on, low(a), a.kind, &a.owner).cmp(&(b.on != HOST, &b.on, low(b), b.kind, &b.owner))
    });
    rows
}

/// A claim and whose it is.
type Owned<'a> = (&'a str, &'a PortClaim);

fn claims(plan: &Plan) -> impl Iterator<Item = Owned<'_>> {
    let all = plan.policy.units.iter().zip(&plan.about);
    let planned = all.filter(|(unit, _)| unit.skipped.is_none() && !matches!(unit.kind, Kind::Group { .. }));
    planned.flat_map(|(unit, about)| about.ports.iter().map(move |claim| (&*unit.name, claim)))
}

/// Units that conflict are never up together.
fn in_conflict(plan: &Plan, one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (plan.policy.find(one), plan.policy.find(other)) else { return false };
    let names = |unit, other| plan.policy.get(unit).is_some_and(|unit| unit.conflicts.contains(&other));
    names(one, other) || names(other, one)
}

/// The setting that keeps every claim out of the kernel's range. It replaces the list there is, so it is the same for
/// all claims and holds what is reserved already.
fn reserving(claims: &[Owned<'_>], rows: &[PortRow], facts: Option<&Facts>) -> String {
    let mut all = facts.map(|facts| ranges(facts, "reserved_ports")).unwrap_or_default();
    for row in rows.iter().filter(|row| row.kind == PortKind::Ephemeral) {
        let there = claims.iter().filter(|(_, claim)| claim.on.contains(&row.on));
        let meeting = there.filter(|(_, claim)| overlap(&claim.ranges, &row.ranges).is_some());
        all.extend(meeting.flat_map(|(_, claim)| &claim.ranges));
    }
    all.sort_unstable();
    let mut joined: Vec<(u16, u16)> = Vec::new();
    for (low, high) in all {
        match joined.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => joined.push((low, high)),
        }
    }
    format!("net.ipv4.ip_local_reserved_ports={}", words(&joined).replace(", ", ","))
}

/// What would move a claim, and where there is room for it.
fn fix(claim: &PortClaim, on: &str, port: u16, claims: &[Owned<'_>], rows: &[PortRow]) -> String {
    let theirs = claims
        .iter()
        .filter(|(_, other)| !std::ptr::eq(*other, claim) && other.on.iter().any(|place| place == on));
    let taken = theirs.flat_map(|(_, other)| &other.ranges);
    let reserved = rows.iter().filter(|row| row.on == on && row.kind == PortKind::Reserve);
    let taken: Vec<(u16, u16)> = taken.chain(reserved.flat_map(|row| &row.ranges)).copied().collect();
    let knob = claim.knob_words();
    match free_from(claim, port, &taken) {
        Some(free) => format!("change {knob}: there is room from {free} on"),
        None => format!("change {knob}"),
    }
}

/// Everything but the claims of units.
fn others(plan: &Plan, facts: Option<&Facts>) -> Vec<PortRow> {
    let mut rows = Vec::new();
    for reserve in &plan.reserves {
        rows.extend(reserve.on.iter().map(|on| PortRow {
            on: on.clone(),
            ranges: reserve.ranges.clone(),
            owner: reserve.owner.clone(),
            name: reserve.name.clone(),
            kind: PortKind::Reserve,
            shares: reserve.shares.clone(),
            span: Some(reserve.span),
            why: reserve.why.clone(),
            meets: Vec::new(),
        }));
    }
    let Some(facts) = facts else { return rows };
    let on_host = |ranges, owner: String, name: String, kind| PortRow {
        on: HOST.to_owned(),
        ranges,
        owner,
        name,
        kind,
        shares: None,
        span: None,
        why: None,
        meets: Vec::new(),
    };
    let range = ranges(facts, "ephemeral");
    if !range.is_empty() {
        let left = without(&range, &ranges(facts, "reserved_ports"));
        rows.push(on_host(left, "kernel".to_owned(), "ephemeral".to_owned(), PortKind::Ephemeral));
    }
    for (port, address, who) in listening(facts) {
        rows.push(on_host(vec![(port, port)], who, address, PortKind::Listening));
    }
    rows
}

/// A fact whose text is a list of ports.
fn ranges(facts: &Facts, fact: &str) -> Vec<(u16, u16)> {
    let text = facts.get([], fact).and_then(|fact| fact.value.text());
    let parsed = text.and_then(|text| PortRange::parse(&text).ok());
    parsed.map_or_else(Vec::new, |range| {
        range.ranges().iter().map(|range| (*range.start(), *range.end())).collect()
    })
}

/// Ranges less other ranges.
fn without(from: &[(u16, u16)], holes: &[(u16, u16)]) -> Vec<(u16, u16)> {
    let mut left = from.to_vec();
    for (low, high) in holes {
        let cut = |(start, end): (u16, u16)| {
            if *high < start || end < *low {
                return [Some((start, end)), None];
            }
            let before = low.checked_sub(1).filter(|before| start <= *before).map(|before| (start, before));
            let after = high.checked_add(1).filter(|after| *after <= end).map(|after| (after, end));
            [before, after]
        };
        left = left.into_iter().flat_map(cut).flatten().collect();
    }
    left
}

/// Ports somebody listens on now: port, addresses, who.
fn listening(facts: &Facts) -> Vec<(u16, String, String)> {
    let Some(Value::List(sockets)) = facts.get([], "listening").map(|fact| &fact.value) else {
        return Vec::new();
    };
    let mut out: Vec<(u16, String, String)> = Vec::new();
    for socket in sockets.iter() {
        let Value::Map(socket) = socket else { continue };
        let text = |key: &str| socket.get(key).and_then(Value::text);
        let Some(port) = text("port").and_then(|port| port.parse().ok()) else { continue };
        let who = match (text("program"), text("pid")) {
            (Some(program), Some(pid)) => format!("{program} (pid {pid})"),
            (None, Some(pid)) => format!("pid {pid}"),
            (_, None) => "somebody".to_owned(),
        };
        let address = text("address").unwrap_or_default();
        match out.iter_mut().find(|(known, _, owner)| *known == port && *owner == who) {
            Some((_, addresses, _)) => *addresses = format!("{addresses}, {address}"),
            None => out.push((port, address, who)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_with_holes() {
        let check = |from: &[(u16, u16)], holes: &[(u16, u16)], left: &[(u16, u16)]| {
            assert_eq!(without(from, holes), left);
        };
        check(&[(10, 20)], &[], &[(10, 20)]);
        check(&[(10, 20)], &[(12, 13)], &[(10, 11), (14, 20)]);
        check(&[(10, 20)], &[(10, 10), (20, 20)], &[(11, 19)]);
        check(&[(10, 20)], &[(0, 65535)], &[]);
    }

    fn claim(low: u16, high: u16) -> PortClaim {
        PortClaim {
            name: "rpc".to_owned(),
            ranges: vec![(low, high)],
            on: vec![HOST.to_owned()],
            span: None,
            knob: None,
            why: None,
            from: None,
            shares: None,
        }
    }

    /// `sysctl` replaces the list: two claims and what is reserved already make one line, adjacent ranges joined.
    #[test]
    fn one_setting_keeps_every_claim_out_of_the_kernels_range() {
        let facts =
            Facts::from_text("ephemeral = '32768-60999'\nreserved_ports = '8080,40000-40009'\n").unwrap();
        let rows = [PortRow {
            on: HOST.to_owned(),
            ranges: vec![(32768, 60999)],
            owner: "kernel".to_owned(),
            name: "ephemeral".to_owned(),
            kind: PortKind::Ephemeral,
            shares: None,
            span: None,
            why: None,
            meets: Vec::new(),
        }];
        let (one, two, below) = (claim(50088, 50088), claim(40010, 40010), claim(9003, 9003));
        assert_eq!(
            reserving(&[("a", &one), ("b", &two), ("c", &below)], &rows, Some(&facts)),
            "net.ipv4.ip_local_reserved_ports=8080,40000-40010,50088"
        );
    }

    /// Eight cards of a thousand ports each from 20000 on: the first port that is safe is 28000; sixteen: 36000.
    #[test]
    fn the_first_port_with_room() {
        let cards = |count: u16| (0..count).map(|d| (20000 + d * 1000, 20999 + d * 1000)).collect::<Vec<_>>();
        assert_eq!(free_from(&claim(20001, 20001), 20001, &cards(8)), Some(28000));
        assert_eq!(free_from(&claim(20001, 20004), 20001, &cards(16)), Some(36000));
        assert_eq!(free_from(&claim(60000, 60020), 60000, &[(60000, 65530)]), None);
    }
}
