//! Encodes the venue's market events as ITCH messages, directly into the caller's packet.

use arrayvec::ArrayVec;
use tickpath_types::{Imbalance, Instrument, MarketEvent, MarketEventKind, OrderId, Price, Side, Symbol};
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes};

use super::MESSAGE_LEN_MAX;
use super::codes::*;
use super::messages::*;
use crate::moldudp64::PushError;
use crate::wire::{Alpha, OutOfRange, Shares, ShortPrice};

/// Issue classification: common stock.
const COMMON_STOCK: Alpha<1> = Alpha(*b"C");
/// Issue sub-type: not applicable.
const NO_SUB_TYPE: Alpha<2> = Alpha(*b"Z ");

/// Writes a message with the event's instrument, the event's time and the given fields. The tracking number
/// has a meaning only inside Nasdaq, so it is zero.
macro_rules! put {
    ($out:ident, $event:ident, $message:ident($( $field:expr ),*)) => {
        put($out, $message::new($event.instrument, U16::ZERO, $event.ts $(, $field)*))
    };
}

/// The reason why an event could not be encoded; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is shorter than the message: start another packet.
    #[error("the message needs {needed} bytes and the buffer has {len}: start another packet")]
    BufferTooShort {
        /// Length of the message in bytes.
        needed: usize,
        /// Length of the buffer in bytes.
        len: usize,
    },
    /// A price or a quantity does not fit ITCH's 4-byte field: lower the instrument's price collar or maximum
    /// quantity, or change its scale.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The packet accepts no further message: start another one.
    #[error(transparent)]
    PacketFull(#[from] PushError),
    /// The message needs the instrument's symbol, but the caller passed no instrument.
    #[error("the event is about an instrument that was not given: look it up by the event's id")]
    NoInstrument,
}

/// Returns the length of the ITCH message that [`encode_market_event`] writes for an event of this kind.
#[inline]
#[must_use]
pub const fn market_event_len(kind: &MarketEventKind) -> usize {
    match kind {
        MarketEventKind::System(_) => SystemEvent::LEN,
        MarketEventKind::Directory => StockDirectory::LEN,
        MarketEventKind::TradingAction(_) => StockTradingAction::LEN,
        MarketEventKind::Add { .. } => AddOrder::LEN,
        MarketEventKind::Executed { .. } => OrderExecuted::LEN,
        MarketEventKind::Reduced { .. } => OrderCancel::LEN,
        MarketEventKind::Deleted { .. } => OrderDelete::LEN,
        MarketEventKind::Replaced { .. } => OrderReplace::LEN,
        MarketEventKind::ExecutedAt { .. } => OrderExecutedWithPrice::LEN,
        MarketEventKind::Traded { .. } => NonCrossTrade::LEN,
        MarketEventKind::Cross { .. } => CrossTrade::LEN,
        MarketEventKind::TradeBroken { .. } => BrokenTrade::LEN,
        MarketEventKind::Imbalance(_) => NetOrderImbalance::LEN,
        MarketEventKind::PriceBand { .. } => LuldAuctionCollar::LEN,
    }
}

/// Writes an event as its ITCH message at the start of `out` and returns the message's length.
///
/// System becomes `S`, Directory `R`, TradingAction `H`, Add `A`, Executed `E`, Reduced `X`, Deleted `D`,
/// Replaced `U`, ExecutedAt `C` (not printable, since `Q` has the volume), Traded `P`, Cross `Q`, TradeBroken
/// `B`, Imbalance `I`, PriceBand `J`. Only messages with a symbol need the instrument: `R`, `H`, `A`, `P`,
/// `Q`, `I`, `J`.
///
/// # Errors
/// [`EncodeError`] says how to correct the cause; `out` is then unchanged.
#[inline]
pub fn encode_market_event(
    event: &MarketEvent,
    instrument: Option<&Instrument>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let symbol = move || instrument.map(|instrument| instrument.symbol).ok_or(EncodeError::NoInstrument);
    match event.kind {
        MarketEventKind::Add { order_id, side, price, qty } => {
            let (shares, symbol, price) = (Shares::try_from(qty)?, symbol()?, ShortPrice::try_from(price)?);
            put!(out, event, AddOrder(order_id, side, shares, symbol, price))
        }
        MarketEventKind::Executed { order_id, qty, match_id } => {
            put!(out, event, OrderExecuted(order_id, Shares::try_from(qty)?, match_id))
        }
        MarketEventKind::Reduced { order_id, qty } => {
            put!(out, event, OrderCancel(order_id, Shares::try_from(qty)?))
        }
        MarketEventKind::Deleted { order_id } => put!(out, event, OrderDelete(order_id)),
        MarketEventKind::Replaced { old_order_id, order_id, price, qty } => {
            let (shares, price) = (Shares::try_from(qty)?, ShortPrice::try_from(price)?);
            put!(out, event, OrderReplace(old_order_id, order_id, shares, price))
        }
        MarketEventKind::System(stage) => put!(out, event, SystemEvent(stage)),
        MarketEventKind::TradingAction(state) => {
            put!(out, event, StockTradingAction(symbol()?, state, Alpha::<1>::BLANK, Alpha::<4>::BLANK))
        }
        MarketEventKind::Directory => put_directory(event, instrument.ok_or(EncodeError::NoInstrument)?, out),
        MarketEventKind::ExecutedAt { .. }
        | MarketEventKind::Traded { .. }
        | MarketEventKind::Cross { .. }
        | MarketEventKind::TradeBroken { .. }
        | MarketEventKind::Imbalance(_)
        | MarketEventKind::PriceBand { .. } => put_other(event, symbol, out),
    }
}

