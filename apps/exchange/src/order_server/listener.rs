//! The listening socket of order entry, and the poller for it and its connections.

use std::io;
use std::net::SocketAddrV4;

use arrayvec::ArrayVec;
use tickpath_agent::{AgentError, WaitSet};
use tickpath_net::{BufferSizes, Network, SocketPoller, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;

/// Size of a connection's receive buffer, in bytes.
pub(super) const RECEIVE_BUFFER: usize = 16 * 1024;
/// Size of the buffer for one write to a connection, in bytes.
pub(super) const SEND_BUFFER: usize = 32 * 1024;
/// Maximum number of connections read in one duty cycle; the others are read in the next.
const READY_MAX: usize = 64;
/// Pause after a failed accept, usually due to the limit on open files. Without it, each poll would report
/// the waiting connection again.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);
/// Poller key of the acceptor. Connections use their index as the key.
const ACCEPTOR_KEY: u64 = u64::MAX;

/// Number of polls that report a single connection, and nothing else, before it is read directly.
const POLLS_BEFORE_DIRECT: u32 = 16;
/// Number of direct reads between two polls: a new connection waits for as many calls at most.
const DIRECT_READS_MAX: u32 = 15;

/// Accepts connections, and reports connections that are readable.
///
/// A busy connection that is alone is read directly, without a poll before each read: the poll is a system
/// call, and the kernel does more work for a socket in a poller. With two clients the poll is needed: all
/// requests that have arrived are sequenced in the order of their arrival.
pub(super) struct Listener<N: Network> {
    acceptor: TcpAcceptor<N>,
    poller: N::Poller,
    /// Index of the connection that is read directly, which is not in the poller.
    direct: Option<usize>,
    /// Number of direct reads until the next poll.
    direct_reads_left: u32,
    /// Number of polls that reported nothing but the one connection there is.
    polls_of_one: u32,
    /// Time at which the acceptor is polled again; `None` unless paused.
    resume_accept_at: Option<Nanos>,
}

/// The result of a poll.
#[derive(Default)]
pub(super) struct Ready {
    /// Indexes of the readable connections.
    pub(super) places: ArrayVec<usize, READY_MAX>,
    /// True when connections are waiting to be accepted.
    pub(super) has_new_connections: bool,
}

impl<N: Network> Listener<N> {
    /// Listens at `address`, with buffers for up to `connections` connections.
    pub(super) fn open(network: &N, address: SocketAddrV4, connections: usize) -> anyhow::Result<Self> {
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), address, buffers)?;
        acceptor.reserve(connections);
        let poller = network.poller(READY_MAX)?;
        acceptor.watch(&poller, ACCEPTOR_KEY)?;
        Ok(Listener {
            acceptor,
            poller,
            direct: None,
            direct_reads_left: 0,
            polls_of_one: 0,
            resume_accept_at: None,
        })
    }

    pub(super) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Records in `ready` the readable connections, and whether new connections wait to be accepted.
    #[inline]
    pub(super) fn poll(&mut self, ready: &mut Ready) -> Result<(), AgentError> {
        let found = self
            .poller
            .poll()
            .map_err(|error| AgentError::fatal(format!("cannot poll the order entry sockets: {error}")))?;
        for found in found {
            match found.key {
                ACCEPTOR_KEY => ready.has_new_connections = true,
                place => ready.places.push(place as usize),
            }
        }
        Ok(())
    }

    /// Accepts the next waiting connection, if any. Pauses accepting after an error.
    pub(super) fn accept(&mut self, now: Nanos) -> io::Result<Option<TcpConnection<N>>> {
        let accepted = self.acceptor.accept();
        if accepted.is_err() {
            self.pause(now);
        }
        accepted
    }

    /// Adds an accepted connection to the poller and returns it. On an error, closes it and pauses accepting.
    pub(super) fn watch(
        &mut self,
        tcp: TcpConnection<N>,
        place: usize,
        now: Nanos,
    ) -> Option<TcpConnection<N>> {
        if tcp.watch(&self.poller, place as u64).is_ok() {
            return Some(tcp);
        }
        self.acceptor.recycle(tcp);
        self.pause(now);
        None
    }

    /// Index of the connection to read directly, if any.
    #[inline]
    pub(super) fn direct(&self) -> Option<usize> {
        self.direct
    }

    /// Counts a direct read; true if a poll is due after it.
    #[inline]
    pub(super) fn count_direct_read(&mut self) -> bool {
        let is_poll_due = self.direct_reads_left == 0;
        self.direct_reads_left = if is_poll_due { DIRECT_READS_MAX } else { self.direct_reads_left - 1 };
        is_poll_due
    }

    /// Records that a poll reported nothing but the one connection there is. Once that has happened often,
    /// removes the connection from the poller.
    #[inline]
    pub(super) fn handle_poll_of_one(&mut self, tcp: &TcpConnection<N>, place: usize) {
        self.polls_of_one += 1;
        if self.polls_of_one >= POLLS_BEFORE_DIRECT && tcp.unwatch(&self.poller).is_ok() {
            (self.direct, self.direct_reads_left) = (Some(place), DIRECT_READS_MAX);
        }
    }

    /// Adds the connection that is read directly, with the index `place`, to the poller again. False if the
    /// system refuses; the connection is then still read directly.
    pub(super) fn watch_direct(&mut self, tcp: &TcpConnection<N>, place: usize) -> bool {
        self.polls_of_one = 0;
        if tcp.watch(&self.poller, place as u64).is_err() {
            return false;
        }
        self.direct = None;
        true
    }

    /// Removes a closed connection from the poller, and keeps its buffers for reuse.
    pub(super) fn take_back(&mut self, tcp: TcpConnection<N>, place: usize) {
        self.direct = self.direct.filter(|direct| *direct != place);
        self.polls_of_one = 0;
        let _ = tcp.unwatch(&self.poller);
        self.acceptor.recycle(tcp);
    }

    /// Pauses accepting for [`ACCEPT_PAUSE`], instead of retrying in each duty cycle.
    pub(super) fn pause(&mut self, now: Nanos) {
        if self.acceptor.unwatch(&self.poller).is_ok() {
            self.resume_accept_at = Some(now + ACCEPT_PAUSE);
        }
    }

    /// Resumes polling of the acceptor when its pause is over.
    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        if self.resume_accept_at.is_some_and(|at| now >= at)
            && self.acceptor.watch(&self.poller, ACCEPTOR_KEY).is_ok()
        {
            self.resume_accept_at = None;
        }
    }

    pub(super) fn wait_for(&self, wait: &mut WaitSet) {
        wait.descriptor(self.poller.descriptor());
    }
}
