//! Edges to groups, edges of groups, groups of groups.

use super::{check, plan};

#[test]
fn an_edge_to_a_group_is_an_edge_to_its_members() {
    plan(
        "--- units/a.toml\ncommand = 'a'\nneeds = ['g']
         --- units/g.toml\nkind = 'group'\nmembers = ['m*']
         --- units/m1.toml\ncommand = 'm'
         --- units/m2.toml\ncommand = 'm'
         --- tenon.toml\nrun = ['a']",
        &[],
        "g (needed by a)
         m1 (member of g)
           stops after a
         m2 (member of g)
           stops after a
         a (run)
           needs g -> m1 Spawned
           needs g -> m2 Spawned",
    );
}

#[test]
fn the_edges_of_a_group_are_its_members_too() {
    plan(
        "--- units/db.toml\ncommand = 'db'\nready = { settle = '1s' }
         --- units/cache.toml\ncommand = 'cache'
         --- units/late.toml\ncommand = 'late'
         --- units/g.toml\nkind = 'group'\nmembers = ['m*', 'cache', 'inner']\nneeds = ['db']\nafter = ['cache']
         before = ['late']\nstop_after = ['last']
         --- units/inner.toml\nkind = 'group'\nmembers = ['deep']
         --- units/deep.toml\ncommand = 'm'
         --- units/m1.toml\ncommand = 'm'\nneeds = ['db:spawned']
         --- units/m2.toml\ncommand = 'm'
         --- units/last.toml\ncommand = 'last'
         --- tenon.toml\nrun = ['g', 'late', 'last']",
        &[],
        "last (run)
         db (needed by g)
           stops after g, m1, m2, cache, deep
         cache (member of g)
           needs db of g -> db Ready
           stops after last, g, late, m1, m2, deep
         g (run)
           needs db -> db Ready
           after cache -> cache Spawned
           stops after last
         m1 (member of g)
           needs db -> db Spawned
           after cache of g -> cache Spawned
           stops after last, late
         m2 (member of g)
           needs db of g -> db Ready
           after cache of g -> cache Spawned
           stops after last, late
         inner (member of g)
         deep (member of inner)
           needs db of g -> db Ready
           after cache of g -> cache Spawned
           stops after last, late
         late (run)
           before late of g -> cache Spawned
           before late of g -> deep Spawned
           before late of g -> m1 Spawned
           before late of g -> m2 Spawned",
    );
}

#[test]
fn what_several_edges_and_groups_hand_down_adds_up() {
    plan(
        "--- units/db.toml\ncommand = 'db'\nready = { settle = '1s' }
         --- units/g.toml\nkind = 'group'\nmembers = ['m']\nneeds = ['db:spawned', { unit = 'db', timeout = '1s' }]
         --- units/h.toml\nkind = 'group'\nmembers = ['m']\nneeds = ['db']
         --- units/m.toml\ncommand = 'm'
         --- tenon.toml\nrun = ['g', 'h']",
        &[],
        "db (needed by g)
           stops after g, h, m
         g (run)
           needs db -> db Spawned
           needs db -> db Ready
         h (run)
           needs db -> db Ready
         m (member of g)
           needs db of g -> db Spawned
           needs db of g -> db Ready
           needs db of h -> db Ready",
    );
}

#[test]
fn what_a_member_waits_for_is_a_circle_like_any_other() {
    // What a member waits for cannot wait for another member in turn.
    check(
        "--- units/g.toml\nkind = 'group'\nmembers = ['a', 'b']\nneeds = ['a']
         --- units/a.toml\ncommand = 'a'\nneeds = ['b']
         --- units/b.toml\ncommand = 'b'
         --- tenon.toml\nrun = ['g']",
        &[],
        "error[dependency-cycle] units/a.toml:2: units wait for each other in a circle: a → b → a
           units/g.toml:3: `b` waits for `a`: needs a of g
           help: take one of these edges away, or let it order the stop only: `order = \"stop\"`",
    );
}

#[test]
fn a_circle_of_groups_is_refused_whether_they_run_or_not() {
    let help = "help: take one of these members away: an edge to a group is one to its members, and here there would be none";
    check(
        "--- units/g.toml\nkind = 'group'\nmembers = ['a', 'g2']
         --- units/g2.toml\nkind = 'group'\nmembers = ['g*']
         --- units/a.toml\ncommand = 'a'
         --- tenon.toml\nrun = ['a']",
        &[],
        &format!(
            "error[dependency-cycle] units/g.toml:2: groups hold each other in a circle: g → g2 → g
             units/g2.toml:2: `g2` holds `g`: members g*
             {help}"
        ),
    );
    check(
        "--- units/g.toml\nkind = 'group'\nmembers = ['g']\n--- tenon.toml\nrun = ['g']",
        &[],
        &format!("error[dependency-cycle] units/g.toml:2: groups hold each other in a circle: g → g\n{help}"),
    );
}
