//! What a process was started with, in digests: enough for whoever has not started it to tell whether it would be
//! started otherwise now, and in what.
//!
//! A part that is as it is by default has no digest, so a later version may know more parts than the one that wrote
//! them. How a unit is watched is no part: it is kept beside them, since a process may not answer at another address.
//! Nor is how it is stopped: that is for whoever finds the process and knows nothing else of it any more.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::time::Duration;

use super::exec::{CgroupLimits, Identity, ProbeSet, Sched, Security, UnitExec};
use super::fingerprint::hash;
use super::policy::{Kind, Rung, Scope, Stop, UnitPolicy};

/// What the first line of [`Started::text`] says.
const HEAD: &str = "tenon-started 1";
/// The names of lines that are no parts: how it is watched, and a rung of its stop (milliseconds; whom, which signal).
const WATCH: &str = "~watch";
const STOP: &str = "~stop ";
/// Bits of [`Started::fingerprint`] that are used.
pub const FINGERPRINT_BITS: u32 = 40;

/// What a process was started with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Started {
    fingerprint: u64,
    /// Name and digest; `None`: nothing but the fingerprint is known.
    parts: Option<BTreeMap<String, u64>>,
    watch: u64,
    stop: Option<Stop>,
}

impl Started {
    /// What a process of this unit would be started with. What is asked right before a start only, how long things may
    /// take and where output goes make no difference.
    pub fn of(policy: &UnitPolicy, exec: &UnitExec) -> Self {
        if !policy.has_own_process() {
            return Self::default();
        }
        let mut parts = Parts::default();
        parts.unit(policy, exec);
        let watch = if exec.health.probes.is_empty() { 0 } else { debug_digest(&exec.health) };
        Self {
            fingerprint: parts.fingerprint(),
            parts: Some(parts.0),
            watch,
            stop: Some(policy.stop.clone()),
        }
    }

    /// What is known of another runner's process: its fingerprint, and the [text](Self::text) that lies beside it, if
    /// that is the one.
    pub fn recalled(fingerprint: u64, text: Option<&str>) -> Self {
        let unknown = Self { fingerprint, ..Self::default() };
        text.and_then(read).filter(|known| known.fingerprint == fingerprint).unwrap_or(unknown)
    }

    /// Equal for what is started alike. Fits into [`FINGERPRINT_BITS`].
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Whether it is the same process that would be started.
    pub const fn is(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }

    /// Whether it is known to be watched in the same way.
    pub fn is_watched_as(&self, other: &Self) -> bool {
        self.parts.is_some() && self.watch == other.watch
    }

    /// Whether it is known to tell of its readiness in the same way.
    pub fn is_ready_as(&self, other: &Self) -> bool {
        let of = |started: &Self| started.parts.as_ref().map(|parts| parts.get(READY).copied());
        of(self).is_some() && of(self) == of(other)
    }

    /// How it is stopped, if that is known.
    pub const fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// The parts in which they differ; none, if that is not known.
    pub fn differs_in(&self, other: &Self) -> Vec<String> {
        let (Some(own), Some(others)) = (&self.parts, &other.parts) else { return Vec::new() };
        let names = own.keys().chain(others.keys().filter(|name| !own.contains_key(*name)));
        names.filter(|name| own.get(*name) != others.get(*name)).cloned().collect()
    }

    /// As it can be written down, a part a line.
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (name, digest) in self.parts.iter().flatten() {
            let _ = writeln!(text, "{digest:016x} {name}");
        }
        let _ = writeln!(text, "{:016x} {WATCH}", self.watch);
        if let Some(Stop { ladder, scope }) = &self.stop {
            for Rung { signal, timeout } in ladder {
                let _ = writeln!(text, "{:016x} {STOP}{} {signal}", timeout.as_millis() as u64, word(*scope));
            }
        }
        text
    }
}

/// What a shell tells its children of itself: another in each, and no reason to start anything anew.
const OF_A_SHELL: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];

