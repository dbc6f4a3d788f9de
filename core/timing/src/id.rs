//! The id of a message in a stamp: 56 bits in one of three id spaces.
//!
//! Stamps of one message are joined only by id, never by closeness in time. Each link leads from a message to
//! its cause in another space: order token <- the market data message that triggered it, command <- order
//! token, market data message <- command.

use tickpath_types::{CancelReason, OrderEventKind, OrderRequest, Sequence, SessionId, UserRefNum};

use crate::IdSpace;

/// Maximum number of feed handlers that stamp the messages of one market data session.
pub const FEEDS_MAX: usize = 2;
/// Maximum number of engines that stamp the messages of one market data session, over all feed handlers.
pub const ENGINES_MAX: usize = 4;

/// An id by which stamps are joined.
pub trait TraceId: Copy {
    /// Id type of the cause of a message in this space.
    type Parent: TraceId;
    /// Id space of this id type.
    const SPACE: IdSpace;
    /// The id, below 2^56.
    fn bits(self) -> u64;
}

/// Id of a market data message and, once they are known, of the feed handler and engine that took it.
///
/// Several feed handlers read a message of the venue, and several engines take it. The sequence number alone
/// is the id of the venue's stamps `T4` to `T6`. [`via_feed`](Self::via_feed) returns the id of the feed
/// handler's stamps `T7k` to `T8`; [`to_engine`](Self::to_engine) that of the engine's stamp `T9` and of
/// the link from an order to its trigger. So an order's path is followed through its own feed handler and
/// engine, even if others read the message too.
///
/// Bits, lowest first: 48 of sequence number, 4 of feed handler, 4 of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MarketId(u64);

impl MarketId {
    const FEED_SHIFT: u32 = 48;
    const ENGINE_SHIFT: u32 = 52;
    const SEQUENCE_MASK: u64 = (1 << Self::FEED_SHIFT) - 1;

    /// Id of a message at the venue; `sequence` is below 2^48.
    #[inline(always)]
    #[must_use]
    pub const fn new(sequence: Sequence) -> MarketId {
        MarketId(sequence.0 & Self::SEQUENCE_MASK)
    }

    /// Id of the message as read by feed handler number `feed`, below [`FEEDS_MAX`].
    #[inline(always)]
    #[must_use]
    pub const fn via_feed(self, feed: u8) -> MarketId {
        debug_assert!((feed as usize) < FEEDS_MAX);
        MarketId(self.0 & !(0xF << Self::FEED_SHIFT) | ((feed & 0xF) as u64) << Self::FEED_SHIFT)
    }

    /// Id of the message as taken by engine number `engine`, below [`ENGINES_MAX`]. Keeps the feed handler
    /// set by [`via_feed`](Self::via_feed).
    #[inline(always)]
    #[must_use]
    pub const fn to_engine(self, engine: u8) -> MarketId {
        debug_assert!((engine as usize) < ENGINES_MAX);
        MarketId(self.0 & !(0xF << Self::ENGINE_SHIFT) | ((engine & 0xF) as u64) << Self::ENGINE_SHIFT)
    }

    /// The message's sequence number.
    #[must_use]
    pub const fn sequence(self) -> Sequence {
        Sequence(self.0 & Self::SEQUENCE_MASK)
    }

    /// The feed handler's number.
    #[must_use]
    pub const fn feed(self) -> u8 {
        (self.0 >> Self::FEED_SHIFT) as u8 & 0xF
    }

    /// The engine's number.
    #[must_use]
    pub const fn engine(self) -> u8 {
        (self.0 >> Self::ENGINE_SHIFT) as u8 & 0xF
    }

    pub(crate) const fn from_bits(bits: u64) -> MarketId {
        MarketId(bits)
    }
}

impl TraceId for MarketId {
    type Parent = CommandId;
    const SPACE: IdSpace = IdSpace::Market;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.0
    }
}

/// Id of a command: its sequence number in the venue's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct CommandId(pub Sequence);

impl TraceId for CommandId {
    type Parent = Token;
    const SPACE: IdSpace = IdSpace::Command;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.0.0
    }
}

