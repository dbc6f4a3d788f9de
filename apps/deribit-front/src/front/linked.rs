//! Linked orders: one order triggers others, cancels another, or both.
//!
//! Waiting orders are recorded: the links of an order before the order is sent, and their state once the log
//! has the order. After a restart, actions that became due meanwhile are carried out.

use tickpath_deribit::codes::{CancelReason, Direction, OrderState, OrderType, TimeInForce};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::PlaceOrder;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text;
use tickpath_derivatives::Money;
use tickpath_exchange::LogCommand;
use tickpath_matching::CommandKind;
use tickpath_types::{OrderRequest, Price, Qty};

use super::Front;
use super::trading::check_terms;
use super::triggers::{WAITING_MAX, extra_of, link_record, waits};
use crate::account::Changes;
use crate::fault::Fault;
use crate::json::{member, param, text_param};
use crate::labels::LABEL_LEN_MAX;
use crate::order::{Extra, FillCondition, Order, TRIGGER_BIT, Terms, TriggerTerms};
use crate::pending::{Intent, Origin};
use crate::record::{Link, Record, WaitingOrder};

/// Multiplies before dividing, to keep precision.
fn part_of(qty: Qty, filled: Qty, whole: Qty) -> Qty {
    let part = u128::from(qty.0) * u128::from(filled.0) / u128::from(whole.0.max(1));
    Qty(u64::try_from(part).unwrap_or(u64::MAX).min(qty.0))
}

impl Front {
    /// Reads the linked orders from an order's params.
    pub(super) fn links_of(
        &mut self,
        account: usize,
        primary: &PlaceOrder<'_>,
        params: &Value<'_>,
    ) -> Result<Option<Box<Extra>>, Fault> {
        let Some(kind) = text_param(params, "linked_order_type")? else {
            return match member(params, "otoco_config") {
                Some(_) => {
                    Err(Fault::because(ErrorCode::UnsupportedArgCombination, "linked_order_type is missing"))
                }
                None => Ok(None),
            };
        };
        let (count, triggers, cancels) = match kind.as_str() {
            "one_triggers_other" => (1, true, false),
            "one_cancels_other" => (1, false, true),
            "one_triggers_one_cancels_other" => (2, true, true),
            _ => return Err(Fault::param("linked_order_type", "no such type")),
        };
        let condition = match text_param(params, "trigger_fill_condition")?.as_deref() {
            None | Some("first_hit") => FillCondition::FirstHit,
            Some("complete_fill") => FillCondition::CompleteFill,
            Some("incremental") => FillCondition::Incremental,
            Some(_) => return Err(Fault::param("trigger_fill_condition", "no such condition")),
        };
        if primary.order_type.is_some_and(waits) {
            return Err(Fault::because(
                ErrorCode::UnsupportedArgCombination,
                "an order that others are linked with does not wait for a price",
            ));
        }
        let configs = member(params, "otoco_config").ok_or(Fault::param("otoco_config", "value required"))?;
        let mut scanner = configs.scanner();
        scanner.open_array().map_err(|_| Fault::param("otoco_config", "value must be a list"))?;
        let mut linked = Vec::new();
        while let Ok(true) = scanner.next_element() {
            let Ok(config) = scanner.value() else { break };
            linked.push(self.linked_order(account, primary, &config)?);
        }
        if linked.len() != count {
            return Err(Fault::param("otoco_config", "one order, or two of one_triggers_one_cancels_other"));
        }
        if self.waiting_count(account) + count > WAITING_MAX {
            return Err(ErrorCode::NoMoreOtoOrders.into());
        }
        Ok(Some(Box::new(Extra { linked, triggers, cancels, condition, ..Extra::default() })))
    }

    /// Counts the waiting orders of an account, including those that in-flight orders will add.
    pub(super) fn waiting_count(&self, account: usize) -> usize {
        let known = &self.accounts[account];
        let brought = known.pending.iter().chain(&known.late).filter_map(|pending| pending.extra.as_ref());
        known.waiting.len() + brought.map(|extra| extra.linked.len()).sum::<usize>()
    }

