//! A thread that serves an admin socket.

use std::path::{Path, PathBuf};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use serde_json::Value;
use tickpath_agent::{BackgroundThread, ListenError, StopSignal};
use tickpath_types::Nanos;

use crate::line_server::{LineLimits, LineServer, error_answer};

/// Maximum sleep between two polls of the socket.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Serves an admin socket on another thread until it is dropped.
#[derive(Debug)]
pub struct AdminThread {
    path: PathBuf,
    _thread: BackgroundThread,
}

impl AdminThread {
    /// Opens the socket at `path`, replaces a stale one, and starts a thread named `name`. `answer` receives
    /// each line and returns the answer or an error message. `answer` may block, but must return after the
    /// stop signal.
    ///
    /// # Errors
    /// [`ListenError`] when another program serves the socket, or the system refuses to open it.
    pub fn start(
        name: &str,
        path: &Path,
        limits: LineLimits,
        mut answer: impl FnMut(&str, &StopSignal) -> Result<Value, String> + Send + 'static,
    ) -> Result<AdminThread, ListenError> {
        let mut server = LineServer::open(path, limits)?;
        let started = Instant::now();
        let thread = BackgroundThread::start(name, move |stop| {
            while !stop.is_stopped() {
                server.receive(Nanos(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)));
                while let Some(line) = server.next_line() {
                    let answer = answer(&line.text, stop).unwrap_or_else(|message| error_answer(&message));
                    server.answer(line.connection, &answer);
                }
                park_timeout(POLL_INTERVAL);
            }
        });
        let thread = thread.map_err(|source| ListenError::Io { path: path.to_owned(), source })?;
        Ok(AdminThread { path: path.to_owned(), _thread: thread })
    }

    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
