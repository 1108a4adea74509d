//! Files as one text, `--- units/web.toml` before each; what comes out as lines.

mod chosen;
mod expressions;
mod groups;

use super::*;
use crate::diagnostic::{Diagnostic, SourceMap};
use crate::facts::Facts;

/// Options of a test, as words: `role=x`, `profile=x`, `env NAME=VALUE` (of the runner), `set U.P=V`, `unit x`, `check`
/// (environment and facts are not known), `facts {…}`.
pub(super) struct Run {
    pub graph: UnitGraph,
    pub diagnostics: Vec<Diagnostic>,
    pub sources: SourceMap,
}

pub(super) fn run(files: &str, options: &[&str]) -> Run {
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
    let files = crate::load::in_memory(&texts, &mut sources);
    run_files(&files, options, sources)
}

fn run_files(files: &FileSet, words: &[&str], mut sources: SourceMap) -> Run {
    let mut options = Options::default();
    let mut environment = Some(IndexMap::new());
    let mut facts = Some(Facts::default());
    for word in words {
        let (key, value) = word.split_once(['=', ' ']).unwrap_or((word, ""));
        match key {
            "role" => options.role = Some(value.to_owned()),
            "profile" => options.profile = Some(value.to_owned()),
            "set" => options.sets.push(value.to_owned()),
            "env" => {
                let (name, value) = value.split_once('=').unwrap();
                environment.get_or_insert_default().insert(name.to_owned(), value.to_owned());
            }
            "nodeenv" => options.env.push(value.to_owned()),
            "unit" => options.units.push(value.to_owned()),
            "facts" => facts = Some(Facts::from_text(value).unwrap()),
            "check" => (environment, facts) = (None, None),
            other => panic!("unknown option {other}"),
        }
    }
    let inputs = Inputs { files, options, environment: environment.as_ref(), facts: facts.as_ref() };
    let (graph, diagnostics) = resolve(&inputs, &mut sources);
    Run { graph, diagnostics, sources }
}

impl Run {
    /// `error[code] file:line: message`, then each further place and each cure, indented.
    pub fn problems(&self) -> String {
        let mut lines = Vec::new();
        for diagnostic in &self.diagnostics {
            let level = format!("{:?}", diagnostic.level).to_lowercase();
            let place = diagnostic.labels.first().map(|label| format!(" {}", self.sources.place(label.span)));
            lines.push(format!(
                "{level}[{}]{}: {}",
                diagnostic.code.name(),
                place.unwrap_or_default(),
                diagnostic.message
            ));
            for label in diagnostic.labels.iter().skip(1) {
                lines.push(format!("  {}: {}", self.sources.place(label.span), label.text));
            }
            lines.extend(diagnostic.notes.iter().map(|note| format!("  note: {note}")));
            lines.extend(diagnostic.helps.iter().map(|help| format!("  help: {}", help.message)));
        }
        lines.join("\n")
    }

    /// The plan: a line a unit, its edges indented.
    pub fn plan(&self) -> String {
        let mut lines = Vec::new();
        for name in &self.graph.order {
            let unit = &self.graph.units[name];
            let placement = match &unit.placement {
                Placement::Planned(why) => why.clone(),
                Placement::Skipped(when, _) => format!("skipped: {when}"),
                other => format!("{other:?}"),
            };
            lines.push(format!("{name} ({placement})"));
            for edge in &unit.edges {
                let mut words = format!("  {} -> {} {:?}", edge.words, edge.to, edge.until);
                for (flag, word) in [
                    (!edge.orders_start, "no-start"),
                    (!edge.orders_stop, "no-stop"),
                    (edge.restart_with, "restart"),
                    (edge.keep_on_stop, "keep"),
                ] {
                    if flag {
                        words = format!("{words} {word}");
                    }
                }
                lines.push(words);
            }
            lines.extend(unit.absent.iter().map(|edge| format!("  {}: {}", edge.words, edge.because)));
            let stops: Vec<&str> = unit.stop_after.iter().map(|(name, _)| &**name).collect();
            if !stops.is_empty() {
                lines.push(format!("  stops after {}", stops.join(", ")));
            }
        }
        lines.extend(self.graph.not_run.iter().map(|(entry, why)| format!("not run: {entry}: {why}")));
        lines.join("\n")
    }

