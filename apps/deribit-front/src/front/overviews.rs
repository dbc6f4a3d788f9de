//! Public overviews of the market: names, dates and volumes, and sampled prices of the past.
//!
//! Samples are only displayed; no payment depends on them. They are kept in memory and start empty.

use std::collections::{BTreeMap, VecDeque};

use tickpath_deribit::codes::{Kind, OptionType};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::Money;
use tickpath_types::Price;

use super::options::rounded;
use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, json, list, param, text_param};
use crate::listing::{Listing, figure};
use crate::market::{Life, Market};
use crate::options::as_float;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Maximum number of volatility samples kept per currency, one per minute: a month.
const VOLATILITIES_MAX: usize = 44_640;
/// Interval between mark price samples of an option, and the number kept: a day.
const MARK_INTERVAL_MS: u64 = 5 * MINUTE_MS;
const MARKS_MAX: usize = 288;
/// Maximum number of candles of one answer; the latest ones of the requested time are kept.
const CANDLES_MAX: usize = 1_000;
/// Number of hours that a historical volatility covers.
const VOLATILITY_HOURS: usize = 360;
/// Maximum number of announcements of one answer.
const ANNOUNCEMENTS_MAX: u64 = 50;

/// Sampled past prices.
#[derive(Default)]
pub(super) struct Samples {
    /// Mean volatility of a currency's options, in percent, with the start of the minute.
    volatilities: BTreeMap<String, VecDeque<(u64, f64)>>,
    /// Mark prices of an option, by the place of the listing.
    marks: BTreeMap<usize, VecDeque<(u64, Price)>>,
}

fn keep<T>(samples: &mut VecDeque<T>, sample: T, count_max: usize) {
    if samples.len() == count_max {
        samples.pop_front();
    }
    samples.push_back(sample);
}

fn required(params: &Value<'_>, name: &'static str) -> Result<u64, Fault> {
    param::<u64>(params, name)?.ok_or(Fault::param(name, "value required"))
}

fn required_text(params: &Value<'_>, name: &'static str) -> Result<String, Fault> {
    text_param(params, name)?.ok_or(Fault::param(name, "value required"))
}

/// Returns the expiry date as written in the instrument's name.
fn date_of(listing: &Listing) -> &str {
    listing.name.split('-').nth(1).unwrap_or_default()
}

impl Front {
    /// Samples the prices; called once a minute.
    pub(super) fn sample_prices(&mut self) {
        let now_ms = self.now_ms();
        let minute = now_ms / MINUTE_MS * MINUTE_MS;
        let mut sums: BTreeMap<String, (f64, u32)> = BTreeMap::new();
        for place in 0..self.markets.len() {
            if self.black(place).is_none() {
                continue;
            }
            let sum = sums.entry(self.settings.listings[place].base.clone()).or_default();
            *sum = (sum.0 + self.mark_volatility(place) * 100.0, sum.1 + 1);
            if minute.is_multiple_of(MARK_INTERVAL_MS) {
                let marks = self.samples.marks.entry(place).or_default();
                keep(marks, (minute, self.markets[place].mark), MARKS_MAX);
            }
        }
        for (currency, (sum, count)) in sums {
            let volatilities = self.samples.volatilities.entry(currency).or_default();
            keep(volatilities, (minute, sum / f64::from(count)), VOLATILITIES_MAX);
        }
    }

    /// Returns the mean volatility of a currency's options, as candles.
    pub(super) fn volatility_index(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = required_text(&params, "currency")?.to_uppercase();
        let (from, to) = (required(&params, "start_timestamp")?, required(&params, "end_timestamp")?);
        let span_ms = match text_param(&params, "resolution")?.as_deref() {
            Some("1") => 1_000,
            Some("60") => MINUTE_MS,
            Some("3600") => HOUR_MS,
            Some("43200") => 12 * HOUR_MS,
            Some("1D") => DAY_MS,
            _ => return Err(Fault::param("resolution", "value must be 1, 60, 3600, 43200 or 1D")),
        };
        let mut candles: VecDeque<(u64, [f64; 4])> = VecDeque::new();
        let mut is_cut = false;
        let samples = self.samples.volatilities.get(&currency).into_iter().flatten();
        for (at_ms, value) in samples.filter(|(at_ms, _)| (from..=to).contains(at_ms)) {
            let begin_ms = at_ms / span_ms * span_ms;
            match candles.back_mut().filter(|(begin, _)| *begin == begin_ms) {
                Some((_, [_, high, low, close])) => {
                    (*high, *low, *close) = (high.max(*value), low.min(*value), *value);
                }
                None => {
                    is_cut |= candles.len() == CANDLES_MAX;
                    keep(&mut candles, (begin_ms, [*value; 4]), CANDLES_MAX);
                }
            }
        }
        let more = candles.front().filter(|_| is_cut).map(|(begin_ms, _)| begin_ms - 1);
        let data = list(&candles, |(begin_ms, prices), out| {
            let prices = prices.map(|price| rounded(price, 4)).join(",");
            out.extend_from_slice(format!("[{begin_ms},{prices}]").as_bytes());
        });
        let more = Json(more.map_or_else(|| b"null".to_vec(), |more| json(&more)));
        Ok(Some(Object::new().with("data", Json(data)).with("continuation", more).end()))
    }

