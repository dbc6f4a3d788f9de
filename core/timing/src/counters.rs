//! Counters of the joiner: records read, messages finalised, and records not joined.

use crate::{ENGINES_MAX, FEEDS_MAX, Hop};

/// Counts of the finalised entries of one id space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// Entries finalised with every expected stamp.
    pub complete: u64,
    /// Entries finalised with at least one expected stamp missing.
    pub incomplete: u64,
    /// Entries finalised early because the table was full; also counted as complete or incomplete. Remedy: a
    /// larger table.
    pub displaced: u64,
}

impl EntryCounts {
    /// Number of all finalised entries.
    #[must_use]
    pub const fn finalised(&self) -> u64 {
        self.complete + self.incomplete
    }
}

/// Counts since the joiner was created. Every dropped record is counted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records read from the rings.
    pub records: u64,
    /// Records that the rings dropped because they were full. Remedy: larger rings, or drain more often.
    pub dropped: u64,
    /// Records with an unknown kind.
    pub unrecognised: u64,
    /// Records whose feed handler number is not below [`FEEDS_MAX`] or whose engine number is not below
    /// [`ENGINES_MAX`].
    pub unknown_observer: u64,
    /// Repeated stamps and links; only the first of each is used.
    pub duplicates: u64,
    /// Stamps and links that arrived after their message was finalised. Remedy: a greater
    /// [`age`](crate::JoinerConfig::age).
    pub late: u64,
    /// Links to a message that was no longer in its table when the link was used. Remedy: a larger table.
    pub orphans: u64,
    /// Counts of market data messages.
    pub markets: EntryCounts,
    /// Counts of commands.
    pub commands: EntryCounts,
    /// Counts of order tokens.
    pub tokens: EntryCounts,
    /// Number of stamps that incomplete messages lack, by [`Hop::index`].
    pub missing: [u64; Hop::COUNT],
}

impl Counters {
    /// Returns each hop with missing stamps, and their count.
    pub fn missing(&self) -> impl Iterator<Item = (Hop, u64)> + '_ {
        Hop::ALL.into_iter().map(|hop| (hop, self.missing[hop.index()])).filter(|(_, count)| *count > 0)
    }
}

/// Hops, feed handlers and engines that have stamped any message: every message is expected to have their
/// stamps.
#[derive(Clone, Copy, Default)]
pub(crate) struct ObservedHops {
    /// True for hops with a stamp, by [`Hop::index`].
    pub(crate) hops: [bool; Hop::COUNT],
    pub(crate) feeds: [bool; FEEDS_MAX],
    pub(crate) engines: [bool; ENGINES_MAX],
}
