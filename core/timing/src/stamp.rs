//! The 16-byte record of a stamp.

use tickpath_types::Sequence;

use crate::{CommandId, Function, Hop, IdSpace, MarketId, Token, TraceId};

/// One record of a trace ring or a trace file: the stamp of one message or of a range of market data messages,
/// a link between ids, or the time of a function.
///
/// The first word has the kind in its top byte and a 56-bit id below; the second is the time-stamp counter,
/// the parent's id, or a number of ticks. The id of a range is the sequence number of its first message, and
/// its top 8 bits are the number of further messages. An all-zero record is of no kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stamp(pub [u64; 2]);

const _: () = assert!(size_of::<Stamp>() == 16);

/// The content of a [`Stamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampKind {
    /// A message passed a hop.
    Hop {
        /// The hop.
        hop: Hop,
        /// Id of the message, in the space of the hop.
        id: u64,
        /// Time in ticks of the time-stamp counter.
        tsc: u64,
    },
    /// Market data messages with consecutive sequence numbers passed a hop of the venue at the same time.
    HopRange {
        /// The hop.
        hop: Hop,
        /// The first message.
        first: MarketId,
        /// Number of messages, 1 to [`RANGE_LEN_MAX`](crate::RANGE_LEN_MAX).
        count: u16,
        /// Time in ticks of the time-stamp counter.
        tsc: u64,
    },
    /// Link from an order to the market data message that triggered it; the [`MarketId`] also identifies the
    /// feed handler and engine.
    TokenFromMarket(Token, MarketId),
    /// Link from a command to the request that it carries.
    CommandFromToken(CommandId, Token),
    /// Link from a market data message to the command that caused it.
    MarketFromCommand(MarketId, CommandId),
    /// The duration of one call of a function.
    Time {
        /// The timed function.
        function: Function,
        /// Duration in ticks.
        ticks: u64,
    },
}

const ID_BITS: u32 = 56;
const ID_MASK: u64 = (1 << ID_BITS) - 1;

/// Maximum number of messages of one record of a range.
pub const RANGE_LEN_MAX: u64 = 1 << 8;
/// Position of a range's length minus 1. The sequence number of a [`MarketId`] takes the bits below.
const RANGE_SHIFT: u32 = 48;

// Codes of the top byte: 0 is unused, hops count from 1, and ranges have the same order after FIRST_RANGE.
const FIRST_HOP: u8 = 1;
const FIRST_RANGE: u8 = 0x20;
const TOKEN_FROM_MARKET: u8 = 0x40;
const COMMAND_FROM_TOKEN: u8 = 0x41;
const MARKET_FROM_COMMAND: u8 = 0x42;
const FIRST_FUNCTION: u8 = 0x80;

const _: () = assert!(FIRST_HOP as usize + Hop::COUNT <= FIRST_RANGE as usize);
const _: () = assert!(FIRST_RANGE as usize + Hop::COUNT <= TOKEN_FROM_MARKET as usize);

impl Stamp {
    #[inline(always)]
    const fn new(code: u8, id: u64, value: u64) -> Stamp {
        debug_assert!(id <= ID_MASK);
        Stamp([(code as u64) << ID_BITS | id, value])
    }

    /// Returns the record of a message that passed a hop at time `tsc`.
    #[inline(always)]
    #[must_use]
    pub fn hop<I: TraceId>(hop: Hop, id: I, tsc: u64) -> Stamp {
        debug_assert!(hop.space() == I::SPACE, "{hop} is stamped with an id of the {:?} space", hop.space());
        Stamp::new(FIRST_HOP + hop as u8, id.bits(), tsc)
    }

    /// Returns the record of `count` market data messages from sequence number `first` on that passed a hop of
    /// the venue at time `tsc`. `count` is 1 to [`RANGE_LEN_MAX`].
    #[inline(always)]
    #[must_use]
    pub fn hop_range(hop: Hop, first: Sequence, count: u64, tsc: u64) -> Stamp {
        debug_assert!(
            hop.space() == IdSpace::Market,
            "{hop} is stamped with an id of the {:?} space",
            hop.space()
        );
        debug_assert!(
            (1..=RANGE_LEN_MAX).contains(&count),
            "a range has 1 to {RANGE_LEN_MAX} messages: {count}"
        );
        Stamp::new(FIRST_RANGE + hop as u8, MarketId::new(first).bits() | (count - 1) << RANGE_SHIFT, tsc)
    }

    /// Returns the link from a message to its cause.
    #[inline(always)]
    #[must_use]
    pub fn link<I: TraceId>(child: I, parent: I::Parent) -> Stamp {
        let code = match I::SPACE {
            IdSpace::Token => TOKEN_FROM_MARKET,
            IdSpace::Command => COMMAND_FROM_TOKEN,
            IdSpace::Market => MARKET_FROM_COMMAND,
        };
        Stamp::new(code, child.bits(), parent.bits())
    }

