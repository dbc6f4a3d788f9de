//! Runs all steps of CI, the quick checks first.
//!
//! The steps share builds: clippy and rustdoc use the same checked dependencies, tests and benches the same
//! profile. Loom and Miri compile with other flags, so each has a separate target folder and does not evict
//! the others. All programs are built with every feature, and with the failpoints of the simulator's own
//! test, which would otherwise cost another build of half the workspace.

use std::fmt;
use std::path::Path;
use std::slice;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::command::Command;
use crate::print_stdout::print_stdout;
use crate::{fuzz, target_dir, tidy};

/// All features: those of all programs, and the simulator's failpoints.
const FEATURES: &str = "--features tickpath/full,tickpath-simulator/planted-faults";
/// Packages that the step `aarch64` leaves out: those that need a C compiler for aarch64, because they use ring
/// or Zstandard; tools that need not run there; and programs with terminal screens, whose many dependencies
/// cost several seconds.
const NOT_ON_AARCH64: [&str; 16] = [
    "tickpath",
    "tickpath-backtest",
    "tickpath-demo",
    "tickpath-deribit-front",
    "tickpath-deribit-link",
    "tickpath-fuzz",
    "tickpath-gateway",
    "tickpath-lab",
    "tickpath-monitor",
    "tickpath-replay",
    "tickpath-shell",
    "tickpath-test-support",
    "tickpath-test-venue",
    "tickpath-ticks-app",
    "tickpath-web",
    "xtask",
];
const AARCH64: &str = "aarch64-unknown-linux-gnu";
/// The laboratory with its rows of peers, which no other feature includes.
const PEERS: &str = "-p tickpath-lab --features tickpath-lab/peers";
/// Run time of each fuzz target in a long run, in seconds.
const FUZZ_SECONDS: u64 = 60;

/// One step of CI.
struct Step {
    name: &'static str,
    what: &'static str,
    action: Action,
    /// True if the step runs only in a long run, or when it is named.
    is_long: bool,
}

enum Action {
    /// Commands, all of which must succeed.
    Commands(Vec<Command>),
    /// The tidy checks of this program.
    Tidy,
    /// Commands that need Miri; skipped with a message if Miri is unavailable.
    Miri(Vec<Command>),
    /// A command that needs the standard library for aarch64; skipped with a message if it is unavailable.
    Aarch64(Command),
    /// Every fuzz target under libFuzzer for `seconds` each; skipped with a message without a nightly
    /// compiler.
    Fuzz { seconds: u64 },
}

/// The outcome of a step.
enum Outcome {
    Passed,
    Skipped,
    /// The step failed; contains the command that repeats the step.
    Failed(String),
}

fn steps(root: &Path) -> Vec<Step> {
    let own_target = |name: &str| target_dir().join(name).display().to_string();
    let step = |name, what, action| Step { name, what, action, is_long: false };
    let one = |command| Action::Commands(vec![command]);
    let mut fmt = vec![Command::new("cargo fmt --all --check")];
    // The fuzz targets are not members of the workspace.
    if root.join("fuzz/targets/Cargo.toml").exists() {
        fmt.push(Command::new("cargo fmt --manifest-path fuzz/targets/Cargo.toml --check"));
    }
    vec![
        step("fmt", "the formatting is that of rustfmt", Action::Commands(fmt)),
        step("tidy", "layers, file sizes, leftovers: what the compiler does not check", Action::Tidy),
        step(
            "clippy",
            "no warning in any target",
            one(Command::new(&format!("cargo clippy --workspace {FEATURES} --all-targets -- -D warnings"))),
        ),
        step(
            "doc",
            "every public item is documented and every link leads somewhere",
            one(as_clippy(
                Command::new(&format!("cargo doc --workspace {FEATURES} --no-deps"))
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )),
        ),
        step(
            "aarch64",
            "the crates that need no C compiler, from core to the venue and the trader, compile for aarch64",
            Action::Aarch64(aarch64_check()),
        ),
        step(
            "test",
            "unit and integration tests, examples in the documentation, every fuzz body on mutated inputs",
            one(Command::new(&format!("cargo test --workspace {FEATURES} -- --skip third_party::"))),
        ),
        step(
            "interop",
            "third-party clients, installed from PyPI and Maven",
            one(Command::new(&format!("cargo test --workspace {FEATURES} --test interop"))),
        ),
        step(
            "bench",
            "every benchmark runs once, as a test of its result",
            one(Command::new(&format!("cargo test --workspace {FEATURES} --bench *"))),
        ),
        step(
            "loom",
            "the lock-free structures under every interleaving that loom explores",
            one(Command::new("cargo test -p tickpath-lockfree --release --test loom")
                .env("RUSTFLAGS", "--cfg loom")
                .env("CARGO_TARGET_DIR", own_target("loom"))),
        ),
        step(
            "miri",
            "the lock-free structures and the groups of the feed books under Miri, which checks memory accesses",
            Action::Miri(
                ["-p tickpath-lockfree", "-p tickpath-book --test it groups"]
                    .map(|tests| {
                        Command::new(&format!("cargo +nightly miri test {tests}"))
                            .env("CARGO_TARGET_DIR", own_target("miri"))
                    })
                    .into(),
            ),
        ),
        Step {
            name: "fuzz-long",
            what: "every fuzz target for a minute under libFuzzer; with --long",
            action: Action::Fuzz { seconds: FUZZ_SECONDS },
            is_long: true,
        },
        Step {
            name: "peers",
            what: "the laboratory's rows that run open-source peers; with --long",
            action: Action::Commands(vec![
                Command::new(&format!("cargo clippy {PEERS} --all-targets -- -D warnings")),
                Command::new(&format!("cargo test {PEERS} --test it peers")),
            ]),
            is_long: true,
        },
    ]
}

