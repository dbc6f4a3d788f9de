//! Common parts of the two clients: flags, connection, event loop.
//!
//! ```
//! use clap::Parser;
//! use gateway_clients::Args;
//!
//! let args = Args::parse_from(["subscribe-all", "/run/deribit.sock", "--user", "alice", "--symbols", "BTC-.*,ETH-PERPETUAL"]);
//! assert!(args.wants("ETH-PERPETUAL") && args.wants("BTC-PERPETUAL") && !args.wants("SOL_USDC-PERPETUAL"));
//! ```

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, ensure};
use tickpath_agent::{StopSignal, pin_current_thread};
use tickpath_config::{Secret, print_stderr};
use tickpath_gateway_io::{Client, ClientConfig};
use tickpath_gateway_protocol::frame::Password;
use tickpath_gateway_protocol::{Connected, Event, EventKind, Text};
use tickpath_types::Nanos;

/// Exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;
/// Period of the timer events.
const TIMER: Nanos = Nanos(100_000_000);

/// Flags of every client.
#[derive(clap::Parser, Clone, Debug)]
pub struct Args {
    /// The gateway's Unix socket
    pub gateway: PathBuf,
    /// Name of the client
    #[arg(long, default_value = "trader")]
    pub name: String,
    /// The user, as the gateway's configuration knows it
    #[arg(long)]
    pub user: String,
    /// Source of the user's password: env:NAME or file:PATH, a file that only its owner can read
    #[arg(long, default_value = "env:TICKPATH_GATEWAY_PASSWORD")]
    pub password: String,
    /// The venue that the gateway must be connected to; any by default
    #[arg(long)]
    pub exchange: Option<String>,
    /// Instruments, by name, or by the start of their names and `.*`; all by default
    #[arg(long, visible_alias = "symbol", value_delimiter = ',')]
    pub symbols: Vec<String>,
    /// Core to pin the thread to
    #[arg(long = "dispatcher_affinity", visible_alias = "dispatcher-affinity", value_name = "CORE")]
    pub dispatcher_affinity: Option<usize>,
    /// Send orders; without it none is sent
    #[arg(
        long = "enable_trading",
        visible_alias = "enable-trading",
        num_args = 0..=1,
        default_value_t = false,
        default_missing_value = "true",
        require_equals = true
    )]
    pub enable_trading: bool,
}

impl Args {
    /// Whether the flags select the instrument of this name.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        let fits = |symbol: &String| match symbol.strip_suffix(".*") {
            Some(start) => name.starts_with(start),
            None => symbol == name,
        };
        self.symbols.is_empty() || self.symbols.iter().any(fits)
    }

    fn config(&self) -> anyhow::Result<ClientConfig> {
        let is_place = self.password.starts_with("env:") || self.password.starts_with("file:");
        ensure!(is_place, "--password says where the password is: env:NAME or file:PATH");
        let password = Secret::new(&self.password).resolve(None)?;
        let password = Password::new(password.as_bytes()).context("a password has at most 64 bytes")?;
        let user = Text::new(&self.user).context("a user's name has at most 32 plain characters")?;
        let mut config = ClientConfig::new(&self.gateway, user, password);
        config.name = Text::new(&self.name).context("a client's name has at most 32 plain characters")?;
        config.is_trading = self.enable_trading;
        config.timer = Some(TIMER);
        Ok(config)
    }
}

/// Connects and passes every event to `handle`. Ends when `handle` returns an exit code, when Ctrl-C is
/// pressed, or when the client will not connect again.
///
/// # Errors
/// The gateway is not reachable or refuses the client, or `handle` fails.
pub fn run(
    args: &Args,
    mut handle: impl FnMut(&mut Client, &Event) -> anyhow::Result<ControlFlow<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    if let Some(core) = args.dispatcher_affinity {
        pin_current_thread(core).map_err(|error| anyhow!(error))?;
    }
    let mut client = Client::connect(args.config()?)?;
    loop {
        let Some(event) = client.poll() else {
            if client.is_finished() {
                let failure = client
                    .failure()
                    .map_or_else(|| "the connection is closed".to_owned(), ToString::to_string);
                return Err(anyhow!(failure));
            }
            if stop.is_stopped() {
                client.stop();
                print_stderr("interrupted");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            std::hint::spin_loop();
            continue;
        };
        if let (Some(connected), Some(wanted)) = (event.body::<Connected>(), &args.exchange) {
            let found = connected.exchange;
            ensure!(
                found.as_str() == wanted,
                "the gateway is connected with '{found}', and not with '{wanted}'"
            );
        }
        if let ControlFlow::Break(code) = handle(&mut client, &event)? {
            return Ok(code);
        }
        // Checks for Ctrl-C here too, as events may arrive without a pause.
        if event.header.kind == EventKind::TIMER && stop.is_stopped() {
            print_stderr("interrupted");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
}
