//! Drop copies repeat the watched users' messages once each, in log order, from any number, in any instance.

use std::collections::BTreeMap;

use tickpath_types::Nanos;

use super::truth::Told;
use super::views::End;
use super::{Case, liveness, streams};
use crate::{ClientEventKind, CopyReader, LoginOutcome};

/// Length of the user's name before a copy.
const NAME_LEN: usize = 6;
/// Reject code for an unavailable message, or a user that is already logged in.
const SESSION_NOT_AVAILABLE: u8 = b'S';

pub(super) fn check(case: &Case<'_>) {
    let Some(reader) = &case.observed.copies else { return };
    let stream = stream_of(case, reader);
    streams::check_client(case, "who reads drop copies", &stream, &reader.log);
    if case.views.lives.last().is_some_and(|life| life.end != End::Crashed) {
        liveness::check_client(case, "who reads drop copies", stream.len() as u64, &reader.log);
    }
    if reader.is_log_whole {
        for failure in &reader.failures {
            let (at, why) = (failure.at.0, &failure.what);
            case.say(|| format!("at {at} ns the log could not be followed any more: {why}"));
        }
        check_refusals(case, reader);
    }
}

/// Returns the copies of the watched users, in log order.
fn stream_of(case: &Case<'_>, reader: &CopyReader) -> Vec<Told> {
    let mut numbers = vec![0; case.truth.streams.len()];
    let mut stream = Vec::new();
    for user in &case.truth.order {
        numbers[*user] += 1;
        if reader.watched.contains(user) {
            stream.push(copy_of(case, *user, numbers[*user]));
        }
    }
    stream
}

/// Returns the user's name, the number in its session, and the message.
fn copy_of(case: &Case<'_>, user: usize, number: u64) -> Told {
    let Told { command, bytes, .. } = &case.truth.streams[user][number as usize - 1];
    let mut copy = case.observed.setup.users[user].name.clone().into_bytes();
    copy.resize(NAME_LEN, b' ');
    copy.extend(number.to_be_bytes());
    copy.extend(bytes);
    Told { command: *command, event: None, bytes: copy }
}

/// A login for available messages is accepted, unless another connection of the user is still open.
fn check_refusals(case: &Case<'_>, reader: &CopyReader) {
    let events = &reader.log.events;
    let gone = events.iter().filter(|event| event.kind == ClientEventKind::GoneAtVenue);
    let gone: BTreeMap<u32, Nanos> = gone.map(|event| (event.connection, event.at)).collect();
    let mut asked_at = Nanos::ZERO;
    for event in events {
        match event.kind {
            ClientEventKind::LoginSent { .. } => asked_at = event.at,
            ClientEventKind::LoginAnswered(LoginOutcome::Rejected(SESSION_NOT_AVAILABLE)) => {
                let is_gone = |connection: u32| {
                    gone.get(&connection).is_some_and(|at| *at + case.observed.setup.reaction_max <= asked_at)
                };
                let is_free = (1..event.connection).all(is_gone);
                case.expect(!is_free || case.views.may_be_unknown(Nanos::ZERO), || {
                    let at = event.at.0;
                    format!("at {at} ns a login was refused, and the log leads to what it asked for")
                });
            }
            _ => {}
        }
    }
}
