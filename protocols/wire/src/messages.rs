//! All messages of one protocol.

/// Declares whatever must name each message of a protocol once: `Listener`, with one method a message, the enum `Message`,
/// the lengths and `MESSAGE_TYPES`.
///
/// Given are the enum, the type of types, the functions that read a message's type and the message itself, the function of
/// lengths and the constant that it gives, the messages with what the enum holds of each (`&'a Name` or `Name`), and further
/// methods of the listener. How a message reaches a listener is the protocol's own.
#[macro_export]
macro_rules! messages {
    (
        $(#[$meta:meta])*
        enum Message<$lt:lifetime> of $type:ty, $type_of:ident, $read:ident;
        $(#[$len_meta:meta])*
        fn $message_len:ident = $len:ident;
        { $( $name:ident($held:ty) = $code:literal $(| $other:literal)?, $handler:ident; )* }
        { $($more:tt)* }
    ) => {
        /// Receives decoded messages, one method a message; each does nothing unless it is written.
        pub trait Listener {
            $(
                #[doc = concat!("A [`", stringify!($name), "`] came.")]
                #[inline]
                fn $handler(&mut self, message: &$name) {
                    let _ = message;
                }
            )*

            /// A message came whose type is not listed; new types may be added without notice, so a reader counts it and
            /// goes on.
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
                $name($held),
            )*
            /// A message whose type is not listed.
            Unknown(&$lt [u8]),
        }

        impl<$lt> Message<$lt> {
            /// Reads one message.
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

        /// The types that are listed.
        pub const MESSAGE_TYPES: &[$type] = &[$( $code $(, $other)? ),*];
    };
}

/// Declares the listener `Fields`, which gives all fields of each message to a function.
///
/// Given are the type of types, a name for a message, and the messages with their types, perhaps by that name, and fields.
#[macro_export]
macro_rules! fields {
    (
        $type:ty, $message:ident;
        $( $name:ident = $message_type:expr, $handler:ident { $( $field:ident )* } )*
    ) => {
        /// Gives all fields of each message to a function, the type first: what is left of a decoder for who sums up what it
        /// decoded.
        ///
        /// A field is its bytes as a little-endian number, of text beyond eight bytes with the others mixed in. A message
        /// that is not listed is its type, its length and its bytes.
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
