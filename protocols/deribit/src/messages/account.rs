//! Positions and account balances.

use crate::codes::{Direction, Kind};
use crate::field::message;
use crate::number::{Decimal, Number};
use crate::scan::Value;
use crate::text::Text;

message! {
    /// A position: result of `private/get_position`, element of `private/get_positions` and `user.changes.*`.
    pub struct Position<'a> {
        /// Signed size; in USD for inverse futures, otherwise in the base coin.
        pub size: Decimal,
        /// Kind of the instrument.
        pub kind: Option<Kind>,
        /// Maintenance margin.
        pub maintenance_margin: Option<Number<'a>>,
        /// Initial margin.
        pub initial_margin: Option<Number<'a>>,
        /// Side; for an empty position `zero`, or `buy` on some servers.
        pub direction: Direction,
        /// Index price.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Last settlement price.
        pub settlement_price: Option<Number<'a>>,
        /// Mark price.
        pub mark_price: Option<Number<'a>>,
        /// Perpetuals: value of the funding.
        pub interest_value: Option<Number<'a>>,
        /// Delta: change of the value with the underlying's price.
        pub delta: Option<Number<'a>>,
        /// Average entry price; 0 for an empty position.
        pub average_price: Number<'a>,
        /// Unsettled profit.
        pub floating_profit_loss: Option<Number<'a>>,
        /// Realised profit since the last settlement.
        pub realized_profit_loss: Option<Number<'a>>,
        /// Total profit.
        pub total_profit_loss: Option<Number<'a>>,
        /// Perpetuals: funding received since the last settlement.
        pub realized_funding: Option<Number<'a>>,
        /// Leverage.
        pub leverage: Option<Number<'a>>,
        /// Futures: size in the base coin.
        pub size_currency: Option<Number<'a>>,
        /// Margin of the instrument's open orders.
        pub open_orders_margin: Option<Number<'a>>,
        /// Estimated liquidation price.
        pub estimated_liquidation_price: Option<Number<'a>>,
        /// Options: average price in USD.
        pub average_price_usd: Option<Number<'a>>,
        /// Options: unsettled profit in USD.
        pub floating_profit_loss_usd: Option<Number<'a>>,
        /// Options: change of delta with the underlying's price.
        pub gamma: Option<Number<'a>>,
        /// Options: change of the value with volatility.
        pub vega: Option<Number<'a>>,
        /// Options: change of the value with time.
        pub theta: Option<Number<'a>>,
    }
}

message! {
    /// Result of `private/get_account_summary` and data of `user.portfolio.{currency}`. With cross margin,
    /// the totals already cover all currencies after conversion: do not add them up.
    pub struct AccountSummary<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Deposits and settled profit.
        pub balance: Number<'a>,
        /// Balance plus unsettled profit.
        pub equity: Number<'a>,
        /// Funds available for new orders.
        pub available_funds: Number<'a>,
        /// Funds available for withdrawal.
        pub available_withdrawal_funds: Option<Number<'a>>,
        /// Balance from which margin is taken.
        pub margin_balance: Option<Number<'a>>,
        /// Initial margin of the positions.
        pub initial_margin: Option<Number<'a>>,
        /// Maintenance margin of the positions.
        pub maintenance_margin: Option<Number<'a>>,
        /// `initial_margin` including open orders.
        pub projected_initial_margin: Option<Number<'a>>,
        /// `maintenance_margin` without the smallest futures positions.
        pub projected_maintenance_margin: Option<Number<'a>>,
        /// Total profit.
        pub total_pl: Option<Number<'a>>,
        /// Realised profit of this session.
        pub session_rpl: Option<Number<'a>>,
        /// Unrealised profit of this session.
        pub session_upl: Option<Number<'a>>,
        /// Profit of futures.
        pub futures_pl: Option<Number<'a>>,
        /// Realised profit of futures in this session.
        pub futures_session_rpl: Option<Number<'a>>,
        /// Unrealised profit of futures in this session.
        pub futures_session_upl: Option<Number<'a>>,
        /// Profit of options.
        pub options_pl: Option<Number<'a>>,
        /// Value of options.
        pub options_value: Option<Number<'a>>,
        /// Sum of the options' deltas.
        pub options_delta: Option<Number<'a>>,
        /// Sum of the options' gammas.
        pub options_gamma: Option<Number<'a>>,
        /// Sum of the options' thetas.
        pub options_theta: Option<Number<'a>>,
        /// Sum of the options' vegas.
        pub options_vega: Option<Number<'a>>,
        /// Sum of all deltas.
        pub delta_total: Option<Number<'a>>,
        /// Sum of all deltas, excluding expiring positions.
        pub projected_delta_total: Option<Number<'a>>,
        /// Reserved for open spot orders.
        pub spot_reserve: Option<Number<'a>>,
        /// Reserved for other reasons.
        pub additional_reserve: Option<Number<'a>>,
        /// Fees due.
        pub fee_balance: Option<Number<'a>>,
        /// `segregated_sm`, `segregated_pm`, `cross_sm` or `cross_pm`.
        pub margin_model: Option<Text<'a>>,
        /// True with portfolio margin.
        pub portfolio_margining_enabled: Option<bool>,
        /// True with cross collateral between currencies.
        pub cross_collateral_enabled: Option<bool>,
        /// Rate limits as stated by the server.
        pub limits: Option<Value<'a>>,
        /// Account id; only in extended replies.
        pub id: Option<u64>,
        /// User name; only in extended replies.
        pub username: Option<Text<'a>>,
        /// System name of the account; only in extended replies.
        pub system_name: Option<Text<'a>>,
        /// `main` or `subaccount`; only in extended replies.
        pub account_type as "type": Option<Text<'a>>,
        /// Self-trade prevention mode; only in extended replies.
        pub self_trading_reject_mode: Option<Text<'a>>,
        /// Delta by index, as an object.
        pub delta_total_map: Option<Value<'a>>,
        /// Distance to liquidation: maintenance margin as a fraction of the equity.
        pub estimated_liquidation_ratio: Option<Number<'a>>,
        /// `estimated_liquidation_ratio` by index, as an object.
        pub estimated_liquidation_ratio_map: Option<Value<'a>>,
        /// Email address; only in extended replies.
        pub email: Option<Text<'a>>,
        /// True if the account may quote; only in extended replies.
        pub mmp_enabled: Option<bool>,
        /// Account-specific fees, as a list; only in extended replies.
        pub fees: Option<Value<'a>>,
    }
}
