//! IEX: gap fill over UDP, SNAP over TCP.

use tickpath_feed::{Channel, IexRequest, IexTp, Line, MessageBooks, SnapshotHealer, SnapshotOutcome};
use tickpath_iex::gap_fill::{Range, Request};
use tickpath_iex::snap::{self, ErrorCode, FRAME_LEN_MAX, Frame, SnapshotRequest};
use tickpath_iex::wire::Alpha;
use tickpath_net::{BufferSizes, Fill, Kernel, NetError, SendOutcome, TcpConnection};
use tickpath_types::{Nanos, Sequence};

use super::config::ChannelSection;
use super::itch::Asker;
use super::outputs::Sink;
use super::recovery::{Recovery, RecoveryCounters};

/// Messages of a snapshot applied in one duty cycle.
const FRAMES_PER_CYCLE: usize = 256;
/// After so long without a byte the server is given up.
const SILENCE_MAX: Nanos = Nanos::from_secs(5);
/// Until a snapshot that does not reach far enough yet is asked for again, and the least after the server failed or
/// refused. Each time it is twice as long, so that what a service answers in a day lasts for the day.
const NOT_YET_WAIT: Nanos = Nanos::from_millis(100);
const RETRY_WAIT: Nanos = Nanos::from_secs(1);
const WAIT_MAX: Nanos = Nanos::from_secs(30);
const BUFFERS: BufferSizes = BufferSizes { receive: 2 * FRAME_LEN_MAX, pending: 4_096 };

enum State {
    Resting { until: Nanos },
    Connecting { deadline: Nanos },
    Reading { deadline: Nanos },
}

/// The servers of an IEX channel.
pub(super) struct IexRecovery {
    asker: Option<Asker>,
    snap: Option<std::net::SocketAddrV4>,
    token: Alpha<40>,
    state: State,
    /// Until it is asked again, should it not help.
    wait: Nanos,
    connection: Option<TcpConnection<Kernel>>,
    counters: RecoveryCounters,
}

impl IexRecovery {
    pub(super) fn open(section: &ChannelSection, token: Alpha<40>) -> Result<IexRecovery, NetError> {
        Ok(IexRecovery {
            asker: section.gap_fill.map(Asker::new).transpose()?,
            snap: section.snap,
            token,
            state: State::Resting { until: Nanos::ZERO },
            wait: NOT_YET_WAIT,
            connection: None,
            counters: RecoveryCounters::default(),
        })
    }

    fn rest(&mut self, until: Nanos) {
        if let Some(connection) = &mut self.connection {
            connection.close();
        }
        self.state = State::Resting { until };
    }

    fn wait(&mut self, now: Nanos, least: Nanos) {
        let wait = self.wait.max(least);
        self.wait = Nanos(2 * wait.0).min(WAIT_MAX);
        self.rest(now + wait);
    }

    /// It is needed no more, for now.
    fn end(&mut self, now: Nanos) {
        self.wait = NOT_YET_WAIT;
        self.rest(now);
    }

    fn fail(&mut self, now: Nanos) {
        self.counters.failures += 1;
        self.wait(now, RETRY_WAIT);
    }

    fn poll_snap<B: MessageBooks>(
        &mut self,
        now: Nanos,
        channel: &mut Channel<B, IexTp>,
        out: &mut Sink<'_>,
    ) -> usize {
        let Some(server) = self.snap else { return 0 };
        let stream = channel.arbiter().session();
        let needs = channel.needs_snapshot();
        match self.state {
            State::Resting { until } => {
                if needs && stream.is_some() && now >= until {
                    self.connect(now, server);
                    return 1;
                }
                0
            }
            _ if !needs => {
                if let Some((healer, _)) = channel.healer() {
                    healer.abandon();
                }
                self.end(now);
                1
            }
            State::Connecting { deadline } => {
                let Some(stream) = stream else { return 0 };
                let floor = channel.snapshots().map_or(0, |healer| healer.floor().0);
                let request = SnapshotRequest {
                    token: self.token,
                    channel: stream.channel,
                    session: stream.session,
                    // Its last message is the one before the first that is held, or later.
                    minimum: Sequence(floor.saturating_sub(1)),
                };
                self.ask(now, deadline, &request)
            }
            State::Reading { deadline } => self.read(now, deadline, channel, out),
        }
    }

    fn connect(&mut self, now: Nanos, server: std::net::SocketAddrV4) {
        self.counters.connections += 1;
        let begun = match &mut self.connection {
            Some(connection) => connection.start_connecting(server),
            none => TcpConnection::begin_on(Kernel, server, BUFFERS).map(|begun| *none = Some(begun)),
        };
        match begun {
            Ok(()) => self.state = State::Connecting { deadline: now + SILENCE_MAX },
            Err(_) => self.fail(now),
        }
    }

