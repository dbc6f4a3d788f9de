//! Errors in reading a recording.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A position in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Offset in bytes in the uncompressed data.
    Byte(u64),
    /// Line number, counted from 1.
    Line(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Byte(offset) => write!(f, "byte {offset} of the uncompressed data"),
            Position::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// Error of a read that waited for data when the stop signal was raised.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the end")]
pub(crate) struct Stopped;

/// The reason why a reader returned no further event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The data ends inside a record. All events before that record were delivered; there are no more.
    /// Continue without the missing data, or get the file again.
    #[error(
        "cut short at byte {offset} of the uncompressed data: everything before it was read; get the file again for the rest"
    )]
    Truncated {
        /// Offset of the incomplete record.
        offset: u64,
    },
    /// The data does not conform to the format. A reader of lines continues with the next line when it is
    /// called again; any other reader has no more events.
    #[error("{what} at {position}: check that the file is whole and of this format")]
    Malformed {
        /// Position of the error.
        position: Position,
        /// Description of the error.
        what: String,
    },
    /// The data has a known format but is not a recording of orders: choose another file.
    #[error("{what}")]
    Unsupported {
        /// Description of the data and of the required data.
        what: String,
    },
    /// The compressed data is damaged: get the file again.
    #[error(
        "the compressed data is damaged near byte {offset} of the uncompressed data ({source}): get the file again"
    )]
    Damaged {
        /// Number of uncompressed bytes read before the error. If only the checksum fails, any of them may be
        /// damaged.
        offset: u64,
        /// The decompressor's error.
        source: io::Error,
    },
    /// Reading was stopped while it waited for more data: the delivered events are valid.
    #[error("stopped before the end")]
    Stopped,
    /// The operating system failed to read: see the source.
    #[error("reading failed after byte {offset}: {source}")]
    Io {
        /// Number of bytes read before the error.
        offset: u64,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ReadError {
    /// Classifies a failed read after `offset` bytes.
    pub(crate) fn of_io(source: io::Error, offset: u64) -> ReadError {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Truncated { offset },
            _ if source.get_ref().is_some_and(|inner| inner.is::<Stopped>()) => ReadError::Stopped,
            // Decompressors report errors without a code of the operating system.
            _ if source.raw_os_error().is_none() => ReadError::Damaged { offset, source },
            _ => ReadError::Io { offset, source },
        }
    }

    /// Replaces the error's offset by `read`, the end of the last complete record. The reader has read ahead,
    /// so the original offset may be larger.
    pub(crate) fn after(self, read: u64) -> ReadError {
        match self {
            ReadError::Truncated { .. } => ReadError::Truncated { offset: read },
            ReadError::Damaged { source, .. } => ReadError::Damaged { offset: read, source },
            ReadError::Io { source, .. } => ReadError::Io { offset: read, source },
            other => other,
        }
    }

    pub(crate) fn malformed(position: Position, what: impl Into<String>) -> ReadError {
        ReadError::Malformed { position, what: what.into() }
    }
}

/// The reason why a file could not be read as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file could not be opened: check path and permissions.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path is a directory: name one file in it.
    #[error("{} is a directory: name one file in it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{} is empty: get the file again", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The format is not supported.
    #[error(
        "{} is {found}: give a DBN file (mbo, mbp-1, mbp-10, tbbo, trades, definition), a LOBSTER message file, an ITCH 5.0 BinaryFILE or a pcap or pcapng capture, plain, .gz or .zst; convert anything else to DBN",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Description of the detected contents.
        found: &'static str,
    },
    /// The name of a LOBSTER file must begin with the ticker of its instrument, and this name does not.
    #[error("the name of {} does not start with a ticker: rename it to e.g. AMZN_message_10.csv", path.display())]
    NoSymbol {
        /// The file.
        path: PathBuf,
    },
    /// The file is a packet capture, but a recording of orders is needed; `tickpath replay` reads captures.
    #[error("{} is a capture of packets: a recording of orders is needed here; tickpath replay reads captures", path.display())]
    Packets {
        /// The file.
        path: PathBuf,
    },
    /// Reading failed, see the source.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The read error.
        source: ReadError,
    },
}

impl CaptureError {
    /// True when reading failed because the file ends inside a record; the data before that record is valid.
    #[must_use]
    pub const fn is_truncation(&self) -> bool {
        matches!(self, CaptureError::Read { source: ReadError::Truncated { .. }, .. })
    }
}
