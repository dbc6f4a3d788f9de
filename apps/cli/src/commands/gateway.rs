//! `tickpath gateway`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde_json::json;
use tickpath_admin::PasswordHash;
use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stdout, thousands};
use tickpath_gateway::admin::{admin_socket_of, call};
use tickpath_gateway::replay::{Difference, Replayed, replay};
use tickpath_gateway::users::PASSWORD_LEN_MAX;

use super::{INTERRUPTED, json, password};
use crate::program::MissingArgument;

mod flags;
mod log;
mod status;

use flags::Flags;

/// Run a gateway until Ctrl-C: one process holds the venue's connections, and local clients share it
///
/// With a command: control a running gateway, or read its log. Clients: docs/clients.md; keys of the file:
/// docs/gateway-config.md.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath gateway --config configs/gateway.toml
  tickpath gateway --config configs/gateway.toml --dry-run --metrics-listen-address 26440
  tickpath gateway status --config configs/gateway.toml
  tickpath gateway kill --config configs/gateway.toml      no order leaves any more, open ones are cancelled
  tickpath gateway release --config configs/gateway.toml --confirm deribit
  tickpath gateway limits --config configs/gateway.toml A1 order_size_max=10 open_orders_max=5
  tickpath gateway limits --socket configs/deribit.admin.sock A1 none
  tickpath gateway log log/2026-W47/deribit/1795362361000 --kind request,venue-out")]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the status of a running gateway
    Status(Place),
    /// Stop all trading of a running gateway and cancel all open orders; a restart keeps this state
    Kill(Place),
    /// Let a killed gateway accept orders again
    Release {
        #[command(flatten)]
        place: Place,
        /// Confirmation: the gateway's name
        #[arg(long, value_name = "NAME")]
        confirm: String,
    },
    /// Publish limits of an account, or withdraw them with `none`
    Limits {
        /// The gateway's name, unless --config or --socket selects it; the account; then order_size_max=N,
        /// notional_max=N, open_orders_max=N, or none
        #[arg(required = true, num_args = 2.., value_names = ["[NAME] ACCOUNT", "KEY=VALUE"])]
        words: Vec<String>,
        #[command(flatten)]
        socket: Socket,
    },
    /// Print event logs, which hold all messages
    Log(Box<log::Args>),
    /// Replay the recorded inputs of a run through the gateway's core; exit code 1 when the output differs
    Replay {
        /// The files of one run in order, from the first on
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Write the result as JSON, `-` for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Read a user's password from standard input and print its hash for the configuration
    HashPassword,
}

/// The target gateway of a command.
#[derive(clap::Args)]
struct Place {
    /// Name of a gateway that this user has started; not needed with --config
    name: Option<String>,
    #[command(flatten)]
    socket: Socket,
}

#[derive(clap::Args)]
struct Socket {
    /// Admin socket of the gateway
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Write the answer as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(command) = &args.command else { return run_gateway(&args.flags) };
    if let Some(flag) = args.flags.of_a_start() {
        anyhow::bail!(
            "{flag} is for a gateway that is started, which this command does not do: leave it out"
        );
    }
    let is_offline = matches!(command, Command::Log(_) | Command::Replay { .. } | Command::HashPassword);
    if let Some(flag) = args.flags.of_a_place().filter(|_| is_offline) {
        anyhow::bail!("{flag} says which gateway is meant, and this command asks none: leave it out");
    }
    match command {
        Command::Status(place) => send_command(&args.flags, place.name.as_deref(), &place.socket, "status"),
        Command::Kill(place) => send_command(&args.flags, place.name.as_deref(), &place.socket, "kill"),
        Command::Release { place, confirm } => {
            let line = format!("release {confirm}");
            send_command(&args.flags, place.name.as_deref(), &place.socket, &line)
        }
        Command::Limits { words, socket } => {
            let (name, account, limits) = limits_of(words)?;
            let line = format!("limits {account} {}", limits.join(" "));
            send_command(&args.flags, name, socket, &line)
        }
        Command::Log(args) => log::run(args),
        Command::Replay { files, json } => replay_log(files, json.as_deref()),
        Command::HashPassword => hash_password(),
    }
}

