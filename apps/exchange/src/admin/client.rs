//! The rings of administrator commands and of the order server's answers, and a channel for new users.

use std::sync::mpsc;

use tickpath_admin::{CommandReceiver, CommandSender, command_rings};
use tickpath_types::{InstrumentTable, SessionId};
use tickpath_venue::{
    AdminAnswer, AdminCommand, AdminOutcome, NewUser, RegisterError, SessionLog, UserRegistry, UserSettings,
};

use crate::login::{HashChecker, start_hash_checker};

/// Capacity of the command ring. The order server polls the ring every 20 ms.
const CAPACITY: usize = 64;

/// A user cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddUserError {
    /// The registry refuses the user, for example because the name is taken.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The command ring is full. Retry once the venue has taken the pending commands.
    #[error("the venue is busy: try again")]
    Busy,
    /// The system could not start the thread that checks hashed passwords.
    #[error("the thread that checks passwords: {0}")]
    Thread(#[from] std::io::Error),
}

/// A new user to be added by the order server.
pub(crate) struct NewUserRequest {
    pub(crate) user: NewUser,
    /// The thread that checks hashed passwords, if this user is the first with a hash.
    pub(crate) checker: Option<HashChecker>,
}

/// An entry of the command ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueuedCommand {
    Command(AdminCommand),
    /// Adds the next user from [`AdminPort::new_users`], by commands that enter the log.
    AddUser,
}

/// The administrator's end of the command ring.
pub struct AdminClient {
    commands: CommandSender<QueuedCommand, AdminOutcome>,
    new_users: mpsc::SyncSender<NewUserRequest>,
    context: NewUserContext,
}

/// Shared state and settings for the creation of new users.
pub(crate) struct NewUserContext {
    /// The user registry. Only [`AdminClient`] adds users to it.
    pub(crate) registry: UserRegistry,
    pub(crate) instruments: InstrumentTable,
    /// Number of order entry messages retained per user.
    pub(crate) retained_responses: usize,
    /// True to touch a new user's memory when the user is added, so that no message causes a page fault.
    pub(crate) prefault: bool,
}

/// The order server's end of the command ring.
pub(crate) struct AdminPort {
    pub(crate) commands: CommandReceiver<QueuedCommand, AdminOutcome>,
    /// The users of the [`QueuedCommand::AddUser`] entries in the ring, in the same order.
    pub(crate) new_users: mpsc::Receiver<NewUserRequest>,
}

/// Creates both ends of the command ring.
pub(crate) fn channel(context: NewUserContext) -> (AdminClient, AdminPort) {
    let (commands_in, commands) = command_rings(CAPACITY);
    // One slot more than the ring: the server takes an entry off the ring before it takes the user.
    let (new_users_in, new_users) = mpsc::sync_channel(CAPACITY + 1);
    let client = AdminClient { commands: commands_in, new_users: new_users_in, context };
    (client, AdminPort { commands, new_users })
}

impl AdminClient {
    /// Submits a command to the venue, which takes it within 20 ms. Returns the command's id, or `None` when
    /// the ring is full: [poll](Self::poll) first.
    pub fn submit(&mut self, command: AdminCommand) -> Option<u64> {
        self.commands.submit(QueuedCommand::Command(command))
    }

    /// Submits a new user, who gets the next session id and may log in once the command is answered. Returns
    /// the command's id. The order server sequences the log commands that add the user. This call allocates.
    ///
    /// # Errors
    /// [`AddUserError`] when the user is invalid, the ring is full, or the password thread cannot start.
    /// Nothing has changed then.
    pub fn submit_user(&mut self, settings: &UserSettings) -> Result<u64, AddUserError> {
        if self.capacity() == 0 {
            return Err(AddUserError::Busy);
        }
        let NewUserContext { registry, instruments, retained_responses, prefault } = &self.context;
        let name = registry.check(&settings.name)?;
        let is_first_hash = settings.password.hash().is_some() && !registry.has_hashes();
        let checker = is_first_hash.then(|| start_hash_checker(registry.clone())).transpose()?;
        let session = SessionId(registry.len() as u16 + 1);
        let mut log = SessionLog::new(*retained_responses);
        if *prefault {
            log.prefault();
        }
        let user = NewUser::new(settings, name, session, log, instruments);
        // Register the user before the command is logged, so that a reader of the log finds the user.
        registry.add(settings.clone())?;
        // The channel and the ring have capacity, so this fails only if the venue has ended.
        self.new_users.try_send(NewUserRequest { user, checker }).map_err(|_| AddUserError::Busy)?;
        self.commands.submit(QueuedCommand::AddUser).ok_or(AddUserError::Busy)
    }

    /// Number of commands that fit into the ring now.
    #[must_use]
    pub fn capacity(&mut self) -> usize {
        self.commands.capacity()
    }

    /// Returns the next answer, if any, in command order.
    pub fn poll(&mut self) -> Option<AdminAnswer> {
        self.commands.poll().map(|(id, outcome)| AdminAnswer { id, outcome })
    }
}
