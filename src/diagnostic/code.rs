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
    ExpressionSyntax = "expression-syntax": "The text is not an expression of the language.",
    UnknownName = "unknown-name": "An expression names something that is declared nowhere. A settings unit must stand in `uses`.",
    UnknownFunction = "unknown-function": "An expression uses a filter, test or function that does not exist.",
    ExpressionArguments = "expression-arguments": "A filter, test or function was given the wrong number or kind of arguments.",
    ExpressionType = "expression-type": "An expression met a value of the wrong kind.",
    NothingHere = "nothing-here": "An expression gave nothing where a value is needed. Inside text nothing is an error; use `default('…')`.",
    ExpressionLimit = "expression-limit": "An expression or value is too large or nested too deeply.",
    ParameterDeclaration = "parameter-declaration": "A `[param.NAME]` does not make sense as a whole: no type, no choices, a pattern that is none.",
    ParameterCycle = "parameter-cycle": "Parameters ask for each other in a circle, so none of them has a value.",
    ParameterMissing = "parameter-missing": "A planned unit reads a parameter that has no value. Give it one in the node file (`[set.UNIT]`) or with `--set`.",
    InvalidValue = "invalid-value": "A value does not fit the declaration of its parameter.",
    UnknownParameter = "unknown-parameter": "A value is given to a parameter that its unit does not declare.",
    UnknownUnit = "unknown-unit": "No unit of this name is known.",
    UnknownProfile = "unknown-profile": "No profile of this name or alias is known.",
    AmbiguousProfile = "ambiguous-profile": "More than one profile answers to this name, or matches this machine.",
    UnknownRole = "unknown-role": "No file mentions this role.",
    ExtendsCycle = "extends-cycle": "Files extend each other in a circle.",
    NotRunnable = "not-runnable": "Something was asked to run that never runs by itself: an abstract unit, a settings unit, a template without instances.",
    DependencyCycle = "dependency-cycle": "Units wait for each other in a circle: none of them could ever start, or be stopped. The whole ring is shown.",
    EmptySelector = "empty-selector": "A selector matches no known unit.",
    UnmetNeed = "unmet-need": "A unit needs another one that will not run here. `if_absent = \"ignore\"` accepts that.",
    NotProvided = "not-provided": "Nobody, or more than one unit, provides the name an edge asks for.",
    UnprovableReady = "unprovable-ready": "An edge waits until a unit is ready, but the unit has neither a `[ready]` probe nor a `settle` time to tell by.",
    Conflict = "conflict": "Two units that conflict are both to run.",
    BadEdge = "bad-edge": "An edge is not written as it must be.",
    BadInstances = "bad-instances": "Instances are a number, a list of names, or tables by name.",
    BadSet = "bad-set": "A value on the command line is not of the form that its option takes.",
    SecretInArguments = "secret-in-arguments": "A secret may not be given on the command line, where every process of the machine can read it.",
}
