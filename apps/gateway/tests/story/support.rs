//! A venue, a gateway and clients as in production, over the loopback interface and shared memory.

use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tickpath_admin::AdminThread;
use tickpath_agent::{Agent, Runner, StopSignal, TscClock};
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::metrics::GatewayMetrics;
use tickpath_gateway::process::{Gateway, GatewayView};
use tickpath_gateway_io::{Client, ClientConfig, ConnectError};
use tickpath_gateway_protocol::frame::{Password, RefusalReason};
use tickpath_gateway_protocol::{
    AckStatus, Body, CancelOrder, CreateOrder, Event, EventKind, Fixed, OrderAck, OrderStatus, OrderType,
    OrderUpdate, Ready, ReadyScope, ReferenceData, Side, Text, TimeInForce,
};
use tickpath_test_support::Deadline;

use crate::running::Running;

pub const PERPETUAL: &str = "BTC-PERPETUAL";

/// A venue that runs on separate threads, with limits that no test reaches and a FIX acceptor.
pub struct TestVenue {
    running: Running,
    pub address: SocketAddrV4,
    /// Address of its FIX acceptor.
    pub fix: SocketAddrV4,
}

impl TestVenue {
    /// Starts a venue with the sample configuration, at free addresses; in the same folder it keeps state.
    pub fn start(folder: &Path) -> TestVenue {
        TestVenue::start_with(folder, |text| text)
    }

    /// Starts a venue with a changed configuration.
    pub fn start_with(folder: &Path, change: impl Fn(String) -> String) -> TestVenue {
        let running = Running::start(folder, |text| {
            change(text)
                .replace("# fix_address", "fix_address")
                .replace("[deribit]\n", "[deribit]\nmatching_rate = 1000\nmatching_burst = 1000\n")
        });
        let (address, fix) = (running.address, running.fix_address.unwrap());
        TestVenue { running, address, fix }
    }

    /// Starts a venue at the addresses that it had before.
    pub fn start_at(folder: &Path, address: SocketAddrV4, fix: Option<SocketAddrV4>) -> TestVenue {
        let path = folder.join("venue.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let own = "[deribit]\n";
        let door = "fix_address = \"127.0.0.1:0\"";
        let text = match fix {
            Some(fix) => text.replace(door, &format!("fix_address = \"{fix}\"")),
            None => text,
        };
        let place = text.find(own).unwrap() + own.len();
        let rest = text[place..].replacen("127.0.0.1:0", &address.to_string(), 1);
        std::fs::write(&path, text[..place].to_owned() + &rest).unwrap();
        TestVenue::start(folder)
    }

    pub fn stop(self) {
        self.running.stop();
    }
}

/// A gateway that runs on a separate thread.
pub struct TestGateway {
    #[allow(dead_code)] // not used by every test
    pub view: Arc<GatewayView>,
    #[allow(dead_code)] // not used by every test
    pub metrics: Arc<GatewayMetrics>,
    /// Messages about its connections.
    #[allow(dead_code)] // not used by every test
    pub notes: Receiver<String>,
    runner: Runner,
    stop: StopSignal,
    _admin: Option<AdminThread>,
    socket: PathBuf,
}

impl TestGateway {
    /// Starts a gateway with accounts `A1` (anna) and `B1` (bert), and a user of each: `trader` and `maker`.
    pub fn start(folder: &Path, venue: SocketAddrV4) -> TestGateway {
        TestGateway::start_with(folder, venue, "")
    }

    /// Starts a gateway with more keys for the table `[venue]`.
    pub fn start_with(folder: &Path, venue: SocketAddrV4, more: &str) -> TestGateway {
        TestGateway::run(build(folder, venue, more))
    }

    /// Starts a gateway with any configuration text, which names the socket.
    #[allow(dead_code)] // not used by every test
    pub fn of(folder: &Path, text: &str, socket: PathBuf) -> TestGateway {
        TestGateway::run(build_of(folder, text, socket))
    }

