//! The subscriber's end: messages out of a stream that is cut anywhere, with checksums and numbers checked.

mod machine;
mod numbers;

use thiserror::Error;

use crate::message::{
    EndOfStream, Heartbeat, Hello, MESSAGE_LEN_MAX, Refused, Skipped, Subscribed, SymbolDefinition, TICK_LEN,
    Tick,
};
use machine::Machine;

/// Bytes without a good message after which a stream is given up.
pub const RESYNC_LEN_MAX: u64 = 65_536;
/// Ticks that are given out together at most: they are still in the nearest cache when the listener reads them.
pub const BATCH_MAX: usize = 256;

/// The stream cannot be read on: close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The first message is no hello: whoever is there speaks something else.
    #[error("the peer does not speak the ticks protocol: check the address")]
    NotTicks,
    /// The peer speaks another version.
    #[error(
        "the peer speaks version {0} of the ticks protocol, this program version 1: use programs of one version"
    )]
    Version(u16),
    /// A hello in the middle of a stream.
    #[error("the peer said hello twice: connect anew")]
    SecondHello,
    /// No good message within [`RESYNC_LEN_MAX`] bytes.
    #[error("nothing in 65,536 bytes is a message of the ticks protocol: connect anew")]
    Lost,
}

/// Messages are missing before one that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The symbol whose messages are missing; 0 where the numbers of the session tell it.
    pub instrument: u16,
    /// The number that was expected: a sequence, or a symbol sequence.
    pub expected: u64,
    /// The number that came.
    pub found: u64,
    /// How many are missing.
    pub lost: u64,
}

/// Who learns of messages, in the order of the stream.
pub trait TickListener {
    /// Ticks that follow each other, each with a good checksum and a new number.
    fn on_ticks(&mut self, ticks: &[Tick]);
    /// The first message of the stream.
    fn on_hello(&mut self, _: &Hello) {}
    /// Name and terms of a symbol.
    fn on_symbol(&mut self, _: &SymbolDefinition) {}
    /// A sign of life.
    fn on_heartbeat(&mut self, _: &Heartbeat) {}
    /// The subscription is granted; its symbols follow.
    fn on_subscribed(&mut self, _: &Subscribed) {}
    /// A request, or this client, is refused.
    fn on_refused(&mut self, _: &Refused) {}
    /// The server left messages out.
    fn on_skipped(&mut self, _: &Skipped) {}
    /// The last message.
    fn on_end_of_stream(&mut self, _: &EndOfStream) {}
    /// Messages are missing before what is given out next.
    fn on_gap(&mut self, _: Gap) {}
    /// A message was damaged and is not given out.
    fn on_corrupt(&mut self) {}
    /// A message of a type that is not listed, whole.
    fn on_unknown(&mut self, _: &[u8]) {}
}

/// What a parser has seen since it was made, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParserStats {
    /// Bytes taken.
    pub bytes: u64,
    /// Ticks given out.
    pub ticks: u64,
    /// Other good messages, those of unknown types among them.
    pub others: u64,
    /// Messages of types that are not listed.
    pub unknown: u64,
    /// Places where something damaged began.
    pub corrupt: u64,
    /// Bytes passed over while looking for the next good message.
    pub resync_bytes: u64,
    /// Times that numbers were missing.
    pub gaps: u64,
    /// How many numbers were missing.
    pub lost: u64,
    /// Ticks with a number that had been before.
    pub duplicates: u64,
    /// Messages that the server said it left out.
    pub skipped: u64,
}

/// Messages out of a stream: see the [module](self).
pub struct TickParser {
    machine: Machine,
    /// The beginning of a message whose rest is to come, from `partial_start` on.
    partial: [u8; MESSAGE_LEN_MAX],
    partial_start: usize,
    partial_len: usize,
}

impl Default for TickParser {
    fn default() -> Self {
        TickParser::new()
    }
}

