//! Rate limit on each host's retransmission requests.

use tickpath_types::Nanos;

use crate::token_bucket::{RateLimit, TokenBucket};

/// Maximum number of hosts remembered; a new one replaces the host whose last request is oldest.
pub(crate) const REQUESTERS_MAX: usize = 256;

/// A token bucket for each host address, shared by its ports: using more ports gives a host no more tokens.
pub struct RequestLimits<P> {
    limit: RateLimit,
    requesters: Vec<Requester<P>>,
}

struct Requester<P> {
    address: P,
    latest: Nanos,
    bucket: TokenBucket,
}

impl<P: Copy + PartialEq> RequestLimits<P> {
    /// Creates limits with this rate for each address.
    #[must_use]
    pub fn new(limit: RateLimit) -> RequestLimits<P> {
        RequestLimits { limit, requesters: Vec::with_capacity(REQUESTERS_MAX) }
    }

    /// Takes a token for a request that arrived now from `address`; true if the request may be answered.
    pub fn allow(&mut self, now: Nanos, address: P) -> bool {
        let known = self.requesters.iter().position(|requester| requester.address == address);
        let index = known.unwrap_or_else(|| {
            let new = Requester { address, latest: now, bucket: TokenBucket::new(self.limit) };
            if self.requesters.len() < REQUESTERS_MAX {
                self.requesters.push(new);
                return self.requesters.len() - 1;
            }
            let silent = self.requesters.iter().enumerate().min_by_key(|(_, requester)| requester.latest);
            let index = silent.map_or(0, |(index, _)| index);
            self.requesters[index] = new;
            index
        });
        let requester = &mut self.requesters[index];
        requester.latest = now;
        requester.bucket.take(now)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const LIMIT: RateLimit = RateLimit { per_second: 1_000, burst: 3 };

    #[test]
    fn each_address_has_its_own_burst_and_rate() {
        let mut limits = RequestLimits::new(LIMIT);
        let [a, b] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let now = Nanos::from_secs(1);
        assert_eq!([a, a, a, a, b].map(|it| limits.allow(now, it)), [true, true, true, false, true]);
        assert!(limits.allow(now + Nanos::from_millis(1), a));
        assert!(!limits.allow(now + Nanos::from_millis(1), a));
    }

    #[test]
    fn the_longest_silent_requester_is_evicted() {
        let mut limits = RequestLimits::new(LIMIT);
        let address = |number: usize| Ipv4Addr::from_bits(number as u32);
        for number in 0..REQUESTERS_MAX {
            (0..3).for_each(|_| assert!(limits.allow(Nanos(1_000 + number as u64), address(number))));
        }
        let now = Nanos(10_000);
        assert!(!limits.allow(now, address(0)), "at the bound all are remembered");
        assert!(limits.allow(now, address(REQUESTERS_MAX)), "one beyond");
        assert!(!limits.allow(now, address(0)), "received since");
        assert!(limits.allow(now, address(1)), "forgotten");
        assert_eq!(limits.requesters.len(), REQUESTERS_MAX);
    }
}
