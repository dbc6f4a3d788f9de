//! The feed handler as an agent.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, OnceLock};

use tickpath_agent::{Agent, AgentError, Counter, KernelTime, TscClock, WaitSet};
use tickpath_book::{BookLimits, BooksById, DirectBooks};
use tickpath_feed::{
    Arbiter, ArbiterConfig, ArbiterCounters, BookBuilder, BuilderCounters, Line, MessageBooks,
    MessageListener, OtherSymbol, SnapshotHealer, UpdateListener,
};
use tickpath_lockfree::broadcast;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_net::{DatagramEndpoint, Kernel, NetError, Network};
use tickpath_sim::LossModel;
use tickpath_timing::{Function, Hop, MarketId, Tracer};
use tickpath_types::{BookHealth, InstrumentId, MarketUpdate, Nanos, Sequence, Symbol, UpdateKind};

use crate::deferred::{DEFERRED_MAX, Deferred};
use crate::lines::{LinePacket, LineReader, Lines, ReadBy};
use crate::senders::Senders;
use crate::snapshots::{Healing, SnapshotClient, SnapshotCounters, SnapshotSources};
use crate::understudy::Understudy;

/// Longest datagram that is taken: the longest that there is.
const DATAGRAM_MAX: usize = 65_536;
/// One message in so many has its decoding and its book's change timed.
const TIMED_EVERY: u64 = 16;
/// How often the recovery socket is looked at while no gap is open.
const RECOVERY_POLL_INTERVAL: Nanos = Nanos::from_millis(1);

/// How often the counts that others read are brought up to date.
const COUNTERS_INTERVAL: Nanos = Nanos::from_millis(1);

/// Books that a feed handler builds.
pub type FeedBooks = BookBuilder<DirectBooks>;

/// What a [`FeedHandler`] has done, readable from outside while it runs.
#[derive(Default)]
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub struct FeedCounters {
    /// Packets taken from lines A, B and the retransmission server.
    pub packets: [Counter; 3],
    /// Packets dropped on purpose by the loss model, on lines A and B.
    pub injected_losses: [Counter; 2],
    /// Messages that the lines' own numbering skipped, on lines A and B.
    pub missed_messages: [Counter; 2],
    /// Messages of which each line brought the first copy.
    pub first_messages: [Counter; 3],
    /// Messages delivered in sequence; also the sequence of the last one.
    pub messages: Counter,
    /// Gaps seen.
    pub gaps_opened: Counter,
    /// Gaps that the other line closed.
    pub gaps_healed_by_line: Counter,
    /// Gaps that retransmission closed.
    pub gaps_healed_by_retransmission: Counter,
    /// Messages given up.
    pub messages_lost: Counter,
    /// Packets dropped because their number lay too far ahead, on lines A and B.
    pub far_ahead: [Counter; 2],
    /// Packets of another session, on lines A and B.
    pub wrong_session: [Counter; 2],
    /// Times that the lines went over to another session: the venue was started anew, and the books are stale
    /// until this program is too.
    pub foreign_sessions: Counter,
    /// Packets that the kernel dropped because the socket's buffer was full.
    pub kernel_drops: Counter,
    /// Packets that were cut short, fragmented or damaged on their way.
    pub unreadable: Counter,
    /// Datagrams to the recovery socket that came from somebody else than the retransmission server, and were
    /// dropped.
    pub foreign_answers: Counter,
    /// Packets on the lines from addresses that may not send, dropped.
    pub unauthorised: Counter,
    /// 1 while a gap is open.
    pub open_gap: Counter,
    /// Instruments that the venue names otherwise than [is expected](FeedSettings::symbols): their books are suspect.
    pub other_symbols: Counter,
    /// One of these, once there is one.
    pub other_symbol: OnceLock<OtherSymbol>,
    /// What came of snapshots.
    pub snapshots: Arc<SnapshotCounters>,
}

