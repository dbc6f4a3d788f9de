//! Order events as OUCH messages: the venue's encoder and the client's decoder.

use tickpath_types::{
    BrokenReason, CancelReason, ClientOrderId, EnterOrder, InstrumentId, Liquidity, MassCancel, Nanos,
    OrderAttributes, OrderEvent, OrderEventKind, OrderId, OrderState, Qty, RejectReason, SelfTradePrevention,
    SetOrderEntry, Symbol, TimeInForce, UserRefNum,
};

use super::codes::*;
use super::options::{Options, TagValue, encode_with_options};
use super::outbound::{self, AcceptedOrder, MassCancelResponse, Outbound};
use super::request::{OrderParameters, display_code, option_values, put, side_option, stock_of};
use super::{EncodeError, ParseError};
use crate::soupbintcp::BufferTooShort;
use crate::wire::{Alpha, LongPrice, Shares, Stock, UserRef};

/// Writes an event as its OUCH message at the start of `out` and returns the message's length, at most
/// [`MESSAGE_LEN_MAX`](super::MESSAGE_LEN_MAX).
///
/// Accepted becomes `A`, Replaced `U`, Canceled `C`, Modified `M`, Executed `E`, Rejected `J`,
/// SelfTradePrevented `D` with its strategy, Restated `R` with SecondaryOrderRef and DisplayQty, Triggered
/// `T`, Broken `B` with a blank client order id, MassCanceled `X`, OrderEntrySet `G` or `K`. Minimum
/// quantity, post-only, displayed quantity and expire time are echoed as options. Message types without
/// options in the 2023 edition omit the empty list of options that the 2025 edition appends.
///
/// # Errors
/// [`EncodeError`]: do not send the content of `out`.
#[inline]
pub fn encode_event(
    event: &OrderEvent,
    symbol_of: impl FnOnce(InstrumentId) -> Option<Symbol>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let ts = event.ts;
    match event.kind {
        OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
            let (qty, price) = (Shares::try_from(qty)?, LongPrice::try_from(price)?);
            let message = outbound::Executed::new(ts, user_ref, qty, price, liquidity, match_id);
            Ok(encode_with_options(&message, &[], out)?)
        }
        OrderEventKind::Accepted { ref order, order_id, state } => {
            let accepted = accepted_order(order, order_id, state, symbol_of)?;
            let message = outbound::Accepted::new(ts, order.user_ref, accepted);
            let options = option_values(order.min_qty, order.post_only, order.special)?;
            Ok(encode_with_options(&message, &options, out)?)
        }
        OrderEventKind::Replaced { ref order, orig_user_ref, order_id, state } => {
            let accepted = accepted_order(order, order_id, state, symbol_of)?;
            let message = outbound::Replaced::new(ts, orig_user_ref, order.user_ref, accepted);
            let options = option_values(order.min_qty, order.post_only, order.special)?;
            Ok(encode_with_options(&message, &options, out)?)
        }
        OrderEventKind::Canceled { user_ref, decrement, reason } => {
            put(&outbound::Canceled::new(ts, user_ref, Shares::try_from(decrement)?, reason), out)
        }
        OrderEventKind::Modified { user_ref, side_marking, qty } => {
            put(&outbound::Modified::new(ts, user_ref, side_marking, Shares::try_from(qty)?), out)
        }
        OrderEventKind::Rejected { user_ref, reason, client_order_id } => {
            put(&outbound::Rejected::new(ts, user_ref, reason, Alpha(client_order_id.0)), out)
        }
        ref rare => encode_other(ts, rare, symbol_of, out),
    }
}