const READY: &str = "readiness probes";

const SCOPES: [Scope; 3] = [Scope::Main, Scope::Group, Scope::Tree];

const fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Main => "main",
        Scope::Group => "group",
        Scope::Tree => "tree",
    }
}

/// One rung of a stop, and whom the stop is meant for.
fn rung(milliseconds: u64, words: &str) -> Option<(Scope, Rung)> {
    let (whom, signal) = words.split_once(' ')?;
    let scope = SCOPES.into_iter().find(|scope| word(*scope) == whom)?;
    Some((scope, Rung { signal: signal.parse().ok()?, timeout: Duration::from_millis(milliseconds) }))
}

fn read(text: &str) -> Option<Started> {
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    let (mut parts, mut watch, mut stop) = (Parts::default(), 0, None::<Stop>);
    for line in lines {
        let (digest, name) = line.split_once(' ')?;
        let digest = u64::from_str_radix(digest, 16).ok()?;
        if name == WATCH {
            watch = digest;
        } else if let Some(words) = name.strip_prefix(STOP) {
            let (scope, rung) = rung(digest, words)?;
            stop.get_or_insert_with(|| Stop { ladder: Vec::new(), scope }).ladder.push(rung);
        } else {
            parts.0.insert(name.to_owned(), digest);
        }
    }
    Some(Started { fingerprint: parts.fingerprint(), parts: Some(parts.0), watch, stop })
}

#[derive(Default)]
struct Parts(BTreeMap<String, u64>);

