//! The CPU's time-stamp, pause, prefetch and byte comparison instructions behind safe functions.
//!
//! On x86-64 and aarch64 each of the first three is one or two instructions. Elsewhere, and under Miri, which
//! has no machine instructions, the time stamp is the system's monotonic clock and prefetches do nothing.
//! Bytes are compared 16 at a time on x86-64 and 8 at a time elsewhere.

/// Reads the time-stamp counter.
///
/// Returns ticks of an unknown but constant rate since an unknown start; the crate in `io/agent` measures the
/// rate and converts to nanoseconds. The CPU may read the counter some tens of instructions early or late,
/// which is acceptable for time stamps of messages. See [`rdtsc_ordered`] for timing a short piece of code.
#[inline(always)]
#[must_use]
pub fn rdtsc() -> u64 {
    arch::rdtsc()
}

/// Reads the time-stamp counter after all earlier instructions have finished.
#[inline(always)]
#[must_use]
pub fn rdtsc_ordered() -> u64 {
    arch::rdtsc_ordered()
}

/// Hints to the CPU that this is a spin loop: saves power and frees resources for a sibling thread.
///
/// Takes 4 to 140 cycles on x86-64, depending on the model, which add to the latency of the waiting loop.
#[inline(always)]
pub fn pause() {
    core::hint::spin_loop();
}

/// Prefetches the line that holds the first byte of `value`, for reading.
#[inline(always)]
pub fn prefetch_read<T>(value: &T) {
    arch::prefetch_read(core::ptr::from_ref(value));
}

/// Prefetches every cache line of a value that is aligned to a line, for reading.
#[inline(always)]
pub fn prefetch_lines_read<T>(value: &T) {
    let first = core::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(64) {
        arch::prefetch_read(first.wrapping_add(offset));
    }
}

/// Prefetches every cache line of a value, for writing.
#[inline(always)]
pub fn prefetch_lines_write<T>(value: &T) {
    let first = core::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(64) {
        arch::prefetch_write(first.wrapping_add(offset).cast_mut());
    }
    arch::prefetch_write(first.wrapping_add(size_of::<T>().saturating_sub(1)).cast_mut());
}

/// Prefetches the element at `first + count` for writing, a cache line for every 64 bytes. The address may be
/// invalid, so a caller need not check for the end of its ring.
#[inline(always)]
pub fn prefetch_write_ahead<T>(first: *const T, count: usize) {
    let element = first.wrapping_add(count).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(64) {
        arch::prefetch_write(element.wrapping_add(offset).cast_mut());
    }
}

/// Prefetches `slice[index]` for reading. `index` is not checked: out of range it has no effect.
#[inline(always)]
pub fn prefetch_index<T>(slice: &[T], index: usize) {
    arch::prefetch_read(slice.as_ptr().wrapping_add(index));
}

/// Returns a mask with one bit per byte, bit 0 for the first byte. A bit is set if its byte is not an ASCII
/// digit; the bits after the last byte are set too.
///
/// Supports 16, 32, 48 or 64 bytes.
#[inline(always)]
#[must_use]
pub fn non_digits<const N: usize>(bytes: &[u8; N]) -> u64 {
    const { assert!(N.is_multiple_of(16) && N > 0 && N <= 64, "16, 32, 48 or 64 bytes") };
    arch::non_digits(bytes)
}

/// Returns a mask with one bit per byte, bit 0 for the first byte. A bit is set where a JSON string ends or
/// is not plain text: at a quote, a backslash or a control character.
#[inline(always)]
#[must_use]
pub fn string_stops(bytes: &[u8; 16]) -> u16 {
    arch::string_stops(bytes)
}

/// [`string_stops`] without special instructions.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline]
fn portable_string_stops(bytes: &[u8; 16]) -> u16 {
    let is_stop = |byte: &u8| u16::from(matches!(byte, b'"' | b'\\' | 0..0x20));
    bytes.iter().rev().fold(0, |stops, byte| stops << 1 | is_stop(byte))
}

