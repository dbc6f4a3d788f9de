//! History methods: settlements, deliveries and payments.

use std::collections::BTreeMap;

use tickpath_config::Zone;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{GetDeliveryPrices, GetFundingRate, GetTransactionLog};
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::Money;

use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, list, member, param, text_of, text_param};
use crate::ledger::{Cause, Entry};
use crate::listing::figure;

/// Default and maximum number of elements.
const SETTLEMENTS_DEFAULT: u64 = 20;
const LOG_DEFAULT: u64 = 100;
const DELIVERIES_DEFAULT: u32 = 10;
const COUNT_MAX: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
/// Maximum number of hours in a funding history.
const HOURS_MAX: u64 = 744;

/// Selected settlements; parsed once, because there may be many entries.
struct Wanted {
    /// Any of the three causes if none is given.
    cause: Option<Cause>,
    listing: Option<usize>,
    /// Used if no instrument is given.
    currency: String,
    until_ms: u64,
}

impl Wanted {
    fn has(&self, entry: &Entry) -> bool {
        let is_kind = match self.cause {
            None => entry.cause.is_settlement(),
            Some(cause) => entry.cause == cause,
        };
        let is_place = match self.listing {
            Some(listing) => entry.listing == Some(listing),
            None => {
                self.currency.eq_ignore_ascii_case("any")
                    || entry.currency.eq_ignore_ascii_case(&self.currency)
            }
        };
        is_kind && is_place && entry.at_ms <= self.until_ms
    }
}

fn count(params: &Value<'_>, default: u64) -> Result<usize, Fault> {
    checked_count(param::<u64>(params, "count")?, default)
}

fn checked_count(asked: Option<u64>, default: u64) -> Result<usize, Fault> {
    match asked.unwrap_or(default) {
        count @ 1..=COUNT_MAX => Ok(count as usize),
        _ => Err(Fault::param("count", "value must be 1 to 1000")),
    }
}

/// Reads the end of the previous page: a number, or a number as text.
fn continuation(params: &Value<'_>) -> Result<u64, Fault> {
    let Some(value) = member(params, "continuation") else { return Ok(u64::MAX) };
    let text = || text_of(params, "continuation").and_then(|text| text.parse().ok());
    let number = value.parse().ok().or_else(text);
    number.ok_or(Fault::param("continuation", "value is none that was returned"))
}

impl Front {
    /// Returns the date of a time, such as `2026-11-22`.
    fn date_of(at_ms: u64) -> String {
        Zone::UTC.date_at(at_ms * 1_000_000).to_string()
    }

