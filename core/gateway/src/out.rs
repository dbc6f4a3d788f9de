//! Outputs of the core: to clients, and to the venue.

use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_protocol::{Body, Event, SessionId};
use tickpath_types::Nanos;

/// Event sink: the output to clients, by their own rings and the broadcast ring.
///
/// No call blocks. The implementation numbers the events, stamps them with the time of sending, and handles
/// clients whose ring is full.
pub trait EventSink {
    /// Puts an event into a client's own ring. If it is full, the sink disconnects the client, as a leave.
    fn send(&mut self, client: u32, event: Event);

    /// Puts an event into the broadcast ring, which all clients read.
    fn broadcast(&mut self, event: Event);

    /// Does the same as [`send`](Self::send), or warms it up: runs its code to bring it into the processor's
    /// caches, and sends nothing.
    #[inline]
    fn deliver(&mut self, client: u32, event: Event, is_rehearsal: bool) {
        if !is_rehearsal {
            self.send(client, event);
        }
    }

    /// Starts delivering an instrument's broadcasts to a client that has received the instrument's state.
    fn follow(&mut self, client: u32, symbol: u32);

    /// Number of events that the client's own ring has capacity for.
    fn room(&self, client: u32) -> usize;
}

/// Venue port: the output to the venue, by numbered connections.
pub trait Venue {
    /// Passes a request to a connection, which sends it within this duty cycle; returns its request id.
    ///
    /// # Errors
    /// [`RequestError`]; nothing is sent then.
    fn request<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError>;

    /// Whether a connection would accept a request now; a FIX message if it speaks FIX. A request that
    /// follows immediately is accepted.
    ///
    /// # Errors
    /// The error that the request would fail with.
    fn check(&mut self, now: Nanos, stream: usize, method: Method) -> Result<(), RequestError>;

    /// Passes a FIX message to a connection, which sends it within this duty cycle; returns its MsgSeqNum.
    ///
    /// # Errors
    /// [`RequestError`]; nothing is sent then.
    fn send_fix<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        body: &impl tickpath_fix::Body<'a>,
    ) -> Result<i64, RequestError>;

    /// Turns the warm-up mode on or off. While it is on, requests and FIX messages are encoded, but not
    /// stored or sent.
    fn set_rehearsal(&mut self, is_rehearsal: bool);

    /// Subscribes a channel, now and after each reconnection.
    fn subscribe(&mut self, stream: usize, channel: &str);

    /// Unsubscribes a channel.
    fn unsubscribe(&mut self, stream: usize, channel: &str);

    /// Ends a subscription and starts it again, to get the whole state.
    fn resubscribe(&mut self, stream: usize, channel: &str);

    /// Requests that a connection be made.
    fn connect(&mut self, stream: usize, now: Nanos);

    /// Matching engine requests that the connection may send now; `None` if it tracks no such limit.
    fn requests_left(&self, _stream: usize, _now: Nanos) -> Option<u64> {
        None
    }

    /// Number of the connection's channels, or `None` while some subscriptions are pending.
    fn settled_channels(&self, stream: usize) -> Option<usize>;

    /// Whether the venue refused a wanted channel.
    fn is_refused(&self, stream: usize, channel: &str) -> bool;
}

/// Cause of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Time when the message was read, since the Unix epoch by the gateway's clock; zero if there was none.
    pub received: Nanos,
    /// Time when the client created the causing request, by the monotonic clock; 0 if there was none.
    pub origin_ns: u64,
    /// Time of the venue, in nanoseconds since the Unix epoch; 0 if unknown.
    pub origin_utc_ns: u64,
}

impl Cause {
    /// A venue message with a timestamp.
    #[must_use]
    pub const fn venue(received: Nanos, timestamp_ms: u64) -> Cause {
        Cause { received, origin_ns: 0, origin_utc_ns: timestamp_ms.saturating_mul(1_000_000) }
    }
}

/// Header fields common to all events of one gateway.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Number of the gateway.
    pub source: u8,
    /// The gateway instance.
    pub session: SessionId,
    /// Time by which the gateway's clock is ahead of the monotonic clock, in nanoseconds.
    pub ahead_ns: u64,
}

impl Stamp {
    /// Converts a time of the gateway's clock to the monotonic clock.
    #[must_use]
    pub const fn monotonic(&self, at: Nanos) -> u64 {
        at.0.saturating_sub(self.ahead_ns)
    }

    /// Creates an event with its header, except the fields that the event sink fills in.
    #[inline]
    #[must_use]
    pub fn event<B: Body>(&self, body: &B, about: About, cause: Cause) -> Event {
        self.stamp(Event::of(body), about, cause)
    }

    /// Fills in the header of an event.
    #[inline]
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

/// Subject of an event, by the numbers that clients know; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Number of the connection.
    pub stream: u8,
    /// Number of the account.
    pub account: u16,
    /// Number of the instrument.
    pub symbol: u32,
}
