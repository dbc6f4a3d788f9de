//! Joins the stamps of all agents by id, online and in fixed memory.

use tickpath_lockfree::records;
use tickpath_types::{Nanos, Sequence};

use crate::counters::{Counters, EntryCounts, ObservedHops};
use crate::entries::{CommandEntry, MarketEntry, TokenEntry};
use crate::series::Series;
use crate::table::{EnterResult, Slot, Table};
use crate::trades::Trades;
use crate::{
    Calibration, CommandId, ENGINES_MAX, FEEDS_MAX, Function, Hop, IdSpace, MarketId, Pair,
    ReconciliationCheck, Span, Stamp, StampKind, Token, TraceId,
};

/// Capacities of a [`Joiner`], and the age at which it finalises messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinerConfig {
    /// Capacity for market data messages, rounded up to a power of two; 300 bytes each. If there is no free
    /// slot, an old message is finalised early and counted as displaced. Choose slightly more than the number
    /// of messages that arrive within `age`.
    pub market_capacity: usize,
    /// Capacity for commands, with the same rules; 200 bytes each.
    pub command_capacity: usize,
    /// Capacity for order tokens, with the same rules; 150 bytes each.
    pub token_capacity: usize,
    /// Time from the first record of an order token until it is finalised. Market data messages and commands
    /// are finalised after half this time, before the tokens that refer to them. Later stamps are counted but
    /// not joined.
    pub age: Nanos,
}

impl Default for JoinerConfig {
    /// These capacities suffice for 250,000 market data messages, and half as many commands, per second.
    fn default() -> Self {
        JoinerConfig {
            market_capacity: 1 << 16,
            command_capacity: 1 << 15,
            token_capacity: 1 << 15,
            age: Nanos::from_millis(250),
        }
    }
}

/// Joins stamps by id into the times of hops, spans and functions.
///
/// Accepts the records of all rings with any interleaving, if the records of each ring keep their order. A
/// table holds each message's data by its id. Once the message is old enough, or its slot is needed, it is
/// *finalised*: the times between its hops are recorded, missing stamps are counted, and the entry remains
/// readable for the messages that refer to it. Stamps are never joined by closeness in time.
///
/// One joiner follows one market data session, one command log, up to [`FEEDS_MAX`] feed handlers and
/// [`ENGINES_MAX`] engines. All memory, some 40 MiB by default, is allocated at creation.
///
/// A message is *complete* when it has a stamp of every hop, feed handler and engine that was ever observed.
/// The kernel's times are optional. Other clients may not be traced: a token without any client stamp needs
/// none. A token with neither a trigger nor an engine stamp needs no engine stamp.
pub struct Joiner {
    pub(crate) calibration: Calibration,
    pub(crate) markets: Table<MarketEntry>,
    pub(crate) commands: Table<CommandEntry>,
    pub(crate) tokens: Table<TokenEntry>,
    pub(crate) pairs: Vec<Series>,
    pub(crate) spans: Vec<Series>,
    pub(crate) functions: Vec<Series>,
    pub(crate) trades: Trades,
    /// Reconciliation checks of `tick_to_trade`, `venue_response` and `order_round_trip`.
    pub(crate) checks: [ReconciliationCheck; 3],
    /// Durations of each span since the last call of [`live`](Joiner::live), by [`Span::index`].
    pub(crate) latest: Vec<Series>,
    pub(crate) counters: Counters,
    pub(crate) observed: ObservedHops,
    /// Earliest and latest time of any stamp, in ticks.
    pub(crate) stamped: [u64; 2],
    /// Age in ticks at which a token is finalised.
    age: u64,
    /// Latest time passed by a caller or found in a stamp, in ticks; new table entries get this entry time.
    now: u64,
}

