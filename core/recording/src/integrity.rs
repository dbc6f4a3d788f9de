//! Consistency checks of a recording.

use serde::Serialize;
use tickpath_types::{SystemEventCode, TradingState};

/// Count and first position of one kind of contradiction or invalid value in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The number of occurrences.
    pub count: u64,
    /// Position of the first occurrence, as text.
    pub first: Option<String>,
}

impl Finding {
    /// Counts one more occurrence.
    #[inline]
    pub(crate) fn add(&mut self, place: impl FnOnce() -> String) {
        self.add_all(1, place);
    }

    /// Counts `count` occurrences at one position.
    #[inline]
    pub(crate) fn add_all(&mut self, count: u64, place: impl FnOnce() -> String) {
        if count > 0 {
            self.count += count;
            self.first.get_or_insert_with(place);
        }
    }

    fn merge(&mut self, other: &Finding) {
        self.count += other.count;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Messages that left a book crossed: its best bid at or above its best ask. Each is counted by the market's
/// state: the instrument's last published state if that is not trading, otherwise the session's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crossed {
    /// Before the start of market hours.
    pub before_open: Finding,
    /// In continuous trading, where no book can be crossed.
    pub trading: Finding,
    /// While only quotation was allowed, before an auction.
    pub quotation_only: Finding,
    /// While trading was halted or paused.
    pub halted: Finding,
    /// After the end of market hours.
    pub after_close: Finding,
    /// Without a published state of the instrument, in market hours or in an unknown state of the session.
    pub unknown: Finding,
    /// The messages counted above for which the instrument's published state was trading. Orders are matched
    /// in that state, also outside market hours, so a crossed book contradicts the recording. In any other
    /// state, a crossed book may be correct.
    pub contradictory: Finding,
}

/// The last published states of the session and an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarketState {
    /// The last system event of the session.
    pub(crate) stage: Option<SystemEventCode>,
    /// The last published trading state of the instrument.
    pub(crate) trading: Option<TradingState>,
}

impl Crossed {
    /// Counts a message that left a book crossed.
    pub(crate) fn add(&mut self, state: MarketState, place: impl Fn() -> String) {
        if state.trading == Some(TradingState::Trading) {
            self.contradictory.add(&place);
        }
        self.of(state).add(place);
    }

    fn of(&mut self, state: MarketState) -> &mut Finding {
        use SystemEventCode::{
            EndOfMarketHours, EndOfMessages, EndOfSystemHours, StartOfMarketHours, StartOfMessages,
            StartOfSystemHours,
        };
        match (state.trading, state.stage) {
            (Some(TradingState::Halted | TradingState::Paused), _) => &mut self.halted,
            (Some(TradingState::QuotationOnly), _) => &mut self.quotation_only,
            (_, Some(StartOfMessages | StartOfSystemHours)) => &mut self.before_open,
            (_, Some(EndOfMarketHours | EndOfSystemHours | EndOfMessages)) => &mut self.after_close,
            (Some(TradingState::Trading), Some(StartOfMarketHours) | None) => &mut self.trading,
            (None, Some(StartOfMarketHours) | None) => &mut self.unknown,
        }
    }

    /// The findings except [`Crossed::contradictory`], each after its description and its field name.
    pub const fn by_state(&self) -> [(&'static str, &'static str, &Finding); 6] {
        [
            ("crossed before the open", "before_open", &self.before_open),
            ("crossed in continuous trading", "trading", &self.trading),
            ("crossed while quoting only", "quotation_only", &self.quotation_only),
            ("crossed while halted or paused", "halted", &self.halted),
            ("crossed after the close", "after_close", &self.after_close),
            ("crossed, state unknown", "unknown", &self.unknown),
        ]
    }
}

/// The results of a recording's consistency checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Integrity {
    /// Changes of orders that were never added, or had been removed.
    pub unknown_references: Finding,
    /// Executions and reductions of more than the open quantity.
    pub beyond_quantity: Finding,
    /// Adds of an order that already rests.
    pub duplicate_references: Finding,
    /// Orders that the books rejected: over capacity, or with invalid values.
    pub refused: Finding,
    /// Messages whose symbol index is not mapped to a symbol.
    pub unmapped: Finding,
    /// Gaps in a feed's per-symbol sequence numbers.
    pub symbol_gaps: Finding,
    /// Messages that left a book crossed, by the market's state.
    pub crossed: Crossed,
    /// Messages with invalid content for their type, an unknown type, or fields out of range.
    pub malformed: Finding,
    /// Messages with an earlier time than the previous message of their channel.
    pub time_backwards: Finding,
    /// Number of orders of a best-levels recording that left the book without a message, as later events
    /// prove.
    pub unreported: u64,
    /// Number of orders that rest in the books at the end of the recording.
    pub orders_left: u64,
    /// The reason why reading stopped before the end of the file, if it did.
    pub read_error: Option<String>,
}

/// The properties of a recording that decide which findings are contradictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Criteria {
    /// True if every order is announced, so that unknown references and crossed books are contradictions.
    pub(crate) is_full_depth: bool,
    /// True if times never run backwards in this format, so that an earlier time is a contradiction.
    pub(crate) is_ordered_by_time: bool,
    /// True if books were built.
    pub(crate) has_books: bool,
}

