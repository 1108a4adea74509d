//! The command line, declared once: parsing, `--help`, man pages and completions all come from here.
//!
//! Every verb that exists is a variant of [`Verb`]; what does not exist yet is not mentioned. Doc comments here are
//! text that users read.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

use super::times::{Patience, parse_duration, parse_patience};

/// Keep services running, as declared in TOML.
///
/// tenon starts units in order, keeps them alive, and stops them in reverse order: as PID 1 of a container, or as a
/// service of systemd. A unit is one TOML file; `tenon check` tells whether the files are right, `tenon plan` shows what
/// would run, `tenon run` runs it, and the other verbs talk to the runner.
#[derive(Debug, Parser)]
#[command(name = "tenon", version, propagate_version = false, max_term_width = 100)]
#[command(disable_help_subcommand = true, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "`tenon exit-codes` lists the exit codes, `tenon explain KEY` describes a key of the files."
)]
pub struct CommandLine {
    /// Options of every verb.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options that every verb takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Read units, profiles and tenon.toml from here; the first one replaces the search path, further ones add to it.
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Vec<PathBuf>,
    /// Use this profile, whatever the node file says (a name, an alias, auto, or none).
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// The role of this node, whatever the node file says.
    #[arg(long, global = true, value_name = "NAME", env = "TENON_ROLE", hide_env_values = true)]
    pub role: Option<String>,
    /// Take the facts of the machine from this saved file instead of from the machine.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub facts: Option<PathBuf>,
    /// Set a parameter of a unit; may be given many times.
    #[arg(long, global = true, value_name = "UNIT.PARAM=VALUE", value_parser = parse_set)]
    pub set: Vec<String>,
    /// Set a variable for every unit; may be given many times.
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = parse_env)]
    pub env: Vec<String>,
    /// The runner's control socket (default: `control.sock` in the run directory).
    #[arg(long, global = true, value_name = "PATH", env = "TENON_SOCKET", hide_env_values = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// How results are written.
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub output: Format,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start units and keep them running until told to stop.
    ///
    /// Without arguments, what `run` of tenon.toml names. `tenon run ./FILE.toml` runs one file, and
    /// `tenon run -- CMD…` runs one command the way tini would: signals are forwarded, nothing is restarted.
    Run(RunArgs),
    /// Tell whether the files are right (reads files only: the same answer on every machine).
    Check(CheckArgs),
    /// Show what would run, every value final (runs no program and writes nothing).
    Plan(PlanArgs),
    /// Show a unit's configuration as merged from all its files.
    Cat(UnitArg),
    /// Show a unit's environment.
    Env(EnvArgs),
    /// Describe a key of the files, a code of an error, or a line of a program's output.
    Explain(ExplainArgs),
    /// Show how the units are doing.
    Status(StatusArgs),
    /// Start units.
    Start(StartArgs),
    /// Stop units.
    ///
    /// A unit that holds data is stopped if it is named itself: a stop that would reach it in another way (a glob, a
    /// label, a group, an edge) is refused, unless it is asked for with `--with-dependents`.
    Stop(StopArgs),
    /// Stop units and start them again.
    ///
    /// A unit that holds data is restarted if it is named itself, as with `stop`.
    Restart(StopArgs),
    /// Read the files again and go on with them, or have units reload themselves.
    ///
    /// If anything is wrong with the files, nothing changes. What needs a new process is applied with
    /// `--apply-restarts`, or at the unit's next start; `tenon status` shows what is pending.
    Reload(ReloadArgs),
    /// Replace the runner by another binary, without its units noticing.
    ///
    /// The new binary first reads the configuration and a copy of the runner's state; if it cannot, the old one stays.
    Reexec(ReexecArgs),
    /// No automatic restarts from now on, as for maintenance: whatever ends stays down.
    ///
    /// What runs is left alone, and what is asked for by hand is done. A runner that is killed, replaced or started
    /// again after a fault goes on with it; `tenon unhold` ends it, and so does an orderly shutdown.
    Hold(HoldArgs),
    /// Automatic restarts as ever again; those that are due happen now.
    Unhold(HoldArgs),
    /// Send a signal to a unit; what is wanted of it does not change.
    Kill(KillArgs),
    /// Show what units have written.
    Logs(LogsArgs),
    /// Show what has happened to units.
    Events(EventsArgs),
    /// Wait until units are ready, settled, finished or down.
    Wait(WaitArgs),
    /// Ask a unit's probes once, now.
    ///
    /// The runner is asked to do it. With `--ready` or `--health` the probes are asked from here, without a runner.
    Probe(ProbeArgs),
    /// Become a unit in this process: files, conditions, bootstrap steps, then exec.
    ///
    /// For a unit that another manager runs (`tenon export systemd`). Refused while a runner has the unit up.
    Become(UnitArg),
    /// Open a shell, or run a command, in a unit's environment.
    ///
    /// It has the unit's variables, user, limits and folder. No file of the unit is written, and nothing of it is started.
    Shell(ShellArgs),
    /// Write what would run for another manager.
    #[command(subcommand)]
    Export(ExportVerb),
    /// Tell why a unit is in the state it is in.
    Why(UnitArg),
    /// Stop everything in order and end the runner.
    Shutdown(ShutdownArgs),
    /// Show what is known of this machine.
    Facts(FactsArgs),
    /// Show what differs between the files as they are now and what runs.
    ///
    /// Exit status: 0 the same, 1 different.
    Diff(DiffArgs),
    /// Play this node under virtual time: what happens when something fails.
    ///
    /// Nothing real is started: programs are assumed to do as they should, unless told otherwise. Prints what would
    /// happen, with the exact times of every restart, and judges rules.
    Simulate(SimulateArgs),
    /// Look at the profiles, compare and change them.
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// Show what has happened lately, even of a runner that was killed.
    ///
    /// Secrets are masked: those that are declared, and the values of whatever has a secret's name.
    Report(ReportArgs),
    /// List the exit codes.
    #[command(name = "exit-codes")]
    ExitCodes,
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, of tenon or of one verb.
    Man(ManArgs),
}

