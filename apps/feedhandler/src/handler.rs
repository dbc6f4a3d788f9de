//! The feed handler as an agent.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, OnceLock};

use tickpath_agent::{Agent, AgentError, Counter, TscClock, WaitSet};
use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::itch::ItchRecovery;
use tickpath_feed::{
    ArbiterConfig, ArbiterCounters, BookBuilder, BuilderCounters, Channel, ChannelConfig, LossModel,
    MessageBooks, MoldUdp64, OtherSymbol,
};
use tickpath_lockfree::broadcast;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_net::{Kernel, NetError, Network};
use tickpath_timing::Tracer;
use tickpath_types::{BookHealth, InstrumentId, MarketUpdate, Nanos, Sequence, Symbol};

use crate::channel_handler::ChannelHandler;
use crate::lines::{LinePacket, LineReader, Lines, ReadBy};
use crate::recovery_sockets::{RecoveryServers, RecoverySockets};
use crate::senders::Senders;
use crate::snapshots::{GLIMPSE, SnapshotCounters, SnapshotSources};
use crate::updates::{FeedBooks, Updates};
use crate::warm_up_instance::WarmUpInstance;

/// Receive buffer length: the maximum length of a datagram.
const DATAGRAM_MAX: usize = 65_536;
/// Poll interval of the recovery socket while no gap is open.
const RECOVERY_POLL_INTERVAL: Nanos = Nanos::from_millis(1);
/// Publishing interval of the counters.
const COUNTERS_INTERVAL: Nanos = Nanos::from_millis(1);

/// User name for logins to a snapshot server. This project's venue requires no password.
const USER: &str = "FEED";

/// Counters of a [`FeedHandler`], readable by other threads while it runs.
#[derive(Default)]
#[repr(align(128))] // on separate cache lines, against false sharing
pub struct FeedCounters {
    /// Packets received from line A, line B and the retransmission server.
    pub packets: [Counter; 3],
    /// Packets dropped by the loss model, on lines A and B.
    pub injected_losses: [Counter; 2],
    /// Messages skipped in the lines' sequence numbers, on lines A and B.
    pub missed_messages: [Counter; 2],
    /// Messages of which line A, line B or the retransmission server delivered the first copy.
    pub first_messages: [Counter; 3],
    /// Sequence number of the last message that was delivered or given up as lost.
    pub messages: Counter,
    /// Gaps detected: messages missing on both lines.
    pub gaps_opened: Counter,
    /// Gaps closed by a packet of line A or B.
    pub gaps_healed_by_line: Counter,
    /// Gaps closed by an answer of the retransmission server.
    pub gaps_healed_by_retransmission: Counter,
    /// Messages given up as lost.
    pub messages_lost: Counter,
    /// Packets dropped because their sequence number is too far ahead, on lines A and B.
    pub far_ahead: [Counter; 2],
    /// Packets of another session, on lines A and B.
    pub wrong_session: [Counter; 2],
    /// Number of session changes on the lines. After a change, as at a restart of the venue, the books stay
    /// stale until this program is restarted too.
    pub other_sessions: Counter,
    /// Packets that the kernel dropped because the socket's buffer was full.
    pub kernel_drops: Counter,
    /// Packets that were truncated, fragmented or damaged in transit.
    pub unreadable: Counter,
    /// Datagrams to the recovery socket that did not come from the retransmission server, and were
    /// dropped.
    pub unsolicited_answers: Counter,
    /// Packets on the lines that were dropped because their source address is unauthorised.
    pub unauthorised: Counter,
    /// 1 while a gap is open.
    pub open_gap: Counter,
    /// Instruments without the [expected symbol](FeedSettings::symbols): their books are suspect.
    pub other_symbols: Counter,
    /// One of the instruments without the expected symbol, if any.
    pub other_symbol: OnceLock<OtherSymbol>,
    /// Counters of recovery by snapshots.
    pub snapshots: Arc<SnapshotCounters>,
}

