//! What a change of a profile does to the choice of a profile, to values that beat it, and to files beside it that are
//! broken; and that each value is told by the line that set it, with its reason.

use crate::env::TestEnv;
use crate::profile::{LOCAL, node, tenon, with};
use std::fs;

/// Two generations told by a variable of the environment, and a node that takes what is detected.
fn detecting() -> TestEnv {
    let env = node();
    let write = |name: &str, text: &str| fs::write(env.path("shipped/profiles").join(name), text).unwrap();
    write(
        "g2.toml",
        "extends = \"base\"\n[detect]\nany = [\"fact.card == '2'\"]\n[fact.card]\nfrom = [{ env = \"CARD\" }]\n",
    );
    write(
        "g5.toml",
        "extends = \"base\"\n[detect]\nany = [\"fact.card == '5'\"]\n[fact.card]\nfrom = [{ env = \"CARD\" }]\n\
         [rule.bus]\nlabels = [\"card\"]\nwhy = \"the bus wants it\"\nset = { BUS = \"1\" }\n",
    );
    env.write("tenon.toml", "profile = \"auto\"\nrun = [\"store\", \"web\"]\n");
    env
}

#[track_caller]
fn says(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "`{line}` is not in:\n{text}");
    }
}

#[test]
fn the_choice_is_made_anew_with_the_changed_files() {
    let env = detecting();
    let set = |changes: &[&str]| {
        let mut args = vec!["profile", "set", "g5"];
        args.extend(changes);
        with(&env, &[("CARD", "2")], &args)
    };
    // Both would match a machine of the second generation.
    let answer = set(&["detect.any=[\"fact.card is defined\"]"]);
    says(
        &answer.code(78).stderr,
        &["more than one profile matches this machine: `g2` and `g5`", "nothing was written"],
    );
    assert!(!env.path("node/profiles").exists());
    // The same where the node names its profile: the file serves others, too.
    env.write("tenon.toml", "profile = \"g2\"\nrun = [\"store\"]\n");
    let answer = set(&["detect.any=[\"fact.card is defined\"]"]);
    says(&answer.code(78).stderr, &["more than one profile matches this machine"]);
}

#[test]
fn another_choice_is_named_with_all_that_it_changes() {
    let env = detecting();
    let answer = with(
        &env,
        &[("CARD", "2")],
        &["profile", "set", "g2", "detect.any=[\"fact.card == '3'\"]", "fallback=true"],
    );
    // Still g2, now because nothing else fits.
    says(&answer.code(0).stdout, &["profile g2 is in force here: no unit changes"]);
    fs::remove_dir_all(env.path("node/profiles")).unwrap();
    fs::write(env.path("shipped/profiles/plain.toml"), "fallback = true\n").unwrap();
    let args = ["profile", "set", "g2", "detect.any=[\"fact.card == '3'\"]", "--dry-run"];
    let answer = with(&env, &[("CARD", "2")], &args);
    says(
        &answer.code(0).stdout,
        &[
            "this node would run with profile plain (fallback: nothing detected (plain)) instead of profile g2 \
             (detected: fact.card == '2' (shipped/profiles/g2.toml:3)):",
            "  store changed (holds data)",
            "    env RANGE: 16700-16800 → (not set)",
            "        before: profile rule range, shipped/profiles/base.toml:11: off the engine's port",
        ],
    );
    // The node has named its profile: what auto would choose is told all the same.
    env.write("tenon.toml", "profile = \"g2\"\nrun = [\"store\"]\n");
    let answer = with(&env, &[("CARD", "2")], &args);
    says(
        &answer.code(0).stdout,
        &[
            "profile g2 is in force here: no unit changes",
            "with profile = \"auto\" this machine would get profile plain",
        ],
    );
    // A name that the node uses goes away.
    env.write("tenon.toml", "profile = \"G-9\"\nrun = [\"store\"]\n");
    env.write("profiles/g2.toml.d/10-names.toml", "aliases = [\"G-9\"]\n");
    let answer = tenon(&env, &["profile", "set", "g2", "aliases=[\"G-8\"]"]);
    says(&answer.code(78).stderr, &["there is no profile `G-9`", "nothing was written"]);
    // So does a fact that the condition reads.
    let args = ["profile", "set", "g2", "fact.card.from=[{ env = \"OTHER\" }]", "--dry-run"];
    env.write("tenon.toml", "profile = \"auto\"\nrun = [\"store\"]\n");
    let answer = with(&env, &[("CARD", "2")], &args);
    says(&answer.code(0).stdout, &["this node would run with profile plain", "instead of profile g2"]);
    let answer = with(&env, &[("CARD", "2")], &[&args[..], &["--output", "json"]].concat());
    let told: serde_json::Value = serde_json::from_str(&answer.code(0).stdout).unwrap();
    assert_eq!(told["chosen"]["before"]["name"], "g2");
    assert_eq!(told["chosen"]["after"]["name"], "plain");
}

