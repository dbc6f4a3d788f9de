//! Macros that declare codes and flags of one byte.

use std::fmt;

/// Declares types of one-byte codes. Every byte is valid: a listed code has a name, and an unlisted one is
/// kept and printed as received.
///
/// Attributes before a name apply to its type. See the [crate's example](crate).
#[macro_export]
macro_rules! codes {
    ($( $(#[$meta:meta])* $name:ident { $( $code:ident = $byte:literal $meaning:literal, )+ } )+) => { $(
        $crate::byte! { $(#[$meta])* $name { $( $code = $byte $meaning, )+ } }

        impl $name {
            /// Returns the meaning of the code, or `None` when the specification does not list it.
            #[must_use]
            pub const fn meaning(self) -> Option<&'static str> {
                match self {
                    $( $name::$code => Some($meaning), )+
                    _ => None,
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::fmt_code(self.0, self.meaning(), f)
            }
        }
    )+ };
}

/// Declares types of one-byte flags: each listed bit has a name, and unlisted bits are kept.
#[macro_export]
macro_rules! flags {
    ($( $(#[$meta:meta])* $name:ident { $( $flag:ident = $bit:literal $meaning:literal, )+ } )+) => { $(
        $crate::byte! { $(#[$meta])* #[derive(Default)] $name { $( $flag = $bit $meaning, )+ } }

        impl $name {
            /// Returns true if any of `flags` is set.
            #[inline]
            #[must_use]
            pub const fn has(self, flags: $name) -> bool {
                self.0 & flags.0 != 0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#04x}", self.0)?;
                $( if self.has($name::$flag) {
                    write!(f, " ({})", $meaning)?;
                } )+
                Ok(())
            }
        }
    )+ };
}

/// Maps codes to variants of an enum: declares a method from code to variant, and `From` for the reverse.
///
/// An entry `CODE = Value` applies in both directions. The block `read` lists codes that are only decoded;
/// `written` lists patterns of variants that are only encoded. See the [crate's example](crate).
#[macro_export]
macro_rules! maps_to {
    ($(
        $(#[$meta:meta])+
        $name:ident, $method:ident: $value:ident { $( $code:ident = $both:ident, )+ }
        $( read { $( $read:ident = $as:ident, )+ } )?
        $( written { $( $only:pat => $written:expr, )+ } )?
    )+) => { $(
        impl $name {
            $(#[$meta])+
            #[inline]
            #[must_use]
            pub const fn $method(self) -> Option<$value> {
                match self {
                    $( $name::$code => Some($value::$both), )+
                    $( $( $name::$read => Some($value::$as), )+ )?
                    _ => None,
                }
            }
        }

        impl From<$value> for $name {
            #[inline]
            fn from(value: $value) -> Self {
                match value {
                    $( $value::$both => $name::$code, )+
                    $( $( $only => $written, )+ )?
                }
            }
        }
    )+ };
}

/// Declares a one-byte type with named constants, for `codes` and `flags`.
#[doc(hidden)]
#[macro_export]
macro_rules! byte {
    ($(#[$meta:meta])* $name:ident { $( $value:ident = $byte:literal $meaning:literal, )+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[derive(zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($byte), "`: ", $meaning, ".")]
                pub const $value: $name = $name($byte);
            )+
        }

        impl $crate::Bits for $name {
            #[inline]
            fn bits(&self) -> u64 {
                u64::from(self.0)
            }
        }

        impl From<u8> for $name {
            #[inline]
            fn from(byte: u8) -> Self {
                $name(byte)
            }
        }
    };
}

/// Formats a code as a quoted character, followed by its meaning in parentheses if it has one.
#[doc(hidden)]
pub fn fmt_code(code: u8, meaning: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "'{}'", code.escape_ascii())?;
    match meaning {
        Some(meaning) => write!(f, " ({meaning})"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    codes! {
        /// A printable code, and a code that is not printable.
        Stage {
            OPEN = b'O' "open",
            NONE = 0 "none",
        }
    }
    flags! {
        /// Two of the eight bits have names.
        Conditions {
            SWEEP = 0x80 "sweep",
            ODD_LOT = 0x20 "odd lot",
        }
    }

    #[test]
    fn codes_are_shown_with_their_meaning_and_unknown_ones_unchanged() {
        let shown = [Stage::OPEN, Stage::NONE, Stage(b'?')].map(|stage| format!("{stage:?}"));
        assert_eq!(shown, ["'O' (open)", "'\\x00' (none)", "'?'"]);
        assert_eq!((Stage::from(b'O').meaning(), Stage(1).meaning()), (Some("open"), None));
    }

    #[test]
    fn flags_are_shown_individually_and_unknown_bits_are_kept() {
        let both = Conditions(0xa1);
        assert_eq!(format!("{both:?}"), "0xa1 (sweep) (odd lot)");
        assert!(both.has(Conditions::SWEEP) && !Conditions::default().has(Conditions(0xff)));
    }
}
