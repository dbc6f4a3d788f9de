//! A front and an engine in one thread: the front's requests become commands at once.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};
use tickpath_book::FastBooks;
use tickpath_config::ConfigError;
use tickpath_deribit_front::{DeribitConfig, Front, FrontSettings, Labels, LogStart, RecordError, Transport};
use tickpath_exchange::{LogCommand, LogListener, VenueEngine};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, Owner};
use tickpath_types::{
    EnterOrder, Instrument, InstrumentId, InstrumentTable, Nanos, OrderRequest, Price, Qty, Sequence,
    SessionId, Side, Symbol, TradingState, UserRefNum,
};

/// Start time of the tests: 2026-11-22, 12:00 UTC.
pub const START_US: u64 = 1_795_348_800_000_000;

pub struct Venue {
    pub front: Front,
    pub engine: Box<VenueEngine>,
    pub log: Vec<Command>,
    pub now_us: u64,
    /// Records of the front.
    pub records: Vec<u8>,
    /// Token lines of the front.
    pub tokens: Vec<u8>,
    /// Generation of the log.
    generation: u32,
    /// Notice of a start on a log that lost commands.
    pub notice: Option<String>,
    settings: FrontSettings,
    next_id: i64,
    /// Unread notifications by connection.
    pub told: BTreeMap<u64, Vec<Value>>,
}

pub fn instruments() -> Vec<Instrument> {
    let instrument = |id: u16, symbol: &str, tick: i64, reference: i64| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(symbol).unwrap(),
        tick_size: Price(tick),
        lot_size: Qty(1),
        max_qty: Qty(10_000_000),
        reference_price: Price(reference),
        collar_low: Price(tick),
        collar_high: Price(reference * 4),
    };
    vec![
        // Prices start at a tenth of the reference, so distances are below the price range.
        Instrument { collar_low: Price(60_000_000), ..instrument(1, "BTCPERP", 5_000, 600_000_000) },
        instrument(2, "ETHUSDC", 500, 30_000_000),
        instrument(3, "BTCOPT", 5, 500),
        instrument(4, "BTCUSDC", 100, 600_000_000),
    ]
}

const CONFIG: &str = r#"
matching_rate = 1000
matching_burst = 1000
index = [{ name = "btc_usd", price = "60000" }, { name = "eth_usd", price = "3000" }]
instrument = [
    { name = "BTC-PERPETUAL", symbol = "BTCPERP", kind = "future", base = "BTC", quote = "USD", settlement = "BTC", period = "perpetual", index = "btc_usd", min_trade_amount = "10", taker_commission = "0.0005" },
    { name = "ETH_USDC-PERPETUAL", symbol = "ETHUSDC", kind = "future", base = "ETH", quote = "USDC", period = "perpetual", index = "eth_usd", min_trade_amount = "0.001", taker_commission = "0.0005" },
    { name = "BTC-25DEC26-60000-C", symbol = "BTCOPT", kind = "option", base = "BTC", quote = "USD", settlement = "BTC", period = "month", index = "btc_usd", min_trade_amount = "0.1", contract_size = "1", option_type = "call", strike = "60000", expiration_timestamp = 1798185600000, initial_margin = "0.15" },
    { name = "BTC_USDC", symbol = "BTCUSDC", kind = "spot", base = "BTC", quote = "USDC", index = "btc_usd", min_trade_amount = "0.0001" },
]
key = [
    { client_id = "anna", client_secret = "anna-secret", user = "ANNA" },
    { client_id = "bert", client_secret = "bert-secret", user = "BERT" },
    { client_id = "reader", client_secret = "reader-secret", user = "BERT", scope = "account:read trade:read" },
]
account = [
    { user = "ANNA", balances = { BTC = "10", USDC = "100000" } },
    { user = "BERT", balances = { BTC = "10", USDC = "100000" } },
]
"#;

/// Returns the settings of the standard configuration.
pub fn settings() -> FrontSettings {
    settings_of(CONFIG)
}