    /// Reads an order from an element of `otoco_config`.
    fn linked_order(
        &mut self,
        account: usize,
        primary: &PlaceOrder<'_>,
        config: &Value<'_>,
    ) -> Result<Order, Fault> {
        let wrong = |param| Fault::param(param, "no such value");
        let code = |name: &'static str| member(config, name).ok_or(Fault::param(name, "value required"));
        let direction: Direction = code("direction")?.parse_strict().map_err(|_| wrong("direction"))?;
        let side = direction.side().ok_or(wrong("direction"))?;
        let label = text_param(config, "label")?.unwrap_or_default();
        if label.chars().count() > LABEL_LEN_MAX {
            return Err(Fault::param("label", "at most 64 characters"));
        }
        let flag = |name| param::<bool>(config, name).map(|flag| flag.unwrap_or(false));
        let optional = |name: &'static str| member(config, name);
        let order_type = optional("type").map(|value| value.parse_strict::<OrderType>()).transpose();
        let time = optional("time_in_force").map(|value| value.parse_strict::<TimeInForce>()).transpose();
        let trigger = optional("trigger").map(|value| value.parse_strict()).transpose();
        let amount = param::<Decimal>(config, "amount")?;
        let order = PlaceOrder {
            amount: amount.or(primary.amount),
            contracts: primary.contracts.filter(|_| amount.is_none()),
            order_type: order_type.map_err(|_| wrong("type"))?,
            price: param(config, "price")?,
            label: Some(Text::new(&label)),
            time_in_force: time.map_err(|_| wrong("time_in_force"))?,
            post_only: flag("post_only")?,
            reject_post_only: flag("reject_post_only")?,
            reduce_only: flag("reduce_only")?,
            trigger: trigger.map_err(|_| wrong("trigger"))?,
            trigger_price: param(config, "trigger_price")?,
            trigger_offset: param(config, "trigger_offset")?,
            display_amount: None,
            advanced: None,
            mmp: false,
            valid_until: None,
            instrument_name: primary.instrument_name,
        };
        let order_type = order.order_type.unwrap_or(OrderType::Limit);
        let time_in_force = order.time_in_force.unwrap_or(TimeInForce::GoodTilCancelled);
        check_terms(&order, order_type, time_in_force)?;
        let listing = self.find_traded(&order.instrument_name.to_cow())?;
        let price = match order_type {
            OrderType::Limit | OrderType::StopLimit | OrderType::TakeLimit => {
                let price = order.price.ok_or(Fault::param("price", "value required"))?;
                self.settings.listings[listing].parse_price(price)?
            }
            _ => Price(0),
        };
        let armed = waits(order_type).then(|| self.armed(listing, order_type, &order)).transpose()?;
        let qty = self.qty_of(listing, order.amount, order.contracts)?;
        let terms = Terms {
            order_type,
            time_in_force,
            is_post_only: order.post_only,
            rejects_post_only: order.post_only && order.reject_post_only,
            is_reduce_only: order.reduce_only,
            label: self.label_number(account, &label, "")?,
            ..Terms::default()
        };
        Ok(Order {
            number: 0,
            listing,
            side,
            terms,
            price,
            qty,
            filled: Qty::ZERO,
            filled_value: Money::ZERO,
            created_ms: self.now_ms(),
            updated_ms: self.now_ms(),
            is_replaced: false,
            state: OrderState::Untriggered,
            cancel_reason: None,
            user_ref: 0,
            connection: None,
            display: None,
            trigger: None,
            extra: Some(Box::new(Extra { armed, ..Extra::default() })),
        })
    }

    /// Reads the trigger terms that apply to a linked order after its release.
    fn armed(
        &self,
        listing: usize,
        order_type: OrderType,
        order: &PlaceOrder<'_>,
    ) -> Result<TriggerTerms, Fault> {
        let watched = order.trigger.ok_or(Fault::param("trigger", "value required"))?;
        let name = if order_type == OrderType::TrailingStop { "trigger_offset" } else { "trigger_price" };
        let given =
            if order_type == OrderType::TrailingStop { order.trigger_offset } else { order.trigger_price };
        let given = given.ok_or(Fault::param(name, "value required"))?;
        let is_trailing = order_type == OrderType::TrailingStop;
        let given = match is_trailing {
            true => self.on_offset_tick((listing, watched), given)?,
            false => self.on_trigger_tick((listing, watched), given)?,
        };
        let offset = is_trailing.then_some(given.0);
        Ok(TriggerTerms { watched, price: given, offset, reference: given })
    }

