//! Acceptance of connections, shared by all SoupBinTCP endpoints.

use std::net::Ipv4Addr;

use tickpath_net::{Network, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// A SoupBinTCP endpoint that bounds connections before login, in total and per peer, and gives each a key.
pub(crate) trait SoupEndpoint<N: Network> {
    /// Maximum number of connections accepted in one duty cycle.
    const ACCEPTS_MAX: usize;

    /// Returns the next connection to accept; `None` if there is none, or while the endpoint has no capacity.
    fn next_connection(&mut self, now: Nanos) -> Option<TcpConnection<N>>;

    /// Returns the key of the connection to close so that `peer` can connect; `None` while there is capacity.
    fn victim(&self, peer: Ipv4Addr) -> Option<u64>;

    /// Reads once from a connection and handles its input, before it may be evicted.
    fn serve_once(&mut self, key: u64, now: Nanos);

    /// Closes a connection that has not logged in, to free capacity.
    fn evict(&mut self, key: u64, now: Nanos);

    /// Takes an accepted connection, for which there is capacity. False if the system refuses it.
    fn admit(&mut self, tcp: TcpConnection<N>, peer: Ipv4Addr, now: Nanos) -> bool;

    /// Accepts some connections; returns their number. Reads from a victim first: its login may have arrived.
    #[cold]
    fn accept(&mut self, now: Nanos) -> usize {
        for count in 0..Self::ACCEPTS_MAX {
            let Some(tcp) = self.next_connection(now) else { return count };
            let peer = *tcp.peer_address().ip();
            if let Some(key) = self.victim(peer) {
                self.serve_once(key, now);
            }
            if let Some(key) = self.victim(peer) {
                self.evict(key, now);
            }
            if !self.admit(tcp, peer, now) {
                return count;
            }
        }
        Self::ACCEPTS_MAX
    }
}

/// Returns an acceptor's next waiting connection. After an accept error, a later call tries again.
pub(crate) fn next_waiting<N: Network>(acceptor: &mut TcpAcceptor<N>) -> Option<TcpConnection<N>> {
    acceptor.accept().ok().flatten()
}
