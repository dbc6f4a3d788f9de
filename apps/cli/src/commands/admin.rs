//! `tickpath admin`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tickpath_admin::SendLineError;
use tickpath_config::{FileKind, InstrumentConfig, Instruments, print_stderr, print_stdout};
use tickpath_exchange::hash_password;

use super::{INTERRUPTED, json, password};
use crate::program::MissingArgument;

mod status;
mod users;

pub(super) use status::market_table;

/// Maximum wait for the venue's answer to a command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Commands to a running venue, over its Unix socket.
///
/// The venue's configuration names the socket: admin.socket = "venue.sock". The user who runs the venue, and
/// root, may use it. docs/admin.md documents the protocol.
#[derive(clap::Args)]
pub struct Args {
    /// The venue's socket
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Write the venue's answer as JSON, `-` for standard output
    #[arg(long, value_name = "FILE", global = true)]
    json: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the venue's counters and the state of its instruments
    Status,
    /// List the users: connected or killed, and the limits in force
    Users,
    /// Add the users that were appended to the venue's configuration
    ///
    /// Add the user to the configuration that the venue was started with, after all others, then run this
    /// command. The user may log in at once. Other changes of the file take effect at the next start.
    /// hash-password prints a password_hash.
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock reload-users")]
    ReloadUsers,
    /// Start a phase of the day for an instrument, or for all
    ///
    /// pre-open, auction, pre-close: orders are accepted but do not trade, and the indicative price is
    /// published. open: the auction ends with its cross, and trading begins. close: the closing cross, then a
    /// halt. halt and resume use no auction; start and end-of-day apply to the whole venue.
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock phase ALPHA auction\n  tickpath admin --socket venue.sock phase all open"
    )]
    Phase {
        /// The instrument's symbol, or `all`
        symbol: String,
        /// start, pre-open, open, auction, halt, resume, pre-close, close or end-of-day
        phase: String,
    },
    /// Pause trading before a trade whose price is outside a band around the reference price
    ///
    /// The pause lasts day.pause of the configuration. An auction ends it, and the band moves to its price.
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock price-band all 5%\n  tickpath admin --socket venue.sock price-band ALPHA 2.50 101.00\n  tickpath admin --socket venue.sock price-band ALPHA off"
    )]
    PriceBand {
        /// The instrument's symbol, or `all`
        symbol: String,
        /// A percentage of the reference price such as 5%, a distance such as 2.50, or `off`
        width: String,
        /// The centre of the band, instead of the instrument's reference price
        reference: Option<String>,
    },
    /// Break a trade: notify both owners and the public; orders and books stay unchanged
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock break 1234 erroneous")]
    Break {
        /// Match number of the trade
        match_number: u64,
        /// erroneous, consent, supervisory or external; supervisory when absent
        reason: Option<String>,
    },
    /// Add an instrument, or suspend one
    #[command(subcommand)]
    Instrument(InstrumentCommand),
    /// Change a user's limits, until the configuration changes them
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock limits ANNA open-orders=100 notional=250000.00\n  tickpath admin --socket venue.sock limits ANNA messages=1000/200 qty=none"
    )]
    Limits {
        /// The user's name
        user: String,
        /// messages=PER_SECOND[/BURST], open-orders=N, qty=N, notional=PRICE; `none` as a value for no limit
        #[arg(required = true, value_name = "LIMIT=VALUE")]
        limits: Vec<String>,
    },
    /// Let a user enter orders in an instrument, until the configuration changes the user's list
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock allow ANNA GAMMA")]
    Allow {
        /// The user's name
        user: String,
        /// The instrument's symbol
        symbol: String,
    },
    /// Refuse a user's new orders in an instrument; its open orders stay
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock disallow ANNA GAMMA")]
    Disallow {
        /// The user's name
        user: String,
        /// The instrument's symbol
        symbol: String,
    },
    /// End the day: stop trading, cancel day orders, and reset order numbers
    EndOfDay,
    /// Halt an instrument
    Halt {
        /// The instrument's symbol
        symbol: String,
    },
    /// Resume trading in an instrument
    Resume {
        /// The instrument's symbol
        symbol: String,
    },
    /// Refuse a user's new orders from now on and cancel its open orders
    Kill {
        /// The user's name
        user: String,
    },
    /// Accept a killed user's orders again
    Unkill {
        /// The user's name
        user: String,
    },
    /// Refuse all users' new orders from now on and cancel all open orders
    KillAll,
    /// Accept orders again, except from users that were killed individually
    UnkillAll,
    /// Close a user's connection; the user may log in again
    Disconnect {
        /// The user's name
        user: String,
    },
    /// Reset the count of a user's wrong passwords
    Unlock {
        /// The user's name
        user: String,
    },
    /// Accept no new orders, let clients cancel and disconnect, then stop
    Drain,
    /// Read a password from standard input and print its hash for a configuration
    HashPassword,
}

#[derive(clap::Subcommand)]
enum InstrumentCommand {
    /// Add a halted instrument; `phase SYMBOL open` starts its trading
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock instrument add GAMMA 25.00 tick=0.01 lot=1 collar=10%\n  tickpath admin --socket venue.sock instrument add --file more.toml"
    )]
    Add {
        /// The instrument's symbol
        #[arg(required_unless_present = "file", requires = "reference_price")]
        symbol: Option<String>,
        /// The reference price
        reference_price: Option<String>,
        /// tick=PRICE, lot=N, max=N, collar=PERCENT, as in an instrument file
        #[arg(value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        /// Add all instruments of this instrument file
        #[arg(long, value_name = "FILE", conflicts_with = "symbol")]
        file: Option<PathBuf>,
    },
    /// Halt an instrument and cancel all of its orders
    Suspend {
        /// The instrument's symbol
        symbol: String,
    },
}

