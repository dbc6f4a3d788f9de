//! A test gateway with a real client port, one instrument, one account and a scripted venue, to test clients
//! against. It runs on a separate thread until it is dropped.
#![allow(dead_code, clippy::unwrap_used)] // each test program uses some of it

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use tempfile::TempDir;
use tickpath_gateway_io::{ClientId, ClientPort, ClientPortConfig, ClientPortEvent, monotonic};
use tickpath_gateway_protocol::frame::{RefusalReason, capability};
use tickpath_gateway_protocol::{
    AccountReference, AckStatus, AckType, Body, BookUpdate, CreateOrder, DownloadBegin, DownloadEnd,
    ErrorCode, Event, Fixed, InstrumentKind, Level, MarketByPrice, MarketState, MarketStatus, ModifyOrder,
    OrderAck, OrderStatus, OrderUpdate, Origin, Ready, ReadyScope, ReferenceData, Request, RequestKind, Side,
    Text, TimeSeries, TopOfBook, UpdateKind,
};
use tickpath_shm::{Folder, SegmentName};
use tickpath_types::Nanos;

pub const USER: &str = "alice";
pub const PASSWORD: &str = "correct horse";
pub const SYMBOL: &str = "BTC-PERPETUAL";
/// The best bid; the best ask is a tick, 0.5, above.
pub const BEST_BID: &str = "64250.5";

/// Behaviour of its venue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Accepts all orders.
    Obliging,
    /// Rejects all orders, like a dry run: an order is acknowledged, and is then over.
    Refusing,
    /// Ignores changes until the gateway times out, and leaves the order as it was. The user also has quotes,
    /// with client order id 0.
    Silent,
    /// Its instrument and its account have number 2; another instrument and another account have number 1.
    Renumbered,
    /// The book has no bids.
    Quiet,
    /// The account can be watched, not traded with.
    Watched,
}

impl Manner {
    /// Numbers of its account and its instrument.
    const fn numbers(self) -> (u16, u32) {
        if matches!(self, Manner::Renumbered) { (2, 2) } else { (1, 1) }
    }
}

pub struct Rehearsal {
    place: TempDir,
    stop: Arc<AtomicBool>,
    requests: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Rehearsal {
    pub fn start() -> Rehearsal {
        Rehearsal::with(Manner::Obliging)
    }

    pub fn with(manner: Manner) -> Rehearsal {
        Rehearsal::at(tempfile::tempdir().unwrap(), manner)
    }

    /// Ends the gateway and starts another one in the same place.
    pub fn again(mut self, manner: Manner) -> Rehearsal {
        let place = std::mem::replace(&mut self.place, tempfile::tempdir().unwrap());
        drop(self);
        Rehearsal::at(place, manner)
    }

    fn at(place: TempDir, manner: Manner) -> Rehearsal {
        let folder = Folder::create(&place.path().join("shm")).unwrap();
        let mut config = ClientPortConfig::new(
            &place.path().join("deribit.sock"),
            folder,
            SegmentName::new("deribit").unwrap(),
        );
        config.exchange = Text::cut("deribit");
        config.heartbeat = Nanos(50_000_000);
        // A loaded machine may be slow.
        config.pre_login.deadline = Nanos::from_secs(120);
        let door = ClientPort::open(config).unwrap();
        let (stop, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (orders, tells) = (Vec::new(), Nanos::ZERO);
        let mut venue = Venue { door, manner, requests: requests.clone(), orders, trades: 0, tells };
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if !venue.do_work() {
                    thread::yield_now();
                }
            }
        });
        Rehearsal { place, stop, requests, thread: Some(thread) }
    }

    pub fn socket(&self) -> PathBuf {
        self.place.path().join("deribit.sock")
    }

    /// Requests received, one per line, without times.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

struct Order {
    id: u64,
    order: CreateOrder,
}

struct Venue {
    door: ClientPort,
    manner: Manner,
    requests: Arc<Mutex<Vec<String>>>,
    orders: Vec<Order>,
    trades: u64,
    tells: Nanos,
}

impl Venue {
    fn do_work(&mut self) -> bool {
        let now = monotonic();
        if now >= self.tells {
            self.tells = now + Nanos(1_000_000);
            self.trades += 1;
            let mut event = Event::of(&self.top(UpdateKind::INCREMENTAL));
            event.header.symbol = self.manner.numbers().1;
            self.door.broadcast(&mut event);
        }
        match self.door.poll(now) {
            Some(ClientPortEvent::Login(login)) => {
                let hello = &login.hello;
                let is_known = hello.user.as_str() == USER && hello.password.expose() == PASSWORD.as_bytes();
                if !is_known {
                    self.door.refuse(login.id, RefusalReason::CREDENTIALS, Nanos::ZERO);
                } else if let Some(client) = self.door.admit(login.id, capability::TRADING) {
                    self.download(client);
                }
                true
            }
            Some(ClientPortEvent::Request(client, request)) => {
                self.take(client, &request);
                true
            }
            Some(_) => true,
            None => false,
        }
    }

