//! Cancel-on-disconnect: in time, and never while the user is logged in.

use std::collections::BTreeMap;

use tickpath_exchange::LogCommand;
use tickpath_matching::CommandKind;
use tickpath_types::{CancelReason, Nanos};

use super::Case;
use super::truth::place_of;
use super::views::{End, Life, Views};
use crate::{ClientEventKind, ClientLog, LoginOutcome};

/// A connection, reduced to the user's presence.
#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    login_sent: Option<Nanos>,
    /// Time at which the client received the acceptance of its login.
    accepted: Option<Nanos>,
    is_rejected: bool,
    gone: Option<Nanos>,
}

pub(super) fn check(case: &Case<'_>) {
    for (place, (client, terms)) in case.observed.clients.iter().zip(&case.observed.setup.users).enumerate() {
        let visits = visits_of(client);
        check_never_while_there(case, place, &visits);
        let Some(grace) = terms.cancel_on_disconnect else { continue };
        for life in &case.views.lives {
            check_in_time(case, place, life, &visits, grace);
        }
    }
}

/// Returns the visits by connection, in order.
fn visits_of(client: &ClientLog) -> Vec<Visit> {
    let mut visits: BTreeMap<u32, Visit> = BTreeMap::new();
    for event in &client.events {
        let visit = visits.entry(event.connection).or_default();
        match &event.kind {
            ClientEventKind::LoginSent { .. } => visit.login_sent = Some(event.at),
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { .. }) => visit.accepted = Some(event.at),
            ClientEventKind::LoginAnswered(LoginOutcome::Rejected(_)) => visit.is_rejected = true,
            ClientEventKind::GoneAtVenue => visit.gone = Some(event.at),
            _ => {}
        }
    }
    visits.into_values().collect()
}

/// The venue's own cancels of a user come only without an active login, and after the last one's grace.
fn check_never_while_there(case: &Case<'_>, place: usize, visits: &[Visit]) {
    let name = &case.observed.setup.users[place].name;
    for command in case.observed.log.commands.iter().filter(|command| is_own_cancel(command, place)) {
        let sequence = command.sequence();
        let Some(at) = case.views.time_of(sequence) else { continue };
        let Some(life) = case.views.life_at(at).map(|life| case.views.lives[life]) else { continue };
        // A stopping venue may cancel for every user.
        if life.end == End::Stopped && at + case.observed.setup.reaction_max >= life.ended_at {
            continue;
        }
        let Some(grace) = case.observed.setup.users[place].cancel_on_disconnect else {
            case.say(|| format!("command {sequence} cancelled for {name}, who did not ask for it"));
            continue;
        };
        let accepted = visits.iter().filter(|visit| {
            visit.accepted.is_some_and(|accepted| life.started_at <= accepted && accepted < at)
        });
        for visit in accepted {
            match visit.gone {
                Some(gone) if gone <= at => {
                    let is_early = at.since(gone) < grace && is_clock_steady(case, gone, at);
                    case.expect(!is_early, || {
                        let (after, grace) = (at.since(gone).0, grace.0);
                        format!("command {sequence} cancelled for {name} {after} ns after it was gone, and its grace is {grace} ns")
                    });
                }
                _ => case
                    .say(|| format!("command {sequence} cancelled for {name} at {} ns, who was there", at.0)),
            }
        }
    }
}

/// Returns true if the venue could measure this span: its clock was not stepped within it.
fn is_clock_steady(case: &Case<'_>, from: Nanos, to: Nanos) -> bool {
    !case.observed.clock_steps.iter().any(|step| from <= *step && *step <= to)
}

/// When a user is disconnected for its grace and stays away, none of its orders is open soon after.
fn check_in_time(case: &Case<'_>, place: usize, life: &Life, visits: &[Visit], grace: Nanos) {
    let observed = case.observed;
    if life.has_failed {
        return;
    }
    // A starting venue applies the grace to every user.
    let gone = visits.iter().filter(|visit| visit.accepted.is_some()).filter_map(|visit| visit.gone);
    let gone = gone.filter(|gone| life.started_at <= *gone && *gone < life.ended_at);
    for since in gone.chain([life.started_at]) {
        let due = since + grace + observed.setup.reaction_max;
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
        case.expect(open == 0, || {
            let name = &observed.setup.users[place].name;
            let (since, due) = (since.0, due.0);
            format!("{name} was gone at {since} ns, and {open} orders were still open at {due} ns, beyond its grace")
        });
    }
}

/// Returns true if the venue did cancel in time, and the log lost that later. The command was read before it
/// was lost, or not all commands lost by then were read.
fn is_cancel_lost(case: &Case<'_>, place: usize, life: &Life, due: Nanos) -> bool {
    let known = Views::known_by(case.observed, due);
    if known <= life.last {
        return false;
    }
    let lost = case.observed.log.lost.iter().find(|lost| lost.at > life.started_at);
    let read = lost.map_or(&[][..], |lost| &lost.what);
    read.iter().any(|command| command.sequence() <= known && is_own_cancel(command, place))
        || read.last().is_none_or(|last| last.sequence() < known)
}

/// Returns true for the venue's own cancel of a user.
fn is_own_cancel(command: &LogCommand, place: usize) -> bool {
    let own = CommandKind::CancelAll { reason: CancelReason::System };
    command.engine_kind() == Some(&own) && place_of(command.session()) == Some(place)
}
