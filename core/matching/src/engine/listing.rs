//! Instruments and their state.

use tickpath_faults::failpoint;
use tickpath_types::{Instrument, InstrumentId, Price, TradingState};

use super::grid::Grid;

#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub(super) instrument: Instrument,
    pub(super) state: TradingState,
    /// True while the instrument trades without price band or undisplayed orders: see `Matcher::check_plain`.
    pub(super) is_plain: bool,
    pub(super) has_stops: bool,
    pub(super) grid: Grid,
    /// True for an instrument added during the day.
    pub(super) is_added: bool,
    /// Price of the last trade; zero before the first.
    pub(super) last_price: Price,
    pub(super) band_reference: Price,
    /// Maximum distance of a trade from `band_reference`; zero for no band.
    pub(super) band_width: Price,
}

impl Listing {
    /// A halted instrument without a trade, a price band or stop orders.
    pub(super) fn new(instrument: Instrument) -> Listing {
        Listing {
            instrument,
            state: TradingState::Halted,
            is_plain: false,
            has_stops: false,
            grid: Grid::new(&instrument),
            is_added: false,
            last_price: Price(0),
            band_reference: Price(0),
            band_width: Price(0),
        }
    }

    /// Updates `has_stops`, and `is_plain` for the current state and band.
    pub(super) fn update(&mut self, has_hidden: bool, has_stops: bool) {
        self.has_stops = has_stops;
        self.is_plain = self.state == TradingState::Trading && !has_hidden && self.band_width == Price(0);
    }

    /// The lowest and the highest price at which trading does not pause. Both lie within the collar: nothing
    /// trades outside it, and market data could not encode prices far outside.
    #[inline]
    pub(super) fn band(&self) -> (Price, Price) {
        let Listing { band_reference: Price(reference), band_width: Price(width), .. } = *self;
        let Instrument { collar_low, collar_high, .. } = self.instrument;
        if width == 0 {
            return (collar_low, collar_high);
        }
        let low = collar_low.max(Price(reference.saturating_sub(width)));
        let high = collar_high.min(Price(reference.saturating_add(width)));
        (low, high)
    }
}

/// The instruments by id.
#[derive(Clone, Debug)]
pub(super) struct Listings(Vec<Option<Listing>>);

impl Listings {
    /// Empty, with capacity for ids up to `max`.
    pub(super) fn new(max: InstrumentId) -> Listings {
        Listings(vec![None; usize::from(max.0) + 1])
    }

    #[inline]
    pub(super) fn find(&self, id: InstrumentId) -> Option<&Listing> {
        self.0.get(usize::from(id.0))?.as_ref()
    }

    #[inline]
    pub(super) fn find_mut(&mut self, id: InstrumentId) -> Option<&mut Listing> {
        self.0.get_mut(usize::from(id.0))?.as_mut()
    }

    /// The lowest and the highest price at which trading in an instrument does not pause.
    #[inline]
    pub(super) fn band(&self, id: InstrumentId) -> (Price, Price) {
        let unbounded = (Price(i64::MIN), Price(i64::MAX));
        failpoint!(BandIgnored => return unbounded);
        self.find(id).map_or(unbounded, Listing::band)
    }

    /// Adds an instrument; false when its id is taken, zero, or above the `max` given at creation.
    pub(super) fn add(&mut self, listing: Listing) -> bool {
        let id = listing.instrument.id;
        match self.0.get_mut(usize::from(id.0)) {
            Some(place @ None) if id.0 != 0 => {
                *place = Some(listing);
                true
            }
            _ => false,
        }
    }

    /// All instruments, by ascending id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Listing> {
        self.0.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Listing> {
        self.0.iter_mut().flatten()
    }

    /// The ids, ascending.
    pub(super) fn ids(&self) -> impl Iterator<Item = InstrumentId> {
        self.iter().map(|listing| listing.instrument.id)
    }
}
