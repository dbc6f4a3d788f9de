//! The request server: accepts or refuses the requests that clients send over TCP.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddrV4;

use tickpath_net::{BufferSizes, Fill, NetError, SendOutcome};
use tickpath_nyse::{
    DeliveryFlag, HEADER_LEN, Message, Packet, PacketBuilder, RequestResponse, RequestStatus, SendTime,
    SourceId,
};
use tickpath_types::Nanos;

use super::image::Image;
use super::jobs::{JOBS_MAX, Job};
use crate::clients::{Client, Clients};
use crate::store::Store;

/// Maximum number of clients at a time; [`Clients`] describes the handling of further clients.
const CONNECTIONS_MAX: usize = 32;
/// Maximum number of sources whose requests are accepted in a run; further sources are refused.
const SOURCES_MAX: usize = 64;
/// Maximum number of messages in one request.
const RANGE_MAX: u64 = 1_000;
/// Maximum number of requests of one source, counted separately for messages and refreshes. The counts are
/// not reset, so a run counts as one day.
const REQUESTS_PER_DAY: u32 = 5_000;
/// Interval of the heartbeats to a client, and the client's time limit for its response.
const HEARTBEAT: Nanos = Nanos::from_secs(60);
const HEARTBEAT_ANSWER: Nanos = Nanos::from_secs(5);
/// Size of a client's receive buffer in bytes: requests are short.
const RECEIVE_LEN: usize = 2 << 10;
/// Maximum number of packets read from one client in one duty cycle.
const REQUESTS_PER_CYCLE: usize = 16;

/// The state of the channel against which requests are checked.
pub(super) struct Market<'a> {
    /// Product and channel number.
    pub(super) product: (u8, u8),
    pub(super) store: &'a Store,
    pub(super) image: &'a Image,
    /// True if the image is the complete state of the market.
    pub(super) can_refresh: bool,
}

/// The state of one client.
pub(super) struct ClientState {
    source: Option<SourceId>,
    next_heartbeat: Nanos,
    /// Deadline of the client's heartbeat response; `None` if none is pending.
    answer_by: Option<Nanos>,
    sequence: u32,
}

#[derive(Default)]
struct RequestCounts {
    requests: u32,
    refreshes: u32,
}

/// The parameters of a request.
struct ParsedRequest {
    source: SourceId,
    product: (u8, u8),
    range: (u32, u32),
    job: Result<Job, RequestStatus>,
    is_refresh: bool,
}

/// The request server of one channel.
pub(super) struct RequestServer {
    pub(super) clients: Clients<ClientState>,
    request_counts: HashMap<SourceId, RequestCounts>,
    requests: u64,
    accepted: u64,
    malformed: u64,
    silent: u64,
}

impl RequestServer {
    pub(super) fn open(address: SocketAddrV4) -> Result<RequestServer, NetError> {
        let sizes = BufferSizes { receive: RECEIVE_LEN, pending: 16 << 10 };
        Ok(RequestServer {
            clients: Clients::bind(address, sizes, CONNECTIONS_MAX, HEARTBEAT + HEARTBEAT_ANSWER)?,
            request_counts: HashMap::new(),
            requests: 0,
            accepted: 0,
            malformed: 0,
            silent: 0,
        })
    }

    /// Reads requests from all clients, and adds the accepted ones to `jobs`.
    pub(super) fn poll(&mut self, now: Nanos, market: &Market<'_>, jobs: &mut VecDeque<Job>) -> usize {
        let new =
            || ClientState { source: None, next_heartbeat: now + HEARTBEAT, answer_by: None, sequence: 1 };
        let mut work = 0;
        for index in 0..self.clients.list.len() {
            work += self.read(index, market, jobs);
            self.silent += u64::from(self.clients.list[index].keep_alive(now));
        }
        work + self.clients.accept(now, new)
    }