    fn ask(&mut self, now: Nanos, deadline: Nanos, request: &SnapshotRequest) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        match connection.poll_connected() {
            Ok(true) => {
                let mut room = [0; 64];
                let len = snap::encode(&Frame::Request(*request), &mut room).expect("a request has 59 bytes");
                self.counters.snapshot_requests += 1;
                match connection.send(&room[..len]) {
                    Ok(SendOutcome::Sent | SendOutcome::Pending) => {
                        self.state = State::Reading { deadline: now + SILENCE_MAX };
                    }
                    _ => self.fail(now),
                }
                1
            }
            Ok(false) if now < deadline => 0,
            _ => {
                self.fail(now);
                1
            }
        }
    }

    fn read<B: MessageBooks>(
        &mut self,
        now: Nanos,
        mut deadline: Nanos,
        channel: &mut Channel<B, IexTp>,
        out: &mut Sink<'_>,
    ) -> usize {
        let (Some(connection), Some((healer, books))) = (&mut self.connection, channel.healer()) else {
            return 0;
        };
        let is_closed = matches!(connection.fill(), Ok(Fill::Closed) | Err(_));
        let mut count = 0;
        let ended = loop {
            if count == FRAMES_PER_CYCLE {
                break None;
            }
            let (frame, used) = match snap::next_frame(connection.received()) {
                Ok(Some(found)) => found,
                Ok(None) if is_closed || now >= deadline => break Some(Ended::Failed),
                Ok(None) => break None,
                Err(_) => break Some(Ended::Failed),
            };
            (count, deadline) = (count + 1, now + SILENCE_MAX);
            if let Some(ended) = take_frame(&frame, healer, books, out) {
                break Some(ended);
            }
            connection.consume(used);
        };
        self.state = State::Reading { deadline };
        match ended {
            None => {}
            Some(Ended::Whole) => {
                self.counters.snapshots += 1;
                self.end(now);
            }
            Some(Ended::NotYet) => {
                healer.abandon();
                self.wait(now, NOT_YET_WAIT);
            }
            Some(Ended::Refused) => {
                healer.abandon();
                self.counters.refusals += 1;
                self.fail(now);
            }
            Some(Ended::Failed) => {
                healer.abandon();
                self.fail(now);
            }
        }
        count
    }
}

enum Ended {
    Whole,
    NotYet,
    Refused,
    Failed,
}

fn take_frame<B: MessageBooks, R: tickpath_feed::MessageRoom>(
    frame: &Frame<'_>,
    healer: &mut SnapshotHealer<R>,
    books: &mut B,
    out: &mut Sink<'_>,
) -> Option<Ended> {
    match frame {
        Frame::Start { .. } => healer.begin_all(books),
        Frame::Data { message, .. } => {
            let id = books.instrument_of(message);
            healer.load(id, message, books);
        }
        Frame::End { sequence } => {
            return Some(match healer.end(Some(sequence.next()), books, out) {
                SnapshotOutcome::Healed(_) => Ended::Whole,
                SnapshotOutcome::TooOld | SnapshotOutcome::Ignored => Ended::NotYet,
                SnapshotOutcome::TooFarAhead => Ended::Failed,
            });
        }
        Frame::Error(ErrorCode::NOT_YET) => return Some(Ended::NotYet),
        Frame::Error(_) => return Some(Ended::Refused),
        _ => {}
    }
    None
}

impl<B: MessageBooks> Recovery<B, IexTp> for IexRecovery {
    fn request(&mut self, _now: Nanos, request: IexRequest) {
        let Some(asker) = &mut self.asker else { return };
        let mut room = [0; Request::LEN_MAX];
        let IexRequest { stream, first, last } = request;
        let range = [Range::new(first, last)];
        if let Some(bytes) =
            Request::encode(stream.protocol_id, stream.channel, stream.session, &range, &mut room)
        {
            self.counters.requests += 1;
            asker.ask(bytes);
        }
    }

    fn poll(&mut self, now: Nanos, channel: &mut Channel<B, IexTp>, out: &mut Sink<'_>) -> usize {
        let mut work = 0;
        if let Some(asker) = &mut self.asker {
            work += asker.read(&mut self.counters, |datagram| {
                channel.handle_packet(now, Line::Recovery, datagram, out);
            });
        }
        work + self.poll_snap(now, channel, out)
    }

    fn counters(&self) -> RecoveryCounters {
        self.counters
    }
}
