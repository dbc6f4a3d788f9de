//! Encoder and decoder of Nasdaq OUCH 5.0 order entry, for venues and clients.
//!
//! [`Inbound::parse`] and [`Outbound::parse`] read every message of the protocol with its options. On the
//! venue's side, [`decode_request`] turns a message into an [`OrderRequest`](tickpath_types::OrderRequest) or
//! a reason to refuse it, and [`encode_event`] writes the answer. On the client's side, [`encode_request`]
//! and [`decode_event`] do the reverse, and [`Client`] is the complete client.
//!
//! Messages travel in SoupBinTCP: the client's in unsequenced packets, the venue's in sequenced ones.
//!
//! ```
//! use tickpath_nasdaq::ouch50;
//! use tickpath_types::{CancelOrder, OrderRequest, Qty, UserRefNum};
//!
//! let cancel = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(7), qty: Qty(0) });
//! let mut wire = [0; ouch50::MESSAGE_LEN_MAX];
//! let len = ouch50::encode_request(&cancel, |_| None, &mut wire).unwrap();
//! assert_eq!(&wire[..len], b"X\0\0\0\x07\0\0\0\0");
//! assert_eq!(ouch50::decode_request(&wire[..len], |_| None), Ok(cancel));
//! ```

mod client;
mod codes;
mod event;
mod inbound;
mod options;
mod outbound;
mod request;

pub use client::{Client, ClientError};
pub use codes::*;
pub use event::*;
pub use inbound::*;
pub use options::{Options, OptionsError, TagValue, encode_with_options};
pub use outbound::*;
pub use request::{RequestError, decode_request, encode_request};

use tickpath_types::InstrumentId;

use self::options::OPTIONS_LEN_MAX;
use crate::soupbintcp::{BufferTooShort, SendError};
use crate::wire::OutOfRange;

/// Length of the longest message that [`encode_request`] and [`encode_event`] write, in bytes.
pub const MESSAGE_LEN_MAX: usize = Replaced::LEN + 2 + OPTIONS_LEN_MAX;
/// Highest limit price of OUCH, 199,999.9900, in units of 10^-4.
pub const PRICE_MAX: u64 = 1_999_999_900;

/// The reason why bytes are not an OUCH 5.0 message: count and drop the message, or close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The message is empty.
    #[error("the message is empty: drop it")]
    Empty,
    /// The type byte is unknown, or belongs to a message of the other direction.
    #[error("no message of this direction has type {message_type:#04x}: drop it")]
    UnknownType {
        /// The type byte.
        message_type: u8,
    },
    /// The message is shorter than the fixed part of its type.
    #[error("a message '{}' has at least {needed} bytes and this has {len}: drop it", *message_type as char)]
    Truncated {
        /// The type byte.
        message_type: u8,
        /// Length of the message's fixed part in bytes.
        needed: usize,
        /// Length of the message in bytes.
        len: usize,
    },
    /// The bytes after the fixed part are not a list of options.
    #[error("a message '{}': {error}", *message_type as char)]
    Options {
        /// The type byte.
        message_type: u8,
        /// The error in the options.
        error: OptionsError,
    },
}

/// The reason why a message could not be encoded; do not send the buffer's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is shorter than the message: [`MESSAGE_LEN_MAX`] always suffices.
    #[error(transparent)]
    BufferTooShort(#[from] BufferTooShort),
    /// A quantity or a price does not fit its field: check it beforehand.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The instrument has no symbol: the two sides have different instrument files.
    #[error("instrument {0} has no symbol: give both sides the same instruments")]
    UnknownInstrument(InstrumentId),
    /// OUCH has neither stop prices nor good-till-cancelled orders: use another order entry gateway.
    #[error("OUCH has neither stop orders nor good-till-cancelled ones: enter it at another endpoint")]
    NotInOuch,
    /// The session is not logged in, so it cannot frame the message.
    #[error(transparent)]
    Session(SendError),
}

impl From<SendError> for EncodeError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::BufferTooShort(error) => EncodeError::BufferTooShort(error),
            other => EncodeError::Session(other),
        }
    }
}

/// Declares the messages of one direction and their enum. The string after the option rule is the message's
/// title in the specification; `of YEAR` names the edition that added the message.
macro_rules! ouch_messages {
    (
        $(#[$enum_doc:meta])*
        $enum:ident {
            $( $(#[$field_doc0:meta])* common $offset0:literal $field0:ident: $wire0:ty, )*
        }
        $(
            $(#[$doc:meta])*
            $name:ident = $type:literal, $len:literal, options $rule:ident, $source:literal $(of $edition:literal)? {
                $( $(#[$field_doc:meta])* $offset:literal $field:ident: $wire:ty, )*
            }
        )*
    ) => {
        ouch_messages! { @structs [ $( $(#[$field_doc0])* $offset0 $field0: $wire0, )* ] $(
            $(#[$doc])*
            #[doc = concat!(
                "\nSource: Nasdaq OUCH 5.0, ", $( "edition of October ", $edition, ", ", )? "\"", $source, "\"; ", $len,
                " bytes", ouch_messages!(@options $rule), "."
            )]
            $name = $type, $len [ $( $(#[$field_doc])* $offset $field: $wire, )* ]
        )* }

        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $enum<'a> {
            $(
                #[doc = concat!("A [`", stringify!($name), "`] and its options.")]
                $name(&'a $name, Options<'a>),
            )*
        }

        impl<'a> $enum<'a> {
            /// Parses one message and checks its options.
            ///
            /// # Errors
            /// [`ParseError`] states the cause.
            pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
                let Some(&message_type) = message.first() else {
                    return Err(ParseError::Empty);
                };
                match message_type {
                    $( $name::TYPE => {
                        let Ok((fixed, rest)) = $name::ref_from_prefix(message) else {
                            let (needed, len) = ($name::LEN, message.len());
                            return Err(ParseError::Truncated { message_type, needed, len });
                        };
                        match Options::parse(rest, Presence::$rule) {
                            Ok(options) => Ok($enum::$name(fixed, options)),
                            Err(error) => Err(ParseError::Options { message_type, error }),
                        }
                    } )*
                    _ => Err(ParseError::UnknownType { message_type }),
                }
            }
        }
    };
    (@options Always) => { " and options" };
    (@options Maybe) => { ", perhaps with options" };
    (@options AfterStrategy) => { ", perhaps with a strategy and options" };
    // `$common` is one token tree, since a macro cannot repeat the common fields in each repeated message.
    (@structs $common:tt $( $(#[$doc:meta])* $name:ident = $type:literal, $len:literal $own:tt )*) => {
        $( ouch_messages! { @struct $(#[$doc])* $name = $type, $len $common $own } )*
    };
    (
        @struct $(#[$doc:meta])* $name:ident = $type:literal, $len:literal
        [ $($common:tt)* ] [ $($own:tt)* ]
    ) => {
        tickpath_wire::message! { $(#[$doc])* $name = $type, $len { $($common)* $($own)* } }
    };
}

pub(crate) use ouch_messages;
