//! Own trades by FIX, as they happen.

use tickpath_fix::deribit::{
    SideCode, SubscriptionRequestType, TradeCaptureAck, TradeCaptureReport, TradeCaptureRequest, TradeSide,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Group, Message, TIME_LEN_MAX, tag, write_time};
use tickpath_types::Nanos;

use super::reports::contracts;
use super::{Caller, Front, check_id, decimal_of, figure_of, out_of_range, written};
use crate::account::Changes;
use crate::market::prefixed;

/// TradeRequestType (569): all trades.
const ALL: u64 = 0;
/// TradeRequestResult (571).
const DONE: u64 = 0;
const NO_SUCH_TYPE: u64 = 2;
const OTHER: u64 = 99;
/// TradeRequestStatus (750).
const ACCEPTED: u64 = 0;
const REJECTED: u64 = 2;
/// Instruments whose trades one client follows at most; a request for a further one is rejected.
const CAPTURES_MAX: usize = 500;
/// Characters of a time that are its day.
const DAY_LEN: usize = 8;

impl Front {
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

    /// Tells who follows its account's trades of those that a command made.
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
