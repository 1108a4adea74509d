//! Situations at the edges of the rules, as in `scenarios.rs`.

use super::scenarios::check;

#[test]
fn two_stores_with_masters_of_their_own_do_not_wait_for_each_other() {
    // Each goes before its own master, and neither for the sake of the other's.
    check(
        "unit one
         unit two
         unit first  needs=one holds_data
         unit second needs=two holds_data
         unit web
         does web term=1s
         does first term=2s
         at 1s shutdown",
        "0s one ready
         0s two ready
         0s web ready
         0s first ready
         0s second ready
         1s one stopping
         1s two stopping
         1s first stopping
         1s second stopping
         1s web stopping
         1s web SIGTERM to main
         2s web inactive (the runner shuts down)
         2s first SIGTERM to main
         2s second SIGTERM to main
         2s second inactive (the runner shuts down)
         2s two SIGTERM to main
         2s two inactive (the runner shuts down)
         4s first inactive (the runner shuts down)
         4s one SIGTERM to main
         4s one inactive (the runner shuts down)
         4s exit 0",
    );
}

#[test]
fn data_waits_for_those_only_who_stop_for_the_same_reason() {
    check(
        "unit store holds_data
         unit web
         unit else
         does web term=5s
         at 1s stop web
         at 2s stop store
         until 20s",
        "0s store ready
         0s web ready
         0s else ready
         1s web stopping
         1s web SIGTERM to main
         2s store SIGTERM to main
         2s store inactive (stop requested)
         2s reply 2 done
         6s web inactive (stop requested)
         6s reply 1 done",
    );
    check(
        "unit store holds_data
         unit web
         unit else
         does web term=5s
         at 1s stop store web
         until 20s",
        "0s store ready
         0s web ready
         0s else ready
         1s store stopping
         1s web stopping
         1s web SIGTERM to main
         6s web inactive (stop requested)
         6s store SIGTERM to main
         6s store inactive (stop requested)
         6s reply 1 done",
    );
}

#[test]
fn nothing_left_to_keep_is_the_end_whatever_a_group_wants() {
    check(
        "unit web
         unit all group=web
         unit not skipped=role
         at 1s stop web
         until 20s",
        "0s web ready
         0s all ready
         1s web SIGTERM to main
         1s web inactive (stop requested)
         1s all inactive (its members are)
         1s reply 1 done
         1s exit 0",
    );
    // Something else that does not answer is waited for.
    check(
        "unit pool external ready=poll/1s timeout=3s
         does pool ready=never
         until 20s",
        "0s pool starting
         3s pool waiting (unreachable: not yet)",
    );
}

#[test]
fn a_need_without_an_order_does_not_come_up_beside_ruins() {
    check(
        "unit db   max=0
         unit web  needs=db:unordered
         unit kept needs=db:unordered:keep
         unit then after=db:unordered
         does db   dies=2s/1 | lives
         does kept dies=3s/1 | lives
         does then dies=3s/1 | lives
         at 9s start db
         until 20s",
        "0s db ready
         0s web ready
         0s kept ready
         0s then ready
         2s db failed (exited with 1; 0 restarts used up)
         2s web SIGTERM to main
         2s web waiting (on db: exited with 1; 0 restarts used up)
         3s kept backoff (exited with 1)
         3s then backoff (exited with 1)
         4s kept ready
         4s then ready
         9s db ready
         9s reply 1 done
         9s web ready",
    );
    // Nor beside somebody who waits for them.
    check(
        "unit c max=0
         unit b needs=c
         unit a needs=b:unordered
         does c dies=2s/1 | lives
         at 9s start c
         until 20s",
        "0s c ready
         0s a ready
         0s b ready
         2s c failed (exited with 1; 0 restarts used up)
         2s b SIGTERM to main
         2s a SIGTERM to main
         2s b waiting (on c: exited with 1; 0 restarts used up)
         2s a waiting (on b: waiting itself)
         9s c ready
         9s reply 1 done
         9s a ready
         9s b ready",
    );
    // Who waits for them and would have stayed up without them is no ruin.
    check(
        "unit c max=0
         unit b needs=c:keep
         unit a needs=b:unordered
         does c dies=2s/1
         does b dies=3s/1
         does a dies=5s/1 | lives
         until 20s",
        "0s c ready
         0s a ready
         0s b ready
         2s c failed (exited with 1; 0 restarts used up)
         3s b backoff (exited with 1)
         4s b waiting (on c: exited with 1; 0 restarts used up)
         5s a backoff (exited with 1)
         6s a ready",
    );
}

