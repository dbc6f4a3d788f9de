//! Checks of one user's requests before they are logged.

use tickpath_nasdaq::ouch50::RequestError;
use tickpath_types::{InstrumentId, InstrumentTable, Nanos, OrderRequest, RejectReason};

use crate::token_bucket::{RateLimit, TokenBucket};

type Decoded = Result<OrderRequest, RequestError>;

/// Checks one user's requests against its message rate and its instruments.
///
/// Refusals are logged. Requests that only remove orders are never refused.
pub struct RequestFilter {
    /// False while there is nothing to check, as for nearly all users: then no other field is read.
    is_checked: bool,
    /// Reason to refuse new orders now; `None` accepts them.
    refusal: Option<RejectReason>,
    is_draining: bool,
    /// Allowed instruments, one bit for each id.
    instruments: Box<[u64]>,
    /// False until an instrument is forbidden; until then, all bits of `instruments` are set.
    is_restricted: bool,
    bucket: Option<TokenBucket>,
}

impl RequestFilter {
    /// A filter that allows the instruments in `allowed`; `None` allows all, including later ones.
    #[must_use]
    pub fn new(
        rate: Option<RateLimit>,
        allowed: Option<&[InstrumentId]>,
        instruments: &InstrumentTable,
    ) -> RequestFilter {
        let word = if allowed.is_some() { 0 } else { u64::MAX };
        let mut filter = RequestFilter {
            is_checked: rate.is_some() || allowed.is_some(),
            refusal: None,
            is_draining: false,
            instruments: vec![word; usize::from(instruments.max_id().0) / 64 + 1].into(),
            is_restricted: allowed.is_some(),
            bucket: rate.map(TokenBucket::new),
        };
        allowed.into_iter().flatten().for_each(|id| _ = filter.allow(*id, true));
        filter
    }

    /// Allows or forbids new orders in an instrument from now on; returns whether this is a change.
    pub fn allow(&mut self, id: InstrumentId, is_allowed: bool) -> bool {
        let Some(word) = self.instruments.get_mut(usize::from(id.0) / 64) else { return false };
        let (before, bit) = (*word, 1 << (id.0 % 64));
        *word = if is_allowed { before | bit } else { before & !bit };
        let is_changed = *word != before;
        self.is_restricted |= !is_allowed;
        self.set_refusal(self.refusal);
        is_changed
    }

    /// Checks a decoded request.
    ///
    /// # Errors
    /// The error of the decoder, or a refusal by this filter.
    #[inline(always)]
    pub fn check(&mut self, decoded: Decoded, now: Nanos) -> Decoded {
        if self.is_checked { self.filter_checked(decoded, now) } else { decoded }
    }

    #[inline(never)]
    fn filter_checked(&mut self, decoded: Decoded, now: Nanos) -> Decoded {
        let (user_ref, client_order_id, checked) = match &decoded {
            Ok(OrderRequest::Enter(order)) => {
                let checked = self.check_new(now).and_then(|()| self.check_instrument(order.instrument));
                (order.user_ref, order.client_order_id, checked)
            }
            // A replacement has the replaced order's instrument, which was allowed at entry.
            Ok(OrderRequest::Replace(order)) => (order.user_ref, order.client_order_id, self.check_new(now)),
            // Cancels, modifications, queries, and requests that the decoder refused.
            _ => {
                self.bucket.iter_mut().for_each(|bucket| bucket.charge(now));
                return decoded;
            }
        };
        checked.map_err(|reason| RequestError::Refused { user_ref, reason, client_order_id })?;
        decoded
    }

    /// True while draining or while the log is full: even the venue's own orders for the user are refused.
    #[must_use]
    pub const fn is_shut(&self) -> bool {
        self.is_draining || self.refusal.is_some()
    }

    /// Refuses new orders until the venue stops.
    pub fn set_draining(&mut self) {
        self.is_draining = true;
        self.is_checked = true;
    }

    /// Refuses new orders for this reason; `None` accepts them again.
    pub fn set_refusal(&mut self, refusal: Option<RejectReason>) {
        self.refusal = refusal;
        let is_limited = self.bucket.is_some() || self.is_restricted;
        self.is_checked = refusal.is_some() || self.is_draining || is_limited;
    }

    /// Sets the message rate from now on; `None` for no limit.
    pub fn set_rate(&mut self, rate: Option<RateLimit>) {
        self.bucket = rate.map(TokenBucket::new);
        self.set_refusal(self.refusal);
    }

    fn check_new(&mut self, now: Nanos) -> Result<(), RejectReason> {
        if let Some(reason) = self.refusal {
            return Err(reason);
        }
        if self.is_draining {
            return Err(RejectReason::Halted);
        }
        let has_token = self.bucket.as_mut().is_none_or(|bucket| bucket.take(now));
        if has_token { Ok(()) } else { Err(RejectReason::RateAboveLimit) }
    }