/// Encodes the rare events; not inlined, to keep the hot path short.
#[cold]
fn encode_other(
    ts: Nanos,
    kind: &OrderEventKind,
    symbol_of: impl FnOnce(InstrumentId) -> Option<Symbol>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    match *kind {
        OrderEventKind::SelfTradePrevented { user_ref, decrement, prevented, price, liquidity, strategy } => {
            let (decrement, prevented) = (Shares::try_from(decrement)?, Shares::try_from(prevented)?);
            let (reason, price) = (CancelReasonCode::SELF_MATCH, LongPrice::try_from(price)?);
            let message =
                outbound::AiqCanceled::new(ts, user_ref, decrement, reason, prevented, price, liquidity);
            let needed = outbound::AiqCanceled::LEN + 1;
            let too_short = BufferTooShort { needed, len: out.len() };
            *out.get_mut(needed - 1).ok_or(too_short)? = AiqStrategy::from(strategy).0;
            put(&message, out)?;
            Ok(needed)
        }
        OrderEventKind::Restated { user_ref, order_id, display_qty } => {
            let message = outbound::Restated::new(ts, user_ref, RestateReason::REFRESH);
            let display_qty = Shares::try_from(display_qty)?.0.get();
            let options = [TagValue::SecondaryOrderRef(order_id.0), TagValue::DisplayQty(display_qty)];
            Ok(encode_with_options(&message, &options, out)?)
        }
        OrderEventKind::Triggered { user_ref, order_id, price } => {
            let price = LongPrice::try_from(price)?;
            put(&outbound::PriorityUpdate::new(ts, user_ref, price, Display::VISIBLE, order_id), out)
        }
        OrderEventKind::Broken { user_ref, match_id, reason } => {
            put(&outbound::BrokenTrade::new(ts, user_ref, match_id, reason, Alpha::<14>::BLANK), out)
        }
        OrderEventKind::MassCanceled(MassCancel { user_ref, instrument, side, firm }) => {
            let symbol = stock_of(instrument, symbol_of)?;
            let message = outbound::MassCancelResponse::new(ts, user_ref, firm, symbol);
            Ok(encode_with_options(&message, &side_option(side), out)?)
        }
        OrderEventKind::OrderEntrySet(SetOrderEntry { user_ref, is_enabled: true, firm }) => {
            Ok(encode_with_options(&outbound::EnableOrderEntryResponse::new(ts, user_ref, firm), &[], out)?)
        }
        OrderEventKind::OrderEntrySet(SetOrderEntry { user_ref, firm, .. }) => {
            Ok(encode_with_options(&outbound::DisableOrderEntryResponse::new(ts, user_ref, firm), &[], out)?)
        }
        _ => unreachable!("the caller writes the other kinds"),
    }
}

#[inline]
fn accepted_order(
    order: &EnterOrder,
    order_id: OrderId,
    state: OrderState,
    symbol_of: impl FnOnce(InstrumentId) -> Option<Symbol>,
) -> Result<AcceptedOrder, EncodeError> {
    let symbol = symbol_of(order.instrument).ok_or(EncodeError::UnknownInstrument(order.instrument))?;
    Ok(AcceptedOrder {
        side: order.side.into(),
        quantity: order.qty.try_into()?,
        symbol: symbol.into(),
        price: order.price.try_into()?,
        time_in_force: order.time_in_force.into(),
        display: display_code(order.attributes.display, order.special).into(),
        order_ref: order_id.into(),
        capacity: order.attributes.capacity.into(),
        intermarket_sweep: order.attributes.intermarket_sweep.into(),
        cross_type: order.attributes.cross_type.into(),
        order_state: state.into(),
        client_order_id: Alpha(order.client_order_id.0),
    })
}

/// A message from the venue, decoded for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// An event of an order.
    Order(OrderAnswer),
    /// A message without an equivalent event: a system event, the answer to a query, a price correction, a
    /// pending or rejected cancel, a restatement without a new order reference.
    Other(Outbound<'a>),
}

/// An event of one of the client's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAnswer {
    /// Time of the event at the venue, since midnight.
    pub ts: Nanos,
    /// The event; a code without an exact equivalent is replaced, see [`decode_event`].
    pub kind: OrderEventKind,
    /// False when a code in the venue's message has no exact equivalent in `kind`.
    pub is_exact: bool,
    /// The venue's code of the reject reason; `None` for events other than rejects.
    pub reject: Option<RejectCode>,
}

/// The reason why a message from the venue is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// Not an OUCH message: count it; do not trade on a venue that sends many of them.
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// The symbol is unknown to the client: give both sides the same instruments.
    #[error("an answer about the unknown symbol '{0}': give both sides the same instruments")]
    UnknownSymbol(Symbol),
    /// The side of an accepted order is neither buy nor sell.
    #[error("an accepted order with the side {side:#04x}")]
    UnknownSide {
        /// The side code.
        side: u8,
    },
}

