//! The header of a segment, and its validation.

use std::mem::offset_of;

use tickpath_lockfree::{LINE_LEN, broadcast};
use tickpath_types::{MarketUpdate, Nanos, Price};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::process::WriterId;

/// `TICKPSHM`, read as a little-endian number. A host with the other byte order reads a different number.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TICKPSHM");
/// Version of the layout. A reader accepts no other version.
pub const VERSION: u32 = 1;
/// Kind of a segment with names, quotes and optionally a stream.
pub const KIND_MARKET_DATA: u32 = 1;
/// Kind of a segment that holds only an event stream: a gateway's events for all its clients.
pub const KIND_EVENTS: u32 = 2;
/// Length of the header page before the sections, in bytes.
pub const HEADER_LEN: u64 = 4096;
/// Alignment of the sections, in bytes.
const SECTION_ALIGN: u64 = 4096;
/// Index of the header's cache line with the words that change after the segment's creation.
pub(crate) const LIVE_LINE: usize = 4;

/// Maximum number of rows of a segment: a stream update has 16 bits for the index of its row.
pub const ROWS_MAX: u64 = 1 << 16;
/// Maximum number of updates that a segment's stream keeps.
pub const STREAM_CAPACITY_MAX: u64 = 1 << 22;
/// Maximum length of an event, in bytes. The length is a multiple of 8.
pub const EVENT_LEN_MAX: u64 = 4_096;
/// Price scale of a segment of events: its prices are in units of 10^-8.
const EVENT_PRICE_SCALE: u64 = 100_000_000;

/// The reason why a file is not a segment that this version can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file is shorter than a header.
    #[error("it ends after {0} bytes, within its header")]
    Short(u64),
    /// The magic number is wrong: the file is not a segment, or from a host with the other byte order.
    #[error("its magic number is not that of a segment")]
    Magic,
    /// Another version wrote the segment; use the same version of the program on both sides.
    #[error("its layout has version {0}, this program reads version {VERSION}")]
    Version(u32),
    /// The header was changed after it was written.
    #[error("its header's checksum is wrong")]
    Checksum,
    /// The segment has an unknown kind.
    #[error("its kind is {0}, which this program does not know")]
    Kind(u32),
    /// The file was truncated or extended.
    #[error("it has {found} bytes, and its header states {stated}")]
    Length {
        /// Length that the header states, in bytes.
        stated: u64,
        /// Length of the file, in bytes.
        found: u64,
    },
    /// The size or offset of a section, the price scale or the time base is invalid.
    #[error("its sections do not lie where they must")]
    Layout,
}

/// The origin of the times in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum TimeBase {
    /// The latest midnight in the venue's time zone.
    #[default]
    Midnight = 1,
    /// The Unix epoch.
    Unix = 2,
    /// The boot of the machine, on its monotonic clock; for events only.
    Monotonic = 3,
}

impl TimeBase {
    const fn from_code(code: u32) -> Option<TimeBase> {
        match code {
            1 => Some(TimeBase::Midnight),
            2 => Some(TimeBase::Unix),
            3 => Some(TimeBase::Monotonic),
            _ => None,
        }
    }
}

/// Offsets of a segment's sections, in bytes from the start of the file, and their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Layout {
    /// Number of table rows, one for each instrument.
    pub rows: u64,
    /// Offset of the names.
    pub names_offset: u64,
    /// Offset of the quotes.
    pub quotes_offset: u64,
    /// Offset of the stream; 0 when there is none.
    pub stream_offset: u64,
    /// Number of updates that the stream keeps; 0 when there is no stream.
    pub stream_capacity: u64,
    /// Length of a stream event, in bytes; 0 in a segment of market data, whose updates have a fixed length.
    pub item_len: u64,
}

/// The first 256 bytes of a segment. Its writer fills them before the file is visible and never changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    magic: u64,
    version: u32,
    kind: u32,
    /// Length of the whole file, in bytes.
    pub file_len: u64,
    /// Generation: 1 for the first segment of its name; a writer that replaces a segment adds 1.
    pub generation: u64,
    /// Creation time, in nanoseconds since the Unix epoch.
    pub created_ns: u64,
    /// The writing process.
    pub writer: WriterId,
    /// Price units in one unit of currency.
    pub price_scale: u64,
    time_base: u32,
    reserved: u32,
    /// Sections of the segment.
    pub layout: Layout,
    unused: [u64; 14],
    /// FNV-1a hash of the header's bytes before this field.
    checksum: u64,
}

