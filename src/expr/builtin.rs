//! The filters, tests and functions there are: one table each, which checking, evaluating and the reference read.

/// One filter, test or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The fewest arguments (a filter's input and a test's subject are none).
    pub min: usize,
    /// The most arguments.
    pub max: usize,
    /// How it is written.
    pub usage: &'static str,
    /// What it gives.
    pub about: &'static str,
}

/// Declares an enum and its table, so that neither can lack what the other has.
macro_rules! table {
    ($enum:ident, $table:ident, $about:literal:
     $($variant:ident = $name:literal, $min:literal ..= $max:expr, $usage:literal, $says:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $enum { $($variant,)* }

        #[doc = $about]
        pub const $table: &[Entry] = &[
            $(Entry { name: $name, min: $min, max: $max, usage: $usage, about: $says },)*
        ];

        impl $enum {
            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

/// As many arguments as one likes.
const ANY: usize = usize::MAX;

table! { Filter, FILTERS, "Every filter.":
    Default = "default", 1..=1, "default(value)", "the value, or the argument where it is nothing";
    Nonempty = "nonempty", 0..=0, "nonempty", "the value, or nothing if it is an empty text, list or table";
    Required = "required", 1..=1, "required('message')", "the value; an error with the message where it is nothing";
    Dirname = "dirname", 0..=0, "dirname", "the folder of a path: `/a/b` → `/a`, `b` → `.`";
    Hostport = "hostport", 1..=1, "hostport(port)", "`host:port`, an IPv6 host in brackets";
    Host = "host", 0..=0, "host", "the host of `host:port` or `[v6]:port`";
    Port = "port", 0..=0, "port", "the port of `host:port` as a number; nothing without one";
    String = "string", 0..=0, "string", "a number or truth value as text";
    Int = "int", 0..=0, "int", "text as a whole number; a number without its fraction";
    Float = "float", 0..=0, "float", "text or a whole number as a number with a point";
    Bool = "bool", 0..=0, "bool", "1/0, true/false, yes/no, on/off as a truth value";
    Bytes = "bytes", 0..=0, "bytes", "a size in words as a whole number of bytes, 1024-based";
    Json = "json", 0..=0, "json", "JSON on one line: `{\"a\": 1, \"b\": 2}`";
    Join = "join", 0..=1, "join(',')", "the elements of a list as one text, with the argument between them";
    Split = "split", 0..=1, "split(',')", "text as a list, cut at the argument, or at blanks; an empty text gives an empty list";
    Length = "length", 0..=0, "length", "how many elements a list or table, or characters a text, has";
    Chunk = "chunk", 1..=1, "chunk(n)", "a list as a list of lists of n; a rest of less than n is left out";
    Item = "item", 1..=1, "item(n)", "the n-th element, from 0; with a text, the member of that name of a table or of a text that holds a JSON object; nothing where there is none";
    Matching = "matching", 1..=1, "matching('regex')", "the elements in which the expression is found; a text itself, or nothing";
    ShiftRange = "shift_range", 1..=1, "shift_range(n)", "a port range moved up by n; `auto` stays";
}

table! { Test, TESTS, "Every test.":
    Defined = "defined", 0..=0, "is defined", "whether there is a value";
    AtLeast = "at_least", 1..=1, "is at_least('9.1.0')", "whether a version is this one or newer; false where it is nothing or no version";
}

table! { Function, FUNCTIONS, "Every function.":
    First = "first", 1..=ANY, "first(a, b, …)", "the first argument that is neither nothing nor an empty text";
    Max = "max", 1..=ANY, "max(a, b, …)", "the largest number; nothing if one is nothing. Also of one list";
    Min = "min", 1..=ANY, "min(a, b, …)", "the smallest number; nothing if one is nothing. Also of one list";
    Script = "script", 1..=1, "script('name')", "the path of a file in scripts/";
    Units = "units", 1..=1, "units('selector')", "the units that a selector matches, as a list";
}

impl Entry {
    /// What is wrong with this number of arguments.
    pub(super) fn count_problem(&self, given: usize) -> Option<String> {
        if (self.min..=self.max).contains(&given) {
            return None;
        }
        let wanted = match (self.min, self.max) {
            (0, 0) => "no argument".to_owned(),
            (1, 1) => "one argument".to_owned(),
            (min, ANY) => format!("at least {min} argument{}", if min == 1 { "" } else { "s" }),
            (min, max) => format!("{min} to {max} arguments"),
        };
        Some(format!("`{}` takes {wanted}, not {given}", self.name))
    }
}
