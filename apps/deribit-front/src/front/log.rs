//! What the log says: markets and accounts follow it, requests are answered by it, channels tell of it.

use std::collections::BTreeMap;

use tickpath_deribit::codes::{CancelReason, OrderState};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_exchange::{LogListener, VenueEngine};
use tickpath_matching::{Command, CommandKind, EventListener};
use tickpath_types::{MarketEvent, Nanos, OrderEvent};

use super::Front;
use super::fix::FixDone;
use crate::account::{Changes, Context};
use crate::fault::Fault;
use crate::market::Trade;
use crate::pending::{Intent, Pending, RequestId, Work};

/// How often an order's price is moved because the book has moved meanwhile.
const MOVES_MAX: u8 = 3;
const DAY_MS: u64 = 86_400_000;

impl EventListener for Front {
    fn on_order_event(&mut self, event: &OrderEvent) {
        if self.by_session.contains_key(&event.session.0) {
            self.order_events.push(*event);
        }
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.market_events.push(*event);
    }
}

impl LogListener for Front {
    fn on_applied(&mut self, command: &Command, engine: &VenueEngine) {
        self.counters.commands.add(1);
        let at_ms = self.time_of(command.ts);
        let (touched, trades) = self.take_market_events(command, at_ms);
        let own = self.by_session.get(&command.session.0).copied();
        let pending = own.and_then(|account| self.take_pending(account, command));
        let changes = self.take_order_events(own, pending.as_ref(), at_ms);
        if let Some(account) = own {
            let account = &mut self.accounts[account];
            account.next_ref = account.next_ref.max(engine.last_user_ref(command.session).0 + 1);
        }
        // Numbers of trigger orders that fired before a restart are not given again.
        for order in changes.values().flat_map(|changes| &changes.orders) {
            let trigger = own
                .and_then(|account| self.accounts[account].order(*order))
                .map_or(0, |order| order.terms.trigger);
            self.next_trigger = self.next_trigger.max(u64::from(trigger) + 1);
        }
        if command.kind == CommandKind::EndDay {
            self.accounts.iter_mut().for_each(crate::account::Account::begin_day);
        }
        let mut changes = changes;
        if let (Some(account), Some(pending)) = (own, pending) {
            let own = changes.entry(account).or_default();
            self.answer(account, pending, own);
        }
        if self.is_live {
            self.tell(&touched, &trades, &changes);
            if !trades.is_empty() {
                self.fire_triggers();
            }
        }
    }
}

impl Front {
    /// The log has times of the day: of the latest day in which it is past.
    fn time_of(&self, ts: Nanos) -> u64 {
        let now_ms = self.now_ms();
        let at_ms = now_ms / DAY_MS * DAY_MS + ts.0 / 1_000_000;
        if at_ms > now_ms + DAY_MS / 2 { at_ms - DAY_MS } else { at_ms }
    }

    /// Markets follow; returns those that changed, and what was traded.
    fn take_market_events(&mut self, command: &Command, at_ms: u64) -> (Vec<usize>, Vec<(usize, Trade)>) {
        let mut events = std::mem::take(&mut self.market_events);
        let (mut touched, mut traded) = (Vec::new(), Vec::new());
        self.trades.clear();
        for event in events.drain(..) {
            let Some(place) = self.by_instrument.get(&event.instrument.0).copied() else { continue };
            if !touched.contains(&place) {
                touched.push(place);
                self.markets[place].touched.clear();
            }
            if let Some(trade) = self.markets[place].apply(&event.kind, at_ms) {
                self.trades.insert(trade.match_id, trade);
                traded.push((place, trade));
            }
        }
        for place in &touched {
            let market = &mut self.markets[*place];
            if !market.touched.is_empty() {
                market.change_id = command.sequence.0;
            }
        }
        self.market_events = events;
        (touched, traded)
    }

    /// Which of the account's requests the command is.
    fn take_pending(&mut self, account: usize, command: &Command) -> Option<Pending> {
        let pending = &mut self.accounts[account].pending;
        let place = match &command.kind {
            CommandKind::Order(request) => pending.iter().position(|pending| pending.request == *request),
            CommandKind::Refuse { user_ref, .. } => pending.iter().position(|pending| {
                pending.request.is_new_order() && pending.request.user_ref() == *user_ref
            }),
            _ => None,
        };
        pending.remove(place?)
    }

