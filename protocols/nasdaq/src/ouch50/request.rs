//! Order requests as OUCH messages: the client's encoder and the venue's decoder.

use arrayvec::ArrayVec;
use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, InstrumentId, MassCancel, ModifyOrder, OrderAttributes,
    OrderInstructions, OrderRequest, Price, Qty, RejectReason, ReplaceOrder, SetOrderEntry, Side, Symbol,
    TimeInForce, UserRefNum,
};
use zerocopy::IntoBytes;

use super::codes::*;
use super::inbound::{self, Inbound};
use super::options::{Options, TagValue, encode_with_options};
use super::{EncodeError, PRICE_MAX, ParseError};
use crate::soupbintcp::BufferTooShort;
use crate::wire::{Alpha, LongPrice, Shares, Stock};

/// The reason why a client's message does not become an [`OrderRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Not an OUCH message: drop it, and close the connection if more follow.
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// The request needs a feature that this venue does not offer: answer with
    /// [`OrderEventKind::Rejected`](tickpath_types::OrderEventKind::Rejected) and these fields.
    #[error("request {user_ref} is refused: {reason:?}")]
    Refused {
        /// UserRefNum of the refused request.
        user_ref: UserRefNum,
        /// The reason to send.
        reason: RejectReason,
        /// The client order id to echo.
        client_order_id: ClientOrderId,
    },
    /// The message names a UserRefNum space other than 0, the only one of this venue: count and drop the
    /// message.
    #[error("request about order {user_ref} of number space {index}: drop it, the venue has one space, 0")]
    OtherIndex {
        /// UserRefNum of the order in the other space.
        user_ref: UserRefNum,
        /// Index of the other space, from the option UserRefIndex.
        index: u8,
    },
    /// The message queries the next UserRefNum: answer with a [`QueryResponse`](super::QueryResponse).
    #[error("an account query: answer with the next number")]
    AccountQuery,
}