    fn tell<B: Body>(&mut self, client: ClientId, (account, symbol): (u16, u32), body: &B) {
        let mut event = Event::of(body);
        (event.header.account, event.header.symbol) = (account, symbol);
        self.door.send(client, &mut event);
    }

    fn download(&mut self, client: ClientId) {
        let scope = ReadyScope::MARKET_DATA;
        let (account, symbol) = self.manner.numbers();
        self.tell(client, (0, 0), &DownloadBegin { scope, ..DownloadBegin::default() });
        if symbol > 1 {
            self.other_instrument(client);
        }
        self.tell(client, (0, symbol), &reference(SYMBOL));
        self.tell(client, (0, symbol), &MarketStatus { state: MarketState::OPEN, ..MarketStatus::default() });
        let mut book =
            MarketByPrice { change_id: 1, update: BookUpdate::SNAPSHOT, ..MarketByPrice::default() };
        let (bid, ask) = best();
        assert!(book.push(Side::BUY, bid) && book.push(Side::SELL, ask));
        self.tell(client, (0, symbol), &book);
        self.tell(client, (0, symbol), &self.top(UpdateKind::SNAPSHOT));
        self.tell(client, (0, symbol), &candle());
        self.door.send_instrument_ready(client, symbol);
        self.tell(client, (0, 0), &DownloadEnd { scope, ..DownloadEnd::default() });
        self.tell(client, (0, 0), &Ready { scope, ..Ready::default() });
        if account > 1 {
            self.account(client, (1, "B1"), false);
        }
        self.account(client, (account, "A1"), self.manner != Manner::Watched);
    }

    /// An instrument that the client did not request, with other prices.
    fn other_instrument(&mut self, client: ClientId) {
        self.tell(client, (0, 1), &reference("ETH-PERPETUAL"));
        let bid_price = "2000".parse().unwrap();
        let top = TopOfBook { bid_price, ..self.top(UpdateKind::SNAPSHOT) };
        self.tell(client, (0, 1), &top);
        self.door.send_instrument_ready(client, 1);
    }

    fn account(&mut self, client: ClientId, (number, name): (u16, &str), may_trade: bool) {
        let scope = ReadyScope::ACCOUNT;
        let (name, may_trade) = (Text::cut(name), may_trade.into());
        self.tell(client, (number, 0), &AccountReference { name, may_trade, ..AccountReference::default() });
        self.tell(client, (number, 0), &DownloadBegin { scope, ..DownloadBegin::default() });
        if self.manner == Manner::Silent {
            let status = OrderStatus::CANCELED;
            self.tell(client, (number, 1), &OrderUpdate { order_id: 9, status, ..OrderUpdate::default() });
        }
        self.tell(client, (number, 0), &DownloadEnd { scope, max_order_id: 1_000, ..DownloadEnd::default() });
        self.tell(client, (number, 0), &Ready { scope, ..Ready::default() });
    }

    fn top(&self, update: UpdateKind) -> TopOfBook {
        let top = top(self.trades, update);
        match self.manner {
            Manner::Quiet => TopOfBook { bid_price: Fixed::ZERO, bid_quantity: Fixed::ZERO, ..top },
            _ => top,
        }
    }

    fn take(&mut self, client: ClientId, request: &Request) {
        let mut shown = *request;
        shown.header.create_ns = 0;
        self.requests.lock().unwrap().push(shown.to_string());
        match request.header.kind {
            RequestKind::CREATE_ORDER => self.create(client, request),
            RequestKind::MODIFY_ORDER | RequestKind::CANCEL_ORDER => self.change(client, request),
            _ => {}
        }
    }

    fn create(&mut self, client: ClientId, request: &Request) {
        let order: CreateOrder = request.body().unwrap();
        if order.side != Side::BUY || (request.header.account, request.header.symbol) != self.manner.numbers()
        {
            self.ack(client, request, Origin::GATEWAY, AckStatus::REJECTED, ErrorCode::NOT_PERMITTED);
            return;
        }
        self.orders.push(Order { id: request.header.client_order_id, order });
        if self.manner == Manner::Refusing {
            self.ack(client, request, Origin::GATEWAY, AckStatus::RECEIVED, ErrorCode(0));
            self.update(client, self.orders.len() - 1, OrderStatus::REJECTED);
            return;
        }
        self.acks(client, request);
        self.update(client, self.orders.len() - 1, OrderStatus::WORKING);
    }

