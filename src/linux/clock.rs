//! The runner's clocks: one that never goes back, for decisions; the wall clock, for people only.

use std::time::{Duration, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use crate::supervisor::Time;

/// Time since the runner started, suspended or not.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Duration,
}

impl Clock {
    /// Starts at zero.
    pub fn new() -> Self {
        Self { start: boot_time() }
    }

    /// Goes on with an earlier clock, unless that lies ahead.
    pub fn since(start: Duration) -> Self {
        Self { start: start.min(boot_time()) }
    }

    /// When it was zero, on the machine's clock.
    pub const fn start(self) -> Duration {
        self.start
    }

    /// Now, on the machine's clock.
    pub fn now(self) -> Time {
        Time(boot_time().saturating_sub(self.start))
    }

    /// A point of this clock as the kernel counts it (`CLOCK_BOOTTIME`).
    pub fn absolute(self, time: Time) -> Duration {
        self.start.saturating_add(time.0)
    }
}

fn boot_time() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC))
        .map(Duration::from)
        .unwrap_or_default()
}

/// `CLOCK_MONOTONIC`, as the service manager above counts.
pub fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}

/// Seconds since 1970, for people.
pub fn wall() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).map(Duration::from).unwrap_or_default()
}

/// `2026-01-31T12:00:00.123Z`.
pub fn rfc3339(since_1970: Duration) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + since_1970).to_string()
}