const _: () = assert!(size_of::<Header>() == LIVE_LINE * LINE_LEN);
const _: () = assert!(offset_of!(Header, writer) == 40 && offset_of!(Header, price_scale) == 72);
const _: () = assert!(offset_of!(Header, layout) == 88 && offset_of!(Header, checksum) == 248);

// docs/shm.md documents the offsets of an update's fields in the stream.
const _: () = assert!(size_of::<MarketUpdate>() == 80 && offset_of!(MarketUpdate, instrument) == 72);
const _: () = assert!(offset_of!(MarketUpdate, health) == 76 && offset_of!(MarketUpdate, has_more) == 79);

/// Sizes and time base of a new segment of market data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentConfig {
    /// Maximum number of instruments, up to [`ROWS_MAX`].
    pub rows: u64,
    /// Capacity of the stream, in updates: rounded up to a power of two, at most [`STREAM_CAPACITY_MAX`]. 0
    /// for no stream.
    pub stream_capacity: u64,
    /// Origin of the times.
    pub time_base: TimeBase,
}

impl Default for SegmentConfig {
    /// 4,096 instruments, a stream of 65,536 updates, times since midnight.
    fn default() -> SegmentConfig {
        SegmentConfig { rows: 4_096, stream_capacity: 1 << 16, time_base: TimeBase::Midnight }
    }
}

impl Header {
    /// Returns the header of a new segment, to be [completed](Header::completed). Sizes in `config` beyond
    /// the maximum are reduced to it.
    pub(crate) fn new(config: &SegmentConfig) -> Header {
        let rows = config.rows.clamp(1, ROWS_MAX);
        let capacity = config.stream_capacity.min(STREAM_CAPACITY_MAX);
        let stream_capacity = if capacity == 0 { 0 } else { capacity.next_power_of_two() };
        let (layout, file_len) = Layout::of_market_data(rows, stream_capacity);
        Header {
            kind: KIND_MARKET_DATA,
            price_scale: Price::SCALE.unsigned_abs(),
            time_base: config.time_base as u32,
            layout,
            file_len,
            ..Header::new_zeroed()
        }
    }

    /// Returns the header of a new segment for `capacity` events of `item_len` bytes. Rounds `capacity` up to
    /// a power of two.
    pub(crate) fn events(item_len: u64, capacity: u64) -> Header {
        let stream_capacity = capacity.clamp(1, STREAM_CAPACITY_MAX).next_power_of_two();
        let (layout, file_len) = Layout::of_events(item_len.clamp(8, EVENT_LEN_MAX), stream_capacity);
        Header {
            kind: KIND_EVENTS,
            price_scale: EVENT_PRICE_SCALE,
            time_base: TimeBase::Monotonic as u32,
            layout,
            file_len,
            ..Header::new_zeroed()
        }
    }

    /// Completes the header with its generation, creation time and writer.
    pub(crate) fn completed(self, generation: u64, created: Nanos, writer: WriterId) -> Header {
        let (magic, version, created_ns) = (MAGIC, VERSION, created.0);
        let mut header = Header { magic, version, generation, created_ns, writer, ..self };
        header.checksum = header.sum();
        header
    }

    /// Returns [`KIND_MARKET_DATA`] or [`KIND_EVENTS`].
    #[must_use]
    pub const fn kind(&self) -> u32 {
        self.kind
    }

