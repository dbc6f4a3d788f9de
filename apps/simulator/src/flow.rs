//! Generates one client's requests: a random mix of orders, changes, cancels and queries, some invalid.

use std::collections::BTreeMap;

use tickpath_nasdaq::ouch50::{self, Answer, EventCode, MESSAGE_LEN_MAX, Outbound, SideMarking};
use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, InstrumentId, InstrumentTable, MassCancel, ModifyOrder, Nanos,
    OrderEventKind, OrderInstructions, OrderRequest, OrderState, Price, Qty, ReplaceOrder, Rng,
    SetOrderEntry, Side, TimeInForce, UserRefNum,
};

/// Number of open orders above which the flow generates no new orders.
const OPEN_ORDERS_TARGET: usize = 24;
/// Maximum distance of order prices from the reference price, in ticks.
const SPREAD_TICKS: u64 = 5;
/// Largest quantity of an order, in lots.
const LOTS_MAX: u64 = 60;
/// Number of recent requests that are kept, so that one can be sent again.
const SENT_KEPT: usize = 8;

/// An open order, as its owner knows it.
#[derive(Clone, Copy, Debug)]
struct OpenOrder {
    instrument: InstrumentId,
    side: Side,
    leaves: u64,
}

/// Generates the requests of one client from random draws and its received messages.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    instruments: InstrumentTable,
    /// Number of instruments at the start.
    first: usize,
    /// Instruments that the client knows to exist.
    known: Vec<InstrumentId>,
    next_user_ref: u32,
    open: BTreeMap<u32, OpenOrder>,
    sent: Vec<Vec<u8>>,
    is_enabled: bool,
}

impl Flow {
    /// Creates a flow for `instruments`; the first `first` of them exist at the start.
    pub(crate) fn new(instruments: InstrumentTable, first: usize) -> Flow {
        Flow {
            known: instruments.iter().take(first).map(|instrument| instrument.id).collect(),
            first,
            instruments,
            next_user_ref: 1,
            open: BTreeMap::new(),
            sent: Vec::new(),
            is_enabled: true,
        }
    }

    /// Returns the next request as OUCH bytes; `time_of_day` is by the venue's clock.
    pub(crate) fn next(&mut self, rng: &mut Rng, time_of_day: Nanos) -> Vec<u8> {
        let bytes = match rng.below(100) {
            0 => vec![b'Q'],
            1 if !self.sent.is_empty() => {
                return self.sent[rng.below(self.sent.len() as u64) as usize].clone();
            }
            2 => self.encode(&self.mass_cancel(rng)),
            3 => {
                self.is_enabled = !self.is_enabled;
                self.encode(&self.set_order_entry())
            }
            4..9 if !self.is_enabled => {
                self.is_enabled = true;
                self.encode(&self.set_order_entry())
            }
            _ if self.open.is_empty() => self.enter(rng, time_of_day),
            _ if self.open.len() > OPEN_ORDERS_TARGET => self.change(rng),
            4..60 => self.enter(rng, time_of_day),
            _ => self.change(rng),
        };
        if self.sent.len() == SENT_KEPT {
            self.sent.remove(0);
        }
        self.sent.push(bytes.clone());
        bytes
    }

    /// Handles a message of the venue.
    pub(crate) fn on_message(&mut self, message: &[u8]) {
        let Ok(answer) = ouch50::decode_event(message, |symbol| self.instruments.find(symbol)) else {
            return;
        };
        let answer = match answer {
            Answer::Order(answer) => answer,
            // UserRefNums restart each day.
            Answer::Other(Outbound::SystemEvent(event, _)) if event.event_code == EventCode::END_OF_DAY => {
                self.next_user_ref = 1;
                return;
            }
            _ => return,
        };
        match answer.kind {
            OrderEventKind::Accepted { order, state, .. } => self.record(&order, state),
            OrderEventKind::Replaced { order, orig_user_ref, state, .. } => {
                self.open.remove(&orig_user_ref.0);
                self.record(&order, state);
            }
            OrderEventKind::Canceled { user_ref, decrement: qty, .. }
            | OrderEventKind::SelfTradePrevented { user_ref, decrement: qty, .. }
            | OrderEventKind::Executed { user_ref, qty, .. } => self.reduce(user_ref, qty),
            _ => {}
        }
    }

    fn record(&mut self, order: &EnterOrder, state: OrderState) {
        // An earlier instance of the client may have used UserRefNums that this one does not know.
        self.next_user_ref = self.next_user_ref.max(order.user_ref.0 + 1);
        if !self.known.contains(&order.instrument) {
            self.known.push(order.instrument);
        }
        if state == OrderState::Live {
            let open = OpenOrder { instrument: order.instrument, side: order.side, leaves: order.qty.0 };
            self.open.insert(order.user_ref.0, open);
        }
    }

    fn reduce(&mut self, user_ref: UserRefNum, qty: Qty) {
        if let Some(open) = self.open.get_mut(&user_ref.0) {
            open.leaves = open.leaves.saturating_sub(qty.0);
            if open.leaves == 0 {
                self.open.remove(&user_ref.0);
            }
        }
    }

    fn allocate_user_ref(&mut self, rng: &mut Rng) -> UserRefNum {
        // UserRefNums must increase, but may skip values.
        let number = self.next_user_ref + if rng.below(20) == 0 { rng.below(5) as u32 } else { 0 };
        self.next_user_ref = number + 1;
        UserRefNum(number)
    }

