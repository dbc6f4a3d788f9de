//! The distribution of a packet's messages over duty cycles.

use tickpath_feedhandler::{LineReader, ReadBy};
use tickpath_nasdaq::moldudp64::PacketBuilder;
use tickpath_types::{Nanos, Sequence};

use crate::READER;
use crate::channel::{Channel, assert_equal_books, of_messages, session};

/// Maximum number of messages in a packet that is spread over duty cycles.
const SPREAD_MAX: usize = 8;
/// Number of messages before those under test. From here on each message causes an update for the engines.
const OPENING: u64 = 30;

/// Returns a channel that has delivered the opening.
fn opened() -> Option<Channel> {
    let mut channel = Channel::open()?;
    let opening = channel.packet(1, OPENING as usize);
    channel.send(0, &opening);
    assert_eq!(channel.take_heard().last(), Some(&OPENING), "a long packet is delivered at once");
    Some(channel)
}

#[test]
fn the_lines_are_read_as_was_asked_for() {
    let Some(channel) = Channel::open() else { return };
    let by = match READER {
        LineReader::Ring => ReadBy::Ring,
        _ => ReadBy::Sockets { because: None },
    };
    assert_eq!(channel.view.read_by.get(), Some(&by));
}

#[test]
fn auto_takes_a_ring_where_there_is_one_and_sockets_with_a_reason_where_there_is_none() {
    let has_ring = Channel::with(|settings| settings.reader = LineReader::Ring).is_some();
    let mut channel = Channel::with(|settings| settings.reader = LineReader::Auto).unwrap();
    match channel.view.read_by.get() {
        Some(ReadBy::Ring) => assert!(has_ring),
        Some(ReadBy::Sockets { because: Some(_) }) => assert!(!has_ring),
        other => panic!("{other:?}"),
    }
    let packet = channel.packet(1, OPENING as usize);
    channel.send(1, &packet);
    assert_eq!(channel.take_heard().last(), Some(&OPENING));
}

#[test]
fn each_message_of_a_short_packet_has_a_duty_cycle_of_its_own() {
    let Some(mut channel) = opened() else { return };
    let mut first = OPENING + 1;
    for count in 1..=SPREAD_MAX {
        let packet = channel.packet(first, count);
        channel.send(0, &packet);
        for message in first..first + count as u64 {
            assert_eq!(channel.take_heard(), [message], "of {count} from {first}");
            channel.turn();
        }
        assert!(channel.take_heard().is_empty(), "of {count} from {first}");
        // The other line's copy.
        channel.send(1, &packet);
        channel.turn();
        assert!(channel.take_heard().is_empty());
        first += count as u64;
    }
}

#[test]
fn a_packet_with_one_message_more_is_delivered_at_once() {
    let Some(mut channel) = opened() else { return };
    let packet = channel.packet(OPENING + 1, SPREAD_MAX + 1);
    channel.send(0, &packet);
    let all: Vec<_> = (1..=SPREAD_MAX as u64 + 1).map(|message| OPENING + message).collect();
    assert_eq!(channel.take_heard(), all);
}

#[test]
fn what_waits_comes_before_the_next_packet() {
    let Some(mut channel) = opened() else { return };
    let mut first = OPENING + 1;
    for count in [5, 2, 12, 3, 8, 1] {
        let packet = channel.packet(first, count);
        channel.emit(0, &packet);
        channel.emit(1, &packet);
        first += count as u64;
    }
    channel.until("the last message", |channel| {
        channel.heard.last().is_some_and(|update| update.sequence == first - 1)
    });
    assert_eq!(channel.take_heard(), (OPENING + 1..first).collect::<Vec<_>>());
}

#[test]
fn the_end_of_an_unfinished_copy_waits_too() {
    let Some(mut channel) = opened() else { return };
    let (start, whole) = (channel.packet(OPENING + 1, 2), channel.packet(OPENING + 1, 4));
    channel.send(0, &start);
    channel.turn();
    assert_eq!(channel.take_heard(), [OPENING + 1, OPENING + 2]);
    channel.send(1, &whole);
    assert_eq!(channel.take_heard(), [OPENING + 3]);
    channel.turn();
    assert_eq!(channel.take_heard(), [OPENING + 4]);
}

#[test]
fn a_packet_that_closes_a_gap_is_delivered_at_once() {
    let Some(mut channel) = opened() else { return };
    channel.is_answering = false;
    let (missing, ahead) = (channel.packet(OPENING + 1, 3), channel.packet(OPENING + 4, 2));
    channel.send(0, &ahead);
    assert!(channel.take_heard().is_empty());
    channel.send(1, &missing);
    assert_eq!(channel.take_heard(), [1, 2, 3, 4, 5].map(|message| OPENING + message));
}

#[test]
fn closing_delivers_what_waits() {
    let Some(mut channel) = opened() else { return };
    let packet = channel.packet(OPENING + 1, 6);
    channel.send(0, &packet);
    assert_eq!(channel.take_heard(), [OPENING + 1]);
    let (feed, _, heard) = channel.close();
    assert_eq!(of_messages(&heard), [2, 3, 4, 5, 6].map(|message| OPENING + message));
    assert_eq!((feed.builder.messages, feed.next_sequence), (OPENING + 6, Sequence(OPENING + 7)));
}

#[test]
fn a_message_too_long_to_wait_overtakes_none() {
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
    assert_eq!(channel.take_heard(), [1, 2, 3, 5].map(|message| OPENING + message), "all at once then");
    channel.turn();
    assert!(channel.take_heard().is_empty());
    let (feed, ..) = channel.close();
    assert_eq!((feed.builder.messages, feed.builder.unknown_type), (OPENING + 5, 1));
}

#[test]
fn an_answer_that_nobody_asked_for_overtakes_none() {
    let Some(mut channel) = opened() else { return };
    // A gap, so that the server learns the address for its answers.
    let ahead = channel.packet(OPENING + 3, 1);
    channel.send(0, &ahead);
    channel.until("the answer", |channel| channel.heard.iter().any(|update| update.sequence == OPENING + 3));
    channel.pass(Nanos::from_millis(2));
    channel.take_heard();

    let (packet, unasked) = (channel.packet(OPENING + 4, 4), channel.packet(OPENING + 8, 3));
    channel.serve_unasked(&unasked);
    channel.emit(0, &packet);
    channel.wait(Nanos::from_millis(2));
    channel
        .until("all messages", |channel| channel.heard.iter().any(|update| update.sequence == OPENING + 10));
    assert_eq!(channel.take_heard(), (OPENING + 4..=OPENING + 10).collect::<Vec<_>>());
    let (feed, ..) = channel.close();
    assert_eq!(feed.arbiter.gaps_opened, 1, "the unasked answer was not looked at first");
}

#[test]
fn a_rehearsal_is_noticed_by_nobody() {
    let Some(mut channel) = opened() else { return };
    let packet = channel.packet(OPENING + 1, 3);
    channel.send(0, &packet);
    channel.take_heard();
    for message in [2, 3] {
        channel.rehearse(100);
        assert!(channel.heard.is_empty());
        channel.turn();
        assert_eq!(channel.take_heard(), [OPENING + message]);
    }
    let rest = channel.recording.packets().into_iter().filter(|(first, _)| *first > OPENING + 3);
    let first = OPENING + 4;
    let next = rest.clone().next().unwrap().0;
    channel.send_packet((first, (next - first) as usize), [false; 2]);
    for packet in rest.collect::<Vec<_>>() {
        channel.send_packet(packet, [false; 2]);
        channel.rehearse(1);
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!(feed.arbiter.lines[0].duplicate_messages, 0);
}
