//! The prices of a side in which most happens, found without a search.

use tickpath_types::ExactDivisor;

/// Prices of a window; a power of two. Enough for what is active in the widest liquid books, and few enough for one
/// bit each to share the cache line of a side with all else that each message needs of it.
pub(super) const WINDOW_LEN: usize = 256;

/// How much better than the best level of its placing a window begins: most of it lies where most levels are.
const LEAD: i64 = 64;

const WORD_BITS: usize = u64::BITS as usize;

/// Distances between neighbouring prices that are kept apart; the prices of a side that needs one more stay out of
/// its window.
const STEPS_MAX: usize = u8::MAX as usize + 1;

/// The step of a window that is nowhere.
const NO_STEP: u8 = 0;

/// How to divide by a distance between prices: exactly, or not at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    size: u64,
    divisor: ExactDivisor,
    /// All ones in the step of a window that is nowhere.
    none: u64,
}

impl Step {
    const NONE: Step = Step { none: u64::MAX, ..Step::new(1) };

    const fn new(size: u64) -> Step {
        Step { size, divisor: ExactDivisor::new(size), none: 0 }
    }

    /// How many steps a distance has, or a very large number when it is no multiple of the step.
    #[inline(always)]
    const fn count(self, distance: u64) -> u64 {
        self.divisor.quotient(distance) | self.none
    }
}

/// The steps in use, of any number of sides.
#[derive(Clone, Debug)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    pub(super) fn new() -> Steps {
        let mut steps = Vec::with_capacity(STEPS_MAX);
        steps.push(Step::NONE);
        Steps(steps)
    }

    /// The number of a step, `None` when there are too many.
    fn number(&mut self, size: u64) -> Option<u8> {
        let known = self.0.iter().skip(1).position(|step| step.size == size);
        if let Some(position) = known {
            return u8::try_from(position + 1).ok();
        }
        let number = u8::try_from(self.0.len()).ok()?;
        self.0.push(Step::new(size));
        Some(number)
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u8) -> Step {
        self.0[usize::from(number)]
    }
}

/// Orders that come to levels outside before a window is placed anew: twice as many as it may have levels to move.
const OUTSIDE_ADDS_MAX: u16 = 2 * WINDOW_LEN as u16;

/// And before it is placed at all: with fewer the distance between neighbouring prices could not be known.
const FIRST_ADDS_MAX: u16 = 32;

/// Which prices a window has, and which of them are open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    open: [u64; WINDOW_LEN / WORD_BITS],
    /// The key of its first price, its worst.
    base: i64,
    step: u8,
    /// True while a level outside may be better than one inside.
    is_led_from_outside: bool,
    /// Orders that may still come to levels outside before the window is placed anew.
    outside_adds_left: u16,
}

impl Window {
    /// No price is in it.
    pub(super) const NOWHERE: Window = Window {
        open: [0; WINDOW_LEN / WORD_BITS],
        base: i64::MIN,
        step: NO_STEP,
        is_led_from_outside: true,
        outside_adds_left: FIRST_ADDS_MAX,
    };

    /// Where a window belongs whose side has the best level `best` and such a distance between levels, all of it
    /// better than `bound`.
    pub(super) fn around(best: i64, step_size: u64, bound: i64, steps: &mut Steps) -> Window {
        let mut place = || {
            let size = i64::try_from(step_size).ok()?;
            let fitting = best.saturating_sub(bound).checked_sub(1)? / size;
            let below = fitting.min(WINDOW_LEN as i64 - LEAD - 1).checked_mul(size)?;
            let base = best.checked_sub(below)?;
            // A window that passed the greatest number would go on with the least ones.
            base.checked_add(size.checked_mul(WINDOW_LEN as i64)?)?;
            let step = steps.number(step_size)?;
            let is_led_from_outside = false;
            let outside_adds_left = OUTSIDE_ADDS_MAX;
            Some(Window { base, step, is_led_from_outside, outside_adds_left, ..Window::NOWHERE })
        };
        place().unwrap_or(Window { outside_adds_left: OUTSIDE_ADDS_MAX, ..Window::NOWHERE })
    }

    /// An order comes to a level outside; true when it is time to place the window anew.
    #[inline]
    pub(super) fn count_outside_add(&mut self) -> bool {
        self.outside_adds_left = self.outside_adds_left.saturating_sub(1);
        self.outside_adds_left == 0
    }

