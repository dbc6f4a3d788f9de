//! The log: dense, in time, and never another than it was.

use tickpath_exchange::LogCommand;
use tickpath_types::{Nanos, Sequence};

use super::report::Report;
use super::{Case, views::Loss};
use crate::VenueEventKind;

/// How far the day's time may go from one command to the next; beyond that it went back.
const HALF_A_DAY: u64 = Nanos::DAY.0 / 2;

pub(super) fn check(case: &Case<'_>, report: &mut Report) {
    let journal = &case.observed.journal;
    for (command, number) in journal.iter().zip(1..) {
        report.expect(command.sequence().0 == number, || {
            format!("record {number} of the log has the sequence {}", command.sequence())
        });
    }
    for pair in journal.windows(2) {
        let ahead = (pair[1].ts().0 + Nanos::DAY.0 - pair[0].ts().0) % Nanos::DAY.0;
        report.expect(ahead > 0 && ahead < HALF_A_DAY, || {
            format!(
                "command {} is of {} ns and follows one of {} ns",
                pair[1].sequence(),
                pair[1].ts().0,
                pair[0].ts().0
            )
        });
    }
    let mut lives = false;
    for event in &case.observed.venue {
        let lived = lives;
        match &event.kind {
            VenueEventKind::Started { .. } => lives = true,
            VenueEventKind::Crashed(_) | VenueEventKind::Stopped => lives = false,
            _ => {}
        }
        let is_of_life = matches!(
            event.kind,
            VenueEventKind::Crashed(_) | VenueEventKind::Stopped | VenueEventKind::DiskFailed
        );
        report.expect(lived == is_of_life, || {
            format!("at {} ns, alive: {lived}, the venue cannot have {:.60?}", event.at.0, event.kind)
        });
        match &event.kind {
            VenueEventKind::Started { last, journal: found, .. } => {
                compare_start(case, event.at, *last, found, report);
            }
            VenueEventKind::Refused(why) if case.views.losses.is_empty() && !is_excused(case) => {
                report.say(|| format!("at {} ns the venue did not start: {why}", event.at.0));
            }
            _ => {}
        }
    }
}

/// A log that may have lost acknowledged records is refused until somebody accepts that.
fn is_excused(case: &Case<'_>) -> bool {
    let is_power = |kind: &VenueEventKind| {
        matches!(kind, VenueEventKind::Crashed(crate::Crash::Power) | VenueEventKind::CutAtStart)
    };
    case.observed.policy == tickpath_journal::Policy::Async
        && case.observed.venue.iter().any(|event| is_power(&event.kind))
}

/// What was on the disk at a start is there at the end.
fn compare_start(case: &Case<'_>, at: Nanos, last: Sequence, found: &[LogCommand], report: &mut Report) {
    if let Some(end) = found.last() {
        report.expect(end.sequence() == last, || {
            format!(
                "at {} ns the venue went on after {last}, and the log ended with {}",
                at.0,
                end.sequence()
            )
        });
    }
    let later = case.views.losses.iter().filter(|loss| loss.at >= at);
    let kept = later.map(|Loss { last, .. }| *last).min().unwrap_or(Sequence(u64::MAX));
    for command in found.iter().filter(|command| command.sequence() <= kept) {
        let stays = case.observed.journal.get(command.sequence().0 as usize - 1) == Some(command);
        report.expect(stays, || {
            format!(
                "command {} was in the log at {} ns and is not, or is another, at the end",
                command.sequence(),
                at.0
            )
        });
    }
}
