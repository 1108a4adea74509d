//! Words in, words out: the command line.
//!
//! - `args`: the command line, declared once (help, man pages and completions come from it).
//! - `words`: foreign words and ours for them.
//! - `known`: units that the files know and that do not run.
//! - `pipeline`: what verbs share that read configuration.
//! - `profiles`: which files a profile consists of, and who may write them.
//! - `toml_patch`, `write`: a value changed in a text that people wrote; a file replaced in one step.
//! - `commands`: one file a verb.
//! - `status_view`: the status table.
//! - `mask`: what a report does not show.
//! - `times`: durations as words of the command line.
//! - `error`: kinds of failure and their exit codes.
//! - `output`: the only place that prints.
//!
//! May import everything, of `linux` only `run`, `in_place`, `elsewhere` and `machine`.

mod args;
mod cat_view;
mod commands;
mod error;
mod here;
mod known;
mod logfile;
mod look;
mod mask;
mod output;
mod pipeline;
mod profiles;
mod status_view;
mod tar;
mod times;
mod toml_patch;
mod trust;
mod words;
mod write;

#[cfg(test)]
mod tests;

use crate::linux::machine;
use args::{CommandLine, Format};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use error::{CliError, Kind};
use output::{Output, WARNING};
use pipeline::Context;
use std::process::ExitCode;
use std::time::Duration;

/// Before a machine on which nothing runs is switched off.
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let output = Output { format: Format::Text };
    for notice in machine::begin() {
        output.say(&format!("{WARNING}warning:{WARNING:#} {notice}"));
    }
    let code = command_line();
    if machine::is_first() {
        // Nothing runs, or a verb has ended that is no runner. Whoever stands before the screen is to be able to read.
        output.say(&format!("the machine powers off in {} s", LAST_PAUSE.as_secs()));
        machine::end_after(LAST_PAUSE);
    }
    code
}

fn command_line() -> ExitCode {
    let line = match CommandLine::try_parse_from(machine::arguments()) {
        Ok(line) => line,
        Err(error) => return ExitCode::from(usage(&error)),
    };
    let output = Output { format: line.global.output };
    let context =
        Context { global: line.global, output, remembered: None, inherited: None, units: Vec::new() };
    match commands::run(&context, &line.verb) {
        Ok(code) => code,
        Err(error) => {
            let error = known::explained(&context, error);
            output.error(&error);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Says what is wrong with the command line, or shows the help that was asked for. Gives the exit code.
fn usage(error: &clap::Error) -> u8 {
    let output = Output { format: Format::Text };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = output.data(&error.render().ansi().to_string());
            0
        }
        ErrorKind::InvalidSubcommand => {
            output.error(&unknown_verb(error));
            Kind::Usage.exit_code()
        }
        _ => {
            output.say(&error.render().ansi().to_string());
            Kind::Usage.exit_code()
        }
    }
}

/// Names tenon's word for what was typed.
fn unknown_verb(error: &clap::Error) -> CliError {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.as_str(),
        Some(_) | None => "",
    };
    let command = CommandLine::command();
    let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let error = CliError::new(Kind::Usage, format!("there is no verb `{typed}`"));
    match words::instead_of(typed, verbs.into_iter()) {
        Some(ours) => error.hint(format!("try `tenon {ours}`")),
        None => error.hint("`tenon --help` lists the verbs, `tenon VERB --help` describes one"),
    }
}