    pub fn param(&self, unit: &str, name: &str) -> String {
        let params = match unit {
            "profile" => &self.graph.profile.as_ref().unwrap().params,
            unit => &self.graph.units[unit].params,
        };
        params.get(name).map_or("-".to_owned(), |param| values::words(&param.value))
    }
}

/// Lines without their indentation: an expectation may stand as deep as its test.
fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(files: &str, options: &[&str], expected: &str) {
    assert_eq!(trimmed(&run(files, options).problems()), trimmed(expected), "{files}");
}

#[track_caller]
fn plan(files: &str, options: &[&str], expected: &str) {
    let run = run(files, options);
    assert_eq!(run.problems(), "", "{files}");
    assert_eq!(trimmed(&run.plan()), trimmed(expected), "{files}");
}

/// `UNIT.PARAM = VALUE` lines.
#[track_caller]
fn params(files: &str, options: &[&str], expected: &str) {
    let run = run(files, options);
    assert_eq!(run.problems(), "", "{files}");
    for line in trimmed(expected).lines() {
        let (name, value) = line.split_once(" = ").unwrap();
        let (unit, param) = name.rsplit_once('.').unwrap();
        assert_eq!(run.param(unit, param), value, "{name}");
    }
}

#[test]
fn a_unit_of_one_line_runs() {
    plan("--- units/web.toml\ncommand = 'sleep 1'", &[], "web (in the last folder of the search path)");
}

// ---- layers ----

#[test]
fn later_layers_win_and_losers_are_kept() {
    let run = run(
        "--- units/base.toml
         abstract = true
         command = 'base'
         env = { A = 'extends', B = 'extends' }
         --- units/web.toml
         extends = 'base'
         env.A = 'file'
         [role.blue.env]
         A = 'role'
         --- units/web.toml.d/10-local.toml
         env.A = 'drop-in'
         --- tenon.toml
         role = 'blue'
         run = ['web']
         [env]
         A = 'node'
         [unit.web.env]
         A = 'node unit'
         [roles.blue.env]
         A = 'node role'
         [roles.blue.unit.web.env]
         A = 'node role unit'",
        &["nodeenv=A=command line"],
    );
    assert_eq!(run.problems(), "");
    let env = run.graph.units["web"].tree.get("env").unwrap().as_table().unwrap();
    let a = env.get("A").unwrap();
    let chain: Vec<&str> = std::iter::once(a).chain(&a.losers).filter_map(Node::as_str).collect();
    assert_eq!(
        chain,
        [
            "command line",
            "node role unit",
            "node role",
            "node unit",
            "node",
            "role",
            "drop-in",
            "file",
            "extends"
        ]
    );
    assert_eq!(a.layer, Layer::CommandLine);
    assert_eq!(env.get("B").unwrap().layer, Layer::Extends);
}

