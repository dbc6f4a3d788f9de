//! The market data publisher: ITCH in MoldUDP64 packets on two multicast lines, and retransmissions.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, WaitSet, Waker};
use tickpath_faults::failpoint;
use tickpath_journal::DurableView;
use tickpath_lockfree::spsc;
use tickpath_nasdaq::itch50::{self, encode_market_event, market_event_len};
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, PushError, Request, Session};
use tickpath_net::{DatagramEndpoint, DatagramSender, Kernel, Network, SendStatus};
use tickpath_timing::{Function, Hop, MarketId, Tracer};
use tickpath_types::{InstrumentTable, MarketEvent, Nanos, Sequence};
use tickpath_venue::market_recovery::{
    Answer, ArchiveRequest, REQUESTS_PER_POLL, RequestFault, RetransmissionQueue,
};
use tickpath_venue::{MessageStore, PublisherCounters};
use zerocopy::IntoBytes;

use crate::market_recovery::{MarketRecoverySettings, PublisherLinks};

/// Maximum number of retransmission packets sent in one duty cycle.
const ANSWERS_PER_CYCLE: usize = 4;
/// Interval between polls of the request socket, because each poll is a system call.
const REQUEST_POLL_INTERVAL: Nanos = Nanos::from_micros(20);
/// Encoding is timed for one in this many packets.
const TIMED_EVERY: u32 = 16;
/// Number of end-of-session packets sent on each line, as any may be lost.
const END_OF_SESSION_PACKETS: usize = 3;

/// The configuration of a [`Publisher`].
pub struct PublisherConfig {
    /// Name of the market data session.
    pub session: Session,
    /// Instruments whose events are published.
    pub instruments: InstrumentTable,
    /// Maximum datagram length, in bytes.
    pub packet_bytes: usize,
    /// Time without a packet after which a heartbeat is sent.
    pub heartbeat: Nanos,
    /// Messages retained for retransmission, including those published before a restart.
    pub store: MessageStore,
    /// Durable end of the log: only events up to it may be published. `None` without a journal: no limit.
    pub durable: Option<DurableView>,
    /// True if the session continues after a restart; its end is then not announced at shutdown.
    pub is_session_kept: bool,
}

/// Publishes the matcher's events: packs waiting events into one packet, and sends it on both lines.
///
/// No event waits for a packet to fill: each has a separate packet under low load, many share one under
/// high load.
pub struct Publisher<T, N: Network = Kernel> {
    config: PublisherConfig,
    events: spsc::Consumer<MarketEvent>,
    /// Durable end of the log at the last check.
    durable: Sequence,
    lines: [N::Sender; 2],
    packet: PacketBuilder<Box<[u8]>>,
    requests: N::Endpoint,
    queue: RetransmissionQueue<SocketAddrV4, Ipv4Addr>,
    links: PublisherLinks,
    next_request_poll: Nanos,
    last_sent: Nanos,
    packets_until_timed: u32,
    counters: Arc<PublisherCounters>,
    tracer: T,
}

impl<T: Tracer, N: Network> Publisher<T, N> {
    /// Creates a publisher that sends `events` on both lines and answers the retransmission `requests`.
    pub fn new(
        config: PublisherConfig,
        events: spsc::Consumer<MarketEvent>,
        lines: [N::Sender; 2],
        requests: N::Endpoint,
        counters: Arc<PublisherCounters>,
        tracer: T,
    ) -> Publisher<T, N> {
        let buffer = vec![1; config.packet_bytes].into_boxed_slice();
        let limit = MarketRecoverySettings::default().requests;
        let durable = if config.durable.is_some() { Sequence(0) } else { Sequence(u64::MAX) };
        failpoint!(PublishBeforeSafe: durable = Sequence(u64::MAX));
        Publisher {
            packet: PacketBuilder::new(buffer, config.session, Sequence(config.store.next_sequence())),
            queue: RetransmissionQueue::new(config.session, config.packet_bytes, limit),
            durable,
            events,
            lines,
            requests,
            links: PublisherLinks::default(),
            next_request_poll: Nanos::ZERO,
            last_sent: Nanos::ZERO,
            packets_until_timed: 0,
            counters,
            tracer,
            config,
        }
    }

    /// Sets the links to market data recovery, and the rate limit on retransmission requests.
    pub(crate) fn with_recovery(mut self, settings: &MarketRecoverySettings, links: PublisherLinks) -> Self {
        let PublisherConfig { session, packet_bytes, .. } = self.config;
        self.queue = RetransmissionQueue::new(session, packet_bytes, settings.requests);
        self.links = links;
        self
    }

    /// Address that receives retransmission requests.
    pub(crate) fn requests_address(&self) -> SocketAddrV4 {
        self.requests.local_address()
    }

