//! The core between a client port and a venue port that only record its outputs.

use tickpath_deribit::envelope::{Id, Inbound, write_request};
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{RequestError, SessionEvent};
use tickpath_fix::{Message, Parsed};
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway_core::Control;
use tickpath_gateway_core::label::LabelMark;
use tickpath_gateway_core::{Core, EventSink, Life, MARKET_STREAMS_MAX, Policy, Venue};
use tickpath_gateway_protocol::{
    AckStatus, Body, CancelOrder, CreateOrder, ErrorCode, Event, ModifyOrder, OrderAck, OrderStatus,
    OrderType, OrderUpdate, QuoteAck, Request, RequestBody, SessionId, Side, TimeInForce,
};
use tickpath_types::Nanos;

/// Index of the account's connection.
pub const TRADING: usize = MARKET_STREAMS_MAX;
/// Index of the account's FIX session, if its orders use FIX.
pub const ENTRY: usize = TRADING + 1;
/// Number of the client that is connected from the start.
pub const CLIENT: u32 = 1;
/// The gateway instance in labels.
pub const LIFE: u64 = 777;
const NO_FUNDS: &str = r#"{"summaries":[]}"#;
const TEXT: &str = "[venue]\nws_uri = 'ws://127.0.0.1:1/'\nrequest_timeout = '5s'\n\
    [accounts.A1]\nlogin = 'anna'\nsecret = 'test'\n[users.other]\npassword = 'test'\naccounts = ['A1']\n\
    [users.trader]\npassword = 'test'\naccounts = ['A1']\nrequest_limit = 100\n";
/// The venue's instruments.
pub const INSTRUMENTS: &str = r#"[{"instrument_name":"BTC-PERPETUAL","kind":"future","settlement_period":"perpetual","instrument_type":"reversed",
  "base_currency":"BTC","quote_currency":"USD","settlement_currency":"BTC","tick_size":0.5,"tick_size_steps":[],
  "min_trade_amount":10,"contract_size":10,"is_active":true,"state":"open","expiration_timestamp":32503708800000},
 {"instrument_name":"ETH_USDC-PERPETUAL","kind":"future","settlement_period":"perpetual","instrument_type":"linear",
  "base_currency":"ETH","quote_currency":"USDC","settlement_currency":"USDC","tick_size":0.05,
  "min_trade_amount":0.001,"contract_size":0.001,"is_active":true,"state":"open"}]"#;

/// A request sent to the venue.
#[derive(Clone, Debug)]
pub struct Asked {
    pub stream: usize,
    pub id: i64,
    pub method: Method,
    pub text: String,
}

/// A FIX message sent to the venue, with `|` as the separator, and its MsgSeqNum.
#[derive(Clone, Debug)]
pub struct AskedByFix {
    pub stream: usize,
    pub sequence: i64,
    pub text: String,
}

#[derive(Default)]
pub struct FakeVenue {
    pub asked: Vec<Asked>,
    pub fix: Vec<AskedByFix>,
    pub subscribed: Vec<String>,
    pub resubscribed: Vec<String>,
    /// Channels that it refuses.
    pub refused_channels: Vec<String>,
    /// It has not answered the subscriptions yet.
    pub is_settling: bool,
    /// Number of requests that the rate limit allows.
    pub left: Option<u64>,
    /// The same for FIX sessions.
    pub left_by_fix: Option<u64>,
    /// Error of the next request.
    pub refusal: Option<RequestError>,
    /// The request fails only when it is sent, after a successful check.
    pub is_refusal_late: bool,
    /// Number of requests warmed up.
    pub rehearsed: usize,
    is_rehearsal: bool,
    next_id: i64,
}

