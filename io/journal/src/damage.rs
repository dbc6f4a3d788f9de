//! Kinds of damage of a segment header or a record.

use tickpath_types::Sequence;

/// Damage of a segment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderDamage {
    /// The file does not begin like a segment, or is too short.
    #[error("not a journal segment")]
    Magic,
    /// A later version of the program wrote the file.
    #[error(
        "journal version {version}, which this program cannot read: use the version of the program that wrote it, or put \
         the file back from a copy"
    )]
    Version {
        /// The version in the header.
        version: u16,
    },
    /// The checksum is wrong.
    #[error("the header's checksum is wrong")]
    Checksum,
    /// A field has a value that no version writes.
    #[error("a field of the header has an invalid value")]
    Field,
    /// The file name has another first sequence than the header.
    #[error("the first sequence is {found} in the header, and another in the file name")]
    Name {
        /// The sequence in the header.
        found: Sequence,
    },
}

/// Damage of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordDamage {
    /// The length is not valid for a record.
    #[error("the record's length is impossible")]
    Length,
    /// The checksum is wrong.
    #[error("the record's checksum is wrong")]
    Checksum,
    /// The file ends within the record.
    #[error("the file ends within the record")]
    Cut,
    /// The record has another sequence than expected.
    #[error("the record has sequence {found}")]
    Sequence {
        /// Sequence of the record.
        found: Sequence,
    },
    /// The record is missing: the log ends, or continues with a later record.
    #[error("there is no record")]
    Missing,
    /// The record is in a segment with a damaged header.
    #[error("{0}")]
    Header(HeaderDamage),
}
