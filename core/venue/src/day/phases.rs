//! Translates the phases of the trading day into commands of the log.

use std::sync::Arc;

use arrayvec::ArrayVec;
use tickpath_lockfree::Counter;
use tickpath_matching::CommandKind;
use tickpath_types::{
    CrossKind, Instrument, InstrumentId, InstrumentTable, Nanos, Price, SystemEventCode, TradingState,
};

use super::schedule::SchedulePosition;
use super::{DaySettings, Phase};
use crate::log_command::{LogCommandKind, VenueCommandKind};

/// Maximum number of a phase's commands per instrument: definition, band, state, and imbalance or cross.
const COMMANDS_PER_INSTRUMENT: usize = 4;
/// Upper bound on the number of a phase's other commands: system events, end of day, schedule step, expiry.
const COMMANDS_OF_VENUE: usize = 8;
const SYSTEM_EVENTS_MAX: usize = 6;
/// Value of `paused_since` once the command that ends the pause is emitted, so that no second one follows.
const RESUMING: Nanos = Nanos(u64::MAX);

/// Maximum number of commands of one phase, with instrument ids up to `max_id`.
#[must_use]
pub const fn commands_max(max_id: InstrumentId) -> usize {
    COMMANDS_PER_INSTRUMENT * max_id.0 as usize + COMMANDS_OF_VENUE
}

/// The state of the trading day that a replay of the log yields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayedDay {
    /// System events of the current day.
    pub system_events: Vec<SystemEventCode>,
    /// Instruments for which the log has an `OpenInstrument` command in the current day.
    pub opened: Vec<InstrumentId>,
    /// Kind of cross in the latest imbalance of each instrument that had one in the current day.
    pub crosses: Vec<(InstrumentId, CrossKind)>,
    /// The last completed schedule step: its day, counted from 1970-01-01, and its second of the day.
    pub schedule: Option<(u32, u32)>,
}

impl ReplayedDay {
    /// Updates the state for a command of the log.
    pub fn update(&mut self, kind: &LogCommandKind) {
        use LogCommandKind::{Engine, Venue};
        match *kind {
            Engine(CommandKind::System(system_event)) => {
                if system_event == SystemEventCode::StartOfMessages {
                    self.system_events.clear();
                }
                if !self.system_events.contains(&system_event) {
                    self.system_events.push(system_event);
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
            // The next day begins without system events, opened instruments and crosses.
            Engine(CommandKind::EndDay) => {
                self.system_events.clear();
                self.opened.clear();
                self.crosses.clear();
            }
            _ => {}
        }
    }
}

/// The trading day in progress: translates phases into commands, and emits the commands that are due.
///
/// Reads no clock and allocates nothing after creation.
pub struct Day {
    /// Settings of the day.
    pub settings: DaySettings,
    instruments: InstrumentTable,
    /// Code of each instrument's [`TradingState`] as last set by the matcher, indexed by instrument id.
    states: Arc<[Counter]>,
    system_events: ArrayVec<SystemEventCode, SYSTEM_EVENTS_MAX>,
    /// State of each instrument within the day, indexed by instrument id.
    listings: Box<[Listing]>,
    next_imbalance: Nanos,
    /// Position of the next schedule step; `None` before the first call of `step`.
    position: Option<SchedulePosition>,
    /// The last schedule step completed before the venue's start, as in [`ReplayedDay::schedule`].
    done: Option<(u32, u32)>,
}

/// An instrument's state within the day.
#[derive(Clone, Copy)]
struct Listing {
    is_opened: bool,
    /// Kind of the cross that ends the instrument's auction.
    cross: CrossKind,
    /// Start of the trading pause; zero when the instrument is not paused.
    paused_since: Nanos,
}

impl Day {
    /// Creates the day from `replayed`, the state that results from the log.
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
            system_events: replayed.system_events.iter().copied().take(SYSTEM_EVENTS_MAX).collect(),
            listings,
            next_imbalance: Nanos::ZERO,
            position: None,
            done: replayed.schedule,
        }
    }

