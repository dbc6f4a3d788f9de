//! Reconciliation of requests without an answer: queries until the venue's clock is past their deadline.

use tickpath_deribit::codes::TimeInForce;
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{GetOrderState, GetOrderStateByLabel, Order, OrderPrice};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_types::{Nanos, Side};

use crate::link::{Clock, Link};
use crate::order::{Change, NewOrder, currency_of, has_limit};
use crate::shell::{Failure, Reply, Shell};
use crate::trade::read;

/// Tolerance in milliseconds when matching orders to this request by time: for an unknown difference of the
/// venue's clock, and for rounding and drift of a clock that replies have shown.
const CLOCKS_APART_MS: u64 = 60_000;
const CLOCK_ERROR_MS: u64 = 1_000;
/// Margin in milliseconds after a deadline, by the venue's clock, until rejection is certain.
const DEADLINE_MARGIN_MS: u64 = 1_000;
/// Number of queries with the short interval, since an unanswered request may still be in flight. Longer
/// intervals follow until the venue would reject it.
pub(crate) const SETTLE_ASKS: u32 = 5;
pub(crate) const SETTLE_INTERVAL: Nanos = Nanos::from_millis(200);
const SETTLE_INTERVAL_LONG: Nanos = Nanos::from_millis(500);
/// Longest duration of queries after the request, if the venue's clock does not reach the deadline.
pub(crate) const SETTLE_MORE: Nanos = Nanos::from_secs(10);
/// Number of these queries that may time out.
const LATE_MAX: u32 = 2;

/// The send time and the deadline of a request by the venue's clock, in milliseconds since 1970; `None` if
/// that clock is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    pub(crate) asked_ms: Option<u64>,
    pub(crate) valid_until: Option<u64>,
    /// End of the queries by this program's clock, since the venue's may stop.
    pub(crate) end: Option<Nanos>,
}

impl Deadline {
    /// Whether the venue is certain to reject the request from now on.
    fn is_over(self, link: &Link) -> bool {
        let over_ms = self.valid_until.map(|until| until.saturating_add(DEADLINE_MARGIN_MS));
        over_ms.zip(link.venue_ms()).is_some_and(|(over, venue)| venue > over)
    }

    /// Whether to stop the queries without certainty.
    fn is_ended(self, link: &Link, asks: u32) -> bool {
        match self.end {
            Some(end) => link.clock().now() > end,
            None => asks > SETTLE_ASKS,
        }
    }
}

/// An order as it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'o> {
    pub(crate) side: Side,
    pub(crate) order: &'o NewOrder,
    /// True if the shell created its label, which is unique.
    pub(crate) has_own_label: bool,
}

/// The outcome of a request, judged by the order at the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It was executed.
    Done,
    /// It was not executed, and cannot be any more.
    Never,
    /// A later change differs from the request: the venue may have adjusted it, or another client made it.
    Perhaps,
    /// No sign of an execution so far.
    NotYet,
}

/// The outcome of a change or a cancel without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Done,
    NotDone,
    /// Not executed so far; the venue may still accept it.
    Unknown,
}

impl After {
    pub(crate) fn failure(self, failure: &Failure, order: &str) -> Failure {
        let text = format!("{failure}; {}", crate::print::result(Method::Cancel, order));
        if self == After::NotDone { Failure::NotDone(text) } else { Failure::Unknown(text) }
    }
}

