//! The binary encoding of commands, as records of the log.
//!
//! All integers are little-endian and nothing is padded. Every command begins with the same 24 bytes:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | tag of the kind |
//! | 1 | 1 | version of that kind's layout, 1 |
//! | 2 | 2 | session |
//! | 4 | 4 | zero |
//! | 8 | 8 | sequence number |
//! | 16 | 8 | time, nanoseconds since midnight |
//!
//! The fields of the kind follow. A [`command_layouts!`](crate::command_layouts) table next to each command
//! enum, such as [`CommandKind`](crate::CommandKind), declares its tags and fields. A tag keeps its meaning
//! for as long as logs are kept. Enumerations are stored as their `code()`. Each command has exactly one
//! encoding: decoded bytes encode to the same bytes.

mod field;
pub(crate) mod orders;

pub(crate) use field::hash_field;
pub use field::{Field, FieldReader, FieldWriter, Reserved, Spaced};

use tickpath_types::{Nanos, Sequence, SessionId};

/// Layout version of every kind of command; no other version is written or read.
pub const VERSION: u8 = 1;

/// The bytes cannot be decoded as a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The record is truncated or has trailing bytes: verify the log's checksums.
    #[error("a command of kind {kind} has {expected} bytes, not {len}")]
    Length {
        /// First byte of the record, 0 when it is empty.
        kind: u8,
        /// Expected length in bytes; only the header's length when the header is truncated.
        expected: usize,
        /// Length of the record in bytes.
        len: usize,
    },
    /// A later version of the program wrote the record: use that version.
    #[error("command kind {kind} in version {version} is unknown: a later version of the program wrote it")]
    Unknown {
        /// First byte of the record, the tag.
        kind: u8,
        /// Second byte of the record, the layout version.
        version: u8,
    },
    /// A field has a value that no version writes.
    #[error("field {field} of a command cannot be {value}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// The invalid byte.
        value: u8,
    },
}

/// The fields that every command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Sequence number of the command in the log.
    pub sequence: Sequence,
    /// The session that sent the command or is its subject.
    pub session: SessionId,
    /// Time at which the command was sequenced, since midnight.
    pub ts: Nanos,
}

impl Header {
    /// Length of an encoded header, in bytes.
    pub const LEN: usize = 24;

    /// Writes a command to the start of `out`: this header with `tag`, then the `len` bytes put by `write`.
    /// Returns the length of the command.
    ///
    /// # Panics
    /// When `out` is shorter than the command.
    #[inline(always)]
    pub fn write(self, out: &mut [u8], tag: u8, len: usize, write: impl FnOnce(&mut FieldWriter)) -> usize {
        let (head, rest) = out.split_at_mut(Header::LEN);
        let mut head = FieldWriter(head);
        u8::write(tag, &mut head);
        u8::write(VERSION, &mut head);
        SessionId::write(self.session, &mut head);
        Reserved::<4>::write((), &mut head);
        Sequence::write(self.sequence, &mut head);
        Nanos::write(self.ts, &mut head);
        write(&mut FieldWriter(&mut rest[..len]));
        Header::LEN + len
    }

    /// Splits a command into header, tag, and the fields of its kind.
    ///
    /// # Errors
    /// [`CodecError`] when the header is truncated or invalid, or its version is not [`VERSION`].
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Result<(Header, u8, &[u8]), CodecError> {
        let Some((head, fields)) = bytes.split_first_chunk::<{ Header::LEN }>() else {
            let kind = bytes.first().copied().unwrap_or(0);
            return Err(CodecError::Length { kind, expected: Header::LEN, len: bytes.len() });
        };
        let head = &mut FieldReader(head);
        let (tag, version) = (u8::read("kind", head)?, u8::read("version", head)?);
        if version != VERSION {
            return Err(CodecError::Unknown { kind: tag, version });
        }
        let session = SessionId::read("session", head)?;
        Reserved::<4>::read("reserved", head)?;
        let (sequence, ts) = (Sequence::read("sequence", head)?, Nanos::read("ts", head)?);
        Ok((Header { sequence, session, ts }, tag, fields))
    }
}

