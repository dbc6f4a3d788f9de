//! Encodes generated ticks as messages.

use tickpath_flowgen::{TickGenerator, TickKind, TickStamps};
use tickpath_ticks::message::{Message, Quote, TICK_LEN, Tick, Trade, WORD_LEN};
use tickpath_types::Nanos;
use zerocopy::little_endian::U64;

/// The state of a symbol after its latest tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SymbolState {
    /// Sequence number of the symbol's next message; the wire carries its lower 32 bits.
    pub(super) symbol_sequence: u64,
    /// Quantity traded in the session.
    pub(super) volume: u64,
    /// Place of the symbol's latest quote plus one; 0 before the first quote.
    pub(super) quoted: u64,
}

/// Turns the ticks of a generator into messages.
#[derive(Debug)]
pub(super) struct TickWriter {
    generator: TickGenerator,
    /// Number of ticks of the generator's current batch that were already encoded.
    taken: usize,
    /// Instrument number that the generator's first symbol has on the wire.
    first_instrument: u16,
    states: Vec<SymbolState>,
}

impl TickWriter {
    /// Creates a writer for a generator with this number of symbols; the first has the instrument number
    /// `first_instrument` on the wire.
    pub(super) fn new(generator: TickGenerator, first_instrument: u16, symbols: usize) -> TickWriter {
        let states = vec![SymbolState { symbol_sequence: 1, ..SymbolState::default() }; symbols];
        TickWriter { generator, taken: 0, first_instrument, states }
    }

    /// Returns the states of the symbols, in symbol order.
    pub(super) fn states(&self) -> &[SymbolState] {
        &self.states
    }

    /// Fills `buffer` with the next ticks. The first has place `place`, and `next_ts` returns the generation
    /// time of each.
    #[inline]
    pub(super) fn make(&mut self, place: u64, buffer: &mut [Tick], mut next_ts: impl FnMut() -> Nanos) {
        let (mut rest, mut place) = (buffer, place);
        while !rest.is_empty() {
            if self.taken == self.generator.batch().len() {
                self.generator.next_batch(TickStamps::default());
                self.taken = 0;
            }
            let ticks = self.generator.batch().skip(self.taken);
            let count = ticks.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            let first_symbol = usize::from(self.first_instrument) - 1;
            for (message, tick) in now.iter_mut().zip(ticks.iter()) {
                // A generator of a part of the market uses the symbol numbers of the whole market, from 0.
                // On the wire the numbers begin with 1.
                let state = &mut self.states[usize::from(tick.symbol()) - first_symbol];
                *message = message_of(&tick, state.symbol_sequence as u32, place + 1, next_ts());
                place += 1;
                state.symbol_sequence += 1;
                state.volume = tick.volume();
                state.quoted = if tick.kind().is_trade() { state.quoted } else { place };
            }
            self.taken += count;
            rest = later;
        }
    }
}

/// Encodes a quote or a trade; checksum and send delay are set later. The order of quotes and trades is
/// unpredictable, so nothing here branches on the kind: a misprediction would cost more than encoding both.
#[inline]
fn message_of(tick: &tickpath_flowgen::Tick, symbol_sequence: u32, sequence: u64, ts: Nanos) -> Tick {
    const QUOTE: u64 = Quote::TYPE as u64;
    const TRADE: u64 = Trade::TYPE as u64;
    const LENGTH: u64 = (TICK_LEN / WORD_LEN) as u64;
    let is_trade = tick.kind().is_trade();
    let side = if tick.kind() == TickKind::TRADE_AT_ASK { b'B' } else { b'S' };
    let message_type = if is_trade { TRADE } else { QUOTE };
    let instrument = u64::from(tick.symbol()) + 1;
    let quantities = u64::from(tick.bid_qty()) | u64::from(tick.ask_qty()) << 32;
    let traded = u64::from(tick.last_qty()) | u64::from(side) << 32;
    let words = [
        message_type | LENGTH << 8 | instrument << 16 | u64::from(symbol_sequence) << 32,
        sequence,
        ts.0,
        if is_trade { tick.last().0.cast_unsigned() } else { tick.bid().0.cast_unsigned() },
        if is_trade { tick.volume() } else { tick.ask().0.cast_unsigned() },
        if is_trade { traded } else { quantities },
        0,
    ];
    zerocopy::transmute!(words.map(U64::new))
}

#[cfg(test)]
mod tests {
    use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};
    use tickpath_ticks::message::{Place, TickKind as WireKind};
    use tickpath_types::{InstrumentId, Side};

    use super::*;

    /// The encoded messages equal those that the protocol's constructors create from the same ticks.
    #[test]
    fn messages_match_the_ticks() {
        let market = TickGeneratorConfig::market(MarketRegime::Neutral, 7, 3);
        let mut plain = TickGenerator::new(&market).unwrap();
        let mut tick_writer = TickWriter::new(plain.clone(), 1, 7);
        let mut buffer = vec![TickWriter::blank(); 1_000];
        let mut place = 0;
        for part in buffer.chunks_mut(77) {
            let mut ts = 1_000 + place;
            let from = place;
            place += part.len() as u64;
            tick_writer.make(from, part, || {
                ts += 1;
                Nanos(ts)
            });
        }
        let mut expected = Vec::new();
        let mut counts = [0_u32; 7];
        while expected.len() < buffer.len() {
            for tick in plain.next_batch(TickStamps::default()).iter() {
                let symbol = usize::from(tick.symbol());
                counts[symbol] += 1;
                let sequence = expected.len() as u64 + 1;
                let instrument = InstrumentId(tick.symbol() + 1);
                let place = Place { instrument, symbol_sequence: counts[symbol], sequence };
                let ts = Nanos(1_000 + sequence);
                expected.push(if tick.kind().is_trade() {
                    let side = if tick.kind() == TickKind::TRADE_AT_ASK { Side::Buy } else { Side::Sell };
                    Tick::from(Trade::new(
                        place,
                        ts,
                        tick.last(),
                        tick.last_qty(),
                        Some(side),
                        tick.volume(),
                        0,
                    ))
                } else {
                    let (bid, ask) = ((tick.bid(), tick.bid_qty()), (tick.ask(), tick.ask_qty()));
                    Quote::new(place, ts, bid, ask, 0).into()
                });
            }
        }
        expected.truncate(buffer.len());
        assert_eq!(buffer, expected);
        let trades = buffer.iter().filter(|tick| matches!(tick.kind(), Some(WireKind::Trade(_)))).count();
        assert!((200..400).contains(&trades), "{trades}");
        let state = tick_writer.states()[6];
        let last = buffer.iter().rposition(|tick| {
            matches!(tick.kind(), Some(WireKind::Quote(_))) && tick.header.instrument() == InstrumentId(7)
        });
        assert_eq!(state.quoted, last.unwrap() as u64 + 1);
        assert_eq!(state.symbol_sequence, 1_000 / 7 + 1);
    }

    impl TickWriter {
        fn blank() -> Tick {
            zerocopy::FromZeros::new_zeroed()
        }
    }
}
