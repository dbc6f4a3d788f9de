//! The admin socket of a live feed handler: a line there, a line of JSON back.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use tickpath_admin::{AdminThread, AskError, LineLimits, ListenError};
use tickpath_types::Symbol;

use super::handler::LiveCommand;
use super::report;

/// How long the handler may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line that is read, in bytes.
const LINE_LEN_MAX: usize = 256;

/// There is no socket, or no answer by it.
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
    Open(#[from] ListenError),
    /// No handler listens there.
    #[error("no feed handler listens at {}: is it running, and has its configuration admin.socket?", path.display())]
    NotRunning {
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

/// Listens for commands on a new thread until the result is dropped. Only the socket's owner and root can use it; one
/// that a dead handler left is replaced.
///
/// # Errors
/// [`SocketError::Open`].
pub fn open_socket(path: &Path, commands: SyncSender<LiveCommand>) -> Result<AdminThread, SocketError> {
    let limits = LineLimits::one_line(LINE_LEN_MAX);
    Ok(AdminThread::start("feed-admin", path, limits, move |line, _| command(line, &commands))?)
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
    let path_of = || path.to_owned();
    tickpath_admin::ask(path, line, ANSWER_TIMEOUT).map_err(|error| match error {
        AskError::Connect(_) => SocketError::NotRunning { path: path_of() },
        AskError::Answer(source) => SocketError::Io { path: path_of(), source },
        _ => SocketError::NoAnswer { path: path_of() },
    })
}