/// What a feed handler leaves behind when it closes.
pub struct FinalFeed {
    /// The books and what is known of them.
    pub books: FeedBooks,
    /// What happened on the lines.
    pub arbiter: ArbiterCounters,
    /// What happened to the messages.
    pub builder: BuilderCounters,
    /// Sequence of the next message.
    pub next_sequence: Sequence,
}

/// What can be read of a feed handler while it runs, and afterwards.
#[derive(Clone, Default)]
pub struct FeedView {
    /// How it reads its packets, once it is open.
    pub read_by: Arc<OnceLock<ReadBy>>,
    /// Its counts.
    pub counters: Arc<FeedCounters>,
    /// Its books, once it has closed.
    pub result: Arc<Mutex<Option<FinalFeed>>>,
}

/// What a [`FeedHandler`] needs to know.
#[derive(Clone, Debug)]
pub struct FeedSettings {
    /// Number of the feed handler in stamps, from 0.
    pub feed: u8,
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Interface that the lines come in by.
    pub interface: Ipv4Addr,
    /// Addresses that may send on the lines.
    pub senders: Senders,
    /// How packets are read off it.
    pub reader: LineReader,
    /// Instruments with ids from 1 to this.
    pub max_instrument: InstrumentId,
    /// Symbols that are expected of the instruments from 1 on; of those beyond none is.
    pub symbols: Vec<Symbol>,
    /// Open orders in all books at most.
    pub max_orders: u32,
    /// Bounds and waiting times of the line arbitration.
    pub arbiter: ArbiterConfig,
    /// Where lost messages are asked for; never when `None`.
    pub retransmission: Option<SocketAddrV4>,
    /// Where books that lost messages for good are healed from.
    pub snapshots: SnapshotSources,
    /// Packets to drop on purpose.
    pub loss: Option<LossModel>,
}

/// Reads two multicast lines and the retransmission server's answers, builds the books, and sends every
/// change to the engines.
///
/// A duty cycle takes one packet, so that what it causes leaves before the next packet - or its copy on the
/// other line - is read. Of a packet with few messages it takes one message, so that what that causes leaves
/// before the next message is looked at.
pub struct FeedHandler<T, N: Network = Kernel> {
    lines: Lines<N>,
    senders: Senders,
    understudy: Understudy<T>,
    recovery: N::Endpoint,
    retransmission: Option<SocketAddrV4>,
    loss: Option<LossModel>,
    arbiter: Arbiter,
    sink: Sink<T, N>,
    next_recovery_poll: Nanos,
    next_counters: Nanos,
    buffer: Box<[u8; DATAGRAM_MAX]>,
    counters: Arc<FeedCounters>,
    result: Arc<Mutex<Option<FinalFeed>>>,
}

/// Takes the arbiter's messages to the books and the books' updates to the ring.
pub(crate) struct Sink<T, N: Network = Kernel> {
    pub(crate) builder: Option<FeedBooks>,
    pub(crate) updates: Updates<T>,
    deferred: Deferred,
    /// Whether messages are to wait now that one was delivered.
    turn: Turn,
    /// When the packet at hand was read.
    read_at: u64,
    /// When the kernel received it, by its clock.
    kernel_ns: Option<u64>,
    /// The same on the scale of `read_at`, once it is asked for; 0 when it is not known.
    received_at: Option<u64>,
    kernel_time: KernelTime,
    /// The session that the lines have gone over to, until it is reported.
    foreign: Option<Session>,
    /// Heals the books, where there are snapshots.
    snapshots: Option<Healing<N>>,
    /// Messages go by way of the snapshots.
    is_healing: bool,
}

/// How the messages of a packet are delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// All at once.
    All,
    /// The first now, each other in a duty cycle of its own.
    First,
    /// The first was delivered.
    Later,
}

pub(crate) struct Updates<T> {
    pub(crate) sender: broadcast::Sender<MarketUpdate>,
    pub(crate) tracer: T,
    pub(crate) feed: u8,
}

