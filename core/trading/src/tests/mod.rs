//! Tests of the order manager, the engine and the strategies; [`Rig`] shows sent requests as short texts.

mod engine;
mod maker;
mod orders;
mod random;
mod repeatable;
mod taker;
mod warm_up;

use tickpath_types::{InstrumentId, Nanos};

use crate::testing::Rig;
use crate::{Context, OrderUpdate, Strategy};

type Action = Box<dyn FnOnce(&mut Context<'_>)>;

/// A strategy that runs a test's closure on the next market update and records all order updates.
pub struct Scripted {
    next: Option<Action>,
    pub updates: Vec<OrderUpdate>,
    pub starts: usize,
    pub timers: usize,
}

impl Scripted {
    pub fn new() -> Scripted {
        Scripted { next: None, updates: Vec::new(), starts: 0, timers: 0 }
    }
}

impl Strategy for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn on_start(&mut self, _: &mut Context<'_>) {
        self.starts += 1;
    }

    fn on_market(&mut self, _: InstrumentId, cx: &mut Context<'_>) {
        if let Some(next) = self.next.take() {
            next(cx);
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, _: &mut Context<'_>) {
        self.updates.push(*update);
    }

    fn on_timer(&mut self, _: Nanos, _: &mut Context<'_>) {
        self.timers += 1;
    }
}

impl Rig<Scripted> {
    /// Runs `act` on a market update of instrument 1; returns the sent requests.
    pub fn act(&mut self, act: impl FnOnce(&mut Context<'_>) + 'static) -> String {
        self.engine.strategy_mut().next = Some(Box::new(act));
        self.market(crate::testing::quote(1, (100, 100), (110, 100)))
    }

    /// Returns the latest order update that the strategy received.
    pub fn last_update(&self) -> &OrderUpdate {
        self.engine.strategy().updates.last().expect("it was notified")
    }
}
