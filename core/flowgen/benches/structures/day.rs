//! A generated ITCH day in memory, framed as in a file: each message after its length.

use tickpath_flowgen::{ItchDay, ItchDayConfig};
use tickpath_types::InstrumentId;

use crate::books::Limits;

/// Number of pieces of a day; the books are compared after each.
pub const PIECES: usize = 8;

/// A day of messages.
pub struct Day {
    /// Name of the standard day; this day may be a fraction of it.
    pub name: &'static str,
    /// All messages, each after its length.
    pub bytes: Vec<u8>,
    /// End offset of each piece in `bytes`.
    pub ends: Vec<usize>,
    /// Number of messages.
    pub messages: u64,
    /// Maximum number of resting orders at any time.
    pub live_max: u32,
    /// Number of assigned order references, all distinct.
    pub order_refs: u64,
    /// Maximum sizes of the day's books.
    pub limits: Limits,
}

impl Day {
    /// Generates the day.
    pub fn make(name: &'static str, config: ItchDayConfig) -> Day {
        let mut day = ItchDay::new(config).expect("a standard day, or a fraction that can be made");
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let piece = (config.messages as usize).div_ceil(PIECES);
        for index in 1..=PIECES {
            eprintln!("structures: making {name}, {} messages, piece {index} of {PIECES}", config.messages);
            day.append_frames(piece, &mut bytes);
            ends.push(bytes.len());
        }
        let counters = day.counters();
        assert_eq!(counters.messages, config.messages, "the day is whole");
        let limits = Limits {
            max_instrument: InstrumentId(config.symbols as u16),
            max_orders: counters.live_max + counters.live_max / 64 + 64,
        };
        let (messages, live_max, order_refs) = (counters.messages, counters.live_max, counters.order_refs);
        Day { name, bytes, ends, messages, live_max, order_refs, limits }
    }

    /// Iterates over the pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end])
    }

    /// One-line description.
    pub fn describe(&self) -> String {
        let Day { name, messages, live_max, order_refs, .. } = self;
        let securities = self.limits.max_instrument;
        format!(
            "{name}: {messages} messages, {securities} securities, {live_max} live orders at most, {order_refs} unique \
             references"
        )
    }
}

/// Iterates over the messages of a day.
#[inline]
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (prefix, behind) = rest.split_first_chunk()?;
        let (message, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*prefix)))?;
        rest = behind;
        Some(message)
    })
}
