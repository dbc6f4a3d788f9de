//! A Unix socket that takes one line of each caller and answers it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_types::Nanos;

use crate::unix_door::{UnixCaller, UnixDoor};

/// Callers accepted in one poll.
const ACCEPTS_PER_POLL: usize = 64;
/// Longest time in which a caller takes its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Callers that have not said their line: in all, of one process, and how long they may take.
const CALLERS: PreLoginLimits =
    PreLoginLimits { connections: 32, per_address: 16, deadline: Nanos::from_secs(5) };

/// Takes one line of each caller. Silent callers block no other: beyond their bounds the oldest is closed.
#[derive(Debug)]
pub struct LineSocket {
    door: UnixDoor,
    line_len_max: usize,
    callers: Vec<Caller>,
    /// Those, by their numbers and processes.
    silent: PreLogin<u32>,
    next_number: u64,
    started: Instant,
}

#[derive(Debug)]
struct Caller {
    number: u64,
    stream: UnixStream,
    received: Vec<u8>,
}

/// A line, and the caller that waits for its answer.
#[derive(Debug)]
pub struct LineCall {
    /// Without its end.
    pub line: String,
    stream: UnixStream,
}

impl LineSocket {
    /// Serves a socket. A line has `line_len_max` bytes at most, its end included.
    #[must_use]
    pub fn new(door: UnixDoor, line_len_max: usize) -> LineSocket {
        LineSocket {
            door,
            line_len_max,
            callers: Vec::new(),
            silent: PreLogin::new(CALLERS),
            next_number: 0,
            started: Instant::now(),
        }
    }

    /// The next line, if one is there. Does not wait.
    pub fn poll(&mut self) -> Option<LineCall> {
        for index in 0..self.callers.len() {
            match self.callers[index].read(self.line_len_max) {
                Ok(None) => {}
                Ok(Some(line)) => {
                    let stream = self.remove(index).stream;
                    return Some(LineCall { line, stream });
                }
                Err(_) => {
                    self.remove(index);
                    // The others move up: they come with the next poll.
                    break;
                }
            }
        }
        self.accept();
        None
    }

    fn accept(&mut self) {
        let now = Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        while let Some(number) = self.silent.expired(now) {
            self.close(number);
        }
        for _ in 0..ACCEPTS_PER_POLL {
            let Ok(caller) = self.door.accept() else { return };
            let Some(UnixCaller { stream, process, .. }) = caller else { continue };
            if let Some(number) = self.silent.victim(process) {
                self.close(number);
            }
            self.silent.admit(now, self.next_number, process);
            self.callers.push(Caller { number: self.next_number, stream, received: Vec::new() });
            self.next_number += 1;
        }
    }

    fn close(&mut self, number: u64) {
        self.silent.remove(number);
        self.callers.retain(|caller| caller.number != number);
    }

    fn remove(&mut self, index: usize) -> Caller {
        let caller = self.callers.remove(index);
        self.silent.remove(caller.number);
        caller
    }
}

impl Caller {
    /// The whole line, once it is there; an error where it does not come any more.
    fn read(&mut self, line_len_max: usize) -> io::Result<Option<String>> {
        let mut bytes = [0; 256];
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                self.received.truncate(end);
                return String::from_utf8(std::mem::take(&mut self.received))
                    .map(Some)
                    .map_err(|_| ErrorKind::InvalidData.into());
            }
            let capacity = line_len_max - self.received.len();
            if capacity == 0 {
                return Err(ErrorKind::InvalidData.into());
            }
            match self.stream.read(&mut bytes[..capacity.min(256)]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl LineCall {
    /// Answers with a line. A caller that does not take it is given up after a while.
    pub fn answer(mut self, answer: &str) {
        let is_ready = self.stream.set_nonblocking(false).is_ok()
            && self.stream.set_write_timeout(Some(ANSWER_TIMEOUT)).is_ok();
        if is_ready {
            // A caller that has gone needs no answer.
            let _ = self.stream.write_all(format!("{answer}\n").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn silent_callers_keep_nobody_out() {
        let path = std::env::temp_dir().join(format!("tickpath-lines-{}", std::process::id()));
        let mut socket = LineSocket::new(UnixDoor::open(&path).unwrap(), 16);
        let connect = || UnixStream::connect(&path).unwrap();
        let silent: Vec<UnixStream> = (0..100).map(|_| connect()).collect();
        let (mut client, mut long) = (connect(), connect());
        client.write_all(b"status\n").unwrap();
        long.write_all(&[b'x'; 16]).unwrap();
        let call = std::iter::repeat_with(|| socket.poll()).take(1_000).flatten().next().unwrap();
        assert_eq!(call.line, "status");
        call.answer("fine");
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        assert_eq!(answer, "fine\n");
        (0..10).for_each(|_| assert!(socket.poll().is_none()));
        assert!(socket.callers.len() < CALLERS.per_address);
        assert_eq!(long.read(&mut [0; 1]).unwrap_or(0), 0, "too long: closed");
        drop(silent);
        (0..100).for_each(|_| assert!(socket.poll().is_none()));
        assert!(socket.callers.is_empty() && socket.silent.is_empty());
    }
}
