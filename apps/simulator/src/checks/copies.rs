//! Drop copies repeat each message of the watched users once, in log order, from any requested sequence
//! number, in every instance of the venue.

use std::collections::BTreeMap;

use tickpath_types::Nanos;

use super::truth::ExpectedMessage;
use super::views::InstanceEnd;
use super::{Case, liveness, streams};
use crate::{ClientEventKind, CopyReader, LoginOutcome};

/// Length of the user's name at the beginning of a drop copy.
const NAME_LEN: usize = 6;
/// Login reject code: the requested message is unavailable, or the user is already logged in.
const SESSION_NOT_AVAILABLE: u8 = b'S';

pub(super) fn check(case: &Case<'_>) {
    let Some(reader) = &case.observed.copies else { return };
    let stream = stream_of(case, reader);
    streams::check_client(case, "the drop copy reader", &stream, &reader.log);
    if case.views.instances.last().is_some_and(|instance| instance.end != InstanceEnd::Crashed) {
        liveness::check_client(case, "the drop copy reader", stream.len() as u64, &reader.log);
    }
    if reader.is_log_whole {
        for failure in &reader.failures {
            let (at, reason) = (failure.at.0, &failure.value);
            case.fail(|| format!("at {at} ns reading the log failed: {reason}"));
        }
        check_refusals(case, reader);
    }
}

/// Returns the expected drop copies of the watched users, in log order.
fn stream_of(case: &Case<'_>, reader: &CopyReader) -> Vec<ExpectedMessage> {
    let mut numbers = vec![0; case.truth.streams.len()];
    let mut stream = Vec::new();
    for user in &case.truth.order {
        numbers[*user] += 1;
        if reader.watched.contains(user) {
            stream.push(drop_copy_of(case, *user, numbers[*user]));
        }
    }
    stream
}

/// Returns a user's expected drop copy: the name, the sequence number in the user's session, and the message.
fn drop_copy_of(case: &Case<'_>, user: usize, number: u64) -> ExpectedMessage {
    let ExpectedMessage { command, bytes, .. } = &case.truth.streams[user][number as usize - 1];
    let mut drop_copy = case.observed.setup.users[user].name.clone().into_bytes();
    drop_copy.resize(NAME_LEN, b' ');
    drop_copy.extend(number.to_be_bytes());
    drop_copy.extend(bytes);
    ExpectedMessage { command: *command, event: None, bytes: drop_copy }
}

/// Checks that no login is refused as unavailable after the venue closed the reader's earlier connections.
fn check_refusals(case: &Case<'_>, reader: &CopyReader) {
    let events = &reader.log.events;
    let closed_at = events.iter().filter(|event| event.kind == ClientEventKind::DisconnectedAtVenue);
    let closed_at: BTreeMap<u32, Nanos> = closed_at.map(|event| (event.connection, event.at)).collect();
    let mut requested_at = Nanos::ZERO;
    for event in events {
        match event.kind {
            ClientEventKind::LoginSent { .. } => requested_at = event.at,
            ClientEventKind::LoginAnswered(LoginOutcome::Rejected(SESSION_NOT_AVAILABLE)) => {
                let is_closed = |connection: u32| {
                    closed_at
                        .get(&connection)
                        .is_some_and(|at| *at + case.observed.setup.reaction_max <= requested_at)
                };
                let is_free = (1..event.connection).all(is_closed);
                case.expect(!is_free || case.views.may_be_unknown(Nanos::ZERO), || {
                    let at = event.at.0;
                    format!("at {at} ns a login was refused, and the log has the requested messages")
                });
            }
            _ => {}
        }
    }
}
