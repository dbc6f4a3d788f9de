//! Counts of mapped, synthesised and excluded orders and executions.

/// Defines [`Exclusion`] from pairs of a reason and its description.
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
            /// Description of the reason, for a report.
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
    /// This occurs when a resting order is re-entered at another price and trades at once.
    IncomingOrder = "the report is about the incoming order; the resting side has its own",
    PriceDiffers = "it traded at another price than its own",
    SideDiffers = "the recording contradicts itself about its side",
    QtyAboveOrder = "it traded for more than the order had",
    CrossedAdd = "it would have traded on entry",
    ///
    /// The price is not positive, or is above [`ORDER_PRICE_MAX`](super::ORDER_PRICE_MAX).
    PriceOutOfRange = "OUCH cannot encode the price",
    ///
    /// The quantity is zero, or is above [`ORDER_QTY_MAX`](super::ORDER_QTY_MAX).
    QtyOutOfRange = "OUCH cannot encode the quantity",
    ///
    /// The maximum is in [`FlowLimits`](super::FlowLimits). Also applies when a session has used its last
    /// UserRefNum.
    TooManyOrders = "more orders were open than the venue holds",
    TooManyInstruments = "more than 65,535 instruments",
}

/// Executions of the recording: every fill, and every trade with an order that was not displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    /// Number of all executions.
    pub seen: u64,
    /// Number of executions of announced orders that were repeated at the venue.
    pub eligible: u64,
    /// Number of executions of synthesised orders that were repeated at the venue.
    pub eligible_synthesised: u64,
    /// Number of executions in the two counts above for which an order at a better price, or ahead in the
    /// queue, had to be evicted first. Such an execution does not confirm the shadow book.
    pub eligible_by_eviction: u64,
    /// Number of executions that were not repeated, by [`Exclusion::index`].
    pub excluded: [u64; Exclusion::COUNT],
}

/// Counts of the orders and executions that a mapper has mapped, synthesised or excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Counts of the recorded executions, by result.
    pub executions: ExecutionCounts,
    /// Number of adds whose order was not entered at once, by [`Exclusion::index`].
    pub adds_excluded: [u64; Exclusion::COUNT],
    /// Number of held-back crossing orders that were entered later.
    pub entered_later: u64,
    /// Number of orders entered because a best-levels recording refers to them without announcing them.
    pub synthesised: u64,
    /// Number of orders cancelled because they were better than the best level in a best-levels recording, or
    /// would have traded with an order that it adds.
    pub evicted_better: u64,
    /// Number of orders cancelled because a best-levels recording executes an order behind them.
    pub evicted_ahead: u64,
    /// Number of iceberg slices entered after a fill of the whole displayed quantity.
    pub replenished: u64,
    /// Number of deletes and changes of orders that are not in the shadow book.
    pub unknown_changes: u64,
    /// Number of adds and replacements with the reference of another open order, which was cancelled first.
    pub duplicate_adds: u64,
}
