//! Answers formatted for people.

use tickpath_deribit::channel::Channel;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    AccountSummary, GroupedBook, Instrument, Order, OrderBook, OrderPrice, OrderReply, Position, PublicTrade,
    Quote, Ticker, UserChanges, UserTrade, UserTrades,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{ScanError, Value, check};

use crate::json_text::{one_line, pretty};
use crate::words::counted;

/// Upper bound of table rows; the number of further ones is printed.
const ROWS_MAX: usize = 500;
/// Upper bound of a channel's data in a line, in characters.
const LINE_MAX: usize = 160;

/// Formats the result of a method; unknown messages as JSON.
#[must_use]
pub fn result(method: Method, json: &str) -> String {
    known(method, json).unwrap_or_else(|| pretty(json))
}

fn known(method: Method, json: &str) -> Option<String> {
    let value = check(json.as_bytes()).ok()?;
    Some(match method {
        Method::Buy | Method::Sell | Method::Edit | Method::EditByLabel | Method::ClosePosition => {
            order_reply(&read(&value)?)
        }
        Method::Cancel | Method::GetOrderState => order(&read(&value)?),
        Method::GetOpenOrders
        | Method::GetOpenOrdersByInstrument
        | Method::GetOpenOrdersByCurrency
        | Method::GetOpenOrdersByLabel
        | Method::GetOrderStateByLabel => orders(&read::<List<'_, Order<'_>>>(&value)?)?,
        Method::GetPositions => positions(&read::<List<'_, Position<'_>>>(&value)?)?,
        Method::GetPosition => table(&POSITION_HEAD, &[position_row(&read(&value)?)]),
        Method::GetInstruments => instruments(&read::<List<'_, Instrument<'_>>>(&value)?)?,
        Method::Ticker => ticker(&read(&value)?),
        Method::GetOrderBook => book(&read(&value)?)?,
        Method::GetUserTradesByInstrument => trades(&read(&value)?)?,
        Method::GetAccountSummary => account(&read(&value)?),
        Method::CancelAll
        | Method::CancelByLabel
        | Method::CancelAllByInstrument
        | Method::CancelAllByCurrency => {
            format!("{} cancelled", counted(value.text().parse::<u64>().ok()?, "order"))
        }
        _ => return None,
    })
}

fn read<'a, T: Field<'a>>(value: &Value<'a>) -> Option<T> {
    value.parse().ok()
}

fn order_reply(reply: &OrderReply<'_>) -> String {
    let mut text = order(&reply.order);
    for trade in reply.trades.iter().map_while(Result::ok) {
        text.push_str(&format!("\n  {}", trade_line(&trade)));
    }
    text
}

/// Formats an order in one line.
#[must_use]
pub fn order(order: &Order<'_>) -> String {
    let Order { order_id, order_state, direction, amount, instrument_name, .. } = order;
    let mut text = format!(
        "order {} {}: {} {amount} {}",
        order_id.to_cow(),
        order_state,
        direction,
        instrument_name.to_cow()
    );
    match order.price {
        Some(OrderPrice::Limit(price)) => text.push_str(&format!(" at {price}")),
        Some(OrderPrice::Market) => text.push_str(" at the market"),
        None => {}
    }
    text.push_str(&format!(", {} done", order.filled()));
    if let Some(average) = order.average_price.filter(|_| !order.filled().is_zero()) {
        text.push_str(&format!(" at {average} on average"));
    }
    text.push_str(&format!(", {}", order.order_type));
    if let Some(time) = order.time_in_force {
        text.push_str(&format!(", {time}"));
    }
    if let Some(price) = order.trigger_price {
        text.push_str(&format!(", trigger at {price}"));
    }
    for (is_set, name) in [(order.post_only, "post_only"), (order.reduce_only, "reduce_only")] {
        if is_set {
            text.push_str(&format!(", {name}"));
        }
    }
    if let Some(reason) = &order.cancel_reason {
        text.push_str(&format!(", cancelled: {}", reason));
    }
    if !order.label_text().is_empty() {
        text.push_str(&format!(", label {}", order.label_text().to_cow()));
    }
    text
}

