//! The native venue's data in the messages that the shell's commands read.

use std::time::{SystemTime, UNIX_EPOCH};

use tickpath_deribit::codes::{
    CancelReason as Reason, Direction, InstrumentState, InstrumentType, Kind, Liquidity as Part, OrderState,
    OrderType, TimeInForce as Time,
};
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    Instrument as Described, Order, OrderBook, OrderPrice, OrderReply, Position as Held, PriceAmount, Quote,
    Ticker, UserTrade, UserTrades,
};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::text::Text;
use tickpath_trading::{Money, Position};
use tickpath_types::{
    CancelReason, Instrument, InstrumentId, InstrumentTable, Liquidity, Nanos, Price, Side, TimeInForce,
    TradingState,
};

use super::account::{Account, OwnOrder, OwnTrade};
use super::snapshot::Levels;

/// The currency of the native venue's prices.
const CURRENCY: &str = "USD";
const DAY_MS: u64 = 86_400_000;

/// Converts the venue's time since midnight (UTC) to milliseconds since 1970, assuming the last 24 hours.
pub(super) fn unix_ms(at: Nanos) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let today = now - now % DAY_MS + at.0 / 1_000_000;
    // More than half a day ahead means yesterday, not a wrong clock.
    if today > now + DAY_MS / 2 { today - DAY_MS } else { today }
}

