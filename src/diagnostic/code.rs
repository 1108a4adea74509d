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
    Syntax = "syntax": "The file is not TOML. Only the first place is shown: one missing bracket can make many.",
    UnknownKey = "unknown-key": "No key of this name exists in this table.",
}
