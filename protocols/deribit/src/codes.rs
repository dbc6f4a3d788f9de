//! The texts that fields may have.

use crate::field::codes;
use tickpath_types::Side;

codes! {
    /// The side of an order, a trade's taker or a position.
    pub enum Direction {
        /// Bought.
        Buy = "buy",
        /// Sold.
        Sell = "sell",
        /// A position of nothing.
        Zero = "zero",
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
    pub enum OrderState {
        /// In the book.
        Open = "open",
        /// Executed in full.
        Filled = "filled",
        /// Never accepted.
        Rejected = "rejected",
        /// Taken out of the book.
        Cancelled = "cancelled",
        /// A trigger order that waits.
        Untriggered = "untriggered",
        /// A trigger order whose order is in the book, with an id of its own.
        Triggered = "triggered",
        /// Seen in old trades.
        Archive = "archive",
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
    pub enum OrderType {
        /// At its price or better.
        Limit = "limit",
        /// At what the book has, within the trading band.
        Market = "market",
        /// A limit order once the price is worse than its trigger.
        StopLimit = "stop_limit",
        /// A market order once the price is worse than its trigger.
        StopMarket = "stop_market",
        /// A limit order once the price is better than its trigger.
        TakeLimit = "take_limit",
        /// A market order once the price is better than its trigger.
        TakeMarket = "take_market",
        /// At the best price; what is left rests there.
        MarketLimit = "market_limit",
        /// A stop that follows the price.
        TrailingStop = "trailing_stop",
        /// A forced execution; of trades only.
        Liquidation = "liquidation",
    }
}

codes! {
    /// How long an order stays.
    pub enum TimeInForce {
        /// Until it is cancelled.
        GoodTilCancelled = "good_til_cancelled",
        /// Until 08:00 UTC.
        GoodTilDay = "good_til_day",
        /// All of it at once, or nothing.
        FillOrKill = "fill_or_kill",
        /// What can be had at once.
        ImmediateOrCancel = "immediate_or_cancel",
    }
}

codes! {
    /// The price that a trigger order watches.
    pub enum Trigger {
        /// The index.
        IndexPrice = "index_price",
        /// The mark price.
        MarkPrice = "mark_price",
        /// The last trade.
        LastPrice = "last_price",
    }
}

codes! {
    /// How an option order is priced when not in its currency.
    pub enum Advanced {
        /// In USD.
        Usd = "usd",
        /// By implied volatility.
        ImpliedVolatility = "implv",
    }
}

codes! {
    /// Why an order was cancelled.
    pub enum CancelReason {
        /// Its owner asked.
        UserRequest = "user_request",
        /// A liquidation.
        Autoliquidation = "autoliquidation",
        /// Its connection ended.
        CancelOnDisconnect = "cancel_on_disconnect",
        /// Risk of the account.
        RiskMitigation = "risk_mitigation",
        /// Portfolio margin.
        PmeRiskReduction = "pme_risk_reduction",
        /// Portfolio margin locked the account.
        PmeAccountLocked = "pme_account_locked",
        /// The position is locked.
        PositionLocked = "position_locked",
        /// Market maker protection.
        MmpTrigger = "mmp_trigger",
        /// Market maker protection was reconfigured.
        MmpConfigCurtailment = "mmp_config_curtailment",
        /// An edit would have taken liquidity.
        EditPostOnlyReject = "edit_post_only_reject",
        /// The other order of a pair ended.
        OcoOtherClosed = "oco_other_closed",
        /// The order that it depends on ended.
        OtoPrimaryClosed = "oto_primary_closed",
        /// Settlement of the instrument.
        Settlement = "settlement",
    }
}

codes! {
    /// What kind of thing is traded.
    pub enum Kind {
        /// Futures and perpetuals.
        Future = "future",
        /// Options.
        Option = "option",
        /// Currency pairs.
        Spot = "spot",
        /// Combinations of any kind; of channels.
        Combo = "combo",
        /// Spreads of futures.
        FutureCombo = "future_combo",
        /// Spreads of options.
        OptionCombo = "option_combo",
        /// All of them; of requests and channels.
        Any = "any",
    }
}

codes! {
    /// In which currency an instrument's amount and profit are.
    pub enum InstrumentType {
        /// Amount in the base coin, profit in the quote currency.
        Linear = "linear",
        /// Amount in USD (of futures), profit in the base coin.
        Reversed = "reversed",
    }
}

codes! {
    /// Whether a future, an option or a pair can be traded.
    pub enum InstrumentState {
        /// Open for trading.
        Open = "open",
        /// Settled.
        Settlement = "settlement",
        /// Delivered.
        Delivered = "delivered",
        /// Not for trading.
        Inactive = "inactive",
        /// Locked.
        Locked = "locked",
        /// Halted.
        Halted = "halted",
        /// Gone.
        Archivized = "archivized",
        /// New; of the channel.
        Created = "created",
        /// Opened; an older name of the channel.
        Started = "started",
        /// Settled; of the channel.
        Settled = "settled",
        /// Closed; of the channel.
        Closed = "closed",
        /// Taken off; of the channel.
        Terminated = "terminated",
        /// No longer open; of the channel.
        Deactivated = "deactivated",
    }
}

codes! {
    /// The right of an option.
    pub enum OptionType {
        /// To buy.
        Call = "call",
        /// To sell.
        Put = "put",
    }
}

codes! {
    /// Which side of a trade the user was.
    pub enum Liquidity {
        /// The resting one.
        Maker = "M",
        /// The incoming one.
        Taker = "T",
        /// Both; of liquidation marks.
        Both = "MT",
    }
}

codes! {
    /// How a client shows who it is.
    pub enum GrantType {
        /// By id and secret.
        ClientCredentials = "client_credentials",
        /// By id and signature.
        ClientSignature = "client_signature",
        /// By an earlier refresh token.
        RefreshToken = "refresh_token",
    }
}

codes! {
    /// Whose disconnect cancels orders.
    pub enum CancelOnDisconnectScope {
        /// This connection's.
        Connection = "connection",
        /// Every new connection's.
        Account = "account",
    }
}

codes! {
    /// Which open orders are meant.
    pub enum OrderFilter {
        /// All.
        All = "all",
        /// Limit orders.
        Limit = "limit",
        /// Those that wait for a trigger.
        TriggerAll = "trigger_all",
        /// Stops; of cancel requests.
        Stop = "stop",
        /// Takes; of cancel requests.
        Take = "take",
        /// Trailing stops.
        TrailingStop = "trailing_stop",
        /// All stops.
        StopAll = "stop_all",
        /// Stops that become limit orders.
        StopLimit = "stop_limit",
        /// Stops that become market orders.
        StopMarket = "stop_market",
        /// All takes.
        TakeAll = "take_all",
        /// Takes that become limit orders.
        TakeLimit = "take_limit",
        /// Takes that become market orders.
        TakeMarket = "take_market",
        /// All trailing orders.
        TrailingAll = "trailing_all",
    }
}

codes! {
    /// The order of a list of trades.
    pub enum Sorting {
        /// Oldest first.
        Ascending = "asc",
        /// Newest first.
        Descending = "desc",
        /// As the database has them.
        Default = "default",
    }
}
