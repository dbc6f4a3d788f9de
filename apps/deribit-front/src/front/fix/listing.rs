//! Instruments over FIX: lists and states.

use tickpath_fix::deribit::{
    Security, SecurityAltId, SecurityDefinition, SecurityDefinitionRequest, SecurityList,
    SecurityListRequest, SecurityStatus, SecurityStatusRequest, SubscriptionRequestType, TickRule,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Group, Message, TIME_LEN_MAX, tag, write_time};
use tickpath_types::{Nanos, Side, TradingState};

use super::indices::{INDEX, index_security, symbol_of};
use super::market_data::put_or_call;
use super::reports::contracts;
use super::{Front, Outgoing, check_id, decimal_of, missing, out_of_range, written};
use crate::listing::Listing;
use crate::market::Life;

/// SecurityStatus (965).
const ACTIVE: u64 = 1;
const CLOSED: u64 = 4;
const SETTLED: u64 = 12;
/// SecurityRequestType (321): query one, create one, list all.
const IS: u64 = 0;
const MAKE: u64 = 1;
const LIST: u64 = 3;
/// SecurityResponseType (323).
const ACCEPTED: u64 = 2;
const REJECTED: u64 = 5;
/// SecurityTradingStatus (326).
const READY: u64 = 7;
const NOT_AVAILABLE: u64 = 8;
const UNKNOWN: u64 = 20;
/// SecurityAltIDSource (456): the multicast feed.
const MULTICAST: u64 = 101;
/// Maximum number of instrument states one client may subscribe to; further requests are rejected.
const STATUSES_MAX: usize = 500;

/// Texts of an instrument for a message.
struct Words {
    description: String,
    issued: String,
    matures: String,
    /// Time of day of the final settlement.
    matures_at: String,
    /// Name of its index.
    underlying: String,
    /// Number in the venue's multicast feed, if the client requests it.
    multicast_id: Option<String>,
    /// Ticks by the price above which they apply, if the client requests them.
    ticks: Vec<TickRule<'static>>,
}

/// Optional details of instruments that a client requests.
#[derive(Clone, Copy, Default)]
struct Details {
    has_status: bool,
    has_steps: bool,
    has_ids: bool,
}

impl Front {
    pub(super) fn security_list(&mut self, number: u64, message: &Message<'_>) -> Result<(), Refusal> {
        let request = SecurityListRequest::decode(message)?;
        let id = request.security_req_id;
        check_id(id, tag::SECURITY_REQ_ID)?;
        match request.subscription {
            None | Some(SubscriptionRequestType::SNAPSHOT) => {}
            Some(SubscriptionRequestType::SUBSCRIBE) => {
                self.note_states();
                if let Some(link) = self.link(number) {
                    link.securities = Some(id.to_owned());
                }
            }
            Some(SubscriptionRequestType::UNSUBSCRIBE) => {
                if let Some(link) = self.link(number) {
                    link.securities = None;
                }
            }
            Some(_) => return Err(out_of_range(tag::SUBSCRIPTION_REQUEST_TYPE).into()),
        }
        let is_wanted = |listing: &Listing| {
            request.security_type.is_none_or(|wanted| wanted == security_type(listing))
                && request.currency.is_none_or(|currency| listing.is_of(None, currency))
                && request
                    .secondary_currency
                    .is_none_or(|currency| listing.quote.eq_ignore_ascii_case(currency))
        };
        let places: Vec<usize> = (0..self.markets.len())
            .filter(|place| self.status_of(*place) != SETTLED && is_wanted(&self.settings.listings[*place]))
            .collect();
        let details = Details {
            has_status: false,
            has_steps: request.display_increment_steps == Some(true),
            has_ids: request.display_multicast_id == Some(true),
        };
        let list = match request.security_type {
            Some(INDEX) => {
                let indices = self.listed_indices(request.currency, request.secondary_currency);
                let securities: Vec<Security<'_>> = indices.iter().map(index_security).collect();
                list_of(id, &securities)
            }
            _ => self.written_list(id, &places, details),
        };
        let list = list.filter(|list| !list.is_too_long()).or_else(|| {
            self.counters.too_long.add(1);
            written(&SecurityList {
                security_req_id: id,
                security_response_id: Some(id),
                result: Some(1),
                text: Some("too many instruments for one message: ask for those of a currency"),
                ..SecurityList::default()
            })
        });
        self.send_fix(number, list);
        Ok(())
    }

