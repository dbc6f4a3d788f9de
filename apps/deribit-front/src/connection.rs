//! One client's connection, without its socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use tickpath_types::Nanos;

use crate::front::FixLink;
use crate::scope::Scope;

/// Bytes that may wait for a client that does not read; beyond them it is disconnected.
pub(crate) const OUT_BYTES_MAX: usize = 4 << 20;

/// Why one is disconnected that does not read: Deribit's word.
pub(crate) const TOO_SLOW: &str = "connection_too_slow";

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Frames both ways for as long as it lasts.
    WebSocket,
    /// One request, one reply.
    Http,
    /// FIX 4.4, for as long as it lasts.
    Fix,
}

/// A message to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// JSON.
    pub bytes: Vec<u8>,
    /// It refuses a request, for this reason; over HTTP the status says so.
    pub error: Option<i64>,
}

/// Signs of life.
pub(crate) struct Heartbeat {
    pub(crate) interval_us: u64,
    pub(crate) next_us: u64,
    /// When the client was asked for one and has not given it.
    pub(crate) asked_us: Option<u64>,
}

/// What the front knows of a connection.
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    /// Place of the account that is authenticated.
    pub(crate) account: Option<usize>,
    pub(crate) scope: Scope,
    /// Until when it is, in microseconds since 1970: its access token is over then.
    pub(crate) login_until_us: u64,
    /// Digest of the access token that it is; empty where it logged in without one.
    pub(crate) login: String,
    /// Digests of access tokens that channels of accounts were joined by, by the account.
    pub(crate) shown: BTreeMap<usize, String>,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// When something came last, in microseconds since 1970.
    pub(crate) last_in_us: u64,
    pub(crate) cancels_on_disconnect: bool,
    /// Accounts that it quoted for: their quotes go with it.
    pub(crate) quoted: BTreeSet<usize>,
    /// Where it comes from: requests before authentication take the credits of the address.
    pub(crate) peer: Ipv4Addr,
    /// Places of its topics.
    pub(crate) topics: Vec<usize>,
    /// Its session by FIX, where it speaks that.
    pub(crate) fix: Option<Box<FixLink>>,
    out: VecDeque<Frame>,
    out_bytes: usize,
    /// Why it is to be closed, once what waits is sent.
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

    /// Adds a message; false when the client does not read, and is to be closed.
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
