//! Tests of the choice of the line reader, and of duty cycles, each of which applies one packet.

use tickpath_feedhandler::{LineReader, ReadBy};
use tickpath_types::Nanos;

use crate::READER;
use crate::channel::{Channel, assert_equal_books};

/// Number of messages sent before those under test. Every later message causes an update for the engines.
const OPENING: u64 = 30;

/// Returns a channel that has delivered the first `OPENING` messages.
fn opened() -> Option<Channel> {
    let mut channel = Channel::open()?;
    let opening = channel.packet(1, OPENING as usize);
    channel.send(0, &opening);
    assert_eq!(channel.take_received().last(), Some(&OPENING), "a long packet is delivered at once");
    Some(channel)
}

#[test]
fn the_configured_line_reader_is_used() {
    let Some(channel) = Channel::open() else { return };
    let by = match READER {
        LineReader::Ring => ReadBy::Ring,
        _ => ReadBy::Sockets { because: None },
    };
    assert_eq!(channel.view.read_by.get(), Some(&by));
}

#[test]
fn auto_prefers_a_ring_and_falls_back_to_sockets() {
    let has_ring = Channel::with(|settings| settings.reader = LineReader::Ring).is_some();
    let mut channel = Channel::with(|settings| settings.reader = LineReader::Auto).unwrap();
    match channel.view.read_by.get() {
        Some(ReadBy::Ring) => assert!(has_ring),
        Some(ReadBy::Sockets { because: Some(_) }) => assert!(!has_ring),
        other => panic!("{other:?}"),
    }
    let packet = channel.packet(1, OPENING as usize);
    channel.send(1, &packet);
    assert_eq!(channel.take_received().last(), Some(&OPENING));
}

#[test]
fn a_duty_cycle_delivers_a_packet_and_marks_its_last_update() {
    let Some(mut channel) = opened() else { return };
    let mut first = OPENING + 1;
    for count in (1..=10).chain([15]) {
        let packet = channel.packet(first, count);
        channel.send(0, &packet);
        let flags: Vec<u8> = channel.received.iter().map(|update| update.has_more).collect();
        assert!(
            flags.split_last().is_some_and(|(last, others)| *last == 0 && others.iter().all(|it| *it == 1))
        );
        assert_eq!(channel.take_received(), (first..first + count as u64).collect::<Vec<_>>());
        // Line B sends a duplicate of the packet.
        channel.send(1, &packet);
        channel.run_cycle();
        assert!(channel.take_received().is_empty());
        first += count as u64;
    }
}

#[test]
fn packets_are_delivered_in_order() {
    let Some(mut channel) = opened() else { return };
    let mut first = OPENING + 1;
    for count in [5, 2, 12, 3, 8, 1] {
        let packet = channel.packet(first, count);
        channel.emit(0, &packet);
        channel.emit(1, &packet);
        first += count as u64;
    }
    channel.until("the last message", |channel| {
        channel.received.last().is_some_and(|update| update.sequence == first - 1)
    });
    assert_eq!(channel.take_received(), (OPENING + 1..first).collect::<Vec<_>>());
}

#[test]
fn the_rest_of_a_longer_duplicate_is_delivered() {
    let Some(mut channel) = opened() else { return };
    let (start, whole) = (channel.packet(OPENING + 1, 2), channel.packet(OPENING + 1, 4));
    channel.send(0, &start);
    assert_eq!(channel.take_received(), [OPENING + 1, OPENING + 2]);
    channel.send(1, &whole);
    assert_eq!(channel.take_received(), [OPENING + 3, OPENING + 4]);
}

#[test]
fn a_packet_that_closes_a_gap_is_delivered_at_once() {
    let Some(mut channel) = opened() else { return };
    channel.is_answering = false;
    let (missing, ahead) = (channel.packet(OPENING + 1, 3), channel.packet(OPENING + 4, 2));
    channel.send(0, &ahead);
    assert!(channel.take_received().is_empty());
    channel.send(1, &missing);
    assert_eq!(channel.take_received(), [1, 2, 3, 4, 5].map(|message| OPENING + message));
}

#[test]
fn unsolicited_answers_keep_the_order() {
    let Some(mut channel) = opened() else { return };
    // Open a gap, so that the server learns the address for its answers.
    let ahead = channel.packet(OPENING + 3, 1);
    channel.send(0, &ahead);
    channel
        .until("the answer", |channel| channel.received.iter().any(|update| update.sequence == OPENING + 3));
    channel.advance(Nanos::from_millis(2));
    channel.take_received();

    let (packet, unsolicited) = (channel.packet(OPENING + 4, 4), channel.packet(OPENING + 8, 3));
    channel.send_unsolicited(&unsolicited);
    channel.emit(0, &packet);
    channel.wait(Nanos::from_millis(2));
    channel.until("all messages", |channel| {
        channel.received.iter().any(|update| update.sequence == OPENING + 10)
    });
    assert_eq!(channel.take_received(), (OPENING + 4..=OPENING + 10).collect::<Vec<_>>());
    let (feed, ..) = channel.close();
    assert_eq!(feed.arbiter.gaps_opened, 1, "the unasked answer was not looked at first");
}

#[test]
fn warm_up_runs_have_no_effect() {
    let Some(mut channel) = opened() else { return };
    let packet = channel.packet(OPENING + 1, 3);
    channel.send(0, &packet);
    channel.take_received();
    channel.warm_up(100);
    assert!(channel.received.is_empty());
    let rest = channel.recording.packets().into_iter().filter(|(first, _)| *first > OPENING + 3);
    let first = OPENING + 4;
    let next = rest.clone().next().unwrap().0;
    channel.send_packet((first, (next - first) as usize), [false; 2]);
    for packet in rest.collect::<Vec<_>>() {
        channel.send_packet(packet, [false; 2]);
        channel.warm_up(1);
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!(feed.arbiter.lines[0].duplicate_messages, 0);
}
