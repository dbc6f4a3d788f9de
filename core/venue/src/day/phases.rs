//! The commands that each phase is made of.

use std::sync::Arc;

use arrayvec::ArrayVec;
use tickpath_lockfree::Counter;
use tickpath_matching::CommandKind;
use tickpath_types::{
    CrossKind, Instrument, InstrumentId, InstrumentTable, Nanos, Price, SystemEventCode, TradingState,
};

use super::schedule::Place;
use super::{DaySettings, Phase};
use crate::log_command::{LogCommandKind, VenueCommandKind};

/// Most commands of a phase for each instrument: its definition, band, state, imbalance and cross.
const COMMANDS_PER_INSTRUMENT: usize = 4;
/// Most that it needs beside those: four stages, the end of the day, how far the schedule is, orders that expire.
const COMMANDS_OF_VENUE: usize = 8;
const STAGES: usize = 6;
/// No pause is due for an instrument that has been told to resume.
const RESUMING: Nanos = Nanos(u64::MAX);

/// The most commands that one phase of so many instruments needs.
#[must_use]
pub const fn commands_max(max_id: InstrumentId) -> usize {
    COMMANDS_PER_INSTRUMENT * max_id.0 as usize + COMMANDS_OF_VENUE
}

/// The state of the day as it follows from the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayedDay {
    /// Stages that were reached.
    pub stages: Vec<SystemEventCode>,
    /// Instruments that were opened.
    pub opened: Vec<InstrumentId>,
    /// The last cross that was announced for each instrument that had one.
    pub crosses: Vec<(InstrumentId, CrossKind)>,
    /// Day and second of the last step of the schedule that was carried out.
    pub schedule: Option<(u32, u32)>,
}

impl ReplayedDay {
    /// Takes note of a command of the log.
    pub fn note(&mut self, kind: &LogCommandKind) {
        use LogCommandKind::{Engine, Venue};
        match *kind {
            Engine(CommandKind::System(stage)) => {
                if stage == SystemEventCode::StartOfMessages {
                    self.stages.clear();
                }
                if !self.stages.contains(&stage) {
                    self.stages.push(stage);
                }
            }
            Engine(CommandKind::OpenInstrument { instrument, .. }) if !self.opened.contains(&instrument) => {
                self.opened.push(instrument);
            }
            Engine(CommandKind::PublishImbalance { instrument, kind }) => {
                match self.crosses.iter_mut().find(|(known, _)| *known == instrument) {
                    Some(known) => known.1 = kind,
                    None => self.crosses.push((instrument, kind)),
                }
            }
            Venue(VenueCommandKind::ScheduleDone { day, second }) => self.schedule = Some((day, second)),
            // A new day: its stages and instruments come again.
            Engine(CommandKind::EndDay) => {
                self.stages.clear();
                self.opened.clear();
                self.crosses.clear();
            }
            _ => {}
        }
    }
}

/// The venue's day while it goes on: turns phases into commands, and says which are due.
///
/// Reads no clock and allocates nothing after creation.
pub struct Day {
    /// The settings that it was made with.
    pub settings: DaySettings,
    instruments: InstrumentTable,
    /// A [`TradingState`]'s code for each instrument id, as the matcher left it.
    states: Arc<[Counter]>,
    stages: ArrayVec<SystemEventCode, STAGES>,
    /// By instrument id.
    listings: Box<[Listing]>,
    next_imbalance: Nanos,
    /// Where the schedule goes on, once that is known.
    place: Option<Place>,
    /// Day and second of its last step that was carried out before the venue was started.
    done: Option<(u32, u32)>,
}

/// What the day knows of an instrument.
#[derive(Clone, Copy)]
struct Listing {
    is_opened: bool,
    /// The cross that ends its auction.
    cross: CrossKind,
    /// Since when it pauses, zero when it does not.
    paused_since: Nanos,
}

impl Day {
    /// The day as far as the log has led it.
    #[must_use]
    pub fn new(
        settings: DaySettings,
        instruments: InstrumentTable,
        states: Arc<[Counter]>,
        replayed: &ReplayedDay,
    ) -> Day {
        let listing = Listing { is_opened: false, cross: CrossKind::Opening, paused_since: Nanos::ZERO };
        let mut listings = vec![listing; usize::from(instruments.max_id().0) + 1].into_boxed_slice();
        for id in &replayed.opened {
            if let Some(listing) = listings.get_mut(usize::from(id.0)) {
                listing.is_opened = true;
            }
        }
        for (id, cross) in &replayed.crosses {
            if let Some(listing) = listings.get_mut(usize::from(id.0)) {
                listing.cross = *cross;
            }
        }
        Day {
            settings,
            instruments,
            states,
            stages: replayed.stages.iter().copied().take(STAGES).collect(),
            listings,
            next_imbalance: Nanos::ZERO,
            place: None,
            done: replayed.schedule,
        }
    }

    /// The most commands that one phase needs at present.
    pub fn commands_max(&self) -> usize {
        commands_max(InstrumentId(self.instruments.next_id().0 - 1))
    }

