//! Two rings between whoever commands the venue and its order server, and a channel for users, who are more than bytes.

use std::sync::mpsc;

use tickpath_lockfree::spsc;
use tickpath_types::{
    BrokenReason, Instrument, InstrumentId, InstrumentTable, MatchId, Price, SessionId, TradingState,
};

use super::{AdminRefusal, LimitsChange};
use crate::login::CheckerThread;
use crate::roster::{AddUserError, Roster};
use crate::session_log::SessionLog;
use crate::users::{NewUser, UserSettings};
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
    pub(crate) work: Work,
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Command(AdminCommand),
    /// The next of the new users is taken in. Sequenced.
    AddUser,
}

/// The commanding end.
pub struct AdminClient {
    requests: spsc::Producer<AdminRequest>,
    new_users: mpsc::SyncSender<NewUser>,
    answers: spsc::Consumer<AdminAnswer>,
    next_id: u64,
    basis: UserBasis,
}

/// What new users are made of.
pub(crate) struct UserBasis {
    /// They are added to it here alone.
    pub(crate) roster: Roster,
    pub(crate) instruments: InstrumentTable,
    /// Messages kept for each user.
    pub(crate) retained_responses: usize,
    /// Whether their memory is touched before they log in.
    pub(crate) prefault: bool,
}

/// The order server's end.
pub(crate) struct AdminPort {
    pub(crate) requests: spsc::Consumer<AdminRequest>,
    /// Those of the requests to add one, in their order.
    pub(crate) new_users: mpsc::Receiver<NewUser>,
    pub(crate) answers: spsc::Producer<AdminAnswer>,
}

/// Both ends.
pub(crate) fn channel(basis: UserBasis) -> (AdminClient, AdminPort) {
    let (requests_in, requests) = spsc::channel(CAPACITY);
    // One more: a request is taken before its user.
    let (new_users_in, new_users) = mpsc::sync_channel(CAPACITY + 1);
    let (answers, answers_out) = spsc::channel(CAPACITY);
    (
        AdminClient {
            requests: requests_in,
            new_users: new_users_in,
            answers: answers_out,
            next_id: 1,
            basis,
        },
        AdminPort { requests, new_users, answers },
    )
}

impl AdminClient {
    /// Hands a command to the venue, which takes it within 20 ms; its number. `None` when as many wait as may:
    /// [poll](Self::poll) first.
    pub fn submit(&mut self, command: AdminCommand) -> Option<u64> {
        self.request(Work::Command(command))
    }

    /// The same of a new user, with the next session: it may log in from then on. Sequenced. What the user needs is
    /// allocated here.
    ///
    /// # Errors
    /// [`AddUserError`] when there can be no such user, or as many commands wait as may: nothing was changed.
    pub fn submit_user(&mut self, settings: &UserSettings) -> Result<u64, AddUserError> {
        if self.room() == 0 {
            return Err(AddUserError::Busy);
        }
        let UserBasis { roster, instruments, retained_responses, prefault } = &self.basis;
        let name = roster.check(&settings.name)?;
        let is_first_hash = settings.password.hash().is_some() && !roster.has_hashes();
        let checker = is_first_hash.then(|| CheckerThread::start(roster.clone())).transpose()?;
        let session = SessionId(roster.len() as u16 + 1);
        let mut log = SessionLog::new(*retained_responses);
        if *prefault {
            log.prefault();
        }
        let user = NewUser { checker, ..NewUser::new(settings, name, session, log, instruments) };
        // Before the log has it, so that whoever hears of it finds it.
        roster.add(settings.clone())?;
        // There is room in both, unless the venue has gone.
        self.new_users.try_send(user).map_err(|_| AddUserError::Busy)?;
        self.request(Work::AddUser).ok_or(AddUserError::Busy)
    }

    /// Commands that may be submitted before the venue takes others.
    #[must_use]
    pub fn room(&mut self) -> usize {
        self.requests.free_slots()
    }

    fn request(&mut self, work: Work) -> Option<u64> {
        let id = self.next_id;
        self.requests.try_push(AdminRequest { id, work }).ok()?;
        self.next_id += 1;
        Some(id)
    }

    /// The next answer, in the order of the commands.
    pub fn poll(&mut self) -> Option<AdminAnswer> {
        self.answers.try_pop()
    }
}
