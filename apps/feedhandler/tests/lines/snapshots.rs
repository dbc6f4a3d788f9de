//! Snapshots recover the books when lost messages are not retransmitted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_feedhandler::SnapshotSources;
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{AddOrder, Message};
use tickpath_nasdaq::moldudp64::PacketBuilder;
use tickpath_nasdaq::wire::{Shares, ShortPrice};
use tickpath_net::{MulticastSender, SendStatus, free_multicast_group};
use tickpath_reference::ReferenceBooks;
use tickpath_test_support::soup::{login_accepted, packet};
use tickpath_test_support::{REFUSING, listen_nonblocking};
use tickpath_types::{BookHealth, InstrumentId, Nanos, Sequence, Side};
use zerocopy::IntoBytes;

use crate::channel::{Channel, Recording, session};

/// Returns the messages of a snapshot per instrument, as of just before message `next`.
fn states(recording: &Recording, next: u64) -> Vec<Vec<Vec<u8>>> {
    let limits = BookLimits::new(InstrumentId(3), 1_024);
    let mut builder = BookBuilder::new(Indexed::<ReferenceBooks>::new(limits));
    let mut states = vec![vec![]; 3];
    for message in &recording.messages[..next as usize - 1] {
        builder.handle_message(Sequence(1), message, &mut IgnoreUpdates);
        let id = match Message::parse(message).unwrap() {
            Message::StockDirectory(directory) => directory.stock_locate.get(),
            Message::StockTradingAction(action) => action.stock_locate.get(),
            _ => continue,
        };
        states[usize::from(id.0) - 1].push(message.clone());
    }
    for (state, id) in states.iter_mut().zip((1..).map(InstrumentId)) {
        let symbol = builder.instrument(id).unwrap().symbol.unwrap();
        for order in Side::BOTH.into_iter().flat_map(|side| builder.books().orders(id, side)) {
            let shares = Shares::try_from(order.qty).unwrap();
            let price = ShortPrice::try_from(order.price).unwrap();
            let (tracking, ts) = (zerocopy::byteorder::big_endian::U16::ZERO, Nanos(7));
            let add = AddOrder::new(id, tracking, ts, order.id, order.side, shares, symbol, price);
            state.push(add.as_bytes().to_vec());
        }
    }
    states
}

fn end(next: u64) -> Vec<u8> {
    EndOfSnapshot::of(Sequence(next)).as_bytes().to_vec()
}

/// A snapshot server controlled by the test.
struct Glimpse {
    listener: TcpListener,
    address: SocketAddrV4,
    clients: Vec<(TcpStream, bool)>,
    /// Messages of the snapshot.
    snapshot: Vec<Vec<u8>>,
    /// Number of bytes of the answer to a login after which the server closes the connection.
    cut_after: Option<usize>,
    /// True when the server has no snapshot and sends only heartbeats.
    is_idle: bool,
    logins: usize,
}

impl Glimpse {
    fn open() -> Glimpse {
        let (listener, address) = listen_nonblocking();
        let (clients, snapshot) = (vec![], vec![]);
        Glimpse { listener, address, clients, snapshot, cut_after: None, is_idle: false, logins: 0 }
    }

    fn poll(&mut self) {
        if let Ok((client, _)) = self.listener.accept() {
            client.set_nonblocking(true).unwrap();
            self.clients.push((client, false));
        }
        let mut bytes = [0; 256];
        for (client, has_login) in &mut self.clients {
            match client.read(&mut bytes) {
                Ok(count) if count >= 49 && bytes[2] == b'L' && !*has_login => {
                    assert_eq!(bytes[19..29].trim_ascii(), b"TODAY");
                    *has_login = true;
                    self.logins += 1;
                    let mut answer = login_accepted("TODAY", 1);
                    for message in &self.snapshot {
                        answer.extend(packet(b'S', message));
                    }
                    if !self.is_idle {
                        answer.extend(packet(b'Z', b""));
                    }
                    let len = self.cut_after.unwrap_or(answer.len()).min(answer.len());
                    client.write_all(&answer[..len]).unwrap();
                    if self.cut_after.is_some() {
                        client.shutdown(std::net::Shutdown::Write).unwrap();
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset))
                }
            }
            if self.is_idle && *has_login {
                // The client may have disconnected.
                let _ = client.write_all(&packet(b'H', b""));
            }
        }
    }
}