impl Venue for FakeVenue {
    fn request<'a>(
        &mut self,
        _: Nanos,
        stream: usize,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        if self.is_rehearsal {
            self.rehearsed += 1;
            return Ok(0);
        }
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        self.next_id += 1;
        let mut out = Vec::new();
        write_request(Id::Number(self.next_id), method, params, &mut out);
        self.asked.push(Asked { stream, id: self.next_id, method, text: String::from_utf8(out).unwrap() });
        Ok(self.next_id)
    }

    fn check(&mut self, _: Nanos, _: usize, _: Method) -> Result<(), RequestError> {
        if self.is_refusal_late || self.is_rehearsal {
            return Ok(());
        }
        self.refusal.take().map_or(Ok(()), Err)
    }

    fn send_fix<'a>(
        &mut self,
        _: Nanos,
        stream: usize,
        body: &impl tickpath_fix::Body<'a>,
    ) -> Result<i64, RequestError> {
        if self.is_rehearsal {
            self.rehearsed += 1;
            return Ok(0);
        }
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        // The Logon has sequence number 1.
        let sequence = self.fix.len() as i64 + 2;
        let mut bytes = [0; 1024];
        let len = body.write_bare(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..len]).unwrap().replace('\u{1}', "|");
        self.fix.push(AskedByFix { stream, sequence, text });
        Ok(sequence)
    }

    fn set_rehearsal(&mut self, is_rehearsal: bool) {
        self.is_rehearsal = is_rehearsal;
    }

    fn subscribe(&mut self, _: usize, channel: &str) {
        self.subscribed.push(channel.to_owned());
    }

    fn unsubscribe(&mut self, _: usize, channel: &str) {
        self.subscribed.retain(|known| known != channel);
    }

    fn resubscribe(&mut self, _: usize, channel: &str) {
        self.resubscribed.push(channel.to_owned());
    }

    fn connect(&mut self, _: usize, _: Nanos) {}

    fn requests_left(&self, stream: usize, _: Nanos) -> Option<u64> {
        if stream == ENTRY { self.left_by_fix } else { self.left }
    }

    fn settled_channels(&self, _: usize) -> Option<usize> {
        (!self.is_settling).then_some(self.subscribed.len())
    }

    fn is_refused(&self, _: usize, channel: &str) -> bool {
        self.refused_channels.iter().any(|refused| refused == channel)
    }
}

#[derive(Default)]
pub struct FakeDoor {
    pub sent: Vec<(u32, Event)>,
    pub broadcast: Vec<Event>,
    pub followed: Vec<(u32, u32)>,
}

impl EventSink for FakeDoor {
    fn send(&mut self, client: u32, event: Event) {
        self.sent.push((client, event));
    }

    fn broadcast(&mut self, event: Event) {
        self.broadcast.push(event);
    }

    fn follow(&mut self, client: u32, symbol: u32) {
        self.followed.push((client, symbol));
    }

    fn room(&self, _: u32) -> usize {
        10_000
    }
}

pub struct Rig {
    pub core: Core,
    pub control: Control,
    pub door: FakeDoor,
    pub venue: FakeVenue,
    pub now: Nanos,
}

impl Rig {
    /// A core with one account and the users `trader` and `other`, without any state from the venue.
    pub fn new(more: &str) -> Rig {
        Rig::of("", "", more)
    }

    /// A rig in a dry run.
    pub fn dry(first: &str) -> Rig {
        Rig::dry_at(first, "[]")
    }

    /// A rig in a dry run, at a venue with these orders.
    pub fn dry_at(first: &str, orders: &str) -> Rig {
        let mut rig = Rig::of(first, "", "");
        rig.bring_up(orders);
        rig
    }

    /// A rig in a dry run, with more keys for the user.
    pub fn dry_with(more: &str) -> Rig {
        let mut rig = Rig::of("dry_run = true\n", "", more);
        rig.bring_up("[]");
        rig
    }

    /// A rig without any state from the venue, with more keys for the venue.
    pub fn with_venue(venue: &str) -> Rig {
        Rig::of("", venue, "")
    }

    fn of(first: &str, venue: &str, more: &str) -> Rig {
        let text = TEXT.replace("[accounts.A1]", &format!("{venue}[accounts.A1]"));
        Rig::made(&format!("name = 'test'\n{first}{text}{more}\n"))
    }

    fn made(text: &str) -> Rig {
        let settings = GatewayConfig::parse("g.toml", text).unwrap().settings().unwrap();
        let life = Life { session: SessionId([1, 2]), label_session: LIFE, seed: 5, ahead_ns: 0 };
        let (policy, control) = Policy::new(&settings);
        let core = Core::new(settings, life, policy);
        let now = Nanos::from_secs(1_800_000_000);
        Rig { core, control, door: FakeDoor::default(), venue: FakeVenue::default(), now }
    }

    /// A rig with everything ready, and a client of `trader`.
    pub fn ready() -> Rig {
        Rig::ready_with("", "[]")
    }

    /// The same, with more configuration, at a venue with these orders.
    pub fn ready_with(more: &str, orders: &str) -> Rig {
        let mut rig = Rig::new(more);
        rig.bring_up(orders);
        rig
    }

    /// Makes everything ready, and connects a client of `trader`.
    pub fn bring_up(&mut self, orders: &str) {
        self.bring_up_with(orders, "[]", NO_FUNDS);
    }

    /// The same at a venue with these positions and funds.
    pub fn bring_up_with(&mut self, orders: &str, positions: &str, funds: &str) {
        self.listen(orders, positions, funds);
        assert_eq!(self.core.ready_accounts(), 1);
    }

    /// A rig whose patterns match none of the venue's instruments, with everything ready.
    pub fn listening_to_nothing() -> Rig {
        let text = format!("name = 'test'\n{TEXT}[symbols]\ninclude = 'DOGE'\n");
        let mut rig = Rig::made(&text);
        rig.bring_up("[]");
        rig
    }

