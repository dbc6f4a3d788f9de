//! Packets lost on one line or on both.

use tickpath_book::BooksById;
use tickpath_feed::{LossConfig, LossModel, MessageBooks};
use tickpath_nasdaq::moldudp64::Header;
use tickpath_types::{BookHealth, MarketUpdate, Nanos, Sequence};
use zerocopy::IntoBytes;

use crate::channel::{Channel, assert_equal_books, of_messages, session};

/// Returns the healths of an instrument's book in the order received by the engines, without repetitions.
fn healths(received: &[MarketUpdate], instrument: u16) -> Vec<BookHealth> {
    let mut list: Vec<_> =
        received.iter().filter(|update| update.instrument == instrument).map(MarketUpdate::health).collect();
    list.dedup();
    list
}

#[test]
fn messages_of_both_lines_are_delivered_once() {
    let Some(mut channel) = Channel::open() else { return };
    channel.send_all(|_, _| false);
    let (feed, recording, received) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!(feed.worst_health(), BookHealth::Live);
    let count = recording.messages.len() as u64;
    let [a, b, recovery] = &feed.arbiter.lines;
    assert_eq!((a.first_messages, b.duplicate_messages, recovery.packets), (count, count, 0));
    assert_eq!((feed.arbiter.gaps_opened, feed.arbiter.line_losses()), (0, 0));
    let sequences = of_messages(&received);
    assert!(sequences.is_sorted_by(|a, b| a < b), "each message is published once, in order");
    assert!(sequences.len() > 1_500, "{}", sequences.len());
}

#[test]
fn losses_of_one_line_are_filled_by_the_other() {
    for (losing, other) in [(0, 1), (1, 0)] {
        let Some(mut channel) = Channel::open() else { return };
        channel.send_all(|line, place| line == losing && place % 3 == 1);
        let (feed, recording, _) = channel.finish();
        assert_equal_books(&feed, &recording);
        let lines = &feed.arbiter.lines;
        assert!(lines[losing].missed_messages > 500, "{lines:?}");
        assert_eq!(lines[other].missed_messages, 0);
        assert_eq!((feed.arbiter.messages_lost, feed.arbiter.requests), (0, 0));
        assert_eq!(feed.worst_health(), BookHealth::Live);
    }
}

#[test]
fn alternating_losses_are_filled() {
    let Some(mut channel) = Channel::open() else { return };
    channel.send_all(|line, place| place % 2 == line);
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!((feed.arbiter.messages_lost, feed.arbiter.requests), (0, 0));
}

#[test]
fn a_late_packet_closes_the_gap() {
    let Some(mut channel) = Channel::open() else { return };
    let packets = channel.recording.packets();
    channel.is_answering = false;
    // The third packet arrives on both lines before the second, which arrives on line B only.
    channel.send_packet(packets[0], [false; 2]);
    channel.send_packet(packets[2], [false; 2]);
    channel.until("the gap", |channel| channel.view.counters.open_gap.read() == 1);
    channel.send_packet(packets[1], [true, false]);
    channel.until("the end of the gap", |channel| channel.view.counters.open_gap.read() == 0);
    let counters = &channel.view.counters;
    assert_eq!((counters.gaps_opened.read(), counters.gaps_healed_by_line.read()), (1, 1));
    assert_eq!(counters.messages_lost.read(), 0);
}

#[test]
fn losses_on_both_lines_are_retransmitted() {
    let Some(mut channel) = Channel::open() else { return };
    channel.send_all(|_, place| place % 10 == 4);
    let (feed, recording, received) = channel.finish();
    assert_equal_books(&feed, &recording);
    let counters = &feed.arbiter;
    assert!(counters.gaps_healed_by_retransmission > 10, "{counters:?}");
    assert_eq!((counters.gaps_opened, counters.messages_lost), (counters.gaps_healed(), 0));
    assert_eq!(feed.worst_health(), BookHealth::Live);
    let seen = healths(&received, 1);
    assert!(seen.contains(&BookHealth::Recovering), "engines learn of the gap: {seen:?}");
    assert_eq!(seen.last(), Some(&BookHealth::Live));
    assert!(!seen.contains(&BookHealth::Stale), "{seen:?}");
}

#[test]
fn a_lost_tail_is_detected_by_the_heartbeat() {
    let Some(mut channel) = Channel::open() else { return };
    let last = channel.recording.packets().len() - 1;
    channel.send_all(|_, place| place == last);
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!(feed.arbiter.gaps_healed_by_retransmission, 1);
}

