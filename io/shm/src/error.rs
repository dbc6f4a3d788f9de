//! Errors of segments, and their remedies.

use std::io;
use std::path::PathBuf;

use crate::header::{Damage, KIND_EVENTS, KIND_MARKET_DATA};

/// Error when opening or creating a folder or a segment in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// The name is not a valid segment name.
    #[error("'{0}' is not a segment name: use 1 to 64 letters, digits, '-', '_' and '.', no '.' first")]
    Name(String),
    /// The segment has not been created yet, or was reclaimed.
    #[error("there is no segment '{name}' in {}: start its writer", folder.display())]
    Missing {
        /// Name of the segment.
        name: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// Another user owns the file or folder, or may write to it.
    #[error("{} belongs to another user, or others may write to it: use a place of your own", .0.display())]
    NotPrivate(PathBuf),
    /// The path is a symbolic link, a FIFO or a folder instead of a plain file.
    #[error("{} is not a regular file: remove it", .0.display())]
    NotAFile(PathBuf),
    /// The contents are not valid: remove the segment with `tickpath shm reclaim`, or restart its writer.
    #[error("{} is damaged: {damage}; start its writer again", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// The segment is of another kind than requested.
    #[error("{} holds {}: name another segment", path.display(), contents_of(*kind))]
    OtherKind {
        /// Path of the file.
        path: PathBuf,
        /// Kind of the segment.
        kind: u32,
    },
    /// Another writer of the segment still runs: stop it, or use another name.
    #[error("{} has a writer already{}: stop it, or use another name", path.display(), by(*pid))]
    InUse {
        /// Path of the file.
        path: PathBuf,
        /// The writer's process id, if the header holds it.
        pid: Option<u32>,
    },
    /// The in-memory file system is full: free some space, or request fewer rows or a shorter stream.
    #[error("no space for {len} bytes at {}: free some, or request fewer rows or a shorter stream", path.display())]
    NoSpace {
        /// Path of the new file.
        path: PathBuf,
        /// Length of the new file, in bytes.
        len: u64,
    },
    /// Other processes replaced or removed the file during every attempt. Retry.
    #[error("other processes keep replacing {}: try again", .0.display())]
    ConcurrentChange(PathBuf),
    /// A system call failed.
    #[error("cannot {what} {}: {error}", path.display())]
    System {
        /// The operation, as a verb.
        what: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// Describes the contents of a segment of this kind.
const fn contents_of(kind: u32) -> &'static str {
    match kind {
        KIND_MARKET_DATA => "market data, and no events",
        KIND_EVENTS => "a gateway's events, and no quotes",
        _ => "something else",
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map(|pid| format!(", process {pid}")).unwrap_or_default()
}

/// Error when naming a row of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The row is beyond the end of the table: create the segment with more rows.
    #[error("row {index} is beyond the segment's {rows} rows: create it with more")]
    NoRow {
        /// The requested row.
        index: usize,
        /// Number of rows.
        rows: usize,
    },
    /// The text is not a valid name.
    #[error("a symbol has 1 to 48 printable ASCII characters without spaces")]
    Text,
}
