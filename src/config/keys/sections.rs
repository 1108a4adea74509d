//! The tables a file may have.

use super::{FileKind, Kinds, Type};

/// A table of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Section {
    /// Its path: `stop`, `file.*`, `fact.*.from[]`; `""` is the file itself.
    pub path: &'static str,
    /// The files it may stand in.
    pub kinds: Kinds,
    /// It has keys of the author's choice, and they are this.
    pub open: Option<Type>,
    /// What may stand there instead of a table, and the key it is short for (`restart = "always"`).
    pub instead: Option<(Type, Option<&'static str>)>,
    /// Its keys are those of this section of this kind of file.
    pub same_as: Option<(FileKind, &'static str)>,
    /// What it is for.
    pub help: &'static str,
}

impl Section {
    /// Whether its members are named things (`[file.config]`).
    pub fn is_named(&self) -> bool {
        SECTIONS.iter().any(|other| {
            other.path.strip_suffix(".*") == Some(self.path)
                && (other.kinds == self.kinds || self.path == "role")
        })
    }

    const fn of(mut self, kinds: Kinds) -> Self {
        self.kinds = kinds;
        self
    }

    const fn or(mut self, ty: Type, short_for: Option<&'static str>) -> Self {
        self.instead = Some((ty, short_for));
        self
    }

    const fn like(mut self, kind: FileKind, path: &'static str) -> Self {
        self.same_as = Some((kind, path));
        self
    }
}

/// A section of unit files with the keys of the table of keys.
const fn s(path: &'static str, help: &'static str) -> Section {
    Section { path, kinds: Kinds::UNIT, open: None, instead: None, same_as: None, help }
}

/// A section of unit files with keys of the author's choice.
const fn open(path: &'static str, ty: Type, help: &'static str) -> Section {
    let mut section = s(path, help);
    section.open = Some(ty);
    section
}

const BOTH: Kinds = Kinds::BOTH;
const POLICIES: Type = Type::Words(super::table::POLICIES);

/// Every table of every file.
pub static SECTIONS: &[Section] = &[
    s("", "The top of the file.").of(Kinds::ALL),
    open("env", Type::Scalar, "Variables of the unit's process. Text and numbers arrive as written; `true` and `false` are an error.")
        .of(Kinds(5)),
    s("param", "Parameters, by name.").of(BOTH),
    s("param.*", "A parameter: a typed value that the node file or the command line may set.").of(BOTH),
    open("data", Type::Any, "Structured values for `{{ data.NAME | json }}`."),
    s("file", "Rendered files, by name."),
    s("file.*", "A file that is written before the unit starts: atomically, parents made, links not followed."),
    open("file.*.content", Type::Any, "What is in the file. A key whose value is nothing is left out.").or(Type::Str, None),
    s("rule", "Environment rules, by name; they run in the order written, after all plain values.").of(BOTH),
    s("rule.*", "What a rule does to the environment of the units it selects, and why.").of(BOTH),
    open("rule.*.default", Type::Scalar, "Set where nothing set it.").of(BOTH),
    open("rule.*.fill", Type::Scalar, "Set where it is unset or empty.").of(BOTH),
    open("rule.*.set", Type::Scalar, "Set in any case.").of(BOTH),
    open("rule.*.prepend", Type::Entries, "Put these entries to the front of a list variable.").of(BOTH),
    open("rule.*.append", Type::Entries, "Put these entries at the end of a list variable.").of(BOTH),
    s("rule.*.merge", "Variables that hold a JSON object, by name.").of(BOTH),
    open("rule.*.merge.*", Type::Any, "Keys to set in the JSON object; all others and their order are kept.").of(BOTH),
    s("managed", "Arguments that only the unit file itself may set, by name."),
    s("managed.*", "An argument that is refused where somebody else adds it."),
    s("role", "What a role changes, by role."),
    s("role.*", "What this role changes in the unit."),
    open("role.*.param", Type::Any, "Values of parameters in this role."),
    open("role.*.env", Type::Scalar, "Variables in this role."),
    s("require", "Checks over final values, by name.").of(BOTH),
    s("require.*", "A check over final values: refused, or warned of, before anything starts.").of(BOTH),
    s("ready", "When the unit counts as ready: one probe, or `all` of several."),
    s("ready.all[]", "One of several probes."),
    open("ready.json", Type::Any, "Members the JSON answer must have; dotted keys reach deeper."),
    open("ready.all[].json", Type::Any, "Members the JSON answer must have; dotted keys reach deeper."),
    s("health", "How a ready unit is watched: one probe, or `all` of several."),
    s("health.all[]", "One of several probes."),
    open("health.json", Type::Any, "Members the JSON answer must have; dotted keys reach deeper."),
    open("health.all[].json", Type::Any, "Members the JSON answer must have; dotted keys reach deeper."),
    s("health.degraded_if", "An answer that means somebody else is to blame: shown, never a restart."),
    open("health.degraded_if.json", Type::Any, "Members the JSON answer must have."),
    s("restart", "When the unit is started again by itself.").or(POLICIES, Some("policy")),
    s("stop", "How the unit is stopped."),
    s("reload", "How the unit is asked to reload itself."),
    s("rlimits", "Resource limits of the process."),
    s("cgroup", "Limits of the unit's cgroup (version 2)."),
    s("sched", "Scheduling, memory policy and the kernel's choice of victims."),
    s("security", "What the process may do."),
    open("credentials", Type::Str, "Secrets as files: name = path of the source; the unit finds them in its credentials folder."),
    s("devices", "Devices the unit uses; two units on one device are shown together."),
    s("preflight", "Conditions of the machine: refused with need and have rather than dying later."),
    open("preflight.disk", Type::Size, "Free space: path = size."),
    s("ports", "What is listened on, by name: for the port plan.").of(BOTH),
    s("ports.*", "One claim of the port plan.").of(BOTH),
    s("log", "Where the output goes."),
    open("info", Type::Str, "Lines of its own in status, plan and the start message; a profile's stand on the plan's first line.").of(BOTH),
    s("bootstrap", "Steps before or around the main process at every start, by name.").of(BOTH),
    s("bootstrap.*", "One step: `inject`, `wrap`, `run` or `check`.").of(BOTH),
    s("signature", "Lines of output that mean something, by name.").of(BOTH),
    s("signature.*", "A pattern and what it means.").of(BOTH),
    s("detect", "How `profile = \"auto\"` recognises this machine.").of(Kinds::PROFILE),
    s("fact", "What this machine is, by name.").of(BOTH),
    s("fact.*", "A fact and where it is read.").of(BOTH),
    s("fact.*.from[]", "One source of a fact; the first that answers wins.").of(BOTH),
    s("reserve", "Ports that something else takes, by name.").of(Kinds::PROFILE),
    s("reserve.*", "Ports that something else takes: for the port plan.").of(Kinds::PROFILE),
    open("instances", Type::Instances, "How many instances of each template, or their names.").of(Kinds::NODE),
    s("set", "Parameter values: of a unit, a template `x@`, an instance `x@1`, a settings unit, or `profile`.").of(Kinds::NODE),
    open("set.*", Type::Any, "Parameter values, by parameter.").of(Kinds::NODE),
    s("unit", "Changes to units, by name: the last drop-in. A name nobody knows is a new unit.").of(Kinds::NODE),
    s("unit.*", "Any key of a unit file.").of(Kinds::NODE).like(FileKind::Unit, ""),
    open("facts", Type::Any, "Facts that no file tells.").of(Kinds::NODE),
    s("roles", "The same keys for one role, by role: one file serves the fleet.").of(Kinds::NODE),
    s("roles.*", "Any key of the node file, for this role only.").of(Kinds::NODE).like(FileKind::Node, ""),
    s("dirs", "Folders of the runner.").of(Kinds::NODE),
    s("control", "Who may control the runner.").of(Kinds::NODE),
    s("http", "A read-only HTTP endpoint. This version does not serve it: nothing listens, and `check`, `plan` and `run` say so.").of(Kinds::NODE),
    s("governor", "Who may start when several units want to. What is asked for by hand, and what that pulls in, goes at once and counts.").of(Kinds::NODE),
    s("edge[]", "An edge to another unit, in `needs`, `wants`, `after`, `before`."),
    s("element[]", "A conditional or repeated element of a list.").of(BOTH),
    s("limit[]", "A resource limit with both ends."),
];