/// Decodes a message from a venue.
///
/// A code without an equivalent becomes a fixed value, and [`OrderAnswer::is_exact`] is false: a cancel
/// reason becomes `System`, a reject reason `OptionNotOffered`, a liquidity flag `Removed`, a time in force
/// `Day`, the reason of a broken trade `Supervisory`, and the strategy of an AIQ cancel `None`.
///
/// # Errors
/// [`EventError`] states the cause.
#[inline]
pub fn decode_event(
    message: &[u8],
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<Answer<'_>, EventError> {
    let (mut reject, mut is_exact) = (None, true);
    let (ts, kind) = match Outbound::parse(message)? {
        Outbound::Executed(executed, _) => (
            executed.timestamp,
            OrderEventKind::Executed {
                user_ref: executed.user_ref.get(),
                qty: executed.quantity.get(),
                price: executed.price.get(),
                liquidity: nearest_value(
                    executed.liquidity_flag.liquidity(),
                    Liquidity::Removed,
                    &mut is_exact,
                ),
                match_id: executed.match_number.get(),
            },
        ),
        Outbound::Accepted(accepted, options) => (
            accepted.timestamp,
            OrderEventKind::Accepted {
                order: entered_order(
                    accepted.user_ref.get(),
                    &accepted.order,
                    options,
                    &mut is_exact,
                    instrument_of,
                )?,
                order_id: accepted.order.order_ref.get(),
                state: order_state(accepted.order.order_state),
            },
        ),
        Outbound::Replaced(replaced, options) => (
            replaced.timestamp,
            OrderEventKind::Replaced {
                order: entered_order(
                    replaced.user_ref.get(),
                    &replaced.order,
                    options,
                    &mut is_exact,
                    instrument_of,
                )?,
                orig_user_ref: replaced.orig_user_ref.get(),
                order_id: replaced.order.order_ref.get(),
                state: order_state(replaced.order.order_state),
            },
        ),
        Outbound::Canceled(canceled, _) => (
            canceled.timestamp,
            OrderEventKind::Canceled {
                user_ref: canceled.user_ref.get(),
                decrement: canceled.quantity.get(),
                reason: nearest_value(canceled.reason.reason(), CancelReason::System, &mut is_exact),
            },
        ),
        Outbound::Modified(modified, _) => (
            modified.timestamp,
            OrderEventKind::Modified {
                user_ref: modified.user_ref.get(),
                side_marking: modified.side.0,
                qty: modified.quantity.get(),
            },
        ),
        Outbound::Rejected(rejected, _) => {
            reject = Some(rejected.reason);
            let kind = OrderEventKind::Rejected {
                user_ref: rejected.user_ref.get(),
                reason: nearest_value(
                    rejected.reason.reason(),
                    RejectReason::OptionNotOffered,
                    &mut is_exact,
                ),
                client_order_id: ClientOrderId(rejected.client_order_id.0),
            };
            (rejected.timestamp, kind)
        }
        other => return decode_other(other, instrument_of),
    };
    Ok(Answer::Order(OrderAnswer { ts: ts.get(), kind, is_exact, reject }))
}

