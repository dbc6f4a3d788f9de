//! SNAP: sends the state of the channel to clients on request.

use std::net::SocketAddrV4;

use tickpath_iex::snap::{
    ErrorCode, Frame, IDLE_TIMEOUT_S, REQUESTS_PER_DAY, SnapshotRequest, data_len, encode, next_frame,
};
use tickpath_iex::{Header, MESSAGE_LEN_MAX, Segment, SegmentBuilder};
use tickpath_net::{BufferSizes, Fill, NetError, SendOutcome};
use tickpath_types::{Nanos, Sequence};

use super::image::Image;
use super::stream::Stream;
use crate::clients::{Client, Clients};

/// Maximum number of clients at a time; [`Clients`] describes the handling of further clients.
const CONNECTIONS_MAX: usize = 16;
/// Bytes of a client's send queue that answers may fill; refusals may fill `REFUSALS_LEN` more.
const PENDING_LEN: usize = 64 << 10;
const REFUSALS_LEN: usize = 1 << 10;
/// Maximum length in bytes of a piece of an answer. A piece consists of whole frames, so a refusal
/// that is queued after it splits no frame.
const PIECE_LEN: usize = 16 << 10;
const _: () = assert!(data_len(MESSAGE_LEN_MAX) <= PIECE_LEN);
/// A connection is closed after this time without a request or a sent part of an answer.
const IDLE_MAX: Nanos = Nanos::from_secs(IDLE_TIMEOUT_S);

/// The answer to one client, and the number of its bytes that were queued for sending.
#[derive(Default)]
pub(super) struct Answer {
    bytes: Vec<u8>,
    sent: usize,
}

/// Serves snapshots of one channel. The tokens in requests are not checked, because the data are public;
/// connections and requests are bounded.
pub(super) struct SnapServer {
    pub(super) clients: Clients<Answer>,
    requests: u32,
    snapshots: u64,
}

impl SnapServer {
    pub(super) fn open(address: SocketAddrV4) -> Result<SnapServer, NetError> {
        let sizes = BufferSizes { receive: 1 << 10, pending: PENDING_LEN + REFUSALS_LEN };
        let clients = Clients::bind(address, sizes, CONNECTIONS_MAX, IDLE_MAX)?;
        Ok(SnapServer { clients, requests: 0, snapshots: 0 })
    }

    /// Serves all clients. `last` is the sequence number of the last message in the image; `None` if the
    /// image is incomplete.
    pub(super) fn poll(&mut self, now: Nanos, stream: &Stream, image: &Image, last: Option<u64>) -> usize {
        let work: usize =
            (0..self.clients.list.len()).map(|index| self.serve(index, now, stream, image, last)).sum();
        work + self.clients.accept(now, Answer::default)
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
        let client = &mut self.clients.list[index];
        let is_closed = !matches!(client.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty));
        // Handle at most one frame of each client per duty cycle.
        match next_frame(client.tcp.received()) {
            Ok(None) => client.is_disconnected |= is_closed,
            Ok(Some((frame, used))) => {
                work += 1;
                client.latest = now;
                let is_active = client.state.sent < client.state.bytes.len();
                let answer = match frame {
                    Frame::Request(_) if is_active => Err(ErrorCode::ALREADY_ACTIVE),
                    Frame::Request(request) => {
                        self.requests += 1;
                        client.has_requested = true;
                        check(&request, self.requests, stream, last)
                    }
                    _ => Err(ErrorCode::UNKNOWN_MESSAGE),
                };
                client.tcp.consume(used);
                match answer {
                    Ok(last) => {
                        self.snapshots += 1;
                        client.state = Answer { bytes: snapshot(stream, image, last), sent: 0 };
                    }
                    Err(code) => {
                        self.clients.refused += 1;
                        let mut buffer = [0; 8];
                        let len = encode(&Frame::Error(code), &mut buffer).unwrap_or(0);
                        client.is_disconnected |= client.tcp.queue(&buffer[..len]) != SendOutcome::Pending;
                    }
                }
            }
            Err(_) => {
                self.clients.refused += 1;
                client.is_disconnected = true;
            }
        }
        work + client.send(now)
    }

    pub(super) fn counters(&self) -> [(&'static str, u64); 3] {
        [
            ("snap_requests", self.requests.into()),
            ("snap_refused", self.clients.refused),
            ("snap_snapshots", self.snapshots),
        ]
    }
}