/// `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Units to run (with what they need and want), or the path of one unit file.
    #[arg(value_name = "UNIT|./FILE")]
    pub units: Vec<String>,
    /// A command to run.
    #[arg(last = true, value_name = "CMD", conflicts_with = "units", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

/// `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Units to check (left out: all that would run), or the path of one unit file.
    #[arg(value_name = "UNIT|./FILE")]
    pub units: Vec<String>,
    /// Warnings count as errors.
    #[arg(long)]
    pub strict: bool,
}

/// `plan`.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Show these units in full; left out: an overview of all.
    #[arg(value_name = "UNIT|./FILE")]
    pub units: Vec<String>,
    /// How it is written.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<PlanFormat>,
    /// The graph for Graphviz: the same as `--format dot`.
    #[arg(long, conflicts_with = "format")]
    pub dot: bool,
    /// Show the order of a stop and how the budget is dealt out along it.
    #[arg(long, conflicts_with_all = ["dot", "format"])]
    pub stop: bool,
    /// Show who takes which port: units, programs that take some at random, the kernel, and who listens now.
    #[arg(long, conflicts_with_all = ["dot", "format", "stop"])]
    pub ports: bool,
    /// Show what the units need of this machine, what it has, and how to mend what is missing.
    #[arg(long, conflicts_with_all = ["dot", "format", "stop", "ports"])]
    pub preflight: bool,
}

/// How a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The graph, for Graphviz.
    Dot,
    /// The graph, for Mermaid.
    Mermaid,
}

/// A verb about one unit.
#[derive(Debug, Clone, Args)]
pub struct UnitArg {
    /// The unit.
    #[arg(value_name = "UNIT")]
    pub unit: String,
}

/// `probe`.
#[derive(Debug, Clone, Args)]
pub struct ProbeArgs {
    /// The unit.
    #[arg(value_name = "UNIT")]
    pub unit: String,
    /// Ask whether it is ready, from here: no runner is needed.
    #[arg(long, conflicts_with = "health")]
    pub ready: bool,
    /// Ask whether it is well, from here: no runner is needed.
    #[arg(long)]
    pub health: bool,
    /// With `--ready`: ask until it is ready, no longer than its files say. With `--health`: fail only after as many
    /// failures in a row as its files say.
    #[arg(long)]
    pub wait: bool,
    /// With `--ready --wait`: give up after this long instead (`90s`, `never`). Whoever gave a `NOTIFY_SOCKET` hears what is
    /// waited for, and is asked for the time.
    #[arg(long, value_name = "TIME", value_parser = parse_patience, requires = "wait", conflicts_with = "health")]
    pub timeout: Option<Patience>,
}

