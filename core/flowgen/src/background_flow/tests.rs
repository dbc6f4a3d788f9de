use tickpath_book::{FastBooks, OrderBooks};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};
use tickpath_types::{MarketEvent, MarketEventKind, OrderEvent, RejectReason, SessionId, TradingState};

use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

fn instrument(id: u16) -> Instrument {
    tickpath_test_support::instrument(id, "ALPHA")
}

fn instruments() -> Vec<Instrument> {
    (1..=8).map(instrument).collect()
}

fn flow(config: BackgroundFlowConfig) -> BackgroundFlow {
    BackgroundFlow::new(config, &instruments()).unwrap()
}

/// Settings of a flow whose number of open orders settles within one second.
fn small() -> BackgroundFlowConfig {
    BackgroundFlowConfig {
        live_orders_max: 400,
        opening_levels: 10,
        opening_orders_per_level: 5,
        ..Default::default()
    }
}

fn opening_end(flow: &BackgroundFlow) -> Nanos {
    flow.config.opening_due(flow.config.opening_len(flow.markets.len()))
}

#[test]
fn an_unsent_order_is_not_open_after_a_mass_cancel() {
    let open = |flow: &BackgroundFlow| (1..=8).map(|id| flow.live_count(InstrumentId(id))).sum::<usize>();
    let mut flow = flow(BackgroundFlowConfig { sessions: 1, ..small() });
    let mut sent = 0;
    while flow.poll(Nanos::from_micros(100)).is_some() {
        sent += 1;
    }
    assert_eq!(open(&flow), sent + 1, "the next is made and waits");
    assert!(matches!(flow.cancel_all(0), Some(OrderRequest::MassCancel(_))));
    assert_eq!(open(&flow), sent);
}

/// A venue that the flow trades on. It reports its events to the flow unless the flow is open loop.
struct Venue {
    engine: Engine<FastBooks<Owner>>,
    flow: BackgroundFlow,
    is_open_loop: bool,
    log: Log,
    new_orders: u64,
}

#[derive(Default)]
struct Log {
    trades: u64,
    rejects: Vec<RejectReason>,
    answers: Vec<OrderEvent>,
}

impl EventListener for Log {
    fn on_order_event(&mut self, event: &OrderEvent) {
        if let OrderEventKind::Rejected { reason, .. } = event.kind {
            self.rejects.push(reason);
        }
        self.answers.push(*event);
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        self.trades += u64::from(matches!(event.kind, MarketEventKind::Executed { .. }));
    }
}

impl Venue {
    fn new(config: BackgroundFlowConfig, is_open_loop: bool) -> Venue {
        let engine = Engine::new(&instruments(), EngineLimits::default()).unwrap();
        let mut venue =
            Venue { engine, flow: flow(config), is_open_loop, log: Log::default(), new_orders: 0 };
        for id in 1..=8 {
            let kind =
                CommandKind::OpenInstrument { instrument: InstrumentId(id), state: TradingState::Trading };
            venue.apply(0, Nanos::ZERO, kind);
        }
        venue
    }

    fn apply(&mut self, session: u16, ts: Nanos, kind: CommandKind) {
        let sequence = self.engine.last_command().next();
        let command = Command { sequence, session: SessionId(session), ts, kind };
        self.engine.apply(&command, &mut self.log);
        for answer in std::mem::take(&mut self.log.answers) {
            if !self.is_open_loop {
                self.flow.on_event(answer.session.0, &answer.kind);
            }
        }
    }

    fn run(&mut self, until: Nanos) {
        while let Some(action) = self.flow.poll(until) {
            self.new_orders += u64::from(matches!(action.request, OrderRequest::Enter(_)));
            self.apply(action.session, action.due, CommandKind::Order(action.request));
        }
    }

    fn resting(&self, id: u16) -> usize {
        let side =
            |side| self.engine.books().levels(InstrumentId(id), side).map(|level| level.order_count as usize);
        Side::BOTH.into_iter().map(|s| side(s).sum::<usize>()).sum()
    }

    fn spread_ticks(&self, id: u16) -> i64 {
        let best = |side| self.engine.books().best(InstrumentId(id), side).expect("two-sided").price.0;
        (best(Side::Sell) - best(Side::Buy)) / 100
    }
}