    /// Gives `emit` the commands of a phase, for one instrument, for those listed, or for all.
    pub fn begin(&mut self, phase: Phase, which: Which<'_>, emit: &mut impl FnMut(CommandKind)) {
        match phase {
            Phase::Start => self.start(emit),
            Phase::EndOfDay => self.end(emit),
            Phase::PreOpen => self.call_auction(CrossKind::Opening, which, emit),
            Phase::Auction => self.call_auction(CrossKind::Intraday, which, emit),
            Phase::PreClose => self.call_auction(CrossKind::Closing, which, emit),
            Phase::Open => {
                self.start(emit);
                self.reach(SystemEventCode::StartOfMarketHours, emit);
                self.each(which, |day, id| {
                    if day.state(id) != TradingState::Trading {
                        let kind = day.cross(id);
                        emit(CommandKind::Uncross { instrument: id, kind, state: TradingState::Trading });
                        day.listings[usize::from(id.0)].cross = CrossKind::Halt;
                    }
                });
            }
            Phase::Close => {
                if matches!(which, Which::All) {
                    self.reach(SystemEventCode::EndOfMarketHours, emit);
                }
                self.each(which, |day, id| {
                    if day.state(id) != TradingState::Halted {
                        let state = TradingState::Halted;
                        emit(CommandKind::Uncross { instrument: id, kind: CrossKind::Closing, state });
                    }
                });
            }
            Phase::Halt | Phase::Resume => {
                let state = if phase == Phase::Halt { TradingState::Halted } else { TradingState::Trading };
                self.each(which, |_, id| emit(CommandKind::SetTradingState { instrument: id, state }));
            }
        }
    }

    /// A band around `reference`, or around the instrument's reference price; `width` of zero ends it.
    pub fn band(instrument: &Instrument, width: BandWidth, reference: Option<Price>) -> CommandKind {
        let reference = reference.unwrap_or(instrument.reference_price);
        let width = match width {
            BandWidth::Off => Price(0),
            BandWidth::Price(width) => width,
            BandWidth::Ppm(ppm) => {
                let exact = i128::from(reference.0) * i128::from(ppm) / 1_000_000;
                let tick = instrument.tick_size.0;
                Price((exact as i64 / tick * tick).max(tick))
            }
        };
        CommandKind::SetPriceBand { instrument: instrument.id, reference, width }
    }

    /// What opens the instruments that came while the venue was down, if its day goes on.
    pub fn open_more(&mut self, emit: &mut impl FnMut(CommandKind)) {
        if self.has_started() {
            self.open_listings(TradingState::Halted, emit);
        }
    }

    /// The venue's first commands without a schedule, as far as the log has not got them: all instruments trade.
    pub fn open_at_once(&mut self, emit: &mut impl FnMut(CommandKind)) {
        self.reach(SystemEventCode::StartOfMessages, emit);
        self.reach(SystemEventCode::StartOfSystemHours, emit);
        self.open_listings(TradingState::Trading, emit);
        self.reach(SystemEventCode::StartOfMarketHours, emit);
    }

    /// The last commands of a session that does not go on.
    pub fn end_session(&mut self, emit: &mut impl FnMut(CommandKind)) {
        if self.has_reached(SystemEventCode::StartOfMessages) {
            for stage in [
                SystemEventCode::EndOfMarketHours,
                SystemEventCode::EndOfSystemHours,
                SystemEventCode::EndOfMessages,
            ] {
                self.reach(stage, emit);
            }
        }
    }

    /// What is due by the clock alone, beside orders that expire: pauses that are over, and imbalances.
    pub fn tick(&mut self, now: Nanos, emit: &mut impl FnMut(CommandKind)) {
        // An auction publishes its first imbalance as it begins.
        let is_published = self.next_imbalance != Nanos::ZERO && now >= self.next_imbalance;
        if is_published || self.next_imbalance == Nanos::ZERO {
            self.next_imbalance = now + self.settings.imbalance_interval;
        }
        for id in (1..self.instruments.next_id().0).map(InstrumentId) {
            let state = self.state(id);
            let listing = &mut self.listings[usize::from(id.0)];
            if state != TradingState::Paused {
                listing.paused_since = Nanos::ZERO;
                if state == TradingState::QuotationOnly && is_published {
                    emit(CommandKind::PublishImbalance { instrument: id, kind: listing.cross });
                }
                continue;
            }
            if listing.paused_since == Nanos::ZERO {
                listing.paused_since = now;
            } else if listing.paused_since != RESUMING && now >= listing.paused_since + self.settings.pause {
                listing.paused_since = RESUMING;
                let state = TradingState::Trading;
                emit(CommandKind::Uncross { instrument: id, kind: CrossKind::Halt, state });
                continue;
            }
            if is_published {
                emit(CommandKind::PublishImbalance { instrument: id, kind: CrossKind::Halt });
            }
        }
    }

