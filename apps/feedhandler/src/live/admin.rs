//! The admin socket of a live feed handler: a command line in, a line of JSON out.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::anyhow;
use serde_json::{Value, json};
use tickpath_admin::{AdminThread, LineLimits, SendLineError};
use tickpath_types::Symbol;

use super::handler::LiveCommand;
use super::report;

/// Maximum time to wait for the handler's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a command line, in bytes.
const LINE_LEN_MAX: usize = 256;

/// Listens for commands on a new thread until the result is dropped. Only the socket's owner and root can use
/// it. Replaces the stale socket of a dead handler.
///
/// # Errors
/// When the socket cannot be created; `admin.socket` can name another path.
pub fn open_socket(path: &Path, commands: SyncSender<LiveCommand>) -> anyhow::Result<AdminThread> {
    let limits = LineLimits::one_line(LINE_LEN_MAX);
    let started = AdminThread::start("feed-admin", path, limits, move |line, _| command(line, &commands));
    started.map_err(|error| anyhow!("admin {error}"))
}

fn command(line: &str, commands: &SyncSender<LiveCommand>) -> Result<Value, String> {
    let stopping = "the handler is stopping";
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["status"] => {
            let (sender, answer) = sync_channel(1);
            commands.try_send(LiveCommand::Status(sender)).map_err(|_| stopping)?;
            let status = answer.recv_timeout(ANSWER_TIMEOUT).map_err(|_| stopping)?;
            let mut json = report::to_json(&status.channels, &status.books);
            json["ok"] = json!(true);
            Ok(json)
        }
        ["resync", symbol] => {
            let symbol = Symbol::new(symbol).map_err(|error| error.to_string())?;
            let (sender, answer) = sync_channel(1);
            commands.try_send(LiveCommand::Resync(symbol, sender)).map_err(|_| stopping)?;
            let outcomes = answer.recv_timeout(ANSWER_TIMEOUT).map_err(|_| stopping)?;
            report::resynced(symbol, &outcomes)
        }
        _ => Err("status, or resync SYMBOL".to_owned()),
    }
}

/// Sends a command line to a running handler and returns its answer.
///
/// # Errors
/// The handler is not reachable, does not answer, or refuses the command. The message has one line.
pub fn send_command(path: &Path, line: &str) -> anyhow::Result<Value> {
    let at = path.display();
    tickpath_admin::send_line(path, line, ANSWER_TIMEOUT).map_err(|error| match error {
        SendLineError::Connect(_) => {
            anyhow!("no feed handler listens at {at}: is it running, and has its configuration admin.socket?")
        }
        SendLineError::Answer(source) => anyhow!("admin socket {at}: {source}"),
        _ => anyhow!("no answer from the feed handler at {at}: only its user and root may command it"),
    })
}
