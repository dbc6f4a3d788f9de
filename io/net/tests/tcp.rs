//! Tests of TCP connections over loopback.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tickpath_net::{BufferSizes, Fill, Interest, NetError, Poller, SendOutcome, TcpAcceptor, TcpConnection};
use tickpath_test_support::{ANY_PORT, realtime_ns, until};

const TIMEOUT: Duration = Duration::from_secs(5);
const SMALL: BufferSizes = BufferSizes { receive: 16, pending: 16 };

fn acceptor(buffers: BufferSizes) -> TcpAcceptor {
    TcpAcceptor::bind(ANY_PORT, buffers).unwrap()
}

fn accept(acceptor: &mut TcpAcceptor) -> TcpConnection {
    until(|| acceptor.accept().unwrap())
}

/// Returns both ends of a connection with these buffer sizes.
fn pair(buffers: BufferSizes) -> (TcpConnection, TcpConnection) {
    let mut acceptor = acceptor(buffers);
    let client = TcpConnection::connect(acceptor.local_address(), TIMEOUT, buffers).unwrap();
    (client, accept(&mut acceptor))
}

fn fill(connection: &mut TcpConnection) -> Fill {
    until(|| Some(connection.fill().unwrap()).filter(|fill| *fill != Fill::Empty))
}

/// Returns both ends of a connection once the kernel timestamps received data. The kernel begins to do so
/// shortly after the first socket enables it.
fn stamped_pair() -> (TcpConnection, TcpConnection) {
    let (mut client, mut server) = pair(BufferSizes::default());
    until(|| {
        assert_eq!(client.send(b"x").unwrap(), SendOutcome::Sent);
        let Fill::Bytes { kernel_ns, count } = fill(&mut server) else { panic!("no bytes") };
        server.consume(count);
        kernel_ns
    });
    (client, server)
}

fn fill_to(connection: &mut TcpConnection, len: usize) {
    while connection.received().len() < len {
        assert!(matches!(fill(connection), Fill::Bytes { .. }));
    }
}

#[test]
fn both_ends_of_a_connection_have_keep_alive() {
    use nix::sys::socket::{getsockopt, sockopt};
    let (client, server) = pair(SMALL);
    for end in [&client, &server] {
        assert!(getsockopt(end, sockopt::KeepAlive).unwrap());
        let idle = getsockopt(end, sockopt::TcpKeepIdle).unwrap();
        let interval = getsockopt(end, sockopt::TcpKeepInterval).unwrap();
        assert_eq!((idle, interval, getsockopt(end, sockopt::TcpKeepCount).unwrap()), (60, 10, 3));
    }
}

#[test]
fn bytes_go_both_ways_and_carry_the_kernels_time() {
    let (mut client, mut server) = stamped_pair();
    assert_eq!(server.fill().unwrap(), Fill::Empty);
    let before = realtime_ns();
    assert_eq!(client.send(b"enter").unwrap(), SendOutcome::Sent);
    let Fill::Bytes { count, kernel_ns } = fill(&mut server) else { panic!("no bytes") };
    assert_eq!(count, 5);
    let kernel_ns = kernel_ns.expect("loopback TCP is stamped");
    assert!(before <= kernel_ns && kernel_ns <= realtime_ns(), "{before} {kernel_ns}");
    assert_eq!(server.received(), b"enter");
    server.consume(2);
    assert_eq!(server.received(), b"ter");
    assert_eq!(server.send(b"accepted").unwrap(), SendOutcome::Sent);
    fill_to(&mut client, 8);
    assert_eq!(client.received(), b"accepted");
}