impl<T: Tracer> FeedHandler<T> {
    /// Joins both lines. Updates leave by `sender`; what can be read of the feed handler is in `view`.
    ///
    /// # Errors
    /// [`NetError`] when a line cannot be joined.
    pub fn open(
        settings: &FeedSettings,
        sender: broadcast::Sender<MarketUpdate>,
        clock: TscClock,
        view: &FeedView,
        tracer: T,
    ) -> Result<FeedHandler<T>, NetError> {
        FeedHandler::open_on(&Kernel, settings, sender, clock, view, tracer)
    }
}

impl<T: Tracer, N: Network> FeedHandler<T, N> {
    /// The same on any network.
    ///
    /// # Errors
    /// As [`FeedHandler::open`].
    pub fn open_on(
        network: &N,
        settings: &FeedSettings,
        sender: broadcast::Sender<MarketUpdate>,
        clock: TscClock,
        view: &FeedView,
        tracer: T,
    ) -> Result<FeedHandler<T, N>, NetError> {
        let (lines, read_by) =
            Lines::join(network, [settings.line_a, settings.line_b], settings.interface, settings.reader)?;
        view.read_by.get_or_init(|| read_by);
        let any_port = settings.retransmission.map_or(Ipv4Addr::LOCALHOST, |server| {
            if server.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }
        });
        let books = DirectBooks::new(BookLimits::new(settings.max_instrument, settings.max_orders));
        let builder = BookBuilder::new(books).expecting(&settings.symbols);
        Ok(FeedHandler {
            lines,
            senders: settings.senders.clone(),
            recovery: network.endpoint(SocketAddrV4::new(any_port, 0))?,
            retransmission: settings.retransmission,
            loss: settings.loss.clone(),
            arbiter: Arbiter::new(arbiter_config(settings)),
            understudy: Understudy::new(tracer.understudy(), clock),
            sink: Sink {
                snapshots: snapshot_client(network, settings, &view.counters),
                ..Sink::new(builder, Updates { sender, tracer, feed: settings.feed }, clock)
            },
            next_recovery_poll: Nanos::ZERO,
            next_counters: Nanos::ZERO,
            buffer: Box::new([0; DATAGRAM_MAX]),
            counters: Arc::clone(&view.counters),
            result: Arc::clone(&view.result),
        })
    }

    /// The books and what is known of them, between two duty cycles; none once it has closed.
    #[must_use]
    pub const fn books(&self) -> Option<&FeedBooks> {
        self.sink.builder.as_ref()
    }

    /// Takes one packet from one of the lines; true when there was one.
    #[inline]
    fn read_line(&mut self, now: Nanos) -> Result<bool, AgentError> {
        let received = self
            .lines
            .recv(&mut self.buffer[..])
            .map_err(|error| AgentError::fatal(format!("cannot read market data: {error}")))?;
        let Some(LinePacket { line, from, len, kernel_ns }) = received else { return Ok(false) };
        if !self.senders.allows(from) {
            self.counters.unauthorised.add(1);
            return Ok(true);
        }
        let index = line as usize;
        let packet = &self.buffer[..len];
        self.counters.packets[index].add(1);
        // What the model loses was lost before it could be read.
        if self.loss.as_ref().is_some_and(|loss| drops(loss, index, packet)) {
            self.counters.injected_losses[index].add(1);
            return Ok(true);
        }
        let is_short = message_count(packet) <= DEFERRED_MAX && !self.arbiter.has_gap();
        self.sink.start_packet(kernel_ns, if is_short { Turn::First } else { Turn::All });
        self.arbiter.handle_packet(now, line, packet, &mut self.sink);
        Ok(true)
    }

    /// Lets time pass for the arbiter, sends its request, and reads the answers.
    fn recover(&mut self, now: Nanos) -> usize {
        let mut work = 0;
        if self.arbiter.poll_timeout().is_some_and(|deadline| now >= deadline) {
            // What was held behind a gap is no packet of its own.
            self.sink.turn = Turn::All;
            self.arbiter.handle_timeout(now, &mut self.sink);
            if let (Some(request), Some(server)) = (self.arbiter.poll_request(), self.retransmission) {
                let _ = self.recovery.send_to(&request.to_bytes(), server);
            }
            work += 1;
        }
        if !self.arbiter.has_gap() && now < self.next_recovery_poll {
            return work;
        }
        self.next_recovery_poll = now + RECOVERY_POLL_INTERVAL;
        if let Ok(Some(received)) = self.recovery.recv_from(&mut self.buffer[..]) {
            // The socket takes what anybody sends: a message of the session is believed for good.
            if self.retransmission != Some(received.from) {
                self.counters.foreign_answers.add(1);
                return work + 1;
            }
            self.counters.packets[2].add(1);
            self.sink.start_packet(None, Turn::All);
            self.arbiter.handle_packet(now, Line::Recovery, &self.buffer[..received.len], &mut self.sink);
            work += 1;
        }
        work
    }

    fn publish_counters(&mut self) {
        let from = self.arbiter.counters();
        let to = &self.counters;
        for (line, missed) in from.lines.iter().zip(&to.missed_messages) {
            missed.set(line.missed_messages);
        }
        for (line, first) in from.lines.iter().zip(&to.first_messages) {
            first.set(line.first_messages);
        }
        for (index, line) in from.lines.iter().take(2).enumerate() {
            to.far_ahead[index].set(line.far_ahead);
            to.wrong_session[index].set(line.wrong_session);
        }
        to.foreign_sessions.set(from.foreign_sessions);
        to.messages.set(self.arbiter.next_sequence().0 - 1);
        to.gaps_opened.set(from.gaps_opened);
        to.gaps_healed_by_line.set(from.gaps_healed_by_line);
        to.gaps_healed_by_retransmission.set(from.gaps_healed_by_retransmission);
        to.messages_lost.set(from.messages_lost);
        to.open_gap.set(u64::from(self.arbiter.has_gap()));
        if let Some(builder) = &self.sink.builder
            && builder.counters().other_symbols > 0
        {
            to.other_symbols.set(builder.counters().other_symbols);
            if to.other_symbol.get().is_none() {
                builder.other_symbols().take(1).for_each(|other| _ = to.other_symbol.set(other));
            }
        }
        if let Some(snapshots) = &self.sink.snapshots {
            snapshots.client.publish_counters(&snapshots.healer);
        }
        let drops = self.lines.drops();
        to.kernel_drops.set(drops.kernel);
        to.unreadable.set(drops.unreadable);
    }
}

