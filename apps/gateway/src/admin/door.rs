//! The socket.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickpath_agent::StopSignal;
use tickpath_net::{LineSocket, UnixDoor, UnixDoorError};

use super::Standing;
use super::command::{AdminClient, AdminCommand, AdminPort, rings};
use crate::config::Amount;
use crate::safety::{KillMarker, RiskLimit};

/// Longest line, its end included.
const LINE_LEN_MAX: usize = 512;
/// Longest answer: all accounts, connections and clients have room.
const ANSWER_LEN_MAX: u64 = 1 << 20;
/// Time that a caller waits beside that of the command itself.
const LINE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the duty cycle may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the threads look.
const SLEEP: Duration = Duration::from_millis(5);

/// The admin socket cannot be opened, or a gateway not be commanded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// As it says.
    #[error("admin {0}")]
    Open(#[from] UnixDoorError),
    /// Nobody answers: start the gateway, or name its socket.
    #[error("no gateway answers at {}: {source}: is it running, and is this its admin socket?", whole(path).display())]
    Call {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It takes the call and says nothing: end its process. The venue then cancels its orders where `cancel_on_disconnect`
    /// is on.
    #[error(
        "the gateway at {} takes the call and does not answer within {} s: it hangs or is stopped; end its process, and the \
         venue cancels its orders unless cancel_on_disconnect is off",
        whole(path).display(), patience.as_secs()
    )]
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long was waited.
        patience: Duration,
    },
    /// The gateway refused, in its own words.
    #[error("{0}")]
    Refused(String),
}

/// A path that says more than where it was said.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What commands are about.
struct Gateway {
    standing: Standing,
    marker: KillMarker,
    client: Mutex<AdminClient>,
}

/// Serves the socket until it is dropped.
pub struct AdminDoor {
    path: PathBuf,
    stop: StopSignal,
    thread: Option<JoinHandle<()>>,
}

impl AdminDoor {
    /// Opens the socket at `path` of a gateway that stands so, in place of one that nobody serves any more; and the duty
    /// cycle's end.
    ///
    /// # Errors
    /// [`AdminError`] when another gateway serves it or the system refuses.
    pub fn open(
        path: &Path,
        marker: KillMarker,
        standing: Standing,
    ) -> Result<(AdminDoor, AdminPort), AdminError> {
        let socket = LineSocket::new(UnixDoor::open(path)?, LINE_LEN_MAX);
        let (client, port) = rings();
        let gateway = Gateway { standing, marker, client: Mutex::new(client) };
        let stop = StopSignal::new();
        let until = stop.clone();
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || serve_all(socket, &gateway, &until))
            .map_err(|source| UnixDoorError::Io { path: path.to_owned(), source })?;
        Ok((AdminDoor { path: path.to_owned(), stop, thread: Some(thread) }, port))
    }

    /// The socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for AdminDoor {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn serve_all(mut socket: LineSocket, gateway: &Gateway, stop: &StopSignal) {
    while !stop.is_stopped() {
        let Some(call) = socket.poll() else {
            std::thread::park_timeout(SLEEP);
            continue;
        };
        let answer = match gateway.carry_out(call.line.trim(), stop) {
            Ok(answer) => answer,
            Err(message) => json!({ "ok": false, "error": message }),
        };
        call.answer(&answer.to_string());
    }
}

impl Gateway {
    fn carry_out(&self, line: &str, stop: &StopSignal) -> Result<Value, String> {
        let command = self.parse(line)?;
        // One at a time, so that the marker says what the last one did.
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let mut warning = None;
        match command {
            AdminCommand::Release => self.marker.set(false).map_err(|error| {
                format!("cannot remove {}: {error}: nothing was released", self.marker.path().display())
            })?,
            AdminCommand::Kill => {
                // It is killed in any case.
                warning = self.marker.set(true).err().map(|error| {
                    format!("{}: {error}: a new start would trade again", self.marker.path().display())
                });
            }
            _ => {}
        }
        submit(&mut client, command, stop)?;
        let mut answer = self.standing.json();
        answer["ok"] = true.into();
        answer["warning"] = warning.into();
        Ok(answer)
    }

