//! Each test corrupts a clean run in one way. The responsible checker must report a violation.

use tickpath_exchange::{LogCommand, LogCommandKind, VenueCommandKind};
use tickpath_matching::CommandKind;
use tickpath_nasdaq::moldudp64::Packet;
use tickpath_simulator::{
    ClientEventKind, DisconnectCause, HostFailure, Line, LoginOutcome, Observed, Timed, VenueEvent, check,
};
use tickpath_types::*;

use crate::checkers::model::{GRACE, observe};

/// Corrupts a clean run, and asserts that `checker` reports a violation; other checkers may report it too.
#[track_caller]
fn assert_found(checker: &str, corrupt: impl FnOnce(&mut Observed)) {
    let mut observed = observe(3);
    corrupt(&mut observed);
    let violations = check(&observed);
    assert!(violations.iter().any(|violation| violation.check == checker), "{violations:#?}");
}

/// Returns the index and the bytes of the last message that a client received.
fn last_received(observed: &mut Observed, client: usize) -> (usize, &mut Vec<u8>) {
    let events = &mut observed.clients[client].events;
    let is_one = |kind: &ClientEventKind| matches!(kind, ClientEventKind::Received { .. });
    let place = events.iter().rposition(|event| is_one(&event.kind)).unwrap();
    match &mut events[place].kind {
        ClientEventKind::Received { bytes, .. } => (place, bytes),
        _ => unreachable!(),
    }
}

#[test]
fn a_message_with_another_byte() {
    assert_found("streams", |observed| *last_received(observed, 0).1.last_mut().unwrap() ^= 1);
}

#[test]
fn a_message_too_early() {
    assert_found("streams", |observed| {
        let (place, _) = last_received(observed, 0);
        observed.clients[0].events[place].at = Nanos(1);
    });
}

#[test]
fn an_unexpected_message() {
    assert_found("streams", |observed| {
        let (place, _) = last_received(observed, 0);
        let mut again = observed.clients[0].events[place].clone();
        if let ClientEventKind::Received { sequence, .. } = &mut again.kind {
            sequence.0 += 1;
        }
        observed.clients[0].events.push(again);
    });
}

#[test]
fn a_message_left_out() {
    assert_found("streams", |observed| {
        let is_one = |kind: &ClientEventKind| matches!(kind, ClientEventKind::Received { .. });
        let events = &mut observed.clients[1].events;
        let place = events.iter().position(|event| is_one(&event.kind)).unwrap();
        events.remove(place);
    });
}

#[test]
fn a_login_with_a_wrong_sequence() {
    assert_found("streams", |observed| {
        let kind = |kind: &ClientEventKind| matches!(kind, ClientEventKind::LoginAnswered(_));
        let events = &mut observed.clients[2].events;
        let login = events.iter_mut().rev().find(|event| kind(&event.kind)).unwrap();
        if let ClientEventKind::LoginAnswered(LoginOutcome::Accepted { sequence }) = &mut login.kind {
            sequence.0 += 1;
        }
    });
}

#[test]
fn a_missing_answer() {
    assert_found("liveness", |observed| {
        let (place, _) = last_received(observed, 0);
        observed.clients[0].events.remove(place);
    });
}

#[test]
fn a_client_disconnected_at_the_end() {
    assert_found("liveness", |observed| {
        let last = observed.clients[0].events.last_mut().unwrap();
        last.kind = ClientEventKind::Disconnected(DisconnectCause::Venue);
    });
}

#[test]
fn a_request_that_was_not_read() {
    assert_found("liveness", |observed| {
        let read = |kind: &ClientEventKind| matches!(kind, ClientEventKind::ReadByVenue { .. });
        let events = &mut observed.clients[0].events;
        let last = events.iter().rposition(|event| read(&event.kind)).unwrap();
        events.remove(last);
    });
}

#[test]
fn a_venue_that_does_not_come_back() {
    assert_found("liveness", |observed| {
        let at = observed.ended_at;
        observed.venue.push(Timed { at, value: VenueEvent::Crashed(HostFailure::Process) });
    });
}

#[test]
fn a_command_that_is_missing_in_the_log() {
    assert_found("log", |observed| _ = observed.log.commands.remove(300));
}

