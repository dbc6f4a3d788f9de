//! The trading day: what each of its phases is made of, and when it comes.

mod expiry;
mod phases;
mod schedule;

pub(crate) use expiry::Expiries;
pub use phases::{BandWidth, Day, ReplayedDay, Which, commands_max, state_of};
pub use schedule::{Schedule, ScheduleStep, time_of_day};

use tickpath_types::Nanos;

/// How the venue's day goes.
#[derive(Clone, Debug)]
pub struct DaySettings {
    /// How often the indicative price and the imbalance of an instrument in an auction are published.
    pub imbalance_interval: Nanos,
    /// How long trading pauses after a trade that would have left the price band; then it resumes by an auction.
    pub pause: Nanos,
    /// Width of an instrument's first price band, of its reference price in parts per million; no band when `None`.
    pub price_band_ppm: Option<u32>,
    /// What happens when. Without it all instruments open for trading at the start, and the day ends by command.
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

/// What the day, or one instrument in it, comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The day starts: the stages of ITCH before trading, and every instrument's definition. Instruments are halted.
    Start,
    /// Orders are taken and do not trade; the opening auction's indicative price is published.
    PreOpen,
    /// The auction ends with its cross, or the day's trading begins; instruments trade.
    Open,
    /// An auction within the day: orders are taken and do not trade until it is opened again.
    Auction,
    /// The same before the closing cross.
    PreClose,
    /// The closing cross; instruments are halted.
    Close,
    /// Instruments halt; orders stay and may be cancelled.
    Halt,
    /// Instruments trade again; a crossed book is crossed first.
    Resume,
    /// The day ends: instruments halt, day orders are cancelled, and numbers start anew.
    EndOfDay,
}

impl Phase {
    /// All, in the order of a day.
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

    /// As configurations and commands write it.
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

    /// The phase of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// True for what starts the day where none goes on; everything else is of a day that does.
    #[must_use]
    pub const fn starts_day(self) -> bool {
        matches!(self, Phase::Start | Phase::PreOpen | Phase::Open)
    }

    /// True for what is of the whole venue and never of one instrument.
    #[must_use]
    pub const fn is_of_venue(self) -> bool {
        matches!(self, Phase::Start | Phase::EndOfDay)
    }
}
