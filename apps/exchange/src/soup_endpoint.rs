//! Accepting connections, the same at every endpoint of SoupBinTCP.

use std::net::Ipv4Addr;

use tickpath_net::{Network, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// An endpoint for clients of SoupBinTCP. Its connections without a login are bounded, in all and by peer; each has a key.
pub(crate) trait SoupEndpoint<N: Network> {
    /// Connections accepted in one duty cycle at most.
    const ACCEPTS_MAX: usize;

    /// The next connection that waits; `None` also while the endpoint cannot take one.
    fn next_connection(&mut self, now: Nanos) -> Option<TcpConnection<N>>;

    /// The connection to be closed where another one of `peer` finds no capacity.
    fn victim(&self, peer: Ipv4Addr) -> Option<u64>;

    /// Serves a connection once, out of turn.
    fn serve_once(&mut self, key: u64, now: Nanos);

    /// Closes a connection that has not logged in.
    fn evict(&mut self, key: u64, now: Nanos);

    /// Takes an accepted connection, for which there is capacity; false when the system refuses that.
    fn admit(&mut self, tcp: TcpConnection<N>, peer: Ipv4Addr, now: Nanos) -> bool;

    /// Accepts some of the connections that wait; how many. One that gives way is served once more: its login may be there.
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

/// The next connection of an acceptor. One that the system refuses now waits, and is accepted in a later run.
pub(crate) fn next_waiting<N: Network>(acceptor: &mut TcpAcceptor<N>) -> Option<TcpConnection<N>> {
    acceptor.accept().ok().flatten()
}