/// The command that checks the code for aarch64.
fn aarch64_check() -> Command {
    let excluded = NOT_ON_AARCH64.map(|package| format!("--exclude {package}")).join(" ");
    // Zstandard needs a C compiler, and the dependencies of the readers of DBN files cost several seconds.
    let features = "--no-default-features --features tickpath-simulator/planted-faults";
    Command::new(&format!("cargo check --target {AARCH64} --workspace {excluded} {features}"))
        .env("RUSTFLAGS", "-D warnings")
}

/// Sets the environment of `cargo clippy -- -D warnings` for a command, so that Cargo reuses the crates that
/// clippy has checked. Returns the command unchanged if clippy is not in the toolchain's folder.
fn as_clippy(command: Command) -> Command {
    let sysroot = std::process::Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    if !driver.exists() {
        return command;
    }
    command
        .env("RUSTC_WORKSPACE_WRAPPER", driver.display().to_string())
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__")
}

/// Prints the steps.
pub fn list(root: &Path) {
    for step in steps(root) {
        print_stdout(format_args!("{:<9} {}", step.name, step.what));
    }
}

/// Selects the steps to run.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// The steps of every run.
    Usual,
    /// All steps.
    Long,
    /// The named steps, separated by commas.
    Only(&'a str),
}

/// Runs the selected steps in CI's order and reports the time of each; with `has_times` also that of each
/// command.
///
/// Stops at the first failure. Returns whether all of them passed or were skipped.
pub fn run(root: &Path, choice: Choice<'_>, has_times: bool) -> Result<bool> {
    let steps = selected(steps(root), choice)?;
    let start = Stopwatch::start();
    let mut summary = Vec::new();
    let mut failure = None;
    for (index, step) in steps.iter().enumerate() {
        print_stdout(format_args!("\n==> [{}/{}] {}: {}", index + 1, steps.len(), step.name, step.what));
        let watch = Stopwatch::start();
        let outcome = run_action(root, &step.action, has_times)?;
        let step_time = watch.read();
        print_stdout(format_args!("<== {} {} in {step_time}", step.name, outcome.word()));
        summary.push(format!("    {:<9} {:<8} {}", step.name, outcome.word(), step_time.columns()));
        if let Outcome::Failed(command) = outcome {
            failure = Some((step.name, command));
            break;
        }
    }
    print_stdout(format_args!(
        "\n==> summary\n    {:<9} {:<8} {:>9} {:>9}",
        "step", "", "elapsed", "CPU time"
    ));
    summary.iter().for_each(print_stdout);
    for step in &steps[summary.len()..] {
        print_stdout(format_args!("    {:<9} not run", step.name));
    }
    print_stdout(format_args!("    {:<9} {:<8} {}", "total", "", start.read().columns()));
    match failure {
        Some((name, command)) => {
            print_stdout(format_args!("\nstep '{name}' failed; repeat it with\n    {command}"));
            Ok(false)
        }
        None => Ok(true),
    }
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Skipped => "skipped",
            Outcome::Failed(_) => "FAILED",
        }
    }
}

fn selected(steps: Vec<Step>, choice: Choice<'_>) -> Result<Vec<Step>> {
    let only = match choice {
        Choice::Usual => return Ok(steps.into_iter().filter(|step| !step.is_long).collect()),
        Choice::Long => return Ok(steps),
        Choice::Only(names) => names,
    };
    let names: Vec<&str> = only.split(',').map(str::trim).collect();
    if let Some(unknown) = names.iter().find(|name| steps.iter().all(|step| step.name != **name)) {
        bail!("there is no step '{unknown}': see cargo xtask ci --list");
    }
    Ok(steps.into_iter().filter(|step| names.contains(&step.name)).collect())
}

