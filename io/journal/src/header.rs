//! Headers of the journal's files. Fields are little-endian; the last four bytes are a CRC-32C of the rest.

use crate::checksum::checksum;

/// Returns a header of `N` bytes that begins with its magic bytes, version and length; the rest is zero.
pub(crate) fn begin<const N: usize>(magic: [u8; 8], version: u16) -> [u8; N] {
    let mut header = [0; N];
    header[..8].copy_from_slice(&magic);
    header[8..10].copy_from_slice(&version.to_le_bytes());
    header[10..12].copy_from_slice(&(N as u16).to_le_bytes());
    header
}

/// Writes a header's checksum into its last bytes, and returns it.
#[inline]
pub(crate) fn write_checksum(header: &mut [u8]) -> u32 {
    let end = header.len() - 4;
    let checksum = checksum(0, &header[..end]);
    header[end..].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Returns the checksum at the end of a header, if it is valid.
pub(crate) fn valid_checksum(header: &[u8]) -> Option<u32> {
    let end = header.len() - 4;
    Some(checksum(0, &header[..end])).filter(|checksum| *checksum == u32_at(header, end))
}

/// Returns the `N` bytes of a header at offset `at`.
///
/// # Panics
/// When the header is too short.
#[inline]
pub(crate) fn chunk<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    *header[at..].first_chunk().expect("the length was checked")
}

#[inline]
pub(crate) fn u16_at(header: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(chunk(header, at))
}

#[inline]
pub(crate) fn u32_at(header: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(chunk(header, at))
}

#[inline]
pub(crate) fn u64_at(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(chunk(header, at))
}
