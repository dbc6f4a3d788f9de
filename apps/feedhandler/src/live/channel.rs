//! One channel: where its messages come from, its books, what it puts out.

use tickpath_agent::WaitSet;
use tickpath_book::BooksById;
use tickpath_feed::{
    ArbiterCounters, BuilderCounters, ChannelCounters, Framing, HealerCounters, Instruments, MessageBooks,
    Recovering, RecoveryClient, RecoveryCounters, RecoveryInput, SnapshotHealer,
};
use tickpath_net::{Network, RecvBatch};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Price, Qty, Side, SuspectReason, Symbol};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::outputs::{ChannelOutput, Segment, Sink, Suspect};
use crate::channel_handler::ChannelHandler;

/// Answers to requests taken in one duty cycle.
const ANSWERS_PER_CYCLE: usize = 16;

/// Books that are listed in a status at most.
pub const LISTED_MAX: usize = 1_000;

/// What a channel has done. Plain data without padding, for the cell that it is read from.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ChannelStatus {
    /// The lines and their arbitration.
    pub lines: ArbiterCounters,
    /// The messages.
    pub builder: BuilderCounters,
    /// Sessions and books read anew.
    pub channel: ChannelCounters,
    /// Snapshots.
    pub healer: HealerCounters,
    /// Requests and servers.
    pub recovery: RecoveryCounters,
    /// Number of the next message.
    pub next_sequence: u64,
    /// Packets of the channel on lines A and B, heartbeats too; of a stream over TCP its packets.
    pub received: u64,
    /// Time since the latest of them, or since the start.
    pub quiet: Nanos,
    /// Books that wait for a snapshot.
    pub waiting: u32,
    /// Instruments that the directory has named.
    pub instruments: u32,
    /// Books by their health: live, recovering, stale, suspect. Of instruments that have a name.
    pub health: [u32; 4],
    /// 1 once messages came about instruments that have no book: never mapped, or beyond the bound.
    pub bookless: u64,
    /// Datagrams from addresses that may not send, or of another feed.
    pub strangers: u64,
    /// Datagrams that were too long.
    pub truncated: u64,
    /// Datagrams that the kernel dropped.
    pub kernel_drops: u64,
    /// Updates made.
    pub updates: u64,
    /// Of these, trades.
    pub trades: u64,
    /// Digest of all books; 0 until the channel has closed.
    pub state_hash: u64,
}

impl ChannelStatus {
    /// True when every book that has a name can be believed, and every instrument that was heard of has a book.
    #[must_use]
    pub const fn is_believable(&self) -> bool {
        let [_, recovering, stale, suspect] = self.health;
        recovering == 0 && stale == 0 && suspect == 0 && !self.lacks_books()
    }

    /// True when messages came about instruments that have no book.
    #[must_use]
    pub const fn lacks_books(&self) -> bool {
        self.bookless > 0
    }

    /// True when nothing at all has come that was taken.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.received == 0
    }
}

/// One book as a status lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookStatus {
    /// The instrument's number in its channel.
    pub instrument: InstrumentId,
    /// Its symbol.
    pub symbol: Symbol,
    /// Whether the book can be believed.
    pub health: BookHealth,
    /// Why not.
    pub reason: Option<SuspectReason>,
    /// Best bid and its quantity.
    pub bid: Option<(Price, Qty)>,
    /// Best ask and its quantity.
    pub ask: Option<(Price, Qty)>,
}

/// What came of a command to read a book anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncOutcome {
    /// It waits for a snapshot.
    Begun,
    /// The channel has no snapshots.
    NoSnapshots,
    /// No instrument of the channel has this symbol.
    Unknown,
}

/// A channel of any protocol.
pub(super) trait LiveFeed: Send {
    fn name(&self) -> &str;
    /// Takes packets and answers, bounded; how many.
    fn do_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> std::io::Result<usize>;
    /// Looks at what is seldom there.
    fn do_background_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> usize;
    /// Says which packets it waits for.
    fn wait_for(&self, wait: &mut WaitSet);
    fn resync(&mut self, symbol: Symbol, segment: &mut Option<Segment>) -> ResyncOutcome;
    /// What it has done; walks all instruments.
    fn status(&self) -> ChannelStatus;
    /// The books that `wanted` picks.
    fn books(&self, wanted: &dyn Fn(&BookStatus) -> bool) -> Vec<BookStatus>;
    /// Digest of all books. Walks everything.
    fn state_hash(&self) -> u64;
    /// Hands over the books that became suspect since the last call; gives back how many more there were.
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
    F: Framing<Session: Send, Room: Send> + Send,
    R: RecoveryClient<Request = F::Request> + Send,
    R: for<'a, 's> RecoveryInput<Recovering<'a, B, F, Sink<'s>>>,
    N: Network,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn do_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> std::io::Result<usize> {
        let LiveChannel { handler, batch, output, .. } = self;
        let out = &mut output.sink(segment);
        let mut work = 0;
        if let ChannelHandler { lines: Some(lines), channel, .. } = &mut *handler {
            work += lines.recv_batch(batch, |line, datagram| {
                let is_admitted = channel.books_mut().admits(datagram);
                if is_admitted {
                    channel.handle_packet(now, line, datagram, out);
                }
                is_admitted
            })?;
        }
        work += handler.pass_time(now, out);
        let channel = &handler.channel;
        if handler.lines.is_none() || channel.arbiter().has_gap() || channel.needs_snapshot() {
            work += handler.recover(now, ANSWERS_PER_CYCLE, out);
        }
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
            // The connection may be made again at any time.
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
        let (instruments, healer) = (channel.books().instruments(), channel.snapshots());
        let lines = *channel.line_counters();
        let mut status = ChannelStatus {
            lines,
            builder: *instruments.counters(),
            channel: *channel.counters(),
            healer: healer.map(|healer| *healer.counters()).unwrap_or_default(),
            waiting: healer.map_or(0, SnapshotHealer::waiting),
            next_sequence: channel.arbiter().next_sequence().0,
            received: lines.lines[0].packets + lines.lines[1].packets,
            updates: self.output.updates,
            trades: self.output.trades,
            ..ChannelStatus::default()
        };
        status.recovery = recovery.counters(&self.handler.sockets.counters());
        if let Some(lines) = sockets {
            (status.strangers, status.truncated) = (lines.strangers, lines.truncated);
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

    fn books(&self, wanted: &dyn Fn(&BookStatus) -> bool) -> Vec<BookStatus> {
        list(self.handler.channel.books().instruments(), &self.output)
            .filter(|book| wanted(book))
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

/// Counts the instruments that have a name by the health of their books, and says whether others have none.
fn count_health<B: BooksById>(instruments: &Instruments<B>, status: &mut ChannelStatus) {
    status.bookless = u64::from(!instruments.is_whole());
    for state in instruments.ids().filter_map(|id| instruments.instrument(id)) {
        if state.symbol.is_some() {
            status.instruments += 1;
            status.health[state.health as usize] += 1;
        }
    }
}

/// The books of instruments that have a name and were asked for.
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
