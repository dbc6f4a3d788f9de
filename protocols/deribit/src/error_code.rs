//! Error codes, their messages, and a remedy for each.

use std::fmt;

macro_rules! error_codes {
    ($( $error:ident = $code:literal, $message:literal, $remedy:literal; )*) => {
        /// Error code of a rejected request.
        ///
        /// Source: the complete table of the official error page. Its short table of "common errors"
        /// contradicts it and the actual traffic, and is ignored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $message, "`. ", $remedy)]
                $error,
            )*
        }

        impl ErrorCode {
            /// All error codes.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$error),*];

            /// Numeric code.
            #[must_use]
            pub const fn code(self) -> i64 {
                match self {
                    $( ErrorCode::$error => $code, )*
                }
            }

            /// Error code of a number.
            #[must_use]
            #[allow(unreachable_patterns, reason = "two messages have one number: the first is meant by it")]
            pub const fn from_code(code: i64) -> Option<ErrorCode> {
                match code {
                    $( $code => Some(ErrorCode::$error), )*
                    _ => None,
                }
            }

            /// Message of the server for this code; some messages append a limit.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $( ErrorCode::$error => $message, )*
                }
            }

            /// Remedy, in one sentence.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self {
                    $( ErrorCode::$error => $remedy, )*
                }
            }
        }
    };
}