    /// Starts the links of an order now in the log: linked orders wait for it or are released beside it.
    pub(super) fn begin_links(&mut self, account: usize, number: u64) {
        let Some(order) = self.accounts[account].order_mut(number) else { return };
        let connection = order.connection;
        let (listing, id) = (order.listing, number.to_string());
        let is_decided = !order.filled.is_zero() || is_over(order);
        let Some(extra) = &mut order.extra else { return };
        let linked = std::mem::take(&mut extra.linked);
        if linked.is_empty() {
            return;
        }
        let (triggers, cancels) = (extra.triggers, extra.cancels);
        let oco_ref = if cancels { format!("OCO-{id}") } else { String::new() };
        if cancels && !triggers {
            extra.oco_ref.clone_from(&oco_ref);
        }
        let primary_id = if triggers {
            crate::market::prefixed(&self.settings.listings[listing], number)
        } else {
            String::new()
        };
        let mut numbers = Vec::new();
        let mut waiting = Vec::new();
        for mut order in linked {
            order.number = self.next_trigger | TRIGGER_BIT;
            self.next_trigger += 1;
            order.connection = connection;
            if let Some(extra) = &mut order.extra {
                (extra.oco_ref, extra.primary_id) = (oco_ref.clone(), primary_id.clone());
            }
            numbers.push(order.number);
            waiting.push(order);
        }
        if triggers {
            let listings = &self.settings.listings;
            let ids: Vec<String> = waiting.iter().map(|order| order.id(&listings[order.listing])).collect();
            if let Some(extra) =
                self.accounts[account].order_mut(number).and_then(|order| order.extra.as_mut())
            {
                (extra.secondaries, extra.secondary_ids) = (numbers.clone(), ids);
            }
        }
        waiting.into_iter().for_each(|order| self.write_waiting(account, order, None));
        self.write_link(account, number);
        if triggers {
            numbers.into_iter().for_each(|number| self.tell_of(account, number));
        } else if is_decided {
            // The first order has traded or is closed, so the others are cancelled.
            let reason = Some(CancelReason::OcoOtherClosed);
            let state = OrderState::Cancelled;
            numbers.into_iter().for_each(|number| self.end_trigger(account, number, state, reason));
        } else {
            numbers.into_iter().for_each(|number| self.release(account, number, Qty(u64::MAX)));
        }
    }

    /// Applies the links of changed orders.
    pub(super) fn follow_links(&mut self, account: usize, changes: &Changes) {
        for number in &changes.orders {
            self.follow_link(account, *number);
        }
    }

    pub(super) fn follow_link(&mut self, account: usize, number: u64) {
        self.follow_secondaries(account, number);
        let Some(order) = self.accounts[account].order(number) else { return };
        let Some(extra) = order.extra.clone() else { return };
        let (filled, reason, is_over) = (order.filled, order.cancel_reason, is_over(order));
        let is_first = self.is_live && reason != Some(CancelReason::OcoOtherClosed);
        let ends_others = !filled.is_zero() || (is_over && !extra.is_other_closed);
        if !extra.oco_ref.is_empty() && is_first && ends_others {
            self.cancel_others(account, number, &extra.oco_ref);
        }
        if extra.is_other_closed {
            self.cancel_other(account, number);
        }
    }

    /// Releases triggered orders as the primary is filled, and cancels them when it closes.
    fn follow_secondaries(&mut self, account: usize, number: u64) {
        let Some(order) = self.accounts[account].order(number) else { return };
        let Some(extra) = order.extra.clone() else { return };
        let (filled, whole, state, is_over) = (order.filled, order.qty, order.state, is_over(order));
        for secondary in &extra.secondaries {
            let Some(waiting) = self.accounts[account].waiting.get(secondary) else { continue };
            let released = waiting.extra.as_ref().map_or(Qty::ZERO, |extra| extra.released);
            let due = match extra.condition {
                FillCondition::FirstHit if !filled.is_zero() => waiting.qty,
                FillCondition::CompleteFill if state == OrderState::Filled => waiting.qty,
                FillCondition::Incremental => part_of(waiting.qty, filled, whole),
                _ => Qty::ZERO,
            };
            if due > released {
                self.release(account, *secondary, Qty(due.0 - released.0));
            }
            if is_over {
                let reason = Some(CancelReason::OtoPrimaryClosed);
                self.end_trigger(account, *secondary, OrderState::Cancelled, reason);
            }
        }
    }

    /// Cancels the other orders of an OCO group; in-flight ones are cancelled once the log contains them.
    pub(super) fn cancel_others(&mut self, account: usize, number: u64, oco_ref: &str) {
        let known = &mut self.accounts[account];
        let is_linked = |extra: &&mut Box<Extra>| extra.oco_ref == oco_ref;
        let on_their_way = known.pending.iter_mut().chain(&mut known.late);
        let on_their_way = on_their_way.filter_map(|pending| pending.extra.as_mut());
        on_their_way.filter(is_linked).for_each(|extra| extra.is_other_closed = true);
        let mut open = Vec::new();
        for order in known.open.values_mut().filter(|order| order.number != number) {
            if let Some(extra) = order.extra.as_mut().filter(is_linked) {
                extra.is_other_closed = true;
                open.push(order.number);
            }
        }
        let is_linked = |order: &&Order| order.extra.as_ref().is_some_and(|extra| extra.oco_ref == oco_ref);
        let waiting = known.waiting.values().filter(is_linked).map(|order| order.number);
        let waiting: Vec<u64> = waiting.filter(|other| *other != number).collect();
        for other in waiting {
            self.end_trigger(account, other, OrderState::Cancelled, Some(CancelReason::OcoOtherClosed));
        }
        open.into_iter().for_each(|other| self.cancel_other(account, other));
    }

