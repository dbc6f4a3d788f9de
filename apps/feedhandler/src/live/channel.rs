//! One channel: where its messages come from, its books, what it puts out.

use tickpath_agent::WaitSet;
use tickpath_feed::{
    ArbiterCounters, BuilderCounters, Channel, ChannelCounters, Framing, HealerCounters, Instruments,
    MessageBooks, SnapshotHealer, TopLevels,
};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Price, Qty, Side, SuspectReason, Symbol};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::outputs::{ChannelOutput, Segment, Sink, Suspect};
use super::recovery::RecoveryCounters;

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

/// Where the messages of a channel come from, and what recovers those that are lost. Never waits.
pub(super) trait Source<B: MessageBooks, F: Framing>: Send {
    /// Takes packets and answers, bounded; how many.
    fn do_work(
        &mut self,
        now: Nanos,
        channel: &mut Channel<B, F>,
        out: &mut Sink<'_>,
    ) -> std::io::Result<usize>;

    /// Looks at what is seldom there.
    fn do_background_work(&mut self, now: Nanos, channel: &mut Channel<B, F>, out: &mut Sink<'_>) -> usize;

    /// Says which packets it waits for.
    fn wait_for(&self, wait: &mut WaitSet);

    /// The book of an instrument is to be read anew.
    fn resync(&mut self, id: InstrumentId);

    /// Adds what it has done to what the channel has.
    fn report(&self, status: &mut ChannelStatus);
}

/// Books whose digest can be made.
pub(super) trait Digest {
    fn digest(&self) -> u64;
}

impl<B: tickpath_book::BooksById> Digest for B {
    fn digest(&self) -> u64 {
        self.state_hash()
    }
}

pub(super) struct LiveChannel<B, F: Framing, S> {
    pub(super) name: String,
    pub(super) source: S,
    pub(super) channel: Channel<B, F>,
    pub(super) output: ChannelOutput,
}

impl<B, F, S> LiveFeed for LiveChannel<B, F, S>
where
    B: MessageBooks<Books: Digest> + Send,
    F: Framing<Session: Send, Room: Send> + Send,
    S: Source<B, F>,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn do_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> std::io::Result<usize> {
        let work = self.source.do_work(now, &mut self.channel, &mut self.output.sink(segment))?;
        if work > 0 {
            self.output.name(self.channel.books().instruments(), segment);
        }
        Ok(work)
    }

    fn do_background_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> usize {
        self.source.do_background_work(now, &mut self.channel, &mut self.output.sink(segment))
    }

    fn wait_for(&self, wait: &mut WaitSet) {
        self.source.wait_for(wait);
    }

    fn resync(&mut self, symbol: Symbol, segment: &mut Option<Segment>) -> ResyncOutcome {
        let Some(id) = self.channel.books().instruments().find(symbol) else { return ResyncOutcome::Unknown };
        if self.channel.resync(id, &mut self.output.sink(segment)) {
            self.source.resync(id);
            ResyncOutcome::Begun
        } else {
            ResyncOutcome::NoSnapshots
        }
    }

    fn status(&self) -> ChannelStatus {
        let (instruments, healer) = (self.channel.books().instruments(), self.channel.snapshots());
        let lines = *self.channel.line_counters();
        let mut status = ChannelStatus {
            lines,
            builder: *instruments.counters(),
            channel: *self.channel.counters(),
            healer: healer.map(|healer| *healer.counters()).unwrap_or_default(),
            waiting: healer.map_or(0, SnapshotHealer::waiting),
            next_sequence: self.channel.arbiter().next_sequence().0,
            received: lines.lines[0].packets + lines.lines[1].packets,
            updates: self.output.updates,
            trades: self.output.trades,
            ..ChannelStatus::default()
        };
        self.source.report(&mut status);
        count_health(instruments, &mut status);
        status
    }

    fn books(&self, wanted: &dyn Fn(&BookStatus) -> bool) -> Vec<BookStatus> {
        list(self.channel.books().instruments(), &self.output)
            .filter(|book| wanted(book))
            .take(LISTED_MAX)
            .collect()
    }

    fn state_hash(&self) -> u64 {
        self.channel.books().instruments().books().digest()
    }

    fn drain_suspects(&mut self, take: &mut dyn FnMut(Suspect)) -> u64 {
        self.output.drain_suspects(self.channel.books().instruments(), take)
    }
}

/// Counts the instruments that have a name by the health of their books, and says whether others have none.
fn count_health<B: TopLevels>(instruments: &Instruments<B>, status: &mut ChannelStatus) {
    status.bookless = u64::from(!instruments.is_whole());
    for state in instruments.ids().filter_map(|id| instruments.instrument(id)) {
        if state.symbol.is_some() {
            status.instruments += 1;
            status.health[state.health as usize] += 1;
        }
    }
}

/// The books of instruments that have a name and were asked for.
fn list<'a, B: TopLevels>(
    instruments: &'a Instruments<B>,
    output: &'a ChannelOutput,
) -> impl Iterator<Item = BookStatus> + 'a {
    instruments.ids().filter_map(|id| {
        let best = |side| instruments.books().top_level(id, side).map(|level| (level.price, level.qty));
        let state = instruments.instrument(id)?;
        let symbol = state.symbol.filter(|symbol| output.wants(*symbol))?;
        let (bid, ask) = (best(Side::Buy), best(Side::Sell));
        Some(BookStatus { instrument: id, symbol, health: state.health, reason: state.reason, bid, ask })
    })
}