/// Returns a channel without retransmission that lost `count` packets from packet `lost` on, and the index
/// of the packet to send next.
fn channel_with_loss(sources: SnapshotSources, lost: usize, count: usize) -> Option<(Channel, usize)> {
    let mut channel = Channel::with(|settings| {
        settings.snapshots = sources;
        settings.retransmission = None;
        settings.arbiter.max_gap_messages = 0;
    })?;
    let packets = channel.recording.packets();
    for (place, packet) in packets.iter().enumerate().take(lost + count + 20) {
        let is_lost = (lost..lost + count).contains(&place);
        channel.send_packet(*packet, [is_lost; 2]);
    }
    channel.advance(Nanos::from_millis(2));
    Some((channel, lost + count + 20))
}

/// Sends the remaining packets, and checks that the books equal the venue's.
fn check(mut channel: Channel, next_packet: usize) {
    let packets = channel.recording.packets();
    for packet in &packets[next_packet..] {
        channel.send_packet(*packet, [false; 2]);
    }
    let (feed, recording, _) = channel.finish();
    assert_eq!(feed.books.books().state_hash(), recording.state_hash);
    assert_eq!(feed.worst_health(), BookHealth::Live);
    assert_eq!(feed.builder.unknown_order + feed.builder.duplicate_order + feed.builder.malformed, 0);
}

fn first_sequence(channel: &Channel, packet: usize) -> u64 {
    channel.recording.packets()[packet].0
}

#[test]
fn a_glimpse_snapshot_recovers_a_gap_and_a_late_start() {
    for lost in [40, 0] {
        let mut glimpse = Glimpse::open();
        let sources = SnapshotSources { glimpse: Some(glimpse.address), ..SnapshotSources::none() };
        let Some((mut channel, sent)) = channel_with_loss(sources, lost, 60) else { return };
        assert_eq!(channel.view.counters.snapshots.waiting.read(), 3);
        let next = first_sequence(&channel, lost + 70);
        glimpse.snapshot = states(&channel.recording, next).concat();
        glimpse.snapshot.push(end(next));
        channel.until("the healing", |channel| {
            glimpse.poll();
            channel.view.counters.snapshots.recovered.read() == 3
        });
        assert_eq!(glimpse.logins, 1);
        check(channel, sent);
    }
}

#[test]
fn interrupted_and_old_snapshots_are_requested_again() {
    let mut glimpse = Glimpse::open();
    let sources = SnapshotSources { glimpse: Some(glimpse.address), ..SnapshotSources::none() };
    let Some((mut channel, sent)) = channel_with_loss(sources, 40, 60) else { return };
    let (old, new) = (first_sequence(&channel, 50), first_sequence(&channel, 110));
    glimpse.snapshot = states(&channel.recording, old).concat();
    glimpse.snapshot.push(end(old));
    // The connection is closed in the middle of a message.
    glimpse.cut_after = Some(400);
    let before = channel.now();
    channel.until("the failure", |channel| {
        glimpse.poll();
        channel.view.counters.snapshots.failures.read() == 1
    });
    assert!(channel.now().since(before) < Nanos::from_millis(500), "a cut is no silence");
    glimpse.cut_after = None;
    channel.until("the old one", |channel| {
        glimpse.poll();
        channel.view.counters.snapshots.too_old.read() >= 1
    });
    assert_eq!(channel.view.counters.snapshots.recovered.read(), 0);
    glimpse.snapshot = states(&channel.recording, new).concat();
    glimpse.snapshot.push(end(new));
    channel.until("the healing", |channel| {
        glimpse.poll();
        channel.view.counters.snapshots.recovered.read() == 3
    });
    check(channel, sent);
}

