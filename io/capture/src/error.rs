//! What can go wrong when a recording is read.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// So many bytes after the start of the uncompressed data.
    Byte(u64),
    /// In this line, counted from 1.
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

/// The stop signal was raised while a read waited.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the end")]
pub(crate) struct Stopped;

/// Why a reader gave no further event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The data ends inside a record. Every event before it was delivered and there are no more: go on
    /// without the rest, or get the file again.
    #[error(
        "cut short at byte {offset} of the uncompressed data: everything before it was read; get the file again for the rest"
    )]
    Truncated {
        /// Where the record that is not complete starts.
        offset: u64,
    },
    /// The data is not what the format says. A reader of lines goes on with the next line when it is
    /// called again; any other has no more events.
    #[error("{what} at {position}: check that the file is whole and of this format")]
    Malformed {
        /// Where.
        position: Position,
        /// What is wrong there.
        what: String,
    },
    /// The data is of this format and holds something that is no recording of orders: choose another.
    #[error("{what}")]
    Unsupported {
        /// What it holds and what is needed.
        what: String,
    },
    /// The compressed data is damaged: get the file again.
    #[error(
        "the compressed data is damaged near byte {offset} of the uncompressed data ({source}): get the file again"
    )]
    Damaged {
        /// How much was read before; where the checksum alone shows the damage, it lies anywhere before.
        offset: u64,
        /// What the decompressor says.
        source: io::Error,
    },
    /// Told to stop while it waited for more: what was delivered is good.
    #[error("stopped before the end")]
    Stopped,
    /// The operating system could not read: see the source.
    #[error("reading failed after byte {offset}: {source}")]
    Io {
        /// How much was read before.
        offset: u64,
        /// Why.
        source: io::Error,
    },
}

impl ReadError {
    /// What a failed read after `offset` bytes means.
    pub(crate) fn of_io(source: io::Error, offset: u64) -> ReadError {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Truncated { offset },
            _ if source.get_ref().is_some_and(|inner| inner.is::<Stopped>()) => ReadError::Stopped,
            // The decompressors' own errors carry no code of the operating system.
            _ if source.raw_os_error().is_none() => ReadError::Damaged { offset, source },
            _ => ReadError::Io { offset, source },
        }
    }

    /// The same failure, of a read whose last whole record ended at `read`: it came while more was in memory.
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

/// Why a file could not be read as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file could not be opened: check path and permissions.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory: name one file in it.
    #[error("{} is a directory: name one file in it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Nothing in it.
    #[error("{} is empty: get the file again", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// None of the formats that can be read.
    #[error(
        "{} is {found}: give a DBN file (mbo, mbp-1, mbp-10, tbbo, trades, definition), a LOBSTER message file, an ITCH 5.0 BinaryFILE or a pcap or pcapng capture, plain, .gz or .zst; convert anything else to DBN",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: &'static str,
    },
    /// A LOBSTER file names its instrument only in the file's name, and this name has no ticker.
    #[error("the name of {} does not start with a ticker: rename it to e.g. AMZN_message_10.csv", path.display())]
    NoSymbol {
        /// The file.
        path: PathBuf,
    },
    /// A capture of packets, where a recording of orders is needed: `tickpath replay` reads both.
    #[error("{} is a capture of packets: a recording of orders is needed here; tickpath replay reads captures", path.display())]
    Packets {
        /// The file.
        path: PathBuf,
    },
    /// Reading stopped, see the source.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
}

impl CaptureError {
    /// True when the file was good up to where it ends inside a record.
    #[must_use]
    pub const fn is_truncation(&self) -> bool {
        matches!(self, CaptureError::Read { source: ReadError::Truncated { .. }, .. })
    }
}
