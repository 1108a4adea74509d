//! One file a verb.

mod about;
mod become_unit;
mod cat;
mod check;
pub(super) mod client;
mod diff;
mod env;
mod events;
mod explain;
mod export;
mod facts;
mod hold;
mod kill;
mod logs;
mod plan;
mod probe;
mod profile;
mod reexec;
mod reload;
mod report;
mod run;
mod shell;
mod shutdown;
mod simulate;
mod start;
mod status;
mod stop;
mod wait;
mod why;

use super::args::Verb;
use super::error::CliError;
use super::pipeline::Context;
use std::process::ExitCode;

/// Runs a verb.
pub fn run(context: &Context, verb: &Verb) -> Result<ExitCode, CliError> {
    match verb {
        Verb::Run(args) => return run::run(context, args),
        Verb::Diff(args) => return diff::run(context, args),
        Verb::Status(args) => status::run(context, args),
        Verb::Start(args) => start::run(context, args),
        Verb::Stop(args) => stop::stop(context, args),
        Verb::Restart(args) => stop::restart(context, args),
        Verb::Reexec(args) => reexec::run(context, args),
        Verb::Reload(args) => reload::run(context, args),
        Verb::Hold(args) => hold::hold(context, args),
        Verb::Unhold(args) => hold::unhold(context, args),
        Verb::Kill(args) => kill::run(context, args),
        Verb::Logs(args) => logs::run(context, args),
        Verb::Events(args) => events::run(context, args),
        Verb::Wait(args) => wait::run(context, args),
        Verb::Probe(args) => probe::run(context, args),
        Verb::Become(args) => become_unit::run(context, args),
        Verb::Shell(args) => return shell::run(context, args),
        Verb::Export(verb) => export::run(context, verb),
        Verb::Why(args) => why::run(context, args),
        Verb::Shutdown(args) => shutdown::run(context, args),
        Verb::Simulate(args) => simulate::run(context, args),
        Verb::Report(args) => report::run(context, args),
        Verb::ExitCodes => about::exit_codes(context),
        Verb::Completions(args) => about::completions(context, args),
        Verb::Man(args) => about::man(context, args),
        Verb::Check(args) => check::run(context, args),
        Verb::Plan(args) => plan::run(context, args),
        Verb::Cat(args) => cat::run(context, args),
        Verb::Env(args) => env::run(context, args),
        Verb::Facts(args) => facts::run(context, args),
        Verb::Profile(verb) => profile::run(context, verb),
        Verb::Explain(args) => explain::run(context, args),
    }
    .map(|()| ExitCode::SUCCESS)
}