    fn written_list(&self, id: &str, places: &[usize], details: Details) -> Option<Outgoing> {
        let words: Vec<Words> = places.iter().map(|place| self.words_of(*place, details)).collect();
        let alt_ids: Vec<Option<SecurityAltId<'_>>> = words.iter().map(alt_id_of).collect();
        let securities: Vec<Security<'_>> = places
            .iter()
            .zip(words.iter().zip(&alt_ids))
            .map(|(place, (words, alt_id))| Security {
                status: details.has_status.then(|| self.status_of(*place)),
                alt_ids: alt_id.as_ref().map_or(Group::default(), |id| Group::of(std::slice::from_ref(id))),
                ..self.security(*place, words)
            })
            .collect();
        list_of(id, &securities)
    }

    fn security<'a>(&'a self, place: usize, words: &'a Words) -> Security<'a> {
        let listing = &self.settings.listings[place];
        let is_option = listing.contract.is_option();
        let is_pair = listing.period.is_empty();
        Security {
            symbol: &listing.name,
            description: Some(&words.description),
            security_type: Some(security_type(listing)),
            put_or_call: put_or_call(listing),
            strike_price: listing.strike.map(decimal_of),
            strike_currency: is_option.then_some("USD"),
            currency: Some(&listing.base),
            price_quote_currency: Some(&listing.quote),
            price_precision: Some(listing.price(listing.tick).scale().into()),
            min_price_increment: Some(decimal_of(listing.price(listing.tick)).normalized()),
            underlying_symbol: Some(&words.underlying),
            underlying_type: Some(INDEX),
            issue_date: Some(&words.issued),
            maturity_date: Some(words.matures.as_str()).filter(|text| !text.is_empty()),
            maturity_time: Some(words.matures_at.as_str()).filter(|text| !text.is_empty()),
            min_trade_vol: Some(decimal_of(listing.min_trade_amount)),
            settl_type: settl_type(listing),
            settl_currency: Some(listing.settlement.as_str()).filter(|_| !is_pair),
            comm_currency: Some(&listing.settlement),
            contract_multiplier: Some(decimal_of(listing.contract_size)),
            tick_rules: Group::of(&words.ticks),
            ..Security::default()
        }
    }

    fn words_of(&self, place: usize, details: Details) -> Words {
        let listing = &self.settings.listings[place];
        let time = |ms| {
            let mut out = [0; TIME_LEN_MAX];
            String::from_utf8_lossy(write_time(Nanos::from_millis(ms), &mut out)).into_owned()
        };
        let matures = listing.expiration_ms.map(time).unwrap_or_default();
        Words {
            description: format!("{} {}", listing.name, listing.kind),
            issued: time(listing.creation_ms),
            matures_at: time_of_day(&matures),
            matures,
            underlying: symbol_of(&self.indices[listing.index].name),
            multicast_id: details.has_ids.then(|| listing.id.0.to_string()),
            ticks: listing
                .tick_steps
                .iter()
                .filter(|_| details.has_steps)
                .map(|(above, tick)| TickRule {
                    start_price: decimal_of(listing.price(*above)),
                    increment: decimal_of(listing.price(*tick)).normalized(),
                    ..TickRule::default()
                })
                .collect(),
        }
    }

    /// SecurityStatus (965) of an instrument.
    fn status_of(&self, place: usize) -> u64 {
        match self.markets[place].life {
            Life::Delivered(_) => SETTLED,
            Life::Listed if self.markets[place].state == TradingState::Trading => ACTIVE,
            _ => CLOSED,
        }
    }

    /// Handles requests for combinations; the venue has none.
    pub(super) fn security_definition(&mut self, number: u64, message: &Message<'_>) -> Result<(), Refusal> {
        let request = SecurityDefinitionRequest::decode(message)?;
        check_id(request.security_req_id, tag::SECURITY_REQ_ID)?;
        let (response_type, text) = match request.request_type {
            LIST if request.currency.is_none() => return Err(missing(tag::CURRENCY).into()),
            LIST => (ACCEPTED, None),
            IS | MAKE => (REJECTED, Some("the venue has no combinations")),
            _ => return Err(out_of_range(tag::SECURITY_REQUEST_TYPE).into()),
        };
        let definition = written(&SecurityDefinition {
            security_req_id: request.security_req_id,
            security_response_id: request.security_req_id,
            response_type,
            text,
            ..SecurityDefinition::default()
        });
        self.send_fix(number, definition);
        Ok(())
    }