#[test]
fn a_server_with_only_heartbeats_times_out() {
    let mut glimpse = Glimpse { is_idle: true, ..Glimpse::open() };
    let sources = SnapshotSources { glimpse: Some(glimpse.address), ..SnapshotSources::none() };
    let Some((mut channel, sent)) = channel_with_loss(sources, 40, 60) else { return };
    let mut cycles = 0;
    while channel.view.counters.snapshots.failures.read() == 0 {
        glimpse.poll();
        channel.wait(Nanos::from_millis(10));
        channel.run_cycle();
        cycles += 1;
        assert!(cycles < 1_000, "ten seconds");
    }
    assert_eq!(glimpse.logins, 1);
    glimpse.is_idle = false;
    let next = first_sequence(&channel, 110);
    glimpse.snapshot = states(&channel.recording, next).concat();
    glimpse.snapshot.push(end(next));
    channel.until("the healing", |channel| {
        glimpse.poll();
        channel.view.counters.snapshots.recovered.read() == 3
    });
    check(channel, sent);
}

/// Returns the number of sockets that listen to a group.
fn listeners(group: SocketAddrV4) -> usize {
    let address = format!("{:08X}:{:04X}", u32::from_ne_bytes(group.ip().octets()), group.port());
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    sockets.lines().filter(|line| line.split_whitespace().nth(1) == Some(address.as_str())).count()
}

#[test]
fn the_snapshot_channel_recovers_instruments_without_a_server() {
    let group = free_multicast_group().unwrap();
    let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
    // No server listens at this address.
    let closed = REFUSING;
    let sources = SnapshotSources { glimpse: Some(closed), channel: Some(group), ..SnapshotSources::none() };
    let Some((mut channel, sent)) = channel_with_loss(sources, 40, 60) else { return };
    channel.until("the channel", |channel| channel.view.counters.snapshots.channel_joins.read() == 1);
    assert_eq!(channel.view.counters.snapshots.failures.read(), 1);
    let mut number = 1;
    let mut publish = |messages: &[Vec<u8>], lost: Option<usize>| {
        for (place, chunk) in messages.chunks(10).enumerate() {
            let mut packet = PacketBuilder::new([0; 1_400], session(), Sequence(number));
            chunk.iter().for_each(|message| packet.push(message).unwrap());
            number += chunk.len() as u64;
            if lost != Some(place) {
                assert_eq!(sender.send(packet.finish()).unwrap(), SendStatus::Sent);
            }
        }
    };
    for (index, place) in [(1, 105), (0, 110), (2, 115)] {
        let next = first_sequence(&channel, place);
        let mut state = states(&channel.recording, next).swap_remove(index);
        state.push(end(next));
        assert!(state.len() > 30, "several packets");
        let recovered = channel.view.counters.snapshots.recovered.read();
        let abandoned = channel.view.counters.snapshots.abandoned.read();
        publish(&state, Some(1));
        channel.until("the loss", |channel| channel.view.counters.snapshots.abandoned.read() > abandoned);
        assert_eq!(listeners(group), 1);
        assert_eq!(channel.view.counters.snapshots.recovered.read(), recovered);
        publish(&state, None);
        channel.until("the book", |channel| channel.view.counters.snapshots.recovered.read() > recovered);
    }
    assert_eq!(channel.view.counters.snapshots.waiting.read(), 0);
    assert_eq!(listeners(group), 0, "whole books need no snapshots");
    check(channel, sent);
}

#[test]
fn without_snapshots_books_that_lost_messages_stay_stale() {
    let Some((mut channel, _)) = channel_with_loss(SnapshotSources::none(), 40, 60) else { return };
    channel.advance(Nanos::from_millis(5));
    let (feed, ..) = channel.close();
    assert!(feed.worst_health() >= BookHealth::Stale);
    assert!(feed.arbiter.messages_lost > 100);
}
