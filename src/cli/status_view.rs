//! Snapshots → the status table: a pure function, so that widths and words can be tested.

use super::output::{BAD, BUSY, FAINT, GOOD, HEADING, WARNING, styled};
use crate::control::Sign;
use crate::control::message::{InfoLine, StatusReply};
use crate::supervisor::snapshot::{State, UnitSnapshot};
use anstyle::Style;
use std::fmt::Write as _;
use std::time::Duration;

/// Columns of the table before the state.
const COLUMNS: [&str; 4] = ["UNIT", "PID", "SINCE", "RESTARTS"];
/// The state stands beside the others only if it gets at least so many characters; else it goes below.
const STATE_MIN: usize = 30;
/// Lines about one unit's state at most; `--output json` has all of it.
const STATE_LINES_MAX: usize = 4;

/// The whole answer for people. `width` is that of the terminal; `None` = no terminal, nothing is wrapped.
pub fn render(status: &StatusReply, width: Option<usize>) -> String {
    let mut text = headline(status);
    let rows: Vec<Row> = status.units.iter().map(|unit| Row::of(unit, status)).collect();
    text.push_str(&table(&rows, width));
    if !status.strays.is_empty() {
        let _ = writeln!(text, "of no unit, ended at the shutdown: {}", clean(&status.strays.join(", ")));
    }
    text
}

/// With what holds for the processes as lines of their own: the reason of an end always, the rest for units `named`.
pub fn detailed(status: &StatusReply, named: bool) -> StatusReply {
    let mut status = status.clone();
    for unit in &status.in_force {
        let mut add = |name: &str, value: String| {
            status.info.push(InfoLine {
                unit: unit.unit.clone(),
                name: name.to_owned(),
                value: clean(&value),
            });
        };
        if let Some(hint) = &unit.hint {
            add("reason", hint.clone());
        }
        if !named {
            continue;
        }
        add("tree", unit.tree.clone());
        if !unit.settings.is_empty() {
            let words = unit.settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
            add("in force", words.collect::<Vec<_>>().join(", "));
        }
        for message in &unit.left_out {
            add("left out", message.clone());
        }
        for line in &unit.last_words {
            add("last words", line.clone());
        }
        for zombies in &unit.zombies {
            add("zombies", format!("{zombies}, which does not wait for them"));
        }
        if let Some(lost) = unit.log_lost {
            add("log", format!("{lost} lines could not be written"));
        }
    }
    status
}

/// `tenon 0.1.0, pid 1, up 5m 3s, role prefill, profile a2`.
fn headline(status: &StatusReply) -> String {
    let runner = &status.runner;
    let mut text = format!(
        "tenon {}, pid {}, up {}",
        runner.version,
        runner.pid,
        ago(Duration::from_secs_f64(runner.now.max(0.0)))
    );
    for (name, value) in [("role", &runner.role), ("profile", &runner.profile)] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {value}");
        }
    }
    if runner.shutting_down {
        text.push_str(", shutting down");
    }
    styled(FAINT, &text) + "\n"
}

/// One unit's line.
struct Row {
    cells: [String; 4],
    style: Style,
    state: String,
    /// Lines of `[info]`.
    info: Vec<String>,
    /// What it has written that explains itself.
    signs: Vec<String>,
}

impl Row {
    fn of(unit: &UnitSnapshot, status: &StatusReply) -> Self {
        let now = status.runner.now;
        let signs = status.signs.iter().filter(|sign| sign.unit == unit.unit);
        let own = status.info.iter().filter(|line| line.unit == unit.unit);
        Self {
            signs: signs.map(sign_words).collect(),
            info: own
                .map(|line| format!("{}: {}", line.name, line.value))
                .chain(pending(unit, status))
                .collect(),
            cells: [
                unit.unit.clone(),
                unit.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
                seconds(now - unit.since),
                unit.restarts.to_string(),
            ],
            style: style(unit),
            state: words(unit, now),
        }
    }
}

/// What the files say of a unit and what does not count yet.
fn pending(unit: &UnitSnapshot, status: &StatusReply) -> Vec<String> {
    let own = status.pending.iter().filter(|change| change.unit == unit.unit);
    own.flat_map(|change| {
        let head = format!("pending ({})", change.class);
        if change.lines.is_empty() {
            return vec![format!("{head}: {}", change.what)];
        }
        change.lines.iter().map(|line| format!("{head}: {line}")).collect()
    })
    .collect()
}

