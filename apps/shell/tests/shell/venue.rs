//! A minimal venue: logins, orders that rest or trade at once, a ticker, and faults on demand.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tickpath_deribit::codes::{GrantType, TimeInForce};
use tickpath_deribit::envelope::ServerTime;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{
    Auth, CancelByLabel, CancelOrder, EditOrder, GetInstrument, GetOrderBook, GetOrderState,
    GetOrderStateByLabel, PlaceOrder, Subscribe,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::request::{Refusal, Request, write_notification, write_refusal, write_result};
use tickpath_deribit::scan::{Value, check};
use tickpath_deribit::sign::verify_client_signature;
use tickpath_net::Kernel;
use tickpath_test_support::{ANY_PORT, realtime_ns};
use tickpath_types::Nanos;
use tickpath_web::{ServerEvent, TlsServer, WebAcceptor, WebConnection, WebEvent, WebLimits};

/// The client id of the valid key.
pub const CLIENT_ID: &str = "AMANDA";
/// The client secret of the valid key.
pub const SECRET: &str = "AMANDASECRECT";

/// An option with an index of about 50000.
pub const OPTION: &str = "BTC-31DEC27-60000-C";

/// A one-time fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is executed, and the connection closed before the answer.
    LoseAnswer(Method),
    /// The connection is closed before the request is executed.
    LoseRequest(Method),
    /// The request is executed and never answered.
    Silent(Method),
    /// The connection is closed; the order arrives this many milliseconds later.
    Hold(Method, u64),
}

#[derive(Clone, Debug)]
struct Order {
    id: u64,
    label: String,
    instrument: String,
    direction: &'static str,
    amount: String,
    price: Option<String>,
    state: &'static str,
    order_type: &'static str,
    original_type: &'static str,
    contracts: Option<String>,
    time_in_force: String,
    is_post_only: bool,
    trigger_price: Option<String>,
    is_replaced: bool,
    created_ms: u64,
    updated_ms: u64,
}

#[derive(Debug, Default)]
struct Book {
    orders: Vec<Order>,
    /// Received methods in order.
    seen: Vec<Method>,
    fault: Option<Fault>,
    /// Number of repetitions of the fault after the next time.
    fault_more: u32,
    /// A request in flight with its arrival time.
    held: Option<(String, u64)>,
    /// True if open orders are cancelled when a fault closes the connection.
    cancels_with_connection: bool,
    /// Deadlines of the received orders and changes.
    valid_until: Vec<Option<u64>>,
    /// Data sent on each subscription, and the number of messages.
    data: String,
    data_count: u64,
    /// A channel whose data is sent with the next answer without a subscription.
    unasked: Option<String>,
    /// True to close all connections once.
    drops_all: bool,
    /// True once the position is closed.
    is_flat: bool,
}

pub struct Venue {
    pub url: String,
    book: Arc<Mutex<Book>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Venue {
    pub fn start() -> Venue {
        Venue::start_with(None, "ws", "127.0.0.1")
    }

    pub fn start_tls(certificate: &Path, key: &Path) -> Venue {
        let tls = TlsServer::from_pem_files(certificate, key).unwrap();
        Venue::start_with(Some(tls), "wss", "localhost")
    }

    fn start_with(tls: Option<TlsServer>, scheme: &str, host: &str) -> Venue {
        let acceptor = WebAcceptor::bind(Kernel, ANY_PORT, tls, WebLimits::server()).unwrap();
        let url = format!("{scheme}://{host}:{}/ws/api/v2", acceptor.local_address().port());
        let book = Arc::new(Mutex::new(Book { data: ticker(), data_count: 3, ..Book::default() }));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&book), Arc::clone(&is_stopped));
        let thread = thread::spawn(move || serve(acceptor, &shared, &stopped));
        Venue { url, book, is_stopped, thread: Some(thread) }
    }

    pub fn fail_once(&self, fault: Fault) {
        self.book.lock().unwrap().fault = Some(fault);
    }

    pub fn fail_twice(&self, fault: Fault) {
        let mut book = self.book.lock().unwrap();
        (book.fault, book.fault_more) = (Some(fault), 1);
    }

    pub fn cancel_with_connection(&self) {
        self.book.lock().unwrap().cancels_with_connection = true;
    }

    /// Whether a request is in flight.
    pub fn is_holding(&self) -> bool {
        self.book.lock().unwrap().held.is_some()
    }

    /// The deadlines of orders and changes, in order.
    pub fn valid_until(&self) -> Vec<Option<u64>> {
        self.book.lock().unwrap().valid_until.clone()
    }

    #[allow(dead_code)] // used by benches only
    pub fn send_on_subscription(&self, data: &str, count: u64) {
        let mut book = self.book.lock().unwrap();
        (book.data, book.data_count) = (data.to_owned(), count);
    }

    /// Sends data of an unsubscribed channel with the next answer.
    pub fn send_unasked(&self, channel: &str) {
        self.book.lock().unwrap().unasked = Some(channel.to_owned());
    }

    pub fn drop_all(&self) {
        self.book.lock().unwrap().drops_all = true;
    }

    pub fn seen(&self, method: Method) -> usize {
        self.book.lock().unwrap().seen.iter().filter(|seen| **seen == method).count()
    }

    pub fn order_count(&self) -> usize {
        self.book.lock().unwrap().orders.len()
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let result = self.thread.take().unwrap().join();
        if !thread::panicking() {
            result.unwrap();
        }
    }
}

