//! Whole plans from text: files, the environment and the facts go in; what would run comes out.
//!
//! Files are one text, `--- units/web.toml` before each. Expected values are worked out from the contract.

use super::policy::{CausePattern, Kind, OnFailure, OnLimit, ReadyBy, RestartPolicy, Rung, Scope};
use super::*;
use crate::config::tree::Node;
use crate::diagnostic::{Diagnostic, Level, SourceMap};
use crate::facts::Facts;
use crate::resolve::{self, Dirs, Options, UnitGraph};
use indexmap::IndexMap;

mod secrets;

/// What came of some files.
struct Run {
    plan: Plan,
    graph: UnitGraph,
    sources: SourceMap,
    facts: Facts,
    said: Vec<Diagnostic>,
}

/// Options are words: `env A=B` (of the runner), `set U.P=V`, `role=x`, `profile=x`, `facts {…}`, `check`, `container`.
fn run(files: &str, options: &[&str]) -> Run {
    let mut sources = SourceMap::default();
    let mut texts: Vec<(&str, String)> = Vec::new();
    for line in files.lines() {
        match line.trim_start().strip_prefix("--- ") {
            Some(name) => texts.push((name.trim(), String::new())),
            None => {
                if let Some((_, text)) = texts.last_mut() {
                    text.push_str(line.trim_start());
                    text.push('\n');
                }
            }
        }
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut files = crate::load::in_memory(&texts, &mut sources);
    files.scripts.insert("shim.py".into(), "/s/shim.py".into());
    let mut chosen = Options::default();
    let (mut environ, mut facts) = (Some(IndexMap::new()), Some(Facts::default()));
    let mut container = false;
    for word in options {
        let (key, value) = word.split_once(['=', ' ']).unwrap_or((word, ""));
        match key {
            "env" => {
                let (name, value) = value.split_once('=').unwrap();
                environ.get_or_insert_default().insert(name.to_owned(), value.to_owned());
            }
            "set" => chosen.sets.push(value.to_owned()),
            "role" => chosen.role = Some(value.to_owned()),
            "profile" => chosen.profile = Some(value.to_owned()),
            "unit" => chosen.units.push(value.to_owned()),
            "facts" => facts = Some(Facts::from_text(value).unwrap()),
            "check" => (environ, facts) = (None, None),
            "container" => container = true,
            other => panic!("unknown option {other}"),
        }
    }
    let given = resolve::Inputs {
        files: &files,
        options: chosen,
        environment: environ.as_ref(),
        facts: facts.as_ref(),
    };
    let (graph, mut said) = resolve::resolve(&given, &mut sources);
    let environ: Option<Vec<(String, Vec<u8>)>> =
        environ.map(|all| all.into_iter().map(|(name, value)| (name, value.into_bytes())).collect());
    let env_file = |_: &str| EnvFileText::Absent;
    let dirs = Dirs::default();
    let inputs = Inputs {
        sources: &sources,
        environ: environ.as_deref(),
        env_file: &env_file,
        dirs: &dirs,
        container,
    };
    let (plan, more) = build(&graph, &inputs);
    said.extend(more);
    Run { plan, graph, sources, facts: facts.unwrap_or_default(), said }
}

impl Run {
    fn at(&self, unit: &str) -> usize {
        self.plan.policy.find(unit).unwrap_or_else(|| panic!("no unit {unit}")).0 as usize
    }

    fn exec(&self, unit: &str) -> &exec::UnitExec {
        &self.plan.exec[self.at(unit)]
    }

    fn policy(&self, unit: &str) -> &policy::UnitPolicy {
        &self.plan.policy.units[self.at(unit)]
    }

    fn about(&self, unit: &str) -> &About {
        &self.plan.about[self.at(unit)]
    }

    /// `level file:line: message`.
    fn said(&self) -> Vec<String> {
        let word = |level| match level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let line = |one: &Diagnostic| {
            let place = one.labels.first().map_or(String::new(), |label| self.sources.place(label.span));
            format!("{} {place}: {}", word(one.level), one.message)
        };
        self.said.iter().map(line).collect()
    }
}

/// One unit `u` with this text.
fn unit(text: &str, options: &[&str]) -> Run {
    run(&format!("--- units/u.toml\n{text}"), options)
}

#[track_caller]
fn check_argv(text: &str, options: &[&str], expected: &[&str]) {
    let run = unit(text, options);
    assert_eq!(run.said(), Vec::<String>::new(), "{text}");
    assert_eq!(run.exec("u").argv, expected, "{text}");
}

#[track_caller]
fn check_said(text: &str, options: &[&str], expected: &[&str]) -> Run {
    let run = unit(text, options);
    assert_eq!(run.said(), expected, "{text}");
    run
}

#[test]
fn a_command_is_a_list_or_words() {
    check_argv("command = 'python3 -m http.server 8000'", &[], &["python3", "-m", "http.server", "8000"]);
    check_argv("command = ['a b', '$x']", &[], &["a b", "$x"]);
    check_argv("command = \"run '{{ env.A }}' {{ env.A }}\"", &["env A=x y"], &["run", "x y", "x y"]);
    // What only a shell could read is refused when the file is read; no part of it may run.
    assert!(unit("command = 'a | b'", &[]).exec("u").argv.is_empty());
}

#[test]
fn elements_are_conditional_repeated_spliced_or_nothing() {
    let text = "command = ['c', { when = 'param.on', use = ['--on'] }, { each = 'd in param.ids', use = '-d{{ d }}' }, '{{ param.ids }}', '{{ none }}', 7]
        [param.on]\ntype = 'bool'\ndefault = true\n[param.ids]\ntype = 'list'\ndefault = [1, 2]";
    check_argv(text, &[], &["c", "--on", "-d1", "-d2", "1", "2", "7"]);
    check_argv(text, &["set u.on=false", "set u.ids=[]"], &["c", "7"]);
}

#[test]
fn nothing_inside_text_is_an_error_at_its_place() {
    check_said(
        "command = ['c', '--name={{ env.NAME }}']",
        &[],
        &["error units/u.toml:1: `env.NAME` is nothing here"],
    );
}

#[test]
fn argv_is_wrap_interpreter_inject_command_args() {
    let files = "--- units/u.toml
        labels = ['x']
        interpreter = 'python3 -u'
        command = ['-m', 'mod']
        args = ['--end']
        [bootstrap.own]
        wrap = ['numactl', '-N0']
        --- profiles/p.toml
        [bootstrap.shim]
        labels = ['x']
        why = 'needs a context'
        inject = [\"{{ script('shim.py') }}\", '--']
        [bootstrap.wrapped]
        wrap = ['nice']
        [bootstrap.other]
        labels = ['y']
        wrap = ['never']
        [bootstrap.first]
        run = 'mkdir -p /x'
        why = 'a folder'
        --- tenon.toml
        profile = 'p'";
    let run = run(files, &[]);
    assert_eq!(run.said(), Vec::<String>::new());
    assert_eq!(
        run.exec("u").argv,
        ["numactl", "-N0", "nice", "python3", "-u", "/s/shim.py", "--", "-m", "mod", "--end"]
    );
    let shim = &run.about("u").argv[5].chain[0];
    assert_eq!(
        (&shim.layer, shim.why.as_deref()),
        (&OriginLayer::Bootstrap("shim".into()), Some("needs a context"))
    );
    let step = &run.exec("u").steps[0];
    assert_eq!((step.argv.join(" "), step.why.as_str()), ("mkdir -p /x".into(), "a folder"));
    assert_eq!(run.policy("u").steps, 1);
}

#[test]
fn a_json_file_looks_as_python_writes_it() {
    let text = "command = 'c'
        [file.f]
        path = '{{ dirs.unit }}/f.json'
        format = 'json'
        [file.f.content]
        name = '{{ env.NAME }}'
        size = '600GB'
        n = 0
        gone = '{{ none }}'
        port = '{{ 80 + 8 }}'
        list = []
        inner = { a = [1, 'ü'] }";
    let run = check_said(text, &["env NAME=x"], &[]);
    let file = &run.exec("u").files[0];
    assert_eq!(file.path.to_str(), Some("/run/tenon/units/u/f.json"));
    assert_eq!(file.mode, 0o644);
    assert_eq!(
        String::from_utf8_lossy(&file.content),
        "{\n  \"name\": \"x\",\n  \"size\": \"600GB\",\n  \"n\": 0,\n  \"port\": 88,\n  \"list\": [],\n  \"inner\": {\n    \"a\": [\n      1,\n      \"ü\"\n    ]\n  }\n}"
    );
}

#[test]
fn lists_in_structured_data_stay_lists() {
    let text = "command = 'c'\n[param.l]\ntype = 'list'\ndefault = [1, 2]\n[file.f]\npath = '/f'\nformat = 'json'\n[file.f.content]\na = ['{{ param.l }}']\nb = '{{ param.l }}'";
    let run = check_said(text, &[], &[]);
    let json: serde_json::Value = serde_json::from_slice(&run.exec("u").files[0].content).unwrap();
    assert_eq!(json, serde_json::json!({"a": [[1, 2]], "b": [1, 2]}));
}

#[test]
fn a_service_needs_a_command() {
    check_said("description = 'x'", &[], &["error units/u.toml:1: `u` is a service without a `command`"]);
    let task = check_said("kind = 'task'\n[file.f]\npath = '/f'\ncontent = 'x'", &[], &[]);
    assert_eq!(task.policy("u").kind, Kind::Task { has_command: false });
}

#[test]
fn a_replaced_command_is_told_with_its_first_argument() {
    let run = run("--- units/u.toml\ncommand = 'old x'\n--- tenon.toml\n[unit.u]\ncommand = 'new'", &[]);
    let chain = &run.about("u").argv[0].chain;
    let values: Vec<_> = chain.iter().map(|origin| origin.value.as_deref().unwrap()).collect();
    assert_eq!(values, ["[\"old\", \"x\"]", "new"]);
}

#[test]
fn other_formats() {
    let file = |format: &str, content: &str| {
        let text = format!("command = 'c'\n[file.f]\npath = '/f'\nformat = '{format}'\n{content}");
        let run = check_said(&text, &[], &[]);
        String::from_utf8(run.exec("u").files[0].content.clone()).unwrap()
    };
    assert_eq!(file("text", "content = 'a{{ 1 }}\\b'"), "a1\\b");
    assert_eq!(file("env", "[file.f.content]\nA = 'x y'\nB = 1\nC = ' q'"), "A=x y\nB=1\nC=\" q\"\n");
    assert_eq!(
        file("toml", "[file.f.content]\na = 1\n[file.f.content.t]\nb = 'x'"),
        "a = 1\n\n[t]\nb = \"x\"\n"
    );
}

#[test]
fn a_file_is_readable_by_its_name() {
    let text = "command = ['c', '{{ file.f }}']\nenv = { F = '{{ file.f }}' }\n[file.f]\npath = '/{{ env.DIR | default(\"d\") }}/f'\ncontent = ''";
    check_argv(text, &["env DIR=x"], &["c", "/x/f"]);
    let late = format!("{text}\n[rule.r]\nset = {{ DIR = 'y' }}");
    check_said(
        &late,
        &["env DIR=x"],
        &["error units/u.toml:3: `file.f` of `u` was `/x/f` when `[env]` read it, and is `/y/f` now"],
    );
}

#[test]
fn data_is_json_in_an_argument() {
    let text = "command = ['c', '{{ data.kv | json }}']\n[data.kv]\na = '{{ 1 + 1 }}'\nb = { c = '{{ none }}', d = 'x' }";
    check_argv(text, &[], &["c", r#"{"a": 2, "b": {"d": "x"}}"#]);
}

#[test]
fn layers_of_the_environment_and_their_story() {
    let files = "--- units/u.toml
        command = 'c'
        env = { A = 'unit', B = 'unit' }
        [role.r.env]
        A = 'role'
        --- tenon.toml
        role = 'r'
        [env]
        B = 'node'
        [unit.u.env]
        C = 'node unit'";
    let run = run(files, &["env A=in", "env Z=z"]);
    assert_eq!(run.said(), Vec::<String>::new());
    let env: Vec<String> =
        run.exec("u").env.iter().map(|(n, v)| format!("{n}={}", String::from_utf8_lossy(v))).collect();
    assert_eq!(env, ["A=role", "B=node", "C=node unit", "Z=z"]);
    assert_eq!(
        view::env_why(&run.plan, &run.sources, "u", Some("A")).unwrap(),
        "A=role\n    inherited: set `in`\n    file: set `unit`  (units/u.toml:2)\n  > role: set `role`  (units/u.toml:4)\n"
    );
    assert_eq!(view::env(&run.plan, "u").unwrap(), "A=role\nB=node\nC='node unit'\nZ=z\n");
}

#[test]
fn profile_rules_come_after_the_units_own() {
    let files = "--- units/u.toml
        command = 'c'
        [rule.own]
        default = { A = 'own' }
        --- profiles/p.toml
        [param.x]
        default = 'px'
        [rule.theirs]
        why = 'the hardware'
        default = { A = 'theirs', B = '{{ param.x }} {{ unit.name }}' }
        units = ['*']
        --- tenon.toml
        profile = 'p'";
    let run = run(files, &[]);
    assert_eq!(run.said(), Vec::<String>::new());
    assert_eq!(view::env(&run.plan, "u").unwrap(), "A=own\nB='px u'\n");
    assert_eq!(
        view::env_why(&run.plan, &run.sources, "u", Some("A")).unwrap(),
        "A=own\n  > rule own: default `own`  (units/u.toml:3)\n    profile rule theirs: left it, would have given `theirs`  (profiles/p.toml:5)\n      why: the hardware\n"
    );
}

#[test]
fn policy_defaults() {
    let run = check_said("command = 'c'", &[], &[]);
    let policy = run.policy("u");
    assert_eq!(policy.kind, Kind::Service);
    assert_eq!(policy.ready.by, ReadyBy::Spawn);
    assert_eq!(policy.ready.timeout, Some(Duration::from_secs(90)));
    assert_eq!(policy.health, None);
    assert_eq!(policy.restart.policy, RestartPolicy::Always);
    assert_eq!(policy.restart.max_restarts, None);
    assert_eq!(policy.stop.ladder, [Rung { signal: 15, timeout: Duration::from_secs(10) }]);
    assert_eq!(policy.stop.scope, Scope::Tree);
    let log = &run.exec("u").log;
    assert!(!log.console);
    let file = log.file.as_ref().unwrap();
    assert_eq!((file.path.to_str(), file.max_size, file.keep), (Some("/var/log/tenon/u.log"), 10_485_760, 5));
    assert!(unit("command = 'c'", &["container"]).exec("u").log.console);
    assert_eq!(unit("kind = 'task'\ncommand = 'c'", &[]).policy("u").restart.policy, RestartPolicy::Never);
}

#[test]
fn policy_as_written() {
    let text = "command = 'c'
        [ready]
        http = 'http://127.0.0.1:{{ 80 + 8 }}/h?x'
        json = { service_ready = true }
        interval = '2s'
        timeout = 'never'
        settle = '1s'
        [health]
        tcp = '[::1]:90'
        failures = 5
        on_failure = 'report'
        degraded_if = { status = 503, json = { code = 2 } }
        [restart]
        policy = 'on_failure'
        delays = ['1s', '2s']
        max_restarts = 3
        within = '60s'
        on_limit = 'shutdown'
        except = ['exit:78', 'signal:SIGSEGV', 'oom', 'start']
        when = \"env.R | nonempty | default('1') | bool\"
        [stop]
        ladder = ['SIGINT 5s', 'SIGTERM 20s']
        scope = 'main'";
    let run = check_said(text, &["env R=0"], &[]);
    let policy = run.policy("u");
    assert_eq!(policy.ready.by, ReadyBy::Poll { interval: Duration::from_secs(2) });
    assert_eq!((policy.ready.timeout, policy.ready.settle), (None, Duration::from_secs(1)));
    assert_eq!(
        probes::words(&run.exec("u").ready.probes[0]),
        "http://127.0.0.1:88/h?x, service_ready = true"
    );
    let health = policy.health.as_ref().unwrap();
    assert_eq!((health.failures, health.on_failure), (5, OnFailure::Report));
    assert_eq!(run.exec("u").health.degraded_if.as_ref().unwrap().status, Some(503));
    let restart = &policy.restart;
    assert_eq!(
        (restart.policy, restart.enabled, restart.max_restarts),
        (RestartPolicy::OnFailure, false, Some(3))
    );
    assert_eq!((restart.within, restart.on_limit), (Some(Duration::from_secs(60)), OnLimit::Shutdown));
    assert_eq!(
        restart.except,
        [CausePattern::Exit(78), CausePattern::Signal(11), CausePattern::Oom, CausePattern::Start]
    );
    assert_eq!(policy.stop.worst_case(), Duration::from_secs(25));
    assert_eq!(policy.stop.scope, Scope::Main);
    assert!(unit(text, &["env R="]).policy("u").restart.enabled);
    assert_eq!(
        unit("command = 'c'\nrestart = 'never'", &[]).policy("u").restart.policy,
        RestartPolicy::Never
    );
}

#[test]
fn probes_that_are_not_wanted_are_left_out() {
    let text = "command = 'c'
        [param.rest]\ntype = 'port'\nzero = true\ndefault = 8800
        [ready]
        all = [{ tcp = '127.0.0.1:{{ param.rest }}', when = 'param.rest != 0' }, { path = '/x' }]
        [health]
        when = 'param.rest != 0'
        tcp = '127.0.0.1:1'";
    assert_eq!(check_said(text, &[], &[]).exec("u").ready.probes.len(), 2);
    let without = check_said(text, &["set u.rest=0"], &[]);
    assert_eq!(without.exec("u").ready.probes.len(), 1);
    assert_eq!(without.policy("u").health, None);
}

#[test]
fn requirements_are_over_final_values() {
    let text = "command = 'c'\n[rule.r]\ndefault = { A = '1' }\n[require.x]\ntest = \"env.A == '2'\"\nmessage = 'A is {{ env.A }}'\n[require.y]\nlevel = 'warning'\ntest = 'env.B is defined'\nmessage = 'set B'";
    check_said(text, &[], &["error units/u.toml:5: A is 1", "warning units/u.toml:9: set B"]);
    check_said(text, &["env A=2", "env B=1"], &[]);
}

#[test]
fn same_compares_all_selected_units() {
    let files = "--- units/a.toml\nlabels = ['e']\ncommand = 'c'\nenv = { SEED = '0' }\n[require.seed]\nlabels = ['e']\nsame = 'env.SEED'
        --- units/b.toml\nlabels = ['e']\ncommand = 'c'\nenv = { SEED = '1' }";
    let run = run(files, &[]);
    assert_eq!(run.said(), ["error units/a.toml:6: `env.SEED` must be the same for all of them"]);
    assert_eq!(run.said[0].notes[0], "`a` has \"0\", `b` has \"1\"");
}

const TWO_PORTS: &str = "--- units/a.toml\ncommand = 'c'\n[param.port]\ntype = 'port'\ndefault = 8080\n[ports.http]\nvalue = '{{ param.port }}'
    --- units/b.toml\ncommand = 'c'\n[ports.rest]\nvalue = '8000-8090'";

#[test]
fn equal_ports_in_one_place_clash() {
    let run1 = run(TWO_PORTS, &[]);
    assert_eq!(
        run1.said(),
        ["error units/a.toml:6: port 8080 on `host` is claimed twice: `http` of `a` and `rest` of `b`"]
    );
    assert_eq!(run1.said[0].helps[0].message, "change `port` in `[set.a]`; `http` has room from 8091 on");
    assert_eq!(run(TWO_PORTS, &["set a.port=9000"]).said(), Vec::<String>::new());
    let elsewhere = TWO_PORTS.replace("value = '8000-8090'", "value = '8000-8090'\non = ['card{{ 1 }}']");
    assert_eq!(run(&elsewhere, &[]).said(), Vec::<String>::new());
}

#[test]
fn reserved_ports_are_a_warning() {
    let files = format!(
        "{TWO_PORTS}\n--- profiles/p.toml\n[reserve.x]\nvalue = '9000-9001'\nowner = 'HAL'\n--- tenon.toml\nprofile = 'p'"
    );
    assert_eq!(
        run(&files, &["set a.port=9001"]).said(),
        ["warning units/a.toml:6: port 9001 on `host` belongs to HAL, and `http` of `a` claims it"]
    );
    let run = run(&files, &["set a.port=9001"]);
    // What the command line gives no table of the node file would beat.
    assert_eq!(
        run.said[0].helps[0].message,
        "change `port`, which the command line gives (`--set`); `http` has room from 9002 on"
    );
}

#[test]
fn a_stop_path_that_cannot_fit_is_a_warning() {
    let files = "--- units/db.toml\ncommand = 'c'\n[stop]\ntimeout = '22s'
        --- units/web.toml\nneeds = ['db']\ncommand = 'c'";
    let run = run(files, &[]);
    assert_eq!(run.plan.stop_path.worst_case, Duration::from_secs(32));
    let names: Vec<_> = run
        .plan
        .stop_path
        .units
        .iter()
        .map(|(id, time)| (&*run.plan.policy.get(*id).unwrap().name, time.as_secs()))
        .collect();
    assert_eq!(names, [("web", 10), ("db", 22)]);
    assert_eq!(
        run.said(),
        [
            "warning units/db.toml:3: stopping in order can take 32s, and `stop_budget` is 25s: what is left then is killed"
        ]
    );
}

#[test]
fn the_governor_of_the_node_file() {
    let files = "--- units/e@.toml\ncommand = 'c'\nlabels = ['engine']
        --- units/store.toml\ncommand = 'c'\nprovides = ['kv']
        --- units/web.toml\ncommand = 'c'
        --- tenon.toml\n[instances]\ne = 2
        [governor]\nrestarts = 10\nwithin = '2m'\nconcurrent = 2\nstagger = '5s'\norder = ['kv', 'label:engine', 'sotre']";
    let run = run(files, &[]);
    let governor = &run.plan.policy.governor;
    let order: Vec<_> = governor.order.iter().map(|id| &*run.plan.policy.get(*id).unwrap().name).collect();
    assert_eq!(order, ["store", "e@0", "e@1"]);
    assert_eq!((governor.restarts, governor.within.as_secs()), (Some(10), 120));
    assert_eq!((governor.concurrent, governor.stagger.as_secs()), (Some(2), 5));
    assert_eq!(
        run.said(),
        ["warning tenon.toml:8: `governor.order` names `sotre`, and no known unit matches"]
    );
    assert_eq!(run.said[0].helps[0].message, "did you mean `store`?");
}

#[test]
fn preflight_compares_memory_with_what_is_left() {
    let files = "--- units/a.toml\ncommand = 'c'\n[preflight]\nmemory = '4GB'\nresolve = ['localhost', 'pool']\nflags = ['c', '--help']
        --- units/b.toml\nafter = ['a']\ncommand = 'c'\n[preflight]\nmemory = '8GB'";
    let facts = "facts memory = { total = 21474836480, available = 10737418240 }";
    let run = run(files, &[facts]);
    let needs: Vec<_> = preflight(&run.plan, &run.facts)
        .into_iter()
        .map(|need| (need.unit, need.what, need.need, need.have, need.verdict.words()))
        .collect();
    let row = |unit: &str, what: &str, need: &str, have: &str, verdict: &'static str| {
        (unit.to_owned(), what.to_owned(), need.to_owned(), have.to_owned(), verdict)
    };
    assert_eq!(
        needs,
        [
            row("a", "memory", "4 GB", "10 GB available", "ok"),
            row("a", "resolve", "localhost", "needs no asking", "ok"),
            row("a", "resolve", "pool", "not asked", "asked at start"),
            row("a", "flags", "c --help", "not asked", "asked at start"),
            row(
                "b",
                "memory",
                "8 GB",
                "6 GB (10 GB available, 4 GB of it claimed by units before)",
                "not enough"
            ),
        ]
    );
    let cgroup =
        "facts {\"memory\": {\"available\": 10737418240}, \"cgroup\": {\"memory_free\": 1073741824}}";
    let tight = super::tests::run(files, &[cgroup]);
    let first = &preflight(&tight.plan, &tight.facts)[0];
    assert_eq!((first.have.as_str(), first.verdict), ("1 GB left in the control group", Verdict::Short));
    assert_eq!(first.fix, "ask for at most 1 GB, or free 3 GB");
}

#[test]
fn limits_of_devices_are_checked_once_they_are_known() {
    let text = |line: &str| {
        format!(
            "command = 'c'\n[param.rate]\ntype = 'string'\ndefault = '4096'\n[cgroup]\nio_max = ['8:0 rbps={{{{ param.rate }}}}'{line}]"
        )
    };
    let lines = |run: &Run| run.exec("u").cgroup.settings.clone();
    let line = |text: &str| ("io_max".to_owned(), "io.max".to_owned(), text.to_owned());
    let run = check_said(&text(", '8:16 wiops=max'"), &[], &[]);
    assert_eq!(lines(&run), [line("8:0 rbps=4096"), line("8:16 wiops=max")]);
    let why = "error units/u.toml:6: `cgroup.io_max`: `8:0 rbps=fast` is not a limit of a device such as `8:0 rbps=1048576 wiops=max`";
    let run = check_said(&text(", '8:16 wiops=max'"), &["set u.rate=fast"], &[why]);
    assert_eq!(lines(&run), [line("8:16 wiops=max")]);
}

#[test]
fn check_knows_files_only() {
    let text = "command = ['c', '{{ env.X }}']\nenv = { A = '{{ fact.hostname }}', B = 'b' }\n[ready]\ntcp = '127.0.0.1:{{ env.P }}'";
    let run = check_said(
        text,
        &["check"],
        &[
            "note units/u.toml:1: no file sets `X`: it comes from the runner's environment",
            "note units/u.toml:4: no file sets `P`: it comes from the runner's environment",
        ],
    );
    assert!(run.about("u").unknown);
    let shown = view::plan(&run.plan, &run.sources);
    assert!(shown.contains("argv       c unknown here\n"), "{shown}");
    assert!(shown.contains("A=unknown here"), "{shown}");
    assert!(shown.contains("B=b"), "{shown}");
}

#[test]
fn skipped_units_are_shown_with_their_condition() {
    let files = "--- units/a.toml\ncommand = 'c'\nwhen = \"env.X == '1'\"\n--- units/b.toml\ncommand = 'c'\nafter = ['a']";
    let run = run(files, &[]);
    assert!(run.policy("a").skipped.is_some());
    assert!(run.exec("a").argv.is_empty());
    let shown = view::plan(&run.plan, &run.sources);
    assert!(shown.contains("-  a skipped:"), "{shown}");
}

#[test]
fn equal_plans_have_equal_fingerprints() {
    let one = unit("command = 'c'\nenv = { A = 'x' }", &["env Z=1"]).plan.fingerprint;
    assert_eq!(one, unit("# moved\ncommand = ['c']\n[env]\nA = 'x'", &["env Z=1"]).plan.fingerprint);
    assert_ne!(one, unit("command = 'c'\nenv = { A = 'y' }", &["env Z=1"]).plan.fingerprint);
}

#[test]
fn a_diff_names_what_changes_for_each_unit() {
    let old = run("--- units/a.toml\ncommand = 'c'\nenv = { A = '1' }\n--- units/b.toml\ncommand = 'c'", &[]);
    let new = run(
        "--- units/a.toml\ncommand = ['c', '-v']\nenv = { A = '2', N = 'x' }\n[stop]\ntimeout = '20s'\n--- units/n.toml\ncommand = 'c'",
        &[],
    );
    assert_eq!(
        view::diff_text(&view::diff(&old.plan, &new.plan)),
        "a changed\n  argv: c → c -v\n  env A: 1 → 2\n  env N: (not set) → x\n  stop changed\nn added\nb removed\n"
    );
    assert_eq!(view::diff(&old.plan, &old.plan), []);
}

#[test]
fn cat_shows_where_each_value_is_from() {
    let files = "--- units/u.toml\ncommand = 'c'\nuser = 'a'\n[stop]\ntimeout = '5s'\n--- units/u.toml.d/x.toml\n[stop]\ntimeout = '7s'";
    let run = run(files, &[]);
    let tree: &Node = &run.graph.units["u"].tree;
    assert_eq!(
        view::cat(tree, &run.sources),
        "command = [\"c\"]  # units/u.toml:1\nuser = \"a\"  # units/u.toml:2\n\n[stop]\ntimeout = \"7s\"  # units/u.toml.d/x.toml:2\n#   over \"5s\" of file, units/u.toml:4\n"
    );
}

#[test]
fn graphs() {
    let files = "--- units/db.toml\ncommand = 'c'\n--- units/web.toml\nneeds = ['db']\ncommand = 'c'";
    let run = run(files, &[]);
    assert_eq!(
        view::dot(&run.plan),
        "digraph plan {\n  rankdir = BT\n  node [shape = box]\n  \"db\"\n  \"web\"\n  \"web\" -> \"db\" [label = \"needs spawned\", style = solid]\n}\n"
    );
    assert_eq!(
        view::mermaid(&run.plan),
        "flowchart BT\n  u0[\"db\"]\n  u1[\"web\"]\n  u1 -->|needs spawned| u0\n"
    );
}

#[test]
fn a_profile_says_on_the_first_line_what_it_has_chosen() {
    let run = run(
        "
        --- units/u.toml
        command = 'sleep 1'
        --- profiles/p.toml
        [param.way]
        default = \"{{ 'new' if env.NEW is defined else 'old' }}\"
        [info]
        way = '{{ param.way }}, of two'",
        &["profile=p", "env NEW=1"],
    );
    assert_eq!(run.said(), Vec::<String>::new());
    let text = view::plan(&run.plan, &run.sources);
    assert!(text.starts_with("profile p (--profile p), way: new, of two, no role, plan "), "{text}");
    assert_eq!(view::json(&run.plan, &run.sources)["profile"]["info"]["way"], "new, of two");
}

#[test]
fn ports_of_no_place_are_no_claim() {
    let run = unit(
        "command = 'sleep 1'\n[ports.card]\nvalue = 1\non = [{ each = 'd in unit.devices', use = ['npu{{ d }}'] }]",
        &[],
    );
    assert_eq!(run.about("u").ports, Vec::new());
}

#[test]
fn writing_every_default_out_changes_nothing() {
    use std::fmt::Write as _;
    let unit = |written: bool| {
        let mut text = String::from("--- units/web.toml\ncommand = 'x'\n");
        for section in ["ready", "health", "restart", "stop", "log"] {
            writeln!(text, "[{section}]").unwrap();
            if section == "ready" || section == "health" {
                text.push_str("http = 'http://127.0.0.1:1/'\n");
            }
            let keys = crate::config::keys::KEYS.iter().filter(|key| written && key.section == section);
            for (name, default) in keys.filter_map(|key| Some((key.name, key.default?))) {
                writeln!(text, "{name} = {default}").unwrap();
            }
        }
        text
    };
    let (written, left_out) = (run(&unit(true), &[]), run(&unit(false), &[]));
    assert_eq!(written.said, left_out.said);
    assert_eq!(written.plan.policy, left_out.plan.policy);
    assert_eq!(written.plan.exec, left_out.plan.exec);
}