impl Joiner {
    /// Creates an empty joiner.
    ///
    /// # Panics
    /// If a capacity exceeds 2^28.
    #[must_use]
    pub fn new(config: JoinerConfig, calibration: Calibration) -> Joiner {
        let series = |count| (0..count).map(|_| Series::new(calibration)).collect();
        Joiner {
            calibration,
            markets: Table::new(config.market_capacity),
            commands: Table::new(config.command_capacity),
            tokens: Table::new(config.token_capacity),
            pairs: series(Pair::COUNT),
            spans: series(Span::COUNT),
            functions: series(Function::COUNT),
            trades: Trades::new(),
            checks: [Span::TickToTrade, Span::VenueResponse, Span::OrderRoundTrip]
                .map(ReconciliationCheck::new),
            latest: series(Span::COUNT),
            counters: Counters::default(),
            observed: ObservedHops::default(),
            stamped: [u64::MAX, 0],
            age: calibration.ticks(config.age),
            now: 0,
        }
    }

    /// Handles up to `max_per_ring` records of each ring, then finalises entries that are old enough at
    /// `now`, in ticks. Returns the number of records.
    ///
    /// If any ring delivers `max_per_ring` records, the call finalises nothing, so that the records left in
    /// that ring are not late. `max_per_ring` should be well above the number of records that a ring receives
    /// between two calls.
    pub fn drain(&mut self, rings: &mut [records::Consumer<Stamp>], max_per_ring: usize, now: u64) -> usize {
        self.now = self.now.max(now);
        let (mut taken, mut is_behind) = (0, false);
        for ring in rings.iter_mut() {
            let count = ring.drain(max_per_ring, |stamp| self.handle_stamp(*stamp));
            taken += count;
            is_behind |= count == max_per_ring;
        }
        self.counters.dropped = rings.iter().map(records::Consumer::dropped).sum();
        if !is_behind {
            self.handle_timeout(now);
        }
        taken
    }

    /// Handles one record.
    pub fn handle_stamp(&mut self, stamp: Stamp) {
        self.counters.records += 1;
        match stamp.decode() {
            Some(StampKind::Hop { hop, id, tsc }) => self.on_hop(hop, id, tsc),
            Some(StampKind::HopRange { hop, first, count, tsc }) => {
                (0..u64::from(count)).for_each(|offset| self.on_hop(hop, first.bits() + offset, tsc));
            }
            Some(StampKind::TokenFromMarket(token, trigger)) => self.on_trigger(token, trigger),
            Some(StampKind::CommandFromToken(command, token)) => self.on_sequenced(command, token),
            Some(StampKind::MarketFromCommand(market, command)) => self.on_published(market, command),
            Some(StampKind::Time { function, ticks }) => {
                self.functions[function.index()].record(ticks.min(i64::MAX as u64) as i64);
            }
            None => self.counters.unrecognised += 1,
        }
    }

    /// Finalises entries that are old enough at `now`, in ticks; call it when all rings have been emptied. An
    /// entry's age starts at the latest time known to the joiner when the entry's first record arrived.
    pub fn handle_timeout(&mut self, now: u64) {
        self.now = self.now.max(now);
        self.finalise_before(now.saturating_sub(self.age / 2), now.saturating_sub(self.age));
    }

    /// Finalises market data messages and commands entered before `causes`, and tokens entered before
    /// `tokens`.
    fn finalise_before(&mut self, causes: u64, tokens: u64) {
        while let Some(slot) = self.markets.oldest_before(causes) {
            self.finalise_market(slot);
        }
        while let Some(slot) = self.commands.oldest_before(causes) {
            self.finalise_command(slot);
        }
        while let Some(slot) = self.tokens.oldest_before(tokens) {
            self.finalise_token(slot);
        }
    }

    /// Finalises and removes all entries; keeps the results. Call it at the end, and before ids restart at 1.
    pub fn finish(&mut self) {
        self.finalise_before(u64::MAX, u64::MAX);
        self.markets.clear();
        self.commands.clear();
        self.tokens.clear();
    }

    /// Counters of the records so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The reconciliation checks, one per checked span: the times between its hops must add up to the span.
    #[must_use]
    pub const fn checks(&self) -> [ReconciliationCheck; 3] {
        self.checks
    }

