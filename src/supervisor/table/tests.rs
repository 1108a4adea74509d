//! The state table of the documentation is the one the machine has.

use super::*;

#[test]
fn the_documentation_shows_this_table() {
    let shown = include_str!("../../../docs/state-table.md");
    let shown = shown.find("| | inactive").map_or("", |start| &shown[start..]);
    let rendered = markdown();
    assert!(
        shown.trim_end() == rendered.trim_end(),
        "docs/state-table.md does not show the table of src/supervisor/table.rs; it is now:\n\n{rendered}"
    );
}

#[test]
fn every_input_has_a_row_of_its_own() {
    let kinds: std::collections::HashSet<_> =
        samples().iter().map(|(_, input)| std::mem::discriminant(input)).collect();
    assert_eq!(kinds.len(), samples().len());
    // A new input must be given a sample: this match does not compile without one.
    for (_, input) in samples() {
        match input {
            Input::Start(_)
            | Input::Stop(_)
            | Input::Restart(_)
            | Input::Shutdown
            | Input::Fell(_)
            | Input::Follow(_)
            | Input::Look
            | Input::Timer
            | Input::Prepared(_)
            | Input::Spawned(..)
            | Input::SpawnFailed(..)
            | Input::Exited(..)
            | Input::TreeEmpty
            | Input::Notify(_)
            | Input::Readiness(_)
            | Input::Health(_) => {}
        }
    }
    assert_eq!(samples().len(), 16);
}
