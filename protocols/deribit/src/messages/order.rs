//! Orders and the user's trades.

use crate::codes::{
    Advanced, CancelReason, Direction, Liquidity, OrderState, OrderType, TimeInForce, Trigger,
};
use crate::envelope::Id;
use crate::field::{Field, List, message};
use crate::messages::Position;
use crate::number::{Decimal, Number};
use crate::scan::{Rest, ScanError, ScanErrorKind, Scanner, Value};
use crate::text::Text;

/// The price of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderPrice {
    /// Limit price.
    Limit(Decimal),
    /// Market price when the trigger fires: the text `market_price`.
    #[default]
    Market,
}

impl OrderPrice {
    /// The limit price, if any.
    #[must_use]
    pub const fn limit(self) -> Option<Decimal> {
        match self {
            OrderPrice::Limit(price) => Some(price),
            OrderPrice::Market => None,
        }
    }
}

impl<'a> Field<'a> for OrderPrice {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        if scanner.peek() != Some(b'"') {
            return scanner.decimal().map(OrderPrice::Limit);
        }
        let at = scanner.at();
        if scanner.text()? == "market_price" {
            Ok(OrderPrice::Market)
        } else {
            Err(scanner.error_at(at, ScanErrorKind::UnknownValue))
        }
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        match rest.after("\"market_price\"") {
            Some(rest) => Some((OrderPrice::Market, rest)),
            None => Decimal::quick(rest).map(|(price, rest)| (OrderPrice::Limit(price), rest)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            OrderPrice::Limit(price) => price.write(out),
            OrderPrice::Market => out.extend_from_slice(b"\"market_price\""),
        }
    }
}

message! {
    /// An order: result of `private/cancel` and `private/get_order_state`, element of lists of orders, data
    /// of `user.orders.*`.
    pub struct Order<'a> {
        /// The client's label; empty without one. Neither unique nor validated.
        pub label: Option<Text<'a>>,
        /// Its price.
        pub price: Option<OrderPrice>,
        /// The account.
        pub user_id: Option<u64>,
        /// Total amount, including the executed one.
        pub amount: Decimal,
        /// Its side.
        pub direction: Direction,
        /// Time in force.
        pub time_in_force: Option<TimeInForce>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// True if entered on the web site.
        pub web: bool,
        /// True if entered through the API.
        pub api: bool,
        /// The venue's id; edits do not change it.
        pub order_id: Text<'a>,
        /// Milliseconds since 1970.
        pub creation_timestamp: u64,
        /// True once the order was edited.
        pub replaced: bool,
        /// Executed amount; absent for untriggered orders.
        pub filled_amount: Option<Decimal>,
        /// Milliseconds since 1970.
        pub last_update_timestamp: u64,
        /// True if the order must not take liquidity.
        pub post_only: bool,
        /// True if the order must not increase the position.
        pub reduce_only: bool,
        /// Reason for the cancellation.
        pub cancel_reason: Option<CancelReason>,
        /// Average price of the executions; 0 before the first.
        pub average_price: Option<Number<'a>>,
        /// Trigger price.
        pub trigger_price: Option<Decimal>,
        /// Price that the trigger watches.
        pub trigger: Option<Trigger>,
        /// True if market maker protection includes the order.
        pub mmp: bool,
        /// Amount in contracts; only from newer servers.
        pub contracts: Option<Number<'a>>,
        /// True if a `post_only` order is rejected, rather than repriced, when it would take liquidity.
        pub reject_post_only: Option<bool>,
        /// State of the order.
        pub order_state: OrderState,
        /// Current type.
        pub order_type: OrderType,
        /// True for a liquidation order.
        pub is_liquidation: bool,
        /// True if the order reduces the risk of the account.
        pub risk_reducing: bool,
        /// Original type, if the type has changed.
        pub original_order_type: Option<OrderType>,
        /// True if market maker protection cancelled the order.
        pub mmp_cancelled: Option<bool>,
        /// Amount displayed in the book.
        pub display_amount: Option<Decimal>,
        /// Amount displayed in the book; only from older servers.
        pub max_show: Option<Decimal>,
        /// Trailing stops: the distance.
        pub trigger_offset: Option<Decimal>,
        /// Price of the trigger at the entry of the order.
        pub trigger_reference_price: Option<Number<'a>>,
        /// True once the trigger has fired.
        pub triggered: Option<bool>,
        /// Triggered orders: the trigger order.
        pub trigger_order_id: Option<Text<'a>>,
        /// `trigger_price` of older servers.
        pub stop_price: Option<Decimal>,
        /// Options: pricing.
        pub advanced: Option<Advanced>,
        /// Options: volatility, in percent.
        pub implv: Option<Number<'a>>,
        /// Options: price in USD.
        pub usd: Option<Number<'a>>,
        /// Application that entered the order.
        pub app_name: Option<Text<'a>>,
        /// Group of one-cancels-other orders.
        pub oco_ref: Option<Text<'a>>,
        /// True for a quote from `private/mass_quote`.
        pub quote: Option<bool>,
        /// Quotes: id of the request.
        pub quote_id: Option<Text<'a>>,
        /// Quotes: id of the set, for cancellation.
        pub quote_set_id: Option<Text<'a>>,
        /// Quotes: market maker protection group.
        pub mmp_group: Option<Text<'a>>,
        /// True for an order that another one triggers.
        pub is_secondary_oto: Option<bool>,
        /// Order that triggers this one.
        pub primary_order_id: Option<Text<'a>>,
        /// True for an order that triggers two one-cancels-other orders.
        pub is_primary_otoco: Option<bool>,
        /// Orders that this one triggers.
        pub oto_order_ids: Option<List<'a, Text<'a>>>,
        /// True once the server has repriced an option order priced in USD or by volatility.
        pub auto_replaced: Option<bool>,
        /// True if the order rebalances currencies of a cross collateral account.
        pub is_rebalance: Option<bool>,
        /// True if entered in the mobile application.
        pub mobile: Option<bool>,
        /// Iceberg orders: amount displayed again after each execution of the displayed part.
        pub refresh_amount: Option<Decimal>,
        /// Commission so far; only from older servers.
        pub commission: Option<Number<'a>>,
        /// Profit from closing a position; only from older servers.
        pub profit_loss: Option<Number<'a>>,
    }
}

