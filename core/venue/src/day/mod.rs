//! The trading day: its phases, their commands, and the schedule.

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
    /// Interval between two publications of the indicative price and imbalance in an auction.
    pub imbalance_interval: Nanos,
    /// Duration of a trading pause. It begins when an order would trade outside the price band, and ends with
    /// a cross.
    pub pause: Nanos,
    /// Width of the initial price bands, in ppm of the reference price; no band when `None`.
    pub price_band_ppm: Option<u32>,
    /// The schedule. If `None`, all instruments trade from the start, and the administrator ends the day.
    pub schedule: Option<Schedule>,
}

impl Default for DaySettings {
    /// An imbalance every second, pauses of 5 s, no schedule and no price band.
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
    /// The day starts: the venue publishes ITCH system events and all instruments' definitions, and halts all
    /// instruments.
    Start,
    /// Orders are accepted and do not trade; the opening auction's indicative price is published. The phase
    /// starts the day if none is in progress.
    PreOpen,
    /// Instruments trade; a preceding auction ends with its cross. Starts the day if none is in progress.
    Open,
    /// An auction within the day: orders are accepted and do not trade until the next `Open`.
    Auction,
    /// An auction that ends with the closing cross.
    PreClose,
    /// The closing cross takes place; then instruments are halted.
    Close,
    /// Instruments halt; orders stay and may be cancelled.
    Halt,
    /// Instruments trade again; a crossed book is uncrossed first.
    Resume,
    /// The day ends: instruments halt, day orders are cancelled; UserRefNums and order ids restart.
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

    /// Name of the phase in configurations and commands.
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

    /// True for phases that start a day if none is in progress; all others require a day in progress.
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
