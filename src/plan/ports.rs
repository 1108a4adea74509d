//! The port plan: who claims what where, what is reserved, and what clashes.

mod knob;

use super::build::{Made, base_env};
use super::render::{self, Cx, Out, Rendered};
use super::scope::{Site, World};
use super::{Knob, Origin, PortClaim, PortReserve, may_share, select};
use crate::config::tree::{Node, Table};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::expr::port_range::PortRange;
use crate::resolve::select::names_units;
use crate::resolve::{Owner, UnitGraph};
use std::cell::RefCell;

/// A claim with its owner.
pub(super) struct Claim {
    /// The place of the unit in the plan.
    pub unit: usize,
    /// Its name.
    name: String,
    /// What is claimed.
    pub port: PortClaim,
}

/// What the units claim, by their own files and by the profile.
pub(super) fn claims(
    world: World<'_>,
    made: &[Made<'_>],
    diagnostics: &RefCell<Vec<Diagnostic>>,
) -> Vec<Claim> {
    let mut out = Vec::new();
    for (at, made) in made.iter().enumerate().filter(|(_, made)| made.is_planned()) {
        let profile = world.graph.profile.as_ref().map(|profile| &profile.tree);
        let own = Site::own(world, made.unit, &made.env);
        let theirs = Site::profile(world, made.unit, &made.env);
        for (site, tree) in [(&own, Some(&made.unit.tree)), (&theirs, profile)] {
            let Some(table) = tree.and_then(|tree| tree.get("ports")).and_then(Node::as_table) else {
                continue;
            };
            let Some(scope) = site.scope() else { continue };
            let cx = Cx::new(&scope, site, diagnostics);
            unit_claims(&cx, table, made, at, &mut out);
        }
    }
    out
}

fn unit_claims(cx: &Cx<'_>, table: &Table, made: &Made<'_>, at: usize, out: &mut Vec<Claim>) {
    let unit = made.unit;
    for (name, key, node) in table.iter() {
        let Some(claim) = node.as_table() else { continue };
        if select::selects(claim, unit) == Some(false) {
            continue;
        }
        let span = claim.get("value").map_or(key, |value| value.span);
        turns(cx, claim, &mut |cx| {
            let value = claim.get("value");
            if value.is_some_and(|value| knob::bad_offers(cx, (name, key), value, made) > 0) {
                // Said where it is written.
                return;
            }
            let (ranges, on) = (ranges(cx, value), places(cx, claim));
            // Ports of no place (no cards, for example) are no claim.
            if !ranges.is_empty() && !on.is_empty() {
                out.push(Claim {
                    unit: at,
                    name: unit.name.to_string(),
                    port: PortClaim {
                        name: name.to_owned(),
                        knob: value.and_then(|value| knob::knob(cx, value, &ranges, made)),
                        ranges,
                        on,
                        span: Some(span),
                        shares: shares(cx, claim),
                        why: why(claim),
                        from: value.and_then(|value| from(value, made)),
                    },
                });
            }
        });
    }
}

/// Calls `turn` once, or once for each element of `each`, where `when` holds.
fn turns(cx: &Cx<'_>, table: &Table, turn: &mut dyn FnMut(&Cx<'_>)) {
    let mut conditional = |cx: &Cx<'_>| {
        if table.get("when").is_none_or(|when| cx.holds(when) == Some(true)) {
            turn(cx);
        }
    };
    match table.get("each") {
        Some(each) => {
            cx.each(each, &mut conditional);
        }
        None => conditional(cx),
    }
}

/// Who may have the same ports.
fn shares(cx: &Cx<'_>, table: &Table) -> Option<String> {
    let rendered = render::node(cx, table.get("shares")?)?;
    super::read::plain_text(&rendered).filter(|word| !word.is_empty())
}

fn places(cx: &Cx<'_>, table: &Table) -> Vec<String> {
    let Some(node) = table.get("on") else { return vec!["host".into()] };
    let items = render::elements(cx, node.one_or_more());
    items.iter().filter_map(super::read::plain_text).collect()
}

/// The ports of a value: a number, words, or a list of both. Nothing, `""`, 0 and `auto` claim nothing.
fn ranges(cx: &Cx<'_>, node: Option<&Node>) -> Vec<(u16, u16)> {
    let Some(node) = node else { return Vec::new() };
    let items = render::elements(cx, node.one_or_more());
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for range in items.iter().flat_map(|item| item_ranges(cx, node, item)) {
        if !ranges.contains(&range) {
            ranges.push(range);
        }
    }
    ranges
}