    fn enter(&mut self, rng: &mut Rng, time_of_day: Nanos) -> Vec<u8> {
        let instrument = self.random_instrument(rng);
        let side = Side::BOTH[rng.below(2) as usize];
        let user_ref = self.allocate_user_ref(rng);
        let price = self.random_price(rng, instrument);
        let qty = Qty(1 + rng.below(LOTS_MAX));
        let mut order = EnterOrder {
            client_order_id: client_order_id(user_ref),
            ..EnterOrder::limit(user_ref, instrument, side, qty, price)
        };
        let special = OrderInstructions { display_qty: Qty::ZERO, ..OrderInstructions::default() };
        match rng.below(100) {
            0..50 => {}
            50..62 => order.time_in_force = TimeInForce::Ioc,
            62..66 => (order.time_in_force, order.min_qty) = (TimeInForce::Ioc, order.qty),
            66..70 => {
                (order.time_in_force, order.min_qty) = (TimeInForce::Ioc, Qty(1 + rng.below(order.qty.0)))
            }
            70..76 => order.post_only = true,
            76..81 => order.special = Some(OrderInstructions { is_hidden: true, ..special }),
            81..87 => {
                let display_qty = Qty(1 + rng.below(order.qty.0));
                order.special = Some(OrderInstructions { display_qty, ..special });
            }
            87..90 => {
                order.time_in_force = TimeInForce::Gtt;
                let expire_at = (time_of_day.0 / 1_000_000_000 + rng.below(4)) as u32;
                order.special = Some(OrderInstructions { expire_at, ..special });
            }
            90..93 => (order.price, order.time_in_force) = (Price::MARKET, TimeInForce::Ioc),
            93 => order.price = Price(order.price.0 + 1),
            94 => order.price = Price(order.price.0 * 3),
            95 => order.qty = Qty::ZERO,
            96 => order.min_qty = order.qty,
            97 => order.qty = Qty(10_000_000),
            _ => order.price = Price(order.price.0 + side.sign() * 1_000),
        }
        self.encode(&OrderRequest::Enter(order))
    }

    /// Returns a request to cancel or change an order that is open, as far as the client knows.
    fn change(&mut self, rng: &mut Rng) -> Vec<u8> {
        let place = rng.below(self.open.len() as u64) as usize;
        let Some((number, open)) = self.open.iter().nth(place).map(|(number, open)| (*number, *open)) else {
            return vec![b'Q'];
        };
        let user_ref = UserRefNum(number);
        let request = match rng.below(100) {
            0..45 => OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty::ZERO }),
            45..55 => OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty(rng.below(open.leaves + 1)) }),
            55..65 => {
                let qty = Qty(1 + rng.below(open.leaves + 2));
                let side_marking = SideMarking::from(open.side).0;
                OrderRequest::Modify(ModifyOrder { user_ref, side_marking, qty })
            }
            _ => self.replace(rng, user_ref, open),
        };
        self.encode(&request)
    }

    fn replace(&mut self, rng: &mut Rng, orig_user_ref: UserRefNum, open: OpenOrder) -> OrderRequest {
        let user_ref = self.allocate_user_ref(rng);
        let price = self.random_price(rng, open.instrument);
        let is_reserve = rng.below(12) == 0;
        let qty = Qty(1 + rng.below(LOTS_MAX));
        let display_qty = Qty(1 + rng.below(qty.0));
        OrderRequest::Replace(ReplaceOrder {
            time_in_force: if rng.below(12) == 0 { TimeInForce::Ioc } else { TimeInForce::Day },
            post_only: rng.below(12) == 0,
            special: is_reserve.then(|| OrderInstructions { display_qty, ..OrderInstructions::default() }),
            client_order_id: client_order_id(user_ref),
            ..ReplaceOrder::limit(orig_user_ref, user_ref, qty, price)
        })
    }

    fn mass_cancel(&self, rng: &mut Rng) -> OrderRequest {
        let all = InstrumentId(0);
        let one = |rng: &mut Rng| InstrumentId(1 + rng.below(self.first as u64) as u16);
        let instrument = if rng.below(2) == 0 { all } else { one(rng) };
        let side = [None, Some(Side::Buy), Some(Side::Sell)][rng.below(3) as usize];
        let user_ref = UserRefNum(self.next_user_ref);
        OrderRequest::MassCancel(MassCancel { user_ref, instrument, side, firm: *b"SIMU" })
    }

    fn set_order_entry(&self) -> OrderRequest {
        let user_ref = UserRefNum(self.next_user_ref);
        OrderRequest::SetOrderEntry(SetOrderEntry { user_ref, is_enabled: self.is_enabled, firm: *b"SIMU" })
    }

    fn random_instrument(&self, rng: &mut Rng) -> InstrumentId {
        let all = self.instruments.as_slice();
        // Occasionally returns an instrument that may not exist yet.
        if all.len() > self.known.len() && rng.below(12) == 0 {
            return all[rng.below(all.len() as u64) as usize].id;
        }
        self.known[rng.below(self.known.len() as u64) as usize]
    }

    fn random_price(&self, rng: &mut Rng, instrument: InstrumentId) -> Price {
        let Some(instrument) = self.instruments.get(instrument) else { return Price(0) };
        let ticks = rng.below(2 * SPREAD_TICKS + 1) as i64 - SPREAD_TICKS as i64;
        Price(instrument.reference_price.0 + ticks * instrument.tick_size.0)
    }

    fn encode(&self, request: &OrderRequest) -> Vec<u8> {
        let mut bytes = [0; MESSAGE_LEN_MAX];
        let symbol = |id| self.instruments.symbol(id);
        let len = ouch50::encode_request(request, symbol, &mut bytes).expect("OUCH encodes all of these");
        bytes[..len].to_vec()
    }
}

fn client_order_id(user_ref: UserRefNum) -> ClientOrderId {
    let mut id = [b' '; 14];
    let text = user_ref.0.to_string();
    id[..text.len()].copy_from_slice(text.as_bytes());
    ClientOrderId(id)
}
