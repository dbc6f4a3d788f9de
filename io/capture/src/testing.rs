//! What several tests need.

/// Numbers below a bound, the same in every run.
///
/// Source: Marsaglia, "Xorshift RNGs" (2003).
pub(crate) fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize % below
    }
}
