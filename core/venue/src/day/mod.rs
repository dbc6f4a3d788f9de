//! The trading day: the commands of each of its phases, and their times.

mod expiry;
mod phases;
mod schedule;

pub(crate) use expiry::Expiries;
pub use phases::{BandWidth, Day, InstrumentSelection, ReplayedDay, commands_max, state_of};
pub use schedule::{Schedule, ScheduleStep, time_of_day};

use tickpath_types::Nanos;

/// Settings of the venue's trading day.
#[derive(Clone, Debug)]
pub struct DaySettings {
    /// Interval at which the indicative price and the imbalance of an instrument in an auction are published.
    pub imbalance_interval: Nanos,
    /// Duration of the pause after a trade that would have left the price band; an auction ends it.
    pub pause: Nanos,
    /// Width of the initial price bands, in ppm of the reference price; no band when `None`.
    pub price_band_ppm: Option<u32>,
    /// The schedule. Without it all instruments open for trading at the start, and the day ends by command.
    pub schedule: Option<Schedule>,
}

impl Default for DaySettings {
    /// No schedule and no band.
    fn default() -> Self {
        DaySettings {
            imbalance_interval: Nanos::from_secs(1),
            pause: Nanos::from_secs(5),
            price_band_ppm: None,
            schedule: None,
        }
    }
}

/// A phase of the trading day, or of one instrument in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The day starts: ITCH system events, and every instrument's definition. Instruments are halted.
    Start,
    /// Orders are accepted and do not trade; the opening auction's indicative price is published.
    PreOpen,
    /// The auction ends with its cross, or the day's trading begins; instruments trade.
    Open,
    /// An auction within the day: orders are accepted and do not trade until it is opened again.
    Auction,
    /// An auction before the closing cross.
    PreClose,
    /// The closing cross; instruments are halted.
    Close,
    /// Instruments halt; orders stay and may be cancelled.
    Halt,
    /// Instruments trade again; a crossed book is uncrossed first.
    Resume,
    /// The day ends: instruments halt, day orders are cancelled, and numbers restart.
    EndOfDay,
}

impl Phase {
    /// All phases, in the order of a day.
    pub const ALL: [Phase; 9] = [
        Phase::Start,
        Phase::PreOpen,
        Phase::Open,
        Phase::Auction,
        Phase::Halt,
        Phase::Resume,
        Phase::PreClose,
        Phase::Close,
        Phase::EndOfDay,
    ];

    /// Name in configurations and commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Start => "start",
            Phase::PreOpen => "pre-open",
            Phase::Open => "open",
            Phase::Auction => "auction",
            Phase::PreClose => "pre-close",
            Phase::Close => "close",
            Phase::Halt => "halt",
            Phase::Resume => "resume",
            Phase::EndOfDay => "end-of-day",
        }
    }

    /// The phase with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// True for phases that start a day when none is in progress; all others belong to a started day.
    #[must_use]
    pub const fn starts_day(self) -> bool {
        matches!(self, Phase::Start | Phase::PreOpen | Phase::Open)
    }

    /// True for phases of the whole venue, which never apply to one instrument.
    #[must_use]
    pub const fn is_of_venue(self) -> bool {
        matches!(self, Phase::Start | Phase::EndOfDay)
    }
}
