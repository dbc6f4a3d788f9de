//! Log processing: updates markets and accounts, replies to requests and publishes to channels.

use std::collections::{BTreeMap, VecDeque};

use tickpath_deribit::codes::{CancelReason, Liquidity, OrderState, OrderType};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_derivatives::{Money, Style};
use tickpath_exchange::{LogCommand, LogListener, VenueEngine};
use tickpath_matching::{CommandKind, EventListener};
use tickpath_types::{MarketEvent, MarketEventKind, Nanos, OrderEvent, OrderRequest};

use super::Front;
use super::fix::FixDone;
use crate::account::{Changes, Context};
use crate::fault::Fault;
use crate::ledger::{Cause, Entry};
use crate::market::{Trade, prefixed};
use crate::order::Terms;
use crate::pending::{Intent, Origin, Pending, RequestId, Work};

/// Maximum number of price adjustments of an order after the book moved.
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
    fn on_applied(&mut self, command: &LogCommand, engine: &VenueEngine) {
        if self.is_live && self.market_events.iter().any(|event| is_trade(&event.kind)) {
            // Trades are valued at recorded prices.
            self.note_new_prices();
        }
        self.counters.commands.add(1);
        let at_ms = self.time_of(command.ts());
        let (touched, trades) = self.take_market_events(command, at_ms);
        let own = self.by_session.get(&command.session().0).copied();
        if own.is_some() {
            self.note_label_of(command);
        }
        let pending = own.and_then(|account| self.take_pending(account, command));
        let changes = self.take_order_events(own, pending.as_ref(), command, at_ms);
        if let Some(account) = own {
            let account = &mut self.accounts[account];
            account.next_ref = account.next_ref.max(u64::from(engine.last_user_ref(command.session()).0) + 1);
        }
        if let Some(account) = own {
            let own = changes.get(&account);
            let is_bounced = own.is_some_and(|changes| changes.post_only.is_some());
            let is_refused = own.is_some_and(|changes| changes.refused_overlap().is_some());
            let entered = own.and_then(|changes| changes.orders.first().copied());
            self.see_handed(account, command, entered, is_bounced);
            self.see_links(account, command, entered.filter(|_| !is_bounced && !is_refused));
        }
        // The numbers of trigger orders that fired before a restart are not reused.
        for order in changes.values().flat_map(|changes| &changes.orders) {
            let trigger = own
                .and_then(|account| self.accounts[account].order(*order))
                .map_or(0, |order| order.terms.trigger);
            self.next_trigger = self.next_trigger.max(u64::from(trigger) + 1);
        }
        match command.engine_kind() {
            Some(CommandKind::SetSelfTradePrevention { strategy, .. }) => {
                if let Some(account) = own {
                    self.take_self_trading(account, *strategy);
                }
            }
            Some(CommandKind::SuspendInstrument { instrument }) => {
                if let Some(place) = self.by_instrument.get(&instrument.0).copied() {
                    self.note_suspended(place);
                }
            }
            _ => {}
        }
        for (account, changes) in &changes {
            self.note_followed(*account, &changes.orders);
            self.note_orphans(*account, &changes.orders);
        }
        self.enter_in_ledgers(&changes);
        if command.engine_kind() == Some(&CommandKind::EndDay) {
            self.accounts.iter_mut().for_each(crate::account::Account::begin_day);
        }
        let mut changes = changes;
        if let (Some(account), Some(pending)) = (own, pending) {
            let own = changes.entry(account).or_default();
            self.answer(account, pending, own);
        }
        if self.is_live {
            for (account, changes) in &changes {
                self.watch_protected(*account, changes);
            }
            // Events are published before their consequences.
            self.tell(&touched, &trades, &changes);
            for (account, changes) in &changes {
                self.follow_links(*account, changes);
            }
            if !trades.is_empty() {
                self.fire_triggers();
            }
            if let Some(account) = own {
                self.run_queued(account);
            }
        } else {
            self.recall_until(command.sequence().0);
        }
    }
}

impl Front {
    /// Converts a time of day of the log to a full time: that of the day closest to the known time.
    fn time_of(&self, ts: Nanos) -> u64 {
        // Earlier commands are close to the latest record before the start.
        let near_ms = if !self.is_live && self.recalled_ms > 0 { self.recalled_ms } else { self.now_ms() };
        let at_ms = near_ms / DAY_MS * DAY_MS + ts.0 / 1_000_000;
        if at_ms > near_ms + DAY_MS / 2 {
            at_ms - DAY_MS
        } else if at_ms + DAY_MS / 2 < near_ms {
            at_ms + DAY_MS
        } else {
            at_ms
        }
    }

