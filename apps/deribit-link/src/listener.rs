//! Events that a link reports to its owner.

use tickpath_deribit::envelope::{Inbound, Later};
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::SessionEvent;
use tickpath_types::Nanos;

use crate::loss::Loss;

/// The receive time of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The time of reading, by the owner's clock.
    pub at: Nanos,
    /// The kernel's receive time of the bytes read last, in nanoseconds since 1970 (UTC); `None` if unknown.
    pub kernel_ns: Option<u64>,
}

/// The reason why a request has no reply. It may or may not have been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// No reply arrived in time. A later one is counted and dropped.
    Late,
    /// The connection was lost before the reply.
    Lost,
}

/// A change of the connection's state. [`SessionEvent::Ready`] reports the completed login, after which
/// requests may be sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum Change<'l> {
    /// Connecting has begun.
    Begun,
    /// The connection is open; the login begins.
    Opened,
    /// The connection was lost or could not be made. Unanswered requests were reported before.
    Lost {
        /// The reason.
        why: &'l Loss,
        /// The time of the next attempt; `None` if there is none.
        again_at: Option<Nanos>,
    },
}

/// Receives a link's events, which borrow from the receive buffer.
pub trait Listener {
    /// The time, read after each message; `cycle` is the time passed to [`do_work`](crate::Link::do_work).
    #[inline]
    fn now(&mut self, cycle: Nanos) -> Nanos {
        cycle
    }

    /// The time of day in milliseconds since 1970, for the signature of a login. By default the owner's clock
    /// counts from the Unix epoch, like that of agents.
    fn unix_ms(&mut self, now: Nanos) -> u64 {
        now.0 / 1_000_000
    }

    /// Parses a received message. An override can read results and data in the same pass, with its
    /// [`Visitor`](tickpath_deribit::envelope::Visitor); [`on_event`](Listener::on_event) follows.
    ///
    /// # Errors
    /// [`ScanError`]: the message is counted and dropped.
    #[inline]
    fn on_text<'f>(&mut self, at: Received, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        let _ = at;
        Inbound::parse_with(text, &mut Later)
    }

    /// The session's interpretation of the message: a reply, channel data, or the outcome of a login or
    /// subscription.
    fn on_event(&mut self, at: Received, event: SessionEvent<'_>);

    /// The socket accepted a session message. It may contain a token: do not display it unmasked.
    #[inline]
    fn on_sent(&mut self, at: Nanos, text: &str) {
        let _ = (at, text);
    }

    /// A request has no reply and will not get one.
    fn on_unanswered(&mut self, at: Nanos, id: i64, method: Method, why: Unanswered) {
        let _ = (at, id, method, why);
    }

    /// The connection's state changed.
    fn on_change(&mut self, at: Nanos, change: Change<'_>) {
        let _ = (at, change);
    }
}
