//! The project's matching engine in the role of the venue.

use tickpath_book::OrderBooks;
use tickpath_capture::flow::{FlowStep, Role};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{
    Instrument, InstrumentId, Liquidity, MarketEvent, Nanos, OrderEvent, OrderEventKind, Price, Qty,
    Sequence, SessionId, Side, TradingState, UserRefNum,
};

const MAKER: SessionId = SessionId(1);
const TAKER: SessionId = SessionId(2);

/// The engine's order events in response to one command.
#[derive(Default)]
struct Answers(Vec<OrderEvent>);

impl EventListener for Answers {
    fn on_order_event(&mut self, event: &OrderEvent) {
        self.0.push(*event);
    }

    fn on_market_event(&mut self, _: &MarketEvent) {}
}

/// The matching engine, which must execute every request as the mapper expects.
pub struct EngineVenue {
    engine: Engine<ReferenceBooks<Owner>>,
    answers: Answers,
    sequence: Sequence,
}

impl EngineVenue {
    pub fn new(instruments: &[Instrument]) -> Self {
        let engine = Engine::new(instruments, EngineLimits::default()).unwrap();
        let mut venue = EngineVenue { engine, answers: Answers::default(), sequence: Sequence(0) };
        for instrument in instruments {
            let state = TradingState::Trading;
            venue.apply(MAKER, CommandKind::OpenInstrument { instrument: instrument.id, state });
        }
        venue
    }

    fn apply(&mut self, session: SessionId, kind: CommandKind) {
        self.answers.0.clear();
        self.sequence = self.sequence.next();
        let command = Command { sequence: self.sequence, session, ts: Nanos(self.sequence.0), kind };
        self.engine.apply(&command, &mut self.answers);
    }

    /// Sends one request and asserts that the answers are as expected.
    pub fn handle(&mut self, step: &FlowStep) {
        let session = if step.role == Role::Maker { MAKER } else { TAKER };
        self.apply(session, CommandKind::Order(step.request));
        let executed: Vec<(SessionId, UserRefNum, Price, Qty, Liquidity)> = self
            .answers
            .0
            .iter()
            .filter_map(|event| match event.kind {
                OrderEventKind::Executed { user_ref, qty, price, liquidity, .. } => {
                    Some((event.session, user_ref, price, qty, liquidity))
                }
                _ => None,
            })
            .collect();
        match step.expected {
            None => assert_eq!(executed, [], "{step:?}"),
            Some(expected) => {
                let (price, qty) = (expected.price, expected.qty);
                let taken = (TAKER, step.request.user_ref(), price, qty, Liquidity::Removed);
                assert_eq!(executed, [taken, (MAKER, expected.resting, price, qty, Liquidity::Added)]);
            }
        }
        // Besides executions, the engine sends one answer. A second one would mean a cancelled order.
        let others = self.answers.0.len() - executed.len();
        assert_eq!(others, 1, "{step:?} was answered {:?}", self.answers.0);
    }

    /// Asserts the number of executions, and that no request was rejected, ignored or a duplicate.
    pub fn assert_clean(&self, executions: u64) {
        let counters = self.engine.counters();
        assert_eq!((counters.rejected, counters.duplicates, counters.ignored), (0, 0, 0));
        assert_eq!(counters.executions, executions);
    }

    /// Price and open quantity of each order on one side of an instrument, in priority order.
    pub fn resting(&self, id: InstrumentId, side: Side) -> Vec<(Price, u64)> {
        self.engine.books().orders(id, side).map(|(_, order)| (order.price, order.qty.0)).collect()
    }
}
