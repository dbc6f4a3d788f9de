//! The TCP connections of one service.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_net::{BufferSizes, NetError, SendOutcome, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// Maximum number of connections accepted in one duty cycle.
const ACCEPTS_PER_CYCLE: usize = 64;

/// One connection to a service, with the state that the service keeps for it.
pub(crate) struct Client<T> {
    id: u64,
    pub(crate) tcp: TcpConnection,
    pub(crate) state: T,
    /// Time at which the client last sent data or was last sent part of an answer.
    pub(crate) latest: Nanos,
    /// True once the client has made a request.
    pub(crate) has_requested: bool,
    /// True if the next call of [`accept`](Clients::accept) closes the connection.
    pub(crate) is_disconnected: bool,
}

impl<T> Client<T> {
    /// Passes the pending bytes to the kernel.
    pub(crate) fn flush(&mut self) {
        self.is_disconnected |= matches!(self.tcp.flush_pending(), Err(_) | Ok(SendOutcome::Closed));
    }
}

/// The clients of a service, up to a maximum, and the connections that have made no request yet.
///
/// The services require no credentials. When the maximum is reached, a new client replaces a client of the
/// address with the most clients, if its own address has fewer. Otherwise the new client is closed and
/// counted as refused.
pub(crate) struct Clients<T> {
    acceptor: TcpAcceptor,
    pub(crate) list: Vec<Client<T>>,
    waiting: PreLogin<Ipv4Addr>,
    served: PreLogin<Ipv4Addr>,
    next_id: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
}

impl<T> Clients<T> {
    /// Listens for at most `max` clients; a connection must make its first request within `deadline`.
    pub(crate) fn bind(
        address: SocketAddrV4,
        sizes: BufferSizes,
        max: usize,
        deadline: Nanos,
    ) -> Result<Clients<T>, NetError> {
        let acceptor = TcpAcceptor::bind(address, sizes)?;
        let waiting = PreLoginLimits { deadline, ..PreLoginLimits::default() };
        let served = PreLoginLimits { connections: max, per_address: max, deadline };
        Ok(Clients {
            acceptor,
            list: Vec::with_capacity(max + waiting.connections),
            waiting: PreLogin::new(waiting),
            served: PreLogin::new(served),
            next_id: 0,
            accepted: 0,
            refused: 0,
        })
    }

    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Accepts connections and drops those that have ended; returns the number accepted. Call it after
    /// reading from all clients, because it may close connections that have made no request.
    pub(crate) fn accept(&mut self, now: Nanos, new: impl Fn() -> T) -> usize {
        for index in 0..self.list.len() {
            if self.list[index].has_requested && self.waiting.remove(self.list[index].id) {
                self.admit_requester(now, index);
            }
        }
        let mut accepted_count = 0;
        while accepted_count < ACCEPTS_PER_CYCLE
            && let Ok(Some(tcp)) = self.acceptor.accept()
        {
            accepted_count += 1;
            let peer = *tcp.peer_address().ip();
            if let Some(id) = self.waiting.victim(peer) {
                self.refused += 1;
                self.disconnect(id);
            }
            let id = self.next_id;
            self.next_id += 1;
            self.accepted += 1;
            self.waiting.admit(now, id, peer);
            self.list.push(Client {
                id,
                tcp,
                state: new(),
                latest: now,
                has_requested: false,
                is_disconnected: false,
            });
        }
        while let Some(id) = self.waiting.expired(now) {
            self.disconnect(id);
        }
        let Clients { list, waiting, served, .. } = self;
        list.retain(|client| {
            if client.is_disconnected {
                waiting.remove(client.id);
                served.remove(client.id);
            }
            !client.is_disconnected
        });
        accepted_count
    }

    /// Admits a connection as a client after its first request, or marks it to be closed.
    fn admit_requester(&mut self, now: Nanos, index: usize) {
        let (id, peer) = (self.list[index].id, *self.list[index].tcp.peer_address().ip());
        if let Some(rival) = self.served.fair_share_victim(peer) {
            self.disconnect(rival);
        }
        if self.served.is_full() {
            self.refused += 1;
            self.list[index].is_disconnected = true;
        } else {
            self.served.admit(now, id, peer);
        }
    }

    fn disconnect(&mut self, id: u64) {
        self.waiting.remove(id);
        self.served.remove(id);
        if let Some(client) = self.list.iter_mut().find(|client| client.id == id) {
            client.is_disconnected = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn idle_connections_do_not_displace_clients() {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let sizes = BufferSizes { receive: 64, pending: 64 };
        let mut clients = Clients::bind(address, sizes, 2, Nanos::from_secs(10)).unwrap();
        let limits = PreLoginLimits::default();
        let connect = || TcpStream::connect(clients.local_address()).unwrap();
        let _served = [connect(), connect()];
        let _idle: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
        let mut now = Nanos::from_secs(1);
        while clients.accepted < 202 {
            clients.accept(now, || ());
            // The first two connections (ids 0 and 1) make their requests at once.
            clients
                .list
                .iter_mut()
                .filter(|client| client.id < 2)
                .for_each(|client| client.has_requested = true);
        }
        clients.accept(now, || ());
        assert_eq!(
            (clients.list.len(), clients.list[0].id, clients.list[1].id),
            (2 + limits.per_address, 0, 1)
        );
        assert_eq!(clients.refused as usize, 200 - limits.per_address);
        clients.list[2].has_requested = true;
        clients.accept(now, || ());
        assert_eq!(clients.list.len(), 1 + limits.per_address, "one too many of this address");
        now = now + Nanos::from_secs(10);
        clients.accept(now, || ());
        assert_eq!(clients.list.len(), 2);
    }
}
