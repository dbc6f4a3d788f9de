//! An engine as an agent, fed through its rings: lost market updates, and packets between other requests.

use std::sync::{Arc, Mutex};

use tickpath_agent::Agent;
use tickpath_lockfree::{broadcast, records, spsc};
use tickpath_test_support::quote;
use tickpath_timing::{MarketId, NoTrace, Stamp, StampKind, Token, Trace, Tracer};
use tickpath_trader::{EngineAgent, EngineIdentity, EngineRings};
use tickpath_trading::{Context, EngineConfig, GatewayEvent, KillSwitch, Limits, Strategy, TradeEngine};
use tickpath_types::{
    BookHealth, EnterOrder, InstrumentId, MarketUpdate, Nanos, OrderEventKind, OrderId, OrderRequest,
    OrderState, Sequence, SessionId, UserRefNum,
};

use crate::site::{ALPHA, buy, instruments};

const SESSION: SessionId = SessionId(1);
/// Capacity of the ring of market updates.
const CAPACITY: usize = 4;

fn update(sequence: u64) -> MarketUpdate {
    let quote = quote(ALPHA.0, (999_000, 10), (1_001_000, 10));
    MarketUpdate { sequence, ts_event: 0, order_id: sequence, ..quote }
}

/// Enters an order at the first update, overflows the ring at the second, and cancels when the book is stale.
struct Slow {
    market: Arc<Mutex<broadcast::Sender<MarketUpdate>>>,
    order: Option<UserRefNum>,
    packets: u64,
}

impl Strategy for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        self.packets += 1;
        match self.packets {
            1 => self.order = cx.enter(&buy(10, 999_000)).ok(),
            2 => {
                let mut market = self.market.lock().unwrap();
                (3..3 + 2 * CAPACITY as u64).for_each(|sequence| market.send(update(sequence)));
            }
            _ if cx.features(instrument).unwrap().health() == BookHealth::Stale => {
                cx.cancel(self.order.take().unwrap()).unwrap();
            }
            _ => {}
        }
    }
}

fn links(stamps: &mut records::Consumer<Stamp>) -> Vec<(Token, MarketId)> {
    let mut links = vec![];
    stamps.drain(usize::MAX, |stamp| {
        if let Some(StampKind::TokenFromMarket(child, parent)) = stamp.decode() {
            links.push((child, parent));
        }
    });
    links
}

/// Returns an agent that runs `strategy`, and the other ends of its rings of answers and requests.
fn agent<S: Strategy, T: Tracer>(
    strategy: S,
    updates: broadcast::Receiver<MarketUpdate>,
    tracer: T,
) -> (EngineAgent<S, T>, spsc::Producer<GatewayEvent>, spsc::Consumer<OrderRequest>) {
    let (answers, events) = spsc::channel(4);
    let (requests_in, requests) = spsc::channel(4);
    let limits = [Limits::default().in_lots(&instruments().as_slice()[0])];
    let engine =
        TradeEngine::new(&EngineConfig::default(), instruments().as_slice(), &limits, strategy, tracer)
            .unwrap();
    let identity = EngineIdentity { role: "engine", feed: 0, engine: 0, session: SESSION };
    let rings = EngineRings { updates, events, requests: requests_in };
    let agent = EngineAgent::new(identity, engine, rings, KillSwitch::default());
    agent.view().gateway.first_user_ref.set(1);
    (agent, answers, requests)
}

#[test]
fn requests_after_lost_updates_have_no_trigger() {
    let (sender, updates) = broadcast::channel(CAPACITY);
    let market = Arc::new(Mutex::new(sender));
    let (tracer, mut stamps) = Trace::new(1 << 10);
    let strategy = Slow { market: Arc::clone(&market), order: None, packets: 0 };
    let (mut agent, mut answers, mut requests) = agent(strategy, updates, tracer);
    let view = agent.view();
    let mut now = Nanos::from_secs(1);
    let mut work = |agent: &mut EngineAgent<Slow, Trace>| {
        now = now + Nanos(1_000);
        agent.do_work(now).unwrap()
    };

    market.lock().unwrap().send(update(1));
    work(&mut agent);
    let OrderRequest::Enter(order) = requests.try_pop().unwrap() else { panic!("no order") };
    assert_eq!(work(&mut agent), 0, "the next duty cycle publishes the stamps");
    let of_message = MarketId::new(Sequence(1)).via_feed(0).to_engine(0);
    assert_eq!(links(&mut stamps), [(Token::new(SESSION, order.user_ref, true), of_message)]);
    let accepted = OrderEventKind::Accepted {
        order: EnterOrder { ..order },
        order_id: OrderId(1),
        state: OrderState::Live,
    };
    answers.try_push(GatewayEvent::Answer { kind: accepted, ts: Nanos(1) }).unwrap();
    assert_eq!(work(&mut agent), 1);

    market.lock().unwrap().send(update(2));
    work(&mut agent);
    let cancel = requests.try_pop().unwrap();
    assert!(matches!(cancel, OrderRequest::Cancel(_)), "{cancel:?}");
    work(&mut agent);
    assert_eq!(links(&mut stamps), [], "the second update did not cause it");
    agent.on_close();
    assert!(view.snapshot().unwrap().lost_updates >= CAPACITY as u64);
}

/// Enters an order on the timer, and after each packet.
struct Busy;

impl Strategy for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn on_market(&mut self, _: InstrumentId, cx: &mut Context<'_>) {
        cx.enter(&buy(10, 999_000)).unwrap();
    }

    fn on_timer(&mut self, _: Nanos, cx: &mut Context<'_>) {
        cx.enter(&buy(10, 998_000)).unwrap();
    }
}

#[test]
fn a_packet_is_read_to_its_end_after_a_request_of_the_timer() {
    let (mut sender, updates) = broadcast::channel(CAPACITY);
    let (mut agent, _answers, mut requests) = agent(Busy, updates, NoTrace);
    let mut sent = || std::iter::from_fn(|| requests.try_pop()).count();
    sender.send(update(1));
    assert_eq!(agent.do_work(Nanos::from_secs(1)).unwrap(), 1);
    assert_eq!(sent(), 2, "one of the packet, one of the timer");

    for sequence in 2..=5 {
        sender.send(MarketUpdate { has_more: u8::from(sequence < 4), ..update(sequence) });
    }
    let now = Nanos::from_secs(1) + Nanos(1_000);
    assert_eq!((agent.do_work(now).unwrap(), sent()), (3, 1), "the packet of three updates");
    assert_eq!((agent.do_work(now).unwrap(), sent()), (1, 1), "the packet of one");
}
