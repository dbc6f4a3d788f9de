//! The sockets of a recovery client: UDP for requests, a TCP connection, and multicast groups on demand.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;

use tickpath_feed::{
    RECOVERY_GROUPS_MAX, RecoveryClient, RecoveryInput, SocketCounters, SocketNeeds, StreamProgress,
};
use tickpath_net::{
    ClientState, DatagramEndpoint, DatagramReceiver, Fill, NetError, Network, ReconnectConfig,
    ReconnectingClient, SendOutcome,
};
use tickpath_types::Nanos;

use crate::senders::Senders;

/// Receive buffer length: the maximum length of a datagram.
const DATAGRAM_MAX: usize = 65_536;

/// The addresses of the servers and groups that recover a channel.
pub(crate) struct RecoveryServers {
    /// Address of the server that answers requests sent as datagrams.
    pub(crate) requests: Option<SocketAddrV4>,
    /// Address of the TCP server, and its reconnect delays.
    pub(crate) connection: Option<(SocketAddrV4, ReconnectConfig)>,
    pub(crate) groups: [Option<SocketAddrV4>; RECOVERY_GROUPS_MAX],
    /// Interface on which the groups are joined.
    pub(crate) interface: Ipv4Addr,
    /// Addresses that may send to the groups.
    pub(crate) senders: Senders,
}

/// The sockets between a recovery client and its servers.
pub(crate) struct RecoverySockets<N: Network> {
    network: N,
    servers: RecoveryServers,
    requests: Option<N::Endpoint>,
    connection: Option<ReconnectingClient<N>>,
    receivers: [Option<N::Receiver>; RECOVERY_GROUPS_MAX],
    buffer: Box<[u8]>,
    counters: SocketCounters,
}

impl<N: Network> RecoverySockets<N> {
    /// Opens the request socket, and joins the groups that the client needs from the start.
    pub(crate) fn open(
        network: &N,
        servers: RecoveryServers,
        client: &impl RecoveryClient,
    ) -> Result<RecoverySockets<N>, NetError> {
        let requests = servers.requests.map(|server| {
            let ip = if server.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
            network.endpoint(SocketAddrV4::new(ip, 0))
        });
        let connection = servers
            .connection
            .map(|(server, config)| ReconnectingClient::new(network.clone(), server, config));
        let mut sockets = RecoverySockets {
            network: network.clone(),
            servers,
            requests: requests.transpose()?,
            connection,
            receivers: Default::default(),
            buffer: vec![0; DATAGRAM_MAX].into(),
            counters: SocketCounters::default(),
        };
        sockets.join(client.needs())?;
        Ok(sockets)
    }

    /// Sends the client's next datagram request, if any.
    pub(crate) fn send_request(&mut self, client: &mut impl RecoveryClient) {
        let (Some(endpoint), Some(server)) = (&mut self.requests, self.servers.requests) else { return };
        let len = client.poll_datagram(&mut self.buffer);
        if len > 0 {
            // The arbiter repeats an unanswered request.
            let _ = endpoint.send_to(&self.buffer[..len], server);
        }
    }

    /// Reads up to `answers_max` datagrams, and passes those from the request server to `take`. Returns the
    /// number of datagrams read.
    pub(crate) fn poll_answers(&mut self, answers_max: usize, mut take: impl FnMut(&[u8])) -> usize {
        let (Some(endpoint), Some(server)) = (&mut self.requests, self.servers.requests) else { return 0 };
        let mut count = 0;
        while count < answers_max
            && let Ok(Some(received)) = endpoint.recv_from(&mut self.buffer)
        {
            count += 1;
            // Any host can send to the socket, and the books would apply a forged message.
            if received.from == server {
                self.counters.answers += 1;
                take(&self.buffer[..received.len]);
            } else {
                self.counters.unsolicited += 1;
            }
        }
        count
    }

    /// Opens and closes sockets as the client needs, and polls the connection and the groups once, with
    /// bounded work. Returns the amount of work.
    pub(crate) fn poll<C>(
        &mut self,
        now: Nanos,
        client: &mut impl RecoveryInput<C>,
        target: &mut C,
    ) -> usize {
        client.begin_turn(now, target);
        self.close(now, client.needs());
        let mut work = self.join(client.needs()).unwrap_or_else(|_| {
            client.handle_join_failure(now);
            0
        });
        if client.needs().connection {
            work += self.poll_connection(now, client, target);
        }
        for group in 0..RECOVERY_GROUPS_MAX {
            work += self.poll_group(now, group, client, target);
        }
        client.end_turn(now, target);
        self.close(now, client.needs());
        work
    }

