//! OUCH messages and reasons as text: for `show`, and for refusals.

use std::fmt::Write;

use tickpath_nasdaq::ouch50::OrderAnswer;
use tickpath_types::{
    CancelReason, EnterOrder, InstrumentId, InstrumentTable, Nanos, OrderEventKind, OrderRequest,
    RejectReason, TimeInForce,
};

/// Formats a request as JSON with the names of the specification.
pub(super) fn request(request: &OrderRequest, instruments: &InstrumentTable) -> String {
    let mut text = Members::new();
    match request {
        OrderRequest::Enter(order) => {
            text.word("ouch", "Enter Order");
            text.order(order, instruments);
        }
        OrderRequest::Replace(order) => {
            text.word("ouch", "Replace Order");
            text.number("orig_user_ref_num", order.orig_user_ref.0.into());
            text.number("user_ref_num", order.user_ref.0.into());
            text.number("quantity", order.qty.0);
            text.word("price", &order.price.to_string());
            text.terms(order.time_in_force, order.post_only, order.min_qty.0);
        }
        OrderRequest::Cancel(order) => {
            text.word("ouch", "Cancel Order");
            text.number("user_ref_num", order.user_ref.0.into());
            text.number("quantity", order.qty.0);
        }
        OrderRequest::MassCancel(order) => {
            text.word("ouch", "Mass Cancel");
            text.number("user_ref_num", order.user_ref.0.into());
            text.symbol(order.instrument, instruments);
        }
        other => text.word("ouch", &format!("{other:?}")),
    }
    text.finish()
}

/// Formats the account query, which asks for the next order number.
pub(super) fn query() -> String {
    let mut text = Members::new();
    text.word("ouch", "Account Query");
    text.finish()
}

/// Formats the answer to the account query.
pub(super) fn query_answer(at: Nanos, next: u32) -> String {
    let mut text = Members::new();
    text.word("ouch", "Query Response");
    text.time(at);
    text.number("next_user_ref_num", next.into());
    text.finish()
}

/// Formats an answer of the venue in the same way.
pub(super) fn answer(answer: &OrderAnswer, instruments: &InstrumentTable) -> String {
    let mut text = Members::new();
    match &answer.kind {
        OrderEventKind::Accepted { order, order_id, state } => {
            text.word("ouch", "Order Accepted");
            text.time(answer.ts);
            text.order(order, instruments);
            text.number("order_reference_number", order_id.0);
            text.word("order_state", &format!("{state:?}"));
        }
        OrderEventKind::Replaced { order, orig_user_ref, order_id, state } => {
            text.word("ouch", "Order Replaced");
            text.time(answer.ts);
            text.number("orig_user_ref_num", orig_user_ref.0.into());
            text.order(order, instruments);
            text.number("order_reference_number", order_id.0);
            text.word("order_state", &format!("{state:?}"));
        }
        OrderEventKind::Canceled { user_ref, decrement, reason } => {
            text.word("ouch", "Order Canceled");
            text.time(answer.ts);
            text.number("user_ref_num", user_ref.0.into());
            text.number("quantity", decrement.0);
            text.word("reason", cancel_reason(*reason));
        }
        OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
            text.word("ouch", "Order Executed");
            text.time(answer.ts);
            text.number("user_ref_num", user_ref.0.into());
            text.number("quantity", qty.0);
            text.word("price", &price.to_string());
            text.word("liquidity", &format!("{liquidity:?}"));
            text.number("match_number", match_id.0);
        }
        OrderEventKind::Rejected { user_ref, reason, .. } => {
            text.word("ouch", "Rejected");
            text.time(answer.ts);
            text.number("user_ref_num", user_ref.0.into());
            text.word("reason", reject_reason(*reason));
        }
        OrderEventKind::MassCanceled(request) => {
            text.word("ouch", "Mass Cancel Response");
            text.time(answer.ts);
            text.number("user_ref_num", request.user_ref.0.into());
            text.symbol(request.instrument, instruments);
        }
        OrderEventKind::Broken { user_ref, match_id, .. } => {
            text.word("ouch", "Broken Trade");
            text.time(answer.ts);
            text.number("user_ref_num", user_ref.0.into());
            text.number("match_number", match_id.0);
        }
        other => {
            text.word("ouch", &format!("{other:?}"));
            text.time(answer.ts);
        }
    }
    text.finish()
}

/// Writes the members of an object.
struct Members(String);

impl Members {
    fn new() -> Members {
        Members("{".to_owned())
    }