#[test]
fn permanent_losses_make_every_book_stale() {
    let Some(mut channel) = Channel::with(|settings| settings.arbiter.max_requests = 4) else { return };
    channel.is_answering = false;
    let packets = channel.recording.packets();
    let lost = packets[200];
    for packet in &packets[..200] {
        channel.send_packet(*packet, [false; 2]);
    }
    assert_eq!(healths(&channel.received, 1), [BookHealth::Live]);
    channel.send_packet(packets[201], [false; 2]);
    channel.advance(Nanos::from_millis(50));
    assert_eq!(healths(&channel.received, 1), [BookHealth::Live, BookHealth::Recovering]);
    assert_eq!(channel.view.counters.open_gap.read(), 1);
    channel.until("the loss", |channel| channel.view.counters.messages_lost.read() > 0);
    assert_eq!(channel.view.counters.messages_lost.read(), lost.1 as u64);
    for instrument in 1..=3 {
        assert_eq!(healths(&channel.received, instrument).last(), Some(&BookHealth::Stale), "{instrument}");
    }

    for packet in &packets[202..] {
        channel.send_packet(*packet, [false; 2]);
    }
    let (feed, recording, received) = channel.finish();
    assert!(feed.worst_health() >= BookHealth::Stale, "it stays so");
    assert_eq!(feed.arbiter.requests, 4, "as often as it may ask");
    assert_eq!(feed.arbiter.gaps_lost, 1);
    assert_eq!(feed.builder.messages, recording.messages.len() as u64 - lost.1 as u64);
    assert_eq!(
        of_messages(&received).last(),
        Some(&(recording.messages.len() as u64)),
        "the session continues"
    );
}

#[test]
fn buffered_messages_follow_a_loss_at_once() {
    let Some(mut channel) = Channel::with(|settings| settings.retransmission = None) else { return };
    let opening = channel.packet(1, 30);
    channel.send(0, &opening);
    assert_eq!(channel.take_received().last(), Some(&30));
    let after_the_loss = channel.packet(32, 6);
    channel.send(0, &after_the_loss);
    channel.until("the loss", |channel| !of_messages(&channel.received).is_empty());
    assert_eq!(channel.take_received(), [32, 33, 34, 35, 36, 37]);
    channel.advance(Nanos::from_millis(1));
    assert!(channel.take_received().is_empty());
}

#[test]
fn without_a_retransmission_server_a_gap_is_a_loss() {
    let Some(mut channel) = Channel::with(|settings| settings.retransmission = None) else { return };
    let packets = channel.recording.packets();
    channel.send_packet(packets[0], [false; 2]);
    let next = Sequence(packets[1].0 + packets[1].1 as u64);
    channel.send(0, Header::heartbeat(session(), next).as_bytes());
    // Advance past the wait for the other line, and until the counters are published.
    channel.advance(Nanos::from_millis(2));
    assert_eq!(channel.view.counters.messages_lost.read(), packets[1].1 as u64);
    assert_eq!(healths(&channel.received, 1).last(), Some(&BookHealth::Stale));
}

#[test]
fn injected_losses_are_counted_and_recovered() {
    let loss = LossConfig { seed: 3, loss_ppm: 100_000, common_ppm: 300_000 };
    let Some(mut channel) = Channel::with(|settings| settings.loss = Some(LossModel::new(&loss))) else {
        return;
    };
    channel.send_all(|_, _| false);
    let injected = [0, 1].map(|line| channel.view.counters.injected_losses[line].read());
    assert!(injected.iter().all(|count| *count > 10), "{injected:?}");
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert!(feed.arbiter.gaps_healed_by_retransmission > 0);
    assert_eq!(feed.worst_health(), BookHealth::Live);
}

#[test]
fn repeated_sequence_numbers_reset_the_books() {
    let Some(mut channel) = Channel::open() else { return };
    let opening = channel.packet(1, 30);
    channel.send(0, &opening);
    for number in 1..=u64::from(tickpath_feed::JUMP_BACK_PACKETS) {
        let again = channel.packet(number, 1);
        channel.send(0, &again);
    }
    channel.send_all(|_, _| false);
    let (feed, recording, _) = channel.finish();
    assert_eq!((feed.arbiter.jumps_back, feed.worst_health()), (1, BookHealth::Live));
    assert_eq!(feed.builder.messages, 30 + recording.messages.len() as u64);
    assert_eq!(feed.books.books().state_hash(), recording.state_hash, "nothing of before is left");
}