fn item_ranges(cx: &Cx<'_>, node: &Node, item: &Rendered) -> Vec<(u16, u16)> {
    let text = match &item.item {
        Out::Unknown => return Vec::new(),
        _ => super::read::plain_text(item).unwrap_or_default(),
    };
    if matches!(text.trim(), "" | "0") {
        return Vec::new();
    }
    match PortRange::parse(&text) {
        Ok(range) => range.ranges().iter().map(|range| (*range.start(), *range.end())).collect(),
        Err(message) => {
            let read = cx.set_at(&knob::reads(node));
            let wrong = Diagnostic::error(Code::WrongValue, message).at(item.span, "");
            cx.report(
                read.into_iter()
                    .fold(wrong, |wrong, (name, span)| wrong.context(span, format!("`{name}` is set here"))),
            );
            Vec::new()
        }
    }
}

fn why(table: &Table) -> Option<String> {
    table.get("why").and_then(Node::as_str).map(str::to_owned)
}

/// The first variable that a value reads, and who set that.
fn from(node: &Node, made: &Made<'_>) -> Option<(String, Origin)> {
    let env = made.env.borrow();
    let mut variables = knob::reads(node).into_iter().filter(|read| read.root == "env");
    variables.find_map(|read| Some((read.member.clone(), env.winner(&read.member)?.clone())))
}

/// What the profile reserves: once, or once for each unit that a reservation names, over the variables of that unit.
pub(super) fn reserves(
    world: World<'_>,
    made: &[Made<'_>],
    diagnostics: &RefCell<Vec<Diagnostic>>,
) -> Vec<PortReserve> {
    let Some(profile) = &world.graph.profile else { return Vec::new() };
    let Some(table) = profile.tree.get("reserve").and_then(Node::as_table) else { return Vec::new() };
    let env = base_env(world);
    let nobodys = Site { world, owner: Owner::Profile, unit: None, env: &env };
    let mut out: Vec<PortReserve> = Vec::new();
    for (name, key, node) in table.iter() {
        let Some(reserve) = node.as_table() else { continue };
        let mut at = |site: &Site<'_>| {
            let Some(scope) = site.scope() else { return };
            let cx = Cx::new(&scope, site, diagnostics);
            turns(&cx, reserve, &mut |cx| {
                let found = reservation(cx, name, key, reserve);
                // Units with the same variables draw from the same ports.
                out.extend(found.filter(|new| out.iter().all(|known| known != new)));
            });
        };
        if !names_units(reserve) {
            at(&nobodys);
            continue;
        }
        let selected =
            |made: &&Made<'_>| made.is_planned() && select::selects(reserve, made.unit) == Some(true);
        for made in made.iter().filter(selected) {
            at(&Site::profile(world, made.unit, &made.env));
        }
    }
    out
}

/// One reservation; none if it comes to no ports.
fn reservation(cx: &Cx<'_>, name: &str, key: Span, reserve: &Table) -> Option<PortReserve> {
    let ranges = ranges(cx, reserve.get("value"));
    let owner = reserve.get("owner").and_then(|owner| render::node(cx, owner));
    let owner = owner.as_ref().and_then(super::read::plain_text).unwrap_or_else(|| name.to_owned());
    (!ranges.is_empty()).then(|| PortReserve {
        name: name.to_owned(),
        ranges,
        on: places(cx, reserve),
        owner,
        why: why(reserve),
        shares: shares(cx, reserve),
        span: reserve.get("value").map_or(key, |value| value.span),
    })
}

/// Claims that share a port and a place, and claims of reserved ports.
pub(super) fn clashes(graph: &UnitGraph, claims: &[Claim], reserves: &[PortReserve]) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let taken = |place: &str, but: &Claim| -> Vec<(u16, u16)> {
        let theirs = claims.iter().filter(|claim| !std::ptr::eq(*claim, but)).map(|claim| &claim.port);
        let theirs = theirs.filter(|port| port.on.iter().any(|on| on == place)).flat_map(|port| &port.ranges);
        let random =
            reserves.iter().filter(|one| one.on.iter().any(|on| on == place)).flat_map(|one| &one.ranges);
        theirs.chain(random).copied().collect()
    };
    for (at, one) in claims.iter().enumerate() {
        for other in claims.iter().skip(at + 1) {
            let same = one.unit == other.unit && one.port.name == other.port.name
                || may_share(one.port.shares.as_deref(), other.port.shares.as_deref());
            if same || may_not_meet(graph, one, other) {
                continue;
            }
            let place = one.port.on.iter().find(|place| other.port.on.contains(place));
            if let (Some(place), Some(port)) = (place, overlap(&one.port.ranges, &other.port.ranges)) {
                // Room is looked for where somebody can change something.
                let first = moves_alone(one, other) && !moves_alone(other, one);
                let moved = if first { one } else { other };
                let free = free_from(&moved.port, port, &taken(place, moved));
                out.push(clash(one, other, (place, port), &free_words(&moved.port, free)));
            }
        }
        let strange =
            |reserve: &&PortReserve| !may_share(one.port.shares.as_deref(), reserve.shares.as_deref());
        for reserve in reserves.iter().filter(strange) {
            let place = one.port.on.iter().find(|place| reserve.on.contains(place));
            if let (Some(place), Some(port)) = (place, overlap(&one.port.ranges, &reserve.ranges)) {
                out.push(reserved(one, reserve, place, port, free_from(&one.port, port, &taken(place, one))));
            }
        }
    }
    out
}

