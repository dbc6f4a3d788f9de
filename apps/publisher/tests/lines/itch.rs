//! Tests of the recovery services of ITCH channels: the MoldUDP64 request server, and GLIMPSE.

use std::io::Write;
use std::net::UdpSocket;

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_nasdaq::moldudp64::{Packet, Request, Session};
use tickpath_test_support::{PATIENCE, connect, soup, udp_socket, wait_for};
use tickpath_types::{InstrumentId, Sequence};
use zerocopy::FromBytes;

use super::recordings::itch_day;
use super::{Publisher, options, read_bytes};

fn session() -> Session {
    Session::new("TICKPATH").unwrap()
}

/// Returns a publisher that has sent its whole recording, and the recorded messages.
fn published() -> (Publisher, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let file = itch_day(folder.path());
    let bytes = std::fs::read(&file).unwrap();
    let messages: Vec<Vec<u8>> =
        Frames::new(&bytes, Lengths::Prefixed).map(|message| message.unwrap().to_vec()).collect();
    let publisher = Publisher::start(options(&file));
    let socket = client();
    let last = messages.len() as u64;
    wait_for("the last message", || {
        ask(&socket, &publisher, last, 1).or_else(|| {
            std::thread::yield_now();
            None
        })
    });
    (publisher, messages)
}

fn client() -> UdpSocket {
    let socket = udp_socket();
    socket.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    socket
}

/// Returns the answer to a request, if one arrives within the socket's read timeout.
fn ask(socket: &UdpSocket, publisher: &Publisher, first: u64, count: u16) -> Option<Vec<(u64, Vec<u8>)>> {
    let request = Request { session: session(), sequence: Sequence(first), message_count: count };
    socket.send_to(&request.to_bytes(), publisher.address("retransmission")).unwrap();
    let mut buffer = [0; 2_000];
    let len = socket.recv(&mut buffer).ok()?;
    let packet = Packet::parse(&buffer[..len]).unwrap();
    assert_eq!(packet.session(), session());
    Some(packet.messages().map(|(sequence, message)| (sequence.0, message.to_vec())).collect())
}

#[test]
fn messages_are_resent_one_packet_at_a_time() {
    let (publisher, messages) = published();
    let socket = client();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut next = 100;
    while next < 400 {
        let given = ask(&socket, &publisher, next, (400 - next) as u16).unwrap();
        assert!(!given.is_empty());
        for (sequence, message) in given {
            // Ignore a late answer to an earlier request.
            if sequence == next {
                assert_eq!(messages[sequence as usize - 1], message);
                next += 1;
            }
        }
    }
    let report = publisher.stop();
    assert_eq!(report.channels[0].messages, messages.len() as u64);
}

#[test]
fn a_snapshot_by_glimpse_leads_to_the_books_of_all_messages() {
    let (publisher, messages) = published();
    let books = || BookBuilder::new(PackedBooks::new(BookLimits::new(InstrumentId(64), 4_096)));
    let (mut all, mut snapshot) = (books(), books());
    for (sequence, message) in (1..).zip(&messages) {
        all.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
    }

    let mut stream = connect(publisher.address("glimpse"));
    stream.write_all(&soup::login("", "", "", 1)).unwrap();
    let mut end = None;
    while end.is_none() {
        let len = u16::from_be_bytes(read_bytes(&mut stream, 2).try_into().unwrap());
        let packet = read_bytes(&mut stream, len.into());
        match (packet[0], packet.get(1)) {
            (b'S', Some(b'G')) => {
                end = EndOfSnapshot::ref_from_bytes(&packet[1..]).ok().and_then(EndOfSnapshot::sequence)
            }
            (b'S', Some(_)) => snapshot.handle_message(Sequence(1), &packet[1..], &mut IgnoreUpdates),
            (b'A' | b'H', _) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(end, Some(Sequence(messages.len() as u64 + 1)));
    assert_eq!(snapshot.books().state_hash(), all.books().state_hash());
}
