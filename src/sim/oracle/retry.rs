//! When a unit may be started again after an end of its own, worked out from its rules a second time.

use std::time::Duration;

use super::Oracle;
use super::starts::Asked;
use crate::plan::policy::{CausePattern, OnLimit, Restart, RestartPolicy, UnitId};
use crate::supervisor::{ExitStatus, Time};

/// How a start ended without anybody having asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SelfEnd {
    Exited { status: ExitStatus, premature: bool, ready_for: Option<Duration> },
    Step(ExitStatus),
    NotStarted,
    NotReady,
    Unhealthy { ready_for: Option<Duration> },
}

impl SelfEnd {
    pub(super) fn is_success(&self) -> bool {
        matches!(self, SelfEnd::Exited { status: ExitStatus::Code(0), premature: false, .. })
    }

    fn ready_for(&self) -> Option<Duration> {
        match self {
            SelfEnd::Exited { ready_for, .. } | SelfEnd::Unhealthy { ready_for } => *ready_for,
            SelfEnd::Step(_) | SelfEnd::NotStarted | SelfEnd::NotReady => None,
        }
    }

    fn status(&self) -> Option<ExitStatus> {
        match self {
            SelfEnd::Exited { status, .. } | SelfEnd::Step(status) => Some(*status),
            SelfEnd::NotStarted | SelfEnd::NotReady | SelfEnd::Unhealthy { .. } => None,
        }
    }

    fn is(&self, cause: &CausePattern) -> bool {
        match cause {
            CausePattern::Start => {
                !matches!(self, SelfEnd::Exited { premature: false, .. } | SelfEnd::Unhealthy { .. })
            }
            CausePattern::Exit(code) => self.status() == Some(ExitStatus::Code(*code)),
            CausePattern::Signal(number) => {
                matches!(self.status(), Some(ExitStatus::Signal { signal, .. }) if signal == *number)
            }
            CausePattern::Oom => matches!(self.status(), Some(ExitStatus::Signal { oom: true, .. })),
        }
    }

    pub(super) fn is_retried(&self, rules: &Restart) -> bool {
        let by_signal = matches!(self.status(), Some(ExitStatus::Signal { .. }));
        let by_policy = match rules.policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => !self.is_success(),
            RestartPolicy::OnAbnormal => {
                by_signal || matches!(self, SelfEnd::NotReady | SelfEnd::Unhealthy { .. })
            }
            RestartPolicy::Never => false,
        };
        let excepted = rules.except.iter().any(|cause| self.is(cause));
        let included = rules.only.as_ref().is_none_or(|only| only.iter().any(|cause| self.is(cause)));
        rules.enabled && by_policy && !excepted && included
    }
}

impl Oracle {
    /// Nothing of the unit's start is left: from here on its delay counts.
    pub(super) fn at_rest(&mut self, unit: UnitId) {
        let now = self.now;
        let rules = self.plan.units[unit.0 as usize].restart.clone();
        let main = self.plan.units[unit.0 as usize].main;
        let task = self.is_task(unit);
        let shutting = self.shutdown_at.is_some();
        let seen = self.get_mut(unit);
        seen.rested_at = now;
        let Some(end) = seen.self_end.take().filter(|_| seen.wanted && !shutting) else { return };
        seen.settled = true;
        seen.ended = true;
        seen.asked_for = Asked::No;
        if end.ready_for().is_some_and(|lasted| lasted >= rules.reset_after) {
            seen.restarts = 0;
            seen.recent.clear();
        }
        let retried = end.is_retried(&rules) && !(task && end.is_success());
        if !retried || !seen.may_restart(&rules, now) {
            seen.never = true;
            seen.finished = end.is_success() && !retried;
            let gave_up = !seen.finished && rules.on_limit == OnLimit::Shutdown;
            self.gave_up |= gave_up;
            if main || gave_up {
                self.shutdown_at = Some(now);
            }
            return;
        }
        let end_of_list = rules.delays.len().saturating_sub(1);
        // What the machine counts and nobody outside can see (an end while a stop was held back, a wait given up) moves it
        // further down the list: too late is only what no delay explains.
        let ahead = rules.delays.iter().skip((seen.restarts as usize).min(end_of_list));
        let next = if seen.limited { ahead.min() } else { ahead.clone().next() };
        let shortest = next.copied().unwrap_or_default();
        let longest = rules.delays.iter().max().copied().unwrap_or_default();
        seen.restarts += 1;
        seen.not_before = Some(now + shortest.mul_f64((1.0 - rules.jitter).max(0.0)));
        seen.no_later = Some(now + longest.mul_f64(1.0 + rules.jitter) + Duration::from_millis(1));
    }
}

impl super::Seen {
    fn may_restart(&mut self, rules: &Restart, now: Time) -> bool {
        let used = match rules.within {
            Some(window) => self.recent.iter().filter(|at| now.since(**at) < window).count(),
            None => self.restarts as usize,
        };
        let allowed = rules.max_restarts.is_none_or(|limit| used < limit as usize);
        if allowed {
            self.recent.push_back(now);
        }
        allowed
    }
}
