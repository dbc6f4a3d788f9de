//! Parses the methods of the shell's commands into requests to the native venue.

use tickpath_deribit::codes::{Kind, OrderFilter, OrderType, Sorting, TimeInForce as Time};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{
    CancelAllByInstrument, CancelByLabel, CancelOrder as CancelParams, ClosePosition, EditOrder,
    GetInstrument, GetInstruments, GetOpenOrders, GetOpenOrdersByInstrument, GetOrderBook, GetOrderState,
    GetOrderStateByLabel, GetPosition, GetPositions, GetTicker, GetUserTradesByInstrument, PlaceOrder,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::check;
use tickpath_deribit::text::Text;
use tickpath_types::{
    ClientOrderId, EnterOrder, InstrumentId, InstrumentTable, OrderInstructions, Price, Qty, Side,
    TimeInForce, UserRefNum,
};

/// Default depth of a book.
const DEPTH: usize = 5;
/// Default and upper bound of the number of trades in an answer.
const TRADES: usize = 10;
const TRADES_MAX: usize = 1_000;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Enters an order; its number is assigned when it is sent.
    Enter(EnterOrder),
    /// Changes an order.
    Edit(Edit),
    /// Cancels an order.
    Cancel { id: u32 },
    /// Cancels all orders with a label.
    CancelLabel { label: String },
    /// Cancels all orders, or those of an instrument.
    CancelAll { instrument: InstrumentId },
    /// Closes a position, at the market or at a limit.
    Close { instrument: InstrumentId, price: Price },
    /// The venue's time.
    Time,
    /// All instruments; an unsupported kind has none.
    Instruments { is_any: bool },
    /// One instrument.
    Instrument { instrument: InstrumentId },
    /// Open orders, of an instrument or of all.
    OpenOrders { instrument: InstrumentId, is_any: bool },
    /// An order.
    Order { id: u32 },
    /// The orders with a label.
    OrdersOfLabel { label: String },
    /// The user's trades of an instrument.
    Trades { instrument: InstrumentId, count: usize, is_newest_first: bool },
    /// All positions; an unsupported kind has none.
    Positions { is_any: bool },
    /// The position in an instrument.
    Position { instrument: InstrumentId },
    /// The best prices.
    Ticker { instrument: InstrumentId },
    /// The book.
    Book { instrument: InstrumentId, depth: usize },
}

/// A change of an order; absent fields stay unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// The order.
    pub(super) id: u32,
    /// The new total quantity, including the executed part.
    pub(super) qty: Option<Qty>,
    /// The new price.
    pub(super) price: Option<Price>,
    /// True if it must not take liquidity.
    pub(super) is_post_only: bool,
    /// The displayed quantity.
    pub(super) display: Option<Qty>,
}

