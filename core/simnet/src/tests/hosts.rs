use super::*;

#[test]
fn what_connections_carry_waits_for_the_end_of_a_partition() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.cut(CLIENT, SERVER);
    network.cut(SERVER, CLIENT);
    assert_eq!(network.counters().partitions, 1, "it is one, in whatever order they are named");
    network.write(client, b"one ").unwrap();
    network.write(client, b"two").unwrap();
    network.end_sending(client);
    settle(&mut network);
    assert_eq!(network.read(server, &mut [0; 8]), Ok(StreamRead::Empty));
    network.heal(SERVER, CLIENT);
    settle(&mut network);
    assert_eq!(read_all(&mut network, server), (b"one two".to_vec(), Ok(StreamRead::End)));
}

#[test]
fn a_connection_begun_in_a_partition_never_stands() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.listen(SERVER, DOOR).unwrap();
    network.cut(CLIENT, SERVER);
    let client = network.connect(CLIENT, DOOR);
    let other = network.connect(HostId(3), DOOR);
    settle(&mut network);
    assert_eq!(network.poll_connected(client), Ok(false));
    assert_eq!(network.poll_connected(other), Ok(true), "others are not cut off");
    assert_eq!(network.counters().connections_cut, 1);
}

#[test]
fn the_death_of_a_process_is_heard_at_the_other_end() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.write(server, b"goodbye").unwrap();
    network.kill(SERVER, Death::Process);
    assert_eq!(network.write(server, b"x"), Err(StreamError::NotConnected));
    settle(&mut network);
    assert_eq!(read_all(&mut network, client), (b"goodbye".to_vec(), Ok(StreamRead::End)));
    assert!(network.listen(SERVER, DOOR).is_ok(), "its sockets are gone");
}

#[test]
fn a_loss_of_power_is_heard_by_who_sends_to_the_host_once_it_is_back() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, _) = connected(&mut network);
    network.kill(SERVER, Death::Power);
    let connecting = network.connect(CLIENT, DOOR);
    assert_eq!(network.write(client, b"is anybody there?"), Ok(17));
    settle(&mut network);
    assert_eq!(network.poll_connected(connecting), Ok(false), "no answer at all");
    assert_eq!(network.read(client, &mut [0; 8]), Ok(StreamRead::Empty));
    network.revive(SERVER);
    settle(&mut network);
    assert_eq!(network.read(client, &mut [0; 8]), Err(StreamError::Reset));
    assert_eq!(network.counters().power_losses, 1);
}

#[test]
fn a_watched_host_notes_what_it_read_and_who_is_gone() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.watch_streams_of(SERVER);
    let (client, server) = connected(&mut network);
    network.write(client, b"abcd").unwrap();
    network.end_sending(client);
    settle(&mut network);
    let notes: Vec<StreamNote> = network.take_notes();
    assert!(matches!(&notes[..], [StreamNote { peer, kind: StreamNoteKind::Gone, .. }] if *peer == client));
    network.read(server, &mut [0; 3]).unwrap();
    let notes = network.take_notes();
    let [StreamNote { at, peer, kind: StreamNoteKind::Read { bytes, .. } }] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert_eq!((*at, *peer, &bytes[..]), (network.now(), client, &b"abc"[..]));
}

#[test]
fn a_clock_that_is_set_stamps_what_arrived_before_as_it_was() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.set_clock(SERVER, 7_000_000_000);
    let (client, server) = connected(&mut network);
    network.write(client, b"x").unwrap();
    let at = network.next_arrival().unwrap();
    settle(&mut network);
    network.set_clock(SERVER, 1_000);
    let read = network.read(server, &mut [0; 1]);
    assert_eq!(read, Ok(StreamRead::Bytes { count: 1, kernel_ns: at.0 + 7_000_000_000 }));
    assert_eq!(network.clock(SERVER), Nanos(network.now().0 + 1_000));
    assert_eq!(network.clock(CLIENT), network.now());
}