    /// Returns the annualised realised volatility of an index in percent: hourly, over 15 days each.
    pub(super) fn historical_volatility(&self, request: &Request<'_>) -> Answer {
        let currency = required_text(&request.params()?, "currency")?;
        let is_meant =
            |listing: &Listing| listing.is_perpetual() && listing.base.eq_ignore_ascii_case(&currency);
        let Some(place) = self.settings.listings.iter().position(is_meant) else {
            return Ok(Some(b"[]".to_vec()));
        };
        let mut hours: Vec<(u64, f64)> = Vec::new();
        for paid in &self.markets[place].funding.paid {
            let (hour, index) = (paid.at_ms / HOUR_MS * HOUR_MS, as_float(paid.index));
            match hours.last_mut().filter(|(last, _)| *last == hour) {
                Some(last) => last.1 = index,
                None => hours.push((hour, index)),
            }
        }
        let moves: Vec<(u64, f64)> =
            hours.windows(2).map(|pair| (pair[1].0, (pair[1].1 / pair[0].1).ln())).collect();
        let volatilities = (2..=moves.len()).map(|end| {
            let window = &moves[end.saturating_sub(VOLATILITY_HOURS)..end];
            let count = window.len() as f64;
            let mean = window.iter().map(|(_, moved)| moved).sum::<f64>() / count;
            let squares = window.iter().map(|(_, moved)| (moved - mean).powi(2)).sum::<f64>();
            (moves[end - 1].0, (squares / (count - 1.0) * 24.0 * 365.0).sqrt() * 100.0)
        });
        Ok(Some(list(volatilities, |(hour, volatility), out| {
            out.extend_from_slice(format!("[{hour},{}]", rounded(volatility, 4)).as_bytes());
        })))
    }

    /// Returns the mark prices of an option in a time range, every five minutes; empty for other instruments.
    pub(super) fn mark_history(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let place = self.find_named(&params)?;
        let (from, to) = (required(&params, "start_timestamp")?, required(&params, "end_timestamp")?);
        let marks = self.samples.marks.get(&place).into_iter().flatten();
        Ok(Some(list(marks.filter(|(at_ms, _)| (from..=to).contains(at_ms)), |(at_ms, mark), out| {
            out.extend_from_slice(
                format!("[{at_ms},{}]", self.settings.listings[place].price(*mark)).as_bytes(),
            );
        })))
    }

    /// Returns the recent funding rates of a perpetual.
    pub(super) fn funding_chart(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let place = self.find_named(&params)?;
        if !self.settings.listings[place].is_perpetual() {
            return Err(ErrorCode::InvalidArgsForInstrument.into());
        }
        let (length_ms, step_ms) = match text_param(&params, "length")?.as_deref() {
            Some("8h") => (8 * HOUR_MS, MINUTE_MS),
            Some("24h") => (DAY_MS, 5 * MINUTE_MS),
            Some("1m") => (31 * DAY_MS, HOUR_MS),
            _ => return Err(Fault::param("length", "value must be 8h, 24h or 1m")),
        };
        let rate = |rate_ppb: i64| figure(Money::ratio(rate_ppb.into(), 1_000_000_000));
        let paid = self.markets[place].funding.within(self.now_ms().saturating_sub(length_ms), u64::MAX);
        let mut last_step = None;
        // Keeps the first value of each step.
        let points =
            paid.filter(|paid| last_step.replace(paid.at_ms / step_ms) != Some(paid.at_ms / step_ms));
        let data = list(points, |paid, out| {
            Object::new()
                .with("index_price", figure(paid.index))
                .with("interest_8h", rate(paid.rate_ppb))
                .with("timestamp", paid.at_ms)
                .json()
                .write(out);
        });
        let [now, eight_hours] = self.funding_rates(place);
        let chart = Object::new()
            .with("current_interest", figure(now))
            .with("interest_8h", figure(eight_hours))
            .with("data", Json(data));
        Ok(Some(chart.end()))
    }

    pub(super) fn index_names(&self, request: &Request<'_>) -> Answer {
        let is_extended = param::<bool>(&request.params()?, "extended")?.unwrap_or(false);
        Ok(Some(list(&self.indices, |index, out| match is_extended {
            false => Text::new(&index.name).write(out),
            true => Object::new()
                .with("name", Text::new(&index.name))
                .with("future_combo_creation_enabled", false)
                .with("option_combo_creation_enabled", false)
                .json()
                .write(out),
        })))
    }

