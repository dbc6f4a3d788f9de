use super::super::streams::BACKLOG;
use super::*;

/// All faults that a connection survives, that is, all but resets and refusals.
const ALL_FAULTS: StreamFaults = StreamFaults {
    delay_min: Nanos(1_000),
    jitter: Nanos(200_000),
    spike_ppm: 50_000,
    spike_max: Nanos::from_millis(40),
    window: 1_500,
    short_write_ppm: 300_000,
    short_read_ppm: 300_000,
    reset_ppm: 0,
    refusal_ppm: 0,
};

/// One direction of a connection, with the bytes to send and those received.
struct Transfer {
    from: SocketId,
    to: SocketId,
    sent: Vec<u8>,
    written: usize,
    read: Vec<u8>,
}

impl Transfer {
    fn new(from: SocketId, to: SocketId, count: usize) -> Transfer {
        Transfer { from, to, sent: bytes(count), written: 0, read: vec![] }
    }

    /// Writes and reads a few bytes; returns false once all bytes are received.
    fn step(&mut self, network: &mut Network, rng: &mut Rng) -> bool {
        let end = self.sent.len().min(self.written + 1 + rng.below(900) as usize);
        self.written += network.write(self.from, &self.sent[self.written..end]).unwrap();
        let mut buffer = [0; 1_000];
        let size = 1 + rng.below(1_000) as usize;
        if rng.below(3) == 0
            && let StreamRead::Bytes { count, .. } = network.read(self.to, &mut buffer[..size]).unwrap()
        {
            self.read.extend_from_slice(&buffer[..count]);
        }
        self.read.len() < self.sent.len()
    }
}

/// Transfers bytes both ways over a faulty network with partitions; returns its counters and the end time.
fn transfer(seed: u64) -> (NetworkCounters, Nanos) {
    let mut network = Network::new(seed, Nanos::ZERO);
    network.set_stream_faults(ALL_FAULTS);
    let (client, server) = connected(&mut network);
    let mut directions = [Transfer::new(client, server, 20_000), Transfer::new(server, client, 9_000)];
    let mut rng = Rng::new(seed);
    loop {
        network.advance(network.now() + Nanos(rng.below(300_000)));
        match rng.below(200) {
            0 => network.cut(CLIENT, SERVER),
            1..10 => network.heal(CLIENT, SERVER),
            _ => {}
        }
        let mut is_active = false;
        directions.iter_mut().for_each(|direction| is_active |= direction.step(&mut network, &mut rng));
        if !is_active {
            break;
        }
        assert!(network.now() < Nanos::from_secs(60), "seed {seed} makes no progress");
    }
    for direction in directions {
        assert!(direction.read == direction.sent, "seed {seed}");
    }
    (*network.counters(), network.now())
}

#[test]
fn bytes_keep_their_order_under_every_fault_that_does_not_reset() {
    let all: Vec<NetworkCounters> = (0..40).map(|seed| transfer(seed).0).collect();
    let total = |of: fn(&NetworkCounters) -> u64| all.iter().map(of).sum::<u64>();
    assert!(total(|it| it.segments_delayed) > 100);
    assert!(total(|it| it.short_writes) > 100);
    assert!(total(|it| it.short_reads) > 100);
    assert!(total(|it| it.full_windows) > 100);
    assert!(total(|it| it.partitions) > 10);
    assert_eq!(total(|it| it.resets + it.resets_by_close), 0);
}

#[test]
fn a_seed_determines_the_run() {
    assert_eq!(transfer(3), transfer(3));
    assert_ne!(transfer(3), transfer(4));
}

