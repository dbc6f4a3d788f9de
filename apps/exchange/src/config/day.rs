//! The configuration of the trading day.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tickpath_config::{ConfigError, Duration, Fraction, Zone, as_text, at_least};
use tickpath_types::{InstrumentTable, Nanos};
use tickpath_venue::day::{DaySettings, Phase, Schedule, ScheduleStep, time_of_day};

use super::{Result, instrument_ids};

/// Maximum number of schedule steps in a day.
const STEPS_MAX: usize = 256;
/// Minimum interval of an instrument's imbalance messages: each is a command in the log.
const IMBALANCE_INTERVAL_MIN: Duration = Duration(Nanos::from_millis(20));

/// The trading day.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DayConfig {
    /// Time zone, such as `UTC` or `UTC-05:00`. Fixed, so that a day does not depend on clock changes.
    pub time_zone: TimeZone,
    /// Interval at which an instrument in an auction publishes its indicative price and imbalance.
    pub imbalance_interval: Duration,
    /// Length of the trading pause after a breach of the price band; trading resumes with an auction.
    pub pause: Duration,
    /// Price band, as a fraction of the reference price: a trade beyond it pauses trading. None when absent.
    pub price_band: Option<Fraction>,
    /// Daily schedule, in the order of the times. When absent, all instruments open for trading at the start,
    /// and a command ends the day.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "steps_in_order")]
    pub schedule: Vec<StepConfig>,
}

/// One step of the schedule, a `[[day.schedule]]` table.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// Start time, such as `09:30:00`.
    pub at: TimeOfDay,
    /// The phase that begins.
    pub phase: PhaseConfig,
    /// Symbols of the instruments that change phase; all instruments when absent.
    pub instruments: Option<Vec<String>>,
}

/// A time of the day, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    /// Seconds since midnight.
    pub second: u32,
}

/// A phase, which the configuration file gives by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseConfig(pub Phase);

/// A fixed offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone {
    /// Minutes ahead of UTC.
    pub minutes: i32,
}

as_text!(TimeOfDay);
as_text!(PhaseConfig);
as_text!(TimeZone);

impl Default for DayConfig {
    fn default() -> Self {
        let DaySettings { imbalance_interval, pause, .. } = DaySettings::default();
        DayConfig {
            time_zone: TimeZone { minutes: 0 },
            imbalance_interval: Duration(imbalance_interval),
            pause: Duration(pause),
            price_band: None,
            schedule: Vec::new(),
        }
    }
}

impl DayConfig {
    pub(super) fn settings(&self, instruments: &InstrumentTable) -> Result<DaySettings> {
        let DayConfig { time_zone, imbalance_interval, pause, price_band, schedule } = self;
        at_least("day.imbalance_interval", *imbalance_interval, IMBALANCE_INTERVAL_MIN)?;
        if price_band.is_some_and(|band| band.ppm == 0) {
            bail!("day.price_band of 0% would pause every trade: leave it out for none");
        }
        let steps = schedule.iter().map(|step| step.settings(instruments)).collect::<Result<Vec<_>, _>>()?;
        Ok(DaySettings {
            imbalance_interval: imbalance_interval.0,
            pause: pause.0,
            price_band_ppm: price_band.map(|band| band.ppm),
            schedule: (!steps.is_empty()).then_some(Schedule { utc_offset: 60 * time_zone.minutes, steps }),
        })
    }
}

impl StepConfig {
    fn settings(&self, table: &InstrumentTable) -> Result<ScheduleStep> {
        let StepConfig { at, phase, instruments } = self;
        let list = format!("day.schedule, {phase} at {at}");
        let instruments = instrument_ids(instruments.as_deref(), table, &list)?;
        Ok(ScheduleStep { second: at.second, phase: phase.0, instruments })
    }

    /// Returns the step with instruments by symbol, because their ids are not known while parsing.
    fn with_symbols(&self) -> ScheduleStep<&str> {
        let instruments = self.instruments.as_ref().map(|list| list.iter().map(String::as_str).collect());
        ScheduleStep { second: self.at.second, phase: self.phase.0, instruments }
    }
}

/// Parses the schedule. Checks each step as it is parsed, so that an error names the step's line.
fn steps_in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StepConfig>, D::Error> {
    struct Steps;

    impl<'de> Visitor<'de> for Steps {
        type Value = Vec<StepConfig>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of steps, each with at and phase")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut steps: A) -> Result<Vec<StepConfig>, A::Error> {
            let mut before = Vec::new();
            while let Some(step) = steps.next_element_seed(NextStep(&before))? {
                before.push(step);
            }
            Ok(before)
        }
    }
    deserializer.deserialize_seq(Steps)
}

struct NextStep<'a>(&'a [StepConfig]);

impl<'de> DeserializeSeed<'de> for NextStep<'_> {
    type Value = StepConfig;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<StepConfig, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NextStep<'_> {
    type Value = StepConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step with at and phase")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<StepConfig, A::Error> {
        let step = StepConfig::deserialize(MapAccessDeserializer::new(fields))?;
        let checked = match self.0.len() {
            STEPS_MAX.. => Err(format!("a day has {STEPS_MAX} steps at most")),
            _ => {
                let before: Vec<_> = self.0.iter().map(StepConfig::with_symbols).collect();
                step.with_symbols().check(&before)
            }
        };
        checked.map(|()| step).map_err(serde::de::Error::custom)
    }
}