/// Parses a request.
///
/// # Errors
/// A function that the venue lacks or limits, in one line.
pub(super) fn ask(method: Method, params: &str, instruments: &InstrumentTable) -> Result<Ask, String> {
    let of = |name: Text<'_>| {
        let name = name.to_cow();
        let symbol = tickpath_types::Symbol::new(&name).ok();
        symbol
            .and_then(|symbol| instruments.find(symbol))
            .ok_or_else(|| format!("the venue has no instrument {name:?}: instruments lists them"))
    };
    Ok(match method {
        Method::Buy => Ask::Enter(order(Side::Buy, &read(params)?, of)?),
        Method::Sell => Ask::Enter(order(Side::Sell, &read(params)?, of)?),
        Method::Edit => Ask::Edit(edit(&read(params)?)?),
        Method::Cancel => Ask::Cancel { id: id(read::<CancelParams<'_>>(params)?.order_id)? },
        Method::CancelByLabel => {
            Ask::CancelLabel { label: read::<CancelByLabel<'_>>(params)?.label.to_cow().into_owned() }
        }
        Method::CancelAll => Ask::CancelAll { instrument: InstrumentId(0) },
        Method::CancelAllByInstrument => {
            Ask::CancelAll { instrument: of(read::<CancelAllByInstrument<'_>>(params)?.instrument_name)? }
        }
        Method::ClosePosition => {
            let close: ClosePosition<'_> = read(params)?;
            let price = close.price.map_or(Ok(Price::MARKET), price)?;
            Ask::Close { instrument: of(close.instrument_name)?, price }
        }
        Method::GetTime => Ask::Time,
        Method::GetInstruments => {
            Ask::Instruments { is_any: is_ours(read::<GetInstruments<'_>>(params)?.kind) }
        }
        Method::GetInstrument => {
            Ask::Instrument { instrument: of(read::<GetInstrument<'_>>(params)?.instrument_name)? }
        }
        Method::GetOpenOrders => {
            let asked: GetOpenOrders = read(params)?;
            let is_any = is_ours(asked.kind) && has_limits(asked.order_type);
            Ask::OpenOrders { instrument: InstrumentId(0), is_any }
        }
        Method::GetOpenOrdersByInstrument => {
            let asked: GetOpenOrdersByInstrument<'_> = read(params)?;
            Ask::OpenOrders { instrument: of(asked.instrument_name)?, is_any: has_limits(asked.order_type) }
        }
        Method::GetOrderState => Ask::Order { id: id(read::<GetOrderState<'_>>(params)?.order_id)? },
        Method::GetOrderStateByLabel => {
            let label = read::<GetOrderStateByLabel<'_>>(params)?.label.ok_or("which label?")?;
            Ask::OrdersOfLabel { label: label.to_cow().into_owned() }
        }
        Method::GetUserTradesByInstrument => {
            let asked: GetUserTradesByInstrument<'_> = read(params)?;
            let count = asked.count.map_or(TRADES, |count| usize::try_from(count).unwrap_or(TRADES_MAX));
            Ask::Trades {
                instrument: of(asked.instrument_name)?,
                count: count.min(TRADES_MAX),
                is_newest_first: asked.sorting == Some(Sorting::Descending),
            }
        }
        Method::GetPositions => Ask::Positions { is_any: is_ours(read::<GetPositions<'_>>(params)?.kind) },
        Method::GetPosition => {
            Ask::Position { instrument: of(read::<GetPosition<'_>>(params)?.instrument_name)? }
        }
        Method::Ticker => Ask::Ticker { instrument: of(read::<GetTicker<'_>>(params)?.instrument_name)? },
        Method::GetOrderBook => {
            let asked: GetOrderBook<'_> = read(params)?;
            let depth = asked.depth.map_or(DEPTH, |depth| usize::try_from(depth).unwrap_or(usize::MAX));
            Ask::Book { instrument: of(asked.instrument_name)?, depth }
        }
        Method::GetAccountSummary => {
            return Err("a native venue keeps no money: positions shows what is held".to_owned());
        }
        Method::CancelAllByCurrency => {
            return Err("a native venue has no currencies: name an instrument, or nothing for all".to_owned());
        }
        other => return Err(format!("a native venue has nothing like {other}")),
    })
}

fn read<'a, T: Field<'a>>(params: &'a str) -> Result<T, String> {
    let value = check(params.as_bytes()).map_err(|error| error.to_string())?;
    value.parse().map_err(|error| error.to_string())
}

/// Whether a kind matches: all instruments of a native venue are spot.
fn is_ours(kind: Option<Kind>) -> bool {
    matches!(kind, None | Some(Kind::Any | Kind::Spot))
}

/// Whether a filter matches: all orders have limits and no triggers.
fn has_limits(filter: Option<OrderFilter>) -> bool {
    matches!(filter, None | Some(OrderFilter::All | OrderFilter::Limit))
}

fn id(text: Text<'_>) -> Result<u32, String> {
    let text = text.to_cow();
    text.parse().map_err(|_| format!("{text:?} is no number of an order: orders shows them"))
}

fn qty(amount: Decimal, name: &str) -> Result<Qty, String> {
    let units = amount.units(0).ok().and_then(|units| u64::try_from(units).ok());
    units.map(Qty).ok_or_else(|| format!("{name}={amount}: a native venue counts in whole units"))
}

fn price(price: Decimal) -> Result<Price, String> {
    let units = price.units(Price::DECIMALS as u8).ok().filter(|units| *units > 0);
    units.map(Price).ok_or_else(|| format!("price={price}: above 0, with at most 4 decimals"))
}

/// Encodes a label as a client order id.
fn client_order_id(label: &str) -> Result<ClientOrderId, String> {
    let mut bytes = [b' '; 14];
    let is_text = label.len() <= bytes.len() && label.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !is_text || label.trim() != label {
        return Err(format!("label={label:?}: a native venue takes at most 14 ASCII characters"));
    }
    bytes[..label.len()].copy_from_slice(label.as_bytes());
    Ok(ClientOrderId(bytes))
}

fn order(
    side: Side,
    order: &PlaceOrder<'_>,
    of: impl Fn(Text<'_>) -> Result<InstrumentId, String>,
) -> Result<EnterOrder, String> {
    let not_there = |what: &str| Err(format!("a native venue has {what}"));
    let is_market = match order.order_type {
        None | Some(OrderType::Limit) => false,
        Some(OrderType::Market) => true,
        Some(_) => return not_there("limit and market orders, and no triggers"),
    };
    if order.reduce_only || order.mmp {
        return not_there("neither reduce_only nor mmp: leave it out");
    }
    let qty_of = |amount: Option<Decimal>, name| amount.map(|amount| qty(amount, name)).transpose();
    let (amount, contracts) = (qty_of(order.amount, "amount")?, qty_of(order.contracts, "contracts")?);
    if amount.zip(contracts).is_some_and(|(amount, contracts)| amount != contracts) {
        return Err("amount= and contracts= do not agree: a contract is 1".to_owned());
    }
    let qty = amount.or(contracts).ok_or("state amount=")?;
    let (time_in_force, min_qty) = match order.time_in_force {
        Some(Time::GoodTilCancelled) => {
            return not_there("orders for the day: leave time_in_force out, or name good_til_day");
        }
        Some(Time::ImmediateOrCancel) => (TimeInForce::Ioc, Qty::ZERO),
        Some(Time::FillOrKill) => (TimeInForce::Ioc, qty),
        _ if is_market => (TimeInForce::Ioc, Qty::ZERO),
        _ => (TimeInForce::Day, Qty::ZERO),
    };
    let limit = match order.price.filter(|_| !is_market) {
        Some(limit) => price(limit)?,
        None => Price::MARKET,
    };
    let display = order.display_amount.map(|amount| self::qty(amount, "display_amount")).transpose()?;
    Ok(EnterOrder {
        time_in_force,
        min_qty,
        post_only: order.post_only,
        special: display.map(|display_qty| OrderInstructions { display_qty, ..OrderInstructions::default() }),
        client_order_id: client_order_id(&order.label.map(Text::to_cow).unwrap_or_default())?,
        ..EnterOrder::limit(UserRefNum(0), of(order.instrument_name)?, side, qty, limit)
    })
}

fn edit(edit: &EditOrder<'_>) -> Result<Edit, String> {
    if edit.reduce_only || edit.mmp || edit.trigger_price.is_some() || edit.trigger_offset.is_some() {
        return Err("a native venue has neither reduce_only nor mmp nor triggers: leave it out".to_owned());
    }
    let amount = edit.amount.or(edit.contracts);
    if edit.amount.zip(edit.contracts).is_some_and(|(amount, contracts)| amount != contracts) {
        return Err("amount= and contracts= do not agree: a contract is 1".to_owned());
    }
    Ok(Edit {
        id: id(edit.order_id)?,
        qty: amount.map(|amount| qty(amount, "amount")).transpose()?,
        price: edit.price.map(price).transpose()?,
        is_post_only: edit.post_only,
        display: edit.display_amount.map(|amount| qty(amount, "display_amount")).transpose()?,
    })
}

/// The side and quantity of the order that closes a position; `None` if it is flat.
pub(super) fn closing(net_qty: i64) -> Option<(Side, Qty)> {
    let side = match net_qty.signum() {
        1 => Side::Sell,
        -1 => Side::Buy,
        _ => return None,
    };
    Some((side, Qty(net_qty.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_types::{Instrument, Symbol};

    fn table() -> InstrumentTable {
        let symbol = Symbol::new("ALPHA").unwrap();
        InstrumentTable::new(&[Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000))])
    }

    fn entered(params: &str) -> Result<EnterOrder, String> {
        match ask(Method::Buy, params, &table())? {
            Ask::Enter(order) => Ok(order),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn orders_are_those_of_the_protocol() {
        let order = entered(
            r#"{"instrument_name":"ALPHA","amount":10,"type":"limit","price":99.5,"label":"mine","post_only":true}"#,
        )
        .unwrap();
        assert_eq!((order.qty, order.price, order.post_only), (Qty(10), Price(995_000), true));
        assert_eq!((order.time_in_force, &order.client_order_id.0), (TimeInForce::Day, b"mine          "));
        let order = entered(r#"{"instrument_name":"ALPHA","contracts":10,"type":"market"}"#).unwrap();
        assert_eq!((order.price, order.time_in_force), (Price::MARKET, TimeInForce::Ioc));
        let order = entered(
            r#"{"instrument_name":"ALPHA","amount":7,"price":1,"time_in_force":"fill_or_kill","display_amount":5}"#,
        )
        .unwrap();
        assert_eq!((order.min_qty, order.special.unwrap().display_qty), (Qty(7), Qty(5)));
    }

    #[test]
    fn what_the_venue_has_not_is_refused_in_words() {
        for (more, words) in [
            (r#""amount":1.5,"price":1"#, "whole units"),
            (r#""amount":-1,"price":1"#, "whole units"),
            (r#""amount":1,"price":1.00001"#, "4 decimals"),
            (r#""amount":1,"price":0"#, "above 0"),
            (r#""price":1"#, "amount="),
            (r#""amount":1,"contracts":2,"price":1"#, "do not agree"),
            (r#""amount":1,"price":1,"reduce_only":true"#, "reduce_only"),
            (r#""amount":1,"price":1,"time_in_force":"good_til_cancelled""#, "good_til_day"),
            (r#""amount":1,"price":1,"label":"fifteen letters""#, "14 ASCII"),
            (r#""amount":1,"type":"stop_market","trigger_price":5,"trigger":"last_price""#, "no triggers"),
        ] {
            let error = entered(&format!(r#"{{"instrument_name":"ALPHA",{more}}}"#)).unwrap_err();
            assert!(error.contains(words), "{more}: {error}");
        }
        let table = table();
        let error = |method, params| ask(method, params, &table).unwrap_err();
        assert!(error(Method::Ticker, r#"{"instrument_name":"BTC-PERPETUAL"}"#).contains("no instrument"));
        assert!(error(Method::GetAccountSummary, r#"{"currency":"BTC"}"#).contains("no money"));
        assert!(error(Method::Cancel, r#"{"order_id":"abc"}"#).contains("no number"));
        assert!(error(Method::GetIndexPrice, "{}").contains("nothing like public/get_index_price"));
    }
}
