//! Parameters, names, profiles, scopes and requirements: what expressions see and give.

use super::*;

// ---- parameters ----

#[test]
fn values_of_parameters_low_to_high() {
    let unit = "--- units/job@.toml
         command = 'job'
         param.x = { type = 'string', default = 'default' }
         [role.r.param]
         x = 'role'
         --- tenon.toml
         instances.job = 2
         ";
    params(unit, &[], "job@1.x = \"default\"");
    params(unit, &["role=r"], "job@1.x = \"role\"");
    let unit = format!("{unit}set.'job@'.x = 'template'\n");
    params(&unit, &["role=r"], "job@1.x = \"template\"");
    let unit = format!("{unit}set.'job@1'.x = 'instance'\n");
    params(&unit, &["role=r"], "job@1.x = \"instance\"\njob@0.x = \"template\"");
    let unit = format!("{unit}roles.r.set.'job@'.x = 'node role'\n");
    params(&unit, &["role=r"], "job@1.x = \"node role\"");
    params(&unit, &["role=r", "set job@.x=command line"], "job@1.x = \"command line\"");
    params(
        &unit,
        &["role=r", "set job@1.x=instance", "set job@.x=template"],
        "job@1.x = \"instance\"\njob@0.x = \"template\"",
    );
}

#[test]
fn types_of_parameters() {
    let unit = "--- units/a.toml
         command = 'a'
         [param]
         string = { type = 'string', default = 7 }
         bool = { type = 'bool', default = 'yes' }
         int = { type = 'int', default = '42' }
         float = { type = 'float', default = 1 }
         size = { type = 'size', default = '400gb' }
         bytes = { type = 'size', default = 4096 }
         duration = { type = 'duration', default = '1m30s' }
         port = { type = 'port', default = '8080' }
         zero = { type = 'port', default = 0, zero = true }
         range = { type = 'port_range', default = '16700-16800' }
         version = { type = 'version', default = '9.1.0' }
         enum = { type = 'enum', choices = ['a', 'b'], default = 'b' }
         path = { type = 'path', default = '/x' }
         address = { type = 'address', default = '[::1]:80' }
         list = { type = 'list', default = [{ each = 'n in [1, 2]', use = ['{{ n + 1 }}'] }, { when = 'false', use = ['no'] }] }
         table = { type = 'table', default = { a = '{{ param.int }}', b = '{{ none }}' } }
         json = { type = 'json', default = '{\"a\": 1}' }
         ";
    params(
        unit,
        &[],
        "a.string = \"7\"
         a.bool = true
         a.int = 42
         a.float = 1
         a.size = \"400gb\"
         a.bytes = 4096
         a.duration = \"1m30s\"
         a.port = 8080
         a.zero = 0
         a.range = \"16700-16800\"
         a.version = \"9.1.0\"
         a.enum = \"b\"
         a.path = \"/x\"
         a.address = \"[::1]:80\"
         a.list = [2, 3]
         a.table = { a = 42 }
         a.json = \"{\\\"a\\\": 1}\"",
    );
    params(
        unit,
        &["set a.list=[1, 'x']", "set a.table={ z = 1 }", "set a.int=5", "set a.bool=off"],
        "a.list = [1, \"x\"]\na.table = { z = 1 }\na.int = 5\na.bool = false",
    );
}