    /// Validates the first bytes of a file of `file_len` bytes. The sections of a valid header lie within the
    /// file and do not overlap.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn check(bytes: &[u8], file_len: u64) -> Result<Header, Damage> {
        let (header, _) = Header::read_from_prefix(bytes).map_err(|_| Damage::Short(bytes.len() as u64))?;
        if header.magic != MAGIC {
            return Err(Damage::Magic);
        }
        if header.version != VERSION {
            return Err(Damage::Version(header.version));
        }
        if header.checksum != header.sum() {
            return Err(Damage::Checksum);
        }
        if !matches!(header.kind, KIND_MARKET_DATA | KIND_EVENTS) {
            return Err(Damage::Kind(header.kind));
        }
        if header.file_len != file_len {
            return Err(Damage::Length { stated: header.file_len, found: file_len });
        }
        header.check_places()?;
        Ok(header)
    }

    fn check_places(&self) -> Result<(), Damage> {
        let Layout { rows, stream_capacity, item_len, .. } = self.layout;
        // Recompute the layout from the numbers of rows and updates, or from the length and number of events.
        let expected = match self.kind {
            KIND_EVENTS => self.is_events().then(|| Layout::of_events(item_len, stream_capacity)),
            _ => self.is_market_data().then(|| Layout::of_market_data(rows, stream_capacity)),
        };
        if expected == Some((self.layout, self.file_len)) { Ok(()) } else { Err(Damage::Layout) }
    }

    fn is_market_data(&self) -> bool {
        let Layout { rows, stream_capacity, item_len, .. } = self.layout;
        (1..=ROWS_MAX).contains(&rows)
            && stream_capacity <= STREAM_CAPACITY_MAX
            && (stream_capacity == 0 || stream_capacity.is_power_of_two())
            && item_len == 0
            && self.price_scale == Price::SCALE.unsigned_abs()
            && matches!(TimeBase::from_code(self.time_base), Some(TimeBase::Midnight | TimeBase::Unix))
    }

    fn is_events(&self) -> bool {
        let Layout { rows, stream_capacity, item_len, .. } = self.layout;
        rows == 0
            && (1..=STREAM_CAPACITY_MAX).contains(&stream_capacity)
            && stream_capacity.is_power_of_two()
            && (8..=EVENT_LEN_MAX).contains(&item_len)
            && item_len.is_multiple_of(8)
            && self.price_scale == EVENT_PRICE_SCALE
            && TimeBase::from_code(self.time_base) == Some(TimeBase::Monotonic)
    }

    /// Returns the origin of the times.
    #[must_use]
    pub fn time_base(&self) -> TimeBase {
        TimeBase::from_code(self.time_base).unwrap_or_default()
    }

    fn sum(&self) -> u64 {
        fnv1a(&self.as_bytes()[..offset_of!(Header, checksum)])
    }
}

impl Layout {
    /// Returns the layout with names, quotes and stream, each page-aligned, and the length of the file. The
    /// arguments are within their bounds, so nothing overflows.
    fn of_market_data(rows: u64, stream_capacity: u64) -> (Layout, u64) {
        let after = |offset: u64, len: u64| (offset + len).next_multiple_of(SECTION_ALIGN);
        let names_offset = HEADER_LEN;
        let quotes_offset = after(names_offset, rows * LINE_LEN as u64);
        let end = after(quotes_offset, rows * LINE_LEN as u64);
        let (stream_offset, file_len) = match stream_capacity {
            0 => (0, end),
            _ => (end, after(end, stream_len(stream_capacity))),
        };
        let layout = Layout {
            rows,
            names_offset,
            quotes_offset,
            stream_offset,
            stream_capacity,
            ..Layout::new_zeroed()
        };
        (layout, file_len)
    }

    /// Returns the layout with only a stream, and the length of the file.
    fn of_events(item_len: u64, stream_capacity: u64) -> (Layout, u64) {
        let len = event_lines(item_len, stream_capacity) * LINE_LEN as u64;
        let layout = Layout { stream_offset: HEADER_LEN, stream_capacity, item_len, ..Layout::new_zeroed() };
        (layout, (HEADER_LEN + len).next_multiple_of(SECTION_ALIGN))
    }
}

/// Returns the number of cache lines of a slot: a sequence word and an event of `item_len` bytes.
pub(crate) const fn event_slot_lines(item_len: u64) -> u64 {
    (size_of::<u64>() as u64 + item_len).div_ceil(LINE_LEN as u64)
}

/// Returns the number of cache lines of an event stream; equals [`broadcast::lines_of`] for events of
/// `item_len` bytes.
pub(crate) fn event_lines(item_len: u64, capacity: u64) -> u64 {
    let head_lines = broadcast::lines_of::<u64>(1) as u64 - 1;
    head_lines + capacity * event_slot_lines(item_len)
}

/// Returns the length of a stream of market updates, in bytes.
fn stream_len(capacity: u64) -> u64 {
    broadcast::lines_of::<MarketUpdate>(capacity as usize) as u64 * LINE_LEN as u64
}