/// Where nobody is asked, nobody's answer is waited for.
fn arbiter_config(settings: &FeedSettings) -> ArbiterConfig {
    match settings.retransmission {
        Some(_) => settings.arbiter,
        None => ArbiterConfig { max_requests: 0, ..settings.arbiter },
    }
}

fn snapshot_client<N: Network>(
    network: &N,
    settings: &FeedSettings,
    counters: &FeedCounters,
) -> Option<Healing<N>> {
    let sources = &settings.snapshots;
    sources.is_any().then(|| {
        let healer = SnapshotHealer::new(settings.max_instrument, sources.hold_messages);
        let (network, counters) = (network.clone(), Arc::clone(&counters.snapshots));
        let client = SnapshotClient::new(network, sources.clone(), settings.interface, counters);
        Healing { healer, client }
    })
}

/// The loss model sees the packet's first sequence, so that every receiver of a seed loses the same packets.
fn drops(loss: &LossModel, line: usize, packet: &[u8]) -> bool {
    let sequence = packet.get(10..18).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    loss.drops(line, sequence)
}

/// Messages that a packet's header says it has.
#[inline]
fn message_count(packet: &[u8]) -> usize {
    packet.get(18..20).map_or(0, |bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
}

impl<T: Tracer, N: Network> Sink<T, N> {
    pub(crate) fn new(builder: FeedBooks, updates: Updates<T>, clock: TscClock) -> Sink<T, N> {
        Sink {
            builder: Some(builder),
            updates,
            deferred: Deferred::new(),
            turn: Turn::All,
            read_at: 0,
            kernel_ns: None,
            received_at: None,
            kernel_time: KernelTime::new(clock),
            foreign: None,
            snapshots: None,
            is_healing: false,
        }
    }

    /// Goes on healing the books; returns how much there was to do.
    #[cold]
    fn heal(&mut self, now: Nanos, session: Option<Session>) -> usize {
        let (Some(snapshots), Some(builder)) = (&mut self.snapshots, &mut self.builder) else { return 0 };
        let work = snapshots.client.poll(now, session, &mut snapshots.healer, builder, &mut self.updates);
        self.is_healing = snapshots.healer.is_active();
        work
    }

    #[cold]
    fn deliver_healing(&mut self, sequence: Sequence, message: &[u8]) {
        if let (Some(snapshots), Some(builder)) = (&mut self.snapshots, &mut self.builder) {
            snapshots.healer.handle_message(sequence, message, builder, &mut self.updates);
            self.is_healing = snapshots.healer.is_active();
        }
    }

    /// A packet was read just now.
    #[inline]
    fn start_packet(&mut self, kernel_ns: Option<u64>, turn: Turn) {
        self.read_at = self.updates.tracer.now_ordered();
        self.kernel_ns = kernel_ns;
        self.received_at = None;
        self.turn = turn;
    }

    /// Delivers a message that waited; true when there was one.
    #[inline]
    fn deliver_next(&mut self) -> bool {
        let Some((sequence, bytes, len)) = self.deferred.pop() else { return false };
        self.deliver(sequence, &bytes[..len]);
        true
    }

    #[inline]
    fn deliver(&mut self, sequence: Sequence, message: &[u8]) {
        let updates = &mut self.updates;
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        if self.is_healing {
            self.deliver_healing(sequence, message);
        } else if T::ENABLED && sequence.0.is_multiple_of(TIMED_EVERY) {
            let started = updates.tracer.now();
            builder.handle_message(sequence, message, updates);
            let ticks = updates.tracer.now().wrapping_sub(started);
            updates.tracer.time(Function::BookApply, ticks);
        } else {
            builder.handle_message(sequence, message, updates);
        }
        // The engines have it already: nothing waits for these.
        let id = MarketId::new(sequence).via_feed(self.updates.feed);
        self.updates.tracer.stamp_at(Hop::T7, id, self.read_at);
        if T::ENABLED {
            let received_at = self.received_at();
            self.updates.tracer.stamp_at(Hop::T7k, id, received_at);
        }
    }

    #[inline]
    fn received_at(&mut self) -> u64 {
        let (kernel_time, read_at) = (&mut self.kernel_time, self.read_at);
        let kernel_ns = self.kernel_ns;
        *self.received_at.get_or_insert_with(|| kernel_ns.map_or(0, |ns| kernel_time.ticks(ns, read_at)))
    }
}

impl<T: Tracer, N: Network> MessageListener for Sink<T, N> {
    #[inline]
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        match self.turn {
            Turn::All => {}
            Turn::First => self.turn = Turn::Later,
            Turn::Later if self.deferred.push(sequence, message) => {
                let builder = self.builder.as_ref().expect("a closed agent takes no messages");
                return builder.prefetch(message);
            }
            Turn::Later => {
                // Cannot wait: so nothing before it can.
                self.turn = Turn::All;
                while self.deliver_next() {}
            }
        }
        self.deliver(sequence, message);
    }

    fn on_lost(&mut self, first: Sequence, count: u64) {
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        builder.handle_lost(&mut self.updates);
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.healer.handle_lost(Sequence(first.0 + count));
            self.is_healing = true;
        }
    }

    /// The books begin anew, as the numbers do.
    #[cold]
    fn on_restart(&mut self) {
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        builder.handle_restart(&mut self.updates);
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.healer.restart();
        }
    }

    /// The books are of a venue that is no more, and stay so until the program is started anew.
    #[cold]
    fn on_foreign_session(&mut self, session: Session) {
        self.foreign = Some(session);
        let builder = self.builder.as_mut().expect("a closed agent takes no messages");
        builder.handle_lost(&mut self.updates);
    }
}