#[test]
fn an_invalid_value_is_refused_where_it_is_written() {
    let bad = |param: &str, value: &str, expected: &str| {
        check(
            &format!("--- units/a.toml\ncommand = 'a'\nparam.x = {param}\n--- tenon.toml\nset.a.x = {value}"),
            &[],
            expected,
        );
    };
    bad(
        "{ type = 'int', min = 1, max = 9 }",
        "10",
        "error[invalid-value] tenon.toml:1: `10` is no value of `a.x`: it must be at most 9
           units/a.toml:2: `x` is declared here as int",
    );
    bad(
        "{ type = 'enum', choices = ['embedded', 'standalone'] }",
        "'standalon'",
        "error[invalid-value] tenon.toml:1: `standalon` is no value of `a.x`: it must be one of \"embedded\", \"standalone\"
           units/a.toml:2: `x` is declared here as enum
           help: did you mean \"standalone\"?",
    );
    bad(
        "{ type = 'size', pattern = '(?i)^[0-9.]+ ?([kmgt]?b)$', pattern_help = 'kb, mb, gb or tb' }",
        "'1GiB'",
        "error[invalid-value] tenon.toml:1: `1GiB` is no value of `a.x`: kb, mb, gb or tb
           units/a.toml:2: `x` is declared here as size",
    );
    bad(
        "{ type = 'enum', choices = ['a'], default = 'a', fallback = 'a' }",
        "'bogus'",
        "warning[invalid-value] tenon.toml:1: `bogus` is no value of `a.x`: it must be one of \"a\"; using \"a\"
           units/a.toml:2: `x` is declared here as enum",
    );
    bad(
        "{ type = 'port' }",
        "0",
        "error[invalid-value] tenon.toml:1: `0` is no value of `a.x`: 0 is no port
           units/a.toml:2: `x` is declared here as port",
    );
}

#[test]
fn empty_text_may_count_as_not_given() {
    let files = |empty: &str| {
        format!(
            "--- units/a.toml\ncommand = 'a'\nparam.x = {{ type = 'string', default = 'd'{empty} }}\n--- tenon.toml\nset.a.x = ''"
        )
    };
    params(&files(""), &[], "a.x = \"\"");
    params(&files(", empty = 'keep'"), &[], "a.x = \"\"");
    params(&files(", empty = 'default'"), &[], "a.x = \"d\"");
}

#[test]
fn a_value_for_what_is_not_there_is_refused() {
    check(
        "--- units/a.toml\ncommand = 'a'\nparam.port = { type = 'port', default = 1 }
         --- units/t@.toml\ncommand = 't'
         --- tenon.toml
         [set.a]
         prot = 2
         [set.b]
         x = 1
         [set.t]
         x = 1
         [set.'t@7']
         x = 1",
        &["set a.pot=3", "set nothing"],
        "error[bad-set] <command line>:2: `nothing` is not of the form `UNIT.PARAM=VALUE`
         error[unknown-parameter] tenon.toml:2: `a` has no parameter `prot`
           help: did you mean `port`?
         error[unknown-unit] tenon.toml:3: there is no unit `b` to give values to
         error[unknown-unit] tenon.toml:5: there is no unit `t` to give values to
           help: `t@` is a template: write `[set.\"t@\"]`
         error[unknown-unit] tenon.toml:7: there is no unit `t@7` to give values to
           help: `t@` has no instance `7`: see `[instances]` of the node file
         error[unknown-parameter] <command line>:1: `a` has no parameter `pot`
           help: did you mean `port`?",
    );
    // Whatever role this node has.
    check(
        "--- units/a.toml\ncommand = 'a'\nparam.port = { type = 'port', default = 1 }
         [role.x.param]
         port = 3
         prot = 2",
        &[],
        "error[unknown-parameter] units/a.toml:5: `a` has no parameter `prot`
           help: did you mean `port`?",
    );
    // A table is named as it is to be written.
    check(
        "--- units/base.toml\nabstract = true\ncommand = 'b'\nparam.x = { type = 'int', default = 1 }
         --- units/h.v.toml\nextends = 'base'
         --- units/w.toml\nextends = 'base'
         --- tenon.toml\n[set.base]\nx = 2",
        &[],
        "error[unknown-unit] tenon.toml:1: there is no unit `base` to give values to
           help: `base` never runs itself: give them to what extends it, `[set.\"h.v\"]`, `[set.w]`",
    );
}

