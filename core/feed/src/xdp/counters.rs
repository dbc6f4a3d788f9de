//! What came besides orders.

/// Counts of one [`BookBuilder`](super::BookBuilder), beside those of its
/// [`Instruments`](crate::Instruments).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sequence number resets.
    pub resets: u64,
    /// Source time references.
    pub time_references: u64,
    /// Symbol index mappings.
    pub mappings: u64,
    /// Mappings that gave an index another symbol or another price scale than before; the book is then suspect.
    pub remapped: u64,
    /// Mappings beyond the books' bound, or of a price scale that there is not; the symbol's messages count as unmapped.
    pub refused_mappings: u64,
    /// Symbol clears.
    pub clears: u64,
    /// Security status messages.
    pub statuses: u64,
    /// Orders that were told again.
    pub refreshed_orders: u64,
    /// Trades of orders that were not in the book.
    pub hidden_trades: u64,
    /// Crosses.
    pub crosses: u64,
    /// Trades that were cancelled.
    pub trade_cancels: u64,
    /// Crosses whose volume was corrected.
    pub cross_corrections: u64,
    /// Imbalances.
    pub imbalances: u64,
    /// Retail price improvement messages.
    pub retail_indicators: u64,
    /// Prices of trades with more than four decimals, of which no update can tell; no book has them.
    pub finer_prices: u64,
    /// Numbers of a symbol's own row that were skipped while its book was stale already.
    pub symbol_gaps_in_stale: u64,
    /// Orders whose number another symbol's order had too.
    pub shared_order_ids: u64,
}
