//! Records the times between hops when a message is finalised.
//!
//! Each time between two hops is recorded once: when the message from which links lead to both hops is
//! finalised. Links lead from a market data message to its command and that command's token, from a command
//! to its token, and from a token, which is finalised last, to its trigger and its command.

use crate::counters::EntryCounts;
use crate::entries::{COMMAND_HOPS, COMMAND_PAIRS, MarketEntry, TOKEN_HOPS, VENUE_HOPS};
use crate::joiner::Joiner;
use crate::measure::Stamps;
use crate::table::Slot;
use crate::trades::Trade;
use crate::{CommandId, Hop, MarketId, Pair, Span, Token, TraceId};
use tickpath_types::Sequence;

/// Pairs recorded for a market data message.
const VENUE_PAIRS: [Pair; 4] = [Pair::T3T4, Pair::T4T5, Pair::T5T6w, Pair::T6wT6];
/// Pairs recorded for each feed handler that read a market data message.
const FEED_PAIRS: [Pair; 4] = [Pair::T6wT7k, Pair::T6T7, Pair::T6wT7, Pair::T7kT7];
/// Pairs recorded for a token; with `T7_T8` and `T8_T9` of its trigger they add up to `tick_to_trade`.
const DECISION_PAIRS: [Pair; 4] = [Pair::T9T10, Pair::T10T11, Pair::T11T12w, Pair::T12wT12];
/// Pairs recorded for a token; with the first [`RESPONSE_PAIRS`] of its command they add up to
/// `order_round_trip`.
const WIRE_PAIRS: [Pair; 2] = [Pair::T12wT1, Pair::T6twT7t];
/// Pairs recorded for a token and used by no reconciliation check.
const OTHER_PAIRS: [Pair; 4] = [Pair::T12T1, Pair::T1kT1, Pair::T7tT8t, Pair::T8tT9t];
/// Spans recorded for a token.
const TOKEN_SPANS: [Span; 5] = [
    Span::TickToTrade,
    Span::TickToTradeSoftware,
    Span::TickToTradeWithKernel,
    Span::TickToAck,
    Span::OrderRoundTrip,
];
/// Hops at which the trading engine stamps a token.
const ENGINE_HOPS: [Hop; 2] = [Hop::T10, Hop::T9t];
/// Hops at which the order gateway stamps a token.
const GATEWAY_HOPS: [Hop; 5] = [Hop::T11, Hop::T12w, Hop::T12, Hop::T7t, Hop::T8t];
/// Number of the first [`COMMAND_PAIRS`], `T1_T2` to `T5t_T6tw`, that add up to `venue_response`.
const RESPONSE_PAIRS: usize = COMMAND_PAIRS.len() - 1;

impl Joiner {
    pub(crate) fn finalise_market(&mut self, slot: Slot) {
        self.markets.finalise(slot);
        let mut entry = *self.markets.entry(slot);
        let mut stamps = Stamps::NONE;
        entry.venue.copy_to(VENUE_HOPS, &mut stamps);
        if let Some(command) = entry.command {
            self.copy_command_and_token(command, &mut stamps);
        }
        self.record_pairs(VENUE_PAIRS, &stamps);
        self.record_span(Span::VenuePublish, &stamps);
        for feed in 0..entry.feeds.len() {
            entry.copy_feed(feed as u8, &mut stamps);
            self.record_pairs(FEED_PAIRS, &stamps);
            entry.feeds[feed].t7_t8 = self.record_pair(Pair::T7T8, &stamps);
        }
        for engine in 0..entry.engines.len() {
            entry.copy_feed(entry.engines[engine].feed, &mut stamps);
            stamps.set(Hop::T9, entry.engines[engine].t9);
            entry.engines[engine].t8_t9 = self.record_pair(Pair::T8T9, &stamps);
        }
        *self.markets.entry_mut(slot) = entry;
        self.count_market(&entry, &stamps);
    }

    pub(crate) fn finalise_command(&mut self, slot: Slot) {
        self.commands.finalise(slot);
        let entry = *self.commands.entry(slot);
        let mut stamps = Stamps::NONE;
        entry.times.copy_to(COMMAND_HOPS, &mut stamps);
        if let Some(token) = entry.token {
            self.copy_token(token, CommandId(Sequence(self.commands.key(slot))), &mut stamps);
        }
        self.commands.entry_mut(slot).pairs = self.record_pairs(COMMAND_PAIRS, &stamps);
        self.record_span(Span::VenueResponse, &stamps);
        self.record_span(Span::VenueResponseWithKernel, &stamps);
        let missing = self.missing(&COMMAND_HOPS, &stamps);
        close(&mut self.counters.commands, &mut self.counters.missing, missing);
    }