#[test]
fn where_a_change_has_no_effect_is_told() {
    let env = node();
    env.write(
        "tenon.toml",
        "profile = \"g2\"\nrun = [\"store\", \"web\"]\n[set.profile]\nlink = \"fast\"\n[unit.store.env]\nRANGE = \"1-2\"\n",
    );
    let answer = tenon(&env, &["profile", "set", "g2", "rule.range.default.RANGE=16900-17000", "--dry-run"]);
    says(
        &answer.code(0).stdout,
        &[
            "profile g2 is in force here: no unit changes",
            "no effect: on store: RANGE is set to 1-2 already (node file, this unit, node/tenon.toml:6), and that wins",
        ],
    );
    let answer = tenon(&env, &["profile", "set", "g2", "param.link.default=fast", "--dry-run"]);
    says(
        &answer.code(0).stdout,
        &["no effect: `param.link.default`: the node file sets `link` (node/tenon.toml:4), and that wins"],
    );
    let answer = tenon(&env, &["profile", "set", "g2", "rule.range.when=param.link == 'slow'", "--dry-run"]);
    says(&answer.code(0).stdout, &["no effect: on store: `when = param.link == 'slow'` does not hold there"]);
    let answer = tenon(&env, &["profile", "set", "g2", "rule.range.labels=[\"nobody\"]", "--dry-run"]);
    says(&answer.code(0).stdout, &["no effect: `rule.range` is for no unit that runs here"]);
}

#[test]
fn nothing_is_written_beside_a_file_that_cannot_be_read() {
    let env = node();
    env.write("profiles/g2.toml.d/90-site.toml", "nonsense\n[rule.range]\ndefault = { RANGE = \"1-2\" }\n");
    let answer = tenon(&env, &["profile", "set", "g2", "param.link.default=fast"]);
    says(
        &answer.code(78).stderr,
        &["node/profiles/g2.toml.d/90-site.toml:1", "nothing was written", "tenon profile edit g2"],
    );
    assert!(!env.path(LOCAL).exists());
    // It is shown what is there, and said what is left out.
    let answer = tenon(&env, &["profile", "show", "g2"]);
    says(&answer.code(78).stdout, &["RANGE = \"16700-16800\""]);
    says(&answer.stderr, &["node/profiles/g2.toml.d/90-site.toml:1"]);
    says(&tenon(&env, &["profile", "list"]).code(78).stderr, &["node/profiles/g2.toml.d/90-site.toml:1"]);
    // `edit` opens the broken one.
    let editor = env.script(
        "mend",
        "#!/bin/sh\nprintf '[rule.range]\\ndefault = { RANGE = \"16900-17000\" }\\n' > \"$1\"\n",
    );
    let answer = with(&env, &[("EDITOR", &editor)], &["profile", "edit", "g2"]);
    says(&answer.code(0).stdout, &["wrote node/profiles/g2.toml.d/90-site.toml"]);
    tenon(&env, &["profile", "show", "g2"]).code(0);
}