    fn run((config, gateway, socket): (GatewayConfig, Gateway, PathBuf)) -> TestGateway {
        let clock = TscClock::shared();
        let (view, metrics, notes) = (gateway.view, gateway.metrics, gateway.notes);
        let stop = StopSignal::new();
        let runner = gateway.agent.start(&config, clock, stop.clone()).unwrap();
        TestGateway { view, metrics, notes, runner, stop, _admin: gateway.admin, socket }
    }

    pub fn client(&self, user: &str) -> TestClient {
        client(&self.socket, user)
    }

    /// A client with this password.
    #[allow(dead_code)] // not used by every test
    pub fn client_with(&self, user: &str, password: &str) -> TestClient {
        client_with(&self.socket, user, password)
    }

    /// Path of the admin socket.
    #[allow(dead_code)] // not used by every test
    pub fn admin_socket(&self) -> PathBuf {
        format!("{}.admin", self.socket.display()).into()
    }

    pub fn stop(self) {
        self.stop.stop();
        self.runner.join().unwrap();
    }
}

/// A gateway that can be killed: it runs on a test thread, and ends between two duty cycles.
pub struct Killable {
    is_killed: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
    socket: PathBuf,
}

impl Killable {
    pub fn start(folder: &Path, venue: SocketAddrV4, more: &str) -> Killable {
        let (_, gateway, socket) = build(folder, venue, more);
        let is_killed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_killed);
        let mut agent = gateway.agent;
        let admin = gateway.admin;
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                if agent.do_work(TscClock::shared().now()).unwrap() == 0 {
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
            drop((agent, admin));
        });
        Killable { is_killed, thread, socket }
    }

    pub fn client(&self, user: &str) -> TestClient {
        client(&self.socket, user)
    }

    pub fn kill(self) {
        self.is_killed.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Builds a gateway without running it.
pub fn build(folder: &Path, venue: SocketAddrV4, more: &str) -> (GatewayConfig, Gateway, PathBuf) {
    let (text, socket) = config_text(folder, venue, more);
    build_of(folder, &text, socket)
}

/// Configuration of a gateway, and its socket.
pub fn config_text(folder: &Path, venue: SocketAddrV4, more: &str) -> (String, PathBuf) {
    let socket = folder.join("gateway.sock");
    let text = format!(
        "name = 'test'\nclient_listen_address = '{0}'\nadmin_listen_address = '{0}.admin'\n\
         [loop]\nidle = 'park'\n\
         [venue]\nws_uri = 'ws://{venue}/ws/api/v2'\nmatching_rate = 1000\nmatching_burst = 1000\n{more}\n\
         [accounts.A1]\nmaster = true\nlogin = 'anna'\nsecret = 'test'\n\
         [accounts.B1]\nlogin = 'bert'\nsecret = 'test'\n\
         [users.trader]\npassword = 'test'\naccounts = ['A1']\nrequest_limit = 10000\n\
         [users.maker]\npassword = 'test'\naccounts = ['B1']\nrequest_limit = 10000\n",
        socket.display()
    );
    (text, socket)
}

fn build_of(folder: &Path, text: &str, socket: PathBuf) -> (GatewayConfig, Gateway, PathBuf) {
    let config = GatewayConfig::parse("gateway.toml", text).unwrap();
    let gateway = Gateway::build(&config, None, Some(&folder.join("shm")), TscClock::shared()).unwrap();
    (config, gateway, socket)
}

/// A client of a user, not connected yet.
pub fn client(socket: &Path, user: &str) -> TestClient {
    client_with(socket, user, "test")
}

fn client_with(socket: &Path, user: &str, password: &str) -> TestClient {
    let password = Password::new(password.as_bytes()).unwrap();
    let config = ClientConfig::new(socket, Text::new(user).unwrap(), password);
    TestClient { client: Client::start(config), events: Vec::new() }
}

/// A client, and all events that it received.
pub struct TestClient {
    pub client: Client,
    pub events: Vec<Event>,
}

impl TestClient {
    /// Does pending work until a condition holds.
    pub fn wait<T>(&mut self, what: &str, is_so: impl Fn(&TestClient) -> Option<T>) -> T {
        let deadline = Deadline::start();
        loop {
            while let Some(event) = self.client.poll() {
                self.events.push(event);
            }
            if let Some(found) = is_so(self) {
                return found;
            }
            if deadline.is_over() {
                panic!(
                    "{what} does not come; the client is {:?} and received\n{}",
                    self.client.failure(),
                    self.story()
                );
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Reason for the last refused connection attempt, and the time before a retry in nanoseconds.
    #[allow(dead_code)] // not used by every test
    pub fn refusal(&self) -> Option<(RefusalReason, u64)> {
        match self.client.failure() {
            Some(ConnectError::Refused { refusal }) => Some((refusal.reason, refusal.retry_after_ns)),
            _ => None,
        }
    }

    pub fn story(&self) -> String {
        let mut story = String::new();
        for event in self.events.iter().filter(|event| event.header.kind != EventKind::PING) {
            writeln!(story, "{event}").unwrap();
        }
        story
    }

    /// The bodies of one kind, in order of arrival.
    pub fn all<B: Body>(&self) -> impl DoubleEndedIterator<Item = (Event, B)> + '_ {
        self.events.iter().filter_map(|event| Some((*event, event.body()?)))
    }

    /// Waits until the account is ready for the `count`th time; returns account number and symbol number.
    pub fn ready(&mut self, name: &str) -> (u16, u32) {
        self.wait("a connection", |own| own.client.is_connected().then_some(()));
        let session = self.client.welcome().unwrap().session;
        let account = self.wait("a ready account", |own| {
            let is_ready = |(event, ready): (Event, Ready)| {
                let is_it = ready.scope == ReadyScope::ACCOUNT && event.header.session == session;
                is_it.then_some(event.header.account)
            };
            own.all::<Ready>().find_map(is_ready)
        });
        let symbol = self.wait("the instrument", |own| {
            own.all::<ReferenceData>()
                .find(|(event, body)| body.name.as_str() == name && event.header.session == session)
                .map(|(event, _)| event.header.symbol)
        });
        (account, symbol)
    }

    pub fn create(&mut self, account: u16, symbol: u32, side: Side, quantity: &str, price: &str) -> u64 {
        let id = self.client.next_order_id();
        let order = CreateOrder {
            price: price.parse().unwrap(),
            quantity: quantity.parse().unwrap(),
            side,
            order_type: OrderType::LIMIT,
            time_in_force: TimeInForce::GTC,
            ..CreateOrder::default()
        };
        self.client.request(account, symbol, id, &order).unwrap();
        id
    }

    pub fn cancel(&mut self, account: u16, symbol: u32, id: u64) {
        self.client.request(account, symbol, id, &CancelOrder::default()).unwrap();
    }

    /// Statuses of an order's acks, in order of arrival.
    pub fn acks(&self, id: u64) -> Vec<AckStatus> {
        let of_order = |(_, ack): (Event, OrderAck)| (ack.client_order_id == id).then_some(ack.status);
        self.all::<OrderAck>().filter_map(of_order).collect()
    }

    /// The last update of an order.
    pub fn order(&self, id: u64) -> Option<OrderUpdate> {
        self.all::<OrderUpdate>().rev().map(|(_, order)| order).find(|order| order.client_order_id == id)
    }

    pub fn wait_order(&mut self, id: u64, status: OrderStatus) -> OrderUpdate {
        self.wait(&format!("order {id} {status}"), |own| own.order(id).filter(|order| order.status == status))
    }

    /// All statuses of an order that were reported.
    pub fn statuses(&self, id: u64) -> Vec<OrderStatus> {
        let of_order =
            |(_, order): (Event, OrderUpdate)| (order.client_order_id == id).then_some(order.status);
        self.all::<OrderUpdate>().filter_map(of_order).collect()
    }
}

/// Parses a decimal.
pub fn fixed(text: &str) -> Fixed {
    text.parse().unwrap()
}