/// `shell`.
#[derive(Debug, Clone, Args)]
pub struct ShellArgs {
    /// The unit.
    #[arg(value_name = "UNIT")]
    pub unit: String,
    /// A command to run in place of the shell.
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
}

/// `export …`.
#[derive(Debug, Subcommand)]
pub enum ExportVerb {
    /// Services of systemd whose processes become the units (`tenon become`), and a target for the node.
    ///
    /// What systemd cannot express stands as a comment in each file and is listed on standard error.
    Systemd(ExportSystemdArgs),
}

/// `export systemd`.
#[derive(Debug, Clone, Args)]
pub struct ExportSystemdArgs {
    /// Only these units; left out: all that would run.
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
    /// Write the files into this folder; left out: all of them to standard output.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output_dir: Option<PathBuf>,
    /// For the service manager of a user (`systemctl --user`).
    #[arg(long)]
    pub user: bool,
    /// The path of tenon in the files (default: that of this program).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub binary: Option<PathBuf>,
    /// What the name of each file begins with: `tenon-` keeps clear of the machine's own services.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
}

/// `env`.
#[derive(Debug, Clone, Args)]
pub struct EnvArgs {
    /// The unit.
    #[arg(value_name = "UNIT")]
    pub unit: String,
    /// Show where each value is from, losers included; of one variable if it is named.
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "how clap says: not given, given, given with a value")]
    pub why: Option<Option<String>>,
}

/// `explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// `stop.timeout`, `[ready]`, `unknown-key`; a code or line of a program's output that a unit or profile knows;
    /// left out: a list of all keys and codes.
    #[arg(value_name = "KEY|CODE", allow_hyphen_values = true)]
    pub topic: Option<String>,
}

/// `status`.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Names, globs or `label:NAME`; left out: all.
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
    /// Show it anew at every change, until interrupted.
    #[arg(long, short)]
    pub watch: bool,
}

/// `start`.
#[derive(Debug, Clone, Args)]
pub struct StartArgs {
    /// Names, globs or `label:NAME`.
    #[arg(value_name = "UNIT", required = true)]
    pub units: Vec<String>,
    /// Stop units that are in conflict first, instead of being refused.
    #[arg(long)]
    pub replace: bool,
    /// Give up waiting for it after this long (`90s`, `5m`); the start itself goes on.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

/// `stop` and `restart`.
#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    /// Names, globs or `label:NAME`.
    #[arg(value_name = "UNIT", required = true)]
    pub units: Vec<String>,
    /// Reach the units that need these, too, even those that hold data.
    #[arg(long)]
    pub with_dependents: bool,
    /// Do not ask whether data may be lost.
    #[arg(long, requires = "with_dependents")]
    pub yes: bool,
    /// Give up waiting for it after this long (`90s`, `5m`); the stop itself goes on.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

/// `reload`.
#[derive(Debug, Clone, Args)]
pub struct ReloadArgs {
    /// Units that are to reload themselves, as their `[reload]` says; left out: the runner's files.
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
    /// Only show what would change.
    #[arg(long, conflicts_with = "units")]
    pub dry_run: bool,
    /// Restart the units whose changes need it (not those that hold data).
    #[arg(long, conflicts_with = "units")]
    pub apply_restarts: bool,
    /// Apply what ends or restarts this unit although it holds data; may be given many times.
    #[arg(long, value_name = "UNIT", conflicts_with = "units")]
    pub allow_destructive: Vec<String>,
}

/// `reexec`.
#[derive(Debug, Clone, Args)]
pub struct ReexecArgs {
    /// The binary (default: the one that runs, as it lies there now).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub binary: Option<PathBuf>,
}

/// `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Write one archive: status, plan, configuration, events, the flight recorder, facts and versions.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tar: Option<PathBuf>,
}

/// `hold` and `unhold`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// The units: names, globs, `label:NAME` (left out: all).
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
}

