//! What a start comes with: files that are there before, lines that are said, steps that are named, data that is spared.

use std::fs;

use crate::env::TestEnv;
use crate::runner::until;

#[test]
fn files_are_there_before_the_first_process() {
    let env = TestEnv::new();
    let shared = env.path("shared/b.txt").display().to_string();
    let file =
        |path: &str, content: &str| format!("[file.c]\npath = \"{path}\"\ncontent = \"{content}\\n\"\n");
    let shell = format!("command = [\"sh\", \"-c\", \"cat {shared}; exec sleep 300\"]\n");
    env.write("units/a.toml", &format!("{shell}[info]\nsegment = \"400GB\"\n"));
    env.sleeper("b", &format!("needs = [\"a\"]\n{}", file(&shared, "from b")));
    // A place where nobody can write is that unit's own matter.
    let nowhere = file("/proc/none/x", "");
    env.sleeper("c", &format!("restart = \"never\"\n{nowhere}"));
    let mut runner = env.run();
    runner.wait_state("a ready", 1).wait_state("b ready", 1).wait_state("c failed", 1);
    until("a has read the file of b", || runner.lines("a").contains(&"from b".to_owned()).then_some(()));
    runner.wait_said("a: segment: 400GB");
    // A unit that a reload adds has its file, too; those of a unit that runs are left alone, also by the next runner.
    fs::write(&shared, "kept").unwrap();
    let added = env.path("shared/d.txt").display().to_string();
    env.sleeper("d", &format!("needs = [\"a\"]\n{}", file(&added, "from d")));
    env.node(&["reload"]).code(0);
    runner.wait_state("d ready", 1);
    assert_eq!(fs::read_to_string(&added).unwrap(), "from d\n");
    assert_eq!(fs::read_to_string(&shared).unwrap(), "kept");
    runner.kill_9();
    let mut next = env.run();
    next.wait_said("running units of an earlier runner are kept");
    assert_eq!(fs::read_to_string(&shared).unwrap(), "kept");
    assert_eq!(next.stop(), 0);
}

#[test]
fn a_step_that_fails_is_named_and_says_why_it_is_there() {
    let env = TestEnv::new();
    let step = |run: &str, more: &str| {
        format!(
            "restart = \"never\"\n[bootstrap.acl]\nwhy = \"the cards\"\nrun = [\"sh\", \"-c\", \"{run}\"]\n{more}"
        )
    };
    env.sleeper("stays", "");
    env.sleeper("fails", &step("exit 3", ""));
    env.sleeper("late", &step("sleep 300", "timeout = \"1s\"\n"));
    let mut runner = env.run();
    runner.wait_state("fails failed", 1).wait_state("late failed", 1);
    let check = |unit: &str, words: &[&str]| {
        let why = env.node(&["why", unit]).stdout;
        assert!(words.iter().all(|words| why.contains(words)), "{why}");
    };
    check("fails", &["its bootstrap step `acl` exited with 3", "`acl` is there because: the cards"]);
    check("late", &["`acl` has not ended within 1 s and was killed", "`acl` is there because: the cards"]);
    runner.stop();
}

#[test]
fn dependents_are_reached_without_a_question_unless_data_is() {
    let env = TestEnv::new();
    env.sleeper("base", "");
    env.sleeper("web", "needs = [\"base\"]\n");
    env.sleeper("pool", "");
    env.sleeper("db", "needs = [\"pool\"]\nholds_data = true\n");
    let mut runner = env.run();
    runner.wait_state("web ready", 1).wait_state("db ready", 1);
    let db = runner.pid_of("db");
    env.node(&["restart", "base", "--with-dependents"]).code(0);
    runner.wait_state("web ready", 2);
    for verb in ["stop", "restart"] {
        let refused = env.node(&[verb, "pool", "--with-dependents"]);
        refused.code(5);
        let words = "this would also stop `db`, and the data held would be lost";
        assert!(refused.stderr.contains(words) && refused.stderr.contains("`--yes`"), "{refused:#?}");
    }
    assert_eq!(runner.pid_of("db"), db);
    env.node(&["restart", "pool", "--with-dependents", "--yes"]).code(0);
    runner.wait_state("db ready", 2);
    assert_eq!(runner.stop(), 0);
}