#[test]
fn the_market_is_two_sided_at_once_and_stays_so() {
    for is_open_loop in [false, true] {
        let mut venue = Venue::new(small(), is_open_loop);
        let opening = opening_end(&venue.flow);
        assert_eq!(opening, Nanos::from_millis(8));
        let mut spreads = Vec::new();
        for step in 0..200 {
            venue.run(opening + Nanos(SECOND.0 * step / 100));
            spreads.extend((1..=8).map(|id| venue.spread_ticks(id)));
        }
        spreads.sort_unstable();
        let median = spreads[spreads.len() / 2];
        assert!((1..=3).contains(&median), "deaf {is_open_loop}: median spread {median}");
        assert!(*spreads.last().unwrap() <= 15, "deaf {is_open_loop}: widest {:?}", spreads.last());

        let trades_per_mille = venue.log.trades * 1_000 / venue.new_orders;
        assert!((50..=250).contains(&trades_per_mille), "deaf {is_open_loop}: {trades_per_mille}");
        assert!(
            venue.log.rejects.iter().all(|reason| *reason == RejectReason::UnknownOrder),
            "only replacements of orders that have just traded: {:?}",
            venue.log.rejects.first()
        );
    }
}

#[test]
fn a_flow_with_events_knows_its_open_orders() {
    let mut venue = Venue::new(small(), false);
    venue.run(SECOND);
    venue.run(SECOND + SECOND);
    let resting: Vec<usize> = (1..=8).map(|id| venue.resting(id)).collect();
    let known: Vec<usize> = (1..=8).map(|id| venue.flow.live_count(InstrumentId(id))).collect();
    let differ: usize = resting.iter().zip(&known).map(|(resting, known)| resting.abs_diff(*known)).sum();
    assert!(differ <= 1, "at most the one action that waits for its time: {resting:?} {known:?}");
    assert!(resting.iter().all(|count| (200..=330).contains(count)), "{resting:?} of a target of 300");
    assert!(venue.log.rejects.is_empty(), "it replaces only what rests");
}

#[test]
fn the_number_of_open_orders_is_bounded() {
    let config = BackgroundFlowConfig { live_orders_max: 100, marketable_ppm: 0, ..small() };
    let mut flow = flow(config);
    let mut largest = 0;
    while flow.poll(SECOND).is_some() {
        largest = (1..=8).map(|id| flow.live_count(InstrumentId(id))).max().unwrap().max(largest);
    }
    assert_eq!(largest, 100, "the opening alone reaches the bound, and nothing passes it");
}

#[test]
fn numbers_increase_and_every_field_is_valid() {
    let mut flow = flow(small());
    let mut last = [0_u32; 4];
    let mut due = Nanos::ZERO;
    while let Some(action) = flow.poll(SECOND) {
        assert!(action.due >= due);
        due = action.due;
        if action.request.is_new_order() {
            let last = &mut last[usize::from(action.session)];
            assert!(action.request.user_ref().0 > *last);
            *last = action.request.user_ref().0;
        }
        let (price, qty) = match action.request {
            OrderRequest::Enter(order) => (order.price, order.qty),
            OrderRequest::Replace(order) => (order.price, order.qty),
            _ => continue,
        };
        let instrument = instrument(1);
        assert!(instrument.is_on_tick(price) && instrument.is_within_collar(price), "{price}");
        assert!(instrument.is_tradable_qty(qty), "{qty}");
    }
    assert!(last.iter().all(|last| *last > 3_000), "every session takes part: {last:?}");
}

#[test]
fn prices_stay_within_a_narrow_collar() {
    let narrow = Instrument { collar_low: Price(999_050), collar_high: Price(1_000_990), ..instrument(1) };
    let config =
        BackgroundFlowConfig { opening_levels: 5, step_subticks: 50_000, depth_ticks: 100, ..small() };
    let mut flow = BackgroundFlow::new(config, &[narrow]).unwrap();
    while let Some(action) = flow.poll(SECOND) {
        if let OrderRequest::Enter(EnterOrder { price, .. }) = action.request {
            assert!(narrow.is_on_tick(price) && narrow.is_within_collar(price), "{price}");
        }
    }
}

