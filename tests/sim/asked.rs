//! What people may ask, and what they are answered: at the edges of the rules, as in `scenarios.rs`.

use super::scenarios::check;

#[test]
fn who_is_in_conflict_waits_until_the_other_is_down() {
    check(
        "unit old
         unit new conflicts=old
         unit else
         does old term=3s
         at 0s stop new
         at 1s start new
         at 2s start new --replace
         until 20s",
        "0s new inactive (stop requested)
         0s reply 1 done
         0s old ready
         0s else ready
         1s reply 2 refused: `new` is in conflict with `old`, which is up; `--replace` stops it first
         2s old stopping
         2s new waiting (on old: in conflict, not down yet)
         2s old SIGTERM to main
         5s old inactive (stopped to make room for `new`)
         5s new ready
         5s reply 3 done",
    );
}

#[test]
fn nobody_is_replaced_by_a_start_that_needs_him() {
    check(
        "unit db
         unit cache conflicts=db
         unit web needs=db wants=cache
         at 0s stop cache web
         at 1s start web --replace
         at 2s start cache --replace
         until 20s",
        "0s cache inactive (stop requested)
         0s web inactive (stop requested)
         0s reply 1 done
         0s db ready
         1s reply 2 refused: `cache` and `db` are in conflict
         2s db SIGTERM to main
         2s db inactive (stopped to make room for `cache`)
         2s cache ready
         2s reply 3 done",
    );
}

#[test]
fn who_is_there_for_a_conflict() {
    // Whoever is wanted, though it is down at the moment, and whoever is not down yet; nobody who is at rest.
    check(
        "unit tries delays=60s
         unit gone  max=0
         unit slow
         unit new   conflicts=tries
         unit other conflicts=gone
         unit third conflicts=slow
         does tries dies=1s/1
         does gone  dies=1s/1
         does slow  term=9s
         at 0s stop new other third
         at 2s start new
         at 3s start other
         at 4s stop slow
         at 5s start third
         at 6s start new tries
         until 10s",
        "0s new inactive (stop requested)
         0s other inactive (stop requested)
         0s third inactive (stop requested)
         0s reply 1 done
         0s tries ready
         0s gone ready
         0s slow ready
         1s tries backoff (exited with 1)
         1s gone failed (exited with 1; 0 restarts used up)
         2s reply 2 refused: `new` is in conflict with `tries`, which is up; `--replace` stops it first
         3s other ready
         3s reply 3 done
         4s slow stopping
         4s slow SIGTERM to main
         5s reply 5 refused: `third` is in conflict with `slow`, which is up; `--replace` stops it first
         6s reply 6 refused: `new` and `tries` are in conflict",
    );
}

#[test]
fn a_start_leaves_alone_what_is_up_and_its_counters() {
    // The second crash of the database uses up its only restart, whatever was started meanwhile.
    check(
        "unit db  max=1 delays=1s
         unit web needs=db
         does db  dies=2s/1
         at 1s stop web
         at 4s start web
         until 20s",
        "0s db ready
         0s web ready
         1s web SIGTERM to main
         1s web inactive (stop requested)
         1s reply 1 done
         2s db backoff (exited with 1)
         3s db ready
         4s web ready
         4s reply 2 done
         5s db failed (exited with 1; 1 restart used up)
         5s web SIGTERM to main
         5s web waiting (on db: exited with 1; 1 restart used up)",
    );
}

#[test]
fn what_a_start_pulls_in_again() {
    // What is at rest or on its way there, but no task that has succeeded, and nothing that comes back by itself.
    check(
        "unit setup task
         unit once  restart=on_failure
         unit slow
         unit web   needs=setup,once:finished,slow
         does setup dies=1s/0
         does once  dies=2s/0
         does slow  term=4s
         at 3s stop web
         at 4s stop slow
         at 5s start web
         until 20s",
        "0s web waiting (on setup: waiting itself, once: waiting itself, slow: waiting itself)
         0s setup starting
         0s once ready
         0s slow ready
         1s setup finished
         2s once finished
         2s web ready
         3s web SIGTERM to main
         3s web inactive (stop requested)
         3s reply 1 done
         4s slow stopping
         4s slow SIGTERM to main
         5s reply 2 superseded
         5s web waiting (on slow: stop requested)
         5s once ready
         7s once finished
         8s slow ready
         8s web ready
         8s reply 3 done",
    );
}

#[test]
fn a_start_of_what_is_up_is_done_and_a_restart_is_not_before_it_is_up_again() {
    check(
        "unit web ready=poll/1s
         does web term=2s ready=1s
         at 3s start web
         at 4s restart web
         until 20s",
        "0s web starting
         1s web ready
         3s reply 1 done
         4s web stopping
         4s web SIGTERM to main
         6s web starting
         7s web ready
         7s reply 2 done",
    );
}

