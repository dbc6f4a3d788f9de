//! The Unix socket that commands come by: one line there, one line of JSON back.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tickpath_agent::StopSignal;
use tickpath_net::{LineSocket, UnixDoor, UnixDoorError};
use tickpath_types::Symbol;

use super::handler::LiveCommand;
use super::report;

/// How often it is looked whether somebody connects.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);
/// How long the handler may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line that is read, in bytes.
const LINE_LEN_MAX: usize = 256;

/// Why there is no socket, or no answer by it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The system refused it.
    #[error("admin socket {}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// As it says; another one is named by admin.socket.
    #[error("admin {0}")]
    Open(#[from] UnixDoorError),
    /// Nobody listens there.
    #[error("no feed handler listens at {}: is it running, and has its configuration admin.socket?", path.display())]
    NobodyThere {
        /// Where.
        path: PathBuf,
    },
    /// The answer was none.
    #[error("no answer from the feed handler at {}: only who runs it, and root, may command it", path.display())]
    NoAnswer {
        /// Where.
        path: PathBuf,
    },
}

/// Listens for commands on a thread of its own, until it is dropped.
pub struct LiveSocket {
    stop: StopSignal,
    thread: Option<JoinHandle<()>>,
}

impl LiveSocket {
    /// Makes the socket, readable and writable for its owner alone; one that a dead handler left is replaced.
    ///
    /// # Errors
    /// [`SocketError`].
    pub fn open(path: &Path, commands: SyncSender<LiveCommand>) -> Result<LiveSocket, SocketError> {
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        let mut socket = LineSocket::new(UnixDoor::open(path)?, LINE_LEN_MAX);
        let stop = StopSignal::new();
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("feed-admin".to_owned())
            .spawn(move || {
                while !stopped.is_stopped() {
                    let Some(call) = socket.poll() else {
                        thread::sleep(ACCEPT_INTERVAL);
                        continue;
                    };
                    let answer = command(call.line.trim(), &commands)
                        .unwrap_or_else(|error| json!({"ok": false, "error": error}));
                    call.answer(&answer.to_string());
                }
            })
            .map_err(failed)?;
        Ok(LiveSocket { stop, thread: Some(thread) })
    }
}

impl Drop for LiveSocket {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // It answers at most one more.
            let _ = thread.join();
        }
    }
}

fn command(line: &str, commands: &SyncSender<LiveCommand>) -> Result<Value, String> {
    let gone = "the handler is stopping";
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["status"] => {
            let (sender, answer) = sync_channel(1);
            commands.try_send(LiveCommand::Status(sender)).map_err(|_| gone)?;
            let status = answer.recv_timeout(ANSWER_TIMEOUT).map_err(|_| gone)?;
            let mut json = report::to_json(&status.channels, &status.books);
            json["ok"] = json!(true);
            Ok(json)
        }
        ["resync", symbol] => {
            let symbol = Symbol::new(symbol).map_err(|error| error.to_string())?;
            let (sender, answer) = sync_channel(1);
            commands.try_send(LiveCommand::Resync(symbol, sender)).map_err(|_| gone)?;
            let outcomes = answer.recv_timeout(ANSWER_TIMEOUT).map_err(|_| gone)?;
            report::resynced(symbol, &outcomes)
        }
        _ => Err("status, or resync SYMBOL".to_owned()),
    }
}

/// Sends a line to a running handler and gives its answer.
///
/// # Errors
/// [`SocketError`] in one line that says what to do.
pub fn ask(path: &Path, line: &str) -> Result<Value, SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    let mut stream =
        UnixStream::connect(path).map_err(|_| SocketError::NobodyThere { path: path.to_owned() })?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
    stream.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(failed)?;
    serde_json::from_str(&answer).map_err(|_| SocketError::NoAnswer { path: path.to_owned() })
}
