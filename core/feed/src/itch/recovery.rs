//! Recovery of an ITCH channel: lost messages from the MoldUDP64 request server, stale books from snapshots.

use tickpath_nasdaq::moldudp64::{Packet, Request};
use tickpath_nasdaq::soupbintcp::{ClientEvent, ClientSession, LoginRequest};
use tickpath_types::{Nanos, Sequence};

use crate::framing::MoldUdp64;
use crate::instruments::UpdateListener;
use crate::message_books::MessageBooks;
use crate::recovery::{
    Recovering, RecoveryClient, RecoveryCounters, RecoveryInput, SocketCounters, SocketNeeds, StreamProgress,
};
use crate::snapshot_recovery::{SnapshotOutcome, SnapshotScope};

/// Time without a snapshot message after which the client disconnects. Heartbeats do not extend it.
const SILENCE_MAX: Nanos = Nanos::from_secs(2);
/// Time that the client stays in the snapshot group before it tries the GLIMPSE server again.
const GROUP_DURATION: Nanos = Nanos::from_secs(10);
/// Time from a failure to the next attempt.
const RETRY_WAIT: Nanos = Nanos::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Glimpse,
    Group,
}

enum State {
    Idle,
    /// The client waits until `until`, then reads from the source `next`.
    Waiting {
        until: Nanos,
        next: Source,
    },
    Connecting,
    Reading {
        session: Box<ClientSession>,
        deadline: Nanos,
    },
    InGroup {
        /// Sequence number of the group's next message; `None` before its first packet.
        next: Option<Sequence>,
        until: Nanos,
    },
}

type Target<'a, B, L> = Recovering<'a, B, MoldUdp64, L>;

/// Requests messages from the MoldUDP64 request server, and reads snapshots while books need one. GLIMPSE
/// provides the whole market. If it fails, a multicast group provides one instrument after another.
pub struct ItchRecovery {
    login: LoginRequest,
    has_glimpse: bool,
    has_group: bool,
    state: State,
    request: Option<Request>,
    requests: u64,
    has_recovered: bool,
}

impl ItchRecovery {
    /// Creates a client with a GLIMPSE server, a snapshot group, both, or neither. GLIMPSE needs the `login`.
    #[must_use]
    pub const fn new(login: LoginRequest, has_glimpse: bool, has_group: bool) -> ItchRecovery {
        let (state, request, requests, has_recovered) = (State::Idle, None, 0, false);
        ItchRecovery { login, has_glimpse, has_group, state, request, requests, has_recovered }
    }

    fn stop(&mut self, target: &mut Target<'_, impl MessageBooks, impl UpdateListener>) {
        if !matches!(self.state, State::Idle) {
            self.state = State::Idle;
            target.abandon_snapshot();
        }
    }

    /// Starts to read from the wanted source if it is configured, else from the other one, if any.
    fn start(&mut self, now: Nanos, wanted: Source) {
        self.state = match (wanted, self.has_glimpse, self.has_group) {
            (Source::Glimpse, true, _) | (_, true, false) => State::Connecting,
            (_, _, true) => State::InGroup { next: None, until: now + GROUP_DURATION },
            (_, false, false) => State::Idle,
        };
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
        SocketNeeds {
            connection: matches!(self.state, State::Connecting | State::Reading { .. }),
            groups: [matches!(self.state, State::InGroup { .. }), false],
        }
    }

    fn handle_join_failure(&mut self, now: Nanos) {
        self.state = State::Waiting { until: now + SILENCE_MAX, next: Source::Glimpse };
    }

    fn poll_datagram(&mut self, buffer: &mut [u8]) -> usize {
        let Some(request) = self.request.take() else { return 0 };
        self.requests += 1;
        let bytes = request.to_bytes();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    fn is_silent(&mut self, now: Nanos) -> bool {
        matches!(self.state, State::Reading { deadline, .. } if now >= deadline)
    }

    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters {
        RecoveryCounters {
            requests: self.requests,
            answers: sockets.answers,
            unsolicited: sockets.unsolicited,
            connections: sockets.connections,
            failures: sockets.failures,
            snapshot_requests: sockets.connections + sockets.joins,
            snapshots: u64::from(self.has_recovered),
            ..RecoveryCounters::default()
        }
    }
}

impl<B: MessageBooks, L: UpdateListener> RecoveryInput<Target<'_, B, L>> for ItchRecovery {
    fn begin_turn(&mut self, now: Nanos, target: &mut Target<'_, B, L>) {
        if !target.channel.needs_snapshot() {
            return self.stop(target);
        }
        match self.state {
            _ if target.channel.arbiter().session().is_none() => {}
            State::Idle => self.start(now, Source::Glimpse),
            State::Waiting { until, next } if now >= until => self.start(now, next),
            _ => {}
        }
    }