    /// Updates the markets; returns the changed ones and their trades.
    fn take_market_events(&mut self, command: &LogCommand, at_ms: u64) -> (Vec<usize>, Vec<(usize, Trade)>) {
        let mut events = std::mem::take(&mut self.market_events);
        let (mut touched, mut traded) = (Vec::new(), Vec::new());
        let is_forced = self.is_forced(command);
        self.trades.clear();
        for event in events.drain(..) {
            let Some(place) = self.by_instrument.get(&event.instrument.0).copied() else { continue };
            if !touched.contains(&place) {
                touched.push(place);
                self.markets[place].touched.clear();
            }
            if let Some(mut trade) = self.markets[place].apply(&event.kind, at_ms) {
                if is_forced {
                    self.markets[place].mark_forced(trade.match_id);
                    trade.liquidation = Some(Liquidity::Taker);
                }
                self.markets[place].count(&self.settings.listings[place].contract, &trade);
                self.trades.insert(trade.match_id, trade);
                traded.push((place, trade));
            }
        }
        for place in &touched {
            let market = &mut self.markets[*place];
            if !market.touched.is_empty() {
                market.change_id = command.sequence().0;
            }
        }
        self.market_events = events;
        (touched, traded)
    }

    /// Marks the label number of an order as used.
    fn note_label_of(&mut self, command: &LogCommand) {
        let id = match command.engine_kind() {
            Some(CommandKind::Order(OrderRequest::Enter(order)) | CommandKind::Force(order)) => {
                order.client_order_id
            }
            Some(CommandKind::Order(OrderRequest::Replace(order))) => order.client_order_id,
            _ => return,
        };
        self.labels.note(Terms::decode(&id).label);
    }

    /// Returns true for a liquidation order of an account without enough margin.
    fn is_forced(&self, command: &LogCommand) -> bool {
        match command.engine_kind() {
            Some(CommandKind::Order(OrderRequest::Enter(order)) | CommandKind::Force(order)) => {
                self.by_session.contains_key(&command.session().0)
                    && Terms::decode(&order.client_order_id).order_type == OrderType::Liquidation
            }
            _ => false,
        }
    }

    /// Adds the trades to the ledgers of the accounts.
    fn enter_in_ledgers(&mut self, changes: &BTreeMap<usize, Changes>) {
        for (account, changes) in changes {
            for trade in &changes.trades {
                let listing = &self.settings.listings[trade.listing];
                let is_forced = trade.terms.order_type == OrderType::Liquidation;
                if is_forced && !trade.is_maker {
                    *self.fund.entry(listing.settlement.clone()).or_default() += trade.fee;
                }
                let cause = if is_forced { Cause::Liquidation } else { Cause::Trade };
                let entry = Entry {
                    listing: Some(trade.listing),
                    side: Some(trade.side),
                    qty: trade.public.qty,
                    price: Some(trade.public.price),
                    mark: trade.public.mark,
                    index: trade.public.index,
                    position: trade.position,
                    change: trade.changed,
                    commission: trade.fee,
                    profit: trade.profit,
                    balance: trade.balance,
                    equity: self.figures_of(*account, &listing.settlement, None).equity(),
                    trade_id: trade.public.id(listing),
                    order_id: prefixed(listing, trade.order),
                    ..Entry::new(cause, trade.public.at_ms, &listing.settlement)
                };
                if listing.contract.style == Style::Spot {
                    let amount = listing.contract.amount(trade.public.qty);
                    let base = Entry {
                        currency: listing.base.clone(),
                        change: Money(i128::from(trade.side.sign()) * amount.0),
                        commission: Money::ZERO,
                        balance: trade.base_balance,
                        equity: self.figures_of(*account, &listing.base, None).equity(),
                        ..entry.clone()
                    };
                    self.accounts[*account].ledger.add(base);
                }
                self.accounts[*account].ledger.add(entry);
            }
        }
    }

    /// Takes the account's request that the command confirms.
    fn take_pending(&mut self, account: usize, command: &LogCommand) -> Option<Pending> {
        let known = &mut self.accounts[account];
        if let Some(place) = place_of(&known.pending, command) {
            return known.take_pending(place);
        }
        known.late.remove(place_of(&known.late, command)?)
    }

