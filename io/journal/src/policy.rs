//! What an acknowledgement means.

use std::fmt;
use std::str::FromStr;

/// What an acknowledged record survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// It has been written to the file: it survives the death of the process, and not the loss of power.
    Async,
    /// A batch that holds it has been synced to the disk: it survives the loss of power. The next batch forms
    /// while one is synced.
    Group,
    /// As [`Policy::Group`], with batches of one record.
    Sync,
}

/// There is no such policy: use `async`, `group` or `sync`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a journal policy: use async, group or sync")]
pub struct ParsePolicyError {
    text: String,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 3] = [Policy::Async, Policy::Group, Policy::Sync];

    pub(crate) const fn code(self) -> u8 {
        match self {
            Policy::Async => 1,
            Policy::Group => 2,
            Policy::Sync => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// True when what was acknowledged need not be on the disk.
    pub(crate) const fn acknowledges_unsynced(self) -> bool {
        matches!(self, Policy::Async)
    }

    const fn name(self) -> &'static str {
        match self {
            Policy::Async => "async",
            Policy::Group => "group",
            Policy::Sync => "sync",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Policy, ParsePolicyError> {
        let known = Policy::ALL.into_iter().find(|policy| policy.name() == text);
        known.ok_or_else(|| ParsePolicyError { text: text.to_owned() })
    }
}