    /// Returns the record of a function that took `ticks`.
    #[inline(always)]
    #[must_use]
    pub const fn time(function: Function, ticks: u64) -> Stamp {
        Stamp::new(FIRST_FUNCTION + function as u8, 0, ticks)
    }

    /// Returns the content, or `None` when the record is of no known kind.
    #[must_use]
    pub fn decode(self) -> Option<StampKind> {
        let [head, value] = self.0;
        let (code, id) = ((head >> ID_BITS) as u8, head & ID_MASK);
        let command = |bits| CommandId(Sequence(bits));
        match code {
            TOKEN_FROM_MARKET => {
                Some(StampKind::TokenFromMarket(Token::from_bits(id), MarketId::from_bits(value & ID_MASK)))
            }
            COMMAND_FROM_TOKEN => {
                Some(StampKind::CommandFromToken(command(id), Token::from_bits(value & ID_MASK)))
            }
            MARKET_FROM_COMMAND => {
                Some(StampKind::MarketFromCommand(MarketId::from_bits(id), command(value & ID_MASK)))
            }
            FIRST_FUNCTION.. => {
                let function = *Function::ALL.get(usize::from(code - FIRST_FUNCTION))?;
                Some(StampKind::Time { function, ticks: value })
            }
            FIRST_RANGE.. => {
                let hop = *Hop::ALL.get(usize::from(code - FIRST_RANGE))?;
                let (first, count) = (MarketId::new(Sequence(id)), (id >> RANGE_SHIFT) as u16 + 1);
                (hop.space() == IdSpace::Market).then_some(StampKind::HopRange {
                    hop,
                    first,
                    count,
                    tsc: value,
                })
            }
            _ => {
                let hop = *Hop::ALL.get(usize::from(code.checked_sub(FIRST_HOP)?))?;
                Some(StampKind::Hop { hop, id, tsc: value })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{SessionId, UserRefNum};

    use super::*;

    #[test]
    fn every_kind_is_read_back() {
        let market = MarketId::new(Sequence(9)).via_feed(1).to_engine(2);
        let command = CommandId(Sequence((1 << 56) - 1));
        let token = Token::new(SessionId(u16::MAX), UserRefNum(u32::MAX), true);
        for hop in Hop::ALL {
            let (stamp, id) = match hop.space() {
                IdSpace::Market => (Stamp::hop(hop, market, 5), market.bits()),
                IdSpace::Command => (Stamp::hop(hop, command, 5), command.bits()),
                IdSpace::Token => (Stamp::hop(hop, token, 5), token.bits()),
            };
            assert_eq!(stamp.decode(), Some(StampKind::Hop { hop, id, tsc: 5 }));
        }
        let links = [
            (Stamp::link(token, market), StampKind::TokenFromMarket(token, market)),
            (Stamp::link(command, token), StampKind::CommandFromToken(command, token)),
            (Stamp::link(market, command), StampKind::MarketFromCommand(market, command)),
        ];
        for (stamp, kind) in links {
            assert_eq!(stamp.decode(), Some(kind));
        }
        let first = Sequence((1 << 48) - 1);
        for hop in Hop::ALL.into_iter().filter(|hop| hop.space() == IdSpace::Market) {
            for count in [1, 2, RANGE_LEN_MAX] {
                let kind =
                    StampKind::HopRange { hop, first: MarketId::new(first), count: count as u16, tsc: 5 };
                assert_eq!(Stamp::hop_range(hop, first, count, 5).decode(), Some(kind));
            }
        }
        for function in Function::ALL {
            assert_eq!(Stamp::time(function, 7).decode(), Some(StampKind::Time { function, ticks: 7 }));
        }
    }

    #[test]
    fn unknown_codes_are_not_decoded() {
        let known =
            (0..=u8::MAX).filter(|code| Stamp([u64::from(*code) << ID_BITS, 1]).decode().is_some()).count();
        let ranges = Hop::ALL.into_iter().filter(|hop| hop.space() == IdSpace::Market).count();
        assert_eq!(known, Hop::COUNT + ranges + 3 + Function::COUNT);
        assert_eq!(Stamp([0, 0]).decode(), None);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a range has 1 to 256 messages: 257")]
    fn a_range_longer_than_a_record_holds_is_refused() {
        let _ = Stamp::hop_range(Hop::T5, Sequence(1), RANGE_LEN_MAX + 1, 1);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "T2 is stamped with an id of the Command space")]
    fn an_id_of_another_space_is_refused() {
        let _ = Stamp::hop(Hop::T2, MarketId::new(Sequence(1)), 1);
    }
}
