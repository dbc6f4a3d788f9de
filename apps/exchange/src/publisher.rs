//! The market data publisher: ITCH in MoldUDP64 packets on two multicast lines, and retransmissions.

mod line_b;
mod run;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, WaitSet, Waker};
use tickpath_faults::failpoint;
use tickpath_journal::DurableView;
use tickpath_lockfree::spsc;
use tickpath_nasdaq::itch50::{self, encode_market_event, market_event_len};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Header, PacketBuilder, PushError, Request, Session};
use tickpath_net::{DatagramEndpoint, DatagramSender, Kernel, Network, SendStatus};
use tickpath_timing::{Function, Hop, Tracer};
use tickpath_types::{InstrumentTable, MarketEvent, Nanos, Sequence};
use tickpath_venue::market_recovery::{
    Answer, ArchiveRequest, REQUESTS_PER_POLL, RequestFault, RetransmissionQueue,
};
use tickpath_venue::{MessageStore, PublisherCounters};
use zerocopy::IntoBytes;

use self::line_b::LineB;
pub use self::line_b::LineBAgent;
use self::run::{Datagrams, PACKETS_PER_RUN_MAX, Run, unsent_count};
use crate::market_recovery::{MarketRecoverySettings, PublisherLinks};

/// Maximum number of retransmission packets sent in one duty cycle.
const ANSWERS_PER_CYCLE: usize = 4;
/// Interval between polls of the request socket, because each poll is a system call.
const REQUEST_POLL_INTERVAL: Nanos = Nanos::from_micros(20);
/// Encoding is timed for one in this many runs of packets.
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
    /// True to send several packets by one call, if the kernel segments them (UDP GSO).
    pub segmented_sends: bool,
    /// Time without a packet after which a heartbeat is sent.
    pub heartbeat: Nanos,
    /// Messages retained for retransmission, including those published before a restart.
    pub store: MessageStore,
    /// Durable end of the log: only events up to it may be published. `None` without a journal: no limit.
    pub durable: Option<DurableView>,
    /// True if the session continues after a restart; its end is then not announced at shutdown.
    pub is_session_kept: bool,
}

/// Publishes the matcher's events: packs waiting events into a run of packets, and sends it on both lines.
///
/// No event waits for a packet to fill: each has a separate packet under low load, many share one under
/// high load. If more events wait than one packet holds, up to four packets are sent together: each of the
/// same length, the last one possibly shorter. Receivers get them as separate datagrams.
pub struct Publisher<T, N: Network = Kernel> {
    config: PublisherConfig,
    events: spsc::Consumer<MarketEvent>,
    /// Durable end of the log at the last check.
    durable: Sequence,
    line_a: N::Sender,
    line_b: LineB<N::Sender>,
    run: Run,
    /// Sequence number of the next message to publish.
    next: Sequence,
    /// True once the session's end was announced, if it is announced at all.
    has_ended: bool,
    requests: N::Endpoint,
    queue: RetransmissionQueue<SocketAddrV4, Ipv4Addr>,
    links: PublisherLinks,
    next_request_poll: Nanos,
    last_sent: Nanos,
    runs_until_timed: u32,
    counters: Arc<PublisherCounters>,
    tracer: T,
}

