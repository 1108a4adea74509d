//! The only place that prints. Data goes to standard output, everything else to standard error.
//!
//! Colour never carries meaning alone, and goes only to terminals (`NO_COLOR`, `CLICOLOR_FORCE` are obeyed). A
//! reader that has left is no error: the verb ends quietly.

use super::args::Format;
use super::error::{CliError, Kind};
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};

/// The heading of an error.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The heading of a warning; what needs attention.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What is well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What is bad.
pub const BAD: Style = AnsiColor::Red.on_default();
/// What is on its way.
pub const BUSY: Style = AnsiColor::Cyan.on_default();
/// What matters less.
pub const FAINT: Style = Style::new().dimmed();
/// Headings of tables.
pub const HEADING: Style = Style::new().bold();

/// Where a verb's words go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// How results are written.
    pub format: Format,
}

impl Output {
    /// Whether results are for programs.
    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Writes data as it is (with a line end, if it has none).
    ///
    /// # Errors
    /// [`Kind::BrokenPipe`] if the reader has left, [`Kind::Failed`] for any other reason.
    #[expect(clippy::unused_self, reason = "printing goes through the one who knows the format")]
    pub fn data(self, text: &str) -> Result<(), CliError> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let mut stream = anstream::stdout().lock();
        write!(stream, "{text}{end}").and_then(|()| stream.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::silent(Kind::BrokenPipe),
            _ => CliError::new(Kind::Failed, format!("cannot write to standard output: {error}")),
        })
    }

    /// Writes bytes as they are: lines of units, files, scripts.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    #[expect(clippy::unused_self, reason = "as in `data`")]
    pub fn raw(self, bytes: &[u8]) -> Result<(), CliError> {
        let mut stream = io::stdout().lock();
        stream.write_all(bytes).and_then(|()| stream.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::silent(Kind::BrokenPipe),
            _ => CliError::new(Kind::Failed, format!("cannot write to standard output: {error}")),
        })
    }

    /// Writes one JSON document, indented.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    pub fn json<T: serde::Serialize>(self, value: &T) -> Result<(), CliError> {
        self.data(&serde_json::to_string_pretty(value).unwrap_or_default())
    }

    /// Writes one JSON document as one line, for streams.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    pub fn json_line<T: serde::Serialize>(self, value: &T) -> Result<(), CliError> {
        self.data(&serde_json::to_string(value).unwrap_or_default())
    }

    /// Says something beside the data. Nobody to hear it is no error.
    #[expect(clippy::unused_self, reason = "as in `data`")]
    pub fn say(self, text: &str) {
        if text.is_empty() {
            return;
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(anstream::stderr().lock(), "{text}{end}");
    }

    /// Says why a verb failed.
    pub fn error(self, error: &CliError) {
        if error.message.is_empty() {
            return;
        }
        if self.is_json() {
            self.say(&error_json(error).to_string());
        } else {
            self.say(&error_text(error));
        }
    }

    /// Asks a question on the terminal; `None` if there is nobody to ask.
    #[expect(clippy::unused_self, reason = "as in `data`")]
    pub fn ask(self, question: &str) -> Option<bool> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let _ = write!(anstream::stderr().lock(), "{question} [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

/// The width of the terminal that data goes to; `None` if it goes elsewhere: then nothing is cut or wrapped.
pub fn data_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Whether data goes to a terminal.
pub fn data_is_terminal() -> bool {
    io::stdout().is_terminal()
}

fn error_text(error: &CliError) -> String {
    let mut text = format!("{ERROR}error{ERROR:#}: {}", error.message);
    for hint in &error.hints {
        text.push_str("\n\nhint: ");
        text.push_str(hint);
    }
    text
}

fn error_json(error: &CliError) -> Value {
    json!({ "error": { "kind": error.kind.name(), "message": error.message, "hints": error.hints } })
}

/// Text with a style around it.
pub fn styled(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}
