//! A seeded stream of all engine commands, valid or not.

use std::collections::BTreeMap;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_matching::{Command, CommandKind};
use tickpath_types::*;

use crate::common::{Event, numbered, order};

/// Parameters of the generated commands.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of authorised sessions; one further, unauthorised session also sends commands.
    pub sessions: u32,
    pub instruments: u16,
    /// Number of adjacent prices that nearly all orders use.
    pub prices: u32,
    /// About one in this many orders is special.
    pub special: u32,
    /// Number of rare venue commands in a thousand commands.
    pub rare: u32,
    /// Number of commands that begin or end an auction, in a thousand commands.
    pub auctions: u32,
    /// Number of commands that set a price band, in a thousand commands.
    pub bands: u32,
    /// One in this many commands that can restrict orders does so; the others lift earlier restrictions.
    pub harsh: u32,
}

impl Shape {
    /// The usual mixture of commands; each of the other shapes varies it.
    pub const MIXED: Shape = Shape {
        sessions: 4,
        instruments: 3,
        prices: 11,
        special: 3,
        rare: 25,
        auctions: 9,
        bands: 4,
        harsh: 4,
    };
    /// Two prices, so that all orders can trade with each other; nearly all orders are special.
    pub const NARROW: Shape = Shape { instruments: 1, prices: 2, special: 1, ..Shape::MIXED };
    /// Many sessions, many of them sharing an account.
    pub const MANY_SESSIONS: Shape = Shape { sessions: 40, instruments: 2, prices: 5, ..Shape::MIXED };
    /// Frequent auctions.
    pub const AUCTIONS: Shape = Shape { instruments: 1, prices: 7, auctions: 120, harsh: 6, ..Shape::MIXED };
    /// Frequent limits, kill switches, suspensions and ends of day.
    pub const HARSH: Shape = Shape { rare: 120, harsh: 2, ..Shape::MIXED };
    /// Frequent changes of price bands, and auctions that end the pauses caused by the bands.
    pub const BANDS: Shape = Shape { auctions: 30, bands: 60, harsh: 2, ..Shape::MIXED };

    pub const ALL: [Shape; 6] =
        [Shape::MIXED, Shape::NARROW, Shape::MANY_SESSIONS, Shape::AUCTIONS, Shape::HARSH, Shape::BANDS];
}

/// Time between two commands, long enough for orders to expire within a run.
const STEP: Nanos = Nanos::from_millis(10);

/// Commands as hostile and faulty clients would send them, at few prices so that orders trade.
pub struct CommandGenerator {
    shape: Shape,
    random: Xoshiro256PlusPlus,
    sequence: u64,
    last_user_ref: Vec<u32>,
    /// Executed and open quantity of open orders, as reported to their sessions.
    open: BTreeMap<(SessionId, UserRefNum), (u64, u64)>,
}

impl CommandGenerator {
    pub fn new(seed: u64, shape: Shape) -> CommandGenerator {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let last_user_ref = vec![0; shape.sessions as usize + 1];
        CommandGenerator { shape, random, sequence: 0, last_user_ref, open: BTreeMap::new() }
    }

    /// Records which orders are open, so that later commands can name them.
    pub fn on_events(&mut self, events: &[Event]) {
        for event in events {
            let Event::Order(OrderEvent { session, kind, .. }) = event else { continue };
            let key = (*session, kind.user_ref());
            match *kind {
                OrderEventKind::Accepted { order, .. } => _ = self.open.insert(key, (0, order.qty.0)),
                OrderEventKind::Replaced { order, orig_user_ref, .. } => {
                    let (executed, _) = self.open.remove(&(*session, orig_user_ref)).unwrap();
                    self.open.insert(key, (executed, order.qty.0 - executed));
                }
                OrderEventKind::Modified { qty, .. } => {
                    let (executed, leaves) = self.open.get_mut(&key).unwrap();
                    *leaves = qty.0 - *executed;
                }
                OrderEventKind::Executed { qty, .. } => {
                    self.open.get_mut(&key).unwrap().0 += qty.0;
                    self.reduce(key, qty);
                }
                OrderEventKind::Canceled { decrement, .. }
                | OrderEventKind::SelfTradePrevented { decrement, .. } => self.reduce(key, decrement),
                _ => {}
            }
        }
    }

    fn reduce(&mut self, key: (SessionId, UserRefNum), qty: Qty) {
        let (_, leaves) = self.open.get_mut(&key).unwrap();
        *leaves -= qty.0;
        if *leaves == 0 {
            self.open.remove(&key);
        }
    }

    /// Commands that open all instruments.
    pub fn opening(&mut self) -> Vec<Command> {
        let state = TradingState::Trading;
        let ids = (1..=self.shape.instruments).map(InstrumentId);
        let kinds = ids.map(|instrument| CommandKind::OpenInstrument { instrument, state });
        kinds.map(|kind| self.command(0, kind)).collect()
    }