/// Final state of a feed handler after it has closed.
pub struct FinalFeed {
    /// The books and their health.
    pub books: FeedBooks,
    /// Counters of the line arbitration.
    pub arbiter: ArbiterCounters,
    /// Counters of the messages that the books were built from.
    pub builder: BuilderCounters,
    /// Sequence number of the next message.
    pub next_sequence: Sequence,
}

/// The published state of a feed handler, during the run and afterwards.
#[derive(Clone, Default)]
pub struct FeedView {
    /// The method by which the feed handler reads packets; set once it is open.
    pub read_by: Arc<OnceLock<ReadBy>>,
    /// The feed handler's counters.
    pub counters: Arc<FeedCounters>,
    /// The feed handler's final state, once it has closed.
    pub result: Arc<Mutex<Option<FinalFeed>>>,
}

/// Configuration of a [`FeedHandler`].
#[derive(Clone, Debug)]
pub struct FeedSettings {
    /// Id of the feed handler in timing stamps, from 0.
    pub feed: u8,
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Interface on which the lines arrive.
    pub interface: Ipv4Addr,
    /// Addresses that may send on the lines.
    pub senders: Senders,
    /// Method of reading the packets.
    pub reader: LineReader,
    /// Highest instrument id; ids begin at 1.
    pub max_instrument: InstrumentId,
    /// Expected symbols of the instruments 1, 2, 3 ...; further instruments may have any symbol.
    pub symbols: Vec<Symbol>,
    /// Maximum number of open orders in all books.
    pub max_orders: u32,
    /// Limits and waiting times of the line arbitration.
    pub arbiter: ArbiterConfig,
    /// Server for retransmission requests; `None` for no requests.
    pub retransmission: Option<SocketAddrV4>,
    /// Sources of snapshots for books that lost messages permanently.
    pub snapshots: SnapshotSources,
    /// Loss model that drops packets for tests.
    pub loss: Option<LossModel>,
}

/// Reads two multicast lines and the retransmission server's answers, builds the books, and sends every
/// change to the engines.
///
/// A duty cycle takes one packet and applies all of its messages. The packet's updates leave before the next
/// packet, or the other line's copy of the packet, is read. [`MarketUpdate::has_more`] marks the packet's
/// last update, after which the engines decide.
pub struct FeedHandler<T, N: Network = Kernel> {
    handler: ChannelHandler<FeedBooks, MoldUdp64, ItchRecovery, N>,
    updates: Updates<T>,
    warm_up_instance: WarmUpInstance<T>,
    loss: Option<LossModel>,
    next_recovery_poll: Nanos,
    next_counters: Nanos,
    /// The earlier of `next_recovery_poll` and `next_counters`.
    next_upkeep: Nanos,
    buffer: Box<[u8; DATAGRAM_MAX]>,
    counters: Arc<FeedCounters>,
    result: Arc<Mutex<Option<FinalFeed>>>,
    is_closed: bool,
}

impl<T: Tracer, N: Network> FeedHandler<T, N> {
    /// Joins both lines. Updates leave through `sender`; the handler publishes its state in `view`.
    ///
    /// # Errors
    /// [`NetError`] when a line cannot be joined.
    pub fn open(
        network: &N,
        settings: &FeedSettings,
        sender: broadcast::Sender<MarketUpdate>,
        clock: TscClock,
        view: &FeedView,
        tracer: T,
    ) -> Result<FeedHandler<T, N>, NetError> {
        let groups = [Some(settings.line_a), Some(settings.line_b)];
        let senders = settings.senders.clone();
        let (lines, read_by) = Lines::join(network, groups, settings.interface, senders, settings.reader)?;
        view.read_by.get_or_init(|| read_by);
        let books = PackedBooks::new(BookLimits::new(settings.max_instrument, settings.max_orders));
        let books = BookBuilder::new(books).expecting(&settings.symbols);
        let sources = &settings.snapshots;
        let login = LoginRequest::new(USER, "").expect("both are short enough");
        let recovery = ItchRecovery::new(login, sources.glimpse.is_some(), sources.channel.is_some());
        let warm_up_instance = WarmUpInstance::new(tracer.warm_up_instance(), clock);
        Ok(FeedHandler {
            handler: ChannelHandler {
                lines,
                sockets: RecoverySockets::open(network, recovery_servers(settings), &recovery)?,
                recovery,
                channel: Channel::new(&channel_config(settings), books),
            },
            updates: Updates::new(sender, tracer, settings.feed, clock),
            warm_up_instance,
            loss: settings.loss.clone(),
            next_recovery_poll: Nanos::ZERO,
            next_counters: Nanos::ZERO,
            next_upkeep: Nanos::ZERO,
            buffer: Box::new([0; DATAGRAM_MAX]),
            counters: Arc::clone(&view.counters),
            result: Arc::clone(&view.result),
            is_closed: false,
        })
    }

