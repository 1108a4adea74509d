//! When a unit is started again: pure functions over its restart rules, its history and how it ended.
//!
//! The counters live here and nowhere else. They are cleared by a start on request ([`History::clear`]) and, at the
//! next end, by a long enough time in readiness. Must not know: units, the graph, processes.

use std::collections::VecDeque;
use std::time::Duration;

use super::cause::{End, span};
use super::random::Random;
use crate::plan::policy::{Restart, RestartPolicy};
use crate::supervisor::Time;

/// Used where a plan lists no delay at all (it never should): better than a hot loop.
const FALLBACK_DELAY: Duration = Duration::from_secs(1);
/// Times of restarts that are remembered at most, unless the limit is higher.
const RECENT_MOST: usize = 1_000;

/// The automatic restarts of a unit that still count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// Automatic restarts since the counters were last cleared. Chooses the delay.
    restarts: u32,
    /// When the latest ones were decided, oldest first.
    recent: VecDeque<Time>,
}

impl History {
    /// So many restarts that count, as remembered by an earlier runner, and when the latest of them were.
    pub fn of(restarts: u32, recent: &[Time]) -> Self {
        Self { restarts, recent: recent.iter().copied().collect() }
    }

    /// When the latest ones were decided, oldest first, `most` at most.
    pub fn latest(&self, most: usize) -> Vec<Time> {
        self.recent.iter().skip(self.recent.len().saturating_sub(most)).copied().collect()
    }

    /// Forgets everything, as after a start on request.
    pub fn clear(&mut self) {
        self.restarts = 0;
        self.recent.clear();
    }

    /// Automatic restarts since the counters were last cleared.
    pub const fn restarts(&self) -> u32 {
        self.restarts
    }
}

/// What the rules say to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Start it again after this long.
    Again(Duration),
    /// It has done its work, and is not to be started again.
    Finished,
    /// It has failed, and is not to be started again: which rule says so.
    GiveUp(String),
}

/// Whether the rules would retry this end at all, counters aside; if not, which rule says no.
pub fn may_retry(rules: &Restart, end: &End) -> Result<(), String> {
    if matches!(end, End::Internal(_)) {
        return Err("it would meet the same error again".to_owned());
    }
    if !rules.enabled {
        return Err("restart is switched off by its `when`".to_owned());
    }
    let allowed = match rules.policy {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => !end.is_success(),
        RestartPolicy::OnAbnormal => end.is_abnormal(),
        RestartPolicy::Never => false,
    };
    if !allowed {
        return Err(format!("restart is `{}`", policy_word(rules.policy)));
    }
    if rules.except.iter().any(|pattern| end.matches(pattern)) {
        return Err("`restart.except` names this cause".to_owned());
    }
    match &rules.only {
        Some(only) if !only.iter().any(|pattern| end.matches(pattern)) => {
            Err("`restart.only` does not name this cause".to_owned())
        }
        Some(_) | None => Ok(()),
    }
}

/// Decides about an end, and counts it if it is to be retried.
///
/// `ready_for` is how long the unit had been ready; `None` if it never was.
pub fn decide(
    rules: &Restart,
    history: &mut History,
    end: &End,
    ready_for: Option<Duration>,
    now: Time,
    random: &mut Random,
) -> Decision {
    if ready_for.is_some_and(|lasted| lasted >= rules.reset_after) {
        history.clear();
    }
    if let Err(why) = may_retry(rules, end) {
        return if end.is_success() { Decision::Finished } else { Decision::GiveUp(why) };
    }
    if let Some(limit) = rules.max_restarts {
        let used = match rules.within {
            Some(window) => history.recent.iter().filter(|at| now.since(**at) < window).count(),
            None => history.restarts as usize,
        };
        if used >= limit as usize {
            return Decision::GiveUp(limit_words(limit, rules.within));
        }
    }
    history.recent.push_back(now);
    if history.recent.len() > rules.max_restarts.map_or(0, |limit| limit as usize).max(RECENT_MOST) {
        history.recent.pop_front();
    }
    let nominal = nominal_delay(rules, history.restarts);
    history.restarts = history.restarts.saturating_add(1);
    Decision::Again(jittered(nominal, rules.jitter, random.share()))
}

/// The delay before the restart after `before` earlier ones: the last one repeats.
fn nominal_delay(rules: &Restart, before: u32) -> Duration {
    let last = rules.delays.len().saturating_sub(1);
    rules.delays.get((before as usize).min(last)).copied().unwrap_or(FALLBACK_DELAY)
}

/// A delay changed by up to the share `jitter` of itself; `at` of 0..=1 chooses where between the two ends.
fn jittered(delay: Duration, jitter: f64, at: f64) -> Duration {
    if jitter.is_nan() || jitter <= 0.0 {
        return delay;
    }
    let factor = (2.0f64.mul_add(at, -1.0)).mul_add(jitter.min(1.0), 1.0);
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(delay)
}

const fn policy_word(policy: RestartPolicy) -> &'static str {
    match policy {
        RestartPolicy::Always => "always",
        RestartPolicy::OnFailure => "on_failure",
        RestartPolicy::OnAbnormal => "on_abnormal",
        RestartPolicy::Never => "never",
    }
}

fn limit_words(limit: u32, within: Option<Duration>) -> String {
    let restarts = if limit == 1 { "1 restart".to_owned() } else { format!("{limit} restarts") };
    within.map_or_else(
        || format!("{restarts} used up"),
        |window| format!("{restarts} within {} used up", span(window)),
    )
}

#[cfg(test)]
mod tests;
