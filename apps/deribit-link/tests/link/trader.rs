//! A model client that tracks its orders under faults and can be compared with the venue.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use tickpath_deribit::continuity::{BookStep, Continuity};
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    BookLevels, BookUpdate, CancelOrder, EditOrder, GetOpenOrders, GetOrderState, GetOrderStateByLabel,
    LevelAction, Order, OrderPrice, OrderReply, PlaceOrder,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::session::{Key, RequestError, SessionConfig, SessionEvent};
use tickpath_deribit::text::Text;
use tickpath_deribit_link::{
    Change, Link, LinkConfig, LinkStats, Listener, Received, Route, Standing, Unanswered,
};
use tickpath_test_support::{Deadline, PATIENCE, realtime_ns};
use tickpath_types::Nanos;

pub const PERPETUAL: &str = "BTC-PERPETUAL";
pub const BOOK: &str = "book.BTC-PERPETUAL.raw";
pub const ORDERS: &str = "user.orders.any.any.raw";
/// An order that each query misses for this long after it was sent was never entered.
const NEVER_AFTER: Duration = Duration::from_secs(3);
/// Minimum number of queries without a result.
const ASKED_MIN: u32 = 3;
/// Interval between two queries for the same order.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// The client's view of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    pub order_id: String,
    pub state: String,
    pub amount: String,
    pub price: String,
    updated: u64,
}

/// An order of unknown status.
#[derive(Debug)]
struct Doubt {
    since: Instant,
    asked_at: Option<Instant>,
    asked: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Enter(String),
    Change(String),
    ByLabel(String),
    State(String),
    OpenOrders,
    Other,
}

/// The client's state, derived from the received events.
pub struct Mind {
    start: Instant,
    /// Acceleration of the client's clock, so that long time-outs expire soon.
    speed: u64,
    pub believed: BTreeMap<String, Belief>,
    /// Orders that were never entered: refused, or not found.
    pub never: BTreeMap<String, String>,
    doubts: BTreeMap<String, Doubt>,
    asked: HashMap<i64, Asked>,
    pub replies: HashMap<i64, Result<String, i64>>,
    pub losses: Vec<String>,
    pub late: u64,
    pub lost: u64,
    pub is_reconciled: bool,
    wants_orders: bool,
    pub book: [BTreeMap<String, Decimal>; 2],
    pub chain: Continuity,
    levels: BookLevels,
    pub resubscriptions: u64,
    is_book_lost: bool,
}

pub struct Trader {
    pub link: Link,
    pub mind: Mind,
}

fn text(text: Text<'_>) -> String {
    text.to_cow().into_owned()
}

impl Mind {
    fn learn(&mut self, order: &Order<'_>) {
        let label = text(order.label_text());
        if label.is_empty() {
            return;
        }
        self.doubts.remove(&label);
        let belief = Belief {
            order_id: text(order.order_id),
            state: order.order_state.text().to_owned(),
            amount: order.amount.to_string(),
            price: order
                .price
                .and_then(OrderPrice::limit)
                .map_or_else(String::new, |price| price.to_string()),
            updated: order.last_update_timestamp,
        };
        if let Some(before) = self.believed.get(&label) {
            assert_eq!(before.order_id, belief.order_id, "{label} was entered twice");
            // Replies and notifications come in any order: closed stays closed, and the newest update wins.
            if before.state != "open" || before.updated > belief.updated {
                return;
            }
        }
        assert!(!self.never.contains_key(&label), "{label} was given up and lives: {belief:?}");
        self.believed.insert(label, belief);
    }

    fn doubt(&mut self, label: &str) {
        let doubt = Doubt { since: Instant::now(), asked_at: None, asked: 0 };
        self.doubts.entry(label.to_owned()).or_insert(doubt);
    }