#[test]
fn a_changed_command() {
    assert_found("log", |observed| {
        let VenueEvent::Started { journal, .. } = &mut observed.venue[2].value else { panic!("a start") };
        journal[200] = with_time_offset(&journal[200], 1);
    });
}

#[test]
fn a_time_that_goes_back() {
    assert_found("log", |observed| {
        let ahead = observed.log.commands[100].ts().0 - observed.log.commands[99].ts().0;
        observed.log.commands[100] = with_time_offset(&observed.log.commands[100], -ahead.cast_signed());
    });
}

/// Returns the command with its timestamp shifted by `ns`.
fn with_time_offset(command: &LogCommand, ns: i64) -> LogCommand {
    let ts = Nanos(command.ts().0.saturating_add_signed(ns));
    LogCommand::new(command.sequence(), command.session(), ts, command.kind())
}

/// Returns the command with `kind` in place of its kind.
fn with_kind(command: &LogCommand, kind: LogCommandKind) -> LogCommand {
    LogCommand::new(command.sequence(), command.session(), command.ts(), kind)
}

#[test]
fn a_venue_that_refuses_its_log() {
    assert_found("log", |observed| {
        let value = VenueEvent::Refused("damage".to_owned());
        observed.venue.insert(2, Timed { at: Nanos(5), value });
    });
}

/// Swaps two consecutive different requests from one client in the log.
#[test]
fn swapped_requests() {
    assert_found("requests", |observed| {
        let is_own = |place: &usize| observed.log.commands[*place].session() == SessionId(1);
        let places: Vec<usize> = (20..observed.log.commands.len()).filter(is_own).collect();
        let kind = |place: usize| observed.log.commands[place].kind();
        let pair = places.windows(2).find(|pair| kind(pair[0]) != kind(pair[1])).unwrap();
        let (a, b) = (pair[0], pair[1]);
        let (kind_a, kind_b) = (kind(a), kind(b));
        observed.log.commands[a] = with_kind(&observed.log.commands[a], kind_b);
        observed.log.commands[b] = with_kind(&observed.log.commands[b], kind_a);
    });
}

#[test]
fn a_request_missing_from_the_log() {
    assert_found("requests", |observed| {
        let read = |kind: &ClientEventKind| matches!(kind, ClientEventKind::ReadByVenue { .. });
        let events = &mut observed.clients[0].events;
        let last = events.iter().rposition(|event| read(&event.kind)).unwrap();
        let again = events[last].clone();
        events.push(again);
    });
}

/// The log has two requests of one duty cycle in the wrong order: the kernel received the second one first.
#[test]
fn requests_not_in_receive_order() {
    assert_found("sequencing", |observed| {
        let is_order =
            |place: usize| matches!(observed.log.commands[place].engine_kind(), Some(CommandKind::Order(_)));
        let session = |place: usize| observed.log.commands[place].session();
        let place = (500..800)
            .find(|place| is_order(*place) && is_order(place + 1) && session(*place) != session(place + 1))
            .unwrap();
        let at = observed.log.sequenced[place + 1].at;
        let (first, second) = (observed.log.sequenced[place].at, session(place + 1));
        observed.log.sequenced[place].at = at;
        let client = &mut observed.clients[usize::from(second.0) - 1];
        for event in &mut client.events {
            if let ClientEventKind::ReadByVenue { kernel_ns, .. } = &mut event.kind
                && first < event.at
                && event.at <= at
            {
                *kernel_ns = 1;
            }
        }
    });
}

#[test]
fn an_order_that_was_lost() {
    for checker in ["final state", "client orders"] {
        assert_found(checker, |observed| _ = observed.last.open_orders.pop_last());
    }
}

#[test]
fn an_unexpected_open_order() {
    for checker in ["final state", "client orders"] {
        assert_found(checker, |observed| {
            let (&(session, _), qty) = observed.last.open_orders.first_key_value().unwrap();
            let again = ((session, UserRefNum(1 << 20)), *qty);
            observed.last.open_orders.extend([again]);
        });
    }
}

/// Returns the received cancel messages with this reason code (at offset 17), in order.
fn cancels(observed: &mut Observed, reason: u8) -> impl Iterator<Item = &mut Vec<u8>> {
    let all = observed.clients.iter_mut().flat_map(|client| &mut client.events);
    let messages = all.filter_map(|event| match &mut event.kind {
        ClientEventKind::Received { bytes, .. } => Some(bytes),
        _ => None,
    });
    messages.filter(move |bytes| bytes[0] == b'C' && bytes[17] == reason)
}

