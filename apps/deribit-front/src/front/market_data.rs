//! Public market data methods.

use tickpath_deribit::codes::Kind;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    GetBookSummaryByCurrency, GetBookSummaryByInstrument, GetIndexPrice, GetInstrument, IndexPrice,
    OrderBook, PriceAmount, Ticker, TickerStats,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Number;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::{Money, Style};
use tickpath_types::{Qty, Side};

use super::options::OptionFigures;
use super::{Answer, Front};
use crate::fault::Fault;
use crate::json::{Json, Object, json, list, member, param, text_param};
use crate::listing::figure;
use crate::market::{Life, best_of, price_amount};

/// Supported depths of a book.
const DEPTHS: [u32; 8] = [1, 5, 10, 20, 50, 100, 1_000, 10_000];
/// Default depth of a book.
const DEPTH_DEFAULT: u32 = 5;

/// Values of a ticker, as text.
struct Figures {
    index: String,
    mark: String,
    open_interest: String,
    /// Empty before the first settlement.
    settled: String,
    /// Current estimated delivery price.
    delivery: String,
    /// Perpetuals only: current 8-hour funding rate, and its mean over the last eight hours.
    funding: [String; 2],
    stats: [Option<String>; 6],
}

/// Texts of a ticker.
pub(super) struct TickerTexts {
    figures: Figures,
    option: OptionFigures,
    /// Delivery price; empty before the delivery.
    delivered: String,
    /// Perpetuals only: total funding paid per unit of the amount.
    pub(super) interest: String,
}

impl Front {
    pub(super) fn instruments(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let currency = text_param(&params, "currency")?.unwrap_or_else(|| "any".to_owned());
        let kind = match member(&params, "kind") {
            Some(kind) => {
                Some(kind.parse_strict::<Kind>().map_err(|_| Fault::param("kind", "no such kind"))?)
            }
            None => None,
        };
        let expired = param::<bool>(&params, "expired")?.unwrap_or(false);
        let found = (0..self.settings.listings.len())
            .filter(|place| expired == matches!(self.markets[*place].life, Life::Delivered(_)))
            .filter(|place| self.settings.listings[*place].is_of(kind, &currency));
        Ok(Some(list(found, |place, out| self.write_instrument(place, out))))
    }

    fn write_instrument(&self, place: usize, out: &mut Vec<u8>) {
        let (listing, market) = self.listed(place);
        listing.write(&self.indices[listing.index].name, market.listed_state(), out);
    }

    pub(super) fn instrument(&self, request: &Request<'_>) -> Answer {
        let GetInstrument { instrument_name } = request.params()?;
        let place = self.find_listing(&instrument_name.to_cow())?;
        let mut out = Vec::new();
        self.write_instrument(place, &mut out);
        Ok(Some(out))
    }

    /// Returns the instrument with this name.
    pub(super) fn find_listing(&self, name: &str) -> Result<usize, Fault> {
        self.listing(name).ok_or(Fault {
            code: ErrorCode::InvalidParams,
            reason: "no instrument has this name",
            param: "instrument_name",
            limit: None,
        })
    }

    /// Returns the instrument with this name, unless it has expired.
    pub(super) fn find_traded(&self, name: &str) -> Result<usize, Fault> {
        let place = self.find_listing(name)?;
        let is_over = self.settings.listings[place].expiration_ms.is_some_and(|end| end <= self.now_ms());
        if is_over {
            Err(Fault::because(ErrorCode::BookClosed, "the instrument has expired"))
        } else {
            Ok(place)
        }
    }

    pub(super) fn find_named(&self, params: &Value<'_>) -> Result<usize, Fault> {
        let name = text_param(params, "instrument_name")?
            .ok_or(Fault::param("instrument_name", "value required"))?;
        self.find_listing(&name)
    }

    pub(super) fn currencies(&self) -> Answer {
        let mut names: Vec<&str> = Vec::new();
        for listing in &self.settings.listings {
            for name in [&listing.base, &listing.settlement, &listing.quote] {
                if !names.contains(&name.as_str()) && name != "USD" {
                    names.push(name);
                }
            }
        }
        Ok(Some(list(names, |name, out| {
            Object::new()
                .with("currency", Text::new(name))
                .with("currency_long", Text::new(name))
                .with("coin_type", Text::new(name))
                .with("network_currency", Text::new(name))
                .with("network_fee", 0_u64)
                .with("apr", 0_u64)
                .with("in_cross_collateral_pool", false)
                .with("fee_precision", 8_u64)
                .with("min_confirmations", 0_u64)
                .with("min_withdrawal_fee", 0_u64)
                .with("withdrawal_fee", 0_u64)
                .with("withdrawal_priorities", Json(b"[]".to_vec()))
                .json()
                .write(out);
        })))
    }

    pub(super) fn contract_size(&self, request: &Request<'_>) -> Answer {
        let place = self.find_named(&request.params()?)?;
        let size = self.settings.listings[place].contract_size;
        Ok(Some(Object::new().with("contract_size", size).end()))
    }