#[test]
fn new_orders_follow_the_rate_whatever_the_venue_does() {
    let due = |is_open_loop| {
        let mut venue = Venue::new(small(), is_open_loop);
        let start = opening_end(&venue.flow);
        let mut due = Vec::new();
        while let Some(action) = venue.flow.poll(start + SECOND) {
            if matches!(action.request, OrderRequest::Enter(_)) && action.due > start {
                due.push(action.due);
            }
            venue.apply(action.session, action.due, CommandKind::Order(action.request));
        }
        due
    };
    let closed_loop = due(false);
    assert!(closed_loop.len().abs_diff(20_000) < 600, "{}", closed_loop.len());
    assert_eq!(closed_loop, due(true));
}

#[test]
fn settings_out_of_range_are_named() {
    let error = |config| BackgroundFlow::new(config, &instruments()).unwrap_err().to_string();
    assert!(error(BackgroundFlowConfig { rate: 0, ..small() }).contains("rate is 0"));
    assert!(error(BackgroundFlowConfig { sessions: 1_025, ..small() }).contains("sessions is 1025"));
    assert!(error(BackgroundFlowConfig { live_orders_max: 99, ..small() }).contains("choose 100 to"));

    let new = |instruments: &[Instrument]| {
        BackgroundFlow::new(small(), instruments).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(new(&[]).unwrap_err(), "no instruments: a crowd needs at least one");
    let exact = Instrument { collar_low: Price(999_000), collar_high: Price(1_001_000), ..instrument(1) };
    assert_eq!(new(&[exact]), Ok(()), "ten levels each way");
    let narrow = Instrument { collar_high: Price(1_000_999), ..exact };
    assert!(new(&[narrow]).unwrap_err().starts_with("instrument 1 has no room for the opening"));
}

/// The flow of a seed never changes, because recorded runs are identified by their seed.
#[test]
fn a_seed_gives_the_same_flow_for_ever() {
    let hash = |seed| {
        let mut flow = flow(BackgroundFlowConfig { seed, ..BackgroundFlowConfig::default() });
        (0..50_000).flat_map(|_| fields(&flow.poll(Nanos::MAX).unwrap())).fold(0xCBF2_9CE4_8422_2325, fnv1a)
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
    assert_eq!(hash(1), 4_447_444_342_879_544_896);
}

fn fields(action: &FlowRequest) -> [u64; 6] {
    let (kind, side, qty, price) = match action.request {
        OrderRequest::Enter(order) => {
            (u64::from(order.instrument.0), order.side as u64, order.qty.0, order.price.0)
        }
        OrderRequest::Replace(order) => (100, order.orig_user_ref.0.into(), order.qty.0, order.price.0),
        OrderRequest::Cancel(order) => (200, 0, order.qty.0, 0),
        OrderRequest::Modify(_) | OrderRequest::MassCancel(_) | OrderRequest::SetOrderEntry(_) => {
            unreachable!("the crowd enters, replaces and cancels")
        }
    };
    let head = kind << 48 | u64::from(action.session) << 32 | u64::from(action.request.user_ref().0);
    [action.due.0, head, side, qty, price.cast_unsigned(), 0]
}

fn fnv1a(hash: u64, word: u64) -> u64 {
    word.to_le_bytes().iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

#[test]
fn sessions_without_numbers_leave_the_flow_to_the_others() {
    let config = BackgroundFlowConfig { sessions: 2, ..small() };
    let mut venue = Venue::new(config, false);
    let opening = opening_end(&venue.flow);
    venue.run(opening);
    venue.flow.number_from(0, UserRefNum(u32::MAX - 3));
    venue.run(opening + SECOND);
    let made = venue.new_orders;
    assert!(made > 1_000 && venue.engine.last_user_ref(SessionId(0)).0 == u32::MAX - 1);

    venue.flow.number_from(1, UserRefNum(u32::MAX - 3));
    venue.run(opening + Nanos(3 * SECOND.0));
    assert_eq!(venue.engine.last_user_ref(SessionId(1)).0, u32::MAX - 1);
    assert!(venue.new_orders <= made + 4, "three more, and one that was made before");
    assert_eq!(venue.flow.poll(opening + Nanos(100 * SECOND.0)), None, "it is silent from then on");
    assert_eq!(venue.log.rejects, [], "and no number was used twice");
}
