//! Connections that have not logged in.

use tickpath_types::Nanos;

/// Bounds on the connections of one endpoint that have not logged in. Logged-in connections are not counted,
/// so that connections without a login cannot displace them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreLoginLimits {
    /// Maximum number of connections at a time. For one more, a connection of the peer with the most
    /// connections is closed, trusted ones last; see [`PreLogin::victim`].
    pub connections: usize,
    /// Maximum number of connections of one peer at a time; for one more, the peer's oldest is closed.
    pub per_address: usize,
    /// Time within which a connection must log in.
    pub deadline: Nanos,
}

impl Default for PreLoginLimits {
    /// 128 connections, 64 of each peer, and 5 s.
    fn default() -> Self {
        PreLoginLimits { connections: 128, per_address: 64, deadline: Nanos::from_secs(5) }
    }
}

/// The connections of one endpoint that have not logged in, identified by keys that the endpoint chooses.
///
/// Before it accepts a new connection, the endpoint calls [`victim`](PreLogin::victim). The endpoint then
/// reads from the victim once more, and closes it unless its login has arrived.
#[derive(Clone, Debug)]
pub struct PreLogin<P> {
    limits: PreLoginLimits,
    /// Connections in order of arrival.
    waiting: Vec<PendingConnection<P>>,
    /// Each peer of these connections, with the numbers of its connections.
    peers: Vec<Peer<P>>,
}

#[derive(Clone, Copy, Debug)]
struct PendingConnection<P> {
    key: u64,
    peer: P,
    deadline: Nanos,
    progress: LoginProgress,
    /// User named in the login: the outer `None` until a login arrives, the inner one for an unknown name.
    user: Option<Option<usize>>,
}

/// A peer, and the numbers of its connections: all, those with a login, and those with a trusted login.
#[derive(Clone, Copy, Debug)]
struct Peer<P> {
    peer: P,
    count: usize,
    logins: usize,
    trusted: usize,
}

/// Progress of a login; connections with the least progress are closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LoginProgress {
    Silent,
    /// The login has arrived and is not answered yet.
    Received,
    /// As `Received`, and the user's password was right from this peer before. Closed for a new connection
    /// only if all candidates are trusted.
    Trusted,
}

impl<P: Copy + Eq> PreLogin<P> {
    /// Creates the set for an endpoint with these bounds; a bound of 0 counts as 1.
    #[must_use]
    pub fn new(limits: PreLoginLimits) -> PreLogin<P> {
        let limits = PreLoginLimits {
            connections: limits.connections.max(1),
            per_address: limits.per_address.max(1),
            ..limits
        };
        PreLogin {
            limits,
            waiting: Vec::with_capacity(limits.connections),
            peers: Vec::with_capacity(limits.connections),
        }
    }

    /// Returns the connection to close before a new one of `peer` is [admitted](PreLogin::admit); `None` if
    /// there is capacity.
    ///
    /// The victim belongs to `peer` if `peer` has its maximum of connections, otherwise to the peer with the
    /// most untrusted ones. Trusted connections are closed last. If one user's logins from the victim's peer
    /// exceed half of the maximum per peer, the newest of them is closed, so that a flood of one user's
    /// logins does not displace other users. Otherwise a connection that has sent nothing is closed before
    /// one with a waiting login, and older ones before newer ones.
    #[must_use]
    pub fn victim(&self, peer: P) -> Option<u64> {
        let busiest = if self.count_of(peer) >= self.limits.per_address {
            peer
        } else if self.is_full() {
            let untrusted = self.largest(|peer| peer.count - peer.trusted);
            untrusted.filter(|(_, count)| *count > 0).or_else(|| self.largest(|peer| peer.count))?.0
        } else {
            return None;
        };
        let busiest = self.peers.iter().find(|known| known.peer == busiest)?;
        let is_candidate = |waiting: &&PendingConnection<P>| {
            waiting.peer == busiest.peer
                && (busiest.count == busiest.trusted || waiting.progress != LoginProgress::Trusted)
        };
        let candidates = || self.waiting.iter().filter(is_candidate);
        let may_be_flooded = busiest.logins > self.limits.per_address / 2;
        let newest = may_be_flooded.then(|| candidates().rfind(|waiting| self.is_flooded(waiting))).flatten();
        newest.or_else(|| candidates().min_by_key(|waiting| waiting.progress)).map(|waiting| waiting.key)
    }