#[test]
fn what_is_a_ruin_to_a_need_without_an_order() {
    // A task that has succeeded is none; a service that has ended is one.
    check(
        "unit job  task
         unit once restart=on_failure
         unit web  needs=job:unordered
         unit api  needs=once:unordered
         does job  dies=1s/0
         does once dies=2s/0
         does web  dies=3s/1 | lives
         until 20s",
        "0s job starting
         0s once ready
         0s web ready
         0s api ready
         1s job finished
         2s once finished
         2s api SIGTERM to main
         2s api waiting (on once: exited with 0)
         3s web backoff (exited with 1)
         4s web ready",
    );
    // Something else that does not answer is one if its loss stops others.
    check(
        "unit strict external=stop ready=poll/1s
         unit mild   external ready=poll/1s
         unit web needs=strict:unordered
         unit api needs=mild:unordered
         does api dies=9s/1 | lives
         at 2s sick strict
         at 2s sick mild
         at 20s well strict
         until 30s",
        "0s strict ready
         0s mild ready
         0s web ready
         0s api ready
         4s strict waiting (unreachable: no answer)
         4s web SIGTERM to main
         4s mild waiting (unreachable: no answer)
         4s web waiting (on strict: unreachable: no answer)
         9s api backoff (exited with 1)
         10s api ready
         20s strict ready
         20s web ready",
    );
}

#[test]
fn an_end_counts_as_finished_and_only_a_task_stays_satisfied() {
    check(
        "unit once  restart=on_failure
         unit after needs=once:finished
         unit with  needs=once:ready
         unit setup task
         unit needy needs=setup:ready
         does once  dies=2s/0
         does setup dies=1s/0
         until 20s",
        "0s after waiting (on once: waiting itself)
         0s needy waiting (on setup: waiting itself)
         0s setup starting
         0s once ready
         0s with ready
         1s setup finished
         1s needy ready
         2s once finished
         2s with SIGTERM to main
         2s after ready
         2s with waiting (on once: exited with 0)",
    );
}

#[test]
fn who_is_not_wanted_any_more_keeps_no_order_waiting() {
    check(
        "unit db  ready=poll/1s
         unit web after=db
         does db  ready=never
         at 2s stop db
         until 20s",
        "0s web waiting (on db: waiting itself)
         0s db starting
         2s db SIGTERM to main
         2s db inactive (stop requested)
         2s reply 1 done
         2s web ready",
    );
}

#[test]
fn a_stuck_start_is_an_end_for_those_behind_it_too() {
    check(
        "unit bad   delays=60s
         unit needy needs=bad
         unit far   needs=needy
         unit then  after=far
         does bad   spawn=fail
         at 5s start far
         until 20s",
        "0s needy waiting (on bad: waiting itself)
         0s far waiting (on needy: waiting itself)
         0s bad backoff (cannot fork: resource temporarily unavailable)
         0s then ready
         5s reply 1 failed: `far` waits for `bad`: cannot fork: resource temporarily unavailable",
    );
}

#[test]
fn a_process_that_comes_to_be_after_its_stop_is_sent_the_signal_too() {
    check(
        "unit web stop=SIGINT/9s
         unit deaf stop=SIGTERM/1s
         unit else
         does web  spawn=3s
         does deaf spawn=3s
         at 1s stop web deaf
         until 30s",
        "0s web starting
         0s deaf starting
         0s else ready
         1s web stopping
         1s deaf stopping
         3s web SIGINT to main
         3s deaf SIGKILL to tree
         3s web inactive (stop requested)
         3s deaf inactive (stop requested)
         3s reply 1 done",
    );
}

#[test]
fn a_process_that_never_comes_to_be_ends_its_stop() {
    check(
        "unit web
         unit else
         does web spawn=fail/0s spawn=3s
         at 1s stop web
         until 30s",
        "0s web starting
         0s else ready
         1s web stopping
         3s web inactive (stop requested)
         3s reply 1 done",
    );
}

#[test]
fn a_hurried_ladder_has_one_rung() {
    check(
        "unit web stop=SIGINT/9s,SIGTERM/9s
         does web term=ignore
         at 1s shutdown fast",
        "0s web ready
         1s web stopping
         1s web SIGINT to main
         2s web SIGKILL to tree
         2s web inactive (the runner shuts down)
         2s exit 0",
    );
}

