//! One client's connection, without its socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use tickpath_types::Nanos;

use crate::front::FixLink;
use crate::scope::Scope;

/// Maximum bytes queued for a client that does not read; beyond them the client is disconnected.
pub(crate) const OUT_BYTES_MAX: usize = 4 << 20;

/// Disconnect reason for a client that does not read, in Deribit's wording.
pub(crate) const TOO_SLOW: &str = "connection_too_slow";

/// Protocol of a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// WebSocket frames in both directions for as long as the connection lasts.
    WebSocket,
    /// One request, one reply.
    Http,
    /// FIX 4.4, for as long as it lasts.
    Fix,
}

/// A message to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The message, in JSON.
    pub bytes: Vec<u8>,
    /// Error code of a rejected request; over HTTP the status reports it.
    pub error: Option<i64>,
}

/// Heartbeat state.
pub(crate) struct Heartbeat {
    pub(crate) interval_us: u64,
    pub(crate) next_us: u64,
    /// Time of the unanswered test request, if any, in microseconds since 1970.
    pub(crate) asked_us: Option<u64>,
}

/// State of one connection.
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    /// Place of the authenticated account.
    pub(crate) account: Option<usize>,
    pub(crate) scope: Scope,
    /// Expiry of the login's access token, in microseconds since 1970.
    pub(crate) login_until_us: u64,
    /// Digest of the access token of the login; empty for a login without a token.
    pub(crate) login: String,
    /// Digests of the access tokens that authorised subscriptions to account channels, by account.
    pub(crate) shown: BTreeMap<usize, String>,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Time of the last received message, in microseconds since 1970.
    pub(crate) last_in_us: u64,
    pub(crate) cancels_on_disconnect: bool,
    /// Accounts that quoted on this connection; their quotes are cancelled when it ends.
    pub(crate) quoted: BTreeSet<usize>,
    /// Client address. Requests before authentication consume the credits of the address.
    pub(crate) peer: Ipv4Addr,
    /// Places of the subscribed topics.
    pub(crate) topics: Vec<usize>,
    /// FIX session, on a FIX connection.
    pub(crate) fix: Option<Box<FixLink>>,
    out: VecDeque<Frame>,
    out_bytes: usize,
    /// Reason for closing the connection once all queued messages are sent.
    pub(crate) end: Option<&'static str>,
}

impl Connection {
    pub(crate) fn new(transport: Transport, peer: Ipv4Addr, now_us: u64) -> Connection {
        let now = Nanos::from_micros(now_us);
        Connection {
            transport,
            account: None,
            login_until_us: 0,
            login: String::new(),
            shown: BTreeMap::new(),
            scope: Scope::default(),
            heartbeat: None,
            last_in_us: now_us,
            cancels_on_disconnect: false,
            quoted: BTreeSet::new(),
            peer,
            topics: Vec::new(),
            fix: (transport == Transport::Fix).then(|| Box::new(FixLink::new(now))),
            out: VecDeque::new(),
            out_bytes: 0,
            end: None,
        }
    }

    /// Queues a message; returns false when the client does not read and must be disconnected.
    pub(crate) fn push(&mut self, frame: Frame) -> bool {
        if self.out_bytes + frame.bytes.len() > OUT_BYTES_MAX {
            self.out.clear();
            self.end = Some(TOO_SLOW);
            return false;
        }
        self.out_bytes += frame.bytes.len();
        self.out.push_back(frame);
        true
    }

    pub(crate) fn pop(&mut self) -> Option<Frame> {
        let frame = self.out.pop_front()?;
        self.out_bytes -= frame.bytes.len();
        Some(frame)
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.out.is_empty()
    }
}
