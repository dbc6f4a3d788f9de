//! Tracks the expected sequence numbers, of the session or of each symbol.

use crate::message::{Header, Scope};

use super::listener::Gap;

/// The relation of a numbered message to the expected sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The message is the next one.
    Next,
    /// Messages are missing before this message.
    After(Gap),
    /// The message, or a later one, was received before.
    Before,
}

/// Marks a symbol whose next sequence number is unknown.
const UNKNOWN: u64 = u64::MAX;

/// The expected sequence numbers of the session and, if a list of symbols is subscribed, of each symbol.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Next sequence number of the session; 0 before the hello.
    sequence: u64,
    /// Next sequence number of each symbol, by instrument id, or [`UNKNOWN`]; empty unless a list of symbols
    /// is subscribed.
    symbols: Vec<u64>,
}

impl Numbers {
    /// See [`super::TickParser::next_sequence`].
    pub(super) const fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns true while the session's sequence numbers must be consecutive, as no list of symbols is
    /// subscribed.
    #[inline]
    pub(super) const fn are_of_session(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Advances the session's next sequence number to `sequence`; returns the gap of missing messages before
    /// it, if any.
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

    /// Sets the next sequence number of the session, from the hello.
    pub(super) fn begin(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Begins a subscription at sequence number `sequence`. No other method allocates; this one does so for
    /// listed symbols.
    pub(super) fn subscribe(&mut self, sequence: u64, scope: Scope, symbols_max: u16) {
        self.sequence = sequence;
        self.symbols = match scope {
            Scope::All => Vec::new(),
            Scope::Listed => vec![UNKNOWN; usize::from(symbols_max) + 1],
        };
    }

    /// Sets the next sequence number of a symbol from the header of its definition.
    pub(super) fn define(&mut self, header: &Header) {
        if let Some(next) = self.symbols.get_mut(usize::from(header.instrument.get())) {
            *next = u64::from(header.symbol_sequence.get());
        }
    }

    /// Continues at `sequence` after omitted messages; the next number of each symbol is then unknown.
    pub(super) fn skip_to(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        self.symbols.fill(UNKNOWN);
    }

    /// Advances the session's sequence number by `count` messages received in order.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.sequence = self.sequence.saturating_add(count as u64);
    }

    /// Compares a message's sequence numbers with the expected ones, then advances these past the message.
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
        // An instrument id above the session's symbol count has no expected sequence number.
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
