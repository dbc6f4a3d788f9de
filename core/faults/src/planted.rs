//! The fault that a test has chosen, for its own thread.

use std::cell::Cell;

use crate::Fault;

thread_local! {
    static CHOSEN: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// A fault is there as long as this is.
#[derive(Debug)]
#[must_use = "the fault is gone with it"]
pub struct Planted(());

/// Plants a fault in everything that this thread runs, in place of the one that was there.
pub fn plant(fault: Fault) -> Planted {
    CHOSEN.set(Some(fault));
    Planted(())
}

impl Drop for Planted {
    fn drop(&mut self) {
        CHOSEN.set(None);
    }
}

pub(crate) fn is_planted(fault: Fault) -> bool {
    CHOSEN.get() == Some(fault)
}