    /// Returns the books and their health as of the latest duty cycle; `None` after closing.
    #[must_use]
    pub fn books(&self) -> Option<&FeedBooks> {
        (!self.is_closed).then(|| self.handler.channel.books())
    }

    /// Takes one packet from one of the lines; returns true if there was one.
    #[inline]
    fn read_line(&mut self, now: Nanos) -> Result<bool, AgentError> {
        let ChannelHandler { lines: Some(lines), channel, .. } = &mut self.handler else { return Ok(false) };
        let received = lines
            .recv(&mut self.buffer[..])
            .map_err(|error| AgentError::fatal(format!("cannot read market data: {error}")))?;
        let Some(LinePacket { line, from, len, kernel_ns }) = received else { return Ok(false) };
        if !lines.senders.allows(from) {
            self.counters.unauthorised.add(1);
            return Ok(true);
        }
        let index = line as usize;
        let packet = &self.buffer[..len];
        self.counters.packets[index].add(1);
        // Drop the packet before it is parsed, as if a network had lost it.
        if self.loss.as_ref().is_some_and(|loss| drops(loss, index, packet)) {
            self.counters.injected_losses[index].add(1);
            return Ok(true);
        }
        self.updates.kernel_ns = kernel_ns;
        channel.handle_packet(now, line, packet, &mut self.updates);
        self.updates.end_packet();
        Ok(true)
    }

    /// Handles the arbiter's timeout and recovery request, and receives answers and snapshots, where due.
    #[cold]
    fn recover(&mut self, now: Nanos) -> usize {
        let is_polled = now >= self.next_recovery_poll;
        let channel = &self.handler.channel;
        if !(is_polled || channel.arbiter().has_gap() || channel.needs_snapshot()) {
            return 0;
        }
        let mut work = self.handler.handle_timeout(now, &mut self.updates);
        let has_answers = is_polled || self.handler.channel.arbiter().has_gap();
        if has_answers {
            self.next_recovery_poll = now + RECOVERY_POLL_INTERVAL;
        }
        if has_answers || self.handler.channel.needs_snapshot() {
            work += self.handler.recover(now, usize::from(has_answers), &mut self.updates);
        }
        self.updates.end_packet();
        work
    }

    /// Publishes the counters, if due.
    #[cold]
    fn report(&mut self, now: Nanos) {
        if now >= self.next_counters {
            self.next_counters = now + COUNTERS_INTERVAL;
            self.publish_counters();
        }
        self.next_upkeep = self.next_recovery_poll.min(self.next_counters);
    }

    fn publish_counters(&mut self) {
        let ChannelHandler { lines, sockets, channel, .. } = &self.handler;
        let (from, to) = (channel.line_counters(), &self.counters);
        for (line, first) in from.lines.iter().zip(&to.first_messages) {
            first.set(line.first_messages);
        }
        for (index, line) in from.lines.iter().take(2).enumerate() {
            to.missed_messages[index].set(line.missed_messages);
            to.far_ahead[index].set(line.far_ahead);
            to.wrong_session[index].set(line.wrong_session);
        }
        to.other_sessions.set(from.other_sessions);
        to.messages.set(channel.arbiter().next_sequence().0 - 1);
        to.gaps_opened.set(from.gaps_opened);
        to.gaps_healed_by_line.set(from.gaps_healed_by_line);
        to.gaps_healed_by_retransmission.set(from.gaps_healed_by_retransmission);
        to.messages_lost.set(from.messages_lost);
        to.open_gap.set(u64::from(channel.arbiter().has_gap()));
        let books = channel.books();
        if books.counters().other_symbols > 0 {
            to.other_symbols.set(books.counters().other_symbols);
            if to.other_symbol.get().is_none() {
                books.instruments().other_symbols().take(1).for_each(|other| _ = to.other_symbol.set(other));
            }
        }
        let sockets = sockets.counters();
        to.packets[2].set(sockets.answers);
        to.unsolicited_answers.set(sockets.unsolicited);
        if let Some(snapshot_recovery) = channel.snapshots() {
            to.snapshots.publish(snapshot_recovery, &sockets);
        }
        let drops = lines.as_ref().map(Lines::drops).unwrap_or_default();
        to.kernel_drops.set(drops.kernel);
        to.unreadable.set(drops.unreadable);
    }
}

