//! Sessions: their used `UserRefNum`s, their open orders, and the rules for their orders.

use tickpath_faults::failpoint;
use tickpath_types::{EnterOrder, Price, Qty, RejectReason, SelfTradePrevention, SessionId, UserRefNum};
use xxhash_rust::xxh3::Xxh3;

use crate::EngineLimits;
use crate::codec::hash_field;
use crate::codec::orders::layout;

/// Per-session state that every order needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) last_user_ref: UserRefNum,
    pub(super) open_orders: u32,
    /// While `open_orders` is below this, a plain order skips the [`SessionRules`]; 0 disables that path.
    pub(super) max_plain_orders: u32,
}

/// Per-session state that few orders need.
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
    /// No rules, for a session that is its own account.
    const fn none(session: SessionId) -> SessionRules {
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

    /// True when no rule is set, except perhaps a limit on the number of open orders.
    fn are_plain(&self) -> bool {
        let SessionRules { max_qty, max_notional, prevention, is_killed, is_disabled, .. } = *self;
        max_qty == Qty(u64::MAX)
            && max_notional == u64::MAX
            && prevention == SelfTradePrevention::None
            && !is_killed
            && !is_disabled
    }
}

layout! {
    SessionRules {
        max_open_orders: u32,
        max_qty: Qty,
        max_notional: u64,
        account: SessionId,
        prevention: SelfTradePrevention,
        is_killed: bool,
        is_disabled: bool,
    }
}

/// All sessions by id, and the venue's kill switch.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    pub(super) sessions: Vec<Session>,
    /// Rules of each session, indexed like `sessions`.
    pub(super) rules: Vec<SessionRules>,
    /// True while all sessions' new orders are refused.
    pub(super) is_killed: bool,
    /// Maximum number of open orders of any session, from the engine's limits.
    pub(super) max_open_orders: u32,
}

impl Sessions {
    pub(super) fn new(limits: &EngineLimits) -> Sessions {
        let session = Session {
            last_user_ref: UserRefNum(0),
            open_orders: 0,
            max_plain_orders: limits.max_open_orders_per_session,
        };
        Sessions {
            sessions: vec![session; usize::from(limits.max_sessions)],
            rules: (0..limits.max_sessions).map(SessionId).map(SessionRules::none).collect(),
            is_killed: false,
            max_open_orders: limits.max_open_orders_per_session,
        }
    }

    /// The session `id`, which must be below `max_sessions`.
    #[inline]
    pub(super) fn session(&self, id: SessionId) -> &Session {
        &self.sessions[usize::from(id.0)]
    }

    #[inline]
    pub(super) fn find(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(usize::from(id.0))
    }

    /// The rules of the session `id`, which must be below `max_sessions`.
    pub(super) fn rules(&self, id: SessionId) -> &SessionRules {
        &self.rules[usize::from(id.0)]
    }

    /// Uses up a `UserRefNum` for a request, and returns the session. `None` if the session is unknown or has
    /// used the same or a greater one.
    #[inline]
    pub(super) fn use_number(&mut self, id: SessionId, user_ref: UserRefNum) -> Option<Session> {
        let session = self.sessions.get_mut(usize::from(id.0))?;
        failpoint!(NumberUsedTwice => if user_ref == session.last_user_ref { return Some(*session) });
        if user_ref <= session.last_user_ref {
            return None;
        }
        session.last_user_ref = user_ref;
        Some(*session)
    }

    /// Uses up the session's next `UserRefNum` and returns it.
    pub(super) fn use_next_number(&mut self, id: SessionId) -> UserRefNum {
        let session = &mut self.sessions[usize::from(id.0)];
        session.last_user_ref.0 += 1;
        session.last_user_ref
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.sessions.len() as u16).map(SessionId)
    }

    #[inline]
    pub(super) fn count_opened(&mut self, id: SessionId) {
        self.sessions[usize::from(id.0)].open_orders += 1;
    }

    #[inline]
    pub(super) fn count_closed(&mut self, id: SessionId) {
        self.sessions[usize::from(id.0)].open_orders -= 1;
    }

    /// Number of open orders of all sessions.
    pub(super) fn open_order_count(&self) -> u64 {
        self.sessions.iter().map(|session| u64::from(session.open_orders)).sum()
    }

    /// Changes the rules of a session; false when there is no such session.
    pub(super) fn set_rules(&mut self, id: SessionId, change: impl FnOnce(&mut SessionRules)) -> bool {
        let Some(rules) = self.rules.get_mut(usize::from(id.0)) else { return false };
        change(rules);
        self.update(id);
        true
    }

    /// Blocks or allows the new orders of all sessions.
    pub(super) fn set_killed(&mut self, is_killed: bool) {
        self.is_killed = is_killed;
        for id in self.ids() {
            self.update(id);
        }
    }

    /// Recomputes the session's `max_plain_orders`.
    fn update(&mut self, id: SessionId) {
        let rules = self.rules(id);
        let max = rules.max_open_orders.min(self.max_open_orders);
        let is_plain = rules.are_plain() && !self.is_killed;
        self.sessions[usize::from(id.0)].max_plain_orders = if is_plain { max } else { 0 };
    }

    /// Checks a new order or replacement against its session's rules; `limit` is its limit for matching.
    pub(super) fn check(&self, id: SessionId, order: &EnterOrder, limit: Price) -> Result<(), RejectReason> {
        let rules = self.rules(id);
        if self.is_killed || rules.is_killed {
            return Err(RejectReason::Killed);
        }
        if rules.is_disabled {
            return Err(RejectReason::OrderEntryDisabled);
        }
        let max_qty = rules.max_qty;
        failpoint!(QtyLimitIgnored: max_qty = Qty(u64::MAX));
        if order.qty > max_qty {
            return Err(RejectReason::QtyAboveLimit);
        }
        // A product of two 64-bit numbers fits in 128 bits.
        let notional = i128::from(limit.0) * i128::from(order.qty.0);
        if rules.max_notional != u64::MAX && notional > i128::from(rules.max_notional) {
            return Err(RejectReason::NotionalAboveLimit);
        }
        Ok(())
    }

    /// The strategy that applies when an order of session `incoming` would trade with one of `resting`.
    pub(super) fn prevention(&self, incoming: SessionId, resting: SessionId) -> SelfTradePrevention {
        failpoint!(SelfTradesAllowed => return SelfTradePrevention::None);
        if self.rules(incoming).account == self.rules(resting).account {
            self.rules(incoming).prevention
        } else {
            SelfTradePrevention::None
        }
    }

    pub(super) fn hash(&self, hasher: &mut Xxh3) {
        for (session, rules) in self.sessions.iter().zip(&self.rules) {
            hash_field(session.last_user_ref, hasher);
            hash_field(*rules, hasher);
        }
        hash_field(self.is_killed, hasher);
    }
}
