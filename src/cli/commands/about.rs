//! `tenon completions`, `tenon man`, `tenon exit-codes`: made from the one definition of the command line.

use crate::cli::args::{CommandLine, CompletionsArgs, ManArgs};
use crate::cli::error::{CliError, EXIT_CODES, Kind};
use crate::cli::pipeline::Context;
use clap::CommandFactory;
use serde_json::{Value, json};

/// Prints a completion script.
pub fn completions(context: &Context, args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "tenon", &mut script);
    context.output.raw(&script)
}

/// Prints a manual page, or writes all of them.
pub fn man(context: &Context, args: &ManArgs) -> Result<(), CliError> {
    let mut command = CommandLine::command();
    command.build();
    let pages = std::iter::once(&command).chain(command.get_subcommands());
    if let Some(folder) = &args.into {
        let failed = |error: std::io::Error| {
            CliError::new(Kind::Failed, format!("cannot write manual pages to {}: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        for page in pages {
            std::fs::write(folder.join(format!("{}.1", page_name(page))), render(page)?).map_err(failed)?;
        }
        return Ok(());
    }
    let wanted = args.verb.as_deref().unwrap_or("tenon");
    let page = pages.into_iter().find(|page| page.get_name() == wanted).ok_or_else(|| {
        CliError::new(Kind::Usage, format!("there is no verb `{wanted}`"))
            .hint("`tenon --help` lists the verbs")
    })?;
    context.output.raw(&render(page)?)
}

/// Prints the table of exit codes.
pub fn exit_codes(context: &Context) -> Result<(), CliError> {
    if context.output.is_json() {
        let codes: Vec<Value> = EXIT_CODES
            .iter()
            .map(|(code, name, meaning)| json!({ "code": code, "name": name, "meaning": meaning }))
            .collect();
        return context.output.json(&codes);
    }
    let lines: Vec<String> =
        EXIT_CODES.iter().map(|(code, name, meaning)| format!("{code:>3}  {name:<14}  {meaning}")).collect();
    context.output.data(&lines.join("\n"))
}

/// `tenon`, `tenon-status`.
fn page_name(command: &clap::Command) -> String {
    match command.get_name() {
        "tenon" => "tenon".to_owned(),
        verb => format!("tenon-{verb}"),
    }
}

fn render(command: &clap::Command) -> Result<Vec<u8>, CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(page_name(command))
        .date("")
        .source("tenon")
        .manual("tenon manual")
        .render(&mut page)
        .map_err(|error| CliError::new(Kind::Internal, format!("the manual page cannot be made: {error}")))?;
    Ok(page)
}
