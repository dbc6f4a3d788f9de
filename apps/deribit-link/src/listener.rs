//! What a link tells its owner.

use tickpath_deribit::envelope::{Inbound, Later};
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::SessionEvent;
use tickpath_types::Nanos;

use crate::loss::Loss;

/// When a message was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// When it was read, by the owner's clock.
    pub at: Nanos,
    /// When the kernel received the bytes read last, in nanoseconds since the Unix epoch; none where it does not say.
    pub kernel_ns: Option<u64>,
}

/// Why a request has no reply: it may have been done or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// None came in time. One that comes later is counted and dropped.
    Late,
    /// The connection was lost before.
    Lost,
}

/// What becomes of the connection. That its login is done, so that requests may be sent, is told by
/// [`SessionEvent::Ready`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Change<'l> {
    /// It is being made.
    Begun,
    /// It stands; the login begins.
    Opened,
    /// It was lost, or did not come to be. What was sent and has no reply was told before.
    Lost {
        /// Why.
        why: &'l Loss,
        /// When it is tried again; none when it is not.
        again_at: Option<Nanos>,
    },
}

/// Takes what a link says, while it is borrowed from the receive buffer.
pub trait Listener {
    /// The time, read after each message; `cycle` is what [`do_work`](crate::Link::do_work) was given.
    #[inline]
    fn now(&mut self, cycle: Nanos) -> Nanos {
        cycle
    }

    /// The time of day in milliseconds since 1970, for the signature of a login. As it is, the owner's clock counts from
    /// the Unix epoch, as that of agents does.
    fn unix_ms(&mut self, now: Nanos) -> u64 {
        now.0 / 1_000_000
    }

    /// A message came: reads it. Who reads results and data in the same pass does so here, with a [`Visitor`](tickpath_deribit::envelope::Visitor) of its own;
    /// [`on_event`](Listener::on_event) follows.
    ///
    /// # Errors
    /// [`ScanError`]: the message is counted and dropped.
    #[inline]
    fn on_text<'f>(&mut self, at: Received, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        let _ = at;
        Inbound::parse_with(text, &mut Later)
    }

    /// What the session makes of the message: a reply, data of a channel, or what became of the login and of
    /// subscriptions.
    fn on_event(&mut self, at: Received, event: SessionEvent<'_>);

    /// The session sent a message of its own, and the socket took it. It may hold a token: it is not to be shown as it is.
    #[inline]
    fn on_sent(&mut self, at: Nanos, text: &str) {
        let _ = (at, text);
    }

    /// A request has no reply and will have none.
    fn on_unanswered(&mut self, at: Nanos, id: i64, method: Method, why: Unanswered) {
        let _ = (at, id, method, why);
    }

    /// The connection changed.
    fn on_change(&mut self, at: Nanos, change: Change<'_>) {
        let _ = (at, change);
    }
}