/// The colour of the state's word; the word itself says the same.
fn style(unit: &UnitSnapshot) -> Style {
    match unit.state {
        State::Ready if unit.degraded.is_some() => WARNING,
        State::Ready | State::Finished => GOOD,
        State::Failed | State::Unhealthy | State::Backoff => BAD,
        State::Waiting | State::Preparing | State::Starting | State::Stopping => BUSY,
        State::Inactive if unit.desired_up => WARNING,
        State::Inactive | State::Skipped => FAINT,
    }
}

/// `ready (degraded: …)`, `backoff (next start in 4s); last exit: exited with 1`, `…; not ready within 3s`: the state, and all that is worth a word.
fn words(unit: &UnitSnapshot, now: f64) -> String {
    let next_start = match (unit.state, unit.retry_at) {
        // Held, it does not start by itself even then.
        (State::Backoff, Some(at)) if unit.held => Some(format!("over in {}", seconds(at - now))),
        (State::Backoff, Some(at)) => Some(format!("next start in {}", seconds(at - now))),
        _ => None,
    };
    let cause = match unit.state {
        State::Inactive | State::Failed | State::Unhealthy | State::Stopping | State::Skipped => {
            Some(unit.cause.clone())
        }
        State::Waiting
        | State::Preparing
        | State::Starting
        | State::Ready
        | State::Backoff
        | State::Finished => None,
    };
    let degraded = unit.degraded.as_ref().map(|why| format!("degraded: {why}"));
    let detail =
        degraded.or_else(|| unit.detail.clone()).or(next_start).or(cause).filter(|text| !text.is_empty());

    let mut text = unit.state.word().to_owned();
    if let Some(detail) = &detail {
        let _ = write!(text, " ({detail})");
    }
    let exit = unit.last_exit.as_ref().filter(|exit| !text.contains(exit.as_str()));
    // What keeps a unit down is not always the end of a process: it may not have started, or not have become ready.
    let told = |exit: &String| unit.cause.contains(exit.as_str()) || exit.contains(unit.cause.as_str());
    let other = unit.state == State::Backoff && !exit.is_some_and(told);
    if other && !unit.cause.is_empty() && !text.contains(unit.cause.as_str()) {
        let _ = write!(text, "; {}", unit.cause);
    } else if let Some(exit) = exit {
        let _ = write!(text, "; last exit: {exit}");
    }
    if !unit.desired_up && !matches!(unit.state, State::Inactive | State::Skipped | State::Stopping) {
        text.push_str("; wanted down");
    }
    if unit.held && !text.contains("held: ") {
        text.push_str("; held");
    }
    if let Some(says) = unit.says.as_ref().filter(|says| !says.is_empty()) {
        let _ = write!(text, "; says: {says}");
    }
    clean(&text)
}

/// Parts of it are a unit's own words: they must not steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter })
        .collect()
}

/// `E14: two processes share an address (3 times)`.
pub fn sign_words(sign: &Sign) -> String {
    let words = if sign.hint.is_empty() { &sign.line } else { &sign.hint };
    let often = if sign.count > 1 { format!(" ({} times)", sign.count) } else { String::new() };
    let text = format!("{}: {words}{often}", sign.name);
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// A number of seconds, for people.
fn seconds(span: f64) -> String {
    ago(Duration::from_secs_f64(span.clamp(0.0, 1e12)))
}

fn table(rows: &[Row], width: Option<usize>) -> String {
    let mut widths = COLUMNS.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let before: usize = widths.iter().map(|width| width + 2).sum();
    // Where there is no room beside the other columns, the state goes below its unit.
    let room = width.map(|width| width.saturating_sub(before));
    let beside = room.is_none_or(|room| room >= STATE_MIN);
    let state_width = if beside { room } else { width.map(|width| width.saturating_sub(4)) };
    let indent = " ".repeat(if beside { before } else { 4 });

    let padded = |cells: [&str; 4]| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        line
    };
    let mut heading = padded(COLUMNS);
    if beside {
        heading.push_str("STATE");
    }
    let mut text = styled(HEADING, heading.trim_end()) + "\n";
    for row in rows {
        let mut line = padded(row.cells.each_ref().map(String::as_str));
        for (at, piece) in wrap(&row.state, state_width).iter().enumerate() {
            if !beside || at > 0 {
                text.push_str(line.trim_end());
                text.push('\n');
                line.clone_from(&indent);
            }
            // The first word is the state.
            let word = if at == 0 { piece.split([' ', ';']).next().unwrap_or_default() } else { "" };
            line.push_str(&styled(row.style, word));
            line.push_str(piece.get(word.len()..).unwrap_or_default());
        }
        text.push_str(line.trim_end());
        text.push('\n');
        for line in row.signs.iter().flat_map(|sign| wrap(sign, state_width)) {
            text.push_str(&indent);
            text.push_str(&styled(WARNING, &line));
            text.push('\n');
        }
        for line in row.info.iter().flat_map(|info| wrap(info, state_width)) {
            text.push_str(&indent);
            text.push_str(&styled(FAINT, &line));
            text.push('\n');
        }
    }
    text
}

