//! Commands of the administrator to a running venue, and their outcomes.

use tickpath_matching::CommandKind;
use tickpath_types::{
    AddInstrumentError, BrokenReason, Instrument, InstrumentId, MatchId, Price, SessionId, TradingState,
};

use crate::day::{BandWidth, Phase};
use crate::log_command::LogCommandKind;
use crate::user_limits::LimitsChange;

/// A command of the administrator to a running venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// An instrument halts, or trades again. Sequenced.
    SetTradingState {
        /// Its id.
        instrument: InstrumentId,
        /// Its new state.
        state: TradingState,
    },
    /// An instrument, or all, enters a phase of the day. Sequenced.
    Phase {
        /// The phase.
        phase: Phase,
        /// The instrument; all when `None`.
        instrument: Option<InstrumentId>,
    },
    /// Trading pauses before a trade outside the band, from now on. Sequenced.
    SetPriceBand {
        /// The instrument; all when `None`.
        instrument: Option<InstrumentId>,
        /// The distance from the reference.
        width: BandWidth,
        /// The middle; the instrument's reference price when `None`.
        reference: Option<Price>,
    },
    /// Busts an execution. Sequenced.
    BreakTrade {
        /// Number of the execution.
        match_id: MatchId,
        /// Reason for the bust.
        reason: BrokenReason,
    },
    /// The instrument halts, and all orders in it are cancelled. Sequenced.
    SuspendInstrument {
        /// Its id.
        instrument: InstrumentId,
    },
    /// Adds an instrument, halted, with the next id; its definition is checked as in a file. Sequenced.
    AddInstrument(Instrument),
    /// Changes a user's limits, until the configuration's are changed. Sequenced.
    SetLimits {
        /// The user.
        session: SessionId,
        /// The change.
        change: LimitsChange,
    },
    /// Allows or forbids a user to enter orders in an instrument from now on; open orders remain. Holds until
    /// the configuration's list of the user's instruments is changed. Sequenced.
    AllowInstrument {
        /// The user.
        session: SessionId,
        /// The instrument.
        instrument: InstrumentId,
        /// True when the user may.
        is_allowed: bool,
    },
    /// Refuses new orders of a user, or of all users, from now on, and cancels the open ones. Sequenced.
    Kill(Option<SessionId>),
    /// Accepts new orders again, of a user or of all users that were not killed individually. Sequenced.
    Unkill(Option<SessionId>),
    /// The user's connection is closed; it may log in again.
    Disconnect(SessionId),
    /// Resets the wrong passwords of the user, from all addresses.
    Unlock(SessionId),
    /// New orders are refused from now on until the venue stops; cancels still work.
    Drain,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminOutcome {
    /// The command is done.
    Done {
        /// The number of commands that were sequenced for it.
        commands: u32,
    },
    /// The user is unknown: see `users`.
    UnknownUser,
    /// The user is not connected: nothing to do.
    NotConnected,
    /// Nothing was changed, for this reason.
    Refused(AdminRefusal),
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminAnswer {
    /// Number that the submitter gave the command.
    pub id: u64,
    /// Its outcome.
    pub outcome: AdminOutcome,
}

/// The reason why a command was not executed; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminRefusal {
    /// End the day first.
    #[error("the day has started already: 'phase all end-of-day' ends it")]
    DayStarted,
    /// Start the day first.
    #[error(
        "no day has started: 'phase all start' starts one, 'phase all open' lets everything trade at once"
    )]
    DayNotStarted,
    /// There is nothing to open.
    #[error("the instrument trades already: 'phase SYMBOL auction' collects orders for another cross")]
    Trading,
    /// There is nothing to close.
    #[error("the instrument is halted: 'phase SYMBOL pre-close' collects orders for a closing cross")]
    Halted,
    /// Give an existing instrument.
    #[error("there is no such instrument: 'status' shows those that there are")]
    NoInstrument,
    /// Give the number of an execution of today.
    #[error(
        "no such execution: it is of another day, older than those that are kept, a cross as a whole, or void already"
    )]
    NoExecution,
    /// Give a reference price that orders may have.
    #[error("the reference price lies outside the instrument's collar, where nothing trades")]
    OutsideCollar,
    /// See the message of the inner error.
    #[error(transparent)]
    Instrument(#[from] AddInstrumentError),
    /// Check the definition: sizes, prices and quantities.
    #[error("the venue could not use the instrument: it is in no book")]
    Unusable,
}

impl AdminCommand {
    /// The log command that carries it out alone, without any further state of the venue.
    pub(crate) fn log_command(&self) -> Option<LogCommandKind> {
        let kind = match *self {
            AdminCommand::SetTradingState { instrument, state } => {
                CommandKind::SetTradingState { instrument, state }
            }
            AdminCommand::SuspendInstrument { instrument } => CommandKind::SuspendInstrument { instrument },
            AdminCommand::BreakTrade { match_id, reason } => CommandKind::BreakTrade { match_id, reason },
            AdminCommand::Kill(None) => CommandKind::KillVenue { is_killed: true },
            AdminCommand::Unkill(None) => CommandKind::KillVenue { is_killed: false },
            AdminCommand::Phase { .. }
            | AdminCommand::SetPriceBand { .. }
            | AdminCommand::AddInstrument(_)
            | AdminCommand::SetLimits { .. }
            | AdminCommand::AllowInstrument { .. }
            | AdminCommand::Kill(Some(_))
            | AdminCommand::Unkill(Some(_))
            | AdminCommand::Disconnect(_)
            | AdminCommand::Unlock(_)
            | AdminCommand::Drain => return None,
        };
        Some(kind.into())
    }

    /// The instrument that must exist for the command, if it names one.
    #[must_use]
    pub fn instrument(&self) -> Option<InstrumentId> {
        match *self {
            AdminCommand::SetTradingState { instrument, .. }
            | AdminCommand::SuspendInstrument { instrument }
            | AdminCommand::AllowInstrument { instrument, .. } => Some(instrument),
            AdminCommand::Phase { instrument, .. } | AdminCommand::SetPriceBand { instrument, .. } => {
                instrument
            }
            _ => None,
        }
    }

    /// The refusal that it means when the command's log entries had no effect.
    #[must_use]
    pub fn without_effect(&self) -> Option<AdminRefusal> {
        match self {
            AdminCommand::BreakTrade { .. } => Some(AdminRefusal::NoExecution),
            AdminCommand::SetPriceBand { .. } => Some(AdminRefusal::OutsideCollar),
            AdminCommand::AddInstrument(_) => Some(AdminRefusal::Unusable),
            _ => None,
        }
    }
}
