//! Market data: requests, snapshots and changes. Sizes are in contracts.
//!
//! The instrument is stated once, outside the entries. Changes have no numbers: only MsgSeqNum shows a gap.

use tickpath_types::Nanos;

use super::{
    MdEntryType, MdUpdateAction, MdUpdateType, OrdStatus, PutOrCall, SideCode, SubscriptionRequestType,
};
use crate::body::{entry, message};
use crate::decimal::Decimal;

entry! {
    /// A requested kind of entries.
    EntryType<'a> in NO_MD_ENTRY_TYPES from MD_ENTRY_TYPE
    {
        /// Kind of entries.
        entry_type: MdEntryType = MD_ENTRY_TYPE,
    }
    {}
    {}
    borrows
}

entry! {
    /// A requested instrument.
    RequestedSymbol<'a> in NO_RELATED_SYM from SYMBOL
    {
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {}
    {}
}

message! {
    /// Market Data Request (`V`).
    ///
    /// A subscription delivers either the whole book and then its changes (`INCREMENTAL`, depth 0), or the
    /// best 1, 10 or 20 levels in each message (`FULL_REFRESH`).
    MarketDataRequest<'a> = MARKET_DATA_REQUEST
    {
        /// The client's id of the request.
        md_req_id: &'a str = MD_REQ_ID,
        /// Snapshot, subscribe or unsubscribe.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
    }
    {
        /// Levels per side; 0 for all.
        market_depth: u64 = MARKET_DEPTH,
        /// Full refresh or changes; required to subscribe.
        update_type: MdUpdateType = MD_UPDATE_TYPE,
        /// A single instrument, without the group of instruments.
        symbol: &'a str = SYMBOL,
        /// Whether to omit block trades.
        skip_block_trades: bool = SKIP_BLOCK_TRADES,
        /// Whether to show the id of block trades.
        show_block_trade_id: bool = SHOW_BLOCK_TRADE_ID,
        /// Number of trades in a snapshot: 20 if absent, at most 1000.
        trade_amount: u64 = TRADE_AMOUNT,
        /// Start time of the trades in a snapshot, in milliseconds since the Unix epoch.
        since_timestamp: u64 = SINCE_TIMESTAMP,
    }
    {
        /// Kinds of entries.
        entry_types: EntryType = NO_MD_ENTRY_TYPES,
        /// Instruments.
        symbols: RequestedSymbol = NO_RELATED_SYM,
    }
}

message! {
    /// Market Data Request Reject (`Y`).
    MarketDataReject<'a> = MARKET_DATA_REJECT
    {
        /// The client's id of the request.
        md_req_id: &'a str = MD_REQ_ID,
    }
    {
        /// Reason: `0` unknown symbol, `1` duplicate id, `2` bandwidth, `3` permission, `4` subscription, `5`
        /// depth, `6` update type, `7` aggregated book, `8` entry type, and further letters of FIX 4.4.
        reason: &'a str = MD_REQ_REJ_REASON,
        /// Description of the reason.
        text: &'a str = TEXT,
    }
    {}
}

entry! {
    /// A level, a trade or a value of a snapshot.
    MdEntry<'a> in NO_MD_ENTRIES from MD_ENTRY_TYPE
    {
        /// Kind of entry.
        entry_type: MdEntryType = MD_ENTRY_TYPE,
    }
    {
        /// Action; also occurs in snapshots.
        action: MdUpdateAction = MD_UPDATE_ACTION,
        /// Price.
        price: Decimal = MD_ENTRY_PX,
        /// Size, in contracts.
        size: Decimal = MD_ENTRY_SIZE,
        /// Time.
        time: Nanos = MD_ENTRY_DATE,
        /// Trade id.
        trade_id: &'a str = TRADE_ID,
        /// Side of the incoming order of a trade.
        side: SideCode = SIDE,
        /// Index price at the trade.
        index_price: Decimal = PRICE,
        /// Number of the trade within its instrument.
        trade_seq: &'a str = TEXT,
        /// Id of the client's order in the trade.
        order_id: &'a str = ORDER_ID,
        /// Id of the counterparty's order in the trade.
        secondary_order_id: &'a str = SECONDARY_ORDER_ID,
        /// State of the client's order.
        ord_status: OrdStatus = ORD_STATUS,
        /// Label of the client's order.
        label: &'a str = DERIBIT_LABEL,
        /// Liquidated side: `M` maker, `T` taker, `MT` both.
        liquidation: &'a str = DERIBIT_LIQUIDATION,
        /// Block trade id.
        trd_match_id: &'a str = TRD_MATCH_ID,
    }
    {}
}

entry! {
    /// A change of a level, or a trade.
    MdChange<'a> in NO_MD_ENTRIES from MD_UPDATE_ACTION
    {
        /// Action.
        action: MdUpdateAction = MD_UPDATE_ACTION,
        /// Kind of entry.
        entry_type: MdEntryType = MD_ENTRY_TYPE,
    }
    {
        /// Price.
        price: Decimal = MD_ENTRY_PX,
        /// Size, in contracts.
        size: Decimal = MD_ENTRY_SIZE,
        /// Time.
        time: Nanos = MD_ENTRY_DATE,
        /// Trade id.
        trade_id: &'a str = TRADE_ID,
        /// Side of the incoming order of a trade.
        side: SideCode = SIDE,
        /// Id of the client's order in the trade.
        order_id: &'a str = ORDER_ID,
        /// Id of the counterparty's order in the trade.
        secondary_order_id: &'a str = SECONDARY_ORDER_ID,
        /// State of the client's order.
        ord_status: OrdStatus = ORD_STATUS,
        /// Index price at the trade.
        index_price: Decimal = PRICE,
        /// Number of the trade within its instrument.
        trade_seq: &'a str = TEXT,
        /// Label of the client's order.
        label: &'a str = DERIBIT_LABEL,
        /// Liquidated side: `M` maker, `T` taker, `MT` both.
        liquidation: &'a str = DERIBIT_LIQUIDATION,
        /// Block trade id.
        trd_match_id: &'a str = TRD_MATCH_ID,
    }
    {}
}

message! {
    /// Market Data Snapshot/Full Refresh (`W`).
    MarketDataSnapshot<'a> = MARKET_DATA_SNAPSHOT
    {
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// The client's id of the request.
        md_req_id: &'a str = MD_REQ_ID,
        /// Underlying of an option.
        underlying_symbol: &'a str = UNDERLYING_SYMBOL,
        /// Price of the underlying.
        underlying_px: Decimal = UNDERLYING_PX,
        /// Units per contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Kind of an option.
        put_or_call: PutOrCall = PUT_OR_CALL,
        /// Volume of the last 24 hours, in contracts.
        trade_volume_24h: Decimal = TRADE_VOLUME_24H,
        /// Mark price.
        mark_price: Decimal = MARK_PRICE,
        /// Open interest in contracts.
        open_interest: Decimal = OPEN_INTEREST,
        /// Current funding of a perpetual.
        current_funding: Decimal = CURRENT_FUNDING,
        /// Funding of the last 8 hours.
        funding_8h: Decimal = FUNDING_8H,
    }
    {
        /// Levels, trades and values.
        entries: MdEntry = NO_MD_ENTRIES,
    }
}

message! {
    /// Market Data Incremental Refresh (`X`).
    MarketDataIncremental<'a> = MARKET_DATA_INCREMENTAL
    {
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// The client's id of the request.
        md_req_id: &'a str = MD_REQ_ID,
        /// Units per contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Kind of an option.
        put_or_call: PutOrCall = PUT_OR_CALL,
        /// Volume of the last 24 hours, in contracts.
        trade_volume_24h: Decimal = TRADE_VOLUME_24H,
        /// Mark price.
        mark_price: Decimal = MARK_PRICE,
        /// Open interest in contracts.
        open_interest: Decimal = OPEN_INTEREST,
    }
    {
        /// Changes.
        changes: MdChange = NO_MD_ENTRIES,
    }
}