impl<T: Tracer> UpdateListener for Updates<T> {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.sender.send(*update);
        if update.kind() != Some(UpdateKind::Status) {
            let id = MarketId::new(Sequence(update.sequence)).via_feed(self.feed);
            self.tracer.stamp(Hop::T8, id);
        }
    }
}

impl<T: Tracer + Send, N: Network> Agent for FeedHandler<T, N> {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if self.sink.deliver_next() {
            self.sink.updates.tracer.flush();
            return Ok(1);
        }
        let mut work = usize::from(self.read_line(now)?);
        // What the retransmission server sends must not overtake what waits.
        if self.sink.deferred.is_empty() {
            work += self.recover(now);
            if self.sink.is_healing {
                work += self.sink.heal(now, self.arbiter.session());
            }
        }
        if work > 0 {
            let recovering = self.arbiter.is_recovering();
            let builder = self.sink.builder.as_mut().expect("a closed agent does no work");
            builder.handle_recovering(recovering, &mut self.sink.updates);
            self.sink.updates.tracer.flush();
            if let Some(session) = self.sink.foreign.take() {
                return Err(AgentError::recoverable(format!(
                    "the lines carry session '{session}' now: the venue was started anew and the books are of the \
                     one before; start this program anew"
                )));
            }
        }
        if now >= self.next_counters {
            self.next_counters = now + COUNTERS_INTERVAL;
            self.publish_counters();
        }
        Ok(work)
    }

    fn rehearse(&mut self, now: Nanos) {
        self.understudy.run(now);
        if let Some(builder) = &mut self.sink.builder {
            builder.refresh_fronts();
        }
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        self.lines.wait_for(wait);
        wait.descriptor(self.recovery.descriptor());
        if let Some(deadline) = self.arbiter.poll_timeout() {
            wait.until(deadline);
        }
        if self.sink.is_healing {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "feed-handler"
    }

    fn on_close(&mut self) {
        while self.sink.deliver_next() {}
        self.publish_counters();
        let Some(books) = self.sink.builder.take() else { return };
        if let Ok(mut result) = self.result.lock() {
            *result = Some(FinalFeed {
                arbiter: *self.arbiter.counters(),
                builder: *books.counters(),
                next_sequence: self.arbiter.next_sequence(),
                books,
            });
        }
    }
}

