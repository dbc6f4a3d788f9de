//! Market data: requests, snapshots and changes. Sizes are contracts.
//!
//! The instrument stands once, outside the entries. There is no number of a change: a gap shows in MsgSeqNum alone.

use tickpath_types::Nanos;

use super::{
    MdEntryType, MdUpdateAction, MdUpdateType, OrdStatus, PutOrCall, SideCode, SubscriptionRequestType,
};
use crate::body::{entry, message};
use crate::decimal::Decimal;

entry! {
    /// A kind of entries that is asked for.
    EntryType<'a> in NO_MD_ENTRY_TYPES from MD_ENTRY_TYPE
    {
        /// The kind.
        entry_type: MdEntryType = MD_ENTRY_TYPE,
    }
    {}
    {}
    borrows
}

entry! {
    /// An instrument that is asked for.
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
    /// A subscription is the whole book and then its changes (`INCREMENTAL`, depth 0), or the best 1, 10 or 20 levels
    /// each time (`FULL_REFRESH`).
    MarketDataRequest<'a> = MARKET_DATA_REQUEST
    {
        /// The client's id of the request.
        md_req_id: &'a str = MD_REQ_ID,
        /// Once, subscribe or unsubscribe.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
    }
    {
        /// Levels of each side; 0 all.
        market_depth: u64 = MARKET_DEPTH,
        /// Everything or changes; needed to subscribe.
        update_type: MdUpdateType = MD_UPDATE_TYPE,
        /// One instrument, where no group names more.
        symbol: &'a str = SYMBOL,
        /// Whether block trades are left out.
        skip_block_trades: bool = SKIP_BLOCK_TRADES,
        /// Whether block trades show their id.
        show_block_trade_id: bool = SHOW_BLOCK_TRADE_ID,
        /// How many trades a snapshot has: 20 when absent, at most 1000.
        trade_amount: u64 = TRADE_AMOUNT,
        /// Trades of a snapshot since then, in milliseconds since the Unix epoch.
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
        /// Why: `0` unknown symbol, `1` duplicate id, `2` bandwidth, `3` permission, `4` subscription, `5` depth,
        /// `6` update type, `7` aggregated book, `8` entry type, and further letters of FIX 4.4.
        reason: &'a str = MD_REQ_REJ_REASON,
        /// Why, in words.
        text: &'a str = TEXT,
    }
    {}
}

entry! {
    /// A level, a trade or a value of a snapshot.
    MdEntry<'a> in NO_MD_ENTRIES from MD_ENTRY_TYPE
    {
        /// What it is.
        entry_type: MdEntryType = MD_ENTRY_TYPE,
    }
    {
        /// Seen in snapshots too.
        action: MdUpdateAction = MD_UPDATE_ACTION,
        /// Price.
        price: Decimal = MD_ENTRY_PX,
        /// Size, in contracts.
        size: Decimal = MD_ENTRY_SIZE,
        /// When.
        time: Nanos = MD_ENTRY_DATE,
        /// Id of a trade.
        trade_id: &'a str = TRADE_ID,
        /// Side of the incoming order of a trade.
        side: SideCode = SIDE,
        /// Index at a trade.
        index_price: Decimal = PRICE,
        /// Number of a trade in its instrument.
        trade_seq: &'a str = TEXT,
        /// The own order's id of a trade.
        order_id: &'a str = ORDER_ID,
        /// The other order's id of a trade.
        secondary_order_id: &'a str = SECONDARY_ORDER_ID,
        /// State of the own order.
        ord_status: OrdStatus = ORD_STATUS,
        /// Label of the own order.
        label: &'a str = DERIBIT_LABEL,
        /// Whose order was a liquidation: `M` the resting one, `T` the incoming one, `MT` both.
        liquidation: &'a str = DERIBIT_LIQUIDATION,
        /// Id of a block trade.
        trd_match_id: &'a str = TRD_MATCH_ID,
    }
    {}
}

entry! {
    /// A change of a level, or a trade.
    MdChange<'a> in NO_MD_ENTRIES from MD_UPDATE_ACTION
    {
        /// What happened.
        action: MdUpdateAction = MD_UPDATE_ACTION,
        /// To what.
        entry_type: MdEntryType = MD_ENTRY_TYPE,
    }
    {
        /// Price.
        price: Decimal = MD_ENTRY_PX,
        /// Size, in contracts.
        size: Decimal = MD_ENTRY_SIZE,
        /// When.
        time: Nanos = MD_ENTRY_DATE,
        /// Id of a trade.
        trade_id: &'a str = TRADE_ID,
        /// Side of the incoming order of a trade.
        side: SideCode = SIDE,
        /// The own order's id of a trade.
        order_id: &'a str = ORDER_ID,
        /// The other order's id of a trade.
        secondary_order_id: &'a str = SECONDARY_ORDER_ID,
        /// State of the own order.
        ord_status: OrdStatus = ORD_STATUS,
        /// Index at a trade.
        index_price: Decimal = PRICE,
        /// Number of a trade in its instrument.
        trade_seq: &'a str = TEXT,
        /// Label of the own order.
        label: &'a str = DERIBIT_LABEL,
        /// Whose order was a liquidation: `M` the resting one, `T` the incoming one, `MT` both.
        liquidation: &'a str = DERIBIT_LIQUIDATION,
        /// Id of a block trade.
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
        /// What lies under an option.
        underlying_symbol: &'a str = UNDERLYING_SYMBOL,
        /// Its price.
        underlying_px: Decimal = UNDERLYING_PX,
        /// Units of a contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Kind of an option.
        put_or_call: PutOrCall = PUT_OR_CALL,
        /// Volume of the last 24 hours, in contracts.
        trade_volume_24h: Decimal = TRADE_VOLUME_24H,
        /// Mark price.
        mark_price: Decimal = MARK_PRICE,
        /// Open contracts.
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
        /// Units of a contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Kind of an option.
        put_or_call: PutOrCall = PUT_OR_CALL,
        /// Volume of the last 24 hours, in contracts.
        trade_volume_24h: Decimal = TRADE_VOLUME_24H,
        /// Mark price.
        mark_price: Decimal = MARK_PRICE,
        /// Open contracts.
        open_interest: Decimal = OPEN_INTEREST,
    }
    {
        /// What has changed.
        changes: MdChange = NO_MD_ENTRIES,
    }
}