    /// True if the logins of this connection's user from its peer exceed half of the peer's maximum.
    fn is_flooded(&self, waiting: &PendingConnection<P>) -> bool {
        waiting
            .user
            .is_some_and(|user| self.logins_of(user, waiting.peer).count() > self.limits.per_address / 2)
    }

    fn logins_of(&self, user: Option<usize>, peer: P) -> impl Iterator<Item = &PendingConnection<P>> {
        self.waiting.iter().filter(move |waiting| waiting.peer == peer && waiting.user == Some(user))
    }

    /// Returns the client to close for a new one of `peer`. Endpoints without credentials call it; they keep
    /// their clients in a separate `PreLogin`. At full capacity this is the oldest client of the peer with
    /// the most clients, provided that this peer has at least two more than `peer`. `None` if there is
    /// capacity, or if the endpoint must refuse the new client.
    #[must_use]
    pub fn fair_share_victim(&self, peer: P) -> Option<u64> {
        let (busiest, count) = self.busiest().filter(|_| self.is_full())?;
        let mut clients = self.waiting.iter().filter(|waiting| waiting.peer == busiest);
        if count > self.count_of(peer) + 1 { clients.next().map(|waiting| waiting.key) } else { None }
    }

    /// Returns the oldest connection of the peer with the most connections.
    #[must_use]
    pub fn oldest_of_busiest(&self) -> Option<u64> {
        self.busiest().and_then(|(busiest, _)| self.oldest_of(busiest))
    }

    /// Returns the oldest connection of this peer.
    #[must_use]
    pub fn oldest_of(&self, peer: P) -> Option<u64> {
        self.waiting.iter().find(|waiting| waiting.peer == peer).map(|waiting| waiting.key)
    }

