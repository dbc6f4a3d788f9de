//! Tests of UDP datagrams over loopback.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_net::{
    MulticastReceiver, MulticastSender, NetError, Received, RecvBatch, SendStatus, UdpEndpoint,
    free_multicast_group,
};
use tickpath_test_support::{realtime_ns, until};

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn pair() -> (MulticastSender, MulticastReceiver) {
    let group = free_multicast_group().unwrap();
    let receiver = MulticastReceiver::join(group, LOOPBACK).unwrap();
    (MulticastSender::new(group, LOOPBACK).unwrap(), receiver)
}

fn recv(receiver: &mut MulticastReceiver, buffer: &mut [u8]) -> Received {
    until(|| receiver.recv(buffer).unwrap())
}

#[test]
fn every_receiver_of_a_group_gets_every_datagram_with_the_kernels_time() {
    let (mut sender, mut first) = pair();
    let mut second = MulticastReceiver::join(sender.group(), LOOPBACK).unwrap();
    let mut buffer = [0; 64];
    assert_eq!(first.recv(&mut buffer).unwrap(), None);
    let before = realtime_ns();
    assert_eq!(sender.send(b"quote").unwrap(), SendStatus::Sent);
    for receiver in [&mut first, &mut second] {
        let received = recv(receiver, &mut buffer);
        assert_eq!(&buffer[..received.len], b"quote");
        assert_eq!(*received.from.ip(), LOOPBACK);
        assert!(!received.is_truncated);
        let kernel_ns = received.kernel_ns.unwrap();
        assert!(before <= kernel_ns && kernel_ns <= realtime_ns(), "{before} {kernel_ns}");
        assert_eq!(receiver.recv(&mut buffer).unwrap(), None);
    }
}

#[test]
fn a_run_arrives_as_separate_datagrams_at_every_receiver() {
    let (mut sender, mut first) = pair();
    let mut second = MulticastReceiver::join(sender.group(), LOOPBACK).unwrap();
    let bytes: Vec<u8> = (0..2_801).map(|index| (index % 251) as u8).collect();
    let mut buffer = [0; 4_096];
    // Segments of equal length, a shorter last one, one that is all, and an empty run.
    for (len, segment_len) in [(2_800, 1_400), (2_801, 1_400), (1_390, 1_400), (30, 7), (0, 10)] {
        let before = realtime_ns();
        let expected: Vec<&[u8]> = bytes[..len].chunks(segment_len).collect();
        assert_eq!(sender.send_segments(&bytes[..len], segment_len).unwrap(), expected.len());
        for receiver in [&mut first, &mut second] {
            for datagram in &expected {
                let received = recv(receiver, &mut buffer);
                assert_eq!(&buffer[..received.len], *datagram);
                let kernel_ns = received.kernel_ns.unwrap();
                assert!(before <= kernel_ns && kernel_ns <= realtime_ns());
            }
            assert_eq!(receiver.recv(&mut buffer).unwrap(), None);
        }
    }
    assert!(sender.can_segment());
}

#[test]
fn a_run_of_more_datagrams_than_the_kernel_segments_is_sent() {
    let (mut sender, mut receiver) = pair();
    let bytes: Vec<u8> = (0..200).collect();
    for count in [64, 65, 129, 200] {
        assert_eq!(sender.send_segments(&bytes[..count], 1).unwrap(), count);
        for byte in &bytes[..count] {
            let mut buffer = [0; 4];
            let received = recv(&mut receiver, &mut buffer);
            assert_eq!(buffer[..received.len], [*byte]);
        }
        assert!(sender.can_segment(), "{count}");
    }
}

#[test]
fn a_run_with_segments_longer_than_the_route_allows_is_sent() {
    let (mut sender, mut receiver) = pair();
    // Loopback takes packets of 65,536 bytes, so the longest run needs no fragments; a longer one is split.
    let bytes = vec![7; 2 * 40_000];
    let mut buffer = vec![0; 65_536];
    for (len, segment_len) in [(65_507, 32_754), (80_000, 40_000)] {
        assert_eq!(sender.send_segments(&bytes[..len], segment_len).unwrap(), 2);
        for _ in 0..2 {
            let received = recv(&mut receiver, &mut buffer);
            assert!(received.len <= segment_len && !received.is_truncated);
        }
    }
}

#[test]
fn another_group_on_the_same_port_is_not_delivered() {
    let (mut sender, mut receiver) = pair();
    let [a, b, c, d] = sender.group().ip().octets();
    let other = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d ^ 1), sender.group().port());
    let mut other_receiver = MulticastReceiver::join(other, LOOPBACK).unwrap();
    let mut other_sender = MulticastSender::new(other, LOOPBACK).unwrap();
    assert_eq!(other_sender.send(b"other").unwrap(), SendStatus::Sent);
    assert_eq!(sender.send(b"own").unwrap(), SendStatus::Sent);
    let mut buffer = [0; 64];
    let received = recv(&mut receiver, &mut buffer);
    assert_eq!(&buffer[..received.len], b"own");
    let received = recv(&mut other_receiver, &mut buffer);
    assert_eq!(&buffer[..received.len], b"other");
}

