//! The program `tickpath`.

use std::process::ExitCode;

use clap::{FromArgMatches, Subcommand};
use tickpath::commands::{self, Command};
use tickpath::program::{self, SEPARATE, Separate};

const ABOUT: &str = "A complete low-latency electronic trading system on one machine";
const LONG_ABOUT: &str = "A complete low-latency electronic trading system on one machine.\n\n\
    Start with `tickpath demo`: a whole market trades on this machine, and at the end you see where each nanosecond of a \
    trade went.";

fn main() -> ExitCode {
    if let Some((separate, args)) = program::separate_named(std::env::args_os().skip(1)) {
        return program::exit_code(Err(program::run_separate(
            separate.name,
            separate.feature,
            "this command",
            args,
        )));
    }
    let named = |separate: Separate| clap::Command::new(separate.name).about(separate.about);
    let described =
        |separate: Separate| program::command_of_separate(separate.name).unwrap_or_else(|| named(separate));
    program::main(root(named), |matches| {
        commands::run(Command::from_arg_matches(matches)?, || root(described))
    })
}

/// Returns the command line of `tickpath`, with a sub-command for each separate program.
fn root(separate: impl FnMut(Separate) -> clap::Command) -> clap::Command {
    Command::augment_subcommands(program::root("tickpath"))
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(SEPARATE.map(separate))
}