    /// Cancels an open order because another one is filled or closed; retried later if the queue is full.
    fn cancel_other(&mut self, account: usize, number: u64) {
        let known = &self.accounts[account];
        if !known.open.contains_key(&number) {
            return;
        }
        if !known.is_cancelling(number) {
            let _ = self.send_cancel(account, number, None, None, CancelReason::OcoOtherClosed);
        }
        self.closing.insert((account, number));
    }

    /// Retries these cancels for orders that are still open.
    pub(super) fn cancel_closed_others(&mut self) {
        for (account, number) in std::mem::take(&mut self.closing) {
            self.cancel_other(account, number);
        }
    }

    /// Releases a part of a linked order: into the book, or as an untriggered order.
    fn release(&mut self, account: usize, number: u64, part: Qty) {
        let Some(order) = self.accounts[account].waiting.get_mut(&number) else { return };
        let Some(extra) = &mut order.extra else { return };
        let qty = Qty(part.0.min(order.qty.0 - extra.released.0));
        extra.released.0 += qty.0;
        let is_whole = extra.released == order.qty;
        let armed = extra.armed;
        let order = order.clone();
        let part_of = Some(number).filter(|_| !is_whole);
        let extra = order.extra.as_deref().map(|extra| {
            let (oco_ref, primary_id) = (extra.oco_ref.clone(), extra.primary_id.clone());
            Box::new(Extra { oco_ref, primary_id, ..Extra::default() })
        });
        let entered = match armed {
            Some(armed) => self.arm(account, Order { qty, extra, ..order.clone() }, armed, part_of),
            None => self.let_go(account, &Order { qty, ..order.clone() }, extra),
        };
        if entered.is_ok() && armed.is_none() {
            self.hand_over_part(account, number, qty);
        }
        if entered.is_err() || is_whole {
            let state = if entered.is_ok() { OrderState::Triggered } else { OrderState::Rejected };
            self.end_trigger(account, number, state, None);
        }
    }

    /// Turns a released part into an untriggered order with a new number.
    fn arm(
        &mut self,
        account: usize,
        mut order: Order,
        armed: TriggerTerms,
        part_of: Option<u64>,
    ) -> Result<(), Fault> {
        // The count includes the linked order itself, which is removed with its last part.
        if self.accounts[account].waiting.len() > WAITING_MAX {
            return Err(ErrorCode::NoMoreTriggers.into());
        }
        let now = self.watched(order.listing, armed.watched);
        let now = now.ok_or(Fault::new(ErrorCode::InvalidTriggerPrice))?;
        let price = match armed.offset {
            Some(offset) => self.behind((order.listing, armed.watched), order.side, offset, now)?,
            None => armed.price,
        };
        order.number = self.next_trigger | TRIGGER_BIT;
        self.next_trigger += 1;
        order.trigger = Some(TriggerTerms { price, reference: now, ..armed });
        let number = order.number;
        self.write_waiting(account, order, part_of);
        self.tell_of(account, number);
        Ok(())
    }

    /// Records the links of an order before it is sent.
    pub(super) fn write_links_asked(&mut self, account: usize, user_ref: u32, extra: &Extra) {
        let linked = extra.linked.iter().map(|order| self.waiting_record(account, order)).collect();
        let (name, link) = (self.accounts[account].name.clone(), link_record(extra));
        self.write_down(Record::LinksAsked { account: name, user_ref, link, linked });
    }

    /// Applies this record.
    pub(super) fn take_links_asked(
        &mut self,
        account: &str,
        user_ref: u32,
        link: &Link,
        linked: &[WaitingOrder],
    ) {
        let Some(account) = self.account_named(account) else { return };
        let now_ms = self.recalled_ms;
        let linked = linked.iter().filter_map(|record| self.waiting_order(record, now_ms));
        let linked = linked.map(|(_, order)| order).collect();
        if !self.is_live {
            let extra = Extra { linked, ..*extra_of(link) };
            self.accounts[account].links_asked.insert(user_ref, Box::new(extra));
        }
    }

