//! When orders expire.

use tickpath_types::Nanos;

const SECONDS: usize = 24 * 3_600;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// No order expires.
const NEVER: u32 = u32::MAX;

/// The seconds of the day at which an order expires, if it is still open: a bit for each, so that there may be any
/// number of orders.
pub(super) struct Expiries {
    seconds: Box<[u64]>,
    next: u32,
}

impl Expiries {
    pub(super) fn none() -> Expiries {
        Expiries { seconds: vec![0; SECONDS.div_ceil(64)].into(), next: NEVER }
    }

    /// Takes note of an order; one that expires after midnight ends with the day.
    pub(super) fn note(&mut self, second: u32) {
        if let Some(word) = self.seconds.get_mut(second as usize / 64) {
            *word |= 1 << (second % 64);
            self.next = self.next.min(second);
        }
    }

    /// True when orders may have expired since the last look.
    pub(super) fn are_due(&mut self, now: Nanos) -> bool {
        let second = (now.time_of_day().0 / NANOS_PER_SECOND) as u32;
        if self.next > second {
            return false;
        }
        let last = second as usize / 64;
        self.seconds[..last].fill(0);
        self.seconds[last] &= !(u64::MAX >> (63 - second % 64));
        let word = self.seconds.iter().position(|word| *word != 0);
        self.next = word.map_or(NEVER, |place| 64 * place as u32 + self.seconds[place].trailing_zeros());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_is_due_once_when_it_comes() {
        let mut expiries = Expiries::none();
        let at = |second: u64| Nanos::DAY + Nanos::from_secs(second);
        assert!(!expiries.are_due(at(86_399)));
        for second in [63, 64, 64, 127, 5_000, 86_399, 86_400, u32::MAX - 1] {
            expiries.note(second);
        }
        let due: Vec<u64> = (0..86_400).filter(|second| expiries.are_due(at(*second))).collect();
        assert_eq!(due, [63, 64, 127, 5_000, 86_399]);
        expiries.note(10);
        expiries.note(20);
        expiries.note(30);
        assert!(expiries.are_due(at(25)) && !expiries.are_due(at(29)) && expiries.are_due(at(30)));
    }
}
