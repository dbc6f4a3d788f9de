//! The configuration of a journal.

use tickpath_types::Sequence;

use crate::format::{HEADER_LEN, PAYLOAD_LEN_MAX, record_len};
use crate::{OpenError, Policy};

/// Configuration of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Failures that an acknowledged record survives.
    pub policy: Policy,
    /// Length of a segment file, in bytes.
    pub segment_len: u64,
    /// Length of each of the two buffers between duty cycle and disk, in bytes. When both are full, `append`
    /// fails with [`AppendError::Full`](crate::AppendError::Full).
    pub buffer_len: usize,
    /// Maximum payload length, in bytes.
    pub payload_len_max: usize,
    /// First sequence of an empty log.
    pub first_sequence: Sequence,
}

impl Default for JournalConfig {
    /// Policy `group`, segments of 64 MiB, buffers of 1 MiB, payloads up to 256 bytes, first sequence 1.
    fn default() -> Self {
        JournalConfig {
            policy: Policy::Group,
            segment_len: 64 << 20,
            buffer_len: 1 << 20,
            payload_len_max: 256,
            first_sequence: Sequence(1),
        }
    }
}

impl JournalConfig {
    /// Checks that the lengths are in range and fit each other, and that the first sequence is above 0.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let payload_fits = (1..=PAYLOAD_LEN_MAX).contains(&self.payload_len_max);
        let buffer_fits =
            self.buffer_len >= 2 * (HEADER_LEN + record_len(self.payload_len_max.min(PAYLOAD_LEN_MAX)));
        let segment_fits = self.segment_len >= 2 * self.buffer_len as u64;
        let begins = self.first_sequence > Sequence(0);
        if payload_fits && buffer_fits && segment_fits && begins { Ok(()) } else { Err(OpenError::Config) }
    }
}