    /// Begins the step of the schedule that is due, if one is; true when one was.
    pub fn step(&mut self, now: Nanos, emit: &mut impl FnMut(LogCommandKind)) -> bool {
        let Some(schedule) = self.settings.schedule.take() else { return false };
        let place = *self.place.get_or_insert_with(|| schedule.place_after(self.done, now));
        let due = schedule.due(place, now);
        if let Some((step, next)) = due {
            // What is left of a day that was ended by command is left out.
            if self.has_started() || step.phase.starts_day() {
                let which = step.instruments.as_deref().map_or(Which::All, Which::Listed);
                self.begin(step.phase, which, &mut |kind| emit(kind.into()));
            }
            self.place = Some(next);
            // Steps of one second are done together, or again together.
            if schedule.steps.get(next.step).is_none_or(|after| after.second != step.second) {
                emit(VenueCommandKind::ScheduleDone { day: next.day, second: step.second }.into());
            }
        }
        let was_due = due.is_some();
        self.settings.schedule = Some(schedule);
        was_due
    }

    /// True between the start and the end of the day.
    pub fn has_started(&self) -> bool {
        self.has_reached(SystemEventCode::StartOfMessages)
    }

    /// The state of an instrument, as far as the matcher has come.
    #[must_use]
    pub fn state(&self, id: InstrumentId) -> TradingState {
        state_of(&self.states, id)
    }

    fn has_reached(&self, stage: SystemEventCode) -> bool {
        self.stages.contains(&stage)
    }

    fn reach(&mut self, stage: SystemEventCode, emit: &mut impl FnMut(CommandKind)) {
        if !self.has_reached(stage) {
            if stage == SystemEventCode::StartOfMessages {
                self.stages.clear();
            }
            self.stages.push(stage);
            emit(CommandKind::System(stage));
        }
    }

    fn start(&mut self, emit: &mut impl FnMut(CommandKind)) {
        self.reach(SystemEventCode::StartOfMessages, emit);
        self.reach(SystemEventCode::StartOfSystemHours, emit);
        self.open_listings(TradingState::Halted, emit);
    }

    fn open_listings(&mut self, state: TradingState, emit: &mut impl FnMut(CommandKind)) {
        for id in 1..self.instruments.next_id().0 {
            self.open_new(InstrumentId(id), state, emit);
        }
    }

    /// Opens an instrument in a state, unless it is opened already.
    pub fn open_new(&mut self, id: InstrumentId, state: TradingState, emit: &mut impl FnMut(CommandKind)) {
        let Some(instrument) = self.instruments.get(id) else { return };
        let listing = &mut self.listings[usize::from(id.0)];
        if listing.is_opened {
            return;
        }
        listing.is_opened = true;
        listing.cross = CrossKind::Opening;
        emit(CommandKind::OpenInstrument { instrument: id, state });
        if let Some(ppm) = self.settings.price_band_ppm {
            emit(Day::band(instrument, BandWidth::Ppm(ppm), None));
        }
    }

    fn call_auction(&mut self, kind: CrossKind, which: Which<'_>, emit: &mut impl FnMut(CommandKind)) {
        self.start(emit);
        self.each(which, |day, instrument| {
            day.listings[usize::from(instrument.0)].cross = kind;
            emit(CommandKind::SetTradingState { instrument, state: TradingState::QuotationOnly });
            emit(CommandKind::PublishImbalance { instrument, kind });
        });
    }

    /// The cross that would end what an instrument is in.
    fn cross(&self, id: InstrumentId) -> CrossKind {
        let next = self.listings[usize::from(id.0)].cross;
        if self.state(id) == TradingState::Paused { CrossKind::Halt } else { next }
    }

    fn end(&mut self, emit: &mut impl FnMut(CommandKind)) {
        if !self.has_started() {
            return;
        }
        self.reach(SystemEventCode::EndOfMarketHours, emit);
        self.each(Which::All, |_, instrument| {
            emit(CommandKind::SetTradingState { instrument, state: TradingState::Halted });
        });
        self.reach(SystemEventCode::EndOfSystemHours, emit);
        emit(CommandKind::EndDay);
        self.stages.clear();
        self.listings.iter_mut().for_each(|listing| listing.is_opened = false);
        self.reach(SystemEventCode::EndOfMessages, emit);
    }

    fn each(&mut self, which: Which<'_>, mut begin: impl FnMut(&mut Day, InstrumentId)) {
        match which {
            Which::One(id) => begin(self, id),
            Which::Listed(ids) => ids.iter().for_each(|id| begin(self, *id)),
            Which::All => (1..self.instruments.next_id().0).for_each(|id| begin(self, InstrumentId(id))),
        }
    }
}

/// The instruments that a phase is for.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// One instrument.
    One(InstrumentId),
    /// These instruments.
    Listed(&'a [InstrumentId]),
    /// All instruments.
    All,
}

/// How wide a price band is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandWidth {
    /// There is none.
    Off,
    /// So much of the reference price, in parts per million, rounded down to a tick and at least one.
    Ppm(u32),
    /// So much on each side.
    Price(Price),
}

/// The state that an instrument is in, as far as the matcher has come.
#[must_use]
pub fn state_of(states: &[Counter], id: InstrumentId) -> TradingState {
    let code = states.get(usize::from(id.0)).map_or(0, Counter::read) as u8;
    TradingState::from_code(code).unwrap_or(TradingState::Halted)
}
