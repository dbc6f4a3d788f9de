//! The gateway at a faulty venue: whatever happens, the venue's orders match its clients' view of them.
#![allow(clippy::unwrap_used)]

mod one;
mod story;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::running::Running;
use crate::support::{PERPETUAL, TestClient, TestGateway, fixed};
use tickpath_agent::TscClock;
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::check;
use tickpath_deribit::session::{Key, SessionConfig, SessionEvent};
use tickpath_deribit_front::FaultKind;
use tickpath_deribit_link::{Link, LinkConfig, Listener, Received, Route, Standing};
use tickpath_gateway_protocol::{
    AckStatus, ConnectionStatus, Fixed, ModifyOrder, OrderStatus, OrderUpdate, Side, StreamStatus,
};
use tickpath_test_support::{Deadline, PATIENCE};

/// A venue with fault injection, a gateway, and a client with the account of `anna`.
struct Place {
    folder: tempfile::TempDir,
    venue: Running,
    gateway: TestGateway,
    trader: TestClient,
    account: u16,
    symbol: u32,
}

impl Place {
    /// Orders stay open when the gateway's connection is lost.
    fn new(faults: &str) -> Place {
        Place::with(faults, "cancel_on_disconnect = false")
    }

    fn with(faults: &str, of_venue: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let venue = Running::start(folder.path(), |text| {
            let front = format!(
                "[deribit]\nmatching_rate = 100000\nmatching_burst = 100000\nfaults = {{ {faults} }}\n"
            );
            text.replace("[deribit]\n", &front)
        });
        let more = format!("request_timeout = '2s'\nreconnect_pause_max = '1s'\n{of_venue}");
        let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
        let mut trader = gateway.client("trader");
        let (account, symbol) = trader.ready(PERPETUAL);
        Place { folder, venue, gateway, trader, account, symbol }
    }

    fn fail(&self, kind: FaultKind) {
        self.venue.faults.happen_next(kind, 1);
    }

    fn count(&self, kind: FaultKind) -> u64 {
        self.venue.faults.count(kind)
    }

    /// Processes events until a condition holds.
    fn wait(&mut self, what: &str, is_so: impl Fn(&Place) -> bool) {
        let deadline = Deadline::after(2 * PATIENCE);
        while !is_so(self) {
            assert!(!deadline.is_over(), "{what} does not come; received\n{}", self.trader.story());
            self.drain();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.trader.client.poll() {
            self.trader.events.push(event);
        }
    }

    fn buy(&mut self, quantity: &str, price: &str) -> u64 {
        self.trader.create(self.account, self.symbol, Side::BUY, quantity, price)
    }

    /// Waits until the account is ready, which is a little later than the updates of its orders.
    fn wait_ready(&mut self) {
        let is_ready = |place: &Place| {
            let of_account = |status: &StreamStatus| status.is_trading == 1 && status.name.as_str() == "A1";
            let last = place.trader.all::<StreamStatus>().map(|(_, status)| status).rfind(of_account);
            last.is_some_and(|status| status.status == ConnectionStatus::READY)
        };
        self.wait("the account", is_ready);
    }

    fn modify(&mut self, id: u64, quantity: &str, price: &str) {
        let change = ModifyOrder { price: fixed(price), quantity: fixed(quantity), ..ModifyOrder::default() };
        self.trader.client.request(self.account, self.symbol, id, &change).unwrap();
    }

    fn cancel(&mut self, id: u64) {
        self.trader.cancel(self.account, self.symbol, id);
    }

    fn is(&self, id: u64, status: OrderStatus) -> bool {
        self.trader.order(id).is_some_and(|order| order.status == status)
    }

    /// Whether it was rejected at once, or found later as never entered.
    fn was_refused(&self, id: u64) -> bool {
        self.trader.acks(id).contains(&AckStatus::REJECTED) || self.is(id, OrderStatus::REJECTED)
    }

    /// The client's view of each of its orders.
    fn believed(&self) -> BTreeMap<u64, OrderUpdate> {
        self.trader.all::<OrderUpdate>().map(|(_, order)| (order.client_order_id, order)).collect()
    }

    /// Orders that the client considers open: the venue's order id, remaining quantity, price.
    fn believed_open(&self) -> Vec<(String, Fixed, Fixed)> {
        let believed = self.believed();
        let open = believed.values().filter(|order| order.status == OrderStatus::WORKING);
        let mut open: Vec<_> = open
            .map(|order| (order.external_order_id.as_str().to_owned(), order.remaining_quantity, order.price))
            .collect();
        open.sort_by(|a, b| a.0.cmp(&b.0));
        open
    }

    /// Stops the faults, then checks that the venue's orders match the client's view in the end, and that no
    /// order was entered twice.
    fn end(mut self) {
        self.venue.faults.stop();
        let mut look = Look::start(self.venue.address);
        let deadline = Deadline::after(2 * PATIENCE);
        loop {
            self.drain();
            let is_settled = self
                .believed()
                .values()
                .all(|order| !matches!(order.status, OrderStatus::SENT | OrderStatus::UNKNOWN));
            if is_settled && look.open() == self.believed_open() {
                break;
            }
            assert!(
                !deadline.is_over(),
                "the venue has {:?}\nthe client has {:?}\nand received\n{}",
                look.open(),
                self.believed_open(),
                self.trader.story()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let labels = look.labels();
        let mut once = labels.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), labels.len(), "an order was entered twice: {labels:?}");
        let entered = self.believed().values().filter(|order| order.status != OrderStatus::REJECTED).count();
        assert_eq!(entered, labels.len(), "received\n{}", self.trader.story());
        let Place { folder, venue, gateway, .. } = self;
        gateway.stop();
        venue.stop();
        drop(folder);
    }
}

/// Another client of the same account, which queries the venue.
struct Look {
    link: Link,
    ear: Ear,
    clock: TscClock,
}

#[derive(Default)]
struct Ear {
    reply: Option<(i64, String)>,
}

impl Listener for Ear {
    fn on_event(&mut self, _at: Received, event: SessionEvent<'_>) {
        if let SessionEvent::Reply { id, response, .. } = event {
            self.reply = Some((id, response.outcome.unwrap().text().to_owned()));
        }
    }
}

impl Look {
    fn start(address: std::net::SocketAddrV4) -> Look {
        let session = SessionConfig {
            cancel_on_disconnect: false,
            matching: CreditPlan::rate(1_000, 1_000),
            ..SessionConfig::new("look", "1", Some(Key::new("anna", "test")))
        };
        let url = format!("ws://{address}/ws/api/v2").parse().unwrap();
        let link = Link::new(LinkConfig::new(Route::direct(url, None), session));
        let mut look = Look { link, ear: Ear::default(), clock: TscClock::shared() };
        look.link.connect(look.clock.now());
        look.work("a login", |look| look.link.standing() == Standing::Ready);
        look
    }

