//! The instruments and their markets.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use tickpath_deribit::codes::{InstrumentState, InstrumentType, Kind, OptionType as VenueOption};
use tickpath_deribit::messages::Instrument as VenueInstrument;
use tickpath_gateway_protocol::{
    Fixed, InstrumentKind, Level as EventLevel, MarketState, OptionType, ReferenceData, STEPS_MAX, Text,
    TickSizeSteps,
};

use tickpath_types::Nanos;

use super::candles::Series;
use super::market::Market;
use super::news::{NewsFault, units};
use super::templates::Templates;

/// Maximum number of instruments; further ones are omitted and counted.
pub const INSTRUMENTS_MAX: usize = 20_000;
/// Shortest pause before a book that is lost repeatedly is resubscribed; the longest one follows.
const PAUSE_MIN: Nanos = Nanos(250_000_000);
const PAUSE_MAX: Nanos = Nanos::from_secs(30);
/// The venue's expiry time for an instrument that never expires, in the year 3000.
const NEVER_MS: u64 = 32_503_708_800_000;

/// An instrument and its market.
#[derive(Debug)]
pub struct Instrument {
    /// Name of the instrument at the venue.
    pub name: String,
    /// Reference data as sent to clients.
    pub reference: ReferenceData,
    /// Tick sizes that depend on the price; none if there is a single tick size.
    pub steps: Option<TickSizeSteps>,
    /// Trading state.
    pub state: MarketState,
    /// Currency by which the venue groups the instrument's orders.
    pub currency: String,
    /// Book and figures.
    pub market: Market,
    /// Candles, one series per configured length; none while the channels have no connection.
    pub series: Box<[Series]>,
    /// Counts changes of the reference data and of the candles, except those of the last candle of a length.
    /// A change restarts the instrument's part of the downloads in progress.
    pub revision: u32,
    /// Connection of the instrument's channels; none while it is closed, and if all connections are full.
    pub stream: Option<u8>,
    /// Whether the venue's last list contains the instrument.
    pub is_listed: bool,
    /// State of waiting for the book and resubscribing it.
    pub renewal: Renewal,
    /// Encoded fixed members of its order requests.
    pub templates: Box<Templates>,
}

/// State of waiting for a book and resubscribing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// Deadline for a whole book, after which it is requested again; zero when none is awaited.
    pub deadline: Nanos,
    /// Pause before the next renewal.
    pause: Nanos,
    /// Time of the last renewal.
    asked: Nanos,
}

impl Renewal {
    /// Returns the pause before a book lost now is resubscribed: none, unless it was lost recently; then
    /// twice as long each time.
    pub fn pause(&mut self, now: Nanos) -> Nanos {
        let is_quiet = now.since(self.asked) > PAUSE_MAX + self.pause;
        let pause = if is_quiet { Nanos::ZERO } else { self.pause };
        self.pause = Nanos(pause.0 * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.asked = now + pause;
        pause
    }
}

/// All instruments; an instrument's number is its index plus 1.
#[derive(Debug, Default)]
pub struct Instruments {
    list: Vec<Instrument>,
    by_name: HashMap<String, u32, FxBuildHasher>,
}

impl Instruments {
    /// Number of instruments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no instruments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All instruments, in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[Instrument] {
        &self.list
    }

    /// All instruments, mutable.
    pub fn all_mut(&mut self) -> &mut [Instrument] {
        &mut self.list
    }

    /// Returns the instrument with this number.
    #[inline]
    #[must_use]
    pub fn get(&self, symbol: u32) -> Option<&Instrument> {
        self.list.get(symbol.checked_sub(1)? as usize)
    }

    /// Returns the instrument with this number, mutable.
    #[inline]
    pub fn get_mut(&mut self, symbol: u32) -> Option<&mut Instrument> {
        self.list.get_mut(symbol.checked_sub(1)? as usize)
    }

    /// Returns the number of the instrument with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Adds or updates an instrument; returns its number, and whether it is new or has changed. `None` if the
    /// maximum number is reached.
    ///
    /// # Errors
    /// [`NewsFault`] if it cannot be represented exactly.
    pub fn enter(&mut self, venue: &VenueInstrument<'_>) -> Result<Option<(u32, bool)>, NewsFault> {
        let name = venue.instrument_name.plain().ok_or(NewsFault::Text)?;
        let reference = reference_of(venue)?;
        let steps = steps_of(venue)?;
        let state = venue.state.map_or_else(
            || if venue.is_active { MarketState::OPEN } else { MarketState::CLOSED },
            market_state,
        );
        if let Some(number) = self.number(name) {
            let known = self.get_mut(number).expect("numbers come from the list");
            let is_other = known.reference != reference || known.steps != steps;
            let is_changed = is_other || known.state != state;
            if is_other {
                known.revise();
            }
            (known.reference, known.steps, known.state, known.is_listed) = (reference, steps, state, true);
            return Ok(Some((number, is_changed)));
        }
        if self.list.len() >= INSTRUMENTS_MAX {
            return Ok(None);
        }
        let number = self.list.len() as u32 + 1;
        self.by_name.insert(name.to_owned(), number);
        let group = venue.settlement_currency.unwrap_or(venue.quote_currency);
        self.list.push(Instrument {
            name: name.to_owned(),
            reference,
            steps,
            state,
            currency: group.to_cow().into_owned(),
            market: Market::default(),
            series: Box::default(),
            revision: 0,
            stream: None,
            is_listed: true,
            renewal: Renewal::default(),
            templates: Box::default(),
        });
        Ok(Some((number, true)))
    }
}

