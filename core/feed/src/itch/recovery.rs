//! Lost messages from the MoldUDP64 request server, and lost books from snapshots.

use tickpath_nasdaq::moldudp64::Request;
use tickpath_nasdaq::soupbintcp::ClientConfig;
use tickpath_types::Nanos;

use super::snapshots::Snapshots;
use super::target::ItchTarget;
use crate::recovery::{
    RecoveryClient, RecoveryCounters, RecoveryInput, SocketCounters, SocketNeeds, StreamProgress,
};

/// Recovers an ITCH channel: asks the MoldUDP64 request server for messages, and reads snapshots while books need one.
pub struct ItchRecovery {
    request: Option<Request>,
    snapshots: Snapshots,
    requests: u64,
    has_healed: bool,
}

impl ItchRecovery {
    /// The group of snapshots.
    pub const SNAPSHOT_GROUP: usize = 0;

    /// A client with a GLIMPSE server, a group of snapshots, both, or neither. `login` is for the server.
    #[must_use]
    pub const fn new(login: ClientConfig, has_glimpse: bool, has_group: bool) -> ItchRecovery {
        let snapshots = Snapshots::new(login, has_glimpse, has_group);
        ItchRecovery { request: None, snapshots, requests: 0, has_healed: false }
    }
}

impl RecoveryClient for ItchRecovery {
    type Request = Request;
    const MESSAGES_PER_TURN: usize = 64;
    const DATAGRAMS_PER_TURN: usize = 4;

    fn handle_request(&mut self, request: Request) {
        self.request = Some(request);
    }

    fn needs(&self) -> SocketNeeds {
        self.snapshots.needs()
    }

    fn handle_join_failure(&mut self, now: Nanos) {
        self.snapshots.handle_join_failure(now);
    }

    fn poll_datagram(&mut self, buffer: &mut [u8]) -> usize {
        let Some(request) = self.request.take() else { return 0 };
        self.requests += 1;
        let bytes = request.to_bytes();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    fn is_silent(&mut self, now: Nanos) -> bool {
        self.snapshots.is_silent(now)
    }

    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters {
        RecoveryCounters {
            requests: self.requests,
            answers: sockets.answers,
            strangers: sockets.unasked,
            connections: sockets.connections,
            failures: sockets.failures,
            snapshot_requests: sockets.connections + sockets.joins,
            snapshots: u64::from(self.has_healed),
            ..RecoveryCounters::default()
        }
    }
}

impl<C: ItchTarget> RecoveryInput<C> for ItchRecovery {
    fn begin_turn(&mut self, now: Nanos, target: &mut C) {
        self.snapshots.begin_turn(now, target);
    }

    fn end_turn(&mut self, now: Nanos, target: &mut C) {
        self.snapshots.end_turn(now, target);
        self.has_healed |= target.healer().is_some_and(|(healer, ..)| healer.counters().healed > 0);
    }

    fn handle_datagram(&mut self, _: Nanos, _: usize, datagram: &[u8], target: &mut C) {
        self.snapshots.handle_packet(datagram, target);
    }

    fn handle_connected(&mut self, now: Nanos, target: &mut C) {
        self.snapshots.handle_connected(now, target);
    }

    fn poll_transmit(&mut self, now: Nanos, _target: &mut C, buffer: &mut [u8]) -> usize {
        self.snapshots.poll_transmit(now, buffer)
    }

    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut C) -> StreamProgress {
        self.snapshots.handle_bytes(now, bytes, target)
    }

    fn handle_disconnected(&mut self, now: Nanos, target: &mut C) {
        self.snapshots.handle_failure(now, target);
    }
}
