//! A venue, a trader and a rival in one thread. A fault proxy connects the trader to the venue.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;

use socket2::{Domain, SockRef, Socket, Type};
use tickpath_agent::{Invoker, TscClock};
use tickpath_exchange::{Endpoints, VenueSettings, VenueView};
use tickpath_feed::ArbiterConfig;
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView, Senders, SnapshotSources};
use tickpath_lockfree::{broadcast, spsc};
use tickpath_net::Kernel;
use tickpath_test_support::{Deadline, listen_nonblocking};
use tickpath_test_venue::{PASSWORD, build};
use tickpath_timing::NoTrace;
use tickpath_trader::{EngineAgent, EngineIdentity, EngineRings, GatewaySettings, OrderEntry, OrderGateway};
use tickpath_trading::{
    EngineConfig, KillSwitch, Limits, NewOrder, RECONCILE_AFTER, Refusal, TradeEngine, TraderSnapshot,
    TraderView,
};
use tickpath_types::{
    EnterOrder, InstrumentId, InstrumentTable, Nanos, OrderEventKind, OrderRequest, Price, Qty, SessionId,
    Side, TimeInForce, UserRefNum,
};

use crate::strategy::{Action, Script};

/// Simulated time of one step: short, compared with the engine's timer (5 ms) and view (100 ms) intervals.
const STEP: Nanos = Nanos::from_micros(500);
pub const ALPHA: InstrumentId = InstrumentId(1);
/// Number of requests before the first order: the gateway queries its first UserRefNum.
pub const QUERY: u64 = 1;

pub fn instruments() -> InstrumentTable {
    tickpath_test_support::instruments(&["ALPHA"])
}

pub fn venue_settings() -> VenueSettings {
    let settings = tickpath_test_venue::venue_settings(&["ALPHA"], &["TRADER", "RIVAL"]);
    VenueSettings { heartbeat: Nanos::from_millis(100), ..settings }
}

/// A venue and a trader with a scripted strategy, connected by a proxy.
pub struct Site {
    venue: Option<Invoker>,
    trader: Invoker,
    pub proxy: FaultProxy,
    rival: Option<Rival>,
    now: Nanos,
    pub endpoints: Endpoints,
    pub venue_view: VenueView,
    pub view: TraderView,
    pub kill: KillSwitch,
    pub script: Script,
}

struct Rival {
    entry: OrderEntry,
    received: Vec<OrderEventKind>,
}

impl Site {
    pub fn new() -> Site {
        Site::with(&EngineConfig::default())
    }

    /// Creates and starts a site; returns once the trader and the rival are logged in.
    pub fn with(config: &EngineConfig) -> Site {
        let settings = venue_settings();
        let clock = TscClock::system();
        let venue = build(&settings).unwrap();
        let endpoints = venue.endpoints;
        let proxy = FaultProxy::to(endpoints.order_entry);

        let (sender, updates) = broadcast::channel(1 << 10);
        let (requests, requests_out) = spsc::channel(1 << 8);
        let (events_in, events) = spsc::channel(1 << 8);
        let feed = FeedSettings {
            feed: 0,
            line_a: endpoints.line_a,
            line_b: endpoints.line_b,
            interface: settings.interface,
            senders: Senders::of(None, settings.interface, None),
            reader: Default::default(),
            max_instrument: ALPHA,
            symbols: vec![],
            max_orders: 1_024,
            arbiter: ArbiterConfig { hold_messages: 1_024, ..ArbiterConfig::default() },
            retransmission: Some(endpoints.retransmission),
            snapshots: SnapshotSources::none(),
            loss: None,
        };
        let feed = FeedHandler::open(&Kernel, &feed, sender, clock, &FeedView::default(), NoTrace).unwrap();
        let (script, kill) = (Script::default(), KillSwitch::default());
        let limits = [Limits::default().in_lots(&instruments().as_slice()[0])];
        let engine =
            TradeEngine::new(config, instruments().as_slice(), &limits, script.clone(), NoTrace).unwrap();
        let session = SessionId(1);
        let engine = EngineAgent::new(
            EngineIdentity { role: "engine", feed: 0, engine: 0, session },
            engine,
            EngineRings { updates, events, requests },
            kill.clone(),
        );
        let view = engine.view();
        let gateway = OrderGateway::new(
            GatewaySettings {
                role: "order-gateway",
                address: proxy.address,
                user: "TRADER".to_owned(),
                password: PASSWORD.to_owned(),
                session,
                instruments: instruments(),
                reconcile_after: RECONCILE_AFTER,
            },
            requests_out,
            events_in,
            clock,
            Arc::clone(&view.gateway),
            NoTrace,
        );
        let mut venue_agents = Invoker::new("venue", venue.agents, &[]).unwrap();
        let mut trader =
            Invoker::new("trader", vec![Box::new(feed), Box::new(engine), Box::new(gateway)], &[]).unwrap();
        venue_agents.start().unwrap();
        trader.start().unwrap();
        let rival = OrderEntry::connect(endpoints.order_entry, "RIVAL", PASSWORD, instruments(), clock.now())
            .unwrap();
        let mut site = Site {
            venue: Some(venue_agents),
            trader,
            proxy,
            rival: Some(Rival { entry: rival, received: Vec::new() }),
            now: clock.now(),
            endpoints,
            venue_view: venue.view,
            view,
            kill,
            script,
        };
        site.until("the logins", |site| site.view.gateway.logged_in.read() == 1 && site.rival().is_active());
        site
    }