impl InstrumentCommand {
    /// Returns the command lines to send to the venue, one per instrument.
    fn lines(&self) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            InstrumentCommand::Suspend { symbol } => vec![format!("instrument suspend {symbol}")],
            InstrumentCommand::Add { file: Some(file), .. } => {
                let instruments: Instruments = FileKind::Instruments.load(file)?;
                instruments.definitions().with_context(|| file.display().to_string())?;
                instruments.instruments.iter().map(line_of).collect()
            }
            InstrumentCommand::Add { symbol, reference_price, fields, .. } => {
                let arguments = symbol.iter().chain(reference_price).chain(fields);
                vec![arguments.fold("instrument add".to_owned(), |line, word| format!("{line} {word}"))]
            }
        })
    }
}

fn line_of(instrument: &InstrumentConfig) -> String {
    let InstrumentConfig { symbol, reference_price, tick_size, lot_size, max_qty, collar } = instrument;
    format!(
        "instrument add {symbol} {reference_price} tick={tick_size} lot={lot_size} max={max_qty} collar={collar}"
    )
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let line = match &args.command {
        Command::HashPassword => return print_hash(),
        Command::Instrument(command) => {
            // Each instrument is a separate command; after a refusal the remaining ones are not sent.
            let lines = command.lines()?;
            return lines.iter().try_fold(ExitCode::SUCCESS, |_, line| command_venue(args, line));
        }
        Command::Phase { symbol, phase } => format!("phase {symbol} {phase}"),
        Command::PriceBand { symbol, width, reference } => {
            format!("price-band {symbol} {width} {}", reference.as_deref().unwrap_or(""))
        }
        Command::Break { match_number, reason } => {
            format!("break {match_number} {}", reason.as_deref().unwrap_or(""))
        }
        Command::Limits { user, limits } => format!("limits {user} {}", limits.join(" ")),
        Command::Allow { user, symbol } => format!("allow {user} {symbol}"),
        Command::Disallow { user, symbol } => format!("disallow {user} {symbol}"),
        Command::EndOfDay => "end-of-day".to_owned(),
        Command::Status => "status".to_owned(),
        Command::Users => "users".to_owned(),
        Command::ReloadUsers => "reload-users".to_owned(),
        Command::Halt { symbol } => format!("halt {symbol}"),
        Command::Resume { symbol } => format!("resume {symbol}"),
        Command::Kill { user } => format!("kill {user}"),
        Command::Unkill { user } => format!("unkill {user}"),
        Command::KillAll => "kill-all".to_owned(),
        Command::UnkillAll => "unkill-all".to_owned(),
        Command::Disconnect { user } => format!("disconnect {user}"),
        Command::Unlock { user } => format!("unlock {user}"),
        Command::Drain => "drain".to_owned(),
    };
    command_venue(args, line.trim_end())
}

/// Sends a command line and prints the answer.
fn command_venue(args: &Args, line: &str) -> anyhow::Result<ExitCode> {
    let socket = args
        .socket
        .as_deref()
        .ok_or(MissingArgument("name the venue's socket: --socket PATH, such as configs/exchange.sock"))?;
    let answer = send_request(socket, line).with_context(|| format!("the venue at {}", socket.display()))?;
    if let Some(path) = &args.json {
        json::write(path, &answer.to_string())?;
    }
    if answer["ok"] != true {
        bail!("the venue refused '{line}': {}", answer["error"].as_str().unwrap_or("no reason given"));
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        print_stdout(describe(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends one command line and returns the answer.
fn send_request(socket: &Path, line: &str) -> anyhow::Result<Value> {
    if line.contains(['\n', '\r']) {
        bail!("a name must be one word");
    }
    tickpath_admin::send_line(socket, line, ANSWER_TIMEOUT).or_else(|error| match error {
        SendLineError::Connect(error) => Err(error)
            .context("cannot connect: is it running, and has its configuration [admin] with this socket?"),
        SendLineError::Answer(error) => Err(error).context("no answer"),
        SendLineError::NotJson(error) => Err(error).context("the answer is not JSON"),
        _ => bail!("the connection was refused: only the user who runs the venue, and root, may command it"),
    })
}

/// Formats the answer as text.
fn describe(answer: &Value) -> String {
    if let Some(users) = answer["users"].as_array() {
        return users::describe(users);
    }
    if let Some(added) = answer["added"].as_array() {
        let names: Vec<&str> = added.iter().filter_map(Value::as_str).collect();
        return match names[..] {
            [] => "no user is new in the venue's configuration".to_owned(),
            _ => format!("added {}: {}", names.join(", "), in_the_log(answer)),
        };
    }
    match answer.get("logins") {
        None => format!("done: {}", in_the_log(answer)),
        Some(_) => status::describe(answer),
    }
}

fn in_the_log(answer: &Value) -> String {
    match answer["commands"].as_u64().unwrap_or(0) {
        1 => "1 command in the log".to_owned(),
        commands => format!("{commands} commands in the log"),
    }
}

fn print_hash() -> anyhow::Result<ExitCode> {
    let Some(password) = password::prompt().context("standard input")? else {
        print_stderr("tickpath: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let hash = str::from_utf8(&password)
        .ok()
        .and_then(hash_password)
        .context("a password has 1 to 10 ASCII characters: write it to standard input")?;
    print_stdout(hash)?;
    Ok(ExitCode::SUCCESS)
}
