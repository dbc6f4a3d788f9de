//! Message envelopes: a client's reading and writing of frames.

use std::fmt;

use crate::error_code::ErrorCode;
use crate::field::{Field, message};
use crate::method::Method;
use crate::scan::{Rest, ScanError, ScanErrorKind, Scanner, Value};
use crate::text::Text;

/// Request id, a number or a text, which the reply echoes unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    /// An integer.
    Number(i64),
    /// A text.
    Text(Text<'a>),
}

impl Default for Id<'_> {
    /// The number 0.
    fn default() -> Self {
        Id::Number(0)
    }
}

impl fmt::Debug for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => fmt::Debug::fmt(number, f),
            Id::Text(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => fmt::Display::fmt(number, f),
            Id::Text(text) => fmt::Display::fmt(text, f),
        }
    }
}

impl<'a> Field<'a> for Id<'a> {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        if scanner.peek() == Some(b'"') {
            scanner.text().map(Id::Text)
        } else {
            i64::read(scanner).map(Id::Number)
        }
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        match i64::quick(rest) {
            Some((number, rest)) => Some((Id::Number(number), rest)),
            None => Text::quick(rest).map(|(text, rest)| (Id::Text(text), rest)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Id::Number(number) => number.write(out),
            Id::Text(text) => text.write(out),
        }
    }
}

message! {
    /// Reason why a request was rejected.
    #[derive(Copy)]
    pub struct ErrorBody<'a> {
        /// Error code, see [`ErrorCode`].
        pub code: i64,
        /// Error message; some end with a limit: `price_too_high 43666.4288`.
        pub message: Text<'a>,
        /// Additional data.
        pub data: Option<Value<'a>>,
    }
}

impl ErrorBody<'_> {
    /// The error code, if known.
    #[must_use]
    pub const fn error_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_code(self.code)
    }
}

/// Times when the server received a request and replied, in microseconds since 1970; 0 if not stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTime {
    /// Time of the request.
    pub us_in: u64,
    /// Time of the reply.
    pub us_out: u64,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response<'a> {
    /// Id of the request; `None` if the server could not read it.
    pub id: Option<Id<'a>>,
    /// The result, with the type of the request's method, or the error.
    pub outcome: Result<Value<'a>, ErrorBody<'a>>,
    /// Processing times of the server.
    pub server_time: ServerTime,
    /// True on the test environment.
    pub testnet: bool,
}

/// Data of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Notification<'a> {
    /// The channel's name, see [`Channel`](crate::channel::Channel).
    pub channel: Text<'a>,
    /// The new data.
    pub data: Value<'a>,
    /// The label from the client's subscription.
    pub label: Option<Text<'a>>,
}

/// A frame from the server.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Inbound<'a> {
    /// A reply.
    Response(Response<'a>),
    /// Data of a channel.
    Notification(Notification<'a>),
    /// A heartbeat of the server.
    Heartbeat,
    /// The server requests a test: reply with `public/test` at once.
    TestRequest,
    /// A notification of a later API version.
    Unknown {
        /// Its method.
        method: Text<'a>,
    },
}

/// Reads results and data in one pass with their envelope. Each function must read exactly one value.
///
/// Values are valid only once the whole frame has been read, because an error may follow. If a frame repeats
/// a value, the visitor receives both, and the last one counts.
pub trait Visitor<'a> {
    /// Reads a result, with the id of its request.
    ///
    /// # Errors
    /// [`ScanError`] rejects the frame.
    fn on_result(&mut self, id: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        let _ = id;
        result.skip()
    }

    /// Reads data of a channel.
    ///
    /// # Errors
    /// [`ScanError`] rejects the frame.
    fn on_data(&mut self, channel: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        let _ = channel;
        data.skip()
    }
}

/// Defers the reading of results and data to their [`Value`]s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Later;

impl Visitor<'_> for Later {}

impl<'a> Inbound<'a> {
    /// Parses and validates a whole frame; results and data can be read later from their [`Value`]s.
    ///
    /// # Errors
    /// [`ScanError`] if it is not a message of the server: count and drop it.
    pub fn parse(frame: &'a [u8]) -> Result<Inbound<'a>, ScanError> {
        Inbound::read(Scanner::from_bytes(frame)?, &mut Later)
    }

    /// Parses a frame that the transport has validated as UTF-8, with its result or data in the same pass.
    ///
    /// # Errors
    /// [`ScanError`] if it is not a message of the server, or if `visitor` rejects it.
    pub fn parse_with(frame: &'a str, visitor: &mut impl Visitor<'a>) -> Result<Inbound<'a>, ScanError> {
        Inbound::read(Scanner::new(frame), visitor)
    }

