//! Parameters of the traders of a run. They are drawn from a separate random stream, so that the run's
//! other random choices stay the same.

use tickpath_exchange::{Password, UserSettings, VenueSettings};
use tickpath_feedhandler::FeedSettings;
use tickpath_simnet::HostId;
use tickpath_trader::{AgentSettings, GatewaySettings};
use tickpath_trading::{EngineConfig, Limits, Money};
use tickpath_types::{InstrumentTable, Nanos, Qty, Rng, SessionId};

use crate::faults::{FaultEvent, FaultLevel};
use crate::hosts::{ORDER_ENTRY, PASSWORD, trader_host};
use crate::profile;
use crate::strategy::Kind;

/// Connections that the venue's limit allows per trader: the current one, and one that is being closed.
const CONNECTIONS: usize = 2;
/// Usual capacity of a trader's queue of market updates.
const UPDATE_CAPACITY: usize = 1 << 12;
/// Capacity for requests and answers between a trader's engine and its gateway.
const ORDER_CAPACITY: usize = 1 << 9;
/// Maximum number of a trader's open orders in all instruments.
const OPEN_ORDERS_MAX: usize = 64;
/// A loss limit that no run reaches.
const UNREACHABLE_LOSS: Money = Money(1 << 60);

/// The parameters of a trader, from a seed.
#[derive(Clone, Debug)]
pub(crate) struct TraderProfile {
    pub(crate) host: HostId,
    pub(crate) kind: Kind,
    pub(crate) limits: Limits,
    /// Time by which the machine's clock is ahead of the others at the start of the run, in nanoseconds.
    pub(crate) clock_ahead: u64,
    pub(crate) joins_at: Nanos,
    /// Wait before a reconnect.
    pub(crate) reconnect_after: Nanos,
    /// True if the trader is stopped at the end; otherwise its strategy is only silenced.
    pub(crate) is_stopped_in_the_end: bool,
    /// Time from the end of the faults until the trader is stopped or silenced.
    pub(crate) ends_after: Nanos,
    pub(crate) seed: u64,
    engine: EngineConfig,
    reconcile_after: Nanos,
    update_capacity: usize,
    user: UserSettings,
    pub(crate) fault_events: Vec<(Nanos, FaultEvent)>,
}

impl TraderProfile {
    /// Draws the traders of a run: none in half of the runs, one or two in the others.
    pub(crate) fn all(seed: u64, fault_level: FaultLevel, active: Nanos) -> Vec<TraderProfile> {
        let rng = &mut Rng::new(seed ^ 0x64_65_73_6b_73);
        let count = [0, 0, 1, 2][rng.below(4) as usize];
        (0..count).map(|place| TraderProfile::new(place, rng, fault_level, active)).collect()
    }

    fn new(place: usize, rng: &mut Rng, fault_level: FaultLevel, active: Nanos) -> TraderProfile {
        let limits = Limits {
            clip: Qty(1 + rng.below(30)),
            threshold: rng.below(100),
            max_order_qty: Qty(10 + rng.below(50)),
            max_position: Qty(20 + rng.below(200)),
            max_loss: UNREACHABLE_LOSS,
            max_open_orders: 1 + rng.below(6) as u32,
        };
        let of = |rng: &mut Rng, waits: [Nanos; 3]| waits[rng.below(3) as usize];
        let second = Nanos::from_secs(1);
        let engine = EngineConfig {
            max_open_orders: OPEN_ORDERS_MAX,
            orders_per_second: 100 + rng.below(1_000) as u32,
            order_burst: 1 + rng.below(32) as u32,
            silence_stop: (rng.below(4) == 0).then(|| Nanos::from_millis(100 + rng.below(500))),
            disconnect_stop: Some(of(rng, [300, 3_000, 10_000].map(Nanos::from_millis))),
            ..EngineConfig::default()
        };
        let user = UserSettings {
            cancel_on_disconnect: profile::grace(rng),
            limits: if rng.below(3) == 0 { profile::limits(rng) } else { Default::default() },
            self_trade_prevention: profile::prevention(rng),
            ..UserSettings::new(format!("DESK{}", place + 1), Password::plain(PASSWORD))
        };
        let reconnect_after = of(rng, [Nanos::from_millis(5), Nanos::from_millis(80), second]);
        TraderProfile {
            host: trader_host(place),
            kind: [Kind::Maker, Kind::Maker, Kind::Taker, Kind::Random][rng.below(4) as usize],
            limits,
            clock_ahead: rng.below(second.0),
            joins_at: Nanos(if rng.below(2) == 0 { 0 } else { rng.below(active.0 / 2) }),
            reconnect_after,
            is_stopped_in_the_end: rng.below(3) == 0,
            // Long enough for the trader to reconnect and to trade.
            ends_after: Nanos(reconnect_after.0 + rng.below(second.0 / 2)),
            seed: rng.next(),
            reconcile_after: of(rng, [second, second, Nanos::from_millis(20)]),
            update_capacity: [UPDATE_CAPACITY, UPDATE_CAPACITY, 8][rng.below(3) as usize],
            engine,
            user,
            fault_events: fault_events(place, rng, fault_level, active),
        }
    }

    /// Returns the settings of the trader's agents; `user` is the index of the trader's user.
    pub(crate) fn settings(&self, user: usize, feed: FeedSettings, table: &InstrumentTable) -> AgentSettings {
        AgentSettings {
            feed: FeedSettings { symbols: table.iter().map(|it| it.symbol).collect(), ..feed },
            engine: self.engine,
            limits: vec![self.limits; table.as_slice().len()],
            gateway: GatewaySettings {
                role: "order-gateway",
                address: ORDER_ENTRY,
                user: self.user.name.clone(),
                password: PASSWORD.to_owned(),
                session: SessionId(user as u16 + 1),
                instruments: table.clone(),
                reconcile_after: self.reconcile_after,
            },
            update_capacity: self.update_capacity,
            order_capacity: ORDER_CAPACITY,
        }
    }
}

/// Adds the traders after the venue's other users, and raises the limits of connections and sessions.
pub(crate) fn add_users(traders: &[TraderProfile], settings: &mut VenueSettings) {
    settings.users.extend(traders.iter().map(|trader| trader.user.clone()));
    settings.max_connections += CONNECTIONS * traders.len();
    settings.limits.max_sessions += traders.len() as u16;
}

/// Returns a trader's fault events: each kind in about half of the runs.
fn fault_events(place: usize, rng: &mut Rng, level: FaultLevel, active: Nanos) -> Vec<(Nanos, FaultEvent)> {
    let kinds = rng.next();
    let mut fault_events = Vec::new();
    for kind in (0..5).filter(|kind| level == FaultLevel::Full && kinds >> kind & 1 == 1) {
        for _ in 0..=rng.below(3) {
            let at = Nanos(rng.below(active.0));
            let time = Nanos::from_millis(1 + rng.below(300));
            let event = match kind {
                0 => FaultEvent::KillTrader(place),
                1 => FaultEvent::StopTrader(place),
                2 => FaultEvent::Cut(trader_host(place), time),
                3 => FaultEvent::StallTrader(place, time),
                _ => FaultEvent::StepClock(trader_host(place), profile::clock_step(rng)),
            };
            fault_events.push((at, event));
        }
    }
    fault_events
}
