//! Tests of the network's guarantees under all faults.

mod datagrams;
mod hosts;
mod streams;

use super::*;

const CLIENT: HostId = HostId(1);
const SERVER: HostId = HostId(2);
const SERVER_ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_001);
/// A duration longer than any delay, except that of data that a partition holds back.
const LONG: Nanos = Nanos::from_secs(1);

/// Advances the time until all data has arrived, except data that a partition holds back.
fn deliver_all(network: &mut Network) {
    network.advance(network.now() + LONG);
}

/// Connects the client to the server, and returns both ends.
fn connected(network: &mut Network) -> (SocketId, SocketId) {
    let (listener, address) = network.listen(SERVER, SERVER_ADDRESS).unwrap();
    assert_eq!(address, SERVER_ADDRESS);
    let client = network.connect(CLIENT, SERVER_ADDRESS);
    assert_eq!(network.poll_connected(client), Ok(false));
    deliver_all(network);
    assert_eq!(network.poll_connected(client), Ok(true));
    let (server, _) = network.accept(listener).unwrap();
    network.close(listener);
    (client, server)
}

/// Reads all available bytes; returns them with the last result: empty, end of stream, or an error.
fn read_all(network: &mut Network, id: SocketId) -> (Vec<u8>, Result<StreamRead, StreamError>) {
    let (mut all, mut buffer) = (vec![], [0; 777]);
    loop {
        match network.read(id, &mut buffer) {
            Ok(StreamRead::Bytes { count, .. }) => all.extend_from_slice(&buffer[..count]),
            last => return (all, last),
        }
    }
}

/// Random bytes, so that lost, repeated or swapped parts are noticed.
fn bytes(count: usize) -> Vec<u8> {
    let mut rng = Rng::new(count as u64);
    (0..count).map(|_| rng.next() as u8).collect()
}