    /// Parses the frame at whose start the scanner is.
    ///
    /// # Errors
    /// [`ScanError`] if it is not a message of the server, or if `visitor` rejects it.
    pub fn read(mut scanner: Scanner<'a>, visitor: &mut impl Visitor<'a>) -> Result<Inbound<'a>, ScanError> {
        if scanner.take(NOTIFICATION) {
            scanner.note_opened(2);
            return Inbound::read_notification(scanner, visitor);
        }
        let mut parts = Parts::default();
        scanner.open_object()?;
        parts.read_usual(&mut scanner, visitor)?;
        parts.finish(scanner, visitor)
    }

    /// Reads data of a channel, starting at the channel name.
    #[inline]
    fn read_notification(
        mut scanner: Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<Inbound<'a>, ScanError> {
        let channel = scanner.text()?;
        let mut data = None;
        if scanner.take(",\"data\":") {
            let mark = scanner.mark();
            visitor.on_data(channel, &mut scanner)?;
            let value = scanner.value_since(mark);
            if scanner.is_rest("}}") {
                return Ok(Inbound::Notification(Notification { channel, data: value, label: None }));
            }
            data = Some(value);
        }
        Parts::read_unusual(channel, data, scanner, visitor)
    }
}

/// Usual start of a channel's data frame; its data is two containers deep.
const NOTIFICATION: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{\"channel\":";

/// The members of a frame.
#[derive(Default)]
struct Parts<'a> {
    /// Outer `Option`: whether the id is present; inner: null or the id.
    id: Option<Option<Id<'a>>>,
    result: Option<Value<'a>>,
    /// True if the result precedes the id.
    is_result_postponed: bool,
    error: Option<ErrorBody<'a>>,
    method: Option<Text<'a>>,
    channel: Option<Text<'a>>,
    data: Option<Value<'a>>,
    /// True if the data precedes its channel.
    is_data_postponed: bool,
    heartbeat: Option<Text<'a>>,
    label: Option<Text<'a>>,
    server_time: ServerTime,
    testnet: bool,
}

impl<'a> Parts<'a> {
    /// Reads data of a channel with unusual members in or after its `params`.
    #[inline(never)]
    fn read_unusual(
        channel: Text<'a>,
        data: Option<Value<'a>>,
        mut scanner: Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<Inbound<'a>, ScanError> {
        let method = Some(Text::new("subscription"));
        let mut parts = Parts { method, channel: Some(channel), data, ..Parts::default() };
        parts.read_params_members(&mut scanner, visitor)?;
        parts.finish(scanner, visitor)
    }

    /// Reads the members of a reply in their usual positions; [`Parts::read_member`] handles the rest.
    #[inline]
    fn read_usual(
        &mut self,
        scanner: &mut Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), ScanError> {
        if !scanner.take("\"jsonrpc\":\"2.0\",\"id\":") {
            return Ok(());
        }
        self.id = Some(match scanner.quick() {
            Some(id) => id,
            None => Option::read(scanner)?,
        });
        if scanner.take(",\"result\":") {
            self.read_result(scanner, visitor)?;
            if let Some((server_time, testnet)) = scanner.quick_by(usual_end) {
                (self.server_time, self.testnet) = (server_time, testnet);
            }
        }
        Ok(())
    }

    /// Reads the remaining members, and determines the kind of the frame.
    #[inline(always)]
    fn finish(
        &mut self,
        mut scanner: Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<Inbound<'a>, ScanError> {
        while scanner.next_member()? {
            self.read_member(&mut scanner, visitor)?;
        }
        let end = scanner.clone();
        scanner.finish()?;
        self.read_postponed(visitor)?;
        self.classify(&end)
    }

    fn read_member(
        &mut self,
        scanner: &mut Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), ScanError> {
        match scanner.key()? {
            "id" => self.id = Some(Option::read(scanner)?),
            "result" => self.read_result(scanner, visitor)?,
            "params" => self.read_params(scanner, visitor)?,
            "method" => self.method = Some(scanner.text()?),
            "error" => self.error = Option::read(scanner)?,
            "usIn" => self.server_time.us_in = u64::read(scanner)?,
            "usOut" => self.server_time.us_out = u64::read(scanner)?,
            "testnet" => self.testnet = scanner.bool()?,
            _ => scanner.skip()?,
        }
        Ok(())
    }