fn run_action(root: &Path, action: &Action, has_times: bool) -> Result<Outcome> {
    match action {
        Action::Tidy => match tidy::run(root)? {
            true => Ok(Outcome::Passed),
            false => Ok(Outcome::Failed("cargo xtask tidy".to_owned())),
        },
        Action::Commands(commands) => run_commands(root, commands, has_times),
        Action::Fuzz { seconds } => match fuzz::missing_tool(root) {
            None => run_commands(root, &fuzz::commands(root, *seconds)?, has_times),
            Some(remedy) => {
                print_stdout(format_args!("skipped: {remedy}"));
                Ok(Outcome::Skipped)
            }
        },
        Action::Miri(commands) if has_miri(root) => run_commands(root, commands, has_times),
        Action::Miri(_) => {
            print_stdout(
                "skipped: Miri is missing; install it with: rustup toolchain install nightly --profile minimal \
                 --component miri --component rust-src",
            );
            Ok(Outcome::Skipped)
        }
        Action::Aarch64(command) if has_aarch64(root) => {
            run_commands(root, slice::from_ref(command), has_times)
        }
        Action::Aarch64(_) => {
            print_stdout(format_args!(
                "skipped: the standard library for aarch64 is missing; install it with: rustup target add {AARCH64}"
            ));
            Ok(Outcome::Skipped)
        }
    }
}

fn run_commands(root: &Path, commands: &[Command], has_times: bool) -> Result<Outcome> {
    for command in commands {
        print_stdout(format_args!("    {command}"));
        let watch = Stopwatch::start();
        let has_passed = command.run(root)?.success();
        if has_times {
            print_stdout(format_args!("    {} took {}", command, watch.read()));
        }
        if !has_passed {
            return Ok(Outcome::Failed(command.to_string()));
        }
    }
    Ok(Outcome::Passed)
}

/// Whether a nightly Miri is available, after trying to add it to a nightly toolchain.
fn has_miri(root: &Path) -> bool {
    let probe = Command::new("cargo +nightly miri --version");
    let sources = Command::new("rustup component add miri rust-src --toolchain nightly");
    probe.succeeds_quietly(root) || (sources.succeeds_quietly(root) && probe.succeeds_quietly(root))
}

/// Whether the standard library for aarch64 is available, after trying to add it to the toolchain.
fn has_aarch64(root: &Path) -> bool {
    Command::new(&format!("rustup target add {AARCH64}")).succeeds_quietly(root)
}

/// Duration of one step.
struct StepTime {
    elapsed: Duration,
    /// CPU time of all processes that the step started and waited for; `None` if the system reports none.
    cpu: Option<Duration>,
}

/// Measures a part of the run.
struct Stopwatch {
    start: Instant,
    cpu: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch { start: Instant::now(), cpu: cpu_time() }
    }

    fn read(&self) -> StepTime {
        let cpu = self.cpu.zip(cpu_time()).map(|(start, end)| end - start);
        StepTime { elapsed: self.start.elapsed(), cpu }
    }
}

/// CPU time of this program and of all processes that it has waited for, including their children.
fn cpu_time() -> Option<Duration> {
    let of = |time: TimeVal| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000);
    let used = |who| getrusage(who).ok().map(|usage| of(usage.user_time()) + of(usage.system_time()));
    Some(used(UsageWho::RUSAGE_SELF)? + used(UsageWho::RUSAGE_CHILDREN)?)
}

impl StepTime {
    fn columns(&self) -> String {
        format!("{:>9} {:>9}", seconds(self.elapsed), self.cpu.map_or_else(|| "-".to_owned(), seconds))
    }
}

impl fmt::Display for StepTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", seconds(self.elapsed))?;
        self.cpu.map_or(Ok(()), |cpu| write!(f, ", {} of CPU time", seconds(cpu)))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn a_child_that_works_is_counted() {
        let watch = Stopwatch::start();
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", work]).status().unwrap().success());
        assert!(!watch.read().cpu.unwrap().is_zero());
    }

    fn names(choice: Choice<'_>) -> Result<Vec<&'static str>> {
        Ok(selected(steps(root()), choice)?.iter().map(|step| step.name).collect())
    }

    #[test]
    fn steps_are_chosen_by_name_and_keep_their_order() {
        let all = ["fmt", "tidy", "clippy", "doc", "aarch64", "test", "interop", "bench", "loom", "miri"];
        assert_eq!(names(Choice::Usual).unwrap(), all);
        assert_eq!(names(Choice::Long).unwrap(), [&all[..], &["fuzz-long", "peers"]].concat());
        assert_eq!(names(Choice::Only("test, fmt")).unwrap(), ["fmt", "test"]);
        assert_eq!(names(Choice::Only("fuzz-long")).unwrap(), ["fuzz-long"]);
        let error = names(Choice::Only("fmt,tests")).unwrap_err().to_string();
        assert!(error.contains("no step 'tests'"), "{error}");
    }

    #[test]
    fn the_first_command_that_fails_is_the_one_to_repeat() {
        let commands = ["true", "false", "no-such-program-of-xtask"].map(Command::new);
        match run_commands(root(), &commands, false).unwrap() {
            Outcome::Failed(command) => assert_eq!(command, "false"),
            other => panic!("{}", other.word()),
        }
    }
}
