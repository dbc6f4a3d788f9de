//! The whole venue with its front, over the loopback interface.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::client::{Client, PERPETUAL, now, start, start_with, start_with_tls};
use crate::running::Running;
use serde_json::Value;
use tickpath_deribit::codes::{OrderType, Trigger};
use tickpath_deribit::continuity::{BookStep, Continuity};
use tickpath_deribit::messages::{
    BookLevels, BookUpdate, CancelOrder, GetOpenOrders, GetOrderBook, GetPosition, LevelAction, PlaceOrder,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::text::Text;
use tickpath_deribit_front::FaultKind;
use tickpath_fix::deribit::{
    Credentials, ExecutionReport, NewOrderSingle, RAW_DATA_LEN_MAX, SideCode, password, raw_data,
};
use tickpath_fix::session::{
    Header, Listener, NoStore, Refusal, Session as FixSession, SessionConfig as FixConfig,
};
use tickpath_fix::{Body, Decimal, Message};
use tickpath_test_support::{Deadline, PATIENCE, realtime_ns, wait_for};
use tickpath_web::Target;

const BOOK: &str = "book.BTC-PERPETUAL.raw";

/// Rebuilds the book from channel messages.
fn book_of(told: &[(String, Vec<u8>)]) -> (u64, usize, usize) {
    let mut chain = Continuity::new();
    let mut levels = BookLevels::default();
    let mut sides = [std::collections::BTreeMap::new(), std::collections::BTreeMap::new()];
    let mut change_id = 0;
    for (_, data) in told.iter().filter(|(channel, _)| channel == BOOK) {
        let value = tickpath_deribit::scan::check(data).unwrap();
        let update = BookUpdate::read(&mut value.scanner(), &mut levels).unwrap();
        assert!(matches!(chain.handle_update(&update), BookStep::Apply | BookStep::Replace), "{update:?}");
        for (side, changed) in sides.iter_mut().zip([&levels.bids, &levels.asks]) {
            for level in changed {
                match level.action {
                    LevelAction::Delete => side.remove(&level.price.to_string()),
                    _ => side.insert(level.price.to_string(), level.amount),
                };
            }
        }
        change_id = update.change_id;
    }
    (change_id, sides[0].len(), sides[1].len())
}

#[test]
fn two_clients_trade_over_websockets_and_a_restart_keeps_what_they_have() {
    let folder = tempfile::tempdir().unwrap();
    // The log is complete, regardless of the number of snapshots.
    let snapshots =
        |text: String| text.replace("snapshot_every = 0", "snapshot_every = 1000\nkeep_snapshots = 1");
    let venue = start_with(folder.path(), snapshots);
    let mut anna = Client::connect(venue.address, "anna", &[BOOK, "user.orders.any.any.raw"]);
    let mut bert = Client::connect(venue.address, "bert", &["user.trades.any.any.raw"]);
    let resting = anna.order(Method::Sell, 1_000, "60010");
    assert_eq!(
        (&resting["order"]["order_state"], &resting["order"]["label"]),
        (&"open".into(), &"loop".into())
    );
    let taken = bert.order(Method::Buy, 400, "60010");
    assert_eq!(
        (&taken["order"]["order_state"], &taken["trades"][0]["liquidity"]),
        (&"filled".into(), &"T".into())
    );
    let second = anna.order(Method::Buy, 50, "59990");
    let cancel = CancelOrder { order_id: Text::new(second["order"]["order_id"].as_str().unwrap()) };
    assert_eq!(anna.call(Method::Cancel, &cancel).unwrap()["order_state"], "cancelled");
    assert_eq!(anna.call(Method::Cancel, &cancel), Err(11044));
    bert.wait("the trade", |client| {
        client.told.iter().any(|(channel, _)| channel.starts_with("user.trades"))
    });
    let of_book = GetOrderBook { instrument_name: Text::new(PERPETUAL), depth: Some(20) };
    let book = anna.call(Method::GetOrderBook, &of_book).unwrap();
    let wanted = (book["change_id"].as_u64().unwrap(), 0, 1);
    anna.wait("the book", |client| book_of(&client.told) == wanted);
    assert_eq!(book["asks"][0], serde_json::json!([60010, 600]));
    let position = GetPosition { instrument_name: Text::new(PERPETUAL) };
    let before = bert.call(Method::GetPosition, &position).unwrap();
    assert_eq!((&before["size"], &before["average_price"]), (&400.into(), &60010.into()));
    // Cancel on disconnect applies to this connection, and the session enables it.
    let rate = |client: &mut Client| {
        client.call(Method::GetOpenOrders, &GetOpenOrders { kind: None, order_type: None }).unwrap()
    };
    assert_eq!(rate(&mut anna).as_array().unwrap().len(), 1);
    let stop = PlaceOrder {
        order_type: Some(OrderType::StopMarket),
        trigger: Some(Trigger::IndexPrice),
        trigger_price: Some("31000".parse().unwrap()),
        ..PlaceOrder::market(PERPETUAL, 10.into())
    };
    let stop = bert.call(Method::Sell, &stop).unwrap()["order"]["order_id"].clone();
    venue.stop();

    let venue = start(folder.path());
    let mut bert = Client::connect(venue.address, "bert", &[]);
    assert_eq!(rate(&mut bert)[0]["order_id"], stop, "what waited waits again");
    let after = bert.call(Method::GetPosition, &position).unwrap();
    assert_eq!((&after["size"], &after["average_price"]), (&before["size"], &before["average_price"]));
    let book = bert.call(Method::GetOrderBook, &of_book).unwrap();
    assert_eq!(book["asks"][0], serde_json::json!([60010, 600]));
    let closed = bert.order(Method::Buy, 600, "60010");
    assert_eq!(closed["order"]["filled_amount"], 600);
    venue.stop();
}

#[test]
fn a_client_trades_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (venue, trust) = start_with_tls(folder.path());
    let url = format!("wss://localhost:{}/ws/api/v2", venue.address.port()).parse().unwrap();
    let target = Target { url, address: venue.address, is_proxy: false, tls: Some(trust) };
    let mut anna = Client::start(target, "anna", &[BOOK]);
    assert_eq!(anna.order(Method::Buy, 10, "59000")["order"]["order_state"], "open");
    venue.stop();
}