/// A value as JSON text.
pub(super) fn json<'a>(value: &impl Field<'a>) -> String {
    let mut out = Vec::new();
    value.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Converts a quantity; one above all valid orders saturates at the largest decimal.
pub(super) fn amount(qty: u64) -> Decimal {
    Decimal::from(i64::try_from(qty).unwrap_or(i64::MAX))
}

/// Formats units of 10^-4 as a decimal.
fn money(money: Money) -> String {
    let (sign, value) =
        if money.0 < 0 { ("-", money.0.unsigned_abs()) } else { ("", money.0.unsigned_abs()) };
    let text = format!("{sign}{}.{:04}", value / 10_000, value % 10_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn number(text: &str) -> Option<Number<'_>> {
    Number::new(text).ok()
}

/// The mean price, rounded to nearest; for display only.
fn average(cost: Money, qty: u64) -> Money {
    if qty == 0 {
        return Money::ZERO;
    }
    let qty = i128::from(qty);
    Money((2 * cost.0 + cost.0.signum() * qty) / (2 * qty))
}

/// Describes an instrument.
pub(super) fn instrument(instrument: &Instrument) -> Described<'_> {
    Described {
        price_index: None,
        kind: Kind::Spot,
        instrument_name: Text::new(instrument.symbol.as_str()),
        state: None,
        option_type: None,
        strike: None,
        max_leverage: None,
        maker_commission: None,
        taker_commission: None,
        instrument_type: Some(InstrumentType::Linear),
        expiration_timestamp: None,
        creation_timestamp: None,
        is_active: true,
        tick_size: instrument.tick_size.into(),
        contract_size: Some(Decimal::from(1)),
        instrument_id: Some(instrument.id.0.into()),
        min_trade_amount: amount(instrument.lot_size.0),
        max_liquidation_commission: None,
        block_trade_commission: None,
        block_trade_min_trade_amount: None,
        block_trade_tick_size: None,
        settlement_currency: None,
        settlement_period: None,
        base_currency: Text::new(instrument.symbol.as_str()),
        counter_currency: Some(Text::new(CURRENCY)),
        quote_currency: Text::new(CURRENCY),
        tick_size_steps: None,
    }
}

/// The texts of an order, which its message borrows.
struct OrderTexts {
    id: String,
    name: String,
    label: String,
    average: String,
}

impl OrderTexts {
    fn new(own: &OwnOrder, instruments: &InstrumentTable) -> OrderTexts {
        OrderTexts {
            id: own.id.to_string(),
            name: symbol_of(own.order.instrument, instruments),
            label: label_of(own),
            average: money(average(own.cost, own.executed)),
        }
    }
}

fn symbol_of(instrument: InstrumentId, instruments: &InstrumentTable) -> String {
    instruments.symbol(instrument).map(|symbol| symbol.to_string()).unwrap_or_default()
}

/// The label that the order was entered with.
pub(super) fn label_of(own: &OwnOrder) -> String {
    String::from_utf8_lossy(&own.order.client_order_id.0).trim_end().to_owned()
}

fn state_of(own: &OwnOrder) -> OrderState {
    match (own.is_open(), own.cancelled) {
        (true, _) => OrderState::Open,
        (false, Some(_)) => OrderState::Cancelled,
        (false, None) if own.executed >= own.order.qty.0 => OrderState::Filled,
        (false, None) => OrderState::Cancelled,
    }
}

fn reason_of(reason: CancelReason) -> Reason {
    match reason {
        CancelReason::User => Reason::UserRequest,
        CancelReason::System => Reason::CancelOnDisconnect,
        _ => Reason::RiskMitigation,
    }
}

fn order_message<'a>(own: &OwnOrder, texts: &'a OrderTexts) -> Order<'a> {
    let entered = &own.order;
    let is_market = entered.price == Price::MARKET;
    let is_told = matches!(own.cancelled, Some(CancelReason::User | CancelReason::System));
    Order {
        label: Some(Text::new(&texts.label)),
        price: Some(if is_market { OrderPrice::Market } else { OrderPrice::Limit(entered.price.into()) }),
        amount: amount(own.order.qty.0),
        direction: entered.side.into(),
        time_in_force: Some(match entered.time_in_force {
            TimeInForce::Ioc if entered.min_qty == entered.qty => Time::FillOrKill,
            TimeInForce::Ioc => Time::ImmediateOrCancel,
            TimeInForce::Gtc => Time::GoodTilCancelled,
            TimeInForce::Day | TimeInForce::Gtt => Time::GoodTilDay,
        }),
        order_id: Text::new(&texts.id),
        creation_timestamp: unix_ms(own.created),
        replaced: own.is_changed,
        filled_amount: Some(amount(own.executed)),
        last_update_timestamp: unix_ms(own.updated),
        post_only: entered.post_only,
        cancel_reason: own.cancelled.filter(|_| is_told).map(reason_of),
        average_price: number(&texts.average),
        reject_post_only: entered.post_only.then_some(true),
        order_state: state_of(own),
        order_type: if is_market { OrderType::Market } else { OrderType::Limit },
        display_amount: entered
            .special
            .filter(|terms| !terms.display_qty.is_zero())
            .map(|terms| amount(terms.display_qty.0)),
        ..Order::empty(&texts.name)
    }
}

/// Formats an order.
pub(super) fn order(own: &OwnOrder, instruments: &InstrumentTable) -> String {
    json(&order_message(own, &OrderTexts::new(own, instruments)))
}

/// Formats several orders.
pub(super) fn orders<'o>(
    orders: impl Iterator<Item = &'o OwnOrder>,
    instruments: &InstrumentTable,
) -> String {
    let texts: Vec<String> = orders.map(|own| order(own, instruments)).collect();
    format!("[{}]", texts.join(","))
}

/// The texts of a trade, which its message borrows.
struct TradeTexts {
    id: String,
    order: String,
    name: String,
    label: String,
}

impl TradeTexts {
    fn new(trade: &OwnTrade, account: &Account, instruments: &InstrumentTable) -> TradeTexts {
        let own = account.order(trade.id);
        TradeTexts {
            id: trade.match_id.0.to_string(),
            order: trade.id.to_string(),
            name: symbol_of(trade.instrument, instruments),
            label: own.map(label_of).unwrap_or_default(),
        }
    }
}

