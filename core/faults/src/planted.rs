//! The planted fault, at most one per thread.

use std::cell::Cell;

use crate::Fault;

/// A failpoint with `for number` is active for one number in this many.
const ACTIVE_EVERY: u64 = 16;

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Keeps a fault planted until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it removes the fault"]
pub struct Planted(());

/// Plants a fault in all code that this thread runs, and replaces the previous fault.
pub fn plant(fault: Fault) -> Planted {
    PLANTED.set(Some(fault));
    Planted(())
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

/// True while this thread has the fault planted; with a number, only for one number in sixteen.
#[doc(hidden)]
#[must_use]
pub fn is_active(fault: Fault, number: Option<u64>) -> bool {
    PLANTED.get() == Some(fault) && number.is_none_or(|number| number % ACTIVE_EVERY == ACTIVE_EVERY - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fault_is_active_by_default() {
        assert!(!Fault::ALL.iter().any(|fault| is_active(*fault, None)));
    }

    #[test]
    fn each_form_is_active_while_planted() {
        let run = |number: u64| {
            let events = vec![];
            let price = 10;
            crate::failpoint!(TradeAtTakersPrice: price = 11);
            crate::failpoint!(TradeAtTakersPrice: mut events => events.push(price));
            crate::failpoint!(TradeAtTakersPrice: price = 12, for number);
            crate::failpoint!(TradeAtTakersPrice => events.push(price), for number);
            crate::failpoint!(TradeUntold => return vec![]);
            events.push(price);
            events
        };
        assert_eq!(run(15), [10]);
        let planted = plant(Fault::TradeAtTakersPrice);
        assert_eq!(run(14), [11, 11]);
        assert_eq!(run(15), [11, 12, 12]);
        let again = plant(Fault::TradeUntold);
        assert_eq!(run(15), []);
        drop((planted, again));
        assert_eq!(run(15), [10]);
    }
}