#[test]
fn a_start_that_is_taken_along_has_failed() {
    check(
        "unit db  max=0
         unit web needs=db ready=poll/1s
         does db  dies=5s/1
         does web ready=9s
         at 4s start web
         until 20s",
        "0s db ready
         0s web starting
         5s db failed (exited with 1; 0 restarts used up)
         5s web SIGTERM to main
         5s reply 1 failed: `web`: `db` gave up
         5s web waiting (on db: exited with 1; 0 restarts used up)",
    );
}

#[test]
fn a_restart_with_dependents_is_of_those_that_are_up() {
    check(
        "unit db
         unit web needs=db max=0
         unit api needs=db
         does web dies=1s/1
         at 3s restart db --with-dependents
         until 20s",
        "0s db ready
         0s web ready
         0s api ready
         1s web failed (exited with 1; 0 restarts used up)
         3s api SIGTERM to main
         3s db SIGTERM to main
         3s db ready
         3s api ready
         3s reply 1 done",
    );
}

#[test]
fn a_restart_of_a_group_that_would_lose_data_is_refused_and_one_of_the_unit_itself_is_not() {
    check(
        "unit store holds_data
         unit web
         unit all group=store,web
         at 1s restart all
         at 2s restart store
         until 20s",
        "0s store ready
         0s web ready
         0s all ready
         1s reply 1 refused: this would stop `store`, and the data held would be lost; `--with-dependents --yes` allows it
         2s store SIGTERM to main
         2s store ready
         2s all ready
         2s reply 2 done",
    );
}

#[test]
fn a_group_is_asked_for_without_its_skipped_members() {
    check(
        "unit web
         unit not skipped=role
         unit all group=web,not
         at 1s start all
         at 2s start not
         until 20s",
        "0s web ready
         0s all ready
         1s reply 1 done
         2s reply 2 refused: `not` is skipped: role",
    );
}

#[test]
fn what_is_asked_in_a_shutdown() {
    // A start that is open fails, a stop that is open is done, and nothing starts any more.
    check(
        "unit slow
         unit late ready=poll/1s
         does slow term=9s
         does late ready=never term=5s
         at 1s start late
         at 2s stop slow
         at 3s shutdown
         at 4s start late
         at 5s restart late",
        "0s late starting
         0s slow ready
         2s slow stopping
         2s slow SIGTERM to main
         3s reply 1 failed: the runner shuts down
         3s late stopping
         3s late SIGTERM to main
         4s reply 3 refused: the runner shuts down
         5s reply 4 refused: the runner shuts down
         8s late inactive (the runner shuts down)
         11s slow inactive (the runner shuts down)
         11s reply 2 done
         11s exit 0",
    );
}

#[test]
fn the_end_of_a_hold_is_no_restart_but_of_who_was_to_follow() {
    check(
        "unit db  ready=poll/1s
         unit web needs=db
         unit tie needs=db:follow
         unit api needs=db:follow
         does db  dies=5s/1 | ready=5s
         at 1s hold web tie api
         at 7s unhold tie
         at 14s unhold web api
         until 20s",
        "0s db ready
         0s web ready
         0s tie ready
         0s api ready
         1s reply 1 done
         5s db backoff (exited with 1)
         6s db starting
         7s reply 2 done
         11s db ready
         11s tie SIGTERM to main
         11s tie ready
         14s reply 3 done
         14s api SIGTERM to main
         14s api ready",
    );
}

#[test]
fn something_else_is_never_held() {
    check(
        "unit db
         unit pool external needs=db
         at 1s hold pool
         at 2s stop db
         at 3s start db
         until 20s",
        "0s db ready
         0s pool ready
         1s reply 1 done
         2s pool waiting (on db: stop requested)
         2s db SIGTERM to main
         2s db inactive (stop requested)
         2s reply 2 done
         3s db ready
         3s pool ready
         3s reply 3 done",
    );
}

#[test]
fn data_that_is_not_there_is_not_lost() {
    check(
        "unit master
         unit store needs=master holds_data delays=60s
         unit else
         does store dies=2s/1
         at 3s stop master
         until 20s",
        "0s master ready
         0s else ready
         0s store ready
         2s store backoff (exited with 1)
         3s master SIGTERM to main
         3s master inactive (stop requested)
         3s reply 1 done",
    );
}

#[test]
fn what_was_restarted_before_a_process_began_is_not_followed_at_the_end_of_a_hold() {
    check(
        "unit db  delays=0s
         unit api needs=db:follow
         does db  dies=500ms/1 | lives
         does api prepare=1s
         at 2s hold api
         at 3s unhold api
         until 5s",
        "0s db ready
         0s api preparing
         500ms db ready
         1s api ready
         2s reply 1 done
         3s reply 2 done",
    );
}
