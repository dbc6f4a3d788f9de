//! The front without sockets: handles client requests and log events, and produces the client messages.

mod account;
mod advanced;
mod auth;
mod calls;
mod cancels;
mod candles;
mod channels;
mod closing;
mod disturb;
mod exposure;
mod fix;
mod handed;
mod history;
mod http;
mod in_order;
mod kept;
mod linked;
mod liquidation;
mod log;
mod market_data;
mod money_terms;
mod news;
mod options;
mod orders;
mod overviews;
mod peers;
mod protection;
mod quotes;
mod records;
mod session;
mod settlement;
mod statements;
mod tokens;
mod trading;
mod triggers;
mod waiting_logins;
mod wallet;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use tickpath_admission::TrustedPeers;
use tickpath_agent::Counter;
use tickpath_deribit::envelope::ServerTime;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::request::{Refusal, Request, write_refusal, write_refusal_with_limit, write_result};
use tickpath_derivatives::{IndexWalk, Money, TimeMean};
use tickpath_exchange::FrontRequest;
use tickpath_types::{MarketEvent, MatchId, Nanos, OrderEvent, Price};

use crate::account::Account;
use crate::config::FrontSettings;
use crate::connection::{Connection, Frame, TOO_SLOW, Transport};
use crate::fault::Fault;
use crate::faults::Faults;
use crate::json::Json;
use crate::labels::Labels;
use crate::listing::Listing;
use crate::market::{Market, Trade};
use crate::pending::{Group, ReplyTo, RequestId};
use crate::record::{MarketPrices, MoneyTerms, Stamped};

pub(crate) use disturb::MAINTENANCE;
pub(crate) use fix::{FIX_MESSAGE_MAX, FixLink};
pub(crate) use handed::Handed;
pub use http::HttpCall;
pub(crate) use protection::Guard;

/// Maximum number of queued requests to the engine; more are rejected with `matching_engine_queue_full`.
const REQUESTS_MAX: usize = 8_192;
/// The same limit for one account.
const ACCOUNT_REQUESTS_MAX: usize = REQUESTS_MAX / 8;
/// Maximum bytes of a result; a longer one is replaced by `other_error`, and the connection stays open.
pub(crate) const ANSWER_MAX: usize = 3 << 20;
/// Maximum number of trades in a reply and of elements in a notification; the rest comes in notifications.
pub(crate) const ELEMENTS_MAX: usize = 1_000;
/// Time without a confirmation in the log after which an order request is given up, in microseconds.
const ANSWER_US: u64 = 30_000_000;
/// Time in microseconds after which a given-up request is forgotten: the log can no longer contain it.
const LATE_US: u64 = 600_000_000;
/// Time without a message after which a connection is closed, in microseconds.
const IDLE_US: u64 = 600_000_000;
/// Maximum number of ended connections remembered in order to cancel their late orders.
const GONE_MAX: usize = 4_096;

/// Counters of a front, readable from other threads.
#[derive(Default)]
pub struct FrontCounters {
    /// Connections opened.
    pub connections: Counter,
    /// Requests read.
    pub requests: Counter,
    /// Requests rejected, for any reason.
    pub refused: Counter,
    /// Frames that were no valid request: no JSON, too long, a batch, or without an id.
    pub malformed: Counter,
    /// Logins accepted.
    pub logins: Counter,
    /// Logins rejected: unknown keys, wrong secrets, forged or expired signatures, nonces used twice.
    pub logins_refused: Counter,
    /// Logins delayed because of too many failures from the address or for the key.
    pub logins_delayed: Counter,
    /// Requests over the rate limit; the connection is closed.
    pub over_rate: Counter,
    /// FIX messages that exceeded the maximum length; their clients were notified.
    pub too_long: Counter,
    /// Requests that waited for an earlier request on an in-flight order.
    pub waited: Counter,
    /// Clients disconnected because they did not read.
    pub slow_clients: Counter,
    /// Clients disconnected because they were silent.
    pub silent_clients: Counter,
    /// Notifications sent.
    pub notifications: Counter,
    /// Orders without a timely answer.
    pub unanswered: Counter,
    /// Market maker protection triggers.
    pub protections: Counter,
    /// Orders entered to close positions of accounts without enough margin.
    pub liquidations: Counter,
    /// Log commands processed.
    pub commands: Counter,
}

/// An underlying.
struct Index {
    name: String,
    walk: IndexWalk,
    price: Money,
    /// Mean of the last half hour, in 10^-4.
    mean: TimeMean,
}