/// Id of a client's request: its session, its UserRefNum, and whether it enters a new order.
///
/// A cancel and a modification carry the UserRefNum of their order; the flag separates their stamps from
/// those of the order's entry. Two cancels of one order share a token: only the stamps of the first are used.
///
/// Bits, lowest first: 32 of UserRefNum, 16 of session, 1 of flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Token(u64);

impl Token {
    const SESSION_SHIFT: u32 = 32;
    const NEW_ORDER_SHIFT: u32 = 48;

    /// The token of a request; `is_new_order` is true for enter and replace, false for cancel and modify.
    #[inline(always)]
    #[must_use]
    pub const fn new(session: SessionId, user_ref: UserRefNum, is_new_order: bool) -> Token {
        Token(
            user_ref.0 as u64
                | (session.0 as u64) << Self::SESSION_SHIFT
                | (is_new_order as u64) << Self::NEW_ORDER_SHIFT,
        )
    }

    /// The token of a sent request.
    #[inline(always)]
    #[must_use]
    pub const fn of_request(session: SessionId, request: &OrderRequest) -> Token {
        Token::new(session, request.user_ref(), request.is_new_order())
    }

    /// The token of the request that an answer replies to; `None` for unsolicited order events. Every request
    /// has a reply, unless its order is already removed.
    #[must_use]
    pub const fn of_reply(session: SessionId, answer: &OrderEventKind) -> Option<Token> {
        match answer {
            OrderEventKind::Accepted { .. }
            | OrderEventKind::Replaced { .. }
            | OrderEventKind::Rejected { .. } => Some(Token::new(session, answer.user_ref(), true)),
            OrderEventKind::Canceled { reason: CancelReason::User, .. }
            | OrderEventKind::Modified { .. }
            | OrderEventKind::MassCanceled(_)
            | OrderEventKind::OrderEntrySet(_) => Some(Token::new(session, answer.user_ref(), false)),
            OrderEventKind::Canceled { .. }
            | OrderEventKind::Executed { .. }
            | OrderEventKind::SelfTradePrevented { .. }
            | OrderEventKind::Restated { .. }
            | OrderEventKind::Triggered { .. }
            | OrderEventKind::Broken { .. } => None,
        }
    }

    /// The client's session.
    #[must_use]
    pub const fn session(self) -> SessionId {
        SessionId((self.0 >> Self::SESSION_SHIFT) as u16)
    }

    /// The UserRefNum within the session.
    #[must_use]
    pub const fn user_ref(self) -> UserRefNum {
        UserRefNum(self.0 as u32)
    }

    /// True for enter and replace.
    #[must_use]
    pub const fn is_new_order(self) -> bool {
        self.0 >> Self::NEW_ORDER_SHIFT & 1 == 1
    }

    pub(crate) const fn from_bits(bits: u64) -> Token {
        Token(bits)
    }
}

impl TraceId for Token {
    type Parent = MarketId;
    const SPACE: IdSpace = IdSpace::Token;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_parts_at_the_ends_of_their_ranges() {
        for session in [0, 1, u16::MAX] {
            for user_ref in [0, 1, u32::MAX] {
                for is_new_order in [false, true] {
                    let token = Token::new(SessionId(session), UserRefNum(user_ref), is_new_order);
                    assert!(token.bits() < 1 << 56);
                    assert_eq!(token.session(), SessionId(session));
                    assert_eq!(token.user_ref(), UserRefNum(user_ref));
                    assert_eq!(token.is_new_order(), is_new_order);
                }
            }
        }
        let enter = Token::new(SessionId(1), UserRefNum(7), true);
        let cancel = Token::new(SessionId(1), UserRefNum(7), false);
        assert_ne!(enter, cancel, "a cancel does not collide with the entry of its order");
    }

    #[test]
    fn market_ids_keep_number_feed_and_engine() {
        let sequence = Sequence((1 << 48) - 1);
        let id = MarketId::new(sequence).via_feed(1).to_engine(3);
        assert_eq!((id.sequence(), id.feed(), id.engine()), (sequence, 1, 3));
        assert!(id.bits() < 1 << 56);
        assert_eq!(id.via_feed(0).to_engine(0), MarketId::new(sequence));
    }
}