/// Decodes a request of a client.
///
/// The venue offers: day, IOC and GTT; visible and hidden orders; the continuous market; limit prices up to
/// [`PRICE_MAX`]; market orders, whose price becomes [`Price::MARKET`]; the options MinQty, PostOnly,
/// MaxFloor and ExpireTime. It ignores options that only inform (Firm, CustomerType, SharesLocated,
/// LocateBroker) and those that state the default (PriceType `L`, TradeNow `N`, UserRefIndex 0). It refuses
/// other options. If an option is repeated, the last one counts. The short sale marking of a new order is
/// dropped, since the venue has no rules for it.
///
/// The matching engine checks quantities, times, tick, collar, the order's state and the marking of a
/// modification; this function does not. It checks only UserRefIndex in cancels and modifications and never
/// refuses them, so [`RequestError::Refused`] never has the UserRefNum of an earlier order.
///
/// # Errors
/// [`RequestError`] separates messages to drop from requests to refuse.
#[inline]
pub fn decode_request(
    message: &[u8],
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<OrderRequest, RequestError> {
    match Inbound::parse(message) {
        Ok(Inbound::EnterOrder(order, options)) => decode_enter(order, options, instrument_of),
        Ok(Inbound::ReplaceOrder(order, options)) => decode_replace(order, options),
        Ok(Inbound::CancelOrder(order, options)) => {
            let user_ref = order.user_ref.get();
            check_index(user_ref, options)?;
            Ok(OrderRequest::Cancel(CancelOrder { user_ref, qty: order.quantity.get() }))
        }
        Ok(Inbound::ModifyOrder(order, options)) => {
            let user_ref = order.user_ref.get();
            check_index(user_ref, options)?;
            let (side_marking, qty) = (order.side.0, order.quantity.get());
            Ok(OrderRequest::Modify(ModifyOrder { user_ref, side_marking, qty }))
        }
        Ok(Inbound::MassCancel(request, options)) => decode_mass_cancel(request, options, instrument_of),
        Ok(Inbound::DisableOrderEntry(request, options)) => {
            decode_order_entry(request.user_ref.get(), request.firm.0, false, options)
        }
        Ok(Inbound::EnableOrderEntry(request, options)) => {
            decode_order_entry(request.user_ref.get(), request.firm.0, true, options)
        }
        Ok(Inbound::AccountQuery(..)) => Err(RequestError::AccountQuery),
        Err(error) => Err(error.into()),
    }
}

#[inline]
fn decode_enter(
    order: &inbound::EnterOrder,
    options: Options<'_>,
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<OrderRequest, RequestError> {
    let user_ref = order.user_ref.get();
    let client_order_id = ClientOrderId(order.client_order_id.0);
    let decode = || -> Result<EnterOrder, RejectReason> {
        let parameters = offered(options)?;
        if order.cross_type != CrossType::CONTINUOUS {
            return Err(RejectReason::CrossNotOffered);
        }
        order.capacity.meaning().ok_or(RejectReason::OptionNotOffered)?;
        Ok(EnterOrder {
            user_ref,
            instrument: instrument_of(order.symbol.get()).ok_or(RejectReason::UnknownInstrument)?,
            side: order.side.side().ok_or(RejectReason::InvalidSide)?,
            qty: order.quantity.get(),
            price: offered_price(order.price)?,
            time_in_force: order.time_in_force.time_in_force().ok_or(RejectReason::TimeInForceNotOffered)?,
            post_only: parameters.post_only,
            min_qty: parameters.min_qty,
            special: parameters.special(order.display),
            attributes: OrderAttributes {
                display: offered_display(order.display)?,
                capacity: order.capacity.0,
                intermarket_sweep: offered_sweep(order.intermarket_sweep)?,
                cross_type: order.cross_type.0,
            },
            client_order_id,
        })
    };
    decode().map(OrderRequest::Enter).map_err(|reason| refused(user_ref, reason, client_order_id))
}

#[inline]
fn decode_replace(order: &inbound::ReplaceOrder, options: Options<'_>) -> Result<OrderRequest, RequestError> {
    let user_ref = order.user_ref.get();
    let client_order_id = ClientOrderId(order.client_order_id.0);
    let decode = || -> Result<ReplaceOrder, RejectReason> {
        let parameters = offered(options)?;
        Ok(ReplaceOrder {
            orig_user_ref: order.orig_user_ref.get(),
            user_ref,
            qty: order.quantity.get(),
            price: offered_price(order.price)?,
            time_in_force: order.time_in_force.time_in_force().ok_or(RejectReason::TimeInForceNotOffered)?,
            post_only: parameters.post_only,
            min_qty: parameters.min_qty,
            special: parameters.special(order.display),
            // A replacement message has neither capacity nor cross type: the venue keeps those of the old
            // order.
            attributes: OrderAttributes {
                display: offered_display(order.display)?,
                intermarket_sweep: offered_sweep(order.intermarket_sweep)?,
                ..OrderAttributes::default()
            },
            client_order_id,
        })
    };
    decode().map(OrderRequest::Replace).map_err(|reason| refused(user_ref, reason, client_order_id))
}

#[cold]
fn decode_mass_cancel(
    request: &inbound::MassCancel,
    options: Options<'_>,
    instrument_of: impl FnOnce(Symbol) -> Option<InstrumentId>,
) -> Result<OrderRequest, RequestError> {
    let user_ref = request.user_ref.get();
    let decode = || -> Result<MassCancel, RejectReason> {
        let instrument = match request.symbol {
            Stock::BLANK => InstrumentId(0),
            symbol => instrument_of(symbol.get()).ok_or(RejectReason::UnknownInstrument)?,
        };
        let mut side = None;
        for option in options.iter() {
            match option {
                TagValue::Side(marking) => {
                    side = Some(SideMarking(marking).side().ok_or(RejectReason::InvalidSide)?);
                }
                TagValue::UserRefIndex(0) => {}
                _ => return Err(RejectReason::OptionNotOffered),
            }
        }
        Ok(MassCancel { user_ref, instrument, side, firm: request.firm.0 })
    };
    decode()
        .map(OrderRequest::MassCancel)
        .map_err(|reason| refused(user_ref, reason, ClientOrderId::default()))
}

#[cold]
fn decode_order_entry(
    user_ref: UserRefNum,
    firm: [u8; 4],
    is_enabled: bool,
    options: Options<'_>,
) -> Result<OrderRequest, RequestError> {
    if options.iter().any(|option| option != TagValue::UserRefIndex(0)) {
        return Err(refused(user_ref, RejectReason::OptionNotOffered, ClientOrderId::default()));
    }
    Ok(OrderRequest::SetOrderEntry(SetOrderEntry { user_ref, is_enabled, firm }))
}

/// Fails if the options name a UserRefNum space other than 0, the only one of this venue.
#[inline]
fn check_index(user_ref: UserRefNum, options: Options<'_>) -> Result<(), RequestError> {
    if options.is_empty() {
        return Ok(());
    }
    let index = options.iter().find_map(|option| match option {
        TagValue::UserRefIndex(index) if index != 0 => Some(index),
        _ => None,
    });
    index.map_or(Ok(()), |index| Err(RequestError::OtherIndex { user_ref, index }))
}

fn refused(user_ref: UserRefNum, reason: RejectReason, client_order_id: ClientOrderId) -> RequestError {
    RequestError::Refused { user_ref, reason, client_order_id }
}

fn offered_price(price: LongPrice) -> Result<Price, RejectReason> {
    let is_priced = price == LongPrice::MARKET || price.0.get() <= PRICE_MAX;
    if is_priced { Ok(price.get()) } else { Err(RejectReason::PriceOutsideCollar) }
}

fn offered_display(display: Display) -> Result<u8, RejectReason> {
    match display {
        Display::VISIBLE | Display::HIDDEN => Ok(display.0),
        _ => Err(RejectReason::DisplayNotOffered),
    }
}

/// Returns the sweep code if it is `Y` or `N`. The venue only echoes it, since an intermarket sweep has no
/// effect on a single market.
fn offered_sweep(sweep: YesNo) -> Result<u8, RejectReason> {
    sweep.meaning().map(|_| sweep.0).ok_or(RejectReason::OptionNotOffered)
}

/// The options of an order that affect matching.
#[derive(Clone, Copy, Default)]
pub(super) struct OrderParameters {
    pub(super) min_qty: Qty,
    pub(super) post_only: bool,
    display_qty: Qty,
    expire_at: u32,
}

impl OrderParameters {
    /// Returns the order instructions for these options and `display`; `None` for an ordinary order.
    #[inline]
    pub(super) fn special(&self, display: Display) -> Option<OrderInstructions> {
        let OrderParameters { display_qty, expire_at, .. } = *self;
        let is_hidden = display == Display::HIDDEN;
        let is_special = is_hidden || expire_at != 0 || !display_qty.is_zero();
        is_special.then_some(OrderInstructions { stop_price: Price(0), display_qty, expire_at, is_hidden })
    }

    /// Records an option; returns false if it does not affect matching.
    fn take(&mut self, option: TagValue<'_>) -> bool {
        match option {
            TagValue::MinQty(qty) => self.min_qty = Qty(qty.into()),
            TagValue::PostOnly(code) => self.post_only = code == b'P',
            TagValue::MaxFloor(qty) => self.display_qty = Qty(qty.into()),
            TagValue::ExpireTime(seconds) => self.expire_at = seconds,
            _ => return false,
        }
        true
    }

    /// Returns the order parameters that a venue echoed. Ignores options that do not affect matching.
    #[inline]
    pub(super) fn echoed(options: Options<'_>) -> OrderParameters {
        let mut parameters = OrderParameters::default();
        options.iter().for_each(|option| _ = parameters.take(option));
        parameters
    }
}

/// Returns the order parameters that the options of a request set; fails if the venue does not offer an
/// option.
fn offered(options: Options<'_>) -> Result<OrderParameters, RejectReason> {
    let mut parameters = OrderParameters::default();
    if options.is_empty() {
        return Ok(parameters);
    }
    for option in options.iter() {
        match option {
            TagValue::PostOnly(b'P' | b'N') if parameters.take(option) => {}
            TagValue::PostOnly(_) => return Err(RejectReason::OptionNotOffered),
            _ if parameters.take(option) => {}
            TagValue::PriceType(b'L') | TagValue::TradeNow(b'N') | TagValue::UserRefIndex(0) => {}
            TagValue::Firm(_)
            | TagValue::CustomerType(_)
            | TagValue::SharesLocated(_)
            | TagValue::LocateBroker(_) => {}
            _ => return Err(RejectReason::OptionNotOffered),
        }
    }
    Ok(parameters)
}

/// Returns the options that express these order parameters.
#[inline]
pub(super) fn option_values(
    min_qty: Qty,
    post_only: bool,
    special: Option<OrderInstructions>,
) -> Result<ArrayVec<TagValue<'static>, 4>, EncodeError> {
    let mut options = ArrayVec::new();
    if !min_qty.is_zero() {
        options.push(TagValue::MinQty(Shares::try_from(min_qty)?.0.get()));
    }
    if post_only {
        options.push(TagValue::PostOnly(b'P'));
    }
    if let Some(OrderInstructions { display_qty, expire_at, .. }) = special {
        if !display_qty.is_zero() {
            options.push(TagValue::MaxFloor(Shares::try_from(display_qty)?.0.get()));
        }
        if expire_at != 0 {
            options.push(TagValue::ExpireTime(expire_at));
        }
    }
    Ok(options)
}

/// Writes a request of a client at the start of `out` and returns its length, at most
/// [`MESSAGE_LEN_MAX`](super::MESSAGE_LEN_MAX).
///
/// Cancels and modifications are written without an empty list of options, as in the edition of 2023.
/// Requests that the 2025 edition added (mass cancel, disable and enable order entry) end with a list.
///
/// # Errors
/// [`EncodeError`]: do not send the content of `out`.
#[inline]
pub fn encode_request(
    request: &OrderRequest,
    symbol_of: impl FnOnce(InstrumentId) -> Option<Symbol>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    match request {
        OrderRequest::Enter(order) => {
            check_encodable(order.time_in_force, order.special)?;
            let symbol =
                symbol_of(order.instrument).ok_or(EncodeError::UnknownInstrument(order.instrument))?;
            let message = inbound::EnterOrder::new(
                order.user_ref,
                order.side,
                Shares::try_from(order.qty)?,
                symbol,
                LongPrice::try_from(order.price)?,
                order.time_in_force,
                display_code(order.attributes.display, order.special),
                order.attributes.capacity,
                order.attributes.intermarket_sweep,
                order.attributes.cross_type,
                Alpha(order.client_order_id.0),
            );
            let options = option_values(order.min_qty, order.post_only, order.special)?;
            Ok(encode_with_options(&message, &options, out)?)
        }
        OrderRequest::Replace(order) => {
            check_encodable(order.time_in_force, order.special)?;
            let message = inbound::ReplaceOrder::new(
                order.orig_user_ref,
                order.user_ref,
                Shares::try_from(order.qty)?,
                LongPrice::try_from(order.price)?,
                order.time_in_force,
                display_code(order.attributes.display, order.special),
                order.attributes.intermarket_sweep,
                Alpha(order.client_order_id.0),
            );
            let options = option_values(order.min_qty, order.post_only, order.special)?;
            Ok(encode_with_options(&message, &options, out)?)
        }
        OrderRequest::Cancel(order) => {
            put(&inbound::CancelOrder::new(order.user_ref, Shares::try_from(order.qty)?), out)
        }
        OrderRequest::Modify(order) => put(
            &inbound::ModifyOrder::new(order.user_ref, order.side_marking, Shares::try_from(order.qty)?),
            out,
        ),
        OrderRequest::MassCancel(request) => {
            let symbol = stock_of(request.instrument, symbol_of)?;
            let message = inbound::MassCancel::new(request.user_ref, request.firm, symbol);
            Ok(encode_with_options(&message, &side_option(request.side), out)?)
        }
        OrderRequest::SetOrderEntry(SetOrderEntry { user_ref, is_enabled, firm }) => Ok(match is_enabled {
            true => encode_with_options(&inbound::EnableOrderEntry::new(*user_ref, *firm), &[], out)?,
            false => encode_with_options(&inbound::DisableOrderEntry::new(*user_ref, *firm), &[], out)?,
        }),
    }
}

/// Returns the symbol to which a mass cancel is restricted; blank for instrument 0, which means all.
pub(super) fn stock_of(
    instrument: InstrumentId,
    symbol_of: impl FnOnce(InstrumentId) -> Option<Symbol>,
) -> Result<Stock, EncodeError> {
    match instrument {
        InstrumentId(0) => Ok(Stock::BLANK),
        id => symbol_of(id).map(Stock::from).ok_or(EncodeError::UnknownInstrument(id)),
    }
}

/// Returns the option that restricts a mass cancel to `side`; none for both sides.
pub(super) fn side_option(side: Option<Side>) -> ArrayVec<TagValue<'static>, 1> {
    side.map(|side| TagValue::Side(SideMarking::from(side).0)).into_iter().collect()
}

/// Fails for orders that OUCH cannot express.
fn check_encodable(
    time_in_force: TimeInForce,
    special: Option<OrderInstructions>,
) -> Result<(), EncodeError> {
    let is_stop = special.is_some_and(|special| special.stop_price != Price(0));
    if time_in_force == TimeInForce::Gtc || is_stop { Err(EncodeError::NotInOuch) } else { Ok(()) }
}

/// Returns the OUCH display code: hidden if the order instructions hide the order, else `display`.
pub(super) fn display_code(display: u8, special: Option<OrderInstructions>) -> u8 {
    if special.is_some_and(|special| special.is_hidden) { Display::HIDDEN.0 } else { display }
}

/// Writes a message without options.
#[inline]
pub(super) fn put<M: IntoBytes + zerocopy::Immutable>(
    message: &M,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let needed = size_of::<M>();
    let too_short = BufferTooShort { needed, len: out.len() };
    message.write_to_prefix(out).map_err(|_| too_short)?;
    Ok(needed)
}
