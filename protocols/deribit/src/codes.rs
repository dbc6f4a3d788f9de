//! The texts that fields may have.

use crate::field::codes;
use tickpath_types::Side;

codes! {
    /// The side of an order, a trade's taker or a position.
    Direction {
        Buy = "buy" "bought",
        Sell = "sell" "sold",
        Zero = "zero" "a position of nothing",
    }
}

impl From<Side> for Direction {
    fn from(side: Side) -> Direction {
        match side {
            Side::Buy => Direction::Buy,
            Side::Sell => Direction::Sell,
        }
    }
}

impl Direction {
    /// The side; none for a position of nothing or an unknown text.
    #[must_use]
    pub const fn side(self) -> Option<Side> {
        match self {
            Direction::Buy => Some(Side::Buy),
            Direction::Sell => Some(Side::Sell),
            _ => None,
        }
    }
}

codes! {
    /// Where an order is in its life. There is no state of partial execution: `open` with a filled amount.
    OrderState {
        Open = "open" "in the book",
        Filled = "filled" "executed in full",
        Rejected = "rejected" "never accepted",
        Cancelled = "cancelled" "taken out of the book",
        Untriggered = "untriggered" "a trigger order that waits",
        Triggered = "triggered" "a trigger order whose order is in the book, with an id of its own",
        Archive = "archive" "seen in old trades",
    }
}

impl OrderState {
    /// True when nothing can happen to the order any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, OrderState::Filled | OrderState::Rejected | OrderState::Cancelled)
    }
}

codes! {
    /// How an order is priced and when it enters the book.
    OrderType {
        Limit = "limit" "at its price or better",
        Market = "market" "at what the book has, within the trading band",
        StopLimit = "stop_limit" "a limit order once the price is worse than its trigger",
        StopMarket = "stop_market" "a market order once the price is worse than its trigger",
        TakeLimit = "take_limit" "a limit order once the price is better than its trigger",
        TakeMarket = "take_market" "a market order once the price is better than its trigger",
        MarketLimit = "market_limit" "at the best price; what is left rests there",
        TrailingStop = "trailing_stop" "a stop that follows the price",
        Liquidation = "liquidation" "a forced execution; of trades only",
    }
    /// How long an order stays.
    TimeInForce {
        GoodTilCancelled = "good_til_cancelled" "until it is cancelled",
        GoodTilDay = "good_til_day" "until 08:00 UTC",
        FillOrKill = "fill_or_kill" "all of it at once, or nothing",
        ImmediateOrCancel = "immediate_or_cancel" "what can be had at once",
    }
    /// The price that a trigger order watches.
    Trigger {
        IndexPrice = "index_price" "the index",
        MarkPrice = "mark_price" "the mark price",
        LastPrice = "last_price" "the last trade",
    }
    /// How an option order is priced when not in its currency.
    Advanced {
        Usd = "usd" "in USD",
        ImpliedVolatility = "implv" "by implied volatility",
    }
    /// Why an order was cancelled.
    CancelReason {
        UserRequest = "user_request" "its owner asked",
        Autoliquidation = "autoliquidation" "a liquidation",
        CancelOnDisconnect = "cancel_on_disconnect" "its connection ended",
        RiskMitigation = "risk_mitigation" "risk of the account",
        PmeRiskReduction = "pme_risk_reduction" "portfolio margin",
        PmeAccountLocked = "pme_account_locked" "portfolio margin locked the account",
        PositionLocked = "position_locked" "the position is locked",
        MmpTrigger = "mmp_trigger" "market maker protection",
        MmpConfigCurtailment = "mmp_config_curtailment" "market maker protection was reconfigured",
        EditPostOnlyReject = "edit_post_only_reject" "an edit would have taken liquidity",
        OcoOtherClosed = "oco_other_closed" "the other order of a pair ended",
        OtoPrimaryClosed = "oto_primary_closed" "the order that it depends on ended",
        Settlement = "settlement" "settlement of the instrument",
    }
    /// What kind of thing is traded.
    Kind {
        Future = "future" "futures and perpetuals",
        Option = "option" "options",
        Spot = "spot" "currency pairs",
        Combo = "combo" "combinations of any kind; of channels",
        FutureCombo = "future_combo" "spreads of futures",
        OptionCombo = "option_combo" "spreads of options",
        Any = "any" "all of them; of requests and channels",
    }
    /// In which currency an instrument's amount and profit are.
    InstrumentType {
        Linear = "linear" "amount in the base coin, profit in the quote currency",
        Reversed = "reversed" "amount in USD (of futures), profit in the base coin",
    }
    /// Whether a future, an option or a pair can be traded.
    InstrumentState {
        Open = "open" "open for trading",
        Settlement = "settlement" "settled",
        Delivered = "delivered" "delivered",
        Inactive = "inactive" "not for trading",
        Locked = "locked" "locked",
        Halted = "halted" "halted",
        Archivized = "archivized" "gone",
        Created = "created" "new; of the channel",
        Started = "started" "opened; an older name of the channel",
        Settled = "settled" "settled; of the channel",
        Closed = "closed" "closed; of the channel",
        Terminated = "terminated" "taken off; of the channel",
        Deactivated = "deactivated" "no longer open; of the channel",
    }
    /// The right of an option.
    OptionType {
        Call = "call" "to buy",
        Put = "put" "to sell",
    }
    /// Which side of a trade the user was.
    Liquidity {
        Maker = "M" "the resting one",
        Taker = "T" "the incoming one",
        Both = "MT" "both; of liquidation marks",
    }
    /// How a client shows who it is.
    GrantType {
        ClientCredentials = "client_credentials" "by id and secret",
        ClientSignature = "client_signature" "by id and signature",
        RefreshToken = "refresh_token" "by an earlier refresh token",
    }
    /// Whose disconnect cancels orders.
    CancelOnDisconnectScope {
        Connection = "connection" "this connection's",
        Account = "account" "every new connection's",
    }
    /// Which open orders are meant.
    OrderFilter {
        All = "all" "all",
        Limit = "limit" "limit orders",
        TriggerAll = "trigger_all" "those that wait for a trigger",
        Stop = "stop" "stops; of cancel requests",
        Take = "take" "takes; of cancel requests",
        TrailingStop = "trailing_stop" "trailing stops",
        StopAll = "stop_all" "all stops",
        StopLimit = "stop_limit" "stops that become limit orders",
        StopMarket = "stop_market" "stops that become market orders",
        TakeAll = "take_all" "all takes",
        TakeLimit = "take_limit" "takes that become limit orders",
        TakeMarket = "take_market" "takes that become market orders",
        TrailingAll = "trailing_all" "all trailing orders",
    }
    /// The order of a list of trades.
    Sorting {
        Ascending = "asc" "oldest first",
        Descending = "desc" "newest first",
        Default = "default" "as the database has them",
    }
}
