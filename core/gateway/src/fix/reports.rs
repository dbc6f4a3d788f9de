//! Messages of the venue over FIX: answers to requests, and execution reports.

use tickpath_deribit::codes::{CancelReason, OrderState, OrderType, TimeInForce};
use tickpath_deribit::envelope::ErrorBody;
use tickpath_deribit::error_code::ErrorCode as VenueError;
use tickpath_deribit::text::Text as VenueText;
use tickpath_fix::deribit::{
    ExecType, ExecutionReport, OrdStatus, OrdType, OrderCancelReject, OrderMassCancelReport, QtyType,
    SideCode, TimeInForceCode, to_units,
};
use tickpath_fix::session::{BusinessReject, Reject};
use tickpath_fix::{Body, Decimal, FieldError, Message, MsgType};
use tickpath_gateway_protocol::AckType;
use tickpath_types::{Nanos, Side};

use super::entry::is_about;
use crate::Core;
use crate::account::{Pending, Purpose};
use crate::batch::{Batch, Held};
use crate::book::SCALE;
use crate::news::{GroupText, LabelText, NewsFault, OrderNews, SymbolText};
use crate::orders::{ExternalId, Order, Terms};
use crate::out::{Cause, EventSink};

/// Text (58) of an unsolicited report.
const NOTIFICATION: &str = "notification";
/// CxlRejReason (102): too late, unknown order.
const TOO_LATE: u64 = 0;
const UNKNOWN_ORDER: u64 = 1;

impl Core {
    /// Handles a message of an account's FIX session.
    pub fn handle_fix(
        &mut self,
        stream: usize,
        received: Nanos,
        message: &Message<'_>,
        door: &mut impl EventSink,
    ) {
        self.counters.messages += 1;
        let Some(account) = self.streams[stream].account else { return };
        let sent = message.find(tickpath_fix::tag::SENDING_TIME);
        self.said_utc_ns = sent.and_then(|field| field.read::<Nanos>().ok()).map_or(0, |at| at.0);
        let mut batch = Batch::new(door, std::mem::replace(&mut self.held, Held::none()));
        let taken = self.take_fix(account, received, message, &mut batch);
        self.held = batch.finish();
        if taken.is_err() {
            // Its request is handled when it times out.
            self.counters.faults += 1;
        }
    }