    fn take_order_events(
        &mut self,
        own: Option<usize>,
        pending: Option<&Pending>,
        command: &LogCommand,
        at_ms: u64,
    ) -> BTreeMap<usize, Changes> {
        let mut events = std::mem::take(&mut self.order_events);
        let mut changes: BTreeMap<usize, Changes> = BTreeMap::new();
        for event in events.drain(..) {
            let Some(place) = self.by_session.get(&event.session.0).copied() else { continue };
            let pending = pending.filter(|_| own == Some(place));
            let is_expiry = matches!(command.engine_kind(), Some(CommandKind::SuspendInstrument { .. }));
            let context = Context {
                listings: &self.settings.listings,
                by_instrument: &self.by_instrument,
                markets: &self.markets,
                trades: &self.trades,
                now_ms: at_ms,
                user_reason: match pending.map(|pending| (pending.work, pending.request)) {
                    Some((Work::Cancel { reason, .. }, _)) => reason,
                    // A post-only edit that would have taken. An edit to a lower amount cancels only a part.
                    Some((Work::Edit { .. }, OrderRequest::Cancel(cancel))) if cancel.qty.is_zero() => {
                        CancelReason::EditPostOnlyReject
                    }
                    _ => CancelReason::UserRequest,
                },
                venue_reason: match is_expiry {
                    true => CancelReason::Settlement,
                    false => CancelReason::RiskMitigation,
                },
                connection: pending.and_then(|pending| pending.connection),
            };
            self.accounts[place].apply(&event, &context, changes.entry(place).or_default());
        }
        self.order_events = events;
        changes
    }