fn trade_line(trade: &UserTrade<'_>) -> String {
    let mut text = format!(
        "trade {}: {} {} {} at {}",
        trade.trade_id.to_cow(),
        trade.direction,
        trade.amount,
        trade.instrument_name.to_cow(),
        trade.price
    );
    if let (Some(fee), Some(currency)) = (trade.fee, trade.fee_currency) {
        text.push_str(&format!(", fee {fee} {}", currency.to_cow()));
    }
    text
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn orders(list: &List<'_, Order<'_>>) -> Option<String> {
    let head = ["order", "instrument", "side", "amount", "price", "done", "type", "state", "label"];
    rows(list, "no open orders", &head, |order| {
        let price = match order.price {
            Some(OrderPrice::Limit(price)) => price.to_string(),
            Some(OrderPrice::Market) => "market".to_owned(),
            None => "-".to_owned(),
        };
        let price = match order.trigger_price {
            Some(trigger) => format!("{price}, trigger at {trigger}"),
            None => price,
        };
        vec![
            order.order_id.to_cow().into_owned(),
            order.instrument_name.to_cow().into_owned(),
            order.direction.to_string(),
            order.amount.to_string(),
            price,
            order.filled().to_string(),
            order.order_type.to_string(),
            order.order_state.to_string(),
            order.label_text().to_cow().into_owned(),
        ]
    })
}

const POSITION_HEAD: [&str; 8] =
    ["instrument", "side", "size", "average", "mark", "floating", "realized", "total profit"];

fn positions(list: &List<'_, Position<'_>>) -> Option<String> {
    rows(list, "no positions", &POSITION_HEAD, position_row)
}

fn position_row(position: &Position<'_>) -> Vec<String> {
    vec![
        position.instrument_name.to_cow().into_owned(),
        position.direction.to_string(),
        position.size.to_string(),
        position.average_price.to_string(),
        optional(position.mark_price),
        optional(position.floating_profit_loss),
        optional(position.realized_profit_loss),
        optional(position.total_profit_loss),
    ]
}

fn instruments(list: &List<'_, Instrument<'_>>) -> Option<String> {
    let head = ["instrument", "kind", "tick", "least", "contract", "settled in", "active"];
    rows(list, "no instruments", &head, |instrument| {
        vec![
            instrument.instrument_name.to_cow().into_owned(),
            instrument.kind.to_string(),
            instrument.tick_size.to_string(),
            instrument.min_trade_amount.to_string(),
            optional(instrument.contract_size),
            instrument.settlement_currency.map_or_else(|| "-".to_owned(), |name| name.to_cow().into_owned()),
            if instrument.is_active { "yes" } else { "no" }.to_owned(),
        ]
    })
}

fn trades(trades: &UserTrades<'_>) -> Option<String> {
    let head = ["trade", "side", "amount", "price", "fee", "order", "label"];
    rows(&trades.trades, "no trades", &head, |trade| {
        vec![
            trade.trade_id.to_cow().into_owned(),
            trade.direction.to_string(),
            trade.amount.to_string(),
            trade.price.to_string(),
            optional(trade.fee),
            trade.order_id.to_cow().into_owned(),
            trade.label.map_or_else(String::new, |label| label.to_cow().into_owned()),
        ]
    })
}

fn ticker(ticker: &Ticker<'_>) -> String {
    let rows = [
        ("best bid", pair(ticker.best_bid_price, ticker.best_bid_amount)),
        ("best ask", pair(ticker.best_ask_price, ticker.best_ask_amount)),
        ("last", optional(ticker.last_price)),
        ("mark", optional(ticker.mark_price)),
        ("index", optional(ticker.index_price)),
        ("band", format!("{} to {}", optional(ticker.min_price), optional(ticker.max_price))),
        ("open interest", optional(ticker.open_interest)),
    ];
    named(&ticker.instrument_name.to_cow(), &rows)
}

fn account(account: &AccountSummary<'_>) -> String {
    let rows = [
        ("balance", account.balance.to_string()),
        ("equity", account.equity.to_string()),
        ("available", account.available_funds.to_string()),
        ("initial margin", optional(account.initial_margin)),
        ("maintenance margin", optional(account.maintenance_margin)),
        ("profit", optional(account.total_pl)),
    ];
    named(&account.currency.to_cow(), &rows)
}

fn named(title: &str, rows: &[(&str, String)]) -> String {
    let mut text = title.to_owned();
    for (name, value) in rows {
        text.push_str(&format!("\n  {name:18}  {value}"));
    }
    text
}

/// Formats `50000 x 10`; `-` if absent.
fn pair(price: Option<Decimal>, amount: Option<Decimal>) -> String {
    match (price, amount) {
        (Some(price), Some(amount)) if !amount.is_zero() => format!("{price} x {amount}"),
        _ => "-".to_owned(),
    }
}

fn book(book: &OrderBook<'_>) -> Option<String> {
    let bids = book.bids.iter().collect::<Result<Vec<_>, ScanError>>().ok()?;
    let asks = book.asks.iter().collect::<Result<Vec<_>, ScanError>>().ok()?;
    let cell = |level: Option<&tickpath_deribit::messages::PriceAmount>| {
        level.map_or_else(
            || [String::new(), String::new()],
            |level| [level.amount.to_string(), level.price.to_string()],
        )
    };
    let rows: Vec<Vec<String>> = (0..bids.len().max(asks.len()))
        .map(|at| {
            let [bid_amount, bid] = cell(bids.get(at));
            let [ask_amount, ask] = cell(asks.get(at));
            vec![bid_amount, bid, ask, ask_amount]
        })
        .collect();
    let text = table(&["bid amount", "bid", "ask", "ask amount"], &rows);
    Some(format!("{} (change {})\n{text}", book.instrument_name.to_cow(), book.change_id))
}

/// Formats a list as a table; `None` if an item cannot be parsed.
fn rows<'a, T: Field<'a> + Clone>(
    list: &List<'a, T>,
    none: &str,
    head: &[&str],
    row: impl Fn(&T) -> Vec<String>,
) -> Option<String> {
    let mut rows = Vec::new();
    let mut count = 0;
    for item in list.iter() {
        let item = item.ok()?;
        count += 1;
        if rows.len() < ROWS_MAX {
            rows.push(row(&item));
        }
    }
    if rows.is_empty() {
        return Some(none.to_owned());
    }
    let mut text = table(head, &rows);
    if count > rows.len() {
        text.push_str(&format!("\n... and {} more", count - rows.len()));
    }
    Some(text)
}

/// Formats columns, numbers aligned right.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let len = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = head.iter().map(|name| len(name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(len(cell));
        }
    }
    let is_number = |cell: &str| cell.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    let mut lines = vec![line(&widths, head, &is_number)];
    lines.extend(rows.iter().map(|row| line(&widths, row, &is_number)));
    lines.join("\n")
}

