//! What sessions may do: numbers, limits, kill switches, order entry, trades with oneself.

use tickpath_book::OrderBooks;
use tickpath_faults::{Fault, is_planted};
use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, InstrumentId, MassCancel, OrderEventKind, Price, Qty,
    RejectReason, SelfTradePrevention, SessionId, SetOrderEntry, UserRefNum,
};
use xxhash_rust::xxh3::Xxh3;

use super::{Context, Engine, Owner};
use crate::EventListener;

/// What each order needs of its session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) last_user_ref: UserRefNum,
    pub(super) open_orders: u32,
    /// Below so many open orders a plain order needs no look at the session's rules; zero when each does.
    pub(super) max_plain_orders: u32,
}

/// What few orders need of their session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionRules {
    pub(super) max_open_orders: u32,
    pub(super) max_qty: Qty,
    pub(super) max_notional: u64,
    pub(super) prevention: SelfTradePrevention,
    pub(super) account: SessionId,
    pub(super) is_killed: bool,
    pub(super) is_disabled: bool,
}

impl SessionRules {
    /// None, for a session that is its own account.
    pub(super) const fn none(session: SessionId) -> SessionRules {
        SessionRules {
            max_open_orders: u32::MAX,
            max_qty: Qty(u64::MAX),
            max_notional: u64::MAX,
            prevention: SelfTradePrevention::None,
            account: session,
            is_killed: false,
            is_disabled: false,
        }
    }

    /// True when only the number of open orders is looked at.
    fn are_plain(&self) -> bool {
        let SessionRules { max_qty, max_notional, prevention, is_killed, is_disabled, .. } = *self;
        max_qty == Qty(u64::MAX)
            && max_notional == u64::MAX
            && prevention == SelfTradePrevention::None
            && !is_killed
            && !is_disabled
    }

    pub(super) fn hash(&self, hasher: &mut Xxh3) {
        hasher.update(&self.max_open_orders.to_le_bytes());
        hasher.update(&self.max_qty.0.to_le_bytes());
        hasher.update(&self.max_notional.to_le_bytes());
        hasher.update(&self.account.0.to_le_bytes());
        hasher.update(&[self.prevention as u8, self.is_killed.into(), self.is_disabled.into()]);
    }
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Says anew which orders of a session need no look at its rules.
    pub(super) fn update_session(&mut self, session: SessionId) {
        let rules = &self.rules[usize::from(session.0)];
        let max = rules.max_open_orders.min(self.limits.max_open_orders_per_session);
        let is_plain = rules.are_plain() && !self.is_killed;
        self.sessions[usize::from(session.0)].max_plain_orders = if is_plain { max } else { 0 };
    }

    /// Changes the rules of the command's session, if it exists.
    #[cold]
    pub(super) fn set_rules(&mut self, session: SessionId, change: impl FnOnce(&mut SessionRules)) -> bool {
        let Some(rules) = self.rules.get_mut(usize::from(session.0)) else {
            self.counters.ignored += 1;
            return false;
        };
        change(rules);
        self.update_session(session);
        true
    }

    /// Checks a new order or replacement against its session's rules; `limit` is what it would match at.
    pub(super) fn check_rules(
        &self,
        session: SessionId,
        order: &EnterOrder,
        limit: Price,
    ) -> Result<(), RejectReason> {
        let rules = &self.rules[usize::from(session.0)];
        if self.is_killed || rules.is_killed {
            return Err(RejectReason::Killed);
        }
        if rules.is_disabled {
            return Err(RejectReason::OrderEntryDisabled);
        }
        if order.qty > rules.max_qty && !is_planted(Fault::QtyLimitIgnored) {
            return Err(RejectReason::QtyAboveLimit);
        }
        // In 128 bits no product of two such numbers is cut.
        let notional = i128::from(limit.0) * i128::from(order.qty.0);
        if rules.max_notional != u64::MAX && notional > i128::from(rules.max_notional) {
            return Err(RejectReason::NotionalAboveLimit);
        }
        Ok(())
    }

    /// What [`CommandKind::SetSelfTradePrevention`](crate::CommandKind::SetSelfTradePrevention) set last for a session: the
    /// strategy and the account. `None` for a session beyond the limit.
    #[must_use]
    pub fn self_trade_prevention(&self, session: SessionId) -> Option<(SelfTradePrevention, SessionId)> {
        self.rules.get(usize::from(session.0)).map(|rules| (rules.prevention, rules.account))
    }

    /// What is done when an order of `incoming` meets one of `resting`.
    pub(super) fn prevention(&self, incoming: SessionId, resting: SessionId) -> SelfTradePrevention {
        let rules = |session: SessionId| &self.rules[usize::from(session.0)];
        let is_same = rules(incoming).account == rules(resting).account;
        if is_same && !is_planted(Fault::SelfTradesAllowed) {
            rules(incoming).prevention
        } else {
            SelfTradePrevention::None
        }
    }

    #[cold]
    pub(super) fn kill_session(&mut self, is_killed: bool, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        if self.set_rules(session, |rules| rules.is_killed = is_killed)
            && is_killed
            && !is_planted(Fault::KillKeepsOrders)
        {
            self.cancel_all(session, CancelReason::Supervisory, context);
        }
    }

    #[cold]
    pub(super) fn kill_venue(&mut self, is_killed: bool, context: &mut Context<'_, impl EventListener>) {
        self.is_killed = is_killed;
        for session in (0..self.limits.max_sessions).map(SessionId) {
            self.update_session(session);
            if is_killed {
                self.cancel_some(session, false, CancelReason::Supervisory, context, |_, _| true);
            }
        }
    }

    /// Disables or enables the session's order entry, as it asks.
    #[cold]
    pub(super) fn set_order_entry(
        &mut self,
        request: &SetOrderEntry,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let session = context.command.session;
        match self.use_number(session, request.user_ref) {
            Ok(None) => {}
            Ok(Some(_)) => {
                self.set_rules(session, |rules| rules.is_disabled = !request.is_enabled);
                context.reply(OrderEventKind::OrderEntrySet(*request));
            }
            Err(reason) => self.reject(request.user_ref, reason, ClientOrderId::default(), context),
        }
    }

    /// Cancels the session's orders of one instrument or all, of one side or both, in the order of entry.
    #[cold]
    pub(super) fn mass_cancel(
        &mut self,
        request: &MassCancel,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let MassCancel { user_ref, instrument, side, .. } = *request;
        let session = context.command.session;
        let checked = match self.use_number(session, user_ref) {
            Ok(None) => return,
            Ok(Some(_)) if instrument == InstrumentId(0) || self.listing(instrument).is_some() => Ok(()),
            Ok(Some(_)) => Err(RejectReason::UnknownInstrument),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = checked {
            return self.reject(user_ref, reason, ClientOrderId::default(), context);
        }
        context.reply(OrderEventKind::MassCanceled(*request));
        self.cancel_some(session, false, CancelReason::User, context, |engine, handle| {
            let (of_instrument, of_side) = engine.place_of(handle);
            (instrument == InstrumentId(0) || of_instrument == instrument)
                && side.is_none_or(|side| of_side == side)
        });
    }
}