    pub(super) fn security_status(&mut self, number: u64, message: &Message<'_>) -> Result<(), Refusal> {
        let request = SecurityStatusRequest::decode(message)?;
        check_id(request.request_id, tag::SECURITY_STATUS_REQ_ID)?;
        let Some(place) = self.listing(request.symbol) else {
            let unknown = written(&SecurityStatus {
                symbol: request.symbol,
                request_id: Some(request.request_id),
                trading_status: Some(UNKNOWN),
                text: Some("no instrument has this Symbol (55)"),
                ..SecurityStatus::default()
            });
            self.send_fix(number, unknown);
            return Ok(());
        };
        self.note_states();
        let Some(link) = self.link(number) else { return Ok(()) };
        match request.subscription {
            SubscriptionRequestType::SNAPSHOT => {}
            SubscriptionRequestType::SUBSCRIBE if link.statuses.len() >= STATUSES_MAX => {
                return Err(out_of_range(tag::SUBSCRIPTION_REQUEST_TYPE).into());
            }
            SubscriptionRequestType::SUBSCRIBE => {
                link.statuses.retain(|(_, own)| *own != place);
                link.statuses.push((request.request_id.to_owned(), place));
            }
            SubscriptionRequestType::UNSUBSCRIBE => link.statuses.retain(|(_, own)| *own != place),
            _ => return Err(out_of_range(tag::SUBSCRIPTION_REQUEST_TYPE).into()),
        }
        let status = self.written_status(request.request_id, place);
        self.send_fix(number, status);
        Ok(())
    }

    fn written_status(&self, id: &str, place: usize) -> Option<Outgoing> {
        let (listing, market) = self.listed(place);
        let stats = market.stats();
        let of = |side: Side| contracts(listing, stats.taken[side.index()]);
        let price = |price| decimal_of(listing.price(price));
        written(&SecurityStatus {
            symbol: &listing.name,
            request_id: Some(id),
            trading_status: Some(if self.status_of(place) == ACTIVE { READY } else { NOT_AVAILABLE }),
            buy_volume: Some(of(Side::Buy)),
            sell_volume: Some(of(Side::Sell)),
            high_px: stats.high.map(price),
            low_px: stats.low.map(price),
            last_px: market.last.map(price),
            text: None,
        })
    }

    /// Records the current states of the instruments, so that later changes are detected.
    fn note_states(&mut self) {
        for place in 0..self.markets.len() {
            let status = self.status_of(place);
            self.fix.states.entry(place).or_insert(status);
        }
    }

    /// Publishes instruments that opened or closed to their subscribers.
    pub(super) fn tell_states(&mut self, touched: &[usize]) {
        for &place in touched {
            let status = self.status_of(place);
            match self.fix.states.get_mut(&place) {
                Some(before) if *before != status => *before = status,
                _ => continue,
            }
            let mut outgoing = Vec::new();
            for (number, connection) in &self.connections {
                let Some(link) = connection.fix.as_deref() else { continue };
                if let Some(id) = &link.securities {
                    outgoing.push((
                        *number,
                        self.written_list(id, &[place], Details { has_status: true, ..Details::default() }),
                    ));
                }
                if let Some((id, _)) = link.statuses.iter().find(|(_, own)| *own == place) {
                    outgoing.push((*number, self.written_status(id, place)));
                }
            }
            for (number, message) in outgoing {
                self.send_fix(number, message);
            }
        }
    }
}

/// Returns a MaturityTime (1079) with the UTC designator `Z`.
fn time_of_day(time: &str) -> String {
    time.split_once('-').map_or(String::new(), |(_, of_day)| format!("{}Z", &of_day[..of_day.len().min(8)]))
}

fn alt_id_of(words: &Words) -> Option<SecurityAltId<'_>> {
    let id = words.multicast_id.as_deref()?;
    Some(SecurityAltId { id, source: Some(MULTICAST) })
}

fn list_of(id: &str, securities: &[Security<'_>]) -> Option<Outgoing> {
    written(&SecurityList {
        security_req_id: id,
        security_response_id: Some(id),
        result: Some(0),
        securities: Group::of(securities),
        ..SecurityList::default()
    })
}

fn security_type(listing: &Listing) -> &'static str {
    use tickpath_deribit::codes::Kind;
    match listing.kind {
        Kind::Option => "OPT",
        Kind::Spot => "FXSPOT",
        _ => "FUT",
    }
}

fn settl_type(listing: &Listing) -> Option<&'static str> {
    match listing.period.as_str() {
        "month" => Some("M1"),
        "week" => Some("W1"),
        "day" => Some("D1"),
        _ => None,
    }
}