/// Sends an HTTP request; returns status and body.
fn http(address: SocketAddrV4, request: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// Flips one bit of a journal, which ends there if the loss is accepted.
fn damage(folder: &Path) {
    let files = std::fs::read_dir(folder.join("deribit-journal")).unwrap().map(|file| file.unwrap().path());
    let segments = files.filter(|path| path.extension().is_some_and(|name| name == "journal"));
    let used = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    let all = segments.map(|path| (std::fs::read(&path).unwrap(), path));
    let (mut bytes, path) = all.max_by_key(|(bytes, _)| used(bytes)).unwrap();
    let at = used(&bytes) - 400;
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// Returns the front's files beside a journal.
fn side_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let own = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("labels."));
    own.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn a_journal_that_lost_its_end_takes_tokens_and_links_with_it() {
    lose_the_end(false);
}

#[test]
fn a_start_that_was_cut_short_after_a_loss_is_done_again() {
    lose_the_end(true);
}

/// With `is_cut_short` the journal is shortened, and the start ends before the front has rewritten its files.
fn lose_the_end(is_cut_short: bool) {
    let folder = tempfile::tempdir().unwrap();
    let venue = start(folder.path());
    let mut anna = Client::connect(venue.address, "anna", &[]);
    let token_of = |address: SocketAddrV4| {
        let asked = "grant_type=client_credentials&client_id=anna&client_secret=test&scope=session:desk";
        let request =
            format!("GET /api/v2/public/auth?{asked} HTTP/1.1\r\nHost: venue\r\nConnection: close\r\n\r\n");
        http(address, &request).1["result"]["access_token"].as_str().unwrap().to_owned()
    };
    let open_by = |address: SocketAddrV4, token: &str| {
        let request = format!(
            "GET /api/v2/private/get_open_orders HTTP/1.1\r\nHost: venue\r\nConnection: close\r\nAuthorization: bearer {token}\r\n\r\n"
        );
        http(address, &request)
    };
    let token = token_of(venue.address);
    let config = r#"[{"amount":10,"direction":"sell","type":"limit","price":61000,"label":"child"}]"#;
    for _ in 0..12 {
        anna.order(Method::Buy, 10, "59000");
        let linked = format!(
            "instrument_name={PERPETUAL}&amount=10&price=59000&label=first&linked_order_type=one_triggers_other\
             &trigger_fill_condition=first_hit&otoco_config={}",
            config
                .replace('"', "%22")
                .replace('{', "%7B")
                .replace('}', "%7D")
                .replace('[', "%5B")
                .replace(']', "%5D")
        );
        let request = format!(
            "GET /api/v2/private/buy?{linked} HTTP/1.1\r\nHost: venue\r\nConnection: close\r\nAuthorization: bearer {token}\r\n\r\n"
        );
        let (status, reply) = http(venue.address, &request);
        assert_eq!(status, 200, "{reply}");
    }
    let count =
        |address: SocketAddrV4, token: &str| open_by(address, token).1["result"].as_array().unwrap().len();
    assert_eq!(count(venue.address, &token), 36);
    venue.stop();
    damage(folder.path());

    let files = side_files(folder.path());
    let mut venue = Running::start_again(folder.path(), true);
    if is_cut_short {
        venue.stop();
        files.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
        venue = Running::start_again(folder.path(), false);
    }
    let mut anna = Client::connect(venue.address, "anna", &[]);
    let (status, reply) = open_by(venue.address, &token);
    assert_eq!((status, &reply["error"]["code"]), (401, &13_009.into()), "{reply}");
    let token = token_of(venue.address);
    let left = count(venue.address, &token);
    assert!((3..36).contains(&left), "{left} orders are left");
    // New orders reuse the numbers of lost ones, and nothing waits for them.
    (0..12).for_each(|_| drop(anna.order(Method::Buy, 10, "58000")));
    let before = open_by(venue.address, &token).1["result"].clone();
    assert_eq!(before.as_array().unwrap().len(), left + 12);
    let linked = |orders: &Value| {
        let orders = orders.as_array().unwrap().iter();
        orders.filter(|order| order["price"] == 58_000 && order.get("oto_order_ids").is_some()).count()
    };
    assert_eq!(linked(&before), 0);
    venue.stop();
    for _ in 0..2 {
        let venue = Running::start_again(folder.path(), false);
        Client::connect(venue.address, "anna", &[]);
        let after = open_by(venue.address, &token).1["result"].clone();
        assert_eq!(after, before, "the token is from after the loss");
        venue.stop();
    }
    let venue = Running::start_again(folder.path(), true);
    assert_eq!(open_by(venue.address, &token).0, 401, "no record is lost; the token is unknown");
    venue.stop();
    let files = side_files(folder.path());
    let records = files.into_iter().find(|(path, _)| path.extension().is_some_and(|name| name == "records"));
    let text = String::from_utf8(records.unwrap().1).unwrap();
    let after = |line: &str| -> u64 {
        serde_json::from_str::<Value>(line.splitn(3, ' ').nth(2).unwrap()).unwrap()["after"].as_u64().unwrap()
    };
    assert!(text.lines().map(after).is_sorted());
}

#[test]
fn the_same_is_asked_over_http() {
    use tickpath_deribit::sign::{HttpRequest, http_signature, write_authorization};

    let folder = tempfile::tempdir().unwrap();
    let venue = start(folder.path());
    let get = |target: &str, header: &str| {
        http(venue.address, &format!("GET {target} HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n"))
    };
    let instruments = wait_for("open instruments", || {
        let (status, reply) = get("/api/v2/public/get_instruments?currency=BTC&kind=future", "");
        assert_eq!(status, 200, "{reply}");
        (reply["result"][0]["state"] == "open").then_some(reply)
    });
    assert_eq!(instruments["result"][0]["instrument_name"], PERPETUAL);
    let (status, auth) =
        get("/api/v2/public/auth?grant_type=client_credentials&client_id=anna&client_secret=test", "");
    assert_eq!(status, 200, "{auth}");
    let bearer = format!("Authorization: Bearer {}\r\n", auth["result"]["access_token"].as_str().unwrap());
    let (_, order) =
        get("/api/v2/private/buy?instrument_name=BTC-PERPETUAL&amount=10&price=59000&label=7", &bearer);
    assert_eq!(
        (&order["result"]["order"]["order_state"], &order["result"]["order"]["label"]),
        (&"open".into(), &"7".into())
    );
    let target = "/api/v2/private/get_open_orders_by_currency?currency=BTC";
    let timestamp = realtime_ns() / 1_000_000;
    let request = HttpRequest { method: "GET", uri: target, body: b"" };
    let mut header = b"Authorization: ".to_vec();
    write_authorization(
        "anna",
        timestamp,
        "n1",
        &http_signature(b"test", timestamp, "n1", request),
        &mut header,
    );
    let header = String::from_utf8(header).unwrap() + "\r\n";
    let (status, open) = get(target, &header);
    assert_eq!((status, open["result"].as_array().unwrap().len()), (200, 1), "{open}");
    let (status, again) = get(target, &header);
    assert_eq!((status, again["error"]["code"].as_i64()), (401, Some(13009)));
    let body = r#"{"jsonrpc":"2.0","id":3,"method":"public/get_time","params":{}}"#;
    let post = format!(
        "POST /api/v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(http(venue.address, &post).1["id"], 3);
    assert_eq!(get("/elsewhere", "").0, 404);
    assert_eq!(get("/api/v2/public/nothing", "").1["error"]["code"], -32601);
    assert_eq!(get("/api/v2/private/get_positions", "").0, 401);
    venue.stop();
}

/// A FIX client over a socket.
pub(crate) struct FixClient {
    stream: TcpStream,
    session: FixSession<NoStore>,
    received: Vec<u8>,
    got: Got,
}

#[derive(Default)]
pub(crate) struct Got {
    pub(crate) is_up: bool,
    logout: Option<String>,
    reports: Vec<(String, u8)>,
}

impl Listener for Got {
    fn on_message(&mut self, _: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        if let Ok(report) = ExecutionReport::decode(message) {
            let id = report.orig_cl_ord_id.unwrap_or_default().to_owned();
            self.reports.push((id, report.ord_status.0));
        }
        Ok(())
    }

    fn on_logged_on(&mut self) {
        self.is_up = true;
    }

    fn on_logout(&mut self, text: Option<&str>) {
        self.logout = Some(text.unwrap_or_default().to_owned());
    }
}

impl FixClient {
    pub(crate) fn connect(address: SocketAddrV4, name: &str) -> FixClient {
        FixClient::over(TcpStream::connect(address).unwrap(), name)
    }

    pub(crate) fn over(stream: TcpStream, name: &str) -> FixClient {
        stream.set_nonblocking(true).unwrap();
        let session = FixSession::new(FixConfig::deribit_client(name), NoStore);
        FixClient { stream, session, received: Vec::new(), got: Got::default() }
    }

    pub(crate) fn log_on(&mut self, id: &str) {
        let mut raw = [0; RAW_DATA_LEN_MAX];
        let raw = raw_data(now().0 / 1_000_000, &[3; 40], &mut raw).unwrap();
        let word = password(raw, b"test");
        let credentials = Credentials {
            raw_data: Some(raw),
            username: Some(id),
            password: Some(std::str::from_utf8(&word).unwrap()),
            ..Credentials::default()
        };
        self.session.connect(now(), &credentials).unwrap();
    }

    pub(crate) fn wait(&mut self, what: &str, is_so: impl Fn(&Got) -> bool) {
        assert!(self.is_open_until(what, is_so), "{what} does not come before the end");
    }

    /// Waits for a condition; returns false if the venue closes the connection first.
    pub(crate) fn is_open_until(&mut self, what: &str, is_so: impl Fn(&Got) -> bool) -> bool {
        let deadline = Deadline::start();
        while !is_so(&self.got) {
            assert!(!deadline.is_over(), "{what} does not come");
            if let Ok(count) = self.stream.write(self.session.output()) {
                self.session.handle_sent(now(), count);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    let done = self.session.handle_bytes(now(), &self.received, &mut self.got);
                    self.received.drain(..done);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
            std::thread::yield_now();
        }
        true
    }

    /// Returns true once the venue has closed the connection, which it does in time.
    fn is_closed(&mut self) -> bool {
        self.stream.set_nonblocking(false).unwrap();
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        loop {
            match self.stream.read(&mut [0; 65_536]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

#[test]
fn clients_by_fix_and_by_websocket_trade_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = start_with(folder.path(), |text| {
        text.replace("[deribit]\n", "[deribit]\nfix_address = '127.0.0.1:0'\nmax_connections = 3\n")
    });
    let address = venue.fix_address.unwrap();
    let mut bert = Client::connect(venue.address, "bert", &[]);
    let mut anna = FixClient::connect(address, "ANNA");
    anna.log_on("anna");
    anna.wait("the Logon", |got| got.is_up);
    let order = NewOrderSingle {
        cl_ord_id: "a-1",
        side: SideCode::SELL,
        order_qty: 100.into(),
        price: Decimal::parse(b"60010"),
        symbol: PERPETUAL,
        ..NewOrderSingle::default()
    };
    // The instruments open shortly after the start.
    let mut tries = 0;
    while !anna.got.reports.iter().any(|(_, status)| *status == b'0') {
        tries += 1;
        let id = format!("a-{tries}");
        anna.session.send(now(), &NewOrderSingle { cl_ord_id: &id, ..order }).unwrap();
        anna.wait("the report", |got| got.reports.iter().any(|(known, _)| *known == id));
    }
    let own = format!("a-{tries}");
    assert_eq!(bert.order(Method::Buy, 400, "60010")["order"]["order_state"], "filled");
    anna.wait("the fill", |got| got.reports.last() == Some(&(own.clone(), b'1')));
    assert_eq!(bert.order(Method::Buy, 600, "60010")["order"]["order_state"], "filled");
    anna.wait("the end", |got| got.reports.last() == Some(&(own.clone(), b'2')));

    // The same name takes over the session, and garbage closes the connection.
    let mut again = FixClient::connect(address, "ANNA");
    again.log_on("anna");
    again.wait("its Logon", |got| got.is_up);
    anna.wait("the end of the first", |got| {
        got.logout.as_ref().is_some_and(|text| text.contains("another Logon"))
    });
    assert!(anna.is_closed());
    let mut anna = again;
    let mut garbage = FixClient::connect(address, "X");
    garbage.stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(garbage.is_closed());
    anna.session.send(now(), &NewOrderSingle { cl_ord_id: "last", ..order }).unwrap();
    anna.wait("the report", |got| got.reports.iter().any(|(known, _)| known == "last"));
    // The venue logs out its clients.
    let stopped = std::thread::spawn(move || venue.stop());
    anna.wait("the end of the venue", |got| got.logout.as_deref() == Some("the venue stops"));
    stopped.join().unwrap();
}

#[test]
fn clients_by_fix_that_are_cut_that_flood_and_that_are_early_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let venue = start_with(folder.path(), |text| {
        text.replace("[deribit]\n", "[deribit]\nfix_address = '127.0.0.1:0'\nmax_connections = 8\n")
            + "\n[deribit.faults]\nhalf_open_for = \"1s\"\n"
    });
    let address = venue.fix_address.unwrap();
    let up = |id: &str, name: &str| {
        let mut client = FixClient::connect(address, name);
        client.log_on(id);
        client.wait("the Logon", |got| got.is_up);
        client
    };
    let mut bert = up("bert", "BERT");
    let mut early = FixClient::connect(address, "EARLY");
    early.stream.write_all(b"8=FIX.4.4\x019=5\x0135=D\x0110=180\x01").unwrap();
    assert!(early.is_closed());
    // An endless flood of messages that the session itself answers: they cost credits, and the venue closes
    // the client although it does not read.
    let flood = up("anna", "FLOOD");
    flood.stream.set_nonblocking(false).unwrap();
    flood.stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let heartbeat = |sequence: u64| {
        let fields = format!("35=0|49=FLOOD|56=DERIBITSERVER|34={sequence}|").replace('|', "\u{1}");
        let start = format!("8=FIX.4.4\u{1}9={}\u{1}{fields}", fields.len());
        let sum = start.bytes().fold(0_u8, u8::wrapping_add);
        format!("{start}10={sum:03}\u{1}").into_bytes()
    };
    let many = |from: u64| (from..from + 1_000).flat_map(heartbeat).collect::<Vec<u8>>();
    let start = Instant::now();
    let is_over = |from| (&flood.stream).write_all(&many(from)).is_err() || start.elapsed() > 4 * PATIENCE;
    assert!(
        (2..).step_by(1_000).any(is_over) && start.elapsed() <= 4 * PATIENCE,
        "it takes more than it may"
    );
    let counters = &venue.view.front;
    assert_eq!((counters.slow_clients.read(), counters.over_rate.read()), (0, 1));
    // The others continue until all connections are half open, and are cut after one second.
    let order = NewOrderSingle {
        cl_ord_id: "b-1",
        side: SideCode::BUY,
        order_qty: 1.into(),
        price: Decimal::parse(b"59000"),
        symbol: PERPETUAL,
        ..NewOrderSingle::default()
    };
    bert.session.send(now(), &order).unwrap();
    bert.wait("a report", |got| got.reports.iter().any(|(id, _)| id == "b-1"));
    venue.faults.happen_next(FaultKind::HalfOpen, 1);
    assert!(bert.is_closed());
    let mut again = up("bert", "BERT");
    venue.faults.happen_next(FaultKind::Cut, 1);
    assert!(again.is_closed());
    up("bert", "BERT");
    venue.stop();
}
