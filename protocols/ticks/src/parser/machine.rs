//! The state machine that parses a stream; it awaits the hello, reads messages, resynchronises or has failed.

use thiserror::Error;
use tickpath_lockfree::crc32c::{Instruction, Step, Table};
use zerocopy::FromBytes;

use crate::checksum::{is_checksum_valid, tick_checksum};
use crate::message::{
    EndOfStream, Header, Heartbeat, Hello, MAGIC, MESSAGE_LEN_MIN, Message, Refused, Skipped, Subscribed,
    SymbolDefinition, TICK_LEN, Tick, VERSION, WORD_LEN, listed_len,
};

use super::listener::{Gap, TickListener};
use super::numbers::{Numbers, Order};

/// Maximum number of bytes skipped in search of a valid message; after them the stream fails.
pub const RESYNC_LEN_MAX: u64 = 65_536;
/// Maximum number of ticks per `on_ticks` call, so that they are still in the L1 cache when it reads them.
pub const BATCH_MAX: usize = 256;

/// The stream cannot be read further: close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The first message is not a hello: the peer uses another protocol.
    #[error("the peer does not use the ticks protocol: check the address")]
    NotTicks,
    /// The peer uses another version of the protocol.
    #[error(
        "the peer uses version {0} of the ticks protocol, this program version 1: use programs of one version"
    )]
    Version(u16),
    /// The peer sent a hello after the first one.
    #[error("the peer sent a second hello: connect again")]
    SecondHello,
    /// No valid message within [`RESYNC_LEN_MAX`] bytes.
    #[error("65,536 bytes contain no message of the ticks protocol: connect again")]
    Lost,
}

/// Counters of a parser since its creation, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParserStats {
    /// Bytes received.
    pub bytes: u64,
    /// Ticks passed to the listener.
    pub ticks: u64,
    /// Valid messages other than ticks, including those of unlisted types.
    pub others: u64,
    /// Messages of unlisted types.
    pub unknown: u64,
    /// Number of times that damaged data was found in the stream.
    pub corrupt: u64,
    /// Bytes skipped in search of the next valid message.
    pub resync_bytes: u64,
    /// Number of gaps in the sequence numbers.
    pub gaps: u64,
    /// Number of missing sequence numbers.
    pub lost: u64,
    /// Numbered messages whose sequence number was below the expected one.
    pub duplicates: u64,
    /// Messages that the server omitted and reported in `Skipped`.
    pub skipped: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No hello has been received.
    #[default]
    BeforeHello,
    /// The next byte begins a message.
    Messages,
    /// The data is damaged; this many bytes were skipped in search of the next valid message.
    Resync(u64),
    /// The stream cannot be read further.
    Failed(StreamError),
}

/// Parses the bytes of a stream, and keeps the parsing state between calls.
#[derive(Debug)]
pub(super) struct Machine {
    /// The CPU's checksum instruction, detected once.
    instruction: Option<Instruction>,
    state: State,
    pub(super) numbers: Numbers,
    symbol_count: u16,
    pub(super) stats: ParserStats,
}

impl Machine {
    /// Creates a machine at the beginning of a stream.
    pub(super) fn new() -> Machine {
        Machine {
            instruction: Instruction::detect(),
            state: State::default(),
            numbers: Numbers::default(),
            symbol_count: 0,
            stats: ParserStats::default(),
        }
    }

    /// Resets the state for a new connection; the counters remain.
    pub(super) fn restart(&mut self) {
        *self = Machine { stats: self.stats, ..Machine::new() };
    }

