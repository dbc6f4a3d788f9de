//! One channel: its message sources, its books, and its outputs.

use tickpath_agent::WaitSet;
use tickpath_book::BooksById;
use tickpath_feed::{
    ArbiterCounters, BuilderCounters, ChannelCounters, Framing, Instruments, MessageBooks, Recovering,
    RecoveryClient, RecoveryCounters, RecoveryInput, SnapshotRecovery, SnapshotRecoveryCounters,
};
use tickpath_net::{Network, RecvBatch};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Price, Qty, Side, SuspectReason, Symbol};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::outputs::{ChannelOutput, Segment, Sink, Suspect};
use crate::channel_handler::ChannelHandler;

/// Maximum number of answers to recovery requests that one duty cycle processes.
const ANSWERS_PER_CYCLE: usize = 16;

/// Maximum number of books listed in a status.
pub const LISTED_MAX: usize = 1_000;

/// Status of a channel: plain data without padding, because a seqlock publishes it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ChannelStatus {
    /// Counters of the lines and of the arbiter.
    pub lines: ArbiterCounters,
    /// Counters of the book builder: messages handled and contradictions found.
    pub builder: BuilderCounters,
    /// Counters of sessions and resynchronised books.
    pub channel: ChannelCounters,
    /// Counters of snapshot recovery.
    pub snapshot_recovery: SnapshotRecoveryCounters,
    /// Counters of the recovery client: requests, connections, snapshots.
    pub recovery: RecoveryCounters,
    /// Sequence number that the channel expects next.
    pub next_sequence: u64,
    /// Number of packets, including heartbeats, received on lines A and B or from the TCP server.
    pub received: u64,
    /// Time since the latest packet, or since the start if none has arrived.
    pub quiet: Nanos,
    /// Number of books that wait for a snapshot.
    pub waiting: u32,
    /// Number of instruments whose symbol is known.
    pub instruments: u32,
    /// Number of live, recovering, stale and suspect books, in this order, of instruments with known symbols.
    pub health: [u32; 4],
    /// 1 after a message for an instrument without a book (never mapped, or beyond `max_instruments`), until
    /// all books are reset or recovered from a snapshot; else 0.
    pub bookless: u64,
    /// Datagrams from unauthorised addresses, or of another feed.
    pub unauthorised: u64,
    /// Datagrams longer than their buffer.
    pub truncated: u64,
    /// Datagrams dropped by the kernel.
    pub kernel_drops: u64,
    /// Number of updates published.
    pub updates: u64,
    /// Number of published updates that are trades.
    pub trades: u64,
    /// Digest of all books; 0 until the channel has closed.
    pub state_hash: u64,
}

impl ChannelStatus {
    /// Returns whether every book with a known symbol is live, and no instrument lacks a book.
    #[must_use]
    pub const fn is_consistent(&self) -> bool {
        let [_, recovering, stale, suspect] = self.health;
        recovering == 0 && stale == 0 && suspect == 0 && !self.lacks_books()
    }

    /// Returns whether messages arrived for instruments without a book.
    #[must_use]
    pub const fn lacks_books(&self) -> bool {
        self.bookless > 0
    }

    /// Returns whether no valid packet has arrived.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.received == 0
    }
}

/// One book in a status list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookStatus {
    /// Id of the instrument within its channel.
    pub instrument: InstrumentId,
    /// Symbol of the instrument.
    pub symbol: Symbol,
    /// Health of the book: live if it is consistent with its market.
    pub health: BookHealth,
    /// The reason why the book is suspect; `None` if it is not.
    pub reason: Option<SuspectReason>,
    /// Best bid and its quantity.
    pub bid: Option<(Price, Qty)>,
    /// Best ask and its quantity.
    pub ask: Option<(Price, Qty)>,
}

/// Outcome of a resync command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncOutcome {
    /// The book waits for a snapshot.
    Begun,
    /// The channel has no snapshots.
    NoSnapshots,
    /// No instrument of the channel has this symbol.
    Unknown,
}

/// Interface of a live channel, the same for all protocols.
pub(super) trait LiveFeed: Send {
    fn name(&self) -> &str;
    /// Processes a bounded number of packets and recovery answers; returns the amount of work.
    fn do_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> std::io::Result<usize>;
    /// Processes recovery answers and polls the recovery client; returns the amount of work.
    fn do_background_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> usize;
    /// Adds the channel's sockets, or a maximum sleep time, to `wait`.
    fn wait_for(&self, wait: &mut WaitSet);
    fn resync(&mut self, symbol: Symbol, segment: &mut Option<Segment>) -> ResyncOutcome;
    /// Returns the channel's status; visits all instruments.
    fn status(&self) -> ChannelStatus;
    /// Returns the books that `is_selected` accepts.
    fn books(&self, is_selected: &dyn Fn(&BookStatus) -> bool) -> Vec<BookStatus>;
    /// Returns the digest of all books; visits all orders.
    fn state_hash(&self) -> u64;
    /// Passes queued suspect books to `take`; returns the number that did not fit in the channel's queue.
    fn drain_suspects(&mut self, take: &mut dyn FnMut(Suspect)) -> u64;
}

/// One channel of a protocol and its output.
pub(super) struct LiveChannel<B, F: Framing, R, N: Network> {
    pub(super) name: String,
    pub(super) handler: ChannelHandler<B, F, R, N>,
    pub(super) batch: RecvBatch,
    pub(super) output: ChannelOutput,
}

