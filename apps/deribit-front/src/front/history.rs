//! Trades and closed orders.

use std::collections::VecDeque;

use tickpath_deribit::codes::{Direction, Kind, OrderState, OrderType};
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{
    GetOrderHistoryByCurrency, GetOrderHistoryByInstrument, GetOrderState, GetUserTradesByOrder,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_types::Price;

use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, json, list, param, text_param};
use crate::market::Trade;
use crate::order::{Order, UserTrade};

/// Default and maximum number of elements.
const COUNT_DEFAULT: u32 = 10;
const COUNT_MAX: u32 = 1_000;
const ORDERS_DEFAULT: u32 = 20;
/// Prefix of a continuation. It makes the value no number, so that an HTTP query passes it as text.
const BEHIND: &str = "behind-";

/// Trades selected by a request.
struct Range {
    listing: Option<usize>,
    currency: Option<(String, Option<Kind>)>,
    seq: (u64, u64),
    id: (u64, u64),
    time_ms: (u64, u64),
    count: usize,
    is_ascending: bool,
}

/// Page of closed orders selected by a request.
struct HistoryPage<'a> {
    count: Option<u32>,
    offset: Option<u32>,
    include_unfilled: Option<bool>,
    with_continuation: Option<bool>,
    continuation: Option<Text<'a>>,
}

