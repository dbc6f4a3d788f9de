//! By the end of a run, the venue has run every step of its schedule that was due `reaction_max` earlier.

use tickpath_exchange::{LogCommandKind, VenueCommandKind};
use tickpath_types::Nanos;

use super::Case;

pub(super) fn check(case: &Case<'_>) {
    let observed = case.observed;
    let by = Nanos(observed.last.stopped_at.0.saturating_sub(observed.setup.reaction_max.0));
    let (day, second) = (by.0 / Nanos::DAY.0, by.time_of_day().0 / Nanos::from_secs(1).0);
    let is_due = |step: &&u32| u64::from(**step) <= second;
    let Some(due) = observed.setup.schedule.iter().filter(is_due).max() else { return };
    let done = observed.log.commands.iter().rev().find_map(|command| match command.kind() {
        LogCommandKind::Venue(VenueCommandKind::ScheduleDone { day, second }) => {
            Some((u64::from(day), second))
        }
        _ => None,
    });
    case.expect(done >= Some((day, *due)), || {
        format!("the step of second {due} of day {day} has not run by the end, and the last step that ran is {done:?}")
    });
}