/// Returns these settings with some text of the configuration replaced.
pub fn changed(changes: &[(&str, &str)]) -> Result<FrontSettings, ConfigError> {
    let mut text = CONFIG.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    DeribitConfig::from_table(&text.parse().unwrap())?.settings(&venue_settings(), None)
}

fn settings_of(text: &str) -> FrontSettings {
    let config = DeribitConfig::from_table(&text.parse().unwrap()).unwrap();
    let venue = venue_settings();
    config.settings(&venue, None).unwrap()
}

/// Returns the venue's settings: users and instruments.
fn venue_settings() -> tickpath_exchange::VenueSettings {
    let text = r#"
instruments = "none"
[order_entry]
user = [{ name = "ANNA", ports = ["deribit"] }, { name = "BERT", ports = ["deribit"] }]
[journal]
policy = "async"
snapshot_every = 0
[deribit]
"#;
    let config: tickpath_exchange::ExchangeConfig = tickpath_config::parse("venue.toml", text).unwrap();
    config.settings(InstrumentTable::new(&instruments()), None).unwrap()
}

impl Venue {
    pub fn new() -> Venue {
        Venue::of(settings())
    }

    pub fn of(settings: FrontSettings) -> Venue {
        let engine: Engine<FastBooks<Owner>> = Engine::new(&instruments(), EngineLimits::default()).unwrap();
        let mut venue = Venue {
            front: Front::new(settings.clone(), Labels::default(), [7; 32], START_US),
            engine: Box::new(engine),
            log: Vec::new(),
            now_us: START_US,
            records: Vec::new(),
            tokens: Vec::new(),
            generation: 0,
            notice: None,
            settings,
            next_id: 1,
            told: BTreeMap::new(),
        };
        for id in 1..=4 {
            let kind =
                CommandKind::OpenInstrument { instrument: InstrumentId(id), state: TradingState::Trading };
            venue.command(SessionId(0), kind);
        }
        venue.front.go_live();
        venue
    }

    /// Restarts the venue: a new front reads the log from its beginning.
    pub fn restarted(self, labels: Vec<String>) -> Venue {
        let settings = self.settings.clone();
        self.restarted_as(settings, labels).unwrap()
    }

    /// Restarts the venue with another configuration.
    pub fn restarted_as(
        mut self,
        settings: FrontSettings,
        labels: Vec<String>,
    ) -> Result<Venue, RecordError> {
        self.front.finish();
        self.records.extend(self.front.poll_records());
        self.keep_tokens();
        let mut front = Front::new(settings.clone(), Labels::restored(labels), [8; 32], self.now_us);
        let log = LogStart { commands: self.log.len() as u64, generation: self.generation };
        let rebased = front.recall(&self.records, log)?;
        if let Some(rebased) = &rebased {
            self.records.clone_from(&rebased.lines);
            self.tokens.clear();
        }
        front.recall_tokens(&self.tokens)?;
        front.recall_trusted(self.front.trusted().clone());
        let mut venue = Venue {
            front,
            engine: Box::new(Engine::new(&instruments(), EngineLimits::default()).unwrap()),
            log: Vec::new(),
            now_us: self.now_us,
            records: self.records,
            tokens: self.tokens,
            generation: self.generation,
            notice: rebased.and_then(|rebased| rebased.notice),
            settings,
            next_id: 1,
            told: BTreeMap::new(),
        };
        for command in self.log {
            venue.apply(command);
        }
        venue.front.go_live();
        venue.keep_tokens();
        Ok(venue)
    }

    /// Restarts the venue after an accepted loss of all but the first commands.
    pub fn restarted_with(mut self, commands: usize, labels: Vec<String>) -> Venue {
        self.log.truncate(commands);
        self.generation += 1;
        self.restarted(labels)
    }

    /// Stores the token lines of the front.
    pub fn keep_tokens(&mut self) {
        if let Some((lines, is_anew)) = self.front.poll_tokens() {
            if is_anew {
                self.tokens.clear();
            }
            self.tokens.extend(lines);
        }
    }

