//! What an acknowledgement means.

use std::fmt;

/// What an acknowledged record survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// It has been written to the file: it survives the death of the process, and not the loss of power.
    Async = 1,
    /// A batch that holds it has been synced to the disk: it survives the loss of power. The next batch forms
    /// while one is synced.
    Group,
    /// As [`Policy::Group`], with batches of one record.
    Sync,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 3] = [Policy::Async, Policy::Group, Policy::Sync];

    /// Its number in the journal's files.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// True when what was acknowledged need not be on the disk.
    pub(crate) const fn acknowledges_unsynced(self) -> bool {
        matches!(self, Policy::Async)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Async => "async",
            Policy::Group => "group",
            Policy::Sync => "sync",
        })
    }
}
