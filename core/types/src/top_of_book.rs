//! Top of book of one instrument, in less than a cache line.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{BookHealth, MarketUpdate, Price, PriceLevel, Qty, SuspectReason, TradingState, UpdateKind};

/// Best prices, last trade and state of one instrument, as stored in a symbol cache.
///
/// Fixed-size plain data without padding: seven words, which fill one cache line together with the sequence
/// word of a seqlock entry. All zeros means that nothing is known about the instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TopOfBook {
    /// Best bid.
    pub bid: PriceLevel,
    /// Best ask.
    pub ask: PriceLevel,
    /// Price of the last trade; meaningless while `last_qty` is 0.
    pub last_price: i64,
    /// Time of the last update in nanoseconds. The writer chooses the origin: the latest midnight at the
    /// venue, or the Unix epoch.
    pub ts_event: u64,
    /// Quantity of the last trade; 0 without a trade; [`u32::MAX`] if it does not fit.
    pub last_qty: u32,
    /// Code of the [`BookHealth`].
    pub health: u8,
    /// ITCH letter of a [`TradingState`]; 0 if unknown.
    pub trading_state: u8,
    /// Code of the [`SuspectReason`] while the book is suspect; 0 otherwise or if unknown.
    pub suspect_reason: u8,
    /// Always zero.
    pub reserved: u8,
}

const _: () = assert!(size_of::<TopOfBook>() == 56 && align_of::<TopOfBook>() == 8);

impl TopOfBook {
    /// Copies best prices, health and time from an update; from a trade also the last trade, from a status
    /// update also the trading state and the suspect reason.
    #[inline]
    pub fn apply(&mut self, update: &MarketUpdate) {
        (self.bid, self.ask) = (update.bid, update.ask);
        self.ts_event = update.ts_event;
        self.health = update.health;
        // Branchless, because a CPU cannot predict which updates are trades.
        let is_trade = update.kind == UpdateKind::Trade as u8;
        let last_qty = u32::try_from(update.qty).unwrap_or(u32::MAX);
        self.last_price = if is_trade { update.price } else { self.last_price };
        self.last_qty = if is_trade { last_qty } else { self.last_qty };
        if update.kind == UpdateKind::Status as u8 {
            self.set_status(update);
        }
    }

    #[cold]
    fn set_status(&mut self, update: &MarketUpdate) {
        self.suspect_reason = update.reason;
        // Updates carry no trading state until the venue publishes the first one.
        if update.trading != 0 {
            self.trading_state = update.trading;
        }
    }

    /// Sets price and quantity of the last trade.
    #[inline]
    pub fn set_last(&mut self, price: Price, qty: Qty) {
        self.last_price = price.0;
        self.last_qty = u32::try_from(qty.0).unwrap_or(u32::MAX);
    }

    /// Best bid and its quantity; `None` without bids.
    #[must_use]
    #[inline]
    pub const fn bid(&self) -> Option<(Price, Qty)> {
        self.bid.get()
    }

    /// Best ask and its quantity; `None` without asks.
    #[must_use]
    #[inline]
    pub const fn ask(&self) -> Option<(Price, Qty)> {
        self.ask.get()
    }

    /// Price and quantity of the last trade; `None` before the first.
    #[must_use]
    #[inline]
    pub const fn last(&self) -> Option<(Price, Qty)> {
        if self.last_qty == 0 { None } else { Some((Price(self.last_price), Qty(self.last_qty as u64))) }
    }

    /// Health of the book; an unknown code counts as suspect.
    #[must_use]
    #[inline]
    pub const fn health(&self) -> BookHealth {
        BookHealth::or_suspect(self.health)
    }

    /// Reason why the book is suspect, if known.
    #[must_use]
    #[inline]
    pub const fn suspect_reason(&self) -> Option<SuspectReason> {
        SuspectReason::from_code(self.suspect_reason)
    }

    /// Trading state of the instrument; `None` if unknown.
    #[must_use]
    #[inline]
    pub const fn trading_state(&self) -> Option<TradingState> {
        TradingState::from_code(self.trading_state)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_matches_the_document() {
        let offsets = [
            offset_of!(TopOfBook, bid.price),
            offset_of!(TopOfBook, bid.qty),
            offset_of!(TopOfBook, ask.price),
            offset_of!(TopOfBook, ask.qty),
            offset_of!(TopOfBook, last_price),
            offset_of!(TopOfBook, ts_event),
            offset_of!(TopOfBook, last_qty),
            offset_of!(TopOfBook, health),
            offset_of!(TopOfBook, trading_state),
            offset_of!(TopOfBook, suspect_reason),
            offset_of!(TopOfBook, reserved),
        ];
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 48, 52, 53, 54, 55]);
    }

    #[test]
    fn updates_leave_prices_and_trades_stay() {
        let mut quote = TopOfBook::default();
        assert_eq!((quote.bid(), quote.ask(), quote.last(), quote.trading_state()), (None, None, None, None));
        let trade = MarketUpdate {
            kind: UpdateKind::Trade as u8,
            price: 1_000_100,
            qty: 1 << 40,
            bid: PriceLevel { price: 1_000_000, qty: 5 },
            ts_event: 7,
            ..MarketUpdate::default()
        };
        quote.apply(&trade);
        assert_eq!(quote.last(), Some((Price(1_000_100), Qty(u32::MAX.into()))));
        quote.apply(&MarketUpdate {
            kind: UpdateKind::Delete as u8,
            bid: PriceLevel::default(),
            ask: PriceLevel { price: 0, qty: 3 },
            health: 9,
            ..trade
        });
        assert_eq!((quote.bid(), quote.ask()), (None, Some((Price(0), Qty(3)))));
        assert_eq!((quote.last_price, quote.health()), (1_000_100, BookHealth::Suspect));
        let status = MarketUpdate {
            kind: UpdateKind::Status as u8,
            health: BookHealth::Suspect as u8,
            reason: SuspectReason::Crossed as u8,
            trading: TradingState::Paused as u8,
            ..trade
        };
        quote.apply(&status);
        assert_eq!(quote.trading_state(), Some(TradingState::Paused));
        assert_eq!(quote.suspect_reason(), Some(SuspectReason::Crossed));
        quote.apply(&MarketUpdate { health: 0, reason: 0, trading: 0, ..status });
        assert_eq!((quote.trading_state(), quote.suspect_reason()), (Some(TradingState::Paused), None));
    }
}
