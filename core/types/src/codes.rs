//! Enums with a one-byte code per value, for wire formats, logs and snapshots.

/// Declares enums whose values each have a byte and an optional text.
///
/// A byte keeps its meaning for as long as logs are kept: new values get new bytes, and a byte is never
/// reused.
macro_rules! coded {
    ($($(#[$about:meta])* pub enum $name:ident {
        $($(#[$meaning:meta])* $value:ident = $code:literal $(=> $text:literal)?,)*
    })*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$meaning])* $value = $code,)*
        }

        impl $name {
            /// Byte of this value in logs and snapshots.
            #[inline]
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// Value with this byte; `None` for an unknown byte.
            #[inline]
            #[must_use]
            pub const fn from_code(code: u8) -> Option<$name> {
                match code {
                    $($code => Some($name::$value),)*
                    _ => None,
                }
            }
        }

        coded! { @text $name $($value $(=> $text)?,)* }
    )* };
    (@text $name:ident $($value:ident => $text:literal,)+) => {
        impl $name {
            /// Text of this value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $text,)+
                }
            }
        }
    };
    (@text $name:ident $($value:ident,)*) => {};
}
pub(crate) use coded;

#[cfg(test)]
mod tests {
    use crate::{CancelReason, CrossKind, RejectReason, TimeInForce, TradingState};

    #[test]
    fn codes_round_trip() {
        let mut known = 0;
        for code in 0..=u8::MAX {
            for back in [
                TimeInForce::from_code(code).map(TimeInForce::code),
                CancelReason::from_code(code).map(CancelReason::code),
                RejectReason::from_code(code).map(RejectReason::code),
                TradingState::from_code(code).map(TradingState::code),
                CrossKind::from_code(code).map(CrossKind::code),
            ]
            .into_iter()
            .flatten()
            {
                assert_eq!(back, code);
                known += 1;
            }
        }
        assert_eq!(known, 4 + 9 + 28 + 4 + 4);
        assert_eq!(RejectReason::from_code(0), None);
    }
}
