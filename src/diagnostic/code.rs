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
}
