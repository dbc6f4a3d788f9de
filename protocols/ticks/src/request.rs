//! The server's end: parses a client's messages. Also encodes a client's requests for symbols.

use thiserror::Error;
use tickpath_types::Symbol;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use crate::checksum::is_checksum_valid;
use crate::message::{
    CHECKSUM_LEN, HEADER_LEN, Header, Heartbeat, Hello, MAGIC, MESSAGE_LEN_MAX, MESSAGE_LEN_MIN, Message,
    Place, SUBSCRIBE, SUBSCRIBE_NAMES_MAX, VERSION,
};

/// Offset of the names in a [`SUBSCRIBE`] message, in bytes.
const NAMES_AT: usize = HEADER_LEN + 8;
/// Length of a [`SUBSCRIBE`] message without names, in bytes.
const SUBSCRIBE_LEN_MIN: usize = NAMES_AT + 4 + CHECKSUM_LEN;
/// Length of a name in bytes.
const NAME_LEN: usize = size_of::<Symbol>();

/// Appends to `out` the messages that request `symbols`, or all symbols if `symbols` is empty.
pub fn encode_subscribe(request: u32, symbols: &[Symbol], out: &mut Vec<u8>) {
    let total = u32::try_from(symbols.len()).unwrap_or(u32::MAX);
    let (first, others) = symbols.split_at(symbols.len().min(SUBSCRIBE_NAMES_MAX));
    encode_part(request, total, first, out);
    others.chunks(SUBSCRIBE_NAMES_MAX).for_each(|part| encode_part(request, total, part, out));
}

fn encode_part(request: u32, total: u32, symbols: &[Symbol], out: &mut Vec<u8>) {
    let start = out.len();
    let len = SUBSCRIBE_LEN_MIN + NAME_LEN * symbols.len();
    out.extend(Header::new(SUBSCRIBE, len, Place::default()).as_bytes());
    out.extend(request.to_le_bytes());
    out.extend(total.to_le_bytes());
    symbols.iter().for_each(|symbol| out.extend(symbol.0));
    out.extend([0; 4]);
    let checksum = tickpath_lockfree::crc32c::checksum(&out[start..]);
    out.extend(checksum.to_le_bytes());
}

/// The reason why the client must be refused and its connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The client uses another version: refuse with [`Version`](crate::message::RefusedReason::Version).
    #[error("the client uses version {0} of the ticks protocol")]
    Version(u16),
    /// The data is not a valid message, or the message is not allowed at this point: refuse with
    /// [`RefusedReason::Malformed`](crate::message::RefusedReason::Malformed).
    #[error("the client sent an invalid or unexpected message of the ticks protocol")]
    Malformed,
}

/// One [`SUBSCRIBE`] message; a request for many names consists of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscribePart<'a> {
    /// Id of the request, chosen by the client.
    pub request: u32,
    /// Number of names in the whole request; 0 for all symbols.
    pub total: u32,
    /// The names of this part, padded with spaces, unvalidated.
    pub names: &'a [[u8; NAME_LEN]],
    /// True when this is the first part.
    pub is_first: bool,
    /// True when this part completes the request.
    pub is_last: bool,
}

/// Receives a client's messages.
pub trait RequestListener {
    /// Handles the client's hello, its first message.
    fn on_hello(&mut self, hello: &Hello);
    /// Handles one message of a request; the messages of one request are consecutive.
    fn on_subscribe(&mut self, part: SubscribePart<'_>);
    /// Handles a request for more names than the limit; called only for its first part.
    fn on_too_many(&mut self, request: u32, total: u32);
    /// Handles a heartbeat.
    fn on_heartbeat(&mut self) {}
}

/// An incomplete request: `left` of its `total` names have not arrived.
#[derive(Clone, Copy, Debug)]
struct Open {
    request: u32,
    total: u32,
    left: u32,
}

/// Parses a client's messages from a stream with any fragmentation. An invalid message ends the parsing.
pub struct RequestParser {
    partial: [u8; MESSAGE_LEN_MAX],
    partial_len: usize,
    symbols_max: u32,
    has_received_hello: bool,
    open: Option<Open>,
    failed: Option<RequestError>,
}

impl RequestParser {
    /// Creates a parser for a client that may name at most `symbols_max` symbols in one request.
    #[must_use]
    pub const fn new(symbols_max: u32) -> RequestParser {
        RequestParser {
            partial: [0; MESSAGE_LEN_MAX],
            partial_len: 0,
            symbols_max,
            has_received_hello: false,
            open: None,
            failed: None,
        }
    }

