//! The log: gap-free, monotonic in time, and never changed afterwards.

use tickpath_exchange::LogCommand;
use tickpath_types::{Nanos, Sequence};

use super::{Case, views::Loss};
use crate::VenueEvent;

/// Maximum step of the time of day between commands; a larger one means that time went back.
const HALF_A_DAY: u64 = Nanos::DAY.0 / 2;

pub(super) fn check(case: &Case<'_>) {
    let journal = &case.observed.log.commands;
    for (command, number) in journal.iter().zip(1..) {
        case.expect(command.sequence().0 == number, || {
            format!("record {number} of the log has the sequence {}", command.sequence())
        });
    }
    for pair in journal.windows(2) {
        let ahead = (pair[1].ts().0 + Nanos::DAY.0 - pair[0].ts().0) % Nanos::DAY.0;
        case.expect(ahead > 0 && ahead < HALF_A_DAY, || {
            let [before, at] = [0, 1].map(|place| pair[place].ts().0);
            format!("command {} is of {at} ns and follows one of {before} ns", pair[1].sequence())
        });
    }
    let mut is_running = false;
    for event in &case.observed.venue {
        let was_running = is_running;
        match &event.value {
            VenueEvent::Started { .. } => is_running = true,
            VenueEvent::Crashed(_) | VenueEvent::Stopped => is_running = false,
            _ => {}
        }
        let requires_running =
            matches!(event.value, VenueEvent::Crashed(_) | VenueEvent::Stopped | VenueEvent::DiskFailed);
        case.expect(was_running == requires_running, || {
            format!("at {} ns, alive: {was_running}, the venue cannot have {:.60?}", event.at.0, event.value)
        });
        match &event.value {
            VenueEvent::Started { last, journal: found, .. } => {
                compare_start(case, event.at, *last, found);
            }
            VenueEvent::Refused(reason) if case.views.losses.is_empty() && !is_excused(case) => {
                case.fail(|| format!("at {} ns the venue did not start: {reason}", event.at.0));
            }
            _ => {}
        }
    }
}

/// Returns true if the venue may refuse to start: after a power loss under the journal policy `async`, the
/// operator must accept the possible loss of acknowledged records.
fn is_excused(case: &Case<'_>) -> bool {
    let is_power = |kind: &VenueEvent| {
        matches!(kind, VenueEvent::Crashed(crate::HostFailure::Power) | VenueEvent::PowerLostAtStart)
    };
    case.observed.setup.policy == tickpath_journal::Policy::Async
        && case.observed.venue.iter().any(|event| is_power(&event.value))
}

/// Checks that the records found at a start end with `last`, and that they are in the final log unless lost
/// later.
fn compare_start(case: &Case<'_>, at: Nanos, last: Sequence, found: &[LogCommand]) {
    if let Some(end) = found.last() {
        case.expect(end.sequence() == last, || {
            let (at, end) = (at.0, end.sequence());
            format!("at {at} ns the venue continued after {last}, and the log ended with {end}")
        });
    }
    let later = case.views.losses.iter().filter(|loss| loss.at >= at);
    let kept = later.map(|Loss { last, .. }| *last).min().unwrap_or(Sequence(u64::MAX));
    for command in found.iter().filter(|command| command.sequence() <= kept) {
        let is_unchanged = case.observed.log.commands.get(command.sequence().0 as usize - 1) == Some(command);
        case.expect(is_unchanged, || {
            let (command, at) = (command.sequence(), at.0);
            format!("command {command} was in the log at {at} ns and is not, or is another, at the end")
        });
    }
}
