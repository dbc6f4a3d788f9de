//! The subscriber's end: parses messages from a stream with any fragmentation, and verifies checksums and
//! sequence numbers.

mod listener;
mod machine;
mod numbers;

use crate::message::MESSAGE_LEN_MAX;
use machine::Machine;

pub use listener::{Gap, TickListener};
pub use machine::{BATCH_MAX, ParserStats, RESYNC_LEN_MAX, StreamError};

/// Default size of a parser's buffer in bytes.
pub const BUFFER_LEN: usize = 64 << 10;

/// Parses messages of a stream: see the [module](self).
///
/// It owns the buffer that receives the stream, and reads messages in place. It copies only an incomplete
/// message: to the start of the buffer, when less than half of the buffer is free.
///
/// ```
/// use tickpath_ticks::message::Tick;
/// use tickpath_ticks::parser::{StreamError, TickListener, TickParser};
///
/// struct Count(usize);
/// impl TickListener for Count {
///     fn on_ticks(&mut self, ticks: &[Tick]) {
///         self.0 += ticks.len();
///     }
/// }
///
/// let (mut parser, mut count) = (TickParser::new(), Count(0));
/// let mut socket: &[u8] = b"GET / HTTP/1.1\r\n";
/// let len = std::io::Read::read(&mut socket, parser.free_space())?;
/// assert_eq!(parser.commit(len, &mut count), Err(StreamError::NotTicks));
/// # std::io::Result::Ok(())
/// ```
pub struct TickParser {
    machine: Machine,
    /// The bytes from `start` to `end` were received but not parsed.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for TickParser {
    fn default() -> Self {
        TickParser::new()
    }
}

impl TickParser {
    /// Creates a parser at the beginning of a stream, with a buffer of [`BUFFER_LEN`] bytes.
    #[must_use]
    pub fn new() -> TickParser {
        TickParser::with_buffer(BUFFER_LEN)
    }

    /// Creates a parser with a buffer of `len` bytes, or of twice the longest message if `len` is less.
    #[must_use]
    pub fn with_buffer(len: usize) -> TickParser {
        let buffer = vec![0; len.max(2 * MESSAGE_LEN_MAX)].into_boxed_slice();
        TickParser { machine: Machine::new(), buffer, start: 0, end: 0 }
    }

    /// Resets the parser for a new connection; the counters remain.
    pub fn restart(&mut self) {
        self.machine.restart();
        (self.start, self.end) = (0, 0);
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn stats(&self) -> &ParserStats {
        &self.machine.stats
    }

    /// Returns the next expected sequence number of the session; 0 before the hello.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.machine.numbers.next_sequence()
    }

    /// Returns a symbol's next expected sequence number; `None` if it is unknown, or if no list of symbols is
    /// subscribed.
    #[must_use]
    pub fn next_symbol_sequence(&self, instrument: u16) -> Option<u32> {
        self.machine.numbers.next_symbol_sequence(instrument)
    }

    /// Returns the free space for the next bytes of the stream, at least half of the buffer.
    #[inline]
    pub fn free_space(&mut self) -> &mut [u8] {
        if self.end > self.buffer.len() / 2 {
            self.move_to_front();
        }
        &mut self.buffer[self.end..]
    }

    /// Moves the unparsed bytes, which are part of one message, to the start of the buffer.
    #[cold]
    fn move_to_front(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Parses the first `len` bytes of the [free space](TickParser::free_space), into which the caller has
    /// read the stream's next bytes, and passes complete messages to `listener`.
    ///
    /// # Errors
    /// [`StreamError`] when the stream cannot be read further; later calls return the same error, until
    /// [`restart`](TickParser::restart).
    ///
    /// # Panics
    /// When `len` exceeds the free space.
    #[inline]
    pub fn commit(&mut self, len: usize, listener: &mut impl TickListener) -> Result<(), StreamError> {
        self.machine.stats.bytes += len as u64;
        self.end += len;
        match self.machine.take_all(&self.buffer[self.start..self.end], listener) {
            Ok(rest) => {
                self.start = self.end - rest.len();
                Ok(())
            }
            Err(error) => {
                self.start = self.end;
                Err(error)
            }
        }
    }

    /// Copies bytes from another buffer into the free space, and [commits](TickParser::commit) them.
    ///
    /// # Errors
    /// The errors of [`commit`](TickParser::commit).
    pub fn feed(&mut self, bytes: &[u8], listener: &mut impl TickListener) -> Result<(), StreamError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let free_space = self.free_space();
            let (now, later) = rest.split_at(free_space.len().min(rest.len()));
            free_space[..now.len()].copy_from_slice(now);
            self.commit(now.len(), listener)?;
            rest = later;
        }
        Ok(())
    }
}