/// `kill`.
#[derive(Debug, Clone, Args)]
pub struct KillArgs {
    /// The unit.
    #[arg(value_name = "UNIT")]
    pub unit: String,
    /// A name (`HUP`, `SIGHUP`) or a number.
    #[arg(long, short, value_name = "SIGNAL", default_value = "TERM")]
    pub signal: String,
    /// To whom.
    #[arg(long, value_enum, default_value_t = KillWhom::Main)]
    pub scope: KillWhom,
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KillWhom {
    /// The main process.
    Main,
    /// Its process group.
    Group,
    /// Everything the unit has started.
    Tree,
}

/// `logs`.
#[derive(Debug, Clone, Args)]
pub struct LogsArgs {
    /// Names, globs or `label:NAME`; left out: all.
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
    /// Go on with every new line, until interrupted.
    #[arg(long, short)]
    pub follow: bool,
    /// Past lines of each unit [default: 10, or all of a time that is asked for].
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub lines: Option<u64>,
    /// From its log files, rotated ones too: lines from this time on, `2h` ago or `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME", conflicts_with = "follow")]
    pub since: Option<String>,
    /// From its log files: lines up to this time.
    #[arg(long, value_name = "TIME", conflicts_with = "follow")]
    pub until: Option<String>,
    /// From its log files: lines of this boot of the machine, 0 the last one written in, 1 the one before.
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub boot: Option<usize>,
}

/// `events`.
#[derive(Debug, Clone, Args)]
pub struct EventsArgs {
    /// Names, globs or `label:NAME`; left out: all.
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
    /// Go on with every new event, until interrupted.
    #[arg(long, short)]
    pub follow: bool,
    /// Past events at most (left out: all that are remembered).
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub last: Option<u64>,
}

/// `wait`.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Names, globs or `label:NAME`.
    #[arg(value_name = "UNIT", required = true)]
    pub units: Vec<String>,
    /// What to wait for.
    #[arg(long = "for", value_name = "STATE", value_enum, default_value_t = WaitFor::Ready)]
    pub goal: WaitFor,
    /// Give up after this long (`90s`, `5m`); left out: wait for ever.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

/// What `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// Ready; a task: finished.
    Ready,
    /// The first start has come to an end, well or not.
    Settled,
    /// Ended for good, and well.
    Finished,
    /// No process is left.
    Down,
}

/// `shutdown`.
#[derive(Debug, Clone, Args)]
pub struct ShutdownArgs {
    /// Skip the order and the waiting: TERM to everything, KILL soon after.
    #[arg(long)]
    pub fast: bool,
    /// Return at once instead of when the runner has gone.
    #[arg(long, conflicts_with = "timeout")]
    pub no_wait: bool,
    /// Give up waiting after this long (`90s`, `5m`); the shutdown itself goes on.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Switch the machine off afterwards; where the runner is its first process, this is what happens anyway.
    #[arg(long, group = "machine")]
    pub poweroff: bool,
    /// Reboot the machine afterwards; only where the runner is its first process.
    #[arg(long, group = "machine")]
    pub reboot: bool,
    /// Halt the machine afterwards, and leave it on; only where the runner is its first process.
    #[arg(long, group = "machine")]
    pub halt: bool,
}