impl Instrument {
    /// Marks that earlier events about the instrument no longer hold.
    pub const fn revise(&mut self) {
        self.revision = self.revision.wrapping_add(1);
    }

    /// Tick size at a price: that of the highest step below the price.
    #[must_use]
    pub fn tick_at(&self, price: Fixed) -> Fixed {
        let steps = self.steps.as_ref().map_or(&[][..], |steps| steps.steps());
        let passed = steps.iter().rev().find(|step| price > step.price);
        passed.map_or(self.reference.tick_size, |step| step.quantity)
    }
}

/// Converts the venue's instrument state to the state for clients.
#[must_use]
pub fn market_state(state: InstrumentState) -> MarketState {
    match state {
        InstrumentState::Open => MarketState::OPEN,
        InstrumentState::Created => MarketState::PRE_OPEN,
        InstrumentState::Halted | InstrumentState::Locked | InstrumentState::Settlement => {
            MarketState::HALTED
        }
        _ => MarketState::CLOSED,
    }
}

fn reference_of(venue: &VenueInstrument<'_>) -> Result<ReferenceData, NewsFault> {
    let kind = match venue.kind {
        Kind::Future if venue.settlement_period.is_some_and(|period| period == "perpetual") => {
            InstrumentKind::PERPETUAL
        }
        Kind::Future => InstrumentKind::FUTURE,
        Kind::Option => InstrumentKind::OPTION,
        Kind::Spot => InstrumentKind::SPOT,
        Kind::FutureCombo => InstrumentKind::FUTURE_COMBO,
        Kind::OptionCombo => InstrumentKind::OPTION_COMBO,
        _ => return Err(NewsFault::Code),
    };
    let is_inverse = venue.instrument_type == Some(InstrumentType::Reversed) && venue.kind == Kind::Future;
    let expiry_ms = venue.expiration_timestamp.filter(|at| *at < NEVER_MS).unwrap_or(0);
    Ok(ReferenceData {
        name: text(venue.instrument_name)?,
        tick_size: Fixed(units(venue.tick_size)?),
        min_quantity: Fixed(units(venue.min_trade_amount)?),
        contract_size: Fixed(venue.contract_size.map_or(Ok(0), units)?),
        strike: Fixed(venue.strike.map_or(Ok(0), units)?),
        expiry_utc_ns: expiry_ms.saturating_mul(1_000_000),
        base_currency: text(venue.base_currency)?,
        quote_currency: text(venue.quote_currency)?,
        settlement_currency: venue.settlement_currency.map_or(Ok(Text::EMPTY), text)?,
        kind,
        option: match venue.option_type {
            Some(VenueOption::Call) => OptionType::CALL,
            Some(VenueOption::Put) => OptionType::PUT,
            _ => OptionType::default(),
        },
        is_inverse: u8::from(is_inverse),
        is_active: u8::from(venue.is_active),
        ..ReferenceData::default()
    })
}

fn steps_of(venue: &VenueInstrument<'_>) -> Result<Option<TickSizeSteps>, NewsFault> {
    let Some(list) = &venue.tick_size_steps else { return Ok(None) };
    let mut steps = TickSizeSteps::default();
    for step in list.iter() {
        let step = step.map_err(|_| NewsFault::Number)?;
        let level =
            EventLevel { price: Fixed(units(step.above_price)?), quantity: Fixed(units(step.tick_size)?) };
        let place = steps.steps.get_mut(steps.count as usize).ok_or(NewsFault::Number)?;
        *place = level;
        steps.count += 1;
    }
    let used = steps.count as usize;
    steps.steps[..used.min(STEPS_MAX)].sort_by_key(|step| step.price);
    Ok((steps.count > 0).then_some(steps))
}

fn text<const N: usize>(text: tickpath_deribit::text::Text<'_>) -> Result<Text<N>, NewsFault> {
    text.plain().and_then(Text::new).ok_or(NewsFault::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_that_is_lost_again_and_again_waits_longer_each_time() {
        let mut renewal = Renewal::default();
        let mut now = Nanos::from_secs(1_000_000);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let pause = renewal.pause(now);
            pauses.push(pause.0 / 1_000_000);
            now = now + pause + Nanos::from_millis(1);
        }
        assert_eq!(pauses, [0, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(renewal.pause(now + Nanos::from_secs(100)), Nanos::ZERO);
    }
}