    pub(crate) fn finalise_token(&mut self, slot: Slot) {
        self.tokens.finalise(slot);
        let entry = *self.tokens.entry(slot);
        let mut stamps = Stamps::NONE;
        entry.times.copy_to(TOKEN_HOPS, &mut stamps);
        let feed_to_engine = match entry.trigger {
            Some(trigger) => self.copy_trigger(trigger, &mut stamps),
            None => [None; 2],
        };
        let response = match entry.command {
            Some(command) => self.copy_command(command, &mut stamps),
            None => [None; RESPONSE_PAIRS],
        };
        let decision = self.record_pairs(DECISION_PAIRS, &stamps);
        let wire = self.record_pairs(WIRE_PAIRS, &stamps);
        self.record_pairs(OTHER_PAIRS, &stamps);
        for span in TOKEN_SPANS {
            self.record_span(span, &stamps);
        }
        let span = |span: Span| stamps.ticks(span.from(), span.to());
        let [tick_to_trade, venue_response, order_round_trip] = &mut self.checks;
        tick_to_trade.check(feed_to_engine.into_iter().chain(decision), span(Span::TickToTrade));
        venue_response.check(response, span(Span::VenueResponse));
        order_round_trip.check(response.into_iter().chain(wire), span(Span::OrderRoundTrip));
        let trade = Trade {
            token: Token::from_bits(self.tokens.key(slot)),
            trigger: entry.trigger,
            command: entry.command,
            stamps,
        };
        if trade.is_complete() {
            self.trades.keep(trade);
        }
        self.count_token(entry.trigger, &stamps);
    }

    /// Copies to `stamps` the times of the command that caused a market data message, and of the command's
    /// token.
    fn copy_command_and_token(&mut self, command: CommandId, stamps: &mut Stamps) {
        let Some(entry) = self.commands.find(command.bits()).copied() else {
            self.counters.orphans += 1;
            return;
        };
        entry.times.copy_to(COMMAND_HOPS, stamps);
        if let Some(token) = entry.token {
            self.copy_token(token, command, stamps);
        }
    }

    /// Copies the times of a command's token to `stamps`, unless the token's entry is that of another
    /// command: two cancels of one order share a token.
    fn copy_token(&mut self, token: Token, command: CommandId, stamps: &mut Stamps) {
        match self.tokens.find(token.bits()) {
            Some(entry) if entry.command == Some(command) => entry.times.copy_to(TOKEN_HOPS, stamps),
            Some(_) => {}
            None => self.counters.orphans += 1,
        }
    }

    /// Copies the times at the trigger's feed handler and engine to `stamps`; returns the recorded durations
    /// of its `T7_T8` and `T8_T9`.
    fn copy_trigger(&mut self, trigger: MarketId, stamps: &mut Stamps) -> [Option<i64>; 2] {
        match self.markets.find(trigger.sequence().0) {
            Some(entry) => {
                entry.copy_path(trigger, stamps);
                let feed = entry.feeds[usize::from(trigger.feed())];
                let engine = entry.engines[usize::from(trigger.engine())];
                [feed.t7_t8, engine.t8_t9]
            }
            None => {
                self.counters.orphans += 1;
                [None; 2]
            }
        }
    }

    /// Copies the command's times to `stamps`; returns the recorded durations of its first
    /// [`RESPONSE_PAIRS`].
    fn copy_command(&mut self, command: CommandId, stamps: &mut Stamps) -> [Option<i64>; RESPONSE_PAIRS] {
        match self.commands.find(command.bits()) {
            Some(entry) => {
                entry.times.copy_to(COMMAND_HOPS, stamps);
                std::array::from_fn(|index| entry.pairs[index])
            }
            None => {
                self.counters.orphans += 1;
                [None; RESPONSE_PAIRS]
            }
        }
    }

    /// Records the pairs whose two times are known; returns their durations in ticks.
    fn record_pairs<const N: usize>(&mut self, pairs: [Pair; N], stamps: &Stamps) -> [Option<i64>; N] {
        pairs.map(|pair| self.record_pair(pair, stamps))
    }

    fn record_pair(&mut self, pair: Pair, stamps: &Stamps) -> Option<i64> {
        let ticks = stamps.ticks(pair.from(), pair.to())?;
        self.pairs[pair.index()].record(ticks);
        Some(ticks)
    }

    fn record_span(&mut self, span: Span, stamps: &Stamps) {
        if let Some(ticks) = stamps.ticks(span.from(), span.to()) {
            self.spans[span.index()].record(ticks);
            self.latest[span.index()].record(ticks);
        }
    }

    fn count_market(&mut self, entry: &MarketEntry, stamps: &Stamps) {
        let mut missing = self.missing(&VENUE_HOPS, stamps);
        for (feed, _) in (0_u8..).zip(self.observed.feeds).filter(|(_, is_observed)| *is_observed) {
            let mut stamps = Stamps::NONE;
            entry.copy_feed(feed, &mut stamps);
            missing |= self.missing(&[Hop::T7, Hop::T8], &stamps);
        }
        if self
            .observed
            .engines
            .iter()
            .zip(&entry.engines)
            .any(|(is_observed, times)| *is_observed && times.t9 == 0)
        {
            missing |= bit(Hop::T9);
        }
        close(&mut self.counters.markets, &mut self.counters.missing, missing);
    }