impl Front {
    fn range(&self, params: &Value<'_>) -> Result<Range, Fault> {
        let listing = match text_param(params, "instrument_name")? {
            Some(name) => Some(self.find_listing(&name)?),
            None => None,
        };
        let currency = text_param(params, "currency")?;
        let kind = param(params, "kind")?;
        let currency = currency.map(|currency| (currency, kind));
        if listing.is_none() && currency.is_none() {
            return Err(Fault::param("instrument_name", "value required"));
        }
        let count = param::<u32>(params, "count")?.unwrap_or(COUNT_DEFAULT);
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(Fault::param("count", "value must be 1 to 1000"));
        }
        let number = |name| param::<u64>(params, name);
        let id = |name| match text_param(params, name)? {
            None => Ok(None),
            Some(id) => match trailing_number(&id) {
                None => Err(Fault::param(name, "value is no id of a trade")),
                number => Ok(number),
            },
        };
        let (start_seq, end_seq) = (number("start_seq")?, number("end_seq")?);
        let (start_time, end_time) = (number("start_timestamp")?, number("end_timestamp")?);
        let (start_id, end_id) = (id("start_id")?, id("end_id")?);
        let begins = start_seq.is_some() || start_time.is_some() || start_id.is_some();
        let is_ascending = match text_param(params, "sorting")?.as_deref() {
            Some("asc") => true,
            Some("desc") => false,
            // Ascending from a given start, otherwise newest first.
            None | Some("default") => begins,
            Some(_) => return Err(Fault::param("sorting", "value must be asc, desc or default")),
        };
        Ok(Range {
            listing,
            currency,
            seq: (start_seq.unwrap_or(0), end_seq.unwrap_or(u64::MAX)),
            id: (start_id.unwrap_or(0), end_id.unwrap_or(u64::MAX)),
            time_ms: (start_time.unwrap_or(0), end_time.unwrap_or(u64::MAX)),
            count: count as usize,
            is_ascending,
        })
    }

    /// Returns an instrument's trades within the number, id and time ranges; all three ascend in `trades`.
    fn within<'a>(range: &Range, trades: &'a VecDeque<Trade>) -> impl DoubleEndedIterator<Item = &'a Trade> {
        let begin = trades.partition_point(|trade| {
            trade.seq < range.seq.0 || trade.match_id.0 < range.id.0 || trade.at_ms < range.time_ms.0
        });
        let end = trades.partition_point(|trade| {
            trade.seq <= range.seq.1 && trade.match_id.0 <= range.id.1 && trade.at_ms <= range.time_ms.1
        });
        trades.range(begin.min(end)..end)
    }

    fn is_in(&self, range: &Range, place: usize, trade: &Trade) -> bool {
        let within = |(low, high): (u64, u64), value| (low..=high).contains(&value);
        self.is_of_range(range, place)
            && within(range.seq, trade.seq)
            && within(range.id, trade.match_id.0)
            && within(range.time_ms, trade.at_ms)
    }

    fn is_of_range(&self, range: &Range, place: usize) -> bool {
        let listing = &self.settings.listings[place];
        range.listing.is_none_or(|wanted| wanted == place)
            && range.currency.as_ref().is_none_or(|(currency, kind)| listing.is_of(*kind, currency))
    }

    pub(super) fn last_trades(&self, request: &Request<'_>) -> Answer {
        let range = self.range(&request.params()?)?;
        let mut found: Vec<(usize, &Trade)> = Vec::new();
        for (market, place) in self.markets.iter().zip(0..) {
            if !self.is_of_range(&range, place) {
                continue;
            }
            let trades = Front::within(&range, &market.trades).map(|trade| (place, trade));
            // A page cannot contain more trades of one instrument.
            match range.is_ascending {
                true => found.extend(trades.take(range.count + 1)),
                false => found.extend(trades.rev().take(range.count + 1)),
            }
        }
        found.sort_unstable_by_key(|(_, trade)| trade.match_id);
        if !range.is_ascending {
            found.reverse();
        }
        Ok(Some(page(found, &range, |(place, trade), out| trade.write(&self.settings.listings[place], out))))
    }

    pub(super) fn user_trades(&self, account: usize, request: &Request<'_>) -> Answer {
        let range = self.range(&request.params()?)?;
        let trades = self.accounts[account].trades.iter();
        let is_wanted = |trade: &&UserTrade| self.is_in(&range, trade.listing, &trade.public);
        let found: Vec<&UserTrade> = match range.is_ascending {
            true => trades.filter(is_wanted).take(range.count + 1).collect(),
            false => trades.rev().filter(is_wanted).take(range.count + 1).collect(),
        };
        Ok(Some(page(found, &range, |trade, out| self.write_user_trade(trade, out))))
    }

    pub(super) fn user_trades_by_order(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetUserTradesByOrder { order_id, .. } = request.params()?;
        let is_latest_first = match text_param(&request.params()?, "sorting")?.as_deref() {
            None | Some("asc" | "default") => false,
            Some("desc") => true,
            Some(_) => return Err(Fault::param("sorting", "value must be asc, desc or default")),
        };
        let number = self.order_number(account, &order_id.to_cow())?;
        let trades = self.accounts[account].trades.iter().filter(|trade| trade.order == number);
        let mut trades: Vec<&UserTrade> = trades.collect();
        if is_latest_first {
            trades.reverse();
        }
        Ok(Some(list(trades, |trade, out| self.write_user_trade(trade, out))))
    }

    pub(super) fn write_user_trade(&self, trade: &UserTrade, out: &mut Vec<u8>) {
        trade.write(&self.settings.listings[trade.listing], self.labels.name(trade.terms.label), out);
    }

    pub(super) fn write_order(&self, order: &Order, out: &mut Vec<u8>) {
        order.write(&self.settings.listings[order.listing], self.labels.name(order.terms.label), out);
    }

    /// Returns the place in the closed orders at which the next page ends. The continuation names the last
    /// order of the previous page.
    fn end_of_page(&self, account: usize, continuation: Option<&str>) -> Result<usize, Fault> {
        let closed = &self.accounts[account].closed;
        let Some(last) = continuation else { return Ok(closed.len()) };
        let number = last.strip_prefix(BEHIND).and_then(|number| number.parse::<u64>().ok());
        let place = closed.iter().rposition(|order| number == Some(order.number));
        place.ok_or(Fault::param("continuation", "value is none that an answer had"))
    }

    pub(super) fn order_history(&self, account: usize, request: &Request<'_>) -> Answer {
        let asked = match request.method {
            Method::GetOrderHistoryByInstrument => {
                let asked: GetOrderHistoryByInstrument<'_> = request.params()?;
                let listing = self.find_listing(&asked.instrument_name.to_cow())?;
                let GetOrderHistoryByInstrument { count, offset, include_unfilled, .. } = asked;
                let GetOrderHistoryByInstrument { with_continuation, continuation, .. } = asked;
                let page = HistoryPage { count, offset, include_unfilled, with_continuation, continuation };
                (Some(listing), None, page)
            }
            _ => {
                let asked: GetOrderHistoryByCurrency<'_> = request.params()?;
                let GetOrderHistoryByCurrency { count, offset, include_unfilled, .. } = asked;
                let GetOrderHistoryByCurrency { with_continuation, continuation, .. } = asked;
                let page = HistoryPage { count, offset, include_unfilled, with_continuation, continuation };
                (None, Some((asked.currency.to_cow().into_owned(), asked.kind)), page)
            }
        };
        let (listing, currency, page) = asked;
        let count = page.count.unwrap_or(ORDERS_DEFAULT).clamp(1, COUNT_MAX) as usize;
        let is_wanted = |order: &&Order| {
            let known = &self.settings.listings[order.listing];
            listing.is_none_or(|wanted| wanted == order.listing)
                && currency.as_ref().is_none_or(|(currency, kind)| known.is_of(*kind, currency))
                && (page.include_unfilled == Some(true) || !order.filled.is_zero())
        };
        let closed = &self.accounts[account].closed;
        let end = self.end_of_page(account, page.continuation.map(|last| last.to_cow()).as_deref())?;
        let wanted = closed.range(..end).rev().filter(is_wanted);
        let mut found: Vec<&Order> = wanted.skip(page.offset.unwrap_or(0) as usize).take(count + 1).collect();
        let more = (found.len() > count).then(|| format!("{BEHIND}{}", found[count - 1].number));
        found.truncate(count);
        let orders = list(found, |order, out| self.write_order(order, out));
        if page.with_continuation != Some(true) {
            return Ok(Some(orders));
        }
        let more = more.map_or_else(|| Json(b"null".to_vec()), |more| Json(json(&Text::new(&more))));
        Ok(Some(Object::new().with("orders", Json(orders)).with("continuation", more).end()))
    }

    /// Returns triggered, cancelled and rejected trigger orders, latest first.
    pub(super) fn trigger_history(&self, account: usize, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = text_param(&params, "currency")?.ok_or(Fault::param("currency", "value required"))?;
        let listing =
            text_param(&params, "instrument_name")?.map(|name| self.find_listing(&name)).transpose()?;
        let count = param::<u32>(&params, "count")?.unwrap_or(ORDERS_DEFAULT);
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(Fault::param("count", "value must be 1 to 1000"));
        }
        let closed = &self.accounts[account].closed;
        let end = self.end_of_page(account, text_param(&params, "continuation")?.as_deref())?;
        let is_wanted = |order: &&Order| {
            order.trigger.is_some()
                && listing.is_none_or(|listing| listing == order.listing)
                && self.settings.listings[order.listing].is_of(None, &currency)
        };
        let count = count as usize;
        let mut found: Vec<&Order> = closed.range(..end).rev().filter(is_wanted).take(count + 1).collect();
        let more = (found.len() > count).then(|| format!("{BEHIND}{}", found[count - 1].number));
        found.truncate(count);
        let entries = list(found, |order, out| self.write_trigger_entry(order, out));
        let more = more.map_or_else(|| Json(b"null".to_vec()), |more| Json(json(&Text::new(&more))));
        Ok(Some(Object::new().with("entries", Json(entries)).with("continuation", more).end()))
    }

    fn write_trigger_entry(&self, order: &Order, out: &mut Vec<u8>) {
        let listing = &self.settings.listings[order.listing];
        let (id, label) = (order.id(listing), self.labels.name(order.terms.label));
        let is_limit = matches!(order.terms.order_type, OrderType::StopLimit | OrderType::TakeLimit);
        let trigger = order.trigger;
        let oco_ref = order.extra.as_ref().map_or("", |extra| extra.oco_ref.as_str());
        let is_triggered = order.state == OrderState::Triggered;
        Object::new()
            .with("timestamp", order.updated_ms)
            .with("last_update_timestamp", order.updated_ms)
            .with("trigger_order_id", Text::new(&id))
            .with("order_id", Text::new(&id))
            .with("instrument_name", Text::new(&listing.name))
            .with("direction", Direction::from(order.side))
            .with("amount", listing.amount(order.qty))
            .with("order_type", Text::new(if is_limit { "limit" } else { "market" }))
            .with("price", is_limit.then(|| listing.price(order.price)))
            .with("order_state", order.state)
            .with("request", Text::new(if is_triggered { "trigger:order" } else { "cancel" }))
            .with("trigger", trigger.map(|trigger| trigger.watched))
            .with("trigger_price", trigger.map(|trigger| listing.price(trigger.price)))
            .with(
                "trigger_offset",
                trigger.and_then(|trigger| trigger.offset).map(|offset| listing.price(Price(offset))),
            )
            .with("label", Some(Text::new(label)).filter(|_| !label.is_empty()))
            .with("post_only", order.terms.is_post_only)
            .with("reduce_only", order.terms.is_reduce_only)
            .with("oco_ref", Some(Text::new(oco_ref)).filter(|_| !oco_ref.is_empty()))
            .json()
            .write(out);
    }

    pub(super) fn order_state(&self, account: usize, request: &Request<'_>) -> Answer {
        let GetOrderState { order_id } = request.params()?;
        let number = self.order_number(account, &order_id.to_cow())?;
        let mut out = Vec::new();
        if let Some(order) = self.accounts[account].order(number) {
            self.write_order(order, &mut out);
        }
        Ok(Some(out))
    }
}

/// Returns the order number of an order id.
pub(super) fn number_of(id: &str) -> Option<u64> {
    let waits = id
        .rsplit('-')
        .nth(1)
        .is_some_and(|kind| kind.len() == 4 && (kind.ends_with("TB") || kind.ends_with("TS")));
    Some(trailing_number(id)? | if waits { crate::order::TRIGGER_BIT } else { 0 })
}

/// Returns the number at the end of an id, ignoring its prefix.
pub(super) fn trailing_number(id: &str) -> Option<u64> {
    let digits = id.rsplit('-').next()?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Writes at most `range.count` of the found elements, which are already sorted.
fn page<T>(mut found: Vec<T>, range: &Range, write: impl FnMut(T, &mut Vec<u8>)) -> Vec<u8> {
    let has_more = found.len() > range.count;
    found.truncate(range.count);
    let trades = Json(list(found, write));
    Object::new().with("trades", trades).with("has_more", has_more).end()
}
