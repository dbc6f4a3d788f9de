//! SNAP: the state of the feed, by request.

use std::net::SocketAddrV4;

use tickpath_iex::snap::{
    ErrorCode, Frame, IDLE_TIMEOUT_S, REQUESTS_PER_DAY, SnapshotRequest, data_len, encode, next_frame,
};
use tickpath_iex::{Header, MESSAGE_LEN_MAX, Segment, SegmentBuilder};
use tickpath_net::{BufferSizes, Fill, NetError, SendOutcome, TcpAcceptor, TcpConnection};
use tickpath_types::{Nanos, Sequence};

use super::Stream;
use super::image::Image;

/// Connections at a time; further ones are closed at once.
const CONNECTIONS_MAX: usize = 16;
/// Bytes for one client that the kernel has not taken.
const PENDING_LEN: usize = 64 << 10;
/// Bytes handed on at a time.
const PIECE_LEN: usize = 16 << 10;
/// After so long without a request or a byte taken a connection is closed.
const IDLE_MAX: Nanos = Nanos::from_secs(IDLE_TIMEOUT_S);

struct Client {
    tcp: TcpConnection,
    /// The answer being sent, and how much of it was.
    answer: Vec<u8>,
    sent: usize,
    latest: Nanos,
    is_gone: bool,
}

/// Serves snapshots of one channel. Tokens are not checked: what is told is public, and connections and requests are
/// bounded.
pub(super) struct SnapServer {
    acceptor: TcpAcceptor,
    clients: Vec<Client>,
    requests: u32,
    snapshots: u64,
    refused: u64,
}

impl SnapServer {
    pub(super) fn open(address: SocketAddrV4) -> Result<SnapServer, NetError> {
        let sizes = BufferSizes { receive: 1 << 10, pending: PENDING_LEN };
        Ok(SnapServer {
            acceptor: TcpAcceptor::bind(address, sizes)?,
            clients: Vec::with_capacity(CONNECTIONS_MAX),
            requests: 0,
            snapshots: 0,
            refused: 0,
        })
    }

    pub(super) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// `last` is the number of the last message in the image; `None` when it is not whole.
    pub(super) fn poll(&mut self, now: Nanos, stream: &Stream, image: &Image, last: Option<u64>) -> usize {
        let mut work = 0;
        while let Ok(Some(tcp)) = self.acceptor.accept() {
            work += 1;
            if self.clients.len() == CONNECTIONS_MAX {
                self.refused += 1;
                continue;
            }
            self.clients.push(Client { tcp, answer: Vec::new(), sent: 0, latest: now, is_gone: false });
        }
        for index in 0..self.clients.len() {
            work += self.serve(index, now, stream, image, last);
        }
        self.clients.retain(|client| !client.is_gone);
        work
    }

    fn serve(
        &mut self,
        index: usize,
        now: Nanos,
        stream: &Stream,
        image: &Image,
        last: Option<u64>,
    ) -> usize {
        let mut work = 0;
        let client = &mut self.clients[index];
        let is_closed = !matches!(client.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty));
        // One frame in a duty cycle.
        match next_frame(client.tcp.received()) {
            Ok(None) => client.is_gone |= is_closed,
            Ok(Some((frame, used))) => {
                work += 1;
                client.latest = now;
                let is_active = client.sent < client.answer.len();
                let answer = match frame {
                    Frame::Request(_) if is_active => Err(ErrorCode::ALREADY_ACTIVE),
                    Frame::Request(request) => {
                        self.requests += 1;
                        check(&request, self.requests, stream, last)
                    }
                    _ => Err(ErrorCode::UNKNOWN_MESSAGE),
                };
                client.tcp.consume(used);
                match answer {
                    Ok(last) => {
                        self.snapshots += 1;
                        (client.sent, client.answer) = (0, snapshot(stream, image, last));
                    }
                    Err(code) => {
                        self.refused += 1;
                        let mut room = [0; 8];
                        let len = encode(&Frame::Error(code), &mut room).unwrap_or(0);
                        client.is_gone |= client.tcp.queue(&room[..len]) != SendOutcome::Pending;
                    }
                }
            }
            Err(_) => {
                self.refused += 1;
                client.is_gone = true;
            }
        }
        work + client.send(now)
    }

    pub(super) fn close(&mut self) {
        self.clients.clear();
    }

    pub(super) fn counters(&self) -> [(&'static str, u64); 3] {
        [
            ("snap_requests", self.requests.into()),
            ("snap_refused", self.refused),
            ("snap_snapshots", self.snapshots),
        ]
    }
}

impl Client {
    fn send(&mut self, now: Nanos) -> usize {
        let mut work = 0;
        while self.sent < self.answer.len() && self.tcp.pending_len() + PIECE_LEN <= PENDING_LEN {
            let end = self.answer.len().min(self.sent + PIECE_LEN);
            if self.tcp.queue(&self.answer[self.sent..end]) != SendOutcome::Pending {
                self.is_gone = true;
                break;
            }
            self.sent = end;
            self.latest = now;
            work += 1;
        }
        if self.sent == self.answer.len() && !self.answer.is_empty() {
            (self.answer, self.sent) = (Vec::new(), 0);
        }
        let flushed = self.tcp.flush_pending();
        self.is_gone |= matches!(flushed, Err(_) | Ok(SendOutcome::Closed));
        self.is_gone |= now.since(self.latest) > IDLE_MAX;
        work
    }
}

/// The number that the snapshot will have, or why there is none.
fn check(
    request: &SnapshotRequest,
    requests: u32,
    stream: &Stream,
    last: Option<u64>,
) -> Result<u64, ErrorCode> {
    if request.channel != stream.channel {
        return Err(ErrorCode::CHANNEL);
    }
    if request.session != stream.session {
        return Err(ErrorCode::SESSION);
    }
    if requests > REQUESTS_PER_DAY {
        return Err(ErrorCode::QUOTA);
    }
    last.filter(|last| *last >= request.minimum.0).ok_or(ErrorCode::NOT_YET)
}

/// All of an answer: its start, a frame for each message, its end.
fn snapshot(stream: &Stream, image: &Image, last: u64) -> Vec<u8> {
    let mut head = [0; Header::LEN];
    let Stream { feed, channel, session, sent } = *stream;
    let id = feed.protocol_id();
    SegmentBuilder::resuming(&mut head[..], id, channel, session, Sequence(last), 0).finish(sent);
    let segment = Segment::parse(&head).expect("a heartbeat that was just written");
    let mut answer = Vec::new();
    let mut room = [0; data_len(MESSAGE_LEN_MAX)];
    let mut put = |answer: &mut Vec<u8>, frame: &Frame<'_>| {
        let len = encode(frame, &mut room).expect("the longest message has room");
        answer.extend_from_slice(&room[..len]);
    };
    put(&mut answer, &Frame::Start { total_len: 0 });
    image.for_each(|message| put(&mut answer, &Frame::Data { header: segment.header(), message }));
    put(&mut answer, &Frame::End { sequence: Sequence(last) });
    let total_len = answer.len() as u64;
    let mut start = Vec::new();
    put(&mut start, &Frame::Start { total_len });
    answer[..start.len()].copy_from_slice(&start);
    answer
}
