//! Compares the venue's executions with those of a recording.

use tickpath_capture::flow::Expected;
use tickpath_types::{CancelReason, Liquidity, MatchId, OrderEventKind, Price, Qty, UserRefNum};

use super::session::TAKER;

/// Number of consecutive numbers whose entries are kept: far more than the orders and executions in flight.
const KEPT: usize = 1 << 12;

/// The newest entries by number: each stays until it is taken or replaced by one [`KEPT`] numbers later.
struct Newest<T>(Box<[Option<(u64, T)>]>);

impl<T: Copy> Newest<T> {
    fn new() -> Newest<T> {
        Newest(vec![None; KEPT].into_boxed_slice())
    }

    fn slot(&mut self, number: u64) -> &mut Option<(u64, T)> {
        &mut self.0[number as usize % KEPT]
    }

    fn insert(&mut self, number: u64, entry: T) {
        *self.slot(number) = Some((number, entry));
    }

    fn remove(&mut self, number: u64) -> Option<T> {
        self.slot(number).take_if(|(kept, _)| *kept == number).map(|(_, entry)| entry)
    }
}

/// The venue's events of one execution, from its two sides.
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
pub(super) struct Referee {
    /// Indexed by the number of the taker's order.
    expected: Newest<Expected>,
    /// Executions with an event of one side. A guest's side never arrives: its entries are overwritten.
    matches: Newest<Match>,
    pub(super) confirmed: u64,
    pub(super) contradicted: u64,
    pub(super) rejected: u64,
    pub(super) would_have_crossed: u64,
    pub(super) expected_total: u64,
}

impl Referee {
    pub(super) fn new() -> Referee {
        Referee {
            expected: Newest::new(),
            matches: Newest::new(),
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

    /// Handles an event that the venue sent to a session.
    pub(super) fn hear(&mut self, session: usize, kind: &OrderEventKind) {
        match *kind {
            OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
                self.hear_execution(match_id, liquidity, Side { order: user_ref, price, qty });
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

    fn hear_execution(&mut self, match_id: MatchId, liquidity: Liquidity, side: Side) {
        let mut heard = self.matches.remove(match_id.0).unwrap_or_default();
        *(if liquidity == Liquidity::Removed { &mut heard.taker } else { &mut heard.maker }) = Some(side);
        match heard {
            Match { taker: Some(taker), maker: Some(maker) } => self.judge(taker, maker),
            _ => self.matches.insert(match_id.0, heard),
        }
    }

    fn contradict(&mut self, taker: UserRefNum) {
        self.contradicted += u64::from(self.expected.remove(taker.0.into()).is_some());
    }

    fn judge(&mut self, taker: Side, maker: Side) {
        let Some(expected) = self.expected.remove(taker.order.0.into()) else { return };
        let is_as_said = maker.order == expected.resting
            && [maker, taker].iter().all(|side| (side.price, side.qty) == (expected.price, expected.qty));
        *(if is_as_said { &mut self.confirmed } else { &mut self.contradicted }) += 1;
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

    fn referee() -> Referee {
        let mut referee = Referee::new();
        referee.expect(UserRefNum(1), Expected { resting: UserRefNum(7), price: Price(100), qty: Qty(5) });
        referee
    }

    #[test]
    fn both_sides_must_say_what_the_recording_says() {
        for (resting, price, verdict) in [(7, 100, (1, 0)), (8, 100, (0, 1)), (7, 101, (0, 1))] {
            let mut referee = referee();
            referee.hear(MAKER, &executed(resting, Liquidity::Added, price, 1));
            assert_eq!((referee.confirmed, referee.contradicted), (0, 0), "one side is not enough");
            referee.hear(TAKER, &executed(1, Liquidity::Removed, price, 1));
            assert_eq!((referee.confirmed, referee.contradicted), verdict);
        }
    }

    #[test]
    fn an_execution_that_does_not_happen_contradicts() {
        let mut referee = referee();
        let canceled = OrderEventKind::Canceled {
            user_ref: UserRefNum(1),
            decrement: Qty(5),
            reason: CancelReason::ImmediateOrCancel,
        };
        referee.hear(TAKER, &canceled);
        assert_eq!((referee.confirmed, referee.contradicted), (0, 1));
        referee.hear(TAKER, &canceled);
        assert_eq!(referee.contradicted, 1, "once");
    }

    #[test]
    fn one_side_of_a_guests_execution_stands_in_nobodys_way() {
        let mut referee = referee();
        referee.hear(MAKER, &executed(3, Liquidity::Added, 100, 2));
        // The same slot, one wrap later.
        let match_id = 2 + KEPT as u64;
        referee.hear(MAKER, &executed(7, Liquidity::Added, 100, match_id));
        referee.hear(TAKER, &executed(1, Liquidity::Removed, 100, match_id));
        assert_eq!((referee.confirmed, referee.contradicted), (1, 0));
    }
}
