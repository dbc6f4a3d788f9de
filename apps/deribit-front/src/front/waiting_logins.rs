//! Delayed logins: too many logins failed from their address for their key.
//!
//! A correct secret is never rejected because of others' failures while the number of delayed logins is
//! within its limit. Failures are limited per second, address and key; further logins are checked in the
//! order of arrival. An address that had the correct secret earlier is not delayed.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use tickpath_admission::TrustedPeers;
use tickpath_deribit::codes::GrantType;
use tickpath_deribit::messages::Auth;
use tickpath_deribit::request::Request;
use tickpath_fix::{Message, Parsed};

use super::Front;
use super::http::KeptCall;
use super::peers::PublicPool;
use crate::fault::Fault;
use crate::pending::ReplyTo;

/// Maximum number of delayed logins; further ones are rejected.
const WAITING_MAX: usize = 256;
/// The same limit per address and key. At two checks per second, the delay is at most eight seconds, below
/// the ten that a FIX session has for its Logon.
const WAITING_OF_PAIR_MAX: usize = 16;

/// Delayed logins, oldest first.
#[derive(Default)]
pub(super) struct WaitingLogins(VecDeque<Waiting>);

struct Waiting {
    number: u64,
    peer: Ipv4Addr,
    /// Place of the named key.
    named: Option<usize>,
    shown: Shown,
}

/// A stored login.
pub(super) enum Shown {
    /// `public/auth`: the frame, whether it is an HTTP query, and the destination of its reply.
    Auth(Vec<u8>, bool, ReplyTo),
    /// An `Authorization` header.
    Http(KeptCall),
    /// A Logon.
    Fix(Vec<u8>),
}

impl WaitingLogins {
    /// Removes the logins of an ended connection.
    pub(super) fn forget(&mut self, number: u64) {
        self.0.retain(|waiting| waiting.number != number);
    }

    fn of_pair(&self, peer: Ipv4Addr, named: Option<usize>) -> usize {
        self.0.iter().filter(|waiting| waiting.peer == peer && waiting.named == named).count()
    }
}

impl Front {
    /// Returns true while a login of the connection is delayed.
    #[must_use]
    pub fn is_login_waiting(&self, number: u64) -> bool {
        self.waiting_logins.0.iter().any(|waiting| waiting.number == number)
    }

    /// Delays a login for the named key, or for no key; returns false if it must be checked now.
    ///
    /// # Errors
    /// The limit is reached, and the client is disconnected.
    pub(super) fn put_off(
        &mut self,
        number: u64,
        named: Option<usize>,
        shown: impl FnOnce() -> Shown,
    ) -> Result<bool, Fault> {
        let Some(peer) = self.connections.get(&number).map(|connection| connection.peer) else {
            return Ok(false);
        };
        let count = self.waiting_logins.of_pair(peer, named);
        // A login must not overtake delayed ones.
        if self.is_trusted(named, peer) || (count == 0 && self.has_failures_left(peer, named)) {
            return Ok(false);
        }
        if count >= WAITING_OF_PAIR_MAX || self.waiting_logins.0.len() >= WAITING_MAX {
            self.counters.logins_refused.add(1);
            return Err(self.send_away(number));
        }
        self.counters.logins_delayed.add(1);
        self.waiting_logins.0.push_back(Waiting { number, peer, named, shown: shown() });
        Ok(true)
    }

    /// The same for `public/auth`. Refresh tokens are never delayed, because they cannot be guessed.
    pub(super) fn put_off_auth(
        &mut self,
        request: &Request<'_>,
        frame: &[u8],
        to: &ReplyTo,
    ) -> Result<bool, Fault> {
        let auth: Result<Auth<'_>, _> = request.params();
        let Some(auth) = auth.ok().filter(|auth| auth.grant_type != GrantType::RefreshToken) else {
            return Ok(false);
        };
        let named = auth.client_id.and_then(|id| self.key_named(&id.to_cow()));
        let shown = || Shown::Auth(frame.to_vec(), request.is_query, to.clone());
        self.put_off(to.connection, named, shown)
    }

    /// Checks the logins that are no longer delayed.
    pub(super) fn check_waiting_logins(&mut self) {
        for _ in 0..self.waiting_logins.0.len() {
            let Some(waiting) = self.waiting_logins.0.pop_front() else { return };
            if self.is_trusted(waiting.named, waiting.peer)
                || self.has_failures_left(waiting.peer, waiting.named)
            {
                self.check_login(waiting.number, waiting.shown);
            } else {
                self.waiting_logins.0.push_back(waiting);
            }
        }
    }

    fn check_login(&mut self, number: u64, shown: Shown) {
        match shown {
            Shown::Auth(frame, is_query, to) => {
                let parse = if is_query { Request::parse_query } else { Request::parse };
                let Ok(request) = parse(&frame) else { return };
                match self.authenticate(number, &request) {
                    Ok(Some(result)) => self.reply(&to, Ok(result)),
                    Ok(None) => {}
                    Err(fault) => self.reply(&to, Err(fault)),
                }
            }
            Shown::Http(call) => self.do_http(number, &call.as_call()),
            Shown::Fix(message) => {
                if let Parsed::Complete { message, .. } = Message::parse(&message) {
                    self.check_fix_logon(number, &message);
                }
            }
        }
    }

    fn is_trusted(&self, named: Option<usize>, peer: Ipv4Addr) -> bool {
        named.is_some_and(|key| self.trusted.contains(key, peer))
    }

    fn has_failures_left(&mut self, peer: Ipv4Addr, named: Option<usize>) -> bool {
        let now = self.now();
        self.peers.has_any(peer, PublicPool::RefusedLogin(named), now)
    }

    /// Records that the secret of a key was correct.
    pub(super) fn trust(&mut self, number: u64, key: usize) {
        if let Some(connection) = self.connections.get(&number) {
            self.trusted.record(key, connection.peer);
            self.new_trust.push_back((key as u32, connection.peer));
        }
    }

    /// Returns the addresses from which each key's secret was correct, by the place of the key.
    #[must_use]
    pub fn trusted(&self) -> &TrustedPeers<Ipv4Addr> {
        &self.trusted
    }

    /// Returns the next pair of key and address with a correct secret.
    pub fn poll_trusted(&mut self) -> Option<(u32, Ipv4Addr)> {
        self.new_trust.pop_front()
    }

    /// Restores the pairs from before a restart.
    pub fn recall_trusted(&mut self, trusted: TrustedPeers<Ipv4Addr>) {
        self.trusted = trusted;
    }

    /// Returns the ids of the keys, by place.
    #[must_use]
    pub fn key_ids(&self) -> Vec<String> {
        self.settings.keys.iter().map(|key| key.client_id.clone()).collect()
    }
}
