//! The symbols of a session with a lookup by name, and the subscriptions to them.

use tickpath_flowgen::TickGeneratorConfig;
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{Place, Scope, Subscribed, SymbolDefinition, Tick};
use tickpath_types::{InstrumentId, Price, Symbol};
use zerocopy::IntoBytes;

use super::tick_writer::SymbolState;

const WORD_BITS: usize = u64::BITS as usize;

/// The symbols of a session.
#[derive(Debug)]
pub(super) struct Directory {
    symbols: Vec<SymbolAttributes>,
    /// Names in sorted order, each with its index in `symbols`.
    names: Vec<(Symbol, u16)>,
}

/// The constant attributes of a symbol.
#[derive(Clone, Copy, Debug)]
struct SymbolAttributes {
    name: Symbol,
    reference_price: Price,
    tick_size: Price,
}

impl Directory {
    pub(super) fn new(market: &TickGeneratorConfig) -> Directory {
        let attributes = market.symbols.iter().map(|symbol| SymbolAttributes {
            name: symbol.name,
            reference_price: symbol.price,
            tick_size: symbol.tick_size,
        });
        let mut names: Vec<_> = market.symbols.iter().map(|symbol| symbol.name).zip(0..).collect();
        names.sort_unstable();
        Directory { symbols: attributes.collect(), names }
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    fn find(&self, name: Symbol) -> Option<u16> {
        let at = self.names.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(self.names[at].1)
    }

    /// Appends to `out` the answer that grants a request, and a definition of each subscribed symbol. `place`
    /// is the place of the first tick that the client receives.
    pub(super) fn define(
        &self,
        request: u32,
        subscription: &Subscription,
        states: &[SymbolState],
        place: u64,
        out: &mut Vec<u8>,
    ) {
        let next = place + 1;
        let count = u32::try_from(subscription.count(self.len())).expect("symbols are numbered by 16 bits");
        out.extend(with_checksum(Subscribed::new(next, request, subscription.scope(), count)).as_bytes());
        let chosen = self.symbols.iter().zip(states).zip(0_u16..).filter(|(_, at)| subscription.has(*at));
        for ((attributes, state), at) in chosen {
            let place = Place {
                instrument: InstrumentId(at + 1),
                symbol_sequence: state.symbol_sequence as u32,
                sequence: next,
            };
            let SymbolAttributes { name, reference_price, tick_size } = *attributes;
            let definition = SymbolDefinition::new(place, name, reference_price, tick_size, state.volume);
            out.extend(with_checksum(definition).as_bytes());
        }
    }
}

/// The symbols to which a client is subscribed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    /// All symbols.
    All,
    /// The symbols whose bits are set; the first symbol has the lowest bit.
    Listed(Box<[u64]>),
}

impl Subscription {
    /// Creates an empty list for a session of `symbols` symbols.
    pub(super) fn none(symbols: usize) -> Subscription {
        Subscription::Listed(vec![0; symbols.div_ceil(WORD_BITS)].into())
    }

    /// Adds the symbols with these names to a list; returns false when a name is unknown.
    #[must_use]
    pub(super) fn add(&mut self, directory: &Directory, names: &[[u8; 8]]) -> bool {
        let Subscription::Listed(bits) = self else { return true };
        names.iter().all(|name| {
            let Some(at) = directory.find(Symbol(*name)) else { return false };
            bits[usize::from(at) / WORD_BITS] |= 1 << (usize::from(at) % WORD_BITS);
            true
        })
    }

    /// Returns true if the symbol at index `at` is subscribed.
    #[inline]
    pub(super) fn has(&self, at: u16) -> bool {
        match self {
            Subscription::All => true,
            Subscription::Listed(bits) => {
                bits[usize::from(at) / WORD_BITS] >> (usize::from(at) % WORD_BITS) & 1 == 1
            }
        }
    }

    pub(super) const fn scope(&self) -> Scope {
        match self {
            Subscription::All => Scope::All,
            Subscription::Listed(_) => Scope::Listed,
        }
    }

    /// Returns the number of subscribed symbols, in a session of `symbols` symbols.
    pub(super) fn count(&self, symbols: usize) -> usize {
        match self {
            Subscription::All => symbols,
            Subscription::Listed(bits) => bits.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// Returns the number of messages generated so far for the subscribed symbols.
    pub(super) fn messages(&self, states: &[SymbolState]) -> u64 {
        let wanted = states.iter().zip(0_u16..).filter(|(_, at)| self.has(*at));
        wanted.map(|(state, _)| state.symbol_sequence - 1).sum()
    }
}

/// Returns the index of a tick's symbol: its instrument number minus one.
#[inline]
pub(super) fn symbol_of(tick: &Tick) -> u16 {
    tick.header.instrument.get().wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use tickpath_flowgen::MarketRegime;
    use zerocopy::FromBytes;

    use super::*;

    #[test]
    fn listed_symbols_are_found_and_defined() {
        let market = TickGeneratorConfig::market(MarketRegime::Neutral, 130, 7);
        let directory = Directory::new(&market);
        let mut subscription = Subscription::none(130);
        let names = [0, 64, 129, 64].map(|at: usize| market.symbols[at].name.0);
        assert!(subscription.add(&directory, &names));
        assert!(!subscription.clone().add(&directory, &[*b"nothere "]));
        assert_eq!((subscription.count(130), Subscription::All.count(130)), (3, 130));
        assert!(subscription.has(129) && !subscription.has(128) && Subscription::All.has(128));

        let mut states = vec![SymbolState { symbol_sequence: 1, ..SymbolState::default() }; 130];
        states[64] = SymbolState { symbol_sequence: 43, volume: 5, quoted: 0 };
        assert_eq!((subscription.messages(&states), Subscription::All.messages(&states)), (42, 42));
        let mut out = Vec::new();
        directory.define(9, &subscription, &states, 1_000, &mut out);
        let (subscribed, rest) = Subscribed::read_from_prefix(&out).unwrap();
        assert_eq!((subscribed.scope(), subscribed.symbol_count.get()), (Scope::Listed, 3));
        let definitions = <[SymbolDefinition]>::ref_from_bytes(rest).unwrap();
        assert_eq!(definitions[1].header.instrument(), InstrumentId(65));
        assert_eq!(definitions[1].header.symbol_sequence.get(), 43);
        assert_eq!(definitions[1].header.sequence.get(), 1_001);
        assert_eq!(definitions[1].symbol(), Some(market.symbols[64].name));
        assert_eq!(definitions[1].volume.get(), 5);
    }
}