impl Parts {
    fn fingerprint(&self) -> u64 {
        let mut bytes = Vec::new();
        for (name, digest) in &self.0 {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        digest(&bytes) & ((1 << FINGERPRINT_BITS) - 1)
    }

    /// No field is left out unseen: a new one does not compile until it is decided whether it is a part.
    fn unit(&mut self, policy: &UnitPolicy, exec: &UnitExec) {
        let UnitExec {
            argv,
            env,
            directory,
            identity,
            rlimits,
            sched,
            security,
            cgroup,
            credentials,
            files,
            steps,
            ready,
            unit_dir,
            preflight: _,
            health: _,
            log: _,
            reload: _,
            signatures: _,
        } = exec;
        match &policy.kind {
            Kind::Service | Kind::Group { .. } | Kind::External { .. } => {}
            Kind::Task { has_command } => self.debug("kind", has_command),
        }
        self.add("argv", &argv.join("\0"));
        for (name, value) in env.iter().filter(|(name, _)| !OF_A_SHELL.contains(&name.as_str())) {
            self.bytes(&format!("env {name}"), value);
        }
        for (name, path) in [("directory", directory), ("unit directory", unit_dir)] {
            if let Some(path) = path {
                self.debug(name, path);
            }
        }
        self.identity(identity);
        for limit in rlimits {
            let value = (&limit.soft, &limit.hard, limit.degrade);
            self.debug(&format!("limit rlimits.{}", limit.name), &value);
        }
        self.sched(sched);
        self.security(security);
        self.cgroup(cgroup);
        for credential in credentials {
            self.debug(&format!("credential {}", credential.name), &credential.from);
        }
        for file in files {
            let about = format!("{}\0{:o} {:?}\0", file.path.display(), file.mode, file.owner);
            let bytes = [about.as_bytes(), &file.content].concat();
            self.bytes(&format!("file {}", file.name), &bytes);
        }
        for (number, step) in steps.iter().enumerate() {
            self.debug(&format!("bootstrap step {}", step.name), &(number, &step.argv));
        }
        if !ready.probes.is_empty() || ready.degraded_if.is_some() {
            self.debug(READY, &(&ready.probes, &ready.degraded_if));
        }
    }

    fn identity(&mut self, identity: &Identity) {
        let Identity { user, group, groups, umask, no_new_privs, nice, oom_score_adj } = identity;
        self.some("user", user.as_ref());
        self.some("group", group.as_ref());
        self.some("groups", groups.as_ref());
        self.some("umask", umask.as_ref());
        self.some("security.no_new_privs", no_new_privs.then_some(&true));
        self.some("sched.nice", nice.as_ref());
        self.some("oom_score_adj", oom_score_adj.as_ref());
    }

    fn sched(&mut self, sched: &Sched) {
        let Sched { policy, priority, cpus, numa, io, timer_slack, degrade } = sched;
        self.some("sched.policy", policy.as_ref());
        self.some("sched.priority", priority.as_ref());
        self.some("sched.cpus", cpus.as_ref());
        self.some("sched.numa", numa.as_ref());
        self.some("sched.io", io.as_ref());
        self.some("sched.timer_slack", timer_slack.as_ref());
        self.some("sched.degrade", degrade.then_some(&true));
    }

    fn security(&mut self, security: &Security) {
        let Security { capabilities, ambient, secure_bits, dumpable, parent_death_signal, degrade } =
            security;
        self.some("security.capabilities", capabilities.as_ref());
        self.some("security.ambient", Some(ambient).filter(|all| !all.is_empty()));
        self.some("security.secure_bits", secure_bits.as_ref());
        self.some("security.dumpable", dumpable.as_ref());
        self.some("security.parent_death_signal", parent_death_signal.as_ref());
        self.some("security.degrade", degrade.then_some(&true));
    }

    fn cgroup(&mut self, cgroup: &CgroupLimits) {
        let CgroupLimits { settings, delegate, degrade } = cgroup;
        for (key, file, text) in settings {
            self.debug(&format!("limit cgroup.{key}"), &(file, text));
        }
        self.some("cgroup.delegate", delegate.then_some(&true));
        self.some("cgroup.degrade", degrade.then_some(&true));
    }

    fn some(&mut self, name: &str, value: Option<&impl Debug>) {
        if let Some(value) = value {
            self.debug(name, value);
        }
    }

    fn debug(&mut self, name: &str, value: &impl Debug) {
        self.add(name, &format!("{value:?}"));
    }

    fn add(&mut self, name: &str, text: &str) {
        self.bytes(name, text.as_bytes());
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        let name = name.replace(char::is_control, "?");
        self.0.insert(name, digest(bytes));
    }
}

fn debug_digest(probes: &ProbeSet) -> u64 {
    digest(format!("{:?} {:?}", probes.probes, probes.degraded_if).as_bytes())
}

fn digest(bytes: &[u8]) -> u64 {
    let wide = hash(bytes);
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::exec::{File, Log, Preflight, Probe, Rlimit, Step};
    use crate::plan::policy::Restart;

    fn service() -> UnitPolicy {
        UnitPolicy::plain("web", Restart::never())
    }

    fn exec() -> UnitExec {
        UnitExec {
            argv: vec!["web".to_owned(), "--port=80".to_owned()],
            env: vec![("COLOUR".to_owned(), b"red".to_vec()), ("PATH".to_owned(), b"/bin".to_vec())],
            ..UnitExec::default()
        }
    }

    /// In what a change shows.
    #[track_caller]
    fn check(change: impl FnOnce(&mut UnitExec), expectation: &[&str]) {
        let before = Started::of(&service(), &exec());
        let mut changed = exec();
        change(&mut changed);
        let after = Started::of(&service(), &changed);
        assert_eq!(before.differs_in(&after), expectation);
        assert_eq!(before.is(&after), expectation.is_empty());
        // Nor does it matter through whose hands it went.
        let recalled = Started::recalled(before.fingerprint(), Some(&before.text()));
        assert_eq!(recalled, before);
        assert!(before.fingerprint() < 1 << FINGERPRINT_BITS);
    }

    #[test]
    fn what_a_process_has_been_given_counts() {
        check(|exec| exec.argv.push("-v".to_owned()), &["argv"]);
        check(|exec| exec.argv = vec!["web --port=80".to_owned()], &["argv"]);
        check(|exec| exec.env.push(("SHLVL".to_owned(), b"2".to_vec())), &[]);
        check(|exec| exec.env[0].1 = b"blue".to_vec(), &["env COLOUR"]);
        check(|exec| exec.env.truncate(1), &["env PATH"]);
        check(|exec| exec.directory = Some("/".into()), &["directory"]);
        check(|exec| exec.identity.nice = Some(3), &["sched.nice"]);
        check(|exec| exec.ready.probes = vec![Probe::Notify], &["readiness probes"]);
        let limit = Rlimit { name: "nofile".to_owned(), soft: Some(9), hard: None, degrade: false };
        check(|exec| exec.rlimits = vec![limit], &["limit rlimits.nofile"]);
        let file = File {
            name: "conf".to_owned(),
            path: "/x".into(),
            content: b"a".to_vec(),
            mode: 0o600,
            owner: None,
        };
        check(|exec| exec.files = vec![file], &["file conf"]);
    }

    #[test]
    fn what_is_only_about_how_it_is_kept_does_not() {
        check(|exec| exec.log = Log { rate: Some(3), ..Log::default() }, &[]);
        check(|exec| exec.preflight = vec![Preflight::Memory(1)], &[]);
        check(|exec| exec.health.probes = vec![Probe::Notify], &[]);
        let step = |timeout| Step {
            name: "s".to_owned(),
            why: String::new(),
            argv: vec!["true".to_owned()],
            timeout: Duration::from_secs(timeout),
        };
        let of = |timeout| Started::of(&service(), &UnitExec { steps: vec![step(timeout)], ..exec() });
        assert!(of(1).is(&of(2)) && !of(1).is(&Started::of(&service(), &exec())));
    }

    #[test]
    fn how_it_is_stopped_is_known_to_whoever_knows_nothing_else() {
        let rung = |signal, seconds| Rung { signal, timeout: Duration::from_secs(seconds) };
        let stop = Stop { ladder: vec![rung(2, 120), rung(15, 5)], scope: Scope::Group };
        let before = Started::of(&UnitPolicy { stop: stop.clone(), ..service() }, &exec());
        let recalled = Started::recalled(before.fingerprint(), Some(&before.text()));
        assert_eq!(recalled.stop(), Some(&stop));
        assert!(before.is(&Started::of(&service(), &exec())), "it is the same process");
        // The lines of a version that did not write it.
        let text = before
            .text()
            .lines()
            .filter(|line| !line.contains("~stop"))
            .fold(String::new(), |all, line| all + line + "\n");
        assert_eq!(Started::recalled(before.fingerprint(), Some(&text)).stop(), None);
    }

    #[test]
    fn a_fingerprint_alone_tells_that_and_not_what() {
        let before = Started::of(&service(), &exec());
        let stale = Started::of(&service(), &UnitExec::default()).text();
        for text in [None, Some(stale.as_str()), Some("no such thing\n")] {
            let recalled = Started::recalled(before.fingerprint(), text);
            assert!(recalled.is(&before) && !recalled.is_watched_as(&before));
            let other = Started::of(&service(), &UnitExec::default());
            assert!(!recalled.is(&other));
            assert_eq!(recalled.differs_in(&other), [""; 0]);
        }
    }

    /// What one version has written is read by every later one: names and digests do not change. The digests are those
    /// of FNV-1a over 128 bits, folded into 64, worked out apart from this program.
    #[test]
    fn the_text_stays_the_same_for_ever() {
        let text = "tenon-started 1\n\
                    7357f71c8e339f4b argv\n\
                    25e0057fd3e0364e env COLOUR\n\
                    df4ff22496315654 env PATH\n\
                    0000000000000000 ~watch\n\
                    0000000000002710 ~stop tree 15\n";
        assert_eq!(Started::of(&service(), &exec()).text(), text);
    }
}
