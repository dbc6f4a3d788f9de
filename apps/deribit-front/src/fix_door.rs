//! Sockets of the FIX clients.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use anyhow::Context;
use tickpath_admission::PreLogin;
use tickpath_agent::Counter;
use tickpath_net::{Kernel, Poller, SocketPoller};
use tickpath_types::Nanos;
use tickpath_web::{ByteAcceptor, ByteConnection, TlsServer};

use crate::config::{ConnectionsPerAddress, FrontSettings};
use crate::connection::Transport;
use crate::faults::Outage;
use crate::front::{FIX_MESSAGE_MAX, Front};

/// Poller key of the acceptor; connections have keys from 0.
const ACCEPTOR_KEY: u64 = u64::MAX;
/// Maximum number of ready connections per poll; the others follow in the next poll.
const READY_MAX: usize = 64;
/// Maximum number of connections accepted per run.
const ACCEPTS_PER_RUN: usize = 64;
/// Maximum bytes in the kernel's send buffer of one client.
const KERNEL_BYTES_MAX: usize = 256 << 10;
/// Buffer size for the first bytes of a client, which are usually a Logon.
const FIRST_LEN: usize = 4_096;
/// Maximum time for which a Logon may be postponed.
const PUT_OFF_MAX: Nanos = Nanos::from_secs(10);
/// Time for a client to read the last messages after its session is over.
const LINGER: Nanos = Nanos::from_secs(1);

/// Counters of the FIX acceptor, readable from other threads.
#[derive(Default)]
pub struct FixCounters {
    /// Connections accepted.
    pub connections: Counter,
    /// Connections closed after their Logon because the total or per-address connection limit was reached.
    pub refused: Counter,
    /// Connections closed before their Logon, because newer ones needed capacity or the Logon was late.
    pub evicted: Counter,
    /// Connections that broke or were cut.
    pub broken: Counter,
}

struct Client {
    connection: ByteConnection,
    /// Address of the client.
    peer: Ipv4Addr,
    /// Present from the client's first bytes on.
    session: Option<ClientSession>,
    /// Time at which the connection is closed after its session is over.
    closes_at: Option<Nanos>,
    is_lost: bool,
}

/// State of a client that has sent something. It holds the buffers; a silent connection needs none.
struct ClientSession {
    /// The front's connection number.
    number: u64,
    received: Box<[u8]>,
    received_len: usize,
}

impl Client {
    fn number(&self) -> Option<u64> {
        self.session.as_ref().map(|session| session.number)
    }

    /// Reads as much as the buffer has capacity for; returns `None` when nothing is available.
    fn read(&mut self, front: &mut Front, now: Nanos) -> io::Result<Option<usize>> {
        if let Some(ClientSession { received, received_len, .. }) = &mut self.session {
            let count = self.connection.read(&mut received[*received_len..])?;
            *received_len += count.unwrap_or(0);
            return Ok(count);
        }
        let mut first = [0; FIRST_LEN];
        let count = self.connection.read(&mut first)?;
        if let Some(count) = count {
            let mut received = vec![0; FIX_MESSAGE_MAX].into_boxed_slice();
            received[..count].copy_from_slice(&first[..count]);
            let number = front.open_from(self.peer, Transport::Fix, now.0 / 1_000);
            self.session = Some(ClientSession { number, received, received_len: count });
        }
        Ok(count)
    }
}

/// The acceptor and its connections.
pub(crate) struct FixDoor {
    acceptor: ByteAcceptor,
    poller: Poller,
    clients: BTreeMap<u64, Client>,
    /// Connections that have not logged on.
    pre_login: PreLogin<Ipv4Addr>,
    /// Keys of the connections whose Logon was postponed.
    put_off: Vec<u64>,
    /// Keys of clients that may have more data in TLS buffers, which the poller does not report.
    again: Vec<u64>,
    /// True when the latest run left unsent data or a connection to close.
    has_unsent: bool,
    next_key: u64,
    max_connections: usize,
    per_address: ConnectionsPerAddress,
    counters: Arc<FixCounters>,
}