/// Encodes an event as [`encode_market_event`] does, and returns the message in a new buffer.
///
/// # Errors
/// The errors of [`encode_market_event`], except [`EncodeError::BufferTooShort`].
pub fn market_event_message(
    event: &MarketEvent,
    instrument: Option<&Instrument>,
) -> Result<ArrayVec<u8, MESSAGE_LEN_MAX>, EncodeError> {
    let mut message = ArrayVec::from([0; MESSAGE_LEN_MAX]);
    let len = encode_market_event(event, instrument, &mut message)?;
    message.truncate(len);
    Ok(message)
}

/// Writes the rare messages: crosses, imbalances, trades of hidden orders, broken trades and price bands.
#[cold]
fn put_other(
    event: &MarketEvent,
    symbol: impl FnOnce() -> Result<Symbol, EncodeError>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    match event.kind {
        MarketEventKind::ExecutedAt { order_id, qty, price, match_id } => {
            let (shares, price) = (Shares::try_from(qty)?, ShortPrice::try_from(price)?);
            let printable = YesNo::NO;
            put!(out, event, OrderExecutedWithPrice(order_id, shares, match_id, printable, price))
        }
        MarketEventKind::Traded { qty, price, match_id, .. } => {
            let (shares, price) = (Shares::try_from(qty)?, ShortPrice::try_from(price)?);
            // Like Nasdaq, do not disclose the reference and the side of a hidden order.
            let (no_order, side) = (OrderId(0), BuySell::BUY);
            put!(out, event, NonCrossTrade(no_order, side, shares, symbol()?, price, match_id))
        }
        MarketEventKind::Cross { qty, price, match_id, kind } => {
            let price = ShortPrice::try_from(price)?;
            put!(out, event, CrossTrade(qty, symbol()?, price, match_id, kind))
        }
        MarketEventKind::TradeBroken { match_id } => put!(out, event, BrokenTrade(match_id)),
        MarketEventKind::Imbalance(imbalance) => put_imbalance(event, symbol()?, &imbalance, out),
        MarketEventKind::PriceBand { reference, low, high } => {
            let (reference, high) = (ShortPrice::try_from(reference)?, ShortPrice::try_from(high)?);
            let low = ShortPrice::try_from(low)?;
            put!(out, event, LuldAuctionCollar(symbol()?, reference, high, low, U32::ZERO))
        }
        _ => unreachable!("the caller handles the other kinds"),
    }
}

/// Writes an imbalance. The far price is 0, since this venue has no orders that are valid only in a cross.
fn put_imbalance(
    event: &MarketEvent,
    symbol: Symbol,
    imbalance: &Imbalance,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let Imbalance { paired, imbalance: unpaired, side, price, reference, kind } = *imbalance;
    let direction = match side {
        Some(Side::Buy) => ImbalanceDirection::BUY,
        Some(Side::Sell) => ImbalanceDirection::SELL,
        None if price == Price(0) => ImbalanceDirection::INSUFFICIENT,
        None => ImbalanceDirection::NONE,
    };
    let variation = match price {
        Price(0) => PriceVariation::NOT_AVAILABLE,
        near => PriceVariation::between(near, reference),
    };
    let far = ShortPrice::default();
    let (near, reference) = (ShortPrice::try_from(price)?, ShortPrice::try_from(reference)?);
    put!(
        out,
        event,
        NetOrderImbalance(paired, unpaired, direction, symbol, far, near, reference, kind, variation)
    )
}

/// Writes the directory message of an instrument. It describes a common stock of a compliant issuer, without
/// a listing market, and without a LULD tier because the venue sets the price bands itself.
fn put_directory(event: &MarketEvent, instrument: &Instrument, out: &mut [u8]) -> Result<usize, EncodeError> {
    let lot_size = Shares::try_from(instrument.lot_size)?;
    put!(
        out,
        event,
        StockDirectory(
            instrument.symbol,
            MarketCategory::NOT_AVAILABLE,
            FinancialStatus::NORMAL,
            lot_size,
            if instrument.lot_size.0 > 1 { YesNo::YES } else { YesNo::NO },
            COMMON_STOCK,
            NO_SUB_TYPE,
            Authenticity::LIVE,
            YesNo::NO,
            IpoFlag::NOT_NEW_ISSUE,
            LuldTier::NOT_AVAILABLE,
            YesNo::NO,
            U32::ZERO,
            YesNo::NO
        )
    )
}

#[inline]
fn put<M: IntoBytes + Immutable>(out: &mut [u8], message: M) -> Result<usize, EncodeError> {
    let needed = size_of::<M>();
    let too_short = EncodeError::BufferTooShort { needed, len: out.len() };
    message.write_to_prefix(out).map(|()| needed).map_err(|_| too_short)
}
