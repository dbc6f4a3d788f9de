//! What the network promises whatever goes wrong on it.

mod datagrams;
mod hosts;
mod streams;

use super::*;

const CLIENT: HostId = HostId(1);
const SERVER: HostId = HostId(2);
const DOOR: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_001);
/// Longer than anything takes that is not cut off.
const LONG: Nanos = Nanos::from_secs(1);

/// Lets as much time pass as anything takes.
fn settle(network: &mut Network) {
    network.advance(network.now() + LONG);
}

/// A connection from the client to the server, both ends.
fn connected(network: &mut Network) -> (SocketId, SocketId) {
    let (listener, address) = network.listen(SERVER, DOOR).unwrap();
    assert_eq!(address, DOOR);
    let client = network.connect(CLIENT, DOOR);
    assert_eq!(network.poll_connected(client), Ok(false));
    settle(network);
    assert_eq!(network.poll_connected(client), Ok(true));
    let (server, _) = network.accept(listener).unwrap();
    network.close(listener);
    (client, server)
}

/// Everything that can be read now, and whether the end or an error came after it.
fn read_all(network: &mut Network, id: SocketId) -> (Vec<u8>, Result<StreamRead, StreamError>) {
    let (mut all, mut buffer) = (vec![], [0; 777]);
    loop {
        match network.read(id, &mut buffer) {
            Ok(StreamRead::Bytes { count, .. }) => all.extend_from_slice(&buffer[..count]),
            last => return (all, last),
        }
    }
}

/// Bytes of which no short sequence comes twice.
fn bytes(count: usize) -> Vec<u8> {
    let mut draw = Draw::new(count as u64);
    (0..count).map(|_| draw.next() as u8).collect()
}