fn run_gateway(flags: &Flags) -> anyhow::Result<ExitCode> {
    let (config, file) = flags.config()?;
    tickpath_gateway::run::run(&config, Some(&file), None, &StopSignal::on_signals()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Splits the words into the optional name of the gateway, the account, and its limits.
fn limits_of(words: &[String]) -> anyhow::Result<(Option<&str>, &str, &[String])> {
    let is_limit = |word: &String| word.contains('=') || word == "none";
    let from = words.iter().skip(1).position(is_limit).map_or(words.len(), |place| place + 1);
    let (names, limits) = words.split_at(from);
    match names {
        [account] if !limits.is_empty() => Ok((None, account, limits)),
        [name, account] if !limits.is_empty() => Ok((Some(name), account, limits)),
        _ => anyhow::bail!("write tickpath gateway limits [NAME] ACCOUNT KEY=VALUE ..., or none"),
    }
}

/// Returns the admin socket of the target gateway: by path, else by configuration, else by name.
fn socket_of(flags: &Flags, name: Option<&str>, socket: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(socket) = socket {
        return Ok(socket.to_owned());
    }
    match name.or(flags.name()) {
        Some(name) if !flags.has_config() => Ok(admin_socket_of(name)),
        None if !flags.has_config() => {
            Err(MissingArgument("say which gateway: its NAME, --config FILE or --socket PATH").into())
        }
        _ => {
            let (config, file) = flags.config()?;
            let is_it = name.is_none_or(|name| name == config.name);
            ensure!(is_it, "{} is of the gateway {}: leave the name out", file.display(), config.name);
            Ok(config.admin_socket())
        }
    }
}

fn send_command(flags: &Flags, name: Option<&str>, place: &Socket, line: &str) -> anyhow::Result<ExitCode> {
    json::check(place.json.as_deref())?;
    let path = socket_of(flags, name, place.socket.as_deref())?;
    let answer = call(&path, line)?;
    if let Some(warning) = answer["warning"].as_str() {
        print_stderr(format_args!("tickpath: {warning}"));
    }
    let is_on_output = place.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if !is_on_output {
        print_stdout(status::to_text(&answer, tickpath_agent::TscClock::shared().now().0))?;
    }
    if let Some(path) = &place.json {
        json::write(path, &serde_json::to_string_pretty(&answer)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Replays the recorded inputs, and reports whether the outputs equal the recorded ones.
fn replay_log(files: &[PathBuf], json_file: Option<&Path>) -> anyhow::Result<ExitCode> {
    json::check(json_file)?;
    let Replayed { inputs, outputs, difference, is_open } = replay(files)?;
    if let Some(path) = json_file {
        let difference = difference
            .as_ref()
            .map(|it| json!({ "sequence": it.sequence, "recorded": it.recorded, "found": it.found }));
        let report =
            json!({ "inputs": inputs, "outputs": outputs, "is_open": is_open, "difference": difference });
        json::write(path, &serde_json::to_string_pretty(&report)?)?;
    }
    let counts = format!("{} inputs, {} outputs", thousands(inputs), thousands(outputs));
    if let Some(Difference { sequence, recorded, found }) = difference {
        let [recorded, found] = [recorded, found].map(|words| words.unwrap_or_else(|| "nothing".to_owned()));
        print_stderr(format_args!(
            "tickpath: after {counts} input {sequence} led to something else; recorded: {recorded}; now: {found}"
        ));
        return Ok(ExitCode::FAILURE);
    }
    if json_file.is_none_or(|path| path.as_os_str() != "-") {
        let end = if is_open { "; the log ends in the middle of the run" } else { "" };
        print_stdout(format_args!("{counts}: the same, byte for byte{end}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn hash_password() -> anyhow::Result<ExitCode> {
    let Some(password) = password::prompt().context("standard input")? else {
        print_stderr("tickpath: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    ensure!(
        (1..=PASSWORD_LEN_MAX).contains(&password.len()),
        "a password has 1 to {PASSWORD_LEN_MAX} bytes: write it to standard input"
    );
    print_stdout(PasswordHash::make(&password).context("the system gives no random numbers")?)?;
    Ok(ExitCode::SUCCESS)
}
