//! Datagrams received through a packet ring, if the process may use one.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use tickpath_net::{
    MulticastReceiver, MulticastSender, NetError, PacketRing, PacketRingConfig, SendStatus,
    free_multicast_group,
};
use tickpath_test_support::{realtime_ns, until};

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SMALL: PacketRingConfig = PacketRingConfig { packet_len_max: 1_500, packets_max: 32 };

/// Returns the senders of two groups and a ring on both. If rings are unavailable, prints the reason
/// and returns `None`.
fn lines() -> Option<([MulticastSender; 2], PacketRing)> {
    let groups = [free_multicast_group().unwrap(), free_multicast_group().unwrap()];
    match PacketRing::join(&groups, LOOPBACK, SMALL) {
        Ok(ring) => Some((groups.map(|group| MulticastSender::new(group, LOOPBACK).unwrap()), ring)),
        Err(error @ NetError::PacketRing { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn send(sender: &mut MulticastSender, datagram: &[u8]) {
    assert_eq!(sender.send(datagram).unwrap(), SendStatus::Sent);
}

/// Returns the group, payload and receive time of the next datagram.
fn recv(ring: &mut PacketRing) -> (usize, Vec<u8>, u64) {
    until(|| ring.recv().map(|datagram| (datagram.group, datagram.payload.to_vec(), datagram.kernel_ns)))
}

#[test]
fn datagrams_of_all_groups_are_in_order_over_ring_wraps() {
    let Some((mut senders, mut ring)) = lines() else { return };
    assert_eq!(ring.recv(), None);
    for number in 0..200_u8 {
        let before = realtime_ns();
        send(&mut senders[1], &[number; 3]);
        send(&mut senders[0], &vec![number; usize::from(number)]);
        let (group, payload, kernel_ns) = recv(&mut ring);
        assert_eq!((group, payload), (1, vec![number; 3]));
        assert!(before <= kernel_ns && kernel_ns <= realtime_ns(), "{before} {kernel_ns}");
        let (group, payload, _) = recv(&mut ring);
        assert_eq!((group, payload), (0, vec![number; usize::from(number)]));
    }
    assert_eq!(ring.recv(), None);
    assert_eq!(*ring.counters(), Default::default());
}

#[test]
fn other_groups_ports_and_sockets_stay_apart() {
    let Some((mut senders, mut ring)) = lines() else { return };
    let group = senders[0].group();
    let [a, b, c, d] = group.ip().octets();
    let other_group = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d ^ 1), group.port());
    let other_port = SocketAddrV4::new(*group.ip(), group.port() ^ 1);
    for other in [other_group, other_port] {
        send(&mut MulticastSender::new(other, LOOPBACK).unwrap(), b"other");
    }
    let unicast = UdpSocket::bind((LOOPBACK, 0)).unwrap();
    unicast.send_to(b"unicast", (LOOPBACK, group.port())).unwrap();
    let mut receiver = MulticastReceiver::join(group, LOOPBACK).unwrap();
    send(&mut senders[0], b"own");
    assert_eq!(recv(&mut ring).1, b"own");
    let mut buffer = [0; 8];
    let received = until(|| receiver.recv(&mut buffer).unwrap());
    assert_eq!(&buffer[..received.len], b"own", "a socket gets its copy too");
    assert_eq!(ring.recv(), None);
}

#[test]
fn datagrams_that_do_not_fit_are_dropped_and_counted() {
    let Some((mut senders, mut ring)) = lines() else { return };
    send(&mut senders[0], &[1; 4_096]);
    assert_eq!(ring.recv(), None);
    assert_eq!(ring.counters().truncated, 1);

    const SENT: usize = 100;
    for number in 0..SENT as u8 {
        send(&mut senders[0], &[number]);
    }
    let mut received = Vec::new();
    while let Some(datagram) = ring.recv() {
        received.push(datagram.payload[0]);
    }
    assert_eq!(received, (0..received.len() as u8).collect::<Vec<_>>(), "the first stay");
    send(&mut senders[0], b"after");
    assert_eq!(recv(&mut ring).1, b"after");
    assert!(received.len() >= SMALL.packets_max);
    assert_eq!(ring.counters().kernel_drops, (SENT - received.len()) as u64);
}

#[test]
fn invalid_interfaces_and_groups_are_rejected() {
    let Some((senders, _)) = lines() else { return };
    let refused = PacketRing::join(&[senders[0].group()], Ipv4Addr::new(192, 0, 2, 1), SMALL).unwrap_err();
    assert!(refused.to_string().starts_with("no packet ring (interface): no interface has this address"));
    let unicast = SocketAddrV4::new(LOOPBACK, 1);
    let refused = PacketRing::join(&[unicast], LOOPBACK, SMALL).unwrap_err();
    assert!(matches!(refused, NetError::NotMulticast { .. }));
}