    /// Closes the sockets that are no longer needed.
    fn close(&mut self, now: Nanos, needs: SocketNeeds) {
        for (receiver, is_needed) in self.receivers.iter_mut().zip(needs.groups) {
            if !is_needed {
                *receiver = None;
            }
        }
        if let Some(connection) = self.connection.as_mut().filter(|it| !needs.connection && !it.is_waiting())
        {
            connection.finish(now);
        }
    }

    /// Joins the needed groups that are not joined yet; returns the number of groups joined.
    fn join(&mut self, needs: SocketNeeds) -> Result<usize, NetError> {
        let mut joined = 0;
        for (group, receiver) in self.receivers.iter_mut().enumerate() {
            let is_missing = needs.groups[group] && receiver.is_none();
            let Some(address) = self.servers.groups[group].filter(|_| is_missing) else { continue };
            *receiver = Some(self.network.receiver(address, self.servers.interface)?);
            joined += 1;
        }
        self.counters.joins += joined as u64;
        Ok(joined)
    }

    fn poll_group<C, R: RecoveryInput<C>>(
        &mut self,
        now: Nanos,
        group: usize,
        client: &mut R,
        target: &mut C,
    ) -> usize {
        let Some(receiver) = &mut self.receivers[group] else { return 0 };
        let mut count = 0;
        while count < R::DATAGRAMS_PER_TURN
            && let Ok(Some(received)) = receiver.recv(&mut self.buffer)
        {
            count += 1;
            if self.servers.senders.allows(*received.from.ip()) {
                let datagram = &self.buffer[..received.len];
                client.handle_datagram(now, group, datagram, target);
            } else {
                self.counters.unauthorised += 1;
            }
        }
        count
    }

    fn poll_connection<C>(
        &mut self,
        now: Nanos,
        client: &mut impl RecoveryInput<C>,
        target: &mut C,
    ) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        let was_waiting = connection.is_waiting();
        match connection.poll(now) {
            ClientState::Waiting => return 0,
            ClientState::Connecting => {}
            ClientState::Connected => client.handle_connected(now, target),
            ClientState::Established => return self.exchange(now, client, target),
            ClientState::Failed => client.handle_disconnected(now, target),
        }
        usize::from(was_waiting)
    }

    /// Sends pending data on the connection and processes received data; returns the number of messages.
    fn exchange<C, R: RecoveryInput<C>>(&mut self, now: Nanos, client: &mut R, target: &mut C) -> usize {
        let is_sent = self.transmit(now, client, target);
        let Some(connection) = &mut self.connection else { return 0 };
        let Some(tcp) = connection.connection() else { return 0 };
        let is_closed = matches!(tcp.fill(), Ok(Fill::Closed) | Err(_));
        let (mut count, mut is_accepted) = (0, false);
        let mut progress = StreamProgress::Incomplete;
        while count < R::MESSAGES_PER_TURN {
            progress = client.handle_bytes(now, tcp.received(), target);
            match progress {
                StreamProgress::Consumed(len) => tcp.consume(len),
                StreamProgress::Accepted(len) => {
                    tcp.consume(len);
                    is_accepted = true;
                }
                StreamProgress::Incomplete => break,
                _ => {
                    count += 1;
                    break;
                }
            }
            count += 1;
        }
        if is_accepted {
            connection.reset_wait();
        }
        let is_cut_off = is_closed && count == 0;
        match progress {
            StreamProgress::Finished => connection.finish(now),
            StreamProgress::NotYet => connection.retry(now),
            StreamProgress::WaitUntil(until) => connection.wait_until(until),
            StreamProgress::Consumed(_) | StreamProgress::Accepted(_) | StreamProgress::Incomplete
                if is_sent && !is_cut_off && !client.is_silent(now) => {}
            _ => {
                connection.fail(now);
                client.handle_disconnected(now, target);
                return count.max(1);
            }
        }
        count
    }

    /// Sends all pending data of the client; returns false if a send failed or the send buffer was full.
    fn transmit<C>(&mut self, now: Nanos, client: &mut impl RecoveryInput<C>, target: &mut C) -> bool {
        let Some(tcp) = self.connection.as_mut().and_then(ReconnectingClient::connection) else {
            return true;
        };
        loop {
            let len = client.poll_transmit(now, target, &mut self.buffer);
            if len == 0 {
                return true;
            }
            let sent = tcp.send(&self.buffer[..len]);
            if !matches!(sent, Ok(SendOutcome::Sent | SendOutcome::Pending)) {
                return false;
            }
        }
    }

    pub(crate) fn counters(&self) -> SocketCounters {
        let (connections, failures) =
            self.connection.as_ref().map_or((0, 0), |it| (it.attempts(), it.failures()));
        SocketCounters { connections, failures, ..self.counters }
    }

    /// Returns the descriptor of the request socket. It becomes readable when an answer arrives.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.requests.as_ref().and_then(DatagramEndpoint::descriptor)
    }
}