/// An enum of command kinds and its encoding; [`command_layouts!`](crate::command_layouts) implements it.
pub trait CommandLayouts: Sized {
    /// Length of the fields of the longest kind, in bytes.
    const LEN_MAX: usize;
    /// True when a kind of this enum has the tag.
    fn has_tag(tag: u8) -> bool;
    /// Writes a command of this kind to the start of `out` and returns its length.
    fn encode(&self, header: Header, out: &mut [u8]) -> usize;
    /// Reads the kind from its tag and fields.
    ///
    /// # Errors
    /// [`CodecError`] when the bytes are not a command of this enum.
    fn decode(tag: u8, fields: &[u8]) -> Result<Self, CodecError>;
}

/// Implements [`CommandLayouts`](crate::codec::CommandLayouts) for a command enum from a table of tags and
/// fields, in the order in which they are written: `TAG = Kind { field: Type, .. }`. The types are
/// [`Field`](crate::codec::Field)s. A last row `and Kind(Type)` adds the tags of `Type`'s own table.
#[macro_export]
macro_rules! command_layouts {
    (
        $Kind:ident {
            $(
                $tag:tt = $Variant:ident $(($value:ident: $value_type:ty))? $({ $($field:ident: $type:ty),* $(,)? })?
                    $(if $guard:expr)?
            ),* $(,)?
        }
        $(and $Inner:ident($Request:ty))?
    ) => {
        impl $crate::codec::CommandLayouts for $Kind {
            const LEN_MAX: usize = {
                let mut max = 0 $(+ <$Request as $crate::codec::CommandLayouts>::LEN_MAX)?;
                $(
                    let len = 0 $(+ <$value_type as $crate::codec::Field>::LEN)?
                        $($(+ <$type as $crate::codec::Field>::LEN)*)?;
                    if len > max {
                        max = len;
                    }
                )*
                max
            };

            #[inline]
            fn has_tag(tag: u8) -> bool {
                $(tag == $tag)||* $(|| <$Request as $crate::codec::CommandLayouts>::has_tag(tag))?
            }

            fn encode(&self, header: $crate::codec::Header, out: &mut [u8]) -> usize {
                match *self {
                    $(
                        $Kind::$Variant $(($value))? $({ $($field),* })? $(if $guard)? => {
                            let len = 0 $(+ <$value_type as $crate::codec::Field>::LEN)?
                                $($(+ <$type as $crate::codec::Field>::LEN)*)?;
                            header.write(out, $tag, len, |_out| {
                                $(<$value_type as $crate::codec::Field>::write($value, _out);)?
                                $($(<$type as $crate::codec::Field>::write($field, _out);)*)?
                            })
                        }
                    )*
                    $($Kind::$Inner(request) => $crate::codec::CommandLayouts::encode(&request, header, out),)?
                }
            }

            fn decode(tag: u8, fields: &[u8]) -> Result<$Kind, $crate::codec::CodecError> {
                match tag {
                    $(
                        $tag => {
                            let len = 0 $(+ <$value_type as $crate::codec::Field>::LEN)?
                                $($(+ <$type as $crate::codec::Field>::LEN)*)?;
                            let _fields = &mut $crate::codec::FieldReader::new(tag, fields, len)?;
                            $(let $value = <$value_type as $crate::codec::Field>::read(stringify!($value), _fields)?;)?
                            $($(let $field = <$type as $crate::codec::Field>::read(stringify!($field), _fields)?;)*)?
                            Ok($Kind::$Variant $(($value))? $({ $($field),* })?)
                        }
                    )*
                    $(
                        tag if <$Request as $crate::codec::CommandLayouts>::has_tag(tag) => {
                            <$Request as $crate::codec::CommandLayouts>::decode(tag, fields).map($Kind::$Inner)
                        }
                    )?
                    kind => Err($crate::codec::CodecError::Unknown { kind, version: $crate::codec::VERSION }),
                }
            }
        }
    };
}
