//! Whether what a recording says holds together.

use tickpath_types::TradingState;

/// Something in a recording that contradicts it, or that no format allows: how often, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// How often.
    pub count: u64,
    /// Where it was seen first, in words.
    pub first: Option<String>,
}

impl Finding {
    /// Counts one more.
    pub(crate) fn add(&mut self, place: impl FnOnce() -> String) {
        self.add_all(1, place);
    }

    /// Counts several at one place.
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

/// Messages after which the best bid of a book was at or above its best ask, by the state of trading that
/// the recording had published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crossed {
    /// While the instrument traded: no such book can be.
    pub trading: Finding,
    /// While only quotation was allowed: before an auction.
    pub quotation_only: Finding,
    /// While trading was halted.
    pub halted: Finding,
    /// No state was published; not judged.
    pub unknown: Finding,
}

impl Crossed {
    pub(crate) fn of(&mut self, state: Option<TradingState>) -> &mut Finding {
        match state {
            Some(TradingState::Trading) => &mut self.trading,
            Some(TradingState::QuotationOnly) => &mut self.quotation_only,
            Some(TradingState::Halted) => &mut self.halted,
            None => &mut self.unknown,
        }
    }
}

/// Whether what a recording says holds together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Changes of orders that were never added, or had gone.
    pub unknown_references: Finding,
    /// Executions and reductions of more than was left of the order.
    pub beyond_quantity: Finding,
    /// Adds of an order that rests already.
    pub duplicate_references: Finding,
    /// Orders that the books could not take: no room, or values that no order can have.
    pub refused: Finding,
    /// Books whose bid is at or above their ask.
    pub crossed: Crossed,
    /// Messages that are not what their type says, or of no known type, or with fields out of range.
    pub malformed: Finding,
    /// Messages with an earlier time than the one before.
    pub time_backwards: Finding,
    /// Orders of a recording of the best levels that went without a word, as later events prove.
    pub unreported: u64,
    /// Orders left in the books at the end.
    pub orders_left: u64,
    /// Why reading stopped before the end of the file, if it did.
    pub read_error: Option<String>,
}

/// How a recording is to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// Every order is announced, so unknown references and crossed books contradict the recording.
    pub(crate) is_full_depth: bool,
    /// Times never run backwards in this format.
    pub(crate) is_ordered_by_time: bool,
    /// Books were built.
    pub(crate) has_books: bool,
}

impl Integrity {
    /// Everything for which the books cannot be trusted, in words.
    pub(crate) fn contradictions(&self, judgement: Judgement) -> Vec<String> {
        let Judgement { is_full_depth, is_ordered_by_time, has_books } = judgement;
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
                "reference to an order that is not there",
                "references to orders that are not there",
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
                is_complete,
                &self.crossed.trading,
                "message that crosses a book in trading",
                "messages that leave a book in trading crossed",
            ),
        ];
        let mut words: Vec<String> = self.read_error.iter().cloned().collect();
        for (_, finding, one, many) in
            findings.into_iter().filter(|(counts, finding, ..)| *counts && finding.count > 0)
        {
            let noun = if finding.count == 1 { one } else { many };
            let first = finding.first.as_deref().unwrap_or("an unknown place");
            words.push(format!("{} {noun}, first at {first}", finding.count));
        }
        words
    }

    /// Adds the findings of another file.
    pub(crate) fn merge(&mut self, other: &Integrity) {
        for (mine, theirs) in [
            (&mut self.unknown_references, &other.unknown_references),
            (&mut self.beyond_quantity, &other.beyond_quantity),
            (&mut self.duplicate_references, &other.duplicate_references),
            (&mut self.refused, &other.refused),
            (&mut self.crossed.trading, &other.crossed.trading),
            (&mut self.crossed.quotation_only, &other.crossed.quotation_only),
            (&mut self.crossed.halted, &other.crossed.halted),
            (&mut self.crossed.unknown, &other.crossed.unknown),
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
