//! Events: messages from a gateway to its clients.

mod account;
mod market;
mod orders;
mod status;

use std::fmt;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::EventKind;
use crate::field::{Field, FieldKind, FieldType, Fields, structures};

pub use account::{FundsUpdate, PositionUpdate, RiskLimits};
pub use market::{
    LEVELS_MAX, Level, MarketByPrice, MarketStatus, ReferenceData, STATISTICS_MAX, STEPS_MAX, Statistic,
    Statistics, TickSizeSteps, TimeSeries, TopOfBook, TradeSummary,
};
pub use orders::{OrderAck, OrderUpdate, QuoteAck, TradeUpdate};
pub use status::{
    AccountReference, Connected, CustomMessage, Disconnected, DownloadBegin, DownloadEnd, ExternalLatency,
    GatewayStatus, Lapped, Ping, RateLimitTrigger, RateLimitsUpdate, Ready, Start, Stop, StreamStatus, Timer,
};

/// Maximum length of an event's body in bytes.
pub const BODY_LEN: usize = 112;

/// Bits of [`EventHeader::flags`].
pub mod flags {
    /// No more events of the same message or state follow.
    pub const LAST_IN_BATCH: u16 = 1;
    /// The event came by the broadcast ring, which has a separate sequence.
    pub const BROADCAST: u16 = 2;
    /// The event is part of a download: it reports a state, not a change.
    pub const DOWNLOAD: u16 = 4;
}

/// One gateway instance: a random number. Ids and sequences of one instance have no meaning in another.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct SessionId(pub [u64; 2]);

impl fmt::Display for SessionId {
    /// As a UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low] = self.0;
        let (start, version, node) = (high >> 32, high & 0xffff_ffff, low & 0xffff_ffff_ffff);
        write!(f, "{start:08x}-{:04x}-{:04x}-{:04x}-{node:012x}", version >> 16, version & 0xffff, low >> 48)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FieldType for SessionId {
    const KIND: FieldKind = FieldKind::Unsigned;

    fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

structures! {
    /// The header of every event. Times in `_ns` are of the machine's monotonic clock unless they say UTC.
    EventHeader "header" {
        /// Kind of the body.
        kind: EventKind,
        /// [`flags`].
        flags: u16,
        /// Number of the gateway, from 1; 0: the client's own library.
        source: u8,
        /// Number of the gateway's connection, from 1; 0 when the event concerns none.
        stream: u8,
        /// Number of the account, from 1; 0 when the event concerns none.
        account: u16,
        /// Number of the instrument, from 1; 0 when the event concerns none.
        symbol: u32,
        /// Bytes of the body that are used.
        body_len: u32,
        /// The gateway instance.
        session: SessionId,
        /// Sequence number of the event, from 1 without gaps: in the client's ring or in the broadcast ring.
        sequence: u64,
        /// Time when the gateway had read the message that caused the event; 0 when none did.
        receive_ns: u64,
        /// Time when the event was put into the ring.
        send_ns: u64,
        /// Time when the event's cause originated, by this machine's clock. If a client's request caused the
        /// event, the time when the client created the request; 0 when unknown.
        origin_ns: u64,
        /// The same by the venue's clock, in nanoseconds since the Unix epoch; 0 when unknown.
        origin_utc_ns: u64,
    }
}

/// One event: 184 bytes, three cache lines with the word of the ring.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Event {
    /// Kind, subject, origin and times.
    pub header: EventHeader,
    /// The body; [`Event::body`] reads it.
    pub raw: [u64; BODY_LEN / 8],
}

const _: () = assert!(size_of::<EventHeader>() == 72 && size_of::<Event>() == 184);

/// A body of an event.
pub trait Body: Fields + Copy + FromBytes + IntoBytes + Immutable + KnownLayout {
    /// Kind of event that has this body.
    const KIND: EventKind;
}

impl Event {
    /// An event with this body; the rest of its header is zero, and it is the last of its batch.
    #[inline]
    #[must_use]
    pub fn of<B: Body>(body: &B) -> Event {
        const { assert!(size_of::<B>() <= BODY_LEN) };
        let mut raw = [0; BODY_LEN / 8];
        raw.as_mut_bytes()[..size_of::<B>()].copy_from_slice(body.as_bytes());
        let header = EventHeader {
            kind: B::KIND,
            flags: flags::LAST_IN_BATCH,
            body_len: size_of::<B>() as u32,
            ..EventHeader::default()
        };
        Event { header, raw }
    }

    /// Returns the body if the event is of that kind.
    #[inline]
    #[must_use]
    pub fn body<B: Body>(&self) -> Option<B> {
        const { assert!(size_of::<B>() <= BODY_LEN) };
        if self.header.kind != B::KIND {
            return None;
        }
        B::read_from_prefix(self.raw.as_bytes()).ok().map(|(body, _)| body)
    }

