//! Text codes of message fields.

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
    /// The side; `None` for an empty position or an unknown text.
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
    /// State of an order. A partially executed order is `open` with a filled amount.
    OrderState {
        Open = "open" "in the book",
        Filled = "filled" "executed in full",
        Rejected = "rejected" "never accepted",
        Cancelled = "cancelled" "taken out of the book",
        Untriggered = "untriggered" "a trigger order that waits",
        Triggered = "triggered" "a trigger order whose order is in the book under a separate id",
        Archive = "archive" "seen in old trades",
    }
}

impl OrderState {
    /// True if the order cannot change any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, OrderState::Filled | OrderState::Rejected | OrderState::Cancelled)
    }
}

codes! {
    /// Type of an order: its price, and the condition to enter the book.
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
    /// Time in force of an order.
    TimeInForce {
        GoodTilCancelled = "good_til_cancelled" "until it is cancelled",
        GoodTilDay = "good_til_day" "until 08:00 UTC",
        FillOrKill = "fill_or_kill" "all of it at once, or nothing",
        ImmediateOrCancel = "immediate_or_cancel" "what trades at once",
    }
    /// Price that a trigger order watches.
    Trigger {
        IndexPrice = "index_price" "the index",
        MarkPrice = "mark_price" "the mark price",
        LastPrice = "last_price" "the last trade",
    }
    /// Pricing of an option order that is not priced in its currency.
    Advanced {
        Usd = "usd" "in USD",
        ImpliedVolatility = "implv" "by implied volatility",
    }
    /// Reason for the cancellation of an order.
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
    /// Kind of instrument.
    Kind {
        Future = "future" "futures and perpetuals",
        Option = "option" "options",
        Spot = "spot" "currency pairs",
        Combo = "combo" "combinations of any kind; of channels",
        FutureCombo = "future_combo" "spreads of futures",
        OptionCombo = "option_combo" "spreads of options",
        Any = "any" "all of them; of requests and channels",
    }
    /// Currency of an instrument's amount and profit.
    InstrumentType {
        Linear = "linear" "amount in the base coin, profit in the quote currency",
        Reversed = "reversed" "amount in USD (of futures), profit in the base coin",
    }
    /// Trading state of a future, an option or a pair.
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
    /// Right of an option.
    OptionType {
        Call = "call" "to buy",
        Put = "put" "to sell",
    }
    /// Role of the user in a trade.
    Liquidity {
        Maker = "M" "the resting one",
        Taker = "T" "the incoming one",
        Both = "MT" "both; of liquidation marks",
    }
    /// Authentication method of a client.
    GrantType {
        ClientCredentials = "client_credentials" "by id and secret",
        ClientSignature = "client_signature" "by id and signature",
        RefreshToken = "refresh_token" "by an earlier refresh token",
    }
    /// Connections whose disconnect cancels orders.
    CancelOnDisconnectScope {
        Connection = "connection" "this connection's",
        Account = "account" "every new connection's",
    }
    /// Open orders that a request selects.
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
    /// Sort order of a list of trades.
    Sorting {
        Ascending = "asc" "oldest first",
        Descending = "desc" "newest first",
        Default = "default" "as the database has them",
    }
}