impl<T: Tracer, N: Network> Publisher<T, N> {
    /// Creates a publisher that sends `events` on both lines and answers the retransmission `requests`.
    pub fn new(
        config: PublisherConfig,
        events: spsc::Consumer<MarketEvent>,
        [line_a, line_b]: [N::Sender; 2],
        requests: N::Endpoint,
        counters: Arc<PublisherCounters>,
        tracer: T,
    ) -> Publisher<T, N> {
        let packets_max = if config.segmented_sends { PACKETS_PER_RUN_MAX } else { 1 };
        let limit = MarketRecoverySettings::default().requests;
        let durable = if config.durable.is_some() { Sequence(0) } else { Sequence(u64::MAX) };
        failpoint!(PublishBeforeSafe: durable = Sequence(u64::MAX));
        Publisher {
            run: Run::new(config.packet_bytes, packets_max),
            next: Sequence(config.store.next_sequence()),
            has_ended: false,
            queue: RetransmissionQueue::new(config.session, config.packet_bytes, limit),
            durable,
            events,
            line_a,
            line_b: LineB::Sender(line_b),
            requests,
            links: PublisherLinks::default(),
            next_request_poll: Nanos::ZERO,
            last_sent: Nanos::ZERO,
            runs_until_timed: 0,
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

    /// Moves line B to a separate agent, if there is none yet, and returns the agent. Packets must not be
    /// longer than [`DATAGRAM_LEN_MAX`].
    pub(crate) fn with_line_b_agent(self) -> (Self, Option<LineBAgent<N::Sender>>) {
        assert!(self.config.packet_bytes <= DATAGRAM_LEN_MAX, "the configuration limits the packet length");
        let (line_b, agent) = self.line_b.move_to_agent(Arc::clone(&self.counters));
        (Publisher { line_b, ..self }, agent)
    }

    /// True if an event waits that may be published, because its command is durable.
    #[inline]
    fn has_durable_event(&mut self) -> bool {
        let Publisher { events, durable, config, .. } = self;
        let Some(event) = events.peek() else { return false };
        if event.command > *durable {
            *durable = config.durable.as_ref().map_or(*durable, DurableView::durable);
        }
        event.command <= *durable
    }

    /// Packs as many waiting events as fit into one run of packets, and sends it; returns the number of events.
    ///
    /// All events of a packet share one time stamp `T5`. The ring slots of all events of the run are freed
    /// together.
    fn publish(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if !self.has_durable_event() || !self.line_b.has_capacity() {
            return Ok(0);
        }
        let Publisher { events, run, tracer, config, durable, next, .. } = self;
        let PublisherConfig { session, store, instruments, .. } = config;
        let first = *next;
        let started = tracer.now();
        let (mut count, mut taken) = (0, started);
        run.clear();
        while let Some(buffer) = run.next_packet() {
            let mut packet = PacketBuilder::new(buffer, *session, *next);
            let mut is_full = false;
            while let Some(event) = events.peek_at(count).filter(|event| event.command <= *durable) {
                if !packet.has_capacity_for(market_event_len(&event.kind)) {
                    is_full = true;
                    break;
                }
                pack(event, &mut packet, store, instruments)?;
                count += 1;
            }
            if packet.is_empty() {
                break;
            }
            let end = packet.next_sequence();
            let len = packet.finish().len();
            tracer.stamp_range_at(Hop::T5, *next, end, taken);
            run.add(len);
            *next = end;
            // Events that arrived since do not delay this run.
            if !is_full {
                break;
            }
            taken = tracer.now();
        }
        events.drain(count, |_| {});
        self.runs_until_timed = self.runs_until_timed.wrapping_sub(1);
        if T::ENABLED && self.runs_until_timed.is_multiple_of(TIMED_EVERY) {
            let ticks = self.tracer.now().wrapping_sub(started) / count as u64;
            self.tracer.time(Function::MarketEncode, ticks);
        }
        self.send_run(first);
        self.last_sent = now;
        Ok(count)
    }

    /// Sends the run, whose first message has sequence number `first`, on both lines.
    fn send_run(&mut self, first: Sequence) {
        let Publisher { run, line_a, line_b, tracer, counters, next, .. } = self;
        let datagrams = run.datagrams();
        let writing = tracer.now();
        let mut unsent = unsent_count(line_a, datagrams);
        let written = tracer.now();
        let is_on_line_b = true;
        failpoint!(LineBMissesPacket: is_on_line_b = false, for first.0);
        if is_on_line_b {
            unsent += line_b.send(datagrams);
        }
        tracer.stamp_range_at(Hop::T6w, first, *next, writing);
        tracer.stamp_range_at(Hop::T6, first, *next, written);
        counters.messages.set(next.0 - 1);
        counters.packets.add(run.packet_count() as u64);
        if unsent > 0 {
            counters.unsent.add(unsent);
        }
        if run.packet_count() > 1 && !line_a.can_segment() {
            self.note_unsegmented();
        }
    }

    /// Sends each packet by a separate call from now on, because the kernel refused to segment a run.
    #[cold]
    fn note_unsegmented(&mut self) {
        self.run.limit_to_one_packet();
        self.counters.is_unsegmented.set(1);
    }

    fn send_on_both_lines(&mut self, datagram: &[u8]) {
        let datagram = Datagrams::one(datagram);
        let unsent = unsent_count(&mut self.line_a, datagram) + self.line_b.send(datagram);
        if unsent > 0 {
            self.counters.unsent.add(unsent);
        }
    }

    /// Announces the session's end, unless it continues after a restart, and ends line B.
    fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if !self.config.is_session_kept {
            let end = Header::end_of_session(self.config.session, self.next);
            for _ in 0..END_OF_SESSION_PACKETS {
                self.send_on_both_lines(end.as_bytes());
            }
        }
        self.line_b.end();
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

/// Appends the message that encodes an event to the packet and to the store.
#[inline]
fn pack(
    event: &MarketEvent,
    packet: &mut PacketBuilder<&mut [u8]>,
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
            store.append_start_of(buffer, len);
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
            let next = self.next;
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
        // The agent of line B does not wake this thread when it has sent a run.
        if !is_copied || !self.line_b.has_capacity() {
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
        let is_done = has_ended && work == 0 && self.events.is_empty();
        if is_done {
            self.end();
        }
        Ok(is_done)
    }

    /// Publishes remaining events, and announces the session's end unless it continues after a restart.
    fn on_close(&mut self) {
        while self.publish(self.last_sent).is_ok_and(|count| count > 0) {}
        if let Some(copies) = &mut self.links.copies {
            copies.finish(&self.config.store);
        }
        self.end();
        self.tracer.flush();
    }
}
