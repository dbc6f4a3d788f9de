//! The words of a segment's header that the writer changes after the segment's creation.

use tickpath_lockfree::SharedLines;

use crate::header::LIVE_LINE;

/// State: the writer is running.
pub(crate) const STATE_OPEN: u64 = 1;
/// State: the writer has closed the segment.
pub(crate) const STATE_CLOSED: u64 = 2;

/// A 64-bit word in the cache line after the fixed header.
#[derive(Clone, Copy)]
pub(crate) enum LiveWord {
    /// [`STATE_OPEN`] or [`STATE_CLOSED`].
    State = 0,
    /// Time of the writer's latest heartbeat, in nanoseconds since the Unix epoch.
    Heartbeat = 1,
    /// Number of times that a row was given a name.
    Named = 2,
    /// Number of quotes written until the last heartbeat.
    QuotesWritten = 3,
}

impl LiveWord {
    pub(crate) fn load(self, lines: &SharedLines) -> u64 {
        lines.load(LIVE_LINE, self as usize).expect("a segment is longer than its header")
    }

    pub(crate) fn store(self, lines: &SharedLines, value: u64) {
        let is_stored = lines.store(LIVE_LINE, self as usize, value);
        debug_assert!(is_stored, "a writer's lines are its header's too");
    }
}
