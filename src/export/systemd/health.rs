//! `[health]`: a timer that lives as long as its unit, and what it starts.

use super::file::UnitFile;
use super::settings::span;
use super::{Known, MARK, Options, quote};
use crate::export::File;
use crate::plan::exec::{Probe, ProbeSet};
use crate::plan::policy::{Health, OnFailure, UnitId, UnitPolicy};

/// The names of both files of a unit, without suffix.
pub fn name(service: &str) -> String {
    format!("{}-health", service.trim_end_matches(".service"))
}

/// What is not asked from outside.
pub fn lost(set: &ProbeSet, health: &Health, file: &mut UnitFile) {
    for probe in &set.probes {
        match probe {
            Probe::Notify => file.lose("`health.notify`: it is asked by the runner only"),
            Probe::Fd(_) => file.lose("`health.fd`: it is asked by the runner only"),
            Probe::Log { .. } => file.lose("`health.log`: it is asked by the runner only"),
            Probe::Tcp { .. } | Probe::Http { .. } | Probe::Exec { .. } | Probe::Path { .. } => {}
        }
    }
    if health.successes > 1 {
        file.lose(format!("`health.successes = {}`: one success counts as healthy", health.successes));
    }
    if !health.start_period.is_zero() {
        file.lose("`health.start_period` holds after the first start only");
    }
    if health.on_failure == OnFailure::Restart {
        file.lose("an unhealthy unit is restarted at once, without the delay of `restart.delays`, whatever its policy");
    }
}

/// The timer and the service that asks.
pub fn files(
    policy: &UnitPolicy,
    id: UnitId,
    health: &Health,
    known: &Known,
    options: &Options,
) -> Vec<File> {
    let Some(service) = known.service(id) else { return Vec::new() };
    let unit = &policy.name;
    let base = name(service);
    let shown = quote::value(unit);
    let mut timer = UnitFile::new(&[&format!("{unit}: when it is asked for its health. {MARK}.")]);
    timer.set("Unit", "Description", format!("Health of {shown}"));
    timer.set("Unit", "BindsTo", service);
    timer.set("Unit", "After", service);
    timer.set("Timer", "OnActiveSec", span(health.start_period.max(health.interval)));
    timer.set("Timer", "OnUnitInactiveSec", span(health.interval));
    timer.set("Timer", "AccuracySec", "100ms");
    let mut ask = UnitFile::new(&[
        &format!("{unit}: asks for its health. {MARK}."),
        &format!("It fails after {} failures in a row, {} apart.", health.failures, span(health.interval)),
    ]);
    ask.set("Unit", "Description", format!("Asks {shown} for its health"));
    // It is started at every interval, for as long as the unit is up.
    ask.set("Unit", "StartLimitIntervalSec", "0");
    ask.set("Service", "Type", "oneshot");
    ask.set("Service", "ExecStart", options.tenon(&["probe", unit, "--health", "--wait"]));
    if health.on_failure == OnFailure::Restart {
        let restart = options.systemctl_plain(&["--no-block", "try-restart"]);
        let script = format!("[ \"$SERVICE_RESULT\" = success ] || exec {restart} '{service}'");
        ask.set("Service", "ExecStopPost", quote::command(&["/bin/sh", "-c", &script]));
    }
    ask.set("Service", "TimeoutStartSec", "infinity");
    ask.set("Service", "SyslogIdentifier", shown);
    // A check that passes is no news.
    ask.set("Service", "SyslogLevel", "notice");
    ask.set("Service", "LogLevelMax", "notice");
    vec![timer.file(format!("{base}.timer")), ask.file(format!("{base}.service"))]
}