    /// Returns the delivery prices of an index, latest first.
    pub(super) fn delivery_prices(&self, request: &Request<'_>) -> Answer {
        let GetDeliveryPrices { index_name, offset, count } = request.params()?;
        let count = u64::from(count.unwrap_or(DELIVERIES_DEFAULT));
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(Fault::param("count", "value must be 1 to 1000"));
        }
        let index = self.indices.iter().position(|index| index_name == index.name.as_str());
        let index = index.ok_or(Fault::param("index_name", "no index has this name"))?;
        let mut found: Vec<(String, Money)> = Vec::new();
        for delivery in self.deliveries.iter().rev().filter(|delivery| delivery.index == index) {
            let date = Front::date_of(delivery.at_ms);
            if found.last().is_none_or(|(last, _)| *last != date) {
                found.push((date, delivery.price));
            }
        }
        let total = found.len() as u64;
        let page = found.into_iter().skip(offset.unwrap_or(0) as usize).take(count as usize);
        let data = list(page, |(date, price), out| {
            Object::new()
                .with("date", Text::new(&date))
                .with("delivery_price", figure(price))
                .json()
                .write(out);
        });
        Ok(Some(Object::new().with("data", Json(data)).with("records_total", total).end()))
    }

    /// Reads a perpetual and a time range.
    fn funding_of(&self, request: &Request<'_>) -> Result<(usize, u64, u64), Fault> {
        let GetFundingRate { instrument_name, start_timestamp, end_timestamp } = request.params()?;
        let place = self.find_listing(&instrument_name.to_cow())?;
        let is_perpetual = self.settings.listings[place].is_perpetual();
        let asked = (place, start_timestamp, end_timestamp);
        if is_perpetual { Ok(asked) } else { Err(ErrorCode::InvalidArgsForInstrument.into()) }
    }

    /// Returns the funding paid by a perpetual position in a time range, as a fraction of its value.
    pub(super) fn funding_rate(&self, request: &Request<'_>) -> Answer {
        let (place, from, to) = self.funding_of(request)?;
        Ok(Some(self.funding_paid(place, from, to).to_string().into_bytes()))
    }

    /// Returns the funding by hour.
    pub(super) fn funding_history(&self, request: &Request<'_>) -> Answer {
        let (place, from, to) = self.funding_of(request)?;
        let last = to.min(self.now_ms()) / HOUR_MS;
        let first = (from.div_ceil(HOUR_MS)).max(last.saturating_sub(HOURS_MAX - 1)).max(1);
        let paid = &self.markets[place].funding;
        let hours = (first..=last).filter_map(|hour| {
            let (begin, end) = ((hour - 1) * HOUR_MS, hour * HOUR_MS);
            let (first, last) = (paid.within(begin, end).next()?, paid.within(begin, end).last()?);
            let eight = self.funding_paid(place, end.saturating_sub(8 * HOUR_MS), end);
            let hour = Object::new()
                .with("timestamp", end)
                .with("index_price", figure(last.index))
                .with("prev_index_price", figure(first.index))
                .with("interest_1h", Json(self.funding_paid(place, begin, end).to_string().into_bytes()))
                .with("interest_8h", Json(eight.to_string().into_bytes()));
            Some(hour.end())
        });
        Ok(Some(list(hours, |hour, out| out.extend_from_slice(&hour))))
    }

    /// Reads the selection of `private/get_settlement_history_by_*`; the public method uses it for sums.
    fn wanted_settlements(&self, params: &Value<'_>) -> Result<Wanted, Fault> {
        let cause = match text_param(params, "type")?.as_deref() {
            None => None,
            Some("settlement") => Some(Cause::Settlement),
            Some("delivery") => Some(Cause::Delivery),
            Some("bankruptcy") => Some(Cause::Bankruptcy),
            Some(_) => return Err(Fault::param("type", "value must be settlement, delivery or bankruptcy")),
        };
        let listing = match text_param(params, "instrument_name")? {
            Some(name) => Some(self.find_listing(&name)?),
            None => None,
        };
        let currency = match listing {
            Some(_) => String::new(),
            None => text_param(params, "currency")?.ok_or(Fault::param("currency", "value required"))?,
        };
        let until_ms = param::<u64>(params, "search_start_timestamp")?.unwrap_or(u64::MAX);
        Ok(Wanted { cause, listing, currency, until_ms })
    }

    pub(super) fn settlement_history(&self, account: usize, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let count = count(&params, SETTLEMENTS_DEFAULT)?;
        let (before, wanted) = (continuation(&params)?, self.wanted_settlements(&params)?);
        let entries = self.accounts[account].ledger.settlements().rev();
        let is_wanted = |entry: &&Entry| entry.number < before && wanted.has(entry);
        let mut found: Vec<&Entry> = entries.filter(is_wanted).take(count + 1).collect();
        let more = (found.len() > count).then(|| found[count - 1].number.to_string());
        found.truncate(count);
        let settlements = list(found, |entry, out| {
            entry.write_settlement(entry.listing.map(|place| &self.settings.listings[place]), out);
        });
        Ok(Some(settled_page(settlements, more)))
    }

    /// Returns the public settlements: the sums of all accounts per instrument.
    pub(super) fn last_settlements(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let count = count(&params, SETTLEMENTS_DEFAULT)?;
        let (before, wanted) = (continuation(&params)?, self.wanted_settlements(&params)?);
        // Entries of one time and instrument belong to one settlement.
        let mut sums: BTreeMap<u64, Entry> = BTreeMap::new();
        for account in &self.accounts {
            for entry in account.ledger.settlements().rev() {
                // Times ascend: entries older than the page and its `continuation` need not be visited.
                let oldest = sums.first_key_value().filter(|_| sums.len() > count);
                if oldest.is_some_and(|(_, oldest)| entry.at_ms < oldest.at_ms) {
                    break;
                }
                if !wanted.has(entry) || place_in_time(entry) >= before {
                    continue;
                }
                let is_long = entry.side == Some(tickpath_types::Side::Buy);
                let sum = sums.entry(place_in_time(entry)).or_insert_with(|| Entry {
                    change: Money::ZERO,
                    funding: Money::ZERO,
                    profit: Money::ZERO,
                    qty: tickpath_types::Qty::ZERO,
                    side: None,
                    ..entry.clone()
                });
                // Gains and losses cancel out, so only the gains are summed.
                sum.change += entry.change.max(Money::ZERO);
                sum.profit += entry.profit.max(Money::ZERO);
                sum.funding += entry.funding.max(Money::ZERO);
                sum.qty.0 += if is_long { entry.qty.0 } else { 0 };
                if sums.len() > count + 1 {
                    sums.pop_first();
                }
            }
        }
        let more = if sums.len() > count { sums.keys().rev().nth(count - 1) } else { None };
        let more = more.map(u64::to_string);
        let settlements = list(sums.values().rev().take(count), |entry, out| {
            entry.write_settlement(entry.listing.map(|place| &self.settings.listings[place]), out);
        });
        Ok(Some(settled_page(settlements, more)))
    }

    pub(super) fn transaction_log(&self, account: usize, request: &Request<'_>) -> Answer {
        let asked: GetTransactionLog<'_> = request.params()?;
        let currency = asked.currency.to_cow();
        let (from, to) = (asked.start_timestamp, asked.end_timestamp);
        let count = checked_count(asked.count.map(u64::from), LOG_DEFAULT)?;
        let kind = asked.query.map(|query| query.to_cow().into_owned());
        let listing = match asked.instrument_name {
            Some(name) => Some(self.find_listing(&name.to_cow())?),
            None => None,
        };
        let before = asked.continuation.unwrap_or(u64::MAX);
        let known = &self.accounts[account];
        let is_wanted = |entry: &&Entry| {
            entry.currency.eq_ignore_ascii_case(&currency)
                && (from..=to).contains(&entry.at_ms)
                && entry.number < before
                && listing.is_none_or(|listing| entry.listing == Some(listing))
                && kind.as_deref().is_none_or(|kind| entry.cause.name() == kind)
        };
        let mut found: Vec<&Entry> = known.ledger.entries().rev().filter(is_wanted).take(count + 1).collect();
        let more = (found.len() > count).then(|| found[count - 1].number);
        found.truncate(count);
        let who = (u64::from(known.session.0), known.name.as_str());
        let logs = list(found, |entry, out| {
            entry.write(entry.listing.map(|place| &self.settings.listings[place]), who, out);
        });
        let more = more.map_or(b"null".to_vec(), |more| more.to_string().into_bytes());
        Ok(Some(Object::new().with("logs", Json(logs)).with("continuation", Json(more)).end()))
    }
}

/// Orders settlements by time, then by instrument.
fn place_in_time(entry: &Entry) -> u64 {
    entry.at_ms.saturating_mul(1 << 17) + entry.listing.map_or(0, |place| place as u64 + 1)
}

fn settled_page(settlements: Vec<u8>, more: Option<String>) -> Vec<u8> {
    let more = more.map_or(b"null".to_vec(), |more| format!("\"{more}\"").into_bytes());
    Object::new().with("settlements", Json(settlements)).with("continuation", Json(more)).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_of_the_calendar() {
        let dates = [0, 951_782_400_000, 951_868_800_000, 1_798_185_600_000, 4_107_542_400_000];
        assert_eq!(
            dates.map(Front::date_of),
            ["1970-01-01", "2000-02-29", "2000-03-01", "2026-12-25", "2100-03-01"]
        );
    }
}