struct Client {
    connection: WebConnection,
    is_authenticated: bool,
    outbox: Vec<String>,
    is_over: bool,
}

fn serve(mut acceptor: WebAcceptor, book: &Mutex<Book>, stopped: &AtomicBool) {
    let start = Instant::now();
    let mut clients: Vec<Client> = Vec::new();
    while !stopped.load(Ordering::Relaxed) {
        let now = Nanos(start.elapsed().as_nanos() as u64);
        while let Some(connection) = acceptor.accept(now).unwrap() {
            clients.push(Client { connection, is_authenticated: false, outbox: Vec::new(), is_over: false });
        }
        for client in &mut clients {
            client.work(now, book);
        }
        book.lock().unwrap().take_held();
        if std::mem::take(&mut book.lock().unwrap().drops_all) {
            clients.clear();
        }
        clients.retain(|client| !client.is_over);
        thread::sleep(Duration::from_micros(200));
    }
}

impl Client {
    fn work(&mut self, now: Nanos, book: &Mutex<Book>) {
        loop {
            let text = match self.connection.receive(now) {
                None => break,
                Some(ServerEvent::Upgrade(_)) => {
                    self.connection.accept_upgrade();
                    continue;
                }
                Some(ServerEvent::Message(WebEvent::Text(text))) => text.to_owned(),
                Some(ServerEvent::End(_)) => {
                    self.is_over = true;
                    break;
                }
                Some(_) => continue,
            };
            if !self.answer(&text, &mut book.lock().unwrap()) {
                self.is_over = true;
                break;
            }
        }
        for text in self.outbox.drain(..) {
            let _ = self.connection.send(&text);
        }
        let _ = self.connection.flush();
    }

    /// Answers a request; false if the connection must be closed.
    fn answer(&mut self, text: &str, book: &mut Book) -> bool {
        let mut out = Vec::new();
        let time = ServerTime { us_in: unix_ms() * 1_000, us_out: unix_ms() * 1_000 };
        match Request::parse(text.as_bytes()) {
            Err(refusal) => write_refusal(&refusal, time, true, &mut out),
            Ok(request) => {
                book.seen.push(request.method);
                let fault = book.fault;
                if fault == Some(Fault::LoseRequest(request.method)) {
                    book.fail();
                    return false;
                }
                if let Some(Fault::Hold(method, ms)) = fault
                    && method == request.method
                {
                    book.held = Some((text.to_owned(), unix_ms() + ms));
                    book.fail();
                    return false;
                }
                let result = self.result(&request, book);
                if fault == Some(Fault::LoseAnswer(request.method)) {
                    book.fail();
                    return false;
                }
                if fault == Some(Fault::Silent(request.method)) {
                    book.fault = None;
                    return true;
                }
                // A logout is answered by closing the connection.
                if request.method == Method::Logout {
                    return false;
                }
                match result {
                    Ok(json) => {
                        let value = check(json.as_bytes()).unwrap();
                        write_result(request.id, &value, time, true, &mut out);
                    }
                    Err(refusal) => write_refusal(&refusal, time, true, &mut out),
                }
            }
        }
        self.outbox.insert(0, String::from_utf8(out).unwrap());
        if let Some(channel) = book.unasked.take() {
            let mut out = Vec::new();
            write_notification(&channel, &check(b"{}").unwrap(), None, &mut out);
            self.outbox.insert(0, String::from_utf8(out).unwrap());
        }
        true
    }

