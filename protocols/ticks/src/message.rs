//! Messages in their wire layout, one structure each.
//!
//! Source: `docs/protocols/ticks.md`, version 1. All fields are little-endian and unaligned. Constructors
//! leave the checksum 0: [`crate::checksum`] fills it.

use tickpath_types::{InstrumentId, Nanos, Price, Side, Symbol, TradingState};
use tickpath_wire::layout;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version of the protocol that this crate implements.
pub const VERSION: u16 = 1;
/// Value of [`Hello::magic`].
pub const MAGIC: [u8; 8] = *b"TPTICKS\0";
/// Length of a header in bytes.
pub const HEADER_LEN: usize = 16;
/// Length of a checksum, the last field of every message, in bytes.
pub const CHECKSUM_LEN: usize = 4;
/// Length of a tick (a quote, a trade or a status) in bytes.
pub const TICK_LEN: usize = 56;
/// Length of the shortest message in bytes: a header, four bytes and a checksum.
pub const MESSAGE_LEN_MIN: usize = 24;
/// Length of the longest message in bytes.
pub const MESSAGE_LEN_MAX: usize = 2040;
/// Unit of message lengths, in bytes: each length is a multiple of it.
pub const WORD_LEN: usize = 8;
/// Maximum number of names in one [`SUBSCRIBE`] message.
pub const SUBSCRIBE_NAMES_MAX: usize = 251;
/// The price that a quote has on a side without orders.
pub const NO_PRICE: Price = Price(i64::MIN);
/// The lowest type of unnumbered messages, which use up no sequence number; lower types are numbered.
pub const UNNUMBERED_FROM: u8 = 0x40;
/// Type of a request for symbols, the only message with variable length: see [`crate::request`].
pub const SUBSCRIBE: u8 = 0x80;

layout! {
    /// The common first bytes of every message.
    #[derive(Default)]
    Header, HEADER_LEN => {
        /// Type of the message.
        0 message_type: u8,
        /// Length of the message in units of 8 bytes, including header and checksum.
        1 length_words: u8,
        /// Instrument id of the symbol, from 1; 0 for a message without a symbol.
        2 instrument: U16,
        /// Sequence number of the message among its symbol's numbered messages; wraps to 0.
        4 symbol_sequence: U32,
        /// Sequence number in the session; an unnumbered message has that of the next numbered one.
        8 sequence: U64,
    }
}

impl Header {
    /// Creates the header of a message of `len` bytes, a multiple of 8 that is a valid message length.
    #[inline]
    #[must_use]
    pub const fn new(message_type: u8, len: usize, place: Place) -> Header {
        Header {
            message_type,
            length_words: (len / WORD_LEN) as u8,
            instrument: U16::new(place.instrument.0),
            symbol_sequence: U32::new(place.symbol_sequence),
            sequence: U64::new(place.sequence),
        }
    }

    /// Returns the length of the whole message in bytes; below [`MESSAGE_LEN_MIN`] it is invalid.
    #[inline]
    #[must_use]
    pub const fn message_len(&self) -> usize {
        self.length_words as usize * WORD_LEN
    }

    /// Returns true for a message that uses up a sequence number.
    #[inline]
    #[must_use]
    pub const fn is_numbered(&self) -> bool {
        self.message_type < UNNUMBERED_FROM
    }

    /// Returns the instrument id of the message's symbol; 0 for none.
    #[inline]
    #[must_use]
    pub const fn instrument(&self) -> InstrumentId {
        InstrumentId(self.instrument.get())
    }
}

/// Symbol and sequence numbers of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Instrument id of the symbol; 0 for none.
    pub instrument: InstrumentId,
    /// Sequence number of the message among its symbol's numbered messages.
    pub symbol_sequence: u32,
    /// Sequence number in the session, from 1; an unnumbered message has that of the next numbered one.
    pub sequence: u64,
}

impl Place {
    /// Returns the place of an unnumbered message without a symbol; the next numbered message has sequence
    /// number `next_sequence`.
    #[must_use]
    pub const fn before(next_sequence: u64) -> Place {
        Place { instrument: InstrumentId(0), symbol_sequence: 0, sequence: next_sequence }
    }
}

