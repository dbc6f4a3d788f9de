//! Orders that waited and were handed to the engine: until the log has them they are not forgotten.
//!
//! An order that is let go is written down with the engine's number of what is entered for it. Where the venue stopped before
//! the log had that, the order waits again after the restart, and is entered again: its price had come. Where the log has it,
//! it is not.

use tickpath_deribit::codes::OrderState;
use tickpath_exchange::LogCommand;
use tickpath_matching::CommandKind;
use tickpath_types::{OrderRequest, Qty};

use super::Front;
use crate::order::{Extra, Order, TRIGGER_BIT, Terms};
use crate::record::Record;

/// An order that was handed over, whole or in parts.
pub(crate) struct Handed {
    /// As it waited.
    order: Order,
    /// What the log does not have yet.
    parts: Vec<Part>,
}

struct Part {
    qty: Qty,
    /// The engine's number of it.
    user_ref: u32,
    /// The engine let it go because it would have taken: it is entered again behind the book, or refused.
    is_bounced: bool,
}

impl Front {
    /// Writes down that so much of an order that waits was entered, as the account's last request.
    pub(super) fn hand_over_part(&mut self, account: usize, number: u64, qty: Qty) {
        let user_ref = u32::try_from(self.accounts[account].next_ref - 1).unwrap_or(0);
        self.write_down(Record::HandedOver { number, qty: qty.0, user_ref });
        self.take_handed(number, qty, user_ref, false);
    }

    /// The same from what was written down; then the part is to be taken from what a linked order has to let go.
    pub(super) fn take_handed(&mut self, number: u64, qty: Qty, user_ref: u32, is_recalled: bool) {
        for known in &mut self.accounts {
            let waiting = known.waiting.get_mut(&number);
            if let Some(extra) = waiting.and_then(|order| order.extra.as_mut()).filter(|_| is_recalled) {
                extra.released.0 += qty.0;
            }
            let Some(order) = known.waiting.get(&number) else {
                if let Some(handed) = known.handed.get_mut(&number) {
                    handed.parts.retain(|part| !part.is_bounced);
                    handed.parts.push(Part { qty, user_ref, is_bounced: false });
                }
                continue;
            };
            let handed = known
                .handed
                .entry(number)
                .or_insert_with(|| Handed { order: order.clone(), parts: Vec::new() });
            handed.order = order.clone();
            handed.parts.retain(|part| !part.is_bounced);
            handed.parts.push(Part { qty, user_ref, is_bounced: false });
        }
    }

    /// The log has a command of an account: what was handed over for it is there.
    pub(super) fn see_handed(
        &mut self,
        account: usize,
        command: &LogCommand,
        entered: Option<u64>,
        is_bounced: bool,
    ) {
        if self.accounts[account].handed.is_empty() {
            return;
        }
        let (user_ref, text) = match command.engine_kind() {
            Some(CommandKind::Order(OrderRequest::Enter(order))) => (order.user_ref, order.client_order_id),
            Some(CommandKind::Refuse { user_ref, client_order_id, .. }) => (*user_ref, *client_order_id),
            _ => return,
        };
        let trigger = Terms::decode(&text).trigger;
        let mut linked = None;
        self.accounts[account].handed.retain(|number, handed| {
            if trigger == Terms::trigger_of(*number) {
                for part in handed.parts.iter_mut().filter(|part| part.user_ref == user_ref.0) {
                    part.is_bounced = true;
                    linked = handed.order.extra.clone();
                }
                handed.parts.retain(|part| part.user_ref != user_ref.0 || is_bounced);
            }
            !handed.parts.is_empty()
        });
        // What it made is linked as it was.
        let known = entered.and_then(|number| self.accounts[account].order_mut(number));
        if let (Some(order), Some(link)) = (known.filter(|order| order.extra.is_none()), linked) {
            let (oco_ref, primary_id) = (link.oco_ref, link.primary_id);
            order.extra = Some(Box::new(Extra { oco_ref, primary_id, ..Extra::default() }));
        }
    }

    /// What was let go by the engine, because it would have taken, was entered again; or is over where that was refused.
    pub(super) fn follow_bounced(&mut self, account: usize, trigger: u32, entered: Option<Qty>) {
        let numbers = self.accounts[account].handed.keys();
        let number = numbers.copied().find(|number| trigger != 0 && Terms::trigger_of(*number) == trigger);
        match (number, entered) {
            (Some(number), Some(qty)) => self.hand_over_part(account, number, qty),
            (Some(number), None) => self.decide(&Record::WaitsNoMore { number }),
            (None, _) => {}
        }
    }

    /// An order waits no more: what the engine let go of it is over too.
    pub(super) fn forget_bounced(&mut self, number: u64) {
        for known in &mut self.accounts {
            known.handed.retain(|own, handed| {
                if *own == number {
                    handed.parts.retain(|part| !part.is_bounced);
                }
                !handed.parts.is_empty()
            });
        }
    }

    /// At the start: what was handed over and is not in the log waits again, and is entered again with the next prices.
    pub(super) fn put_back_handed(&mut self) {
        for account in 0..self.accounts.len() {
            for (number, handed) in std::mem::take(&mut self.accounts[account].handed) {
                let lost: u64 = handed.parts.iter().map(|part| part.qty.0).sum();
                let mut order = match self.accounts[account].waiting.remove(&number) {
                    Some(order) => order,
                    None => handed.order,
                };
                order.state = OrderState::Untriggered;
                if let Some(extra) = &mut order.extra {
                    extra.released.0 = extra.released.0.saturating_sub(lost);
                }
                if order.trigger.is_some() && number & TRIGGER_BIT != 0 {
                    self.accounts[account].overdue.insert(number);
                }
                self.keep_waiting(account, order);
            }
        }
    }
}
