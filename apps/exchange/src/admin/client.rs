//! The rings between an administrator and the order server, and a channel for new users, which own memory.

use std::sync::mpsc;

use tickpath_admin::{CommandReceiver, CommandSender, command_rings};
use tickpath_types::{InstrumentTable, SessionId};
use tickpath_venue::{
    AdminAnswer, AdminCommand, AdminOutcome, NewUser, RegisterError, SessionLog, UserRegistry, UserSettings,
};

use crate::login::{HashChecker, start_hash_checker};

/// Commands that may wait for the order server, which looks every 20 ms.
const CAPACITY: usize = 64;

/// A user was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddUserError {
    /// As it says.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// Try again when the venue has taken the commands before.
    #[error("the venue is busy: try again")]
    Busy,
    /// See what the system lacks: hashed passwords are checked by a thread.
    #[error("the thread that checks passwords: {0}")]
    Thread(#[from] std::io::Error),
}

/// A new user on its way to the order server.
pub(crate) struct NewUserRequest {
    pub(crate) user: NewUser,
    /// The thread that checks hashed passwords, if this is the first user who has one.
    pub(crate) checker: Option<HashChecker>,
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
    commands: CommandSender<Work, AdminOutcome>,
    new_users: mpsc::SyncSender<NewUserRequest>,
    basis: UserBasis,
}

/// What new users are made of.
pub(crate) struct UserBasis {
    /// They are added to it here alone.
    pub(crate) registry: UserRegistry,
    pub(crate) instruments: InstrumentTable,
    /// Messages kept for each user.
    pub(crate) retained_responses: usize,
    /// Whether their memory is touched before they log in.
    pub(crate) prefault: bool,
}

/// The order server's end.
pub(crate) struct AdminPort {
    pub(crate) commands: CommandReceiver<Work, AdminOutcome>,
    /// Those of the requests to add one, in their order.
    pub(crate) new_users: mpsc::Receiver<NewUserRequest>,
}

/// Both ends.
pub(crate) fn channel(basis: UserBasis) -> (AdminClient, AdminPort) {
    let (commands_in, commands) = command_rings(CAPACITY);
    // One more: a request is taken before its user.
    let (new_users_in, new_users) = mpsc::sync_channel(CAPACITY + 1);
    let client = AdminClient { commands: commands_in, new_users: new_users_in, basis };
    (client, AdminPort { commands, new_users })
}

impl AdminClient {
    /// Hands a command to the venue, which takes it within 20 ms; its number. `None` when as many wait as may:
    /// [poll](Self::poll) first.
    pub fn submit(&mut self, command: AdminCommand) -> Option<u64> {
        self.commands.submit(Work::Command(command))
    }

    /// The same of a new user, with the next session: it may log in as soon as that is done. Sequenced. What the user needs is allocated here.
    ///
    /// # Errors
    /// [`AddUserError`] when there can be no such user, or as many commands wait as may: nothing was changed.
    pub fn submit_user(&mut self, settings: &UserSettings) -> Result<u64, AddUserError> {
        if self.capacity() == 0 {
            return Err(AddUserError::Busy);
        }
        let UserBasis { registry, instruments, retained_responses, prefault } = &self.basis;
        let name = registry.check(&settings.name)?;
        let is_first_hash = settings.password.hash().is_some() && !registry.has_hashes();
        let checker = is_first_hash.then(|| start_hash_checker(registry.clone())).transpose()?;
        let session = SessionId(registry.len() as u16 + 1);
        let mut log = SessionLog::new(*retained_responses);
        if *prefault {
            log.prefault();
        }
        let user = NewUser::new(settings, name, session, log, instruments);
        // Before the log has it, so that a reader of the log finds it.
        registry.add(settings.clone())?;
        // There is room in both, unless the venue has ended.
        self.new_users.try_send(NewUserRequest { user, checker }).map_err(|_| AddUserError::Busy)?;
        self.commands.submit(Work::AddUser).ok_or(AddUserError::Busy)
    }

    /// Commands that may be submitted before the venue takes others.
    #[must_use]
    pub fn capacity(&mut self) -> usize {
        self.commands.capacity()
    }

    /// The next answer, in the order of the commands.
    pub fn poll(&mut self) -> Option<AdminAnswer> {
        self.commands.poll().map(|(id, outcome)| AdminAnswer { id, outcome })
    }
}
