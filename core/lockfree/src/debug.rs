//! `Debug` implementations that do not require `Debug` of the items.

/// Implements `Debug` with the name of the type and one value.
macro_rules! debug_with {
    ($type:ident<$($param:ident $(: $bound:ident + $other:ident)?),*>: $figure:literal, $it:ident => $value:expr) => {
        impl<$($param $(: $bound + $other)?),*> core::fmt::Debug for $type<$($param),*> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let $it = self;
                f.debug_struct(stringify!($type)).field($figure, &$value).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug_with;
