//! Reads fields at fixed offsets of a message, without parsing the whole message.

use tickpath_nyse::{SendTime, SequenceNumberReset, SymbolIndexMapping};

pub(super) const NS_PER_SEC: u64 = 1_000_000_000;
/// Offset of the time, in ns since the start of its second, in messages about orders and trades.
const WITHIN_SECOND: usize = 4;
/// Offset of the symbol index in messages about orders and trades.
const INDEX: usize = 8;
/// Offset of the symbol index in messages whose time has seconds and nanoseconds.
const INDEX_OF_FULL_TIME: usize = 12;
/// Offset of the second in a Source Time Reference.
pub(super) const SECOND: usize = 12;
/// Byte range of the symbol in a Symbol Index Mapping.
pub(super) const SYMBOL: std::ops::Range<usize> = 8..19;
/// Offset of the market id in a Symbol Index Mapping.
const MARKET: usize = 20;
/// Offset of the product id in a Sequence Number Reset.
const PRODUCT: usize = 12;

/// True for a message of type `message_type`.
pub(super) fn is_type(message: &[u8], message_type: u16) -> bool {
    word16(message, 2) == message_type
}

/// The symbol index of a message, if it has one.
pub(super) fn index_of(message: &[u8]) -> Option<u32> {
    time_and_index(message, word16(message, 2), None, SendTime::default()).1
}

/// Returns the market id in a Symbol Index Mapping, or that of the product in a Sequence Number Reset.
pub(super) fn market_of(message: &[u8]) -> Option<u16> {
    match word16(message, 2) {
        SymbolIndexMapping::TYPE if message.len() >= MARKET + 2 => Some(word16(message, MARKET)),
        SequenceNumberReset::TYPE => match message.get(PRODUCT)? {
            11 => Some(1),
            59 => Some(9),
            109 => Some(10),
            157 => Some(3),
            209 => Some(11),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the time and the symbol index of a message, each if it has one. `second` is the current second of
/// the channel's clock.
#[inline]
pub(super) fn time_and_index(
    bytes: &[u8],
    message_type: u16,
    second: Option<u32>,
    sent: SendTime,
) -> (Option<u64>, Option<u32>) {
    let at = |seconds: u32, ns: u32| Some(u64::from(seconds) * NS_PER_SEC + u64::from(ns));
    match message_type {
        100..=104 | 110..=114 if bytes.len() >= INDEX + 4 => {
            let ns = word32(bytes, WITHIN_SECOND);
            // Before the first time reference, take the second of the send time, or the one before it if the
            // message would otherwise be later than its packet.
            let before = || sent.secs - u32::from(ns > sent.nanos && sent.secs > 0);
            (at(second.unwrap_or_else(before), ns), Some(word32(bytes, INDEX)))
        }
        32 | 34 | 105 | 106 | 223 if bytes.len() >= INDEX_OF_FULL_TIME + 4 => {
            (at(word32(bytes, 4), word32(bytes, 8)), Some(word32(bytes, INDEX_OF_FULL_TIME)))
        }
        3 if bytes.len() >= 8 => (None, Some(word32(bytes, 4))),
        1 if bytes.len() >= 12 => (at(word32(bytes, 4), word32(bytes, 8)), None),
        _ => (None, None),
    }
}

pub(super) fn word16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |pair| u16::from_le_bytes([pair[0], pair[1]]))
}

pub(super) fn word32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

/// The part of a symbol field before its first NUL byte.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}
