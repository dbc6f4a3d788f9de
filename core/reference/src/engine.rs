//! Matching as the documents say it, done in the simplest way.

use std::collections::{BTreeMap, VecDeque};

use tickpath_matching::{Command, CommandKind, EngineLimits, EventListener};
use tickpath_types::*;

mod cross;
mod matching;
mod requests;
mod rules;
mod venue;

/// Price-time matching of all instruments as a list of orders that is searched from end to end for whatever is asked.
///
/// The same commands give the same events as they do with `tickpath_matching::Engine`, as long as that one's look-up of
/// orders has room: the bound on its pages is the one rule that is not kept here.
#[derive(Clone, Debug)]
pub struct ReferenceEngine {
    limits: EngineLimits,
    instruments: BTreeMap<InstrumentId, Listing>,
    /// The greatest id of an instrument that can be added.
    max_instrument: u16,
    sessions: Vec<Session>,
    /// Everything open.
    orders: Vec<Open>,
    is_killed: bool,
    /// By match number less one; `None` for what is no execution, or none any more.
    executions: Vec<Option<Execution>>,
    last_market: u64,
    last_order_id: u64,
    last_entry: u64,
    last_arrival: u64,
    /// Entries of orders whose stop price was reached.
    triggered: VecDeque<u64>,
    command: Command,
    events: Vec<Event>,
    /// Requests answered by `Rejected`.
    pub rejected: u64,
    /// New orders and requests whose number the session had already used.
    pub duplicates: u64,
    /// Executions.
    pub executed: u64,
}

/// An open order, as it is seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceOrder {
    /// Whose.
    pub session: SessionId,
    /// The client's number of it.
    pub user_ref: UserRefNum,
    /// Of which instrument.
    pub instrument: InstrumentId,
    /// Its side.
    pub side: Side,
    /// Its limit.
    pub price: Price,
    /// What it has executed, with those that it replaced.
    pub executed: Qty,
    /// What is left of it.
    pub leaves: Qty,
    /// What of that is displayed.
    pub shown: Qty,
    /// The reference that it is displayed under.
    pub order_id: OrderId,
    /// The time of day at which it expires; `None` when it does not within the day.
    pub expires_at: Option<Nanos>,
}

/// What goes to the listener, in order.
#[derive(Clone, Copy, Debug)]
enum Event {
    Order(OrderEvent),
    Market(MarketEvent),
    NextUserRef(UserRefNum),
    Stage(SystemEventCode),
}

#[derive(Clone, Copy, Debug)]
struct Listing {
    instrument: Instrument,
    state: TradingState,
    last_price: Price,
    band_reference: Price,
    band_width: Price,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    last_user_ref: UserRefNum,
    max_open_orders: u32,
    max_qty: Qty,
    max_notional: u64,
    prevention: SelfTradePrevention,
    account: u16,
    is_killed: bool,
    is_disabled: bool,
}

/// An open order.
#[derive(Clone, Copy, Debug)]
struct Open {
    order: EnterOrder,
    session: SessionId,
    /// Place in the order of entry.
    entry: u64,
    executed: u64,
    /// What is displayed, under which reference, and when it came to its level.
    shown: u64,
    id: OrderId,
    shown_at: u64,
    /// What is not, and when it came to its level.
    unseen: u64,
    unseen_at: u64,
    /// It has a stop price that no trade has reached, or its turn after that has not come.
    waits: bool,
    /// A trade has reached the price that it waits for.
    is_reached: bool,
    parts: u64,
}

impl Open {
    fn leaves(&self) -> u64 {
        self.shown + self.unseen
    }

    fn expires_at(&self) -> Option<Nanos> {
        let seconds = self.order.special.unwrap_or_default().expire_at;
        (self.order.time_in_force == TimeInForce::Gtt).then(|| Nanos::from_secs(seconds.into()))
    }
}

#[derive(Clone, Copy, Debug)]
struct Execution {
    orders: [(SessionId, UserRefNum); 2],
    instrument: InstrumentId,
}

/// An order that is being matched.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    order: EnterOrder,
    session: SessionId,
    id: OrderId,
    limit: Price,
    leaves: u64,
    executed: u64,
    replaced: Option<OrderId>,
    /// The entry of one that waited.
    entry: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Matched,
    Paused,
    Prevented,
}

