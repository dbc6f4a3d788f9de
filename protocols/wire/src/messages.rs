//! Macros that declare the items for all messages of a protocol.

/// Declares the items that cover all messages of a protocol: the trait `Listener` with a method per message,
/// the enum `Message`, the function that returns a message's length, and `MESSAGE_TYPES`.
///
/// Arguments: the enum; the type of message types; the function that reads a message's type and the one that
/// reads the message; the length function and the constant that it returns; the messages, each with the
/// content of its enum variant (`&'a Name` or `Name`); further methods of `Listener`. Each protocol
/// module must define `decode`, which calls the listener.
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
        /// Receives decoded messages, with one method per message type; by default each method does nothing.
        pub trait Listener {
            $(
                #[doc = concat!("Handles a [`", stringify!($name), "`].")]
                #[inline]
                fn $handler(&mut self, message: &$name) {
                    let _ = message;
                }
            )*

            /// Handles a message of an unlisted type. New types may be added without notice, so count the
            /// message and continue.
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
            /// The errors of [`decode`].
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

        /// All message types that the protocol lists.
        pub const MESSAGE_TYPES: &[$type] = &[$( $code $(, $other)? ),*];
    };
}

/// Declares the listener `Fields`, which passes all fields of each message to a function.
///
/// Arguments: the type of message types; the name of the variable by which the message type expressions refer
/// to the message; per message its name, its type expression, its handler and its fields.
#[macro_export]
macro_rules! fields {
    (
        $type:ty, $message:ident;
        $( $name:ident = $message_type:expr, $handler:ident { $( $field:ident )* } )*
    ) => {
        /// Passes all fields of each message to a function, the type first. Tools use it to compute checksums
        /// of decoded messages.
        ///
        /// A field is passed as the little-endian number of its bytes; more than 8 bytes are hashed into 8.
        /// For an unlisted type, the first call has type and length, each later call up to 8 message bytes.
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