    /// Handles all complete messages in `bytes`, and returns the remaining bytes.
    ///
    /// The fast path handles the usual case: complete ticks, possibly followed by part of another one.
    #[inline]
    pub(super) fn take_all<'a>(
        &mut self,
        bytes: &'a [u8],
        listener: &mut impl TickListener,
    ) -> Result<&'a [u8], StreamError> {
        let mut rest = bytes;
        if self.can_batch() {
            rest = self.take_ticks(bytes, listener);
            if is_start_of_tick(rest) {
                return Ok(rest);
            }
        }
        self.take_any(rest, listener)
    }

    /// The slow path of `take_all`, for messages of all kinds.
    #[inline(never)]
    fn take_any<'a>(
        &mut self,
        bytes: &'a [u8],
        listener: &mut impl TickListener,
    ) -> Result<&'a [u8], StreamError> {
        let mut rest = bytes;
        loop {
            // If the batch is not full, the next message is not the expected tick: `take_one` handles it.
            while self.can_batch() {
                let batch = rest;
                rest = self.take_ticks(batch, listener);
                if is_start_of_tick(rest) {
                    return Ok(rest);
                }
                if batch.len() - rest.len() < BATCH_MAX * TICK_LEN {
                    break;
                }
            }
            match self.take_one(rest, listener)? {
                0 => return Ok(rest),
                taken => rest = &rest[taken..],
            }
        }
    }

    /// Returns true if ticks can be handled in batches: the next byte begins a message, and the session's
    /// sequence numbers must be consecutive.
    #[inline]
    fn can_batch(&self) -> bool {
        self.state == State::Messages && self.numbers.are_of_session()
    }

    /// Handles the valid, consecutively numbered ticks at the start of `bytes`, at most [`BATCH_MAX`].
    /// Returns the bytes after them.
    #[inline]
    fn take_ticks<'a>(&mut self, bytes: &'a [u8], listener: &mut impl TickListener) -> &'a [u8] {
        let few = match self.instruction {
            Some(_) if bytes.len() < TICK_LEN => return bytes,
            Some(step) if bytes.len() < 2 * TICK_LEN => self.take_few::<_, 1>(step, bytes, listener),
            Some(step) if bytes.len() < 3 * TICK_LEN => self.take_few::<_, 2>(step, bytes, listener),
            _ => None,
        };
        few.unwrap_or_else(|| self.take_many(bytes, listener))
    }

    /// Handles the first `N` ticks if all are valid and consecutive, else none. `N` is constant, so the
    /// compiler unrolls the loop.
    #[inline(always)]
    fn take_few<'a, S: Step, const N: usize>(
        &mut self,
        step: S,
        bytes: &'a [u8],
        listener: &mut impl TickListener,
    ) -> Option<&'a [u8]> {
        let (ticks, rest) = <[Tick; N]>::ref_from_prefix(bytes).ok()?;
        let first = self.numbers.next_sequence();
        let are_valid = (first..).zip(ticks).all(|(number, tick)| is_valid_tick(step, tick, number));
        are_valid.then(|| {
            self.numbers.advance(N);
            self.stats.ticks += N as u64;
            listener.on_ticks(ticks);
            rest
        })
    }

    #[inline(never)]
    fn take_many<'a>(&mut self, bytes: &'a [u8], listener: &mut impl TickListener) -> &'a [u8] {
        let first = self.numbers.next_sequence();
        let (valid, rest) = match self.instruction {
            Some(step) => valid_ticks(step, bytes, first),
            None => valid_ticks_by_table(bytes, first),
        };
        if valid > 0
            && let Ok((ticks, _)) = <[Tick]>::ref_from_prefix_with_elems(bytes, valid)
        {
            self.numbers.advance(valid);
            self.stats.ticks += valid as u64;
            listener.on_ticks(ticks);
        }
        rest
    }

    /// Handles one message, or skips damaged data; returns the number of bytes taken, 0 if more are needed.
    #[cold]
    fn take_one(&mut self, bytes: &[u8], listener: &mut impl TickListener) -> Result<usize, StreamError> {
        let taken = match self.state {
            State::Failed(error) => Err(error),
            State::BeforeHello => self.take_hello(bytes, listener),
            State::Messages => self.take_message(bytes, listener),
            State::Resync(passed) => self.resync(bytes, passed, listener),
        };
        if let Err(error) = taken {
            self.state = State::Failed(error);
        }
        taken
    }

    fn take_hello(&mut self, bytes: &[u8], listener: &mut impl TickListener) -> Result<usize, StreamError> {
        let Ok((header, body)) = Header::ref_from_prefix(bytes) else { return Ok(0) };
        // A server that is full, or uses another version, may send `Refused` before its hello.
        if header.message_type == Refused::TYPE && header.message_len() == Refused::LEN {
            let Some(message) = bytes.get(..Refused::LEN) else { return Ok(0) };
            let refused = Refused::ref_from_bytes(message).ok().filter(|_| is_checksum_valid(message));
            listener.on_refused(refused.ok_or(StreamError::NotTicks)?);
            self.stats.others += 1;
            return Ok(Refused::LEN);
        }
        if header.message_type != Hello::TYPE || !body.starts_with(&MAGIC[..body.len().min(MAGIC.len())]) {
            return Err(StreamError::NotTicks);
        }
        // Magic and version have the same offsets in all versions; the hello's length may differ.
        let Some(version) = body.get(8..10) else { return Ok(0) };
        match u16::from_le_bytes([version[0], version[1]]) {
            VERSION => {}
            other => return Err(StreamError::Version(other)),
        }
        let Some(message) = bytes.get(..Hello::LEN) else { return Ok(0) };
        let hello = Hello::ref_from_bytes(message).map_err(|_| StreamError::NotTicks)?;
        if header.message_len() != Hello::LEN || !is_checksum_valid(message) {
            return Err(StreamError::NotTicks);
        }
        self.state = State::Messages;
        self.symbol_count = u16::try_from(hello.symbol_count.get()).unwrap_or(u16::MAX);
        self.numbers.begin(hello.header.sequence.get());
        self.stats.others += 1;
        listener.on_hello(hello);
        Ok(Hello::LEN)
    }

    fn take_message(&mut self, bytes: &[u8], listener: &mut impl TickListener) -> Result<usize, StreamError> {
        let Ok((header, _)) = Header::ref_from_prefix(bytes) else { return Ok(0) };
        if !has_right_len(header) {
            return Ok(self.damaged(listener));
        }
        let Some(message) = bytes.get(..header.message_len()) else { return Ok(0) };
        if !is_checksum_valid(message) {
            return Ok(self.damaged(listener));
        }
        if Tick::TYPES.contains(&header.message_type) {
            let tick = Tick::ref_from_bytes(message).expect("its length was compared");
            if self.is_new(header, listener) {
                self.stats.ticks += 1;
                listener.on_ticks(std::slice::from_ref(tick));
            }
        } else {
            self.stats.others += 1;
            self.take_other(header, message, listener)?;
        }
        Ok(message.len())
    }

    /// Reports damaged data, and skips one word of 8 bytes. Returns the number of bytes skipped.
    fn damaged(&mut self, listener: &mut impl TickListener) -> usize {
        self.stats.corrupt += 1;
        self.stats.resync_bytes += WORD_LEN as u64;
        self.state = State::Resync(WORD_LEN as u64);
        listener.on_corrupt();
        WORD_LEN
    }

    /// Searches for the next valid message of a listed type, word by word, and handles it. Returns the number
    /// of bytes skipped and handled.
    fn resync(
        &mut self,
        bytes: &[u8],
        passed: u64,
        listener: &mut impl TickListener,
    ) -> Result<usize, StreamError> {
        let (mut at, mut passed) = (0, passed);
        while let Ok((header, _)) = Header::ref_from_prefix(&bytes[at..]) {
            if listed_len(header.message_type) == Some(header.message_len()) {
                let Some(message) = bytes.get(at..at + header.message_len()) else { break };
                if is_checksum_valid(message) {
                    self.state = State::Messages;
                    return Ok(at + self.take_message(&bytes[at..], listener)?);
                }
            }
            if passed >= RESYNC_LEN_MAX {
                return Err(StreamError::Lost);
            }
            at += WORD_LEN;
            passed += WORD_LEN as u64;
            self.stats.resync_bytes += WORD_LEN as u64;
        }
        self.state = State::Resync(passed);
        Ok(at)
    }

    /// Checks a message's sequence numbers, and reports a gap before it; returns false for a duplicate.
    fn is_new(&mut self, header: &Header, listener: &mut impl TickListener) -> bool {
        match self.numbers.take(header) {
            Order::Next => {}
            Order::After(gap) => self.missing(gap, listener),
            Order::Before => {
                self.stats.duplicates += 1;
                return false;
            }
        }
        true
    }

    fn missing(&mut self, gap: Gap, listener: &mut impl TickListener) {
        self.stats.gaps += 1;
        self.stats.lost = self.stats.lost.saturating_add(gap.lost);
        listener.on_gap(gap);
    }

    /// Reports the messages missing before an unnumbered message, whose header has the next sequence number.
    fn catch_up(&mut self, header: &Header, listener: &mut impl TickListener) {
        if let Some(gap) = self.numbers.catch_up(header.sequence.get()) {
            self.missing(gap, listener);
        }
    }

    fn take_other(
        &mut self,
        header: &Header,
        message: &[u8],
        listener: &mut impl TickListener,
    ) -> Result<(), StreamError> {
        match header.message_type {
            Hello::TYPE => return Err(StreamError::SecondHello),
            SymbolDefinition::TYPE => {
                self.numbers.define(header);
                listener.on_symbol(listed(message));
            }
            Heartbeat::TYPE => {
                self.catch_up(header, listener);
                listener.on_heartbeat(listed(message));
            }
            Subscribed::TYPE => {
                let subscribed: &Subscribed = listed(message);
                self.numbers.subscribe(header.sequence.get(), subscribed.scope(), self.symbol_count);
                listener.on_subscribed(subscribed);
            }
            Refused::TYPE => listener.on_refused(listed(message)),
            EndOfStream::TYPE => {
                self.catch_up(header, listener);
                listener.on_end_of_stream(listed(message));
            }
            Skipped::TYPE => {
                let skipped: &Skipped = listed(message);
                self.stats.skipped = self.stats.skipped.saturating_add(skipped.count.get());
                self.numbers.skip_to(header.sequence.get());
                listener.on_skipped(skipped);
            }
            _ => {
                self.stats.unknown += 1;
                if !header.is_numbered() || self.is_new(header, listener) {
                    listener.on_unknown(message);
                }
            }
        }
        Ok(())
    }
}