#[test]
fn a_refused_edit_says_where_the_text_is_and_how_to_go_on() {
    let env = node();
    let bad = env.script("bad", "#!/bin/sh\nprintf '[param.link]\\ndefault = \"warp\"\\n' > \"$1\"\n");
    let answer = with(&env, &[("EDITOR", &bad)], &["profile", "edit", "g2"]);
    let kept = answer.code(78).stderr.split("--from ").nth(1).unwrap();
    let kept = kept.split('`').next().unwrap().to_owned();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "[param.link]\ndefault = \"warp\"\n");
    let mend = env.script("mend", "#!/bin/sh\nsed -i s/warp/fast/ \"$1\"\n");
    let answer = with(&env, &[("EDITOR", &mend)], &["profile", "edit", "g2", "--from", &kept]);
    says(&answer.code(0).stdout, &["env LINK: slow → fast"]);
    assert_eq!(fs::read_to_string(env.path(LOCAL)).unwrap(), "[param.link]\ndefault = \"fast\"\n");
    fs::remove_file(kept).unwrap();
}

#[test]
fn the_cause_comes_before_what_follows_from_it() {
    let env = node();
    // The unit reads what the profile gives; its file comes before the changed one in every order of files.
    fs::write(
        env.path("shipped/units/store.toml"),
        "command = [\"sleep\", \"1000\"]\nlabels = [\"card\"]\n[require.fast]\ntest = \"env.LINK == 'slow'\"\nmessage = \"too fast\"\n",
    )
    .unwrap();
    let answer =
        tenon(&env, &["profile", "set", "g2", "param.link.default=fast", "ports.sockets.value=70000"]);
    let stderr = answer.code(78).stderr.clone();
    let (cause, follows) = (stderr.find("50-local.toml").unwrap(), stderr.find("too fast").unwrap());
    assert!(cause < follows, "{stderr}");
}

#[test]
fn words_that_two_profiles_answer_to_are_found_when_the_files_are_read() {
    for (file, text, said) in [
        ("g5", "aliases = [\"G-2\"]\n", "`G-2` is an alias of two profiles: `g2` and `g5`"),
        ("g5", "aliases = [\"base\"]\n", "`base` is an alias of profile `g5`, and the name of another one"),
        ("g5", "aliases = [\"auto\"]\n", "`auto` cannot be an alias of profile `g5`"),
        ("none", "description = \"x\"\n", "a profile cannot be called `none`"),
    ] {
        let env = node();
        fs::write(env.path("shipped/profiles").join(format!("{file}.toml")), text).unwrap();
        for verb in [&["check"][..], &["profile", "check"], &["profile", "list"]] {
            says(&tenon(&env, verb).code(78).stderr, &[said]);
        }
    }
    let env = node();
    for name in ["g7", "g8"] {
        let text = "[detect]\nany = [\"fact.cpus == 7\"]\n";
        fs::write(env.path("shipped/profiles").join(format!("{name}.toml")), text).unwrap();
    }
    says(
        &tenon(&env, &["check"]).code(78).stderr,
        &["profiles `g7` and `g8` are told by the same condition: where it holds, both match"],
    );
}

#[test]
fn no_profile_at_all() {
    let env = node();
    let answer = tenon(&env, &["--profile", "none", "plan", "store"]);
    says(&answer.code(0).stdout, &["no profile, no role"]);
    assert!(!answer.stdout.contains("RANGE"), "{}", answer.stdout);
    says(
        &tenon(&env, &["profile", "diff", "none", "g2"]).code(0).stdout,
        &["from none to g2", "env RANGE: (not set) → 16700-16800"],
    );
    env.write("tenon.toml", "profile = \"none\"\nrun = [\"store\"]\n");
    tenon(&env, &["check"]).code(0);
    says(&tenon(&env, &["profile", "show"]).code(1).stderr, &["no profile is in force"]);
}

