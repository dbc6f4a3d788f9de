//! The gateway's admin socket.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tickpath_admin::{
    AdminThread, CommandReceiver, CommandSender, LineLimits, ListenError, SendLineError, command_rings,
    send_line,
};
use tickpath_agent::StopSignal;
use tickpath_gateway_core::{AdminCommand, RiskLimit};

use super::GatewayStatus;
use crate::config::Amount;
use crate::kill_marker::KillMarker;

/// Maximum number of commands that wait for the duty cycle.
const COMMANDS_MAX: usize = 64;
/// Maximum length of a line in bytes, including its end.
const LINE_LEN_MAX: usize = 512;
/// Time that a client waits in addition to that of the command itself.
const LINE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the duty cycle to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum pause between two checks for its answer.
const REST: Duration = Duration::from_millis(5);

/// The duty cycle's end: receives commands and answers each once it is executed and the new status published.
pub type AdminPort = CommandReceiver<AdminCommand, ()>;

/// The admin socket cannot be opened, or a gateway cannot be reached or refuses a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The socket cannot be opened; the message says why.
    #[error("admin {0}")]
    Open(#[from] ListenError),
    /// No gateway answers: start the gateway, or name its socket.
    #[error("no gateway answers at {}: {source}: is it running, and is this its admin socket?", whole(path).display())]
    Call {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The gateway accepts the connection and does not answer: end its process. The venue then cancels its
    /// orders if `cancel_on_disconnect` is on.
    #[error(
        "the gateway at {} takes the call and does not answer within {} s: it hangs or is stopped; end its process, and the \
         venue cancels its orders unless cancel_on_disconnect is off",
        whole(path).display(), patience.as_secs()
    )]
    Silent {
        /// The socket.
        path: PathBuf,
        /// Time waited.
        patience: Duration,
    },
    /// The gateway refused the command; its message.
    #[error("{0}")]
    Refused(String),
}

/// The absolute path.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens the admin socket at `path` for a gateway with this status; replaces a socket that no program serves.
/// Returns the thread that serves it until dropped, and the duty cycle's end.
///
/// # Errors
/// [`AdminError`] when another gateway serves it or the system refuses.
pub fn open_socket(
    path: &Path,
    marker: KillMarker,
    status: GatewayStatus,
) -> Result<(AdminThread, AdminPort), AdminError> {
    let (client, port) = command_rings(COMMANDS_MAX);
    let mut gateway = Gateway { status, marker, client };
    let execute = move |line: &str, stop: &StopSignal| gateway.execute(line, stop);
    let thread = AdminThread::start("admin", path, LineLimits::one_line(LINE_LEN_MAX), execute)?;
    Ok((thread, port))
}

/// The gateway's state that the admin socket reads and changes.
struct Gateway {
    status: GatewayStatus,
    marker: KillMarker,
    client: CommandSender<AdminCommand, ()>,
}

impl Gateway {
    fn execute(&mut self, line: &str, stop: &StopSignal) -> Result<Value, String> {
        let command = self.parse(line)?;
        let mut warning = None;
        match command {
            AdminCommand::Release => self.marker.set(false).map_err(|error| {
                format!("cannot remove {}: {error}: nothing was released", self.marker.path().display())
            })?,
            AdminCommand::Kill => {
                // Without the marker the kill still takes effect.
                warning = self.marker.set(true).err().map(|error| {
                    format!("{}: {error}: a new start would trade again", self.marker.path().display())
                });
            }
            _ => {}
        }
        self.submit(command, stop)?;
        let mut answer = self.status.json();
        answer["ok"] = true.into();
        answer["warning"] = warning.into();
        Ok(answer)
    }