impl FromStr for TimeOfDay {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(':').map(|part| match part.len() {
            2 => part.parse::<u32>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit())),
            _ => None,
        });
        let mut next = |below| parts.next().flatten().filter(|part| *part < below);
        let time = (next(24), next(60), next(60), parts.next());
        match time {
            (Some(hour), Some(minute), Some(second), None) => {
                Ok(TimeOfDay { second: (hour * 60 + minute) * 60 + second })
            }
            _ => Err(ConfigError::value(format!("'{text}' is not a time of day: write e.g. 09:30:00"))),
        }
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&time_of_day(self.second))
    }
}

impl FromStr for PhaseConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Phase::from_name(text).map(PhaseConfig).ok_or_else(|| {
            let names = Phase::ALL.map(Phase::name).join(", ");
            ConfigError::value(format!("no phase '{text}': use one of {names}"))
        })
    }
}

impl fmt::Display for PhaseConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl FromStr for TimeZone {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let offset = text.strip_prefix("UTC").and_then(|offset| match offset {
            "" => Some(0),
            offset => Zone::offset_s(offset).filter(|seconds| seconds.abs() <= 14 * 3_600),
        });
        offset.map(|seconds| TimeZone { minutes: seconds / 60 }).ok_or_else(|| {
            ConfigError::value(format!(
                "'{text}' is not a fixed time zone: write e.g. UTC, UTC-05:00, UTC+09:30"
            ))
        })
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Zone::Fixed(60 * self.minutes).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DayConfig> {
        tickpath_config::parse("venue.toml", text)
    }

    const WEEKDAY: &str = "time_zone = 'UTC-05:00'\n\
        [[schedule]]\nat = '08:00:00'\nphase = 'start'\n\
        [[schedule]]\nat = '09:30:00'\nphase = 'open'\n\
        [[schedule]]\nat = '09:30:00'\nphase = 'end-of-day'\n";

    #[test]
    fn a_schedule_is_read_and_written() {
        let config = parse(WEEKDAY).unwrap();
        let schedule = config.settings(&InstrumentTable::new(&[])).unwrap().schedule.unwrap();
        assert_eq!((schedule.utc_offset, schedule.steps.len()), (-5 * 3_600, 3));
        assert_eq!((schedule.steps[1].second, schedule.steps[1].phase), (34_200, Phase::Open));
        let written = tickpath_config::to_toml(&config);
        assert!(written.contains("UTC-05:00") && written.contains("09:30:00"), "{written}");
        assert_eq!(parse(&written).unwrap().schedule.len(), 3);
        assert_eq!("UTC+09:30".parse::<TimeZone>().unwrap().to_string(), "UTC+09:30");
    }

    #[test]
    fn invalid_schedules_are_refused_with_the_line() {
        let step = |at: &str, phase: &str| format!("[[schedule]]\nat = '{at}'\nphase = '{phase}'\n");
        let start = step("08:00:00", "start");
        let early = start.clone() + &step("07:00:00", "open");
        let ended = start.clone() + &step("20:00:00", "end-of-day");
        let opened = start.clone() + &step("09:30:00", "open");
        for (text, line, expected) in [
            (step("09:30:00", "open"), 1, "the first step of a day must be start"),
            (early, 4, "open at 07:00:00 is listed after start at 08:00:00"),
            (start.clone() + &step("25:00:00", "open"), 5, "'25:00:00' is not a time of day"),
            (start.clone() + &step("9:30", "open"), 5, "write e.g. 09:30:00"),
            (start.clone() + &step("09:30:00", "lunch"), 6, "no phase 'lunch': use one of start, pre-open"),
            (start.clone() + &step("09:30:00", "start"), 4, "started at 08:00:00 already"),
            (ended + &step("21:00:00", "open"), 7, "comes after the end of the day"),
            (opened + &step("09:30:00", "halt"), 7, "open and halt both come at 09:30:00"),
            (start.clone() + &step("20:00:00", "end-of-day") + "instruments = ['A']\n", 4, "the whole venue"),
            (start.clone() + &step("09:30:00", "open") + "instruments = []\n", 4, "an empty instrument list"),
            ("time_zone = 'EST'\n".to_owned(), 1, "not a fixed time zone"),
            ("time_zone = 'UTC+15:00'\n".to_owned(), 1, "not a fixed time zone"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            let place = format!("venue.toml:{line}: ");
            assert!(error.starts_with(&place) && error.contains(expected), "{text}: {error}");
        }
        let unknown = start + &step("09:30:00", "open") + "instruments = ['A']\n";
        let error = parse(&unknown).unwrap().settings(&InstrumentTable::new(&[])).unwrap_err().to_string();
        assert!(error.contains("open at 09:30:00: there is no instrument 'A'"), "{error}");
    }
}