#[test]
fn a_profile_is_headed_by_what_it_is_here() {
    let env = node();
    says(
        &tenon(&env, &["profile", "show", "g2"]).code(0).stderr,
        &["profile g2 (profile = \"g2\" in node/tenon.toml:1)"],
    );
    says(
        &tenon(&env, &["profile", "show", "g5"]).code(0).stderr,
        &["profile g5, not in force here: g2 is (profile = \"g2\" in node/tenon.toml:1)"],
    );
    env.write("tenon.toml", "run = [\"store\"]\n");
    says(
        &tenon(&env, &["profile", "show", "g5"]).code(0).stderr,
        &["profile g5, not in force here: no profile is"],
    );
}

/// A merged key is told by the line of the file that set it, not by that of the rule.
#[test]
fn a_merged_key_is_told_by_its_own_line_and_the_port_follows_it() {
    let env = node();
    fs::write(
        env.path("shipped/profiles/base.toml"),
        "[rule.listen]\nlabels = [\"card\"]\nwhy = \"a port of its own\"\n\
         merge.CONFIG = { port = \"26666\", mode = \"x\" }\n\
         [ports.listen]\nlabels = [\"card\"]\nvalue = \"{{ env.CONFIG | item('port') }}\"\n",
    )
    .unwrap();
    fs::write(env.path("shipped/profiles/g5.toml"), "extends = \"base\"\n").unwrap();
    let answer = tenon(&env, &["profile", "set", "g2", "rule.listen.merge.CONFIG.port=26670"]);
    says(
        &answer.code(0).stdout,
        &[
            "env CONFIG: {\"port\": \"26666\", \"mode\": \"x\"} → {\"port\": \"26670\", \"mode\": \"x\"}",
            "port listen: 26666 on host → 26670 on host",
        ],
    );
    let answer = tenon(&env, &["env", "store", "--why", "CONFIG"]);
    says(
        &answer.code(0).stdout,
        &[
            "profile rule listen: merge `{\"port\": \"26670\"}`  (node/profiles/g2.toml.d/50-local.toml:2)",
            "profile rule listen: merge `{\"port\": \"26670\", \"mode\": \"x\"}`  (shipped/profiles/base.toml:4)",
        ],
    );
    let answer = tenon(&env, &["profile", "diff", "g5", "g2"]);
    says(&answer.code(0).stdout, &["port listen: 26666 on host → 26670 on host"]);
}