    /// Packs as many waiting events as fit into one packet, and sends it; returns the number of events.
    ///
    /// All events of a packet share one time stamp `T5`, and their ring slots are freed together.
    fn publish(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let Publisher { events, packet, tracer, config, durable, .. } = self;
        let PublisherConfig { store, instruments, durable: view, .. } = config;
        match events.peek() {
            None => return Ok(0),
            Some(event) if event.command > *durable => {
                *durable = view.as_ref().map_or(*durable, DurableView::durable);
                if event.command > *durable {
                    return Ok(0);
                }
            }
            Some(_) => {}
        }
        let taken = tracer.now();
        let mut count = 0;
        while let Some(event) = events.peek_at(count) {
            if event.command > *durable || !packet.has_capacity_for(market_event_len(&event.kind)) {
                break;
            }
            tracer.stamp_at(Hop::T5, MarketId::new(event.sequence), taken);
            pack(event, packet, store, instruments)?;
            count += 1;
        }
        events.drain(count, |_| {});
        self.packets_until_timed = self.packets_until_timed.wrapping_sub(1);
        if T::ENABLED && self.packets_until_timed.is_multiple_of(TIMED_EVERY) {
            let ticks = self.tracer.now().wrapping_sub(taken) / count as u64;
            self.tracer.time(Function::MarketEncode, ticks);
        }
        self.send_packet();
        self.last_sent = now;
        Ok(count)
    }

    fn send_packet(&mut self) {
        let (first, end) = (self.packet.sequence().0, self.packet.next_sequence().0);
        let datagram = self.packet.finish();
        let [line_a, line_b] = &mut self.lines;
        let writing = self.tracer.now();
        let mut unsent = u64::from(!is_sent(line_a, datagram));
        let written = self.tracer.now();
        failpoint!(LineBMissesPacket: line_b = line_a, for first);
        unsent += u64::from(!is_sent(line_b, datagram));
        for sequence in first..end {
            let id = MarketId::new(Sequence(sequence));
            self.tracer.stamp_at(Hop::T6w, id, writing);
            self.tracer.stamp_at(Hop::T6, id, written);
        }
        self.packet.start_next();
        self.counters.messages.set(end - 1);
        self.counters.packets.add(1);
        if unsent > 0 {
            self.counters.unsent.add(unsent);
        }
    }

    fn send_on_both_lines(&mut self, datagram: &[u8]) {
        for line in &mut self.lines {
            if !is_sent(line, datagram) {
                self.counters.unsent.add(1);
            }
        }
    }

    /// Receives pending retransmission requests.
    fn take_requests(&mut self, now: Nanos) {
        if now < self.next_request_poll {
            return;
        }
        self.next_request_poll = now + REQUEST_POLL_INTERVAL;
        let mut bytes = [0; 64];
        for _ in 0..REQUESTS_PER_POLL {
            let Ok(Some(received)) = self.requests.recv_from(&mut bytes) else { return };
            self.counters.requests.add(1);
            match self.queue.check(now, *received.from.ip(), &bytes[..received.len]) {
                Ok(request) => self.take_request(&request, received.from),
                Err(fault) => {
                    match fault {
                        RequestFault::Malformed => self.counters.requests_malformed.add(1),
                        RequestFault::OtherSession => self.counters.requests_foreign.add(1),
                        RequestFault::Limited => self.counters.requests_limited.add(1),
                    }
                    self.counters.requests_dropped.add(1);
                }
            }
        }
    }

    /// Queues a request: for this thread if the store has its first message, otherwise for the archive.
    fn take_request(&mut self, request: &Request, to: SocketAddrV4) {
        let store = &self.config.store;
        let first = request.sequence.0;
        let end = (first + u64::from(request.message_count)).min(store.next_sequence());
        let is_taken = if first == 0 || first >= end {
            self.counters.requests_unknown.add(1);
            true
        } else if first >= store.oldest() {
            self.queue.push(to, first, end)
        } else if let Some(archive) = &mut self.links.archive {
            self.counters.requests_archived.add(1);
            archive.requests.try_push(ArchiveRequest { to, first, end }).is_ok()
        } else {
            self.counters.requests_unknown.add(1);
            true
        };
        if !is_taken {
            self.counters.requests_dropped.add(1);
        }
    }

    /// Sends a bounded number of packets in answer to requests; returns their number.
    fn answer_requests(&mut self) -> usize {
        let mut sent = 0;
        let store = &self.config.store;
        let message = |sequence| {
            failpoint!(RetransmissionShifted: sequence = sequence + 1);
            store.message(sequence)
        };
        while sent < ANSWERS_PER_CYCLE
            && let Some(answer) = self.queue.poll_answer(message)
        {
            let Answer { to, message_count, datagram } = answer;
            match message_count {
                0 => self.counters.requests_unknown.add(1),
                count => count_answer(&self.counters, count, self.requests.send_to(datagram, to)),
            }
            sent += 1;
        }
        sent + self.send_archived()
    }