    pub(super) fn ticker(&self, request: &Request<'_>) -> Answer {
        let place = self.find_named(&request.params()?)?;
        let mut out = Vec::new();
        self.write_ticker(place, &mut out);
        Ok(Some(out))
    }

    fn figures(&self, place: usize) -> Figures {
        let (listing, market) = self.listed(place);
        let stats = market.stats();
        let sizes = self.accounts.iter().map(|account| account.position(place).size.max(0).unsigned_abs());
        let change = stats.first.zip(market.last).filter(|(first, _)| first.0 > 0).map(|(first, last)| {
            Money::ratio(i128::from(last.0 - first.0) * 100, first.0.into()).rounded(4).to_string()
        });
        let price = |price| listing.price(price).to_string();
        let usd = match listing.contract.style {
            Style::InverseOption => stats.notional.scaled(market.index.0, Money::ONE.0),
            _ => stats.notional,
        };
        Figures {
            index: figure(market.index).to_string(),
            mark: price(market.mark),
            open_interest: listing.amount(Qty(sizes.sum())).to_string(),
            settled: market.settled.map(price).unwrap_or_default(),
            delivery: figure(self.estimated_delivery(place)).to_string(),
            funding: self.funding_rates(place).map(|rate| rate.to_string()),
            stats: [
                stats.high.map(price),
                stats.low.map(price),
                change,
                Some(figure(stats.volume).to_string()),
                Some(figure(usd).to_string()),
                Some(figure(stats.notional).to_string()),
            ],
        }
    }

    pub(super) fn write_ticker(&self, place: usize, out: &mut Vec<u8>) {
        let texts = self.ticker_texts(place);
        self.ticker_of(place, &texts).write(out);
        self.write_untraded(place, out);
    }

    /// Ends a ticker or book of an instrument without trades. An explicit `null` is needed: in an incremental
    /// ticker an absent member means unchanged.
    fn write_untraded(&self, place: usize, out: &mut Vec<u8>) {
        if self.markets[place].last.is_none() {
            out.pop();
            out.extend_from_slice(b",\"last_price\":null}");
        }
    }

    pub(super) fn ticker_texts(&self, place: usize) -> TickerTexts {
        let (listing, market) = self.listed(place);
        let (per_unit, contract) = (market.funding.meter.per_unit, &listing.contract);
        let units = 10_i128.pow(contract.amount_decimals.into());
        TickerTexts {
            figures: self.figures(place),
            option: self.option_figures(place),
            delivered: match market.life {
                Life::Delivered(price) => figure(price).to_string(),
                _ => String::new(),
            },
            interest: per_unit.scaled(units, i128::from(contract.amount_step.max(1))).to_string(),
        }
    }

    /// Builds the ticker of an instrument, without its book.
    fn ticker_of<'a>(&'a self, place: usize, texts: &'a TickerTexts) -> Ticker<'a> {
        let (listing, market) = self.listed(place);
        let TickerTexts { figures, option, delivered, interest } = texts;
        let (bid, bid_amount) = best_of(market, listing, Side::Buy);
        let (ask, ask_amount) = best_of(market, listing, Side::Sell);
        let (min, max) = market.band(listing, self.settings.band_ppm);
        let [funding, funding_8h] =
            figures.funding.each_ref().map(|rate| Number::new(rate).ok().filter(|_| listing.is_perpetual()));
        let is_option = listing.kind == Kind::Option;
        let volatility = |place: usize| Number::new(&option.volatilities[place]).ok();
        let index_name = Text::new(&self.indices[listing.index].name);
        let index = Number::new(&figures.index).ok();
        Ticker {
            state: Some(market.listed_state()),
            stats: Some(stats_of(figures)),
            index_price: index,
            last_price: market.last.map(|last| listing.price(last)),
            settlement_price: Number::new(&figures.settled).ok(),
            min_price: Some(listing.price(min)),
            max_price: Some(listing.price(max)),
            open_interest: Number::new(&figures.open_interest).ok(),
            mark_price: Number::new(&figures.mark).ok(),
            interest_value: Number::new(interest).ok().filter(|_| listing.is_perpetual()),
            best_ask_price: Some(ask),
            best_bid_price: Some(bid),
            estimated_delivery_price: Number::new(&figures.delivery).ok(),
            best_ask_amount: Some(ask_amount),
            best_bid_amount: Some(bid_amount),
            current_funding: funding,
            funding_8h,
            delivery_price: Number::new(delivered).ok(),
            underlying_price: index.filter(|_| is_option),
            underlying_index: Some(index_name).filter(|_| is_option),
            mark_iv: volatility(0),
            interest_rate: Number::new("0").ok().filter(|_| is_option),
            greeks: option.greeks(),
            bid_iv: volatility(1),
            ask_iv: volatility(2),
            ..Ticker::empty(&listing.name, self.now_ms())
        }
    }

