//! Logins that are put off: too many failed from their address as their key.
//!
//! A right secret is never refused for others' failures, as far as a bounded number of logins waits: each address may fail
//! so often a second as each key, and logins beyond that are checked in the order in which they came. Where the secret was
//! right before, none waits.

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

/// Logins that wait at a time; a further one is refused.
const WAITING_MAX: usize = 256;
/// The same of one address as one key. At two checks a second none waits longer than eight seconds, which is less than the
/// ten that a FIX session has for its Logon.
const WAITING_OF_PAIR_MAX: usize = 16;

/// Logins that are put off, the oldest first.
#[derive(Default)]
pub(super) struct WaitingLogins(VecDeque<Waiting>);

struct Waiting {
    number: u64,
    peer: Ipv4Addr,
    /// Place of the key that is named.
    named: Option<usize>,
    shown: Shown,
}

/// A login, kept.
pub(super) enum Shown {
    /// `public/auth`: the frame, whether it is a query by HTTP, and where its reply goes.
    Auth(Vec<u8>, bool, ReplyTo),
    /// An `Authorization` header.
    Http(KeptCall),
    /// A Logon.
    Fix(Vec<u8>),
}

impl WaitingLogins {
    /// The connection is gone.
    pub(super) fn forget(&mut self, number: u64) {
        self.0.retain(|waiting| waiting.number != number);
    }

    fn of_pair(&self, peer: Ipv4Addr, named: Option<usize>) -> usize {
        self.0.iter().filter(|waiting| waiting.peer == peer && waiting.named == named).count()
    }
}

impl Front {
    /// Whether a login of a connection is put off.
    #[must_use]
    pub fn is_login_waiting(&self, number: u64) -> bool {
        self.waiting_logins.0.iter().any(|waiting| waiting.number == number)
    }

    /// Puts a login off where it must wait, as the key that it names or as none; false where it is checked now.
    ///
    /// # Errors
    /// As many wait as may: the client is sent away.
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
        // None overtakes those that wait.
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

    /// The same for `public/auth`. A token that renews is nothing that can be guessed.
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

    /// Checks the logins that need not wait any more.
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

    /// The secret of a key was right.
    pub(super) fn trust(&mut self, number: u64, key: usize) {
        if let Some(connection) = self.connections.get(&number) {
            self.trusted.record(key, connection.peer);
            self.new_trust.push_back((key as u32, connection.peer));
        }
    }

    /// The addresses where each key's secret was right, by the places of the keys.
    #[must_use]
    pub fn trusted(&self) -> &TrustedPeers<Ipv4Addr> {
        &self.trusted
    }

    /// The next pair of key and address where the key's secret was right.
    pub fn poll_trusted(&mut self) -> Option<(u32, Ipv4Addr)> {
        self.new_trust.pop_front()
    }

    /// Takes the pairs of before a restart.
    pub fn recall_trusted(&mut self, trusted: TrustedPeers<Ipv4Addr>) {
        self.trusted = trusted;
    }

    /// The ids of the keys, by their places.
    #[must_use]
    pub fn key_ids(&self) -> Vec<String> {
        self.settings.keys.iter().map(|key| key.client_id.clone()).collect()
    }
}