/// Counts the valid ticks at the start of `bytes` that are numbered consecutively from `first`, at most
/// [`BATCH_MAX`]. Returns the count and the bytes after these ticks.
#[inline]
fn valid_ticks<S: Step>(step: S, bytes: &[u8], first: u64) -> (usize, &[u8]) {
    let (mut rest, mut valid) = (bytes, 0);
    while valid < BATCH_MAX
        && let Ok((tick, later)) = Tick::ref_from_prefix(rest)
        && faults(step, tick, first.wrapping_add(valid as u64)) == 0
    {
        (rest, valid) = (later, valid + 1);
    }
    (valid, rest)
}

/// Returns true for a valid tick with sequence number `number`.
#[inline(always)]
fn is_valid_tick<S: Step>(step: S, tick: &Tick, number: u64) -> bool {
    is_kind_of_tick([tick.header.message_type, tick.header.length_words])
        && tick.header.sequence.get() == number
        && tick_checksum(step, tick) == tick.checksum.get()
}

/// Like `is_valid_tick`, but returns 0 for a valid tick and has no branches, which is faster for many ticks.
#[inline(always)]
fn faults<S: Step>(step: S, tick: &Tick, number: u64) -> u64 {
    let other_kind = !is_kind_of_tick([tick.header.message_type, tick.header.length_words]);
    u64::from(tick_checksum(step, tick) ^ tick.checksum.get())
        | (tick.header.sequence.get() ^ number)
        | u64::from(other_kind)
}

