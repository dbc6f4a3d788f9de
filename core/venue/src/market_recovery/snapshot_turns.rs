//! Admission of GLIMPSE clients, and the market snapshots that they receive.

use std::sync::Arc;

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_nasdaq::moldudp64::Session;
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_types::Nanos;

use super::counters::RecoveryCounters;
use crate::logins::is_for_session;
use crate::market_image::{MarketImage, next_message};

/// Maximum number of snapshots in memory. Clients that log in before a snapshot is taken share it. While all
/// snapshots are in use, later clients wait until the readers of one have finished or exceed `TURN_MAX`.
const SNAPSHOTS_MAX: usize = 2;
/// Maximum time to read a snapshot while other clients wait for one: slower readers are disconnected.
const TURN_MAX: Nanos = Nanos::from_secs(2);

/// The progress of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The client has not sent its login.
    Login,
    /// The client waits for a snapshot.
    Waiting,
    /// The client receives a snapshot, whose messages before this position are queued or sent.
    Reading(Reading),
    /// The client is refused; the refusal is still to be sent.
    Refused,
    /// All messages are queued or sent; once all are sent, the venue waits for the client to disconnect.
    Draining,
    /// The client is disconnected.
    Disconnected,
}

/// A client's position in its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    snapshot: usize,
    place: usize,
    since: Nanos,
}

impl Stage {
    /// True when the client has read for `TURN_MAX` or longer: it is disconnected if others wait.
    #[must_use]
    pub fn has_exceeded_turn(&self, now: Nanos) -> bool {
        matches!(self, Stage::Reading(reading) if now >= reading.since + TURN_MAX)
    }
}

/// A snapshot, and the number of clients that read it.
#[derive(Default)]
struct Snapshot {
    messages: Vec<u8>,
    readers: usize,
}

/// Admits clients, identified by `id`, and gives each a market snapshot; `P` is the address of a peer.
///
/// Names and passwords are not checked, because the content is public. The number of connections, their
/// duration and their memory are bounded. The caller keeps the [`Stage`] of each client.
pub struct SnapshotTurns<P> {
    market_session: Session,
    /// Clients that have not logged in.
    pre_login: PreLogin<P>,
    /// Clients that read a snapshot or wait for one.
    served: PreLogin<P>,
    snapshots: [Snapshot; SNAPSHOTS_MAX],
    counters: Arc<RecoveryCounters>,
}

impl<P: Copy + Eq> SnapshotTurns<P> {
    /// Creates the state without clients; `pre_login` limits those before login, `served` those after it.
    #[must_use]
    pub fn new(
        market_session: Session,
        pre_login: PreLoginLimits,
        served: PreLoginLimits,
        counters: Arc<RecoveryCounters>,
    ) -> SnapshotTurns<P> {
        SnapshotTurns {
            market_session,
            pre_login: PreLogin::new(pre_login),
            served: PreLogin::new(served),
            snapshots: Default::default(),
            counters,
        }
    }

    /// Registers a new connection.
    pub fn handle_connection(&mut self, now: Nanos, id: u64, peer: P) {
        self.pre_login.admit(now, id, peer);
    }

    /// Ends a client's login phase, because its login is answered or will not arrive.
    pub fn end_login(&mut self, id: u64) {
        self.pre_login.remove(id);
    }

    /// Removes a client whose connection was closed.
    pub fn handle_close(&mut self, id: u64) {
        self.pre_login.remove(id);
        self.served.remove(id);
    }

    /// The client to disconnect before a new connection of `peer` is accepted; `None` if there is capacity.
    #[must_use]
    pub fn victim(&self, peer: P) -> Option<u64> {
        self.pre_login.victim(peer)
    }

    /// A client whose time to log in has expired, if any.
    #[must_use]
    pub fn poll_expired(&self, now: Nanos) -> Option<u64> {
        self.pre_login.expired(now)
    }

    /// Returns the client's next stage, [`Waiting`](Stage::Waiting) or [`Refused`](Stage::Refused), and the
    /// client to disconnect for it, if any: at full capacity, a client of the peer with the most clients.
    /// `is_open` is false while no snapshot can be taken.
    pub fn handle_login(
        &mut self,
        now: Nanos,
        id: u64,
        peer: P,
        login: &LoginRequest,
        is_open: bool,
    ) -> (Stage, Option<u64>) {
        let may_enter = is_for_session(login, self.market_session) && is_open;
        let evicted = self.served.fair_share_victim(peer).filter(|_| may_enter);
        if let Some(evicted) = evicted {
            self.served.remove(evicted);
        }
        let stage = if may_enter && !self.served.is_full() {
            self.counters.glimpse_logins.add(1);
            self.served.admit(now, id, peer);
            Stage::Waiting
        } else {
            self.counters.glimpse_refused.add(1);
            Stage::Refused
        };
        (stage, evicted)
    }

    /// Takes a snapshot, which the waiting clients start to read; false while all snapshots are in use.
    pub fn begin_snapshot<'a>(
        &mut self,
        now: Nanos,
        image: &MarketImage,
        waiting: impl Iterator<Item = &'a mut Stage>,
    ) -> bool {
        let Some(snapshot) = self.snapshots.iter().position(|snapshot| snapshot.readers == 0) else {
            return false;
        };
        let Snapshot { messages, readers } = &mut self.snapshots[snapshot];
        messages.clear();
        image.write_all(messages);
        for stage in waiting {
            *stage = Stage::Reading(Reading { snapshot, place: 0, since: now });
            *readers += 1;
        }
        self.counters.glimpse_snapshots.add(1);
        true
    }

    /// The client's next message; `None` after the last one.
    #[must_use]
    pub fn message(&self, reading: &Reading) -> Option<&[u8]> {
        next_message(&self.snapshots[reading.snapshot].messages, reading.place)
    }

    /// Recounts each snapshot's readers from the clients' `stages`; one without readers may be replaced.
    pub fn release<'a>(&mut self, stages: impl Iterator<Item = &'a Stage>) {
        self.snapshots.iter_mut().for_each(|snapshot| snapshot.readers = 0);
        for stage in stages {
            if let Stage::Reading(Reading { snapshot, .. }) = stage {
                self.snapshots[*snapshot].readers += 1;
            }
        }
    }
}

impl Reading {
    /// Moves the position past a message of this length.
    pub fn pass(&mut self, message_len: usize) {
        self.place += 1 + message_len;
    }
}
