//! A trader that is started from its configuration, with agents on separate threads.

use std::time::Instant;

use tickpath_agent::{StopSignal, TscClock};
use tickpath_config::Duration as ConfigDuration;
use tickpath_exchange::{Endpoints, VenueSettings};
use tickpath_test_support::{PATIENCE, wait_until};
use tickpath_test_venue::{PASSWORD, RunningVenue};
use tickpath_trader::{Trader, TraderConfig, TraderSettings, run_with};
use tickpath_trading::{RandomStrategy, StopReason, TraderSnapshot};
use tickpath_types::Nanos;

use crate::site::{instruments, venue_settings};

pub fn trader_of(venue: &RunningVenue, user: &str, seed: u64) -> TraderSettings {
    let Endpoints { order_entry, line_a, line_b, retransmission, .. } = venue.endpoints;
    let text = format!(
        "instruments = 'i.toml'\nseed = {seed}\n\
         [order_entry]\naddress = '{order_entry}'\nuser = '{user}'\npassword = 'unused'\n\
         [market_data]\nline_a = '{line_a}'\nline_b = '{line_b}'\nretransmission = '{retransmission}'\nmax_orders = 1024\n\
         [placement]\nidle = 'park'\n\
         [[placement.thread]]\nname = 'trader'\nagents = ['feed-handler', 'engine', 'order-gateway']\n"
    );
    let config: TraderConfig = tickpath_config::parse("trader.toml", &text).unwrap();
    let instruments = instruments().as_slice().to_vec();
    let limits = instruments
        .iter()
        .map(|instrument| config.limits_of(instrument.symbol.as_str()).in_lots(instrument))
        .collect();
    TraderSettings { config, instruments, limits, password: PASSWORD.to_owned() }
}

#[test]
fn two_traders_trade_and_stop() {
    let venue = RunningVenue::start(&venue_settings());
    let start = |user, seed| {
        let strategy = RandomStrategy::new(seed, Default::default());
        Trader::start(&trader_of(&venue, user, seed), strategy.into(), TscClock::system()).unwrap()
    };
    let traders = [start("TRADER", 1), start("RIVAL", 2)];
    let is_so = |trader: &Trader, is_so: fn(&TraderSnapshot) -> bool| {
        // Retries while the engine is writing its snapshot.
        trader.view().snapshot().is_ok_and(|snapshot| is_so(&snapshot))
    };
    wait_until("trades", || traders.iter().all(|trader| is_so(trader, |now| now.counters.fills > 0)));
    traders.iter().for_each(Trader::stop_trading);
    wait_until("the cancels", || {
        let is_stopped =
            |now: &TraderSnapshot| now.open_orders == 0 && now.stopped == Some(StopReason::Killed);
        traders.iter().all(|trader| is_so(trader, is_stopped))
    });
    let views = traders.each_ref().map(|trader| trader.view().clone());
    for trader in traders {
        assert!(!trader.has_ended());
        trader.join().unwrap();
    }
    let net = views.map(|view| view.snapshot().unwrap().positions[0].net_qty());
    assert_eq!(net[0] + net[1], 0, "what one bought the other sold: {net:?}");
}

#[test]
fn a_wrong_password_ends_the_trader_with_one_line() {
    let venue = RunningVenue::start(&venue_settings());
    let settings = TraderSettings { password: "wrong".to_owned(), ..trader_of(&venue, "TRADER", 1) };
    let trader =
        Trader::start(&settings, RandomStrategy::new(1, Default::default()).into(), TscClock::system())
            .unwrap();
    wait_until("the end", || trader.has_ended());
    let error = trader.join().err().unwrap().to_string();
    for words in ["order-gateway", "TRADER", "check user name and password"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_trader_does_not_start_without_a_venue() {
    let settings = trader_of(&RunningVenue::start(&venue_settings()), "TRADER", 1);
    let strategy = RandomStrategy::new(1, Default::default());
    let error = Trader::start(&settings, strategy.into(), TscClock::system()).err().unwrap();
    assert!(format!("{error:#}").contains("is the other end running there?"), "{error:#}");
}

#[test]
fn a_full_venue_ends_the_trader_with_the_reason() {
    let venue = RunningVenue::start(&VenueSettings { max_connections: 1, ..venue_settings() });
    let first = only_client(&venue);
    let mut settings = trader_of(&venue, "TRADER", 1);
    settings.config.disconnect_stop = ConfigDuration(Nanos::from_millis(300));
    let start = Instant::now();
    let strategy = RandomStrategy::new(1, Default::default());
    let error = run_with(&settings, strategy.into(), &StopSignal::new()).err().unwrap().to_string();
    assert!(start.elapsed() < PATIENCE);
    for words in ["did not accept the login of TRADER within 300ms", "is the venue full?"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");
    first.join().unwrap();
}

/// Returns a logged-in trader that takes the only connection of a venue with `max_connections: 1`.
fn only_client(venue: &RunningVenue) -> Trader {
    let quiet = RandomStrategy::new(2, Default::default());
    let trader = Trader::start(&trader_of(venue, "RIVAL", 2), quiet.into(), TscClock::system()).unwrap();
    wait_until("the first login", || trader.view().gateway.logged_in.read() == 1);
    trader
}

#[test]
fn recovered_errors_are_readable() {
    let venue = RunningVenue::start(&VenueSettings { max_connections: 1, ..venue_settings() });
    let first = only_client(&venue);
    let strategy = RandomStrategy::new(1, Default::default());
    let trader = Trader::start(&trader_of(&venue, "TRADER", 1), strategy.into(), TscClock::system()).unwrap();
    wait_until("the refusal", || trader.last_errors().next().is_some());
    let warning = trader.last_errors().next().unwrap();
    assert_eq!(warning.role, "order-gateway");
    assert!(warning.count > 0 && warning.error.contains("is the venue full?"), "{warning:?}");
    first.join().unwrap();
    wait_until("the login", || trader.view().gateway.logged_in.read() == 1);
    trader.join().unwrap();
}
