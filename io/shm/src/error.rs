//! What can go wrong with segments, and what to do.

use std::io;
use std::path::PathBuf;

use crate::header::{Damage, KIND_EVENTS, KIND_MARKET_DATA};

/// Why a folder or a segment in it was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// A name that is no file name of a segment.
    #[error("'{0}' is no name of a segment: use 1 to 64 letters, digits, '-', '_' and '.', no '.' first")]
    Name(String),
    /// Nobody has made it yet, or it was reclaimed.
    #[error("there is no segment '{name}' in {}: start its writer", folder.display())]
    Missing {
        /// Its name.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Another user could have put it there, or could change it.
    #[error("{} belongs to another user, or others may write to it: use a place of your own", .0.display())]
    NotOurs(PathBuf),
    /// A link, a pipe or a folder stands where a segment should.
    #[error("{} is no plain file: remove it", .0.display())]
    NotAFile(PathBuf),
    /// Its bytes are wrong; remove it with `tickpath shm reclaim`, or start its writer again.
    #[error("{} is damaged: {damage}; start its writer again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// It holds something else than what was asked for.
    #[error("{} holds {}: name another segment", path.display(), held(*kind))]
    OtherKind {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: u32,
    },
    /// Its first writer lives: stop it, or use another name.
    #[error("{} has a writer already{}: stop it, or use another name", path.display(), by(*pid))]
    InUse {
        /// The file.
        path: PathBuf,
        /// The writer's process, where the header says it.
        pid: Option<u32>,
    },
    /// The memory that files may take there is full: free some, or ask for fewer rows or a shorter stream.
    #[error("no room for {len} bytes at {}: free some, or ask for fewer rows or a shorter stream", path.display())]
    NoRoom {
        /// The file that was to be made.
        path: PathBuf,
        /// Its length.
        len: u64,
    },
    /// Others made and removed it all the time; try again.
    #[error("{} changes all the time: try again", .0.display())]
    Unsettled(PathBuf),
    /// What the system says.
    #[error("cannot {what} {}: {error}", path.display())]
    System {
        /// What was tried, as a verb.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Its answer.
        #[source]
        error: io::Error,
    },
}

/// What a segment of this kind holds.
const fn held(kind: u32) -> &'static str {
    match kind {
        KIND_MARKET_DATA => "market data, and no events",
        KIND_EVENTS => "a gateway's events, and no quotes",
        _ => "something else",
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map(|pid| format!(", process {pid}")).unwrap_or_default()
}

/// A name that was not put into a segment's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The table ends before this row: make the segment with more rows.
    #[error("row {index} is beyond the segment's {rows} rows: make it with more")]
    NoRow {
        /// The row.
        index: usize,
        /// Rows that there are.
        rows: usize,
    },
    /// The text is no name.
    #[error("a symbol has 1 to 48 printable ASCII characters without spaces")]
    Text,
}