    /// Returns true once the client's hello was received.
    #[must_use]
    pub const fn has_received_hello(&self) -> bool {
        self.has_received_hello
    }

    /// Processes the next bytes of the stream, of any length, and passes complete messages to `listener`.
    ///
    /// # Errors
    /// [`RequestError`] when the client must be refused; later calls return the same error.
    pub fn feed(&mut self, piece: &[u8], listener: &mut impl RequestListener) -> Result<(), RequestError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut rest = piece;
        while !rest.is_empty() {
            let needed = self.needed();
            let (now, later) = rest.split_at((needed - self.partial_len).min(rest.len()));
            self.partial[self.partial_len..][..now.len()].copy_from_slice(now);
            self.partial_len += now.len();
            rest = later;
            if self.partial_len == needed {
                self.take(listener).inspect_err(|error| self.failed = Some(*error))?;
            }
        }
        Ok(())
    }

    /// Returns the number of bytes to buffer: the length of a header or, once it is complete, of the message.
    fn needed(&self) -> usize {
        let partial = &self.partial[..self.partial_len];
        Header::ref_from_prefix(partial).map_or(HEADER_LEN, |(header, _)| header.message_len())
    }

    /// Processes the buffered bytes: checks a complete header, or decodes a complete message.
    fn take(&mut self, listener: &mut impl RequestListener) -> Result<(), RequestError> {
        let partial = self.partial;
        let message = &partial[..self.partial_len];
        let (header, body) = Header::ref_from_prefix(message).map_err(|_| RequestError::Malformed)?;
        if body.is_empty() {
            return self.check_header(header);
        }
        if header.message_type == Hello::TYPE {
            self.check_version(body)?;
        }
        if !is_checksum_valid(message) {
            return Err(RequestError::Malformed);
        }
        self.partial_len = 0;
        match header.message_type {
            Hello::TYPE => {
                self.has_received_hello = true;
                listener.on_hello(Hello::ref_from_bytes(message).map_err(|_| RequestError::Malformed)?);
            }
            SUBSCRIBE => self.take_subscribe(body, listener)?,
            _ => listener.on_heartbeat(),
        }
        Ok(())
    }

    /// Refuses a header that cannot begin a valid message, before the rest of the message has arrived.
    fn check_header(&self, header: &Header) -> Result<(), RequestError> {
        let len = header.message_len();
        let has_place = match header.message_type {
            // A hello of another version may have another length.
            Hello::TYPE => !self.has_received_hello && len >= MESSAGE_LEN_MIN + 8,
            Heartbeat::TYPE => self.has_received_hello && len == Heartbeat::LEN,
            SUBSCRIBE => self.has_received_hello && len >= SUBSCRIBE_LEN_MIN,
            _ => false,
        };
        if has_place { Ok(()) } else { Err(RequestError::Malformed) }
    }

    fn check_version(&self, body: &[u8]) -> Result<(), RequestError> {
        let (magic, rest) = body.split_first_chunk::<8>().ok_or(RequestError::Malformed)?;
        let (version, _) = rest.split_first_chunk::<2>().ok_or(RequestError::Malformed)?;
        match u16::from_le_bytes(*version) {
            _ if *magic != MAGIC => Err(RequestError::Malformed),
            VERSION => Ok(()),
            other => Err(RequestError::Version(other)),
        }
    }

    fn take_subscribe(
        &mut self,
        body: &[u8],
        listener: &mut impl RequestListener,
    ) -> Result<(), RequestError> {
        let (numbers, rest) = <[U32; 2]>::ref_from_prefix(body).map_err(|_| RequestError::Malformed)?;
        let [request, total] = numbers.map(U32::get);
        let names = rest[..rest.len() - 8].as_chunks::<NAME_LEN>().0;
        let count = u32::try_from(names.len()).map_err(|_| RequestError::Malformed)?;
        let open = match self.open {
            Some(open) if (open.request, open.total) != (request, total) => {
                return Err(RequestError::Malformed);
            }
            Some(open) => open,
            None => Open { request, total, left: total },
        };
        let is_first = self.open.is_none();
        // Only a request for all symbols has a part without names.
        if count > open.left || (count == 0 && total != 0) {
            return Err(RequestError::Malformed);
        }
        let left = open.left - count;
        self.open = (left > 0).then_some(Open { left, ..open });
        match total > self.symbols_max {
            true if is_first => listener.on_too_many(request, total),
            true => {}
            false => {
                listener.on_subscribe(SubscribePart { request, total, names, is_first, is_last: left == 0 });
            }
        }
        Ok(())
    }
}