    /// Maximum number of commands that one phase can need with the current instruments.
    pub fn commands_max(&self) -> usize {
        commands_max(InstrumentId(self.instruments.next_id().0 - 1))
    }

    /// Passes the commands of a phase for the selected instruments to `emit`.
    pub fn begin(
        &mut self,
        phase: Phase,
        selection: InstrumentSelection<'_>,
        emit: &mut impl FnMut(CommandKind),
    ) {
        match phase {
            Phase::Start => self.start(emit),
            Phase::EndOfDay => self.end(emit),
            Phase::PreOpen => self.call_auction(CrossKind::Opening, selection, emit),
            Phase::Auction => self.call_auction(CrossKind::Intraday, selection, emit),
            Phase::PreClose => self.call_auction(CrossKind::Closing, selection, emit),
            Phase::Open => {
                self.start(emit);
                self.reach(SystemEventCode::StartOfMarketHours, emit);
                self.each(selection, |day, id| {
                    if day.state(id) != TradingState::Trading {
                        let kind = day.cross(id);
                        emit(CommandKind::Uncross { instrument: id, kind, state: TradingState::Trading });
                        day.listings[usize::from(id.0)].cross = CrossKind::Halt;
                    }
                });
            }
            Phase::Close => {
                if matches!(selection, InstrumentSelection::All) {
                    self.reach(SystemEventCode::EndOfMarketHours, emit);
                }
                self.each(selection, |day, id| {
                    if day.state(id) != TradingState::Halted {
                        let state = TradingState::Halted;
                        emit(CommandKind::Uncross { instrument: id, kind: CrossKind::Closing, state });
                    }
                });
            }
            Phase::Halt | Phase::Resume => {
                let state = if phase == Phase::Halt { TradingState::Halted } else { TradingState::Trading };
                self.each(selection, |_, id| emit(CommandKind::SetTradingState { instrument: id, state }));
            }
        }
    }

    /// The command that sets a price band around `reference`, by default the instrument's reference price.
    /// With [`BandWidth::Off`] the command removes the band.
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

    /// If a day is in progress, opens the instruments that were added while the venue was down.
    pub fn open_more(&mut self, emit: &mut impl FnMut(CommandKind)) {
        if self.has_started() {
            self.open_listings(TradingState::Halted, emit);
        }
    }

    /// Starts a day without a schedule, with all instruments trading. Omits commands already in the log.
    pub fn open_at_once(&mut self, emit: &mut impl FnMut(CommandKind)) {
        self.reach(SystemEventCode::StartOfMessages, emit);
        self.reach(SystemEventCode::StartOfSystemHours, emit);
        self.open_listings(TradingState::Trading, emit);
        self.reach(SystemEventCode::StartOfMarketHours, emit);
    }

    /// If a day is in progress, emits the system events that end it. Called at shutdown, if the session
    /// does not continue after a restart.
    pub fn end_session(&mut self, emit: &mut impl FnMut(CommandKind)) {
        if self.has_reached(SystemEventCode::StartOfMessages) {
            for system_event in [
                SystemEventCode::EndOfMarketHours,
                SystemEventCode::EndOfSystemHours,
                SystemEventCode::EndOfMessages,
            ] {
                self.reach(system_event, emit);
            }
        }
    }

