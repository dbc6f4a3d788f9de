//! Encoding of requests as FIX messages.

use tickpath_deribit::codes::{OrderType, TimeInForce, Trigger};
use tickpath_deribit::session::RequestError;
use tickpath_fix::Decimal;
use tickpath_fix::deribit::{
    NewOrderSingle, OrdType, OrderCancelReplaceRequest, OrderCancelRequest, OrderMassCancelRequest,
    PegPriceType, QtyType, SideCode, TimeInForceCode, Trigger as TriggerCode,
};
use tickpath_gateway_protocol::ErrorCode;
use tickpath_types::Nanos;

use crate::Core;
use crate::book::SCALE;
use crate::convert::has_price;
use crate::orders::{Order, State, Terms};
use crate::out::Venue;

/// MassCancelRequestType (530): all orders.
const ALL_ORDERS: u64 = 7;
/// ClOrdID of a mass cancel, which the answer repeats.
const ALL_ID: &str = "all";

impl Core {
    /// Checks whether the account's transport supports an order.
    ///
    /// # Errors
    /// Over FIX: [`ErrorCode::NOT_SUPPORTED`] for take-profit orders, which Deribit's FIX lacks, and
    /// [`ErrorCode::INVALID_QUANTITY`] for a quantity that is not exact in contracts.
    pub(crate) fn check_fix_terms(&self, account: u16, symbol: u32, terms: &Terms) -> Result<(), ErrorCode> {
        if self.accounts[usize::from(account)].entry.is_none() {
            return Ok(());
        }
        type_of(terms.order_type).ok_or(ErrorCode::NOT_SUPPORTED)?;
        let is_whole =
            self.contracts(symbol, terms.quantity).is_some() && self.contracts(symbol, terms.shown).is_some();
        if is_whole { Ok(()) } else { Err(ErrorCode::INVALID_QUANTITY) }
    }

    /// Checks the same for a change: FIX changes only price and quantity of limit orders.
    ///
    /// # Errors
    /// Those of [`check_fix_terms`](Core::check_fix_terms).
    pub(crate) fn check_fix_change(&self, order: &Order, terms: &Terms) -> Result<(), ErrorCode> {
        if self.accounts[usize::from(order.account)].entry.is_none() {
            return Ok(());
        }
        let is_limit = has_price(terms.order_type) && order.state != State::Waiting;
        let keeps_stop = terms.stop_price == order.terms.stop_price;
        if !is_limit || !keeps_stop {
            return Err(ErrorCode::NOT_SUPPORTED);
        }
        let is_whole = self.contracts(order.symbol, terms.quantity).is_some();
        if is_whole { Ok(()) } else { Err(ErrorCode::INVALID_QUANTITY) }
    }

    /// Sends an order (`D`); returns the MsgSeqNum.
    pub(crate) fn place_by_fix(
        &self,
        now: Nanos,
        order: &Order,
        venue: &mut impl Venue,
    ) -> Result<i64, RequestError> {
        let label = self.label_of(order);
        let Terms { side, order_type, time_in_force, price, stop_price, shown, trigger, .. } = order.terms;
        let is_trailing = order_type == OrderType::TrailingStop;
        let stop = (stop_price != 0).then(|| decimal(stop_price));
        let body = NewOrderSingle {
            cl_ord_id: label.as_str(),
            side: SideCode::from(side),
            order_qty: self.contracts(order.symbol, order.terms.quantity).ok_or(RequestError::TooLarge)?,
            symbol: order.symbol_name.as_str(),
            price: has_price(order_type).then(|| decimal(price)),
            ord_type: type_of(order_type),
            time_in_force: if has_price(order_type) { time_of(time_in_force) } else { None },
            exec_inst: instructions(&order.terms),
            mm_protection: order.terms.mmp.then_some(true),
            stop_px: if is_trailing { None } else { stop },
            display_qty: self.shown(order.symbol, shown),
            qty_type: Some(QtyType::CONTRACTS),
            peg_offset_value: if is_trailing { stop } else { None },
            peg_price_type: is_trailing.then_some(PegPriceType::TRAILING_STOP),
            valid_until_time: Some(Nanos::from_millis(order.valid_until_ms)),
            label: Some(label.as_str()),
            trigger: trigger.map(trigger_of),
            ..NewOrderSingle::default()
        };
        venue.send_fix(now, self.accounts[usize::from(order.account)].order_stream(), &body)
    }