    fn name(&mut self, name: &str) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}\"{name}\":");
    }

    fn word(&mut self, name: &str, value: &str) {
        self.name(name);
        self.0.push_str(&serde_json::to_string(value).expect("text is JSON"));
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        let _ = write!(self.0, "{value}");
    }

    fn time(&mut self, at: Nanos) {
        let seconds = at.0 / 1_000_000_000;
        let nanos = at.0 % 1_000_000_000;
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        self.word("time", &format!("{hours:02}:{minutes:02}:{seconds:02}.{nanos:09}"));
    }

    fn symbol(&mut self, instrument: InstrumentId, instruments: &InstrumentTable) {
        let symbol = instruments.symbol(instrument);
        self.word("symbol", symbol.as_ref().map_or("", |symbol| symbol.as_str()));
    }

    fn order(&mut self, order: &EnterOrder, instruments: &InstrumentTable) {
        self.number("user_ref_num", order.user_ref.0.into());
        self.word("side", &format!("{:?}", order.side));
        self.number("quantity", order.qty.0);
        self.symbol(order.instrument, instruments);
        self.word("price", &order.price.to_string());
        self.terms(order.time_in_force, order.post_only, order.min_qty.0);
        let text = String::from_utf8_lossy(&order.client_order_id.0);
        if !text.trim_end().is_empty() {
            self.word("cl_ord_id", text.trim_end());
        }
    }

    fn terms(&mut self, time_in_force: TimeInForce, is_post_only: bool, min_qty: u64) {
        self.word("time_in_force", &format!("{time_in_force:?}"));
        if is_post_only {
            self.word("post_only", "P");
        }
        if min_qty > 0 {
            self.number("min_qty", min_qty);
        }
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Describes why an order was reduced.
pub(super) fn cancel_reason(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::User => "cancelled by its owner",
        CancelReason::ImmediateOrCancel => "no more could be executed at once",
        CancelReason::PostOnly => "it would have taken liquidity",
        CancelReason::System => "cancelled by the venue after a disconnect, or at its shutdown",
        CancelReason::Supervisory => "cancelled by the venue's operator",
        CancelReason::Expired => "expired",
        CancelReason::EndOfDay => "end of the trading day",
        CancelReason::Halted => "trading is halted",
        CancelReason::SelfTrade => "it would have traded with its owner",
        _ => "another reason",
    }
}

/// Describes why a request was refused, with the remedy.
pub(super) fn reject_reason(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::UnknownInstrument => "the venue has no such instrument: see instruments",
        RejectReason::PriceNotOnTick => "the price is not a multiple of the tick size: see instruments",
        RejectReason::PriceOutsideCollar => "the price is outside the instrument's collar",
        RejectReason::InvalidQty => {
            "the amount is not a multiple of the lot size, or above the instrument's maximum: see instruments"
        }
        RejectReason::InvalidMinQty => "the minimum quantity is above the amount, or the order may rest",
        RejectReason::TimeInForceNotOffered => "this time in force is not offered",
        RejectReason::DisplayNotOffered => "this display is not offered",
        RejectReason::CrossNotOffered => "this cross is not offered",
        RejectReason::InvalidSide => "neither buy nor sell",
        RejectReason::Halted => "the instrument does not trade now: wait until it opens",
        RejectReason::UnknownOrder => "the order is no longer open: see orders",
        RejectReason::BookFull => "the venue's maximum of open orders is reached: cancel some, or wait",
        RejectReason::NotAuthorised => "the user may not trade here",
        RejectReason::OptionNotOffered => "the venue does not offer this",
        RejectReason::RateAboveLimit => "too many messages a second: wait, and enter it again",
        RejectReason::OpenOrdersAboveLimit => "the user's maximum of open orders is reached: cancel one",
        RejectReason::QtyAboveLimit => "the amount is above the user's limit at the venue",
        RejectReason::NotionalAboveLimit => "the value is above the user's limit at the venue",
        RejectReason::InstrumentNotAllowed => "the user may not trade this instrument",
        RejectReason::Killed => "the venue stopped the user's orders: ask its operator",
        RejectReason::OrderEntryDisabled => "the user's order entry is disabled",
        RejectReason::InvalidDisplayQty => {
            "display_amount is not a multiple of the lot size, or above the amount"
        }
        RejectReason::InvalidStopPrice => "the stop price is not valid for this instrument",
        RejectReason::InvalidExpireTime => "the expiry is not in the future",
        RejectReason::JournalFull => "the venue has no room for its log: it takes cancels alone",
        RejectReason::UserRefsExhausted => {
            "the user has used all order numbers of the day: trade as another user, or wait for the next day"
        }
        _ => "the venue gives no reason that is known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_types::{CancelOrder, Qty, UserRefNum};

    #[test]
    fn requests_and_answers_are_json_under_their_names() {
        let table = InstrumentTable::new(&[]);
        let cancel = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(7), qty: Qty(0) });
        assert_eq!(request(&cancel, &table), r#"{"ouch":"Cancel Order","user_ref_num":7,"quantity":0}"#);
        assert_eq!(
            query_answer(Nanos(34_200_000_000_123), 9),
            r#"{"ouch":"Query Response","time":"09:30:00.000000123","next_user_ref_num":9}"#
        );
        assert_eq!(query(), r#"{"ouch":"Account Query"}"#);
    }
}