error_codes! {
    ParseError = -32700, "Parse error", "Send one JSON object with a method, an id and params.";
    RequestTooLarge = -32600, "request entity too large", "Send one request of at most 32 kB at a time, with an id; split lists of channels.";
    InvalidRequest = -32600, "Invalid Request", "Send one JSON object with a method and an id; lists of requests are not taken.";
    MethodNotFound = -32601, "Method not found", "Check the name of the method; it is case-sensitive.";
    InvalidParams = -32602, "Invalid params", "Correct the parameter that the error's data names.";
    MissingParams = -32000, "Missing params", "Give the method's parameters.";
    AuthorizationRequired = 10000, "authorization_required", "Authenticate on this connection first.";
    Error = 10001, "error", "Look at the error's data; ask the venue if it comes again.";
    QtyTooLow = 10002, "qty_too_low", "Raise the amount to the instrument's minimum.";
    OrderOverlap = 10003, "order_overlap", "The order would trade with an order of the same account: cancel that one first.";
    OrderNotFound = 10004, "order_not_found", "The order is gone or was never there: ask for the open orders.";
    PriceTooLow = 10005, "price_too_low", "Raise the price into the trading band.";
    PriceTooLow4idx = 10006, "price_too_low4idx", "Raise the price to the limit that the index sets.";
    PriceTooHigh = 10007, "price_too_high", "Lower the price into the trading band.";
    NotEnoughFunds = 10009, "not_enough_funds", "Lower the amount, cancel orders or add funds.";
    AlreadyClosed = 10010, "already_closed", "The order is closed: ask for its state.";
    PriceNotAllowed = 10011, "price_not_allowed", "Choose a price that the instrument allows.";
    BookClosed = 10012, "book_closed", "The instrument is not open: wait for its state to change.";
    PmeMaxTotalOpenOrders = 10013, "pme_max_total_open_orders", "Cancel open orders: portfolio margin limits their number.";
    PmeMaxFutureOpenOrders = 10014, "pme_max_future_open_orders", "Cancel open orders of futures: portfolio margin limits their number.";
    PmeMaxOptionOpenOrders = 10015, "pme_max_option_open_orders", "Cancel open orders of options: portfolio margin limits their number.";
    PmeMaxFutureOpenOrdersSize = 10016, "pme_max_future_open_orders_size", "Lower the amount of open orders of futures.";
    PmeMaxOptionOpenOrdersSize = 10017, "pme_max_option_open_orders_size", "Lower the amount of open orders of options.";
    NonPmeMaxFuturePositionSize = 10018, "non_pme_max_future_position_size", "Lower the position: its size is limited.";
    LockedByAdmin = 10019, "locked_by_admin", "The account is locked: ask the venue.";
    InvalidOrUnsupportedInstrument = 10020, "invalid_or_unsupported_instrument", "Check the instrument's name against the list of instruments.";
    InvalidAmount = 10021, "invalid_amount", "Make the amount a multiple of the instrument's minimum.";
    InvalidQuantity = 10022, "invalid_quantity", "Make the quantity a multiple of the instrument's minimum.";
    InvalidPrice = 10023, "invalid_price", "Give a price above 0 on the instrument's tick.";
    InvalidMaxShow = 10024, "invalid_max_show", "Correct the shown amount.";
    InvalidOrderId = 10025, "invalid_order_id", "Check the order id.";
    PricePrecisionExceeded = 10026, "price_precision_exceeded", "Give the price with fewer decimal places.";
    NonIntegerContractAmount = 10027, "non_integer_contract_amount", "Make the amount a multiple of the contract size.";
    TooManyRequests = 10028, "too_many_requests", "Wait until credits are refilled and send fewer requests; the connection may be closed.";
    NotOwnerOfOrder = 10029, "not_owner_of_order", "The order is of another account: check the order id.";
    MustBeWebsocketRequest = 10030, "must_be_websocket_request", "Send the request over a WebSocket.";
    InvalidArgsForInstrument = 10031, "invalid_args_for_instrument", "Leave out what the instrument's kind does not have.";
    WholeCostTooLow = 10032, "whole_cost_too_low", "Raise the amount: the order's value is too small.";
    NotImplemented = 10033, "not_implemented", "The venue does not have this: use another method.";
    TriggerPriceTooHigh = 10034, "trigger_price_too_high", "Lower the trigger price.";
    TriggerPriceTooLow = 10035, "trigger_price_too_low", "Raise the trigger price.";
    InvalidMaxShowAmount = 10036, "invalid_max_show_amount", "Correct the shown amount.";
    Retry = 10040, "retry", "Send the request again in a moment.";
    SettlementInProgress = 10041, "settlement_in_progress", "Settlement takes less than a minute: send the request again after it.";
    PriceWrongTick = 10043, "price_wrong_tick", "Round the price to the instrument's tick.";
    TriggerPriceWrongTick = 10044, "trigger_price_wrong_tick", "Round the trigger price to the instrument's tick.";
    CanNotCancelLiquidationOrder = 10045, "can_not_cancel_liquidation_order", "A liquidation order cannot be cancelled: wait for its end.";
    CanNotEditLiquidationOrder = 10046, "can_not_edit_liquidation_order", "A liquidation order cannot be edited: wait for its end.";
    MatchingEngineQueueFull = 10047, "matching_engine_queue_full", "Wait for replies before sending more orders.";
    NotOnThisServer = 10048, "not_on_this_server", "Connect to the server of this instrument.";
    CancelOnDisconnectFailed = 10049, "cancel_on_disconnect_failed", "Set cancel on disconnect again.";
    LockTimeExceeded = 10050, "lock_time_exceeded", "Send the request again.";
    TooManyConcurrentRequests = 10066, "too_many_concurrent_requests", "Wait for replies before sending more requests.";
    AlreadyFilled = 11008, "already_filled", "The order is executed in full: ask for its state.";
    MaxSpotOpenOrders = 11013, "max_spot_open_orders", "Cancel open spot orders: their number is limited.";
    PostOnlyPriceModificationNotPossible = 11021, "post_only_price_modification_not_possible", "Give a price that does not cross the book.";
    MaxSpotOrderQuantity = 11022, "max_spot_order_quantity", "Lower the amount.";
    InvalidArguments = 11029, "invalid_arguments", "Correct the parameters.";
    OtherReject = 11030, "other_reject", "Look at the reason in the message.";
    OtherError = 11031, "other_error", "Look at the reason in the message.";
    NoMoreTriggers = 11035, "no_more_triggers", "Cancel trigger orders: their number is limited.";
    InvalidTriggerPrice = 11036, "invalid_trigger_price", "Give a trigger price on the other side of the market.";
    OutdatedInstrumentForIvOrder = 11037, "outdated_instrument_for_IV_order", "The instrument expires too soon for an order by volatility.";
    NoAdvForFutures = 11038, "no_adv_for_futures", "Leave out `advanced`: it is for options.";
    NoAdvPostonly = 11039, "no_adv_postonly", "Leave out `post_only` or `advanced`.";
    NotAdvOrder = 11041, "not_adv_order", "The order is not priced by `advanced`: leave it out.";
    PermissionDenied = 11042, "permission_denied", "Ask for a key that may do this.";
    BadArgument = 11043, "bad_argument", "Correct the parameter that the error's data names.";
    NotOpenOrder = 11044, "not_open_order", "The order is no longer open: ask for its state.";
    InvalidEvent = 11045, "invalid_event", "Check the name of the channel.";
    OutdatedInstrument = 11046, "outdated_instrument", "The instrument expired: choose another.";
    UnsupportedArgCombination = 11047, "unsupported_arg_combination", "Leave out one of the parameters that exclude each other.";
    WrongMaxShowForOption = 11048, "wrong_max_show_for_option", "Correct the shown amount.";
    BadArguments = 11049, "bad_arguments", "Correct the parameters.";
    BadRequest = 11050, "bad_request", "Correct the request's form.";
    SystemMaintenance = 11051, "system_maintenance", "Wait for the end of maintenance, then send again.";
    SubscribeErrorUnsubscribed = 11052, "subscribe_error_unsubscribed", "The subscription ended: subscribe again.";
    TransferNotFound = 11053, "transfer_not_found", "Check the transfer's id.";
    PostOnlyReject = 11054, "post_only_reject", "The order would take liquidity: choose a price that does not cross the book.";
    PostOnlyNotAllowed = 11055, "post_only_not_allowed", "Leave out `post_only` with this time in force or type.";
    UnauthenticatedPublicRequestsTemporarilyDisabled = 11056, "unauthenticated_public_requests_temporarily_disabled", "Authenticate first, or send again later.";
    InternalServerError = 11094, "internal_server_error", "Ask for the state, then send again.";
    AccountLocked = 11098, "account_locked", "The account is locked: ask the venue.";
    InvalidCredentials = 13004, "invalid_credentials", "Check the key's id and secret, and that they are of this environment.";
    RequestFailed = 13008, "request_failed", "Ask for the state; send again if nothing was done.";
    Unauthorized = 13009, "unauthorized", "Authenticate again: the token or signature is wrong, over, or allows too little.";
    ValueRequired = 13010, "value_required", "Give the parameter that the error's data names.";
    InvalidInput = 13016, "invalid_input", "Correct the parameters.";
    NotFound = 13020, "not_found", "Check the name or id.";
    Forbidden = 13021, "forbidden", "Ask for a key or a scope that may do this.";
    MethodSwitchedOffByAdmin = 13025, "method_switched_off_by_admin", "The method is switched off: send again later.";
    TemporarilyUnavailable = 13028, "temporarily_unavailable", "Send the request again in a moment.";
    MmpTrigger = 13030, "mmp_trigger", "Market maker protection stopped quoting: reset it.";
    NonUniqueOrderLabel = 13032, "non_unique_order_label", "Several orders have this label: use the order id.";
    CodNotEnabled = 13042, "cod_not_enabled", "Enable cancel on disconnect before quoting.";
    QuotesFrozen = 13043, "quotes_frozen", "Quotes are frozen after a cancel: wait for its end.";
    ScopeExceeded = 13403, "scope_exceeded", "Ask for a smaller scope.";
    Unavailable = 13503, "unavailable", "Send the request again later.";
    RequestCancelledByUser = 13666, "request_cancelled_by_user", "A later cancel took the request back: nothing is to be done.";
    Replaced = 13777, "replaced", "A later edit overtook this one: nothing is to be done.";
    RawSubscriptionsNotAvailableForUnauthorized = 13778, "raw_subscriptions_not_available_for_unauthorized", "Authenticate before subscribing to raw channels, or subscribe to 100ms.";
    TimedOut = 13888, "timed_out", "The request came after its deadline: ask for the state by label, then send again.";
    NoMoreOtoOrders = 13901, "no_more_oto_orders", "Cancel linked orders: their number is limited.";
    MassQuotesDisabled = 13902, "mass_quotes_disabled", "The account may not quote: ask the venue.";
    TooManyQuotes = 13903, "too_many_quotes", "Send fewer quotes at once.";
}

