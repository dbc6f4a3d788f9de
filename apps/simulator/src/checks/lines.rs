//! Published packets are gap-free, equal on both lines and in retransmissions, and carry the log's messages.

use tickpath_types::{Nanos, Sequence};

use super::Case;
use super::streams::shown;
use super::views::InstanceEnd;
use super::wire::Mold;
use crate::{Line, Timed};

pub(super) fn check(case: &Case<'_>) {
    for line in [Line::A, Line::B] {
        let mut next: Option<(usize, Sequence)> = None;
        for sent in case.observed.published.iter().filter(|sent| sent.value.0 == line) {
            let Some(packet) = parse(case, sent.at, &sent.value.1) else { continue };
            let Some(instance) = case.views.instance_at(sent.at) else { continue };
            let expected = match next {
                Some((its, next)) if its == instance => next,
                // A new instance continues after the recovered log. It sends older messages, even those
                // never sent before, only when they are requested.
                _ => Sequence(case.truth.market_after(case.views.instances[instance].after) + 1),
            };
            case.expect(packet.sequence == expected.0, || {
                format!(
                    "line {line:?} at {} ns: a packet begins with message {}, and {expected} is next",
                    sent.at.0, packet.sequence
                )
            });
            next = Some((instance, Sequence(packet.next_sequence())));
        }
    }
    check_line_equality(case);
    for sent in &case.observed.retransmitted {
        if let Some(packet) = parse(case, sent.at, &sent.value) {
            case.expect(!packet.messages.is_empty(), || {
                format!("at {} ns an answer to a request has no message", sent.at.0)
            });
        }
    }
    check_all_sent(case);
}

/// Parses a packet, and compares its messages with the expected ones.
fn parse<'a>(case: &Case<'_>, at: Nanos, bytes: &'a [u8]) -> Option<Mold<'a>> {
    let Some(packet) = Mold::parse(bytes) else {
        case.fail(|| format!("at {} ns a datagram was sent that is not a packet: {bytes:02x?}", at.0));
        return None;
    };
    for (sequence, message) in (packet.sequence..).map(Sequence).zip(&packet.messages) {
        check_message(case, at, sequence, message);
    }
    Some(packet)
}

fn check_message(case: &Case<'_>, at: Nanos, sequence: Sequence, message: &[u8]) {
    let Some(public) = (sequence.0 as usize).checked_sub(1).and_then(|place| case.truth.market.get(place))
    else {
        case.expect(case.views.may_be_unknown(at), || {
            let (at, count, message) = (at.0, case.truth.market.len(), shown(message));
            format!("at {at} ns message {sequence} was published, and the log causes only {count}: {message}")
        });
        return;
    };
    let command = public.event.command;
    case.expect(public.bytes == message || case.views.may_be_lost(at, command), || {
        let (at, found, expected) = (at.0, shown(message), shown(&public.bytes));
        format!(
            "at {at} ns message {sequence} was published as {found}, and command {command} causes {expected}"
        )
    });
}

/// Each packet is sent on line A, then on line B; a venue may crash between the two.
fn check_line_equality(case: &Case<'_>) {
    for (place, instance) in case.views.instances.iter().enumerate() {
        let of = |line: Line| -> Vec<&Timed<(Line, Vec<u8>)>> {
            let all = case.observed.published.iter();
            all.filter(|sent| sent.value.0 == line && case.views.instance_at(sent.at) == Some(place))
                .collect()
        };
        let (a, b) = (of(Line::A), of(Line::B));
        let may_miss = usize::from(instance.end == InstanceEnd::Crashed);
        case.expect(a.len() == b.len() || a.len() == b.len() + may_miss, || {
            format!(
                "from {} ns on line A had {} packets and line B {}",
                instance.started_at.0,
                a.len(),
                b.len()
            )
        });
        if let Some((a, _)) = a.iter().zip(&b).find(|(a, b)| a.value.1 != b.value.1) {
            case.fail(|| format!("the packet that line A had at {} ns is another on line B", a.at.0));
        }
    }
}

/// A venue that does not crash sends all messages.
fn check_all_sent(case: &Case<'_>) {
    let Some(instance) = case
        .views
        .instances
        .last()
        .filter(|instance| instance.end != InstanceEnd::Crashed && !instance.has_failed)
    else {
        return;
    };
    let sent = case.observed.published.iter().rev().find(|sent| sent.at >= instance.started_at);
    let next =
        sent.and_then(|sent| Mold::parse(&sent.value.1)).map(|packet| Sequence(packet.next_sequence()));
    let end = Sequence(case.truth.market.len() as u64 + 1);
    let next = next.unwrap_or(Sequence(case.truth.market_after(instance.after) + 1));
    case.expect(next == end, || {
        format!("the lines ended before message {next}, and the log causes all up to {end}")
    });
}