impl ReferenceEngine {
    /// An engine without orders, every instrument halted.
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
            last_market: 0,
            last_order_id: 0,
            last_entry: 0,
            last_arrival: 0,
            triggered: VecDeque::new(),
            command,
            events: Vec::new(),
            rejected: 0,
            duplicates: 0,
            executed: 0,
        }
    }

    /// Applies one command; its events go to `out` before this returns.
    pub fn apply(&mut self, command: &Command, out: &mut impl EventListener) {
        self.command = *command;
        self.obey(command);
        self.work_triggered();
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Order(event) => out.on_order_event(&event),
                Event::Market(event) => out.on_market_event(&event),
                Event::NextUserRef(next) => out.on_query_answer(command, next),
                Event::Stage(stage) => out.on_stage(command, stage),
            }
        }
    }

    fn obey(&mut self, command: &Command) {
        let session = command.session;
        match command.kind {
            CommandKind::Order(OrderRequest::Enter(order)) => self.enter(order),
            CommandKind::Order(OrderRequest::Replace(request)) => self.replace(request),
            CommandKind::Order(OrderRequest::Cancel(request)) => self.cancel(request),
            CommandKind::Order(OrderRequest::Modify(request)) => self.modify(request),
            CommandKind::Order(OrderRequest::MassCancel(request)) => self.mass_cancel(request),
            CommandKind::Order(OrderRequest::SetOrderEntry(request)) => self.set_order_entry(request),
            CommandKind::Refuse { user_ref, reason, client_order_id } => {
                if self.use_number(user_ref, client_order_id) {
                    self.reject(user_ref, reason, client_order_id);
                }
            }
            CommandKind::AccountQuery => {
                let last = self.last_user_ref(session);
                self.events.push(Event::NextUserRef(UserRefNum(last.0.wrapping_add(1))));
            }
            CommandKind::CancelAll { reason } => self.cancel_all(session, true, reason, |_| true),
            CommandKind::System(stage) => {
                self.publish(InstrumentId(0), MarketEventKind::System(stage));
                self.events.push(Event::Stage(stage));
            }
            CommandKind::OpenInstrument { instrument, state } => {
                if self.instruments.contains_key(&instrument) {
                    self.publish(instrument, MarketEventKind::Directory);
                    self.set_state(instrument, state);
                }
            }
            CommandKind::SetTradingState { instrument, state } => self.set_state(instrument, state),
            CommandKind::Uncross { instrument, kind, state } => self.uncross(instrument, kind, state),
            CommandKind::PublishImbalance { instrument, kind } => {
                if self.instruments.contains_key(&instrument) {
                    let imbalance = self.imbalance(instrument, kind);
                    self.publish(instrument, MarketEventKind::Imbalance(imbalance));
                }
            }
            CommandKind::SetPriceBand { instrument, reference, width } => {
                if let Some(listing) = self.instruments.get_mut(&instrument)
                    && listing.instrument.is_within_collar(reference)
                    && width.0 >= 0
                {
                    (listing.band_reference, listing.band_width) = (reference, width);
                    if width.0 > 0 {
                        self.publish_band(instrument);
                    }
                }
            }
            CommandKind::AddInstrument(new) => {
                let is_sound = new.tick_size.0 > 0
                    && new.lot_size.0 > 0
                    && new.collar_low.0 > 0
                    && new.collar_low <= new.collar_high;
                let EngineLimits { max_open_orders, max_special_orders, .. } = self.limits;
                let parts = u128::from(max_open_orders) + 2 * u128::from(max_special_orders);
                let is_countable = u128::from(new.max_qty.0) * parts <= u128::from(u64::MAX);
                let has_room = (1..=self.max_instrument).contains(&new.id.0);
                if is_sound && is_countable && has_room {
                    self.instruments.entry(new.id).or_insert(Listing::new(new));
                }
            }
            CommandKind::SuspendInstrument { instrument } => {
                if self.instruments.contains_key(&instrument) {
                    self.change_state(instrument, TradingState::Halted);
                    self.cancel_everywhere(CancelReason::Supervisory, |open| {
                        open.order.instrument == instrument
                    });
                }
            }
            CommandKind::BreakTrade { match_id, reason } => self.break_trade(match_id, reason),
            CommandKind::ExpireOrders => self.expire_orders(),
            CommandKind::EndDay => self.end_day(),
            CommandKind::SetLimits { open_orders, order_qty, order_notional } => {
                if let Some(rules) = self.sessions.get_mut(usize::from(session.0)) {
                    rules.max_open_orders = open_orders;
                    rules.max_qty = order_qty;
                    rules.max_notional = order_notional;
                }
            }
            CommandKind::SetSelfTradePrevention { strategy, account } => {
                if let Some(rules) = self.sessions.get_mut(usize::from(session.0)) {
                    (rules.prevention, rules.account) = (strategy, account.0);
                }
            }
            CommandKind::Force(order) => self.enter(order),
            CommandKind::KillSession { is_killed } => {
                if let Some(rules) = self.sessions.get_mut(usize::from(session.0)) {
                    rules.is_killed = is_killed;
                    if is_killed {
                        self.cancel_all(session, true, CancelReason::Supervisory, |_| true);
                    }
                }
            }
            CommandKind::KillVenue { is_killed } => {
                self.is_killed = is_killed;
                if is_killed {
                    self.cancel_everywhere(CancelReason::Supervisory, |_| true);
                }
            }
        }
    }

    /// Every open order, in no particular order.
    pub fn open_orders(&self) -> impl Iterator<Item = ReferenceOrder> {
        self.orders.iter().map(ReferenceOrder::of)
    }

    /// What is displayed of one side, in the order in which it would trade.
    #[must_use]
    pub fn displayed(&self, instrument: InstrumentId, side: Side) -> Vec<ReferenceOrder> {
        let places = self.in_priority(instrument, side).into_iter();
        places.map(|at| ReferenceOrder::of(&self.orders[at])).filter(|order| order.shown.0 > 0).collect()
    }

    /// The greatest number that a session has used, 0 when none.
    #[must_use]
    pub fn last_user_ref(&self, session: SessionId) -> UserRefNum {
        self.sessions.get(usize::from(session.0)).map_or(UserRefNum(0), |session| session.last_user_ref)
    }

    /// Number of the last market event.
    #[must_use]
    pub fn last_market(&self) -> Sequence {
        Sequence(self.last_market)
    }

    /// Whether an instrument trades; `None` when there is none of this id.
    #[must_use]
    pub fn trading_state(&self, instrument: InstrumentId) -> Option<TradingState> {
        self.instruments.get(&instrument).map(|listing| listing.state)
    }

    /// What is kept of an instrument that a command is about: it was found before.
    fn listing_mut(&mut self, instrument: InstrumentId) -> &mut Listing {
        self.instruments.get_mut(&instrument).expect("only instruments that exist are worked on")
    }

    fn tell(&mut self, session: SessionId, is_reply: bool, kind: OrderEventKind) {
        let Command { sequence: command, ts, .. } = self.command;
        self.events.push(Event::Order(OrderEvent { command, session, ts, is_reply, kind }));
    }

    fn reply(&mut self, kind: OrderEventKind) {
        self.tell(self.command.session, true, kind);
    }

    fn publish(&mut self, instrument: InstrumentId, kind: MarketEventKind) {
        self.last_market += 1;
        let Command { sequence: command, ts, .. } = self.command;
        let sequence = Sequence(self.last_market);
        self.events.push(Event::Market(MarketEvent { sequence, command, ts, instrument, kind }));
    }

    fn reject(&mut self, user_ref: UserRefNum, reason: RejectReason, client_order_id: ClientOrderId) {
        self.rejected += 1;
        self.reply(OrderEventKind::Rejected { user_ref, reason, client_order_id });
    }

    fn next_id(&mut self) -> OrderId {
        self.last_order_id += 1;
        OrderId(self.last_order_id)
    }

    fn find(&self, session: SessionId, user_ref: UserRefNum) -> Option<usize> {
        self.orders.iter().position(|open| (open.session, open.order.user_ref) == (session, user_ref))
    }
}

impl ReferenceOrder {
    fn of(open: &Open) -> ReferenceOrder {
        ReferenceOrder {
            session: open.session,
            user_ref: open.order.user_ref,
            instrument: open.order.instrument,
            side: open.order.side,
            price: open.order.price,
            executed: Qty(open.executed),
            leaves: Qty(open.leaves()),
            shown: Qty(open.shown),
            order_id: open.id,
            expires_at: open.expires_at(),
        }
    }
}

impl Listing {
    fn new(instrument: Instrument) -> Listing {
        let (state, zero) = (TradingState::Halted, Price(0));
        Listing { instrument, state, last_price: zero, band_reference: zero, band_width: zero }
    }

    fn band(&self) -> (Price, Price) {
        let Listing { band_reference: Price(middle), band_width: Price(width), .. } = *self;
        let Instrument { collar_low, collar_high, .. } = self.instrument;
        match width {
            0 => (collar_low, collar_high),
            _ => (
                collar_low.max(Price(middle.saturating_sub(width))),
                collar_high.min(Price(middle.saturating_add(width))),
            ),
        }
    }
}
