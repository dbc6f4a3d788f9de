//! One channel with its sockets.

use tickpath_feed::{
    ArbiterCounters, BuilderCounters, Channel, ChannelCounters, Framing, HealerCounters, Instruments, Line,
    MessageBooks, TopLevels,
};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Price, Qty, Side, SuspectReason, Symbol};

use super::lines::LineSockets;
use super::outputs::{ChannelOutput, Segment, ToldBooks};
use super::recovery::{Recovery, RecoveryCounters};

/// Books that are listed in a status at most.
pub const LISTED_MAX: usize = 1_000;

/// What a channel has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelStatus {
    /// The lines and their arbitration.
    pub lines: ArbiterCounters,
    /// The messages.
    pub builder: BuilderCounters,
    /// Sessions and books read anew.
    pub channel: ChannelCounters,
    /// Snapshots.
    pub healer: HealerCounters,
    /// Books that wait for a snapshot.
    pub waiting: u32,
    /// Requests and servers.
    pub recovery: RecoveryCounters,
    /// Number of the next message.
    pub next_sequence: u64,
    /// Instruments that the directory has named.
    pub instruments: u32,
    /// Books by their health: live, recovering, stale, suspect. Of instruments that have a name.
    pub health: [u32; 4],
    /// Messages came about instruments that have no book: never mapped, or beyond the bound.
    pub lacks_books: bool,
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
        recovering == 0 && stale == 0 && suspect == 0 && !self.lacks_books
    }

    /// True when nothing at all has come that was taken.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.builder.messages == 0
            && self.next_sequence <= 1
            && self.lines.lines[0].packets == 0
            && self.lines.lines[1].packets == 0
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
    fn resync(&mut self, symbol: Symbol, segment: &mut Option<Segment>) -> ResyncOutcome;
    /// What it has done; walks all instruments.
    fn status(&self) -> ChannelStatus;
    /// The books that `wanted` picks.
    fn books(&self, wanted: &dyn Fn(&BookStatus) -> bool) -> Vec<BookStatus>;
    /// Digest of all books. Walks everything.
    fn state_hash(&self) -> u64;
    /// Books that became suspect since the last call, with symbols where they have one; and how many more.
    fn take_told(&mut self) -> ToldBooks;
    fn has_told(&self) -> bool;
}

/// Looks at a datagram before the arbiter does.
pub(super) trait Gate<B>: Send {
    /// False for one that is not of this channel.
    fn admits(&mut self, datagram: &[u8], books: &mut B) -> bool;
}

/// Every datagram is of the channel.
pub(super) struct Open;

impl<B> Gate<B> for Open {
    #[inline]
    fn admits(&mut self, _: &[u8], _: &mut B) -> bool {
        true
    }
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

pub(super) struct LiveChannel<B, F: Framing, R, G> {
    pub(super) name: String,
    pub(super) lines: LineSockets,
    pub(super) gate: G,
    pub(super) channel: Channel<B, F>,
    pub(super) recovery: R,
    pub(super) output: ChannelOutput,
}

impl<B, F, R, G> LiveChannel<B, F, R, G>
where
    B: MessageBooks + Send,
    F: Framing,
    R: Recovery<B, F>,
    G: Gate<B>,
{
    fn pass_time(&mut self, now: Nanos, segment: &mut Option<Segment>) -> usize {
        if self.channel.poll_timeout().is_none_or(|deadline| now < deadline) {
            return 0;
        }
        self.channel.handle_timeout(now, &mut self.output.sink(segment));
        if let Some(request) = self.channel.poll_request() {
            self.recovery.request(now, request);
        }
        1
    }
}

impl<B, F, R, G> LiveFeed for LiveChannel<B, F, R, G>
where
    B: MessageBooks<Books: Digest> + Send,
    F: Framing<Session: Send, Room: Send> + Send,
    R: Recovery<B, F>,
    G: Gate<B>,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn do_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> std::io::Result<usize> {
        let LiveChannel { lines, gate, channel, output, .. } = self;
        let mut sink = output.sink(segment);
        let mut work = lines.receive(|line: Line, datagram| {
            let is_admitted = gate.admits(datagram, channel.books_mut());
            if is_admitted {
                channel.handle_packet(now, line, datagram, &mut sink);
            }
            is_admitted
        })?;
        work += self.pass_time(now, segment);
        if self.channel.arbiter().has_gap() || self.channel.needs_snapshot() {
            work += self.recovery.poll(now, &mut self.channel, &mut self.output.sink(segment));
        }
        if work > 0 {
            self.output.name(self.channel.books().instruments(), segment);
        }
        Ok(work)
    }

    fn do_background_work(&mut self, now: Nanos, segment: &mut Option<Segment>) -> usize {
        self.recovery.poll(now, &mut self.channel, &mut self.output.sink(segment))
    }

    fn resync(&mut self, symbol: Symbol, segment: &mut Option<Segment>) -> ResyncOutcome {
        let Some(id) = self.channel.books().instruments().find(symbol) else { return ResyncOutcome::Unknown };
        if self.channel.resync(id, &mut self.output.sink(segment)) {
            self.recovery.resync(id);
            ResyncOutcome::Begun
        } else {
            ResyncOutcome::NoSnapshots
        }
    }

    fn status(&self) -> ChannelStatus {
        let instruments = self.channel.books().instruments();
        let mut status = ChannelStatus {
            lines: *self.channel.line_counters(),
            builder: *instruments.counters(),
            channel: *self.channel.counters(),
            healer: self.channel.snapshots().map(|healer| *healer.counters()).unwrap_or_default(),
            waiting: self.channel.snapshots().map_or(0, tickpath_feed::SnapshotHealer::waiting),
            recovery: self.recovery.counters(),
            next_sequence: self.channel.arbiter().next_sequence().0,
            strangers: self.lines.drops.strangers.read(),
            truncated: self.lines.drops.truncated.read(),
            kernel_drops: self.lines.kernel_drops(),
            updates: self.output.updates,
            trades: self.output.trades,
            ..ChannelStatus::default()
        };
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

    fn take_told(&mut self) -> ToldBooks {
        self.output.take_told(self.channel.books().instruments())
    }

    fn has_told(&self) -> bool {
        self.output.has_told()
    }
}

/// Counts the instruments that have a name by the health of their books, and says whether others have none.
pub(super) fn count_health<B: TopLevels>(instruments: &Instruments<B>, status: &mut ChannelStatus) {
    status.lacks_books = !instruments.is_whole();
    for state in instruments.ids().filter_map(|id| instruments.instrument(id)) {
        if state.symbol.is_some() {
            status.instruments += 1;
            status.health[state.health as usize] += 1;
        }
    }
}

/// The books of instruments that have a name and were asked for.
pub(super) fn list<'a, B: TopLevels>(
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
