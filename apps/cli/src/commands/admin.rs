//! `tickpath admin`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tickpath_admin::AskError;
use tickpath_config::{FileKind, InstrumentConfig, Instruments, say, tell};
use tickpath_exchange::hash_password;

use super::{INTERRUPTED, json, password};
use crate::program::MissingArgument;

mod status;
mod users;

/// How long a venue may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Commands to a running venue, over its Unix socket.
///
/// The venue's configuration names the socket: admin.socket = "venue.sock". Whoever runs the venue, and root, may
/// use it. docs/admin.md has the protocol.
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
    /// What the venue has done so far
    Status,
    /// The users: who is connected or killed, and the limits in force
    Users,
    /// Add the users that stand in the venue's configuration behind those that it has
    ///
    /// Write the user into the configuration that the venue was started with, behind all others, then say so here: from
    /// then on it may log in. Whatever else was changed there waits for the next start. hash-password makes a
    /// password_hash.
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock reload-users")]
    ReloadUsers,
    /// Let an instrument, or all, enter a phase of the day
    ///
    /// pre-open, auction, pre-close: orders are taken and do not trade, and the indicative price is published. open: the
    /// auction ends with its cross, and trading begins. close: the closing cross, then a halt. halt, resume: without an
    /// auction. start, end-of-day: of the whole venue.
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock phase ALPHA auction\n  tickpath admin --socket venue.sock phase all open"
    )]
    Phase {
        /// Its symbol, or `all`
        symbol: String,
        /// start, pre-open, open, auction, halt, resume, pre-close, close or end-of-day
        phase: String,
    },
    /// Pause trading before a trade further from the reference price than a width
    ///
    /// A pause ends by an auction after day.pause of the configuration, and the band moves to the price of its cross.
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock price-band all 5%\n  tickpath admin --socket venue.sock price-band ALPHA 2.50 101.00\n  tickpath admin --socket venue.sock price-band ALPHA off"
    )]
    PriceBand {
        /// Its symbol, or `all`
        symbol: String,
        /// A share of the reference price as 5%, a distance as 2.50, or `off`
        width: String,
        /// The middle of the band, in place of the instrument's reference price
        reference: Option<String>,
    },
    /// Make an execution void: both owners and the public are told; orders and books stay as they are
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock break 1234 erroneous")]
    Break {
        /// The match number, as executions carry it
        match_number: u64,
        /// erroneous, consent, supervisory or external; supervisory when absent
        reason: Option<String>,
    },
    /// Add an instrument, or suspend one
    #[command(subcommand)]
    Instrument(InstrumentCommand),
    /// Change a user's limits, until the configuration's are changed
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock limits ANNA open-orders=100 notional=250000.00\n  tickpath admin --socket venue.sock limits ANNA messages=1000/200 qty=none"
    )]
    Limits {
        /// The user's name
        user: String,
        /// messages=PER_SECOND[/BURST], open-orders=N, qty=N, notional=PRICE; `none` in place of a value for no limit
        #[arg(required = true, value_name = "LIMIT=VALUE")]
        limits: Vec<String>,
    },
    /// Let a user enter orders in an instrument, until the configuration's list of the user's instruments is changed
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock allow ANNA GAMMA")]
    Allow {
        /// The user's name
        user: String,
        /// The instrument's symbol
        symbol: String,
    },
    /// Refuse a user's new orders in an instrument; its open ones stay
    #[command(after_help = "Example:\n  tickpath admin --socket venue.sock disallow ANNA GAMMA")]
    Disallow {
        /// The user's name
        user: String,
        /// The instrument's symbol
        symbol: String,
    },
    /// End the day: trading ends, day orders are cancelled, numbers start anew
    EndOfDay,
    /// Halt an instrument
    Halt {
        /// Its symbol
        symbol: String,
    },
    /// Let an instrument trade again
    Resume {
        /// Its symbol
        symbol: String,
    },
    /// Refuse a user's new orders from now on and cancel its open ones
    Kill {
        /// The user's name
        user: String,
    },
    /// Take a killed user's orders again
    Unkill {
        /// The user's name
        user: String,
    },
    /// Refuse everybody's new orders from now on and cancel all open ones
    KillAll,
    /// Take orders again, but for users who were killed alone
    UnkillAll,
    /// Close a user's connection; the user may log in again
    Disconnect {
        /// The user's name
        user: String,
    },
    /// Forgive the wrong passwords of a user
    Unlock {
        /// The user's name
        user: String,
    },
    /// Take no new orders, let clients cancel and go, then stop
    Drain,
    /// Read a password from standard input and print its hash for a configuration
    HashPassword,
}