    /// Records the links of an order in the log.
    fn write_link(&mut self, account: usize, number: u64) {
        let extra = self.accounts[account].order(number).and_then(|order| order.extra.as_deref());
        if let Some(link) = extra.map(link_record) {
            let account = self.accounts[account].name.clone();
            self.write_down(Record::Linked { account, number, link });
        }
    }

    /// Applies this record.
    pub(super) fn take_link(&mut self, account: &str, number: u64, link: &Link) {
        let Some(account) = self.account_named(account) else { return };
        if let Some(order) = self.accounts[account].order_mut(number) {
            order.extra = Some(extra_of(link));
        }
    }

    /// Cancels a linked order because the commands that it depends on are lost.
    pub(super) fn take_link_lost(&mut self, number: u64, at_ms: u64) {
        for known in &mut self.accounts {
            let Some(mut order) = known.waiting.remove(&number) else { continue };
            order.cancel_reason = Some(CancelReason::OtoPrimaryClosed);
            (order.state, order.updated_ms) = (OrderState::Cancelled, at_ms);
            known.keep_closed(order);
        }
    }

    /// During the replay: gives an entered order its recorded links, or drops the links of a rejected one.
    pub(super) fn see_links(&mut self, account: usize, command: &LogCommand, entered: Option<u64>) {
        let user_ref = match command.engine_kind() {
            Some(CommandKind::Order(OrderRequest::Enter(order))) => order.user_ref,
            Some(CommandKind::GatewayReject { user_ref, .. }) => *user_ref,
            _ => return,
        };
        let known = &mut self.accounts[account];
        let Some(extra) = known.links_asked.remove(&user_ref.0) else { return };
        if let Some(order) = entered.and_then(|number| known.order_mut(number)) {
            order.extra = Some(extra);
        }
    }

    /// At the start: drops requests missing in the log; their engine numbers are used for other requests.
    fn forget_unasked(&mut self, account: usize) {
        let known = &self.accounts[account];
        let asked: Vec<u32> = known.links_asked.keys().chain(known.again.keys()).copied().collect();
        for user_ref in asked {
            let account = self.accounts[account].name.clone();
            self.decide(&Record::NeverAsked { account, user_ref });
        }
    }

    /// At the start: starts the links of orders in the log that have not begun, and carries out due actions.
    pub(super) fn catch_up_links(&mut self) {
        for account in 0..self.accounts.len() {
            self.forget_unasked(account);
            let known = &self.accounts[account];
            let all = known.open.values().chain(&known.closed).chain(known.waiting.values());
            let linked: Vec<(u64, bool)> = all
                .filter_map(|order| {
                    order.extra.as_ref().map(|extra| (order.number, !extra.linked.is_empty()))
                })
                .collect();
            for (number, begins) in linked {
                if begins {
                    self.begin_links(account, number);
                }
                self.follow_secondaries(account, number);
                let Some(order) = self.accounts[account].order(number) else { continue };
                let oco_ref = order.extra.as_ref().map(|extra| extra.oco_ref.clone()).unwrap_or_default();
                if !order.filled.is_zero() && !oco_ref.is_empty() {
                    self.cancel_others(account, number, &oco_ref);
                }
            }
        }
    }

    fn let_go(&mut self, account: usize, order: &Order, extra: Option<Box<Extra>>) -> Result<(), Fault> {
        let (listing, side) = (order.listing, order.side);
        let price = match order.terms.order_type {
            OrderType::Limit => order.price,
            other => self.price_of(listing, side, other, None)?,
        };
        let qty = match order.terms.is_reduce_only {
            true => self.reducing(account, listing, side, order.qty)?,
            false => order.qty,
        };
        let terms = Terms { trigger: Terms::trigger_of(order.number), ..order.terms };
        let mut intent = Intent { listing, side, qty, price, terms, display: Qty::ZERO, moves: 0 };
        self.keep_off_the_book(&mut intent)?;
        self.check_funds(account, &intent, qty, None)?;
        let connection = order.connection;
        self.enter_as(account, intent, Origin { connection, extra, ..Origin::default() })
    }
}

/// Returns true for an order that is closed.
fn is_over(order: &Order) -> bool {
    let has_fired = order.trigger.is_some() && order.state == OrderState::Triggered;
    has_fired || matches!(order.state, OrderState::Filled | OrderState::Cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_what_is_filled() {
        assert_eq!(part_of(Qty(10), Qty(1), Qty(3)), Qty(3));
        assert_eq!(part_of(Qty(10), Qty(3), Qty(3)), Qty(10));
        assert_eq!(part_of(Qty(u64::MAX), Qty(u64::MAX), Qty(1)), Qty(u64::MAX));
        assert_eq!(part_of(Qty(5), Qty(0), Qty(0)), Qty(0));
    }
}
