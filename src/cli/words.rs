//! What people type who come from somewhere else, and the word tenon has for it.

use crate::diagnostic::nearest;

/// Foreign word → what to type here.
const WORDS: &[(&str, &str)] = &[
    ("up", "run"),
    ("launch", "run"),
    ("exec", "run -- CMD"),
    ("down", "shutdown"),
    ("halt", "shutdown --halt"),
    ("poweroff", "shutdown --poweroff"),
    ("reboot", "shutdown --reboot"),
    ("quit", "shutdown"),
    ("exit", "shutdown"),
    ("ps", "status"),
    ("ls", "status"),
    ("list", "status"),
    ("list-units", "status"),
    ("is-active", "status UNIT"),
    ("describe", "status UNIT"),
    ("stat", "status"),
    ("svstat", "status"),
    ("watch", "status --watch"),
    ("log", "logs"),
    ("journal", "logs"),
    ("tail", "logs --follow"),
    ("monitor", "events --follow"),
    ("history", "events"),
    ("validate", "check"),
    ("verify", "check"),
    ("lint", "check"),
    ("test", "check"),
    ("config", "plan"),
    ("graph", "plan --dot"),
    ("dot", "plan --dot"),
    ("dry-run", "plan"),
    ("show", "cat UNIT"),
    ("view", "cat UNIT"),
    ("environment", "env UNIT"),
    ("environ", "env UNIT"),
    ("signal", "kill --signal SIGNAL UNIT"),
    ("healthcheck", "probe UNIT"),
    ("health", "probe UNIT"),
    ("bounce", "restart UNIT"),
    ("detect", "profile detect"),
    ("profiles", "profile list"),
    ("completion", "completions"),
    ("manual", "man"),
    ("version", "--version"),
    ("help", "--help"),
];

/// What to type instead of a verb that does not exist: tenon's word for it, else the nearest one there is.
pub fn instead_of<'a>(word: &str, verbs: impl Iterator<Item = &'a str>) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    if let Some((_, ours)) = WORDS.iter().find(|(foreign, _)| *foreign == lower) {
        return Some((*ours).to_owned());
    }
    nearest(&lower, verbs).map(str::to_owned)
}
