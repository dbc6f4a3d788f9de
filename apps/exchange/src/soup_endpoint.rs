//! Accepting connections, shared by all SoupBinTCP endpoints.

use std::net::Ipv4Addr;

use tickpath_net::{Network, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// A SoupBinTCP endpoint with a limit on connections without login, in total and per peer. Each has a key.
pub(crate) trait SoupEndpoint<N: Network> {
    /// Maximum number of connections accepted in one duty cycle.
    const ACCEPTS_MAX: usize;

    /// Returns the next waiting connection; `None` also while the endpoint cannot take one.
    fn next_connection(&mut self, now: Nanos) -> Option<TcpConnection<N>>;

    /// Returns the connection to close if a new connection of `peer` does not fit.
    fn victim(&self, peer: Ipv4Addr) -> Option<u64>;

    /// Serves a connection once, out of turn.
    fn serve_once(&mut self, key: u64, now: Nanos);

    /// Closes a connection that has not logged in.
    fn evict(&mut self, key: u64, now: Nanos);

    /// Takes an accepted connection, for which there is capacity. False when the system refuses.
    fn admit(&mut self, tcp: TcpConnection<N>, peer: Ipv4Addr, now: Nanos) -> bool;

    /// Accepts some waiting connections; returns their number. Serves evicted ones once more, for a login.
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

/// Returns an acceptor's next connection. One that the system refuses now is accepted in a later run.
pub(crate) fn next_waiting<N: Network>(acceptor: &mut TcpAcceptor<N>) -> Option<TcpConnection<N>> {
    acceptor.accept().ok().flatten()
}