#[test]
fn killed_for_a_share_that_is_too_small_is_told_by_the_status() {
    // 20 s each are wanted of 10 s: the first has 5 s; the second goes at once, well before the budget is used up.
    check(
        "unit db  stop=SIGTERM/20s
         unit web needs=db stop=SIGTERM/20s
         does web term=ignore
         budget 10s
         at 1s shutdown",
        "0s db ready
         0s web ready
         1s db stopping
         1s web stopping
         1s web SIGTERM to main
         6s web SIGKILL to tree
         6s web inactive (the runner shuts down)
         6s db SIGTERM to main
         6s db inactive (the runner shuts down)
         6s exit 75",
    );
    // A ladder that fits is no short one.
    check(
        "unit web stop=SIGTERM/2s
         does web term=ignore
         budget 10s
         at 1s shutdown",
        "0s web ready
         1s web stopping
         1s web SIGTERM to main
         3s web SIGKILL to tree
         3s web inactive (the runner shuts down)
         3s exit 0",
    );
}

#[test]
fn the_status_of_the_main_unit() {
    // Stopped as asked; killed at the end of its ladder; by another signal than the one sent; by nobody here.
    let ends = [
        (
            "unit app main\nat 2s stop app",
            "0s app ready
         2s app SIGTERM to main
         2s app inactive (stop requested)
         2s reply 1 done
         2s exit 0",
        ),
        (
            "unit app main stop=SIGTERM/1s\ndoes app term=ignore\nat 2s shutdown",
            "0s app ready
         2s app stopping
         2s app SIGTERM to main
         3s app SIGKILL to tree
         3s app inactive (the runner shuts down)
         3s exit 137",
        ),
        (
            "unit app main restart=never\nat 2s crash app SIGTERM",
            "0s app ready
         2s app failed (killed by SIGTERM; restart is `never`)
         2s exit 143",
        ),
        (
            "unit app main max=0\ndoes app prepare=fail",
            "0s app failed (preflight does not hold; 0 restarts used up)
         0s exit 69",
        ),
        (
            "unit app main\ndoes app prepare=9s\nat 2s shutdown",
            "0s app preparing
         2s app inactive (the runner shuts down)
         2s exit 0",
        ),
        // Its success does not hide that a unit gave up.
        (
            "unit app main\nunit web max=0 on_limit=shutdown\ndoes web dies=2s/1",
            "0s app ready
         0s web ready
         2s web failed (exited with 1; 0 restarts used up)
         2s app SIGTERM to main
         2s app inactive (the runner shuts down)
         2s exit 69",
        ),
    ];
    for (scenario, expected) in ends {
        check(scenario, expected);
    }
}

#[test]
fn who_follows_a_restart() {
    // Not who holds data, nor who is younger than what it follows, nor who only wants an order.
    check(
        "unit db    ready=poll/1s
         unit store needs=db:follow holds_data
         unit eager needs=db:spawned:follow
         unit then  after=db:follow
         unit web   needs=db:follow
         does db    ready=2s dies=6s/1 | ready=2s
         until 20s",
        "0s store waiting (on db: waiting itself)
         0s then waiting (on db: waiting itself)
         0s web waiting (on db: waiting itself)
         0s db starting
         0s eager ready
         2s db ready
         2s store ready
         2s then ready
         2s web ready
         6s db backoff (exited with 1)
         7s db starting
         9s db ready
         9s eager SIGTERM to main
         9s web SIGTERM to main
         9s eager ready
         9s web ready",
    );
}

#[test]
fn an_unreachable_external_is_not_asked_while_what_it_needs_is_down() {
    check(
        "unit db
         unit pool external ready=poll/1s needs=db
         at 2s sick pool
         at 6s stop db
         at 8s well pool
         at 12s start db
         until 20s",
        "0s db ready
         0s pool ready
         4s pool waiting (unreachable: no answer)
         6s db SIGTERM to main
         6s db inactive (stop requested)
         6s reply 1 done
         12s db ready
         12s reply 2 done
         12s pool ready",
    );
}