#[test]
fn bytes_that_came_before_accept_are_stamped_too() {
    let _stamping = stamped_pair();
    let mut acceptor = acceptor(BufferSizes::default());
    let mut client = TcpConnection::connect(acceptor.local_address(), TIMEOUT, SMALL).unwrap();
    let before = realtime_ns();
    assert_eq!(client.send(b"logon").unwrap(), SendOutcome::Sent);
    let after = realtime_ns();
    let mut server = accept(&mut acceptor);
    let Fill::Bytes { kernel_ns: Some(kernel_ns), .. } = fill(&mut server) else { panic!("no stamp") };
    // On loopback the kernel stamps data during the send, so the stamp is no later than `after`.
    assert!(before <= kernel_ns && kernel_ns <= after, "{before} {kernel_ns} {after}");
    assert_eq!(*server.peer_address().ip(), Ipv4Addr::LOCALHOST);
}

#[test]
fn a_full_receive_buffer_waits_for_its_consumer() {
    let (mut client, mut server) = pair(SMALL);
    assert_eq!(client.send(b"0123456789abcdef").unwrap(), SendOutcome::Sent);
    assert_eq!(client.send(b"g").unwrap(), SendOutcome::Sent);
    fill_to(&mut server, SMALL.receive);
    assert_eq!(server.fill().unwrap(), Fill::Full);
    server.consume(10);
    fill_to(&mut server, 7);
    assert_eq!(server.received(), b"abcdefg");
}

#[test]
fn a_send_is_all_or_nothing_and_keeps_the_order() {
    let (mut client, mut server) = pair(BufferSizes { receive: 1 << 20, pending: 1 << 16 });
    client.limit_send_buffer(4_096).unwrap();
    socket2::SockRef::from(&server).set_recv_buffer_size(4_096).unwrap();
    // While the server does not read, the kernel's buffers fill up, then the client's pending buffer.
    let mut sent = Vec::new();
    let outcome = until(|| {
        let chunk = vec![(sent.len() >> 10) as u8; 1 << 10];
        let outcome = client.send(&chunk).unwrap();
        if outcome == SendOutcome::Backpressured {
            return Some(outcome);
        }
        sent.extend(chunk);
        None
    });
    assert_eq!(outcome, SendOutcome::Backpressured);
    let pending_len = client.pending_len();
    assert!(pending_len > (1 << 16) - (1 << 10), "{pending_len} bytes were pending");
    assert_eq!(client.flush_pending().unwrap(), SendOutcome::Pending);
    // Let the server read, so that the client can send its pending bytes.
    let mut received = Vec::new();
    until(|| {
        let _ = client.flush_pending().unwrap();
        let _ = server.fill().unwrap();
        received.extend_from_slice(server.received());
        server.consume(server.received().len());
        (received.len() == sent.len()).then_some(())
    });
    assert_eq!(client.flush_pending().unwrap(), SendOutcome::Sent);
    assert_eq!(client.pending_len(), 0);
    assert!(received == sent);
}

#[test]
fn a_message_is_refused_only_beyond_the_pending_buffer() {
    let (mut client, mut server) = pair(SMALL);
    assert_eq!(client.send(&[1; 17]).unwrap(), SendOutcome::Backpressured);
    assert_eq!(client.send(&[2; 16]).unwrap(), SendOutcome::Sent);
    fill_to(&mut server, 16);
    assert_eq!(server.received(), [2; 16]);
}

#[test]
fn queued_messages_leave_together_and_before_later_ones() {
    let (mut client, mut server) = pair(SMALL);
    assert_eq!(client.queue(b"one "), SendOutcome::Pending);
    assert_eq!(client.queue(b"two "), SendOutcome::Pending);
    assert_eq!(client.queue(b"much too long"), SendOutcome::Backpressured);
    assert_eq!(client.pending_len(), 8);
    assert_eq!(server.fill().unwrap(), Fill::Empty);
    assert_eq!(client.send(b"three").unwrap(), SendOutcome::Sent);
    fill_to(&mut server, 13);
    assert_eq!(server.received(), b"one two three");
    assert_eq!(client.flush_pending().unwrap(), SendOutcome::Sent);
}

