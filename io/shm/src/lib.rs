//! Market data in shared memory: the names of instruments, a cache of their latest quotes, and a stream
//! of updates.
//!
//! A segment is a file, usually in `/dev/shm`, that one process writes ([`SegmentWriter`]) and any process of
//! the same user maps read-only ([`SegmentReader`]). The writer never waits and does not know its readers; a
//! reader never waits for the writer. `docs/shm.md` describes the layout byte by byte, for readers in other
//! languages.
//!
//! ```
//! use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentReader, SegmentWriter, WriterState};
//! use tickpath_types::{Nanos, PriceLevel, TopOfBook};
//!
//! # let place = tempfile::tempdir()?;
//! # let path = place.path();
//! let folder = Folder::create(path)?; // or `Folder::usual_path()`
//! let name = SegmentName::new("feed")?;
//! let mut writer = SegmentWriter::create(&folder, &name, &SegmentConfig::default(), Nanos(0))?;
//! writer.name(7, "ALPHA")?;
//! writer.write(7, &TopOfBook { bid: PriceLevel { price: 1_000_000, qty: 300 }, ..TopOfBook::default() })?;
//!
//! let reader = SegmentReader::open(&folder, &name)?;
//! let row = reader.find("ALPHA").ok_or("not named yet")?;
//! assert_eq!(reader.try_read(row)?.bid.qty, 300);
//! assert_eq!(reader.writer_state(), WriterState::Alive);
//! drop(writer);
//! assert_eq!(reader.writer_state(), WriterState::Closed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A segment may instead hold only an event stream, which a gateway publishes to all its clients
//! ([`EventsWriter`], [`EventsReader`]).
//!
//! [`channel`] connects two processes that exchange messages: two rings, set up over a Unix socket.
//!
//! # Limits
//!
//! A segment has up to [`ROWS_MAX`] instruments with names of up to [`SYMBOL_LEN_MAX`] characters. Its stream
//! keeps up to [`STREAM_CAPACITY_MAX`] updates; it overwrites the oldest, and a slow reader learns the number
//! of lost updates. A segment allocates all memory when it is created.
//!
//! # Truncation of a mapped file
//!
//! A process of the same user may truncate the file while it is mapped: the next access to the missing part
//! raises SIGBUS. Only that user can do so (owner and mode are checked), and Tickpath's programs never do.
//! [`is_whole`](OpenedSegment::is_whole) detects it, if called before that access. Seals would prevent
//! it, but exist only for files without names, such as a [`channel`]'s memory.
#![allow(unsafe_code)]

pub mod channel;
mod error;
mod events;
mod folder;
mod header;
mod inspect;
mod live;
mod mapping;
mod opened;
mod process;
mod reader;
mod symbol;
mod writer;

pub use error::{NameError, ShmError};
pub use events::{EventsReader, EventsWriter, Segment};
pub use folder::{Folder, SegmentName};
pub use header::{
    Damage, EVENT_LEN_MAX, HEADER_LEN, Header, KIND_EVENTS, KIND_MARKET_DATA, Layout, ROWS_MAX,
    STREAM_CAPACITY_MAX, SegmentConfig, TimeBase, VERSION,
};
pub use inspect::{Reclaimed, Verified, reclaim, reclaim_unfinished, verify, verify_events};
pub use opened::OpenedSegment;
pub use process::{WriterId, WriterState};
pub use reader::SegmentReader;
pub use symbol::{SYMBOL_LEN_MAX, SymbolName};
pub use writer::SegmentWriter;