impl<'a> Order<'a> {
    /// Creates an open limit order with amount 0, to be filled in.
    #[must_use]
    pub const fn empty(instrument_name: &'a str) -> Order<'a> {
        Order {
            label: None,
            price: None,
            user_id: None,
            amount: Decimal::ZERO,
            direction: Direction::Buy,
            time_in_force: None,
            instrument_name: Text::new(instrument_name),
            web: false,
            api: true,
            order_id: Text::new(""),
            creation_timestamp: 0,
            replaced: false,
            filled_amount: None,
            last_update_timestamp: 0,
            post_only: false,
            reduce_only: false,
            cancel_reason: None,
            average_price: None,
            trigger_price: None,
            trigger: None,
            mmp: false,
            contracts: None,
            reject_post_only: None,
            order_state: OrderState::Open,
            order_type: OrderType::Limit,
            is_liquidation: false,
            risk_reducing: false,
            original_order_type: None,
            mmp_cancelled: None,
            display_amount: None,
            max_show: None,
            trigger_offset: None,
            trigger_reference_price: None,
            triggered: None,
            trigger_order_id: None,
            stop_price: None,
            advanced: None,
            implv: None,
            usd: None,
            app_name: None,
            oco_ref: None,
            quote: None,
            quote_id: None,
            quote_set_id: None,
            mmp_group: None,
            is_secondary_oto: None,
            primary_order_id: None,
            is_primary_otoco: None,
            oto_order_ids: None,
            auto_replaced: None,
            is_rebalance: None,
            mobile: None,
            refresh_amount: None,
            commission: None,
            profit_loss: None,
        }
    }

    /// Executed amount; 0 if absent.
    #[must_use]
    pub fn filled(&self) -> Decimal {
        self.filled_amount.unwrap_or(Decimal::ZERO)
    }

    /// The client's label; empty if absent.
    #[must_use]
    pub fn label_text(&self) -> Text<'a> {
        self.label.unwrap_or(Text::new(""))
    }
}

