//! One-byte codes.

/// Declares types of one-byte codes: every byte is a value, the ones that the specification lists
/// have a name, and a code that is not listed is kept and shown as it came.
macro_rules! codes {
    ($( $(#[$doc:meta])* $name:ident { $( $code:ident = $byte:literal $meaning:literal, )+ } )+) => { $(
        $(#[$doc])*
        #[derive(
            Clone,
            Copy,
            PartialEq,
            Eq,
            Hash,
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::Immutable,
            zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($byte), "`: ", $meaning, ".")]
                pub const $code: $name = $name($byte);
            )+

            /// What the code means, or `None` when the specification does not list it.
            #[must_use]
            pub const fn meaning(self) -> Option<&'static str> {
                match self {
                    $( $name::$code => Some($meaning), )+
                    _ => None,
                }
            }
        }

        impl crate::wire::Bits for $name {
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

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "'{}'", self.0.escape_ascii())?;
                match self.meaning() {
                    Some(meaning) => write!(f, " ({meaning})"),
                    None => Ok(()),
                }
            }
        }
    )+ };
}

pub(crate) use codes;
