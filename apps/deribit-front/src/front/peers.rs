//! Credits of clients before login, by address: every request may come over a separate connection.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

use tickpath_deribit::credits::{CreditPlan, Credits};
use tickpath_types::Nanos;

/// Maximum number of known addresses. Further ones share the credits of all unknown addresses, until a known
/// one is silent for [`FORGOTTEN_AFTER`].
const PEERS_MAX: usize = 4_096;
/// Silent time after which an address has all credits back and can be forgotten.
const FORGOTTEN_AFTER: Nanos = Nanos::from_secs(60);
/// Failed logins allowed per address and key: two per second, with bursts of twenty.
const REFUSED_LOGINS: CreditPlan = CreditPlan { cost: 5_000, pool: 100_000, refill_per_s: 10_000 };

/// Credit pool of a request without a login.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PublicPool {
    Any,
    GetInstruments,
    /// A rejected login, with the place of the key if it named one. Each key has separate credits: guessing
    /// the secret of one key does not block the other keys, even where many programs share one address.
    RefusedLogin(Option<usize>),
}

struct Peer {
    public: Credits,
    get_instruments: Credits,
    /// Credits of failed logins that named no key.
    refused_nameless: Credits,
    /// Credits of failed logins, by the place of the key.
    refused_by_key: BTreeMap<usize, Credits>,
    seen: Nanos,
}

impl Peer {
    fn new(now: Nanos) -> Peer {
        Peer {
            public: Credits::new(CreditPlan::NON_MATCHING, now),
            get_instruments: Credits::new(CreditPlan::GET_INSTRUMENTS, now),
            refused_nameless: Credits::new(REFUSED_LOGINS, now),
            refused_by_key: BTreeMap::new(),
            seen: now,
        }
    }
}

/// Credits by address.
pub(super) struct Peers {
    known: HashMap<Ipv4Addr, Peer>,
    others: Peer,
    /// Time of the latest removal of silent addresses.
    swept: Nanos,
}

impl Peers {
    pub(super) fn new(now: Nanos) -> Peers {
        Peers { known: HashMap::new(), others: Peer::new(now), swept: now }
    }

    /// Consumes credits; returns false when there are none.
    pub(super) fn try_take(&mut self, address: Ipv4Addr, pool: PublicPool, now: Nanos) -> bool {
        self.credits(address, pool, now).try_take(now).is_ok()
    }

    /// Returns true if credits are left, without consuming any.
    pub(super) fn has_any(&mut self, address: Ipv4Addr, pool: PublicPool, now: Nanos) -> bool {
        // An unused pool is full and is not stored.
        if let PublicPool::RefusedLogin(Some(key)) = pool
            && !self.peer(address, now).refused_by_key.contains_key(&key)
        {
            return true;
        }
        self.credits(address, pool, now).requests_left(now) > 0
    }

    fn peer(&mut self, address: Ipv4Addr, now: Nanos) -> &mut Peer {
        let is_full = self.known.len() >= PEERS_MAX && !self.known.contains_key(&address);
        if is_full && now.0 >= self.swept.0 + 1_000_000_000 {
            self.swept = now;
            self.known.retain(|_, peer| peer.seen + FORGOTTEN_AFTER > now);
        }
        let is_full = self.known.len() >= PEERS_MAX && !self.known.contains_key(&address);
        let peer = match is_full {
            true => &mut self.others,
            false => self.known.entry(address).or_insert_with(|| Peer::new(now)),
        };
        peer.seen = now;
        peer
    }

    fn credits(&mut self, address: Ipv4Addr, pool: PublicPool, now: Nanos) -> &mut Credits {
        let peer = self.peer(address, now);
        match pool {
            PublicPool::Any => &mut peer.public,
            PublicPool::GetInstruments => &mut peer.get_instruments,
            PublicPool::RefusedLogin(None) => &mut peer.refused_nameless,
            PublicPool::RefusedLogin(Some(key)) => {
                peer.refused_by_key.entry(key).or_insert_with(|| Credits::new(REFUSED_LOGINS, now))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_credits_of_their_own_as_far_as_they_are_known() {
        let mut peers = Peers::new(Nanos::ZERO);
        let address = |number: u32| Ipv4Addr::from(number);
        let mut take = |number: u32, now| peers.try_take(address(number), PublicPool::Any, now);
        for number in 0..PEERS_MAX as u32 {
            assert!(take(number, Nanos::ZERO));
        }
        let shared = (0..1_000).filter(|number| take(1_000_000 + number, Nanos::ZERO)).count();
        assert_eq!(shared, 100, "who is not known shares one pool");
        assert!(take(0, Nanos::ZERO), "who is known has his own");
        let later = Nanos::from_secs(61);
        assert!((0..1_000).all(|number| take(1_000_000 + number, later)), "the silent are forgotten");
    }
    #[test]
    fn who_tries_one_key_in_vain_has_tried_no_other() {
        let mut peers = Peers::new(Nanos::ZERO);
        let (here, there) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(192, 0, 2, 1));
        let [anna, bert, nobody] = [Some(0), Some(1), None].map(PublicPool::RefusedLogin);
        assert_eq!((0..100).filter(|_| peers.try_take(here, anna, Nanos::ZERO)).count(), 20);
        assert!(!peers.has_any(here, anna, Nanos::ZERO));
        assert!(peers.has_any(here, bert, Nanos::ZERO) && peers.has_any(here, nobody, Nanos::ZERO));
        assert!(peers.has_any(there, anna, Nanos::ZERO), "another address has its own");
        assert_eq!((0..100).filter(|_| peers.try_take(here, nobody, Nanos::ZERO)).count(), 20);
        assert!(peers.has_any(here, bert, Nanos::ZERO) && !peers.has_any(here, nobody, Nanos::ZERO));
        assert!(peers.has_any(here, anna, Nanos::from_secs(1)), "two a second");
    }
}