    /// Returns the body of an ack of quotes or of a mass cancel, which share one layout.
    #[must_use]
    pub fn quote_ack(&self) -> Option<QuoteAck> {
        let kinds = [EventKind::MASS_QUOTE_ACK, EventKind::CANCEL_QUOTES_ACK, EventKind::CANCEL_ALL_ACK];
        if !kinds.contains(&self.header.kind) {
            return None;
        }
        QuoteAck::read_from_prefix(self.raw.as_bytes()).ok().map(|(body, _)| body)
    }

    /// An ack of this kind for quotes or a mass cancel.
    #[must_use]
    pub fn of_quote_ack(kind: EventKind, body: &QuoteAck) -> Event {
        let mut event = Event::of(body);
        event.header.kind = kind;
        event
    }

    /// Whether no more events of the same message or state follow.
    #[must_use]
    pub const fn is_last_in_batch(&self) -> bool {
        self.header.flags & flags::LAST_IN_BATCH != 0
    }

    /// Returns the same event, marked as not the last of its batch.
    #[must_use]
    pub const fn with_more(mut self) -> Event {
        self.header.flags &= !flags::LAST_IN_BATCH;
        self
    }

    /// An event without a kind, all zeros.
    #[must_use]
    pub fn empty() -> Event {
        Event::new_zeroed()
    }
}

macro_rules! kinds {
    ($($body:ty,)*) => {
        /// Returns the fields of the body of a kind of event; `None` for an unknown kind.
        #[must_use]
        pub fn body_fields(kind: EventKind) -> Option<&'static [Field]> {
            $(if kind == <$body as Body>::KIND { return Some(<$body as Fields>::FIELDS); })*
            matches!(kind, EventKind::CANCEL_QUOTES_ACK | EventKind::CANCEL_ALL_ACK)
                .then_some(<QuoteAck as Fields>::FIELDS)
        }

        fn show_body(event: &Event, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if let Some(body) = event.quote_ack() {
                return body.show(f);
            }
            $(if let Some(body) = event.body::<$body>() { return body.show(f); })*
            Ok(())
        }
    };
}

kinds! {
    Start, Stop, Timer, Connected, Disconnected, Lapped, Ping, DownloadBegin, DownloadEnd, Ready, GatewayStatus,
    StreamStatus, ExternalLatency, RateLimitsUpdate, RateLimitTrigger, AccountReference, ReferenceData,
    TickSizeSteps, MarketStatus, TopOfBook, MarketByPrice, TradeSummary, Statistics, TimeSeries, OrderAck,
    OrderUpdate, TradeUpdate, PositionUpdate, FundsUpdate, QuoteAck, RiskLimits, CustomMessage,
}

impl fmt::Display for Event {
    /// One line: the kind, the header's nonzero fields, the body's fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        write!(f, "{}", header.kind)?;
        for (name, value) in [
            ("symbol", u64::from(header.symbol)),
            ("account", u64::from(header.account)),
            ("source", u64::from(header.source)),
            ("stream", u64::from(header.stream)),
            ("sequence", header.sequence),
            ("receive_ns", header.receive_ns),
            ("send_ns", header.send_ns),
            ("origin_ns", header.origin_ns),
            ("origin_utc_ns", header.origin_utc_ns),
        ] {
            if value != 0 {
                write!(f, " {name}={value}")?;
            }
        }
        for (name, bit) in [
            ("download", flags::DOWNLOAD),
            ("broadcast", flags::BROADCAST),
            ("last_in_batch", flags::LAST_IN_BATCH),
        ] {
            if header.flags & bit != 0 {
                write!(f, " {name}")?;
            }
        }
        show_body(self, f)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Assigns a kind to each body structure and checks that it fits into [`BODY_LEN`].
macro_rules! bodies {
    ($($name:ident = $kind:ident,)*) => {
        $(
            impl $crate::event::Body for $name {
                const KIND: $crate::EventKind = $crate::EventKind::$kind;
            }
            const _: () = assert!(size_of::<$name>() <= $crate::event::BODY_LEN);
        )*
    };
}

use bodies;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_body_whose_fields_follow_each_other() {
        for kind in EventKind::ALL {
            let fields = body_fields(*kind).expect("each has a body");
            let mut end = 0;
            for field in fields {
                assert_eq!(field.offset, end, "{kind} {}", field.name);
                end += field.len;
            }
            assert!(end <= BODY_LEN && end.is_multiple_of(8), "{kind}");
        }
        assert_eq!(body_fields(EventKind(0)), None);
    }

    #[test]
    fn a_session_is_shown_as_a_uuid() {
        let session = SessionId([0x0123_4567_89ab_4def, 0x8123_4567_89ab_cdef]);
        assert_eq!(session.to_string(), "01234567-89ab-4def-8123-456789abcdef");
    }
}
