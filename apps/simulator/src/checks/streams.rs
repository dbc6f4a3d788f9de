//! Every message that a client received is the one that the log causes, under its number, each time that it is sent.

use tickpath_types::{Nanos, Sequence};

use super::Case;
use super::report::Report;
use super::truth::Told;
use crate::{ClientEventKind, ClientLog, LoginOutcome};

pub(super) fn check(case: &Case<'_>, report: &mut Report) {
    for (place, client) in case.observed.clients.iter().enumerate() {
        let name = &case.observed.users[place].name;
        check_client(case, name, &case.truth.streams[place], client, report);
    }
}

/// What a client received, compared with the stream that it should receive.
pub(super) fn check_client(
    case: &Case<'_>,
    name: &str,
    stream: &[Told],
    client: &ClientLog,
    report: &mut Report,
) {
    check_numbers(client, report);
    check_messages(case, name, stream, client, report);
}

/// Within a connection the numbers go on by one from what the login was answered, which is what it asked for.
fn check_numbers(client: &ClientLog, report: &mut Report) {
    let session = client.session;
    let (mut asked, mut next, mut connection) = (Sequence(0), None, 0);
    // What the venue notes of a connection may come after the client has begun the next one.
    let is_noted_by_venue =
        |kind: &_| matches!(kind, ClientEventKind::ReadByVenue { .. } | ClientEventKind::GoneAtVenue);
    for event in client.events.iter().filter(|event| !is_noted_by_venue(&event.kind)) {
        if event.connection != connection {
            (asked, next, connection) = (Sequence(0), None, event.connection);
        }
        match &event.kind {
            ClientEventKind::LoginSent { sequence } => asked = *sequence,
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) => {
                report.expect(asked.0 == 0 || asked == *sequence, || {
                    format!(
                        "session {session}, connection {connection}: asked for message {asked}, was given {sequence}"
                    )
                });
                next = Some(*sequence);
            }
            ClientEventKind::Received { sequence, .. } => {
                report.expect(next == Some(*sequence), || {
                    format!(
                        "session {session}, connection {connection}: message {sequence} in place of {next:?}"
                    )
                });
                next = Some(sequence.next());
            }
            ClientEventKind::Garbage => {
                report.say(|| {
                    format!("session {session}, connection {connection}: bytes that are no SoupBinTCP")
                });
            }
            _ => {}
        }
    }
}

fn check_messages(case: &Case<'_>, name: &str, stream: &[Told], client: &ClientLog, report: &mut Report) {
    let mut logged_in_at = Nanos::ZERO;
    for event in &client.events {
        if matches!(event.kind, ClientEventKind::LoginSent { .. }) {
            logged_in_at = event.at;
        }
        match &event.kind {
            ClientEventKind::Received { sequence, bytes } => {
                check_message(case, name, stream, [logged_in_at, event.at], (*sequence, bytes), report);
            }
            // A login for new messages alone is told where they begin: not beyond what there will ever be.
            ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) => {
                let end = stream.len() as u64 + 1;
                report.expect(sequence.0 <= end || case.views.may_be_unknown(logged_in_at), || {
                    format!(
                        "session {}: a login was told that message {sequence} is next, and the log causes {} messages",
                        client.session,
                        end - 1
                    )
                });
            }
            _ => {}
        }
    }
}

fn check_message(
    case: &Case<'_>,
    name: &str,
    stream: &[Told],
    // What is still on its way when power is lost arrives afterwards, on a connection of before: it may even be the
    // login's answer.
    [logged_in_at, at]: [Nanos; 2],
    (sequence, bytes): (Sequence, &[u8]),
    report: &mut Report,
) {
    let Some(told) = (sequence.0 as usize).checked_sub(1).and_then(|index| stream.get(index)) else {
        report.expect(case.views.may_be_unknown(logged_in_at), || {
            format!(
                "{name} received message {sequence} at {} ns, and the log causes only {}: {}",
                at.0,
                stream.len(),
                shown(bytes)
            )
        });
        return;
    };
    report.expect(told.bytes == bytes || case.views.may_be_lost(logged_in_at, told.command), || {
        format!(
            "{name} received as message {sequence} at {} ns {}, and command {} causes {}",
            at.0,
            shown(bytes),
            told.command,
            shown(&told.bytes)
        )
    });
    if told.bytes == bytes
        && let Some(sequenced) = case.views.time_of(told.command)
    {
        report.expect(at >= sequenced || case.views.may_be_unknown(logged_in_at), || {
            format!(
                "{name} received message {sequence} at {} ns, before command {} was sequenced at {} ns",
                at.0, told.command, sequenced.0
            )
        });
    }
}

/// A message for people: its letter and its bytes.
pub(super) fn shown(bytes: &[u8]) -> String {
    let letter = bytes.first().map_or(' ', |byte| char::from(*byte));
    let digits: String = bytes.iter().skip(1).map(|byte| format!("{byte:02x}")).collect();
    format!("'{letter}' {digits}")
}
