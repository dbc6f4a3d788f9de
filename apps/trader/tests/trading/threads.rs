//! A trader as a program runs it: on threads of its own, from its configuration.

use std::time::{Duration, Instant};

use tickpath_agent::{IdleStrategy, Runner, StopSignal, ThreadPlan, TscClock};
use tickpath_config::Duration as ConfigDuration;
use tickpath_exchange::{
    AdminClient, AdminCommand, AdminOutcome, Endpoints, Venue, VenueSettings, VenueView,
};
use tickpath_trader::{Trader, TraderConfig, TraderSettings, TraderSnapshot, run_with};
use tickpath_trading::{RandomStrategy, StopReason};
use tickpath_types::Nanos;

use crate::site::{PASSWORD, build_venue, instruments, venue_settings};

const PATIENCE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A venue on a thread of its own; ends with the test.
pub struct RunningVenue {
    runner: Option<Runner>,
    stop: StopSignal,
    admin: AdminClient,
    pub endpoints: Endpoints,
    pub view: VenueView,
}

impl RunningVenue {
    fn start() -> RunningVenue {
        RunningVenue::with(&venue_settings())
    }

    /// One that keeps so many messages for each user.
    pub fn keeping(retained_responses: usize) -> RunningVenue {
        RunningVenue::with(&VenueSettings { retained_responses, ..venue_settings() })
    }

    pub fn with(settings: &VenueSettings) -> RunningVenue {
        let Venue { agents, endpoints, admin, view, .. } = build_venue(settings);
        let plan = ThreadPlan {
            name: "venue".to_owned(),
            core: None,
            idle: IdleStrategy::Park,
            rehearse_interval: None,
            agents,
            cycle: vec![],
        };
        let stop = StopSignal::new();
        let runner = Some(Runner::start(vec![plan], TscClock::system(), stop.clone()).unwrap());
        RunningVenue { runner, stop, admin, endpoints, view }
    }

    /// A command to the venue, and what came of it.
    pub fn command(&mut self, command: AdminCommand) -> AdminOutcome {
        let id = self.admin.submit(command).unwrap();
        let mut answer = None;
        until("an answer to the administrator", || {
            answer = self.admin.poll();
            answer.is_some()
        });
        let answer = answer.unwrap();
        assert_eq!(answer.id, id);
        answer.outcome
    }

    /// Ends the venue.
    pub fn close(&mut self) {
        self.stop.stop();
        if let Some(runner) = self.runner.take() {
            runner.join().unwrap();
        }
    }

    pub fn trader(&self, user: &str, seed: u64) -> TraderSettings {
        let Endpoints { order_entry, line_a, line_b, retransmission, .. } = self.endpoints;
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
            .map(|instrument| config.limits_of(instrument.symbol.as_str()).limits(instrument))
            .collect();
        TraderSettings { config, instruments, limits, password: PASSWORD.to_owned() }
    }
}

impl Drop for RunningVenue {
    fn drop(&mut self) {
        self.close();
    }
}

#[test]
fn two_traders_trade_and_stop() {
    let venue = RunningVenue::start();
    let start = |user, seed| {
        let strategy = RandomStrategy::new(seed, Default::default());
        Trader::start(&venue.trader(user, seed), strategy.into(), TscClock::system()).unwrap()
    };
    let traders = [start("TRADER", 1), start("RIVAL", 2)];
    let is_so = |trader: &Trader, is_so: fn(&TraderSnapshot) -> bool| {
        // An engine that is just writing its snapshot is asked again.
        trader.view().snapshot().is_ok_and(|snapshot| is_so(&snapshot))
    };
    until("trades", || traders.iter().all(|trader| is_so(trader, |now| now.counters.fills > 0)));
    traders.iter().for_each(Trader::stop_trading);
    until("the cancels", || {
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
    let venue = RunningVenue::start();
    let settings = TraderSettings { password: "wrong".to_owned(), ..venue.trader("TRADER", 1) };
    let trader =
        Trader::start(&settings, RandomStrategy::new(1, Default::default()).into(), TscClock::system())
            .unwrap();
    until("the end", || trader.has_ended());
    let error = trader.join().err().unwrap().to_string();
    for words in ["order-gateway", "TRADER", "check user name and password"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_venue_that_is_not_there_keeps_the_trader_from_starting() {
    let settings = RunningVenue::start().trader("TRADER", 1);
    let strategy = RandomStrategy::new(1, Default::default());
    let error = Trader::start(&settings, strategy.into(), TscClock::system()).err().unwrap();
    assert!(format!("{error:#}").contains("is the other end running there?"), "{error:#}");
}

#[test]
fn a_venue_that_is_full_ends_the_trader_with_the_reason_when_the_time_is_up() {
    let venue = RunningVenue::with(&VenueSettings { max_connections: 1, ..venue_settings() });
    let first = the_one_client(&venue);
    let mut settings = venue.trader("TRADER", 1);
    settings.config.disconnect_stop = ConfigDuration(Nanos::from_millis(300));
    let start = Instant::now();
    let strategy = RandomStrategy::new(1, Default::default());
    let error = run_with(&settings, strategy.into(), &StopSignal::new()).err().unwrap().to_string();
    assert!(start.elapsed() < PATIENCE);
    for words in ["did not let TRADER in within 300ms", "is the venue full?"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(error.lines().count(), 1, "{error}");
    first.join().unwrap();
}

/// The one client of a venue that takes no more, logged in.
fn the_one_client(venue: &RunningVenue) -> Trader {
    let quiet = RandomStrategy::new(2, Default::default());
    let trader = Trader::start(&venue.trader("RIVAL", 2), quiet.into(), TscClock::system()).unwrap();
    until("the first login", || trader.view().gateway.logged_in.read() == 1);
    trader
}

#[test]
fn what_an_agent_got_over_can_be_read_from_outside() {
    let venue = RunningVenue::with(&VenueSettings { max_connections: 1, ..venue_settings() });
    let first = the_one_client(&venue);
    let strategy = RandomStrategy::new(1, Default::default());
    let trader = Trader::start(&venue.trader("TRADER", 1), strategy.into(), TscClock::system()).unwrap();
    until("the refusal", || trader.last_errors().next().is_some());
    let warning = trader.last_errors().next().unwrap();
    assert_eq!(warning.role, "order-gateway");
    assert!(warning.count > 0 && warning.error.contains("is the venue full?"), "{warning:?}");
    first.join().unwrap();
    until("the login", || trader.view().gateway.logged_in.read() == 1);
    trader.join().unwrap();
}
