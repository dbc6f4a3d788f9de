//! Plain data structures that describe their fields: for text output, tables, and other languages.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Fixed, Money, Text};

/// Type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// An unsigned number.
    Unsigned,
    /// A code: a number that has a name.
    Code,
    /// A [`Fixed`].
    Fixed,
    /// A [`Money`].
    Money,
    /// A [`Text`].
    Text,
    /// An array of parts of fixed layout.
    Array,
    /// Reserved bytes, zero for now.
    Reserved,
}

/// One field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Offset in bytes from the start of the structure.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
    /// Type of the value.
    pub kind: FieldKind,
}

/// A structure that describes its fields.
pub trait Fields {
    /// Name of the structure, in the form `order_ack`.
    const NAME: &'static str;
    /// The fields in order, without gaps.
    const FIELDS: &'static [Field];

    /// Writes ` name=value` for each field that has a value to show.
    ///
    /// # Errors
    /// Errors of the formatter.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// A type that a field can have.
pub(crate) trait FieldType {
    const KIND: FieldKind;

    fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Bytes without a meaning yet; they are zero and are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Reserved<const N: usize>([u8; N]);

impl<const N: usize> Default for Reserved<N> {
    fn default() -> Reserved<N> {
        Reserved([0; N])
    }
}

impl<const N: usize> FieldType for Reserved<N> {
    const KIND: FieldKind = FieldKind::Reserved;

    fn show_field(&self, _: &str, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl<const N: usize> FieldType for Text<N> {
    const KIND: FieldKind = FieldKind::Text;

    fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { Ok(()) } else { write!(f, " {name}={self:?}") }
    }
}

macro_rules! shown_as_they_are {
    ($($kind:ident: $($field:ty),*;)*) => {
        $($(impl FieldType for $field {
            const KIND: FieldKind = FieldKind::$kind;

            fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, " {name}={self}")
            }
        })*)*
    };
}

shown_as_they_are! {
    Unsigned: u8, u16, u32, u64;
    Fixed: Fixed;
    Money: Money;
}

/// Declares structures of plain data with [`Fields`]: the name in text, then the fields.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident $text:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(
                Clone, Copy, Debug, Default, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes,
                zerocopy::Immutable, zerocopy::KnownLayout,
            )]
            #[repr(C)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl $crate::field::Fields for $name {
                const NAME: &'static str = $text;
                const FIELDS: &'static [$crate::field::Field] = &[
                    $($crate::field::Field {
                        name: stringify!($field),
                        offset: std::mem::offset_of!($name, $field),
                        len: size_of::<$type>(),
                        kind: <$type as $crate::field::FieldType>::KIND,
                    },)*
                ];

                fn show(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    $($crate::field::FieldType::show_field(&self.$field, stringify!($field), f)?;)*
                    Ok(())
                }
            }
        )*
    };
}

pub(crate) use structures;
