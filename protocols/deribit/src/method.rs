//! The methods of the API.

use std::fmt;

use crate::text::Text;

/// Length of the longest method name that is looked up, in bytes.
const NAME_LEN_MAX: usize = 64;

macro_rules! methods {
    ($( $method:ident = $name:literal, )*) => {
        /// Method of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(
                #[doc = concat!("`", $name, "`.")]
                $method,
            )*
        }

        impl Method {
            /// All methods.
            pub const ALL: &[Method] = &[$(Method::$method),*];

            /// Name of the method in a request.
            #[must_use]
            #[inline]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Method::$method => $name, )*
                }
            }

            /// The part of a request between its id and its params, which names the method.
            #[inline]
            pub(crate) const fn envelope(self) -> &'static str {
                match self {
                    $( Method::$method => concat!(",\"method\":\"", $name, "\",\"params\":"), )*
                }
            }

            /// Method with this name; names are case-sensitive.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Method> {
                match name {
                    $( $name => Some(Method::$method), )*
                    _ => None,
                }
            }
        }
    };
}

methods! {
    Auth = "public/auth",
    ExchangeToken = "public/exchange_token",
    ForkToken = "public/fork_token",
    Logout = "private/logout",
    SetHeartbeat = "public/set_heartbeat",
    DisableHeartbeat = "public/disable_heartbeat",
    Test = "public/test",
    Hello = "public/hello",
    GetTime = "public/get_time",
    Status = "public/status",
    EnableCancelOnDisconnect = "private/enable_cancel_on_disconnect",
    DisableCancelOnDisconnect = "private/disable_cancel_on_disconnect",
    GetCancelOnDisconnect = "private/get_cancel_on_disconnect",
    PublicSubscribe = "public/subscribe",
    PublicUnsubscribe = "public/unsubscribe",
    PublicUnsubscribeAll = "public/unsubscribe_all",
    PrivateSubscribe = "private/subscribe",
    PrivateUnsubscribe = "private/unsubscribe",
    PrivateUnsubscribeAll = "private/unsubscribe_all",
    GetInstruments = "public/get_instruments",
    GetInstrument = "public/get_instrument",
    GetCurrencies = "public/get_currencies",
    GetContractSize = "public/get_contract_size",
    GetOrderBook = "public/get_order_book",
    GetOrderBookByInstrumentId = "public/get_order_book_by_instrument_id",
    Ticker = "public/ticker",
    GetIndexPrice = "public/get_index_price",
    GetBookSummaryByCurrency = "public/get_book_summary_by_currency",
    GetBookSummaryByInstrument = "public/get_book_summary_by_instrument",
    GetFundingRateValue = "public/get_funding_rate_value",
    GetFundingRateHistory = "public/get_funding_rate_history",
    GetTradingviewChartData = "public/get_tradingview_chart_data",
    GetFundingChartData = "public/get_funding_chart_data",
    GetVolatilityIndexData = "public/get_volatility_index_data",
    GetHistoricalVolatility = "public/get_historical_volatility",
    GetMarkPriceHistory = "public/get_mark_price_history",
    GetIndexPriceNames = "public/get_index_price_names",
    GetExpirations = "public/get_expirations",
    GetTradeVolumes = "public/get_trade_volumes",
    GetAnnouncements = "public/get_announcements",
    GetCombos = "public/get_combos",
    GetDeliveryPrices = "public/get_delivery_prices",
    GetLastSettlementsByInstrument = "public/get_last_settlements_by_instrument",
    GetLastSettlementsByCurrency = "public/get_last_settlements_by_currency",
    GetLastTradesByInstrument = "public/get_last_trades_by_instrument",
    GetLastTradesByInstrumentAndTime = "public/get_last_trades_by_instrument_and_time",
    GetLastTradesByCurrency = "public/get_last_trades_by_currency",
    GetLastTradesByCurrencyAndTime = "public/get_last_trades_by_currency_and_time",
    Buy = "private/buy",
    Sell = "private/sell",
    Edit = "private/edit",
    EditByLabel = "private/edit_by_label",
    Cancel = "private/cancel",
    CancelByLabel = "private/cancel_by_label",
    CancelAll = "private/cancel_all",
    CancelAllByInstrument = "private/cancel_all_by_instrument",
    CancelAllByCurrency = "private/cancel_all_by_currency",
    CancelAllByCurrencyPair = "private/cancel_all_by_currency_pair",
    CancelAllByKindOrType = "private/cancel_all_by_kind_or_type",
    ClosePosition = "private/close_position",
    MassQuote = "private/mass_quote",
    CancelQuotes = "private/cancel_quotes",
    GetOpenOrders = "private/get_open_orders",
    GetOpenOrdersByInstrument = "private/get_open_orders_by_instrument",
    GetOpenOrdersByCurrency = "private/get_open_orders_by_currency",
    GetOpenOrdersByLabel = "private/get_open_orders_by_label",
    GetOrderState = "private/get_order_state",
    GetOrderStateByLabel = "private/get_order_state_by_label",
    GetOrderHistoryByInstrument = "private/get_order_history_by_instrument",
    GetOrderHistoryByCurrency = "private/get_order_history_by_currency",
    GetTriggerOrderHistory = "private/get_trigger_order_history",
    GetUserTradesByInstrument = "private/get_user_trades_by_instrument",
    GetUserTradesByInstrumentAndTime = "private/get_user_trades_by_instrument_and_time",
    GetUserTradesByCurrency = "private/get_user_trades_by_currency",
    GetUserTradesByCurrencyAndTime = "private/get_user_trades_by_currency_and_time",
    GetUserTradesByOrder = "private/get_user_trades_by_order",
    GetSettlementHistoryByInstrument = "private/get_settlement_history_by_instrument",
    GetSettlementHistoryByCurrency = "private/get_settlement_history_by_currency",
    GetTransactionLog = "private/get_transaction_log",
    GetPosition = "private/get_position",
    GetPositions = "private/get_positions",
    GetAccountSummary = "private/get_account_summary",
    GetAccountSummaries = "private/get_account_summaries",
    GetSubaccounts = "private/get_subaccounts",
    GetMargins = "private/get_margins",
    GetDeposits = "private/get_deposits",
    GetWithdrawals = "private/get_withdrawals",
    GetTransfers = "private/get_transfers",
    GetCurrentDepositAddress = "private/get_current_deposit_address",
    CreateDepositAddress = "private/create_deposit_address",
    SubmitTransferToUser = "private/submit_transfer_to_user",
    SubmitTransferToSubaccount = "private/submit_transfer_to_subaccount",
    Withdraw = "private/withdraw",
    SetSelfTradingConfig = "private/set_self_trading_config",
    SetMmpConfig = "private/set_mmp_config",
    GetMmpConfig = "private/get_mmp_config",
    GetMmpStatus = "private/get_mmp_status",
    ResetMmp = "private/reset_mmp",
}

