//! Commands of the administrator to a running venue, and their outcomes.

use tickpath_matching::CommandKind;
use tickpath_types::{
    AddInstrumentError, BrokenReason, Instrument, InstrumentId, MatchId, Price, SessionId, TradingState,
};

use crate::day::{BandWidth, Phase};
use crate::log_command::LogCommandKind;
use crate::user_limits::LimitsChange;

/// A command of the administrator to a running venue. Those marked "Sequenced" enter the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Halts an instrument, or lets it trade again. Sequenced.
    SetTradingState {
        /// The instrument's id.
        instrument: InstrumentId,
        /// The new state.
        state: TradingState,
    },
    /// Begins a phase of the day for one instrument or for all. Sequenced.
    Phase {
        /// The phase.
        phase: Phase,
        /// The instrument; all when `None`.
        instrument: Option<InstrumentId>,
    },
    /// Sets a price band from now on; trading pauses before a trade outside the band. Sequenced.
    SetPriceBand {
        /// The instrument; all when `None`.
        instrument: Option<InstrumentId>,
        /// Distance of the band's edges from the reference price.
        width: BandWidth,
        /// Reference price of the band; the instrument's own reference price when `None`.
        reference: Option<Price>,
    },
    /// Busts an execution. Sequenced.
    BreakTrade {
        /// Match number of the execution.
        match_id: MatchId,
        /// Reason for the bust.
        reason: BrokenReason,
    },
    /// Halts an instrument and cancels all its orders. Sequenced.
    SuspendInstrument {
        /// The instrument's id.
        instrument: InstrumentId,
    },
    /// Adds an instrument, halted, under the next free id. The engine checks the definition. Sequenced.
    AddInstrument(Instrument),
    /// Changes a user's limits. A change holds until the configuration changes the same limit. Sequenced.
    SetLimits {
        /// The user.
        session: SessionId,
        /// The change.
        change: LimitsChange,
    },
    /// Allows or forbids a user to enter orders in an instrument from now on; open orders remain. Holds until
    /// the configuration changes the user's list of instruments. Sequenced.
    AllowInstrument {
        /// The user.
        session: SessionId,
        /// The instrument.
        instrument: InstrumentId,
        /// True to allow, false to forbid.
        is_allowed: bool,
    },
    /// Refuses new orders of a user, or of all users, from now on, and cancels their open orders. Sequenced.
    Kill(Option<SessionId>),
    /// Accepts new orders again, of a user or of all users that were not killed individually. Sequenced.
    Unkill(Option<SessionId>),
    /// Closes the user's connection; the user may log in again.
    Disconnect(SessionId),
    /// Clears the counts of the user's wrong passwords from all addresses.
    Unlock(SessionId),
    /// Refuses new orders from now on until the venue stops; cancels still work.
    Drain,
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminOutcome {
    /// The venue carried out the command.
    Done {
        /// Number of log commands that carry out the command.
        commands: u32,
    },
    /// The user does not exist; the command `users` lists the users.
    UnknownUser,
    /// The user is not connected, so there is no connection to close.
    NotConnected,
    /// The venue refused the command for this reason; nothing was changed.
    Refused(AdminRefusal),
}

/// The venue's answer to an [`AdminCommand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminAnswer {
    /// Id that the sender gave the command.
    pub id: u64,
    /// Outcome of the command.
    pub outcome: AdminOutcome,
}

/// The reason why an [`AdminCommand`] was refused; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminRefusal {
    /// A day is in progress: end it first.
    #[error("the day has started already: 'phase all end-of-day' ends it")]
    DayStarted,
    /// No day is in progress: start one first.
    #[error(
        "no day has started: 'phase all start' starts one, 'phase all open' lets everything trade at once"
    )]
    DayNotStarted,
    /// The instrument trades already.
    #[error("the instrument trades already: 'phase SYMBOL auction' collects orders for another cross")]
    Trading,
    /// The instrument is halted already.
    #[error("the instrument is halted: 'phase SYMBOL pre-close' collects orders for a closing cross")]
    Halted,
    /// No instrument has this id.
    #[error("there is no such instrument: 'status' lists the instruments")]
    NoInstrument,
    /// No execution that can be busted has this match number.
    #[error("no such execution: it is from another day, no longer kept, a cross as a whole, or already void")]
    NoExecution,
    /// The reference price lies outside the instrument's collar.
    #[error("the reference price lies outside the instrument's collar, where nothing trades")]
    OutsideCollar,
    /// The instrument cannot be added, for the reason in the inner error.
    #[error(transparent)]
    Instrument(#[from] AddInstrumentError),
    /// The engine rejects the instrument: its tick size, lot size, collar or maximum quantity is invalid.
    #[error("the instrument was not added: its tick size, lot size, collar or maximum quantity is invalid")]
    Unusable,
}

impl AdminCommand {
    /// The one log command that carries out this command. `None` if it needs none or several, or if they
    /// depend on the venue's state.
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

    /// Id of the instrument to which the command applies, if any; the venue refuses an unknown id.
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

    /// The refusal to report if the engine ignores the log commands; `None` to report the command as done.
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