impl FixDoor {
    pub(crate) fn open(
        address: SocketAddrV4,
        tls: Option<TlsServer>,
        settings: &FrontSettings,
    ) -> anyhow::Result<FixDoor> {
        let acceptor = ByteAcceptor::bind(&Kernel, address, tls).context("deribit.fix_address")?;
        let poller = Poller::new(READY_MAX)?;
        acceptor.watch(&poller, ACCEPTOR_KEY)?;
        Ok(FixDoor {
            acceptor,
            poller,
            clients: BTreeMap::new(),
            pre_login: PreLogin::new(settings.pre_login),
            put_off: Vec::new(),
            again: Vec::new(),
            has_unsent: false,
            next_key: 0,
            max_connections: settings.max_connections,
            per_address: settings.per_address,
            counters: Arc::default(),
        })
    }

    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    pub(crate) fn counters(&self) -> Arc<FixCounters> {
        Arc::clone(&self.counters)
    }

    /// Returns a descriptor that is readable when a client sent something.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.poller.descriptor()
    }

    /// Returns true while work is pending that the descriptor does not report.
    pub(crate) fn has_more(&self) -> bool {
        !self.again.is_empty() || self.has_unsent
    }

    /// Reads from the clients; returns the amount of work done.
    pub(crate) fn read(&mut self, front: &mut Front, now: Nanos) -> usize {
        // When the system call fails, the next run polls again.
        let mut ready = std::mem::take(&mut self.again);
        if let Ok(found) = self.poller.poll() {
            ready.extend(found.map(|ready| ready.key));
        }
        ready.sort_unstable();
        ready.dedup();
        let mut work = 0;
        for key in ready.iter().copied().filter(|key| *key != ACCEPTOR_KEY) {
            work += self.receive(key, front, now);
        }
        // After the others: a received Logon is read before its connection could be closed for a new one.
        if ready.contains(&ACCEPTOR_KEY) {
            work += self.accept(front, now);
        }
        // Postponed Logons are decided without further input from their clients.
        let mut put_off = std::mem::take(&mut self.put_off);
        put_off.retain(|key| {
            self.admit_if_logged_on(*key, front);
            self.pre_login.contains(*key)
        });
        self.put_off = put_off;
        while let Some(key) = self.pre_login.expired(now) {
            self.evict(key, front, now);
        }
        work
    }

    fn accept(&mut self, front: &mut Front, now: Nanos) -> usize {
        for count in 0..ACCEPTS_PER_RUN {
            let Ok(Some(connection)) = self.acceptor.accept() else { return count };
            // Accepted connections have a peer address.
            let peer = connection.peer_address().map_or(Ipv4Addr::UNSPECIFIED, |peer| *peer.ip());
            self.make_room(peer, front, now);
            let key = self.next_key;
            self.next_key += 1;
            if connection.limit_send_buffer(KERNEL_BYTES_MAX).is_err()
                || connection.watch(&self.poller, key).is_err()
            {
                continue;
            }
            self.counters.connections.add(1);
            self.pre_login.admit(now, key, peer);
            let client = Client { peer, connection, session: None, closes_at: None, is_lost: false };
            self.clients.insert(key, client);
        }
        ACCEPTS_PER_RUN
    }

    /// Closes a connection that has not logged on when the limits leave no capacity for another one of
    /// `peer`. Reads the connection first, because its Logon may have arrived.
    fn make_room(&mut self, peer: Ipv4Addr, front: &mut Front, now: Nanos) {
        let Some(key) = self.pre_login.victim(peer) else { return };
        self.receive(key, front, now);
        if let Some(key) = self.pre_login.victim(peer) {
            self.evict(key, front, now);
        }
    }

    fn evict(&mut self, key: u64, front: &mut Front, now: Nanos) {
        self.counters.evicted.add(1);
        self.pre_login.remove(key);
        if let Some(number) = self.clients.remove(&key).and_then(|client| client.number()) {
            front.close(number, now.0 / 1_000);
        }
    }

    /// Returns true if there is capacity for a connection that has logged on.
    fn may_stay(&self, peer: Ipv4Addr) -> bool {
        let of_peer =
            |(key, client): &(&u64, &Client)| client.peer == peer && !self.pre_login.contains(**key);
        self.clients.len() - self.pre_login.len() <= self.max_connections
            && self.clients.iter().filter(of_peer).count() <= self.per_address.max_of(peer)
    }

    /// Receives from a client, at most as much as its buffer holds.
    fn receive(&mut self, key: u64, front: &mut Front, now: Nanos) -> usize {
        let Some(client) = self.clients.get_mut(&key) else { return 0 };
        let mut work = 0;
        // The buffer fits the longest message, so it has capacity once all complete messages are processed.
        while !client.is_lost && client.number().is_none_or(|number| front.poll_outage(number).is_none()) {
            if work >= FIX_MESSAGE_MAX {
                self.again.push(key);
                break;
            }
            match client.read(front, now) {
                Ok(None) => break,
                Ok(Some(count)) => work += count,
                Err(_) => {
                    client.is_lost = true;
                    break;
                }
            }
            if let Some(ClientSession { number, received, received_len }) = &mut client.session {
                let done = front.handle_fix(*number, &received[..*received_len], now.0 / 1_000);
                received.copy_within(done..*received_len, 0);
                *received_len -= done;
            }
        }
        if work > 0
            && let Some(number) = client.number()
        {
            if front.is_login_waiting(number) && !self.put_off.contains(&key) {
                self.pre_login.postpone(key, now + PUT_OFF_MAX);
                self.put_off.push(key);
            }
            self.admit_if_logged_on(key, front);
        }
        work
    }

    /// Removes a logged-on client from the pre-logon connections; closes it when there is no capacity for it.
    fn admit_if_logged_on(&mut self, key: u64, front: &Front) {
        let Some(client) = self.clients.get(&key) else { return };
        let is_logged_on = client.number().is_some_and(|number| front.is_logged_in(number));
        if is_logged_on && self.pre_login.remove(key) && !self.may_stay(client.peer) {
            self.counters.refused.add(1);
            if let Some(client) = self.clients.get_mut(&key) {
                client.is_lost = true;
            }
        }
    }

    /// Sends the queued messages that clients accept, and closes connections that are over. Returns the
    /// amount of work done.
    pub(crate) fn write(&mut self, front: &mut Front, now: Nanos) -> usize {
        let (mut work, mut has_unsent) = (0, false);
        let pre_login = &mut self.pre_login;
        self.clients.retain(|key, client| {
            let number = client.number();
            let outage = number.and_then(|number| front.poll_outage(number));
            if outage == Some(Outage::Silent) {
                return true;
            }
            client.is_lost |= outage == Some(Outage::Cut);
            if let Some(number) = number
                && !client.is_lost
                && !front.fix_output(number).is_empty()
            {
                match client.connection.write(front.fix_output(number)) {
                    Ok(count) => {
                        work += count;
                        front.handle_fix_sent(number, count, now.0 / 1_000);
                    }
                    Err(_) => client.is_lost = true,
                }
            }
            // TLS may hold accepted bytes.
            let is_sent = client.is_lost
                || client.connection.flush().unwrap_or_else(|_| {
                    client.is_lost = true;
                    true
                });
            let is_over = number.is_some_and(|number| front.is_fix_over(number));
            let is_broken = client.is_lost && !is_over;
            let has_output = number.is_some_and(|number| !front.fix_output(number).is_empty());
            if is_over {
                let closes_at = *client.closes_at.get_or_insert(now + LINGER);
                client.is_lost |= (is_sent && !has_output) || now >= closes_at;
            }
            if client.is_lost {
                self.counters.broken.add(u64::from(is_broken));
                pre_login.remove(*key);
                client.connection.close();
                if let Some(number) = number {
                    front.close(number, now.0 / 1_000);
                }
            }
            has_unsent |= !client.is_lost && (!is_sent || client.closes_at.is_some() || has_output);
            !client.is_lost
        });
        self.has_unsent = has_unsent;
        work
    }

    /// Closes all sessions when the venue stops.
    pub(crate) fn close_all(&mut self, front: &mut Front, now: Nanos) {
        front.end_fix(now.0 / 1_000);
        self.write(front, now);
        self.clients.clear();
    }
}