    pub fn step(&mut self) {
        self.now = self.now + STEP;
        if let Some(venue) = &mut self.venue {
            venue.run_once(self.now).unwrap();
        }
        self.proxy.forward();
        self.trader.run_once(self.now).unwrap();
        if let Some(Rival { entry, received }) = &mut self.rival {
            entry.poll(self.now, received, |_| {}, |received, answer| received.push(answer.kind)).unwrap();
        }
    }

    /// Runs all agents until this simulated time has passed.
    pub fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    pub fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Site) -> bool) {
        let deadline = Deadline::start();
        while !condition(self) {
            assert!(!deadline.is_over(), "{what} did not happen: {:?}", self.script.log());
            self.step();
        }
    }

    fn rival(&mut self) -> &mut OrderEntry {
        &mut self.rival.as_mut().unwrap().entry
    }

    /// Enters an order of the rival, and waits for the answer.
    pub fn rival_enters(
        &mut self,
        user_ref: u32,
        side: Side,
        qty: u64,
        price: i64,
        time_in_force: TimeInForce,
    ) {
        let order = EnterOrder {
            time_in_force,
            ..EnterOrder::limit(UserRefNum(user_ref), ALPHA, side, Qty(qty), Price(price))
        };
        let now = self.now;
        let entry = self.rival();
        entry.queue(&OrderRequest::Enter(order)).unwrap();
        entry.flush(now).unwrap();
        let is_answer = |kind: &OrderEventKind| kind.user_ref() == UserRefNum(user_ref);
        self.until("the rival's answer", |site| site.rival.as_ref().unwrap().received.iter().any(is_answer));
    }

    /// Lets the script enter an order; returns its UserRefNum once the venue has accepted it.
    pub fn enter(&mut self, order: NewOrder) -> u32 {
        let user_ref = self.request(Action::Enter(order)).unwrap().0;
        self.until("its acceptance", |site| !site.script.changes_of(user_ref).is_empty());
        user_ref
    }

    /// Returns the state of the engine, read after its view was updated.
    pub fn snapshot(&mut self) -> TraderSnapshot {
        self.pass(Nanos::from_millis(250));
        self.view.snapshot().unwrap()
    }

    pub fn cut_connection(&mut self) {
        self.proxy.cut();
    }

    /// Cuts the connection, and waits until the trader notices.
    pub fn lose_connection(&mut self) {
        self.cut_connection();
        self.until("the loss", |site| site.view.gateway.logged_in.read() == 0);
    }

    /// Waits until the gateway is logged in and the engine has handled the login.
    pub fn wait_for_login(&mut self) {
        self.until("the new login", |site| site.view.gateway.logged_in.read() == 1);
        self.step();
        self.step();
    }

    /// Passes an action to the script, and waits until the strategy has executed it; returns the result.
    pub fn request(&mut self, action: Action) -> Result<UserRefNum, Refusal> {
        let count = self.script.log().sent.len();
        self.script.enqueue(action);
        self.until("the request", |site| site.script.log().sent.len() > count);
        self.script.log().sent[count]
    }

    /// Closes the venue and the rival's connection.
    pub fn close_venue(&mut self) {
        self.rival = None;
        if let Some(mut venue) = self.venue.take() {
            venue.close();
        }
    }

    pub fn close_trader(&mut self) {
        self.trader.close();
    }
}