    fn count_token(&mut self, trigger: Option<MarketId>, stamps: &Stamps) {
        let has_any = |hops: &[Hop]| hops.iter().any(|hop| stamps.at(*hop) != 0);
        let mut missing = self.missing(&[Hop::T1], stamps);
        if has_any(&GATEWAY_HOPS) || has_any(&ENGINE_HOPS) {
            missing |= self.missing(&GATEWAY_HOPS, stamps);
        }
        if trigger.is_some() || has_any(&ENGINE_HOPS) {
            missing |= self.missing(&ENGINE_HOPS, stamps);
        }
        close(&mut self.counters.tokens, &mut self.counters.missing, missing);
    }

    /// Returns a bit set of the `hops` at which other messages have a stamp and this one has none.
    fn missing(&self, hops: &[Hop], stamps: &Stamps) -> u32 {
        let is_missing = |hop: &&Hop| self.observed.hops[hop.index()] && stamps.at(**hop) == 0;
        hops.iter().filter(is_missing).fold(0, |bits, hop| bits | bit(*hop))
    }
}

const fn bit(hop: Hop) -> u32 {
    1 << hop.index()
}

/// Counts an entry as complete, or as incomplete with its missing hops.
fn close(counts: &mut EntryCounts, missing_counts: &mut [u64; Hop::COUNT], missing: u32) {
    if missing == 0 {
        counts.complete += 1;
        return;
    }
    counts.incomplete += 1;
    for (index, count) in missing_counts.iter_mut().enumerate() {
        *count += u64::from(missing >> index & 1);
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{Nanos, Sequence, SessionId, UserRefNum};

    use super::*;
    use crate::{Calibration, JoinerConfig, Stamp};

    const AGE: u64 = 1_000;

    /// A joiner that has finalised an order's trigger and command, but not its token.
    fn half_finalised() -> (Joiner, MarketId, CommandId) {
        let config =
            JoinerConfig { market_capacity: 4, command_capacity: 4, token_capacity: 4, age: Nanos(AGE) };
        let mut joiner = Joiner::new(config, Calibration::identity());
        let trigger = MarketId::new(Sequence(1)).via_feed(1).to_engine(2);
        let (token, command) = (Token::new(SessionId(1), UserRefNum(1), true), CommandId(Sequence(1)));
        let mut tsc = 0;
        let mut next = || {
            tsc += 10;
            tsc
        };
        for hop in [Hop::T7, Hop::T8, Hop::T9] {
            joiner.handle_stamp(Stamp::hop(hop, trigger, next()));
        }
        joiner.handle_stamp(Stamp::link(token, trigger));
        for hop in [Hop::T10, Hop::T11, Hop::T12w, Hop::T12, Hop::T1] {
            joiner.handle_stamp(Stamp::hop(hop, token, next()));
        }
        joiner.handle_stamp(Stamp::link(command, token));
        for hop in [Hop::T2, Hop::T3, Hop::T4t, Hop::T5t, Hop::T6tw] {
            joiner.handle_stamp(Stamp::hop(hop, command, next()));
        }
        joiner.handle_stamp(Stamp::hop(Hop::T7t, token, next()));
        joiner.handle_timeout(AGE / 2 + 100);
        assert_eq!((joiner.counters.markets.finalised(), joiner.counters.commands.finalised()), (1, 1));
        assert_eq!(joiner.counters.tokens.finalised(), 0);
        (joiner, trigger, command)
    }

    fn mismatches(mut joiner: Joiner) -> [(u64, u64); 3] {
        joiner.finish();
        joiner.checks().map(|check| (check.messages, check.mismatches))
    }

    #[test]
    fn an_untouched_chain_adds_up() {
        let (joiner, ..) = half_finalised();
        assert_eq!(mismatches(joiner), [(1, 0); 3]);
    }

    #[test]
    fn an_overwritten_trigger_is_a_mismatch() {
        let (mut joiner, trigger, _) = half_finalised();
        let slot = (0..4).find(|slot| joiner.markets.key(*slot) == trigger.sequence().0).unwrap();
        joiner.markets.entry_mut(slot).engines[usize::from(trigger.engine())].t9 += 1;
        assert_eq!(mismatches(joiner), [(1, 1), (1, 0), (1, 0)]);
    }

    #[test]
    fn an_overwritten_command_is_a_mismatch() {
        let (mut joiner, _, command) = half_finalised();
        let slot = (0..4).find(|slot| joiner.commands.key(*slot) == command.bits()).unwrap();
        let times = &mut joiner.commands.entry_mut(slot).times;
        *times = Default::default();
        assert!(times.keep(Hop::T6tw, 1));
        assert_eq!(mismatches(joiner), [(1, 0), (1, 1), (1, 1)]);
    }
}