    fn parse(&self, line: &str) -> Result<AdminCommand, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["status"] => Ok(AdminCommand::Status),
            ["kill"] => Ok(AdminCommand::Kill),
            ["release", word] if word == self.standing.name => Ok(AdminCommand::Release),
            ["release", ..] => Err(format!(
                "to take orders again say release {0}: tickpath gateway release {0} --confirm {0}",
                self.standing.name
            )),
            ["limits", account, ref values @ ..] if !values.is_empty() => {
                let accounts = &self.standing.accounts;
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

fn submit(client: &mut AdminClient, command: AdminCommand, stop: &StopSignal) -> Result<(), String> {
    let id = client.submit(command).ok_or("the gateway is busy with other commands: try again")?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        if client.is_done(id) {
            return Ok(());
        }
        if stop.is_stopped() || Instant::now() >= deadline {
            return Err(
                "the gateway's duty cycle does not answer; it will carry the command out when it runs again"
                    .to_owned(),
            );
        }
        std::thread::park_timeout(SLEEP);
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

/// Says a line to the gateway at a socket; its answer.
///
/// # Errors
/// [`AdminError::Call`] when nobody answers, [`AdminError::Refused`] with what the gateway said.
pub fn call(path: &Path, line: &str) -> Result<Value, AdminError> {
    call_within(path, line, ANSWER_TIMEOUT + LINE_TIMEOUT)
}

fn call_within(path: &Path, line: &str, patience: Duration) -> Result<Value, AdminError> {
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AdminError::Silent { path: path.to_owned(), patience },
        _ => AdminError::Call { path: path.to_owned(), source },
    };
    let ask = || -> io::Result<String> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream.take(ANSWER_LEN_MAX)).read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(failed)?;
    let answer: Value = serde_json::from_str(&answer).map_err(|_| {
        failed(io::Error::new(ErrorKind::InvalidData, "the connection was closed without an answer"))
    })?;
    match answer["error"].as_str() {
        Some(error) => Err(AdminError::Refused(error.to_owned())),
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;

    use super::*;
    use crate::config::GatewayConfig;
    use crate::metrics::GatewayMetrics;
    use crate::safety::Control;
    use crate::view::GatewayView;

    /// A gateway `g` with the accounts `A1` and `A2`.
    fn standing(control: &Control) -> Standing {
        let account = |name: &str| format!("[accounts.{name}]\nlogin = 'x'\nsecret = 'test'\n");
        let text = format!(
            "name = 'g'\n[venue]\nws_uri = 'ws://127.0.0.1:9/'\n{}{}[users.u]\npassword = 'test'\n",
            account("A1"),
            account("A2")
        );
        let config = GatewayConfig::parse("g.toml", &text).unwrap();
        let metrics = Arc::new(GatewayMetrics::new("g", 1));
        let bans = crate::users::RequestLimits::new(config.users.values()).bans();
        Standing::new(&config, Arc::new(GatewayView::default()), metrics, control.clone(), bans)
    }

    /// A gateway that carries commands out on a thread of its own, as its duty cycle does.
    struct Site {
        folder: tempfile::TempDir,
        control: Control,
        stop: StopSignal,
        duty: Option<JoinHandle<()>>,
        door: Option<AdminDoor>,
    }

    impl Site {
        fn new() -> Site {
            let folder = tempfile::tempdir().unwrap();
            let control = Control::new(2);
            let standing = standing(&control);
            let view = Arc::clone(&standing.view);
            let socket = folder.path().join("g.admin.sock");
            let (door, mut port) = AdminDoor::open(&socket, KillMarker::beside(&socket), standing).unwrap();
            let stop = StopSignal::new();
            let (turned, until) = (control.clone(), stop.clone());
            let duty = std::thread::spawn(move || {
                while !until.is_stopped() {
                    while let Some((id, command)) = port.poll() {
                        command.carry_out(&turned);
                        view.open_orders.set(3);
                        port.answer(id);
                    }
                    std::thread::yield_now();
                }
            });
            Site { folder, control, stop, duty: Some(duty), door: Some(door) }
        }

        fn socket(&self) -> PathBuf {
            self.folder.path().join("g.admin.sock")
        }

        fn say(&self, line: &str) -> Result<Value, String> {
            call(&self.socket(), line).map_err(|error| error.to_string())
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            self.stop.stop();
            self.duty.take().unwrap().join().unwrap();
        }
    }

    #[test]
    fn the_kill_switch_is_turned_and_needs_a_word_to_be_released() {
        let site = Site::new();
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
        let _hanging = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(said(&path).contains("does not answer within"));
    }

    #[test]
    fn limits_are_published_and_withdrawn() {
        let site = Site::new();
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

    #[test]
    fn one_socket_one_gateway_and_a_stale_one_is_taken_over() {
        let mut site = Site::new();
        let path = site.socket();
        let again = AdminDoor::open(&path, KillMarker::beside(&path), standing(&site.control));
        assert!(matches!(again, Err(AdminError::Open(UnixDoorError::InUse { .. }))));
        site.door = None;
        assert!(!path.exists(), "the socket goes with its gateway");
        assert!(site.say("status").unwrap_err().contains("is it running"));
        drop(UnixListener::bind(&path).unwrap());
        let (door, _port) =
            AdminDoor::open(&path, KillMarker::beside(&path), standing(&site.control)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(door);
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(
            AdminDoor::open(&path, KillMarker::beside(&path), standing(&site.control)),
            Err(AdminError::Open(UnixDoorError::NotASocket { .. }))
        ));
    }

    #[test]
    fn callers_that_say_nothing_or_too_much_harm_nobody() {
        let site = Site::new();
        let silent = UnixStream::connect(site.socket()).unwrap();
        let mut loud = UnixStream::connect(site.socket()).unwrap();
        loud.write_all(&[b'x'; 2_000]).unwrap();
        let mut answer = String::new();
        // Reset or closed, and no answer.
        let _ = loud.read_to_string(&mut answer);
        assert_eq!(answer, "");
        assert!(site.say("status").is_ok());
        drop(silent);
    }
}