    /// Returns when the duty cycle has executed the command.
    fn submit(&mut self, command: AdminCommand, stop: &StopSignal) -> Result<(), String> {
        let id = self.client.submit(command).ok_or("the gateway is busy with other commands: try again")?;
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            // Skips late answers to earlier commands.
            if std::iter::from_fn(|| self.client.poll()).any(|(answered, ())| answered == id) {
                return Ok(());
            }
            if stop.is_stopped() || Instant::now() >= deadline {
                return Err(
                    "the gateway's duty cycle does not answer; it will carry the command out when it runs again"
                        .to_owned(),
                );
            }
            std::thread::park_timeout(REST);
        }
    }

    fn parse(&self, line: &str) -> Result<AdminCommand, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["status"] => Ok(AdminCommand::Status),
            ["kill"] => Ok(AdminCommand::Kill),
            ["release", word] if word == self.status.name => Ok(AdminCommand::Release),
            ["release", ..] => Err(format!(
                "to take orders again say release {0}: tickpath gateway release {0} --confirm {0}",
                self.status.name
            )),
            ["limits", account, ref values @ ..] if !values.is_empty() => {
                let accounts = &self.status.accounts;
                let place = accounts.iter().position(|known| known.name == account);
                let place = place.ok_or_else(|| {
                    let names: Vec<&str> = accounts.iter().map(|account| account.name.as_str()).collect();
                    format!("there is no account {account}: there are {}", names.join(", "))
                })?;
                Ok(AdminCommand::SetLimits(place, parse_limits(values)?))
            }
            _ => Err("say status, kill, release NAME or limits ACCOUNT KEY=VALUE ...".to_owned()),
        }
    }
}

fn parse_limits(values: &[&str]) -> Result<Option<RiskLimit>, String> {
    if values == ["none"] {
        return Ok(None);
    }
    let mut limit = RiskLimit::default();
    for value in values {
        let (key, value) = value.split_once('=').ok_or_else(|| format!("{value:?}: write KEY=VALUE"))?;
        let amount = || value.parse::<Amount>().map(|amount| Some(amount.0));
        match key {
            "order_size_max" => limit.order_size_max = amount()?,
            "notional_max" => limit.notional_max = amount()?,
            "open_orders_max" => {
                let count = value.parse().map_err(|_| format!("{value:?} is no number of orders"))?;
                limit.open_orders_max = Some(count);
            }
            _ => return Err(format!("{key}: there are order_size_max, notional_max and open_orders_max")),
        }
    }
    Ok(Some(limit))
}

/// Sends a line to the gateway at the socket `path` and returns its answer.
///
/// # Errors
/// [`AdminError::Call`] or [`AdminError::Silent`] without an answer, [`AdminError::Refused`] on refusal.
pub fn call(path: &Path, line: &str) -> Result<Value, AdminError> {
    call_within(path, line, ANSWER_TIMEOUT + LINE_TIMEOUT)
}