#[test]
fn the_end_of_a_connection_is_a_result_after_all_bytes() {
    let (mut client, mut server) = pair(SMALL);
    assert_eq!(client.send(b"logout").unwrap(), SendOutcome::Sent);
    drop(client);
    fill_to(&mut server, 6);
    assert_eq!(fill(&mut server), Fill::Closed);
    assert_eq!(server.received(), b"logout");
    assert!(server.is_closed());
    assert_eq!(server.send(b"late").unwrap(), SendOutcome::Closed);
    assert_eq!(server.queue(b"late"), SendOutcome::Closed);
    assert_eq!(server.flush_pending().unwrap(), SendOutcome::Closed);
}

#[test]
fn a_send_to_a_closed_peer_is_a_result() {
    let (mut client, server) = pair(SMALL);
    drop(server);
    until(|| (client.send(b"x").unwrap() == SendOutcome::Closed).then_some(()));
    assert!(client.is_closed());
    assert_eq!(client.fill().unwrap(), Fill::Closed);
}

#[test]
fn an_address_in_use_is_an_error_with_the_remedy() {
    let first = acceptor(SMALL);
    let error = TcpAcceptor::bind(first.local_address(), SMALL).unwrap_err();
    let address = first.local_address();
    assert_eq!(
        error.to_string(),
        format!("address {address} is in use: is it running already? choose another")
    );
    let not_local = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 0);
    assert!(matches!(TcpAcceptor::bind(not_local, SMALL), Err(NetError::Bind { .. })));
    drop(first);
    let error = TcpConnection::connect(address, TIMEOUT, SMALL).unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error}");
}

/// Reconnects the client, and returns the server's end once the connection is established.
fn reconnect(client: &mut TcpConnection, acceptor: &mut TcpAcceptor) -> TcpConnection {
    client.start_connecting(acceptor.local_address()).unwrap();
    until(|| client.poll_connected().unwrap().then_some(()));
    accept(acceptor)
}

#[test]
fn a_reconnection_reuses_its_buffers() {
    let mut acceptor = acceptor(SMALL);
    let mut client = TcpConnection::connect(acceptor.local_address(), TIMEOUT, SMALL).unwrap();
    let mut server = accept(&mut acceptor);
    assert_eq!(server.send(b"left over").unwrap(), SendOutcome::Sent);
    fill_to(&mut client, 9);
    assert_eq!(client.queue(b"never sent"), SendOutcome::Pending);
    client.close();
    assert!(client.is_closed());
    assert_eq!((client.received(), client.pending_len()), (&b"left over"[..], 0));
    assert_eq!(fill(&mut server), Fill::Closed);

    let mut reconnected = reconnect(&mut client, &mut acceptor);
    assert!(!client.is_closed() && client.received().is_empty());
    assert_eq!(client.send(b"enter").unwrap(), SendOutcome::Sent);
    fill_to(&mut reconnected, 5);
    assert_eq!(reconnected.received(), b"enter", "and nothing of the time before");
}

#[test]
fn a_connection_that_ended_sending_still_reads() {
    let (mut client, mut server) = pair(SMALL);
    assert_eq!(server.send(b"last").unwrap(), SendOutcome::Sent);
    server.end_sending();
    fill_to(&mut client, 4);
    assert_eq!(fill(&mut client), Fill::Closed);
    assert_eq!(client.received(), b"last");
    client.close();
    assert_eq!(fill(&mut server), Fill::Closed);
}

#[test]
fn an_unanswered_connection_is_pending_and_a_refused_one_an_error() {
    let mut busy = FullBacklog::new();
    let mut acceptor = acceptor(SMALL);
    let mut client = TcpConnection::connect(acceptor.local_address(), TIMEOUT, SMALL).unwrap();
    client.start_connecting(busy.address).unwrap();
    for _ in 0..1_000 {
        assert!(!client.poll_connected().unwrap(), "the listener accepts no connection");
    }
    assert_eq!(client.fill().unwrap(), Fill::Empty, "nothing is there to be read either");
    // Abandon this attempt and begin another.
    reconnect(&mut client, &mut acceptor);
    busy.fillers.clear();

    let address = acceptor.local_address();
    drop(acceptor);
    let refused = client.start_connecting(address).and_then(|()| {
        until(|| match client.poll_connected() {
            Ok(false) => None,
            outcome => Some(outcome),
        })
    });
    let error = refused.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error}");
    assert!(client.is_closed());
}

