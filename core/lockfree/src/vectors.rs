//! The same code compiled for several widths of the CPU's vectors, of which the widest that it has is run.
//!
//! Loops over arrays are turned into vector instructions by the compiler, as wide as it may assume: 16 bytes on every
//! x86-64. [`Width::run`] is where it may assume more. Nothing but speed depends on the width: the same additions and
//! multiplications are done in the same order, none is fused with another.
//!
//! ```
//! use tickpath_lockfree::vectors::{Width, Work};
//!
//! struct Doubled<'a>(&'a mut [u32; 64]);
//!
//! impl Work for Doubled<'_> {
//!     type Output = ();
//!
//!     #[inline(always)]
//!     fn run(self) {
//!         self.0.iter_mut().for_each(|value| *value *= 2);
//!     }
//! }
//!
//! let mut values = [21; 64];
//! Width::widest().run(Doubled(&mut values));
//! assert_eq!(values, [42; 64]);
//! ```

/// Work that gains by wide vectors.
///
/// `run`, and whatever it calls, must be `#[inline(always)]`: what is not inlined is compiled once, for every CPU.
pub trait Work {
    /// What comes out.
    type Output;

    /// Does it.
    fn run(self) -> Self::Output;
}

/// Widths that this CPU has: one cannot be made elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Baseline,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512,
}

impl Width {
    /// What every CPU of this kind has: 16 bytes on x86-64 and aarch64.
    pub const BASELINE: Width = Width(Set::Baseline);

    /// The widest that this CPU has. Looks once in the life of the process; afterwards one load.
    #[must_use]
    pub fn widest() -> Width {
        Width::available().last().unwrap_or(Width::BASELINE)
    }

    /// All that this CPU has, narrow ones first.
    pub fn available() -> impl Iterator<Item = Width> {
        std::iter::once(Width::BASELINE).chain(wider())
    }

    /// Bytes of a vector.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self.0 {
            Set::Baseline => 16,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Set::Avx2 => 32,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Set::Avx512 => 64,
        }
    }

    /// Does the work with vectors of this width.
    #[inline(always)]
    pub fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Set::Baseline => work.run(),
            // SAFETY: a width other than the baseline is made by `wider` alone, where the CPU said that it has the
            // instructions.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Set::Avx2 => unsafe { run_avx2(work) },
            // SAFETY: as above.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Set::Avx512 => unsafe { run_avx512(work) },
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn wider() -> impl Iterator<Item = Width> {
    let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
    let has_avx512 = has_avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    let avx2 = has_avx2.then_some(Width(Set::Avx2));
    avx2.into_iter().chain(has_avx512.then_some(Width(Set::Avx512)))
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
fn wider() -> impl Iterator<Item = Width> {
    std::iter::empty()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi2")]
fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,bmi2,avx512f,avx512dq,avx512bw,avx512vl")]
fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum<'a>(&'a [f32; 1_000]);

    impl Work for Sum<'_> {
        type Output = [f32; 8];

        #[inline(always)]
        fn run(self) -> [f32; 8] {
            self.0.as_chunks::<8>().0.iter().fold([0.0; 8], |sums, values| {
                std::array::from_fn(|lane| sums[lane] * 0.9 + values[lane].sqrt())
            })
        }
    }

    #[test]
    fn every_width_gives_the_same() {
        let values = std::array::from_fn(|place| place as f32 * 0.37);
        let expected = Width::BASELINE.run(Sum(&values));
        for width in Width::available() {
            assert_eq!(width.run(Sum(&values)), expected, "{width:?}");
        }
    }

    #[test]
    fn widths_grow_and_the_last_is_the_widest() {
        let bytes: Vec<_> = Width::available().map(Width::bytes).collect();
        assert!(bytes.is_sorted() && bytes[0] == 16, "{bytes:?}");
        assert_eq!(bytes.last(), Some(&Width::widest().bytes()));
    }
}