    fn result<'a>(&mut self, request: &Request<'a>, book: &mut Book) -> Result<String, Refusal<'a>> {
        let refuse = |code| Refusal::new(request.id, code);
        if request.method.is_private() && !self.is_authenticated {
            return Err(refuse(ErrorCode::Unauthorized));
        }
        Ok(match request.method {
            Method::Hello | Method::Test => r#"{"version":"1.2.26"}"#.to_owned(),
            Method::SetHeartbeat | Method::EnableCancelOnDisconnect => "\"ok\"".to_owned(),
            Method::Auth => self.log_in(request)?,
            Method::GetTime => unix_ms().to_string(),
            Method::GetInstrument => instrument(&name(request.params::<GetInstrument<'_>>()?.instrument_name))
                .ok_or(refuse(ErrorCode::InvalidOrUnsupportedInstrument))?,
            Method::GetInstruments => format!("[{}]", instrument("BTC-PERPETUAL").unwrap()),
            Method::Ticker => ticker(),
            Method::GetOrderBook => {
                let depth = request.params::<GetOrderBook<'_>>()?.depth;
                assert!(depth.is_some());
                r#"{"timestamp":1,"instrument_name":"BTC-PERPETUAL","change_id":77,"bids":[[50000.0,100.0],[49999.5,20.0]],"asks":[[50000.5,60.0]]}"#.to_owned()
            }
            Method::GetPositions => r#"[{"instrument_name":"BTC-PERPETUAL","direction":"buy","size":10.0,"average_price":50000.0,"mark_price":50000.2,"total_profit_loss":0.00000001}]"#.to_owned(),
            Method::GetAccountSummary => {
                r#"{"currency":"BTC","balance":1.5,"equity":1.50000001,"available_funds":1.4}"#.to_owned()
            }
            Method::Buy => book.enter("buy", &request.params()?),
            Method::Sell => book.enter("sell", &request.params()?),
            Method::Edit => {
                let change: EditOrder<'_> = request.params()?;
                book.valid_until.push(change.valid_until);
                let order = book.find(&name(change.order_id)).ok_or(refuse(ErrorCode::OrderNotFound))?;
                if let Some(amount) = change.amount {
                    order.amount = amount.to_string();
                }
                if let Some(contracts) = change.contracts {
                    order.contracts = Some(contracts.to_string());
                }
                if let Some(price) = change.price {
                    order.price = Some(price.to_string());
                }
                if let Some(price) = change.trigger_price {
                    order.trigger_price = Some(price.to_string());
                }
                (order.is_replaced, order.updated_ms) = (true, unix_ms());
                format!("{{\"order\":{},\"trades\":[]}}", order.json())
            }
            Method::Cancel => {
                let id = name(request.params::<CancelOrder<'_>>()?.order_id);
                let order = book.find(&id).ok_or(refuse(ErrorCode::OrderNotFound))?;
                if order.state != "open" {
                    return Err(refuse(ErrorCode::NotOpenOrder));
                }
                order.state = "cancelled";
                order.json()
            }
            Method::CancelAll => {
                let open = book.orders.iter_mut().filter(|order| order.state == "open");
                open.map(|order| order.state = "cancelled").count().to_string()
            }
            Method::GetOrderState => {
                let id = name(request.params::<GetOrderState<'_>>()?.order_id);
                book.find(&id).ok_or(refuse(ErrorCode::OrderNotFound))?.json()
            }
            Method::Logout => String::new(),
            Method::GetPosition => {
                let size = if book.is_flat { "0.0" } else { "20.0" };
                format!(r#"{{"instrument_name":"BTC-PERPETUAL","direction":"buy","size":{size},"average_price":50000.0}}"#)
            }
            Method::ClosePosition if book.is_flat => return Err(refuse(ErrorCode::AlreadyClosed)),
            Method::ClosePosition => {
                book.is_flat = true;
                let order = book.orders.len() as u64 + 1;
                book.orders.push(Order::closing(order));
                format!("{{\"order\":{},\"trades\":[]}}", book.orders[book.orders.len() - 1].json())
            }
            Method::CancelByLabel => {
                let label = name(request.params::<CancelByLabel<'_>>()?.label);
                let open = book.orders.iter_mut().filter(|order| order.state == "open" && order.label == label);
                open.map(|order| order.state = "cancelled").count().to_string()
            }
            Method::GetOpenOrdersByInstrument => book.list(|order| order.state == "open"),
            Method::GetOpenOrders => book.list(|order| order.state == "open"),
            Method::GetOrderStateByLabel => {
                let label = name(request.params::<GetOrderStateByLabel<'_>>()?.label.unwrap());
                book.list(|order| order.label == label)
            }
            Method::PublicSubscribe | Method::PrivateSubscribe => self.subscribe(request, book)?,
            Method::PublicUnsubscribe | Method::PrivateUnsubscribe => "[]".to_owned(),
            _ => return Err(refuse(ErrorCode::NotImplemented)),
        })
    }

    fn log_in<'a>(&mut self, request: &Request<'a>) -> Result<String, Refusal<'a>> {
        let auth: Auth<'_> = request.params()?;
        let is_known = match auth.grant_type {
            GrantType::ClientCredentials => name(auth.client_secret.unwrap().expose()) == SECRET,
            GrantType::ClientSignature => {
                let signature = name(auth.signature.unwrap().expose());
                let nonce = name(auth.nonce.unwrap());
                verify_client_signature(SECRET.as_bytes(), auth.timestamp.unwrap(), &nonce, "", &signature)
            }
            other => panic!("a login by {other}"),
        };
        if !is_known || name(auth.client_id.unwrap()) != CLIENT_ID {
            return Err(Refusal::new(request.id, ErrorCode::InvalidCredentials));
        }
        self.is_authenticated = true;
        Ok(r#"{"access_token":"TOKEN-ACCESS","token_type":"bearer","expires_in":900,"refresh_token":"TOKEN-REFRESH","scope":"connection trade:read_write"}"#.to_owned())
    }

    fn subscribe<'a>(&mut self, request: &Request<'a>, book: &Book) -> Result<String, Refusal<'a>> {
        let mut accepted = Vec::new();
        for channel in request.params::<Subscribe<'_>>()?.channels.iter().map(Result::unwrap) {
            let channel = name(channel);
            if channel.contains("NO-SUCH") {
                continue;
            }
            let data = &book.data;
            for _ in 0..book.data_count {
                let mut out = Vec::new();
                let value: Value<'_> = check(data.as_bytes()).unwrap();
                write_notification(&channel, &value, None, &mut out);
                self.outbox.push(String::from_utf8(out).unwrap());
            }
            accepted.push(format!("\"{channel}\""));
        }
        Ok(format!("[{}]", accepted.join(",")))
    }
}

impl Book {
    /// Applies a fault that closes the connection.
    fn fail(&mut self) {
        match self.fault_more.checked_sub(1) {
            Some(more) => self.fault_more = more,
            None => self.fault = None,
        }
        if self.cancels_with_connection {
            for order in self.orders.iter_mut().filter(|order| order.state == "open") {
                (order.state, order.updated_ms) = ("cancelled", unix_ms());
            }
        }
    }

    /// Delivers the order in flight, which is accepted if its deadline has not passed.
    fn take_held(&mut self) {
        let now = unix_ms();
        let Some((text, _)) = self.held.take_if(|(_, at)| *at <= now) else { return };
        let Ok(request) = Request::parse(text.as_bytes()) else { panic!("{text}") };
        let Ok(order) = request.params::<PlaceOrder<'_>>() else { panic!("{text}") };
        if order.valid_until.is_none_or(|until| now <= until) {
            self.enter(if request.method == Method::Buy { "buy" } else { "sell" }, &order);
        }
    }

    fn enter(&mut self, direction: &'static str, order: &PlaceOrder<'_>) -> String {
        self.valid_until.push(order.valid_until);
        let id = self.orders.len() as u64 + 1;
        let is_market = order.price.is_none();
        // A market order rests if there is no counterparty.
        let rests = !is_market || order.label.map(name).is_some_and(|label| label == "rests");
        self.orders.push(Order {
            id,
            label: order.label.map(name).unwrap_or_default(),
            instrument: name(order.instrument_name),
            direction,
            // One contract has the amount 10.
            amount: order
                .amount
                .map_or_else(|| format!("{}0", order.contracts.unwrap()), |amount| amount.to_string()),
            price: order.price.map(|price| price.to_string()),
            state: if rests { "open" } else { "filled" },
            order_type: if rests { "limit" } else { "market" },
            original_type: if is_market { "market" } else { "limit" },
            contracts: order.contracts.map(|contracts| contracts.to_string()),
            time_in_force: order.time_in_force.unwrap_or(TimeInForce::GoodTilCancelled).to_string(),
            is_post_only: order.post_only,
            trigger_price: None,
            is_replaced: false,
            created_ms: unix_ms(),
            updated_ms: unix_ms(),
        });
        let order = self.orders.last().unwrap();
        let trades = if order.state == "filled" {
            format!(
                r#"{{"timestamp":1,"price":50000.5,"amount":{},"direction":"{direction}","instrument_name":"BTC-PERPETUAL","trade_seq":1,"api":true,"order_id":"{id}","trade_id":"T1","fee":0.00000010,"fee_currency":"BTC","post_only":false,"reduce_only":false,"mmp":false,"risk_reducing":false}}"#,
                order.amount
            )
        } else {
            String::new()
        };
        format!("{{\"order\":{},\"trades\":[{trades}]}}", order.json())
    }

    fn find(&mut self, id: &str) -> Option<&mut Order> {
        self.orders.iter_mut().find(|order| order.id.to_string() == id)
    }

    fn list(&self, is_meant: impl Fn(&Order) -> bool) -> String {
        let orders: Vec<String> =
            self.orders.iter().filter(|order| is_meant(order)).map(Order::json).collect();
        format!("[{}]", orders.join(","))
    }
}

impl Order {
    fn closing(id: u64) -> Order {
        Order {
            id,
            label: String::new(),
            instrument: "BTC-PERPETUAL".to_owned(),
            direction: "sell",
            amount: "20".to_owned(),
            price: None,
            state: "filled",
            order_type: "market",
            original_type: "market",
            contracts: None,
            time_in_force: TimeInForce::GoodTilCancelled.to_string(),
            is_post_only: false,
            trigger_price: None,
            is_replaced: false,
            created_ms: unix_ms(),
            updated_ms: unix_ms(),
        }
    }

    fn json(&self) -> String {
        let Order { id, label, direction, amount, state, is_replaced, created_ms, updated_ms, .. } = self;
        let Order { instrument, time_in_force, is_post_only, order_type, original_type, .. } = self;
        let price = self.price.as_deref().unwrap_or("50000.5");
        let filled = if *state == "filled" { amount } else { "0.0" };
        let or_null = |number: &Option<String>| number.clone().unwrap_or_else(|| "null".to_owned());
        let (contracts, trigger) = (or_null(&self.contracts), or_null(&self.trigger_price));
        format!(
            r#"{{"contracts":{contracts},"trigger_price":{trigger},"label":"{label}","price":{price},"amount":{amount},"direction":"{direction}","time_in_force":"{time_in_force}","instrument_name":"{instrument}","web":false,"api":true,"order_id":"{id}","creation_timestamp":{created_ms},"replaced":{is_replaced},"filled_amount":{filled},"last_update_timestamp":{updated_ms},"post_only":{is_post_only},"reduce_only":false,"average_price":0.0,"mmp":false,"order_state":"{state}","order_type":"{order_type}","original_order_type":"{original_type}","is_liquidation":false,"risk_reducing":false}}"#
        )
    }
}

fn ticker() -> String {
    r#"{"timestamp":1,"instrument_name":"BTC-PERPETUAL","best_bid_price":50000.0,"best_bid_amount":100.0,"best_ask_price":50000.5,"best_ask_amount":60.0,"last_price":50000.0,"mark_price":50000.2,"index_price":50001.0,"min_price":49000.0,"max_price":51000.0}"#.to_owned()
}

fn instrument(name: &str) -> Option<String> {
    if name == OPTION {
        return Some(format!(
            r#"{{"kind":"option","instrument_name":"{OPTION}","is_active":true,"instrument_type":"reversed","tick_size":0.0005,"contract_size":1.0,"min_trade_amount":0.1,"settlement_currency":"BTC","base_currency":"BTC","quote_currency":"BTC"}}"#
        ));
    }
    (name == "BTC-PERPETUAL").then(|| {
        r#"{"kind":"future","instrument_name":"BTC-PERPETUAL","is_active":true,"instrument_type":"reversed","tick_size":0.5,"contract_size":10.0,"min_trade_amount":10.0,"settlement_currency":"BTC","base_currency":"BTC","quote_currency":"USD"}"#.to_owned()
    })
}

fn name(text: tickpath_deribit::text::Text<'_>) -> String {
    text.to_cow().into_owned()
}

fn unix_ms() -> u64 {
    realtime_ns() / 1_000_000
}