    /// Replies to the request that the command confirms.
    fn answer(&mut self, account: usize, mut pending: Pending, changes: &mut Changes) {
        let made = match pending.work {
            Work::Place(_) => changes.orders.first().copied(),
            Work::Edit { number, .. } => Some(number).filter(|number| changes.orders.contains(number)),
            Work::Cancel { .. } => None,
        };
        if let (Some(number), None) = (made, changes.rejected)
            && let Some(extra) = &pending.extra
            && let Some(order) = self.accounts[account].order_mut(number)
        {
            order.extra = Some(extra.clone());
            if order.terms.is_quote {
                // A quote follows the connection that updated it last, not the one that created it.
                order.connection = pending.connection;
            }
            if let Some(quote) = extra.quote() {
                let known = self.accounts[account].trades.iter_mut().rev();
                let own = known.take_while(|trade| trade.order == number).chain(changes.trades.iter_mut());
                own.filter(|trade| trade.order == number).for_each(|trade| trade.quote = Some(quote.clone()));
            }
        }
        if let Some(number) = made
            && matches!(pending.work, Work::Place(_))
            && pending.group.is_none()
        {
            self.cancel_second_quote(account, number);
        }
        let quoting =
            pending.group.filter(|group| self.groups.get(group).is_some_and(|group| group.quoting.is_some()));
        if let Some(group) = quoting
            && (changes.post_only.is_none() || !matches!(pending.work, Work::Place(_)))
        {
            let outcome = self.outcome_of_quote(account, &pending, changes);
            return self.answer_quote(account, group, &pending, outcome, changes);
        }
        let outcome = match (pending.work, changes.rejected) {
            (work, Some(reason)) => {
                if let (Work::Edit { number, .. }, OrderRequest::Enter(order)) = (work, pending.request) {
                    // The order was removed earlier, which has not been published yet.
                    self.accounts[account].forget_asked(order.user_ref.0);
                    changes.orders.push(number);
                }
                Err(Fault::from(reason))
            }
            (Work::Place(intent), None) => {
                if let Some(number) = changes.post_only {
                    return self.answer_post_only(account, pending, intent, number, changes);
                }
                // Nothing of it was executed; Deribit rejects such an order.
                if let Some(number) = changes.refused_overlap() {
                    self.accounts[account].forget(number);
                    changes.orders.retain(|order| *order != number);
                    if let Some(to) = &pending.reply {
                        self.reply(to, Err(ErrorCode::OrderOverlap.into()));
                    }
                    return;
                }
                match changes.orders.first() {
                    Some(number) => {
                        self.begin_links(account, *number);
                        Ok(self.order_reply(account, *number, &own_trades(changes, *number)))
                    }
                    None => Err(Fault::new(ErrorCode::InternalServerError)),
                }
            }
            (Work::Edit { number, intent }, None)
                if changes.post_only == Some(number) && !intent.terms.rejects_post_only =>
            {
                return self.answer_bounced_edit(account, pending, number, intent, changes);
            }
            (Work::Edit { number, .. }, None) if changes.orders.contains(&number) => {
                Ok(self.order_reply(account, number, &own_trades(changes, number)))
            }
            (Work::Edit { number, .. }, None) => Err(self.why_closed(account, number)),
            (Work::Cancel { number, .. }, None) => {
                let is_done = changes.orders.contains(&number);
                let Some(again) = (if is_done { Some(pending) } else { self.cancel_again(account, pending) })
                else {
                    return;
                };
                pending = again;
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

    /// Handles a post-only order that the engine removed because it would have taken: re-enters it behind the
    /// current book or rejects it.
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
        let is_other_closed = pending.extra.as_ref().is_some_and(|extra| extra.is_other_closed);
        let moved = if is_other_closed || intent.moves > MOVES_MAX {
            Err(ErrorCode::PostOnlyPriceModificationNotPossible.into())
        } else {
            self.keep_off_the_book(&mut intent)
        };
        let sent = moved.and_then(|()| {
            let (reply, extra) = (pending.reply.clone(), pending.extra.clone());
            let Pending { connection, group, turn, .. } = pending;
            self.enter_as(account, intent, Origin { connection, reply, group, extra, turn, is_forced: false })
        });
        self.follow_bounced(account, intent.terms.trigger, sent.as_ref().ok().map(|()| intent.qty));
        match (sent, &pending.reply, pending.group) {
            (Err(fault), Some(to), _) => self.reply(to, Err(fault)),
            (Err(fault), None, Some(group)) => {
                self.answer_quote(account, group, &pending, Err(fault), &Changes::default());
            }
            _ => {}
        }
    }

    /// Handles an edited order that the engine removed because it would have taken: re-enters it behind the
    /// current book under the same number. If that fails, the order is closed.
    fn answer_bounced_edit(
        &mut self,
        account: usize,
        pending: Pending,
        number: u64,
        mut intent: Intent,
        changes: &mut Changes,
    ) {
        intent.moves += 1;
        let extra = self.accounts[account].order(number).and_then(|order| order.extra.as_ref());
        let is_other_closed = extra.is_some_and(|extra| extra.is_other_closed);
        let moved = if is_other_closed || intent.moves > MOVES_MAX {
            Err(ErrorCode::PostOnlyPriceModificationNotPossible.into())
        } else {
            self.keep_off_the_book(&mut intent)
        };
        let reply = pending.reply.clone();
        match moved.and_then(|()| self.enter_again(account, number, intent, pending)) {
            Ok(()) => changes.orders.retain(|order| *order != number),
            Err(fault) => {
                if let Some(to) = reply {
                    self.reply(&to, Err(fault));
                }
            }
        }
    }

    /// Returns the number of the current quote; none if it was cancelled.
    fn outcome_of_quote(
        &self,
        account: usize,
        pending: &Pending,
        changes: &Changes,
    ) -> Result<Option<u64>, Fault> {
        match (pending.work, changes.rejected) {
            (_, Some(reason)) => Err(reason.into()),
            (Work::Place(_), None) => match changes.orders.first() {
                Some(number) if changes.overlap == Some(*number) => Err(ErrorCode::OrderOverlap.into()),
                Some(number) => Ok(Some(*number)),
                None => Err(ErrorCode::InternalServerError.into()),
            },
            // The quote would have taken from the current book, so the engine removed it.
            (Work::Edit { number, intent }, None) if changes.post_only == Some(number) => {
                Err(match intent.terms.rejects_post_only {
                    true => ErrorCode::PostOnlyReject.into(),
                    false => ErrorCode::PostOnlyPriceModificationNotPossible.into(),
                })
            }
            (Work::Edit { number, .. }, None) if changes.orders.contains(&number) => Ok(Some(number)),
            (Work::Edit { number, .. }, None) => Err(self.why_closed(account, number)),
            (Work::Cancel { .. }, None) => Ok(None),
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

fn place_of(requests: &VecDeque<Pending>, command: &LogCommand) -> Option<usize> {
    match command.engine_kind()? {
        CommandKind::Order(request) => requests.iter().position(|pending| pending.request == *request),
        CommandKind::Force(order) => {
            requests.iter().position(|pending| pending.request == OrderRequest::Enter(*order))
        }
        CommandKind::GatewayReject { user_ref, .. } => requests
            .iter()
            .position(|pending| pending.request.is_new_order() && pending.request.user_ref() == *user_ref),
        _ => None,
    }
}

const fn is_trade(kind: &MarketEventKind) -> bool {
    matches!(
        kind,
        MarketEventKind::Executed { .. }
            | MarketEventKind::ExecutedAt { .. }
            | MarketEventKind::Traded { .. }
            | MarketEventKind::Cross { .. }
    )
}

fn own_trades(changes: &Changes, number: u64) -> Vec<crate::order::UserTrade> {
    changes.trades.iter().filter(|trade| trade.order == number).cloned().collect()
}
