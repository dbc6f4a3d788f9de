//! The two ways out of the core: to clients, and to the venue.

use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_protocol::{Body, Event, SessionId};
use tickpath_types::Nanos;

/// The way to clients: their rings, and the broadcast ring.
///
/// Nothing waits. Whoever implements it numbers the events, stamps them with the time at which they leave, and deals with a
/// client whose ring is full.
pub trait Door {
    /// Puts an event into a client's own ring. A client that takes no more is the door's to end; it is told as a leave.
    fn send(&mut self, client: u32, event: Event);

    /// Puts an event into the ring that all clients read.
    fn broadcast(&mut self, event: Event);

    /// Goes through the motions of [`send`](Door::send), so that its code is in the processor's caches: nobody is told
    /// anything.
    fn rehearse(&mut self, _client: u32, _event: Event) {}

    /// Tells a client that an instrument, whose state it was sent, is followed from now on: what is broadcast of it.
    fn follow(&mut self, client: u32, symbol: u32);

    /// How many events the client's own ring has room for now.
    fn room(&self, client: u32) -> usize;
}

/// The way to the venue: connections, by their numbers.
pub trait Venue {
    /// Hands a request to a connection, to leave before the duty cycle ends; its reply is told by its id.
    ///
    /// # Errors
    /// [`RequestError`]; nothing leaves then.
    fn request<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError>;

    /// Whether a connection would take a request now - a FIX message, where it speaks FIX. One that is handed over before
    /// anything else happens is taken then.
    ///
    /// # Errors
    /// What it would be refused with.
    fn check(&mut self, now: Nanos, stream: usize, method: Method) -> Result<(), RequestError>;

    /// Hands a FIX message to a connection that speaks FIX, to leave before the duty cycle ends; its MsgSeqNum.
    ///
    /// # Errors
    /// [`RequestError`]; nothing leaves then.
    fn send_fix<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        body: &impl tickpath_fix::Body<'a>,
    ) -> Result<i64, RequestError>;

    /// From now on requests, FIX messages too, go through the motions alone and nothing of them is kept or sent, or they
    /// leave again.
    fn set_rehearsal(&mut self, is_rehearsal: bool);

    /// Wants a channel, now and after each reconnection.
    fn subscribe(&mut self, stream: usize, channel: &str);

    /// Wants a channel no longer.
    fn unsubscribe(&mut self, stream: usize, channel: &str);

    /// Ends a subscription and begins it anew, for the whole state.
    fn resubscribe(&mut self, stream: usize, channel: &str);

    /// Wants a connection to be made.
    fn connect(&mut self, stream: usize, now: Nanos);

    /// How many requests to the matching engine the connection may send now; `None` where it reckons no such limit.
    fn requests_left(&self, _stream: usize, _now: Nanos) -> Option<u64> {
        None
    }

    /// Channels that the connection has, or `None` while some that it wants are not settled.
    fn settled_channels(&self, stream: usize) -> Option<usize>;

    /// Whether the venue does not give a channel that is wanted.
    fn is_refused(&self, stream: usize, channel: &str) -> bool;
}

/// What an event follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// When the message was read, since the Unix epoch by the gateway's clock; zero when none was.
    pub received: Nanos,
    /// When a client made the request that began it, by the monotonic clock; 0 when none did.
    pub origin_ns: u64,
    /// When the venue made it, in nanoseconds since the Unix epoch; 0 when it does not say.
    pub origin_utc_ns: u64,
}

impl Cause {
    /// A message of the venue that says when it was made.
    #[must_use]
    pub const fn venue(received: Nanos, timestamp_ms: u64) -> Cause {
        Cause { received, origin_ns: 0, origin_utc_ns: timestamp_ms.saturating_mul(1_000_000) }
    }
}

/// What all events of one gateway have in common.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Which gateway.
    pub source: u8,
    /// Its life.
    pub session: SessionId,
    /// What the gateway's clock is ahead of the monotonic clock, in nanoseconds.
    pub ahead_ns: u64,
}

impl Stamp {
    /// A time of the gateway's clock on the monotonic one.
    #[must_use]
    pub const fn monotonic(&self, at: Nanos) -> u64 {
        at.0.saturating_sub(self.ahead_ns)
    }

    /// An event with its header, as far as the door does not fill it.
    #[must_use]
    pub fn event<B: Body>(&self, body: &B, about: About, cause: Cause) -> Event {
        self.stamp(Event::of(body), about, cause)
    }

    /// Fills the header of an event.
    #[must_use]
    pub fn stamp(&self, mut event: Event, about: About, cause: Cause) -> Event {
        let header = &mut event.header;
        header.source = self.source;
        header.session = self.session;
        header.stream = about.stream;
        header.account = about.account;
        header.symbol = about.symbol;
        header.receive_ns = if cause.received == Nanos::ZERO { 0 } else { self.monotonic(cause.received) };
        header.origin_ns = cause.origin_ns;
        header.origin_utc_ns = cause.origin_utc_ns;
        event
    }
}

/// What an event is about, by the numbers that clients know; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Which connection.
    pub stream: u8,
    /// Which account.
    pub account: u16,
    /// Which instrument.
    pub symbol: u32,
}