/// The delivery of an instrument.
struct Delivery {
    /// Place of its index.
    index: usize,
    at_ms: u64,
    price: Money,
}

/// The front: performs no IO and reads no clock. Frames and times come in through `handle_*`, the log through
/// its listener; frames and requests to the venue leave through `poll_*`.
pub struct Front {
    settings: FrontSettings,
    by_name: HashMap<String, usize>,
    by_instrument: HashMap<u16, usize>,
    markets: Vec<Market>,
    indices: Vec<Index>,
    accounts: Vec<Account>,
    by_session: HashMap<u16, usize>,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    auth: tokens::Tokens,
    token_lines: auth::TokenLines,
    labels: Labels,
    /// True while the side files have capacity for the data of further orders.
    has_storage: bool,
    requests: VecDeque<FrontRequest>,
    /// Cancels waiting for capacity in `requests`.
    unsent: cancels::Unsent,
    /// Open orders to cancel because a linked order is filled or closed, by account and number.
    closing: BTreeSet<(usize, u64)>,
    /// Accounts that may have quotes of an ended connection.
    orphaned: BTreeSet<usize>,
    /// Requests waiting for in-flight requests, by connection.
    queued: BTreeMap<u64, in_order::InOrder>,
    /// Number of requests sent to the engine.
    turns: u64,
    groups: HashMap<u64, Group>,
    next_group: u64,
    /// Number of the next untriggered order.
    next_trigger: u64,
    channels: channels::Channels,
    faults: Faults,
    fix: fix::FixState,
    /// Orders whose price follows the index.
    followed: advanced::Followed,
    /// Ended connections whose orders are cancelled.
    gone: VecDeque<u64>,
    /// Events of the command being processed.
    order_events: Vec<OrderEvent>,
    market_events: Vec<MarketEvent>,
    trades: HashMap<MatchId, Trade>,
    /// Decisions recorded before a restart and not applied yet.
    recalled: VecDeque<Stamped>,
    /// Time of the latest applied one, in milliseconds since 1970.
    recalled_ms: u64,
    /// Records to be written, as lines.
    record_lines: Vec<u8>,
    /// Latest recorded prices.
    noted_prices: (Vec<(String, i64)>, Vec<MarketPrices>),
    are_prices_new: bool,
    /// Number of log commands at that time.
    noted_commands: u64,
    /// That time, in milliseconds since 1970.
    noted_ms: u64,
    /// Credits of clients before login.
    peers: peers::Peers,
    /// Addresses from which the secret of each key was correct; failures elsewhere do not delay their logins.
    trusted: TrustedPeers<Ipv4Addr>,
    /// New pairs of key and address, to be written.
    new_trust: VecDeque<(u32, Ipv4Addr)>,
    waiting_logins: waiting_logins::WaitingLogins,
    /// Current fees and initial balances; none before they were first recorded.
    terms: Option<MoneyTerms>,
    /// Fees and initial balances of the configuration file.
    new_terms: MoneyTerms,
    /// The insurance fund: fees of liquidations, by currency.
    fund: BTreeMap<String, Money>,
    deliveries: VecDeque<Delivery>,
    samples: overviews::Samples,
    transfers: VecDeque<wallet::Done>,
    /// Number of transfers.
    transfers_done: u64,
    /// Time up to which positions are settled, in milliseconds since 1970.
    settled_ms: u64,
    next_minute_ms: u64,
    /// True once the log was read up to its end at the start; earlier events are not published.
    is_live: bool,
    now_us: u64,
    next_second_us: u64,
    next_tenth_us: u64,
    counters: Arc<FrontCounters>,
}

/// Result of a request: the reply, or none when it is sent later or never.
type Answer = Result<Option<Vec<u8>>, Fault>;

