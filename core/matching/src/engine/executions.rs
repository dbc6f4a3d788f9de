//! The latest executions, which can still be busted.

use tickpath_book::Order;
use tickpath_faults::failpoint;
use tickpath_types::{
    BrokenReason, InstrumentId, Liquidity, MarketEventKind, MatchId, OrderEventKind, Price, Qty, SessionId,
    UserRefNum,
};
use xxhash_rust::xxh3::Xxh3;

use super::context::Context;
use super::owner::{Owner, order_key, user_ref_of};
use crate::EventListener;

/// Number of bits of an [`order_key`], the mask of these bits, and the flag of a valid [`Execution`].
const KEY_BITS: u32 = 48;
const KEY: u64 = (1 << KEY_BITS) - 1;
const VALID: u64 = 1 << 63;

/// The two orders of an execution and their instrument, packed into two words for cheap recording.
///
/// The low bits of each word are an order's key. The high bits of the first word hold [`VALID`], which is
/// clear in an unused slot and in a busted execution. The high bits of the second word hold the instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Execution([u64; 2]);

impl Execution {
    pub(super) const NONE: Execution = Execution([0; 2]);

    /// A valid execution between the order `first` and the resting order `rested`.
    #[inline(always)]
    pub(super) fn new(
        first: (SessionId, UserRefNum),
        rested: (SessionId, UserRefNum),
        instrument: InstrumentId,
    ) -> Execution {
        Execution([
            order_key(first.0, first.1) | VALID,
            order_key(rested.0, rested.1) | u64::from(instrument.0) << KEY_BITS,
        ])
    }

    /// The two orders: the `first` and the `rested` one of [`Execution::new`].
    pub(super) fn orders(&self) -> [(SessionId, UserRefNum); 2] {
        self.0.map(|word| (SessionId(((word & KEY) >> 32) as u16), user_ref_of(word)))
    }

    pub(super) const fn instrument(&self) -> InstrumentId {
        InstrumentId((self.0[1] >> KEY_BITS) as u16)
    }

    const fn is_valid(&self) -> bool {
        self.0[0] & VALID != 0
    }
}

/// The latest executions by match id. Older ones are overwritten and can no longer be busted.
#[derive(Clone, Debug)]
pub(super) struct Executions {
    /// The slots; their number is a power of two. An execution's slot is its match id modulo this number.
    slots: Vec<Execution>,
}

impl Executions {
    pub(super) fn new(max: u32) -> Executions {
        Executions { slots: vec![Execution::NONE; max.next_power_of_two() as usize] }
    }

    #[inline(always)]
    pub(super) fn record(&mut self, id: MatchId, execution: Execution) {
        let slot = self.slot(id);
        self.slots[slot] = execution;
    }

    /// Records an execution and reports it to both owners, the owner of the resting order last.
    #[inline(always)]
    pub(super) fn execute(
        &mut self,
        (session, user_ref, liquidity): (SessionId, UserRefNum, Liquidity),
        resting: &Order<Owner>,
        rested: Liquidity,
        qty: Qty,
        price: Price,
        context: &mut Context<impl EventListener>,
    ) -> MatchId {
        let progress = &mut *context.progress;
        progress.counters.executions += 1;
        progress.last_match_id.0 += 1;
        failpoint!(MatchNumberReused => progress.last_match_id.0 -= 1, for progress.counters.executions);
        let match_id = progress.last_match_id;
        let executed =
            |user_ref, liquidity| OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id };
        context.report(session, false, executed(user_ref, liquidity));
        let Owner { session: other, user_ref: other_ref, .. } = resting.data;
        let execution = Execution::new((session, user_ref), (other, other_ref), resting.instrument);
        failpoint!(TradeUntold => { self.record(match_id, execution); return match_id });
        context.report(other, false, executed(other_ref, rested));
        self.record(match_id, execution);
        match_id
    }

    /// Busts an execution, at most once, and reports that to both owners and the public.
    #[cold]
    pub(super) fn break_trade(
        &mut self,
        match_id: MatchId,
        reason: BrokenReason,
        context: &mut Context<impl EventListener>,
    ) {
        let Some(execution) = self.take_valid(match_id, context.progress.last_match_id) else {
            return context.ignore();
        };
        for (session, user_ref) in execution.orders() {
            context.report(session, false, OrderEventKind::Broken { user_ref, match_id, reason });
        }
        context.publish(execution.instrument(), MarketEventKind::TradeBroken { match_id });
    }

    /// Removes and returns an execution if it is recorded and not busted. `last` is the latest match id.
    fn take_valid(&mut self, id: MatchId, last: MatchId) -> Option<Execution> {
        let slot = self.slot(id);
        let execution = self.slots[slot];
        if !self.is_remembered(id, last) || !execution.is_valid() {
            return None;
        }
        failpoint!(TradeBrokenTwice => return Some(execution));
        self.slots[slot] = Execution::NONE;
        Some(execution)
    }

    /// True when `id` is among the latest executions; `last` is the latest match id.
    pub(super) fn is_remembered(&self, id: MatchId, last: MatchId) -> bool {
        id.0 >= 1 && id <= last && last.0 - id.0 < self.slots.len() as u64
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(Execution::NONE);
    }

    #[inline(always)]
    fn slot(&self, id: MatchId) -> usize {
        id.0 as usize & (self.slots.len() - 1)
    }

    /// Recorded executions that are not busted, by ascending match id; `last` is the latest match id.
    pub(super) fn valid_executions(&self, last: MatchId) -> impl Iterator<Item = (MatchId, Execution)> {
        let first = last.0.saturating_sub(self.slots.len() as u64 - 1).max(1);
        let all = (first..=last.0).map(MatchId).map(|id| (id, self.slots[self.slot(id)]));
        all.filter(|(_, execution)| execution.is_valid())
    }

    pub(super) fn hash(&self, last: MatchId, hasher: &mut Xxh3) {
        for (id, Execution(words)) in self.valid_executions(last) {
            for word in [id.0, words[0], words[1]] {
                hasher.update(&word.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit() {
        let (first, rested) = ((SessionId(u16::MAX), UserRefNum(7)), (SessionId(3), UserRefNum(u32::MAX)));
        for (first, rested) in [(first, rested), (rested, first)] {
            let execution = Execution::new(first, rested, InstrumentId(u16::MAX));
            assert_eq!(execution.orders(), [first, rested]);
            assert_eq!(execution.instrument(), InstrumentId(u16::MAX));
            assert!(execution.is_valid());
        }
        assert!(!Execution::NONE.is_valid());
    }
}