    fn read(&mut self, index: usize, market: &Market<'_>, jobs: &mut VecDeque<Job>) -> usize {
        let client = &mut self.clients.list[index];
        let is_closed = !matches!(client.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty));
        for taken in 0..REQUESTS_PER_CYCLE {
            let client = &mut self.clients.list[index];
            let received = client.tcp.received();
            let len = received.first_chunk().map(|len| usize::from(u16::from_le_bytes(*len)));
            let Some(bytes) = len.and_then(|len| received.get(..len.max(1))).map(<[u8]>::to_vec) else {
                let is_too_long = len.is_some_and(|len| len > RECEIVE_LEN);
                self.malformed += u64::from(is_too_long);
                client.is_disconnected |= is_closed || is_too_long;
                return taken;
            };
            client.tcp.consume(bytes.len());
            let Ok(packet) = Packet::parse(&bytes) else {
                self.malformed += 1;
                client.is_disconnected = true;
                return taken + 1;
            };
            for (_, message) in packet.messages() {
                self.take(index, packet.sequence(), message, market, jobs);
            }
        }
        REQUESTS_PER_CYCLE
    }

    fn take(
        &mut self,
        index: usize,
        sequence: u32,
        message: &[u8],
        market: &Market<'_>,
        jobs: &mut VecDeque<Job>,
    ) {
        let parsed = Message::parse(message);
        self.clients.list[index].has_requested |= parsed.is_ok();
        if let Ok(Message::HeartbeatResponse(response)) = &parsed {
            self.clients.list[index].state.answer_by = None;
            return self.set_source(index, response.source_id);
        }
        self.requests += 1;
        let Some(request) = parsed.ok().and_then(|message| parse_request(&message, market)) else {
            let response =
                RequestResponse::new(sequence, 0, 0, SourceId::NONE, 0, 0, RequestStatus::BAD_MESSAGE);
            return self.respond(index, &response);
        };
        let ParsedRequest { source, product, range, job, is_refresh } = request;
        let is_full = jobs.len() >= JOBS_MAX;
        let outcome = match job {
            _ if source == SourceId::NONE => Err(RequestStatus::BAD_SOURCE),
            _ if product.0 != market.product.0 => Err(RequestStatus::BAD_PRODUCT),
            _ if product.1 != market.product.1 => Err(RequestStatus::BAD_CHANNEL),
            _ if is_full => Err(too_many(is_refresh)),
            Ok(job) => self.count(source, is_refresh).map(|()| job),
            Err(status) => Err(status),
        };
        let status = match outcome {
            Ok(job) => {
                jobs.push_back(job);
                RequestStatus::ACCEPTED
            }
            Err(status) => status,
        };
        self.set_source(index, source);
        let (begin, end) = range;
        let response = RequestResponse::new(sequence, begin, end, source, product.0, product.1, status);
        self.respond(index, &response);
    }

    /// Counts a request of a source; refuses it if there are too many sources or requests.
    fn count(&mut self, source: SourceId, is_refresh: bool) -> Result<(), RequestStatus> {
        if !self.request_counts.contains_key(&source) && self.request_counts.len() >= SOURCES_MAX {
            return Err(RequestStatus::BAD_SOURCE);
        }
        let request_counts = self.request_counts.entry(source).or_default();
        let count = if is_refresh { &mut request_counts.refreshes } else { &mut request_counts.requests };
        if *count >= REQUESTS_PER_DAY {
            return Err(too_many(is_refresh));
        }
        *count += 1;
        Ok(())
    }

    /// Sets the source of a connection, and disconnects any older connection of the same source.
    /// [`SourceId::NONE`] is ignored.
    fn set_source(&mut self, index: usize, source: SourceId) {
        if source == SourceId::NONE {
            return;
        }
        for (other, client) in self.clients.list.iter_mut().enumerate() {
            client.is_disconnected |= other != index && client.state.source == Some(source);
        }
        self.clients.list[index].state.source = Some(source);
    }

    fn respond(&mut self, index: usize, response: &RequestResponse) {
        let is_accepted = response.status == RequestStatus::ACCEPTED;
        *(if is_accepted { &mut self.accepted } else { &mut self.clients.refused }) += 1;
        let client = &mut self.clients.list[index];
        let mut builder = PacketBuilder::new([0; 64], client.state.sequence);
        builder.push(response).expect("the response fits an empty packet");
        client.state.sequence = builder.next_sequence();
        let packet = builder.finish(DeliveryFlag::ORIGINAL, SendTime::default());
        client.send(packet);
    }

    pub(super) fn counters(&self) -> [(&'static str, u64); 5] {
        [
            ("requests", self.requests),
            ("requests_accepted", self.accepted),
            ("requests_refused", self.clients.refused),
            ("requests_malformed", self.malformed),
            ("clients_silent", self.silent),
        ]
    }
}

