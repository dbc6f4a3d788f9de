//! The daily schedule.

use tickpath_types::{InstrumentId, Nanos};

use super::Phase;

/// A step of the daily schedule; `I` is the type that identifies an instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleStep<I = InstrumentId> {
    /// Start of the step, in seconds since midnight in the schedule's time zone.
    pub second: u32,
    /// The phase that begins.
    pub phase: Phase,
    /// Instruments of the phase; `None` for all, including those added during the day.
    pub instruments: Option<Vec<I>>,
}

/// The daily schedule of a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Offset of the schedule's clock from UTC, in seconds; positive when ahead.
    pub utc_offset: i32,
    /// Steps, by ascending time.
    pub steps: Vec<ScheduleStep>,
}

/// Position of the next schedule step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchedulePosition {
    /// Day of the step, counted from 1970-01-01 in the schedule's time zone.
    pub(crate) day: u32,
    /// Index in [`Schedule::steps`].
    pub(crate) step: usize,
}

const DAY_SECONDS: i64 = 24 * 3_600;

impl Schedule {
    /// Converts `now` to days since 1970-01-01 and seconds since midnight, in the schedule's time zone.
    fn local(&self, now: Nanos) -> (u32, u32) {
        let seconds = (now.0 / 1_000_000_000) as i64 + i64::from(self.utc_offset);
        (seconds.div_euclid(DAY_SECONDS) as u32, seconds.rem_euclid(DAY_SECONDS) as u32)
    }

    /// The position after `done`, the day and second of the last logged step; today's first step if `None`.
    pub(crate) fn position_after(&self, done: Option<(u32, u32)>, now: Nanos) -> SchedulePosition {
        let (today, _) = self.local(now);
        match done {
            None => SchedulePosition { day: today, step: 0 },
            Some((day, second)) => {
                let step = self.steps.partition_point(|step| step.second <= second);
                self.normal(SchedulePosition { day, step }, today)
            }
        }
    }

    /// The due step, if any, and the position after it. If the venue was down for days, the remaining steps
    /// of the day on which it stopped are due, then today's; the days in between are skipped.
    pub(crate) fn due(
        &self,
        position: SchedulePosition,
        now: Nanos,
    ) -> Option<(&ScheduleStep, SchedulePosition)> {
        let (today, second) = self.local(now);
        let position = self.normal(position, today);
        let step = self.steps.get(position.step)?;
        let is_due = position.day < today || position.day == today && step.second <= second;
        is_due.then(|| (step, SchedulePosition { step: position.step + 1, ..position }))
    }

    /// Moves a position after a day's last step to the next day's first step, or to today's if that is later.
    fn normal(&self, position: SchedulePosition, today: u32) -> SchedulePosition {
        if position.step < self.steps.len() {
            return position;
        }
        SchedulePosition { day: today.max(position.day + 1), step: 0 }
    }

    /// Descriptions of the steps that fell due while the venue was down and that it executes at its start.
    /// While no day is in progress, steps that do not start one are omitted.
    #[must_use]
    pub fn missed(&self, done: Option<(u32, u32)>, mut has_started: bool, now: Nanos) -> Vec<String> {
        let mut position = self.position_after(done, now);
        let mut missed = Vec::new();
        while let Some((step, next)) = self.due(position, now) {
            if has_started || step.phase.starts_day() {
                missed.push(step.to_string());
                has_started = step.phase != Phase::EndOfDay;
            }
            position = next;
        }
        missed
    }
}

