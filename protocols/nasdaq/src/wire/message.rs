//! One message of fixed layout.

/// Declares a message: its structure, its type byte, its length, a constructor, and the proof at
/// compile time that each field lies where the specification says.
macro_rules! wire_message {
    (
        $(#[$doc:meta])*
        $name:ident = $type:literal, $len:literal {
            $( $(#[$field_doc:meta])* $offset:literal $field:ident: $wire:ty, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(
            Clone,
            Copy,
            Debug,
            PartialEq,
            Eq,
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::Immutable,
            zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            #[doc = concat!("`", stringify!($type), "`, see [`Self::TYPE`].")]
            pub message_type: u8,
            $( $(#[$field_doc])* pub $field: $wire, )*
        }

        const _: () = {
            assert!(size_of::<$name>() == $len);
            $( assert!(core::mem::offset_of!($name, $field) == $offset); )*
        };

        impl $name {
            /// The type byte.
            pub const TYPE: u8 = $type;
            /// Length in bytes, type byte included.
            pub const LEN: usize = $len;

            /// Makes the message of its fields, in the order in which they are sent.
            #[inline]
            #[must_use]
            #[allow(
                clippy::too_many_arguments,
                clippy::new_without_default,
                reason = "one argument a field of the specification, be they twenty or none"
            )]
            pub fn new($( $field: impl Into<$wire> ),*) -> Self {
                $name { message_type: Self::TYPE, $( $field: $field.into() ),* }
            }
        }
    };
}

pub(crate) use wire_message;