    fn take_order_events(
        &mut self,
        own: Option<usize>,
        pending: Option<&Pending>,
        at_ms: u64,
    ) -> BTreeMap<usize, Changes> {
        let mut events = std::mem::take(&mut self.order_events);
        let mut changes: BTreeMap<usize, Changes> = BTreeMap::new();
        for event in events.drain(..) {
            let Some(place) = self.by_session.get(&event.session.0).copied() else { continue };
            let pending = pending.filter(|_| own == Some(place));
            let is_disconnect = pending
                .is_some_and(|pending| matches!(pending.work, Work::Cancel { is_disconnect: true, .. }));
            let context = Context {
                listings: &self.settings.listings,
                by_instrument: &self.by_instrument,
                trades: &self.trades,
                now_ms: at_ms,
                user_reason: match is_disconnect {
                    true => CancelReason::CancelOnDisconnect,
                    false => CancelReason::UserRequest,
                },
                connection: pending.and_then(|pending| pending.connection),
            };
            self.accounts[place].apply(&event, &context, changes.entry(place).or_default());
        }
        self.order_events = events;
        changes
    }

    /// Answers the request that the command was.
    fn answer(&mut self, account: usize, pending: Pending, changes: &mut Changes) {
        let outcome = match (pending.work, changes.rejected) {
            (_, Some(reason)) => Err(Fault::from(reason)),
            (Work::Place(intent), None) => {
                if let Some(number) = changes.post_only {
                    return self.answer_post_only(account, pending, intent, number, changes);
                }
                match changes.orders.first() {
                    Some(number) => Ok(self.order_reply(account, *number, &own_trades(changes, *number))),
                    None => Err(Fault::new(ErrorCode::InternalServerError)),
                }
            }
            (Work::Edit { number, .. }, None) if changes.orders.contains(&number) => {
                Ok(self.order_reply(account, number, &own_trades(changes, number)))
            }
            (Work::Edit { number, .. }, None) => Err(self.why_closed(account, number)),
            (Work::Cancel { number, .. }, None) => {
                let is_done = changes.orders.contains(&number);
                if let Some(group) = pending.group {
                    return self.finish_of_group(group, is_done.then_some(number));
                }
                let mut order = Vec::new();
                if let Some(known) = self.accounts[account].order(number) {
                    self.write_order(known, &mut order);
                }
                if is_done { Ok(order) } else { Err(self.why_closed(account, number)) }
            }
        };
        let Some(to) = &pending.reply else { return };
        let RequestId::Fix(asked) = &to.id else { return self.reply(to, outcome) };
        let number = match pending.work {
            Work::Place(_) => changes.orders.first().copied().unwrap_or_default(),
            Work::Edit { number, .. } | Work::Cancel { number, .. } => number,
        };
        let trades = own_trades(changes, number);
        let done = FixDone::Order { number, trades: &trades };
        self.answer_fix(account, to, asked, outcome.map(|_| done));
    }

    /// The engine let a post-only order go because it would have taken: it is entered again behind the book as it is now,
    /// or refused.
    fn answer_post_only(
        &mut self,
        account: usize,
        pending: Pending,
        mut intent: Intent,
        number: u64,
        changes: &mut Changes,
    ) {
        self.accounts[account].forget(number);
        changes.orders.retain(|order| *order != number);
        intent.moves += 1;
        let moved = if intent.moves > MOVES_MAX {
            Err(ErrorCode::PostOnlyPriceModificationNotPossible.into())
        } else {
            self.keep_off_the_book(&mut intent)
        };
        let sent =
            moved.and_then(|()| self.enter(account, intent, pending.connection, pending.reply.clone()));
        if let (Err(fault), Some(to)) = (sent, &pending.reply) {
            self.reply(to, Err(fault));
        }
    }

    fn why_closed(&self, account: usize, number: u64) -> Fault {
        match self.accounts[account].order(number) {
            Some(order) if order.state == OrderState::Filled => ErrorCode::AlreadyFilled.into(),
            Some(_) => ErrorCode::NotOpenOrder.into(),
            None => ErrorCode::OrderNotFound.into(),
        }
    }
}

fn own_trades(changes: &Changes, number: u64) -> Vec<crate::order::UserTrade> {
    changes.trades.iter().filter(|trade| trade.order == number).cloned().collect()
}