/// Shifts the timestamp of a message, the eight bytes after its type.
fn shift(bytes: &mut [u8], ns: i64) {
    let stamp: &mut [u8; 8] = (&mut bytes[1..9]).try_into().unwrap();
    *stamp = u64::from_be_bytes(*stamp).saturating_add_signed(ns).to_be_bytes();
}

#[test]
fn a_missing_expiry() {
    assert_found("expiry", |observed| {
        let is_expiry = |command: &&mut LogCommand| command.engine_kind() == Some(&CommandKind::ExpireOrders);
        let done = VenueCommandKind::ScheduleDone { day: 0, second: 0 };
        let expire = observed.log.commands.iter_mut().filter(is_expiry);
        expire.for_each(|command| *command = with_kind(command, done.into()));
    });
}

#[test]
fn an_order_that_expires_for_its_client_too_early() {
    assert_found("expiry", |observed| shift(cancels(observed, b'T').next().unwrap(), -1_000_000_000));
}

#[test]
fn an_expiry_with_another_reason() {
    assert_found("expiry", |observed| cancels(observed, b'T').next().unwrap()[17] = b'U');
}

#[test]
fn an_ioc_order_that_rests() {
    assert_found("expiry", |observed| shift(cancels(observed, b'I').next().unwrap(), 1));
}

#[test]
fn an_order_open_after_its_expiry() {
    let is_found = |seed: u64| {
        let mut observed = observe(seed);
        observed.last.stopped_at = Nanos(Nanos::DAY.0 - 1);
        check(&observed).iter().any(|violation| violation.check == "expiry")
    };
    // Only some of these runs end with an open order that has an expiry.
    assert!((1..=8).any(is_found));
}

#[test]
fn a_missing_schedule_step() {
    assert_found("schedule", |observed| observed.setup.schedule.push(1));
}

#[test]
fn displayed_orders_in_another_order() {
    assert_found("final state", |observed| observed.last.displayed.swap(0, 1));
}

/// Flips a bit of the byte at offset `at` of an execution. The quantity begins at offset 13, the price at 17.
fn corrupt_execution(observed: &mut Observed, at: usize) {
    let all = observed.clients.iter_mut().flat_map(|client| &mut client.events);
    let mut messages = all.filter_map(|event| match &mut event.kind {
        ClientEventKind::Received { bytes, .. } => Some(bytes),
        _ => None,
    });
    messages.find(|bytes| bytes[0] == b'E').unwrap()[at] ^= 1;
}

#[test]
fn an_execution_of_two_quantities() {
    assert_found("trades", |observed| corrupt_execution(observed, 16));
    assert_found("money", |observed| corrupt_execution(observed, 16));
}

#[test]
fn an_execution_at_two_prices() {
    assert_found("trades", |observed| corrupt_execution(observed, 24));
    assert_found("money", |observed| corrupt_execution(observed, 24));
}

#[test]
fn a_packet_on_one_line_alone() {
    assert_found("lines", |observed| {
        let place = observed.published.iter().position(|sent| sent.value.0 == Line::B).unwrap();
        observed.published.remove(place);
    });
}

#[test]
fn a_packet_that_differs_on_line_b() {
    assert_found("lines", |observed| {
        let sent = observed.published.iter_mut().rev().find(|sent| sent.value.0 == Line::B).unwrap();
        *sent.value.1.last_mut().unwrap() ^= 1;
    });
}

#[test]
fn a_retransmission_that_differs() {
    assert_found("lines", |observed| {
        let sent = observed.published[0].clone();
        let mut bytes = sent.value.1;
        assert!(Packet::parse(&bytes).unwrap().message_count() > 0);
        *bytes.last_mut().unwrap() ^= 1;
        observed.retransmitted.push(Timed { at: sent.at, value: bytes });
    });
}

#[test]
fn messages_that_were_never_published() {
    assert_found("lines", |observed| {
        let last = observed.published.len() - 2;
        observed.published.truncate(last);
    });
}

#[test]
fn an_update_with_another_price() {
    assert_found("feeds", |observed| {
        let update = observed.feeds[0].updates.iter_mut().rev().find(|update| update.bid.qty > 0).unwrap();
        update.bid.price += 1;
    });
}

