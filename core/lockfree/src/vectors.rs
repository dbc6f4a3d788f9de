//! The same code compiled for several vector widths of the CPU; the widest available one runs.
//!
//! The compiler turns loops over arrays into vector instructions of the width that it may assume: 16 bytes on
//! every x86-64. In [`Width::run`] it may assume a wider one. Only speed depends on the width: the same
//! additions and multiplications are done in the same order, and none is fused with another.
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

/// Work that benefits from wide vectors.
///
/// `run` and every function that it calls must be `#[inline(always)]`: others get the baseline width.
pub trait Work {
    /// Result of the work.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// A vector width that this CPU has; values exist only for available widths.
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
    /// The width of every CPU of this architecture: 16 bytes on x86-64 and aarch64.
    pub const BASELINE: Width = Width(Set::Baseline);

    /// The widest width that this CPU has. It is detected once per process; later calls only load the result.
    #[must_use]
    pub fn widest() -> Width {
        Width::available().last().unwrap_or(Width::BASELINE)
    }

    /// All widths that this CPU has, ascending.
    pub fn available() -> impl Iterator<Item = Width> {
        std::iter::once(Width::BASELINE).chain(wider())
    }

    /// Bytes per vector.
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
            // SAFETY: only `wider` creates a width other than the baseline, after checking that the CPU has
            // the instructions.
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
