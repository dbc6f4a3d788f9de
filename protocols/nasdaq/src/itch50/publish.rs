//! The venue's public events as ITCH messages, written straight into the caller's packet.

use arrayvec::ArrayVec;
use tickpath_types::{Imbalance, Instrument, MarketEvent, MarketEventKind, OrderId, Price, Side, Symbol};
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes};

use super::MESSAGE_LEN_MAX;
use super::codes::{
    Authenticity, BuySell, FinancialStatus, ImbalanceDirection, IpoFlag, LuldTier, MarketCategory,
    PriceVariation, YesNo,
};
use super::messages::{
    AddOrder, BrokenTrade, CrossTrade, LuldAuctionCollar, NetOrderImbalance, NonCrossTrade, OrderCancel,
    OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace, StockDirectory, StockTradingAction,
    SystemEvent,
};
use crate::moldudp64::PushError;
use crate::wire::{Alpha, OutOfRange, Shares, ShortPrice};

/// Issue classification: common stock.
const COMMON_STOCK: Alpha<1> = Alpha(*b"C");
/// Issue sub-type: not applicable.
const NO_SUB_TYPE: Alpha<2> = Alpha(*b"Z ");
/// The tracking number means something inside Nasdaq only.
const NO_TRACKING: U16 = U16::ZERO;

/// An event could not be written; nothing was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is shorter than the message: start another packet.
    #[error("the message needs {needed} bytes and the buffer has {len}: start another packet")]
    BufferTooShort {
        /// Length of the message.
        needed: usize,
        /// Length of the buffer.
        len: usize,
    },
    /// A price or a quantity does not fit ITCH's 4 bytes: give the instrument a collar and a largest
    /// quantity that fit, or another scale.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The packet took no further message: start another one.
    #[error(transparent)]
    PacketFull(#[from] PushError),
    /// The event needs the symbol of its instrument and none was given.
    #[error("the event is about an instrument that was not given: look it up by the event's id")]
    NoInstrument,
}

impl EncodeError {
    /// True when the same event fits another packet.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, EncodeError::BufferTooShort { .. } | EncodeError::PacketFull(_))
    }
}

/// Length of the ITCH message that [`encode_market_event`] writes for an event of this kind.
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
/// System becomes `S`, Directory `R`, TradingAction `H`, Add `A`, Executed `E`, Reduced `X`, Deleted
/// `D`, Replaced `U`, ExecutedAt `C` (not printable: its cross is), Traded `P`, Cross `Q`, TradeBroken `B`, Imbalance
/// `I`, PriceBand `J`. The instrument is read for those that carry its symbol: `R`, `H`, `A`, `P`, `Q`, `I` and `J`.
///
/// # Errors
/// [`EncodeError`] says what to change; `out` is then untouched.
#[inline]
pub fn encode_market_event(
    event: &MarketEvent,
    instrument: Option<&Instrument>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let (locate, ts) = (event.instrument, event.ts);
    let symbol = || -> Result<Symbol, EncodeError> {
        instrument.map(|instrument| instrument.symbol).ok_or(EncodeError::NoInstrument)
    };
    match event.kind {
        MarketEventKind::Add { order_id, side, price, qty } => put(
            out,
            AddOrder::new(
                locate,
                NO_TRACKING,
                ts,
                order_id,
                side,
                Shares::try_from(qty)?,
                symbol()?,
                ShortPrice::try_from(price)?,
            ),
        ),
        MarketEventKind::Executed { order_id, qty, match_id } => {
            put(out, OrderExecuted::new(locate, NO_TRACKING, ts, order_id, Shares::try_from(qty)?, match_id))
        }
        MarketEventKind::Reduced { order_id, qty } => {
            put(out, OrderCancel::new(locate, NO_TRACKING, ts, order_id, Shares::try_from(qty)?))
        }
        MarketEventKind::Deleted { order_id } => {
            put(out, OrderDelete::new(locate, NO_TRACKING, ts, order_id))
        }
        MarketEventKind::Replaced { old_order_id, order_id, price, qty } => put(
            out,
            OrderReplace::new(
                locate,
                NO_TRACKING,
                ts,
                old_order_id,
                order_id,
                Shares::try_from(qty)?,
                ShortPrice::try_from(price)?,
            ),
        ),
        MarketEventKind::ExecutedAt { .. }
        | MarketEventKind::Traded { .. }
        | MarketEventKind::Cross { .. }
        | MarketEventKind::TradeBroken { .. }
        | MarketEventKind::Imbalance(_)
        | MarketEventKind::PriceBand { .. } => put_rare(event, instrument, out),
        MarketEventKind::System(stage) => put(out, SystemEvent::new(locate, NO_TRACKING, ts, stage)),
        MarketEventKind::TradingAction(state) => put(
            out,
            StockTradingAction::new(
                locate,
                NO_TRACKING,
                ts,
                symbol()?,
                state,
                Alpha::<1>::BLANK,
                Alpha::<4>::BLANK,
            ),
        ),
        MarketEventKind::Directory => {
            put(out, directory(event, instrument.ok_or(EncodeError::NoInstrument)?)?)
        }
    }
}

