//! The points where a message is stamped, and the timed functions.

use std::fmt;

/// Id space: the kind of id that identifies a message at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdSpace {
    /// The message's sequence number in the market data session: [`MarketId`](crate::MarketId).
    Market,
    /// The command's sequence number in the venue's log: [`CommandId`](crate::CommandId).
    Command,
    /// The client's session and the request's UserRefNum: [`Token`](crate::Token).
    Token,
}

macro_rules! hops {
    ($($(#[$doc:meta])* $hop:ident $space:ident,)*) => {
        tickpath_types::enumerated! {
            /// A point on a message's path where it is stamped.
            ///
            /// Suffixes: `w` is the moment before a write to a socket, `k` the kernel's time of receipt, `t`
            /// the path of the response back to the client (a *trade* response).
            #[derive(PartialOrd, Ord)]
            pub enum Hop {
                $($(#[$doc])* $hop,)*
            }
        }

        impl Hop {
            /// The short name, as in `"T6tw"`.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Hop::$hop => stringify!($hop),)* }
            }

            /// The space of a message's id at this hop.
            #[must_use]
            pub const fn space(self) -> IdSpace {
                match self { $(Hop::$hop => IdSpace::$space,)* }
            }
        }
    };
}

hops! {
    /// The kernel of the venue's host received the order.
    T1k Token,
    /// The order server read the order from TCP.
    T1 Token,
    /// The order was sequenced into the command log. The command is linked to its token here.
    T2 Command,
    /// The matcher took the command.
    T3 Command,
    /// The matcher emitted a market event. The event is linked to its command here.
    T4 Market,
    /// The publisher took the market event.
    T5 Market,
    /// The publisher is about to write the packet.
    T6w Market,
    /// The publisher's write returned.
    T6 Market,
    /// The kernel of the trader's host received the packet.
    T7k Market,
    /// The feed handler's read returned.
    T7 Market,
    /// The feed handler hands the update to the engines.
    T8 Market,
    /// An engine took the update.
    T9 Market,
    /// An engine emitted an order after its risk checks. The token is linked to the triggering update here.
    T10 Token,
    /// The order gateway took the order.
    T11 Token,
    /// The order gateway is about to write the order to TCP.
    T12w Token,
    /// The order gateway's write returned.
    T12 Token,
    /// The matcher emitted the first response.
    T4t Command,
    /// The order server took the response.
    T5t Command,
    /// The order server is about to write the response to TCP.
    T6tw Command,
    /// The order server's write returned.
    T6t Command,
    /// The order gateway read the response from TCP.
    T7t Token,
    /// The order gateway hands the response to the engine.
    T8t Token,
    /// The engine took the response.
    T9t Token,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

macro_rules! functions {
    ($($function:ident $name:literal $description:literal,)*) => {
        tickpath_types::enumerated! {
            /// A function whose calls are timed separately, not on a message's path. The caller times only a
            /// sample.
            pub enum Function {
                $(#[doc = $description] $function,)*
            }
        }

        impl Function {
            /// Name in reports, as in `"book_apply"`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Function::$function => $name,)* }
            }

            /// Description of the function.
            #[must_use]
            pub const fn describe(self) -> &'static str {
                match self { $(Function::$function => $description,)* }
            }
        }
    };
}

functions! {
    BookApply "book_apply" "decode one message, apply it",
    Match "match" "match one command",
    Features "features" "compute the strategy's features",
    Strategy "strategy" "the strategy decides",
    Risk "risk" "pre-trade checks of one order",
    OrderEncode "order_encode" "encode one order",
    MarketEncode "market_encode" "encode one market data message",
    ResponseEncode "response_encode" "encode one response",
    OrderDecode "order_decode" "decode one order",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_names_and_indices_are_positions() {
        for (index, hop) in Hop::ALL.into_iter().enumerate() {
            assert_eq!(hop.index(), index);
            assert_eq!(hop.code(), format!("{hop:?}"));
        }
        for (index, function) in Function::ALL.into_iter().enumerate() {
            assert_eq!(function.index(), index);
        }
        assert_eq!(Hop::COUNT, 23);
        assert_eq!(format!("{:<5}|", Hop::T6tw), "T6tw |");
    }
}