/// TCP proxy that forwards bytes between its clients and the venue, and injects faults.
pub struct FaultProxy {
    listener: TcpListener,
    pub address: SocketAddrV4,
    venue: SocketAddrV4,
    streams: Option<[TcpStream; 2]>,
    /// Stream to the venue that `cut_client_side` leaves open.
    half_open: Option<TcpStream>,
    /// False while requests are not forwarded to the venue; `cut` discards them.
    pub forwards_requests: bool,
    /// False while the venue's answers are not forwarded.
    pub forwards_answers: bool,
    /// False while the proxy closes every new connection immediately.
    pub is_accepting: bool,
    /// Connections that fill the listener's backlog, so that the kernel leaves new ones unanswered.
    backlog: Vec<Socket>,
}

impl FaultProxy {
    pub fn to(venue: SocketAddrV4) -> FaultProxy {
        let (listener, address) = listen_nonblocking();
        FaultProxy {
            listener,
            address,
            venue,
            streams: None,
            half_open: None,
            forwards_requests: true,
            forwards_answers: true,
            is_accepting: true,
            backlog: vec![],
        }
    }

    /// Makes the kernel leave new connections unanswered, as if a firewall dropped packets.
    pub fn block_connections(&mut self) {
        SockRef::from(&self.listener).listen(0).unwrap();
        loop {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            // On loopback, a connection that is not established when `connect` returns never will be.
            let _ = socket.connect(&self.address.into());
            let is_stuck = socket.peer_addr().is_err();
            self.backlog.push(socket);
            if is_stuck {
                return;
            }
        }
    }

    pub fn unblock_connections(&mut self) {
        let count = self.backlog.len() - 1;
        self.backlog.clear();
        (0..count).for_each(|_| drop(self.listener.accept().unwrap()));
        SockRef::from(&self.listener).listen(16).unwrap();
    }

    /// Cuts the connection. Unforwarded bytes are lost; the next connection is not affected.
    pub fn cut(&mut self) {
        self.streams = None;
        self.half_open = None;
        (self.forwards_requests, self.forwards_answers) = (true, true);
    }

    /// Cuts the connection so that the client notices and the venue does not, until [`cut`](Self::cut).
    pub fn cut_client_side(&mut self) {
        self.half_open = self.streams.take().map(|[_, venue]| venue);
    }

    /// Drops the requests since the last step, and sends the client a debug message as if from the venue.
    pub fn drop_requests_with_notice(&mut self) {
        let [client, _] = self.streams.as_mut().unwrap();
        let mut lost = [0; 4_096];
        while client.read(&mut lost).is_ok_and(|count| count > 0) {}
        client.write_all(b"\0\x05+full").unwrap();
    }

    pub fn forward(&mut self) {
        if !self.backlog.is_empty() {
            return;
        }
        if let Ok((client, _)) = self.listener.accept() {
            if !self.is_accepting {
                return;
            }
            let Ok(venue) = TcpStream::connect(self.venue) else { return };
            for end in [&client, &venue] {
                end.set_nonblocking(true).unwrap();
                end.set_nodelay(true).unwrap();
            }
            self.streams = Some([client, venue]);
        }
        let Some([client, venue]) = &mut self.streams else { return };
        let is_open = (!self.forwards_requests || forward_bytes(client, venue))
            && (!self.forwards_answers || forward_bytes(venue, client));
        if !is_open {
            self.cut();
        }
    }
}

/// Forwards pending bytes; returns false when the connection has ended.
fn forward_bytes(from: &mut TcpStream, to: &mut TcpStream) -> bool {
    let mut bytes = [0; 4_096];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) if to.write_all(&bytes[..count]).is_err() => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

pub fn buy(qty: u64, price: i64) -> NewOrder {
    NewOrder::limit(ALPHA, Side::Buy, Qty(qty), Price(price))
}

pub fn sell(qty: u64, price: i64) -> NewOrder {
    NewOrder::limit(ALPHA, Side::Sell, Qty(qty), Price(price))
}
