//! The macros that declare messages of fixed layout.

/// Declares a structure in wire layout, and checks its length and each field's offset at compile time. An
/// optional last field, after a semicolon, has no offset: it takes the remaining bytes.
#[macro_export]
macro_rules! layout {
    (
        $(#[$meta:meta])*
        $name:ident, $len:expr => {
            $( $(#[$field_meta:meta])* $offset:literal $field:ident: $wire:ty, )*
            $( ; $(#[$last_meta:meta])* $last:ident: $last_wire:ty, )?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[derive(zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $wire, )*
            $( $(#[$last_meta])* pub $last: $last_wire, )?
        }

        const _: () = {
            assert!(size_of::<$name>() == $len);
            $( assert!(core::mem::offset_of!($name, $field) == $offset); )*
        };
    };
}

/// Declares a message: its [`layout!`](crate::layout), its type, its length and a constructor.
///
/// Normally the first field is the type byte, see the [crate's example](crate). If a message can have either
/// of two types, the constructor writes the first: `Level = b'8' | b'5', 30 { … }`. If the first field is
/// not a type byte, give the Rust type of the constant `TYPE` after the name, and the first field's name,
/// type and value:
/// `Reset: u16 = 1, 14 { header: Header = Header::new(14, 1), … }`.
#[macro_export]
macro_rules! message {
    (
        $(#[$meta:meta])*
        $name:ident = $type:literal $(| $other:literal)?, $len:literal { $($fields:tt)* }
    ) => {
        $crate::message! {
            $(#[$meta])*
            $name: u8 = $type, $len {
                #[doc = concat!("`", stringify!($type $(| $other)?), "`, see [`Self::TYPE`].")]
                message_type: u8 = Self::TYPE,
                $($fields)*
            }
        }
    };
    (
        $(#[$meta:meta])*
        $name:ident: $type_of_type:ty = $type:literal, $len:literal {
            $(#[$head_meta:meta])* $head:ident: $head_wire:ty = $head_value:expr,
            $( $(#[$field_meta:meta])* $offset:literal $field:ident: $wire:ty, )*
        }
    ) => {
        $crate::layout! {
            $(#[$meta])*
            $name, $len => {
                $(#[$head_meta])* 0 $head: $head_wire,
                $( $(#[$field_meta])* $offset $field: $wire, )*
            }
        }

        impl $name {
            /// Type of this message, as its first field states it.
            pub const TYPE: $type_of_type = $type;
            /// Length of the message in bytes, including its first field.
            pub const LEN: usize = $len;

            /// Creates the message from its fields, in wire order.
            #[inline]
            #[must_use]
            #[allow(
                clippy::too_many_arguments,
                clippy::new_without_default,
                reason = "one argument a field of the specification, be they twenty or none"
            )]
            pub fn new($( $field: impl Into<$wire> ),*) -> Self {
                $name { $head: $head_value, $( $field: $field.into() ),* }
            }
        }
    };
}