    pub(super) fn order_book(&self, request: &Request<'_>) -> Answer {
        let params: Value<'_> = request.params()?;
        let place = match param::<u64>(&params, "instrument_id")? {
            Some(id) => {
                let place = u16::try_from(id).ok().and_then(|id| self.by_instrument.get(&id).copied());
                place.ok_or(Fault::param("instrument_id", "no instrument has this id"))?
            }
            None => self.find_named(&params)?,
        };
        let depth = param::<u32>(&params, "depth")?.unwrap_or(DEPTH_DEFAULT);
        if !DEPTHS.contains(&depth) {
            return Err(Fault::param("depth", "value is not one of those allowed"));
        }
        let (listing, market) = self.listed(place);
        let side = |side| -> Vec<PriceAmount> {
            market.depth(side).take(depth as usize).map(|level| price_amount(listing, level)).collect()
        };
        let (bids, asks) = (side(Side::Buy), side(Side::Sell));
        let texts = self.ticker_texts(place);
        let ticker = self.ticker_of(place, &texts);
        let mut out = json(&OrderBook::of(ticker, market.change_id, List::new(&bids), List::new(&asks)));
        self.write_untraded(place, &mut out);
        Ok(Some(out))
    }

    pub(super) fn index_price(&self, request: &Request<'_>) -> Answer {
        let GetIndexPrice { index_name } = request.params()?;
        let index = self.indices.iter().find(|index| index_name == index.name.as_str());
        let index = index.ok_or(Fault::param("index_name", "no index has this name"))?;
        Ok(Some(json(&IndexPrice {
            timestamp: None,
            price: None,
            index_name: None,
            index_price: Some(figure(index.price).decimal()),
            estimated_delivery_price: Some(figure(index.price).decimal()),
        })))
    }

    pub(super) fn book_summary(&self, request: &Request<'_>) -> Answer {
        let places: Vec<usize> = match request.method {
            Method::GetBookSummaryByCurrency => {
                let GetBookSummaryByCurrency { currency, kind } = request.params()?;
                let (currency, all) = (currency.to_cow(), self.settings.listings.iter().zip(0..));
                all.filter(|(listing, _)| listing.is_of(kind, &currency)).map(|(_, place)| place).collect()
            }
            _ => {
                let GetBookSummaryByInstrument { instrument_name } = request.params()?;
                vec![self.find_listing(&instrument_name.to_cow())?]
            }
        };
        Ok(Some(list(places, |place, out| self.write_summary(place, out))))
    }

    fn write_summary(&self, place: usize, out: &mut Vec<u8>) {
        let (listing, market) = self.listed(place);
        let figures = self.figures(place);
        let (is_option, option) = (listing.kind == Kind::Option, self.option_figures(place));
        let number = |text: &Option<String>| Json(text.as_deref().unwrap_or("null").as_bytes().to_vec());
        let [high, low, change, volume, usd, notional] = &figures.stats;
        let best = |side| market.best(side).map(|(price, _)| listing.price(price));
        let (bid, ask) = (best(Side::Buy), best(Side::Sell));
        let null = || Json(b"null".to_vec());
        let price = |price: Option<_>| {
            price.map_or_else(null, |price: tickpath_deribit::number::Decimal| Json(json(&price)))
        };
        let mid = match (market.best(Side::Buy), market.best(Side::Sell)) {
            (Some((bid, _)), Some((ask, _))) => {
                Some(listing.price(tickpath_types::Price((bid.0 + ask.0) / 2)))
            }
            _ => None,
        };
        Object::new()
            .with("instrument_name", Text::new(&listing.name))
            .with("base_currency", Text::new(&listing.base))
            .with("quote_currency", Text::new(&listing.quote))
            .with("creation_timestamp", self.now_ms())
            .with("bid_price", price(bid))
            .with("ask_price", price(ask))
            .with("mid_price", price(mid))
            .with("mark_price", Json(figures.mark.clone().into_bytes()))
            .with("last", price(market.last.map(|last| listing.price(last))))
            .with("high", number(high))
            .with("low", number(low))
            .with("price_change", number(change))
            .with("volume", number(volume))
            .with("volume_usd", number(usd))
            .with("volume_notional", number(notional))
            .with("open_interest", Json(figures.open_interest.clone().into_bytes()))
            .with(
                "current_funding",
                listing.is_perpetual().then(|| Json(figures.funding[0].clone().into_bytes())),
            )
            .with("funding_8h", listing.is_perpetual().then(|| Json(figures.funding[1].clone().into_bytes())))
            .with("estimated_delivery_price", Json(figures.delivery.clone().into_bytes()))
            .with("mark_iv", Number::new(&option.volatilities[0]).ok())
            .with("underlying_price", is_option.then(|| Json(figures.index.clone().into_bytes())))
            .with("underlying_index", is_option.then(|| Text::new(&self.indices[listing.index].name)))
            .with("interest_rate", is_option.then_some(0_u64))
            .json()
            .write(out);
    }
}

fn stats_of(figures: &Figures) -> TickerStats<'_> {
    let [high, low, price_change, volume, volume_usd, volume_notional] =
        figures.stats.each_ref().map(|text| text.as_deref().and_then(|text| Number::new(text).ok()));
    TickerStats { high, low, price_change, volume, volume_usd, volume_notional }
}
