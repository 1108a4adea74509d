//! `tenon cat`: one unit as merged from all its files.

use crate::cli::args::UnitArg;
use crate::cli::cat_view;
use crate::cli::error::CliError;
use crate::cli::pipeline::{Context, Sees};
use crate::plan::view;
use serde_json::json;

/// Runs the verb. The tree is shown even if something is wrong: it may be what helps to find it.
pub fn run(context: &Context, args: &UnitArg) -> Result<(), CliError> {
    let resolved = context.resolve(&[], Sees::Machine)?;
    let unit = resolved.unit(&args.unit)?;
    if context.output.is_json() {
        let tree = cat_view::json(&unit.tree, &resolved.sources);
        context.output.json(&json!({ "unit": args.unit, "tree": tree }))?;
    } else {
        context.output.data(&view::cat(&unit.tree, &resolved.sources))?;
    }
    context.report(&resolved.diagnostics, &resolved.sources)
}
