//! Snapshots for books that lost messages for good: of the market by GLIMPSE, or of one instrument after another by multicast.

use tickpath_nasdaq::moldudp64::Packet;
use tickpath_nasdaq::soupbintcp::{ClientConfig, ClientEvent, ClientSession};
use tickpath_types::{Nanos, Sequence};

use super::target::ItchTarget;
use crate::heal::{SnapshotOutcome, SnapshotScope};
use crate::recovery::{SocketNeeds, StreamProgress};

/// The client leaves the server after this time without a message of a snapshot. Heartbeats recover no book.
const SILENCE_MAX: Nanos = Nanos::from_secs(2);
/// Time in the group of snapshots before the server is tried again.
const GROUP_TURN: Nanos = Nanos::from_secs(10);
/// Time from a failure to the next attempt.
const RETRY_WAIT: Nanos = Nanos::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Glimpse,
    Group,
}

enum State {
    Idle,
    /// Nothing is tried until then.
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
        /// Number of the group's next message.
        next: Option<Sequence>,
        until: Nanos,
    },
}

/// Gets snapshots while books need one: from the server, and where that fails from the group, in turns.
pub(super) struct Snapshots {
    login: ClientConfig,
    has_glimpse: bool,
    has_group: bool,
    state: State,
}

impl Snapshots {
    pub(super) const fn new(login: ClientConfig, has_glimpse: bool, has_group: bool) -> Snapshots {
        Snapshots { login, has_glimpse, has_group, state: State::Idle }
    }

    pub(super) fn begin_turn(&mut self, now: Nanos, target: &mut impl ItchTarget) {
        if !needs_snapshot(target) {
            return self.stop(target);
        }
        match self.state {
            _ if target.session().is_none() => {}
            State::Idle => self.start(now, Source::Glimpse),
            State::Waiting { until, next } if now >= until => self.start(now, next),
            _ => {}
        }
    }

    pub(super) fn end_turn(&mut self, now: Nanos, target: &mut impl ItchTarget) {
        if !needs_snapshot(target) {
            // The next turn may be long after: the group is left now.
            return self.stop(target);
        }
        if let State::InGroup { until, .. } = self.state
            && now >= until
            && self.has_glimpse
        {
            abandon(target);
            self.state = State::Waiting { until: now, next: Source::Glimpse };
        }
    }

    fn stop(&mut self, target: &mut impl ItchTarget) {
        if !matches!(self.state, State::Idle) {
            self.state = State::Idle;
            abandon(target);
        }
    }

    /// Begins with the wanted source, or with the other one if it is the only one.
    fn start(&mut self, now: Nanos, wanted: Source) {
        self.state = match (wanted, self.has_glimpse, self.has_group) {
            (Source::Glimpse, true, _) | (_, true, false) => State::Connecting,
            (_, _, true) => State::InGroup { next: None, until: now + GROUP_TURN },
            (_, false, false) => State::Idle,
        };
    }

    pub(super) const fn needs(&self) -> SocketNeeds {
        SocketNeeds {
            connection: matches!(self.state, State::Connecting | State::Reading { .. }),
            groups: [matches!(self.state, State::InGroup { .. }), false],
        }
    }

    pub(super) fn handle_join_failure(&mut self, now: Nanos) {
        self.state = State::Waiting { until: now + SILENCE_MAX, next: Source::Glimpse };
    }

    /// The server failed: the turn is the group's.
    pub(super) fn handle_failure(&mut self, now: Nanos, target: &mut impl ItchTarget) {
        abandon(target);
        self.state = State::Waiting { until: now + RETRY_WAIT, next: Source::Group };
    }

    pub(super) fn handle_connected(&mut self, now: Nanos, target: &impl ItchTarget) {
        let mut config = self.login;
        config.login.session = target.session().unwrap_or(config.login.session);
        config.login.sequence = Sequence(1);
        let session = Box::new(ClientSession::new(config, now));
        self.state = State::Reading { session, deadline: now + SILENCE_MAX };
    }

    pub(super) fn poll_transmit(&mut self, now: Nanos, buffer: &mut [u8]) -> usize {
        match &mut self.state {
            State::Reading { session, .. } => session.poll_transmit(now, buffer),
            _ => 0,
        }
    }

    pub(super) fn is_silent(&self, now: Nanos) -> bool {
        matches!(self.state, State::Reading { deadline, .. } if now >= deadline)
    }

    pub(super) fn handle_bytes(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        target: &mut impl ItchTarget,
    ) -> StreamProgress {
        let market = target.session();
        let (State::Reading { session, deadline }, Some((healer, books, out))) =
            (&mut self.state, target.healer())
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
                healer.begin(SnapshotScope::Market);
            }
            ClientEvent::Message { message, .. } => {
                *deadline = now + SILENCE_MAX;
                match healer.handle_snapshot(SnapshotScope::Market, message, books, out) {
                    None => {}
                    Some(SnapshotOutcome::Healed(_)) => {
                        self.state = State::Idle;
                        return StreamProgress::Finished;
                    }
                    // The group may have a better one.
                    Some(SnapshotOutcome::TooFarAhead) => return StreamProgress::Failed,
                    // The server took it too early. The next one will be later.
                    Some(SnapshotOutcome::TooOld | SnapshotOutcome::Ignored) => {
                        healer.abandon();
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
        StreamProgress::Taken(used)
    }

    /// Takes a packet of the group.
    pub(super) fn handle_packet(&mut self, datagram: &[u8], target: &mut impl ItchTarget) {
        let (State::InGroup { next, .. }, Ok(packet)) = (&mut self.state, Packet::parse(datagram)) else {
            return;
        };
        let is_of_session = target.session() == Some(packet.session());
        let Some((healer, books, out)) = target.healer().filter(|_| is_of_session) else { return };
        if next.is_some_and(|next| next != packet.sequence()) {
            healer.abandon();
        }
        *next = Some(packet.next_sequence());
        for (_, message) in packet.messages() {
            healer.handle_snapshot(SnapshotScope::Instrument, message, books, out);
        }
    }
}

fn needs_snapshot(target: &mut impl ItchTarget) -> bool {
    target.healer().is_some_and(|(healer, ..)| healer.needs_snapshot())
}

fn abandon(target: &mut impl ItchTarget) {
    if let Some((healer, ..)) = target.healer() {
        healer.abandon();
    }
}
