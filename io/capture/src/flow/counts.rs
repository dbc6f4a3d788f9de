//! What a mapper did with a recording.

/// Defines the reasons with what they mean, for a report.
macro_rules! exclusions {
    ($($(#[$more:meta])* $reason:ident = $words:literal,)*) => {
        tickpath_types::enumerated! {
            /// Why an order was not entered, or an execution not repeated.
            #[non_exhaustive]
            pub enum Exclusion {
                $(#[doc = $words] $(#[$more])* $reason,)*
            }
        }

        impl Exclusion {
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
    UnknownOrder = "the recording never announced the order",
    NotBestPrice = "the order did not stand at the best price",
    NotFrontOfQueue = "another order stood ahead of it at its price",
    HiddenExecution = "the order was not displayed",
    Auction = "it traded in an auction",
    ///
    /// The order had stood in the book until it came in again at another price.
    IncomingOrder = "the report is about the incoming order; the resting side has its own",
    PriceDiffers = "it traded at another price than its own",
    SideDiffers = "the recording contradicts itself about its side",
    QtyAboveOrder = "it traded for more than the order had",
    CrossedAdd = "it would have traded on entry",
    ///
    /// It is not positive or above [`ORDER_PRICE_MAX`](super::ORDER_PRICE_MAX).
    PriceOutOfRange = "the price cannot be carried by OUCH",
    ///
    /// It is zero or above [`ORDER_QTY_MAX`](super::ORDER_QTY_MAX).
    QtyOutOfRange = "the quantity cannot be carried by OUCH",
    ///
    /// The bound is in [`FlowLimits`](super::FlowLimits); or the session has used its last number.
    TooManyOrders = "more orders were open than the venue holds",
    TooManyInstruments = "more than 65,535 instruments",
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
    /// Not repeated, by [`Exclusion::index`].
    pub excluded: [u64; Exclusion::COUNT],
}

/// What a mapper did with a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Executions and what became of them.
    pub executions: ExecutionCounts,
    /// Adds that were not entered when they came, by [`Exclusion::index`].
    pub adds_excluded: [u64; Exclusion::COUNT],
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