/// Decodes the rare messages; not inlined, to keep the hot path short.
#[cold]
fn decode_other(
    message: Outbound<'_>,
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<Answer<'_>, EventError> {
    let mut is_exact = true;
    let (ts, kind) = match message {
        Outbound::AiqCanceled(canceled, options) => {
            let strategy = options.aiq_strategy().and_then(|code| AiqStrategy(code).strategy());
            let kind = OrderEventKind::SelfTradePrevented {
                user_ref: canceled.user_ref.get(),
                decrement: canceled.decrement_shares.get(),
                prevented: canceled.quantity_prevented.get(),
                price: canceled.execution_price.get(),
                liquidity: nearest_value(canceled.liquidity_flag.liquidity(), Liquidity::Removed, &mut true),
                strategy: nearest_value(strategy, SelfTradePrevention::None, &mut is_exact),
            };
            (canceled.timestamp, kind)
        }
        Outbound::Restated(restated, options) if restated.reason == RestateReason::REFRESH => {
            let (mut order_id, mut display_qty) = (None, None);
            for option in options.iter() {
                match option {
                    TagValue::SecondaryOrderRef(id) => order_id = Some(OrderId(id)),
                    TagValue::DisplayQty(qty) => display_qty = Some(Qty(qty.into())),
                    _ => {}
                }
            }
            let (Some(order_id), Some(display_qty)) = (order_id, display_qty) else {
                return Ok(Answer::Other(message));
            };
            let user_ref = restated.user_ref.get();
            let kind = OrderEventKind::Restated { user_ref, order_id, display_qty };
            (restated.timestamp, kind)
        }
        Outbound::PriorityUpdate(update, _) => {
            let kind = OrderEventKind::Triggered {
                user_ref: update.user_ref.get(),
                order_id: update.order_ref.get(),
                price: update.price.get(),
            };
            (update.timestamp, kind)
        }
        Outbound::BrokenTrade(broken, _) => {
            let kind = OrderEventKind::Broken {
                user_ref: broken.user_ref.get(),
                match_id: broken.match_number.get(),
                reason: nearest_value(broken.reason.reason(), BrokenReason::Supervisory, &mut is_exact),
            };
            (broken.timestamp, kind)
        }
        Outbound::MassCancelResponse(response, options) => {
            let mass_cancel = mass_cancel(response, options, instrument_of)?;
            (response.timestamp, OrderEventKind::MassCanceled(mass_cancel))
        }
        Outbound::DisableOrderEntryResponse(response, _) => {
            (response.timestamp, order_entry_set(response.user_ref, false, response.firm))
        }
        Outbound::EnableOrderEntryResponse(response, _) => {
            (response.timestamp, order_entry_set(response.user_ref, true, response.firm))
        }
        other => return Ok(Answer::Other(other)),
    };
    Ok(Answer::Order(OrderAnswer { ts: ts.get(), kind, is_exact, reject: None }))
}

/// Returns `value`; if it is `None`, returns `nearest` and sets `is_exact` to false.
#[inline]
fn nearest_value<T>(value: Option<T>, nearest: T, is_exact: &mut bool) -> T {
    *is_exact &= value.is_some();
    value.unwrap_or(nearest)
}

fn order_entry_set(user_ref: UserRef, is_enabled: bool, firm: Alpha<4>) -> OrderEventKind {
    OrderEventKind::OrderEntrySet(SetOrderEntry { user_ref: user_ref.get(), is_enabled, firm: firm.0 })
}

/// Returns the mass cancel request that `response` echoes.
fn mass_cancel(
    response: &MassCancelResponse,
    options: Options<'_>,
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<MassCancel, EventError> {
    let instrument = match response.symbol {
        Stock::BLANK => InstrumentId(0),
        symbol => instrument_of(symbol.get()).ok_or(EventError::UnknownSymbol(symbol.get()))?,
    };
    let side = options.iter().find_map(|option| match option {
        TagValue::Side(marking) => SideMarking(marking).side(),
        _ => None,
    });
    Ok(MassCancel { user_ref: response.user_ref.get(), instrument, side, firm: response.firm.0 })
}

/// Returns the order state for a code; an unlisted code counts as dead, so that the client expects no fill.
#[inline]
fn order_state(code: OrderStateCode) -> OrderState {
    code.state().unwrap_or(OrderState::Dead)
}

/// Returns the order that an Accepted or Replaced message echoes. Ignores options that do not affect
/// matching.
#[inline]
fn entered_order(
    user_ref: UserRefNum,
    order: &AcceptedOrder,
    options: Options<'_>,
    is_exact: &mut bool,
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<EnterOrder, EventError> {
    let symbol = order.symbol.get();
    let instrument = instrument_of(symbol).ok_or(EventError::UnknownSymbol(symbol))?;
    let side = order.side.side().ok_or(EventError::UnknownSide { side: order.side.0 })?;
    let parameters = OrderParameters::echoed(options);
    Ok(EnterOrder {
        time_in_force: nearest_value(order.time_in_force.time_in_force(), TimeInForce::Day, is_exact),
        post_only: parameters.post_only,
        min_qty: parameters.min_qty,
        special: parameters.special(order.display),
        attributes: OrderAttributes {
            display: order.display.0,
            capacity: order.capacity.0,
            intermarket_sweep: order.intermarket_sweep.0,
            cross_type: order.cross_type.0,
        },
        client_order_id: ClientOrderId(order.client_order_id.0),
        ..EnterOrder::limit(user_ref, instrument, side, order.quantity.get(), order.price.get())
    })
}
