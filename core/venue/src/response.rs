//! Responses of the matcher to commands.

use tickpath_types::{Nanos, OrderEvent, Sequence, SessionId, SystemEventCode, UserRefNum};

/// A response of the matcher: for one session, or about a command of the venue.
#[derive(Clone, Copy, Debug)]
pub enum Response {
    /// Something happened to an order.
    Order(OrderEvent),
    /// The answer to an account query.
    NextUserRef {
        /// The command that asked.
        command: Sequence,
        /// The session that asked.
        session: SessionId,
        /// When the query was sequenced, since midnight.
        ts: Nanos,
        /// The least number that it may use next.
        next: UserRefNum,
    },
    /// An internal command was applied; this follows everything that it caused.
    Applied {
        /// Its number.
        command: Sequence,
        /// It had no effect: its subject does not exist.
        is_ignored: bool,
    },
    /// The day reached a stage.
    Stage {
        /// Its command.
        command: Sequence,
        /// When it was sequenced, since midnight.
        ts: Nanos,
        /// The stage.
        stage: SystemEventCode,
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
            | Response::Stage { command, .. } => *command,
        }
    }
}

// The ring's slots are no longer than those of order events alone.
const _: () = assert!(size_of::<Response>() == size_of::<OrderEvent>());
