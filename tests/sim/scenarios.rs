//! Named situations. The text is a scenario as `tenon::sim::parse` reads it, the expectation is what people would see:
//! for each moment the state each unit came to, signals, answers, the exit. All of it follows from the specification.
//! In these worlds preparation, spawn and probes take no time, and a signal kills at once, unless `does` says so.

use tenon::sim::{parse, run};
use tenon::supervisor::Supervisor;

pub fn check(scenario: &str, expected: &str) {
    let scenario = parse(scenario).expect("the scenario can be read");
    let report = run(&scenario, &mut Supervisor::new(scenario.seed));
    let (timeline, verdict) = (report.timeline(), report.verdict());
    let clean = |text: &str| {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    assert!(verdict.is_empty(), "{verdict}\n{}", report.log());
    assert!(clean(&timeline) == clean(expected), "came about:\n{timeline}\nexpected:\n{}\n", clean(expected));
}

#[test]
fn starts_wait_for_readiness_and_stops_run_in_reverse() {
    check(
        "unit db  ready=poll/1s
         unit web needs=db
         does db  ready=2s
         does web term=1s
         at 5s shutdown",
        "0s web waiting (on db: waiting itself)
         0s db starting
         2s db ready
         2s web ready
         5s db stopping
         5s web stopping
         5s web SIGTERM to main
         6s web inactive (the runner shuts down)
         6s db SIGTERM to main
         6s db inactive (the runner shuts down)
         6s exit 0",
    );
}

#[test]
fn a_flap_of_a_dependency_while_another_is_missing_is_waited_out() {
    // At 4 s the cache is there at last, but the database is not: what counts is now, not once.
    check(
        "unit db    delays=3s
         unit cache ready=poll/1s
         unit web   needs=db,cache
         does db    dies=3s/1 | lives
         does cache ready=4s
         until 20s",
        "0s web waiting (on db: waiting itself, cache: waiting itself)
         0s cache starting
         0s db ready
         3s db backoff (exited with 1)
         4s cache ready
         6s db ready
         6s web ready",
    );
}

#[test]
fn three_restarts_of_a_waiting_unit_are_one_process() {
    check(
        "unit db  ready=poll/1s
         unit web needs=db
         does db  ready=3s
         at 1s restart web
         at 1s restart web
         at 2s restart web
         until 20s",
        "0s web waiting (on db: waiting itself)
         0s db starting
         3s db ready
         3s web ready
         3s reply 1 done
         3s reply 2 done
         3s reply 3 done",
    );
}

#[test]
fn a_stop_beats_a_back_off() {
    check(
        "unit web  delays=10s
         unit else
         does web  dies=1s/1 | lives
         at 4s stop web
         until 60s",
        "0s web ready
         0s else ready
         1s web backoff (exited with 1)
         4s web inactive (stop requested)
         4s reply 1 done",
    );
}

#[test]
fn back_off_is_exactly_as_listed_and_the_last_delay_repeats() {
    check(
        "unit web delays=0s,1s,4s
         does web dies=1s/1
         until 20s",
        "0s web ready
         1s web ready
         2s web backoff (exited with 1)
         3s web ready
         4s web backoff (exited with 1)
         8s web ready
         9s web backoff (exited with 1)
         13s web ready
         14s web backoff (exited with 1)
         18s web ready
         19s web backoff (exited with 1)",
    );
}

#[test]
fn counters_start_anew_after_a_stable_time_in_readiness() {
    // The third life lasts 10 s: its end is retried with the first delay again.
    check(
        "unit web delays=1s,5s reset=10s
         does web dies=1s/1 | dies=1s/1 | dies=10s/1 | dies=1s/1
         until 26s",
        "0s web ready
         1s web backoff (exited with 1)
         2s web ready
         3s web backoff (exited with 1)
         8s web ready
         18s web backoff (exited with 1)
         19s web ready
         20s web backoff (exited with 1)
         25s web ready
         26s web backoff (exited with 1)",
    );
}

#[test]
fn giving_up_is_carried_to_dependents_and_taken_back_by_a_start() {
    check(
        "unit db  max=1 delays=1s
         unit web needs=db
         unit api needs=web
         does db  dies=2s/1 | dies=2s/1 | lives
         at 9s start db
         until 30s",
        "0s db ready
         0s web ready
         0s api ready
         2s db backoff (exited with 1)
         3s db ready
         5s db failed (exited with 1; 1 restart used up)
         5s api SIGTERM to main
         5s api waiting (on web: `db` gave up)
         5s web SIGTERM to main
         5s web waiting (on db: exited with 1; 1 restart used up)
         9s db ready
         9s reply 1 done
         9s web ready
         9s api ready",
    );
}

#[test]
fn a_crash_of_a_dependency_leaves_dependents_alone_unless_they_follow() {
    check(
        "unit db
         unit web needs=db
         unit tie needs=db:follow
         does db  dies=5s/1 | lives
         until 30s",
        "0s db ready
         0s web ready
         0s tie ready
         5s db backoff (exited with 1)
         6s db ready
         6s tie SIGTERM to main
         6s tie ready",
    );
}

#[test]
fn a_stop_that_would_lose_data_is_refused_and_says_what() {
    check(
        "unit master
         unit store  needs=master holds_data
         unit kept   needs=master:keep holds_data
         at 1s stop master
         at 2s stop master --with-dependents
         at 3s start master
         until 30s",
        "0s master ready
         0s store ready
         0s kept ready
         1s reply 1 refused: this would stop `store`, and the data held would be lost; `--with-dependents --yes` allows it
         2s store SIGTERM to main
         2s store waiting (on master: stop requested)
         2s master SIGTERM to main
         2s master inactive (stop requested)
         2s reply 2 done
         3s master ready
         3s reply 3 done
         3s store ready",
    );
}

#[test]
fn a_stop_of_what_is_at_rest_loses_no_data() {
    // Nobody goes along with a task that is done or a master that has failed already.
    check(
        "unit setup  task
         unit master max=0
         unit store  needs=setup:finished,master holds_data
         does setup  dies=1s/0
         does master dies=3s/1
         at 4s stop setup
         at 5s stop master
         until 20s",
        "0s store waiting (on setup: waiting itself, master: waiting itself)
         0s setup starting
         0s master ready
         1s setup finished
         1s store ready
         3s master failed (exited with 1; 0 restarts used up)
         4s reply 1 done
         5s master inactive (stop requested)
         5s reply 2 done",
    );
}

#[test]
fn who_holds_data_outlives_the_failure_of_what_it_needs_and_stops_last() {
    check(
        "unit master max=0
         unit store  needs=master:unordered holds_data
         unit web
         does master dies=3s/1
         does web    term=2s
         at 5s shutdown",
        "0s master ready
         0s store ready
         0s web ready
         3s master failed (exited with 1; 0 restarts used up)
         5s store stopping
         5s web stopping
         5s web SIGTERM to main
         7s web inactive (the runner shuts down)
         7s store SIGTERM to main
         7s store inactive (the runner shuts down)
         7s exit 0",
    );
}

#[test]
fn the_stop_ladder_goes_from_the_main_process_to_what_is_left_to_kill() {
    // INT to the main process, ignored; TERM, ignored; KILL for all. Then one that leaves something behind.
    check(
        "unit deaf stop=SIGINT/2s,SIGTERM/3s
         unit mess stop=SIGTERM/4s
         unit else
         does deaf term=ignore
         does mess term=1s left=60s/stubborn
         at 1s stop deaf
         at 20s stop mess
         until 60s",
        "0s deaf ready
         0s mess ready
         0s else ready
         1s deaf stopping
         1s deaf SIGINT to main
         3s deaf SIGTERM to main
         6s deaf SIGKILL to tree
         6s deaf inactive (stop requested)
         6s reply 1 done
         20s mess stopping
         20s mess SIGTERM to main
         21s mess SIGTERM to tree
         24s mess SIGKILL to tree
         24s mess inactive (stop requested)
         24s reply 2 done",
    );
}

#[test]
fn left_overs_of_a_crash_are_ended_before_the_next_start() {
    check(
        "unit web delays=1s stop=SIGTERM/3s
         does web dies=2s/1 left=60s/stubborn | lives
         until 20s",
        "0s web ready
         2s web stopping
         2s web SIGTERM to tree
         5s web SIGKILL to tree
         5s web backoff (exited with 1)
         6s web ready",
    );
}

#[test]
fn a_shutdown_during_everything_ends_at_once_what_does_not_run() {
    check(
        "unit up
         unit late  ready=poll/1s
         unit waits needs=late
         unit tries delays=60s
         unit prep
         does late  ready=never
         does tries dies=1s/1
         does prep  prepare=30s
         at 2s shutdown",
        "0s waits waiting (on late: waiting itself)
         0s prep preparing
         0s late starting
         0s up ready
         0s tries ready
         1s tries backoff (exited with 1)
         2s waits inactive (the runner shuts down)
         2s tries inactive (the runner shuts down)
         2s prep inactive (the runner shuts down)
         2s up SIGTERM to main
         2s late SIGTERM to main
         2s up inactive (the runner shuts down)
         2s late inactive (the runner shuts down)
         2s exit 0",
    );
}

#[test]
fn a_second_shutdown_hurries_and_a_third_kills() {
    check(
        "unit db  stop=SIGTERM/60s
         unit web needs=db stop=SIGTERM/60s
         does db  term=ignore
         does web term=ignore
         budget 300s
         at 1s shutdown
         at 5s shutdown
         at 5500ms shutdown",
        "0s db ready
         0s web ready
         1s db stopping
         1s web stopping
         1s web SIGTERM to main
         5s db SIGTERM to main
         5.5s db SIGKILL to tree
         5.5s web SIGKILL to tree
         5.5s db inactive (the runner shuts down)
         5.5s web inactive (the runner shuts down)
         5.5s exit 0",
    );
}

#[test]
fn when_the_budget_is_used_up_everything_is_killed_and_the_status_says_so() {
    check(
        "unit web stop=SIGTERM/60s
         does web term=ignore
         budget 10s
         at 1s shutdown",
        "0s web ready
         1s web stopping
         1s web SIGTERM to main
         11s web SIGKILL to tree
         11s web inactive (the runner shuts down)
         11s exit 75",
    );
}

#[test]
fn the_end_of_the_main_unit_is_the_end_and_its_code_the_status() {
    check(
        "unit db
         unit app needs=db main restart=never
         does app dies=3s/7
         until 30s",
        "0s db ready
         0s app ready
         3s app failed (exited with 7; restart is `never`)
         3s db SIGTERM to main
         3s db inactive (the runner shuts down)
         3s exit 7",
    );
    check(
        "unit app main
         at 2s shutdown",
        "0s app ready
         2s app SIGTERM to main
         2s app inactive (the runner shuts down)
         2s exit 0",
    );
    check(
        "unit app main
         does app term=0s/3
         at 2s shutdown",
        "0s app ready
         2s app SIGTERM to main
         2s app inactive (the runner shuts down)
         2s exit 3",
    );
}

#[test]
fn a_unit_whose_limit_is_the_runners_end() {
    check(
        "unit web max=0 on_limit=shutdown
         unit else
         does web dies=2s/1
         until 30s",
        "0s web ready
         0s else ready
         2s web failed (exited with 1; 0 restarts used up)
         2s else SIGTERM to main
         2s else inactive (the runner shuts down)
         2s exit 69",
    );
}

#[test]
fn a_plan_of_tasks_ends_with_the_last_one() {
    check(
        "unit files files
         unit one   task needs=files:finished
         unit two   task needs=one:finished
         does one   dies=2s/0
         does two   dies=3s/0
         until 30s",
        "0s two waiting (on one: waiting itself)
         0s files finished
         0s one starting
         2s one finished
         2s two starting
         5s two finished
         5s exit 0",
    );
}

#[test]
fn a_succeeded_task_stays_satisfied() {
    check(
        "unit setup task
         unit web   needs=setup:finished
         does setup dies=1s/0
         does web   dies=3s/1 | lives
         at 10s stop setup
         at 11s restart web
         until 30s",
        "0s web waiting (on setup: waiting itself)
         0s setup starting
         1s setup finished
         1s web ready
         4s web backoff (exited with 1)
         5s web ready
         10s reply 1 done
         11s web SIGTERM to main
         11s web ready
         11s reply 2 done",
    );
}

#[test]
fn a_failed_first_start_releases_those_that_only_want_an_order() {
    check(
        "unit bad   delays=60s
         unit needy needs=bad
         unit then  after=needy
         unit also  wants=bad
         does bad   spawn=fail
         until 20s",
        "0s needy waiting (on bad: waiting itself)
         0s bad backoff (cannot fork: resource temporarily unavailable)
         0s then ready
         0s also ready",
    );
}

#[test]
fn an_external_is_never_failed_but_unreachable_and_asked_on() {
    check(
        "unit pool external ready=poll/1s timeout=3s
         unit web  needs=pool:ready
         does pool ready=6s
         at 20s sick pool
         at 40s well pool
         until 60s",
        "0s web waiting (on pool: waiting itself)
         0s pool starting
         3s pool waiting (unreachable: not yet)
         6s pool ready
         6s web ready
         22s pool waiting (unreachable: no answer)
         40s pool ready",
    );
}

#[test]
fn the_loss_of_an_external_stops_dependents_only_if_it_says_so() {
    check(
        "unit pool external=stop ready=poll/1s
         unit web  needs=pool:ready
         at 5s sick pool
         at 9s well pool
         until 30s",
        "0s pool ready
         0s web ready
         7s pool waiting (unreachable: no answer)
         7s web SIGTERM to main
         7s web waiting (on pool: unreachable: no answer)
         9s pool ready
         9s web ready",
    );
}

#[test]
fn somebody_elses_trouble_is_shown_and_never_a_restart() {
    check(
        "unit store health=5s/3
         at 2s degraded store
         until 120s",
        "0s store ready",
    );
}

#[test]
fn failed_health_is_a_restart_after_so_many_failures_in_a_row() {
    check(
        "unit store health=5s/3 delays=1s
         at 7s sick store
         at 21s well store
         until 40s",
        "0s store ready
         20s store SIGTERM to main
         20s store backoff (unhealthy: no answer)
         21s store ready",
    );
}

#[test]
fn an_exit_within_the_settle_time_is_a_failed_start() {
    check(
        "unit web settle=5s delays=1s
         does web dies=3s/0 | lives
         at 0s start web
         until 20s",
        "0s web starting
         3s reply 1 failed: `web`: exited with 0 before it was ready
         3s web backoff (exited with 0 before it was ready)
         4s web starting
         9s web ready",
    );
}

#[test]
fn not_ready_in_time_is_a_failed_start() {
    check(
        "unit web ready=push timeout=5s delays=1s
         does web ready=never | ready=2s
         until 20s",
        "0s web starting
         5s web SIGTERM to main
         5s web backoff (not ready within 5s)
         6s web starting
         8s web ready",
    );
}

#[test]
fn causes_that_are_never_retried() {
    check(
        "unit web  except=exit:78
         unit other only=signal:SIGSEGV
         unit last
         does web  dies=1s/78
         does other dies=1s/SIGSEGV | dies=1s/1
         until 20s",
        "0s web ready
         0s other ready
         0s last ready
         1s web failed (exited with 78 (configuration error); `restart.except` names this cause)
         1s other backoff (killed by SIGSEGV)
         2s other ready
         3s other failed (exited with 1; `restart.only` does not name this cause)",
    );
}

#[test]
fn later_requests_win_and_earlier_ones_are_told() {
    check(
        "unit web ready=poll/1s
         does web ready=4s term=2s
         at 1s start web
         at 2s stop web
         at 3s start web
         until 20s",
        "0s web starting
         2s reply 1 superseded
         2s web stopping
         2s web SIGTERM to main
         3s reply 2 superseded
         4s web starting
         8s web ready
         8s reply 3 done",
    );
}

#[test]
fn a_start_pulls_in_what_it_needs() {
    check(
        "unit db
         unit web needs=db
         unit else
         at 1s stop db
         at 2s stop web
         at 3s start web
         until 20s",
        "0s db ready
         0s else ready
         0s web ready
         1s web SIGTERM to main
         1s web waiting (on db: stop requested)
         1s db SIGTERM to main
         1s db inactive (stop requested)
         1s reply 1 done
         2s web inactive (stop requested)
         2s reply 2 done
         3s db ready
         3s web ready
         3s reply 3 done",
    );
}

#[test]
fn a_restart_with_dependents_takes_them_down_first_and_up_last() {
    check(
        "unit db  ready=poll/1s
         unit web needs=db
         does db  ready=1s
         does web term=1s
         at 5s restart db --with-dependents
         until 20s",
        "0s web waiting (on db: waiting itself)
         0s db starting
         1s db ready
         1s web ready
         5s db stopping
         5s web stopping
         5s web SIGTERM to main
         6s web waiting (on db: restart requested)
         6s db SIGTERM to main
         6s db starting
         7s db ready
         7s web ready
         7s reply 1 done",
    );
}

#[test]
fn a_bootstrap_step_that_fails_is_a_failed_start() {
    check(
        "unit web steps=2 delays=2s
         does web step=1s/3 | step=1s/0
         until 20s",
        "0s web preparing
         1s web backoff (bootstrap step 1 exited with 3)
         3s web preparing
         5s web ready",
    );
}

#[test]
fn with_scope_main_left_overs_are_left_alone() {
    check(
        "unit web scope=main delays=1s
         does web dies=2s/1 left=60s/stubborn | lives
         until 20s",
        "0s web ready
         2s web backoff (exited with 1)
         3s web ready",
    );
}

#[test]
fn a_wait_with_a_time_out_is_a_failed_start_for_needs_and_an_end_for_others() {
    check(
        "unit slow  ready=poll/1s
         unit needy needs=slow:3s delays=2s
         unit then  after=slow:4s
         does slow  ready=6s
         until 20s",
        "0s needy waiting (on slow: waiting itself)
         0s then waiting (on slow: waiting itself)
         0s slow starting
         3s needy backoff (waited 3s for `slow`)
         4s then ready
         5s needy waiting (on slow: not ready yet)
         6s slow ready
         6s needy ready",
    );
}
