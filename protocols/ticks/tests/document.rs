//! The worked examples of `docs/protocols/ticks.md`: encoding gives the document's bytes, and decoding these
//! bytes gives the document's values.
#![allow(clippy::unwrap_used)]

use tickpath_ticks::checksum::{fill_checksums, with_checksum};
use tickpath_ticks::message::{Heartbeat, Place, Quote, Tick, TickKind};
use tickpath_ticks::request::encode_subscribe;
use tickpath_types::{InstrumentId, Nanos, Price, Symbol};
use zerocopy::{FromBytes, IntoBytes};

/// The time stamp in the examples: 2026-01-02 14:30:00.000000123 UTC.
const TS: Nanos = Nanos(1_767_364_200_000_000_123);

const PAGE: &str = include_str!("../../../docs/protocols/ticks.md");

/// Returns the bytes of the example `name`: each line's hexadecimal digits, up to the first two spaces.
fn example(name: &str) -> Vec<u8> {
    let block = PAGE.split(&format!("```text {name}\n")).nth(1).expect("the example is there");
    let lines = block.lines().take_while(|line| *line != "```");
    let hex: String = lines.flat_map(|line| line.split("  ").next()).collect::<String>().replace(' ', "");
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn the_quote_is_that_of_the_document() {
    let place = Place { instrument: InstrumentId(7), symbol_sequence: 42, sequence: 1001 };
    let bid = (Price::parse("189.12").unwrap(), 300);
    let ask = (Price::parse("189.13").unwrap(), 150);
    let quote = with_checksum(Quote::new(place, TS, bid, ask, 25_000));
    assert_eq!(quote.as_bytes(), example("quote"));
    let mut ticks = [Tick::from(quote); 3];
    ticks.iter_mut().for_each(|tick| tick.checksum = 0.into());
    fill_checksums(&mut ticks);
    let bytes = example("quote");
    let read = Tick::ref_from_bytes(&bytes).unwrap();
    assert_eq!(ticks, [*read; 3]);
    let Some(TickKind::Quote(read)) = read.kind() else { panic!("it is a quote") };
    assert_eq!((read.bid(), read.ask()), (Some(bid), Some(ask)));
    assert_eq!(Tick::from(*read).ts_send(), TS + Nanos(25_000));
}

#[test]
fn the_heartbeat_is_that_of_the_document() {
    let heartbeat = with_checksum(Heartbeat::new(1002, TS + Nanos::from_secs(1)));
    assert_eq!(heartbeat.as_bytes(), example("heartbeat"));
}

#[test]
fn the_request_is_that_of_the_document() {
    let symbols = ["ALPHA", "BRAVO"].map(|text| Symbol::new(text).unwrap());
    let mut out = Vec::new();
    encode_subscribe(3, &symbols, &mut out);
    assert_eq!(out, example("subscribe"));
}

#[test]
fn the_document_lists_every_type_with_its_length() {
    fn row<M: Message>(page: &str, name: &str) {
        let start = format!("| `{:02x}` | [{name}]", M::TYPE);
        let line = page.lines().find(|line| line.starts_with(&start)).expect(name);
        assert!(line.ends_with(&format!("| {} |", M::LEN)), "{line}");
    }
    use tickpath_ticks::message::*;
    row::<Quote>(PAGE, "Quote");
    row::<Trade>(PAGE, "Trade");
    row::<Status>(PAGE, "Status");
    row::<Hello>(PAGE, "Hello");
    row::<SymbolDefinition>(PAGE, "SymbolDefinition");
    row::<Heartbeat>(PAGE, "Heartbeat");
    row::<Subscribed>(PAGE, "Subscribed");
    row::<Refused>(PAGE, "Refused");
    row::<EndOfStream>(PAGE, "EndOfStream");
    row::<Skipped>(PAGE, "Skipped");
    assert!(PAGE.contains(&format!("| `{SUBSCRIBE:02x}` | [Subscribe]")));
}