    pub fn command(&mut self, session: SessionId, kind: CommandKind) {
        let sequence = Sequence(self.log.len() as u64 + 1);
        let ts = Nanos(self.now_us * 1_000 % Nanos::DAY.0 + sequence.0);
        self.apply(Command { sequence, session, ts, kind });
    }

    /// Enters bids of anna's account with these numbers, bypassing the front and its margin check.
    pub fn enter_bids(&mut self, user_refs: Range<u32>) {
        for number in user_refs {
            let price = Price(500_000_000 + 5_000 * i64::from(number % 5_000));
            let bid = EnterOrder::limit(UserRefNum(number), InstrumentId(1), Side::Buy, Qty(10), price);
            self.order(1, OrderRequest::Enter(bid));
        }
    }

    fn apply(&mut self, command: Command) {
        self.log.push(command);
        self.engine.apply(&command, &mut self.front);
        self.front.on_applied(&LogCommand::Engine(command), &self.engine);
    }

    /// Sends a user's request through another port.
    pub fn order(&mut self, session: u16, request: OrderRequest) {
        self.command(SessionId(session), CommandKind::Order(request));
    }

    /// Executes the front's requests.
    pub fn settle(&mut self) {
        while let Some(request) = self.front.poll_request() {
            self.command(request.session, request.command());
        }
    }

    pub fn wait(&mut self, us: u64) {
        self.now_us += us;
        self.front.handle_time(self.now_us);
        self.settle();
    }

    pub fn connect(&mut self) -> u64 {
        self.front.open(Transport::WebSocket, self.now_us)
    }

    /// Opens a connection and logs in with id and secret.
    pub fn login(&mut self, id: &str) -> u64 {
        let connection = self.connect();
        let params = json!({ "grant_type": "client_credentials", "client_id": id, "client_secret": format!("{id}-secret") });
        let result = self.ok(connection, "public/auth", params);
        assert_eq!(result["token_type"], "bearer");
        connection
    }

    /// Returns all frames sent to a connection.
    pub fn frames(&mut self, connection: u64) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.front.poll_frame(connection) {
            frames.push(serde_json::from_slice(&frame.bytes).expect("frames are JSON"));
        }
        frames
    }

    /// Sends a request and executes only the front's first request: the venue stops there.
    pub fn call_and_stop(&mut self, connection: u64, method: &str, params: Value) {
        let frame = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params }).to_string();
        self.front.handle_frame(connection, frame.as_bytes(), self.now_us);
        let request = self.front.poll_request().expect("an order");
        self.command(request.session, request.command());
    }

    /// Sends a request and returns its reply; stores notifications.
    pub fn call(&mut self, connection: u64, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        self.front.handle_frame(connection, frame.as_bytes(), self.now_us);
        self.settle();
        let mut reply = None;
        for frame in self.frames(connection) {
            if frame["id"] == id {
                assert!(reply.is_none(), "one reply");
                reply = Some(frame);
            } else {
                self.told.entry(connection).or_default().push(frame);
            }
        }
        reply.unwrap_or(Value::Null)
    }

    pub fn ok(&mut self, connection: u64, method: &str, params: Value) -> Value {
        let reply = self.call(connection, method, params);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        assert!(reply["usIn"].as_u64() <= reply["usOut"].as_u64() && reply["testnet"] == true);
        reply["result"].clone()
    }

    pub fn refused(&mut self, connection: u64, method: &str, params: Value) -> i64 {
        let reply = self.call(connection, method, params);
        reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {reply}"))
    }

    /// Returns the data of a channel since the previous call.
    pub fn news(&mut self, connection: u64, channel: &str) -> Vec<Value> {
        let frames = self.frames(connection);
        let told = self.told.entry(connection).or_default();
        told.extend(frames);
        let (found, rest): (Vec<_>, Vec<_>) =
            std::mem::take(told).into_iter().partition(|frame| frame["params"]["channel"] == channel);
        *told = rest;
        found.into_iter().map(|frame| frame["params"]["data"].clone()).collect()
    }
}