fn line(widths: &[usize], cells: &[impl AsRef<str>], is_number: &impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for (width, cell) in widths.iter().zip(cells) {
        let cell = cell.as_ref();
        let cell = if is_number(cell) { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
        text.push_str(&cell);
    }
    text.trim_end().to_owned()
}

/// Formats the data of a channel in one line; `message` is a whole notification.
#[must_use]
pub fn channel_line(channel: &str, message: &str) -> String {
    let data = match tickpath_deribit::envelope::Inbound::parse(message.as_bytes()) {
        Ok(tickpath_deribit::envelope::Inbound::Notification(notification)) => notification.data,
        _ => return shorten(&one_line(message)),
    };
    known_data(channel, &data).unwrap_or_else(|| shorten(&one_line(data.text())))
}

fn known_data(channel: &str, data: &Value<'_>) -> Option<String> {
    Some(match Channel::parse(channel).ok()? {
        Channel::Ticker { .. } => {
            let ticker: Ticker<'_> = read(data)?;
            format!(
                "bid {}  ask {}  last {}  mark {}",
                pair(ticker.best_bid_price, ticker.best_bid_amount),
                pair(ticker.best_ask_price, ticker.best_ask_amount),
                optional(ticker.last_price),
                optional(ticker.mark_price)
            )
        }
        Channel::Quote { .. } => {
            let quote: Quote<'_> = read(data)?;
            format!(
                "bid {}  ask {}",
                pair(quote.best_bid_price, quote.best_bid_amount),
                pair(quote.best_ask_price, quote.best_ask_amount)
            )
        }
        Channel::GroupedBook { .. } => {
            let book: GroupedBook<'_> = read(data)?;
            let level = |level: Option<Result<tickpath_deribit::messages::PriceAmount, ScanError>>| {
                level
                    .and_then(Result::ok)
                    .map_or_else(|| "-".to_owned(), |level| format!("{} x {}", level.price, level.amount))
            };
            let (bid, ask) = (level(book.bids.iter().next()), level(book.asks.iter().next()));
            format!(
                "change {}  bid {bid}  ask {ask}  levels {}/{}",
                book.change_id,
                book.bids.count(),
                book.asks.count()
            )
        }
        Channel::Trades { .. } => {
            let trades: List<'_, PublicTrade<'_>> = read(data)?;
            let last = trades.iter().last()?.ok()?;
            format!(
                "{} {} {} at {}  ({})",
                last.instrument_name.to_cow(),
                last.direction,
                last.amount,
                last.price,
                counted(trades.count(), "trade")
            )
        }
        Channel::UserOrders { .. } => match read::<Order<'_>>(data) {
            Some(one) => order(&one),
            None => order(&read::<List<'_, Order<'_>>>(data)?.iter().last()?.ok()?),
        },
        Channel::UserChanges { .. } => {
            let changes: UserChanges<'_> = read(data)?;
            let last = changes
                .orders
                .iter()
                .last()
                .and_then(Result::ok)
                .map_or_else(String::new, |last| order(&last));
            format!(
                "{}, {}, {}; {last}",
                counted(changes.orders.count(), "order"),
                counted(changes.trades.count(), "trade"),
                counted(changes.positions.count(), "position")
            )
        }
        Channel::UserPortfolio { .. } => {
            let account: AccountSummary<'_> = read(data)?;
            let AccountSummary { balance, equity, available_funds, .. } = account;
            format!("balance {balance}  equity {equity}  available {available_funds}")
        }
        Channel::UserTrades { .. } => {
            trade_line(&read::<List<'_, UserTrade<'_>>>(data)?.iter().last()?.ok()?)
        }
        _ => return None,
    })
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LINE_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = r#"{"label":"l1","price":50000.5,"amount":10,"direction":"buy","time_in_force":"good_til_cancelled","instrument_name":"BTC-PERPETUAL","web":false,"api":true,"order_id":"7","creation_timestamp":1,"replaced":false,"filled_amount":4.0,"last_update_timestamp":2,"post_only":true,"reduce_only":false,"average_price":50000.0,"mmp":false,"order_state":"open","order_type":"limit","is_liquidation":false,"risk_reducing":false}"#;

    #[test]
    fn an_order_is_a_line() {
        let text = "order 7 open: buy 10 BTC-PERPETUAL at 50000.5, 4 done at 50000.0 on average, limit, \
                    good_til_cancelled, post_only, label l1";
        assert_eq!(result(Method::GetOrderState, ORDER), text);
        let reply = format!(r#"{{"order":{ORDER},"trades":[]}}"#);
        assert_eq!(result(Method::Buy, &reply), text);
    }

    #[test]
    fn lists_are_tables_and_numbers_stand_to_the_right() {
        assert_eq!(result(Method::GetOpenOrders, "[]"), "no open orders");
        let text = result(Method::GetOpenOrders, &format!("[{ORDER}]"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "order  instrument     side  amount  price    done  type   state  label");
        assert_eq!(lines[1], "    7  BTC-PERPETUAL  buy       10  50000.5     4  limit  open   l1");
    }

    #[test]
    fn what_is_not_known_is_json() {
        assert_eq!(result(Method::GetTime, "12"), "12");
        assert_eq!(result(Method::GetOpenOrders, "[{}]"), "[\n  {}\n]");
        assert_eq!(result(Method::CancelAll, "3"), "3 orders cancelled");
        assert_eq!(result(Method::CancelByLabel, "1"), "1 order cancelled");
    }

    #[test]
    fn data_of_channels_are_lines() {
        let message = |channel: &str, data: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"{channel}","data":{data}}}}}"#
            )
        };
        let quote = r#"{"timestamp":1,"instrument_name":"X","best_bid_price":5,"best_bid_amount":7,"best_ask_price":6.5,"best_ask_amount":0}"#;
        assert_eq!(channel_line("quote.X", &message("quote.X", quote)), "bid 5 x 7  ask -");
        let orders = "user.orders.X.raw";
        assert!(channel_line(orders, &message(orders, ORDER)).starts_with("order 7 open"));
        assert_eq!(channel_line("platform_state", &message("platform_state", "{\"a\":1}")), "{\"a\":1}");
        assert!(channel_line("x", &"long".repeat(100)).len() < 200);
    }
}