    fn check_instrument(&self, id: InstrumentId) -> Result<(), RejectReason> {
        match self.instruments.get(usize::from(id.0) / 64) {
            _ if !self.is_restricted => Ok(()),
            Some(word) if word >> (id.0 % 64) & 1 == 1 => Ok(()),
            _ => Err(RejectReason::InstrumentNotAllowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nasdaq::ouch50;
    use tickpath_test_support::instrument;

    use super::*;

    const NOW: Nanos = Nanos::from_secs(5);

    fn table() -> InstrumentTable {
        let instruments: Vec<_> = (1..=70).map(|id| instrument(id, &format!("S{id:02}"))).collect();
        InstrumentTable::new(&instruments)
    }

    /// The request decoded from a client's bytes.
    fn request(bytes: &[u8]) -> OrderRequest {
        ouch50::decode_request(bytes, |symbol| table().find(symbol)).unwrap()
    }

    fn enter(symbol: &[u8; 3]) -> OrderRequest {
        let mut bytes = *b"O\0\0\0\x01B\0\0\0\x01???     \0\0\0\0\0\0\0\x640YPNNfrom-the-test \0\0";
        bytes[10..13].copy_from_slice(symbol);
        request(&bytes)
    }

    fn replace() -> OrderRequest {
        request(b"U\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\x640YNfrom-the-test \0\0")
    }

    /// Returns the filter's refusal of the request, if any. Asserts that accepted requests are unchanged.
    fn check(filter: &mut RequestFilter, request: &OrderRequest, now: Nanos) -> Result<(), RejectReason> {
        match filter.check(Ok(*request), now) {
            Ok(passed) => {
                assert_eq!(passed, *request);
                Ok(())
            }
            Err(RequestError::Refused { user_ref, reason, client_order_id }) => {
                assert_eq!((user_ref, client_order_id.0), (request.user_ref(), *b"from-the-test "));
                Err(reason)
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn cancel() -> OrderRequest {
        request(b"X\0\0\0\x01\0\0\0\0")
    }

    #[test]
    fn a_user_trades_the_instruments_it_may_trade() {
        let mut filter = RequestFilter::new(None, Some(&[InstrumentId(1), InstrumentId(64)]), &table());
        assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Ok(()));
        assert_eq!(check(&mut filter, &enter(b"S64"), NOW), Ok(()));
        let OrderRequest::Enter(mut unknown) = enter(b"S01") else { panic!("an order") };
        for id in [0, 2, 63, 65, 70, 128, u16::MAX] {
            unknown.instrument = InstrumentId(id);
            let refused = check(&mut filter, &OrderRequest::Enter(unknown), NOW);
            assert_eq!(refused, Err(RejectReason::InstrumentNotAllowed));
        }
        assert_eq!(check(&mut filter, &cancel(), NOW), Ok(()));
    }

    #[test]
    fn instruments_are_allowed_and_forbidden_one_by_one() {
        let (one, last) = (InstrumentId(1), InstrumentId(70));
        let mut listed = RequestFilter::new(None, Some(&[]), &table());
        let mut filter = RequestFilter::new(None, None, &table());
        assert!(!filter.allow(one, true) && !filter.is_checked, "nothing to check");
        for filter in [&mut listed, &mut filter] {
            filter.allow(last, true);
            assert!(filter.allow(last, false) && !filter.allow(last, false));
            assert_eq!(check(filter, &enter(b"S70"), NOW), Err(RejectReason::InstrumentNotAllowed));
            assert_eq!(check(filter, &cancel(), NOW), Ok(()));
            assert!(filter.allow(last, true) && !filter.allow(last, true));
            assert_eq!(check(filter, &enter(b"S70"), NOW), Ok(()));
            assert!(!filter.allow(InstrumentId(u16::MAX), true), "there is none");
        }
        assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Ok(()));
        assert_eq!(check(&mut listed, &enter(b"S01"), NOW), Err(RejectReason::InstrumentNotAllowed));
    }

    #[test]
    fn draining_refuses_new_orders_and_lets_cancels_pass() {
        let mut filter = RequestFilter::new(None, None, &table());
        assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Ok(()));
        filter.set_draining();
        assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Err(RejectReason::Halted));
        assert_eq!(check(&mut filter, &replace(), NOW), Err(RejectReason::Halted));
        assert_eq!(check(&mut filter, &cancel(), NOW), Ok(()));
    }

    #[test]
    fn a_refusal_holds_until_it_is_revoked() {
        for rate in [None, Some(RateLimit { per_second: 10, burst: 3 })] {
            let mut filter = RequestFilter::new(rate, None, &table());
            filter.set_refusal(Some(RejectReason::JournalFull));
            assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Err(RejectReason::JournalFull));
            assert_eq!(check(&mut filter, &replace(), NOW), Err(RejectReason::JournalFull));
            assert_eq!(check(&mut filter, &cancel(), NOW), Ok(()));
            filter.set_refusal(None);
            assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Ok(()));
            assert_eq!(filter.is_checked, rate.is_some());
        }
    }

    #[test]
    fn cancels_count_for_the_rate_and_are_never_refused() {
        let mut filter = RequestFilter::new(Some(RateLimit { per_second: 10, burst: 3 }), None, &table());
        assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Ok(()));
        assert_eq!(check(&mut filter, &replace(), NOW), Ok(()));
        for _ in 0..10 {
            assert_eq!(check(&mut filter, &cancel(), NOW), Ok(()));
        }
        assert_eq!(check(&mut filter, &enter(b"S01"), NOW), Err(RejectReason::RateAboveLimit));
        let later = NOW + Nanos::from_millis(100);
        assert_eq!(check(&mut filter, &replace(), later), Ok(()));
        assert_eq!(check(&mut filter, &replace(), later), Err(RejectReason::RateAboveLimit));
    }
}
