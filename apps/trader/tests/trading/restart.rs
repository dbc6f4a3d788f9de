//! A trader is restarted while the venue's session continues.

use tickpath_agent::TscClock;
use tickpath_exchange::VenueSettings;
use tickpath_test_support::wait_until;
use tickpath_test_venue::RunningVenue;
use tickpath_trader::Trader;
use tickpath_trading::{RandomStrategy, TraderSnapshot};

use crate::site::venue_settings;
use crate::threads::trader_of;

/// Runs a trader until it has traded; returns its state, and the UserRefNum of its first order.
fn run_until_traded(venue: &RunningVenue, seed: u64) -> (TraderSnapshot, u64) {
    let strategy = RandomStrategy::new(seed, Default::default());
    let trader =
        Trader::start(&trader_of(venue, "TRADER", seed), strategy.into(), TscClock::system()).unwrap();
    let view = trader.view().clone();
    wait_until("fills", || view.snapshot().is_ok_and(|now| now.counters.fills > 0));
    trader.stop_trading();
    wait_until("the cancels", || {
        view.snapshot().is_ok_and(|now| now.stopped.is_some() && now.open_orders == 0)
    });
    trader.join().unwrap();
    (view.snapshot().unwrap(), view.gateway.first_user_ref.read())
}

#[test]
fn a_restarted_trader_continues_the_order_numbers() {
    // The venue retains fewer messages than it sends during one run of the trader, so a restarted trader must
    // not request those of an earlier run.
    let venue = RunningVenue::start(&VenueSettings { retained_responses: 64, ..venue_settings() });
    let mut first = 1;
    for seed in 1..=3 {
        let (snapshot, first_user_ref) = run_until_traded(&venue, seed);
        assert_eq!(first_user_ref, first, "run {seed}");
        first += snapshot.counters.enters + snapshot.counters.replaces;
        assert_eq!(snapshot.counters.rejects, 0, "run {seed}: {:?}", snapshot.counters);
        // The trader trades only with itself.
        assert_eq!(snapshot.positions[0].net_qty(), 0, "run {seed}");
        assert!(snapshot.positions[0].volume().0 > 0, "run {seed}");
    }
}