    /// True if the total number of connections is at its maximum.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.limits.connections
    }

    /// Returns the peer with the most connections, and their number; of several such peers, the first.
    fn busiest(&self) -> Option<(P, usize)> {
        self.largest(|peer| peer.count)
    }

    /// Returns the peer with the largest `count`, and that count; of several such peers, the first.
    fn largest(&self, count: impl Fn(&Peer<P>) -> usize) -> Option<(P, usize)> {
        self.peers.iter().rev().map(|peer| (peer.peer, count(peer))).max_by_key(|(_, count)| *count)
    }

    /// Adds a connection that was just accepted.
    ///
    /// # Panics
    /// If there is no capacity: close the [`victim`](PreLogin::victim) first.
    pub fn admit(&mut self, now: Nanos, key: u64, peer: P) {
        assert!(self.waiting.len() < self.limits.connections, "the victim was removed before");
        let deadline = now + self.limits.deadline;
        self.waiting.push(PendingConnection {
            key,
            peer,
            deadline,
            progress: LoginProgress::Silent,
            user: None,
        });
        match self.peers.iter_mut().find(|known| known.peer == peer) {
            Some(known) => known.count += 1,
            None => self.peers.push(Peer { peer, count: 1, logins: 0, trusted: 0 }),
        }
    }

    /// Records that a connection's request is answered only at `answered_at`; its deadline restarts then.
    pub fn postpone(&mut self, key: u64, answered_at: Nanos) {
        self.set_progress(key, LoginProgress::Received, None, answered_at);
    }

    /// Like `postpone`, for a login of `user` that has arrived (`None`: an unknown name). `is_trusted` says
    /// that the user's password was right from this peer before; then untrusted logins do not displace the
    /// connection. At most half of the peer's maximum are trusted for one user: most logins beyond that are
    /// guesses.
    pub fn postpone_login(&mut self, key: u64, user: Option<usize>, answered_at: Nanos, is_trusted: bool) {
        let Some(peer) = self.waiting.iter().find(|waiting| waiting.key == key).map(|waiting| waiting.peer)
        else {
            return;
        };
        let others = self.logins_of(user, peer).filter(|other| other.key != key);
        let trusted = others.filter(|other| other.progress == LoginProgress::Trusted).count();
        let is_trusted = is_trusted && trusted < self.limits.per_address.div_ceil(2);
        let progress = if is_trusted { LoginProgress::Trusted } else { LoginProgress::Received };
        self.set_progress(key, progress, Some(user), answered_at);
    }

    fn set_progress(
        &mut self,
        key: u64,
        progress: LoginProgress,
        user: Option<Option<usize>>,
        answered_at: Nanos,
    ) {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.key == key) else { return };
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.peer == waiting.peer) {
            peer.logins -= usize::from(waiting.user.is_some());
            peer.logins += usize::from(user.is_some());
            peer.trusted -= usize::from(waiting.progress == LoginProgress::Trusted);
            peer.trusted += usize::from(progress == LoginProgress::Trusted);
        }
        waiting.progress = progress;
        waiting.user = user;
        waiting.deadline = answered_at + self.limits.deadline;
    }

    /// Removes a connection that has logged in or is closed; returns whether it was waiting to log in.
    pub fn remove(&mut self, key: u64) -> bool {
        let Some(place) = self.waiting.iter().position(|waiting| waiting.key == key) else { return false };
        let PendingConnection { peer, progress, user, .. } = self.waiting.remove(place);
        if let Some(place) = self.peers.iter().position(|known| known.peer == peer) {
            let known = &mut self.peers[place];
            known.count -= 1;
            known.logins -= usize::from(user.is_some());
            known.trusted -= usize::from(progress == LoginProgress::Trusted);
            if known.count == 0 {
                self.peers.remove(place);
            }
        }
        true
    }

    /// Returns a connection whose deadline has passed: close it, and call this again.
    #[must_use]
    pub fn expired(&self, now: Nanos) -> Option<u64> {
        self.waiting.iter().find(|waiting| now >= waiting.deadline).map(|waiting| waiting.key)
    }

    /// True if the connection with this key has not logged in.
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.key == key)
    }

    /// Number of connections that have not logged in.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no connection is waiting to log in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn count_of(&self, peer: P) -> usize {
        self.peers.iter().find(|known| known.peer == peer).map_or(0, |known| known.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::from_secs(1);
    const LIMITS: PreLoginLimits =
        PreLoginLimits { connections: 6, per_address: 4, deadline: Nanos::from_secs(5) };

    /// Admits a connection as an endpoint does; returns the connection that was closed for it.
    fn arrive(waiting: &mut PreLogin<char>, key: u64, peer: char) -> Option<u64> {
        let victim = waiting.victim(peer);
        if let Some(victim) = victim {
            assert!(waiting.remove(victim));
        }
        waiting.admit(NOW, key, peer);
        victim
    }

    #[test]
    fn an_address_at_its_limit_evicts_its_oldest() {
        let mut waiting = PreLogin::new(LIMITS);
        assert_eq!(arrive(&mut waiting, 100, 'b'), None);
        let closed: Vec<_> = (0..8).map(|key| arrive(&mut waiting, key, 'a')).collect();
        assert_eq!(closed, [None, None, None, None, Some(0), Some(1), Some(2), Some(3)]);
        assert!(waiting.contains(100) && waiting.len() == 5);
    }

    #[test]
    fn a_full_endpoint_evicts_from_the_busiest_address() {
        let mut waiting = PreLogin::new(LIMITS);
        for (key, peer) in [(1, 'b'), (2, 'a'), (3, 'a'), (4, 'a'), (5, 'c'), (6, 'c')] {
            assert_eq!(arrive(&mut waiting, key, peer), None);
        }
        assert_eq!(arrive(&mut waiting, 7, 'd'), Some(2));
        assert_eq!(arrive(&mut waiting, 8, 'e'), Some(3), "of equal ones that which came first");
        assert_eq!(arrive(&mut waiting, 9, 'f'), Some(5));
        assert!(waiting.contains(1));
        let flood: Vec<_> = (10..14).map(|key| arrive(&mut waiting, key, 'g')).collect();
        assert_eq!(flood, [Some(1), Some(4), Some(10), Some(11)], "those with one each last");
    }

    #[test]
    fn received_logins_outlast_silent_connections() {
        let mut waiting = PreLogin::new(LIMITS);
        (0..4).for_each(|key| assert_eq!(arrive(&mut waiting, key, 'a'), None));
        waiting.postpone_login(0, None, NOW + Nanos::from_secs(3), false);
        assert_eq!(arrive(&mut waiting, 4, 'a'), Some(1));
        assert_eq!(waiting.expired(NOW + Nanos(4_999_999_999)), None);
        let end = NOW + LIMITS.deadline;
        let mut expired = Vec::new();
        while let Some(key) = waiting.expired(end) {
            waiting.remove(key);
            expired.push(key);
        }
        assert_eq!(expired, [2, 3, 4]);
        assert_eq!(waiting.expired(end + Nanos::from_secs(3)), Some(0));
        waiting.postpone(1, NOW);
        assert!(!waiting.remove(1), "it is closed");
        let mut received = PreLogin::new(LIMITS);
        (0..4).for_each(|key| {
            arrive(&mut received, key, 'a');
            received.postpone_login(key, Some(key as usize), NOW, key == 0);
        });
        assert_eq!(received.victim('a'), Some(1), "where all have asked the oldest that is not trusted");
    }

    #[test]
    fn trusted_logins_are_evicted_last() {
        let mut waiting = PreLogin::new(LIMITS);
        arrive(&mut waiting, 1, 'a');
        waiting.postpone_login(1, Some(0), NOW, true);
        // Other addresses connect in turn, silent or with an untrusted login.
        for (key, peer) in (2..500).zip(('b'..='z').cycle()) {
            assert_ne!(arrive(&mut waiting, key, peer), Some(1));
            if key % 2 == 0 {
                waiting.postpone_login(key, Some(0), NOW, false);
            }
        }
        // New connections from the same address do not evict the trusted login either.
        let closed: Vec<_> = (500..520).filter_map(|key| arrive(&mut waiting, key, 'a')).collect();
        assert!(waiting.contains(1) && !closed.contains(&1));
        // When all candidates are trusted, the oldest of the address with the most connections is closed.
        let mut trusted = PreLogin::new(LIMITS);
        for (key, peer) in [(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, 'b'), (6, 'c')] {
            arrive(&mut trusted, key, peer);
            trusted.postpone_login(key, Some(key as usize), NOW, true);
        }
        assert_eq!(arrive(&mut trusted, 7, 'd'), Some(3));
        assert_eq!(arrive(&mut trusted, 8, 'e'), Some(7), "one that is not trusted");
    }

    /// An attacker guesses passwords from the same address as the client.
    #[test]
    fn a_login_flood_of_one_user_evicts_its_newest() {
        for is_trusted in [false, true] {
            let mut waiting = PreLogin::new(LIMITS);
            arrive(&mut waiting, 1, 'a');
            waiting.postpone_login(1, Some(0), NOW, is_trusted);
            arrive(&mut waiting, 2, 'a');
            for key in 3..100 {
                let closed = arrive(&mut waiting, key, 'a');
                waiting.postpone_login(key, Some(0), NOW, is_trusted);
                assert!(closed.is_none_or(|closed| closed == key - 1), "{closed:?} for {key}");
            }
            assert!(waiting.contains(1) && waiting.contains(2), "the first login, and a silent client");
            // Logins of other users from this address and connections from other addresses are admitted.
            arrive(&mut waiting, 100, 'a');
            waiting.postpone_login(100, Some(1), NOW, false);
            arrive(&mut waiting, 101, 'a');
            assert!(waiting.contains(100));
            assert_eq!(
                [(102, 'b'), (103, 'c')].map(|(key, peer)| arrive(&mut waiting, key, peer)),
                [None; 2]
            );
        }
    }

    #[test]
    fn the_busiest_peer_yields_to_smaller_ones() {
        let mut clients = PreLogin::new(PreLoginLimits { per_address: 6, ..LIMITS });
        for (key, peer) in [(1, 'b'), (2, 'a'), (3, 'a'), (4, 'a'), (5, 'b')] {
            assert_eq!((arrive(&mut clients, key, peer), clients.fair_share_victim('c')), (None, None));
        }
        arrive(&mut clients, 6, 'c');
        assert_eq!(clients.oldest_of_busiest(), Some(2));
        assert_eq!(
            ['a', 'b', 'c', 'd'].map(|peer| clients.fair_share_victim(peer)),
            [None, None, Some(2), Some(2)]
        );
    }

    #[test]
    fn removed_connections_leave_no_state() {
        let mut waiting = PreLogin::new(LIMITS);
        for key in 0..1_000 {
            arrive(&mut waiting, key, char::from(b'a' + (key % 26) as u8));
            assert!(waiting.len() <= LIMITS.connections && waiting.peers.len() <= waiting.len());
        }
        (0..1_000).for_each(|key| _ = waiting.remove(key));
        assert!(waiting.is_empty() && waiting.peers.is_empty());
        assert_eq!(waiting.waiting.capacity(), LIMITS.connections);
        assert_eq!(waiting.peers.capacity(), LIMITS.connections);
    }
}