    /// Returns expiry dates as written in names, by kind, and by currency if requested by name or `grouped`.
    pub(super) fn expirations(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = required_text(&params, "currency")?.to_lowercase();
        let kinds: &[(&str, Kind)] = match text_param(&params, "kind")?.as_deref() {
            Some("future") => &[("future", Kind::Future)],
            Some("option") => &[("option", Kind::Option)],
            None | Some("any") => &[("future", Kind::Future), ("option", Kind::Option)],
            Some(_) => return Err(Fault::param("kind", "value must be future, option or any")),
        };
        let pair = text_param(&params, "currency_pair")?;
        let of = |currency: &str| {
            kinds.iter().fold(Object::new(), |object, (name, kind)| {
                let is_meant = |(listing, market): &(&Listing, &Market)| {
                    let index = &self.indices[listing.index].name;
                    listing.is_of(Some(*kind), currency)
                        && !matches!(market.life, Life::Delivered(_))
                        && pair.as_ref().is_none_or(|pair| index.eq_ignore_ascii_case(pair))
                };
                let listed = self.settings.listings.iter().zip(&self.markets).filter(is_meant);
                let mut dates: Vec<_> = listed
                    .map(|(listing, _)| (listing.expiration_ms.unwrap_or(u64::MAX), date_of(listing)))
                    .collect();
                dates.sort_unstable();
                dates.dedup();
                object.with(name, Json(list(dates, |(_, date), out| Text::new(date).write(out))))
            })
        };
        Ok(Some(match currency.as_str() {
            "any" => of("any").end(),
            "grouped" => {
                let groups = self.market_currencies().into_iter();
                groups.fold(Object::new(), |all, name| all.with(&name.to_lowercase(), of(&name).json())).end()
            }
            one => Object::new().with(one, of(one).json()).end(),
        }))
    }

    /// Returns the currencies of the listed instruments, in listing order.
    fn market_currencies(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for listing in &self.settings.listings {
            if !names.iter().any(|name| name == listing.currency()) {
                names.push(listing.currency().to_owned());
            }
        }
        names
    }

    /// Returns volumes in base currency over 24 hours, and over 7 and 30 days as far as trades are stored.
    pub(super) fn trade_volumes(&self, request: &Request<'_>) -> Answer {
        let is_extended = param::<bool>(&request.params()?, "extended")?.unwrap_or(false);
        let now_ms = self.now_ms();
        let classes = ["futures", "calls", "puts", "spot"];
        let class_of = |listing: &Listing| match (listing.kind, listing.option_type) {
            (Kind::Spot, _) => 3,
            (_, Some(OptionType::Put)) => 2,
            (Kind::Option, _) => 1,
            _ => 0,
        };
        let since = |listing: &Listing, market: &Market, days: u64| -> Money {
            let from_ms = now_ms.saturating_sub(days * DAY_MS);
            let first = market.trades.partition_point(|trade| trade.at_ms < from_ms);
            let trades = market.trades.range(first..);
            trades.map(|trade| super::candles::volume_of(trade, &listing.contract).0).sum()
        };
        Ok(Some(list(self.market_currencies(), |currency, out| {
            let mut sums = [[Money::ZERO; 3]; 4];
            let listed = self.settings.listings.iter().zip(&self.markets);
            for (listing, market) in listed.filter(|(listing, _)| listing.currency() == currency) {
                let [day, week, month] = &mut sums[class_of(listing)];
                *day += market.stats().volume;
                if is_extended {
                    *week += since(listing, market, 7);
                    *month += since(listing, market, 30);
                }
            }
            let volumes = Object::new().with("currency", Text::new(&currency));
            let volumes = classes.iter().zip(sums).fold(volumes, |object, (class, [day, week, month])| {
                let shown = |sum: Money| is_extended.then_some(figure(sum));
                object
                    .with(&format!("{class}_volume"), figure(day))
                    .with(&format!("{class}_volume_7d"), shown(week))
                    .with(&format!("{class}_volume_30d"), shown(month))
            });
            volumes.json().write(out);
        })))
    }

    /// Returns no announcements: the venue makes none.
    pub(super) fn announcements(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let _: Option<u64> = param(&params, "start_timestamp")?;
        match param::<u64>(&params, "count")? {
            None | Some(1..=ANNOUNCEMENTS_MAX) => Ok(Some(b"[]".to_vec())),
            Some(_) => Err(Fault::param("count", "value must be 1 to 50")),
        }
    }

    /// Returns no combinations: the venue has none.
    pub(super) fn combos(&self, request: &Request<'_>) -> Answer {
        let _ = required_text(&request.params()?, "currency")?;
        Ok(Some(b"[]".to_vec()))
    }
}