#[test]
fn the_governor_lets_those_of_its_order_go_first() {
    check(
        "unit one ready=poll/1s
         unit two ready=poll/1s
         does one ready=2s
         does two ready=3s
         governor concurrent=1 order=two
         until 20s",
        "0s one waiting
         0s two starting
         3s two ready
         3s one starting
         5s one ready",
    );
    // Until it is ready, a service with a settle time is on its way.
    check(
        "unit one settle=2s
         unit two settle=2s
         governor concurrent=1
         until 20s",
        "0s two waiting
         0s one starting
         2s one ready
         2s two starting
         4s two ready",
    );
}

#[test]
fn who_is_being_stopped_to_start_again_comes_first_unless_it_is_held() {
    let plan = "unit db  stop=SIGTERM/5s
                unit web
                governor order=db,web
                does db  term=60s
                does web dies=9s/1 | lives
                until 20s
                at 6s restart db";
    check(
        plan,
        "0s db ready
         0s web ready
         6s db stopping
         6s db SIGTERM to main
         9s web backoff (exited with 1)
         10s web waiting
         11s db SIGKILL to tree
         11s db ready
         11s reply 1 done
         11s web ready",
    );
    check(
        &format!("{plan}\nat 1s hold db"),
        "0s db ready
         0s web ready
         1s reply 1 done
         6s db stopping
         6s db SIGTERM to main
         9s web backoff (exited with 1)
         10s web ready
         11s db SIGKILL to tree
         11s db ready
         11s reply 2 done",
    );
}

#[test]
fn who_has_failed_keeps_nobody_waiting_while_it_is_stopped() {
    check(
        "unit db  stop=SIGTERM/5s delays=30s
         unit web
         governor order=db,web
         does db  dies=9s/1 left=60s/stubborn | lives
         does web dies=9s/1 | lives
         until 20s",
        "0s db ready
         0s web ready
         9s db stopping
         9s db SIGTERM to tree
         9s web backoff (exited with 1)
         10s web ready
         14s db SIGKILL to tree
         14s db backoff (exited with 1)",
    );
    // Nor does one that will wait for somebody else.
    check(
        "unit disk
         unit db  needs=disk stop=SIGTERM/5s
         unit web
         governor order=db,web
         does db  term=60s
         does web dies=9s/1 | lives
         until 20s
         at 6s stop disk",
        "0s web ready
         0s disk ready
         0s db ready
         6s disk stopping
         6s db stopping
         6s db SIGTERM to main
         9s web backoff (exited with 1)
         10s web ready
         11s db SIGKILL to tree
         11s db waiting (on disk: stop requested)
         11s disk SIGTERM to main
         11s disk inactive (stop requested)
         11s reply 1 done",
    );
}

#[test]
fn in_a_hurry_nobody_waits_for_anybody() {
    check(
        "unit db
         unit web needs=db
         does web term=500ms
         at 1s shutdown fast",
        "0s db ready
         0s web ready
         1s web stopping
         1s db SIGTERM to main
         1s web SIGTERM to main
         1s db inactive (the runner shuts down)
         1.5s web inactive (the runner shuts down)
         1.5s exit 0",
    );
}

#[test]
fn a_loop_of_restarts_keeps_nobody_waiting_for_who_follows_it() {
    // The start that is cut short has come to its end, for who only wants an order and for a request that waits for it.
    check(
        "unit db  delays=1s
         unit api needs=db:follow ready=poll/1s
         unit web wants=api
         unit app needs=api
         does db  dies=2s/1
         does api ready=5s term=1s
         at 1s start app
         until 5s",
        "0s web waiting (on api: waiting itself)
         0s app waiting (on api: waiting itself)
         0s db ready
         0s api starting
         2s db backoff (exited with 1)
         3s db ready
         3s api stopping
         3s api SIGTERM to main
         3s reply 1 failed: `app` waits for `api`: `db` was restarted
         3s web ready
         4s api starting
         5s db backoff (exited with 1)",
    );
}

#[test]
fn an_external_that_has_not_answered_follows_no_restart() {
    check(
        "unit db   delays=1s
         unit pool external needs=db:follow ready=poll/1s timeout=5s
         unit web  wants=pool
         does db   dies=2s/1
         does pool ready=never
         at 1s start pool
         until 9s",
        "0s web waiting (on pool: waiting itself)
         0s db ready
         0s pool starting
         2s db backoff (exited with 1)
         3s db ready
         5s db backoff (exited with 1)
         5s pool waiting (unreachable: not yet)
         5s reply 1 failed: `pool`: not ready within 5s (not yet)
         5s web ready
         6s db ready
         8s db backoff (exited with 1)
         9s db ready",
    );
}
