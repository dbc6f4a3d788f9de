//! What one user may send, checked at the door before the log.

use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50::RequestError;
use tickpath_types::{InstrumentId, InstrumentTable, Nanos, OrderRequest, Qty, RejectReason};

use crate::token_bucket::{RateLimit, TokenBucket};

/// The limits of one user; `None` where there is none beside the engine's.
///
/// All but the rate are the engine's to keep: they are told to it by a command in the log, and so hold exactly,
/// whatever is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Messages a second. At the bound new orders and replacements are rejected with `RateAboveLimit`; cancels,
    /// modifications and queries are let pass, and count.
    pub rate: Option<RateLimit>,
    /// Open orders; a further one that may rest is rejected with `OpenOrdersAboveLimit`.
    pub open_orders: Option<u32>,
    /// Quantity of one order; a larger one is rejected with `QtyAboveLimit`.
    pub order_qty: Option<Qty>,
    /// Price times quantity of one order, in units of 10^-4; a larger one is rejected with `NotionalAboveLimit`.
    pub order_notional: Option<u64>,
}

impl UserLimits {
    /// What the engine is told of them.
    pub(crate) fn as_command(&self) -> CommandKind {
        let UserLimits { open_orders, order_qty, order_notional, .. } = *self;
        CommandKind::SetLimits {
            open_orders: open_orders.unwrap_or(u32::MAX),
            order_qty: order_qty.unwrap_or(Qty(u64::MAX)),
            order_notional: order_notional.unwrap_or(u64::MAX),
        }
    }
}

/// Checks the requests of one user against its rate and its instruments.
///
/// What is refused here goes through the log as a refusal. Nothing that only takes orders away is ever refused.
pub(crate) struct Gate {
    /// False while there is nothing to check: nearly all users' requests see nothing else of the gate.
    is_checked: bool,
    /// Why no new orders are taken at present, if they are not.
    refusal: Option<RejectReason>,
    is_draining: bool,
    /// One bit for each instrument id.
    instruments: Box<[u64]>,
    /// False while all of them are set.
    is_restricted: bool,
    bucket: Option<TokenBucket>,
}

impl Gate {
    /// Lets the instruments of `allowed` pass, or all when that is `None`, also those that are added later.
    pub(crate) fn new(
        rate: Option<RateLimit>,
        allowed: Option<&[InstrumentId]>,
        instruments: &InstrumentTable,
    ) -> Gate {
        let word = if allowed.is_some() { 0 } else { u64::MAX };
        let mut gate = Gate {
            is_checked: rate.is_some() || allowed.is_some(),
            refusal: None,
            is_draining: false,
            instruments: vec![word; usize::from(instruments.max_id().0) / 64 + 1].into(),
            is_restricted: allowed.is_some(),
            bucket: rate.map(TokenBucket::new),
        };
        allowed.into_iter().flatten().for_each(|id| _ = gate.allow(*id, true));
        gate
    }

    /// Lets orders in an instrument pass from now on, or no more; false when it was so already.
    pub(crate) fn allow(&mut self, id: InstrumentId, is_allowed: bool) -> bool {
        let Some(word) = self.instruments.get_mut(usize::from(id.0) / 64) else { return false };
        let (before, bit) = (*word, 1 << (id.0 % 64));
        *word = if is_allowed { before | bit } else { before & !bit };
        let is_changed = *word != before;
        self.is_restricted |= !is_allowed;
        self.set_refusal(self.refusal);
        is_changed
    }

    /// Turns a request that is not let pass into a refused one.
    #[inline(always)]
    pub(crate) fn filter(
        &mut self,
        decoded: Result<OrderRequest, RequestError>,
        now: Nanos,
    ) -> Result<OrderRequest, RequestError> {
        if self.is_checked { self.filter_checked(decoded, now) } else { decoded }
    }

    #[inline(never)]
    fn filter_checked(
        &mut self,
        decoded: Result<OrderRequest, RequestError>,
        now: Nanos,
    ) -> Result<OrderRequest, RequestError> {
        let refused = |user_ref, reason, client_order_id| {
            Err(RequestError::Refused { user_ref, reason, client_order_id })
        };
        match &decoded {
            Ok(OrderRequest::Enter(order)) => match self.check_enter(order.instrument, now) {
                Ok(()) => decoded,
                Err(reason) => refused(order.user_ref, reason, order.client_order_id),
            },
            // The instrument is that of the order to be replaced, which was allowed when that was entered.
            Ok(OrderRequest::Replace(order)) => match self.check_new(now) {
                Ok(()) => decoded,
                Err(reason) => refused(order.user_ref, reason, order.client_order_id),
            },
            // What takes orders away, asks, or is refused already.
            _ => {
                if let Some(bucket) = &mut self.bucket {
                    bucket.charge(now);
                }
                decoded
            }
        }
    }

    /// True while not even the venue's own orders for the user may be entered: it is about to stop, or its journal is full.
    pub(crate) const fn is_shut(&self) -> bool {
        self.is_draining || self.refusal.is_some()
    }

    /// New orders are refused until the venue stops.
    pub(crate) fn set_draining(&mut self) {
        self.is_draining = true;
        self.is_checked = true;
    }

    /// New orders are refused for this reason, or taken again.
    pub(crate) fn set_refusal(&mut self, refusal: Option<RejectReason>) {
        self.refusal = refusal;
        let is_limited = self.bucket.is_some() || self.is_restricted;
        self.is_checked = refusal.is_some() || self.is_draining || is_limited;
    }

