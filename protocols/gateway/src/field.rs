//! Structures of plain data that know their fields: for text, for tables, for other languages.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Fixed, Money, Text};

/// What the bytes of a field mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A number without sign.
    Unsigned,
    /// A code: a number that has a name.
    Code,
    /// A [`Fixed`].
    Fixed,
    /// A [`Money`].
    Money,
    /// A [`Text`].
    Text,
    /// Parts of fixed layout that follow each other.
    Array,
    /// Zeros, for now.
    Reserved,
}

/// One field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Where it begins, in bytes from the start of the structure.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
    /// What it holds.
    pub kind: FieldKind,
}

/// A structure that knows its fields.
pub trait Fields {
    /// Its name, in the form `order_ack`.
    const NAME: &'static str;
    /// Its fields in order, without holes.
    const FIELDS: &'static [Field];

    /// Writes ` name=value` for each field that holds something to be shown.
    ///
    /// # Errors
    /// Those of the formatter.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The type of a field.
pub(crate) trait FieldType {
    const KIND: FieldKind;

    fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Bytes without a meaning yet; they are zero, and not shown.
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
