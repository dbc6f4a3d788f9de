//! Compares the venue's executions with those of a recording.

use tickpath_capture::flow::Expected;
use tickpath_types::{CancelReason, Liquidity, MatchId, OrderEventKind, Price, Qty, UserRefNum};

use super::session::TAKER;

/// Number of consecutive ids whose entries are kept: far more than the orders and executions in flight.
const RETAINED: usize = 1 << 12;

/// The newest entries by id. The entry with id `n` replaces the one with id `n - RETAINED`.
struct RecentEntries<T>(Box<[Option<(u64, T)>]>);

impl<T: Copy> RecentEntries<T> {
    fn new() -> RecentEntries<T> {
        RecentEntries(vec![None; RETAINED].into_boxed_slice())
    }

    fn slot(&mut self, number: u64) -> &mut Option<(u64, T)> {
        &mut self.0[number as usize % RETAINED]
    }

    fn insert(&mut self, number: u64, entry: T) {
        *self.slot(number) = Some((number, entry));
    }

    fn remove(&mut self, number: u64) -> Option<T> {
        self.slot(number).take_if(|(kept, _)| *kept == number).map(|(_, entry)| entry)
    }
}

/// The two sides of one execution, each `None` until its event arrives.
#[derive(Clone, Copy, Default)]
struct Match {
    taker: Option<Side>,
    maker: Option<Side>,
}

#[derive(Clone, Copy)]
struct Side {
    order: UserRefNum,
    price: Price,
    qty: Qty,
}

/// Checks the venue's executions against the recording.
pub(super) struct FillVerifier {
    /// Expected executions by the taker's UserRefNum.
    expected: RecentEntries<Expected>,
    /// Executions of which only one side's event has arrived, by match number. The event of a
    /// guest's side never arrives: it goes to the guest's session.
    matches: RecentEntries<Match>,
    pub(super) confirmed: u64,
    pub(super) contradicted: u64,
    pub(super) rejected: u64,
    pub(super) would_have_crossed: u64,
    pub(super) expected_total: u64,
}

impl FillVerifier {
    pub(super) fn new() -> FillVerifier {
        FillVerifier {
            expected: RecentEntries::new(),
            matches: RecentEntries::new(),
            confirmed: 0,
            contradicted: 0,
            rejected: 0,
            would_have_crossed: 0,
            expected_total: 0,
        }
    }

    /// Records a sent order of the taker and its expected trade.
    pub(super) fn expect(&mut self, taker: UserRefNum, expected: Expected) {
        self.expected.insert(taker.0.into(), expected);
        self.expected_total += 1;
    }

    /// Handles an event that the venue sent to `session`, which is [`TAKER`] or the maker's.
    pub(super) fn on_order_event(&mut self, session: usize, kind: &OrderEventKind) {
        match *kind {
            OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
                self.on_execution(match_id, liquidity, Side { order: user_ref, price, qty });
            }
            OrderEventKind::Canceled { user_ref, reason: CancelReason::ImmediateOrCancel, .. }
                if session == TAKER =>
            {
                self.contradict(user_ref);
            }
            OrderEventKind::Canceled { reason: CancelReason::PostOnly, .. } => self.would_have_crossed += 1,
            OrderEventKind::Rejected { user_ref, .. } => {
                self.rejected += 1;
                if session == TAKER {
                    self.contradict(user_ref);
                }
            }
            _ => {}
        }
    }

    fn on_execution(&mut self, match_id: MatchId, liquidity: Liquidity, side: Side) {
        let mut sides = self.matches.remove(match_id.0).unwrap_or_default();
        *(if liquidity == Liquidity::Removed { &mut sides.taker } else { &mut sides.maker }) = Some(side);
        match sides {
            Match { taker: Some(taker), maker: Some(maker) } => self.compare(taker, maker),
            _ => self.matches.insert(match_id.0, sides),
        }
    }

    fn contradict(&mut self, taker: UserRefNum) {
        self.contradicted += u64::from(self.expected.remove(taker.0.into()).is_some());
    }

    fn compare(&mut self, taker: Side, maker: Side) {
        let Some(expected) = self.expected.remove(taker.order.0.into()) else { return };
        let is_as_expected = maker.order == expected.resting
            && [maker, taker].iter().all(|side| (side.price, side.qty) == (expected.price, expected.qty));
        *(if is_as_expected { &mut self.confirmed } else { &mut self.contradicted }) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAKER;
    use super::*;

    fn executed(user_ref: u32, liquidity: Liquidity, price: i64, match_id: u64) -> OrderEventKind {
        OrderEventKind::Executed {
            user_ref: UserRefNum(user_ref),
            qty: Qty(5),
            price: Price(price),
            liquidity,
            match_id: MatchId(match_id),
        }
    }

    fn fill_verifier() -> FillVerifier {
        let mut fill_verifier = FillVerifier::new();
        fill_verifier
            .expect(UserRefNum(1), Expected { resting: UserRefNum(7), price: Price(100), qty: Qty(5) });
        fill_verifier
    }

    #[test]
    fn both_sides_must_match_the_recording() {
        for (resting, price, verdict) in [(7, 100, (1, 0)), (8, 100, (0, 1)), (7, 101, (0, 1))] {
            let mut fill_verifier = fill_verifier();
            fill_verifier.on_order_event(MAKER, &executed(resting, Liquidity::Added, price, 1));
            assert_eq!(
                (fill_verifier.confirmed, fill_verifier.contradicted),
                (0, 0),
                "one side is not enough"
            );
            fill_verifier.on_order_event(TAKER, &executed(1, Liquidity::Removed, price, 1));
            assert_eq!((fill_verifier.confirmed, fill_verifier.contradicted), verdict);
        }
    }

    #[test]
    fn an_execution_that_does_not_happen_contradicts() {
        let mut fill_verifier = fill_verifier();
        let canceled = OrderEventKind::Canceled {
            user_ref: UserRefNum(1),
            decrement: Qty(5),
            reason: CancelReason::ImmediateOrCancel,
        };
        fill_verifier.on_order_event(TAKER, &canceled);
        assert_eq!((fill_verifier.confirmed, fill_verifier.contradicted), (0, 1));
        fill_verifier.on_order_event(TAKER, &canceled);
        assert_eq!(fill_verifier.contradicted, 1, "once");
    }

    #[test]
    fn one_side_of_a_guests_execution_is_overwritten() {
        let mut fill_verifier = fill_verifier();
        fill_verifier.on_order_event(MAKER, &executed(3, Liquidity::Added, 100, 2));
        // This match number uses the slot of match number 2.
        let match_id = 2 + RETAINED as u64;
        fill_verifier.on_order_event(MAKER, &executed(7, Liquidity::Added, 100, match_id));
        fill_verifier.on_order_event(TAKER, &executed(1, Liquidity::Removed, 100, match_id));
        assert_eq!((fill_verifier.confirmed, fill_verifier.contradicted), (1, 0));
    }
}