    fn take_fix(
        &mut self,
        account: u16,
        received: Nanos,
        message: &Message<'_>,
        door: &mut impl EventSink,
    ) -> Result<(), FieldError> {
        match message.msg_type() {
            MsgType::EXECUTION_REPORT => {
                self.take_report(account, &ExecutionReport::decode(message)?, received, door);
            }
            MsgType::ORDER_CANCEL_REJECT => {
                self.take_cancel_reject(account, &OrderCancelReject::decode(message)?, received, door);
            }
            MsgType::ORDER_MASS_CANCEL_REPORT => {
                let report = OrderMassCancelReport::decode(message)?;
                self.take_mass_cancel(account, report.response.is_none_or(|response| response == 0));
            }
            MsgType::REJECT => {
                let reject = Reject::decode(message)?;
                self.take_reject(
                    account,
                    reject.ref_seq_num,
                    reject.text.unwrap_or_default(),
                    received,
                    door,
                );
            }
            MsgType::BUSINESS_MESSAGE_REJECT => {
                let reject = BusinessReject::decode(message)?;
                let sequence = reject.ref_seq_num.unwrap_or(0);
                self.take_reject(account, sequence, reject.text.unwrap_or_default(), received, door);
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles an execution report: the answer to a request, or an unsolicited update.
    fn take_report(
        &mut self,
        account: u16,
        report: &ExecutionReport<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        // External orders are reported by the WebSocket.
        let Some(slot) = self.reported_order(account, report) else { return };
        let is_rejected = report.ord_status == OrdStatus::REJECTED && report.order_id.is_none();
        if is_rejected {
            return self.take_rejection(account, slot, report, received, door);
        }
        let is_notification = report.text == Some(NOTIFICATION);
        let is_cancelled = report.ord_status == OrdStatus::CANCELLED;
        let is_brief = report.side.is_none() || report.order_qty.is_none();
        let is_entry = |purpose: &Purpose| matches!(purpose, Purpose::Create { .. } | Purpose::Modify { .. });
        let is_cancel = |purpose: &Purpose| matches!(purpose, Purpose::Cancel { .. });
        let answered = match (is_notification, is_brief) {
            (true, _) => None,
            (false, true) => self.take_entry(account, slot, is_cancel),
            (false, false) => self
                .take_entry(account, slot, is_entry)
                .or_else(|| if is_cancelled { self.take_entry(account, slot, is_cancel) } else { None }),
        };
        if let Some(id) = report.order_id.or(report.cl_ord_id).and_then(ExternalId::new) {
            self.orders.set_external_id(slot, id);
        }
        if let Some(pending) = &answered {
            let request = match pending.purpose {
                Purpose::Create { .. } => AckType::CREATE,
                Purpose::Modify { .. } => AckType::MODIFY,
                _ => AckType::CANCEL,
            };
            self.answer(slot, pending, request, Ok(()), received, door);
        }
        let Some(order) = self.orders.get(slot) else { return };
        // The WebSocket has the reason of an unrequested cancellation, and a brief report has no quantities.
        let is_unexplained = is_notification && is_cancelled && !order.is_cancel_wanted;
        if is_brief || is_unexplained || is_triggered_by_price(report) {
            return;
        }
        match self.news_of(order, report) {
            Ok(news) => {
                self.apply_order(account, &news, Cause::venue(received, news.updated_ms), door);
            }
            Err(_) => {
                self.counters.faults += 1;
                self.doubt(slot, received, door);
            }
        }
    }

    /// Handles the rejection of an order or of a change.
    fn take_rejection(
        &mut self,
        account: u16,
        slot: u32,
        report: &ExecutionReport<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let is_create = |purpose: &Purpose| matches!(purpose, Purpose::Create { .. });
        let is_change = |purpose: &Purpose| matches!(purpose, Purpose::Modify { .. });
        let pending =
            self.take_entry(account, slot, is_create).or_else(|| self.take_entry(account, slot, is_change));
        let Some(pending) = pending else { return };
        let error = refusal(report.text.unwrap_or_default(), None);
        self.refused_by_fix(account, slot, &pending, &error, received, door);
    }

    fn take_cancel_reject(
        &mut self,
        account: u16,
        reject: &OrderCancelReject<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let by_id = |id: Option<&str>| id.and_then(|id| self.orders.by_external_id(account, id));
        let by_label = |text: Option<&str>| text.and_then(|text| self.find_by_label(account, text));
        let slot = by_id(reject.orig_cl_ord_id)
            .or_else(|| by_label(reject.cl_ord_id))
            .or_else(|| by_label(reject.label));
        let Some(slot) = slot else { return };
        let is_change =
            |purpose: &Purpose| matches!(purpose, Purpose::Modify { .. } | Purpose::Cancel { .. });
        let Some(pending) = self.take_entry(account, slot, is_change) else { return };
        let otherwise = match reject.cxl_rej_reason {
            Some(TOO_LATE) => Some(VenueError::NotOpenOrder),
            Some(UNKNOWN_ORDER) => Some(VenueError::OrderNotFound),
            _ => None,
        };
        let error = refusal(reject.text.unwrap_or_default(), otherwise);
        self.refused_by_fix(account, slot, &pending, &error, received, door);
    }

    fn take_mass_cancel(&mut self, account: u16, is_refused: bool) {
        let known = &mut self.accounts[usize::from(account)];
        let is_all = |pending: &Pending| pending.purpose == Purpose::CancelAll;
        let answered = known.entry.as_mut().and_then(|entry| entry.take_first(is_all));
        if answered.is_some() && is_refused {
            self.want_cancel_all_again(account);
        }
    }

    /// Handles a message of the gateway that the venue rejected as such.
    fn take_reject(
        &mut self,
        account: u16,
        sequence: u64,
        text: &str,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let entry = self.accounts[usize::from(account)].entry.as_mut();
        let Some(pending) = entry.and_then(|entry| entry.take(sequence as i64)) else { return };
        match pending.purpose.changes() {
            None if pending.purpose == Purpose::CancelAll => self.want_cancel_all_again(account),
            None => {}
            Some(_) if self.is_forgotten(&pending) => {}
            Some(slot) => {
                self.refused_by_fix(account, slot, &pending, &refusal(text, None), received, door);
            }
        }
    }

    fn refused_by_fix(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        match pending.purpose {
            Purpose::Create { .. } => self.refused_create(slot, pending, error, received, door),
            Purpose::Cancel { .. } => self.refused_cancel(account, slot, pending, error, received, door),
            _ => self.refused_change(slot, pending, AckType::MODIFY, error, received, door),
        }
    }

    /// Removes and returns the oldest request of a kind in flight for an order.
    fn take_entry(&mut self, account: u16, slot: u32, is_kind: fn(&Purpose) -> bool) -> Option<Pending> {
        let gateway_id = self.orders.get(slot)?.gateway_id;
        let entry = self.accounts[usize::from(account)].entry.as_mut()?;
        entry.take_first(is_about(slot, gateway_id, is_kind))
    }

    /// Finds the order of a report: by its label, by the id that the gateway assigned, by the venue's id.
    fn reported_order(&self, account: u16, report: &ExecutionReport<'_>) -> Option<u32> {
        let by_label = |text: Option<&str>| text.and_then(|text| self.find_by_label(account, text));
        let by_id = |id: Option<&str>| id.and_then(|id| self.orders.by_external_id(account, id));
        by_label(report.label)
            .or_else(|| by_label(report.orig_cl_ord_id))
            .or_else(|| by_id(report.order_id))
            .or_else(|| by_id(report.cl_ord_id))
    }

    /// Converts a full report to the gateway's units. Fields missing in FIX keep their known values.
    fn news_of(&self, order: &Order, report: &ExecutionReport<'_>) -> Result<OrderNews, NewsFault> {
        let size = match report.contract_multiplier {
            Some(size) => size,
            None => {
                let instrument = self.instruments.get(order.symbol).ok_or(NewsFault::Text)?;
                Decimal::new(instrument.reference.contract_size.0, SCALE)
            }
        };
        let quantity = |qty: Option<Decimal>| match qty {
            Some(qty) => to_units(qty, report.qty_type.or(Some(QtyType::CONTRACTS)), size)
                .and_then(|units| units.at_scale(SCALE))
                .ok_or(NewsFault::Number),
            None => Ok(0),
        };
        let number =
            |number: Option<Decimal>| number.map_or(Ok(0), |it| it.at_scale(SCALE).ok_or(NewsFault::Number));
        let time_ms = report.transact_time.ok_or(NewsFault::Code)?.0 / 1_000_000;
        let has = |letter| report.exec_inst.is_some_and(|text| text.contains(letter));
        let external_id = report.order_id.or(report.cl_ord_id).and_then(ExternalId::new);
        Ok(OrderNews {
            label: report.label.and_then(LabelText::new).unwrap_or_default(),
            external_id: external_id.ok_or(NewsFault::Text)?,
            trigger_id: ExternalId::EMPTY,
            symbol: report.symbol.and_then(SymbolText::new).unwrap_or(order.symbol_name),
            terms: Terms {
                side: side_of(report.side)?,
                order_type: type_of(report.ord_type)?,
                time_in_force: time_of(report.time_in_force)?,
                price: number(report.price)?,
                quantity: quantity(report.order_qty)?,
                stop_price: order.terms.stop_price,
                shown: quantity(report.display_qty)?,
                trigger: None,
                post_only: has('6'),
                reject_post_only: has('6') && has('A'),
                reduce_only: has('E'),
                // Reports do not contain it.
                mmp: order.terms.mmp,
            },
            state: state_of(report)?,
            filled: quantity(report.cum_qty)?,
            average_price: mean(report.avg_px)?,
            created_ms: if order.created_ms == 0 { time_ms } else { order.created_ms },
            updated_ms: time_ms,
            cancel_reason: is_over_by_time(report).then_some(CancelReason::Settlement),
            // Reports are accepted only for orders of this instance.
            is_replaced: false,
            is_by_fix: true,
            quote_group: GroupText::EMPTY,
        })
    }
}

/// Whether a report concerns an order that has or had a trigger. Only the WebSocket tells the trigger order
/// and the resulting order apart.
fn is_triggered_by_price(report: &ExecutionReport<'_>) -> bool {
    report.stop_px.is_some()
        || report.trigger.is_some()
        || report.peg_offset_value.is_some()
        || report.exec_type == Some(ExecType::STOPPED)
}

fn side_of(side: Option<SideCode>) -> Result<Side, NewsFault> {
    match side {
        Some(SideCode::BUY) => Ok(Side::Buy),
        Some(SideCode::SELL) => Ok(Side::Sell),
        _ => Err(NewsFault::Code),
    }
}

fn type_of(code: Option<OrdType>) -> Result<OrderType, NewsFault> {
    match code {
        None | Some(OrdType::LIMIT) => Ok(OrderType::Limit),
        Some(OrdType::MARKET) => Ok(OrderType::Market),
        Some(OrdType::MARKET_LIMIT) => Ok(OrderType::MarketLimit),
        Some(_) => Err(NewsFault::Code),
    }
}

fn time_of(code: Option<TimeInForceCode>) -> Result<TimeInForce, NewsFault> {
    match code {
        None | Some(TimeInForceCode::GOOD_TIL_CANCEL) => Ok(TimeInForce::GoodTilCancelled),
        Some(TimeInForceCode::GOOD_TIL_DAY) => Ok(TimeInForce::GoodTilDay),
        Some(TimeInForceCode::IMMEDIATE_OR_CANCEL) => Ok(TimeInForce::ImmediateOrCancel),
        Some(TimeInForceCode::FILL_OR_KILL) => Ok(TimeInForce::FillOrKill),
        Some(_) => Err(NewsFault::Code),
    }
}

fn state_of(report: &ExecutionReport<'_>) -> Result<OrderState, NewsFault> {
    match report.ord_status {
        OrdStatus::NEW | OrdStatus::PARTIALLY_FILLED | OrdStatus::PENDING_CANCEL => Ok(OrderState::Open),
        OrdStatus::FILLED => Ok(OrderState::Filled),
        OrdStatus::CANCELLED => Ok(OrderState::Cancelled),
        OrdStatus::REJECTED => Ok(OrderState::Rejected),
        _ => Err(NewsFault::Code),
    }
}

/// Whether the venue ended an order because the order or its instrument expired.
fn is_over_by_time(report: &ExecutionReport<'_>) -> bool {
    matches!(report.exec_type, Some(ExecType::DONE_FOR_DAY | ExecType::EXPIRED))
}

/// Converts a mean price, truncated to units of 10^-8.
fn mean(price: Option<Decimal>) -> Result<i64, NewsFault> {
    let Some(price) = price else { return Ok(0) };
    match price.scale().checked_sub(SCALE) {
        None | Some(0) => price.at_scale(SCALE).ok_or(NewsFault::Number),
        Some(finer) => Ok(price.mantissa() / 10_i64.pow(finer.into())),
    }
}

/// Converts a rejection to its JSON-RPC form: the venue's text starts with the name of its error. `otherwise`
/// is used if the text names none.
fn refusal(text: &str, otherwise: Option<VenueError>) -> ErrorBody<'_> {
    let is_named = |error: &&VenueError| {
        let rest = text.strip_prefix(error.message());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    };
    let named = VenueError::ALL.iter().filter(is_named).max_by_key(|error| error.message().len()).copied();
    let code = named.or(otherwise).map_or(0, VenueError::code);
    ErrorBody { code, message: VenueText::new(text), data: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_refusal_name_an_error_of_the_venue() {
        let code = |text| refusal(text, None).error_code();
        assert_eq!(code("not_enough_funds"), Some(VenueError::NotEnoughFunds));
        assert_eq!(code("price_too_high 43666.4288"), Some(VenueError::PriceTooHigh));
        assert_eq!(code("timed_out: ask for the state of the order"), Some(VenueError::TimedOut));
        assert_eq!((code("not_enough_fun"), code("not_enough_fundsx"), code("")), (None, None, None));
        let otherwise = refusal("Unknown order", Some(VenueError::OrderNotFound));
        assert_eq!(
            (otherwise.error_code(), otherwise.message.plain()),
            (Some(VenueError::OrderNotFound), Some("Unknown order"))
        );
    }

    #[test]
    fn a_mean_price_is_cut() {
        let price = |text: &str| Decimal::parse(text.as_bytes());
        assert_eq!(mean(price("60010.123456789")), Ok(6_001_012_345_678));
        assert_eq!((mean(price("0.5")), mean(None)), (Ok(50_000_000), Ok(0)));
        assert_eq!(mean(price("92233720369")), Err(NewsFault::Number));
    }
}
