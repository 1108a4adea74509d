//! Which profile is chosen, whom a requirement is about, and what is said of values that are missing.

use super::{check, run};

#[test]
fn detect_wants_one_of_any_and_every_one_of_all() {
    let files = "
        --- tenon.toml
        profile = 'auto'
        --- units/web.toml
        command = 'sleep 1'
        --- profiles/big.toml
        [detect]
        any = ['fact.memory.total > 100', 'fact.memory.total == 7']
        all = ['fact.memory.total > 5', 'fact.memory.total != 8']
        --- profiles/only-all.toml
        [detect]
        all = ['fact.memory.total == 50', 'fact.memory.total > 1']
        --- profiles/none.toml
        fallback = true";
    let chosen = |total: u32| {
        let run = run(files, &[&format!("facts {{\"memory\": {{\"total\": {total}}}}}")]);
        run.graph.profile.as_ref().map(|profile| profile.name.clone()).unwrap()
    };
    assert_eq!(chosen(200), "big");
    assert_eq!(chosen(7), "big");
    assert_eq!(chosen(6), "none"); // all, but none of any
    assert_eq!(chosen(50), "only-all");
    assert_eq!(chosen(1), "none");
}

#[test]
fn a_requirement_is_about_units_of_its_labels_and_about_its_units() {
    let files = "
        --- units/a.toml
        command = 'sleep 1'
        labels = ['x']
        --- units/b.toml
        command = 'sleep 1'
        --- units/c.toml
        command = 'sleep 1'
        [require.r]
        labels = ['x']
        units = ['b']
        test = 'true'";
    let run = run(files, &[]);
    let subjects: Vec<&str> = run.graph.requires[0].subjects.iter().map(AsRef::as_ref).collect();
    assert_eq!(subjects, ["a", "b"]);
}

#[test]
fn what_is_missing_because_of_something_missing_is_told_once() {
    check(
        "
        --- units/pool.toml
        kind = 'settings'
        [param.host]
        default = '{{ env.HOST | nonempty }}'
        [param.address]
        default = '{{ param.host | hostport(80) }}'
        --- units/web.toml
        uses = ['pool']
        command = ['sleep', '{{ pool.address }}']",
        &["unit web"],
        "
        error[parameter-missing] units/pool.toml:2: `pool.host` has no value: what is written for it gives nothing, and `web` reads it
          units/pool.toml:3: gives nothing here
          units/web.toml:2: `web` reads it here
          help: write `host = …` under `[set.pool]` in the node file",
    );
}

#[test]
fn the_node_file_appends_to_what_a_unit_has() {
    let files = "
        --- units/web.toml
        command = ['serve']
        args = ['--a']
        --- tenon.toml
        run = ['web']
        [unit.web]
        'args+' = ['--b']
        [roles.x.unit.web]
        'args+' = ['--c']";
    let args = |options: &[&str]| {
        let run = run(files, options);
        assert_eq!(run.problems(), "");
        let args = run.graph.units["web"].tree.get("args").unwrap().as_array().unwrap().to_vec();
        args.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(args(&[]), ["--a", "--b"]);
    assert_eq!(args(&["role=x"]), ["--a", "--b", "--c"]);
}