message! {
    /// A trade of the user: an element of `user.trades.*` and of lists of trades.
    pub struct UserTrade<'a> {
        /// Label of the order.
        pub label: Option<Text<'a>>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// State of the order after the trade.
        pub state: Option<OrderState>,
        /// The price.
        pub price: Decimal,
        /// The account.
        pub user_id: Option<u64>,
        /// The amount.
        pub amount: Decimal,
        /// Side of the user.
        pub direction: Direction,
        /// Index price at the time of the trade.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of the trade within its instrument.
        pub trade_seq: u64,
        /// True for an order through the API.
        pub api: bool,
        /// Mark price at the time of the trade.
        pub mark_price: Option<Number<'a>>,
        /// The order.
        pub order_id: Text<'a>,
        /// Tick direction: 0 up, 1 unchanged after up, 2 down, 3 unchanged after down.
        pub tick_direction: Option<u8>,
        /// Profit from closing a position.
        pub profit_loss: Option<Number<'a>>,
        /// True if the order was post-only.
        pub post_only: bool,
        /// True if the order was reduce-only.
        pub reduce_only: bool,
        /// True if both sides are the same account; only from older servers.
        pub self_trade: Option<bool>,
        /// True if market maker protection includes the order.
        pub mmp: bool,
        /// Amount in contracts; only from newer servers.
        pub contracts: Option<Number<'a>>,
        /// Trade id, the same for both sides.
        pub trade_id: Text<'a>,
        /// Currency of the fee.
        pub fee_currency: Option<Text<'a>>,
        /// Fee paid; negative if received.
        pub fee: Option<Number<'a>>,
        /// Type of the order.
        pub order_type: Option<OrderType>,
        /// True if the order reduced the risk of the account.
        pub risk_reducing: bool,
        /// Role of the order: maker or taker.
        pub liquidity: Option<Liquidity>,
        /// Options: volatility, in percent.
        pub iv: Option<Number<'a>>,
        /// Options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Side that was liquidated, if any.
        pub liquidation: Option<Liquidity>,
        /// Block trade that the trade belongs to.
        pub block_trade_id: Option<Text<'a>>,
        /// Combination that the trade belongs to.
        pub combo_id: Option<Text<'a>>,
        /// Trade id of the combination.
        pub combo_trade_id: Option<Id<'a>>,
        /// Always null.
        pub matching_id: Option<Value<'a>>,
        /// Trades of the combination.
        pub legs: Option<Value<'a>>,
        /// Quotes: id of the request.
        pub quote_id: Option<Text<'a>>,
        /// Quotes: id of the set, for cancellation.
        pub quote_set_id: Option<Text<'a>>,
        /// Options: pricing of the order.
        pub advanced: Option<Advanced>,
    }
}

message! {
    /// Result of `private/buy`, `private/sell`, `private/edit` and `private/close_position`.
    pub struct OrderReply<'a> {
        /// The order after the request.
        pub order: Order<'a>,
        /// Immediate trades of the order.
        pub trades: List<'a, UserTrade<'a>>,
    }
}

impl<'a> OrderReply<'a> {
    /// Decodes the reply and each of its trades in one pass, with the order into `order`. The message itself
    /// leaves them to be decoded later.
    ///
    /// `order` and the trades passed to `on_trade` are valid only if the whole reply was decoded.
    ///
    /// # Errors
    /// [`ScanError`] if the value has another type.
    pub fn read_each(
        scanner: &mut Scanner<'a>,
        order: &mut Order<'a>,
        mut on_trade: impl FnMut(&UserTrade<'a>),
    ) -> Result<(), ScanError> {
        let mut has_order = false;
        let at = scanner.at();
        scanner.open_object()?;
        if scanner.take("\"order\":") {
            read_order(scanner, order)?;
            has_order = true;
            if scanner.take(",\"trades\":") {
                read_trades(scanner, &mut on_trade)?;
            }
        }
        while scanner.next_member()? {
            match scanner.key()? {
                "order" => {
                    read_order(scanner, order)?;
                    has_order = true;
                }
                "trades" => read_trades(scanner, &mut on_trade)?,
                _ => scanner.skip()?,
            }
        }
        if has_order { Ok(()) } else { Err(scanner.error_at(at, ScanErrorKind::Missing).of_member("order")) }
    }
}

fn read_order<'a>(scanner: &mut Scanner<'a>, order: &mut Order<'a>) -> Result<(), ScanError> {
    *order = Order::default();
    Order::read_into(scanner, order)
}

fn read_trades<'a>(
    scanner: &mut Scanner<'a>,
    on_trade: &mut impl FnMut(&UserTrade<'a>),
) -> Result<(), ScanError> {
    scanner.open_array()?;
    while scanner.next_element()? {
        let mut trade = UserTrade::default();
        UserTrade::read_into(scanner, &mut trade)?;
        on_trade(&trade);
    }
    Ok(())
}

message! {
    /// Result of `private/get_user_trades_by_*`.
    pub struct UserTrades<'a> {
        /// The trades.
        pub trades: List<'a, UserTrade<'a>>,
        /// True if the range has more trades.
        pub has_more: bool,
    }
}

message! {
    /// Data of `user.changes.*`: everything that belongs to one change.
    pub struct UserChanges<'a> {
        /// Orders after the change.
        pub orders: List<'a, Order<'a>>,
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// New trades.
        pub trades: List<'a, UserTrade<'a>>,
        /// Positions after the change.
        pub positions: List<'a, Position<'a>>,
    }
}
