//! The macro that declares numeric fields.

/// Declares numeric fields. `get()` converts the number to a type such as `OrderId`. `From` accepts any
/// number of the field's width and, if a `from` clause is given, any value of that type.
///
/// ```
/// use tickpath_types::OrderId;
/// use zerocopy::byteorder::little_endian::U64;
///
/// tickpath_wire::field! {
///     /// Number of an order, 8 bytes.
///     OrderNumber(U64: u64) = |bits| OrderId { OrderId(bits) }, from |id| { id.0 }
/// }
/// assert_eq!(OrderNumber::from(OrderId(7)).get(), OrderId(7));
/// ```
#[macro_export]
macro_rules! field {
    ($(
        $(#[$meta:meta])*
        $name:ident($wire:ty: $inner:ty) = |$bits:ident| $value:ty { $get:expr }
        $(, from |$from:ident| { $number:expr } )?
    )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[derive(zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(transparent)]
        pub struct $name(pub $wire);

        impl $name {
            /// Returns the field's value.
            #[inline]
            #[must_use]
            pub const fn get(self) -> $value {
                let $bits = self.0.get();
                $get
            }
        }

        impl From<$inner> for $name {
            #[inline]
            fn from(value: $inner) -> Self {
                $name(<$wire>::new(value))
            }
        }

        $( impl From<$value> for $name {
            #[inline]
            fn from($from: $value) -> Self {
                $name(<$wire>::new($number))
            }
        } )?

        impl $crate::Bits for $name {
            #[inline]
            fn bits(&self) -> u64 {
                $crate::Bits::bits(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.get(), f)
            }
        }
    )+ };
}
