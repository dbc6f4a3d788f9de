//! Positions and account summaries over FIX.

use tickpath_derivatives::{Money, Style};
use tickpath_fix::deribit::{
    Position, PositionReport, QtyType, RequestForPositions, SubscriptionRequestType, UserRequest,
    UserResponse,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Decimal as FixDecimal, Group, Message, tag};
use tickpath_types::Qty;

use super::reports::contracts;
use super::{Front, Outgoing, check_id, decimal_of, figure_of, out_of_range, text, written};
use crate::account::Changes;

/// PosReqType (724): positions. PosReqResult (728): done.
const POSITIONS: u64 = 0;
const DONE: u64 = 0;
const NOT_SUPPORTED: u64 = 1;
/// UserRequestType (924): account status. UserStatus (926): logged on.
const STATUS: u64 = 4;
const LOGGED_ON: u64 = 1;
/// Default currency of a request.
const CURRENCY_DEFAULT: &str = "BTC";
const ANY: &str = "any";

impl Front {
    pub(super) fn positions_by_fix(
        &mut self,
        number: u64,
        account: usize,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let request = RequestForPositions::decode(message)?;
        let id = request.request_id;
        check_id(id, tag::POS_REQ_ID)?;
        if request.request_type != POSITIONS {
            let report = written(&PositionReport {
                request_id: text(id),
                request_type: Some(request.request_type),
                result: Some(NOT_SUPPORTED),
                ..PositionReport::default()
            });
            self.send_fix(number, report);
            return Ok(());
        }
        let currency = request.currency.unwrap_or(ANY).to_owned();
        let subscription = match request.subscription.unwrap_or(SubscriptionRequestType::SNAPSHOT) {
            SubscriptionRequestType::SNAPSHOT => None,
            SubscriptionRequestType::SUBSCRIBE => Some(Some((id.to_owned(), currency.clone()))),
            SubscriptionRequestType::UNSUBSCRIBE => Some(None),
            _ => return Err(out_of_range(tag::SUBSCRIPTION_REQUEST_TYPE).into()),
        };
        if let (Some(subscription), Some(link)) = (subscription, self.link(number)) {
            link.positions = subscription;
        }
        let held = self.accounts[account].positions.iter();
        let places: Vec<usize> = held
            .filter(|(place, position)| {
                !position.is_flat() && self.settings.listings[**place].is_of(None, &currency)
            })
            .map(|(place, _)| *place)
            .collect();
        let report = self.position_report(account, id, &places);
        self.send_fix(number, report);
        Ok(())
    }

    /// Publishes the positions that a command changed, flat ones included, to a subscribed client.
    pub(super) fn tell_positions(&mut self, number: u64, account: usize, changes: &Changes) {
        let Some((id, currency)) = self.link(number).and_then(|link| link.positions.clone()) else { return };
        let traded = changes.trades.iter().map(|trade| trade.listing);
        let mut places: Vec<usize> = traded.chain(changes.positions.iter().copied()).collect();
        places.sort_unstable();
        places.dedup();
        places.retain(|place| self.settings.listings[*place].is_of(None, &currency));
        if !places.is_empty() {
            let report = self.position_report(account, &id, &places);
            self.send_fix(number, report);
        }
    }

    fn position_report(&mut self, account: usize, id: &str, places: &[usize]) -> Option<Outgoing> {
        self.fix.reports += 1;
        let report_id = self.fix.reports.to_string();
        let margins: Vec<String> = places.iter().map(|place| self.margins_of(account, *place)).collect();
        let positions: Vec<Position<'_>> = places
            .iter()
            .zip(&margins)
            .map(|(place, margins)| self.position_of(account, *place, margins))
            .collect();
        written(&PositionReport {
            report_id: Some(&report_id),
            request_id: text(id),
            request_type: Some(POSITIONS),
            result: Some(DONE),
            positions: Group::of(&positions),
        })
    }

    /// Returns `MAINTENANCE;INITIAL;FLOATING`.
    fn margins_of(&self, account: usize, place: usize) -> String {
        let (listing, market) = self.listed(place);
        let position = self.accounts[account].position(place);
        let (initial, maintenance) = listing.contract.margin(position.size, market.mark, market.index);
        let floating = position.floating(&listing.contract, market.mark);
        let [maintenance, initial, floating] = [maintenance, initial, floating].map(figure_of);
        format!("{maintenance};{initial};{floating}")
    }

    fn position_of<'a>(&'a self, account: usize, place: usize, margins: &'a str) -> Position<'a> {
        let (listing, market) = self.listed(place);
        let position = self.accounts[account].position(place);
        let qty = Qty(position.size.unsigned_abs());
        let size = contracts(listing, qty);
        let sign = i128::from(position.size.signum());
        let coins = match listing.contract.style {
            Style::Inverse => listing.contract.value(qty, market.mark),
            _ => listing.contract.amount(qty),
        };
        let (long, short) =
            if position.size < 0 { (FixDecimal::ZERO, size) } else { (size, FixDecimal::ZERO) };
        Position {
            pos_type: "TQ",
            long_qty: Some(long),
            short_qty: Some(short),
            symbol: Some(&listing.name),
            qty_type: Some(QtyType::CONTRACTS),
            contract_multiplier: Some(decimal_of(listing.contract_size)),
            mark_price: Some(decimal_of(listing.price(market.mark))),
            side: Some(if position.size < 0 { SELL } else { BUY }),
            settl_price: Some(figure_of(position.average_price(&listing.contract))),
            raw_data_length: Some(margins.len() as u64),
            raw_data: Some(margins),
            liquidation_price: self.liquidation_price(account, place).map(figure_of),
            size_in_currency: Some(figure_of(Money(sign * coins.0))),
        }
    }

    pub(super) fn user_request(
        &mut self,
        number: u64,
        account: usize,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let request = UserRequest::decode(message)?;
        if request.request_type != STATUS {
            return Err(out_of_range(tag::USER_REQUEST_TYPE).into());
        }
        let key = self.settings.keys.iter().find(|key| key.client_id == request.username);
        if key.is_none_or(|key| key.account != account) {
            return Err(out_of_range(tag::USERNAME).into());
        }
        let currency = request.currency.unwrap_or(CURRENCY_DEFAULT).to_uppercase();
        if !self.currencies_of(account).contains(&currency) {
            return Err(out_of_range(tag::CURRENCY).into());
        }
        let figures = self.figures_of(account, &currency, None);
        // The same as session_rpl of JSON-RPC.
        let realized = figures.realized + figures.funding;
        let response = written(&UserResponse {
            request_id: request.request_id,
            username: Some(request.username),
            status: Some(LOGGED_ON),
            currency: Some(&currency),
            equity: Some(figure_of(figures.equity())),
            balance: Some(figure_of(figures.balance)),
            initial_margin: Some(figure_of(figures.initial_margin)),
            maintenance_margin: Some(figure_of(figures.maintenance_margin)),
            unrealized_pl: Some(figure_of(figures.floating)),
            realized_pl: Some(figure_of(realized)),
            total_pl: Some(figure_of(figures.floating + realized)),
            margin_balance: Some(figure_of(figures.equity())),
        });
        self.send_fix(number, response);
        Ok(())
    }
}

/// Side codes as text.
const BUY: &str = "1";
const SELL: &str = "2";
