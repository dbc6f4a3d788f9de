//! The reported measures: times between two hops, spans over several hops, and their groups in the report.

use crate::Hop;

tickpath_types::enumerated! {
    /// Section of the report: a part of a trade's path. The variants are in the order of the report.
    #[derive(PartialOrd, Ord)]
    pub enum Group {
        /// Paths over several hops, such as from the market data read to the order's write.
        Span,
        /// The path from the matcher's market event to the engine.
        MarketData,
        /// The path from the engine to the write of the order.
        Decision,
        /// The path from the write of the order to the order server's read.
        OrderIn,
        /// The path from the order server's read to the matcher's answer.
        Venue,
        /// The path from the matcher's answer to the engine.
        Response,
        /// Single functions.
        Function,
    }
}

impl Group {
    /// Heading of the group in the report.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Group::Span => "End to end",
            Group::MarketData => "Market data out: matcher to engine",
            Group::Decision => "Decision: engine to order gateway",
            Group::OrderIn => "Order in: order gateway to order server",
            Group::Venue => "Venue: order server to matcher",
            Group::Response => "Response: matcher back to engine",
            Group::Function => "Functions, sampled",
        }
    }
}

macro_rules! measures {
    (
        $(#[$enum_doc:meta])* $enum:ident
        $($measure:ident $name:literal $from:ident $to:ident $group:ident $description:literal,)*
    ) => {
        tickpath_types::enumerated! {
            $(#[$enum_doc])*
            pub enum $enum {
                $(#[doc = $description] $measure,)*
            }
        }

        impl $enum {
            /// Name in reports and files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($enum::$measure => $name,)* }
            }

            /// Hop where the measured time starts.
            #[must_use]
            pub const fn from(self) -> Hop {
                match self { $($enum::$measure => Hop::$from,)* }
            }

            /// Hop where the measured time ends.
            #[must_use]
            pub const fn to(self) -> Hop {
                match self { $($enum::$measure => Hop::$to,)* }
            }

            /// Group of the measure in the report.
            #[must_use]
            pub const fn group(self) -> Group {
                match self { $($enum::$measure => Group::$group,)* }
            }

            /// Description of the work between the two hops.
            #[must_use]
            pub const fn describe(self) -> &'static str {
                match self { $($enum::$measure => $description,)* }
            }
        }
    };
}

measures! {
    /// The time between two hops of one message, or of two linked messages.
    ///
    /// A pair that crosses a socket may be negative: the reader can return before the writer does.
    Pair
    T3T4 "T3_T4" T3 T4 MarketData "matcher: command to market event",
    T4T5 "T4_T5" T4 T5 MarketData "ring to the publisher",
    T5T6w "T5_T6w" T5 T6w MarketData "publisher encodes and packs",
    T6wT6 "T6w_T6" T6w T6 MarketData "publisher's UDP send call",
    T6wT7k "T6w_T7k" T6w T7k MarketData "send begins to the receiving kernel",
    T6T7 "T6_T7" T6 T7 MarketData "send returned to feed handler's read",
    T6wT7 "T6w_T7" T6w T7 MarketData "send begins to feed handler's read",
    T7kT7 "T7k_T7" T7k T7 MarketData "kernel waits for the feed handler",
    T7T8 "T7_T8" T7 T8 MarketData "feed handler: arbitrate, decode, book",
    T8T9 "T8_T9" T8 T9 MarketData "ring to the engine",
    T9T10 "T9_T10" T9 T10 Decision "engine: features, strategy, risk",
    T10T11 "T10_T11" T10 T11 Decision "ring to the order gateway",
    T11T12w "T11_T12w" T11 T12w Decision "order gateway encodes the order",
    T12wT12 "T12w_T12" T12w T12 Decision "order gateway's TCP write call",
    T12wT1 "T12w_T1" T12w T1 OrderIn "write begins to order server's read",
    T12T1 "T12_T1" T12 T1 OrderIn "write returned to order server's read",
    T1kT1 "T1k_T1" T1k T1 OrderIn "kernel waits for the order server",
    T1T2 "T1_T2" T1 T2 Venue "order server: decode, check, sequence",
    T2T3 "T2_T3" T2 T3 Venue "ring to the matcher",
    T3T4t "T3_T4t" T3 T4t Venue "matcher: command to response",
    T4tT5t "T4t_T5t" T4t T5t Response "ring to the order server",
    T5tT6tw "T5t_T6tw" T5t T6tw Response "order server encodes the response",
    T6twT6t "T6tw_T6t" T6tw T6t Response "order server's TCP write call",
    T6twT7t "T6tw_T7t" T6tw T7t Response "write begins to order gateway's read",
    T7tT8t "T7t_T8t" T7t T8t Response "order gateway decodes the response",
    T8tT9t "T8t_T9t" T8t T9t Response "ring to the engine",
}

measures! {
    /// The time over several hops, such as from the market data read to the order's write.
    Span
    TickToTrade "tick_to_trade" T7 T12 Span "market data read to order written",
    TickToTradeSoftware "tick_to_trade_software" T7 T12w Span "market data read to order to be written",
    TickToTradeWithKernel "tick_to_trade_with_kernel" T7k T12 Span "market data in kernel to order written",
    TickToAck "tick_to_ack" T7 T9t Span "market data read to answer in the engine",
    VenueResponse "venue_response" T1 T6tw Span "order read to response to be written",
    VenueResponseWithKernel "venue_response_with_kernel" T1k T6t Span "order in the kernel to response written",
    VenuePublish "venue_publish" T1 T6w Span "order read to market data to be sent",
    OrderRoundTrip "order_round_trip" T12w T7t Span "order to be written to response read",
}

/// The times at the hops of a message and of its linked messages, in ticks; 0 where unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps(pub(crate) [u64; Hop::COUNT]);

impl Stamps {
    pub(crate) const NONE: Stamps = Stamps([0; Hop::COUNT]);

    pub(crate) const fn at(&self, hop: Hop) -> u64 {
        self.0[hop.index()]
    }

    pub(crate) fn set(&mut self, hop: Hop, tsc: u64) {
        self.0[hop.index()] = tsc;
    }

    /// Ticks from one hop to another, negative when they occurred in reverse order; `None` if one is unknown.
    pub(crate) fn ticks(&self, from: Hop, to: Hop) -> Option<i64> {
        let (from, to) = (self.at(from), self.at(to));
        (from != 0 && to != 0).then(|| to.wrapping_sub(from) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pairs_are_those_of_their_hops() {
        for (index, pair) in Pair::ALL.into_iter().enumerate() {
            assert_eq!(pair.name(), format!("{}_{}", pair.from(), pair.to()));
            assert_eq!(pair.index(), index);
        }
        for (index, span) in Span::ALL.into_iter().enumerate() {
            assert_eq!(span.index(), index);
            assert_eq!(span.group(), Group::Span);
        }
    }

    #[test]
    fn a_difference_needs_both_ends_and_has_a_sign() {
        let mut stamps = Stamps::NONE;
        stamps.set(Hop::T7, 100);
        assert_eq!(stamps.ticks(Hop::T7, Hop::T8), None);
        stamps.set(Hop::T8, 90);
        assert_eq!(stamps.ticks(Hop::T7, Hop::T8), Some(-10));
    }
}