impl Front {
    /// Creates the front before the first log command. `token_key` is a random secret for generating tokens.
    #[must_use]
    pub fn new(settings: FrontSettings, labels: Labels, token_key: [u8; 32], now_us: u64) -> Front {
        let now = Nanos::from_micros(now_us);
        let indices: Vec<Index> = (0..)
            .zip(&settings.indices)
            .map(|(place, (name, price, step_ppm))| Index {
                name: name.clone(),
                walk: IndexWalk::new(settings.seed.wrapping_add(place), *price, *step_ppm),
                price: Money::ratio((*price).into(), 10_000),
                mean: TimeMean::new(settlement::DELIVERY_WINDOW_MS, 1_801),
            })
            .collect();
        let markets = settings.listings.iter().map(|listing| {
            let mut market = Market::new(indices[listing.index].price, Price(listing.collar.0.0));
            market.remark(&listing.contract, indices[listing.index].price);
            market
        });
        let accounts: Vec<Account> =
            settings.accounts.iter().map(|account| Account::new(account, settings.matching, now)).collect();
        let mut front = Front {
            by_name: settings
                .listings
                .iter()
                .zip(0..)
                .map(|(listing, place)| (listing.name.clone(), place))
                .collect(),
            by_instrument: settings
                .listings
                .iter()
                .zip(0..)
                .map(|(listing, place)| (listing.id.0, place))
                .collect(),
            markets: markets.collect(),
            indices,
            by_session: accounts.iter().zip(0..).map(|(account, place)| (account.session.0, place)).collect(),
            accounts,
            connections: BTreeMap::new(),
            next_connection: 1,
            auth: tokens::Tokens::new(token_key),
            token_lines: auth::TokenLines::default(),
            labels,
            has_storage: true,
            requests: VecDeque::new(),
            unsent: cancels::Unsent::default(),
            closing: BTreeSet::new(),
            orphaned: BTreeSet::new(),
            queued: BTreeMap::new(),
            turns: 0,
            groups: HashMap::new(),
            next_group: 1,
            next_trigger: 1,
            channels: channels::Channels::default(),
            faults: Faults::new(settings.faults.clone()),
            fix: fix::FixState::new(&settings, now_us),
            followed: advanced::Followed::default(),
            gone: VecDeque::new(),
            order_events: Vec::new(),
            market_events: Vec::new(),
            trades: HashMap::new(),
            recalled: VecDeque::new(),
            recalled_ms: 0,
            record_lines: Vec::new(),
            noted_prices: Default::default(),
            are_prices_new: true,
            noted_commands: 0,
            noted_ms: 0,
            peers: peers::Peers::new(now),
            trusted: TrustedPeers::new(settings.keys.len()),
            new_trust: VecDeque::new(),
            waiting_logins: waiting_logins::WaitingLogins::default(),
            terms: None,
            new_terms: Front::file_terms(&settings),
            fund: BTreeMap::new(),
            deliveries: VecDeque::new(),
            samples: overviews::Samples::default(),
            transfers: VecDeque::new(),
            transfers_done: 0,
            settled_ms: 0,
            next_minute_ms: 0,
            is_live: false,
            now_us,
            next_second_us: now_us,
            next_tenth_us: now_us,
            counters: Arc::default(),
            settings,
        };
        front.remark_options();
        front
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Arc<FrontCounters> {
        Arc::clone(&self.counters)
    }

    /// Ends the replay: the log was read up to its end at the start, and clients are served from now on.
    pub fn go_live(&mut self) {
        debug_assert!(self.recalled.is_empty(), "`recall` leaves no record behind the end of the log");
        // Without an earlier record, nothing was due for settlement before now.
        let since_ms = if self.recalled_ms > 0 { self.recalled_ms } else { self.now_ms() };
        self.settled_ms = self.settled_ms.max(settlement::settlement_before(since_ms));
        self.use_file_terms();
        self.is_live = true;
        // The connections of earlier quotes no longer exist.
        self.orphaned.extend(0..self.accounts.len());
        self.put_back_handed();
        self.catch_up_links();
    }

    /// Opens a connection from this machine; returns its number.
    pub fn open(&mut self, transport: Transport, now_us: u64) -> u64 {
        self.open_from(Ipv4Addr::LOCALHOST, transport, now_us)
    }

    /// Opens a connection; returns its number. Before login it shares the credits of the address `peer`.
    pub fn open_from(&mut self, peer: Ipv4Addr, transport: Transport, now_us: u64) -> u64 {
        self.now_us = now_us;
        let number = self.next_connection;
        self.next_connection += 1;
        self.connections.insert(number, Connection::new(transport, peer, now_us));
        self.counters.connections.add(1);
        number
    }

    /// Removes a client's connection.
    pub fn close(&mut self, number: u64, now_us: u64) {
        self.now_us = now_us;
        let Some(connection) = self.connections.remove(&number) else { return };
        self.waiting_logins.forget(number);
        self.channels.leave(number, &connection.topics);
        if connection.transport == Transport::WebSocket && !connection.login.is_empty() {
            self.auth.forget(number);
        }
        self.faults.forget(number);
        self.leave_fix(number);
        if connection.cancels_on_disconnect && connection.transport != Transport::Http {
            self.cancel_on_disconnect_of(number);
        }
        if !connection.quoted.is_empty() {
            self.orphaned.extend(connection.quoted);
            self.cancel_orphaned_quotes();
        }
    }

    fn cancel_on_disconnect_of(&mut self, number: u64) {
        if self.gone.len() == GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(number);
        self.cancel_for_gone();
    }

    /// Handles a frame of a client.
    pub fn handle_frame(&mut self, number: u64, frame: &[u8], now_us: u64) {
        self.now_us = now_us;
        self.handle_request(number, Request::parse(frame), frame);
    }

    /// Handles a client's request; `frame` is its source.
    fn handle_request(&mut self, number: u64, request: Result<Request<'_>, Refusal<'_>>, frame: &[u8]) {
        let now_us = self.now_us;
        let Some(connection) =
            self.connections.get_mut(&number).filter(|connection| connection.end.is_none())
        else {
            return;
        };
        connection.last_in_us = now_us;
        if let Some(heartbeat) = &mut connection.heartbeat {
            heartbeat.asked_us = None;
        }
        let request = match request {
            Ok(request) => request,
            Err(refusal) => {
                self.counters.malformed.add(u64::from(refusal.id.is_none()));
                let id = refusal.id.map(RequestId::from);
                if let Err(fault) = self.charge_refused(number, peers::PublicPool::Any) {
                    let to =
                        ReplyTo { connection: number, id: id.unwrap_or(RequestId::Number(0)), us_in: now_us };
                    return self.reply(&to, Err(fault));
                }
                let mut out = Vec::new();
                let time = self.server_time(now_us);
                write_refusal(&refusal, time, self.settings.testnet, &mut out);
                self.counters.refused.add(1);
                self.push(number, Frame { bytes: out, error: Some(refusal.code.code()) });
                return;
            }
        };
        self.counters.requests.add(1);
        let to = ReplyTo { connection: number, id: request.id.into(), us_in: now_us };
        let disturbed = self.disturb(number, &request, &to);
        match disturbed.unwrap_or_else(|| self.call(number, &request, frame, &to)) {
            Ok(Some(result)) => self.reply(&to, Ok(result)),
            Ok(None) => {}
            Err(fault) => self.reply(&to, Err(fault)),
        }
        self.fill_snapshots(number);
    }

    /// Returns the next message to a client.
    pub fn poll_frame(&mut self, number: u64) -> Option<Frame> {
        self.connections.get_mut(&number)?.pop()
    }

    /// Returns the reason for closing the client, once all its messages are sent.
    #[must_use]
    pub fn poll_end(&self, number: u64) -> Option<&'static str> {
        let connection = self.connections.get(&number)?;
        connection.end.filter(|_| connection.is_drained())
    }

