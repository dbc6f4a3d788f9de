//! IEX gap fill over UDP and TCP: resends stored messages on request.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_exchange::{RateLimit, RequestLimits};
use tickpath_iex::gap_fill::{Range, Request, UDP_MESSAGES_MAX};
use tickpath_net::{BufferSizes, Fill, NetError, SendOutcome, SendStatus, UdpEndpoint};
use tickpath_types::Nanos;

use super::stream::{SEGMENT_LEN, Stream, write_segment};
use crate::clients::{Client, Clients};
use crate::store::Store;

/// Maximum number of message ranges that wait to be sent over UDP; further requests are dropped and counted.
const PENDING_RANGES: usize = 256;
/// Maximum number of segments sent in one duty cycle: over UDP to all clients together, over TCP to each.
const SEGMENTS_PER_CYCLE: usize = 16;
/// Maximum number of UDP requests read in one duty cycle.
const REQUESTS_PER_CYCLE: usize = 64;
/// Rate limit on the UDP requests from each IP address.
const REQUESTS: RateLimit = RateLimit { per_second: 20_000, burst: 4_000 };
/// Maximum number of TCP clients at a time; [`Clients`] describes the handling of further clients.
const CONNECTIONS_MAX: usize = 16;
/// Time limit of a TCP client for its request, and for receiving each part of its answer.
const IDLE_MAX: Nanos = Nanos::from_secs(10);
/// Capacity of a TCP client's send queue, in bytes.
const PENDING_LEN: usize = 64 << 10;

/// True if a request is for this stream.
fn is_for_stream(stream: &Stream, request: &Request<'_>) -> bool {
    let header = request.header;
    header.protocol_id.get() == stream.feed.protocol_id()
        && header.channel.get() == stream.channel
        && header.session.get() == stream.session
}

/// Gap fill over UDP: at most 1000 messages per request; invalid requests get no answer.
pub(super) struct UdpGapFill {
    endpoint: UdpEndpoint,
    limits: RequestLimits<Ipv4Addr>,
    pending: VecDeque<(SocketAddrV4, u64, u64)>,
    buffer: Box<[u8]>,
    requests: u64,
    dropped: u64,
    unavailable: u64,
    resent: u64,
}

impl UdpGapFill {
    pub(super) fn open(address: SocketAddrV4) -> Result<UdpGapFill, NetError> {
        Ok(UdpGapFill {
            endpoint: UdpEndpoint::bind(address)?,
            limits: RequestLimits::new(REQUESTS),
            pending: VecDeque::with_capacity(PENDING_RANGES),
            buffer: vec![0; SEGMENT_LEN].into_boxed_slice(),
            requests: 0,
            dropped: 0,
            unavailable: 0,
            resent: 0,
        })
    }

    pub(super) fn local_address(&self) -> SocketAddrV4 {
        self.endpoint.local_address()
    }

    pub(super) fn poll(&mut self, now: Nanos, stream: &Stream, store: &Store) -> usize {
        let mut bytes = [0; Request::LEN_MAX + 1];
        let mut work = 0;
        while work < REQUESTS_PER_CYCLE
            && let Ok(Some(received)) = self.endpoint.recv_from(&mut bytes)
        {
            work += 1;
            self.requests += 1;
            let bytes = &bytes[..received.len];
            let request = Request::parse_prefix(bytes).ok().flatten().filter(|(_, len)| *len == bytes.len());
            let request = request.filter(|(request, _)| {
                is_for_stream(stream, request)
                    && request.message_count() <= UDP_MESSAGES_MAX
                    && self.pending.len() + request.ranges.len() < PENDING_RANGES
                    && self.limits.allow(now, *received.from.ip())
            });
            match request {
                None => self.dropped += 1,
                Some((request, _)) if request.ranges.is_empty() => {
                    // A request without ranges is a test; its answer has no messages, like a heartbeat.
                    let next = store.next_sequence();
                    self.pending.push_back((received.from, next, next));
                }
                Some((request, _)) => {
                    let ranges = request.ranges.iter();
                    self.pending.extend(
                        ranges.map(|range| {
                            (received.from, range.first.get() as u64, range.last.get() as u64 + 1)
                        }),
                    );
                }
            }
        }
        work + self.answer(stream, store)
    }

    fn answer(&mut self, stream: &Stream, store: &Store) -> usize {
        for sent in 0..SEGMENTS_PER_CYCLE {
            let Some((to, first, end)) = self.pending.pop_front() else { return sent };
            let (count, segment) = write_segment(stream, store, first, end, &mut self.buffer);
            if count == 0 && first < end {
                // Message `first` is missing from the recording or no longer stored: continue with the next
                // stored message of the range.
                self.unavailable += 1;
                let stored = (first + 1..end).find(|sequence| store.message(*sequence).is_some());
                self.pending.extend(stored.map(|stored| (to, stored, end)));
                continue;
            }
            if let Ok(SendStatus::Sent) = self.endpoint.send_to(segment, to) {
                self.resent += count;
            }
            if first + count < end.min(store.next_sequence()) {
                self.pending.push_front((to, first + count, end));
            }
        }
        SEGMENTS_PER_CYCLE
    }

