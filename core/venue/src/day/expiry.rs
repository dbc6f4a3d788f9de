//! Expiry times of orders.

use tickpath_types::Nanos;

const SECONDS: usize = 24 * 3_600;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Value of `Expiries::next` while no expiry is recorded.
const NEVER: Nanos = Nanos(u64::MAX);

/// Set of the seconds of the day at which open orders may expire: a bitmap with one bit per second.
pub(crate) struct Expiries {
    seconds: Box<[u64]>,
    /// The earliest recorded expiry, since midnight.
    next: Nanos,
}

impl Expiries {
    pub(crate) fn none() -> Expiries {
        Expiries { seconds: vec![0; SECONDS.div_ceil(64)].into(), next: NEVER }
    }

    /// Records an expiry at this second of the day. One at 24:00 or later is ignored: the day ends the order.
    #[cold]
    pub(crate) fn add(&mut self, second: u32) {
        if let Some(word) = self.seconds.get_mut(second as usize / 64) {
            *word |= 1 << (second % 64);
            self.next = self.next.min(Nanos::from_secs(second.into()));
        }
    }

    /// True when orders may have expired by this time of day.
    #[inline]
    pub(crate) fn are_due(&self, time_of_day: Nanos) -> bool {
        time_of_day >= self.next
    }

    /// Clears the expiries up to and including this time of day.
    #[cold]
    pub(crate) fn clear_until(&mut self, time_of_day: Nanos) {
        let second = (time_of_day.0 / NANOS_PER_SECOND) as u32;
        let last = second as usize / 64;
        self.seconds[..last].fill(0);
        self.seconds[last] &= !(u64::MAX >> (63 - second % 64));
        let word = self.seconds.iter().position(|word| *word != 0);
        let first = |place: usize| 64 * place as u64 + u64::from(self.seconds[place].trailing_zeros());
        self.next = word.map_or(NEVER, |place| Nanos::from_secs(first(place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether an expiry is due at this second; clears the due expiries.
    fn take(expiries: &mut Expiries, second: u64) -> bool {
        let at = Nanos::from_secs(second);
        let are_due = expiries.are_due(at);
        if are_due {
            expiries.clear_until(at);
        }
        are_due
    }

    #[test]
    fn each_expiry_second_is_due_once() {
        let mut expiries = Expiries::none();
        assert!(!take(&mut expiries, 86_399));
        for second in [63, 64, 64, 127, 5_000, 86_399, 86_400, u32::MAX - 1] {
            expiries.add(second);
        }
        let due: Vec<u64> = (0..86_400).filter(|second| take(&mut expiries, *second)).collect();
        assert_eq!(due, [63, 64, 127, 5_000, 86_399]);
        expiries.add(10);
        expiries.add(20);
        expiries.add(30);
        assert!(take(&mut expiries, 25) && !take(&mut expiries, 29) && take(&mut expiries, 30));
    }

    #[test]
    fn a_second_is_due_with_its_first_nanosecond() {
        let mut expiries = Expiries::none();
        expiries.add(7);
        assert!(!expiries.are_due(Nanos(6_999_999_999)) && expiries.are_due(Nanos(7_000_000_000)));
    }
}