/// An event's ITCH message by itself, for whoever has no packet to write it into; see [`encode_market_event`].
///
/// # Errors
/// As there; there is always room.
pub fn market_event_message(
    event: &MarketEvent,
    instrument: Option<&Instrument>,
) -> Result<ArrayVec<u8, MESSAGE_LEN_MAX>, EncodeError> {
    let mut message = ArrayVec::from([0; MESSAGE_LEN_MAX]);
    let len = encode_market_event(event, instrument, &mut message)?;
    message.truncate(len);
    Ok(message)
}

/// What is published of crosses, hidden orders, broken trades and price bands.
#[cold]
fn put_rare(
    event: &MarketEvent,
    instrument: Option<&Instrument>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let (locate, ts) = (event.instrument, event.ts);
    let symbol = || instrument.map(|instrument| instrument.symbol).ok_or(EncodeError::NoInstrument);
    match event.kind {
        MarketEventKind::ExecutedAt { order_id, qty, price, match_id } => {
            let (shares, price) = (Shares::try_from(qty)?, ShortPrice::try_from(price)?);
            let printable = YesNo::NO;
            put(
                out,
                OrderExecutedWithPrice::new(
                    locate,
                    NO_TRACKING,
                    ts,
                    order_id,
                    shares,
                    match_id,
                    printable,
                    price,
                ),
            )
        }
        MarketEventKind::Traded { qty, price, match_id, .. } => {
            let (shares, price) = (Shares::try_from(qty)?, ShortPrice::try_from(price)?);
            // Reference and side of an order that nobody saw stay unsaid, as they do at Nasdaq.
            let (no_order, side) = (OrderId(0), BuySell::BUY);
            put(
                out,
                NonCrossTrade::new(
                    locate,
                    NO_TRACKING,
                    ts,
                    no_order,
                    side,
                    shares,
                    symbol()?,
                    price,
                    match_id,
                ),
            )
        }
        MarketEventKind::Cross { qty, price, match_id, kind } => {
            let price = ShortPrice::try_from(price)?;
            put(out, CrossTrade::new(locate, NO_TRACKING, ts, qty, symbol()?, price, match_id, kind))
        }
        MarketEventKind::TradeBroken { match_id } => {
            put(out, BrokenTrade::new(locate, NO_TRACKING, ts, match_id))
        }
        MarketEventKind::Imbalance(imbalance) => put(out, net_imbalance(event, symbol()?, &imbalance)?),
        MarketEventKind::PriceBand { reference, low, high } => {
            let (reference, high) = (ShortPrice::try_from(reference)?, ShortPrice::try_from(high)?);
            let low = ShortPrice::try_from(low)?;
            put(
                out,
                LuldAuctionCollar::new(locate, NO_TRACKING, ts, symbol()?, reference, high, low, U32::ZERO),
            )
        }
        _ => unreachable!("the caller handles the other kinds"),
    }
}

/// With no orders for the cross alone there is no far price.
fn net_imbalance(
    event: &MarketEvent,
    symbol: Symbol,
    imbalance: &Imbalance,
) -> Result<NetOrderImbalance, EncodeError> {
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
    Ok(NetOrderImbalance::new(
        event.instrument,
        NO_TRACKING,
        event.ts,
        paired,
        unpaired,
        direction,
        symbol,
        ShortPrice::try_from(Price(0))?,
        ShortPrice::try_from(price)?,
        ShortPrice::try_from(reference)?,
        kind,
        variation,
    ))
}

/// Every instrument is an ordinary share in good standing without a listing market and without a tier of price bands:
/// the bands here are the venue's own.
fn directory(event: &MarketEvent, instrument: &Instrument) -> Result<StockDirectory, EncodeError> {
    let round_lots_only = if instrument.lot_size.0 > 1 { YesNo::YES } else { YesNo::NO };
    Ok(StockDirectory::new(
        event.instrument,
        NO_TRACKING,
        event.ts,
        instrument.symbol,
        MarketCategory::NOT_AVAILABLE,
        FinancialStatus::NORMAL,
        Shares::try_from(instrument.lot_size)?,
        round_lots_only,
        COMMON_STOCK,
        NO_SUB_TYPE,
        Authenticity::LIVE,
        YesNo::NO,
        IpoFlag::NOT_NEW_ISSUE,
        LuldTier::NOT_AVAILABLE,
        YesNo::NO,
        U32::ZERO,
        YesNo::NO,
    ))
}

#[inline]
fn put<M: IntoBytes + Immutable>(out: &mut [u8], message: M) -> Result<usize, EncodeError> {
    let needed = size_of::<M>();
    match message.write_to_prefix(out) {
        Ok(()) => Ok(needed),
        Err(_) => Err(EncodeError::BufferTooShort { needed, len: out.len() }),
    }
}