/// Computes the 64-bit FNV-1a hash: short enough to implement in any language.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: WriterId = WriterId { pid: 7, uid: 1_000, start_ticks: 9, boot: [3; 16] };

    fn header() -> Header {
        let config = SegmentConfig { rows: 100, stream_capacity: 5, time_base: TimeBase::Unix };
        Header::new(&config).completed(2, Nanos(1_700_000_000_000_000_000), WRITER)
    }

    /// Changes a header, updates its checksum, and returns the result of [`Header::check`].
    fn changed(mut header: Header, change: fn(&mut Header)) -> Result<Header, Damage> {
        change(&mut header);
        header.checksum = header.sum();
        Header::check(header.as_bytes(), header.file_len)
    }

    #[test]
    fn a_valid_header_is_accepted_and_every_damage_is_found() {
        let header = header();
        let bytes = header.as_bytes();
        assert_eq!(Header::check(bytes, header.file_len), Ok(header));
        assert_eq!(
            (header.layout.rows, header.layout.stream_capacity, header.time_base()),
            (100, 8, TimeBase::Unix)
        );
        for len in 0..bytes.len() {
            assert_eq!(Header::check(&bytes[..len], header.file_len), Err(Damage::Short(len as u64)));
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1;
            assert!(Header::check(&damaged, header.file_len).is_err(), "byte {at}");
        }
        let found = header.file_len - 1;
        assert_eq!(Header::check(bytes, found), Err(Damage::Length { stated: header.file_len, found }));
    }

    #[test]
    fn a_consistent_header_with_invalid_values_is_rejected() {
        let good = header();
        assert_eq!(changed(good, |_| ()), Ok(good));
        assert_eq!(changed(good, |header| header.kind = 9), Err(Damage::Kind(9)));
        for change in [
            (|header| header.layout.rows = 0) as fn(&mut Header),
            |header| header.layout.rows = u64::MAX,
            |header| header.layout.rows += 64,
            |header| header.layout.names_offset = 0,
            |header| header.layout.names_offset += 8,
            |header| header.layout.quotes_offset = header.layout.names_offset,
            |header| header.layout.quotes_offset = u64::MAX,
            |header| header.layout.stream_offset = 1 << 60,
            |header| header.layout.stream_capacity = 7,
            |header| header.layout.stream_capacity = 1 << 40,
            |header| header.layout.stream_capacity = 0,
            |header| header.file_len += 4096,
            |header| header.price_scale = 100,
            |header| header.time_base = 0,
        ] {
            assert_eq!(changed(good, change), Err(Damage::Layout));
        }
    }

    #[test]
    fn the_header_of_events_is_accepted_as_written() {
        let good = Header::events(184, 1_000).completed(1, Nanos(0), WRITER);
        assert_eq!(
            (good.kind(), good.layout.stream_capacity, good.file_len),
            (KIND_EVENTS, 1_024, 4096 + 49 * 4096)
        );
        assert_eq!(event_lines(184, 1_024), broadcast::lines_of::<[u64; 23]>(1_024) as u64);
        assert_eq!(event_lines(56, 4), broadcast::lines_of::<[u64; 7]>(4) as u64);
        assert_eq!(changed(good, |_| ()), Ok(good));
        for change in [
            (|header| header.layout.rows = 1) as fn(&mut Header),
            |header| header.layout.item_len = 0,
            |header| header.layout.item_len = 185,
            |header| header.layout.item_len = 248,
            |header| header.layout.item_len = u64::MAX - 7,
            |header| header.layout.stream_capacity = 0,
            |header| header.layout.stream_capacity = 1 << 40,
            |header| header.layout.stream_offset = 0,
            |header| header.layout.names_offset = 4_096,
            |header| header.file_len += 4096,
            |header| header.price_scale = 10_000,
            |header| header.time_base = 2,
            |header| header.kind = KIND_MARKET_DATA,
        ] {
            assert_eq!(changed(good, change), Err(Damage::Layout));
        }
        let least = Header::events(0, 0).completed(1, Nanos(0), WRITER);
        assert_eq!((least.layout.item_len, least.layout.stream_capacity), (8, 1));
        assert_eq!(Header::check(least.as_bytes(), least.file_len), Ok(least));
    }

    #[test]
    fn requests_beyond_the_bounds_are_clamped() {
        let config = SegmentConfig { rows: u64::MAX, stream_capacity: u64::MAX, ..SegmentConfig::default() };
        let header = Header::new(&config).completed(1, Nanos(0), WRITER);
        assert_eq!((header.layout.rows, header.layout.stream_capacity), (ROWS_MAX, STREAM_CAPACITY_MAX));
        assert_eq!(Header::check(header.as_bytes(), header.file_len), Ok(header));
        let config = SegmentConfig { rows: 0, stream_capacity: 0, ..config };
        let header = Header::new(&config).completed(1, Nanos(0), WRITER);
        assert_eq!((header.layout.rows, header.layout.stream_offset, header.file_len), (1, 0, 3 * 4096));
    }
}
