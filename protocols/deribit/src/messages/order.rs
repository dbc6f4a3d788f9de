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
    /// This one or better.
    Limit(Decimal),
    /// Whatever the market is when the trigger fires: the text `market_price`.
    #[default]
    Market,
}

impl OrderPrice {
    /// The limit, if it has one.
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
    /// An order: result of `private/cancel` and `private/get_order_state`, element of lists of orders, data of
    /// `user.orders.*`.
    pub struct Order<'a> {
        /// The client's text; empty when there is none. Neither unique nor checked.
        pub label: Option<Text<'a>>,
        /// Its price.
        pub price: Option<OrderPrice>,
        /// The account.
        pub user_id: Option<u64>,
        /// All of its amount, with what is executed.
        pub amount: Decimal,
        /// Its side.
        pub direction: Direction,
        /// How long it stays.
        pub time_in_force: Option<TimeInForce>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// True when it was entered on the web site.
        pub web: bool,
        /// True when it was entered through the API.
        pub api: bool,
        /// The venue's id; edits keep it.
        pub order_id: Text<'a>,
        /// Milliseconds since 1970.
        pub creation_timestamp: u64,
        /// True once it was edited.
        pub replaced: bool,
        /// The executed amount; orders that wait for a trigger have none.
        pub filled_amount: Option<Decimal>,
        /// Milliseconds since 1970.
        pub last_update_timestamp: u64,
        /// True when it must not take liquidity.
        pub post_only: bool,
        /// True when it must not make the position larger.
        pub reduce_only: bool,
        /// Why it was cancelled.
        pub cancel_reason: Option<CancelReason>,
        /// Mean price of its executions; 0 before the first.
        pub average_price: Option<Number<'a>>,
        /// The price that fires it.
        pub trigger_price: Option<Decimal>,
        /// The price that is watched.
        pub trigger: Option<Trigger>,
        /// True when market maker protection counts it.
        pub mmp: bool,
        /// Its amount in contracts; of newer servers.
        pub contracts: Option<Number<'a>>,
        /// True when it is refused rather than moved where it would take liquidity; of `post_only` orders.
        pub reject_post_only: Option<bool>,
        /// Where it is in its life.
        pub order_state: OrderState,
        /// What it is now.
        pub order_type: OrderType,
        /// True when it liquidates.
        pub is_liquidation: bool,
        /// True when it lowers the risk of the account.
        pub risk_reducing: bool,
        /// What it was entered as, where it became another.
        pub original_order_type: Option<OrderType>,
        /// True when market maker protection cancelled it.
        pub mmp_cancelled: Option<bool>,
        /// The amount that the book shows.
        pub display_amount: Option<Decimal>,
        /// The amount that the book shows; of older servers.
        pub max_show: Option<Decimal>,
        /// Of trailing stops: the distance.
        pub trigger_offset: Option<Decimal>,
        /// The price of the trigger when the order was entered.
        pub trigger_reference_price: Option<Number<'a>>,
        /// True once the trigger fired.
        pub triggered: Option<bool>,
        /// Of an order that a trigger made: the trigger order.
        pub trigger_order_id: Option<Text<'a>>,
        /// The same as `trigger_price`; of older servers.
        pub stop_price: Option<Decimal>,
        /// Of options: how it is priced.
        pub advanced: Option<Advanced>,
        /// Of options: volatility, in percent.
        pub implv: Option<Number<'a>>,
        /// Of options: price in USD.
        pub usd: Option<Number<'a>>,
        /// The application it was entered with.
        pub app_name: Option<Text<'a>>,
        /// The orders of which one cancels the others.
        pub oco_ref: Option<Text<'a>>,
        /// True for a quote of `private/mass_quote`.
        pub quote: Option<bool>,
        /// Of quotes: the request that it came with.
        pub quote_id: Option<Text<'a>>,
        /// Of quotes: the set that it is cancelled with.
        pub quote_set_id: Option<Text<'a>>,
        /// Of quotes: the group of market maker protection.
        pub mmp_group: Option<Text<'a>>,
        /// True for an order that another one triggers.
        pub is_secondary_oto: Option<bool>,
        /// Of an order that another one triggers: which.
        pub primary_order_id: Option<Text<'a>>,
        /// True for an order that triggers two of which one cancels the other.
        pub is_primary_otoco: Option<bool>,
        /// Of an order that triggers others: which.
        pub oto_order_ids: Option<List<'a, Text<'a>>>,
        /// True once the server gave it another price: of options that are priced in USD or by volatility.
        pub auto_replaced: Option<bool>,
        /// True when it balances currencies of a cross collateral account.
        pub is_rebalance: Option<bool>,
        /// True when it was entered in the mobile application.
        pub mobile: Option<bool>,
        /// Of orders that show a part: what the book shows again once that part is executed.
        pub refresh_amount: Option<Decimal>,
        /// What it cost so far; of older servers.
        pub commission: Option<Number<'a>>,
        /// What was won by closing a position with it; of older servers.
        pub profit_loss: Option<Number<'a>>,
    }
}