#[derive(clap::Subcommand)]
enum InstrumentCommand {
    /// Add an instrument, halted: phase SYMBOL open lets it trade
    #[command(
        after_help = "Examples:\n  tickpath admin --socket venue.sock instrument add GAMMA 25.00 tick=0.01 lot=1 collar=10%\n  tickpath admin --socket venue.sock instrument add --file more.toml"
    )]
    Add {
        /// Its symbol
        #[arg(required_unless_present = "file", requires = "reference_price")]
        symbol: Option<String>,
        /// Where it starts
        reference_price: Option<String>,
        /// tick=PRICE, lot=N, max=N, collar=SHARE, as in an instrument file
        #[arg(value_name = "FIELD=VALUE")]
        fields: Vec<String>,
        /// An instrument file, of which all are added
        #[arg(long, value_name = "FILE", conflicts_with = "symbol")]
        file: Option<PathBuf>,
    },
    /// Halt an instrument and cancel all orders in it
    Suspend {
        /// Its symbol
        symbol: String,
    },
}

impl InstrumentCommand {
    /// The lines that the venue is sent.
    fn lines(&self) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            InstrumentCommand::Suspend { symbol } => vec![format!("instrument suspend {symbol}")],
            InstrumentCommand::Add { file: Some(file), .. } => {
                let instruments: Instruments = FileKind::Instruments.load(file)?;
                instruments.definitions().with_context(|| file.display().to_string())?;
                instruments.instruments.iter().map(line_of).collect()
            }
            InstrumentCommand::Add { symbol, reference_price, fields, .. } => {
                let words = symbol.iter().chain(reference_price).chain(fields);
                vec![words.fold("instrument add".to_owned(), |line, word| format!("{line} {word}"))]
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
            // Each is added by itself: the first that is refused ends it.
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

/// Sends a line and shows the answer.
fn command_venue(args: &Args, line: &str) -> anyhow::Result<ExitCode> {
    let socket = args
        .socket
        .as_deref()
        .ok_or(MissingArgument("name the venue's socket: --socket PATH, such as configs/exchange.sock"))?;
    let answer = ask(socket, line).with_context(|| format!("the venue at {}", socket.display()))?;
    if let Some(path) = &args.json {
        json::write(path, &answer.to_string())?;
    }
    if answer["ok"] != true {
        bail!("the venue refused '{line}': {}", answer["error"].as_str().unwrap_or("no reason given"));
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        say(describe(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line there, one line back.
fn ask(socket: &Path, line: &str) -> anyhow::Result<Value> {
    if line.contains(['\n', '\r']) {
        bail!("a name is one word");
    }
    tickpath_admin::ask(socket, line, ANSWER_TIMEOUT).or_else(|error| match error {
        AskError::Connect(error) => Err(error)
            .context("cannot connect: is it running, and has its configuration [admin] with this socket?"),
        AskError::Answer(error) => Err(error).context("no answer"),
        AskError::NotJson(error) => Err(error).context("the answer is no JSON"),
        _ => bail!("the connection was refused: only the user who runs the venue, and root, may command it"),
    })
}

/// The answer for people.
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
    let Some(password) = password::ask().context("standard input")? else {
        tell("tickpath: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let hash = str::from_utf8(&password)
        .ok()
        .and_then(hash_password)
        .context("a password has 1 to 10 ASCII characters: write it to standard input")?;
    say(hash)?;
    Ok(ExitCode::SUCCESS)
}