/// `simulate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SIMULATE_HELP)]
pub struct SimulateArgs {
    /// Units to simulate, with what they need and want (default: what `run` would run).
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
    /// How long.
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub span: Duration,
    /// Something fails: `store@30s:oom` once, `store@30s..2m:exit:1` all that time, `store@30s..:exec` from then on.
    #[arg(long, value_name = "UNIT@TIME:KIND")]
    pub fail: Vec<String>,
    /// Somebody starts a unit.
    #[arg(long, value_name = "UNIT@TIME")]
    pub start: Vec<String>,
    /// Somebody stops a unit.
    #[arg(long, value_name = "UNIT@TIME")]
    pub stop: Vec<String>,
    /// Somebody restarts a unit.
    #[arg(long, value_name = "UNIT@TIME")]
    pub restart: Vec<String>,
    /// The runner is told to shut down.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub shutdown: Option<Duration>,
    /// From a unit's start to its readiness (a task: to its end); `never` is a time too.
    #[arg(long, value_name = "UNIT=TIME")]
    pub takes: Vec<String>,
    /// From the first stop signal to a unit's end; `never`: it ignores the signal.
    #[arg(long, value_name = "UNIT=TIME")]
    pub ends: Vec<String>,
    /// A rule: what must never be.
    #[arg(long, value_name = "RULE")]
    pub never: Vec<String>,
    /// A rule: what must be at a time.
    #[arg(long, value_name = "RULE at TIME")]
    pub expect: Vec<String>,
    /// With the jitter of this seed; left out: every delay exactly as listed.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// What stands below the help of `simulate`.
const SIMULATE_HELP: &str = "\
Kinds of failure: exit:N, signal:NAME, oom (once, or with `..` at once after each start); exec (cannot be executed), \
hang (no probe passes), unhealthy (the health probe fails), degraded (somebody else is not well).

A rule is `UNIT [is] [not] STATE [or STATE…]`, joined by `while` or `and`:
  --never \"engine@* starting while store not ready\"
  --expect \"engine@* ready at 5m\"
UNIT is a name, a glob or label:NAME. A rule of --never is broken once some units are so (different conditions mean
different units), one of --expect once not all are. A broken rule is shown with its time and cause, and the exit code is 1.";

/// `facts`.
#[derive(Debug, Clone, Args)]
pub struct FactsArgs {
    /// Only these.
    #[arg(value_name = "FACT")]
    pub names: Vec<String>,
    /// Ask programs, too, and write everything into a file that `--facts FILE` reads; without FILE, where `plan` finds
    /// the answers of programs (`facts.toml` in the state directory).
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = ValueHint::FilePath)]
    #[expect(clippy::option_option, reason = "how clap says: not given, given, given with a value")]
    pub save: Option<Option<PathBuf>>,
}

/// `profile …`.
#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// List the profiles there are.
    List,
    /// Show a profile as merged from all its files, each value with the place where it is written.
    Show {
        /// Its name or an alias; left out: the one in force here.
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Show what it comes to here: values of its choices, what was found of the machine, what each rule does.
        #[arg(long)]
        resolved: bool,
    },
    /// Tell which profile fits this machine, and why.
    Detect,
    /// Tell whether profiles are right, each as if it were chosen (reads files only).
    Check {
        /// Files to check in place of those that are installed: `a2.toml`, `a2.toml.d/50-local.toml`.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Show what changes for each unit from one profile to another, and why.
    Diff {
        /// The profile before.
        #[arg(value_name = "A")]
        from: String,
        /// The profile after.
        #[arg(value_name = "B")]
        to: String,
    },
    /// Change values of a profile.
    ///
    /// The change is judged first; the difference, and the profiles, units and processes it touches, are shown before
    /// anything is written. Comments and order of the file stay. It goes into `profiles/NAME.toml.d/50-local.toml` of the
    /// last folder of the search path, or into the profile's own file if that lies there.
    Set(ProfileSetArgs),
    /// Change a profile with your editor ($VISUAL, $EDITOR); written like `set` does, once it is right.
    Edit(ProfileEditArgs),
}

/// `profile set`.
#[derive(Debug, Clone, Args)]
pub struct ProfileSetArgs {
    /// The profile.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What to set: `param.link.default=hccs`, `rule.X.default.VARIABLE=16900-17000`.
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub changes: Vec<String>,
    /// Show what it would do, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// `profile edit`.
#[derive(Debug, Clone, Args)]
pub struct ProfileEditArgs {
    /// The profile.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Begin with this text: what a refused edit has left.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Show what it would do, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// `diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// Compare with the plan of this folder instead of with what runs.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub against: Option<PathBuf>,
}

/// `completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The verb; left out: tenon itself.
    #[arg(value_name = "VERB")]
    pub verb: Option<String>,
    /// Write one page for tenon and one for each verb into this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, action = ArgAction::Set)]
    pub into: Option<PathBuf>,
}

/// `UNIT.PARAM=VALUE`; it is taken apart where the names are known.
fn parse_set(text: &str) -> Result<String, String> {
    let wanted = "expected UNIT.PARAM=VALUE, for example `store.port=8800`";
    let (target, _) = text.split_once('=').ok_or(wanted)?;
    let (unit, param) = target.split_once('.').ok_or(wanted)?;
    if unit.is_empty() || param.is_empty() { Err(wanted.to_owned()) } else { Ok(text.to_owned()) }
}

/// `NAME=VALUE`.
fn parse_env(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}
