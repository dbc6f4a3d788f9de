//! The users that may read drop copies, and the users that each reader watches.

use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest, Session, Username};
use tickpath_types::{Nanos, Sequence};

use super::store::Entry;
use super::streams::{CopySource, CopyStart, CopyStreams, REWIND_TIMEOUT, RewindRun};
use crate::logins::{Denial, LoginUsers, is_for_session};
use crate::password::Password;
use crate::user_registry::{UserRegistry, UserView};

struct Reader {
    /// For each user, by registry index, whether the reader watches it.
    watched: Vec<bool>,
    /// Source of the reader's next message; `None` while the reader is logged out.
    source: Option<CopySource>,
}

/// The drop copy port's users, identified by registry index, and the streams of the logged-in ones.
///
/// Includes users without access to this port: their logins are rejected in the same way as unknown names.
pub struct Readers {
    session: Session,
    registry: UserRegistry,
    readers: Vec<Reader>,
    /// The streams of copies, keyed by connection index.
    pub streams: CopyStreams,
}

impl Readers {
    /// Creates readers for all users of the registry, who log in to `session`.
    #[must_use]
    pub fn new(session: Session, registry: UserRegistry, streams: CopyStreams) -> Readers {
        let mut readers = Vec::with_capacity(registry.capacity());
        add_new_users(&mut readers, &registry);
        Readers { session, registry, readers, streams }
    }

    /// Adds users registered since the last call. A user is registered before its first command is logged.
    pub fn take_new_users(&mut self) {
        if self.registry.get(self.readers.len()).is_some() {
            add_new_users(&mut self.readers, &self.registry);
        }
    }

    /// Name of the user with registry index `user`.
    #[must_use]
    pub fn name(&self, user: usize) -> &str {
        self.registry[user].name()
    }

    /// Source of a reader's next message; `None` while the reader is logged out.
    #[must_use]
    pub fn source(&self, reader: usize) -> Option<CopySource> {
        self.readers[reader].source
    }

    /// The next copy for a reader, if available.
    pub fn next_copy(&mut self, reader: usize, now: Nanos) -> Option<Entry> {
        let Reader { watched, source, .. } = &mut self.readers[reader];
        self.streams.next(source.as_mut()?, watched, now)
    }

    /// Continues the second reading of the log for `reader`; see [`CopyStreams::advance_rewind`].
    pub fn advance_rewind(&mut self, reader: usize, takes_all: bool, now: Nanos) -> RewindRun {
        self.streams.advance_rewind(&self.readers[reader].watched, takes_all, now)
    }

    /// Logs out a reader whose connection has closed.
    pub fn log_out(&mut self, reader: usize) {
        self.readers[reader].source = None;
    }
}

impl LoginUsers for Readers {
    fn find(&self, name: &Username) -> Option<usize> {
        let mut known = self.registry.iter().take(self.readers.len());
        known.position(|user| name.matches(user.name()))
    }

    fn password(&self, user: usize) -> &Password {
        &self.registry[user].settings.password
    }

    fn log_in(
        &mut self,
        now: Nanos,
        place: usize,
        user: usize,
        login: &LoginRequest,
        is_full: bool,
    ) -> Result<Sequence, Denial> {
        let reader = &mut self.readers[user];
        if !self.registry[user].settings.ports.drop_copy {
            return Err(Denial::Rejected(LoginRejectReason::NOT_AUTHORIZED));
        }
        let is_free = is_for_session(login, self.session) && reader.source.is_none() && !is_full;
        match is_free.then(|| self.streams.start(place, &reader.watched, login.sequence.0, now)) {
            None | Some(CopyStart::NotAvailable) => {
                Err(Denial::Rejected(LoginRejectReason::SESSION_NOT_AVAILABLE))
            }
            // The login waits until the rewind of another reader has ended.
            Some(CopyStart::Busy) => Err(Denial::Busy(now + REWIND_TIMEOUT)),
            Some(CopyStart::At(number, source)) => {
                reader.source = Some(source);
                Ok(Sequence(number))
            }
        }
    }
}

/// Adds newly registered users as readers, and to the watch lists of the readers that watch them.
fn add_new_users(readers: &mut Vec<Reader>, registry: &UserRegistry) {
    let users: Vec<&UserView> = registry.iter().collect();
    readers.resize_with(users.len(), || Reader {
        watched: Vec::with_capacity(registry.capacity()),
        source: None,
    });
    for (reader, UserView { settings, .. }) in readers.iter_mut().zip(&users) {
        let is_watched = |user: &&UserView| match &settings.copies_of {
            None => true,
            Some(watched) => watched.iter().any(|name| name.eq_ignore_ascii_case(user.name())),
        };
        let known = reader.watched.len();
        reader.watched.extend(users[known..].iter().map(is_watched));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_settings::UserSettings;

    fn user(name: &str, copies_of: Option<&[&str]>) -> UserSettings {
        let copies_of = copies_of.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        UserSettings { copies_of, ..UserSettings::new(name, Password::plain("secret")) }
    }

    #[test]
    fn added_users_watch_and_are_watched() {
        let registry = UserRegistry::new(&[user("ANNA", None), user("CLERK", Some(&["anna", "dora"]))], 4);
        let mut readers = Vec::new();
        add_new_users(&mut readers, &registry);
        let watched = |readers: &[Reader]| -> Vec<Vec<bool>> {
            readers.iter().map(|reader| reader.watched.clone()).collect()
        };
        assert_eq!(watched(&readers), [[true, true], [true, false]]);
        registry.add(user("Dora", Some(&["CLERK"]))).unwrap();
        registry.add(user("EMIL", None)).unwrap();
        add_new_users(&mut readers, &registry);
        assert_eq!(
            watched(&readers),
            [[true; 4], [true, false, true, false], [false, true, false, false], [true; 4]]
        );
    }
}