    /// A rig with orders over FIX, with everything ready except the FIX session.
    pub fn by_fix() -> Rig {
        let mut rig = Rig::with_venue("transport = 'fix'\nfix_uri = 'tcp://127.0.0.1:2'\n");
        rig.listen("[]", "[]", NO_FUNDS);
        rig
    }

    /// Delivers a FIX message of the venue, with `|` as the separator; BodyLength and CheckSum are added.
    pub fn says(&mut self, body: &str) {
        let body = body.replace('|', "\u{1}");
        let text = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
        let sum = text.bytes().fold(0_u8, u8::wrapping_add);
        let text = format!("{text}10={sum:03}\u{1}");
        let Parsed::Complete { message, .. } = Message::parse(text.as_bytes()) else { panic!("{text}") };
        self.core.handle_fix(ENTRY, self.now, &message, &mut self.door);
        self.poll();
    }

    fn listen(&mut self, orders: &str, positions: &str, funds: &str) {
        let user = self.core.user("trader").unwrap();
        self.core.handle_join(CLIENT, user, true);
        self.event(0, SessionEvent::Ready);
        self.poll();
        self.reply(Method::GetInstruments, INSTRUMENTS);
        self.poll();
        self.log_in_with(orders, positions, funds);
    }

    /// Connects the account again; the venue reports its orders.
    pub fn log_in(&mut self, orders: &str) {
        self.log_in_with(orders, "[]", NO_FUNDS);
    }

    /// The same with positions and funds.
    pub fn log_in_with(&mut self, orders: &str, positions: &str, funds: &str) {
        self.event(TRADING, SessionEvent::Ready);
        self.poll();
        self.reply(Method::GetOpenOrders, orders);
        self.poll();
        self.reply(Method::GetPositions, positions);
        self.poll();
        self.reply(Method::GetAccountSummaries, funds);
        self.poll();
    }

    /// Loses the account's connection; the core first gets the unanswered requests.
    pub fn lose(&mut self, unanswered: &[i64]) {
        for id in unanswered {
            self.core.handle_unanswered(TRADING, *id, true, self.now, &mut self.door);
        }
        self.core.handle_lost(TRADING, self.now, &mut self.door);
        self.poll();
    }

    /// Connects a client of a user.
    pub fn join(&mut self, client: u32, user: &str, may_trade: bool) {
        let user = self.core.user(user).unwrap();
        self.core.handle_join(client, user, may_trade);
        self.poll();
    }

    pub fn event(&mut self, stream: usize, event: SessionEvent<'_>) {
        self.core.handle_event(stream, self.now, event, &mut self.door);
    }

    pub fn poll(&mut self) {
        for _ in 0..8 {
            self.core.poll(self.now, &mut self.door, &mut self.venue);
        }
    }

    pub fn pass(&mut self, time: Nanos) {
        self.now = self.now + time;
        self.poll();
    }

    /// The last request of a method.
    pub fn last(&self, method: Method) -> Asked {
        let found = self.venue.asked.iter().rev().find(|asked| asked.method == method);
        found.unwrap_or_else(|| panic!("{method} was not asked, but {:#?}", self.venue.asked)).clone()
    }

    pub fn count(&self, method: Method) -> usize {
        self.venue.asked.iter().filter(|asked| asked.method == method).count()
    }

    /// Answers the last request of a method.
    pub fn reply(&mut self, method: Method, result: &str) {
        let asked = self.last(method);
        self.answer(&asked, &format!("\"result\":{result}"));
    }