    /// A level is opened outside.
    #[inline]
    pub(super) fn note_outside_level(&mut self, key: i64) {
        self.is_led_from_outside |= key >= self.base;
    }

    /// True while a level outside may be better than one inside.
    #[inline(always)]
    pub(super) const fn is_led_from_outside(&self) -> bool {
        self.is_led_from_outside
    }

    /// The cell of a key, or a very large number when it is outside.
    #[inline(always)]
    pub(super) fn cell(&self, steps: &Steps, key: i64) -> u64 {
        steps.get(self.step).count(key.wrapping_sub(self.base).cast_unsigned())
    }

    /// The key of a cell.
    #[inline(always)]
    pub(super) fn key(&self, steps: &Steps, cell: usize) -> i64 {
        self.base.wrapping_add((cell as u64).wrapping_mul(steps.get(self.step).size).cast_signed())
    }

    #[inline(always)]
    pub(super) fn set(&mut self, cell: usize) {
        self.open[cell / WORD_BITS] |= 1 << (cell % WORD_BITS);
    }

    #[inline(always)]
    pub(super) fn clear(&mut self, cell: usize) {
        self.open[cell / WORD_BITS] &= !(1 << (cell % WORD_BITS));
    }

    /// The best open cell.
    #[inline(always)]
    pub(super) fn best(&self) -> Option<usize> {
        (0..self.open.len()).rev().find_map(|word| {
            let bits = self.open[word];
            (bits != 0).then(|| word * WORD_BITS + bits.ilog2() as usize)
        })
    }

    /// The open cells from the best.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let cell = rest.best()?;
            rest.clear(cell);
            Some(cell)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_counted_in_whole_steps_or_not_at_all() {
        for size in [1, 2, 7, 50, 100, 2_500, 1 << 40, (1 << 47) - 1] {
            let step = Step::new(size);
            for count in [0, 1, 63, 255, 256, 70_000] {
                assert_eq!(step.count(size * count), count);
                for off in (1..size.min(60)).chain([size - 1]).filter(|off| *off != 0) {
                    assert!(step.count(size * count + off) >= WINDOW_LEN as u64, "{count} x {size} + {off}");
                }
            }
            assert!(step.count(0_u64.wrapping_sub(size)) >= WINDOW_LEN as u64, "behind the base");
        }
    }

    #[test]
    fn a_window_holds_its_best_and_what_is_worse_than_its_bound_stays_outside() {
        let mut steps = Steps::new();
        let window = Window::around(10_000, 100, i64::MIN, &mut steps);
        assert_eq!(window.cell(&steps, 10_000), 191);
        assert_eq!(window.key(&steps, 191), 10_000);
        assert_eq!(window.cell(&steps, 10_000 + 64 * 100), 255);
        for outside in [10_000 + 65 * 100, 10_000 - 192 * 100, 10_001, 9_999, i64::MIN, i64::MAX] {
            assert!(window.cell(&steps, outside) >= WINDOW_LEN as u64, "{outside}");
        }
        let bounded = Window::around(10_000, 100, 9_650, &mut steps);
        assert_eq!((bounded.cell(&steps, 10_000), bounded.key(&steps, 0)), (3, 9_700));
        for (best, size) in [(i64::MAX, 100), (i64::MIN, 100), (0, 1 << 60), (i64::MAX - 100, 1)] {
            let nowhere = Window::around(best, size, i64::MIN, &mut steps);
            let inside = nowhere.cell(&steps, best) < WINDOW_LEN as u64;
            // Where it fits at all, its last price is within the range of prices.
            assert!(!inside || nowhere.key(&steps, WINDOW_LEN - 1) >= best, "{best} {size}");
        }
    }

    #[test]
    fn steps_are_kept_apart_up_to_the_bound() {
        let mut steps = Steps::new();
        let numbers: Vec<_> = (1..STEPS_MAX as u64).map(|size| steps.number(size)).collect();
        assert!(numbers.iter().enumerate().all(|(place, number)| *number == Some(place as u8 + 1)));
        assert_eq!(steps.number(STEPS_MAX as u64), None);
        assert_eq!(steps.number(7), Some(7));
    }
}
