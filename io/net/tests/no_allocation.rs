//! Sending and receiving allocate nothing after the sockets are created.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::net::Ipv4Addr;
use std::time::Duration;

use tickpath_net::{
    BufferSizes, Fill, Interest, MulticastReceiver, MulticastSender, Poller, RecvBatch, SendOutcome,
    SendStatus, TcpAcceptor, TcpConnection, UdpEndpoint, free_multicast_group,
};
use tickpath_test_support::allocations::{CountingAllocator, allocations_of};
use tickpath_test_support::{ANY_PORT, until};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn datagrams_cost_no_allocation() {
    let group = free_multicast_group().unwrap();
    let mut receiver = MulticastReceiver::join(group, Ipv4Addr::LOCALHOST).unwrap();
    let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
    let mut endpoint = UdpEndpoint::bind(ANY_PORT).unwrap();
    let mut batch = RecvBatch::new(8, 64);
    let mut buffer = [0; 64];
    let count = allocations_of(|| {
        for _ in 0..20 {
            assert_eq!(sender.send(&[1; 32]).unwrap(), SendStatus::Sent);
            until(|| receiver.recv(&mut buffer).unwrap());
            (0..8).for_each(|_| assert_eq!(sender.send(&[1; 32]).unwrap(), SendStatus::Sent));
            let mut received_count = 0;
            until(|| {
                received_count += receiver.recv_batch(&mut batch).unwrap();
                (received_count == 8).then_some(())
            });
            assert_eq!(receiver.recv(&mut buffer).unwrap(), None);
            assert_eq!(sender.send_segments(&[1; 60], 32).unwrap(), 2);
            (0..2).for_each(|_| assert!(until(|| receiver.recv(&mut buffer).unwrap()).len <= 32));
            assert_eq!(endpoint.send_to(&[1; 32], endpoint.local_address()).unwrap(), SendStatus::Sent);
            until(|| endpoint.recv_from(&mut buffer).unwrap());
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_connection_and_its_poller_cost_no_allocation() {
    let buffers = BufferSizes { receive: 64, pending: 64 };
    let mut acceptor = TcpAcceptor::bind(ANY_PORT, buffers).unwrap();
    let mut client =
        TcpConnection::connect(acceptor.local_address(), Duration::from_secs(5), buffers).unwrap();
    let mut server = until(|| acceptor.accept().unwrap());
    let mut poller = Poller::new(4).unwrap();
    poller.add(&server, 1, Interest::Read).unwrap();
    let count = allocations_of(|| {
        for _ in 0..20 {
            assert_eq!(client.queue(&[1; 24]), SendOutcome::Pending);
            assert_eq!(client.send(&[1; 16]).unwrap(), SendOutcome::Sent);
            until(|| poller.poll().unwrap().next());
            until(|| {
                if let Fill::Bytes { .. } = server.fill().unwrap() {
                    (server.received().len() == 40).then_some(())
                } else {
                    None
                }
            });
            server.consume(40);
        }
    });
    assert_eq!(count, 0);
    assert!(allocations_of(|| drop(vec![1])) > 0, "the allocator above counts");
}

#[test]
fn connections_after_the_first_cost_no_allocation_on_either_side() {
    let buffers = BufferSizes { receive: 64, pending: 64 };
    let mut acceptor = TcpAcceptor::bind(ANY_PORT, buffers).unwrap();
    let mut client =
        TcpConnection::connect(acceptor.local_address(), Duration::from_secs(5), buffers).unwrap();
    acceptor.reserve(2);
    let mut server = until(|| acceptor.accept().unwrap());
    let count = allocations_of(|| {
        for _ in 0..20 {
            client.close();
            client.start_connecting(acceptor.local_address()).unwrap();
            until(|| client.poll_connected().unwrap().then_some(()));
            let next = until(|| acceptor.accept().unwrap());
            acceptor.recycle(std::mem::replace(&mut server, next));
            assert_eq!(server.send(&[1; 64]).unwrap(), SendOutcome::Sent);
            until(|| (client.fill().unwrap() != Fill::Empty).then_some(()));
            assert_eq!(server.queue(&[2; 10]), SendOutcome::Pending, "left over");
        }
    });
    assert_eq!(count, 0);
    // Both reserved pairs of buffers are in use, so another connection allocates its own.
    let mut more = TcpConnection::connect(acceptor.local_address(), Duration::from_secs(5), buffers).unwrap();
    let mut accepted = vec![until(|| acceptor.accept().unwrap())];
    more.start_connecting(acceptor.local_address()).unwrap();
    until(|| more.poll_connected().unwrap().then_some(()));
    assert!(allocations_of(|| accepted.extend([until(|| acceptor.accept().unwrap())])) > 0);
}
