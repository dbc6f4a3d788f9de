//! The listening socket of order entry, and the poller of all its connections.

use std::io;
use std::net::SocketAddrV4;

use arrayvec::ArrayVec;
use tickpath_agent::{AgentError, WaitSet};
use tickpath_net::{BufferSizes, Network, SocketPoller, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// Bytes received and not yet taken, for each connection.
pub(super) const RECEIVE_BUFFER: usize = 16 * 1024;
/// Bytes gathered for one write.
pub(super) const SEND_BUFFER: usize = 32 * 1024;
/// Connections that one duty cycle reads at most; the others come with the next.
const READY_MAX: usize = 64;
/// Time without accepting after the system refused a connection: the limit of open files does not change at once, and a
/// connection that waits stays ready.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);
/// Key of the acceptor in the poller; connections have their places.
const ACCEPTOR_KEY: u64 = u64::MAX;

/// Accepts connections and says which have something to be read.
pub(super) struct Listener<N: Network> {
    acceptor: TcpAcceptor<N>,
    poller: N::Poller,
    /// When the acceptor is polled again, while it is not.
    accept_again_at: Option<Nanos>,
}

/// Connections that have something to be read.
#[derive(Default)]
pub(super) struct Ready {
    /// Their places.
    pub(super) places: ArrayVec<usize, READY_MAX>,
    /// True when connections wait to be accepted.
    pub(super) has_newcomers: bool,
}

impl<N: Network> Listener<N> {
    /// Listens at `address` for `connections` at a time.
    pub(super) fn open(network: &N, address: SocketAddrV4, connections: usize) -> anyhow::Result<Self> {
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), address, buffers)?;
        acceptor.reserve(connections);
        let poller = network.poller(READY_MAX)?;
        acceptor.watch(&poller, ACCEPTOR_KEY)?;
        Ok(Listener { acceptor, poller, accept_again_at: None })
    }

    pub(super) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Adds the connections that have something to `ready`.
    #[inline]
    pub(super) fn poll(&mut self, ready: &mut Ready) -> Result<(), AgentError> {
        let found = self
            .poller
            .poll()
            .map_err(|error| AgentError::fatal(format!("cannot poll the order entry sockets: {error}")))?;
        for found in found {
            match found.key {
                ACCEPTOR_KEY => ready.has_newcomers = true,
                place => ready.places.push(place as usize),
            }
        }
        Ok(())
    }

    /// The next connection that waits.
    pub(super) fn accept(&mut self, now: Nanos) -> io::Result<Option<TcpConnection<N>>> {
        let accepted = self.acceptor.accept();
        if accepted.is_err() {
            self.pause(now);
        }
        accepted
    }

    /// Has an accepted connection polled; one that the system refuses that is given back.
    pub(super) fn watch(
        &mut self,
        tcp: TcpConnection<N>,
        place: usize,
        now: Nanos,
    ) -> Option<TcpConnection<N>> {
        if tcp.watch(&self.poller, place as u64).is_ok() {
            return Some(tcp);
        }
        self.acceptor.take_back(tcp);
        self.pause(now);
        None
    }

    /// Takes back a connection that is over.
    pub(super) fn take_back(&mut self, tcp: TcpConnection<N>) {
        let _ = tcp.unwatch(&self.poller);
        self.acceptor.take_back(tcp);
    }

    /// The system has no room for a connection: the acceptor is polled again after a while, not in every duty cycle.
    fn pause(&mut self, now: Nanos) {
        if self.acceptor.unwatch(&self.poller).is_ok() {
            self.accept_again_at = Some(now + ACCEPT_PAUSE);
        }
    }

    /// Polls the acceptor again once it is time.
    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        if self.accept_again_at.is_some_and(|at| now >= at)
            && self.acceptor.watch(&self.poller, ACCEPTOR_KEY).is_ok()
        {
            self.accept_again_at = None;
        }
    }

    pub(super) fn wait_for(&self, wait: &mut WaitSet) {
        wait.descriptor(self.poller.descriptor());
    }
}