#[test]
fn an_update_that_is_missing() {
    assert_found("feeds", |observed| _ = observed.feeds[0].updates.pop());
}

#[test]
fn a_book_with_one_order_less() {
    assert_found("feeds", |observed| _ = observed.feeds[0].orders.pop());
}

#[test]
fn a_book_that_stays_stale() {
    assert_found("feeds", |observed| observed.feeds[0].health[1].1 = BookHealth::Stale);
}

#[test]
fn a_feed_handler_that_is_behind() {
    assert_found("feeds", |observed| observed.feeds[0].next.0 -= 1);
}

/// Returns the index of the last command that cancelled a disconnected user's orders.
fn cancel_on_disconnect_index(observed: &Observed) -> usize {
    let own = CommandKind::CancelAll { reason: CancelReason::System };
    observed.log.commands.iter().rposition(|command| command.engine_kind() == Some(&own)).unwrap()
}

#[test]
fn a_cancel_before_the_grace_is_over() {
    assert_found("disconnects", |observed| {
        let place = cancel_on_disconnect_index(observed);
        observed.log.sequenced[place].at.0 -= GRACE.0 / 2;
    });
}

#[test]
fn a_cancel_for_a_connected_user() {
    assert_found("disconnects", |observed| {
        let disconnected_at_venue = |kind: &ClientEventKind| *kind == ClientEventKind::DisconnectedAtVenue;
        let events = &mut observed.clients[1].events;
        let place = events.iter().rposition(|event| disconnected_at_venue(&event.kind)).unwrap();
        events.remove(place);
    });
}

#[test]
fn a_cancel_without_cancel_on_disconnect() {
    assert_found("disconnects", |observed| observed.setup.users[1].cancel_on_disconnect = None);
}

/// The venue cancels a disconnected user's orders long after the grace period.
#[test]
fn a_late_cancel() {
    assert_found("disconnects", |observed| {
        let place = cancel_on_disconnect_index(observed);
        let late = 30 * GRACE.0;
        observed.log.sequenced[place..].iter_mut().for_each(|step| step.at.0 += late);
        observed.ended_at.0 += late;
        let (disconnected_at_venue, back) =
            (ClientEventKind::DisconnectedAtVenue, ClientEventKind::Connected);
        let events = &mut observed.clients[1].events;
        let last_disconnect = events.iter().rposition(|event| event.kind == disconnected_at_venue).unwrap();
        let back =
            last_disconnect + events[last_disconnect..].iter().position(|event| event.kind == back).unwrap();
        events[back..].iter_mut().for_each(|event| event.at.0 += late);
    });
}

#[test]
fn a_wrong_state_hash() {
    assert_found("replay", |observed| observed.last.state_hash ^= 1);
    assert_found("replay", |observed| observed.log.snapshots[1].state_hash ^= 1);
    assert_found("replay", |observed| {
        observed.log.snapshots[1].payload[0] ^= 1;
    });
    assert_found("replay", |observed| {
        let VenueEvent::Started { state_hash, .. } = &mut observed.venue[2].value else { panic!("a start") };
        *state_hash ^= 1;
    });
}

#[test]
fn a_wrong_counter() {
    for place in 0..4 {
        assert_found("counters", |observed| observed.last.counters[place].1 += 1);
    }
}

/// Acknowledged records may be lost in a power loss under `async`, but never under `group`.
#[test]
fn only_the_async_policy_excuses_losses() {
    use tickpath_journal::Policy;
    for (policy, is_excused) in [(Policy::Async, true), (Policy::Group, false)] {
        let mut observed = observe(5);
        observed.setup.policy = policy;
        // Before the power loss, a client received one message more than the final log causes.
        let crash = observed.venue[1].at;
        let events = &mut observed.clients[0].events;
        let last = |kind: &ClientEventKind| matches!(kind, ClientEventKind::Received { .. });
        let place = events.iter().rposition(|event| last(&event.kind) && event.at <= crash).unwrap();
        let mut lost = events[place].clone();
        if let ClientEventKind::Received { sequence, bytes } = &mut lost.kind {
            sequence.0 += 1;
            bytes[1] ^= 1;
        }
        events.insert(place + 1, lost);
        let violations = check(&observed);
        assert_eq!(violations.is_empty(), is_excused, "{violations:#?}");
    }
}
