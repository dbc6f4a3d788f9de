//! Responses of the matcher to commands.

use tickpath_types::{Nanos, OrderEvent, Sequence, SessionId, SystemEventCode, UserRefNum};

/// A response of the matcher: to one session or all, or to the venue about an internal command.
#[derive(Clone, Copy, Debug)]
pub enum Response {
    /// An order event.
    Order(OrderEvent),
    /// The response to an account query.
    NextUserRef {
        /// Sequence number of the query's command.
        command: Sequence,
        /// The session that sent the query.
        session: SessionId,
        /// Time at which the query was sequenced, since midnight.
        ts: Nanos,
        /// The lowest UserRefNum that the session may use next.
        next: UserRefNum,
    },
    /// An internal command was applied; all its other responses precede this one.
    Applied {
        /// Sequence number of the command.
        command: Sequence,
        /// True when the engine ignored the command, for example because the trade to break does not exist.
        is_ignored: bool,
    },
    /// A system event of the day, for all sessions.
    SessionPhase {
        /// Sequence number of the command.
        command: Sequence,
        /// Time at which the command was sequenced, since midnight.
        ts: Nanos,
        /// The system event.
        phase: SystemEventCode,
    },
}

impl Response {
    /// Sequence number of the command that caused the response.
    #[inline]
    #[must_use]
    pub const fn command(&self) -> Sequence {
        match self {
            Response::Order(event) => event.command,
            Response::NextUserRef { command, .. }
            | Response::Applied { command, .. }
            | Response::SessionPhase { command, .. } => *command,
        }
    }
}

// No variant is larger than an order event, so the others do not enlarge the ring's slots.
const _: () = assert!(size_of::<Response>() == size_of::<OrderEvent>());