#[cold]
fn session_change(session: Session) -> AgentError {
    AgentError::recoverable(format!(
        "the lines carry session '{session}' now: the venue was restarted and the books are of the \
         previous session; restart this program"
    ))
}

/// Returns the channel's configuration. Without a retransmission server the channel makes no requests. The
/// channel does not follow a new session, and does not resync suspect books.
fn channel_config(settings: &FeedSettings) -> ChannelConfig {
    let max_requests = settings.retransmission.map_or(0, |_| settings.arbiter.max_requests);
    let sources = &settings.snapshots;
    ChannelConfig {
        arbiter: ArbiterConfig { max_requests, ..settings.arbiter },
        hold_snapshot: sources.is_any().then_some(sources.hold_messages),
        resync_suspects: false,
        suspect_disagreements: false,
        follow_sessions: false,
    }
}

fn recovery_servers(settings: &FeedSettings) -> RecoveryServers {
    RecoveryServers {
        requests: settings.retransmission,
        connection: settings.snapshots.glimpse.map(|server| (server, GLIMPSE)),
        groups: [settings.snapshots.channel, None],
        interface: settings.interface,
        senders: settings.snapshots.senders.clone(),
    }
}

/// Returns whether the loss model drops a packet; the result depends only on line, first sequence number and
/// seed.
fn drops(loss: &LossModel, line: usize, packet: &[u8]) -> bool {
    let sequence = packet.get(10..18).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    loss.drops(line, sequence)
}

impl<T: Tracer + Send, N: Network> Agent for FeedHandler<T, N> {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if self.updates.stamp_packet() {
            self.updates.tracer.flush();
        }
        let mut work = usize::from(self.read_line(now)?);
        let is_due = now >= self.next_upkeep;
        let channel = &self.handler.channel;
        if is_due || channel.arbiter().has_gap() || channel.needs_snapshot() {
            work += self.recover(now);
        }
        if work > 0
            && let Some(session) = self.handler.channel.poll_session_change()
        {
            return Err(session_change(session));
        }
        if is_due {
            self.report(now);
        }
        Ok(work)
    }

    fn warm_up(&mut self, now: Nanos) {
        self.updates.tracer.prefetch();
        self.warm_up_instance.run(now);
        self.handler.channel.books_mut().instruments_mut().refresh_fronts();
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        let ChannelHandler { lines, sockets, channel, .. } = &self.handler;
        lines.iter().for_each(|lines| lines.wait_for(wait));
        wait.descriptor(sockets.descriptor());
        if let Some(deadline) = channel.poll_timeout() {
            wait.until(deadline);
        }
        if channel.needs_snapshot() {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "feed-handler"
    }

    fn on_close(&mut self) {
        self.updates.stamp_packet();
        self.updates.tracer.flush();
        self.publish_counters();
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let channel = std::mem::replace(&mut self.handler.channel, WarmUpInstance::<T>::channel());
        if let Ok(mut result) = self.result.lock() {
            *result = Some(FinalFeed {
                arbiter: *channel.line_counters(),
                builder: *channel.books().counters(),
                next_sequence: channel.arbiter().next_sequence(),
                books: channel.into_books(),
            });
        }
    }
}

impl FinalFeed {
    /// Returns the worst health among all books.
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