#[test]
fn a_datagram_longer_than_the_buffer_is_flagged() {
    let (mut sender, mut receiver) = pair();
    for len in [8, 9] {
        assert_eq!(sender.send(&[7; 9][..len]).unwrap(), SendStatus::Sent);
        let received = recv(&mut receiver, &mut [0; 8]);
        assert_eq!((received.len, received.is_truncated), (8, len == 9));
    }
    let mut batch = RecvBatch::new(2, 8);
    for len in [8, 9] {
        assert_eq!(sender.send(&[7; 9][..len]).unwrap(), SendStatus::Sent);
    }
    let mut flags = vec![];
    until(|| {
        receiver.recv_batch(&mut batch).unwrap();
        flags.extend(batch.iter().map(|(received, bytes)| (bytes.len(), received.is_truncated)));
        (flags.len() == 2).then_some(())
    });
    assert_eq!(flags, [(8, false), (8, true)]);
}

#[test]
fn a_batch_takes_what_fits_in_order_and_leaves_the_rest() {
    const CAPACITY: usize = 4;
    let (mut sender, mut receiver) = pair();
    let mut batch = RecvBatch::new(CAPACITY, 64);
    assert_eq!(receiver.recv_batch(&mut batch).unwrap(), 0);
    // Send a full batch, one datagram more, then fewer: each receive reuses the batch's message headers.
    for count in [CAPACITY, CAPACITY + 1, 1, 3] {
        for index in 0..count {
            assert_eq!(sender.send(&vec![index as u8; index + 1]).unwrap(), SendStatus::Sent);
        }
        let mut index = 0;
        until(|| {
            let received_count = receiver.recv_batch(&mut batch).unwrap();
            assert!(received_count <= CAPACITY);
            assert_eq!(batch.iter().len(), received_count);
            for (received, bytes) in batch.iter() {
                assert_eq!(bytes, vec![index as u8; index + 1]);
                assert!(received.kernel_ns.is_some());
                assert_eq!(*received.from.ip(), LOOPBACK);
                index += 1;
            }
            (index == count).then_some(())
        });
    }
    let moved = Box::new(batch);
    assert_eq!(moved.capacity(), CAPACITY);
    std::thread::spawn(move || {
        let mut batch = *moved;
        assert_eq!(sender.send(b"moved").unwrap(), SendStatus::Sent);
        until(|| (receiver.recv_batch(&mut batch).unwrap() == 1).then_some(()));
        assert_eq!(batch.iter().next().unwrap().1, b"moved");
    })
    .join()
    .unwrap();
}

#[test]
fn a_datagram_too_long_for_udp_is_an_error() {
    let (mut sender, _receiver) = pair();
    assert_eq!(sender.send(&vec![0; 65_507]).unwrap(), SendStatus::Sent);
    assert_eq!(sender.send(&vec![0; 65_508]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
}

#[test]
fn datagrams_dropped_by_the_kernel_are_counted() {
    let group = free_multicast_group().unwrap();
    let mut receiver = MulticastReceiver::join(group, LOOPBACK).unwrap();
    socket2::SockRef::from(&receiver).set_recv_buffer_size(4_096).unwrap();
    let mut sender = MulticastSender::new(group, LOOPBACK).unwrap();
    let (mut sent_count, mut received_count) = (0_u32, 0);
    until(|| {
        for _ in 0..200 {
            assert_eq!(sender.send(&sent_count.to_be_bytes()).unwrap(), SendStatus::Sent);
            sent_count += 1;
        }
        let mut buffer = [0; 4];
        while receiver.recv(&mut buffer).unwrap().is_some() {
            // The kernel's drop count that arrives with a datagram includes all drops before that datagram.
            assert_eq!(receiver.kernel_drop_count(), u32::from_be_bytes(buffer) - received_count);
            received_count += 1;
        }
        (receiver.kernel_drop_count() > 0).then_some(())
    });
}

#[test]
fn invalid_groups_and_interfaces_are_rejected_with_a_message() {
    let unicast = SocketAddrV4::new(LOOPBACK, 9_000);
    assert!(matches!(MulticastSender::new(unicast, LOOPBACK), Err(NetError::NotMulticast { .. })));
    assert!(matches!(MulticastReceiver::join(unicast, LOOPBACK), Err(NetError::NotMulticast { .. })));
    let not_local = Ipv4Addr::new(203, 0, 113, 1);
    let group = free_multicast_group().unwrap();
    let error = MulticastReceiver::join(group, not_local).unwrap_err();
    assert!(error.to_string().contains("name a local interface"), "{error}");
    assert!(matches!(MulticastSender::new(group, not_local), Err(NetError::JoinGroup { .. })));
}

#[test]
fn endpoints_answer_each_other() {
    let any = SocketAddrV4::new(LOOPBACK, 0);
    let (mut client, mut server) = (UdpEndpoint::bind(any).unwrap(), UdpEndpoint::bind(any).unwrap());
    let mut buffer = [0; 64];
    assert_eq!(server.recv_from(&mut buffer).unwrap(), None);
    assert_eq!(client.send_to(b"request", server.local_address()).unwrap(), SendStatus::Sent);
    let request = until(|| server.recv_from(&mut buffer).unwrap());
    assert_eq!(&buffer[..request.len], b"request");
    assert_eq!(request.from, client.local_address());
    assert!(request.kernel_ns.is_some());
    assert_eq!(server.send_to(b"response", request.from).unwrap(), SendStatus::Sent);
    let response = until(|| client.recv_from(&mut buffer).unwrap());
    assert_eq!(&buffer[..response.len], b"response");
    assert_eq!(response.from, server.local_address());
    assert!(matches!(UdpEndpoint::bind(server.local_address()), Err(NetError::AddressInUse { .. })));
}