#[test]
fn writes_are_limited_by_the_window() {
    let mut network = Network::new(1, Nanos::ZERO);
    network.set_stream_faults(StreamFaults { window: 100, ..StreamFaults::NONE });
    let (client, server) = connected(&mut network);
    assert_eq!(network.write(client, &[1; 99]), Ok(99));
    assert_eq!(network.write(client, &[2; 2]), Ok(1), "at the bound");
    assert_eq!(network.write(client, &[3; 1]), Ok(0), "one beyond");
    assert_eq!(network.counters().full_windows, 1);
    deliver_all(&mut network);
    assert_eq!(network.write(client, &[3; 1]), Ok(0), "what has arrived is not read yet");
    let mut buffer = [0; 30];
    assert!(matches!(network.read(server, &mut buffer), Ok(StreamRead::Bytes { count: 30, .. })));
    assert_eq!(network.write(client, &[3; 31]), Ok(30));
    assert_eq!(network.write(server, &[4; 200]), Ok(100), "the other direction has a separate window");
}

#[test]
fn bytes_are_readable_and_stamped_at_arrival() {
    let mut network = Network::new(1, Nanos(0));
    network.set_clock(SERVER, 1_000_000);
    let (client, server) = connected(&mut network);
    let sent_at = network.now();
    assert_eq!(network.write(client, b"abc"), Ok(3));
    let at = network.next_arrival().unwrap();
    assert_eq!(at, sent_at + StreamFaults::NONE.delay_min);
    network.advance(Nanos(at.0 - 1));
    assert!(!network.is_readable(server));
    assert_eq!(network.read(server, &mut [0; 8]), Ok(StreamRead::Empty));
    network.advance(at);
    assert!(network.is_readable(server));
    let read = network.read(server, &mut [0; 8]);
    assert_eq!(read, Ok(StreamRead::Bytes { count: 3, kernel_ns: at.0 + 1_000_000 }));
}

#[test]
fn a_reset_lets_a_prefix_arrive() {
    let mut lengths = vec![];
    for seed in 0..60 {
        let mut network = Network::new(seed, Nanos::ZERO);
        let jitter = StreamFaults { jitter: Nanos(50_000), ..StreamFaults::NONE };
        network.set_stream_faults(jitter);
        let (client, server) = connected(&mut network);
        let sent = bytes(400);
        for part in sent.chunks(20) {
            network.write(client, part).unwrap();
            network.advance(network.now() + Nanos(5_000));
        }
        network.reset(client);
        assert_eq!(network.write(client, b"more"), Ok(4), "its end does not know yet");
        deliver_all(&mut network);
        let (read, last) = read_all(&mut network, server);
        assert!(sent.starts_with(&read), "seed {seed}");
        assert_eq!(last, Err(StreamError::Reset));
        assert_eq!(read_all(&mut network, client), (vec![], Err(StreamError::Reset)));
        assert_eq!(network.write(client, b"more"), Err(StreamError::Reset));
        assert_eq!(network.closed_by(server), Some(ClosedBy::Network));
        assert_eq!(network.counters().resets, 1);
        lengths.push(read.len());
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 8 && lengths[0] == 0, "any prefix: {lengths:?}");
}

#[test]
fn bytes_before_a_reset_remain_readable() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.write(client, b"arrived").unwrap();
    deliver_all(&mut network);
    network.reset(server);
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, server), (b"arrived".to_vec(), Err(StreamError::Reset)));
}

#[test]
fn resets_occur_at_random() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.set_stream_faults(StreamFaults { reset_ppm: 1_000_000, ..StreamFaults::NONE });
    network.write(client, b"x").unwrap();
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, server).1, Err(StreamError::Reset));
}

#[test]
fn reading_continues_after_a_half_close() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.write(client, b"last words").unwrap();
    network.end_sending(client);
    network.end_sending(client);
    assert_eq!(network.counters().half_closes, 1, "the second says nothing new");
    assert_eq!(network.write(client, b"x"), Err(StreamError::NotConnected));
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, server), (b"last words".to_vec(), Ok(StreamRead::End)));
    assert_eq!(network.closed_by(server), Some(ClosedBy::Peer));
    network.write(server, b"an answer").unwrap();
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, client), (b"an answer".to_vec(), Ok(StreamRead::Empty)));
    network.end_sending(server);
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, client).1, Ok(StreamRead::End));
}