fn call_within(path: &Path, line: &str, patience: Duration) -> Result<Value, AdminError> {
    let answer = send_line(path, line, patience).map_err(|error| match error {
        error if error.is_timeout() => AdminError::Silent { path: path.to_owned(), patience },
        SendLineError::Connect(source) | SendLineError::Answer(source) => {
            AdminError::Call { path: path.to_owned(), source }
        }
        _ => {
            let message = "the connection was closed without an answer";
            let source = io::Error::new(ErrorKind::InvalidData, message);
            AdminError::Call { path: path.to_owned(), source }
        }
    })?;
    match answer["error"].as_str() {
        Some(error) => Err(AdminError::Refused(error.to_owned())),
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;
    use std::thread::JoinHandle;

    use serde_json::json;
    use tickpath_gateway_core::{Control, Policy};

    use super::*;
    use crate::config::GatewayConfig;
    use crate::metrics::GatewayMetrics;
    use crate::view::GatewayView;

    /// A gateway `g` with the accounts `A1` and `A2`.
    fn status(control: &Control) -> GatewayStatus {
        let account = |name: &str| format!("[accounts.{name}]\nlogin = 'x'\nsecret = 'test'\n");
        let text = format!(
            "name = 'g'\n[venue]\nws_uri = 'ws://127.0.0.1:9/'\n{}{}[users.u]\npassword = 'test'\n",
            account("A1"),
            account("A2")
        );
        let config = GatewayConfig::parse("g.toml", &text).unwrap();
        let metrics = Arc::new(GatewayMetrics::new("g", 1));
        let settings = config.settings().unwrap();
        let bans = Policy::new(&settings).0.bans();
        GatewayStatus::new(
            &config,
            &settings,
            Arc::new(GatewayView::default()),
            metrics,
            control.clone(),
            bans,
        )
    }

    /// A gateway that executes commands on a separate thread, as its duty cycle does.
    struct Running {
        folder: tempfile::TempDir,
        control: Control,
        stop: StopSignal,
        duty: Option<JoinHandle<()>>,
        _server: AdminThread,
    }

    impl Running {
        fn new() -> Running {
            let folder = tempfile::tempdir().unwrap();
            let control = Control::new(2);
            let status = status(&control);
            let view = Arc::clone(&status.view);
            let socket = folder.path().join("g.admin.sock");
            let (server, mut port) = open_socket(&socket, KillMarker::beside(&socket), status).unwrap();
            let stop = StopSignal::new();
            let (turned, until) = (control.clone(), stop.clone());
            let duty = std::thread::spawn(move || {
                while !until.is_stopped() {
                    while let Some((id, command)) = port.poll() {
                        command.carry_out(&turned);
                        view.open_orders.set(3);
                        port.answer(id, ());
                    }
                    std::thread::yield_now();
                }
            });
            Running { folder, control, stop, duty: Some(duty), _server: server }
        }

        fn socket(&self) -> PathBuf {
            self.folder.path().join("g.admin.sock")
        }

        fn say(&self, line: &str) -> Result<Value, String> {
            call(&self.socket(), line).map_err(|error| error.to_string())
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.stop.stop();
            self.duty.take().unwrap().join().unwrap();
        }
    }

    #[test]
    fn the_kill_switch_is_turned_and_needs_a_word_to_be_released() {
        let site = Running::new();
        let marker = KillMarker::beside(&site.socket());
        assert_eq!(site.say("status").unwrap()["is_killed"], false);
        let answer = site.say("kill").unwrap();
        assert_eq!((&answer["is_killed"], &answer["open_orders"]), (&json!(true), &json!(3)));
        assert!(site.control.is_killed() && marker.is_there());
        for line in ["release", "release x", "release g g"] {
            assert_eq!(
                site.say(line).unwrap_err(),
                "to take orders again say release g: tickpath gateway release g --confirm g"
            );
        }
        assert!(site.control.is_killed());
        assert_eq!(site.say("release g").unwrap()["is_killed"], false);
        assert!(!site.control.is_killed() && !marker.is_there());
    }

    #[test]
    fn a_gateway_that_hangs_is_told_from_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.admin.sock");
        let said =
            |path: &Path| call_within(path, "kill", Duration::from_millis(20)).unwrap_err().to_string();
        assert!(said(&path).starts_with("no gateway answers at /"));
        let _hanging = UnixListener::bind(&path).unwrap();
        assert!(said(&path).contains("does not answer within"));
    }

    #[test]
    fn limits_are_published_and_withdrawn() {
        let site = Running::new();
        site.say("limits A2 order_size_max=10.5 open_orders_max=3").unwrap();
        let limit =
            RiskLimit { order_size_max: Some(1_050_000_000), notional_max: None, open_orders_max: Some(3) };
        assert_eq!((site.control.published(0), site.control.published(1)), (None, Some(limit)));
        for (line, words) in [
            ("limits A3 none", "there are A1, A2"),
            ("limits A1", "say status, kill"),
            ("limits A1 x=1", "there are order_size_max"),
            ("limits A1 notional_max=-1", "no amount"),
            ("limits A1 open_orders_max=-1", "no number of orders"),
            ("limits A1 open", "KEY=VALUE"),
            ("", "say status, kill"),
        ] {
            assert!(site.say(line).unwrap_err().contains(words), "{line}");
        }
        site.say("limits A2 none").unwrap();
        assert_eq!(site.control.published(1), None);
    }
}