impl Client<Answer> {
    fn send(&mut self, now: Nanos) -> usize {
        let Client { tcp, state: Answer { bytes, sent }, .. } = self;
        let mut work = 0;
        while *sent < bytes.len() && tcp.pending_len() + PIECE_LEN <= PENDING_LEN {
            let end = *sent + whole_frames(&bytes[*sent..], PIECE_LEN);
            if tcp.queue(&bytes[*sent..end]) != SendOutcome::Pending {
                self.is_disconnected = true;
                break;
            }
            (*sent, self.latest) = (end, now);
            work += 1;
        }
        if *sent == bytes.len() && *sent > 0 {
            self.state = Answer::default();
        }
        self.flush();
        self.is_disconnected |= now.since(self.latest) > IDLE_MAX;
        work
    }
}

/// Length of the whole frames at the start of `bytes`, at most `max`.
fn whole_frames(bytes: &[u8], max: usize) -> usize {
    let mut end = 0;
    while let Ok(Some((_, len))) = next_frame(&bytes[end..])
        && end + len <= max
    {
        end += len;
    }
    end
}

/// Returns the sequence number of the snapshot's last message, or the reason for a refusal.
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

/// Builds a complete answer: a start frame, a frame for each message, an end frame.
fn snapshot(stream: &Stream, image: &Image, last: u64) -> Vec<u8> {
    let mut head = [0; Header::LEN];
    let Stream { feed, channel, session, sent } = *stream;
    let id = feed.protocol_id();
    SegmentBuilder::resuming(&mut head[..], id, channel, session, Sequence(last), 0).finish(sent);
    let segment = Segment::parse(&head).expect("a heartbeat that was just written");
    let mut answer = Vec::new();
    let mut buffer = [0; data_len(MESSAGE_LEN_MAX)];
    let mut put = |answer: &mut Vec<u8>, frame: &Frame<'_>| {
        let len = encode(frame, &mut buffer).expect("the longest message fits the buffer");
        answer.extend_from_slice(&buffer[..len]);
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

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::{Duration, Instant};

    use tickpath_iex::Feed;
    use tickpath_iex::wire::Alpha;

    use super::*;

    #[test]
    fn a_refusal_during_an_answer_splits_no_frame() {
        const SYMBOLS: u32 = 20_000;
        let mut image = Image::new(Feed::Deep10, 1);
        for number in 0..SYMBOLS {
            let mut message = *b"HT........SYMBOL..    ";
            message[12..16].copy_from_slice(&number.to_le_bytes());
            image.apply(&message);
        }
        let stream = Stream { feed: Feed::Deep10, channel: 1, session: 2, sent: Nanos::ZERO };
        let mut server = SnapServer::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(server.clients.local_address()).unwrap();
        let (token, minimum) = (Alpha::new("anybody").unwrap(), Sequence(0));
        let request = Frame::Request(SnapshotRequest { token, channel: 1, session: 2, minimum });
        let mut buffer = [0; 100];
        let len = encode(&request, &mut buffer).unwrap();
        client.write_all(&buffer[..len].repeat(2)).unwrap();
        client.set_nonblocking(true).unwrap();
        let (mut bytes, mut piece, mut at) = (Vec::new(), [0; 4_096], 0);
        let (mut data, mut refusals, mut has_ended) = (0, 0, false);
        let start = Instant::now();
        while !has_ended || refusals == 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "{data} messages, {refusals} refusals");
            server.poll(Nanos(1), &stream, &image, Some(u64::from(SYMBOLS)));
            match client.read(&mut piece) {
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            while let Some((frame, len)) = next_frame(&bytes[at..]).unwrap() {
                at += len;
                match frame {
                    Frame::Data { .. } => data += 1,
                    Frame::Error(code) => {
                        assert!(code == ErrorCode::ALREADY_ACTIVE && !has_ended);
                        refusals += 1;
                    }
                    Frame::End { .. } => has_ended = true,
                    other => assert!(matches!(other, Frame::Start { .. })),
                }
            }
        }
        assert_eq!((data, refusals, at), (SYMBOLS, 1, bytes.len()));
    }
}
