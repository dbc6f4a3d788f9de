use super::*;

#[test]
fn connection_data_waits_for_the_end_of_a_partition() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.cut(CLIENT, SERVER);
    network.cut(SERVER, CLIENT);
    assert_eq!(network.counters().partitions, 1, "it is one, in whatever order they are named");
    network.write(client, b"one ").unwrap();
    network.write(client, b"two").unwrap();
    network.end_sending(client);
    deliver_all(&mut network);
    assert_eq!(network.read(server, &mut [0; 8]), Ok(StreamRead::Empty));
    network.heal(SERVER, CLIENT);
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, server), (b"one two".to_vec(), Ok(StreamRead::End)));
}

#[test]
fn a_connection_begun_in_a_partition_is_never_established() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.listen(SERVER, SERVER_ADDRESS).unwrap();
    network.cut(CLIENT, SERVER);
    let client = network.connect(CLIENT, SERVER_ADDRESS);
    let other = network.connect(HostId(3), SERVER_ADDRESS);
    deliver_all(&mut network);
    assert_eq!(network.poll_connected(client), Ok(false));
    assert_eq!(network.poll_connected(other), Ok(true), "others are not cut off");
    assert_eq!(network.counters().connections_cut, 1);
}

#[test]
fn a_process_failure_closes_its_connections() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.write(server, b"goodbye").unwrap();
    network.kill(SERVER, HostFailure::Process);
    assert_eq!(network.write(server, b"x"), Err(StreamError::NotConnected));
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, client), (b"goodbye".to_vec(), Ok(StreamRead::End)));
    assert!(network.listen(SERVER, SERVER_ADDRESS).is_ok(), "its sockets are gone");
}

#[test]
fn senders_are_reset_after_a_power_loss() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, _) = connected(&mut network);
    network.kill(SERVER, HostFailure::Power);
    let connecting = network.connect(CLIENT, SERVER_ADDRESS);
    assert_eq!(network.write(client, b"is anybody there?"), Ok(17));
    deliver_all(&mut network);
    assert_eq!(network.poll_connected(connecting), Ok(false), "no answer at all");
    assert_eq!(network.read(client, &mut [0; 8]), Ok(StreamRead::Empty));
    network.power_on(SERVER);
    deliver_all(&mut network);
    assert_eq!(network.read(client, &mut [0; 8]), Err(StreamError::Reset));
    assert_eq!(network.counters().power_losses, 1);
}

#[test]
fn a_watched_host_records_reads_and_closes() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.watch_streams_of(SERVER);
    let (client, server) = connected(&mut network);
    network.write(client, b"abcd").unwrap();
    network.end_sending(client);
    deliver_all(&mut network);
    let events: Vec<StreamEvent> = network.take_stream_events();
    assert!(
        matches!(&events[..], [StreamEvent { peer, kind: StreamEventKind::Closed, .. }] if *peer == client)
    );
    network.read(server, &mut [0; 3]).unwrap();
    let events = network.take_stream_events();
    let [StreamEvent { at, peer, kind: StreamEventKind::Read { bytes, .. } }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*at, *peer, &bytes[..]), (network.now(), client, &b"abc"[..]));
}

#[test]
fn setting_a_clock_keeps_earlier_stamps() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.set_clock(SERVER, 7_000_000_000);
    let (client, server) = connected(&mut network);
    network.write(client, b"x").unwrap();
    let at = network.next_arrival().unwrap();
    deliver_all(&mut network);
    network.set_clock(SERVER, 1_000);
    let read = network.read(server, &mut [0; 1]);
    assert_eq!(read, Ok(StreamRead::Bytes { count: 1, kernel_ns: at.0 + 7_000_000_000 }));
    assert_eq!(network.clock(SERVER), Nanos(network.now().0 + 1_000));
    assert_eq!(network.clock(CLIENT), network.now());
}
