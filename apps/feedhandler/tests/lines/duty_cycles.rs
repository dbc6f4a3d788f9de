//! Tests of the choice of the line reader, and of the distribution of a packet's messages over duty cycles.

use tickpath_feedhandler::{LineReader, ReadBy};
use tickpath_nasdaq::moldudp64::PacketBuilder;
use tickpath_types::{Nanos, Sequence};

use crate::READER;
use crate::channel::{Channel, assert_equal_books, of_messages, session};

/// Maximum number of messages in a packet that is spread over duty cycles.
const SPREAD_MAX: usize = 8;
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
fn short_packets_are_delivered_one_message_per_cycle() {
    let Some(mut channel) = opened() else { return };
    let mut first = OPENING + 1;
    for count in 1..=SPREAD_MAX {
        let packet = channel.packet(first, count);
        channel.send(0, &packet);
        for message in first..first + count as u64 {
            assert_eq!(channel.take_received(), [message], "of {count} from {first}");
            channel.run_cycle();
        }
        assert!(channel.take_received().is_empty(), "of {count} from {first}");
        // Line B sends a duplicate of the packet.
        channel.send(1, &packet);
        channel.run_cycle();
        assert!(channel.take_received().is_empty());
        first += count as u64;
    }
}

#[test]
fn longer_packets_are_delivered_at_once() {
    let Some(mut channel) = opened() else { return };
    let packet = channel.packet(OPENING + 1, SPREAD_MAX + 1);
    channel.send(0, &packet);
    let all: Vec<_> = (1..=SPREAD_MAX as u64 + 1).map(|message| OPENING + message).collect();
    assert_eq!(channel.take_received(), all);
}

#[test]
fn deferred_messages_precede_the_next_packet() {
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
fn the_rest_of_a_longer_duplicate_is_deferred() {
    let Some(mut channel) = opened() else { return };
    let (start, whole) = (channel.packet(OPENING + 1, 2), channel.packet(OPENING + 1, 4));
    channel.send(0, &start);
    channel.run_cycle();
    assert_eq!(channel.take_received(), [OPENING + 1, OPENING + 2]);
    channel.send(1, &whole);
    assert_eq!(channel.take_received(), [OPENING + 3]);
    channel.run_cycle();
    assert_eq!(channel.take_received(), [OPENING + 4]);
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
fn closing_delivers_deferred_messages() {
    let Some(mut channel) = opened() else { return };
    let packet = channel.packet(OPENING + 1, 6);
    channel.send(0, &packet);
    assert_eq!(channel.take_received(), [OPENING + 1]);
    let (feed, _, received) = channel.close();
    assert_eq!(of_messages(&received), [2, 3, 4, 5, 6].map(|message| OPENING + message));
    assert_eq!((feed.builder.messages, feed.next_sequence), (OPENING + 6, Sequence(OPENING + 7)));
}

#[test]
fn a_message_too_long_to_defer_keeps_the_order() {
    let Some(mut channel) = opened() else { return };
    let mut packet = PacketBuilder::new([0; 1_400], session(), Sequence(OPENING + 1));
    let mut long = [0; 60];
    long[0] = b'?';
    let messages = &channel.recording.messages[OPENING as usize..];
    for message in [&messages[0][..], &messages[1], &messages[2], &long, &messages[3]] {
        packet.push(message).unwrap();
    }
    let packet = packet.finish().to_vec();
    channel.send(0, &packet);
    assert_eq!(channel.take_received(), [1, 2, 3, 5].map(|message| OPENING + message), "all at once then");
    channel.run_cycle();
    assert!(channel.take_received().is_empty());
    let (feed, ..) = channel.close();
    assert_eq!((feed.builder.messages, feed.builder.unknown_type), (OPENING + 5, 1));
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
    for message in [2, 3] {
        channel.warm_up(100);
        assert!(channel.received.is_empty());
        channel.run_cycle();
        assert_eq!(channel.take_received(), [OPENING + message]);
    }
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