impl Shell {
    /// Queries an unanswered order by its label, repeatedly because it may still be in flight.
    pub(crate) fn find_by_label(
        &mut self,
        sent: Sent<'_>,
        deadline: Deadline,
        failure: Failure,
    ) -> Result<Reply, Failure> {
        // Several orders may share a user's label: those already answered are other orders.
        let answered = std::mem::take(&mut self.entered);
        let since_ms = match deadline.asked_ms {
            Some(asked) => asked.saturating_sub(CLOCK_ERROR_MS),
            None => Clock::unix_ms().saturating_sub(CLOCKS_APART_MS),
        };
        let look = |value: &Value<'_>| {
            let Ok(found) = value.parse::<Order<'_>>() else { return (Look::Perhaps, 0) };
            let is_other = found.creation_timestamp < since_ms
                || answered.iter().any(|id| *found.order_id.to_cow() == **id);
            let look = match () {
                () if sent.has_own_label => Look::Done,
                () if is_other => Look::Never,
                () if is_as_sent(sent.side, sent.order, &found) => Look::Done,
                () => Look::Perhaps,
            };
            (look, found.creation_timestamp)
        };
        let result = self.ask_by_label(sent.order, deadline, &look, &failure);
        self.entered = answered;
        result
    }

    fn ask_by_label(
        &mut self,
        order: &NewOrder,
        deadline: Deadline,
        look: &impl Fn(&Value<'_>) -> (Look, u64),
        failure: &Failure,
    ) -> Result<Reply, Failure> {
        let label = order.label.as_deref().unwrap_or_default();
        let currency = Text::new(currency_of(&order.instrument));
        let params = GetOrderStateByLabel { currency, label: Some(Text::new(label)) };
        let unknown = |what: &str| {
            Failure::Unknown(format!(
                "{failure}; the venue has {what}: look at orders before it is sent again"
            ))
        };
        let (mut asks, mut late) = (0, 0);
        loop {
            // Read before the query: the answer then covers all that the venue accepted until the deadline.
            let (is_over, is_ended) = {
                let link = self.link();
                (deadline.is_over(&link), deadline.is_ended(&link, asks))
            };
            let json = match self.ask(Method::GetOrderStateByLabel, &params) {
                Ok(reply) => reply.json,
                Err(Failure::Interrupted) => return Err(unanswered(failure)),
                Err(Failure::Late(_)) if late < LATE_MAX => {
                    late += 1;
                    continue;
                }
                Err(other) => {
                    return Err(Failure::Unknown(format!(
                        "{failure}, and asking by its label {label} failed ({other}): look at orders before it is sent again"
                    )));
                }
            };
            let orders: List<'_, Value<'_>> = read(&json)?;
            let is = |wanted: Look| {
                orders.iter().map_while(Result::ok).filter(move |value| look(value).0 == wanted)
            };
            if let Some(order) = is(Look::Done).max_by_key(|value| look(value).1) {
                let json = format!("{{\"order\":{},\"trades\":[]}}", order.text());
                return Ok(Reply { json, ..Reply::default() });
            }
            if is_over {
                return Err(match is(Look::Perhaps).next() {
                    // The venue adjusts orders: a price beyond the band, an amount above the position.
                    Some(_) => {
                        unknown(&format!("a new order with its label {label} that is not as it was sent"))
                    }
                    None => Failure::NotDone(format!(
                        "{failure}; the venue has no order with its label {label} and takes none any more: it was not entered"
                    )),
                });
            }
            if is_ended {
                return Err(unknown(&format!("no order with its label {label} so far")));
            }
            self.pump(settle_pause(asks), |_| false).map_err(|_| unanswered(failure))?;
            asks += 1;
        }
    }

    /// Queries an order whose change or cancel got no answer likewise; returns its state and the outcome.
    pub(crate) fn state_after(
        &mut self,
        failure: &Failure,
        order_id: &str,
        deadline: Deadline,
        look: impl Fn(&Order<'_>) -> Look,
    ) -> Result<(String, After), Failure> {
        let id = Text::new(order_id);
        let (mut asks, mut late) = (0, 0);
        loop {
            let (is_over, is_ended) = {
                let link = self.link();
                (deadline.is_over(&link), deadline.is_ended(&link, asks))
            };
            match self.ask(Method::GetOrderState, &GetOrderState { order_id: id }) {
                Ok(reply) => {
                    let order: Order<'_> = read(&reply.json)?;
                    let after = match look(&order) {
                        Look::Done => Some(After::Done),
                        Look::Never => Some(After::NotDone),
                        Look::Perhaps if is_over || order.order_state.is_terminal() => Some(After::Unknown),
                        Look::NotYet if is_over => Some(After::NotDone),
                        Look::Perhaps | Look::NotYet => is_ended.then_some(After::Unknown),
                    };
                    if let Some(after) = after {
                        return Ok((reply.json, after));
                    }
                }
                Err(Failure::Interrupted) => return Err(unanswered(failure)),
                Err(Failure::Late(_)) if late < LATE_MAX => {
                    late += 1;
                    continue;
                }
                Err(other) => {
                    return Err(Failure::Unknown(format!(
                        "{failure}, and asking for the order failed ({other})"
                    )));
                }
            }
            self.pump(settle_pause(asks), |_| false).map_err(|_| unanswered(failure))?;
            asks += 1;
        }
    }
}

/// The pause after a number of queries.
fn settle_pause(asks: u32) -> Nanos {
    if asks < SETTLE_ASKS { SETTLE_INTERVAL } else { SETTLE_INTERVAL_LONG }
}

/// Judges a change by the order at the venue.
pub(crate) fn of_change(change: &Change, deadline: Deadline, order: &Order<'_>) -> Look {
    // An earlier change may have had the same target; if the times are close, the outcome is uncertain.
    let is_after = |at: u64| order.last_update_timestamp >= at;
    let is_since = deadline.asked_ms.is_none_or(is_after);
    let is_about = deadline.asked_ms.is_some_and(|asked| is_after(asked.saturating_sub(CLOCK_ERROR_MS)));
    let is_over = order.order_state.is_terminal();
    match (is_changed(change, order), order.replaced && is_since) {
        // The end of an order is also an update, so its time does not prove the change.
        (true, true) if is_over && order.filled().is_zero() => Look::Perhaps,
        (true, true) => Look::Done,
        // An ended order cannot be changed.
        (false, _) if is_over => Look::Never,
        // The venue adjusts prices beyond the band or taking liquidity, and amounts above the position.
        (false, true) => Look::Perhaps,
        (true, false) if order.replaced && is_about => Look::Perhaps,
        (_, false) => Look::NotYet,
    }
}

/// Whether an order matches a change.
fn is_changed(change: &Change, order: &Order<'_>) -> bool {
    let is =
        |wanted: Option<Decimal>, found: Option<Decimal>| wanted.is_none_or(|wanted| found == Some(wanted));
    is(change.amount, Some(order.amount))
        && is(change.contracts, order.contracts.and_then(|contracts| contracts.decimal().ok()))
        && is(change.price, order.price.and_then(OrderPrice::limit))
        && is(change.trigger_price, order.trigger_price)
        && is(change.trigger_offset, order.trigger_offset)
        && is(change.display_amount, order.display_amount.or(order.max_show))
        && (!change.post_only || order.post_only)
        && (!change.reduce_only || order.reduce_only)
        && (!change.mmp || order.mmp)
        && (!change.reject_post_only || order.reject_post_only == Some(true))
}

/// The failure for Ctrl-C during the reconciliation.
fn unanswered(failure: &Failure) -> Failure {
    match failure {
        Failure::Late(method) | Failure::Lost(method) => Failure::Unanswered(method),
        _ => Failure::Unanswered("the request"),
    }
}

/// Whether an order at the venue matches one that was sent.
fn is_as_sent(side: Side, sent: &NewOrder, found: &Order<'_>) -> bool {
    let price = sent.price.filter(|_| has_limit(sent.order_type)).map(OrderPrice::Limit);
    // The rest of a market order becomes a limit order; a triggered order also changes its type.
    let is_type = found.triggered == Some(true)
        || found.original_order_type.unwrap_or(found.order_type) == sent.order_type;
    let is_same = |sent: Option<Decimal>, found: Option<Decimal>| {
        sent.zip(found).is_none_or(|(sent, found)| sent == found)
    };
    let is_trigger = is_same(sent.trigger_price, found.trigger_price)
        && sent.trigger.zip(found.trigger).is_none_or(|(sent, found)| sent == found);
    // Types without a limit state no time in force; each venue has its own default.
    let time = sent.time_in_force.or(has_limit(sent.order_type).then_some(TimeInForce::GoodTilCancelled));
    let is_time = time.zip(found.time_in_force).is_none_or(|(sent, found)| sent == found);
    let contracts = found.contracts.and_then(|contracts| contracts.decimal().ok());
    is_type
        && is_trigger
        && is_time
        && is_same(sent.contracts, contracts)
        && sent.post_only == found.post_only
        && sent.reduce_only == found.reduce_only
        && *found.instrument_name.to_cow() == *sent.instrument
        && found.direction == side.into()
        && sent.amount.is_none_or(|amount| amount == found.amount)
        && price.is_none_or(|price| found.price == Some(price))
}