fn trade_message<'a>(trade: &OwnTrade, texts: &'a TradeTexts) -> UserTrade<'a> {
    UserTrade {
        label: Some(Text::new(&texts.label)),
        timestamp: unix_ms(trade.ts),
        state: None,
        price: trade.price.into(),
        user_id: None,
        amount: amount(trade.qty.0),
        direction: trade.side.into(),
        index_price: None,
        instrument_name: Text::new(&texts.name),
        trade_seq: trade.number,
        mark_price: None,
        api: true,
        order_id: Text::new(&texts.order),
        tick_direction: None,
        post_only: false,
        reduce_only: false,
        liquidity: Some(match trade.liquidity {
            Liquidity::Removed => Part::Taker,
            Liquidity::Added | Liquidity::AddedHidden | Liquidity::OpeningCross | Liquidity::ClosingCross => {
                Part::Maker
            }
        }),
        fee: None,
        fee_currency: None,
        mmp: false,
        contracts: None,
        trade_id: Text::new(&texts.id),
        order_type: None,
        profit_loss: None,
        risk_reducing: false,
        iv: None,
        underlying_price: None,
        liquidation: None,
        block_trade_id: None,
        combo_id: None,
        combo_trade_id: None,
        self_trade: None,
        matching_id: None,
        legs: None,
        quote_id: None,
        quote_set_id: None,
        advanced: None,
    }
}

/// Formats a trade as the list that its channel publishes.
pub(super) fn trade(trade: &OwnTrade, account: &Account, instruments: &InstrumentTable) -> String {
    let texts = TradeTexts::new(trade, account, instruments);
    json(&List::new(&[trade_message(trade, &texts)]))
}

/// Formats trades as the answer to a query.
pub(super) fn trades(
    list: &[&OwnTrade],
    has_more: bool,
    account: &Account,
    instruments: &InstrumentTable,
) -> String {
    let texts: Vec<_> = list.iter().map(|trade| TradeTexts::new(trade, account, instruments)).collect();
    let messages: Vec<_> =
        list.iter().zip(&texts).map(|(trade, texts)| trade_message(trade, texts)).collect();
    json(&UserTrades { trades: List::new(&messages), has_more })
}

/// Formats an order with its trades after `trades_before`.
pub(super) fn order_reply(
    own: &OwnOrder,
    trades_before: u64,
    account: &Account,
    instruments: &InstrumentTable,
) -> String {
    let list: Vec<_> = account
        .trades()
        .rev()
        .take_while(|trade| trade.number > trades_before)
        .filter(|trade| trade.id == own.id)
        .collect();
    let list: Vec<_> = list.into_iter().rev().collect();
    let texts: Vec<_> = list.iter().map(|trade| TradeTexts::new(trade, account, instruments)).collect();
    let messages: Vec<_> =
        list.iter().zip(&texts).map(|(trade, texts)| trade_message(trade, texts)).collect();
    let order_texts = OrderTexts::new(own, instruments);
    json(&OrderReply { order: order_message(own, &order_texts), trades: List::new(&messages) })
}

/// Formats a position. The venue has no mark price, so only closed quantity is valued.
pub(super) fn position(instrument: &Instrument, position: &Position) -> String {
    let net = position.net_qty();
    let cost = Money(position.open_cost().0.abs());
    let (mean, realised) = (money(average(cost, net.unsigned_abs())), money(position.realised_pnl()));
    let direction = match net.signum() {
        1 => Direction::Buy,
        -1 => Direction::Sell,
        _ => Direction::Zero,
    };
    json(&Held {
        size: Decimal::from(net),
        kind: Some(Kind::Spot),
        maintenance_margin: None,
        initial_margin: None,
        direction,
        index_price: None,
        instrument_name: Text::new(instrument.symbol.as_str()),
        settlement_price: None,
        mark_price: None,
        interest_value: None,
        delta: None,
        average_price: number(&mean).unwrap_or(Number::new("0").expect("a number")),
        floating_profit_loss: None,
        realized_profit_loss: number(&realised),
        total_profit_loss: None,
        realized_funding: None,
        leverage: None,
        size_currency: None,
        open_orders_margin: None,
        estimated_liquidation_price: None,
        average_price_usd: None,
        floating_profit_loss_usd: None,
        gamma: None,
        vega: None,
        theta: None,
    })
}