    /// Sends a change of an order (`G`); returns the MsgSeqNum.
    pub(crate) fn edit_by_fix(
        &self,
        now: Nanos,
        order: &Order,
        terms: &Terms,
        valid_until_ms: u64,
        venue: &mut impl Venue,
    ) -> Result<i64, RequestError> {
        let label = self.label_of(order);
        let is_known = !order.external_id.is_empty();
        let body = OrderCancelReplaceRequest {
            symbol: order.symbol_name.as_str(),
            side: SideCode::from(terms.side),
            order_qty: self.contracts(order.symbol, terms.quantity).ok_or(RequestError::TooLarge)?,
            orig_cl_ord_id: is_known.then_some(order.external_id.as_str()),
            // The venue's id is not known yet; the venue executes the requests of a connection in order.
            cl_ord_id: (!is_known).then_some(label.as_str()),
            ord_type: Some(OrdType::LIMIT),
            price: Some(decimal(terms.price)),
            exec_inst: instructions(terms),
            mm_protection: terms.mmp.then_some(true),
            qty_type: Some(QtyType::CONTRACTS),
            display_qty: self.shown(order.symbol, terms.shown),
            valid_until_time: Some(Nanos::from_millis(valid_until_ms)),
            ..OrderCancelReplaceRequest::default()
        };
        venue.send_fix(now, self.accounts[usize::from(order.account)].order_stream(), &body)
    }

    /// Sends a cancellation of an order (`F`); returns the MsgSeqNum.
    pub(crate) fn cancel_by_fix(
        &self,
        now: Nanos,
        order: &Order,
        venue: &mut impl Venue,
    ) -> Result<i64, RequestError> {
        let label = self.label_of(order);
        let is_known = !order.external_id.is_empty();
        let body = OrderCancelRequest {
            orig_cl_ord_id: is_known.then_some(order.external_id.as_str()),
            cl_ord_id: (!is_known).then_some(label.as_str()),
            symbol: Some(order.symbol_name.as_str()),
            ..OrderCancelRequest::default()
        };
        venue.send_fix(now, self.accounts[usize::from(order.account)].order_stream(), &body)
    }

    /// Sends a cancellation of all orders of an account (`q`); returns the MsgSeqNum.
    pub(crate) fn cancel_all_by_fix(
        &self,
        now: Nanos,
        account: u16,
        venue: &mut impl Venue,
    ) -> Result<i64, RequestError> {
        let body = OrderMassCancelRequest {
            cl_ord_id: ALL_ID,
            request_type: ALL_ORDERS,
            ..OrderMassCancelRequest::default()
        };
        venue.send_fix(now, self.accounts[usize::from(account)].order_stream(), &body)
    }

    /// Converts a quantity to contracts, the unit of FIX; none if the result is not exact. If a contract is
    /// larger than the minimum quantity, fractions occur.
    fn contracts(&self, symbol: u32, quantity: i64) -> Option<Decimal> {
        let size = self.instruments.get(symbol)?.reference.contract_size.0;
        let scaled = i128::from(quantity) * 10_i128.pow(u32::from(SCALE));
        let contracts = scaled.checked_div(i128::from(size)).filter(|_| scaled % i128::from(size) == 0)?;
        Some(decimal(i64::try_from(contracts).ok()?))
    }

    /// Displayed quantity of an order, in contracts; none for all of it.
    fn shown(&self, symbol: u32, quantity: i64) -> Option<Decimal> {
        if quantity == 0 { None } else { self.contracts(symbol, quantity) }
    }
}

/// A decimal of units of 10^-8, without trailing zeros.
fn decimal(units: i64) -> Decimal {
    Decimal::new(units, SCALE).normalized()
}

/// OrdType (40), none for take-profit types, which FIX lacks. A stop limit is `J` with a stop price.
const fn type_of(order_type: OrderType) -> Option<OrdType> {
    Some(match order_type {
        OrderType::Limit => OrdType::LIMIT,
        OrderType::Market => OrdType::MARKET,
        OrderType::MarketLimit => OrdType::MARKET_LIMIT,
        OrderType::StopLimit => OrdType::MARKET_IF_TOUCHED,
        OrderType::StopMarket => OrdType::STOP_MARKET,
        OrderType::TrailingStop => OrdType::TRAILING_STOP,
        _ => return None,
    })
}

/// TimeInForce (59); none for the default.
const fn time_of(time: TimeInForce) -> Option<TimeInForceCode> {
    Some(match time {
        TimeInForce::GoodTilDay => TimeInForceCode::GOOD_TIL_DAY,
        TimeInForce::ImmediateOrCancel => TimeInForceCode::IMMEDIATE_OR_CANCEL,
        TimeInForce::FillOrKill => TimeInForceCode::FILL_OR_KILL,
        _ => return None,
    })
}

const fn trigger_of(trigger: Trigger) -> TriggerCode {
    match trigger {
        Trigger::MarkPrice => TriggerCode::MARK,
        Trigger::LastPrice => TriggerCode::LAST,
        _ => TriggerCode::INDEX,
    }
}

/// ExecInst (18): `6` post only, `6A` post only or reject, `E` reduce only.
const fn instructions(terms: &Terms) -> Option<&'static str> {
    Some(match (terms.post_only, terms.reject_post_only, terms.reduce_only) {
        (false, _, false) => return None,
        (false, _, true) => "E",
        (true, false, false) => "6",
        (true, false, true) => "6 E",
        (true, true, false) => "6A",
        (true, true, true) => "6A E",
    })
}