/// The first port at or above a claim's own where all of the claim's range fits beside what is taken.
pub(super) fn free_from(claim: &PortClaim, port: u16, taken: &[(u16, u16)]) -> Option<u16> {
    let (low, high) = claim.ranges.iter().copied().find(|(low, high)| (*low..=*high).contains(&port))?;
    let width = high - low;
    let mut start = low;
    // Each turn passes one taken range, and there are only so many.
    for _ in 0..=taken.len() {
        let end = start.checked_add(width)?;
        match taken.iter().filter(|(low, high)| *low <= end && start <= *high).map(|(_, high)| *high).max() {
            None => return Some(start),
            Some(high) => start = high.checked_add(1)?,
        }
    }
    None
}

/// Units that conflict are never up together.
fn may_not_meet(graph: &UnitGraph, one: &Claim, other: &Claim) -> bool {
    let names = |unit: &str, name: &str| {
        graph.units.get(unit).is_some_and(|unit| unit.conflicts.iter().any(|(known, _)| **known == *name))
    };
    names(&one.name, &other.name) || names(&other.name, &one.name)
}

/// The lowest port that both have.
pub(super) fn overlap(one: &[(u16, u16)], other: &[(u16, u16)]) -> Option<u16> {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    pairs.filter(|(low, high)| low <= high).map(|(low, _)| low).min()
}

fn clash(one: &Claim, other: &Claim, (place, port): (&str, u16), room: &str) -> Diagnostic {
    let message = format!(
        "port {port} on `{place}` is claimed twice: `{}` of `{}` and `{}` of `{}`",
        one.port.name, one.name, other.port.name, other.name
    );
    let mut diagnostic = Diagnostic::error(Code::PortClash, message);
    for claim in [one, other] {
        if let Some(span) = claim.port.span {
            diagnostic = diagnostic.at(
                span,
                format!("`{}` of `{}`: {}", claim.port.name, claim.name, words(&claim.port.ranges)),
            );
        }
    }
    diagnostic.with_help(cure(one, other) + room)
}

/// What moves exactly one of two claims.
fn cure(one: &Claim, other: &Claim) -> String {
    let knobs: Vec<&Knob> = [one, other].iter().filter_map(|claim| claim.port.knob.as_ref()).collect();
    match knobs.as_slice() {
        [] => "change one of the two values".to_owned(),
        [knob] => format!("change {}", knob.words),
        [a, b, ..] if move_together(a, b) => {
            let source = a.source.as_deref().unwrap_or(&a.words);
            let alone: Vec<&str> = [a, b].iter().filter_map(|knob| knob.alone.as_deref()).collect();
            match alone.as_slice() {
                [] => format!(
                    "{source} moves both, and no key moves one alone: let one of them read a value of its own"
                ),
                _ => format!("change {}: {source} would move both", alone.join(" or ")),
            }
        }
        [a, b, ..] => format!("change {} or {}", a.words, b.words),
    }
}

/// Whether both get their value from one place.
fn move_together(one: &Knob, other: &Knob) -> bool {
    one.words == other.words || one.source.is_some() && one.source == other.source
}

/// Whether something that can be written moves this one and leaves the other where it is.
fn moves_alone(one: &Claim, other: &Claim) -> bool {
    match (&one.port.knob, &other.port.knob) {
        (Some(a), Some(b)) if move_together(a, b) => a.alone.is_some(),
        (own, _) => own.is_some(),
    }
}

/// `: from 28000 on there is room`.
fn free_words(claim: &PortClaim, free: Option<u16>) -> String {
    match free {
        Some(free) => format!("; `{}` has room from {free} on", claim.name),
        None => String::new(),
    }
}

fn reserved(claim: &Claim, reserve: &PortReserve, place: &str, port: u16, free: Option<u16>) -> Diagnostic {
    let message = format!(
        "port {port} on `{place}` belongs to {}, and `{}` of `{}` claims it",
        reserve.owner, claim.port.name, claim.name
    );
    let mut diagnostic = Diagnostic::warning(Code::PortReserved, message);
    if let Some(span) = claim.port.span {
        diagnostic = diagnostic.at(span, words(&claim.port.ranges));
    }
    diagnostic = diagnostic.context(reserve.span, words(&reserve.ranges));
    diagnostic.with_help(format!("change {}{}", claim.port.knob_words(), free_words(&claim.port, free)))
}

/// `8080, 9000-9003`.
pub(super) fn words(ranges: &[(u16, u16)]) -> String {
    let one = |(low, high): &(u16, u16)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(", ")
}