fn market_state(state: Option<TradingState>) -> Option<InstrumentState> {
    Some(match state? {
        TradingState::Halted => InstrumentState::Halted,
        TradingState::QuotationOnly | TradingState::Paused => InstrumentState::Locked,
        TradingState::Trading => InstrumentState::Open,
    })
}

/// The limits of the price collar.
fn collar(instrument: &Instrument) -> (Option<Decimal>, Option<Decimal>) {
    (Some(instrument.collar_low.into()), Some(instrument.collar_high.into()))
}

/// Best prices with quantities, and the last price if known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Best {
    pub(super) bid: Option<(Price, u64)>,
    pub(super) ask: Option<(Price, u64)>,
    pub(super) last: Option<Price>,
}

impl Best {
    /// The best prices of a snapshot.
    pub(super) fn of(levels: &Levels) -> Best {
        let best = |side| levels.best(side, 1).first().copied();
        Best { bid: best(Side::Buy), ask: best(Side::Sell), last: None }
    }
}

/// Formats a ticker.
pub(super) fn ticker(
    instrument: &Instrument,
    trading: Option<TradingState>,
    best: Best,
    at_ms: u64,
) -> String {
    let Best { bid, ask, last } = best;
    let (min_price, max_price) = collar(instrument);
    json(&Ticker {
        state: market_state(trading),
        last_price: last.map(Into::into),
        min_price,
        max_price,
        best_ask_price: ask.map(|(price, _)| price.into()),
        best_bid_price: bid.map(|(price, _)| price.into()),
        best_ask_amount: ask.map(|(_, qty)| amount(qty)),
        best_bid_amount: bid.map(|(_, qty)| amount(qty)),
        ..Ticker::empty(instrument.symbol.as_str(), at_ms)
    })
}

/// Formats a book; its number is that of the last market data message in it.
pub(super) fn book(instrument: &Instrument, levels: &Levels, depth: usize, now_ms: u64) -> String {
    let side = |side| -> Vec<PriceAmount> {
        let levels = levels.best(side, depth).into_iter();
        levels.map(|(price, qty)| PriceAmount { price: price.into(), amount: amount(qty) }).collect()
    };
    let (bids, asks) = (side(Side::Buy), side(Side::Sell));
    let (min_price, max_price) = collar(instrument);
    let change_id = levels.next.unwrap_or_default().saturating_sub(1);
    let ticker = Ticker {
        state: market_state(levels.trading),
        best_bid_price: bids.first().map(|level| level.price),
        best_bid_amount: bids.first().map(|level| level.amount),
        best_ask_price: asks.first().map(|level| level.price),
        best_ask_amount: asks.first().map(|level| level.amount),
        min_price,
        max_price,
        ..Ticker::empty(instrument.symbol.as_str(), now_ms)
    };
    json(&OrderBook::of(ticker, change_id, List::new(&bids), List::new(&asks)))
}

/// Formats the best prices for the quote channel.
pub(super) fn quote(name: &str, at_ms: u64, bid: Option<(Price, u64)>, ask: Option<(Price, u64)>) -> String {
    json(&Quote {
        timestamp: at_ms,
        instrument_name: Text::new(name),
        best_ask_price: ask.map(|(price, _)| price.into()),
        best_bid_price: bid.map(|(price, _)| price.into()),
        best_ask_amount: ask.map(|(_, qty)| amount(qty)),
        best_bid_amount: bid.map(|(_, qty)| amount(qty)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_exactly_and_averages_are_rounded() {
        for (units, text) in
            [(0, "0"), (1_000_000, "100"), (-5, "-0.0005"), (12_345, "1.2345"), (-10_500, "-1.05")]
        {
            assert_eq!(money(Money(units)), text);
        }
        assert_eq!(average(Money(10), 4), Money(3));
        assert_eq!(average(Money(-10), 4), Money(-3));
        assert_eq!(average(Money(10), 0), Money::ZERO);
    }
}
