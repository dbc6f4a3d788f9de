//! Two rings between whoever commands the venue and its order server.

use tickpath_lockfree::spsc;
use tickpath_types::{BrokenReason, Instrument, InstrumentId, MatchId, Price, SessionId, TradingState};

use super::{AdminRefusal, LimitsChange};
use crate::{BandWidth, Phase};

/// Commands that may wait for the order server, which looks every 20 ms.
const CAPACITY: usize = 64;

/// What a running venue can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// An instrument halts, or trades again. Sequenced.
    SetTradingState {
        /// Which.
        instrument: InstrumentId,
        /// Its new state.
        state: TradingState,
    },
    /// An instrument, or all, enters a phase of the day. Sequenced.
    Phase {
        /// Which phase.
        phase: Phase,
        /// Which instrument; all when `None`.
        instrument: Option<InstrumentId>,
    },
    /// Trading pauses before a trade outside the band, from now on. Sequenced.
    SetPriceBand {
        /// Which instrument; all when `None`.
        instrument: Option<InstrumentId>,
        /// How far from the reference.
        width: BandWidth,
        /// The middle; the instrument's reference price when `None`.
        reference: Option<Price>,
    },
    /// An execution is void. Sequenced.
    BreakTrade {
        /// Which.
        match_id: MatchId,
        /// Why.
        reason: BrokenReason,
    },
    /// A new instrument, halted, whose definition was checked as that of a file is; it gets the next id, whatever id is
    /// given. Sequenced.
    AddInstrument(Instrument),
    /// The instrument halts, and all orders in it are cancelled. Sequenced.
    SuspendInstrument {
        /// Which.
        instrument: InstrumentId,
    },
    /// Other limits for a user, until the configuration's are changed. Sequenced.
    SetLimits {
        /// Which user.
        session: SessionId,
        /// What changes.
        change: LimitsChange,
    },
    /// A user may enter orders in an instrument from now on, or no more; what is open stays. Until the configuration's
    /// list of the user's instruments is changed. Sequenced.
    AllowInstrument {
        /// Which user.
        session: SessionId,
        /// Which instrument.
        instrument: InstrumentId,
        /// Whether the user may.
        is_allowed: bool,
    },
    /// New orders of a user, or of everybody, are refused from now on, and the open ones cancelled. Sequenced.
    Kill(Option<SessionId>),
    /// New orders of a user are taken again, or of everybody who was not killed alone. Sequenced.
    Unkill(Option<SessionId>),
    /// The user's connection is closed; it may log in again.
    Disconnect(SessionId),
    /// Wrong passwords of the user, and of all addresses, are forgiven.
    Unlock(SessionId),
    /// New orders are refused from now on until the venue stops; cancels still work.
    Drain,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminOutcome {
    /// It is done, by so many commands in the log.
    Done {
        /// How many commands were sequenced for it.
        commands: u32,
    },
    /// There is no such user: see `users`.
    UnknownUser,
    /// The user is not connected: nothing to do.
    NotConnected,
    /// Nothing was changed, and why.
    Refused(AdminRefusal),
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminAnswer {
    /// Number of the command, as [`AdminClient::submit`] gave it.
    pub id: u64,
    /// What became of it.
    pub outcome: AdminOutcome,
}

/// A command on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdminRequest {
    pub(crate) id: u64,
    pub(crate) command: AdminCommand,
}

/// The commanding end.
pub struct AdminClient {
    requests: spsc::Producer<AdminRequest>,
    answers: spsc::Consumer<AdminAnswer>,
    next_id: u64,
}

/// The order server's end.
pub(crate) struct AdminPort {
    pub(crate) requests: spsc::Consumer<AdminRequest>,
    pub(crate) answers: spsc::Producer<AdminAnswer>,
}

/// Both ends.
pub(crate) fn channel() -> (AdminClient, AdminPort) {
    let (requests_in, requests) = spsc::channel(CAPACITY);
    let (answers, answers_out) = spsc::channel(CAPACITY);
    (AdminClient { requests: requests_in, answers: answers_out, next_id: 1 }, AdminPort { requests, answers })
}

impl AdminClient {
    /// Hands a command to the venue, which takes it within 20 ms; its number. `None` when as many wait as may:
    /// [poll](Self::poll) first.
    pub fn submit(&mut self, command: AdminCommand) -> Option<u64> {
        let id = self.next_id;
        self.requests.try_push(AdminRequest { id, command }).ok()?;
        self.next_id += 1;
        Some(id)
    }

    /// The next answer, in the order of the commands.
    pub fn poll(&mut self) -> Option<AdminAnswer> {
        self.answers.try_pop()
    }
}
