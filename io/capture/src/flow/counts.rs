//! What a mapper did with a recording.

use std::fmt;

use crate::EventKind;

/// Defines the reasons with what they mean, for a report.
macro_rules! exclusions {
    ($($(#[$doc:meta])* $reason:ident = $words:literal,)*) => {
        /// Why an order was not entered, or an execution not repeated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Exclusion {
            $($(#[$doc])* $reason,)*
        }

        impl Exclusion {
            /// All of them, as they are listed.
            pub const ALL: [Exclusion; [$($words),*].len()] = [$(Exclusion::$reason),*];

            /// Its meaning, for a report.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self {
                    $(Exclusion::$reason => $words,)*
                }
            }
        }
    };
}

exclusions! {
    /// The recording never announced the order.
    UnknownOrder = "the recording never announced the order",
    /// The order does not stand at the best price of the shadow.
    NotBestPrice = "the order did not stand at the best price",
    /// Another order stands ahead of it at its price.
    NotFrontOfQueue = "another order stood ahead of it at its price",
    /// It traded with an order that was not displayed.
    HiddenExecution = "the order was not displayed",
    /// It traded in an auction.
    Auction = "it traded in an auction",
    /// The report is about the incoming order, which had stood in the book until it came in again at
    /// another price; the resting side of the same trade is a report of its own.
    IncomingOrder = "the report is about the incoming order; the resting side has its own",
    /// It traded at another price than its own.
    PriceDiffers = "it traded at another price than its own",
    /// The recording states another side than when the order was added.
    SideDiffers = "the recording contradicts itself about its side",
    /// It traded for more than it had.
    QtyAboveOrder = "it traded for more than the order had",
    /// It would trade on entry.
    CrossedAdd = "it would have traded on entry",
    /// The price is not positive or above [`ORDER_PRICE_MAX`](super::ORDER_PRICE_MAX).
    PriceOutOfRange = "the price cannot be carried by OUCH",
    /// The quantity is zero or above [`ORDER_QTY_MAX`](super::ORDER_QTY_MAX).
    QtyOutOfRange = "the quantity cannot be carried by OUCH",
    /// The venue would hold more orders than [`FlowLimits`](super::FlowLimits) allows, or the session
    /// has used its last number.
    TooManyOrders = "more orders were open than the venue holds",
    /// The instrument has no number: only 65,535 have one.
    TooManyInstruments = "more than 65,535 instruments",
}

/// Counts per [`Exclusion`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excluded([u64; Exclusion::ALL.len()]);

impl Excluded {
    pub(crate) fn add(&mut self, reason: Exclusion) {
        self.0[reason as usize] += 1;
    }

    fn of(&self, reason: Exclusion) -> u64 {
        self.0[reason as usize]
    }

    fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in Exclusion::ALL.into_iter().filter(|reason| self.of(*reason) != 0) {
            write!(f, " {reason:?} {}", self.of(reason))?;
        }
        Ok(())
    }
}

/// Events of the recording by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "one field a kind of event, documented there")]
pub struct EventCounts {
    pub adds: u64,
    pub deletes: u64,
    pub reductions: u64,
    pub modifications: u64,
    pub replacements: u64,
    pub fills: u64,
    pub trades: u64,
    pub clears: u64,
    pub statuses: u64,
    pub ignored: u64,
}

impl EventCounts {
    pub(crate) fn count(&mut self, kind: &EventKind) {
        *match kind {
            EventKind::Add { .. } => &mut self.adds,
            EventKind::Delete { .. } => &mut self.deletes,
            EventKind::Reduce { .. } => &mut self.reductions,
            EventKind::Modify { .. } => &mut self.modifications,
            EventKind::Replace { .. } => &mut self.replacements,
            EventKind::Fill { .. } => &mut self.fills,
            EventKind::Trade { .. } => &mut self.trades,
            EventKind::Clear => &mut self.clears,
            EventKind::Status(_) => &mut self.statuses,
            EventKind::Ignored(_) => &mut self.ignored,
        } += 1;
    }
}

/// Requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Orders that the maker entered.
    pub enters: u64,
    /// Orders that the taker entered.
    pub takes: u64,
    /// Replacements.
    pub replaces: u64,
    /// Cancels, of all or of part.
    pub cancels: u64,
}

/// Executions of the recording: every fill, and every trade with an order that was not displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    /// How many.
    pub seen: u64,
    /// Repeated, of orders that the recording announced.
    pub eligible: u64,
    /// Repeated, of orders that were synthesised.
    pub eligible_synthesised: u64,
    /// Of both kinds of repeated ones: those for which an order at a better price or ahead in the queue
    /// had to be evicted at that moment. They follow the recording and are no evidence for the shadow.
    pub eligible_by_eviction: u64,
    pub(crate) excluded: Excluded,
}

impl ExecutionCounts {
    /// Executions that were not repeated for this reason.
    #[must_use]
    pub fn excluded(&self, reason: Exclusion) -> u64 {
        self.excluded.of(reason)
    }

    /// Executions that were not repeated.
    #[must_use]
    pub fn excluded_total(&self) -> u64 {
        self.excluded.sum()
    }
}

/// What a mapper did with a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Events read.
    pub events: EventCounts,
    /// Requests yielded.
    pub requests: RequestCounts,
    /// Executions and what became of them.
    pub executions: ExecutionCounts,
    pub(crate) adds_excluded: Excluded,
    /// Orders held back as crossed that were entered later.
    pub entered_later: u64,
    /// Orders entered because a recording of the best levels refers to them and never announces them.
    pub synthesised: u64,
    /// Orders cancelled because they were better than what a recording of the best levels reports as
    /// best, or would have traded with an order that it adds.
    pub evicted_better: u64,
    /// Orders cancelled because a recording of the best levels executes one behind them.
    pub evicted_ahead: u64,
    /// Slices of icebergs entered to repeat a fill that was larger than what the order showed.
    pub replenished: u64,
    /// Deletes, reductions and replacements of orders that the shadow does not hold.
    pub unknown_changes: u64,
    /// Adds of an order that already stood; it was cancelled first.
    pub duplicate_adds: u64,
}

impl FlowCounts {
    /// Adds that were not entered when they came, for this reason.
    #[must_use]
    pub fn adds_excluded(&self, reason: Exclusion) -> u64 {
        self.adds_excluded.of(reason)
    }
}

impl fmt::Display for FlowCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, requests, executions) = (&self.events, &self.requests, &self.executions);
        writeln!(
            f,
            "events: {} add, {} delete, {} reduce, {} modify, {} replace, {} fill, {} trade, {} clear, {} status, {} ignored",
            events.adds,
            events.deletes,
            events.reductions,
            events.modifications,
            events.replacements,
            events.fills,
            events.trades,
            events.clears,
            events.statuses,
            events.ignored
        )?;
        writeln!(
            f,
            "requests: {} enter, {} take, {} replace, {} cancel",
            requests.enters, requests.takes, requests.replaces, requests.cancels
        )?;
        write!(
            f,
            "executions: {} seen, {} eligible, {} eligible on synthesised orders ({} of both by eviction), {} excluded",
            executions.seen,
            executions.eligible,
            executions.eligible_synthesised,
            executions.eligible_by_eviction,
            executions.excluded_total()
        )?;
        executions.excluded.write(f)?;
        write!(
            f,
            "\norders: {} synthesised, {} evicted as better, {} evicted as ahead, {} replenished, {} unknown changes, {} duplicate adds, {} adds excluded",
            self.synthesised,
            self.evicted_better,
            self.evicted_ahead,
            self.replenished,
            self.unknown_changes,
            self.duplicate_adds,
            self.adds_excluded.sum()
        )?;
        self.adds_excluded.write(f)?;
        write!(f, ", {} of them entered later", self.entered_later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_the_order_of_their_numbers() {
        for (index, reason) in Exclusion::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        let mut counts = FlowCounts::default();
        counts.executions.excluded.add(Exclusion::Auction);
        assert!(counts.to_string().contains("1 excluded Auction 1\n"), "{counts}");
    }
}
