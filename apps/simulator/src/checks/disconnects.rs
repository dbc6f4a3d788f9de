//! Cancel-on-disconnect: in time, and never while the user is there.

use tickpath_exchange::LogCommand;
use tickpath_matching::CommandKind;
use tickpath_types::{CancelReason, Nanos};

use super::Case;
use super::report::Report;
use super::truth::place_of;
use super::views::{End, Life, Views};
use crate::{ClientEventKind, ClientLog, LoginOutcome};

/// A connection as far as the user's presence goes.
#[derive(Clone, Copy, Debug)]
struct Visit {
    login_sent: Option<Nanos>,
    /// The client learned that it is logged in.
    accepted: Option<Nanos>,
    is_rejected: bool,
    gone: Option<Nanos>,
}

pub(super) fn check(case: &Case<'_>, report: &mut Report) {
    for (place, (client, terms)) in case.observed.clients.iter().zip(&case.observed.users).enumerate() {
        let visits = visits_of(client);
        check_never_while_there(case, place, &visits, report);
        let Some(grace) = terms.cancel_on_disconnect else { continue };
        for life in &case.views.lives {
            check_in_time(case, place, life, &visits, grace, report);
        }
    }
}

fn visits_of(client: &ClientLog) -> Vec<Visit> {
    let mut visits: Vec<(u32, Visit)> = Vec::new();
    for event in &client.events {
        let place = visits.iter().position(|(connection, _)| *connection == event.connection);
        let place = place.unwrap_or_else(|| {
            let visit = Visit { login_sent: None, accepted: None, is_rejected: false, gone: None };
            visits.push((event.connection, visit));
            visits.len() - 1
        });
        let visit = &mut visits[place].1;
        match &event.kind {
            ClientEventKind::LoginSent { .. } => visit.login_sent = Some(event.at),
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { .. }) => visit.accepted = Some(event.at),
            ClientEventKind::LoginAnswered(LoginOutcome::Rejected(_)) => visit.is_rejected = true,
            ClientEventKind::GoneAtVenue => visit.gone = Some(event.at),
            _ => {}
        }
    }
    visits.into_iter().map(|(_, visit)| visit).collect()
}

/// The venue's own cancels of a user come when no login of it stands, and its grace after the last one.
fn check_never_while_there(case: &Case<'_>, place: usize, visits: &[Visit], report: &mut Report) {
    let name = &case.observed.users[place].name;
    let is_own = CommandKind::CancelAll { reason: CancelReason::System };
    for command in &case.observed.journal {
        if command.engine_kind() != Some(&is_own) || place_of(command.session()) != Some(place) {
            continue;
        }
        let Some(at) = case.views.time_of(command.sequence()) else { continue };
        let Some(life) = case.views.life_at(at).map(|life| case.views.lives[life]) else { continue };
        // A venue that stops may cancel for everybody.
        if life.end == End::Stopped && at + case.observed.reaction_max >= life.ended_at {
            continue;
        }
        let Some(grace) = case.observed.users[place].cancel_on_disconnect else {
            report.say(|| {
                format!("command {} cancelled for {name}, who did not ask for it", command.sequence())
            });
            continue;
        };
        let accepted = visits.iter().filter(|visit| {
            visit.accepted.is_some_and(|accepted| life.started_at <= accepted && accepted < at)
        });
        for visit in accepted {
            match visit.gone {
                Some(gone) if gone <= at => {
                    let is_early = at.since(gone) < grace && is_clock_steady(case, gone, at);
                    report.expect(!is_early, || {
                        format!(
                            "command {} cancelled for {name} {} ns after it was gone, and its grace is {} ns",
                            command.sequence(),
                            at.since(gone).0,
                            grace.0
                        )
                    });
                }
                _ => report.say(|| {
                    format!(
                        "command {} cancelled for {name} at {} ns, who was there",
                        command.sequence(),
                        at.0
                    )
                }),
            }
        }
    }
}

/// True when the venue could measure this span: its clock was not set in it.
fn is_clock_steady(case: &Case<'_>, from: Nanos, to: Nanos) -> bool {
    !case.observed.clock_steps.iter().any(|step| from <= *step && *step <= to)
}

/// When a user is gone for its grace and stays away, nothing of it is open soon after.
fn check_in_time(
    case: &Case<'_>,
    place: usize,
    life: &Life,
    visits: &[Visit],
    grace: Nanos,
    report: &mut Report,
) {
    let observed = case.observed;
    if life.has_failed {
        return;
    }
    // A venue that starts waits for everybody.
    let gone = visits.iter().filter(|visit| visit.accepted.is_some()).filter_map(|visit| visit.gone);
    let gone = gone.filter(|gone| life.started_at <= *gone && *gone < life.ended_at);
    for since in gone.chain([life.started_at]) {
        let due = since + grace + observed.reaction_max;
        let may_be_back = |visit: &Visit| {
            let in_time = visit.login_sent.is_some_and(|sent| sent <= due && sent >= life.started_at);
            in_time && !visit.is_rejected && visit.gone.is_none_or(|gone| gone > since)
        };
        let is_over = due > life.ended_at || due > observed.ended_at;
        if is_over || visits.iter().any(may_be_back) || !is_clock_steady(case, since, due) {
            continue;
        }
        if is_cancel_lost(case, place, life, due) {
            continue;
        }
        let open = case.truth.open_after(place, case.views.sequenced_by(due));
        report.expect(open == 0, || {
            format!(
                "{} was gone at {} ns, and {open} orders were still open at {} ns, beyond its grace",
                observed.users[place].name, since.0, due.0
            )
        });
    }
}

/// True when the venue did cancel in time, and the log lost that later: the command was read before it was lost, or
/// what was lost by then was not all read.
fn is_cancel_lost(case: &Case<'_>, place: usize, life: &Life, due: Nanos) -> bool {
    let known = Views::known_by(case.observed, due);
    if known <= life.last {
        return false;
    }
    let lost = case.observed.lost.iter().find(|lost| lost.at > life.started_at);
    let read = lost.map_or(&[][..], |lost| &lost.commands);
    let is_own = CommandKind::CancelAll { reason: CancelReason::System };
    let is_cancel = |command: &LogCommand| {
        command.engine_kind() == Some(&is_own) && place_of(command.session()) == Some(place)
    };
    read.iter().any(|command| command.sequence() <= known && is_cancel(command))
        || read.last().is_none_or(|last| last.sequence() < known)
}
