//! A matching engine that implements the documented rules in the simplest way.

use std::collections::{BTreeMap, VecDeque};

use tickpath_matching::{Command, CommandKind, EngineLimits, EventListener};
use tickpath_types::*;

mod matching;
mod requests;
mod state;

pub use self::state::ReferenceOrder;
use self::state::{Event, Execution, LastNumbers, Listing, Session};

/// A price-time matching engine that keeps the orders of all instruments in one list. Every operation
/// searches the whole list.
///
/// For the same commands it publishes the same events as `tickpath_matching::Engine`, with one exception:
/// that engine rejects an order when a bound on index pages is reached; this one has no index pages.
#[derive(Clone, Debug)]
pub struct ReferenceEngine {
    limits: EngineLimits,
    instruments: BTreeMap<InstrumentId, Listing>,
    /// Maximum id of an instrument that can be added.
    max_instrument: u16,
    sessions: Vec<Session>,
    orders: Vec<ReferenceOrder>,
    is_killed: bool,
    /// The execution with match id `i + 1` is at index `i`; `None` if that id is a cross or a busted
    /// execution.
    executions: Vec<Option<Execution>>,
    last: LastNumbers,
    /// Entry numbers of orders whose stop price was reached and that are not processed yet.
    triggered: VecDeque<u64>,
    command: Command,
    events: Vec<Event>,
    /// Number of requests answered by `Rejected`.
    pub rejected: u64,
    /// Number of requests ignored because their `UserRefNum` was not above the session's last.
    pub duplicates: u64,
    /// Number of executions.
    pub executed: u64,
}

impl ReferenceEngine {
    /// Creates an engine without orders; every instrument is halted.
    #[must_use]
    pub fn new(instruments: &[Instrument], limits: EngineLimits) -> ReferenceEngine {
        let session = |account| Session {
            last_user_ref: UserRefNum(0),
            max_open_orders: u32::MAX,
            max_qty: Qty(u64::MAX),
            max_notional: u64::MAX,
            prevention: SelfTradePrevention::None,
            account,
            is_killed: false,
            is_disabled: false,
        };
        let (sequence, ts) = (Sequence(0), Nanos(0));
        let command = Command { sequence, session: SessionId(0), ts, kind: CommandKind::ExpireOrders };
        ReferenceEngine {
            limits,
            instruments: instruments.iter().map(|i| (i.id, Listing::new(*i))).collect(),
            max_instrument: instruments.iter().map(|i| i.id.0).fold(limits.max_instruments, u16::max),
            sessions: (0..limits.max_sessions).map(session).collect(),
            orders: Vec::new(),
            is_killed: false,
            executions: Vec::new(),
            last: LastNumbers::default(),
            triggered: VecDeque::new(),
            command,
            events: Vec::new(),
            rejected: 0,
            duplicates: 0,
            executed: 0,
        }
    }

