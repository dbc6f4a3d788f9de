//! A trader whose instrument file contradicts the venue's symbols for some ids: it does not trade these.

use tickpath_agent::TscClock;
use tickpath_exchange::VenueSettings;
use tickpath_test_support::wait_until;
use tickpath_test_venue::RunningVenue;
use tickpath_trader::Trader;
use tickpath_trading::{NewOrder, Refusal, RiskResult};
use tickpath_types::{Instrument, InstrumentId, Price, Qty, Side};

use crate::site::{ALPHA, venue_settings};
use crate::strategy::{Action, Script};
use crate::threads::trader_of;

const SECOND: InstrumentId = InstrumentId(2);

fn table(symbols: &[&str]) -> Vec<Instrument> {
    tickpath_test_support::instruments(symbols).as_slice().to_vec()
}

/// Lets the script enter an order; returns the result.
fn enter(script: &Script, instrument: InstrumentId) -> Result<(), Refusal> {
    let count = script.log().sent.len();
    script.enqueue(Action::Enter(NewOrder::limit(instrument, Side::Buy, Qty(10), Price(999_000))));
    wait_until("the request", || script.log().sent.len() > count);
    script.log().sent[count].map(|_| ())
}

#[test]
fn an_instrument_with_another_symbol_is_not_traded() {
    // The venue has BRAVO too, so that it would accept the orders.
    let instruments = tickpath_test_support::instruments(&["ALPHA", "GAMMA", "BRAVO"]);
    let venue = RunningVenue::start(&VenueSettings { instruments, ..venue_settings() });
    for (user, symbols, others) in [
        ("TRADER", &["ALPHA", "BRAVO"][..], 1),
        ("RIVAL", &["ALPHA", "BRAVO", "GAMMA"], 2),
        ("TRADER", &["ALPHA", "GAMMA"], 0),
    ] {
        let mut settings = trader_of(&venue, user, 1);
        settings.instruments = table(symbols);
        settings.limits = vec![settings.limits[0]; symbols.len()];
        let script = Script::default();
        let trader = Trader::start(&settings, script.clone().into(), TscClock::system()).unwrap();
        wait_until("an order for ALPHA", || enter(&script, ALPHA).is_ok());
        wait_until("all that was published", || {
            trader.feed().counters.messages.read() >= venue.view.publisher.messages.read()
        });
        wait_until("the count", || trader.feed().counters.other_symbols.read() == others);
        if others == 0 {
            wait_until("an order", || enter(&script, SECOND).is_ok());
            // BRAVO is in a spare book, and the feed handler expects no symbol for that.
            assert_eq!(trader.other_symbols(), None);
        } else {
            wait_until("the warning", || trader.other_symbols().is_some());
            let warning = trader.other_symbols().unwrap();
            for words in ["number 2 is GAMMA", "BRAVO in the instrument file", "not traded", "venue's order"]
            {
                assert!(warning.contains(words), "{warning}");
            }
            assert_eq!(warning.contains("one of 2"), others == 2, "{warning}");
            assert_eq!(warning.lines().count(), 1, "{warning}");
            assert_eq!(enter(&script, SECOND), Err(Refusal::Risk(RiskResult::BookNotLive)));
            assert!(enter(&script, ALPHA).is_ok(), "its book is right");
        }
        trader.join().unwrap();
    }
}