/// Formats a second of the day, such as `09:30:00`.
#[must_use]
pub fn time_of_day(second: u32) -> String {
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

impl<I: PartialEq> ScheduleStep<I> {
    /// Checks the step against the preceding steps.
    ///
    /// # Errors
    /// One line that says why the step is invalid and what to change.
    pub fn check(&self, before: &[ScheduleStep<I>]) -> Result<(), String> {
        let ScheduleStep { second, phase, instruments } = self;
        let (name, at) = (phase.name(), time_of_day(*second));
        if phase.is_of_venue() && instruments.is_some() {
            return Err(format!("{name} is for the whole venue: leave out its instruments"));
        }
        if instruments.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("{name} at {at} has an empty instrument list: omit it for all"));
        }
        let (Some(first), Some(last)) = (before.first(), before.last()) else {
            let is_start = *phase == Phase::Start;
            return if is_start { Ok(()) } else { Err("the first step of a day must be start".to_owned()) };
        };
        if *second < last.second {
            let (last_name, last_at) = (last.phase.name(), time_of_day(last.second));
            return Err(format!(
                "{name} at {at} is listed after {last_name} at {last_at}: put steps in order"
            ));
        }
        if last.phase == Phase::EndOfDay {
            return Err(format!("{name} at {at} comes after the end of the day"));
        }
        if *phase == Phase::Start {
            return Err(format!("the day has started at {} already", time_of_day(first.second)));
        }
        let is_same = |other: &&ScheduleStep<I>| {
            let share = |list: &Vec<I>| instruments.iter().flatten().any(|it| list.contains(it));
            other.second == *second
                && !other.phase.is_of_venue()
                && (instruments.is_none() || other.instruments.as_ref().is_none_or(share))
        };
        match before.iter().find(is_same) {
            Some(other) if !phase.is_of_venue() => {
                let other = other.phase.name();
                Err(format!("{other} and {name} both come at {at}: give them different times"))
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for ScheduleStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} due at {}", self.phase.name(), time_of_day(self.second))?;
        self.instruments.iter().try_for_each(|them| write!(f, " for {} instruments", them.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(utc_offset: i32) -> Schedule {
        let step = |hour: u32, phase| ScheduleStep { second: hour * 3_600, phase, instruments: None };
        let steps = vec![step(8, Phase::Start), step(9, Phase::Open), step(17, Phase::EndOfDay)];
        Schedule { utc_offset, steps }
    }

    fn at(day: u64, hour: u64) -> Nanos {
        Nanos::from_secs((day * 24 + hour) * 3_600)
    }

    /// The missed steps; a day is in progress if `done` names a completed step.
    fn missed(done: Option<(u32, u32)>, now: Nanos) -> Vec<String> {
        schedule(0).missed(done, done.is_some(), now)
    }

    #[test]
    fn a_start_during_the_day_executes_missed_steps() {
        assert_eq!(missed(None, at(100, 7)), Vec::<String>::new());
        assert_eq!(missed(None, at(100, 12)), ["start due at 08:00:00", "open due at 09:00:00"]);
        assert_eq!(missed(Some((100, 8 * 3_600)), at(100, 12)), ["open due at 09:00:00"]);
        assert_eq!(missed(Some((100, 9 * 3_600)), at(100, 12)), Vec::<String>::new());
    }

    #[test]
    fn missed_days_end_the_first_and_begin_the_last() {
        let done = Some((100, 9 * 3_600));
        assert_eq!(missed(done, at(101, 7)), ["end-of-day due at 17:00:00"]);
        let all = ["end-of-day due at 17:00:00", "start due at 08:00:00", "open due at 09:00:00"];
        assert_eq!(missed(done, at(101, 10)), all);
        assert_eq!(missed(done, at(109, 10)), all, "nothing of the days between");
        assert_eq!(missed(Some((100, 17 * 3_600)), at(100, 23)), Vec::<String>::new());
    }

    #[test]
    fn steps_of_an_ended_day_are_not_missed() {
        let ended = |now| schedule(0).missed(Some((100, 9 * 3_600)), false, now);
        assert_eq!(ended(at(100, 20)), Vec::<String>::new());
        assert_eq!(ended(at(101, 8)), ["start due at 08:00:00"]);
        let mut early = schedule(0);
        early.steps.insert(0, ScheduleStep { second: 0, phase: Phase::Close, instruments: None });
        assert_eq!(early.missed(None, false, at(100, 8)), ["start due at 08:00:00"]);
    }

    #[test]
    fn the_schedule_uses_its_own_time_zone() {
        let new_york = schedule(-5 * 3_600);
        assert_eq!(new_york.missed(None, false, at(100, 12)), [""; 0], "seven in the morning there");
        assert_eq!(new_york.missed(None, false, at(100, 14)).len(), 2);
        let (day, second) = new_york.local(at(100, 3));
        assert_eq!((day, second), (99, 22 * 3_600));
        assert_eq!(
            new_york.position_after(Some((99, 9 * 3_600)), at(100, 3)),
            SchedulePosition { day: 99, step: 2 }
        );
    }

    #[test]
    fn setting_the_clock_back_repeats_no_step() {
        let schedule = schedule(0);
        let position = schedule.position_after(Some((100, 9 * 3_600)), at(100, 9));
        assert_eq!(schedule.due(position, at(100, 8)), None);
        assert_eq!(schedule.due(position, at(99, 23)), None);
        let (step, next) = schedule.due(position, at(100, 17)).unwrap();
        assert_eq!((step.phase, schedule.due(next, at(100, 23))), (Phase::EndOfDay, None));
        assert_eq!(schedule.due(next, at(101, 8)).unwrap().0.phase, Phase::Start);
    }
}