    fn work(&mut self, what: &str, is_so: impl Fn(&Look) -> bool) {
        let deadline = Deadline::after(2 * PATIENCE);
        while !is_so(self) {
            assert!(!deadline.is_over(), "{what} does not come: {}", self.link.stage());
            self.link.do_work(self.clock.now(), &mut self.ear);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn ask(&mut self, method: Method, params: &str) -> serde_json::Value {
        let deadline = Deadline::start();
        let id = loop {
            let params = check(params.as_bytes()).unwrap();
            match self.link.request(self.clock.now(), method, &params) {
                Ok(id) => break id,
                Err(error) => assert!(!deadline.is_over(), "{error}"),
            }
            self.work("a login", |look| look.link.standing() == Standing::Ready);
            std::thread::sleep(Duration::from_millis(20));
        };
        self.work("a reply", |look| look.ear.reply.as_ref().is_some_and(|(of, _)| *of == id));
        serde_json::from_str(&self.ear.reply.take().unwrap().1).unwrap()
    }

    fn open(&mut self) -> Vec<(String, Fixed, Fixed)> {
        let orders = self.ask(Method::GetOpenOrders, "{}");
        let mut open: Vec<_> = orders
            .as_array()
            .unwrap()
            .iter()
            .map(|order| {
                let number = |key: &str| order[key].to_string().parse::<Fixed>().unwrap();
                let left = number("amount").0 - number("filled_amount").0;
                (order["order_id"].as_str().unwrap().to_owned(), Fixed(left), number("price"))
            })
            .collect();
        open.sort_by(|a, b| a.0.cmp(&b.0));
        open
    }

    /// The labels of all orders that the account ever had.
    fn labels(&mut self) -> Vec<String> {
        let closed = self.ask(
            Method::GetOrderHistoryByInstrument,
            r#"{"instrument_name":"BTC-PERPETUAL","count":1000,"include_unfilled":true,"include_old":true}"#,
        );
        let open = self.ask(Method::GetOpenOrders, "{}");
        let label = |order: &serde_json::Value| order["label"].as_str().unwrap().to_owned();
        let is_closed = |order: &&serde_json::Value| order["order_state"] != "open";
        let closed = closed.as_array().unwrap().iter().filter(is_closed).map(label);
        closed.chain(open.as_array().unwrap().iter().map(label)).collect()
    }
}
