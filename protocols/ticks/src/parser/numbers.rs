//! Which number comes next.

use crate::message::{Header, Scope};

use super::listener::Gap;

/// Where a numbered message stands to what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It is the next one.
    Next,
    /// Others are missing before it.
    After(Gap),
    /// It, or a later one, was there before.
    Before,
}

/// The number of a symbol's next message is not known.
const UNKNOWN: u64 = u64::MAX;

/// The numbers that are expected.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Next one of the session; 0 before the hello.
    sequence: u64,
    /// Next one of each symbol, by its instrument number, or [`UNKNOWN`]; empty while all symbols are subscribed.
    symbols: Vec<u64>,
}

impl Numbers {
    /// See [`super::TickParser::next_sequence`].
    pub(super) const fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// True while the numbers of the session follow each other.
    #[inline]
    pub(super) const fn are_of_session(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Goes on with this number of the session, and says what is missing before it.
    pub(super) fn catch_up(&mut self, sequence: u64) -> Option<Gap> {
        let expected = self.sequence;
        self.sequence = expected.max(sequence);
        let is_gap = self.are_of_session() && sequence > expected && expected != 0;
        is_gap.then(|| Gap { instrument: 0, expected, found: sequence, lost: sequence - expected })
    }

    /// See [`super::TickParser::next_symbol_sequence`].
    pub(super) fn next_symbol_sequence(&self, instrument: u16) -> Option<u32> {
        self.symbols.get(usize::from(instrument)).filter(|next| **next != UNKNOWN).map(|next| *next as u32)
    }

    /// Begins with this number of the session.
    pub(super) fn begin(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// A subscription begins: only now is memory asked for, and only for one of listed symbols.
    pub(super) fn subscribe(&mut self, sequence: u64, scope: Scope, symbols_max: u16) {
        self.sequence = sequence;
        self.symbols = match scope {
            Scope::All => Vec::new(),
            Scope::Listed => vec![UNKNOWN; usize::from(symbols_max) + 1],
        };
    }

    /// The next number of a symbol is known.
    pub(super) fn define(&mut self, header: &Header) {
        if let Some(next) = self.symbols.get_mut(usize::from(header.instrument.get())) {
            *next = u64::from(header.symbol_sequence.get());
        }
    }

    /// The server left out nobody knows which messages.
    pub(super) fn skip_to(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        self.symbols.fill(UNKNOWN);
    }

    /// So many messages of the session came in order.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.sequence = self.sequence.saturating_add(count as u64);
    }

    /// Takes the numbers of a message.
    pub(super) fn take(&mut self, header: &Header) -> Order {
        let (found, expected) = (header.sequence.get(), self.sequence);
        if self.are_of_session() {
            self.sequence = expected.max(found.saturating_add(1));
            return match found.cmp(&expected) {
                std::cmp::Ordering::Equal => Order::Next,
                std::cmp::Ordering::Less => Order::Before,
                std::cmp::Ordering::Greater => {
                    Order::After(Gap { instrument: 0, expected, found, lost: found - expected })
                }
            };
        }
        let order = self.take_symbol(header);
        if order != Order::Before {
            self.sequence = expected.max(found.saturating_add(1));
        }
        order
    }

    fn take_symbol(&mut self, header: &Header) -> Order {
        let instrument = header.instrument.get();
        // A symbol that nobody asked for, or that does not exist, has no numbers to compare.
        let Some(next) = self.symbols.get_mut(usize::from(instrument)) else { return Order::Next };
        let found = header.symbol_sequence.get();
        let expected = std::mem::replace(next, u64::from(found.wrapping_add(1)));
        let ahead = if expected == UNKNOWN { 0 } else { found.wrapping_sub(expected as u32) };
        match ahead {
            0 => Order::Next,
            1..0x8000_0000 => {
                Order::After(Gap { instrument, expected, found: u64::from(found), lost: u64::from(ahead) })
            }
            _ => {
                *next = expected;
                Order::Before
            }
        }
    }
}
