//! Edges, order and cycles: what the graph makes of a plan.

use super::*;
use crate::sim::parse;

/// A plan as scenario text, a question, and the names that answer it.
fn check(plan: &str, ask: impl Fn(&Graph, &dyn Fn(&str) -> UnitId) -> Vec<UnitId>, expected: &[&str]) {
    let plan = parse(plan).expect("the plan can be read").plan;
    let graph = Graph::new(&plan);
    let find = |name: &str| plan.find(name).expect("the unit is there");
    let names: Vec<&str> =
        ask(&graph, &find).iter().map(|unit| &*plan.get(*unit).expect("no stranger").name).collect();
    assert_eq!(names, expected);
}

#[test]
fn edges_to_a_group_are_edges_to_its_members() {
    let plan = "unit a
                unit b
                unit inner group=b
                unit outer group=a,inner
                unit web needs=outer";
    check(plan, |graph, find| graph.edges(find("web")).iter().map(|edge| edge.to).collect(), &["a", "b"]);
    check(plan, |graph, find| graph.members(find("outer")).to_vec(), &["a", "b"]);
    check(plan, |graph, find| graph.stop_after(find("a")).to_vec(), &[]);
}

#[test]
fn what_a_start_pulls_in_and_who_depends() {
    let plan = "unit a
                unit b needs=a
                unit c wants=b
                unit d after=c";
    check(plan, |graph, find| graph.pulled_in(&[find("c")]), &["c", "b", "a"]);
    check(plan, |graph, find| graph.pulled_in(&[find("d")]), &["d"]);
    check(plan, |graph, find| graph.all_dependents(&[find("a")]), &["b"]);
}

#[test]
fn a_ring_in_the_stop_order_is_cut() {
    // Waiting in it would never end; the entry that closes the ring is the one left out.
    let plan = "unit a stop_after=b
                unit b stop_after=c
                unit c stop_after=a";
    check(plan, |graph, find| graph.stop_after(find("a")).to_vec(), &["b"]);
    check(plan, |graph, find| graph.stop_after(find("b")).to_vec(), &["c"]);
    check(plan, |graph, find| graph.stop_after(find("c")).to_vec(), &[]);
}

#[test]
fn who_holds_data_lets_everybody_go_first_who_need_not_wait_for_it() {
    let plan = "unit master
                unit store needs=master holds_data
                unit web
                unit vault holds_data";
    // `master` stops after the store by their order; the other holder of data is its equal.
    check(plan, |graph, find| graph.before_data(find("store")).to_vec(), &["web"]);
    check(plan, |graph, find| graph.before_data(find("web")).to_vec(), &[]);
    // Nor does anybody go first who has to wait for somebody who has to wait for it.
    let plan = "unit last stop_after=next
                unit next stop_after=store
                unit store holds_data";
    check(plan, |graph, find| graph.before_data(find("store")).to_vec(), &[]);
}

#[test]
fn groups_in_a_ring_have_the_members_that_they_have() {
    let plan = "unit a
                unit one group=two,a
                unit two group=one";
    check(plan, |graph, find| graph.members(find("two")).to_vec(), &["a"]);
}

#[test]
fn a_need_without_an_order_watches_what_is_behind_the_other() {
    let plan = "unit c
                unit b needs=c
                unit a needs=b:unordered
                unit d needs=b";
    check(plan, |graph, find| graph.watchers(find("c")).to_vec(), &["b", "a"]);
    check(plan, |graph, find| graph.watchers(find("b")).to_vec(), &["c", "a", "d"]);
}

#[test]
fn conflicts_are_mutual() {
    let plan = "unit a
                unit b conflicts=a";
    check(plan, |graph, find| graph.conflicts(find("a")).to_vec(), &["b"]);
}

#[test]
fn strangers_are_left_out() {
    let mut plan = parse("unit a").expect("the plan can be read").plan;
    plan.units[0].stop_after = vec![UnitId(7), UnitId(0)];
    plan.units[0].conflicts = vec![UnitId(9), UnitId(0)];
    let graph = Graph::new(&plan);
    assert!(graph.stop_after(UnitId(0)).is_empty() && graph.conflicts(UnitId(0)).is_empty());
    assert!(graph.edges(UnitId(7)).is_empty());
}

#[test]
fn who_is_down_first_of_some() {
    let plan = "unit a
                unit b needs=a
                unit c
                unit d stop_after=c";
    let order = |units: [u32; 4]| {
        move |graph: &Graph, _: &dyn Fn(&str) -> UnitId| graph.in_stop_order(units.map(UnitId).to_vec())
    };
    // By their order; the last first where there is none.
    check(plan, order([0, 1, 2, 3]), &["c", "d", "b", "a"]);
    check(plan, order([1, 0, 3, 2]), &["c", "d", "b", "a"]);
    check(plan, |graph, _| graph.in_stop_order(vec![UnitId(3), UnitId(0)]), &["a", "d"]);
}