/// Calls `valid_ticks` on CPUs without the CRC instruction; not inlined, so as not to slow `take_many`.
#[cold]
#[inline(never)]
fn valid_ticks_by_table(bytes: &[u8], first: u64) -> (usize, &[u8]) {
    valid_ticks(Table, bytes, first)
}

/// Returns true when these are the type and length of a tick.
#[inline]
fn is_kind_of_tick(type_and_length: [u8; 2]) -> bool {
    /// The first two bytes, type and length, of a tick of the lowest type, as a little-endian number.
    const FIRST: u16 = u16::from_le_bytes([*Tick::TYPES.start(), (TICK_LEN / WORD_LEN) as u8]);
    const OTHERS: u16 = (*Tick::TYPES.end() - *Tick::TYPES.start()) as u16;
    u16::from_le_bytes(type_and_length).wrapping_sub(FIRST) <= OTHERS
}

/// Returns true if `rest` is empty, or may be the beginning of an incomplete tick.
#[inline]
fn is_start_of_tick(rest: &[u8]) -> bool {
    rest.len() < TICK_LEN && rest.first_chunk().is_none_or(|kind| is_kind_of_tick(*kind))
}

/// Returns a message as the structure `M`; the caller has checked that the length is that of its type.
fn listed<M: Message>(message: &[u8]) -> &M {
    M::ref_from_bytes(message).expect("its length was compared with its type's")
}

/// Returns true if the header states a valid length: the type's length, or for an unlisted type at least
/// [`MESSAGE_LEN_MIN`].
fn has_right_len(header: &Header) -> bool {
    match listed_len(header.message_type) {
        Some(len) => header.message_len() == len,
        None => header.message_len() >= MESSAGE_LEN_MIN,
    }
}