#[test]
fn a_required_parameter_is_missed_once_a_planned_unit_reads_it() {
    let files = |condition: &str| {
        format!(
            "--- units/pool.toml\nkind = 'settings'\nparam.ratio = {{ type = 'float', suggest = 0.9, help = 'how full' }}
             --- units/m.toml\ncommand = ['m', '{{{{ param.args }}}}']\nuses = ['pool']\nwhen = '{condition}'
             param.args = {{ type = 'string', default = '--ratio={{{{ pool.ratio }}}}' }}
             --- units/n.toml\ncommand = 'n'\nuses = ['pool']
             --- tenon.toml\nrun = ['m', 'n']"
        )
    };
    let files = |condition: &str| files(condition);
    let missed = "error[parameter-missing] units/pool.toml:2: `pool.ratio` has no value, and `m` reads it
           units/m.toml:1: `m` reads it here
           note: `ratio`: how full
           help: write `ratio = 0.9` under `[set.pool]` in the node file";
    check(&files("true"), &[], missed);
    assert_eq!(run(&files("false"), &[]).problems(), "");
    assert_eq!(run(&files("true"), &["set m.args=none"]).problems(), "");
    assert_eq!(run(&files("true"), &["set pool.ratio=0.5"]).problems(), "");
}

#[test]
fn parameters_in_a_circle_are_shown_with_every_place() {
    check(
        "--- units/s.toml\nkind = 'settings'\nparam.b = { type = 'int', default = '{{ param.c }}' }\nparam.c = { type = 'int', default = '{{ param.b }}' }
         --- units/a.toml\ncommand = 'a {{ s.b }}'\nuses = ['s']",
        &[],
        "error[parameter-cycle] units/s.toml:2: values ask for each other in a circle: s.b → s.c → s.b
           units/s.toml:3: `s.c` asks for `s.b`
           help: give one of them a value of its own",
    );
}