impl ErrorCode {
    /// True if the same request can succeed later. Before resending an order, query its state by its label,
    /// because the venue may have accepted it.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            ErrorCode::TooManyRequests
                | ErrorCode::Retry
                | ErrorCode::SettlementInProgress
                | ErrorCode::MatchingEngineQueueFull
                | ErrorCode::TooManyConcurrentRequests
                | ErrorCode::SystemMaintenance
                | ErrorCode::InternalServerError
                | ErrorCode::TemporarilyUnavailable
                | ErrorCode::TimedOut
        )
    }

    /// True if the server does not state whether the request was executed: query the state.
    #[must_use]
    pub const fn is_unsure(self) -> bool {
        matches!(self, ErrorCode::TimedOut | ErrorCode::RequestFailed | ErrorCode::InternalServerError)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_one_to_one_and_each_has_a_remedy() {
        for error in ErrorCode::ALL {
            let known = ErrorCode::from_code(error.code()).unwrap();
            assert!(known == *error || (known.code(), *error) == (-32_600, ErrorCode::InvalidRequest));
            assert!(error.remedy().ends_with('.') && !error.message().is_empty());
        }
        assert_eq!(ErrorCode::from_code(10_008), None);
        assert_eq!(ErrorCode::ALL.iter().filter(|error| error.is_retryable()).count(), 9);
        assert_eq!(ErrorCode::PostOnlyReject.to_string(), "post_only_reject (11054)");
    }
}
