//! Every message that a client received, repeated ones included, is the expected one for its sequence number.

use tickpath_types::{Nanos, Sequence};

use super::Case;
use super::truth::ExpectedMessage;
use crate::{ClientEventKind, ClientLog, LoginOutcome};

pub(super) fn check(case: &Case<'_>) {
    for (place, client) in case.observed.clients.iter().enumerate() {
        let name = &case.observed.setup.users[place].name;
        check_client(case, name, &case.truth.streams[place], client);
    }
}

/// Compares the messages that a client received with the expected stream.
pub(super) fn check_client(case: &Case<'_>, name: &str, stream: &[ExpectedMessage], client: &ClientLog) {
    check_numbers(case, client);
    case.about(String::new());
    check_messages(case, name, stream, client);
}

/// The login answer has the requested sequence number, and the messages after it are numbered without gaps.
fn check_numbers(case: &Case<'_>, client: &ClientLog) {
    let session = client.session;
    let (mut requested, mut next, mut connection) = (Sequence(0), None, 0);
    // The venue may still read from a connection after the client has begun the next one.
    let is_recorded_by_venue =
        |kind: &_| matches!(kind, ClientEventKind::ReadByVenue { .. } | ClientEventKind::DisconnectedAtVenue);
    for event in client.events.iter().filter(|event| !is_recorded_by_venue(&event.kind)) {
        if event.connection != connection {
            (requested, next, connection) = (Sequence(0), None, event.connection);
            case.about(format!("session {session}, connection {connection}"));
        }
        match &event.kind {
            ClientEventKind::LoginSent { sequence } => requested = *sequence,
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) => {
                case.expect(requested.0 == 0 || requested == *sequence, || {
                    format!("requested message {requested}, received {sequence}")
                });
                next = Some(*sequence);
            }
            ClientEventKind::Received { sequence, .. } => {
                case.expect(next == Some(*sequence), || format!("message {sequence} in place of {next:?}"));
                next = Some(sequence.next());
            }
            ClientEventKind::Garbage => {
                case.fail(|| "bytes that are no SoupBinTCP".to_owned());
            }
            _ => {}
        }
    }
}

fn check_messages(case: &Case<'_>, name: &str, stream: &[ExpectedMessage], client: &ClientLog) {
    let mut logged_in_at = Nanos::ZERO;
    for event in &client.events {
        if matches!(event.kind, ClientEventKind::LoginSent { .. }) {
            logged_in_at = event.at;
        }
        match &event.kind {
            ClientEventKind::Received { sequence, bytes } => {
                check_message(case, name, stream, [logged_in_at, event.at], (*sequence, bytes));
            }
            // A login's answer has the next message's number: at most one beyond the end of the stream.
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) => {
                let end = stream.len() as u64 + 1;
                case.expect(sequence.0 <= end || case.views.may_be_unknown(logged_in_at), || {
                    let (session, count) = (client.session, end - 1);
                    format!("session {session}: a login was answered with {sequence} as the next message, and the log causes {count} messages")
                });
            }
            _ => {}
        }
    }
}

fn check_message(
    case: &Case<'_>,
    name: &str,
    stream: &[ExpectedMessage],
    // Any power loss since the login excuses a difference: a message sent before a loss can arrive after it.
    [logged_in_at, at]: [Nanos; 2],
    (sequence, bytes): (Sequence, &[u8]),
) {
    let Some(expected_message) = (sequence.0 as usize).checked_sub(1).and_then(|index| stream.get(index))
    else {
        case.expect(case.views.may_be_unknown(logged_in_at), || {
            let (at, count, message) = (at.0, stream.len(), shown(bytes));
            format!(
                "{name} received message {sequence} at {at} ns, and the log causes only {count}: {message}"
            )
        });
        return;
    };
    case.expect(expected_message.bytes == bytes || case.views.may_be_lost(logged_in_at, expected_message.command), || {
        let (at, found, command, expected) = (at.0, shown(bytes), expected_message.command, shown(&expected_message.bytes));
        format!("{name} received as message {sequence} at {at} ns {found}, and command {command} causes {expected}")
    });
    if expected_message.bytes == bytes
        && let Some(sequenced) = case.views.time_of(expected_message.command)
    {
        case.expect(at >= sequenced || case.views.may_be_unknown(logged_in_at), || {
            format!(
                "{name} received message {sequence} at {} ns, before command {} was sequenced at {} ns",
                at.0, expected_message.command, sequenced.0
            )
        });
    }
}

/// Formats a message for display: its type letter, then the other bytes in hexadecimal.
pub(super) fn shown(bytes: &[u8]) -> String {
    let letter = bytes.first().map_or(' ', |byte| char::from(*byte));
    let digits: String = bytes.iter().skip(1).map(|byte| format!("{byte:02x}")).collect();
    format!("'{letter}' {digits}")
}
