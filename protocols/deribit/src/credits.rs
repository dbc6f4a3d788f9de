//! Rate limit credits, computed as the server does.

use tickpath_types::Nanos;

use crate::method::Method;

const NANOS_PER_S: u128 = 1_000_000_000;

/// Cost of a kind of request, and the refill rate of its credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditPlan {
    /// Credits per request.
    pub cost: u64,
    /// Maximum number of credits.
    pub pool: u64,
    /// Credits refilled each second.
    pub refill_per_s: u64,
}

impl CreditPlan {
    /// Requests outside the matching engine: 20 per second, bursts of 100.
    pub const NON_MATCHING: CreditPlan = CreditPlan { cost: 500, pool: 50_000, refill_per_s: 10_000 };
    /// `public/get_instruments`: one per second, bursts of 50.
    pub const GET_INSTRUMENTS: CreditPlan = CreditPlan { cost: 10_000, pool: 500_000, refill_per_s: 10_000 };
    /// Subscribe requests: 3.3 per second, bursts of 10.
    pub const SUBSCRIBE: CreditPlan = CreditPlan { cost: 3_000, pool: 30_000, refill_per_s: 10_000 };
    /// `private/get_transaction_log`: one per second, bursts of 8.
    pub const TRANSACTION_LOG: CreditPlan = CreditPlan { cost: 10_000, pool: 80_000, refill_per_s: 10_000 };

    /// Creates a plan from a rate per second and a burst, as the account summary states limits. Orders of an
    /// account in the lowest tier have 5 and 20.
    #[must_use]
    pub const fn rate(rate_per_s: u64, burst: u64) -> CreditPlan {
        CreditPlan { cost: 1, pool: burst, refill_per_s: rate_per_s }
    }
}

/// Credit pool of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CreditPool {
    /// Requests outside the matching engine, [`CreditPlan::NON_MATCHING`].
    NonMatching,
    /// `public/get_instruments`, [`CreditPlan::GET_INSTRUMENTS`].
    GetInstruments,
    /// Subscribe requests, [`CreditPlan::SUBSCRIBE`].
    Subscribe,
    /// `private/get_transaction_log`, [`CreditPlan::TRANSACTION_LOG`].
    TransactionLog,
    /// Orders, edits and cancels.
    Matching,
    /// Quotes.
    Quotes,
    /// Cancels of all orders.
    CancelAll,
}

impl CreditPool {
    /// Number of pools.
    pub const COUNT: usize = 7;

    /// Pool of a method. `private/cancel_by_label` without a currency uses [`CreditPool::CancelAll`].
    #[must_use]
    #[inline]
    pub const fn of(method: Method) -> CreditPool {
        match method {
            Method::GetInstruments => CreditPool::GetInstruments,
            Method::PublicSubscribe | Method::PrivateSubscribe => CreditPool::Subscribe,
            Method::GetTransactionLog => CreditPool::TransactionLog,
            Method::CancelAll => CreditPool::CancelAll,
            Method::MassQuote | Method::CancelQuotes => CreditPool::Quotes,
            method if method.is_matching() => CreditPool::Matching,
            _ => CreditPool::NonMatching,
        }
    }

    /// Plan of the pool; `matching` is that of orders, quotes and mass cancels.
    #[must_use]
    pub const fn plan(self, matching: CreditPlan) -> CreditPlan {
        match self {
            CreditPool::NonMatching => CreditPlan::NON_MATCHING,
            CreditPool::GetInstruments => CreditPlan::GET_INSTRUMENTS,
            CreditPool::Subscribe => CreditPlan::SUBSCRIBE,
            CreditPool::TransactionLog => CreditPlan::TRANSACTION_LOG,
            CreditPool::Matching | CreditPool::Quotes | CreditPool::CancelAll => matching,
        }
    }
}

/// Remaining credits of one plan. Exceeding them ends the session, so check before sending.
#[derive(Clone, Debug)]
pub struct Credits {
    plan: CreditPlan,
    /// Credits times nanoseconds, so that no fraction is lost between two calls.
    available: u128,
    refilled_at: Nanos,
}

