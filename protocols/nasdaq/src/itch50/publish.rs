//! The venue's public events as ITCH messages, written straight into the caller's packet.

use tickpath_types::{Instrument, MarketEvent, MarketEventKind, Symbol};
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes};

use super::codes::{Authenticity, FinancialStatus, IpoFlag, LuldTier, MarketCategory, YesNo};
use super::messages::{
    AddOrder, OrderCancel, OrderDelete, OrderExecuted, OrderReplace, StockDirectory, StockTradingAction,
    SystemEvent,
};
use crate::moldudp64::PushError;
use crate::wire::{Alpha, OutOfRange, Shares, ShortPrice};

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
    }
}

/// Writes an event as its ITCH message at the start of `out` and returns the message's length.
///
/// System becomes `S`, Directory `R`, TradingAction `H`, Add `A`, Executed `E`, Reduced `X`, Deleted
/// `D`, Replaced `U`. The instrument is read for `R`, `H` and `A` alone.
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

/// Fields that have no meaning at this venue say "not available".
fn directory(event: &MarketEvent, instrument: &Instrument) -> Result<StockDirectory, EncodeError> {
    let round_lots_only = if instrument.lot_size.0 > 1 { YesNo::YES } else { YesNo::NO };
    Ok(StockDirectory::new(
        event.instrument,
        NO_TRACKING,
        event.ts,
        instrument.symbol,
        MarketCategory::NOT_AVAILABLE,
        FinancialStatus::NOT_AVAILABLE,
        Shares::try_from(instrument.lot_size)?,
        round_lots_only,
        Alpha::<1>::BLANK,
        Alpha::<2>::BLANK,
        Authenticity::LIVE,
        YesNo::NOT_AVAILABLE,
        IpoFlag::NOT_AVAILABLE,
        LuldTier::NOT_AVAILABLE,
        YesNo::NOT_AVAILABLE,
        U32::ZERO,
        YesNo::NOT_AVAILABLE,
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