    /// Sends a packet from the archive, if any; returns the number of packets.
    fn send_archived(&mut self) -> usize {
        let Some(archive) = &mut self.links.archive else { return 0 };
        let Some(answer) = archive.answers.peek() else { return 0 };
        let status = self.requests.send_to(answer.datagram(), answer.to);
        count_answer(&self.counters, answer.message_count, status);
        archive.answers.drain(1, |_| ())
    }
}

/// Counts the messages of a sent answer, or else one unsent packet; its client repeats the request.
fn count_answer(counters: &PublisherCounters, message_count: u16, status: io::Result<SendStatus>) {
    match status {
        Ok(SendStatus::Sent) => counters.retransmitted.add(message_count.into()),
        _ => counters.unsent.add(1),
    }
}

/// Sends a datagram on a line; false if it was not sent. If neither line sends it, receivers request its
/// messages again.
fn is_sent(line: &mut impl DatagramSender, datagram: &[u8]) -> bool {
    matches!(line.send(datagram), Ok(SendStatus::Sent))
}

/// Appends the message that encodes an event to the packet and to the store.
#[inline]
fn pack(
    event: &MarketEvent,
    packet: &mut PacketBuilder<Box<[u8]>>,
    store: &mut MessageStore,
    instruments: &InstrumentTable,
) -> Result<(), AgentError> {
    if event.sequence != packet.next_sequence() {
        let next = packet.next_sequence();
        return Err(AgentError::fatal(format!("market event {} arrived in place of {next}", event.sequence)));
    }
    let instrument = instruments.get(event.instrument);
    packet
        .push_with(|buffer| {
            let len = encode_market_event(event, instrument, buffer).map_err(PackError::Encode)?;
            failpoint!(StoreForgetsMessage => return Ok(len), for event.sequence.0);
            store.append(&buffer[..len]);
            Ok::<_, PackError>(len)
        })
        .map_err(|error| {
            AgentError::fatal(format!("cannot publish market event {}: {error:?}", event.sequence))
        })
}

#[derive(Debug)]
enum PackError {
    Packet(#[expect(dead_code, reason = "shown by Debug")] PushError),
    Encode(#[expect(dead_code, reason = "shown by Debug")] itch50::EncodeError),
}

impl From<PushError> for PackError {
    fn from(error: PushError) -> PackError {
        PackError::Packet(error)
    }
}

impl<T: Tracer + Send, N: Network> Agent for Publisher<T, N> {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let published = self.publish(now)?;
        self.take_requests(now);
        let work = published + self.answer_requests();
        // Send heartbeats even while answering requests: otherwise frequent requests would silence the lines.
        if published == 0 && now.since(self.last_sent) >= self.config.heartbeat {
            let next = self.packet.sequence();
            failpoint!(HeartbeatAhead: next = next.next());
            let heartbeat = Header::heartbeat(self.config.session, next);
            self.send_on_both_lines(heartbeat.as_bytes());
            self.last_sent = now;
        }
        if let Some(copies) = &mut self.links.copies {
            copies.forward(&self.config.store, published == 0);
        }
        if work > 0 {
            self.tracer.flush();
        }
        Ok(work)
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.events.wake_by(waker);
        if let Some(durable) = &self.config.durable {
            durable.wake_by(waker);
        }
        if let Some(archive) = &self.links.archive {
            archive.answers.wake_by(waker);
        }
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        wait.descriptor(self.requests.descriptor());
        wait.until(self.last_sent + self.config.heartbeat);
        let is_copied = self.links.copies.as_ref().is_none_or(|copies| copies.is_done(&self.config.store));
        if !is_copied {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "publisher"
    }

    /// Publishes the remaining events, and answers pending requests.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        // Check for the matcher's disconnect first, so that events sent before it are still read.
        let has_ended = self.events.is_disconnected();
        let work = self.publish(now)? + self.answer_requests();
        if let Some(copies) = &mut self.links.copies {
            copies.forward(&self.config.store, true);
        }
        self.tracer.flush();
        Ok(has_ended && work == 0 && self.events.is_empty())
    }

    /// Publishes remaining events, and announces the session's end unless it continues after a restart.
    fn on_close(&mut self) {
        while self.publish(self.last_sent).is_ok_and(|count| count > 0) {}
        if let Some(copies) = &mut self.links.copies {
            copies.finish(&self.config.store);
        }
        if !self.config.is_session_kept {
            let end = Header::end_of_session(self.config.session, self.packet.sequence());
            for _ in 0..END_OF_SESSION_PACKETS {
                self.send_on_both_lines(end.as_bytes());
            }
        }
        self.tracer.flush();
    }
}
