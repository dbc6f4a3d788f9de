//! Counters of a mapper's work on a recording.

/// Defines the reasons with their descriptions, for a report.
macro_rules! exclusions {
    ($($(#[$more:meta])* $reason:ident = $description:literal,)*) => {
        tickpath_types::enumerated! {
            /// The reason why an order was not entered, or an execution not repeated.
            #[non_exhaustive]
            pub enum Exclusion {
                $(#[doc = $description] $(#[$more])* $reason,)*
            }
        }

        impl Exclusion {
            /// Its description, for a report.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Exclusion::$reason => $description,)*
                }
            }
        }
    };
}

exclusions! {
    UnknownOrder = "the recording never announced the order",
    NotBestPrice = "the order was not at the best price",
    NotFrontOfQueue = "another order stood ahead of it at its price",
    HiddenExecution = "the order was not displayed",
    Auction = "it traded in an auction",
    ///
    /// The order rested in the book until it was re-entered at another price.
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
    /// Total number.
    pub seen: u64,
    /// Repeated, for orders that the recording announced.
    pub eligible: u64,
    /// Repeated, for synthesised orders.
    pub eligible_synthesised: u64,
    /// Repeated executions of both kinds for which an order at a better price or ahead in the queue had to be
    /// evicted. They follow the recording and are no evidence for the shadow book.
    pub eligible_by_eviction: u64,
    /// Not repeated, by [`Exclusion::index`].
    pub excluded: [u64; Exclusion::COUNT],
}

/// Counters of a mapper's work on a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Executions and their results.
    pub executions: ExecutionCounts,
    /// Adds that were not entered at their time, by [`Exclusion::index`].
    pub adds_excluded: [u64; Exclusion::COUNT],
    /// Held-back crossing orders that were entered later.
    pub entered_later: u64,
    /// Orders entered because a best-levels recording refers to them without announcing them.
    pub synthesised: u64,
    /// Orders cancelled because they were better than the best level in a best-levels recording, or would
    /// have traded with an order that it adds.
    pub evicted_better: u64,
    /// Orders cancelled because a best-levels recording executes one behind them.
    pub evicted_ahead: u64,
    /// Iceberg slices entered to repeat a fill that exceeded the displayed quantity.
    pub replenished: u64,
    /// Deletes, reductions and replacements of orders that are not in the shadow book.
    pub unknown_changes: u64,
    /// Adds of an order that already rested; it was cancelled first.
    pub duplicate_adds: u64,
}
