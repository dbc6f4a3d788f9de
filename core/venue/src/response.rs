//! Responses of the matcher to commands.

use tickpath_types::{Nanos, OrderEvent, Sequence, SessionId, SystemEventCode, UserRefNum};

/// A response of the matcher: for one session, or about a command of the venue.
#[derive(Clone, Copy, Debug)]
pub enum Response {
    /// An event of an order.
    Order(OrderEvent),
    /// The answer to an account query.
    NextUserRef {
        /// The command of the query.
        command: Sequence,
        /// The session that sent the query.
        session: SessionId,
        /// When the query was sequenced, since midnight.
        ts: Nanos,
        /// The least number that it may use next.
        next: UserRefNum,
    },
    /// An internal command was applied; this follows everything that it caused.
    Applied {
        /// Number of the command.
        command: Sequence,
        /// True when it had no effect: its subject does not exist.
        is_ignored: bool,
    },
    /// A system event of the day.
    SessionPhase {
        /// Number of the command.
        command: Sequence,
        /// When it was sequenced, since midnight.
        ts: Nanos,
        /// The system event.
        phase: SystemEventCode,
    },
}

impl Response {
    /// The command that caused it.
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

// Order events alone would need ring slots of the same size.
const _: () = assert!(size_of::<Response>() == size_of::<OrderEvent>());
