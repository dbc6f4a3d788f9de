//! Cancel-on-disconnect cancels in time, and never while the user is logged in.

use std::collections::BTreeMap;

use tickpath_exchange::LogCommand;
use tickpath_matching::CommandKind;
use tickpath_types::{CancelReason, Nanos};

use super::Case;
use super::truth::place_of;
use super::views::{InstanceEnd, VenueInstance, Views};
use crate::{ClientEventKind, ClientLog, LoginOutcome};

/// The login and disconnect times of one connection.
#[derive(Clone, Copy, Debug, Default)]
struct Presence {
    login_sent: Option<Nanos>,
    /// Time at which the client received the acceptance of its login.
    accepted: Option<Nanos>,
    is_rejected: bool,
    disconnected_at: Option<Nanos>,
}

pub(super) fn check(case: &Case<'_>) {
    for (place, (client, user)) in case.observed.clients.iter().zip(&case.observed.setup.users).enumerate() {
        let presences = presences_of(client);
        check_not_while_logged_in(case, place, &presences);
        let Some(grace) = user.cancel_on_disconnect else { continue };
        for instance in &case.views.instances {
            check_in_time(case, place, instance, &presences, grace);
        }
    }
}

/// Returns the presence of each connection, in the order of the connections.
fn presences_of(client: &ClientLog) -> Vec<Presence> {
    let mut presences: BTreeMap<u32, Presence> = BTreeMap::new();
    for event in &client.events {
        let presence = presences.entry(event.connection).or_default();
        match &event.kind {
            ClientEventKind::LoginSent { .. } => presence.login_sent = Some(event.at),
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { .. }) => {
                presence.accepted = Some(event.at)
            }
            ClientEventKind::LoginAnswered(LoginOutcome::Rejected(_)) => presence.is_rejected = true,
            ClientEventKind::DisconnectedAtVenue => presence.disconnected_at = Some(event.at),
            _ => {}
        }
    }
    presences.into_values().collect()
}

/// The venue cancels a user's orders only if the user is logged out and the grace period since the
/// disconnect has passed.
fn check_not_while_logged_in(case: &Case<'_>, place: usize, presences: &[Presence]) {
    let name = &case.observed.setup.users[place].name;
    for command in case.observed.log.commands.iter().filter(|command| is_own_cancel(command, place)) {
        let sequence = command.sequence();
        let Some(at) = case.views.time_of(sequence) else { continue };
        let Some(instance) = case.views.instance_at(at).map(|instance| case.views.instances[instance]) else {
            continue;
        };
        // A venue that is about to stop may cancel every user's orders.
        if instance.end == InstanceEnd::Stopped && at + case.observed.setup.reaction_max >= instance.ended_at
        {
            continue;
        }
        let Some(grace) = case.observed.setup.users[place].cancel_on_disconnect else {
            case.fail(|| format!("command {sequence} cancelled for {name} without cancel on disconnect"));
            continue;
        };
        let accepted = presences.iter().filter(|presence| {
            presence.accepted.is_some_and(|accepted| instance.started_at <= accepted && accepted < at)
        });
        for presence in accepted {
            match presence.disconnected_at {
                Some(disconnected_at) if disconnected_at <= at => {
                    let is_early =
                        at.since(disconnected_at) < grace && is_clock_steady(case, disconnected_at, at);
                    case.expect(!is_early, || {
                        let (after, grace) = (at.since(disconnected_at).0, grace.0);
                        format!("command {sequence} cancelled for {name} {after} ns after its disconnect, and its grace is {grace} ns")
                    });
                }
                _ => case.fail(|| {
                    format!("command {sequence} cancelled for {name} at {} ns, which was connected", at.0)
                }),
            }
        }
    }
}

/// Returns true if the venue could measure the time from `from` to `to`: its clock was not stepped meanwhile.
fn is_clock_steady(case: &Case<'_>, from: Nanos, to: Nanos) -> bool {
    !case.observed.clock_steps.iter().any(|step| from <= *step && *step <= to)
}

/// When a user stays disconnected beyond its grace period, none of its orders is open after the venue's
/// reaction time.
fn check_in_time(
    case: &Case<'_>,
    place: usize,
    instance: &VenueInstance,
    presences: &[Presence],
    grace: Nanos,
) {
    let observed = case.observed;
    if instance.has_failed {
        return;
    }
    let disconnected_at = presences
        .iter()
        .filter(|presence| presence.accepted.is_some())
        .filter_map(|presence| presence.disconnected_at);
    let disconnected_at = disconnected_at.filter(|disconnected_at| {
        instance.started_at <= *disconnected_at && *disconnected_at < instance.ended_at
    });
    // For a user without a connection, the grace period starts when the venue starts.
    for since in disconnected_at.chain([instance.started_at]) {
        let due = since + grace + observed.setup.reaction_max;
        let may_have_reconnected = |presence: &Presence| {
            let in_time = presence.login_sent.is_some_and(|sent| sent <= due && sent >= instance.started_at);
            in_time
                && !presence.is_rejected
                && presence.disconnected_at.is_none_or(|disconnected_at| disconnected_at > since)
        };
        let is_over = due > instance.ended_at || due > observed.ended_at;
        if is_over || presences.iter().any(may_have_reconnected) || !is_clock_steady(case, since, due) {
            continue;
        }
        if is_cancel_lost(case, place, instance, due) {
            continue;
        }
        let open = case.truth.open_after(place, case.views.sequenced_by(due));
        case.expect(open == 0, || {
            let name = &observed.setup.users[place].name;
            let (since, due) = (since.0, due.0);
            format!("{name} was disconnected at {since} ns, and {open} orders were still open at {due} ns, beyond its grace")
        });
    }
}

/// Returns true if the venue may have cancelled in time, but the log lost the cancel later: it is among the
/// lost commands that the simulator had read, or the simulator had not read all of them.
fn is_cancel_lost(case: &Case<'_>, place: usize, instance: &VenueInstance, due: Nanos) -> bool {
    let known = Views::known_by(case.observed, due);
    if known <= instance.last {
        return false;
    }
    let lost = case.observed.log.lost.iter().find(|lost| lost.at > instance.started_at);
    let read = lost.map_or(&[][..], |lost| &lost.value);
    read.iter().any(|command| command.sequence() <= known && is_own_cancel(command, place))
        || read.last().is_none_or(|last| last.sequence() < known)
}

/// Returns true if the command is the venue's own cancel of all orders of user `place`.
fn is_own_cancel(command: &LogCommand, place: usize) -> bool {
    let own = CommandKind::CancelAll { reason: CancelReason::System };
    command.engine_kind() == Some(&own) && place_of(command.session()) == Some(place)
}