impl TickParser {
    /// A parser at the beginning of a stream.
    #[must_use]
    pub fn new() -> TickParser {
        TickParser {
            machine: Machine::new(),
            partial: [0; MESSAGE_LEN_MAX],
            partial_start: 0,
            partial_len: 0,
        }
    }

    /// Begins with a new connection; what was counted stays.
    pub fn restart(&mut self) {
        self.machine.restart();
        (self.partial_start, self.partial_len) = (0, 0);
    }

    /// What was seen so far.
    #[must_use]
    pub const fn stats(&self) -> &ParserStats {
        &self.machine.stats
    }

    /// The number expected next in the session; 0 before the hello.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.machine.numbers.next_sequence()
    }

    /// Takes the next bytes of the stream, any number of them, and gives what is whole to `listener`.
    ///
    /// # Errors
    /// [`StreamError`] when the stream cannot be read on; then each later call says the same, until
    /// [`restart`](TickParser::restart).
    #[inline]
    pub fn feed(&mut self, piece: &[u8], listener: &mut impl TickListener) -> Result<(), StreamError> {
        self.machine.stats.bytes += piece.len() as u64;
        let rest = match self.partial_len {
            0 => piece,
            _ => match self.complete_tick(piece, listener) {
                Some(rest) => rest,
                None => self.complete(piece, listener)?,
            },
        };
        if self.partial_len > 0 {
            return Ok(());
        }
        let taken = self.machine.take_all(rest, listener)?;
        self.keep(piece, rest.len() - taken);
        Ok(())
    }

    /// Puts a tick together that began in the piece before, and returns what follows it; `None` when that is not what began,
    /// or it is not good.
    ///
    /// All lengths that are copied are known to the compiler: a copy of any length costs as much as the tick.
    #[inline]
    fn complete_tick<'a>(&mut self, piece: &'a [u8], listener: &mut impl TickListener) -> Option<&'a [u8]> {
        let missing = TICK_LEN.checked_sub(self.partial_len)?;
        let head = piece.first_chunk::<TICK_LEN>()?;
        // Behind what is there is room for another tick: nothing as long as a tick begins behind one.
        let end = self.partial_start + self.partial_len;
        self.partial.get_mut(end..)?.first_chunk_mut::<TICK_LEN>()?.copy_from_slice(head);
        let tick = self.partial.get(self.partial_start..)?.first_chunk::<TICK_LEN>()?;
        if self.machine.take_tick(tick, listener) {
            self.partial_len = 0;
            return piece.get(missing..);
        }
        None
    }

    /// Puts the message together that began in an earlier piece, and returns what follows it.
    #[cold]
    fn complete<'a>(
        &mut self,
        piece: &'a [u8],
        listener: &mut impl TickListener,
    ) -> Result<&'a [u8], StreamError> {
        let start = std::mem::take(&mut self.partial_start);
        self.partial.copy_within(start..start + self.partial_len, 0);
        let mut rest = piece;
        while self.partial_len > 0 {
            let needed = self.machine.needed(&self.partial[..self.partial_len]);
            let add = needed.saturating_sub(self.partial_len).min(rest.len());
            let (now, later) = rest.split_at(add);
            self.partial[self.partial_len..][..add].copy_from_slice(now);
            self.partial_len += add;
            rest = later;
            if self.partial_len < needed {
                break;
            }
            let taken = self.machine.take_one(&self.partial[..self.partial_len], listener)?;
            self.partial.copy_within(taken..self.partial_len, 0);
            self.partial_len -= taken;
        }
        Ok(rest)
    }

    /// Keeps the last `len` bytes of a piece, the beginning of a message, which is shorter than the longest one.
    #[inline]
    fn keep(&mut self, piece: &[u8], len: usize) {
        self.partial_len = len;
        match piece.last_chunk::<TICK_LEN>() {
            Some(tail) if len <= TICK_LEN => {
                self.partial[..TICK_LEN].copy_from_slice(tail);
                self.partial_start = TICK_LEN - len;
            }
            _ => {
                self.partial[..len].copy_from_slice(&piece[piece.len() - len..]);
                self.partial_start = 0;
            }
        }
    }
}
