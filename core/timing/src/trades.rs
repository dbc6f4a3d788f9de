//! The latest complete trades, one of which appears in a report.

use crate::measure::Stamps;
use crate::{CommandId, Hop, MarketId, Span, Token};

/// Maximum number of kept trades.
const RECENT_TRADES_MAX: usize = 256;

/// One order with its trigger, its resulting command, and the stamps of all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trade {
    /// Token of the order.
    pub(crate) token: Token,
    /// The order's trigger, with the feed handler and the engine of its path.
    pub(crate) trigger: Option<MarketId>,
    /// The resulting command, if the venue is traced too.
    pub(crate) command: Option<CommandId>,
    pub(crate) stamps: Stamps,
}

impl Trade {
    /// Time at a hop, in ticks; `None` if unknown.
    pub(crate) const fn at(&self, hop: Hop) -> Option<u64> {
        match self.stamps.at(hop) {
            0 => None,
            tsc => Some(tsc),
        }
    }

    /// Duration of a span, in ticks; `None` if the time at either of its ends is unknown.
    pub(crate) fn span_ticks(&self, span: Span) -> Option<i64> {
        self.stamps.ticks(span.from(), span.to())
    }

    /// True when every hop from the feed handler's read to the order's write is known.
    pub(crate) fn is_complete(&self) -> bool {
        [Hop::T7, Hop::T8, Hop::T9, Hop::T10, Hop::T11, Hop::T12w, Hop::T12]
            .into_iter()
            .all(|hop| self.at(hop).is_some())
    }
}

/// Keeps the latest [`RECENT_TRADES_MAX`] trades; all memory is allocated at creation.
pub(crate) struct Trades {
    recent: Vec<Trade>,
    /// Index that the next trade overwrites once `recent` is full.
    next: usize,
}

impl Trades {
    pub(crate) fn new() -> Trades {
        Trades { recent: Vec::with_capacity(RECENT_TRADES_MAX), next: 0 }
    }

    pub(crate) fn keep(&mut self, trade: Trade) {
        if self.recent.len() < RECENT_TRADES_MAX {
            self.recent.push(trade);
        } else {
            self.recent[self.next] = trade;
            self.next = (self.next + 1) % RECENT_TRADES_MAX;
        }
    }

    /// The kept trade whose duration of `span` is nearest to `ticks`.
    pub(crate) fn nearest(&self, span: Span, ticks: u64) -> Option<&Trade> {
        self.recent
            .iter()
            .filter_map(|trade| Some((trade.span_ticks(span)?.abs_diff(ticks as i64), trade)))
            .min_by_key(|(off, _)| *off)
            .map(|(_, trade)| trade)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{SessionId, UserRefNum};

    use super::*;

    fn trade(number: u32, ticks: u64) -> Trade {
        let mut stamps = Stamps::NONE;
        stamps.set(Hop::T7, 1_000);
        stamps.set(Hop::T12, 1_000 + ticks);
        Trade {
            token: Token::new(SessionId(1), UserRefNum(number), true),
            trigger: None,
            command: None,
            stamps,
        }
    }

    #[test]
    fn the_latest_are_kept() {
        let mut trades = Trades::new();
        for number in 0..=RECENT_TRADES_MAX as u32 {
            trades.keep(trade(number, u64::from(number) * 7 % 256));
        }
        assert_eq!(trades.recent.len(), RECENT_TRADES_MAX);
        let numbers = |user_ref: u32| trades.recent.iter().any(|trade| trade.token.user_ref().0 == user_ref);
        assert!(!numbers(0) && numbers(1) && numbers(RECENT_TRADES_MAX as u32));
        assert_eq!(trades.recent.capacity(), RECENT_TRADES_MAX);
        let nearest = trades.nearest(Span::TickToTrade, 100).unwrap();
        assert_eq!(nearest.span_ticks(Span::TickToTrade), Some(100));
        assert_eq!(trades.nearest(Span::TickToAck, 100), None);
    }
}
