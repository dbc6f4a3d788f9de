//! Datagrams that are not valid packets of the session.

use tickpath_feedhandler::{FeedSettings, LineReader, Senders};
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Session};
use tickpath_types::{BookHealth, Sequence};
use zerocopy::IntoBytes;

use crate::READER;
use crate::channel::{Channel, assert_equal_books, session};

#[test]
fn invalid_packets_are_counted_and_dropped() {
    let Some(mut channel) = Channel::open() else { return };
    let packets = channel.recording.packets();
    channel.send_packet(packets[0], [false; 2]);
    let good = channel.packet(packets[1].0, packets[1].1);
    let garbage: [&[u8]; 6] =
        [b"", b"x", &[0xff; 19], &[0xff; 1_400], &good[..good.len() - 1], &[&good[..], b"tail"].concat()];
    for line in 0..2 {
        for datagram in garbage {
            channel.send(line, datagram);
        }
        send_too_long(&mut channel, line);
    }
    for packet in &packets[1..] {
        channel.send_packet(*packet, [false; 2]);
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    let malformed = if READER == LineReader::Ring { 6 } else { 7 };
    assert_eq!(feed.arbiter.lines.each_ref().map(|line| line.malformed), [malformed, malformed, 0]);
    assert_eq!((feed.arbiter.gaps_opened, feed.worst_health()), (0, BookHealth::Live));
}

/// Sends a datagram that is too long. Sockets return it as malformed; a packet ring drops it as unreadable.
fn send_too_long(channel: &mut Channel, line: usize) {
    const DATAGRAM: [u8; 2_500] = [0x20; 2_500];
    if READER != LineReader::Ring {
        return channel.send(line, &DATAGRAM);
    }
    let before = channel.view.counters.unreadable.read();
    channel.emit(line, &DATAGRAM);
    channel.until("the drop", |channel| channel.view.counters.unreadable.read() > before);
}

#[test]
fn packets_of_another_session_are_counted_and_dropped() {
    let Some(mut channel) = Channel::open() else { return };
    let packets = channel.recording.packets();
    channel.send_packet(packets[0], [false; 2]);
    let mut other = PacketBuilder::new([0; 100], Session::new("MONDAY").unwrap(), Sequence(packets[1].0));
    other.push(b"S").unwrap();
    let other = other.finish().to_vec();
    channel.send(0, &other);
    channel.send(1, Header::end_of_session(Session::new("MONDAY").unwrap(), Sequence(9)).as_bytes());
    for packet in &packets[1..] {
        channel.send_packet(*packet, [false; 2]);
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!(feed.arbiter.lines.each_ref().map(|line| line.wrong_session), [1, 1, 0]);
}

#[test]
fn a_restarted_venue_makes_the_books_stale() {
    let Some(mut channel) = Channel::open() else { return };
    channel.send_all(|_, _| false);
    let other = Header::heartbeat(Session::new("TUESDAY").unwrap(), Sequence(1));
    for line in [0, 1, 0] {
        channel.send(line, other.as_bytes());
    }
    channel.until("the news", |channel| channel.view.counters.other_sessions.read() == 1);
    let error = channel.last_error().expect("it is reported");
    assert!(error.contains("'TUESDAY'") && error.contains("restart this program"), "{error}");
    let (feed, _, updates) = channel.close();
    assert_eq!(feed.worst_health(), BookHealth::Stale);
    assert_eq!(updates.last().unwrap().health(), BookHealth::Stale, "and traders are notified");
    assert_eq!((feed.arbiter.other_sessions, feed.arbiter.lines[1].wrong_session), (1, 1));
}

#[test]
fn sequence_numbers_far_ahead_are_counted_and_dropped() {
    let Some(mut channel) = Channel::open() else { return };
    let packets = channel.recording.packets();
    channel.send_packet(packets[0], [false; 2]);
    channel.send(0, Header::heartbeat(session(), Sequence(1 << 63)).as_bytes());
    for packet in &packets[1..] {
        channel.send_packet(*packet, [false; 2]);
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!((feed.arbiter.lines[0].far_ahead, feed.arbiter.gaps_opened), (1, 0));
}

#[test]
fn packets_from_unauthorised_sources_are_dropped() {
    let publisher = std::net::Ipv4Addr::new(127, 0, 0, 9);
    let change = |settings: &mut FeedSettings| {
        settings.senders = Senders::of(Some(&[publisher]), settings.interface, None);
    };
    let Some(mut channel) = Channel::with(change) else { return };
    for (first, count) in channel.recording.packets() {
        let datagram = channel.packet(first, count);
        for line in 0..2 {
            let before = channel.view.counters.unauthorised.read();
            channel.emit(line, &datagram);
            channel.until("the drop", |channel| channel.view.counters.unauthorised.read() > before);
        }
    }
    assert_eq!(channel.view.counters.packets.each_ref().map(|count| count.read()), [0; 3]);
    assert_eq!(channel.view.counters.messages.read(), 0);
}

#[test]
fn unauthorised_recovery_answers_are_dropped() {
    let Some(mut channel) = Channel::open() else { return };
    channel.is_answering = false;
    let packets = channel.recording.packets();
    channel.send_packet(packets[0], [false; 2]);
    channel.send_packet(packets[2], [false; 2]);
    channel.until("the request", Channel::has_requested);
    // The forged packet has the right session and sequence number, but does not come from the venue's server.
    let mut forged = PacketBuilder::new([0; 1_400], session(), Sequence(packets[1].0));
    for _ in 0..packets[1].1 {
        forged.push(&channel.recording.messages[0]).unwrap();
    }
    let forged = forged.finish().to_vec();
    channel.send_from_another_socket(&forged);
    channel.until("the drop", |channel| channel.view.counters.unsolicited_answers.read() == 1);
    channel.until("the gap", |channel| channel.view.counters.open_gap.read() == 1);
    assert_eq!(channel.view.counters.packets[2].read(), 0);
    let good = channel.packet(packets[1].0, packets[1].1);
    channel.send_unsolicited(&good);
    channel.until("the server's answer", |channel| channel.view.counters.open_gap.read() == 0);
    // The forged packet is also dropped while no gap is open.
    channel.send_from_another_socket(&forged);
    channel.until("the drop", |channel| channel.view.counters.unsolicited_answers.read() == 2);
    for packet in &packets[3..] {
        channel.send_packet(*packet, [false; 2]);
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
}

#[test]
fn invalid_messages_are_counted_and_the_rest_applied() {
    let Some(mut channel) = Channel::open() else { return };
    let packets = channel.recording.packets();
    let (first, count) = packets[0];
    let mut bad = PacketBuilder::new([0; 1_400], session(), Sequence(first));
    for message in &channel.recording.messages[first as usize - 1..][..count] {
        bad.push(message).unwrap();
    }
    // These messages take the sequence numbers of the next packet's messages.
    for message in [&b"A"[..], b"?new type", b""] {
        bad.push(message).unwrap();
    }
    let bad = bad.finish().to_vec();
    channel.send(0, &bad);
    channel.until("the messages", |channel| channel.view.counters.messages.read() == count as u64 + 3);
    let (feed, ..) = channel.close();
    assert_eq!((feed.builder.malformed, feed.builder.unknown_type), (2, 1));
    assert_eq!((feed.builder.messages, feed.arbiter.gaps_opened), (count as u64 + 3, 0));
}

#[test]
fn the_end_of_the_session_is_no_gap() {
    let Some(mut channel) = Channel::open() else { return };
    channel.send_all(|_, _| false);
    let end = Header::end_of_session(session(), Sequence(channel.recording.messages.len() as u64 + 1));
    for _ in 0..3 {
        channel.send(0, end.as_bytes());
        channel.send(1, end.as_bytes());
    }
    let (feed, recording, _) = channel.finish();
    assert_equal_books(&feed, &recording);
    assert_eq!(feed.arbiter.gaps_opened, 0);
}