impl Client<ClientState> {
    fn send(&mut self, bytes: &[u8]) {
        let outcome = self.tcp.send(bytes);
        // Disconnect a client that does not read its answers.
        self.is_disconnected |= !matches!(outcome, Ok(SendOutcome::Sent | SendOutcome::Pending));
    }

    /// Sends a heartbeat when due. If the response is overdue, disconnects the client and returns true.
    fn keep_alive(&mut self, now: Nanos) -> bool {
        self.flush();
        if self.state.answer_by.is_some_and(|by| now > by) {
            self.is_disconnected = true;
            return true;
        }
        if now >= self.state.next_heartbeat {
            self.state.next_heartbeat = now + HEARTBEAT;
            self.state.answer_by.get_or_insert(now + HEARTBEAT_ANSWER);
            let mut builder = PacketBuilder::new([0; HEADER_LEN], self.state.sequence);
            self.send(builder.finish(DeliveryFlag::HEARTBEAT, SendTime::default()));
        }
        false
    }
}

const fn too_many(is_refresh: bool) -> RequestStatus {
    if is_refresh { RequestStatus::TOO_MANY_REFRESHES } else { RequestStatus::TOO_MANY_REQUESTS }
}

/// Returns the parameters of a request; `None` for other messages.
fn parse_request(message: &Message<'_>, market: &Market<'_>) -> Option<ParsedRequest> {
    Some(match message {
        Message::RetransmissionRequest(request) => {
            let range = (request.begin_seq_num.get(), request.end_seq_num.get());
            ParsedRequest {
                source: request.source_id,
                product: (request.product_id, request.channel_id),
                range,
                job: messages(range.0.into(), u64::from(range.1) + 1, market.store),
                is_refresh: false,
            }
        }
        Message::RefreshRequest(request) => ParsedRequest {
            source: request.source_id,
            product: (request.product_id, request.channel_id),
            range: (0, 0),
            job: symbols(request.symbol_index.get(), false, market),
            is_refresh: true,
        },
        Message::SymbolIndexMappingRequest(request) => ParsedRequest {
            source: request.source_id,
            product: (request.product_id, request.channel_id),
            range: (0, 0),
            job: symbols(request.symbol_index.get(), true, market),
            is_refresh: true,
        },
        _ => return None,
    })
}

/// Returns the job for a range of messages, or the reason for a refusal. If only a part of the range is too
/// old, the retransmission channel reports that part as unavailable.
fn messages(begin: u64, end: u64, store: &Store) -> Result<Job, RequestStatus> {
    if begin == 0 || end <= begin || end > store.next_sequence() {
        return Err(RequestStatus::BAD_RANGE);
    }
    if end - begin > RANGE_MAX {
        return Err(RequestStatus::RANGE_TOO_LARGE);
    }
    if end <= store.oldest() {
        return Err(RequestStatus::TOO_OLD);
    }
    Ok(Job::Messages { next: begin, end, is_sole: true })
}

/// Returns the job for the symbol `index`, or for all mapped symbols if `index` is 0.
fn symbols(index: u32, is_mapping: bool, market: &Market<'_>) -> Result<Job, RequestStatus> {
    let symbols: VecDeque<u32> =
        market.image.symbols().filter(|known| index == 0 || *known == index).collect();
    if symbols.is_empty() || !(market.can_refresh || is_mapping) {
        return Err(RequestStatus::BAD_RANGE);
    }
    Ok(Job::Symbols { symbols, is_first: true, is_single: index != 0, is_mapping })
}
