//! What the venue does with instruments and executions.

use tickpath_book::OrderBooks;
use tickpath_faults::failpoint;
use tickpath_types::{
    BrokenReason, CancelReason, CrossKind, Instrument, InstrumentId, MarketEventKind, MatchId,
    OrderEventKind, Price, SessionId, Side, TradingState,
};

use super::Engine;
use super::context::Context;
use super::listing::Listing;
use super::owner::Owner;
use crate::EventListener;
use crate::limits::check_instrument;

impl<B: OrderBooks<Owner>> Engine<B> {
    #[cold]
    pub(super) fn open_instrument(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if self.is_listed(id) {
            self.publish(id, MarketEventKind::Directory, context);
            self.set_trading_state(id, state, context);
        }
    }

    /// True for an instrument that there is; a command about another is ignored.
    fn is_listed(&mut self, id: InstrumentId) -> bool {
        let is_listed = self.listing(id).is_some();
        self.counters.ignored += u64::from(!is_listed);
        is_listed
    }

    /// Changes the state; before it trades a crossed book is uncrossed.
    #[cold]
    pub(super) fn set_trading_state(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if !self.is_listed(id) {
            return;
        }
        let best = |side| self.resting.next(id, side).map(|(_, _, order)| order.price);
        let is_crossed = match (best(Side::Buy), best(Side::Sell)) {
            (Some(bid), Some(ask)) => bid >= ask,
            _ => false,
        };
        match state == TradingState::Trading && is_crossed {
            true => self.uncross(id, CrossKind::Halt, state, context),
            false => self.change_state(id, state, context),
        }
    }

    /// Changes the state of an instrument that there is.
    pub(super) fn change_state(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if let Some(listing) = self.listings.find_mut(id) {
            listing.state = state;
        }
        self.update_listing(id);
        self.publish(id, MarketEventKind::TradingAction(state), context);
    }

    #[inline]
    pub(super) fn band(&self, id: InstrumentId) -> (Price, Price) {
        failpoint!(BandIgnored => return (Price(i64::MIN), Price(i64::MAX)));
        self.listing(id).map_or((Price(i64::MIN), Price(i64::MAX)), Listing::band)
    }

    #[cold]
    pub(super) fn set_price_band(
        &mut self,
        id: InstrumentId,
        reference: Price,
        width: Price,
        context: &mut Context<'_, impl EventListener>,
    ) {
        match self.listings.find_mut(id) {
            Some(listing) if listing.instrument.is_within_collar(reference) && width >= Price(0) => {
                (listing.band_reference, listing.band_width) = (reference, width);
                self.update_listing(id);
                if width > Price(0) {
                    self.publish_band(id, context);
                }
            }
            _ => self.counters.ignored += 1,
        }
    }

    /// Moves a band to the price of a cross.
    pub(super) fn centre_band(&mut self, id: InstrumentId, reference: Price) {
        if let Some(listing) = self.listings.find_mut(id) {
            listing.band_reference = reference;
        }
    }

    fn publish_band(&mut self, id: InstrumentId, context: &mut Context<'_, impl EventListener>) {
        let Some(listing) = self.listing(id) else { return };
        let (low, high) = listing.band();
        let reference = listing.band_reference;
        self.publish(id, MarketEventKind::PriceBand { reference, low, high }, context);
    }

    /// Trading pauses: the next trade would leave the band.
    #[cold]
    #[inline(never)]
    pub(super) fn pause(&mut self, id: InstrumentId, context: &mut Context<'_, impl EventListener>) {
        self.publish_band(id, context);
        self.change_state(id, TradingState::Paused, context);
    }

    /// Adds an instrument, halted. One that is there already or that there is no room for is ignored.
    #[cold]
    pub(super) fn add_instrument(&mut self, instrument: &Instrument) {
        let is_sound = check_instrument(instrument, &self.limits).is_ok();
        let is_added = is_sound && self.listings.add(Listing { is_added: true, ..Listing::new(*instrument) });
        self.counters.ignored += u64::from(!is_added);
    }

    /// Halts an instrument and cancels all orders in it, session by session, in the order of entry.
    #[cold]
    pub(super) fn suspend_instrument(
        &mut self,
        id: InstrumentId,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if !self.is_listed(id) {
            return;
        }
        self.change_state(id, TradingState::Halted, context);
        failpoint!(SuspensionKeepsOrders => return);
        for session in (0..self.limits.max_sessions).map(SessionId) {
            self.cancel_some(session, false, CancelReason::Supervisory, context, |engine, handle| {
                engine.resting.place_of(handle).0 == id
            });
        }
    }

    /// Makes an execution void, once, and tells both owners and the public.
    #[cold]
    pub(super) fn break_trade(
        &mut self,
        match_id: MatchId,
        reason: BrokenReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let Some(execution) = self.executions.make_void(match_id, self.last_match_id) else {
            self.counters.ignored += 1;
            return;
        };
        for (session, user_ref) in execution.orders() {
            context.tell(session, false, OrderEventKind::Broken { user_ref, match_id, reason });
        }
        self.publish(execution.instrument(), MarketEventKind::TradeBroken { match_id }, context);
    }
}