impl<'a> Order<'a> {
    /// A limit order of nothing, open, to be filled in.
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

    /// The executed amount, 0 where none is given.
    #[must_use]
    pub fn filled(&self) -> Decimal {
        self.filled_amount.unwrap_or(Decimal::ZERO)
    }

    /// The client's text, empty where there is none.
    #[must_use]
    pub fn label_text(&self) -> Text<'a> {
        self.label.unwrap_or(Text::new(""))
    }
}

message! {
    /// A trade of the user: element of `user.trades.*` and of lists of trades.
    pub struct UserTrade<'a> {
        /// The order's text.
        pub label: Option<Text<'a>>,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        /// The order's state after it.
        pub state: Option<OrderState>,
        /// The price.
        pub price: Decimal,
        /// The account.
        pub user_id: Option<u64>,
        /// The amount.
        pub amount: Decimal,
        /// The user's side.
        pub direction: Direction,
        /// Price of the index then.
        pub index_price: Option<Number<'a>>,
        /// The instrument.
        pub instrument_name: Text<'a>,
        /// Number of the trade within its instrument.
        pub trade_seq: u64,
        /// True for an order through the API.
        pub api: bool,
        /// The mark price then.
        pub mark_price: Option<Number<'a>>,
        /// The order.
        pub order_id: Text<'a>,
        /// 0 up, 1 the same after up, 2 down, 3 the same after down.
        pub tick_direction: Option<u8>,
        /// What was won by closing a position with it.
        pub profit_loss: Option<Number<'a>>,
        /// True when the order must not take liquidity.
        pub post_only: bool,
        /// True when the order must not make the position larger.
        pub reduce_only: bool,
        /// True when both sides are the same account; of older servers.
        pub self_trade: Option<bool>,
        /// True when market maker protection counts the order.
        pub mmp: bool,
        /// The amount in contracts; of newer servers.
        pub contracts: Option<Number<'a>>,
        /// Its id; both sides see the same.
        pub trade_id: Text<'a>,
        /// In which currency its fee is.
        pub fee_currency: Option<Text<'a>>,
        /// What was paid; below 0 what was received.
        pub fee: Option<Number<'a>>,
        /// What the order is.
        pub order_type: Option<OrderType>,
        /// True when it lowered the risk of the account.
        pub risk_reducing: bool,
        /// Whether the order rested or came in.
        pub liquidity: Option<Liquidity>,
        /// Of options: volatility, in percent.
        pub iv: Option<Number<'a>>,
        /// Of options: price of the underlying.
        pub underlying_price: Option<Number<'a>>,
        /// Which side was liquidated, if one was.
        pub liquidation: Option<Liquidity>,
        /// The trade arranged elsewhere that it is a part of.
        pub block_trade_id: Option<Text<'a>>,
        /// The combination that it is a part of.
        pub combo_id: Option<Text<'a>>,
        /// Number of the combination's trade.
        pub combo_trade_id: Option<Id<'a>>,
        /// Always null.
        pub matching_id: Option<Value<'a>>,
        /// The combination's trades that it is one of.
        pub legs: Option<Value<'a>>,
        /// Of quotes: the request that the order came with.
        pub quote_id: Option<Text<'a>>,
        /// Of quotes: the set that the order is cancelled with.
        pub quote_set_id: Option<Text<'a>>,
        /// Of options: how the order was priced.
        pub advanced: Option<Advanced>,
    }
}

message! {
    /// Result of `private/buy`, `private/sell`, `private/edit` and `private/close_position`.
    pub struct OrderReply<'a> {
        /// The order as it is after the request.
        pub order: Order<'a>,
        /// What it traded at once.
        pub trades: List<'a, UserTrade<'a>>,
    }
}

impl<'a> OrderReply<'a> {
    /// Reads the reply and each of its trades in one pass, where the message itself leaves them to be read later; the
    /// order into `order`.
    ///
    /// What `order` has and `on_trade` was given counts only when the reply was read to its end.
    ///
    /// # Errors
    /// [`ScanError`] when it is another value.
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
        /// True when there are more in the range.
        pub has_more: bool,
    }
}

message! {
    /// Data of `user.changes.*`: what belongs to one change, together.
    pub struct UserChanges<'a> {
        /// Orders as they are now.
        pub orders: List<'a, Order<'a>>,
        /// The instrument.
        pub instrument_name: Option<Text<'a>>,
        /// New trades.
        pub trades: List<'a, UserTrade<'a>>,
        /// Positions as they are now.
        pub positions: List<'a, Position<'a>>,
    }
}