/// [`non_digits`] without special instructions, eight bytes at a time.
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline]
fn portable_non_digits<const N: usize>(bytes: &[u8; N]) -> u64 {
    const LEN: usize = size_of::<u64>();
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; LEN]);
    const LOW_BITS: u64 = u64::from_ne_bytes([0x7f; LEN]);
    /// Addend that sets the highest bit of each byte from 10 to 127, and of no byte below 10.
    const ABOVE_NINE: u64 = u64::from_ne_bytes([0x80 - 10; LEN]);
    /// Factor that moves the highest bits of eight bytes into the highest byte.
    const GATHER: u64 = 0x0002_0408_1020_4081;
    bytes.as_chunks().0.iter().rev().fold(!0, |places: u64, word| {
        let values = u64::from_le_bytes(*word) ^ ZEROS;
        let high_bits = (values & LOW_BITS).wrapping_add(ABOVE_NINE) | values;
        places << LEN | (high_bits & !LOW_BITS).wrapping_mul(GATHER) >> (u64::BITS - LEN as u32)
    })
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod arch {
    use core::arch::asm;
    use core::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_cmpeq_epi8, _mm_lfence, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
        _mm_or_si128, _mm_prefetch, _mm_set1_epi8, _mm_xor_si128, _rdtsc,
    };

    #[inline(always)]
    pub(super) fn rdtsc() -> u64 {
        // SAFETY: every x86-64 CPU has the instruction and Linux leaves it enabled for programs.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    pub(super) fn rdtsc_ordered() -> u64 {
        // SAFETY: as above; `lfence` is part of SSE2, which every x86-64 CPU has.
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    }

    #[inline(always)]
    pub(super) fn prefetch_read<T>(address: *const T) {
        // SAFETY: a prefetch is a hint that cannot fault at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    /// Not the intrinsic with a hint to write: the compiler turns it into a prefetch for reading, unless it
    /// compiles for a newer CPU. A line fetched so stays shared, and a write still waits for the other core.
    #[inline(always)]
    pub(super) fn prefetch_write<T>(address: *mut T) {
        // SAFETY: a prefetch is a hint that cannot fault at any address. Older CPUs take it for a `nop`.
        unsafe { asm!("prefetchw [{}]", in(reg) address, options(readonly, nostack, preserves_flags)) };
    }

    #[inline(always)]
    pub(super) fn non_digits<const N: usize>(bytes: &[u8; N]) -> u64 {
        let digits = bytes.as_chunks::<16>().0.iter().rev().fold(0, |places, chunk| {
            // SAFETY: the instructions are part of SSE2, which every x86-64 CPU has, and the unaligned load
            // reads the sixteen bytes of the chunk.
            let mask = unsafe {
                let values = _mm_xor_si128(
                    _mm_loadu_si128(chunk.as_ptr().cast::<__m128i>()),
                    _mm_set1_epi8(b'0'.cast_signed()),
                );
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values))
            };
            places << 16 | u64::from(mask.cast_unsigned())
        });
        !digits
    }

    #[inline(always)]
    pub(super) fn string_stops(bytes: &[u8; 16]) -> u16 {
        // SAFETY: the instructions are part of SSE2, which every x86-64 CPU has, and the unaligned load reads
        // the sixteen bytes of the array.
        let mask = unsafe {
            let values = _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>());
            let quotes = _mm_cmpeq_epi8(values, _mm_set1_epi8(b'"'.cast_signed()));
            let backslashes = _mm_cmpeq_epi8(values, _mm_set1_epi8(b'\\'.cast_signed()));
            let controls = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(0x1f)), values);
            _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), controls))
        };
        mask as u16
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod arch {
    use core::arch::asm;

    #[inline(always)]
    pub(super) fn rdtsc() -> u64 {
        let ticks: u64;
        // SAFETY: the virtual counter is readable by programs on Linux; nothing else is touched.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }

    #[inline(always)]
    pub(super) fn rdtsc_ordered() -> u64 {
        let ticks: u64;
        // SAFETY: as above; `isb` waits until the instructions before it have finished.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }

    #[inline(always)]
    pub(super) fn prefetch_read<T>(address: *const T) {
        // SAFETY: a prefetch is a hint that cannot fault at any address.
        unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags)) };
    }

    #[inline(always)]
    pub(super) fn prefetch_write<T>(address: *mut T) {
        // SAFETY: a prefetch is a hint that cannot fault at any address.
        unsafe { asm!("prfm pstl1keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags)) };
    }

    pub(super) use super::{portable_non_digits as non_digits, portable_string_stops as string_stops};
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod arch {
    use std::{sync::OnceLock, time::Instant};

    // Miri and other architectures use the system's clock in place of a time-stamp counter.
    #[allow(clippy::disallowed_methods)]
    pub(super) fn rdtsc() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        let elapsed = START.get_or_init(Instant::now).elapsed();
        u64::try_from(elapsed.as_nanos()).expect("584 years do not pass")
    }

    pub(super) fn rdtsc_ordered() -> u64 {
        rdtsc()
    }

    pub(super) fn prefetch_read<T>(_: *const T) {}

    pub(super) fn prefetch_write<T>(_: *mut T) {}

    pub(super) use super::{portable_non_digits as non_digits, portable_string_stops as string_stops};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All values of a byte; under Miri, which checks every access and is slow, only every 15th.
    fn bytes() -> impl Iterator<Item = u8> {
        (0..=u8::MAX).step_by(if cfg!(miri) { 15 } else { 1 })
    }

    #[test]
    fn the_counter_advances() {
        let start = rdtsc_ordered();
        while rdtsc() == start {
            pause();
        }
        assert!(rdtsc_ordered() > start);
    }

    #[test]
    fn only_ten_bytes_are_digits_at_any_position() {
        for byte in bytes() {
            for place in 0..64 {
                let mut bytes = *b"0123456789012345678901234567890123456789012345678901234567890123";
                bytes[place] = byte;
                let expected = u64::from(!byte.is_ascii_digit()) << place;
                assert_eq!(non_digits(&bytes), expected, "{byte} at {place}");
                assert_eq!(portable_non_digits(&bytes), expected, "{byte} at {place}");
                let (first, behind): (&[u8; 32], u64) = (bytes.first_chunk().unwrap(), !0 << 32);
                let expected = expected | behind;
                assert_eq!(non_digits(first), expected, "{byte} at {place} or not");
                assert_eq!(portable_non_digits(first), expected, "{byte} at {place} or not");
            }
        }
    }

    #[test]
    fn adjacent_digits_and_non_digits_are_distinguished() {
        // Every pattern of digits and non-digits in eight bytes, to detect carries between bytes.
        for bits in bytes().map(u64::from) {
            for others in [[b'/', b':'], [b'\xff', b'\x80'], [b'\0', b'\xb0']] {
                let bytes: [u8; 64] = std::array::from_fn(|place| match bits >> (place % 8) & 1 {
                    1 => others[place / 8 % 2],
                    _ => [b'9', b'0'][place % 2],
                });
                let expected = u64::from_ne_bytes([bits as u8; 8]);
                assert_eq!((non_digits(&bytes), portable_non_digits(&bytes)), (expected, expected), "{bits}");
            }
        }
    }

    #[test]
    fn strings_stop_at_quotes_backslashes_and_control_characters() {
        for byte in bytes() {
            for place in 0..16 {
                let mut bytes = *b"BTC-PERPETUAL \x7f\xff";
                bytes[place] = byte;
                let expected = u16::from(matches!(byte, b'"' | b'\\' | 0..0x20)) << place;
                assert_eq!(string_stops(&bytes), expected, "{byte} at {place}");
                assert_eq!(portable_string_stops(&bytes), expected, "{byte} at {place}");
            }
        }
        assert_eq!(string_stops(b"\"\\\0\x1f !#[]\x80ab\"\"x\\"), 0b1011_0000_0000_1111);
    }

    #[test]
    fn a_prefetch_changes_nothing_in_range_or_out() {
        let values = [1_u64, 2, 3];
        prefetch_read(&values[0]);
        prefetch_lines_read(&values);
        prefetch_lines_write(&values);
        for index in [0, 2, 3, usize::MAX] {
            prefetch_index(&values, index);
            prefetch_write_ahead(&values[0], index);
        }
        prefetch_index::<u64>(&[], 0);
        assert_eq!(values, [1, 2, 3]);
    }
}