    /// Another rate, or none, from now on.
    pub(crate) fn set_rate(&mut self, rate: Option<RateLimit>) {
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

    fn check_enter(&mut self, instrument: InstrumentId, now: Nanos) -> Result<(), RejectReason> {
        self.check_new(now)?;
        self.check_instrument(instrument)
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
    use tickpath_types::{Instrument, Price, Symbol};

    use super::*;

    const NOW: Nanos = Nanos::from_secs(5);

    fn table() -> InstrumentTable {
        let instrument = |id: u16| Instrument {
            id: InstrumentId(id),
            symbol: Symbol::new(&format!("S{id:02}")).unwrap(),
            tick_size: Price(1),
            lot_size: Qty(1),
            max_qty: Qty(1_000),
            reference_price: Price(100),
            collar_low: Price(50),
            collar_high: Price(200),
        };
        InstrumentTable::new(&(1..=70).map(instrument).collect::<Vec<_>>())
    }

    /// From the bytes of a client.
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

    /// Why a request is refused, if it is; what is let pass stays as it is.
    fn check(gate: &mut Gate, request: &OrderRequest, now: Nanos) -> Result<(), RejectReason> {
        match gate.filter(Ok(*request), now) {
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
        let mut gate = Gate::new(None, Some(&[InstrumentId(1), InstrumentId(64)]), &table());
        assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Ok(()));
        assert_eq!(check(&mut gate, &enter(b"S64"), NOW), Ok(()));
        let OrderRequest::Enter(mut unknown) = enter(b"S01") else { panic!("an order") };
        for id in [0, 2, 63, 65, 70, 128, u16::MAX] {
            unknown.instrument = InstrumentId(id);
            let refused = check(&mut gate, &OrderRequest::Enter(unknown), NOW);
            assert_eq!(refused, Err(RejectReason::InstrumentNotAllowed));
        }
        assert_eq!(check(&mut gate, &cancel(), NOW), Ok(()));
    }

    #[test]
    fn instruments_are_allowed_and_forbidden_one_by_one() {
        let (one, last) = (InstrumentId(1), InstrumentId(70));
        let mut listed = Gate::new(None, Some(&[]), &table());
        let mut gate = Gate::new(None, None, &table());
        assert!(!gate.allow(one, true) && !gate.is_checked, "nothing to check");
        for gate in [&mut listed, &mut gate] {
            gate.allow(last, true);
            assert!(gate.allow(last, false) && !gate.allow(last, false));
            assert_eq!(check(gate, &enter(b"S70"), NOW), Err(RejectReason::InstrumentNotAllowed));
            assert_eq!(check(gate, &cancel(), NOW), Ok(()));
            assert!(gate.allow(last, true) && !gate.allow(last, true));
            assert_eq!(check(gate, &enter(b"S70"), NOW), Ok(()));
            assert!(!gate.allow(InstrumentId(u16::MAX), true), "there is none");
        }
        assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Ok(()));
        assert_eq!(check(&mut listed, &enter(b"S01"), NOW), Err(RejectReason::InstrumentNotAllowed));
    }

    #[test]
    fn draining_refuses_new_orders_and_lets_cancels_pass() {
        let mut gate = Gate::new(None, None, &table());
        assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Ok(()));
        gate.set_draining();
        assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Err(RejectReason::Halted));
        assert_eq!(check(&mut gate, &replace(), NOW), Err(RejectReason::Halted));
        assert_eq!(check(&mut gate, &cancel(), NOW), Ok(()));
    }

    #[test]
    fn a_refusal_holds_until_it_is_taken_back() {
        for rate in [None, Some(RateLimit { per_second: 10, burst: 3 })] {
            let mut gate = Gate::new(rate, None, &table());
            gate.set_refusal(Some(RejectReason::JournalFull));
            assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Err(RejectReason::JournalFull));
            assert_eq!(check(&mut gate, &replace(), NOW), Err(RejectReason::JournalFull));
            assert_eq!(check(&mut gate, &cancel(), NOW), Ok(()));
            gate.set_refusal(None);
            assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Ok(()));
            assert_eq!(gate.is_checked, rate.is_some());
        }
    }

    #[test]
    fn cancels_count_for_the_rate_and_are_never_refused() {
        let mut gate = Gate::new(Some(RateLimit { per_second: 10, burst: 3 }), None, &table());
        assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Ok(()));
        assert_eq!(check(&mut gate, &replace(), NOW), Ok(()));
        for _ in 0..10 {
            assert_eq!(check(&mut gate, &cancel(), NOW), Ok(()));
        }
        assert_eq!(check(&mut gate, &enter(b"S01"), NOW), Err(RejectReason::RateAboveLimit));
        let later = NOW + Nanos::from_millis(100);
        assert_eq!(check(&mut gate, &replace(), later), Ok(()));
        assert_eq!(check(&mut gate, &replace(), later), Err(RejectReason::RateAboveLimit));
    }

    #[test]
    fn the_engine_is_told_of_the_limits_that_there_are() {
        let rate = Some(RateLimit { per_second: 1, burst: 1 });
        let of_the_door = UserLimits { rate, ..UserLimits::default() };
        assert_eq!(of_the_door.as_command(), UserLimits::default().as_command(), "the door's own");
        let limits =
            UserLimits { rate: None, open_orders: Some(5), order_qty: None, order_notional: Some(7) };
        let told = CommandKind::SetLimits { open_orders: 5, order_qty: Qty(u64::MAX), order_notional: 7 };
        assert_eq!(limits.as_command(), told);
    }
}
