//! Parses the command lines of Tickpath's programs, prints their errors, and runs the separate programs.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::description;
use clap::error::ErrorKind;
use clap::{ArgMatches, Command};
use tickpath_config::print_stderr;
use tickpath_version::version;

/// Exit code of an invalid command line, as in shells.
const USAGE: u8 = 2;
/// Maximum width of help lines, in characters.
const HELP_WIDTH_MAX: usize = 100;

/// A command that is a separate program in the folder of `tickpath`, named `tickpath-NAME`.
#[derive(Clone, Copy, Debug)]
pub struct Separate {
    /// Name of the command.
    pub name: &'static str,
    /// First line of the command's help.
    pub about: &'static str,
    /// Cargo feature of the package `tickpath` that builds the program.
    pub feature: &'static str,
}

/// All commands that are separate programs.
pub const SEPARATE: [Separate; 9] = [
    Separate {
        name: "backtest",
        about: "Run a strategy on a recorded file, and report its orders, fills and P&L",
        feature: "data",
    },
    Separate {
        name: "replay",
        about: "Build full order books from a recorded file, report its contents, and check it for contradictions",
        feature: "data",
    },
    Separate {
        name: "convert",
        about: "Write an exported table in another format: CSV as Parquet, or Parquet as CSV",
        feature: "data",
    },
    Separate {
        name: "generate",
        about: "Write synthetic market data with known statistics and a known hash",
        feature: "data",
    },
    Separate { name: "ticks", about: "Ticks over TCP: quotes and trades of many symbols", feature: "ticks" },
    Separate {
        name: "shell",
        about: "Trade at a venue with Deribit's API (test.deribit.com, or one on this machine) or at a native venue",
        feature: "shell",
    },
    Separate {
        name: "gateway",
        about: "Run a gateway until Ctrl-C: one process holds the venue's connections, and local clients share it",
        feature: "gateway",
    },
    Separate {
        name: "sim",
        about: "Run a venue, its clients, feed handlers and traders in one thread under virtual time, with injected faults and independent checks",
        feature: "sim",
    },
    Separate {
        name: "lab",
        about: "The latency laboratory: benchmarks beside the host's limits",
        feature: "lab",
    },
];

/// Environment variable that passes the version of the calling `tickpath` to a separate program.
const CALLER: &str = "TICKPATH_CALLER";

/// Returns a clap command without arguments. `name` is the text that a user types, such as `tickpath shell`.
#[must_use]
pub fn root(name: &'static str) -> Command {
    Command::new(name).bin_name(name).version(version()).max_term_width(HELP_WIDTH_MAX)
}

/// Runs a program whose command line consists of the arguments `A`. `name` is as for [`root`].
pub fn main_of<A: clap::Args>(
    name: &'static str,
    run: impl FnOnce(&A) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    let command = A::augment_args(root(name));
    main(command, |matches| run(&read(A::from_arg_matches(matches))?))
}

/// Runs a program whose command line consists of one of the sub-commands `S`. `name` is as for [`root`].
pub fn main_of_subcommands<S: clap::Subcommand>(
    name: &'static str,
    run: impl FnOnce(&S) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    let about = SEPARATE.iter().find(|it| name.ends_with(it.name)).map(|it| it.about);
    let command = S::augment_subcommands(root(name)).subcommand_required(true).arg_required_else_help(true);
    let command = about.into_iter().fold(command, Command::about);
    main(command, |matches| run(&read(S::from_arg_matches(matches))?))
}

fn read<T>(arguments: Result<T, clap::Error>) -> anyhow::Result<T> {
    // Cannot fail: the command line was already parsed with the same definition.
    arguments.map_err(|error| anyhow::anyhow!("{error}"))
}

/// Parses the command line, runs the program and reports a failure in one line on standard error.
pub fn main(command: Command, run: impl FnOnce(&ArgMatches) -> anyhow::Result<ExitCode>) -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == description::OPTION) {
        return exit_code(description::print(command).map(|()| ExitCode::SUCCESS));
    }
    let matches = match command.clone().try_get_matches() {
        Ok(matches) => matches,
        Err(error) if is_help(&error) => return print_help(&error),
        Err(error) => {
            print_stderr(format_args!("tickpath: {}", usage_line(&command, &error)));
            return ExitCode::from(USAGE);
        }
    };
    if let Ok(caller) = std::env::var(CALLER)
        && caller != version()
    {
        print_stderr(format_args!(
            "warning: tickpath is {caller}, and this program beside it {}: cargo build --release --features full \
             builds all of them",
            version()
        ));
    }
    exit_code(run(&matches))
}

