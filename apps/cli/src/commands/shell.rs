//! `tickpath shell`.

use std::path::PathBuf;
use std::process::ExitCode;

use tickpath_config::print_stderr;
use tickpath_shell::{
    Ended, GrantName, Interrupt, Module, RunOptions, ShellConfig, Source, run as run_shell,
};

use super::{INTERRUPTED, json};

/// Trade at a venue with Deribit's API (test.deribit.com, or one on this machine) or at a native venue
///
/// At a native venue (ouch://) the same commands use OUCH, drop copies and GLIMPSE; the configuration has
/// their addresses. A command returns when the venue has answered; a time-out is an error. The API key is
/// read from the variables TICKPATH_CLIENT_ID and TICKPATH_CLIENT_SECRET, from --key-file, or from the place
/// named in the configuration.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath shell                                       at test.deribit.com; help lists the commands
  tickpath shell --url ws://127.0.0.1:26420/ws/api/v2 -c 'ticker BTC-PERPETUAL; book BTC-PERPETUAL 10'
  tickpath shell --key-file keys.toml -c 'buy BTC-PERPETUAL 10 50000 post_only; orders; cancel_all'
  tickpath shell --dry-run -c 'sell BTC-PERPETUAL 10' --json -
  tickpath shell --config configs/shell-native.toml -c 'buy ALPHA 100 99.50; orders; positions'
  tickpath shell --script morning.txt")]
pub struct Args {
    /// The venue, instead of the configuration's: wss://..., ws://... or ouch://HOST:PORT
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Configuration file, such as configs/shell.toml. Real money requires `production = true` and all limits
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File of mode 0600 with client_id = "..." and client_secret = "..."
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Authentication: client_signature (the default), or client_credentials, which sends the secret itself
    #[arg(long, value_name = "HOW")]
    grant: Option<GrantName>,
    /// Scope of the login, such as 'account:read_write trade:read_write' [default: all that the key allows]
    #[arg(long, value_name = "WORDS")]
    scope: Option<String>,
    /// Trust only the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Run these commands, separated by `;`, and exit
    #[arg(short = 'c', long = "command", value_name = "COMMANDS", conflicts_with = "script")]
    commands: Option<String>,
    /// Run the commands of a file, `-` for standard input, and exit
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Continue after a failed command; the exit code reports the failure
    #[arg(short = 'k', long)]
    keep_going: bool,
    /// Check orders and show the requests without sending them
    #[arg(long)]
    dry_run: bool,
    /// Write the results of the commands as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Log these modules on standard error: net, session, auth, orders, market, other
    #[arg(long, value_name = "MODULES", value_delimiter = ',')]
    log: Vec<Module>,
    /// Do not show a pane for subscriptions on a terminal
    #[arg(long, visible_alias = "plain")]
    no_tui: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut config = match &args.config {
        Some(path) => ShellConfig::load(path)?,
        None => ShellConfig::default(),
    };
    if let Some(url) = &args.url {
        config = config.with_url(url);
    }
    if args.ca_file.is_some() {
        config.ca_file.clone_from(&args.ca_file);
    }
    if let Some(grant) = args.grant {
        config.grant = grant;
    }
    if args.scope.is_some() {
        config.scope.clone_from(&args.scope);
    }
    json::check(args.json.as_deref())?;
    let source = match (&args.commands, &args.script) {
        (Some(commands), _) => Source::Text(commands.clone()),
        (None, Some(script)) => Source::Script(script.clone()),
        (None, None) => Source::Person,
    };
    let options = RunOptions {
        config,
        config_file: args.config.clone(),
        key_file: args.key_file.clone(),
        source,
        is_dry_run: args.dry_run,
        keeps_going: args.keep_going,
        is_silent: args.json.as_ref().is_some_and(|path| path.as_os_str() == "-"),
        log: args.log.clone(),
        is_reported: args.json.is_some(),
        has_no_pane: args.no_tui,
    };
    let report = run_shell(&options, Interrupt::on_signals()?)?;
    if let Some(path) = &args.json {
        json::write(path, &serde_json::to_string_pretty(&report)?)?;
    }
    Ok(match report.ended {
        Ended::Done => ExitCode::SUCCESS,
        Ended::Failed => ExitCode::FAILURE,
        Ended::Interrupted => {
            print_stderr("tickpath: interrupted");
            ExitCode::from(INTERRUPTED)
        }
    })
}
