//! Policies: the failures that an acknowledged record survives.

use std::fmt;

/// The failures that an acknowledged record survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Acknowledges a record once written to the file: it survives a process crash, but not a power loss.
    Async = 1,
    /// Acknowledges a record once its batch is synced to the disk: it survives a power loss. Records appended
    /// during the sync form the next batch.
    Group,
    /// As [`Policy::Group`], with batches of one record.
    Sync,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 3] = [Policy::Async, Policy::Group, Policy::Sync];

    /// Returns the policy's number in the journal's files.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// Returns whether records may be acknowledged before they are synced to the disk.
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
