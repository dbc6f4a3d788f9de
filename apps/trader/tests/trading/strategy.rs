//! A strategy that executes scripted actions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tickpath_trading::{Bbo, Context, NewOrder, OrderChange, OrderUpdate, Refusal, Strategy};
use tickpath_types::{InstrumentId, Nanos, Price, Qty, UserRefNum};

use crate::site::ALPHA;

/// A scripted action.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Enter(NewOrder),
    Replace(UserRefNum, Qty, Price),
    Cancel(UserRefNum),
}

/// State shared by the test and the strategy.
#[derive(Clone, Default)]
pub struct Script {
    actions: Arc<Mutex<VecDeque<Action>>>,
    log: Arc<Mutex<Log>>,
}

/// Record of the strategy's events and actions.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub starts: u32,
    pub bbo: Bbo,
    pub sent: Vec<Result<UserRefNum, Refusal>>,
    pub changes: Vec<(u32, OrderChange)>,
}

impl Script {
    pub fn enqueue(&self, action: Action) {
        self.actions.lock().unwrap().push_back(action);
    }

    pub fn log(&self) -> Log {
        self.log.lock().unwrap().clone()
    }

    /// Returns the changes of one order so far.
    pub fn changes_of(&self, user_ref: u32) -> Vec<OrderChange> {
        self.log().changes.iter().filter(|(of, _)| *of == user_ref).map(|(_, change)| *change).collect()
    }
}

impl Strategy for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn on_start(&mut self, _: &mut Context<'_>) {
        self.log.lock().unwrap().starts += 1;
    }

    fn on_market(&mut self, _: InstrumentId, cx: &mut Context<'_>) {
        self.log.lock().unwrap().bbo = cx.bbo(ALPHA);
    }

    fn on_order(&mut self, update: &OrderUpdate, _: &mut Context<'_>) {
        self.log.lock().unwrap().changes.push((update.order.user_ref.0, update.change));
    }

    fn on_timer(&mut self, _: Nanos, cx: &mut Context<'_>) {
        while let Some(action) = self.actions.lock().unwrap().pop_front() {
            let sent = match action {
                Action::Enter(order) => cx.enter(&order),
                Action::Replace(user_ref, qty, price) => cx.replace(user_ref, qty, price),
                Action::Cancel(user_ref) => cx.cancel(user_ref).map(|()| user_ref),
            };
            self.log.lock().unwrap().sent.push(sent);
        }
    }
}