impl Credits {
    /// Creates a full pool at this time.
    #[must_use]
    pub const fn new(plan: CreditPlan, now: Nanos) -> Credits {
        Credits { plan, available: plan.pool as u128 * NANOS_PER_S, refilled_at: now }
    }

    /// Takes the cost of a request. Time that goes backwards refills nothing.
    ///
    /// # Errors
    /// Nanoseconds to wait; `u64::MAX` if waiting does not help.
    #[inline]
    pub fn try_take(&mut self, now: Nanos) -> Result<(), u64> {
        self.available = self.available_at(now);
        self.refilled_at = Nanos(self.refilled_at.0.max(now.0));
        match self.available.checked_sub(self.cost()) {
            Some(rest) => {
                self.available = rest;
                Ok(())
            }
            None => Err(self.wait_ns(now)),
        }
    }

    /// Nanoseconds until a request can be sent: 0 if now, `u64::MAX` if never.
    #[must_use]
    #[inline]
    pub fn wait_ns(&self, now: Nanos) -> u64 {
        let (cost, available) = (self.cost(), self.available_at(now));
        if cost <= available {
            return 0;
        }
        if self.plan.refill_per_s == 0 || self.plan.cost > self.plan.pool {
            return u64::MAX;
        }
        let wait = (cost - available).div_ceil(u128::from(self.plan.refill_per_s));
        u64::try_from(wait).unwrap_or(u64::MAX)
    }

    #[inline]
    fn cost(&self) -> u128 {
        u128::from(self.plan.cost) * NANOS_PER_S
    }

    #[inline]
    fn available_at(&self, now: Nanos) -> u128 {
        let elapsed = now.0.saturating_sub(self.refilled_at.0);
        let refill = u128::from(elapsed) * u128::from(self.plan.refill_per_s);
        (self.available + refill).min(u128::from(self.plan.pool) * NANOS_PER_S)
    }

    /// Number of requests that can be sent now in sequence.
    #[must_use]
    pub fn requests_left(&self, now: Nanos) -> u64 {
        u64::try_from(self.available_at(now) / self.cost().max(NANOS_PER_S)).unwrap_or(u64::MAX)
    }

    /// Empties the pool, because the server reported that no credits are left.
    pub fn drain(&mut self, now: Nanos) {
        self.available = 0;
        self.refilled_at = Nanos(self.refilled_at.0.max(now.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let start = 1_000_000_000;
        let mut credits = Credits::new(CreditPlan::NON_MATCHING, Nanos(start));
        assert!((0..100).all(|_| credits.try_take(Nanos(start)).is_ok()));
        assert_eq!(
            (credits.requests_left(Nanos(start)), credits.requests_left(Nanos(start + 100_000_000))),
            (0, 2)
        );
        assert_eq!(credits.try_take(Nanos(start)), Err(50_000_000));
        assert_eq!(credits.try_take(Nanos(start + 49_999_999)), Err(1));
        assert_eq!(credits.try_take(Nanos(start + 50_000_000)), Ok(()));
        assert_eq!(credits.try_take(Nanos(0)), Err(50_000_000));
        assert_eq!(credits.try_take(Nanos(u64::MAX)), Ok(()));
        assert_eq!((0..200).filter(|_| credits.try_take(Nanos(u64::MAX)).is_ok()).count(), 99);
    }

    #[test]
    fn what_can_never_be_paid_says_so() {
        let mut credits = Credits::new(CreditPlan { cost: 2, pool: 1, refill_per_s: 1 }, Nanos(0));
        assert_eq!(credits.try_take(Nanos(5)), Err(u64::MAX));
        let mut credits = Credits::new(CreditPlan::rate(0, 1), Nanos(0));
        assert_eq!((credits.try_take(Nanos(0)), credits.try_take(Nanos(9))), (Ok(()), Err(u64::MAX)));
    }
}
