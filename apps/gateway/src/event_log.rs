//! The log of all messages from and to the venue and the clients.
//!
//! The duty cycle copies each message into a ring ([`EventLog::record`]) and continues. A separate thread
//! adds checksums and writes files `<ISO week>/<name>/<start in ms>`. The duty cycle never waits for it:
//! records that find the ring full are counted and missing from the log, which reports it. A disk that is
//! full or broken only loses records. A file with a torn end can be read up to that point.
//!
//! Every record has a sequence number, so that a reader sees missing records, and the duty cycle's time, so
//! that a replay can feed the same inputs to the gateway core again.
//!
//! ```
//! use tickpath_gateway::event_log::{EventLog, LogReader, LogSettings, Origin, RecordKind};
//! use tickpath_types::Nanos;
//!
//! # let place = tempfile::tempdir()?;
//! let settings = LogSettings { buffer: 64 << 10, ..LogSettings::new(place.path(), "deribit", [7; 16]) };
//! let mut log = EventLog::start(settings, "name = 'deribit'\n", Nanos::from_secs(1))?;
//! log.record(RecordKind::VenueIn, Origin::default(), Nanos::from_secs(2), Nanos::ZERO, b"{\"jsonrpc\":\"2.0\"}");
//! let file = log.finish().file.ok_or("there is a file")?;
//!
//! let mut reader = LogReader::open(&file)?;
//! assert_eq!(reader.next()?.map(|record| record.kind), Some(RecordKind::Config));
//! let record = reader.next()?.ok_or("it was recorded")?;
//! assert_eq!((record.kind, record.payload), (RecordKind::VenueIn, &b"{\"jsonrpc\":\"2.0\"}"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;
mod file;
mod format;
mod print;
mod reader;
mod ring;
mod thread;
mod week;

pub use counters::LogCounters;
pub use file::{Disk, DiskFile, LogFile, SystemDisk};
pub use format::{
    FILE_HEADER_LEN, FileHeader, HeaderError, Origin, PAYLOAD_MAX, RECORD_HEADER_LEN, Record, RecordHeader,
    RecordKind,
};
pub use print::{LogCounts, LogFilter};
pub use reader::{LogError, LogReader, Tail};
pub use thread::{EventLog, LogEnd, LogSettings};
pub use week::week_of;

#[cfg(test)]
mod tests;