#[test]
fn a_template_comes_before_its_instance() {
    let files = "--- units/job@.toml
         command = 'job'
         env = { A = 'file', B = 'file', C = 'file', D = 'file' }
         --- units/job@.toml.d/10.toml
         env = { A = 'template drop-in', B = 'template drop-in', C = 'template drop-in' }
         --- units/job@1.toml.d/10.toml
         env = { B = 'instance drop-in', C = 'instance drop-in' }
         --- tenon.toml
         instances.job = 2
         [unit.'job@'.env]
         C = 'node template'
         [unit.'job@1'.env]
         D = 'node instance'";
    let run = run(files, &[]);
    assert_eq!(run.problems(), "");
    let env = |unit: &str, name: &str| {
        run.graph.units[unit].tree.get("env").unwrap().get(name).unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(
        ["A", "B", "C", "D"].map(|name| env("job@0", name)),
        ["template drop-in", "template drop-in", "node template", "file"]
    );
    assert_eq!(
        ["A", "B", "C", "D"].map(|name| env("job@1", name)),
        ["template drop-in", "instance drop-in", "node template", "node instance"]
    );
}

#[test]
fn instances_are_a_number_names_or_tables() {
    let template = "--- units/job@.toml\ncommand = 'job'\n--- tenon.toml\nrun = ['job@*']\n";
    plan(&format!("{template}instances.job = 2"), &[], "job@0 (run)\njob@1 (run)");
    plan(&format!("{template}instances.job = ['a', 'b']"), &[], "job@a (run)\njob@b (run)");
    let run = run(&format!("{template}[instances.job.x]\nuser = 'nobody'"), &[]);
    assert_eq!(run.problems(), "");
    assert_eq!(run.graph.units["job@x"].tree.get("user").unwrap().as_str(), Some("nobody"));
    check(
        &format!("{template}instances.job = ['a/b']"),
        &[],
        "error[bad-instances] tenon.toml:2: `a/b` cannot be the name of an instance
           help: use letters, digits, `-`, `_`, `.` and `:`",
    );
    check(
        &format!("{template}instances.jib = 1"),
        &[],
        "error[unknown-unit] tenon.toml:2: there is no template `jib@`
           help: did you mean `job`?",
    );
}

#[test]
fn files_that_extend_each_other_in_a_circle_are_shown_once() {
    check(
        "--- units/a.toml\nextends = 'b'\n--- units/b.toml\nextends = 'a'\n--- units/c.toml\nextends = 'a'",
        &[],
        "error[extends-cycle] units/a.toml:1: units extend each other in a circle: a → b → a
           units/b.toml:1: `b` extends `a`
           help: one of them must stand on its own",
    );
    check(
        "--- units/a.toml\nextends = 'bse'\n--- units/base.toml\ncommand = 'x'",
        &[],
        "error[unknown-unit] units/a.toml:1: unit `bse` is not known, and this file extends it
           help: did you mean `base`?",
    );
}

#[test]
fn a_table_for_a_unit_nobody_has_is_misspelt() {
    check(
        "--- units/web.toml\ncommand = 'web'\n--- tenon.toml\n[unit.wbe]\nuser = 'x'",
        &[],
        "error[unknown-unit] tenon.toml:1: `[unit.wbe]` changes a unit that is not known
           help: did you mean `web`?",
    );
    plan("--- tenon.toml\nrun = ['new']\n[unit.new]\ncommand = 'x'", &[], "new (run)");
}

// ---- what runs ----

#[test]
fn run_pulls_in_what_is_needed_and_wanted() {
    plan(
        "--- units/a.toml\ncommand = 'a'\nneeds = ['b']\nwants = ['c']\nafter = ['d']
         --- units/b.toml\ncommand = 'b'
         --- units/c.toml\ncommand = 'c'
         --- units/d.toml\ncommand = 'd'
         --- tenon.toml\nrun = ['a']",
        &[],
        "b (needed by a)
           stops after a
         c (wanted by a)
           stops after a
         a (run)
           needs b -> b Spawned
           wants c -> c Spawned
           after d: `d` is not in this plan",
    );
}

#[test]
fn units_of_the_command_line_replace_run() {
    let files =
        "--- units/a.toml\ncommand = 'a'\n--- units/b.toml\ncommand = 'b'\n--- tenon.toml\nrun = ['a']";
    plan(files, &["unit b"], "b (command line)");
    check(
        files,
        &["unit c"],
        "error[unknown-unit]: there is no unit `c`\n  help: write `units/c.toml`, or name one that is known: `a`, `b`",
    );
    check(files, &["unit bb"], "error[unknown-unit]: there is no unit `bb`\n  help: did you mean `b`?");
}

#[test]
fn an_entry_that_is_not_placed_here_is_skipped_and_shown() {
    let files = "--- units/a.toml\ncommand = 'a'\nroles = ['blue']
         --- units/b.toml\ncommand = 'b'\nenabled = false
         --- units/c.toml
         --- units/d@.toml\ncommand = 'd'
         --- tenon.toml\nrun = ['a', 'b', 'c', 'd@*']\n[roles.red]";
    plan(
        files,
        &["role=red"],
        "not run: a: `a` is not placed here: it is for blue, not red
         not run: b: `b` is switched off by `enabled = false`
         not run: c: `c` is masked by an empty file
         not run: d@*: there are no instances: see `[instances]` of the node file",
    );
}

#[test]
fn without_a_role_roles_restrict_nothing() {
    plan("--- units/a.toml\ncommand = 'a'\nroles = ['blue']\n--- tenon.toml\nrun = ['a']", &[], "a (run)");
}

#[test]
fn an_unknown_role_is_said() {
    check(
        "--- units/a.toml\ncommand = 'a'\nroles = ['prefill']\n--- tenon.toml\nrole = 'prefil'",
        &[],
        "warning[unknown-role] tenon.toml:1: no file mentions the role `prefil`
           help: did you mean `prefill`?",
    );
}

#[test]
fn what_never_runs_by_itself_is_refused() {
    check(
        "--- units/s.toml\nkind = 'settings'
         --- units/t@.toml\ncommand = 't'
         --- units/x.toml\nabstract = true\ncommand = 'x'
         --- units/web.toml\ncommand = 'web'
         --- tenon.toml\nrun = ['s', 't', 'x', 'wev', 'label:none']",
        &[],
        "error[not-runnable] tenon.toml:1: `s` is a settings unit: it has no process
           help: take it out of what runs; units that read it name it in `uses`
         error[not-runnable] tenon.toml:1: `t@` is a template: only its instances run
           help: write `\"t@*\"` for all of them, or `\"t@0\"` for one
         error[not-runnable] tenon.toml:1: `x` is abstract: it is there to be extended
           help: name a unit that extends it
         error[unknown-unit] tenon.toml:1: there is no unit `wev`
           help: did you mean `web`?
         error[unknown-unit] tenon.toml:1: no known unit matches `label:none`",
    );
}

#[test]
fn a_false_condition_skips_a_unit_and_pulls_nothing() {
    plan(
        "--- units/a.toml\ncommand = 'a'\nwhen = \"env.X == 'y'\"\nneeds = ['b']
         --- units/b.toml\ncommand = 'b'
         --- tenon.toml\nrun = ['a']",
        &[],
        "a (skipped: env.X == 'y')",
    );
}

// ---- edges ----

#[test]
fn edges_in_every_form() {
    plan(
        "--- units/a.toml
         command = 'a'
         after = ['b:spawned', { unit = 'c', until = 'ready', timeout = '2m', order = 'start' }, 'label:x:finished']
         --- units/b.toml\ncommand = 'b'\n[ready]\ntcp = 'x:1'
         --- units/c.toml\ncommand = 'c'\nready.settle = '1s'
         --- units/d.toml\nkind = 'task'\ncommand = 'd'\nlabels = ['x']",
        &[],
        "b (in the last folder of the search path)
           stops after a
         c (in the last folder of the search path)
         d (in the last folder of the search path)
           stops after a
         a (in the last folder of the search path)
           after b -> b Spawned
           after c -> c Ready no-stop
           after label:x -> d Finished",
    );
}

#[test]
fn until_is_ready_where_the_other_can_tell() {
    let target = |ready: &str| {
        let files = format!(
            "--- units/a.toml\ncommand = 'a'\nneeds = ['b']\n--- units/b.toml\ncommand = 'b'\n{ready}"
        );
        run(&files, &[]).graph.units["a"].edges[0].until
    };
    assert_eq!(target(""), Until::Spawned);
    assert_eq!(target("ready.timeout = '5s'"), Until::Spawned);
    assert_eq!(target("ready.settle = '0s'"), Until::Spawned);
    assert_eq!(target("ready.settle = '2s'"), Until::Ready);
    assert_eq!(target("ready.notify = true"), Until::Ready);
    assert_eq!(target("ready.all = [{ path = '/x' }]"), Until::Ready);
}

#[test]
fn an_unprovable_wait_is_refused_with_both_places() {
    check(
        "--- units/a.toml\ncommand = 'a'\nafter = ['b:ready']\n--- units/b.toml\ncommand = 'b'",
        &[],
        "error[unprovable-ready] units/a.toml:2: `a` waits until `b` is ready, and that unit cannot tell
           units/b.toml:1: `b` has no probe under `[ready]` and no `settle`
           help: give `b` a `[ready]` probe, or wait `until = \"spawned\"`",
    );
}

#[test]
fn before_is_an_after_of_the_other() {
    plan(
        "--- units/a.toml\ncommand = 'a'\n--- units/b.toml\ncommand = 'b'\nbefore = ['a']",
        &[],
        "b (in the last folder of the search path)
           stops after a
         a (in the last folder of the search path)
           before a of b -> b Spawned",
    );
}

#[test]
fn a_unit_never_matches_its_own_selector() {
    plan(
        "--- units/a.toml\ncommand = 'a'\nlabels = ['x']\nafter = ['label:x', '*']\n--- units/b.toml\ncommand = 'b'\nlabels = ['x']",
        &[],
        "b (in the last folder of the search path)
           stops after a
         a (in the last folder of the search path)
           after label:x -> b Spawned
           after * -> b Spawned",
    );
}

#[test]
fn a_selector_that_matches_nobody_is_a_warning_and_an_error_in_needs() {
    check(
        "--- units/a.toml\ncommand = 'a'\nafter = ['label:x', 'bb']\nneeds = ['label:y', 'bbb']\n--- units/b1.toml\ncommand = 'b'",
        &[],
        "error[empty-selector] units/a.toml:3: `needs` names `label:y`, and no known unit matches
         error[unknown-unit] units/a.toml:3: `needs` names `bbb`, and no unit of this name is known
           help: write `units/bbb.toml`, or name one that is known: `a`, `b1`
         warning[empty-selector] units/a.toml:2: `after` names `label:x`, and no known unit matches
         warning[empty-selector] units/a.toml:2: `after` names `bb`, and no unit of this name is known
           help: did you mean `b1`?",
    );
}

#[test]
fn needs_on_what_will_not_run_is_refused_with_the_condition() {
    let files = |edge: &str| {
        format!(
            "--- units/a.toml\ncommand = 'a'\n{edge}
             --- units/masked.toml
             --- units/elsewhere.toml\ncommand = 'b'\nroles = ['blue']
             --- units/skipped.toml\ncommand = 'b'\nwhen = 'false'
             --- units/disabled.toml\ncommand = 'b'\nenabled = false
             --- tenon.toml\nrun = ['a']\nrole = 'red'\n[roles.red]"
        )
    };
    check(
        &files("needs = ['masked', 'elsewhere', 'skipped', 'disabled']"),
        &[],
        "error[unmet-need] units/a.toml:2: `a` needs `masked`, which will not run here
           note: `masked` is masked by an empty file
           help: make it run here, or add `if_absent = \"ignore\"` to the edge if this unit can do without it
         error[unmet-need] units/a.toml:2: `a` needs `elsewhere`, which will not run here
           units/elsewhere.toml:2: `elsewhere` is not placed here: it is for blue, not red
           help: make it run here, or add `if_absent = \"ignore\"` to the edge if this unit can do without it
         error[unmet-need] units/a.toml:2: `a` needs `skipped`, which will not run here
           units/skipped.toml:2: `skipped` is skipped: `when = \"false\"` does not hold (units/skipped.toml:2)
           help: make it run here, or add `if_absent = \"ignore\"` to the edge if this unit can do without it
         error[unmet-need] units/a.toml:2: `a` needs `disabled`, which will not run here
           units/disabled.toml:2: `disabled` is switched off by `enabled = false`
           help: make it run here, or add `if_absent = \"ignore\"` to the edge if this unit can do without it",
    );
    plan(
        &files(
            "needs = [{ unit = 'masked', if_absent = 'ignore' }]\nafter = ['elsewhere']\nwants = ['skipped']",
        ),
        &[],
        "a (run)
           needs masked: `masked` is masked by an empty file
           wants skipped: `skipped` is skipped: `when = \"false\"` does not hold (units/skipped.toml:2)
           after elsewhere: `elsewhere` is not placed here: it is for blue, not red
         skipped (skipped: false)",
    );
}

#[test]
fn a_provided_name_means_the_one_that_provides_it_here() {
    let files = |near: &str, far: &str| {
        format!(
            "--- units/a.toml\ncommand = 'a'\nneeds = ['pool']
             --- units/far.toml\ncommand = 'far'\nprovides = ['pool']\nwhen = '{far}'
             --- units/near.toml\ncommand = 'near'\nprovides = ['pool']\nwhen = '{near}'
             --- tenon.toml\nrun = ['a']"
        )
    };
    plan(
        &files("true", "false"),
        &[],
        "near (needed by a)
           stops after a
         a (run)
           needs pool (provided by near) -> near Spawned",
    );
    check(
        &files("true", "true"),
        &[],
        "error[not-provided] units/a.toml:2: more than one unit provides `pool` here: `far` and `near`
           units/far.toml:2: provided here
           units/near.toml:2: provided here
           help: switch one of them off: by its `when`, its `roles`, or `enabled = false`",
    );
    check(
        &files("false", "false"),
        &[],
        "error[not-provided] units/a.toml:2: `a` needs `pool`, and nobody provides it here
           units/far.toml:3: `far` is skipped: `when = \"false\"` does not hold (units/far.toml:3)
           units/near.toml:3: `near` is skipped: `when = \"false\"` does not hold (units/near.toml:3)
           help: make one of them run here, or add `if_absent = \"ignore\"` to the edge",
    );
}

#[test]
fn a_circle_of_waits_is_refused_with_every_edge() {
    check(
        "--- units/c.toml\ncommand = 'c'\nafter = ['a']
         --- units/a.toml\ncommand = 'a'\nneeds = ['b']
         --- units/b.toml\ncommand = 'b'\nwants = ['label:last']
         --- units/c.toml.d/x.toml\nlabels = ['last']",
        &[],
        "error[dependency-cycle] units/a.toml:2: units wait for each other in a circle: a → b → c → a
           units/b.toml:2: `b` waits for `c`: wants label:last
           units/c.toml:2: `c` waits for `a`: after a
           help: take one of these edges away, or let it order the stop only: `order = \"stop\"`",
    );
    check(
        "--- units/a.toml\ncommand = 'a'\nafter = ['a']",
        &[],
        "error[dependency-cycle] units/a.toml:2: units wait for each other in a circle: a → a
           help: take one of these edges away, or let it order the stop only: `order = \"stop\"`",
    );
}

#[test]
fn a_name_like_no_other_comes_with_those_that_are_known() {
    check(
        "--- units/a.toml\ncommand = 'a'\nneeds = ['nope']\n--- tenon.toml\nrun = ['a', 'quite-else']",
        &[],
        "error[unknown-unit] tenon.toml:1: there is no unit `quite-else`
           help: write `units/quite-else.toml`, or name one that is known: `a`
         error[unknown-unit] units/a.toml:2: `needs` names `nope`, and no unit of this name is known
           help: write `units/nope.toml`, or name one that is known: `a`",
    );
}

#[test]
fn what_is_not_served_is_said() {
    check(
        "--- units/a.toml\ncommand = 'a'\n--- tenon.toml\n[http]\nlisten = '127.0.0.1:9090'",
        &[],
        "warning[does-nothing] tenon.toml:1: this version does not serve `[http]`: nothing listens there
           help: remove it; `tenon status --output json` tells the same through the control socket",
    );
}

#[test]
fn a_circle_of_stops_is_refused_too() {
    check(
        "--- units/a.toml\ncommand = 'a'\nafter = ['b']\nstop_after = ['b']\n--- units/b.toml\ncommand = 'b'",
        &[],
        "error[dependency-cycle] units/a.toml:3: units are to be stopped after each other in a circle: a → b → a
           units/a.toml:2: `b` stops after `a`: after b
           help: take one of these away, or let an edge order the start only: `order = \"start\"`",
    );
    plan(
        "--- units/a.toml\ncommand = 'a'\nafter = [{ unit = 'b', order = 'start' }]\nstop_after = ['b']\n--- units/b.toml\ncommand = 'b'",
        &[],
        "b (in the last folder of the search path)
         a (in the last folder of the search path)
           after b -> b Spawned no-stop
           stops after b",
    );
}

#[test]
fn units_that_conflict_may_not_be_in_one_plan() {
    check(
        "--- units/a.toml\ncommand = 'a'\nconflicts = ['b']\n--- units/b.toml\ncommand = 'b'",
        &[],
        "error[conflict] units/a.toml:2: `a` and `b` conflict, and both are to run
           units/b.toml:1: `b` is to run too (in the last folder of the search path)
           help: take one of them out of what runs",
    );
}

#[test]
fn what_holds_data_stops_last_where_nothing_else_is_said() {
    plan(
        "--- units/data.toml\ncommand = 'a'\nholds_data = true
         --- units/master.toml\ncommand = 'm'\nstop_after = ['data']
         --- units/other.toml\ncommand = 'b'",
        &[],
        "data (in the last folder of the search path)
           stops after other
         master (in the last folder of the search path)
           stops after data
         other (in the last folder of the search path)",
    );
}
