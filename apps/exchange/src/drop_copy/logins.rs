//! Users that log in for drop copies.

use std::net::Ipv4Addr;

use tickpath_admission::LoginGuard;
use tickpath_lockfree::spsc;
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_types::Nanos;
use tickpath_venue::drop_copy::{ReaderUser, enlist, find};
use tickpath_venue::{Password, UserRegistry};

use crate::login::{TrustedLogin, has_password, unknown_password};

/// The users, their passwords and their connections.
pub(crate) struct ReaderLogins {
    users: UserRegistry,
    /// The same users, by their places.
    readers: Vec<ReaderUser>,
    /// The password that is checked for an unknown name.
    unknown: Option<Password>,
    guard: LoginGuard<Ipv4Addr>,
    /// New trusted logins, for the file that outlasts a restart.
    trusted: spsc::Producer<TrustedLogin>,
}

impl ReaderLogins {
    pub(crate) fn new(
        users: UserRegistry,
        guard: LoginGuard<Ipv4Addr>,
        trusted: spsc::Producer<TrustedLogin>,
    ) -> ReaderLogins {
        let mut readers = Vec::with_capacity(users.room());
        enlist(&mut readers, &users);
        ReaderLogins { unknown: unknown_password(&users), users, readers, guard, trusted }
    }

    /// Adds the users that came since. A user that the log names is in the registry by then.
    pub(super) fn take_new_users(&mut self) {
        if self.users.get(self.readers.len()).is_some() {
            enlist(&mut self.readers, &self.users);
            self.unknown = self.unknown.take().or_else(|| unknown_password(&self.users));
        }
    }

    pub(super) fn reader(&self, place: usize) -> &ReaderUser {
        &self.readers[place]
    }

    /// The connection of a reader that is logged in.
    pub(super) fn connection_of(&mut self, place: usize) -> &mut Option<usize> {
        &mut self.readers[place].connection
    }

    /// Readers that are logged in.
    pub(super) fn connected(&self) -> usize {
        self.readers.iter().filter(|reader| reader.connection.is_some()).count()
    }

    /// The user of a login that has come, how long its check is put off, and whether its peer is trusted.
    pub(super) fn begin(
        &mut self,
        request: &LoginRequest,
        peer: Ipv4Addr,
        now: Nanos,
    ) -> (Option<usize>, Nanos, bool) {
        let user = find(&self.readers, &request.username);
        let delay = self.guard.delay(now, user, peer);
        (user, delay, self.guard.is_trusted(user, peer))
    }

    /// The reader, if its password is right. Takes as long as a hashed password takes, on this thread: only other readers
    /// wait for it, and the guard ensures that they do not wait often.
    pub(super) fn check(&mut self, request: &LoginRequest, peer: Ipv4Addr) -> Option<usize> {
        let user = find(&self.readers, &request.username);
        let known = user.map(|user| &self.readers[user].password).or(self.unknown.as_ref());
        let is_right = known.is_some_and(|known| has_password(known, &request.password));
        let user = user.filter(|_| is_right)?;
        if self.guard.record_success(user, peer) {
            // One that finds no capacity is trusted until the venue stops.
            let _ = self.trusted.try_push((user as u32, peer));
        }
        Some(user)
    }
}