#[test]
fn a_reason_is_shown_wherever_its_value_is() {
    let env = node();
    fs::write(
        env.path("shipped/profiles/g5.toml"),
        "extends = \"base\"\n\
         [rule.home]\nlabels = [\"card\"]\nwhy = \"the cards' own\"\nset = { PLACE = \"there\" }\n\
         [bootstrap.first]\nlabels = [\"card\"]\nwhy = \"the bus must be up\"\ninject = [\"-v\"]\n\
         [bootstrap.before]\nlabels = [\"card\"]\nwhy = \"a probe\"\nrun = [\"true\"]\n\
         [ports.bus]\nlabels = [\"card\"]\nwhy = \"the bus listens\"\nvalue = 7000\n\
         [reserve.random]\nvalue = \"8000-8010\"\nowner = \"a library\"\nwhy = \"drawn at random\"\n\
         [signature.E1]\nlabels = [\"card\"]\npattern = \"E1\"\nhint = \"wait a while\"\n",
    )
    .unwrap();
    fs::write(
        env.path("shipped/units/store.toml"),
        "interpreter = [\"sleep\"]\ncommand = [\"1000\"]\nlabels = [\"card\"]\n",
    )
    .unwrap();
    let plan = with(&env, &[("PLACE", "here")], &["--profile", "g5", "plan", "store"]);
    says(
        &plan.code(0).stdout,
        &[
            "argv       sleep -v 1000\n                  why: the bus must be up  (bootstrap first, shipped/profiles/g5.toml:9)\n",
            "before     before: true  (shipped/profiles/g5.toml:13)\n                  why: a probe\n",
            "(profile rule home, shipped/profiles/g5.toml:5)\n                  why: the cards' own\n",
            "port       bus 7000 on host  (shipped/profiles/g5.toml:17)\n                  why: the bus listens\n",
            "port       sockets 16700-16800 on host  (shipped/profiles/base.toml:15)\n                  \
             why: RANGE, profile rule range: off the engine's port\n",
        ],
    );
    let ports = tenon(&env, &["--profile", "g5", "plan", "--ports"]);
    says(
        &ports.code(0).stdout,
        &[
            "  bus (shipped/profiles/g5.toml:17): the bus listens\n",
            "  random (shipped/profiles/g5.toml:19): drawn at random\n",
        ],
    );
    let diff = with(&env, &[("PLACE", "here")], &["profile", "diff", "g5", "g2"]);
    says(
        &diff.code(0).stdout,
        &[
            // The rule has gone: what is left is inherited, and the reason goes with the rule.
            "  env PLACE: there → here\n      inherited\n      before: profile rule home, shipped/profiles/g5.toml:5: the cards' own\n",
            "  argv: sleep -v 1000 → sleep 1000\n      before: bootstrap first, shipped/profiles/g5.toml:9: the bus must be up\n",
            "  step before: true → (none)\n      before: shipped/profiles/g5.toml:13: a probe\n",
            "  port bus: 7000 on host → (none)\n      before: shipped/profiles/g5.toml:17: the bus listens\n",
            "  signature E1: `E1` → (none)\n      before: shipped/profiles/g5.toml:25: wait a while\n",
            "ports of others\n  reserve random: 8000-8010 on host → (none)\n      before: shipped/profiles/g5.toml:19: drawn at random\n",
        ],
    );
}

/// `empty = "default"`: an empty word is none, so what a lower layer gives counts, and last the default.
#[test]
fn an_empty_word_counts_as_not_given() {
    let env = node();
    fs::write(
        env.path("shipped/profiles/base.toml"),
        "[param.size]\ndefault = \"small\"\nempty = \"default\"\n[param.kept]\ndefault = \"small\"\n\
         [rule.sizes]\nlabels = [\"card\"]\nset = { SIZE = \"{{ param.size }}\", KEPT = \"<{{ param.kept }}>\" }\n",
    )
    .unwrap();
    fs::write(env.path("shipped/profiles/g5.toml"), "extends = \"base\"\n").unwrap();
    let check = |given: &str, drop_in: &str, option: &[&str], expected: &[&str]| {
        let head = "profile = \"g2\"\nrun = [\"store\"]\n[set.profile]\n";
        env.write("tenon.toml", &format!("{head}{given}"));
        env.write("tenon.toml.d/50-site.toml", drop_in);
        let answer = tenon(&env, &[option, &["env", "store"]].concat());
        says(&answer.code(0).stdout, expected);
    };
    check("size = \"\"\nkept = \"\"\n", "", &[], &["SIZE=small\n", "KEPT='<>'\n"]);
    check("size = \"large\"\n", "[set.profile]\nsize = \"\"\n", &[], &["SIZE=large\n"]);
    check("size = \"large\"\n", "", &["--set", "profile.size="], &["SIZE=large\n"]);
    check("size = \"large\"\nkept = \"large\"\n", "", &["--set", "profile.kept="], &["KEPT='<>'\n"]);
    // A variable is another thing: empty is a value there, which no default beats.
    env.write("tenon.toml", "profile = \"g2\"\nrun = [\"store\"]\n[env]\nRANGE = \"\"\n");
    fs::write(
        env.path("shipped/profiles/base.toml"),
        "[rule.range]\nlabels = [\"card\"]\ndefault = { RANGE = \"1-2\" }\nfill = { OTHER = \"3\" }\n",
    )
    .unwrap();
    let answer = tenon(&env, &["env", "store"]);
    says(&answer.code(0).stdout, &["RANGE=''\n", "OTHER=3\n"]);
}