#[test]
fn closing_with_unread_bytes_resets() {
    for has_unread in [false, true] {
        let mut network = Network::new(1, Nanos::ZERO);
        let (client, server) = connected(&mut network);
        if has_unread {
            network.write(server, b"unread").unwrap();
        }
        network.close(client);
        deliver_all(&mut network);
        let expected = if has_unread { Err(StreamError::Reset) } else { Ok(StreamRead::End) };
        assert_eq!(read_all(&mut network, server), (vec![], expected));
        assert_eq!(network.counters().resets_by_close, u64::from(has_unread));
        assert_eq!(network.read(client, &mut [0; 8]), Err(StreamError::NotConnected));
    }
}

#[test]
fn sending_to_a_closed_end_is_answered_by_a_reset() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (client, server) = connected(&mut network);
    network.close(client);
    assert_eq!(network.write(server, b"too late"), Ok(8));
    deliver_all(&mut network);
    assert_eq!(network.write(server, b"x"), Err(StreamError::Reset));
}

#[test]
fn a_listener_has_a_backlog() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (listener, _) = network.listen(SERVER, SERVER_ADDRESS).unwrap();
    let clients: Vec<SocketId> = (0..BACKLOG + 1).map(|_| network.connect(CLIENT, SERVER_ADDRESS)).collect();
    deliver_all(&mut network);
    let (last, first) = clients.split_last().unwrap();
    assert!(first.iter().all(|client| network.poll_connected(*client) == Ok(true)), "at the bound");
    assert_eq!(network.poll_connected(*last), Err(StreamError::Refused), "one beyond");
    assert_eq!(network.counters().connections_above_backlog, 1);
    assert!(network.is_readable(listener));
    network.accept(listener).unwrap();
    let another = network.connect(CLIENT, SERVER_ADDRESS);
    deliver_all(&mut network);
    assert_eq!(network.poll_connected(another), Ok(true), "room again");
    network.close(listener);
    deliver_all(&mut network);
    assert_eq!(read_all(&mut network, another).1, Ok(StreamRead::End), "it will never be accepted");
}

#[test]
fn connections_are_refused_without_a_listener_or_at_random() {
    let mut network = Network::new(1, Nanos::ZERO);
    let without_listener = network.connect(CLIENT, SERVER_ADDRESS);
    assert_eq!(network.poll_connected(without_listener), Ok(false), "the answer is on its way");
    network.set_stream_faults(StreamFaults { refusal_ppm: 1_000_000, ..StreamFaults::NONE });
    network.listen(SERVER, SERVER_ADDRESS).unwrap();
    let at_random = network.connect(CLIENT, SERVER_ADDRESS);
    deliver_all(&mut network);
    for id in [without_listener, at_random] {
        assert_eq!(network.poll_connected(id), Err(StreamError::Refused));
    }
    let counters = network.counters();
    assert_eq!((counters.connections_unheard, counters.connections_refused), (1, 1));
}

#[test]
fn an_address_has_one_listener_and_port_0_takes_a_free_one() {
    let mut network = Network::new(1, Nanos::ZERO);
    let (listener, _) = network.listen(SERVER, SERVER_ADDRESS).unwrap();
    assert_eq!(network.listen(SERVER, SERVER_ADDRESS), Err(AddressInUse(SERVER_ADDRESS)));
    let any = SocketAddrV4::new(*SERVER_ADDRESS.ip(), 0);
    let (_, one) = network.listen(SERVER, any).unwrap();
    let (_, other) = network.listen(SERVER, any).unwrap();
    assert!(one.port() != 0 && one.port() != other.port(), "{one}, {other}");
    network.close(listener);
    assert!(network.listen(SERVER, SERVER_ADDRESS).is_ok());
}