    /// Emits the commands due at `now` that end pauses and publish imbalances. The caller adds order expiry.
    pub fn tick(&mut self, now: Nanos, emit: &mut impl FnMut(CommandKind)) {
        // The first tick only starts the interval: an auction publishes its first imbalance when it begins.
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

    /// Begins the due schedule step, if any; returns whether there was one.
    pub fn step(&mut self, now: Nanos, emit: &mut impl FnMut(LogCommandKind)) -> bool {
        let Some(schedule) = self.settings.schedule.take() else { return false };
        let position = *self.position.get_or_insert_with(|| schedule.position_after(self.done, now));
        let due = schedule.due(position, now);
        if let Some((step, next)) = due {
            // If the administrator has ended the day, the remaining steps of that day are skipped.
            if self.has_started() || step.phase.starts_day() {
                let selection =
                    step.instruments.as_deref().map_or(InstrumentSelection::All, InstrumentSelection::Listed);
                self.begin(step.phase, selection, &mut |kind| emit(kind.into()));
            }
            self.position = Some(next);
            // Steps of the same second are recorded as done together, so a restart repeats all or none.
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

    /// The instrument's trading state as last set by the matcher.
    #[must_use]
    pub fn state(&self, id: InstrumentId) -> TradingState {
        state_of(&self.states, id)
    }

    fn has_reached(&self, system_event: SystemEventCode) -> bool {
        self.system_events.contains(&system_event)
    }

    fn reach(&mut self, system_event: SystemEventCode, emit: &mut impl FnMut(CommandKind)) {
        if !self.has_reached(system_event) {
            if system_event == SystemEventCode::StartOfMessages {
                self.system_events.clear();
            }
            self.system_events.push(system_event);
            emit(CommandKind::System(system_event));
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

    /// Opens an instrument in the trading state `state`, unless it was opened in the current day.
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

    fn call_auction(
        &mut self,
        kind: CrossKind,
        selection: InstrumentSelection<'_>,
        emit: &mut impl FnMut(CommandKind),
    ) {
        self.start(emit);
        self.each(selection, |day, instrument| {
            day.listings[usize::from(instrument.0)].cross = kind;
            emit(CommandKind::SetTradingState { instrument, state: TradingState::QuotationOnly });
            emit(CommandKind::PublishImbalance { instrument, kind });
        });
    }

    /// Kind of the cross that would end the instrument's current auction or pause.
    fn cross(&self, id: InstrumentId) -> CrossKind {
        let next = self.listings[usize::from(id.0)].cross;
        if self.state(id) == TradingState::Paused { CrossKind::Halt } else { next }
    }

    fn end(&mut self, emit: &mut impl FnMut(CommandKind)) {
        if !self.has_started() {
            return;
        }
        self.reach(SystemEventCode::EndOfMarketHours, emit);
        self.each(InstrumentSelection::All, |_, instrument| {
            emit(CommandKind::SetTradingState { instrument, state: TradingState::Halted });
        });
        self.reach(SystemEventCode::EndOfSystemHours, emit);
        emit(CommandKind::EndDay);
        self.system_events.clear();
        self.listings.iter_mut().for_each(|listing| listing.is_opened = false);
        self.reach(SystemEventCode::EndOfMessages, emit);
    }

    fn each(&mut self, selection: InstrumentSelection<'_>, mut begin: impl FnMut(&mut Day, InstrumentId)) {
        match selection {
            InstrumentSelection::One(id) => begin(self, id),
            InstrumentSelection::Listed(ids) => ids.iter().for_each(|id| begin(self, *id)),
            InstrumentSelection::All => {
                (1..self.instruments.next_id().0).for_each(|id| begin(self, InstrumentId(id)))
            }
        }
    }
}

/// The instruments to which a phase applies.
#[derive(Clone, Copy, Debug)]
pub enum InstrumentSelection<'a> {
    /// One instrument.
    One(InstrumentId),
    /// The instruments with these ids.
    Listed(&'a [InstrumentId]),
    /// All instruments.
    All,
}

/// Width of a price band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandWidth {
    /// No band.
    Off,
    /// Distance of each edge in ppm of the reference price, rounded down to a tick, at least one tick.
    Ppm(u32),
    /// Distance of each edge from the reference price.
    Price(Price),
}

/// The instrument's trading state as last set by the matcher; halted when unknown.
#[must_use]
pub fn state_of(states: &[Counter], id: InstrumentId) -> TradingState {
    let code = states.get(usize::from(id.0)).map_or(0, Counter::read) as u8;
    TradingState::from_code(code).unwrap_or(TradingState::Halted)
}
