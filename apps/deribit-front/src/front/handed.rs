//! Released orders: triggered or linked orders sent to the engine, kept until the log contains them.
//!
//! A release is recorded with the engine number of the new order. If the venue stops before the log contains
//! that number, the order waits again after the restart. It is entered again at once, because its trigger
//! price was reached. If the log contains it, the release is complete.

use tickpath_deribit::codes::OrderState;
use tickpath_exchange::LogCommand;
use tickpath_matching::CommandKind;
use tickpath_types::{OrderRequest, Qty};

use super::Front;
use crate::order::{Extra, Order, TRIGGER_BIT, Terms};
use crate::record::Record;

/// An order released as a whole or in parts.
pub(crate) struct Handed {
    /// The order before its release.
    order: Order,
    /// Released parts that the log does not contain yet.
    parts: Vec<Part>,
}

struct Part {
    qty: Qty,
    /// Engine number of the part.
    user_ref: u32,
    /// True if the engine removed it because it would have taken liquidity; it is re-entered or rejected.
    is_bounced: bool,
}

impl Front {
    /// Records that a part of a waiting order was entered as the account's latest request.
    pub(super) fn hand_over_part(&mut self, account: usize, number: u64, qty: Qty) {
        let user_ref = u32::try_from(self.accounts[account].next_ref - 1).unwrap_or(0);
        self.write_down(Record::HandedOver { number, qty: qty.0, user_ref });
        self.take_handed(number, qty, user_ref, false);
    }

    /// Applies this record. During the replay it also counts the part as released by a linked order.
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

    /// Removes the parts that a log command of an account confirms.
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
            Some(CommandKind::GatewayReject { user_ref, client_order_id, .. }) => {
                (*user_ref, *client_order_id)
            }
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
        // The entered order inherits the links of the released order.
        let known = entered.and_then(|number| self.accounts[account].order_mut(number));
        if let (Some(order), Some(link)) = (known.filter(|order| order.extra.is_none()), linked) {
            let (oco_ref, primary_id) = (link.oco_ref, link.primary_id);
            order.extra = Some(Box::new(Extra { oco_ref, primary_id, ..Extra::default() }));
        }
    }

    /// Records the re-entry of a removed post-only order, or its end if the re-entry was rejected.
    pub(super) fn follow_bounced(&mut self, account: usize, trigger: u32, entered: Option<Qty>) {
        let numbers = self.accounts[account].handed.keys();
        let number = numbers.copied().find(|number| trigger != 0 && Terms::trigger_of(*number) == trigger);
        match (number, entered) {
            (Some(number), Some(qty)) => self.hand_over_part(account, number, qty),
            (Some(number), None) => self.decide(&Record::WaitsNoMore { number }),
            (None, _) => {}
        }
    }

    /// Forgets the removed parts of an order that no longer waits.
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

    /// At the start: parts missing in the log wait again, and the next price update enters them again.
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
