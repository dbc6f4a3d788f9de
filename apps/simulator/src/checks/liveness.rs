//! After the faults, the venue and the feed handlers are running. Every client is logged in and has all
//! messages, and the venue has read all of its requests.

use super::views::InstanceEnd;
use super::{Case, requests};
use crate::{ClientEvent, ClientEventKind, ClientLog, FeedInstance, LoginOutcome, VenueEvent};

pub(super) fn check(case: &Case<'_>) {
    let Some(instance) = case.views.instances.last() else {
        return case.fail(|| "the venue never started".to_owned());
    };
    if instance.end == InstanceEnd::Crashed || instance.has_failed {
        let last = case.observed.venue.last().map(|event| &event.value);
        let reason =
            if let Some(VenueEvent::Refused(reason)) = last { reason.clone() } else { format!("{last:?}") };
        return case.fail(|| format!("the venue is not running at the end: {reason}"));
    }
    for (place, client) in case.observed.clients.iter().enumerate() {
        let name = &case.observed.setup.users[place].name;
        check_client(case, name, case.truth.streams[place].len() as u64, client);
    }
    let feeds = &case.observed.feeds;
    for feed in feeds {
        let is_later = |other: &FeedInstance| other.started_at > feed.started_at;
        let is_last = !feeds.iter().any(|other| other.handler == feed.handler && is_later(other));
        case.expect(!is_last || feed.ended_at.is_none(), || {
            format!("feed handler {} is not running at the end", feed.handler)
        });
    }
}

/// Checks that a client is logged in at the end, and has received the messages up to number `all`.
pub(super) fn check_client(case: &Case<'_>, name: &str, all: u64, client: &ClientLog) {
    let of_login = |kind: &ClientEventKind| {
        matches!(kind, ClientEventKind::LoginAnswered(LoginOutcome::Accepted { .. }))
    };
    let Some(login) = client.events.iter().rev().find(|event| of_login(&event.kind)) else {
        return case.fail(|| format!("{name} never logged in"));
    };
    let connection_events = || client.events.iter().filter(|event| event.connection == login.connection);
    let lost = connection_events().find(|event| matches!(event.kind, ClientEventKind::Disconnected(_)));
    if let Some(lost) = lost.filter(|lost| lost.at < case.observed.ended_at) {
        case.fail(|| {
            format!("{name} is not connected at the end: disconnected at {} ns: {:?}", lost.at.0, lost.kind)
        });
    }
    let received = connection_events().filter_map(|event| match &event.kind {
        ClientEventKind::Received { sequence, .. } => Some(sequence.0),
        ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) => Some(sequence.0 - 1),
        _ => None,
    });
    let received = received.max().unwrap_or(0);
    case.expect(received >= all, || {
        format!("{name} has message {received} at the end, and the log causes {all}")
    });
    check_arrived(case, name, client, login.connection);
}

/// Checks that the venue read all requests that the client sent on `connection`.
fn check_arrived(case: &Case<'_>, name: &str, client: &ClientLog, connection: u32) {
    let is_sent = |event: &&ClientEvent| {
        event.connection == connection && matches!(event.kind, ClientEventKind::Sent(_))
    };
    let sent = client.events.iter().filter(is_sent).count();
    let read = requests::reads_of(client).iter().filter(|read| read.connection == connection).count();
    case.expect(read == sent, || {
        format!("{name} sent {sent} requests on its last connection, and the venue read {read}")
    });
}
