//! The damage that a segment header or a record can have.

use tickpath_types::Sequence;

/// Why a segment's header is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderDamage {
    /// It does not begin as a segment does, or is too short.
    #[error("not a journal segment")]
    Magic,
    /// A later version of the program wrote it.
    #[error(
        "journal version {version}, which this program cannot read: use the version of the program that wrote it, or put \
         the file back from a copy"
    )]
    Version {
        /// The version in it.
        version: u16,
    },
    /// Its checksum is wrong.
    #[error("the header's checksum is wrong")]
    Checksum,
    /// A field has a value that no version writes.
    #[error("a field of the header has a value that no version writes")]
    Field,
    /// The file's name says another first sequence.
    #[error("the header says that sequence {found} comes first, the name says another")]
    Name {
        /// The sequence in the header.
        found: Sequence,
    },
}

/// Why a record is not there where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordDamage {
    /// Its length is none that a record has.
    #[error("the record's length is impossible")]
    Length,
    /// Its checksum is wrong.
    #[error("the record's checksum is wrong")]
    Checksum,
    /// The file ends within it.
    #[error("the file ends within the record")]
    Cut,
    /// It has another's place.
    #[error("the record has sequence {found}")]
    Sequence {
        /// Its sequence.
        found: Sequence,
    },
    /// There is nothing.
    #[error("there is no record")]
    Missing,
    /// It is in a segment whose header is damaged.
    #[error("{0}")]
    Header(HeaderDamage),
}