/// Error: the command line lacks an argument. The string names the argument and the remedy.
#[derive(Debug)]
pub(crate) struct MissingArgument(pub(crate) &'static str);

impl fmt::Display for MissingArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MissingArgument {}

/// Returns the exit code for a result. Prints an error as one line on standard error.
pub fn exit_code(ended: anyhow::Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        print_stderr(format_args!("tickpath: {}", one_line(&error)));
        if error.is::<MissingArgument>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
    })
}

/// Returns the separate program that the command line names, if any, and its arguments. `help NAME` becomes
/// `NAME --help`.
#[must_use]
pub fn separate_named(
    mut args: impl Iterator<Item = OsString>,
) -> Option<(&'static Separate, Vec<OsString>)> {
    let first = args.next()?;
    let is_help = first == "help";
    let name = if is_help { args.next()? } else { first };
    let found = SEPARATE.iter().find(|it| name == it.name)?;
    Some((found, args.chain(is_help.then(|| "--help".into())).collect()))
}

/// Returns the arguments of this process after the command's name.
pub fn arguments_of_command() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(2)
}

/// Returns a separate program's command line, which that program describes; `None` if it is not built.
#[must_use]
pub fn command_of_separate(name: &'static str) -> Option<Command> {
    let path = sibling_path(&std::env::current_exe().ok()?, name);
    let output = std::process::Command::new(path).arg(description::OPTION).output().ok()?;
    description::parse(name, &output.stdout)
}

/// Replaces this process by the program `tickpath-NAME`. Returns only on failure; the error says that `task`
/// needs the program.
pub fn run_separate(
    name: &str,
    feature: &str,
    task: &str,
    args: impl IntoIterator<Item = OsString>,
) -> anyhow::Error {
    let path = match std::env::current_exe() {
        Ok(this) => sibling_path(&this, name),
        Err(error) => return anyhow::anyhow!("cannot find the folder of this program: {error}"),
    };
    let error = std::process::Command::new(&path).args(args).env(CALLER, version()).exec();
    match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!(
            "{task} takes the program tickpath-{name}, which is not beside {}; build it with: cargo build --release \
             --features {feature}",
            path.with_file_name("tickpath").display()
        ),
        _ => anyhow::anyhow!("cannot run {}: {error}", path.display()),
    }
}

fn sibling_path(this: &Path, name: &str) -> PathBuf {
    this.with_file_name(format!("tickpath-{name}"))
}

/// Formats an error with its causes in one line, without causes that an earlier message already quotes.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.replace('\n', "; ")
}

/// Prints the help. A reader that disconnects early is not an error.
fn print_help(help: &clap::Error) -> ExitCode {
    match help.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            print_stderr(format_args!("tickpath: cannot write to standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => u8::try_from(help.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// Returns whether clap's "error" is the help, the version, or the list of commands for a missing command.
fn is_help(error: &clap::Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// Formats a usage error in one line: the error, a suggestion if any, and the help command.
fn usage_line(command: &Command, error: &clap::Error) -> String {
    let text = error.to_string();
    let message = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let message: Vec<&str> = message
        .filter(|line| !line.is_empty())
        .map(|line| line.strip_prefix("error: ").unwrap_or(line))
        .collect();
    let (path, found) = command_path(command.clone(), std::env::args().skip(1));
    let sample = sample_of(&found, error).unwrap_or_default();
    format!("{}{sample}; see {path} --help", message.join("; ").replace(":;", ":"))
}

/// Returns the help text of `--config`, which names the shipped sample, if that option is missing.
fn sample_of(command: &Command, error: &clap::Error) -> Option<String> {
    let is_missing =
        error.kind() == ErrorKind::MissingRequiredArgument && error.to_string().contains("--config");
    let flag = command.get_arguments().find(|flag| flag.get_long() == Some("config"))?;
    is_missing.then(|| Some(format!(" ({})", flag.get_help()?)))?
}

/// Returns the full name and the definition of the command that the arguments select.
fn command_path(mut command: Command, args: impl Iterator<Item = String>) -> (String, Command) {
    let mut path = command.get_name().to_owned();
    for arg in args {
        // Skip options and their values.
        let Some(found) = command.find_subcommand(&arg).cloned() else { continue };
        path = format!("{path} {arg}");
        command = found;
    }
    (path, command)
}
