//! All messages of one protocol.

/// Declares all items that list each message of a protocol: `Listener`, with one method per message, the enum
/// `Message`, the lengths and `MESSAGE_TYPES`.
///
/// Arguments: the enum, the type of message types, the functions that read a message's type and the message,
/// the function of lengths and its constant, the messages with the enum's content for each (`&'a Name` or
/// `Name`), and further methods of the listener. Each protocol implements the dispatch to a listener itself.
#[macro_export]
macro_rules! messages {
    (
        $(#[$meta:meta])*
        enum Message<$lt:lifetime> of $type:ty, $type_of:ident, $read:ident;
        $(#[$len_meta:meta])*
        fn $message_len:ident = $len:ident;
        { $( $name:ident($content:ty) = $code:literal $(| $other:literal)?, $handler:ident; )* }
        { $($more:tt)* }
    ) => {
        /// Receives decoded messages, one method per message; each does nothing by default.
        pub trait Listener {
            $(
                #[doc = concat!("A [`", stringify!($name), "`] came.")]
                #[inline]
                fn $handler(&mut self, message: &$name) {
                    let _ = message;
                }
            )*

            /// Handles a message of an unlisted type. New types may be added without notice, so a reader
            /// counts it and continues.
            #[inline]
            fn on_unknown(&mut self, message_type: $type, message: &[u8]) {
                let _ = (message_type, message);
            }

            $($more)*
        }

        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Message<$lt> {
            $(
                #[doc = concat!("A [`", stringify!($name), "`].")]
                $name($content),
            )*
            /// A message of an unlisted type.
            Unknown(&$lt [u8]),
        }

        impl<$lt> Message<$lt> {
            /// Parses one message.
            ///
            /// # Errors
            /// As [`decode`].
            pub fn parse(message: &$lt [u8]) -> Result<Self, $crate::Malformed> {
                match $type_of(message)? {
                    $( $code $(| $other)? => $read(message, Message::$name), )*
                    _ => Ok(Message::Unknown(message)),
                }
            }
        }

        $(#[$len_meta])*
        #[must_use]
        pub const fn $message_len(message_type: $type) -> Option<usize> {
            match message_type {
                $( $code $(| $other)? => Some($name::$len), )*
                _ => None,
            }
        }

        /// The listed types.
        pub const MESSAGE_TYPES: &[$type] = &[$( $code $(, $other)? ),*];
    };
}

/// Declares the listener `Fields`, which passes all fields of each message to a function.
///
/// Arguments: the type of message types, a name for a message, and the messages with their types and fields.
#[macro_export]
macro_rules! fields {
    (
        $type:ty, $message:ident;
        $( $name:ident = $message_type:expr, $handler:ident { $( $field:ident )* } )*
    ) => {
        /// Passes all fields of each message to a function, the type first. Tools use it to compute checksums
        /// of decoded messages.
        ///
        /// A field is its bytes as a little-endian number; text beyond eight bytes is mixed in. An unlisted
        /// message is its type, its length and its bytes.
        #[derive(Clone, Copy, Debug)]
        pub struct Fields<F>(pub F);

        impl<F: FnMut(&[u64])> Listener for Fields<F> {
            $(
                #[inline]
                fn $handler(&mut self, $message: &$name) {
                    (self.0)(&[u64::from($message_type), $( $crate::le_bits(&$message.$field), )*]);
                }
            )*

            fn on_unknown(&mut self, message_type: $type, message: &[u8]) {
                (self.0)(&[u64::from(message_type), message.len() as u64]);
                message.chunks(8).for_each(|part| (self.0)(&[$crate::le_bits(part)]));
            }
        }
    };
}