    fn on_reply(&mut self, asked: Asked, outcome: Result<&str, i64>) {
        let parsed = |json: &str| tickpath_deribit::scan::check(json.as_bytes()).is_ok();
        assert!(outcome.is_err() || outcome.is_ok_and(parsed));
        match (asked, outcome) {
            (Asked::Enter(_), Ok(json)) => {
                self.learn(&read::<OrderReply<'_>>(json).order);
            }
            // A refused order was not entered.
            (Asked::Enter(label), Err(code)) => {
                // The venue itself does not know the outcome (13888).
                if code == 13_888 {
                    self.doubt(&label);
                } else {
                    self.never.insert(label, format!("refused {code}"));
                }
            }
            (Asked::Change(_), Ok(json)) => match tickpath_deribit::scan::check(json.as_bytes()) {
                Ok(value) if json.starts_with("{\"order\"") => {
                    self.learn(&value.parse::<OrderReply<'_>>().unwrap().order);
                }
                Ok(value) => self.learn(&value.parse::<Order<'_>>().unwrap()),
                Err(error) => panic!("{error}"),
            },
            // The order may have ended before: query its state.
            (Asked::Change(label), Err(_)) => self.doubt(&label),
            (Asked::ByLabel(label), Ok(json)) => {
                let orders = read::<List<'_, Order<'_>>>(json);
                let orders: Vec<Order<'_>> = orders.iter().map(Result::unwrap).collect();
                assert!(orders.len() <= 1, "{label} was entered {} times", orders.len());
                match orders.first() {
                    Some(order) => {
                        self.doubts.remove(&label);
                        self.learn(order);
                    }
                    None => self.not_found(&label),
                }
            }
            (Asked::State(label), Ok(json)) => {
                self.doubts.remove(&label);
                self.learn(&read::<Order<'_>>(json));
            }
            (Asked::OpenOrders, Ok(json)) => self.reconcile(json),
            (Asked::OpenOrders, Err(_)) => self.wants_orders = true,
            (Asked::ByLabel(_) | Asked::State(_) | Asked::Other, _) => {}
        }
    }

    fn not_found(&mut self, label: &str) {
        let Some(doubt) = self.doubts.get(label) else { return };
        if doubt.since.elapsed() > NEVER_AFTER && doubt.asked >= ASKED_MIN {
            self.doubts.remove(label);
            self.never.insert(label.to_owned(), "not found".to_owned());
        }
    }

    /// Queries the orders that the client takes for open but that are not among the venue's open orders.
    fn reconcile(&mut self, json: &str) {
        let orders = read::<List<'_, Order<'_>>>(json);
        let open: Vec<Order<'_>> = orders.iter().map(Result::unwrap).collect();
        for order in &open {
            let label = text(order.label_text());
            // An order taken for closed or never entered would be an error: `learn` reports it.
            if let Some(belief) = self.believed.get(&label) {
                assert_eq!(belief.order_id, text(order.order_id), "{label} was entered twice");
            }
            self.learn(order);
        }
        let gone: Vec<String> = self
            .believed
            .iter()
            .filter(|(label, belief)| {
                belief.state == "open" && !open.iter().any(|order| order.label_text() == label.as_str())
            })
            .map(|(label, _)| label.clone())
            .collect();
        gone.iter().for_each(|label| self.doubt(label));
        self.is_reconciled = true;
    }

    fn on_book(&mut self, json: &str) {
        let value = tickpath_deribit::scan::check(json.as_bytes()).unwrap();
        let update = BookUpdate::read(&mut value.scanner(), &mut self.levels).unwrap();
        match self.chain.handle_update(&update) {
            BookStep::Replace => self.book = Default::default(),
            BookStep::Apply => {}
            BookStep::Lost => {
                self.is_book_lost = true;
                return;
            }
            BookStep::Ignore => return,
        }
        for (side, changed) in self.book.iter_mut().zip([&self.levels.bids, &self.levels.asks]) {
            for level in changed {
                match level.action {
                    LevelAction::Delete => side.remove(&level.price.to_string()),
                    _ => side.insert(level.price.to_string(), level.amount),
                };
            }
        }
    }
}

fn read<'j, T: Field<'j>>(json: &'j str) -> T {
    tickpath_deribit::scan::check(json.as_bytes()).unwrap().parse().unwrap()
}

impl Listener for Mind {
    fn now(&mut self, _cycle: Nanos) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64 * self.speed)
    }

    fn unix_ms(&mut self, _now: Nanos) -> u64 {
        unix_ms()
    }

    fn on_event(&mut self, at: Received, event: SessionEvent<'_>) {
        assert!(at.at > Nanos::ZERO);
        match event {
            SessionEvent::Ready => self.wants_orders = true,
            SessionEvent::Reply { id, response, .. } => {
                let outcome = response.outcome.as_ref().map(|value| value.text()).map_err(|error| error.code);
                let asked = self.asked.remove(&id).expect("a reply to what was asked");
                self.on_reply(asked, outcome);
                self.replies.insert(id, outcome.map(str::to_owned));
            }
            SessionEvent::Notification(news) if news.channel == BOOK => self.on_book(news.data.text()),
            SessionEvent::Notification(news) if news.channel == ORDERS => {
                self.learn(&read::<Order<'_>>(news.data.text()));
            }
            _ => {}
        }
    }

    fn on_unanswered(&mut self, _at: Nanos, id: i64, _method: Method, why: Unanswered) {
        match why {
            Unanswered::Late => self.late += 1,
            Unanswered::Lost => self.lost += 1,
        }
        match self.asked.remove(&id).expect("what was asked") {
            Asked::Enter(label) | Asked::Change(label) => self.doubt(&label),
            Asked::OpenOrders => self.wants_orders = true,
            Asked::ByLabel(_) | Asked::State(_) | Asked::Other => {}
        }
    }

    fn on_change(&mut self, _at: Nanos, change: Change<'_>) {
        if let Change::Lost { why, .. } = change {
            self.losses.push(why.to_string());
            self.is_reconciled = false;
            self.wants_orders = false;
            self.chain = Continuity::new();
        }
    }
}

pub fn unix_ms() -> u64 {
    realtime_ns() / 1_000_000
}

/// An edit that changes nothing.
fn unchanged(order_id: &str) -> EditOrder<'_> {
    EditOrder {
        order_id: Text::new(order_id),
        amount: None,
        contracts: None,
        price: None,
        post_only: false,
        reduce_only: false,
        reject_post_only: false,
        advanced: None,
        trigger_price: None,
        trigger_offset: None,
        mmp: false,
        valid_until: Some(unix_ms() + 2_000),
        display_amount: None,
    }
}

/// A session whose rate limits do not slow the test.
pub fn session(id: &str, secret: &str) -> SessionConfig {
    SessionConfig {
        matching: CreditPlan::rate(100_000, 100_000),
        ..SessionConfig::new("trader", "1", Some(Key::new(id, secret)))
    }
}

impl Trader {
    /// Starts a client that connects and is ready.
    pub fn start(address: SocketAddrV4, session: SessionConfig, speed: u64) -> Trader {
        let mut trader = Trader::off(address, session, speed);
        trader.link.subscribe(BOOK).unwrap();
        trader.link.subscribe(ORDERS).unwrap();
        let now = trader.mind.now(Nanos::ZERO);
        trader.link.connect(now);
        trader.wait("login", Trader::is_settled);
        trader
    }

    pub fn off(address: SocketAddrV4, session: SessionConfig, speed: u64) -> Trader {
        let url = format!("ws://{address}/ws/api/v2").parse().unwrap();
        let config = LinkConfig::new(Route::direct(url, None), session);
        let mind = Mind {
            start: Instant::now(),
            speed,
            believed: BTreeMap::new(),
            never: BTreeMap::new(),
            doubts: BTreeMap::new(),
            asked: HashMap::new(),
            replies: HashMap::new(),
            losses: Vec::new(),
            late: 0,
            lost: 0,
            is_reconciled: false,
            wants_orders: false,
            book: Default::default(),
            chain: Continuity::new(),
            levels: BookLevels::default(),
            resubscriptions: 0,
            is_book_lost: false,
        };
        Trader { link: Link::new(config), mind }
    }

    pub fn stats(&self) -> LinkStats {
        self.link.stats()
    }

    pub fn now(&mut self) -> Nanos {
        self.mind.now(Nanos::ZERO)
    }

    /// Whether no order is in doubt, both channels are active, and orders were compared since the login.
    pub fn is_settled(&mut self) -> bool {
        self.link.standing() == Standing::Ready
            && self.link.session().active_channels() == 2
            && self.mind.is_reconciled
            && self.mind.doubts.is_empty()
            && self.mind.asked.is_empty()
            && self.mind.chain.is_whole()
    }

    /// Whether a request for the order is in flight, or its status is unknown.
    pub fn is_busy(&self, label: &str) -> bool {
        let of = Asked::Change(label.to_owned());
        self.mind.doubts.contains_key(label) || self.mind.asked.values().any(|asked| *asked == of)
    }

    /// Runs one duty cycle, and reacts to the received events.
    pub fn turn(&mut self) {
        let now = self.now();
        self.link.do_work(now, &mut self.mind);
        if std::mem::take(&mut self.mind.is_book_lost) {
            self.mind.chain = Continuity::new();
            self.mind.resubscriptions += 1;
            self.link.resubscribe(BOOK);
        }
        if self.link.standing() != Standing::Ready {
            return;
        }
        if std::mem::take(&mut self.mind.wants_orders) {
            let params = GetOpenOrders { kind: None, order_type: None };
            if self.ask(Asked::OpenOrders, Method::GetOpenOrders, &params).is_err() {
                self.mind.wants_orders = true;
            }
        }
        let due: Vec<String> = self
            .mind
            .doubts
            .iter()
            .filter(|(_, doubt)| doubt.asked_at.is_none_or(|at| at.elapsed() > ASK_INTERVAL))
            .map(|(label, _)| label.clone())
            .take(8)
            .collect();
        for label in due {
            let id = self.mind.believed.get(&label).map(|belief| belief.order_id.clone());
            let sent = match &id {
                Some(id) => self.ask(
                    Asked::State(label.clone()),
                    Method::GetOrderState,
                    &GetOrderState { order_id: Text::new(id) },
                ),
                None => self.ask(
                    Asked::ByLabel(label.clone()),
                    Method::GetOrderStateByLabel,
                    &GetOrderStateByLabel { currency: Text::new("BTC"), label: Some(Text::new(&label)) },
                ),
            };
            if sent.is_ok() {
                let doubt = self.mind.doubts.get_mut(&label).unwrap();
                doubt.asked_at = Some(Instant::now());
                doubt.asked += 1;
            }
        }
    }

    /// A description of the state, for debugging.
    pub fn told(&self) -> String {
        let Mind { losses, doubts, asked, .. } = &self.mind;
        let last = &losses[losses.len().saturating_sub(5)..];
        let stats = self.stats();
        format!("{} {stats:?}\nlosses {last:?}\ndoubts {doubts:?}\nasked {asked:?}", self.link.stage())
    }

    /// Runs duty cycles until a condition holds.
    pub fn wait(&mut self, what: &str, is_so: impl Fn(&mut Trader) -> bool) {
        let deadline = Deadline::after(2 * PATIENCE);
        while !is_so(self) {
            assert!(!deadline.is_over(), "{what} does not come: {}", self.told());
            self.turn();
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn ask<'a>(
        &mut self,
        asked: Asked,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        let now = self.now();
        let id = self.link.request(now, method, params)?;
        self.mind.asked.insert(id, asked);
        Ok(id)
    }

    /// Sends any request; `mind.replies` receives its reply.
    pub fn request<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<i64, RequestError> {
        self.ask(Asked::Other, method, params)
    }

    /// Sends a request and returns its reply.
    pub fn call<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<serde_json::Value, i64> {
        let id = self.request(method, params).unwrap();
        self.wait("a reply", |trader| trader.mind.replies.contains_key(&id));
        self.mind.replies.remove(&id).unwrap().map(|json| serde_json::from_str(&json).unwrap())
    }

    /// Places an order that rests.
    pub fn buy(&mut self, label: &str, amount: i64, price: &str) -> Result<i64, RequestError> {
        let order = PlaceOrder {
            label: Some(Text::new(label)),
            valid_until: Some(unix_ms() + 2_000),
            ..PlaceOrder::limit(PERPETUAL, amount.into(), price.parse().unwrap())
        };
        self.ask(Asked::Enter(label.to_owned()), Method::Buy, &order)
    }

    pub fn cancel(&mut self, label: &str) -> Result<i64, RequestError> {
        let id = self.mind.believed[label].order_id.clone();
        self.ask(Asked::Change(label.to_owned()), Method::Cancel, &CancelOrder { order_id: Text::new(&id) })
    }

    pub fn edit(&mut self, label: &str, amount: i64, price: &str) -> Result<i64, RequestError> {
        let id = self.mind.believed[label].order_id.clone();
        let edit =
            EditOrder { amount: Some(amount.into()), price: Some(price.parse().unwrap()), ..unchanged(&id) };
        self.ask(Asked::Change(label.to_owned()), Method::Edit, &edit)
    }

    /// Orders that the client takes for open, as the venue lists them.
    pub fn open(&self) -> Vec<(String, String, String, String)> {
        let open = self.mind.believed.iter().filter(|(_, belief)| belief.state == "open");
        open.map(|(label, belief)| {
            (label.clone(), belief.order_id.clone(), belief.amount.clone(), belief.price.clone())
        })
        .collect()
    }
}
