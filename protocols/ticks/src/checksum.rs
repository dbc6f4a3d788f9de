//! Checksums of one message, and of many ticks in parallel.
//!
//! The CPU's CRC instruction takes three cycles for eight bytes, but the CPU can start one in every cycle:
//! computing the checksums of several messages in parallel is three times as fast.

use tickpath_lockfree::crc32c;

use tickpath_types::Nanos;

use crate::message::{CHECKSUM_LEN, Message, TICK_LEN, Tick, send_delay_ns};

/// Returns the message with its checksum filled.
#[must_use]
pub fn with_checksum<M: Message>(mut message: M) -> M {
    if let Some((bytes, checksum)) = message.as_mut_bytes().split_last_chunk_mut::<CHECKSUM_LEN>() {
        *checksum = crc32c::checksum(bytes).to_le_bytes();
    }
    message
}

/// Fills the checksums of many ticks.
#[inline]
pub fn fill_checksums(ticks: &mut [Tick]) {
    match crc32c::Instruction::detect() {
        Some(step) => ticks.iter_mut().for_each(|tick| fill_checksum(step, tick)),
        None => ticks.iter_mut().for_each(|tick| fill_checksum(crc32c::Table, tick)),
    }
}

/// Fills each tick's send delay, the time from its creation to `ts_send`, and then its checksum.
#[inline]
pub fn fill_delays_and_checksums(ticks: &mut [Tick], ts_send: Nanos) {
    match crc32c::Instruction::detect() {
        Some(step) => ticks.iter_mut().for_each(|tick| fill_delay_and_checksum(step, tick, ts_send)),
        None => ticks.iter_mut().for_each(|tick| fill_delay_and_checksum(crc32c::Table, tick, ts_send)),
    }
}

#[inline(always)]
fn fill_delay_and_checksum<S: crc32c::Step>(step: S, tick: &mut Tick, ts_send: Nanos) {
    tick.send_delay_ns = send_delay_ns(Nanos(tick.ts_generate.get()), ts_send).into();
    fill_checksum(step, tick);
}

#[inline(always)]
fn fill_checksum<S: crc32c::Step>(step: S, tick: &mut Tick) {
    let checksum = tick_checksum(step, tick);
    tick.checksum = checksum.into();
}

/// Computes the checksum of a tick from all bytes before its checksum field.
#[inline(always)]
pub(crate) fn tick_checksum<S: crc32c::Step>(step: S, tick: &Tick) -> u32 {
    let bytes: &[u8; TICK_LEN] = zerocopy::transmute_ref!(tick);
    let (words, _) = bytes.as_chunks::<8>();
    let crc = words[..6].iter().fold(u32::MAX, |crc, word| step.word(crc, u64::from_le_bytes(*word)));
    !step.half(crc, tick.send_delay_ns.get())
}

/// Returns true when the last four bytes of a message are the checksum of the bytes before them.
#[inline]
pub(crate) fn is_checksum_valid(message: &[u8]) -> bool {
    message
        .split_last_chunk::<CHECKSUM_LEN>()
        .is_some_and(|(bytes, checksum)| crc32c::checksum(bytes) == u32::from_le_bytes(*checksum))
}