/// A message of fixed length.
pub trait Message: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy {
    /// Type of the message, as in its header.
    const TYPE: u8;
    /// Length of the message in bytes, including header and checksum.
    const LEN: usize = size_of::<Self>();
}

/// Declares messages; checks at compile time that each field has the stated offset.
macro_rules! messages {
    ($( $(#[$doc:meta])* $name:ident = $type:literal, $len:literal {
        $( $(#[$field_doc:meta])* $offset:literal $field:ident: $wire:ty, )*
    } )+) => { $(
        layout! {
            $(#[$doc])*
            $name, $len => {
                /// The common header.
                0 header: Header,
                $( $(#[$field_doc])* $offset $field: $wire, )*
                ; /// CRC-32C of all bytes before it.
                checksum: U32,
            }
        }

        const _: () = assert!($len % WORD_LEN == 0);

        impl $name {
            /// Creates a message from its fields, in wire order, with checksum 0.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "one argument a field of the document")]
            fn of(place: Place, $( $field: impl Into<$wire> ),*) -> $name {
                let header = Header::new(Self::TYPE, $len, place);
                $name { header, $( $field: $field.into(), )* checksum: U32::ZERO }
            }
        }

        impl Message for $name {
            const TYPE: u8 = $type;
        }
    )+

        /// Returns the length in bytes of a server's message of this type; `None` for an unlisted type.
        pub(crate) const fn listed_len(message_type: u8) -> Option<usize> {
            match message_type {
                $( $type => Some($len), )+
                _ => None,
            }
        }
    };
}

messages! {
    /// Best bid and ask of a symbol.
    Quote = 0x01, 56 {
        /// T0: creation time of the tick, in nanoseconds since the Unix epoch by the server's clock.
        16 ts_generate: U64,
        /// Price of the best bid; [`NO_PRICE`] if there is no bid.
        24 bid_price: I64,
        /// Price of the best ask; [`NO_PRICE`] if there is no ask.
        32 ask_price: I64,
        /// Quantity at the best bid.
        40 bid_qty: U32,
        /// Quantity at the best ask.
        44 ask_qty: U32,
        /// Nanoseconds from T0 to T2, when the server took the tick's batch for writing; saturates.
        48 send_delay_ns: U32,
    }

    /// A trade of a symbol.
    Trade = 0x02, 56 {
        /// T0: creation time of the tick, in nanoseconds since the Unix epoch by the server's clock.
        16 ts_generate: U64,
        /// Price of the trade.
        24 price: I64,
        /// Quantity of the symbol traded in the session, including this trade.
        32 volume: U64,
        /// Quantity of the trade.
        40 qty: U32,
        /// Side of the incoming order, which traded against the book: `B` or `S`; a space if unknown.
        44 aggressor: u8,
        /// Sent as 0.
        45 reserved: [u8; 3],
        /// Nanoseconds from T0 to T2, when the server took the tick's batch for writing; saturates.
        48 send_delay_ns: U32,
    }

    /// A change of a symbol's trading state.
    Status = 0x03, 56 {
        /// T0: creation time of the tick, in nanoseconds since the Unix epoch by the server's clock.
        16 ts_generate: U64,
        /// Code of the new state, `T`, `H`, `P` or `Q`: see [`Status::trading_state`].
        24 state: u8,
        /// Sent as 0.
        25 reserved: [u8; 23],
        /// Nanoseconds from T0 to T2, when the server took the tick's batch for writing; saturates.
        48 send_delay_ns: U32,
    }

    /// The first message in each direction, from the server and from the client.
    Hello = 0x40, 56 {
        /// [`MAGIC`].
        16 magic: [u8; 8],
        /// [`VERSION`].
        24 version: U16,
        /// Interval of heartbeats in milliseconds; 0 from a client.
        26 heartbeat_ms: U16,
        /// Number of symbols in the session; 0 from a client.
        28 symbol_count: U32,
        /// Id of the session; from a client, the id of its last session, or 0 if it had none.
        32 session: U64,
        /// Time of sending, in nanoseconds since the Unix epoch.
        40 ts_send: U64,
        /// Sent as 0.
        48 reserved: [u8; 4],
    }

    /// Name and attributes of a symbol. The header's symbol sequence is that of the symbol's next message.
    SymbolDefinition = 0x41, 56 {
        /// Name of the symbol, padded with spaces.
        16 symbol: [u8; 8],
        /// The price from which clients calculate the change of the last price.
        24 reference_price: I64,
        /// Tick size: prices are multiples of it.
        32 tick_size: I64,
        /// Quantity of the symbol traded in the session so far.
        40 volume: U64,
        /// Sent as 0.
        48 reserved: [u8; 4],
    }

    /// Sent by the server or the client after it has sent nothing else for the heartbeat interval.
    Heartbeat = 0x42, 32 {
        /// Time of sending, in nanoseconds since the Unix epoch; 0 from a client.
        16 ts_send: U64,
        /// Sent as 0.
        24 reserved: [u8; 4],
    }

    /// The server accepts a request for symbols. The symbols' definitions follow.
    Subscribed = 0x43, 32 {
        /// Id of the request, chosen by the client.
        16 request: U32,
        /// Number of symbol definitions that follow.
        20 symbol_count: U32,
        /// `A` if all symbols were requested, `L` if a list of them.
        24 scope: u8,
        /// Sent as 0.
        25 reserved: [u8; 3],
    }

    /// The server refuses a request for symbols, or refuses the client.
    Refused = 0x44, 32 {
        /// Id of the request, chosen by the client; 0 when the server refuses the client.
        16 request: U32,
        /// With reason `L`, the maximum number of symbols; with `V`, the server's version; otherwise 0.
        20 limit: U32,
        /// Code of a [`RefusedReason`].
        24 reason: u8,
        /// Sent as 0.
        25 reserved: [u8; 3],
    }

    /// The last message that a server sends.
    EndOfStream = 0x45, 32 {
        /// Time of sending, in nanoseconds since the Unix epoch.
        16 ts_send: U64,
        /// Code of an [`EndReason`].
        24 reason: u8,
        /// Sent as 0.
        25 reserved: [u8; 3],
    }

    /// The server omitted messages before the sequence number in the header, because the client reads too
    /// slowly.
    Skipped = 0x46, 32 {
        /// Number of omitted messages.
        16 count: U64,
        /// Sent as 0.
        24 reserved: [u8; 4],
    }
}

layout! {
    /// A quote, a trade or a status: a numbered message of [`TICK_LEN`] bytes.
    Tick, TICK_LEN => {
        /// The common header.
        0 header: Header,
        /// T0: creation time of the tick, in nanoseconds since the Unix epoch by the server's clock.
        16 ts_generate: U64,
        /// Bytes 24 to 47 of the message, whose fields depend on its type.
        24 body: [u8; 24],
        /// Nanoseconds from T0 to T2, when the server took the tick's batch for writing; saturates.
        48 send_delay_ns: U32,
        /// CRC-32C of all bytes before it.
        52 checksum: U32,
    }
}

/// A tick, as the structure of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickKind<'a> {
    /// Best bid and ask.
    Quote(&'a Quote),
    /// A trade.
    Trade(&'a Trade),
    /// A change of the trading state.
    Status(&'a Status),
}

impl Tick {
    /// Range of the message types that are ticks.
    pub const TYPES: std::ops::RangeInclusive<u8> = Quote::TYPE..=Status::TYPE;

    /// Returns the tick as the structure of its type; `None` for an unlisted type. The parser passes only
    /// listed types to [`TickListener::on_ticks`](crate::parser::TickListener::on_ticks).
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Option<TickKind<'_>> {
        match self.header.message_type {
            Quote::TYPE => Some(TickKind::Quote(zerocopy::transmute_ref!(self))),
            Trade::TYPE => Some(TickKind::Trade(zerocopy::transmute_ref!(self))),
            Status::TYPE => Some(TickKind::Status(zerocopy::transmute_ref!(self))),
            _ => None,
        }
    }

    /// Returns T2, when the server took the tick's batch for writing, as Unix time by the server's clock.
    #[inline]
    #[must_use]
    pub const fn ts_send(&self) -> Nanos {
        Nanos(self.ts_generate.get().saturating_add(self.send_delay_ns.get() as u64))
    }
}

macro_rules! into_tick {
    ($($name:ident)+) => { $(
        impl From<$name> for Tick {
            #[inline]
            fn from(message: $name) -> Tick {
                zerocopy::transmute!(message)
            }
        }
    )+ };
}

into_tick! { Quote Trade Status }

/// Returns the value of `send_delay_ns` for a tick created and sent at these times.
#[inline]
#[must_use]
pub fn send_delay_ns(ts_generate: Nanos, ts_send: Nanos) -> u32 {
    u32::try_from(ts_send.since(ts_generate).0).unwrap_or(u32::MAX)
}

impl Quote {
    /// Creates a quote from price and quantity of the best bid and ask; [`NO_PRICE`] marks an empty side.
    #[inline]
    #[must_use]
    pub fn new(
        place: Place,
        ts_generate: Nanos,
        bid: (Price, u32),
        ask: (Price, u32),
        send_delay_ns: u32,
    ) -> Quote {
        Quote::of(place, ts_generate.0, bid.0.0, ask.0.0, bid.1, ask.1, send_delay_ns)
    }

    /// Returns the best bid and its quantity; `None` when there is no bid.
    #[inline]
    #[must_use]
    pub fn bid(&self) -> Option<(Price, u32)> {
        side(self.bid_price, self.bid_qty)
    }

    /// Returns the best ask and its quantity; `None` when there is no ask.
    #[inline]
    #[must_use]
    pub fn ask(&self) -> Option<(Price, u32)> {
        side(self.ask_price, self.ask_qty)
    }
}

#[inline]
fn side(price: I64, qty: U32) -> Option<(Price, u32)> {
    let price = Price(price.get());
    (price != NO_PRICE).then_some((price, qty.get()))
}

impl Trade {
    /// Creates a trade; `volume` is the symbol's quantity traded in the session, including this trade.
    #[inline]
    #[must_use]
    pub fn new(
        place: Place,
        ts_generate: Nanos,
        price: Price,
        qty: u32,
        aggressor: Option<Side>,
        volume: u64,
        send_delay_ns: u32,
    ) -> Trade {
        let aggressor = match aggressor {
            Some(Side::Buy) => b'B',
            Some(Side::Sell) => b'S',
            None => b' ',
        };
        Trade::of(place, ts_generate.0, price.0, volume, qty, aggressor, [0; 3], send_delay_ns)
    }

    /// Returns the side of the incoming order, which traded against the book; `None` when unknown.
    #[inline]
    #[must_use]
    pub const fn aggressor(&self) -> Option<Side> {
        match self.aggressor {
            b'B' => Some(Side::Buy),
            b'S' => Some(Side::Sell),
            _ => None,
        }
    }
}

impl Status {
    /// Creates a change of the trading state.
    #[inline]
    #[must_use]
    pub fn new(place: Place, ts_generate: Nanos, state: TradingState, send_delay_ns: u32) -> Status {
        Status::of(place, ts_generate.0, state.code(), [0; 23], send_delay_ns)
    }

    /// Returns the new state; `None` for an unlisted code.
    #[must_use]
    pub const fn trading_state(&self) -> Option<TradingState> {
        TradingState::from_code(self.state)
    }
}

impl Hello {
    /// Creates a server's first message. `heartbeat_ms` and `symbol_count` are at least 1.
    #[must_use]
    pub fn server(
        next_sequence: u64,
        session: u64,
        heartbeat_ms: u16,
        symbol_count: u16,
        ts_send: Nanos,
    ) -> Hello {
        let (place, count) = (Place::before(next_sequence), u32::from(symbol_count));
        Hello::of(place, MAGIC, VERSION, heartbeat_ms, count, session, ts_send.0, [0; 4])
    }

    /// Creates a client's first message; `last_session` is 0 if it had no session.
    #[must_use]
    pub fn client(last_session: u64, ts_send: Nanos) -> Hello {
        Hello::server(0, last_session, 0, 0, ts_send)
    }
}

impl SymbolDefinition {
    /// Creates a definition; `place` has the next sequence numbers of the symbol and of the session.
    #[must_use]
    pub fn new(
        place: Place,
        symbol: Symbol,
        reference_price: Price,
        tick_size: Price,
        volume: u64,
    ) -> SymbolDefinition {
        SymbolDefinition::of(place, symbol.0, reference_price.0, tick_size.0, volume, [0; 4])
    }

    /// Returns the symbol's name; `None` when it is not a valid [`Symbol`].
    #[must_use]
    pub fn symbol(&self) -> Option<Symbol> {
        let text = std::str::from_utf8(&self.symbol).ok()?;
        Symbol::new(text.trim_end_matches(' ')).ok()
    }
}

impl Heartbeat {
    /// Creates a heartbeat; `next_sequence` is the next numbered message's sequence number, 0 from a client.
    #[must_use]
    pub fn new(next_sequence: u64, ts_send: Nanos) -> Heartbeat {
        Heartbeat::of(Place::before(next_sequence), ts_send.0, [0; 4])
    }
}

impl Subscribed {
    /// Creates the acceptance of the request with id `request`; `symbol_count` definitions follow.
    #[must_use]
    pub fn new(next_sequence: u64, request: u32, scope: Scope, symbol_count: u32) -> Subscribed {
        Subscribed::of(Place::before(next_sequence), request, symbol_count, scope.code(), [0; 3])
    }

    /// Returns the scope of the request; [`Scope::Listed`] if the code is unknown, because that scope allows
    /// gaps in the session's sequence numbers.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::from_code(self.scope).unwrap_or(Scope::Listed)
    }
}

/// Declares enums of one-byte codes. An entry has the value's name, its code and its meaning as text.
macro_rules! meanings {
    ($( $(#[$doc:meta])* $name:ident { $( $value:ident = $code:literal $meaning:literal, )+ } )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( #[doc = concat!($meaning, ".")] $value, )+ }

        impl $name {
            /// Returns the value's code, the byte on the wire.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $( $name::$value => $code, )+ }
            }

            /// Returns the value with this code; `None` for an unlisted code.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<$name> {
                match code { $( $code => Some($name::$value), )+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $( $name::$value => $meaning, )+ })
            }
        }
    )+ };
}

meanings! {
    /// The symbols that a request covers.
    Scope {
        All = b'A' "all symbols: sequences follow each other without a gap",
        Listed = b'L' "those that were listed: their symbol sequences follow each other without a gap",
    }

    /// The reason why a server refuses a request or a client.
    RefusedReason {
        Version = b'V' "it uses another version of the protocol",
        Malformed = b'M' "it received an invalid or unexpected message",
        ClientsFull = b'C' "it has the maximum number of clients",
        TooManySymbols = b'L' "more symbols were requested than the limit",
        UnknownSymbol = b'S' "there is no such symbol",
    }

    /// The reason why a server ends a stream.
    EndReason {
        ServerStops = b'E' "the server stops",
        TooSlow = b'S' "this client reads too slowly",
        Silent = b'T' "this client was silent too long",
    }
}

impl Refused {
    /// Creates the refusal of a request, or of the client if `request` is 0.
    #[must_use]
    pub fn new(next_sequence: u64, request: u32, reason: RefusedReason, limit: u32) -> Refused {
        Refused::of(Place::before(next_sequence), request, limit, reason.code(), [0; 3])
    }

    /// Returns the reason; `None` for an unlisted code.
    #[must_use]
    pub const fn reason(&self) -> Option<RefusedReason> {
        RefusedReason::from_code(self.reason)
    }
}

impl EndOfStream {
    /// Creates a server's last message.
    #[must_use]
    pub fn new(next_sequence: u64, reason: EndReason, ts_send: Nanos) -> EndOfStream {
        EndOfStream::of(Place::before(next_sequence), ts_send.0, reason.code(), [0; 3])
    }

    /// Returns the reason; `None` for an unlisted code.
    #[must_use]
    pub const fn reason(&self) -> Option<EndReason> {
        EndReason::from_code(self.reason)
    }
}

impl Skipped {
    /// Creates the report that `count` messages before the one with sequence number `next_sequence` were
    /// omitted.
    #[must_use]
    pub fn new(next_sequence: u64, count: u64) -> Skipped {
        Skipped::of(Place::before(next_sequence), count, [0; 4])
    }
}