impl<B, F, R, N> LiveFeed for LiveChannel<B, F, R, N>
where
    B: MessageBooks + Send,
    F: Framing<Session: Send, Storage: Send> + Send,
    R: RecoveryClient<Request = F::Request> + Send,
    R: for<'a, 's> RecoveryInput<Recovering<'a, B, F, Sink<'s>>>,
    N: Network,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn do_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> std::io::Result<usize> {
        let LiveChannel { handler, batch, output, .. } = self;
        let mut out = output.sink(segment);
        let mut work = 0;
        if let ChannelHandler { lines: Some(lines), channel, .. } = &mut *handler {
            work += lines.recv_batch(batch, |line, datagram| {
                let is_admitted = channel.books_mut().admits(datagram);
                if is_admitted {
                    channel.handle_packet(now, line, datagram, &mut out);
                }
                is_admitted
            })?;
        }
        work += handler.handle_timeout(now, &mut out);
        let channel = &handler.channel;
        if handler.lines.is_none() || channel.arbiter().has_gap() || channel.needs_snapshot() {
            work += handler.recover(now, ANSWERS_PER_CYCLE, &mut out);
        }
        drop(out);
        if work > 0 {
            self.output.name(self.handler.channel.books().instruments(), segment);
        }
        Ok(work)
    }

    fn do_background_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> usize {
        self.handler.recover(now, ANSWERS_PER_CYCLE, &mut self.output.sink(segment))
    }

    fn wait_for(&self, wait: &mut WaitSet) {
        match &self.handler.lines {
            Some(lines) => lines.wait_for(wait),
            // A reconnect may replace the socket at any time, so wake within a millisecond.
            None => wait.soon(),
        }
    }

    fn resync(&mut self, symbol: Symbol, segment: &mut Option<Segment>) -> ResyncOutcome {
        let channel = &mut self.handler.channel;
        let Some(id) = channel.books().instruments().find(symbol) else { return ResyncOutcome::Unknown };
        if channel.resync(id, &mut self.output.sink(segment)) {
            ResyncOutcome::Begun
        } else {
            ResyncOutcome::NoSnapshots
        }
    }

    fn status(&self) -> ChannelStatus {
        let ChannelHandler { lines: sockets, recovery, channel, .. } = &self.handler;
        let (instruments, snapshot_recovery) = (channel.books().instruments(), channel.snapshots());
        let lines = *channel.line_counters();
        let mut status = ChannelStatus {
            lines,
            builder: *instruments.counters(),
            channel: *channel.counters(),
            snapshot_recovery: snapshot_recovery
                .map(|snapshot_recovery| *snapshot_recovery.counters())
                .unwrap_or_default(),
            waiting: snapshot_recovery.map_or(0, SnapshotRecovery::waiting),
            next_sequence: channel.arbiter().next_sequence().0,
            received: lines.lines[0].packets + lines.lines[1].packets,
            updates: self.output.updates,
            trades: self.output.trades,
            ..ChannelStatus::default()
        };
        status.recovery = recovery.counters(&self.handler.sockets.counters());
        if let Some(lines) = sockets {
            (status.unauthorised, status.truncated) = (lines.unauthorised, lines.truncated);
            status.kernel_drops = lines.drops().kernel;
        }
        if let Some(stream) = recovery.stream() {
            (status.next_sequence, status.received) = (stream.next.0, stream.packets);
            status.lines.lines[0].first_messages = stream.messages;
            (status.lines.messages_lost, status.lines.jumps_back) = (stream.lost, stream.jumps_back);
            status.channel.ended_sessions = stream.ended_sessions;
        }
        count_health(instruments, &mut status);
        status
    }

    fn books(&self, is_selected: &dyn Fn(&BookStatus) -> bool) -> Vec<BookStatus> {
        list(self.handler.channel.books().instruments(), &self.output)
            .filter(|book| is_selected(book))
            .take(LISTED_MAX)
            .collect()
    }

    fn state_hash(&self) -> u64 {
        self.handler.channel.books().instruments().books().state_hash()
    }

    fn drain_suspects(&mut self, take: &mut dyn FnMut(Suspect)) -> u64 {
        self.output.drain_suspects(self.handler.channel.books().instruments(), take)
    }
}

/// Counts the instruments with a known symbol by the health of their books, and records whether any
/// instrument lacks a book.
fn count_health<B: BooksById>(instruments: &Instruments<B>, status: &mut ChannelStatus) {
    status.bookless = u64::from(!instruments.is_complete());
    for state in instruments.ids().filter_map(|id| instruments.instrument(id)) {
        if state.symbol.is_some() {
            status.instruments += 1;
            status.health[state.health as usize] += 1;
        }
    }
}

/// Returns the books of the instruments whose symbol is known and configured.
fn list<'a, B: BooksById>(
    instruments: &'a Instruments<B>,
    output: &'a ChannelOutput,
) -> impl Iterator<Item = BookStatus> + 'a {
    instruments.ids().filter_map(|id| {
        let best = |side| instruments.books().best(id, side).map(|level| (level.price, level.qty));
        let state = instruments.instrument(id)?;
        let symbol = state.symbol.filter(|symbol| output.wants(*symbol))?;
        let (bid, ask) = (best(Side::Buy), best(Side::Sell));
        Some(BookStatus { instrument: id, symbol, health: state.health, reason: state.reason, bid, ask })
    })
}