impl FinalFeed {
    /// The worst health of any book.
    #[must_use]
    pub fn worst_health(&self) -> BookHealth {
        let count = self.books.books().limits().max_instrument.0;
        (1..=count)
            .filter_map(|id| self.books.instrument(InstrumentId(id)))
            .map(|state| state.health)
            .max()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nasdaq::itch50::OrderDelete;
    use tickpath_timing::{StampKind, Trace};
    use tickpath_types::OrderId;
    use zerocopy::IntoBytes;

    use super::*;

    #[test]
    fn messages_are_stamped_while_books_are_healed() {
        let (tracer, mut drain) = Trace::new(64);
        let (sender, _updates) = broadcast::channel(16);
        let books = DirectBooks::new(BookLimits::new(InstrumentId(1), 8));
        let updates = Updates { sender, tracer, feed: 0 };
        let mut sink = Sink::<_, Kernel>::new(BookBuilder::new(books), updates, TscClock::system());
        let healer = SnapshotHealer::new(InstrumentId(1), 8);
        let (sources, counters) = (SnapshotSources::none(), Arc::default());
        let client = SnapshotClient::new(Kernel, sources, Ipv4Addr::LOCALHOST, counters);
        sink.snapshots = Some(Healing { healer, client });
        sink.on_lost(Sequence(1), 4);
        assert!(sink.is_healing);
        let delete = OrderDelete::new(InstrumentId(1), 0_u16, Nanos(1), OrderId(1));
        for sequence in [5, 6] {
            sink.start_packet(Some(1), Turn::All);
            sink.on_message(Sequence(sequence), delete.as_bytes());
        }
        sink.updates.tracer.flush();
        let mut read = vec![];
        drain.drain(64, |stamp| {
            if let Some(StampKind::Hop { hop: Hop::T7, id, .. }) = stamp.decode() {
                read.push(id);
            }
        });
        assert_eq!(read, [5, 6]);
    }
}