    /// Returns the reason for closing the client, even while messages are queued for it.
    pub(crate) fn end(&self, number: u64) -> Option<&'static str> {
        self.connections.get(&number)?.end
    }

    /// Returns the next request to the venue.
    pub fn poll_request(&mut self) -> Option<FrontRequest> {
        self.send_unsent();
        self.requests.pop_front()
    }

    /// Takes back a request that could not be sent; it is the next one again.
    pub fn give_back(&mut self, request: FrontRequest) {
        self.requests.push_front(request);
    }

    /// Sets whether the side files have capacity for labels and records. Without capacity, orders with new
    /// labels, untriggered orders and linked orders are rejected.
    pub fn set_storage(&mut self, has_room: bool) {
        self.has_storage = has_room;
    }

    /// Returns labels that must be stored before the following requests are sent.
    pub fn poll_labels(&mut self) -> &[String] {
        self.labels.take_new()
    }

    fn server_time(&self, us_in: u64) -> ServerTime {
        ServerTime { us_in, us_out: self.now_us.max(us_in) }
    }

    fn now(&self) -> Nanos {
        Nanos::from_micros(self.now_us)
    }

    const fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn reply(&mut self, to: &ReplyTo, outcome: Result<Vec<u8>, Fault>) {
        if let RequestId::Fix(asked) = &to.id {
            // Completed requests are reported elsewhere; only rejections are sent here.
            if let Some(fault) = outcome.err() {
                self.refuse_fix(to, asked, fault);
            }
            return;
        }
        let (time, testnet) = (self.server_time(to.us_in), self.settings.testnet);
        let mut out = Vec::new();
        let error = match outcome {
            Ok(result) if result.len() <= ANSWER_MAX => {
                write_result(to.id.as_id(), &Json(result), time, testnet, &mut out);
                None
            }
            Ok(_) => {
                self.counters.refused.add(1);
                let refusal = Refusal {
                    id: Some(to.id.as_id()),
                    code: ErrorCode::OtherError,
                    reason: "the answer is longer than 3 MiB: ask for one instrument, or for fewer",
                    param: "",
                };
                write_refusal(&refusal, time, testnet, &mut out);
                Some(refusal.code.code())
            }
            Err(fault) => {
                self.counters.refused.add(1);
                let refusal = Refusal {
                    id: Some(to.id.as_id()),
                    code: fault.code,
                    reason: fault.reason,
                    param: fault.param,
                };
                match fault.limit {
                    Some(limit) => write_refusal_with_limit(&refusal, limit, time, testnet, &mut out),
                    None => write_refusal(&refusal, time, testnet, &mut out),
                }
                Some(fault.code.code())
            }
        };
        if let Some(frame) = self.disturb_reply(to, Frame { bytes: out, error }) {
            self.push(to.connection, frame);
        }
    }

    fn push(&mut self, number: u64, frame: Frame) {
        if let Some(connection) = self.connections.get_mut(&number)
            && connection.end != Some(TOO_SLOW)
            && !connection.push(frame)
        {
            self.counters.slow_clients.add(1);
        }
    }

    fn listing(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    fn listed(&self, place: usize) -> (&Listing, &Market) {
        (&self.settings.listings[place], &self.markets[place])
    }

    /// Does time-driven work; must be called several times per second.
    pub fn handle_time(&mut self, now_us: u64) {
        self.now_us = now_us;
        if !self.is_live {
            return;
        }
        self.send_delayed();
        let is_tenth = now_us >= self.next_tenth_us;
        if is_tenth {
            self.disturb_connections(now_us >= self.next_second_us);
            self.next_tenth_us = now_us + 100_000;
            self.check_waiting_logins();
            self.flush_tenths();
            self.run_fix();
            self.run_heartbeats();
            self.give_up_unanswered();
            self.cancel_for_gone();
            self.cancel_closed_others();
            self.cancel_frozen();
            self.cancel_orphaned_quotes();
        }
        if now_us >= self.next_second_us {
            self.next_second_us = now_us + 1_000_000;
            self.end_day_orders();
            self.step_indices();
            self.flush_seconds();
            self.end_expired_logins();
        }
        if is_tenth {
            self.follow_index();
        }
    }

    /// Returns the time of the next time-driven work, not counting delayed replies.
    #[must_use]
    pub fn next_time_us(&self) -> u64 {
        self.next_tenth_us.min(self.next_second_us)
    }

    fn step_indices(&mut self) {
        for index in &mut self.indices {
            index.price = Money::ratio(index.walk.step().into(), 10_000);
            index.mean.sample(self.now_us / 1_000, index.walk.price());
        }
        self.are_prices_new = true;
        for (market, listing) in self.markets.iter_mut().zip(&self.settings.listings) {
            market.remark(&listing.contract, self.indices[listing.index].price);
            market.day.roll(self.now_us / 1_000);
        }
        self.remark_options();
        self.run_settlements();
        self.note_prices();
        self.fire_triggers();
        self.liquidate();
    }

    /// Gives up unanswered requests. Their orders may still be entered, so the client must query their state.
    fn give_up_unanswered(&mut self) {
        let deadline = self.now_us.saturating_sub(ANSWER_US);
        let mut late = Vec::new();
        for (account, known) in self.accounts.iter_mut().enumerate() {
            while known.pending.front().is_some_and(|pending| pending.sent_us < deadline) {
                late.extend(known.take_pending(0).map(|pending| (account, pending)));
            }
        }
        let forgotten = self.now_us.saturating_sub(LATE_US);
        for known in &mut self.accounts {
            while known.late.pop_front_if(|late| late.sent_us < forgotten).is_some() {}
        }
        let mut modes = Vec::new();
        for known in &mut self.accounts {
            while let Some(reply) = known.mode_replies.pop_front_if(|(to, _)| to.us_in < deadline) {
                modes.push(reply);
            }
        }
        for (to, _) in modes {
            self.counters.unanswered.add(1);
            self.reply(&to, Err(ErrorCode::TimedOut.into()));
        }
        for (account, pending) in late {
            self.give_up_queued(account, &pending);
            self.counters.unanswered.add(1);
            match &pending.reply {
                Some(ReplyTo { connection, id: RequestId::Fix(asked), .. }) => {
                    self.give_up_fix(*connection, asked);
                }
                Some(to) => self.reply(to, Err(ErrorCode::TimedOut.into())),
                None => {}
            }
            if let Some(group) = pending.group {
                self.finish_of_group(group, None);
            }
            self.accounts[account].keep_late(pending);
            self.run_queued(account);
        }
    }
}