impl Method {
    /// Method with this name as received; some encoders escape its slash.
    #[must_use]
    pub fn from_text(name: Text<'_>) -> Option<Method> {
        match name.plain() {
            Some(plain) => Method::from_name(plain),
            None => Method::from_name(name.copy_into(&mut [0; NAME_LEN_MAX])?),
        }
    }

    /// True if only an authenticated client may call it.
    #[must_use]
    #[inline]
    pub fn is_private(self) -> bool {
        self.name().starts_with("private/")
    }

    /// True if the matching engine executes it. Such requests have a separate rate limit, and their replies
    /// can overtake those of other requests.
    #[must_use]
    #[inline]
    pub const fn is_matching(self) -> bool {
        matches!(
            self,
            Method::Buy
                | Method::Sell
                | Method::Edit
                | Method::EditByLabel
                | Method::Cancel
                | Method::CancelByLabel
                | Method::CancelAll
                | Method::CancelAllByInstrument
                | Method::CancelAllByCurrency
                | Method::CancelAllByCurrencyPair
                | Method::CancelAllByKindOrType
                | Method::ClosePosition
                | Method::MassQuote
                | Method::CancelQuotes
        )
    }

    /// True if the same request may be resent after its reply was lost: repeating it changes nothing further.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        !matches!(
            self,
            Method::Auth
                | Method::ExchangeToken
                | Method::ForkToken
                | Method::Logout
                | Method::Buy
                | Method::Sell
                | Method::Edit
                | Method::EditByLabel
                | Method::ClosePosition
                | Method::MassQuote
                | Method::SubmitTransferToUser
                | Method::SubmitTransferToSubaccount
                | Method::Withdraw
        )
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Scanner;

    #[test]
    fn names_and_methods_are_one_to_one() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(*method));
            assert!(method.name().len() <= NAME_LEN_MAX);
        }
        assert_eq!(Method::from_name("private/Buy"), None);
        let escaped = Scanner::new(r#""private\/buy""#).text().unwrap();
        assert_eq!(Method::from_text(escaped), Some(Method::Buy));
        assert!(Method::Buy.is_private() && Method::Buy.is_matching() && !Method::Buy.is_idempotent());
        assert!(!Method::Ticker.is_private() && Method::Cancel.is_idempotent());
    }
}