    fn end_turn(&mut self, now: Nanos, target: &mut Target<'_, B, L>) {
        let recovered = target.channel.snapshots().map_or(0, |recovery| recovery.counters().recovered);
        self.has_recovered |= recovered > 0;
        if !target.channel.needs_snapshot() {
            // The next turn may be much later, so leave the group now.
            return self.stop(target);
        }
        if let State::InGroup { until, .. } = self.state
            && now >= until
            && self.has_glimpse
        {
            target.abandon_snapshot();
            self.state = State::Waiting { until: now, next: Source::Glimpse };
        }
    }

    /// Handles a packet of the snapshot group.
    fn handle_datagram(&mut self, _: Nanos, _: usize, datagram: &[u8], target: &mut Target<'_, B, L>) {
        let (State::InGroup { next, .. }, Ok(packet)) = (&mut self.state, Packet::parse(datagram)) else {
            return;
        };
        let is_of_session = target.channel.arbiter().session() == Some(packet.session());
        let Some((recovery, books)) = target.channel.recovery().filter(|_| is_of_session) else { return };
        if next.is_some_and(|next| next != packet.sequence()) {
            recovery.abandon();
        }
        *next = Some(packet.next_sequence());
        for (_, message) in packet.messages() {
            recovery.handle_snapshot(SnapshotScope::Instrument, message, books, target.out);
        }
    }

    fn handle_connected(&mut self, now: Nanos, target: &mut Target<'_, B, L>) {
        let session = target.channel.arbiter().session().unwrap_or(self.login.session);
        let login = LoginRequest { session, sequence: Sequence(1), ..self.login };
        let session = Box::new(ClientSession::new(login, now));
        self.state = State::Reading { session, deadline: now + SILENCE_MAX };
    }

    fn poll_transmit(&mut self, now: Nanos, _: &mut Target<'_, B, L>, buffer: &mut [u8]) -> usize {
        match &mut self.state {
            State::Reading { session, .. } => session.poll_transmit(now, buffer),
            _ => 0,
        }
    }

    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut Target<'_, B, L>) -> StreamProgress {
        let market = target.channel.arbiter().session();
        let (State::Reading { session, deadline }, Some((recovery, books))) =
            (&mut self.state, target.channel.recovery())
        else {
            return StreamProgress::Failed;
        };
        let (event, used) = match session.handle_bytes(now, bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return StreamProgress::Incomplete,
            Err(_) => return StreamProgress::Failed,
        };
        match event {
            ClientEvent::LoginAccepted { session, .. } if Some(session) == market => {
                recovery.begin(SnapshotScope::Market);
            }
            ClientEvent::Message { message, .. } => {
                *deadline = now + SILENCE_MAX;
                match recovery.handle_snapshot(SnapshotScope::Market, message, books, target.out) {
                    None => {}
                    Some(SnapshotOutcome::Recovered(_)) => {
                        self.state = State::Idle;
                        return StreamProgress::Finished;
                    }
                    // After a failure the client reads the snapshot group, whose snapshot may be usable.
                    Some(SnapshotOutcome::TooFarAhead) => return StreamProgress::Failed,
                    // This snapshot is not usable: request another one after a wait.
                    Some(SnapshotOutcome::TooOld | SnapshotOutcome::Ignored) => {
                        recovery.abandon();
                        self.state = State::Waiting { until: now + RETRY_WAIT, next: Source::Glimpse };
                        return StreamProgress::Finished;
                    }
                }
            }
            ClientEvent::Heartbeat | ClientEvent::Debug(_) | ClientEvent::Unsequenced(_) => {}
            ClientEvent::LoginAccepted { .. } | ClientEvent::LoginRejected(_) | ClientEvent::EndOfSession => {
                return StreamProgress::Failed;
            }
        }
        StreamProgress::Consumed(used)
    }

    /// Handles a failure of the GLIMPSE server: the snapshot group is tried next.
    fn handle_disconnected(&mut self, now: Nanos, target: &mut Target<'_, B, L>) {
        target.abandon_snapshot();
        self.state = State::Waiting { until: now + RETRY_WAIT, next: Source::Group };
    }
}
