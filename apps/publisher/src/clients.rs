//! The TCP connections of one service.

use std::net::SocketAddrV4;

use tickpath_net::{BufferSizes, NetError, SendOutcome, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// One connection, and what the service knows of it.
pub(crate) struct Client<T> {
    pub(crate) tcp: TcpConnection,
    pub(crate) state: T,
    /// When it last asked for something, or took something.
    pub(crate) latest: Nanos,
    /// It is closed with the next look at who connects.
    pub(crate) is_gone: bool,
}

impl<T> Client<T> {
    /// Gives the kernel what waits for it.
    pub(crate) fn flush(&mut self) {
        self.is_gone |= matches!(self.tcp.flush_pending(), Err(_) | Ok(SendOutcome::Closed));
    }
}

/// Connections up to a bound, in the order in which they came; further ones are closed at once and counted.
pub(crate) struct Clients<T> {
    acceptor: TcpAcceptor,
    pub(crate) list: Vec<Client<T>>,
    max: usize,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
}

impl<T> Clients<T> {
    pub(crate) fn bind(
        address: SocketAddrV4,
        sizes: BufferSizes,
        max: usize,
    ) -> Result<Clients<T>, NetError> {
        let acceptor = TcpAcceptor::bind(address, sizes)?;
        Ok(Clients { acceptor, list: Vec::with_capacity(max), max, accepted: 0, refused: 0 })
    }

    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Takes who has connected, and lets go who is gone; how many came.
    pub(crate) fn accept(&mut self, now: Nanos, new: impl Fn() -> T) -> usize {
        self.list.retain(|client| !client.is_gone);
        let mut came = 0;
        while let Ok(Some(tcp)) = self.acceptor.accept() {
            came += 1;
            if self.list.len() == self.max {
                self.refused += 1;
            } else {
                self.accepted += 1;
                self.list.push(Client { tcp, state: new(), latest: now, is_gone: false });
            }
        }
        came
    }
}
