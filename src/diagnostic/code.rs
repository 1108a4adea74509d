//! The stable identity of each kind of problem. A code is never reused for something else.

/// Declares the codes once: variant, the name people see, what it means in a sentence or two (`tenon explain CODE`).
macro_rules! codes {
    ($($variant:ident = $name:literal: $about:literal,)*) => {
        /// The stable identity of a kind of problem; its text form is what people see and search for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $about] $variant,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The name people see: `unknown-key`.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The code of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.name() == name)
            }

            /// What it means and what to do.
            pub const fn about(self) -> &'static str {
                match self { $(Code::$variant => $about,)* }
            }
        }
    };
}

codes! {
    Syntax = "syntax": "The file is not TOML. Only the first place is shown: one missing bracket can make many. The rest of the file is checked once this is mended.",
    DeclaredTwice = "declared-twice": "A key or a table stands twice in one file. TOML allows each once: put the keys of both under one header, or keep one of them.",
    UnquotedRange = "unquoted-range": "A port range such as 16700-16800 must stand in quotes: without them TOML reads it as a date.",
    UnquotedJson = "unquoted-json": "JSON text such as {\"a\": 1} must stand in quotes, best in single ones: without them TOML reads it as a table of its own, which is written with `=`.",
    UnquotedTemplate = "unquoted-template": "A template must stand in quotes: `\"{{ param.port }}\"`. Without them TOML reads `{` as the start of a table. A string that is one lone template keeps the type of its value.",
    UnquotedText = "unquoted-text": "Text must stand in quotes. Only numbers, `true`, `false`, lists and tables stand without.",
    LeadingZero = "leading-zero": "TOML numbers may not start with 0. Permission bits are written as text: `umask = \"0027\"`.",
    BadEscape = "bad-escape": "In double quotes a backslash starts an escape, and only a few exist. In single quotes a backslash is itself: write patterns there.",
    BadNumber = "bad-number": "A number does not fit in 64 bits.",
    UnknownKey = "unknown-key": "No key of this name exists in this table. Unknown keys are errors, so that a misspelt one cannot be ignored in silence.",
    AppendToScalar = "append-to-scalar": "`\"key+\"` appends to a list of a lower layer, but the key is no list there.",
    WrongTable = "wrong-table": "The key exists, but belongs in another table. In TOML a key belongs to the last `[table]` above it, so keys of the top must stand above the first one.",
    WrongType = "wrong-type": "The value is of another kind than this key wants: text, a number, `true` or `false`, a list, a table.",
    UnknownWord = "unknown-word": "The key knows a few words only, and this is none of them.",
    OutOfRange = "out-of-range": "The number is smaller or larger than this key allows.",
    BadDuration = "bad-duration": "A duration is a number with a unit: `500ms`, `10s`, `1m30s`, `2h`, `1d`.",
    BadSize = "bad-size": "A size is a number of bytes, or a number with a unit: `64MB`, `1.5GB`, `400 gb`. 1 GB = 1 GiB = 1024^3 bytes.",
    BadSignal = "bad-signal": "No signal of this name or number exists on Linux.",
    BadMode = "bad-mode": "Permission bits are written as text of three or four octal digits: `\"0644\"`.",
    BadPorts = "bad-ports": "Ports are numbers from 0 to 65535, ranges `LOW-HIGH`, comma lists of both, or `auto`.",
    BadPattern = "bad-pattern": "The regular expression cannot be read. The syntax is that of the regex-lite crate: no look-around, no back-references.",
    BadCause = "bad-cause": "Causes of an end are `exit:N`, `signal:NAME`, `oom` and `start`.",
    BadName = "bad-name": "Names of units, parameters and other named things are letters, digits, `-`, `_` and `.`; parameters and facts are read in expressions, so they have no `-` and no `.`.",
    BadKeyPath = "bad-key-path": "`unset` names keys of the layers below, with dots between tables: `\"stop.timeout\"`.",
    BadEdge = "bad-edge": "An edge is a unit's name, a glob, `label:NAME` or a provided name, maybe with `:spawned`, `:ready` or `:finished`, or a table with `unit`.",
    BadElement = "bad-element": "A conditional element of a list is `{ when = \"EXPR\", use = [...] }`, a repeated one `{ each = \"x in LIST\", use = [...] }`.",
    MissingKey = "missing-key": "A table lacks a key it cannot do without.",
    ExclusiveKeys = "exclusive-keys": "Keys of which only one can count stand side by side.",
    NamedTableWanted = "named-table-wanted": "Whatever someone may want to change alone is a named table, `[rule.NAME]`, never an array of tables: a drop-in could not say which one it means.",
    TemplateNotAllowed = "template-not-allowed": "The key is read before values are known, so it cannot hold `{{ }}`.",
    BracesInExpression = "braces-in-expression": "The key holds a bare expression; `{{ }}` is for text.",
    ShellCharacter = "shell-character": "Commands are split into words but run without a shell, so `| & ; < > $ * ~` and backticks do nothing. In quotes, or in a list, they are ordinary characters; where a shell is wanted, call one.",
    CommandSyntax = "command-syntax": "The command cannot be split into words: a quote is not closed, or nothing is there.",
    EnvBoolean = "env-boolean": "Variables are text. Programs disagree on what a true one looks like, so `true` and `false` must be written as the text that the program wants.",
    DottedMergeKey = "dotted-merge-key": "In TOML an unquoted dotted key makes tables within tables. A key of merged JSON that holds dots must stand in quotes.",
    NestedMerge = "nested-merge": "Merging is one level deep. A table as a value is refused unless the rule says `nested = true`.",
    ShellVariable = "shell-variable": "`$NAME` and `${NAME}` are passed as they are: there is no shell. A variable's value is `{{ env.NAME }}`.",
    Specifier = "specifier": "`%i` and `%n` are passed as they are. The instance is `{{ unit.instance }}`, the unit's name `{{ unit.name }}`.",
    ExpressionSyntax = "expression-syntax": "The expression cannot be read.",
    UnknownName = "unknown-name": "A name in an expression that is declared nowhere.",
    UnknownFunction = "unknown-function": "No filter, test or function of this name exists.",
    ExpressionArguments = "expression-arguments": "A filter, test or function was given the wrong number or kind of arguments.",
    ExpressionType = "expression-type": "An operation on a value of the wrong kind.",
    NothingHere = "nothing-here": "A value that is nothing (an absent variable, an unset parameter, an unknown fact) where one is needed. `default`, `first(...)` and `required` say what to do then.",
    ExpressionLimit = "expression-limit": "The expression is nested too deeply, or its value is too large.",
    NoFolder = "no-folder": "A folder named with --dir does not exist or is no folder.",
    UnitsAsFolder = "units-as-folder": "A folder of the search path holds `units/` and `profiles/`; here one of those was given instead.",
    Unreadable = "unreadable": "A file or folder cannot be read.",
    NotUtf8 = "not-utf8": "TOML files are UTF-8.",
    WrongExtension = "wrong-extension": "Only `NAME.toml` is read; a file that looks like one under another name is probably meant to be.",
    FileTooLarge = "file-too-large": "A configuration file may have 1 MiB.",
    TooManyFiles = "too-many-files": "A search path may have 10 000 files.",
    KindMismatch = "kind-mismatch": "A key that means nothing for a unit of this kind: settings, groups and external units have no process, and only settings units and profiles read facts.",
    ParameterDeclaration = "parameter-declaration": "A `[param.NAME]` does not make sense as a whole: a bound or a fallback that is no value of its type.",
    ParameterCycle = "parameter-cycle": "Parameters ask for each other in a circle, so none of them has a value.",
    ParameterMissing = "parameter-missing": "A planned unit reads a parameter that has no value. Give it one in the node file (`[set.UNIT]`) or with `--set`.",
    InvalidValue = "invalid-value": "A value does not fit the declaration of its parameter.",
    UnknownParameter = "unknown-parameter": "A value is given to a parameter that its unit does not declare.",
    UnknownUnit = "unknown-unit": "No unit of this name is known.",
    UnknownProfile = "unknown-profile": "No profile of this name or alias is known.",
    ProfileFallback = "profile-fallback": "No profile matches this machine, so `profile = \"auto\"` takes the one with `fallback = true`.",
    AmbiguousProfile = "ambiguous-profile": "More than one profile answers to this name, or matches this machine.",
    UnknownRole = "unknown-role": "No file mentions this role.",
    ExtendsCycle = "extends-cycle": "Files extend each other in a circle.",
    NotRunnable = "not-runnable": "Something was asked to run that never runs by itself: an abstract unit, a settings unit, a template without instances.",
    DependencyCycle = "dependency-cycle": "Units wait for each other in a circle: none of them could ever start, or be stopped. The whole ring is shown.",
    EmptySelector = "empty-selector": "A selector matches no known unit.",
    OverridesNothing = "overrides-nothing": "A drop-in, a leaf profile or the node file changes or switches off a named thing that no layer below has: most likely its name is misspelt, and what was meant stays as it is.",
    DoesNothing = "does-nothing": "A named thing, a table or a key is there and does nothing: what it is to do is an empty list, it changes nothing where it stands, or this version does not serve it.",
    ManagedArgument = "managed-argument": "An argument that the unit file sets itself is given by another way: a list parameter, or `args` of a drop-in or of the node file. The port plan and the probes would not know of it.",
    OpenToOthers = "open-to-others": "A file that root would follow, or a folder above it, may be written by somebody else.",
    RuleForAll = "rule-for-all": "A rule of a profile without `labels` and `units` changes the environment of every unit. `units = [\"*\"]` says that this is meant.",
    UnknownFact = "unknown-fact": "A fact is given that no file declares, nothing reads, and Linux does not tell: most likely its name is misspelt.",
    InvalidFact = "invalid-fact": "The value given for a fact is not what its declaration says it is.",
    UnmetNeed = "unmet-need": "A unit needs another one that will not run here. `if_absent = \"ignore\"` accepts that.",
    NotProvided = "not-provided": "Nobody, or more than one unit, provides the name an edge asks for.",
    UnprovableReady = "unprovable-ready": "An edge waits until a unit is ready, but the unit has neither a `[ready]` probe nor a `settle` time to tell by.",
    StartOfATask = "start-of-a-task": "An edge to a task says nothing of `until`, so it waits until the task has started, not until it has finished. `\"TASK:finished\"` waits for its end; `\"TASK:spawned\"` says that its start is what is meant.",
    Conflict = "conflict": "Two units that conflict, or that are both `main`, are both to run.",
    BadInstances = "bad-instances": "Instances are a number, a list of names, or tables by name.",
    BadSet = "bad-set": "A value on the command line is not of the form that its option takes.",
    SecretInArguments = "secret-in-arguments": "A secret may not be given on the command line, where every process of the machine can read it.",
    WrongValue = "wrong-value": "A final value is of the wrong kind, or not one its key can take.",
    EnvironmentRead = "environment-read": "A file reads a variable that no file sets: it must come from the environment tenon is started in. `check` reads files only and cannot know it.",
    EnvFile = "env-file": "An `env_file` is not there, cannot be read, or has a line that is not `NAME=value`.",
    RuleMissing = "rule-missing": "An environment rule has no value to work with. `missing` says what that means: an error, one warning, or nothing.",
    NotJson = "not-json": "A rule merges keys into a variable whose text is not a JSON object. The text is dropped and shown.",
    Requirement = "requirement": "A `[require.NAME]` of a unit, settings unit or profile does not hold over the final values.",
    SamePath = "same-path": "Two rendered files of one plan have the same path: each would overwrite the other.",
    PortClash = "port-clash": "Two things of one plan would listen on the same port in the same place.",
    PortReserved = "port-reserved": "A unit would listen on a port that the profile knows to be somebody else's.",
    TooManyUnits = "too-many-units": "More units are planned than a runner can hand over to its successor when it is killed or replaced.",
    StopBudget = "stop-budget": "Stopping everything in order can take longer than `stop_budget`: what is left then is killed.",
    UnstableFile = "unstable-file": "The path of a rendered file was read before the environment was final, and is another one now.",
}
