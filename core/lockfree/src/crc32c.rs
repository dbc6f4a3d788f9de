//! CRC-32C (Castagnoli), by the CPU's instruction where it has one and by a table elsewhere.
//!
//! For many short messages, detect the instruction once ([`Instruction::detect`]) and write one loop that is
//! generic over [`Step`]: steps are inlined, so that the CPU works on several messages at the same time. A
//! step takes and returns the intermediate checksum: begin with `u32::MAX`, and invert all bits at the end.
//!
//! ```
//! use tickpath_lockfree::crc32c::{self, Step};
//!
//! assert_eq!(crc32c::checksum(b"123456789"), 0xe306_9283);
//! let crc = crc32c::Table.word(u32::MAX, u64::from_le_bytes(*b"12345678"));
//! assert_eq!(!crc32c::Table.byte(crc, b'9'), 0xe306_9283);
//! ```

#[cfg(all(target_arch = "x86_64", not(miri)))]
use core::arch::asm;

/// Returns the CRC-32C of `bytes`: reflected, with an initial value and a final exclusive-or of all ones.
#[inline]
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    match Instruction::detect() {
        Some(step) => checksum_by(step, bytes),
        None => checksum_by(Table, bytes),
    }
}

#[inline(always)]
fn checksum_by<S: Step>(step: S, bytes: &[u8]) -> u32 {
    let (words, mut rest) = bytes.as_chunks::<8>();
    let mut crc = words.iter().fold(u32::MAX, |crc, word| step.word(crc, u64::from_le_bytes(*word)));
    if let Some((half, tail)) = rest.split_first_chunk::<4>() {
        crc = step.half(crc, u32::from_le_bytes(*half));
        rest = tail;
    }
    !rest.iter().fold(crc, |crc, byte| step.byte(crc, *byte))
}

/// A method of adding bytes to a checksum.
pub trait Step: Copy {
    /// Adds eight bytes to the checksum `crc`. The first byte is the lowest one of `word`.
    fn word(self, crc: u32, word: u64) -> u32;
    /// Adds four bytes to the checksum `crc`. The first byte is the lowest one of `half`.
    fn half(self, crc: u32, half: u32) -> u32;
    /// Adds one byte to the checksum `crc`.
    fn byte(self, crc: u32, byte: u8) -> u32;
}

/// The CPU's CRC-32C instruction; a value exists only if the CPU has the instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction(());

impl Instruction {
    /// The instruction, or `None` where the CPU has none: x86-64 before SSE4.2, other architectures, Miri.
    #[inline]
    #[must_use]
    pub fn detect() -> Option<Instruction> {
        is_there().then_some(Instruction(()))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn is_there() -> bool {
    std::arch::is_x86_feature_detected!("sse4.2")
}

// Written in assembly because the compiler's intrinsics are inlined only into functions that enable the
// target feature, and other functions could call them only by `unsafe`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Step for Instruction {
    #[inline(always)]
    fn word(self, crc: u32, word: u64) -> u32 {
        let mut wide = u64::from(crc);
        // SAFETY: the CPU has the instruction, as `self` proves; it changes only the register of `wide`, and
        // clears its upper half. The assertion about that half saves an instruction between two words.
        unsafe {
            asm!("crc32 {0}, {1}", inout(reg) wide, in(reg) word, options(pure, nomem, nostack, preserves_flags));
            core::hint::assert_unchecked(wide <= u64::from(u32::MAX));
        }
        wide as u32
    }

    #[inline(always)]
    fn half(self, mut crc: u32, half: u32) -> u32 {
        // SAFETY: as above.
        unsafe {
            asm!("crc32 {0:e}, {1:e}", inout(reg) crc, in(reg) half, options(pure, nomem, nostack, preserves_flags));
        }
        crc
    }

    #[inline(always)]
    fn byte(self, mut crc: u32, byte: u8) -> u32 {
        // SAFETY: as above.
        unsafe {
            asm!("crc32 {0:e}, {1}", inout(reg) crc, in(reg_byte) byte, options(pure, nomem, nostack, preserves_flags));
        }
        crc
    }
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
fn is_there() -> bool {
    false
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
impl Step for Instruction {
    fn word(self, crc: u32, word: u64) -> u32 {
        Table.word(crc, word)
    }

    fn half(self, crc: u32, half: u32) -> u32 {
        Table.half(crc, half)
    }

    fn byte(self, crc: u32, byte: u8) -> u32 {
        Table.byte(crc, byte)
    }
}

/// Lookup in eight tables, one per byte of a word. Portable, a few times slower than [`Instruction`].
#[derive(Clone, Copy, Debug)]
pub struct Table;

/// The CRC-32C polynomial, with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[n][byte]`: contribution of a byte to the checksum when `n` bytes follow it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut following = 1;
    while following < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[following - 1][byte];
            tables[following][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        following += 1;
    }
    tables
}

#[inline(always)]
fn by_tables<const N: usize>(bytes: [u8; N]) -> u32 {
    let tables = TABLES[..N].iter().rev();
    bytes.iter().zip(tables).fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)])
}

impl Step for Table {
    #[inline]
    fn word(self, crc: u32, word: u64) -> u32 {
        by_tables((word ^ u64::from(crc)).to_le_bytes())
    }

    #[inline]
    fn half(self, crc: u32, half: u32) -> u32 {
        by_tables((half ^ crc).to_le_bytes())
    }

    #[inline]
    fn byte(self, crc: u32, byte: u8) -> u32 {
        crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the checksum bit by bit, from the definition of the polynomial.
    fn plain(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * POLYNOMIAL))
        })
    }

    #[test]
    fn the_check_value_matches_the_catalogue() {
        assert_eq!(plain(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(b""), 0);
    }

    #[test]
    fn instruction_and_tables_match_the_simple_loop_for_every_length() {
        let len = if cfg!(miri) { 24 } else { 200_u32 };
        let bytes: Vec<u8> = (0..len).map(|at| (at * 37 + at / 7) as u8).collect();
        for from in 0..9 {
            for to in from..bytes.len() {
                let expected = plain(&bytes[from..to]);
                assert_eq!(checksum_by(Table, &bytes[from..to]), expected, "{from}..{to}");
                assert_eq!(checksum(&bytes[from..to]), expected, "{from}..{to}");
            }
        }
    }
}
