//! The program `tickpath`.

// They panic where nobody reads: `say`, `tell` and `Console` of `tickpath-config` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use tickpath_agent::CountingAllocator;
use tickpath_config::tell;

/// Lets every agent's duty cycles be watched for allocations; costs an addition for each.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A complete low-latency electronic trading system on one machine.
///
/// Start with `tickpath demo`: a whole market trades on this machine, and at the end you see where each
/// nanosecond of a trade went.
#[derive(Parser)]
#[command(name = "tickpath", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

/// Exit code of a command line that cannot be read, as shells have it.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if is_help(&error) => return print_help(&error),
        Err(error) => {
            tell(format_args!("tickpath: {}", usage_line(&error)));
            return ExitCode::from(USAGE);
        }
    };
    match commands::run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            tell(format_args!("tickpath: {}", one_line(&error)));
            ExitCode::FAILURE
        }
    }
}

/// What failed, in what, and what to do: the causes in one line, without those that an error before them quotes.
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

/// Prints what was asked for, or the list of commands; a reader that went away has what it wanted.
fn print_help(help: &clap::Error) -> ExitCode {
    match help.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            tell(format_args!("tickpath: cannot write to standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => u8::try_from(help.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// Help and version are asked for; a missing command is answered by the list of commands.
fn is_help(error: &clap::Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// What is wrong with the command line, what was perhaps meant, and which help to ask for, in one line.
fn usage_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let told = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let told: Vec<&str> = told
        .filter(|line| !line.is_empty())
        .map(|line| line.strip_prefix("error: ").unwrap_or(line))
        .collect();
    format!("{}; see {} --help", told.join("; ").replace(":;", ":"), command_named(std::env::args().skip(1)))
}

/// The command that the arguments begin with, as far as there is one.
fn command_named(args: impl Iterator<Item = String>) -> String {
    let mut command = Cli::command();
    let mut path = command.get_name().to_owned();
    for arg in args {
        let Some(found) = command.find_subcommand(&arg).cloned() else { break };
        path = format!("{path} {arg}");
        command = found;
    }
    path
}
