//! Enums with a list of their values.

/// Declares enums without data, with all values in `ALL`, their number `COUNT`, and the `index` of each.
///
/// ```
/// tickpath_types::enumerated! {
///     /// Colours.
///     pub enum Colour {
///         /// Red.
///         Red,
///         /// Blue.
///         Blue,
///     }
/// }
///
/// assert_eq!(Colour::ALL[Colour::Blue.index()], Colour::Blue);
/// ```
#[macro_export]
macro_rules! enumerated {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$meaning:meta])* $value:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$meaning])* $value,)*
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: [$name; $name::COUNT] = [$($name::$value),*];
            /// Number of values.
            pub const COUNT: usize = [$(stringify!($value)),*].len();

            /// Position of this value in `ALL`.
            #[must_use]
            #[inline]
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}
