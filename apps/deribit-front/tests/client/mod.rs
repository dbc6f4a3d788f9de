//! Socket clients, and venues for them.
#![allow(dead_code)] // each test uses only a part

use std::net::SocketAddrV4;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tickpath_agent::TscClock;
use tickpath_deribit::envelope::Inbound;
use tickpath_deribit::field::Field;
use tickpath_deribit::messages::{GetInstrument, PlaceOrder};
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{Key, Session, SessionConfig, SessionEvent};
use tickpath_deribit::text::Text;
use tickpath_net::Kernel;
use tickpath_test_support::{Certificates, Deadline, realtime_ns, wait_for};
use tickpath_types::Nanos;
use tickpath_web::{Target, TlsClient, WebEvent, WebLimits, WebSocketClient};

use crate::running::Running;

/// Pause between two requests, so that the rate limit is not reached.
pub const BETWEEN: Duration = Duration::from_millis(60);
pub const PERPETUAL: &str = "BTC-PERPETUAL";

/// Starts a venue with a high rate limit.
pub fn start(folder: &Path) -> Running {
    start_with(folder, |text| text)
}

pub fn start_with(folder: &Path, change: impl Fn(String) -> String) -> Running {
    let quick = "[deribit]\nmatching_rate = 2000\nmatching_burst = 2000\n";
    Running::start(folder, |text| change(text.replace("[deribit]\n", quick)))
}

/// Starts a venue with TLS for `localhost`; also returns the certificates to trust.
pub fn start_with_tls(folder: &Path) -> (Running, TlsClient) {
    let files = Certificates::write(folder);
    let tls = "[deribit]\ntls = { certificate = 'certificate.pem', private_key = 'key.pem' }\n";
    let venue = start_with(folder, |text| text.replace("[deribit]\n", tls));
    (venue, TlsClient::with_ca_file(&files.ca).unwrap())
}

/// A client: the protocol's session over a WebSocket.
pub struct Client {
    pub web: WebSocketClient,
    session: Session,
    replies: Vec<(i64, Result<Value, i64>)>,
    pub told: Vec<(String, Vec<u8>)>,
}

pub fn now() -> Nanos {
    TscClock::shared().now()
}

impl Client {
    pub fn connect(address: SocketAddrV4, id: &str, channels: &[&str]) -> Client {
        let url = format!("ws://{address}/ws/api/v2").parse().unwrap();
        Client::start(Target { url, address, is_proxy: false, tls: None }, id, channels)
    }

    pub fn start(target: Target, id: &str, channels: &[&str]) -> Client {
        let web = WebSocketClient::start(&Kernel, now(), target, WebLimits::client()).unwrap();
        let key = Key::new(id, "test");
        let mut session = Session::new(SessionConfig::new("test", "1", Some(key)));
        channels.iter().for_each(|channel| session.subscribe(channel).unwrap());
        let mut client = Client { web, session, replies: Vec::new(), told: Vec::new() };
        client.wait("connection", |client| client.web.poll_open(now()).unwrap());
        let unix_ns = realtime_ns();
        client.session.start(now(), unix_ns / 1_000_000, &format!("{id}{unix_ns}"));
        client.wait("login", |client| {
            client.session.is_ready() && client.session.active_channels() == channels.len()
        });
        client.wait_for_market();
        client
    }

    /// Waits until the instruments are open, shortly after the start.
    fn wait_for_market(&mut self) {
        let deadline = Deadline::start();
        let asked = GetInstrument { instrument_name: Text::new(PERPETUAL) };
        while self.call(Method::GetInstrument, &asked).unwrap()["state"] != "open" {
            assert!(!deadline.is_over(), "the market does not open");
            let next = Instant::now() + BETWEEN;
            self.wait("the next question", |_| Instant::now() >= next);
        }
    }

    /// Processes messages until the condition holds.
    pub fn wait(&mut self, what: &str, is_so: impl Fn(&mut Client) -> bool) {
        wait_for(what, || {
            let found = is_so(self);
            if !found {
                self.turn();
            }
            found.then_some(())
        });
    }

    pub fn turn(&mut self) {
        let Client { web, session, replies, told } = self;
        if !session.is_over() {
            let mut frame = Vec::new();
            while session.poll_transmit(now(), &mut frame) {
                let _ = web.send(std::str::from_utf8(&frame).unwrap());
                frame.clear();
            }
        }
        while let Ok(Some(WebEvent::Text(text))) = web.receive() {
            match session.handle(now(), Inbound::parse(text.as_bytes()).unwrap()) {
                Some(SessionEvent::Reply { id, response, .. }) => {
                    let outcome = response.outcome.map(|value| serde_json::from_str(value.text()).unwrap());
                    replies.push((id, outcome.map_err(|error| error.code)));
                }
                Some(SessionEvent::Notification(news)) => {
                    told.push((news.channel.to_string(), news.data.text().as_bytes().to_vec()));
                }
                Some(SessionEvent::LoginRefused { method, error }) => panic!("{method}: {error:?}"),
                _ => {}
            }
        }
    }

    pub fn call<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Value, i64> {
        let mut frame = Vec::new();
        let id = self.session.request(now(), method, params, &mut frame).unwrap();
        let _ = self.web.send(std::str::from_utf8(&frame).unwrap());
        self.wait("a reply", |client| client.replies.iter().any(|(known, _)| *known == id));
        let place = self.replies.iter().position(|(known, _)| *known == id).unwrap();
        self.replies.remove(place).1
    }

    pub fn order(&mut self, method: Method, amount: i64, price: &str) -> Value {
        let order = PlaceOrder {
            label: Some(Text::new("loop")),
            ..PlaceOrder::limit(PERPETUAL, amount.into(), price.parse().unwrap())
        };
        self.call(method, &order).unwrap()
    }
}
