//! Recovery of lost messages by gap fill over UDP, and of stale books by SNAP snapshots over TCP.

use tickpath_iex::gap_fill::{Range, Request};
use tickpath_iex::snap::{self, ErrorCode, Frame, SnapshotRequest};
use tickpath_iex::wire::Alpha;
use tickpath_types::{Nanos, Sequence};

use crate::framing::{IexRequest, IexTp};
use crate::instruments::UpdateListener;
use crate::message_books::MessageBooks;
use crate::recovery::{
    Recovering, RecoveryClient, RecoveryCounters, RecoveryInput, SocketCounters, SocketNeeds, StreamProgress,
};
use crate::snapshot_recovery::SnapshotOutcome;

/// Time without a frame after which the client disconnects.
const SILENCE_MAX: Nanos = Nanos::from_secs(5);

type Target<'a, B, L> = Recovering<'a, B, IexTp, L>;

/// Recovers an IEX channel: requests messages from gap fill, and a SNAP snapshot while books need one.
pub struct IexRecovery {
    token: Alpha<40>,
    request: Option<IexRequest>,
    needs_snapshot: bool,
    /// True if the connection is established, and the snapshot request is not yet sent.
    is_request_due: bool,
    /// The time at which the client disconnects if the server stays silent.
    deadline: Nanos,
    counters: RecoveryCounters,
}

impl IexRecovery {
    /// Creates a client that sends this token in its SNAP requests.
    #[must_use]
    pub fn new(token: Alpha<40>) -> IexRecovery {
        IexRecovery {
            token,
            request: None,
            needs_snapshot: false,
            is_request_due: false,
            deadline: Nanos::MAX,
            counters: RecoveryCounters::default(),
        }
    }
}

impl RecoveryClient for IexRecovery {
    type Request = IexRequest;
    const MESSAGES_PER_TURN: usize = 256;

    fn handle_request(&mut self, request: IexRequest) {
        self.request = Some(request);
    }

    fn needs(&self) -> SocketNeeds {
        SocketNeeds { connection: self.needs_snapshot, ..SocketNeeds::default() }
    }

    fn poll_datagram(&mut self, buffer: &mut [u8]) -> usize {
        let Some(IexRequest { stream, first, last }) = self.request.take() else { return 0 };
        let mut request = [0; Request::LEN_MAX];
        let range = [Range::new(first, last)];
        let bytes = Request::encode(stream.protocol_id, stream.channel, stream.session, &range, &mut request);
        let Some(bytes) = bytes else { return 0 };
        self.counters.requests += 1;
        buffer[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }

    fn is_silent(&mut self, now: Nanos) -> bool {
        now >= self.deadline
    }

    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters {
        let SocketCounters { answers, unsolicited, connections, failures, .. } = *sockets;
        RecoveryCounters { answers, unsolicited, connections, failures, ..self.counters }
    }
}

impl<B: MessageBooks, L: UpdateListener> RecoveryInput<Target<'_, B, L>> for IexRecovery {
    fn begin_turn(&mut self, _: Nanos, target: &mut Target<'_, B, L>) {
        let is_possible = target.channel.needs_snapshot() && target.channel.arbiter().session().is_some();
        if self.needs_snapshot && !is_possible {
            target.abandon_snapshot();
        }
        self.needs_snapshot = is_possible;
    }

    fn handle_connected(&mut self, now: Nanos, _: &mut Target<'_, B, L>) {
        (self.is_request_due, self.deadline) = (true, now + SILENCE_MAX);
    }

    fn poll_transmit(&mut self, _: Nanos, target: &mut Target<'_, B, L>, buffer: &mut [u8]) -> usize {
        let stream = target.channel.arbiter().session();
        let Some(stream) = stream.filter(|_| std::mem::take(&mut self.is_request_due)) else { return 0 };
        let floor = target.channel.snapshots().map_or(0, |recovery| recovery.floor().0);
        self.counters.snapshot_requests += 1;
        let request = SnapshotRequest {
            token: self.token,
            channel: stream.channel,
            session: stream.session,
            // The snapshot must include every message before the first held one.
            minimum: Sequence(floor.saturating_sub(1)),
        };
        snap::encode(&Frame::Request(request), buffer).expect("the buffer has room for any message")
    }

    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut Target<'_, B, L>) -> StreamProgress {
        let (frame, used) = match snap::next_frame(bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return StreamProgress::Incomplete,
            Err(_) => return StreamProgress::Failed,
        };
        self.deadline = now + SILENCE_MAX;
        let Some((recovery, books)) = target.channel.recovery() else { return StreamProgress::Failed };
        match frame {
            Frame::Start { .. } => recovery.begin_all(books),
            Frame::Data { message, .. } => {
                let id = books.instrument_of(message);
                recovery.load(id, message, books);
            }
            Frame::End { sequence } => {
                return match recovery.end(Some(sequence.next()), books, target.out) {
                    SnapshotOutcome::Recovered(_) => {
                        self.counters.snapshots += 1;
                        StreamProgress::Finished
                    }
                    SnapshotOutcome::TooOld | SnapshotOutcome::Ignored => StreamProgress::NotYet,
                    SnapshotOutcome::TooFarAhead => StreamProgress::Failed,
                };
            }
            Frame::Error(ErrorCode::NOT_YET) => {
                recovery.abandon();
                return StreamProgress::NotYet;
            }
            Frame::Error(_) => {
                self.counters.refusals += 1;
                return StreamProgress::Failed;
            }
            _ => {}
        }
        StreamProgress::Consumed(used)
    }

    fn handle_disconnected(&mut self, _: Nanos, target: &mut Target<'_, B, L>) {
        self.is_request_due = false;
        target.abandon_snapshot();
    }
}
