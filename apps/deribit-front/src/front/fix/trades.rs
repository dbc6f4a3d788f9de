//! Trade capture reports over FIX: own trades in real time.

use tickpath_deribit::codes::OrderState;
use tickpath_fix::deribit::{
    OrdStatus, SideCode, SubscriptionRequestType, TradeCaptureAck, TradeCaptureReport, TradeCaptureRequest,
    TradeSide,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Group, Message, TIME_LEN_MAX, tag, write_time};
use tickpath_types::Nanos;

use super::reports::contracts;
use super::{Caller, Front, check_id, decimal_of, figure_of, out_of_range, written};
use crate::account::Changes;
use crate::front::calls::Need;
use crate::market::{Trade, prefixed};
use crate::scope::Access;

/// TradeRequestType (569): all trades.
const ALL: u64 = 0;
/// TradeRequestResult (571).
const DONE: u64 = 0;
const NO_SUCH_TYPE: u64 = 2;
const OTHER: u64 = 99;
/// TradeRequestStatus (750).
const ACCEPTED: u64 = 0;
const REJECTED: u64 = 2;
/// Maximum number of instruments with trade capture per client; a request for a further one is rejected.
const CAPTURES_MAX: usize = 500;
/// Length of the date part of a timestamp, in characters.
const DAY_LEN: usize = 8;

/// Client-specific texts of a public trade.
#[derive(Default)]
pub(super) struct TradeTexts {
    pub(super) id: String,
    pub(super) seq: String,
    /// The client's own order; `other_id` is set if both orders are its own.
    pub(super) order_id: Option<String>,
    pub(super) other_id: Option<String>,
    /// Status of the own order after the trade.
    pub(super) status: Option<OrdStatus>,
    /// Label of the own order; empty for none.
    pub(super) label: String,
}

impl Front {
    /// Returns the texts of an instrument's trades, oldest first; own trades include their order ids.
    pub(super) fn trade_texts(&self, number: u64, place: usize, trades: &[Trade]) -> Vec<TradeTexts> {
        let listing = &self.settings.listings[place];
        let text_of = |trade: &Trade| {
            let (id, seq) = (trade.id(listing), trade.seq.to_string());
            TradeTexts { id, seq, ..TradeTexts::default() }
        };
        let mut texts: Vec<TradeTexts> = trades.iter().map(text_of).collect();
        let (Some(first), Some((account, _))) = (trades.first(), self.fix.up.get(&number)) else {
            return texts;
        };
        // Clients without read access to orders get no order ids.
        if !self.is_fix_allowed(number, Need::Trade(Access::Read)) {
            return texts;
        }
        let own = self.accounts[*account].trades.iter().rev();
        for own in own.take_while(|own| own.public.match_id >= first.match_id) {
            let Ok(at) = trades.binary_search_by_key(&own.public.match_id, |trade| trade.match_id) else {
                continue;
            };
            let id = prefixed(listing, own.order);
            let texts = &mut texts[at];
            if own.is_maker && texts.order_id.is_some() {
                texts.other_id = Some(id);
                continue;
            }
            texts.other_id = texts.order_id.replace(id);
            texts.status = Some(match own.state {
                OrderState::Filled => OrdStatus::FILLED,
                _ => OrdStatus::PARTIALLY_FILLED,
            });
            self.labels.name(own.terms.label).clone_into(&mut texts.label);
        }
        texts
    }

    pub(super) fn trade_capture(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let request = TradeCaptureRequest::decode(message)?;
        check_id(request.request_id, tag::TRADE_REQUEST_ID)?;
        let place = self.listing(request.symbol);
        let subscription = request.subscription.unwrap_or(SubscriptionRequestType::SUBSCRIBE);
        let Some(link) = self.link(caller.number) else { return Ok(()) };
        let rejected = match (request.request_type, subscription, place) {
            (ALL, _, None) => Some((OTHER, "no instrument has this Symbol (55)")),
            (ALL, SubscriptionRequestType::SUBSCRIBE, Some(place)) => {
                link.captures.retain(|(_, own)| *own != place);
                let is_full = link.captures.len() >= CAPTURES_MAX;
                if !is_full {
                    link.captures.push((request.request_id.to_owned(), place));
                }
                is_full.then_some((OTHER, "at most 500 instruments of one client"))
            }
            (ALL, SubscriptionRequestType::UNSUBSCRIBE, Some(place)) => {
                link.captures.retain(|(_, own)| *own != place);
                None
            }
            (ALL, SubscriptionRequestType::SNAPSHOT, _) => {
                Some((NO_SUCH_TYPE, "there are no snapshots: subscribe"))
            }
            (ALL, ..) => return Err(out_of_range(tag::SUBSCRIPTION_REQUEST_TYPE).into()),
            _ => Some((NO_SUCH_TYPE, "TradeRequestType (569) must be 0")),
        };
        let ack = written(&TradeCaptureAck {
            request_id: request.request_id,
            request_type: request.request_type,
            result: rejected.map_or(DONE, |(result, _)| result),
            status: if rejected.is_some() { REJECTED } else { ACCEPTED },
            symbol: request.symbol,
            text: rejected.map(|(_, words)| words),
        });
        self.send_fix(caller.number, ack);
        Ok(())
    }

    /// Publishes trades by a command to a client with trade capture.
    pub(super) fn tell_captures(&mut self, number: u64, changes: &Changes) {
        for trade in &changes.trades {
            let capture = self
                .link(number)
                .and_then(|link| link.captures.iter().find(|(_, place)| *place == trade.listing))
                .map(|(id, _)| id.clone());
            let Some(request_id) = capture else { continue };
            let listing = &self.settings.listings[trade.listing];
            let at = Nanos::from_millis(trade.public.at_ms);
            let mut time = [0; TIME_LEN_MAX];
            let day = String::from_utf8_lossy(&write_time(at, &mut time)[..DAY_LEN]).into_owned();
            let (id, order_id) = (trade.public.id(listing), prefixed(listing, trade.order));
            let side = TradeSide {
                side: SideCode::from(trade.side),
                order_id: &order_id,
                commission: figure_of(trade.fee),
                commission_currency: &listing.settlement,
            };
            let report = written(&TradeCaptureReport {
                is_repeated: false,
                symbol: &listing.name,
                qty: contracts(listing, trade.public.qty),
                px: decimal_of(listing.price(trade.public.price)),
                trade_id: &id,
                trade_date: &day,
                transact_time: at,
                request_id: Some(&request_id),
                sides: Group::of(&[side]),
            });
            self.send_fix(number, report);
        }
    }
}
