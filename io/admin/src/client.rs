//! The client of an admin socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Maximum length of a response, in bytes.
const ANSWER_LEN_MAX: u64 = 4 << 20;

/// A command line could not be sent to a program's admin socket, or was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendLineError {
    /// No program listens at the path: start it, or name its socket.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// Sending the line or receiving the response failed, for example by a timeout.
    #[error("no answer: {0}")]
    Answer(io::Error),
    /// The program closed the connection: only the user who runs it, and root, may send commands.
    #[error("the connection was closed without an answer")]
    Refused,
    /// The response is not JSON, so another program listens at the path: name the socket of the right one.
    #[error("the answer is not JSON: {0}")]
    NotJson(serde_json::Error),
}

impl SendLineError {
    /// True if the program accepted the connection but did not respond in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        let SendLineError::Answer(error) = self else { return false };
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    }
}

/// Sends a command line to the program that listens at `path`; returns its response within `timeout`.
///
/// # Errors
/// [`SendLineError`] if the program cannot be reached or does not respond with JSON.
pub fn send_line(path: &Path, line: &str, timeout: Duration) -> Result<Value, SendLineError> {
    let stream = UnixStream::connect(path).map_err(SendLineError::Connect)?;
    let answer = exchange(stream, line, timeout).map_err(SendLineError::Answer)?;
    if answer.is_empty() {
        return Err(SendLineError::Refused);
    }
    serde_json::from_str(&answer).map_err(SendLineError::NotJson)
}

fn exchange(mut stream: UnixStream, line: &str, timeout: Duration) -> io::Result<String> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_LEN_MAX)).read_line(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn stopped_hanging_and_refusing_programs_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let send_line = || send_line(&path, "status", Duration::from_millis(20)).unwrap_err();
        assert!(matches!(send_line(), SendLineError::Connect(_)));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(send_line().is_timeout());
        drop(listener.accept().unwrap());
        let answer_with = |answer: &'static str| {
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 16]);
                stream.write_all(answer.as_bytes()).unwrap();
            })
        };
        let server = answer_with("");
        assert!(matches!(send_line(), SendLineError::Refused));
        server.join().unwrap();
        let server = answer_with("hello\n");
        assert!(matches!(send_line(), SendLineError::NotJson(_)));
        server.join().unwrap();
    }
}