    fn command(&mut self, session: u16, kind: CommandKind) -> Command {
        let command = numbered(&mut self.sequence, session, kind);
        Command { ts: Nanos(self.sequence * STEP.0), ..command }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    pub fn next(&mut self) -> Command {
        let Shape { sessions, rare, auctions, bands, .. } = self.shape;
        // One in 30 commands comes from the session with the id `sessions`, which does not exist.
        let session = if self.one_in(30) { sessions } else { self.below(sessions) } as u16;
        let chance = self.below(1_000);
        if chance < rare + auctions + bands {
            let kind = match chance {
                _ if chance < rare => self.rare(session),
                _ if chance < rare + auctions => self.auction(),
                _ => self.band(),
            };
            if kind == CommandKind::EndDay {
                self.last_user_ref.fill(10);
            }
            return self.command(session, kind);
        }
        let kind = match self.below(974) {
            0..600 => CommandKind::Order(OrderRequest::Enter(self.enter(session))),
            600..740 => CommandKind::Order(OrderRequest::Cancel(self.cancel(session))),
            740..910 => CommandKind::Order(OrderRequest::Replace(self.replace(session))),
            910..960 => CommandKind::Order(OrderRequest::Modify(self.modify(session))),
            960..970 => CommandKind::GatewayReject {
                user_ref: self.new_number(session),
                reason: RejectReason::TimeInForceNotOffered,
                client_order_id: ClientOrderId::default(),
            },
            970..973 => CommandKind::CancelAll { reason: CancelReason::Supervisory },
            _ => CommandKind::System(SystemEventCode::StartOfMarketHours),
        };
        self.command(session, kind)
    }

    fn is_harsh(&mut self) -> bool {
        self.one_in(self.shape.harsh)
    }

    /// An auction's command: a state change, a cross, or a publication of the imbalance.
    fn auction(&mut self) -> CommandKind {
        let instrument = self.instrument();
        let kind = [CrossKind::Opening, CrossKind::Closing, CrossKind::Halt, CrossKind::Intraday]
            [self.below(4) as usize];
        match self.below(10) {
            0..4 => CommandKind::SetTradingState { instrument, state: self.state() },
            4..8 => CommandKind::Uncross { instrument, kind, state: self.state() },
            8 => CommandKind::PublishImbalance { instrument, kind },
            _ => CommandKind::OpenInstrument { instrument, state: TradingState::Trading },
        }
    }

    fn state(&mut self) -> TradingState {
        use TradingState::{Halted, Paused, QuotationOnly, Trading};
        [Trading, Trading, Trading, QuotationOnly, QuotationOnly, Paused, Halted]
            [self.below(21).saturating_sub(14) as usize]
    }

    fn band(&mut self) -> CommandKind {
        let width = Price([100, 100, 300, 1_000, 40_000][self.below(5) as usize]);
        let width = if self.is_harsh() { width } else { Price(0) };
        CommandKind::SetPriceBand { instrument: self.instrument(), reference: self.price(), width }
    }

    /// A rare command of the venue, or a request about many orders.
    fn rare(&mut self, session: u16) -> CommandKind {
        let instrument = self.instrument();
        let is_harsh = self.is_harsh();
        match 2 + self.below(20) {
            2 if is_harsh => CommandKind::SuspendInstrument { instrument },
            3..6 => {
                let (match_id, reason) = (MatchId(u64::from(self.below(300))), BrokenReason::Consent);
                CommandKind::BreakTrade { match_id, reason }
            }
            6..9 | 20 => CommandKind::ExpireOrders,
            21 => CommandKind::Force(self.enter(session)),
            9 if is_harsh => CommandKind::EndDay,
            10 if is_harsh => CommandKind::SetLimits {
                open_orders: [3, 30, u32::MAX, u32::MAX][self.below(4) as usize],
                order_qty: Qty([50, u64::MAX, u64::MAX, u64::MAX][self.below(4) as usize]),
                order_notional: [7_000_000, u64::MAX, u64::MAX, u64::MAX][self.below(4) as usize],
            },
            10 | 11 => CommandKind::SetLimits {
                open_orders: u32::MAX,
                order_qty: Qty(u64::MAX),
                order_notional: u64::MAX,
            },
            12..15 => CommandKind::SetSelfTradePrevention {
                strategy: SelfTradePrevention::from_code(self.below(5) as u8).unwrap(),
                account: SessionId(if self.one_in(3) { 0 } else { session }),
            },
            15 => CommandKind::KillSession { is_killed: is_harsh && self.one_in(2) },
            16 if is_harsh && self.one_in(4) => CommandKind::KillVenue { is_killed: true },
            16 | 17 => CommandKind::KillVenue { is_killed: false },
            18 => CommandKind::Order(OrderRequest::MassCancel(MassCancel {
                user_ref: self.new_number(session),
                instrument: InstrumentId(self.below(u32::from(self.shape.instruments) + 2) as u16),
                side: [None, Some(Side::Buy), Some(Side::Sell)][self.below(3) as usize],
                firm: *b"FIRM",
            })),
            _ => CommandKind::Order(OrderRequest::SetOrderEntry(SetOrderEntry {
                user_ref: self.new_number(session),
                is_enabled: !(is_harsh && self.one_in(4)),
                firm: *b"FIRM",
            })),
        }
    }

    /// Time in force and instructions of an order: plain, or of any kind of special order, some invalid.
    fn special(&mut self) -> (TimeInForce, Option<OrderInstructions>) {
        use TimeInForce::{Day, Gtc, Gtt, Ioc};
        let mut instructions = OrderInstructions::default();
        let mut time_in_force = if self.one_in(4) { Ioc } else { Day };
        if !self.one_in(self.shape.special) {
            return (time_in_force, None);
        }
        match self.below(14) {
            0..3 => instructions.is_hidden = true,
            3..6 => instructions.display_qty = Qty(u64::from(1 + self.below(3)) * 10),
            6..9 => instructions.stop_price = self.price(),
            9 => time_in_force = Gtc,
            10..13 => time_in_force = Gtt,
            _ => {}
        }
        if time_in_force == Gtt || self.one_in(40) {
            let now = (self.sequence * STEP.0 / 1_000_000_000) as u32;
            instructions.expire_at = now + self.below(3);
        }
        if self.one_in(6) {
            instructions.stop_price = self.price();
        }
        if self.one_in(4) && time_in_force == Day {
            time_in_force = Gtc;
        }
        (time_in_force, (instructions != OrderInstructions::default()).then_some(instructions))
    }

    fn instrument(&mut self) -> InstrumentId {
        InstrumentId(if self.one_in(60) {
            self.below(20)
        } else {
            1 + self.below(u32::from(self.shape.instruments))
        } as u16)
    }

    /// A `UserRefNum`: mostly the next one, sometimes a used one, sometimes one far ahead.
    fn new_number(&mut self, session: u16) -> UserRefNum {
        let last = self.last_user_ref[usize::from(session)];
        let number = match self.below(100) {
            0..4 => last.saturating_sub(self.below(5)),
            4..6 => last.saturating_add(self.below(3_000)),
            6 if self.one_in(20) => last.saturating_add(self.below(50_000_000)),
            _ => last.saturating_add(1),
        };
        self.last_user_ref[usize::from(session)] = number.max(last);
        UserRefNum(number)
    }

    /// A `UserRefNum`, mostly of an open order.
    fn old_number(&mut self, session: u16) -> UserRefNum {
        let of = |number| (SessionId(session), UserRefNum(number));
        let count = self.open.range(of(0)..=of(u32::MAX)).count() as u32;
        if count > 0 && !self.one_in(6) {
            let place = self.below(count) as usize;
            let (_, number) = *self.open.range(of(0)..=of(u32::MAX)).nth(place).unwrap().0;
            return number;
        }
        UserRefNum(self.last_user_ref[usize::from(session)].saturating_sub(self.below(25)))
    }

    fn price(&mut self) -> Price {
        match self.below(100) {
            0 => Price::MARKET,
            1 => Price(i64::from(self.below(200_000)) - 20_000),
            2 => Price(i64::MIN),
            _ => Price(99_500 + i64::from(self.below(self.shape.prices)) * 100),
        }
    }

    fn qty(&mut self) -> Qty {
        Qty(match self.below(100) {
            0 => 0,
            1 => u64::MAX,
            2 => 10_001,
            3..9 => u64::from(self.below(100)),
            _ => u64::from(1 + self.below(10)) * 10,
        })
    }

    fn enter(&mut self, session: u16) -> EnterOrder {
        let (time_in_force, special) = self.special();
        let is_ioc = time_in_force == TimeInForce::Ioc;
        let qty = self.qty();
        EnterOrder {
            instrument: self.instrument(),
            qty,
            price: self.price(),
            time_in_force,
            post_only: self.one_in(8),
            min_qty: self.min_qty(is_ioc, qty),
            special,
            ..order(self.new_number(session).0, Side::BOTH[self.below(2) as usize], 0, 0)
        }
    }

    /// A minimum quantity: zero, part of `qty`, all of it or more; mostly zero if the order may not have one.
    fn min_qty(&mut self, is_ioc: bool, qty: Qty) -> Qty {
        match self.below(if is_ioc { 4 } else { 60 }) {
            0 => qty,
            1 => Qty(u64::from(self.below(60))),
            _ => Qty::ZERO,
        }
    }

    fn replace(&mut self, session: u16) -> ReplaceOrder {
        let orig_user_ref = self.old_number(session);
        self.enter(session).replacing(orig_user_ref)
    }

    fn cancel(&mut self, session: u16) -> CancelOrder {
        let qty = if self.one_in(2) { Qty::ZERO } else { self.qty() };
        CancelOrder { user_ref: self.old_number(session), qty }
    }

    fn modify(&mut self, session: u16) -> ModifyOrder {
        let side_marking = b"BBBBSTEX"[self.below(8) as usize];
        ModifyOrder { user_ref: self.old_number(session), side_marking, qty: self.qty() }
    }
}
