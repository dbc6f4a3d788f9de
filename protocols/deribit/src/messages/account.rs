//! Positions and money.

use crate::codes::{Direction, Kind};
use crate::field::message;
use crate::number::{Decimal, Number};
use crate::scan::Value;
use crate::text::Text;

message! {
    /// A position: result of `private/get_position`, element of `private/get_positions` and of `user.changes.*`.
    pub struct Position<'a> {
        /// Signed; in USD for inverse futures, else in the base coin.
        pub size: Decimal,
        /// What the instrument is.
        pub kind: Option<Kind>,
        /// Margin to keep it.
        pub maintenance_margin: Option<Number<'a>>,
        /// Margin to open it.
        pub initial_margin: Option<Number<'a>>,
        /// Its side; an empty one is `zero`, and `buy` on some servers.
        pub direction: Direction,
        /// Price of the index.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Price of the last settlement.
        pub settlement_price: Option<Number<'a>>,
        /// The price that profit is reckoned at.
        pub mark_price: Option<Number<'a>>,
        /// Of perpetuals: the value of the funding.
        pub interest_value: Option<Number<'a>>,
        /// Change of its value with the underlying's price.
        pub delta: Option<Number<'a>>,
        /// Mean price that it was opened at; 0 when it is empty.
        pub average_price: Number<'a>,
        /// Profit that is not settled.
        pub floating_profit_loss: Option<Number<'a>>,
        /// Profit of what was closed since the last settlement.
        pub realized_profit_loss: Option<Number<'a>>,
        /// Profit in all.
        pub total_profit_loss: Option<Number<'a>>,
        /// Of perpetuals: funding received since the last settlement.
        pub realized_funding: Option<Number<'a>>,
        /// Margin is multiplied by it.
        pub leverage: Option<Number<'a>>,
        /// Of futures: the size in the base coin.
        pub size_currency: Option<Number<'a>>,
        /// Margin of its open orders.
        pub open_orders_margin: Option<Number<'a>>,
        /// The price at which it would be liquidated.
        pub estimated_liquidation_price: Option<Number<'a>>,
        /// Of options: mean price in USD.
        pub average_price_usd: Option<Number<'a>>,
        /// Of options: profit in USD that is not settled.
        pub floating_profit_loss_usd: Option<Number<'a>>,
        /// Of options: change of delta with the underlying's price.
        pub gamma: Option<Number<'a>>,
        /// Of options: change with volatility.
        pub vega: Option<Number<'a>>,
        /// Of options: change with time.
        pub theta: Option<Number<'a>>,
    }
}

message! {
    /// Result of `private/get_account_summary` and data of `user.portfolio.{currency}`. With cross margin the totals are
    /// of all currencies, converted: they are not to be added up.
    pub struct AccountSummary<'a> {
        /// The currency.
        pub currency: Text<'a>,
        /// Deposits and settled profit.
        pub balance: Number<'a>,
        /// Balance and profit that is not settled.
        pub equity: Number<'a>,
        /// What new orders may use.
        pub available_funds: Number<'a>,
        /// What may be withdrawn.
        pub available_withdrawal_funds: Option<Number<'a>>,
        /// What margin is taken from.
        pub margin_balance: Option<Number<'a>>,
        /// Margin to open the positions.
        pub initial_margin: Option<Number<'a>>,
        /// Margin to keep the positions.
        pub maintenance_margin: Option<Number<'a>>,
        /// `initial_margin` with the open orders.
        pub projected_initial_margin: Option<Number<'a>>,
        /// `maintenance_margin` without the smallest futures positions.
        pub projected_maintenance_margin: Option<Number<'a>>,
        /// Profit in all.
        pub total_pl: Option<Number<'a>>,
        /// Profit of this session that is realised.
        pub session_rpl: Option<Number<'a>>,
        /// Profit of this session that is not realised.
        pub session_upl: Option<Number<'a>>,
        /// Profit of futures.
        pub futures_pl: Option<Number<'a>>,
        /// Realised profit of futures in this session.
        pub futures_session_rpl: Option<Number<'a>>,
        /// Profit of futures in this session that is not realised.
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
        /// Sum of all deltas without those of expiring positions.
        pub projected_delta_total: Option<Number<'a>>,
        /// Held for open spot orders.
        pub spot_reserve: Option<Number<'a>>,
        /// Held for other reasons.
        pub additional_reserve: Option<Number<'a>>,
        /// Fees that are due.
        pub fee_balance: Option<Number<'a>>,
        /// `segregated_sm`, `segregated_pm`, `cross_sm` or `cross_pm`.
        pub margin_model: Option<Text<'a>>,
        /// True with portfolio margin.
        pub portfolio_margining_enabled: Option<bool>,
        /// True when currencies stand in for each other.
        pub cross_collateral_enabled: Option<bool>,
        /// The rate limits as the server states them.
        pub limits: Option<Value<'a>>,
        /// The account; of extended replies.
        pub id: Option<u64>,
        /// Its user's name; of extended replies.
        pub username: Option<Text<'a>>,
        /// Its own name; of extended replies.
        pub system_name: Option<Text<'a>>,
        /// `main` or `subaccount`; of extended replies.
        pub account_type as "type": Option<Text<'a>>,
        /// What happens to orders that would trade with the account itself; of extended replies.
        pub self_trading_reject_mode: Option<Text<'a>>,
        /// Its delta by index, as an object.
        pub delta_total_map: Option<Value<'a>>,
        /// How near liquidation is: maintenance margin as a part of the equity.
        pub estimated_liquidation_ratio: Option<Number<'a>>,
        /// The same by index, as an object.
        pub estimated_liquidation_ratio_map: Option<Value<'a>>,
        /// Its address; of extended replies.
        pub email: Option<Text<'a>>,
        /// True when it may quote; of extended replies.
        pub mmp_enabled: Option<bool>,
        /// Fees of its own, a list; of extended replies.
        pub fees: Option<Value<'a>>,
    }
}