    fn change(&mut self, client: ClientId, request: &Request) {
        let Some(place) = self.orders.iter().position(|order| order.id == request.header.client_order_id)
        else {
            self.ack(client, request, Origin::GATEWAY, AckStatus::REJECTED, ErrorCode::UNKNOWN_ORDER);
            return;
        };
        match request.body::<ModifyOrder>() {
            Some(_) if self.manner == Manner::Silent => {
                self.ack(client, request, Origin::GATEWAY, AckStatus::RECEIVED, ErrorCode(0));
                self.ack(client, request, Origin::GATEWAY, AckStatus::TIMEOUT, ErrorCode::TIMEOUT);
                self.update(client, place, OrderStatus::UNKNOWN);
                self.update(client, place, OrderStatus::WORKING);
            }
            Some(modified) => {
                self.acks(client, request);
                let order = &mut self.orders[place].order;
                (order.price, order.quantity) = (modified.price, modified.quantity);
                self.update(client, place, OrderStatus::WORKING);
            }
            None => {
                self.acks(client, request);
                self.update(client, place, OrderStatus::CANCELED);
            }
        }
    }

    fn acks(&mut self, client: ClientId, request: &Request) {
        self.ack(client, request, Origin::GATEWAY, AckStatus::RECEIVED, ErrorCode(0));
        self.ack(client, request, Origin::EXCHANGE, AckStatus::ACCEPTED, ErrorCode(0));
    }

    fn ack(
        &mut self,
        client: ClientId,
        request: &Request,
        origin: Origin,
        status: AckStatus,
        error: ErrorCode,
    ) {
        let header = &request.header;
        let kind = AckType(header.kind.0 as u8);
        self.tell(
            client,
            (header.account, header.symbol),
            &OrderAck {
                client_order_id: header.client_order_id,
                order_id: 10_000_000 + header.client_order_id,
                request_id: header.request_id,
                round_trip_ns: monotonic().0.saturating_sub(header.create_ns),
                origin,
                status,
                request: kind,
                side: Side::BUY,
                error,
                ..OrderAck::default()
            },
        );
    }

    fn update(&mut self, client: ClientId, place: usize, status: OrderStatus) {
        let Order { id, order } = &self.orders[place];
        let update = OrderUpdate {
            client_order_id: *id,
            order_id: 10_000_000 + id,
            price: order.price,
            remaining_quantity: order.quantity,
            status,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            update: UpdateKind::INCREMENTAL,
            ..OrderUpdate::default()
        };
        self.tell(client, self.manner.numbers(), &update);
    }
}

/// Reference data of an instrument.
fn reference(name: &str) -> ReferenceData {
    ReferenceData {
        name: Text::cut(name),
        tick_size: Fixed(50_000_000),
        min_quantity: Fixed(10 * Fixed::ONE.0),
        contract_size: Fixed(10 * Fixed::ONE.0),
        kind: InstrumentKind::PERPETUAL,
        is_inverse: 1,
        is_active: 1,
        ..ReferenceData::default()
    }
}

fn best() -> (Level, Level) {
    let bid: Fixed = BEST_BID.parse().unwrap();
    let quantity = Fixed(100 * Fixed::ONE.0);
    (Level { price: bid, quantity }, Level { price: Fixed(bid.0 + 50_000_000), quantity })
}

/// A one-hour candle.
fn candle() -> TimeSeries {
    let [open, high, low, close] =
        ["64240", "64251", "64230.5", BEST_BID].map(|text| text.parse().expect("they are prices"));
    TimeSeries {
        begin_utc_ns: 1_795_384_800_000_000_000,
        period_secs: 3_600,
        update: UpdateKind::SNAPSHOT,
        open,
        high,
        low,
        close,
        volume: Fixed(Fixed::ONE.0 / 2),
        cost: Fixed(32_125 * Fixed::ONE.0),
        ..TimeSeries::default()
    }
}

fn top(change_id: u64, update: UpdateKind) -> TopOfBook {
    let (bid, ask) = best();
    TopOfBook {
        bid_price: bid.price,
        bid_quantity: bid.quantity,
        ask_price: ask.price,
        ask_quantity: ask.quantity,
        change_id,
        update,
        ..TopOfBook::default()
    }
}