impl Integrity {
    /// Describes, as text, the findings that count as contradictions by these criteria.
    pub(crate) fn contradictions(&self, criteria: Criteria) -> Vec<String> {
        let Criteria { is_full_depth, is_ordered_by_time, has_books } = criteria;
        let is_complete = is_full_depth && has_books;
        let findings = [
            (true, &self.malformed, "malformed message", "malformed messages"),
            (
                is_ordered_by_time,
                &self.time_backwards,
                "time that runs backwards",
                "times that run backwards",
            ),
            (
                is_complete,
                &self.unknown_references,
                "reference to an unknown order",
                "references to unknown orders",
            ),
            (
                is_complete,
                &self.beyond_quantity,
                "execution or reduction beyond the order's quantity",
                "executions or reductions beyond the order's quantity",
            ),
            (
                is_complete,
                &self.duplicate_references,
                "reference that is used twice",
                "references that are used twice",
            ),
            (
                has_books,
                &self.refused,
                "order that the books refused",
                "orders that the books refused (raise --max-orders if they were full)",
            ),
            (
                has_books,
                &self.unmapped,
                "message about a symbol index that was never mapped",
                "messages about symbol indexes that were never mapped",
            ),
            (
                has_books,
                &self.symbol_gaps,
                "gap in a symbol's sequence numbers",
                "gaps in the sequence numbers of symbols",
            ),
            (
                is_complete,
                &self.crossed.contradictory,
                "message that leaves a book crossed while its symbol trades",
                "messages that leave a book crossed while its symbol trades",
            ),
        ];
        let mut reasons: Vec<String> = self.read_error.iter().cloned().collect();
        for (_, finding, one, many) in
            findings.into_iter().filter(|(counts, finding, ..)| *counts && finding.count > 0)
        {
            let noun = if finding.count == 1 { one } else { many };
            let first = finding.first.as_deref().unwrap_or("an unknown place");
            reasons.push(format!("{} {noun}, first at {first}", finding.count));
        }
        reasons
    }

    /// Describes, as text, messages that left a book crossed in an unknown trading state, if there are any.
    pub(crate) fn crossed_without_state(&self, criteria: Criteria) -> Option<String> {
        let crossed = &self.crossed.unknown;
        let is_complete = criteria.is_full_depth && criteria.has_books;
        (is_complete && crossed.count > 0).then(|| {
            let first = crossed.first.as_deref().unwrap_or("an unknown place");
            format!(
                "{} message(s) leave a book crossed while no trading state was published, first at {first}: a crossed \
                 book is normal before an auction, and an error in continuous trading",
                crossed.count
            )
        })
    }

    /// Adds the findings of another file.
    pub fn merge(&mut self, other: &Integrity) {
        for (mine, theirs) in [
            (&mut self.unknown_references, &other.unknown_references),
            (&mut self.beyond_quantity, &other.beyond_quantity),
            (&mut self.duplicate_references, &other.duplicate_references),
            (&mut self.refused, &other.refused),
            (&mut self.unmapped, &other.unmapped),
            (&mut self.symbol_gaps, &other.symbol_gaps),
            (&mut self.crossed.before_open, &other.crossed.before_open),
            (&mut self.crossed.trading, &other.crossed.trading),
            (&mut self.crossed.quotation_only, &other.crossed.quotation_only),
            (&mut self.crossed.halted, &other.crossed.halted),
            (&mut self.crossed.after_close, &other.crossed.after_close),
            (&mut self.crossed.unknown, &other.crossed.unknown),
            (&mut self.crossed.contradictory, &other.crossed.contradictory),
            (&mut self.malformed, &other.malformed),
            (&mut self.time_backwards, &other.time_backwards),
        ] {
            mine.merge(theirs);
        }
        self.unreported += other.unreported;
        self.orders_left += other.orders_left;
        if self.read_error.is_none() {
            self.read_error.clone_from(&other.read_error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_count_and_only_trading_symbols_contradict() {
        use SystemEventCode::{EndOfMarketHours, EndOfMessages, StartOfMarketHours, StartOfSystemHours};
        use TradingState::{Halted, QuotationOnly, Trading};
        let cases = [
            (Some(StartOfSystemHours), None, "before_open", false),
            (Some(StartOfSystemHours), Some(Trading), "before_open", true),
            (Some(StartOfSystemHours), Some(Halted), "halted", false),
            (Some(StartOfMarketHours), Some(Trading), "trading", true),
            (Some(StartOfMarketHours), Some(Halted), "halted", false),
            (Some(StartOfMarketHours), Some(QuotationOnly), "quotation_only", false),
            (Some(StartOfMarketHours), None, "unknown", false),
            (Some(EndOfMarketHours), Some(Trading), "after_close", true),
            (Some(EndOfMessages), None, "after_close", false),
            (None, Some(Trading), "trading", true),
            (None, None, "unknown", false),
        ];
        for (stage, trading, name, is_contradiction) in cases {
            let mut crossed = Crossed::default();
            crossed.add(MarketState { stage, trading }, || "here".to_owned());
            let counted = crossed.by_state().into_iter().filter(|(.., finding)| finding.count > 0);
            let names: Vec<&str> = counted.map(|(_, name, _)| name).collect();
            assert_eq!(names, [name], "{stage:?} {trading:?}");
            assert_eq!(crossed.contradictory.count, u64::from(is_contradiction), "{stage:?} {trading:?}");
        }
    }
}