    fn on_hop(&mut self, hop: Hop, id: u64, tsc: u64) {
        if tsc == 0 {
            return;
        }
        self.now = self.now.max(tsc);
        self.stamped = [self.stamped[0].min(tsc), self.stamped[1].max(tsc)];
        let is_first = match hop.space() {
            IdSpace::Market => self.on_market_hop(hop, MarketId::from_bits(id), tsc),
            IdSpace::Command => self
                .command(CommandId(Sequence(id)))
                .map(|slot| self.commands.entry_mut(slot).times.keep(hop, tsc)),
            IdSpace::Token => {
                self.token(Token::from_bits(id)).map(|slot| self.tokens.entry_mut(slot).times.keep(hop, tsc))
            }
        };
        if let Some(is_first) = is_first {
            self.observed.hops[hop.index()] = true;
            self.count_duplicate(is_first);
        }
    }

    fn on_market_hop(&mut self, hop: Hop, id: MarketId, tsc: u64) -> Option<bool> {
        if !self.is_known_observer(id) {
            return None;
        }
        let slot = self.market(id)?;
        match hop {
            Hop::T7 | Hop::T8 => self.observed.feeds[usize::from(id.feed())] = true,
            Hop::T9 => self.observed.engines[usize::from(id.engine())] = true,
            _ => {}
        }
        Some(self.markets.entry_mut(slot).keep(hop, id, tsc))
    }

    fn on_trigger(&mut self, token: Token, trigger: MarketId) {
        if self.is_known_observer(trigger)
            && let Some(slot) = self.token(token)
        {
            let is_first = link(&mut self.tokens.entry_mut(slot).trigger, trigger);
            self.count_duplicate(is_first);
        }
    }

    /// Links the entries of `command` and `token` to each other, because each is looked up from the other.
    fn on_sequenced(&mut self, command: CommandId, token: Token) {
        if let Some(slot) = self.command(command) {
            let is_first = link(&mut self.commands.entry_mut(slot).token, token);
            self.count_duplicate(is_first);
        }
        if let Some(slot) = self.token(token) {
            link(&mut self.tokens.entry_mut(slot).command, command);
        }
    }

    fn on_published(&mut self, market: MarketId, command: CommandId) {
        if let Some(slot) = self.market(market) {
            let is_first = link(&mut self.markets.entry_mut(slot).command, command);
            self.count_duplicate(is_first);
        }
    }

    fn is_known_observer(&mut self, id: MarketId) -> bool {
        let is_known = usize::from(id.feed()) < FEEDS_MAX && usize::from(id.engine()) < ENGINES_MAX;
        self.counters.unknown_observer += u64::from(!is_known);
        is_known
    }

    fn count_duplicate(&mut self, is_first: bool) {
        self.counters.duplicates += u64::from(!is_first);
    }

    fn market(&mut self, id: MarketId) -> Option<Slot> {
        let key = id.sequence().0;
        self.enter(key, |joiner| (&mut joiner.markets, &mut joiner.counters.markets), Joiner::finalise_market)
    }

    fn command(&mut self, id: CommandId) -> Option<Slot> {
        let key = id.bits();
        self.enter(
            key,
            |joiner| (&mut joiner.commands, &mut joiner.counters.commands),
            Joiner::finalise_command,
        )
    }

    fn token(&mut self, id: Token) -> Option<Slot> {
        let key = id.bits();
        self.enter(key, |joiner| (&mut joiner.tokens, &mut joiner.counters.tokens), Joiner::finalise_token)
    }

    /// Returns the live entry of an id; creates it if there is none. If the id's entry is finalised, counts
    /// the record as late and returns `None`.
    #[inline]
    fn enter<E: Clone + Default>(
        &mut self,
        key: u64,
        table: fn(&mut Joiner) -> (&mut Table<E>, &mut EntryCounts),
        finalise: fn(&mut Joiner, Slot),
    ) -> Option<Slot> {
        let now = self.now;
        loop {
            let (entries, counts) = table(self);
            match entries.enter(key, now) {
                EnterResult::Live(slot) => return Some(slot),
                EnterResult::Finalised => {
                    self.counters.late += 1;
                    return None;
                }
                EnterResult::Full(oldest) => {
                    counts.displaced += 1;
                    finalise(self, oldest);
                }
            }
        }
    }
}

/// Sets `slot` to `parent` unless it is already set; returns true if it was unset.
fn link<T>(slot: &mut Option<T>, parent: T) -> bool {
    let is_first = slot.is_none();
    slot.get_or_insert(parent);
    is_first
}