    #[inline]
    fn read_result(
        &mut self,
        scanner: &mut Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), ScanError> {
        let mark = scanner.mark();
        match self.id {
            Some(id) => visitor.on_result(id, scanner)?,
            None => scanner.skip()?,
        }
        self.is_result_postponed = self.id.is_none();
        self.result = Some(scanner.value_since(mark));
        Ok(())
    }

    #[inline]
    fn read_params(
        &mut self,
        scanner: &mut Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), ScanError> {
        scanner.open_object()?;
        self.read_params_members(scanner, visitor)
    }

    fn read_params_members(
        &mut self,
        scanner: &mut Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), ScanError> {
        while scanner.next_member()? {
            match scanner.key()? {
                "channel" => self.channel = Some(scanner.text()?),
                "data" => self.read_data(scanner, visitor)?,
                "type" => self.heartbeat = Some(scanner.text()?),
                "label" => self.label = Option::read(scanner)?,
                _ => scanner.skip()?,
            }
        }
        Ok(())
    }

    #[inline]
    fn read_data(
        &mut self,
        scanner: &mut Scanner<'a>,
        visitor: &mut impl Visitor<'a>,
    ) -> Result<(), ScanError> {
        let mark = scanner.mark();
        match self.channel {
            Some(channel) => visitor.on_data(channel, scanner)?,
            None => scanner.skip()?,
        }
        self.is_data_postponed = self.channel.is_none();
        self.data = Some(scanner.value_since(mark));
        Ok(())
    }

    /// Reads the values that could not be read in place.
    fn read_postponed(&self, visitor: &mut impl Visitor<'a>) -> Result<(), ScanError> {
        if let (Some(result), true) = (self.result, self.is_result_postponed) {
            visitor.on_result(self.id.flatten(), &mut result.scanner())?;
        }
        if let (Some(data), Some(channel), true) = (self.data, self.channel, self.is_data_postponed) {
            visitor.on_data(channel, &mut data.scanner())?;
        }
        Ok(())
    }

    #[inline(always)]
    fn classify(&self, end: &Scanner<'a>) -> Result<Inbound<'a>, ScanError> {
        let missing = |member| end.error(ScanErrorKind::Missing).of_member(member);
        if let Some(method) = self.method {
            return match method.plain() {
                Some("subscription") => Ok(Inbound::Notification(Notification {
                    channel: self.channel.ok_or_else(|| missing("channel"))?,
                    data: self.data.ok_or_else(|| missing("data"))?,
                    label: self.label,
                })),
                Some("heartbeat") => match self.heartbeat.ok_or_else(|| missing("type"))?.plain() {
                    Some("test_request") => Ok(Inbound::TestRequest),
                    _ => Ok(Inbound::Heartbeat),
                },
                _ => Ok(Inbound::Unknown { method }),
            };
        }
        let outcome = match (self.error, self.result) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result),
            (None, None) => return Err(missing("result")),
        };
        let id = self.id.flatten();
        if id.is_none() && outcome.is_ok() {
            return Err(missing("id"));
        }
        let (server_time, testnet) = (self.server_time, self.testnet);
        Ok(Inbound::Response(Response { id, outcome, server_time, testnet }))
    }
}

/// Reads the usual members after a result.
#[inline(always)]
fn usual_end(rest: Rest<'_>) -> Option<((ServerTime, bool), Rest<'_>)> {
    let (us_in, rest) = u64::quick(rest.after(",\"usIn\":")?)?;
    let (us_out, rest) = u64::quick(rest.after(",\"usOut\":")?)?;
    let (_, rest) = u64::quick(rest.after(",\"usDiff\":")?)?;
    let (testnet, rest) = bool::quick(rest.after(",\"testnet\":")?)?;
    Some(((ServerTime { us_in, us_out }, testnet), rest))
}

/// Appends a client's request.
///
/// Never inlined, so that sending and warm-up run the same code.
#[inline(never)]
pub fn write_request<'a>(id: Id<'_>, method: Method, params: &impl Field<'a>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(out);
    out.extend_from_slice(method.envelope().as_bytes());
    params.write(out);
    out.push(b'}');
}