    /// Applies one command; passes its events to `out` before it returns.
    pub fn apply(&mut self, command: &Command, out: &mut impl EventListener) {
        self.command = *command;
        self.execute_command(command);
        self.work_triggered();
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Order(event) => out.on_order_event(&event),
                Event::Market(event) => out.on_market_event(&event),
                Event::NextUserRef(next) => out.on_query_answer(command, next),
                Event::SessionPhase(phase) => out.on_session_phase(command, phase),
            }
        }
    }

    fn execute_command(&mut self, command: &Command) {
        let session = command.session;
        match command.kind {
            CommandKind::Order(request) => self.handle_request(request),
            CommandKind::Force(order) => self.enter(order),
            CommandKind::GatewayReject { user_ref, reason, client_order_id } => {
                if self.use_number(user_ref, client_order_id) {
                    self.reject(user_ref, reason, client_order_id);
                }
            }
            CommandKind::AccountQuery => {
                let last = self.last_user_ref(session);
                self.events.push(Event::NextUserRef(UserRefNum(last.0.wrapping_add(1))));
            }
            CommandKind::CancelAll { reason } => self.cancel_all(session, true, reason, |_| true),
            CommandKind::System(phase) => {
                self.publish(InstrumentId(0), MarketEventKind::System(phase));
                self.events.push(Event::SessionPhase(phase));
            }
            CommandKind::AddInstrument(new) => self.add_instrument(new),
            CommandKind::OpenInstrument { instrument, .. }
            | CommandKind::SetTradingState { instrument, .. }
            | CommandKind::Uncross { instrument, .. }
            | CommandKind::PublishImbalance { instrument, .. }
            | CommandKind::SetPriceBand { instrument, .. }
            | CommandKind::SuspendInstrument { instrument } => {
                if self.instruments.contains_key(&instrument) {
                    self.change_instrument(&command.kind);
                }
            }
            CommandKind::BreakTrade { match_id, reason } => self.break_trade(match_id, reason),
            CommandKind::ExpireOrders => self.expire_orders(),
            CommandKind::EndDay => self.end_day(),
            CommandKind::SetLimits { open_orders, order_qty, order_notional } => self.set_rules(|rules| {
                (rules.max_open_orders, rules.max_qty, rules.max_notional) =
                    (open_orders, order_qty, order_notional);
            }),
            CommandKind::SetSelfTradePrevention { strategy, account } => {
                self.set_rules(|rules| (rules.prevention, rules.account) = (strategy, account.0));
            }
            CommandKind::KillSession { is_killed } => {
                self.set_rules(|rules| rules.is_killed = is_killed);
                if is_killed {
                    self.cancel_all(session, true, CancelReason::Supervisory, |_| true);
                }
            }
            CommandKind::KillVenue { is_killed } => {
                self.is_killed = is_killed;
                if is_killed {
                    self.cancel_where(CancelReason::Supervisory, |_| true);
                }
            }
        }
    }

    /// Applies `change` to the session that sent the command, if that session exists.
    fn set_rules(&mut self, change: impl FnOnce(&mut Session)) {
        if let Some(rules) = self.sessions.get_mut(usize::from(self.command.session.0)) {
            change(rules);
        }
    }

    /// Every open order, in no particular order.
    pub fn open_orders(&self) -> impl Iterator<Item = &ReferenceOrder> {
        self.orders.iter()
    }

    /// The orders of one side that have a displayed part, in priority order.
    #[must_use]
    pub fn displayed(&self, instrument: InstrumentId, side: Side) -> Vec<ReferenceOrder> {
        let places = self.in_priority(instrument, side).into_iter();
        places.map(|at| self.orders[at]).filter(|open| open.shown > 0).collect()
    }

    /// Returns the highest `UserRefNum` that a session has used; 0 if none.
    #[must_use]
    pub fn last_user_ref(&self, session: SessionId) -> UserRefNum {
        self.sessions.get(usize::from(session.0)).map_or(UserRefNum(0), |session| session.last_user_ref)
    }

    /// Sequence number of the last market event.
    #[must_use]
    pub fn last_market(&self) -> Sequence {
        Sequence(self.last.market)
    }

    /// Returns the trading state of an instrument; `None` for an unknown id.
    #[must_use]
    pub fn trading_state(&self, instrument: InstrumentId) -> Option<TradingState> {
        self.instruments.get(&instrument).map(|listing| listing.state)
    }

    /// Returns the listing of an instrument, which must exist.
    fn listing_mut(&mut self, instrument: InstrumentId) -> &mut Listing {
        self.instruments.get_mut(&instrument).expect("only instruments that exist are worked on")
    }

    fn report(&mut self, session: SessionId, is_reply: bool, kind: OrderEventKind) {
        let Command { sequence: command, ts, .. } = self.command;
        self.events.push(Event::Order(OrderEvent { command, session, ts, is_reply, kind }));
    }

    fn reply(&mut self, kind: OrderEventKind) {
        self.report(self.command.session, true, kind);
    }

    fn publish(&mut self, instrument: InstrumentId, kind: MarketEventKind) {
        self.last.market += 1;
        let Command { sequence: command, ts, .. } = self.command;
        let sequence = Sequence(self.last.market);
        self.events.push(Event::Market(MarketEvent { sequence, command, ts, instrument, kind }));
    }

    fn reject(&mut self, user_ref: UserRefNum, reason: RejectReason, client_order_id: ClientOrderId) {
        self.rejected += 1;
        self.reply(OrderEventKind::Rejected { user_ref, reason, client_order_id });
    }

    fn next_id(&mut self) -> OrderId {
        self.last.order_id += 1;
        OrderId(self.last.order_id)
    }

    fn find(&self, session: SessionId, user_ref: UserRefNum) -> Option<usize> {
        self.orders.iter().position(|open| (open.session, open.order.user_ref) == (session, user_ref))
    }

    fn add_instrument(&mut self, new: Instrument) {
        let is_valid = new.tick_size.0 > 0
            && new.lot_size.0 > 0
            && new.collar_low.0 > 0
            && new.collar_low <= new.collar_high;
        let EngineLimits { max_open_orders, max_special_orders, .. } = self.limits;
        let parts = u128::from(max_open_orders) + 2 * u128::from(max_special_orders);
        let is_countable = u128::from(new.max_qty.0) * parts <= u128::from(u64::MAX);
        let has_capacity = (1..=self.max_instrument).contains(&new.id.0);
        if is_valid && is_countable && has_capacity {
            self.instruments.entry(new.id).or_insert(Listing::new(new));
        }
    }

    /// Executes a command about an instrument that exists.
    fn change_instrument(&mut self, kind: &CommandKind) {
        match *kind {
            CommandKind::OpenInstrument { instrument, state } => {
                self.publish(instrument, MarketEventKind::Directory);
                self.set_state(instrument, state);
            }
            CommandKind::SetTradingState { instrument, state } => self.set_state(instrument, state),
            CommandKind::Uncross { instrument, kind, state } => self.uncross(instrument, kind, state),
            CommandKind::PublishImbalance { instrument, kind } => {
                let imbalance = self.imbalance(instrument, kind);
                self.publish(instrument, MarketEventKind::Imbalance(imbalance));
            }
            CommandKind::SetPriceBand { instrument, reference, width } => {
                let listing = self.listing_mut(instrument);
                if listing.instrument.is_within_collar(reference) && width.0 >= 0 {
                    (listing.band_reference, listing.band_width) = (reference, width);
                    if width.0 > 0 {
                        self.publish_band(instrument);
                    }
                }
            }
            CommandKind::SuspendInstrument { instrument } => {
                self.change_state(instrument, TradingState::Halted);
                self.cancel_where(CancelReason::Supervisory, |open| open.order.instrument == instrument);
            }
            _ => unreachable!("no command about an instrument"),
        }
    }

    pub(super) fn set_state(&mut self, instrument: InstrumentId, state: TradingState) {
        let best = |side| Some(self.orders[self.first(instrument, side)?].order.price);
        let is_crossed = matches!((best(Side::Buy), best(Side::Sell)), (Some(bid), Some(ask)) if bid >= ask);
        match state == TradingState::Trading && is_crossed {
            true => self.uncross(instrument, CrossKind::Halt, state),
            false => self.change_state(instrument, state),
        }
    }

    pub(super) fn change_state(&mut self, instrument: InstrumentId, state: TradingState) {
        self.listing_mut(instrument).state = state;
        self.publish(instrument, MarketEventKind::TradingAction(state));
    }

    pub(super) fn publish_band(&mut self, instrument: InstrumentId) {
        let listing = self.instruments[&instrument];
        let (low, high) = listing.band();
        let reference = listing.band_reference;
        self.publish(instrument, MarketEventKind::PriceBand { reference, low, high });
    }

    pub(super) fn break_trade(&mut self, match_id: MatchId, reason: BrokenReason) {
        let remembered = u64::from(self.limits.max_recent_executions.next_power_of_two());
        let count = self.executions.len() as u64;
        if match_id.0 == 0 || match_id.0 > count || match_id.0 + remembered <= count {
            return;
        }
        let Some(Execution { orders, instrument }) = self.executions[match_id.0 as usize - 1].take() else {
            return;
        };
        for (session, user_ref) in orders {
            self.report(session, false, OrderEventKind::Broken { user_ref, match_id, reason });
        }
        self.publish(instrument, MarketEventKind::TradeBroken { match_id });
    }

    pub(super) fn expire_orders(&mut self) {
        let now = self.command.ts;
        loop {
            let is_expired = |open: &ReferenceOrder| open.expires_at().is_some_and(|at| at <= now);
            let expired = (0..self.orders.len()).filter(|at| is_expired(&self.orders[*at]));
            let Some(at) = expired.min_by_key(|at| self.orders[*at].entry) else { return };
            self.close(at, false, CancelReason::Expired);
        }
    }

    pub(super) fn end_day(&mut self) {
        self.cancel_where(CancelReason::EndOfDay, |open| open.order.time_in_force != TimeInForce::Gtc);
        for session in &mut self.sessions {
            session.last_user_ref = UserRefNum(0);
        }
        self.executions.clear();
        self.orders.sort_by_key(|open| open.entry);
        let before = self.orders.clone();
        for at in 0..self.orders.len() {
            let open = &mut self.orders[at];
            let session = &mut self.sessions[usize::from(open.session.0)];
            session.last_user_ref.0 += 1;
            let orig_user_ref = open.order.user_ref;
            open.order.user_ref = session.last_user_ref;
            open.id = OrderId(at as u64 + 1);
            let special =
                open.order.special.filter(|instructions| *instructions != OrderInstructions::default());
            let qty = Qty(open.executed + open.leaves());
            let order = EnterOrder { special, qty, min_qty: Qty(0), ..open.order };
            let (session, order_id, state) = (open.session, open.id, OrderState::Live);
            self.report(session, false, OrderEventKind::Replaced { order, orig_user_ref, order_id, state });
        }
        self.last.order_id = self.orders.len() as u64;
        let instruments: Vec<InstrumentId> = self.instruments.keys().copied().collect();
        let sides = instruments.into_iter().flat_map(|id| Side::BOTH.map(|side| (id, side)));
        let shown: Vec<usize> = sides
            .flat_map(|(id, side)| self.in_priority(id, side))
            .filter(|at| self.orders[*at].shown > 0)
            .collect();
        for at in &shown {
            self.delete(&before[*at]);
        }
        for at in shown {
            let ReferenceOrder { order, id: order_id, shown, .. } = self.orders[at];
            let EnterOrder { instrument, side, price, .. } = order;
            self.publish(instrument, MarketEventKind::Add { order_id, side, price, qty: Qty(shown) });
        }
    }

    /// Returns the indicative result of a cross, by evaluating every price within the collar.
    pub(super) fn imbalance(&self, instrument: InstrumentId, kind: CrossKind) -> Imbalance {
        let listing = self.instruments[&instrument];
        let Instrument { tick_size, collar_low, collar_high, reference_price, .. } = listing.instrument;
        let reference = if listing.last_price == Price(0) { reference_price } else { listing.last_price };
        let volume_at = |side: Side, price: Price| -> u64 {
            let rests = self.orders.iter().filter(|open| {
                let EnterOrder { instrument: of, side: its, price: limit, .. } = open.order;
                !open.is_waiting && of == instrument && its == side && side.crosses(limit, price)
            });
            rests.map(ReferenceOrder::leaves).sum()
        };
        let mut best: Option<((u64, u64, u64), Imbalance)> = None;
        let first = collar_low.0.div_euclid(tick_size.0) * tick_size.0;
        let prices = (first..=collar_high.0).step_by(tick_size.0 as usize).map(Price);
        for price in prices.filter(|price| *price >= collar_low) {
            let (demand, supply) = (volume_at(Side::Buy, price), volume_at(Side::Sell, price));
            let (paired, left) = (demand.min(supply), demand.abs_diff(supply));
            let key = (u64::MAX - paired, left, price.0.abs_diff(reference.0));
            if paired > 0 && best.is_none_or(|(best, _)| key < best) {
                let larger = if demand > supply { Side::Buy } else { Side::Sell };
                let side = (left > 0).then_some(larger);
                let (paired, imbalance) = (Qty(paired), Qty(left));
                best = Some((key, Imbalance { paired, imbalance, side, price, reference, kind }));
            }
        }
        let (paired, imbalance) = (Qty(0), Qty(0));
        let nothing = Imbalance { paired, imbalance, side: None, price: Price(0), reference, kind };
        best.map_or(nothing, |(_, imbalance)| imbalance)
    }

    pub(super) fn uncross(&mut self, instrument: InstrumentId, kind: CrossKind, state: TradingState) {
        let Imbalance { paired, price, .. } = self.imbalance(instrument, kind);
        let liquidity =
            if kind == CrossKind::Closing { Liquidity::ClosingCross } else { Liquidity::OpeningCross };
        let mut left = paired.0;
        while left > 0 {
            let front = |engine: &ReferenceEngine, side| {
                engine.first(instrument, side).expect("as much as is paired rests on either side")
            };
            let tradable_qty = |open: &ReferenceOrder| if open.shown > 0 { open.shown } else { open.hidden };
            let bid = self.orders[front(self, Side::Buy)];
            let ask = self.orders[front(self, Side::Sell)];
            let qty = left.min(tradable_qty(&bid)).min(tradable_qty(&ask));
            let buyer = (bid.session, bid.order.user_ref, liquidity);
            let match_id = self.execute(buyer, &ask, liquidity, qty, price);
            for open in [bid, ask] {
                if open.shown > 0 {
                    let (order_id, qty) = (open.id, Qty(qty));
                    self.publish(instrument, MarketEventKind::ExecutedAt { order_id, qty, price, match_id });
                }
                let at =
                    self.find(open.session, open.order.user_ref).expect("what is about to trade is open");
                self.fill(at, qty);
            }
            left -= qty;
        }
        self.executions.push(None);
        let match_id = MatchId(self.executions.len() as u64);
        self.publish(instrument, MarketEventKind::Cross { qty: paired, price, match_id, kind });
        self.change_state(instrument, state);
        if price != Price(0) {
            self.listing_mut(instrument).band_reference = price;
            self.note_trades(instrument, &[price]);
        }
    }
}