/// Words in lines of at most `width` characters; a longer word is cut. No lines for no words.
fn wrap(words: &str, width: Option<usize>) -> Vec<String> {
    if words.is_empty() {
        return Vec::new();
    }
    let Some(width) = width.map(|width| width.max(8)) else {
        return vec![words.replace(['\n', '\r'], " ")];
    };
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        if let Some(line) = lines.last_mut()
            && line.chars().count() + 1 + rest.len() <= width
        {
            line.push(' ');
            line.extend(rest);
            continue;
        }
        while rest.len() > width {
            let tail = rest.split_off(width);
            lines.push(rest.into_iter().collect());
            rest = tail;
        }
        lines.push(rest.into_iter().collect());
    }
    if lines.len() > STATE_LINES_MAX {
        lines.truncate(STATE_LINES_MAX);
        if let Some(last) = lines.last_mut() {
            *last = last.chars().take(width - 1).collect::<String>() + "…";
        }
    }
    lines
}

/// A span in at most two units: `850ms`, `12s`, `3m 12s`, `2h 5m`, `3d 4h`.
pub fn ago(span: Duration) -> String {
    let seconds = span.as_secs();
    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| {
        if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit} {small}{small_unit}") }
    };
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::RunnerInfo;
    use snapbox::{assert_data_eq, str};

    fn node() -> StatusReply {
        let runner = RunnerInfo {
            version: "0.1.0".to_owned(),
            pid: 1,
            now: 3723.0,
            role: Some("prefill".to_owned()),
            ..RunnerInfo::default()
        };
        let units = vec![
            UnitSnapshot {
                pid: Some(4711),
                since: 3600.0,
                ..UnitSnapshot::sample("pool-master", State::Ready)
            },
            UnitSnapshot {
                pid: Some(4712),
                degraded: Some("http 503 with code 2".to_owned()),
                restarts: 3,
                last_exit: Some("killed by SIGKILL".to_owned()),
                ..UnitSnapshot::sample("pool-store", State::Ready)
            },
            UnitSnapshot {
                retry_at: Some(3727.0),
                last_exit: Some("exited with 1".to_owned()),
                cause: "exited with 1".to_owned(),
                restarts: 12,
                since: 3721.0,
                ..UnitSnapshot::sample("engine@0", State::Backoff)
            },
            UnitSnapshot {
                detail: Some("on engine@0: backoff".to_owned()),
                waits_for: vec!["engine@0".to_owned()],
                ..UnitSnapshot::sample("proxy", State::Waiting)
            },
            UnitSnapshot {
                desired_up: false,
                cause: "stop requested".to_owned(),
                ..UnitSnapshot::sample("old", State::Inactive)
            },
        ];
        let info =
            InfoLine { unit: "pool-store".to_owned(), name: "segment".to_owned(), value: "400GB".to_owned() };
        let sign = Sign {
            unit: "engine@0".to_owned(),
            name: "E14".to_owned(),
            hint: "two processes share an address".to_owned(),
            line: "[ERROR] E14".to_owned(),
            count: 2,
            time: 0.0,
        };
        StatusReply {
            runner,
            units,
            info: vec![info],
            signs: vec![sign],
            pending: Vec::new(),
            in_force: Vec::new(),
            strays: Vec::new(),
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn what_is_held_is_not_promised_a_start() {
        let mut unit = UnitSnapshot::sample("engine@0", State::Backoff);
        (unit.desired_up, unit.retry_at, unit.cause) = (true, Some(14.0), "cannot find `wob`".to_owned());
        assert_eq!(words(&unit, 10.0), "backoff (next start in 4s); cannot find `wob`");
        unit.held = true;
        assert_eq!(words(&unit, 10.0), "backoff (over in 4s); cannot find `wob`; held");
        // Its end was tenon's doing; that is not the reason.
        (unit.cause, unit.last_exit) =
            ("not ready within 3s".to_owned(), Some("killed by SIGTERM".to_owned()));
        assert_eq!(words(&unit, 10.0), "backoff (over in 4s); not ready within 3s; held");
    }

    #[test]
    fn at_120_columns_the_state_stands_beside_the_others() {
        assert_data_eq!(
            plain(&render(&node(), Some(120))),
            str![[r"
tenon 0.1.0, pid 1, up 1h 2m, role prefill
UNIT         PID   SINCE  RESTARTS  STATE
pool-master  4711  2m 3s  0         ready
pool-store   4712  1h 2m  3         ready (degraded: http 503 with code 2); last exit: killed by SIGKILL
                                    segment: 400GB
engine@0     -     2s     12        backoff (next start in 4s); last exit: exited with 1
                                    E14: two processes share an address (2 times)
proxy        -     1h 2m  0         waiting (on engine@0: backoff)
old          -     1h 2m  0         inactive (stop requested)

"]]
        );
    }

    #[test]
    fn at_80_columns_long_states_wrap_in_their_column() {
        assert_data_eq!(
            plain(&render(&node(), Some(80))),
            str![[r"
tenon 0.1.0, pid 1, up 1h 2m, role prefill
UNIT         PID   SINCE  RESTARTS  STATE
pool-master  4711  2m 3s  0         ready
pool-store   4712  1h 2m  3         ready (degraded: http 503 with code 2); last
                                    exit: killed by SIGKILL
                                    segment: 400GB
engine@0     -     2s     12        backoff (next start in 4s); last exit:
                                    exited with 1
                                    E14: two processes share an address (2
                                    times)
proxy        -     1h 2m  0         waiting (on engine@0: backoff)
old          -     1h 2m  0         inactive (stop requested)

"]]
        );
    }

    #[test]
    fn where_there_is_no_room_beside_the_others_the_state_goes_below() {
        let mut status = node();
        status.units.drain(..1);
        status.units.drain(1..);
        assert_data_eq!(
            plain(&render(&status, Some(50))),
            str![[r"
tenon 0.1.0, pid 1, up 1h 2m, role prefill
UNIT        PID   SINCE  RESTARTS
pool-store  4712  1h 2m  3
    ready (degraded: http 503 with code 2); last
    exit: killed by SIGKILL
    segment: 400GB

"]]
        );
    }

    #[test]
    fn every_line_fits_the_width_and_colour_changes_no_column() {
        let mut status = node();
        status.units[0].says = Some("x".repeat(300));
        for width in [40, 80, 120] {
            for line in plain(&render(&status, Some(width))).lines().skip(1) {
                assert!(line.chars().count() <= width.max(46), "{width}: {line}");
            }
        }
    }

    #[test]
    fn what_a_unit_says_does_not_steer_the_terminal() {
        let says =
            UnitSnapshot { says: Some("\x1b[2Jhello".to_owned()), ..UnitSnapshot::sample("x", State::Ready) };
        assert_eq!(words(&says, 0.0), "ready; says: \u{fffd}[2Jhello");
    }

    #[test]
    fn spans_have_at_most_two_units() {
        let check = |seconds: u64, expected: &str| assert_eq!(ago(Duration::from_secs(seconds)), expected);
        assert_eq!(ago(Duration::from_millis(850)), "850ms");
        check(12, "12s");
        check(60, "1m");
        check(192, "3m 12s");
        check(7500, "2h 5m");
        check(273_600, "3d 4h");
    }
}
