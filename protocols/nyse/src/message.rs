//! One message of fixed layout.

/// Declares a message: its structure with its header, its type, its length, a constructor, and the proof at compile time
/// that each field lies where the specification says.
macro_rules! wire_message {
    (
        $(#[$doc:meta])*
        $name:ident = $type:literal, $len:literal, from $len_min:literal {
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
            /// Its length and its type; the length is another than [`Self::LEN`] where the sender's version has more
            /// fields, or fewer.
            pub header: MessageHeader,
            $( $(#[$field_doc])* pub $field: $wire, )*
        }

        const _: () = {
            assert!(size_of::<$name>() == $len && $len_min <= $len);
            $( assert!(core::mem::offset_of!($name, $field) == $offset); )*
        };

        impl $name {
            /// The type.
            pub const TYPE: u16 = $type;
            /// Length in bytes with its header.
            pub const LEN: usize = $len;
            /// Length in bytes of the shortest version; the fields that it lacks read as zero.
            pub const LEN_MIN: usize = $len_min;

            /// Makes the message of its fields, in the order in which they are sent.
            #[inline]
            #[must_use]
            #[allow(
                clippy::too_many_arguments,
                clippy::new_without_default,
                reason = "one argument a field of the specification"
            )]
            pub fn new($( $field: impl Into<$wire> ),*) -> Self {
                $name { header: MessageHeader::new($len, $type), $( $field: $field.into() ),* }
            }
        }
    };
}

/// The bytes of a field as one number.
#[inline(always)]
pub(crate) fn bits<T: zerocopy::IntoBytes + zerocopy::Immutable + ?Sized>(field: &T) -> u64 {
    let (words, rest) = field.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u64::from_le_bytes(last), |sum, word| sum.rotate_left(29) ^ u64::from_le_bytes(*word))
}

pub(crate) use wire_message;