    pub fn refuse(&mut self, method: Method, code: i64, message: &str) {
        let asked = self.last(method);
        self.answer(&asked, &format!(r#""error":{{"code":{code},"message":"{message}"}}"#));
    }

    pub fn answer(&mut self, asked: &Asked, outcome: &str) {
        let us = self.now.0 / 1_000;
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},{outcome},"usIn":{us},"usOut":{us},"usDiff":0,"testnet":true}}"#,
            asked.id
        );
        let inbound = self.core.read(asked.stream, &text).unwrap();
        let Inbound::Response(response) = inbound else { panic!("{text}") };
        let event = SessionEvent::Reply { id: asked.id, method: asked.method, response };
        self.core.handle_event(asked.stream, self.now, event, &mut self.door);
        self.poll();
    }

    /// Delivers data of a channel.
    pub fn news(&mut self, stream: usize, channel: &str, data: &str) {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"{channel}","data":{data}}}}}"#
        );
        let inbound = self.core.read(stream, &text).unwrap();
        let Inbound::Notification(notification) = inbound else { panic!("{text}") };
        self.core.handle_event(stream, self.now, SessionEvent::Notification(notification), &mut self.door);
        self.poll();
    }

    pub fn changes(&mut self, order: &str, trades: &str) {
        let data = format!(
            r#"{{"instrument_name":"BTC-PERPETUAL","orders":[{order}],"trades":{trades},"positions":[]}}"#
        );
        self.news(TRADING, "user.changes.any.any.raw", &data);
    }

    pub fn request<B: RequestBody>(&mut self, client: u32, id: u64, symbol: u32, body: &B) {
        let mut request = Request::of(body);
        (request.header.account, request.header.symbol) = (1, symbol);
        (request.header.client_order_id, request.header.request_id) = (id, 1);
        self.core.handle_request(self.now, client, &request, &mut self.door, &mut self.venue);
    }

    pub fn create(&mut self, id: u64) {
        self.request(CLIENT, id, 1, &limit("100", "59000"));
    }

    pub fn modify(&mut self, id: u64, quantity: &str, price: &str) {
        let change = ModifyOrder {
            price: price.parse().unwrap(),
            quantity: quantity.parse().unwrap(),
            ..ModifyOrder::default()
        };
        self.request(CLIENT, id, 1, &change);
    }

    pub fn cancel(&mut self, id: u64) {
        self.request(CLIENT, id, 1, &CancelOrder::default());
    }

    /// Enters an order, which the venue accepts.
    pub fn working(&mut self, id: u64) {
        self.create(id);
        let order = self.order(id, "open", 0, 1);
        self.reply(Method::Buy, &format!(r#"{{"order":{order},"trades":[]}}"#));
        assert_eq!(self.status(id), Some(OrderStatus::WORKING));
    }

    pub fn label(&self, id: u64) -> String {
        let gateway_id = tickpath_gateway_core::orders::FIRST_ORDER_ID + id - 1001;
        LabelMark::new("test", LIFE).label(gateway_id, id, "trader").as_str().to_owned()
    }

    /// The venue's message about the order of a client order id.
    pub fn order(&self, id: u64, state: &str, filled: i64, updated: u64) -> String {
        order_text(&self.label(id), &format!("V-{id}"), state, filled, updated)
    }

    pub fn status(&self, id: u64) -> Option<OrderStatus> {
        self.statuses(id).last().copied()
    }

    pub fn statuses(&self, id: u64) -> Vec<OrderStatus> {
        self.all::<OrderUpdate>()
            .filter(|order| order.client_order_id == id)
            .map(|order| order.status)
            .collect()
    }

    pub fn acks(&self, id: u64) -> Vec<AckStatus> {
        self.all::<OrderAck>().filter(|ack| ack.client_order_id == id).map(|ack| ack.status).collect()
    }

    /// Acks of quotes and of cancel-alls.
    pub fn quote_acks(&self) -> Vec<QuoteAck> {
        self.door.sent.iter().filter_map(|(_, event)| event.quote_ack()).collect()
    }

    /// Error of the last rejection.
    pub fn error(&self) -> ErrorCode {
        self.all::<OrderAck>().last().unwrap().error
    }

    pub fn all<B: Body>(&self) -> impl Iterator<Item = B> + '_ {
        self.door.sent.iter().filter_map(|(_, event)| event.body())
    }
}

pub fn order_text(label: &str, order_id: &str, state: &str, filled: i64, updated: u64) -> String {
    format!(
        r#"{{"label":"{label}","price":59000,"user_id":1,"amount":100,"direction":"buy","time_in_force":"good_til_cancelled",
        "instrument_name":"BTC-PERPETUAL","web":false,"api":true,"order_id":"{order_id}","creation_timestamp":1,"replaced":false,
        "filled_amount":{filled},"last_update_timestamp":{updated},"post_only":false,"reduce_only":false,"average_price":59000,
        "mmp":false,"order_state":"{state}","order_type":"limit","is_liquidation":false,"risk_reducing":false}}"#
    )
}

pub fn trade_text(label: &str, order_id: &str, trade_id: &str, amount: i64) -> String {
    format!(
        r#"{{"label":"{label}","timestamp":5,"state":"open","price":59000,"amount":{amount},"direction":"buy",
        "instrument_name":"BTC-PERPETUAL","trade_seq":1,"order_id":"{order_id}","trade_id":"{trade_id}","fee":0.00001,
        "fee_currency":"BTC","liquidity":"M","post_only":false,"reduce_only":false,"api":true,"mmp":false,"risk_reducing":false}}"#
    )
}

pub fn limit(quantity: &str, price: &str) -> CreateOrder {
    CreateOrder {
        price: price.parse().unwrap(),
        quantity: quantity.parse().unwrap(),
        side: Side::BUY,
        order_type: OrderType::LIMIT,
        time_in_force: TimeInForce::GTC,
        ..CreateOrder::default()
    }
}