#[test]
fn units_gives_handles_of_the_others() {
    params(
        "--- units/e@.toml\ncommand = 'e'\nparam.port = { type = 'port', default = '{{ 8100 + unit.index }}' }
         --- units/proxy.toml\ncommand = 'p'
         param.list = { type = 'list', default = [{ each = \"u in units('e@*')\", use = ['{{ u.name }}:{{ u.param.port }}'] }] }
         --- tenon.toml\ninstances.e = 2",
        &[],
        "proxy.list = [\"e@0:8100\", \"e@1:8101\"]",
    );
}

#[test]
fn parameters_see_the_environment_with_the_node_file_on_top() {
    params(
        "--- units/a.toml\ncommand = 'a'
         [param]
         p = { type = 'string', default = '{{ env.P }}' }
         q = { type = 'string', default = '{{ env.Q }}' }
         r = { type = 'string', optional = true, default = '{{ env.R }}' }
         --- tenon.toml\n[env]\nQ = 'node {{ env.Q }}'",
        &["env P=runner", "env Q=runner"],
        "a.p = \"runner\"\na.q = \"node runner\"\na.r = nothing",
    );
}

#[test]
fn a_secret_may_not_be_given_as_an_argument() {
    check(
        "--- units/a.toml\ncommand = 'a'\nparam.token = { type = 'secret', optional = true }",
        &["set a.token=hunter2"],
        "error[secret-in-arguments] <command line>:1: `a.token` is a secret: the command line is readable for every process
           help: keep it in a file, and name that under `[set]` of a node file only its owner can read",
    );
}

#[test]
fn nor_may_a_variable_of_a_secret_name() {
    check(
        "--- units/a.toml\ncommand = 'a'",
        &[
            "nodeenv MY_TOKEN=hunter2",
            "nodeenv PLAIN=1",
            "nodeenv TOKENIZERS_PARALLELISM=false",
            "nodeenv HF_TOKEN_FILE=/run/t",
        ],
        "error[secret-in-arguments] <command line>:1: `MY_TOKEN` is a secret: the command line is readable for every process
           help: keep it in a file only its owner can read: an `env_file`, or `[env]` of a node file",
    );
}

#[test]
fn secrets_are_not_in_what_is_shown() {
    let shown = |files: &str, options: &[&str]| {
        let run = run(files, options);
        crate::diagnostic::human(&run.diagnostics, &run.sources, false)
    };
    // The node file's value on the line of another mistake; a value of a role that this node has not.
    let files = "--- units/s.toml\ncommand = 's'\nparam.p = { type = 'secret', default = 'by-default' }
         --- tenon.toml\n[set]\ns = { p = 'hushhush', q = 1 }\n[roles.far.set]\ns = { p = 'far-away', r = 2 }\n";
    let text = shown(files, &[]);
    assert!(text.contains("s = { p = '********', q = 1 }"), "{text}");
    assert!(text.contains("s = { p = '********', r = 2 }"), "{text}");
    let text =
        shown("--- units/a.toml\ncommand = 'a'\nenv = { API_TOKEN = 'tok-111', B = '{{ env. }}' }", &[]);
    assert!(text.contains("env = { API_TOKEN = '*******', B = '{{ env. }}' }"), "{text}");
    // Of a parameter whose name alone says it, only what could be one.
    let text = shown(
        "--- units/m.toml\ncommand = 'm'\nparam.mode = { type = 'enum', choices = ['auto', 'slow'], default = 'autos' }
         param.tokenizer = { type = 'string', default = 'auto' }\nparam.api_key = { type = 'string', default = 'sk-12345' }
         env = { B = 'sk-12345 {{ env. }}' }\n",
        &[],
    );
    assert!(text.contains("`autos` is no value of `m.mode`"), "{text}");
    assert!(text.contains("env = { B = '******** {{ env. }}' }"), "{text}");
    // So it is with what is given.
    let text = shown(
        "--- units/m.toml\ncommand = 'm'\nparam.x = { type = 'string' }",
        &["set m.tokenizer=auto", "set m.api_token=tok-111"],
    );
    assert!(text.contains("m.tokenizer=auto") && text.contains("m.api_token=*******"), "{text}");
}

// ---- names ----

#[test]
fn names_are_checked_before_anything_runs() {
    check(
        "--- units/s.toml\nkind = 'settings'\nparam.port = { type = 'port', default = 1 }
         --- units/a.toml\ncommand = ['a', '{{ param.prot }}', '{{ s.port }}', '{{ file.conf }}', '{{ unit.nam }}', '{{ fact.nope }}']
         param.port = { type = 'port', default = 1 }
         --- units/b.toml\ncommand = 'b'\nuses = ['s', 't']\nenv.X = '{{ s.prt }}'",
        &[],
        "error[unknown-unit] units/b.toml:2: settings unit `t` is not known
         error[unknown-name] units/a.toml:1: unknown name `param.prot`
           help: did you mean `param.port`?
         error[unknown-name] units/a.toml:1: unknown name `s`
           help: `s` is a settings unit: add `uses = [\"s\"]` at the top of the file
         error[unknown-name] units/a.toml:1: unknown name `file.conf`
           help: nothing is declared in `file`
         error[unknown-name] units/a.toml:1: unknown name `unit.nam`
           help: did you mean `unit.name`?
         error[unknown-name] units/a.toml:1: unknown name `fact.nope`
           help: `fact` has `cgroup`, `cpus`, `ephemeral`, `hostname`, `hugepages`, `kernel`, `listening`, `memlock`, `memory`, `net`, `nofile`, `numa`, …
         error[unknown-name] units/b.toml:3: unknown name `s.prt`
           help: did you mean `s.port`?",
    );
}

// ---- profiles ----

/// `any`, `all`, one condition without a list, and both.
#[test]
fn all_conditions_of_detect_count() {
    let chosen = |detect: &str| {
        let files = format!(
            "--- profiles/p.toml\nfact.pci = {{ type = 'list', from = [] }}\n[detect]\n{detect}
         --- units/a.toml\ncommand = 'a'
         "
        );
        run(&files, &["profile=auto", "facts {\"pci\": [\"1\"]}"]).graph.profile.is_some()
    };
    let (yes, no) = ("\"'1' in fact.pci\"", "\"'2' in fact.pci\"");
    assert!(chosen(&format!("any = {yes}")));
    assert!(!chosen(&format!("any = {no}")));
    assert!(chosen(&format!("any = [{no}, {yes}]")));
    assert!(!chosen("any = []"));
    assert!(chosen(&format!("all = {yes}")));
    assert!(!chosen(&format!("all = [{yes}, {no}]")));
    assert!(chosen(&format!("any = [{yes}, {no}]\nall = [{yes}]")));
    assert!(!chosen(&format!("any = {yes}\nall = {no}")));
    assert!(!chosen(&format!("any = {no}\nall = {yes}")));
}

#[test]
fn a_profile_by_name_alias_and_detection() {
    let files = "--- profiles/base.toml\nfact.pci = { type = 'list', from = [] }\nparam.link = { type = 'string', default = 'a' }
         --- profiles/one.toml\nextends = 'base'\naliases = ['uno']\ndetect.any = [\"'1' in fact.pci\"]
         --- profiles/two.toml\nextends = 'base'\ndetect.any = [\"'2' in fact.pci\"]\nparam.link.default = 'b'
         --- profiles/any.toml\nfallback = true
         --- units/a.toml\ncommand = 'a'
         ";
    let chosen = |options: &[&str]| {
        let run = run(files, options);
        (
            run.graph.profile.map(|profile| format!("{}: {}", profile.name, profile.because)),
            run.diagnostics.len(),
        )
    };
    assert_eq!(chosen(&[]), (None, 0));
    assert_eq!(chosen(&["profile=one"]), (Some("one: --profile one".into()), 0));
    assert_eq!(chosen(&["profile=uno"]), (Some("one: --profile uno".into()), 0));
    let pci = |ids: &str| format!("facts {{\"pci\": [{ids}]}}");
    assert_eq!(
        chosen(&["profile=auto", &pci("\"2\"")]),
        (Some("two: detected: '2' in fact.pci (profiles/two.toml:2)".into()), 0)
    );
    assert_eq!(
        chosen(&["profile=auto", &pci("")]),
        (Some("any: fallback: nothing detected (any)".into()), 1)
    );
    assert_eq!(chosen(&["profile=auto", "check"]), (None, 0));
    check(
        files,
        &["profile=auto", &pci("\"1\", \"2\"")],
        "error[ambiguous-profile] profiles/one.toml:3: more than one profile matches this machine: `one` and `two`
           profiles/two.toml:2: holds, so `two` matches
           help: say in the node file which one this machine is: `profile = \"one\"` or `profile = \"two\"`; or make the conditions exclude each other",
    );
    check(
        files,
        &["profile=twoo"],
        "error[unknown-profile]: there is no profile `twoo`\n  help: did you mean `two`?",
    );
    params(files, &["profile=two"], "profile.link = \"b\"");
    params(files, &["profile=two", "set profile.link=c"], "profile.link = \"c\"");
}

// ---- check ----

#[test]
fn check_refuses_nothing_that_a_real_node_might_accept() {
    plan(
        "--- units/a.toml\ncommand = 'a'\nneeds = ['pool', { unit = 'side', when = \"env.S == '1'\" }]
         --- units/far.toml\nkind = 'external'\nprovides = ['pool']\nwhen = \"env.M == 'far'\"\nready.tcp = 'x:1'
         --- units/near.toml\ncommand = '{{ param.must }}'\nprovides = ['pool']\nwhen = \"env.M == 'near'\"\nconflicts = ['far']
         param.must = { type = 'string' }
         --- units/side.toml\ncommand = 's'\nroles = ['other']
         --- tenon.toml\nrun = ['a']\nrole = 'r'\n[roles.r]",
        &["check"],
        "far (needed by a)
           stops after a
         near (needed by a)
           stops after a
         a (run)
           needs pool (provided) -> far Ready
           needs pool (provided) -> near Spawned
           needs side: `side` is not placed here: it is for other, not r",
    );
}

#[test]
fn check_can_say_what_it_does_not_know_of_the_environment() {
    let run = run(
        "--- units/s.toml\nkind = 'settings'\nparam.host = { type = 'string', default = '{{ env.HOST }}' }
         --- units/a.toml\ncommand = ['a', '{{ env.PORT }}', '{{ env.SET }}', '{{ env.OWN }}']\nuses = ['s']\nenv.OWN = '1'
         --- units/b.toml\ncommand = '{{ env.OTHER }}'
         --- tenon.toml\nrun = ['a']\nenv.SET = 'x'",
        &["check"],
    );
    let asked: Vec<(&str, String)> = run
        .graph
        .asks_environment
        .iter()
        .map(|(name, span)| (name.as_str(), run.sources.place(*span)))
        .collect();
    assert_eq!(asked, [("PORT", "units/a.toml:1".to_owned()), ("HOST", "units/s.toml:2".to_owned())]);
}

#[test]
fn what_only_unread_values_lack_refuses_nothing() {
    // The address is required only where somebody reads it.
    let files = |argument: &str| {
        format!(
            "--- units/s.toml\nkind = 'settings'
             param.host = {{ type = 'string', default = \"{{{{ env.HOST | required('set HOST') }}}}\" }}
             --- units/a.toml\ncommand = ['a', '{argument}']\nuses = ['s']"
        )
    };
    assert_eq!(run(&files("x"), &[]).problems(), "");
    assert!(run(&files("{{ s.host }}"), &[]).problems().contains("set HOST"));
    assert_eq!(run(&files("{{ s.host }}"), &["check"]).problems(), "");
}

#[test]
fn requirements_concern_the_units_they_select() {
    let run = run(
        "--- units/s.toml\nkind = 'settings'\nrequire.one.test = 'true'
         --- units/a.toml\ncommand = 'a'\nuses = ['s']\nlabels = ['x']\nrequire.own.test = 'true'
         require.all = { same = 'env.SEED', labels = ['x'], level = 'warning' }
         require.none = { test = 'true', labels = ['nobody'] }
         --- units/b.toml\ncommand = 'b'\nlabels = ['x']
         --- units/c.toml\ncommand = 'c'\nwhen = 'false'\nrequire.never.test = 'false'",
        &[],
    );
    assert_eq!(run.problems(), "");
    let shown: Vec<String> = run
        .graph
        .requires
        .iter()
        .map(|require| {
            let subjects: Vec<&str> = require.subjects.iter().map(|name| &**name).collect();
            format!("{} {:?} {}", require.name, require.level, subjects.join(","))
        })
        .collect();
    assert_eq!(shown, ["own Error a", "all Warning a,b", "one Error "]);
}

#[test]
fn a_scope_reads_the_environment_it_is_given() {
    struct Given;
    impl EnvSource for Given {
        fn get(&self, name: &str) -> Value {
            if name == "DIR" { Value::Str("/given".into()) } else { Value::Nothing }
        }
    }
    let run = run(
        "--- units/a@.toml\ncommand = 'a'\nlabels = ['x']\ndevices.ids = ['{{ unit.index + 4 }}']
         file.conf.path = '{{ env.DIR }}/{{ unit.name }}.json'
         data.kv = { n = '{{ unit.index }}' }
         --- profiles/p.toml\nparam.link = { type = 'string', default = 'roce' }
         --- tenon.toml\ninstances.a = 2\nprofile = 'p'",
        &[],
    );
    assert_eq!(run.problems(), "");
    let scope = run.graph.unit_scope("a@1", Some(&Given)).unwrap();
    let value = |text: &str| values::words(&crate::expr::Expr::parse(text).unwrap().eval(&scope).unwrap());
    assert_eq!(value("file.conf"), "\"/given/a@1.json\"");
    assert_eq!(value("unit.devices"), "[5]");
    assert_eq!(value("data.kv"), "{ n = 1 }");
    assert_eq!(value("dirs.unit"), "\"/run/tenon/units/a@1\"");
    assert_eq!(value("unit.labels"), "[\"x\"]");
    assert_eq!(value("node.profile"), "\"p\"");
    let scope = run.graph.scope(&Owner::Profile, Some("a@0"), Some(&Given)).unwrap();
    let value = |text: &str| values::words(&crate::expr::Expr::parse(text).unwrap().eval(&scope).unwrap());
    assert_eq!(value("param.link ~ unit.name"), "\"rocea@0\"");
}

#[test]
fn a_settings_unit_is_told_to_read_its_own_parameters() {
    check(
        "--- units/s.toml\nkind = 'settings'\nparam.x = { default = 'a' }\nrequire.r = { test = \"s.x == 'a'\" }",
        &[],
        "error[unknown-name] units/s.toml:3: unknown name `s`
           help: a file reads its own parameters as `param.x`",
    );
}