    pub(super) fn counters(&self) -> [(&'static str, u64); 4] {
        [
            ("gap_fill_requests", self.requests),
            ("gap_fill_dropped", self.dropped),
            ("gap_fill_unavailable", self.unavailable),
            ("gap_fill_messages", self.resent),
        ]
    }
}

/// Message ranges that a client requested, and the progress of the answer.
#[derive(Default)]
pub(super) struct RequestedRanges {
    /// First number and exclusive end of each range still to be sent; `None` until the request is complete.
    ranges: Option<VecDeque<(u64, u64)>>,
    is_done: bool,
}

/// Gap fill over TCP: any number of messages, up to the latest one; then the connection ends.
pub(super) struct TcpGapFill {
    pub(super) clients: Clients<RequestedRanges>,
    buffer: Box<[u8]>,
    resent: u64,
}

impl TcpGapFill {
    pub(super) fn open(address: SocketAddrV4) -> Result<TcpGapFill, NetError> {
        let sizes = BufferSizes { receive: Request::LEN_MAX * 2, pending: PENDING_LEN };
        let clients = Clients::bind(address, sizes, CONNECTIONS_MAX, IDLE_MAX)?;
        Ok(TcpGapFill { clients, buffer: vec![0; SEGMENT_LEN].into_boxed_slice(), resent: 0 })
    }

    pub(super) fn poll(&mut self, now: Nanos, stream: &Stream, store: &Store) -> usize {
        let mut work = 0;
        for client in &mut self.clients.list {
            work += match client.state.ranges {
                None => client.read(now, stream, &mut self.clients.refused),
                Some(_) => {
                    let (sent, messages) = client.write(now, stream, store, &mut self.buffer);
                    self.resent += messages;
                    sent
                }
            };
            client.is_disconnected |= now.since(client.latest) > IDLE_MAX;
        }
        work + self.clients.accept(now, RequestedRanges::default)
    }

    pub(super) fn counters(&self) -> [(&'static str, u64); 3] {
        [
            ("gap_fill_tcp_connections", self.clients.accepted),
            ("gap_fill_tcp_refused", self.clients.refused),
            ("gap_fill_tcp_messages", self.resent),
        ]
    }
}

impl Client<RequestedRanges> {
    /// Reads the request; an invalid one, or one for another stream, ends the connection.
    fn read(&mut self, now: Nanos, stream: &Stream, refused: &mut u64) -> usize {
        let Ok(Fill::Bytes { .. }) = self.tcp.fill() else {
            self.is_disconnected |= self.tcp.is_closed();
            return 0;
        };
        self.latest = now;
        match Request::parse_prefix(self.tcp.received()) {
            Ok(None) => {}
            Ok(Some((request, _))) if is_for_stream(stream, &request) => {
                let run = |range: &Range| (range.first.get() as u64, range.last.get() as u64 + 1);
                self.has_requested = true;
                self.state.ranges = Some(request.ranges.iter().map(run).collect());
            }
            _ => {
                *refused += 1;
                self.is_disconnected = true;
            }
        }
        1
    }

    /// Sends the next part of the answer; returns the amount of work done and the number of messages queued.
    fn write(&mut self, now: Nanos, stream: &Stream, store: &Store, buffer: &mut [u8]) -> (usize, u64) {
        if self.state.is_done {
            self.tcp.end_sending();
            self.is_disconnected = !matches!(self.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty));
            let unread = self.tcp.received().len();
            self.tcp.consume(unread);
            return (0, 0);
        }
        let (mut work, mut messages) = (0, 0);
        let ranges = self.state.ranges.get_or_insert_default();
        while work < SEGMENTS_PER_CYCLE && self.tcp.pending_len() + SEGMENT_LEN <= PENDING_LEN {
            let Some((first, end)) = ranges.front_mut() else { break };
            *first = (*first).max(store.oldest());
            if *first >= *end {
                ranges.pop_front();
                continue;
            }
            if *first >= store.next_sequence() {
                // The client has caught up: the multicast lines deliver all further messages.
                ranges.clear();
                break;
            }
            let (count, segment) = write_segment(stream, store, *first, *end, buffer);
            // An empty segment means that the recording lacks message `first`: skip it.
            *first += count.max(1);
            if count > 0 && self.tcp.queue(segment) == SendOutcome::Closed {
                self.is_disconnected = true;
            }
            work += 1;
            messages += count;
        }
        let is_last = ranges.is_empty();
        self.flush();
        if work > 0 {
            self.latest = now;
        }
        self.state.is_done = is_last && self.tcp.pending_len() == 0;
        (work, messages)
    }
}