/// A listener with a full backlog: the kernel does not answer further connection attempts.
struct FullBacklog {
    _listener: Socket,
    fillers: Vec<Socket>,
    address: SocketAddrV4,
}

impl FullBacklog {
    fn new() -> FullBacklog {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&ANY_PORT.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket_ipv4().unwrap();
        let mut fillers = vec![];
        // On loopback the connection is established before `connect` returns, unless the backlog is full.
        loop {
            let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            filler.set_nonblocking(true).unwrap();
            let _ = filler.connect(&address.into());
            let is_full = filler.peer_addr().is_err();
            fillers.push(filler);
            if is_full {
                return FullBacklog { _listener: listener, fillers, address };
            }
        }
    }
}

#[test]
fn a_poller_names_the_ready_sockets() {
    let mut poller = Poller::new(8).unwrap();
    let mut acceptor = acceptor(SMALL);
    acceptor.watch(&poller, 0).unwrap();
    assert_eq!(poller.poll().unwrap().len(), 0);
    let mut clients: Vec<_> =
        (0..3).map(|_| TcpConnection::connect(acceptor.local_address(), TIMEOUT, SMALL).unwrap()).collect();
    until(|| poller.poll().unwrap().find(|ready| ready.key == 0 && ready.is_readable));
    let mut servers: Vec<_> = (0..3).map(|_| accept(&mut acceptor)).collect();
    for (server, key) in servers.iter().zip(1..) {
        poller.add(server, key, Interest::Read).unwrap();
    }
    assert_eq!(poller.poll().unwrap().len(), 0);

    assert_eq!(clients[1].send(b"x").unwrap(), SendOutcome::Sent);
    let ready = until(|| poller.poll().unwrap().next());
    assert_eq!((ready.key, ready.is_readable, ready.is_writable, ready.is_closed), (2, true, false, false));
    // The poller is level-triggered: it reports the connection until its data is read.
    assert_eq!(poller.poll().unwrap().len(), 1);
    fill_to(&mut servers[1], 1);
    assert_eq!(poller.poll().unwrap().len(), 0);

    poller.modify(&servers[0], 1, Interest::ReadWrite).unwrap();
    let ready = until(|| poller.poll().unwrap().next());
    assert_eq!((ready.key, ready.is_readable, ready.is_writable), (1, false, true));
    poller.remove(&servers[0]).unwrap();
    assert_eq!(poller.poll().unwrap().len(), 0);

    drop(clients.pop());
    let ready = until(|| poller.poll().unwrap().next());
    assert_eq!((ready.key, ready.is_readable, ready.is_closed), (3, true, true));
    drop(servers.pop());
    assert_eq!(poller.poll().unwrap().len(), 0);
}

#[test]
fn a_poller_reports_up_to_its_bound_and_the_rest_after_those_are_read() {
    const BOUND: usize = 2;
    let mut poller = Poller::new(BOUND).unwrap();
    let mut ends: Vec<_> = (0..=BOUND).map(|_| pair(SMALL)).collect();
    for ((client, server), key) in ends.iter_mut().zip(0..) {
        poller.add(server, key, Interest::Read).unwrap();
        assert_eq!(client.send(b"x").unwrap(), SendOutcome::Sent);
    }
    let mut read_keys = Vec::new();
    until(|| {
        let keys: Vec<_> = poller.poll().unwrap().map(|ready| ready.key).collect();
        assert!(keys.len() <= BOUND);
        for key in keys {
            fill_to(&mut ends[key as usize].1, 1);
            read_keys.push(key);
        }
        (read_keys.len() == BOUND + 1).then_some(())
    });
    read_keys.sort_unstable();
    assert_eq!(read_keys, [0, 1, 2]);
}
