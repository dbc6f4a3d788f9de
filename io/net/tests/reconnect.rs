//! Tests of a reconnecting client: waits between attempts, and counts of attempts and failures.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_net::{
    BufferSizes, ClientState, Kernel, ReconnectConfig, ReconnectingClient, SendOutcome, TcpAcceptor,
};
use tickpath_types::Nanos;

use tickpath_test_support::until;

const CONFIG: ReconnectConfig = ReconnectConfig {
    buffers: BufferSizes { receive: 1_024, pending: 1_024 },
    connect_timeout: Nanos::from_secs(5),
    wait_min: Nanos::from_millis(100),
    wait_max: Nanos::from_millis(300),
    failure_wait_min: Nanos::ZERO,
};

fn acceptor(port: u16) -> TcpAcceptor {
    TcpAcceptor::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port), CONFIG.buffers).unwrap()
}

/// Polls at `now` until the state is not `Connecting`, and returns it.
fn outcome(client: &mut ReconnectingClient, now: Nanos) -> ClientState {
    until(|| Some(client.poll(now)).filter(|state| *state != ClientState::Connecting))
}

#[test]
fn each_failure_doubles_the_wait_and_success_resets_it() {
    let (address, mut now) = (acceptor(0).local_address(), Nanos::from_secs(1));
    let mut client = ReconnectingClient::new(Kernel, address, CONFIG);
    for wait in [100, 200, 300, 300].map(Nanos::from_millis) {
        assert_eq!(outcome(&mut client, now), ClientState::Failed);
        assert_eq!(client.poll(now + wait - Nanos(1)), ClientState::Waiting);
        assert!(client.connection().is_none());
        now = now + wait;
    }
    assert_eq!((client.attempts(), client.failures()), (4, 4));
    let mut server = acceptor(address.port());
    assert_eq!(outcome(&mut client, now), ClientState::Connected);
    assert_eq!(client.poll(now), ClientState::Established);
    let mut accepted = until(|| server.accept().unwrap());
    assert_eq!(client.connection().unwrap().send(b"login").unwrap(), SendOutcome::Sent);
    until(|| {
        let _ = accepted.fill().unwrap();
        (accepted.received() == b"login").then_some(())
    });
    client.reset_wait();
    client.fail(now);
    assert_eq!(client.poll(now + CONFIG.wait_min - Nanos(1)), ClientState::Waiting);
    assert_eq!((client.attempts(), client.failures()), (5, 5));
}

#[test]
fn a_wait_without_a_failure_is_not_counted() {
    let server = acceptor(0);
    let config = ReconnectConfig { failure_wait_min: Nanos::from_millis(250), ..CONFIG };
    let mut client = ReconnectingClient::new(Kernel, server.local_address(), config);
    let now = Nanos::from_secs(1);
    assert_eq!(outcome(&mut client, now), ClientState::Connected);
    client.retry(now);
    assert_eq!(client.poll(now + Nanos::from_millis(99)), ClientState::Waiting);
    client.fail(now);
    assert_eq!(client.poll(now + Nanos::from_millis(249)), ClientState::Waiting, "at least that long");
    client.finish(now);
    assert_eq!(outcome(&mut client, now), ClientState::Connected, "due at once");
    assert_eq!((client.attempts(), client.failures()), (2, 1));
}
