//! Clients that speak FIX 4.4 in Deribit's dialect: the same accounts, orders and markets.
//!
//! Source: Deribit, "FIX API". What a request asks is carried out by the functions that carry out its JSON-RPC twin; here it
//! is read, and the outcome is written. Sequence numbers begin at 1 with each connection and nothing is sent again.

mod account;
mod faults;
mod indices;
mod listing;
mod logon;
mod market_data;
mod mass_status;
mod orders;
mod quotes;
mod reports;
mod trades;

use std::collections::{BTreeMap, HashMap, VecDeque};

use tickpath_deribit::credits::CreditPool;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::number::Decimal;
use tickpath_derivatives::Money;
use tickpath_fix::deribit::LogonClock;
use tickpath_fix::session::{
    BusinessReject, CompId, Header, Listener, LogonDecision, LogonRequest, NoStore, Refusal, Reject,
    SendError, Session, SessionConfig,
};
use tickpath_fix::{
    Body, Decimal as FixDecimal, FieldError, MESSAGE_LEN_MAX, Message, MsgType, Parsed, SessionRejectReason,
    WriteError, Writer,
};
use tickpath_types::Nanos;

use self::indices::IndexFeed;
use self::market_data::Feed;
use self::mass_status::StatusReports;
use super::calls::{Need, allows};
use super::in_order::Asked;
use super::{Front, IDLE_US};
use crate::account::Changes;
use crate::config::FrontSettings;
use crate::connection::{OUT_BYTES_MAX, TOO_SLOW};
use crate::fault::Fault;
use crate::market::{Levels, Trade};
use crate::order::UserTrade;
use crate::pending::{Group, Quoting};
use crate::scope::Access;

/// Longest message of a client, in bytes.
pub(crate) const FIX_MESSAGE_MAX: usize = 32 << 10;
/// Bytes of a request's id that is kept, at most.
const ID_LEN_MAX: usize = 128;
/// A Heartbeat in so long costs nothing.
const HEARTBEAT_US: u64 = 1_000_000;
/// Where the first try to write a message ends.
const MESSAGE_LEN_FIRST: usize = 4 << 10;
/// Longest message without its header, which is added later, in bytes.
const BODY_LEN_MAX: usize = MESSAGE_LEN_MAX - (1 << 10);

/// Who asks something.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    /// The connection.
    number: u64,
    account: usize,
    /// MsgSeqNum of the message.
    sequence: u64,
}

/// What was done for a request.
#[derive(Clone, Copy)]
pub(super) enum FixDone<'a> {
    /// It is about one order, which traded this at once.
    Order { number: u64, trades: &'a [UserTrade] },
    /// These orders are cancelled.
    Many(&'a [u64]),
    /// This became of quotes.
    Quotes(&'a Quoting),
}

impl FixDone<'_> {
    pub(super) fn of(group: &Group) -> FixDone<'_> {
        match &group.quoting {
            Some(quoting) => FixDone::Quotes(quoting),
            None => FixDone::Many(&group.cancelled),
        }
    }
}

/// What the front knows of a client by FIX.
pub(crate) struct FixLink {
    session: Session<NoStore>,
    /// Place of the key that logged on.
    key: usize,
    feeds: Vec<Feed>,
    index_feeds: Vec<IndexFeed>,
    /// Id of the request whose client is told of states of instruments.
    securities: Option<String>,
    /// The same of one instrument.
    statuses: Vec<(String, usize)>,
    /// Id and currency of the request whose client is told of positions.
    positions: Option<(String, String)>,
    /// Ids and instruments of the requests whose client is told of its trades.
    captures: Vec<(String, usize)>,
    /// What mass status requests wait for, oldest first.
    status_reports: VecDeque<StatusReports>,
    /// From when on a Heartbeat costs nothing, in microseconds since 1970.
    next_heartbeat_us: u64,
    /// No reports without a request.
    is_unsubscribed: bool,
    /// Reports of the connection's own orders alone.
    is_own_only: bool,
    /// Each fill is a report of its own.
    has_fills_apart: bool,
}

impl FixLink {
    /// A client that has connected and must log on.
    pub(crate) fn new(now: Nanos) -> FixLink {
        let config = SessionConfig {
            message_len_max: FIX_MESSAGE_MAX,
            output_len: OUT_BYTES_MAX,
            ..SessionConfig::deribit_server()
        };
        let mut session = Session::new(config, NoStore);
        session.accept(now).expect("a new session has no connection");
        FixLink {
            session,
            key: usize::MAX,
            feeds: Vec::new(),
            index_feeds: Vec::new(),
            securities: None,
            statuses: Vec::new(),
            positions: None,
            captures: Vec::new(),
            status_reports: VecDeque::new(),
            next_heartbeat_us: 0,
            is_unsubscribed: false,
            is_own_only: false,
            has_fills_apart: false,
        }
    }
}

/// What the front knows of all clients by FIX.
pub(super) struct FixState {
    /// Connections that are logged on, with their accounts and names.
    up: BTreeMap<u64, (usize, CompId)>,
    /// Of each key.
    clocks: Vec<LogonClock>,
    /// Books as clients have them, by listing; those that somebody follows.
    published: HashMap<usize, Levels>,
    /// The states of instruments when they were told last, by listing.
    states: BTreeMap<usize, u64>,
    /// The report that answered a request just now, by connection and order: it is not told again.
    answered: Option<(u64, u64)>,
    /// Reports written, for their ids.
    reports: u64,
    /// The request that is being done: its connection, MsgSeqNum and type.
    asking: Option<(u64, u64, MsgType)>,
    /// What is sent now is a reply that a fault makes late.
    is_late: bool,
    /// Messages that leave later, in the order of their times, in microseconds since 1970, and whose they are.
    delayed: VecDeque<(u64, u64, Outgoing)>,
}

impl FixState {
    pub(super) fn new(settings: &FrontSettings, now_us: u64) -> FixState {
        FixState {
            up: BTreeMap::new(),
            clocks: logon::clocks(settings, now_us),
            published: HashMap::new(),
            states: BTreeMap::new(),
            answered: None,
            asking: None,
            reports: 0,
            is_late: false,
            delayed: VecDeque::new(),
        }
    }
}

/// What one message did to its session.
#[derive(Default)]
struct Inbox {
    is_for_application: bool,
    asks_to_log_on: bool,
    is_over: bool,
}

impl Listener for Inbox {
    fn on_message(&mut self, _: &Header<'_>, _: &Message<'_>) -> Result<(), Refusal> {
        self.is_for_application = true;
        Ok(())
    }

    fn on_logon_request(&mut self, _: &LogonRequest<'_>) -> LogonDecision {
        self.asks_to_log_on = true;
        LogonDecision::Later
    }

    fn on_logout(&mut self, _: Option<&str>) {
        self.is_over = true;
    }
}

/// A message on its way out, without its header.
pub(super) struct Outgoing {
    msg_type: MsgType,
    /// None where they are longer than any message may be.
    fields: Option<Vec<u8>>,
}

impl Outgoing {
    const fn is_too_long(&self) -> bool {
        self.fields.is_none()
    }
}

impl Front {
    /// Takes what a client by FIX sent; returns how much of it is done with: the caller keeps the rest and appends to it.
    pub fn handle_fix(&mut self, number: u64, bytes: &[u8], now_us: u64) -> usize {
        self.now_us = now_us;
        let mut done = 0;
        loop {
            let rest = &bytes[done..];
            let is_cut = self.faults.outage(number).is_some();
            let link = self.link(number).filter(|link| !is_cut && link.session.close_reason().is_none());
            let Some(link) = link else { return bytes.len() };
            let garbled_before = link.session.stats().garbled;
            match Message::parse_within(rest, FIX_MESSAGE_MAX) {
                Parsed::NeedMore { .. } => return done,
                Parsed::Garbled { .. } => {
                    done += self
                        .with_session(number, |session, now, inbox| session.handle_bytes(now, rest, inbox));
                    let now_garbled = self.link(number).map_or(0, |link| link.session.stats().garbled);
                    self.counters.malformed.add(now_garbled.saturating_sub(garbled_before));
                }
                Parsed::Complete { message, len } => {
                    done += len;
                    self.handle_fix_message(number, &message);
                }
            }
        }
    }

    fn link(&mut self, number: u64) -> Option<&mut FixLink> {
        self.connections.get_mut(&number)?.fix.as_deref_mut()
    }

    fn with_session<T: Default>(
        &mut self,
        number: u64,
        act: impl FnOnce(&mut Session<NoStore>, Nanos, &mut Inbox) -> T,
    ) -> T {
        let now = self.now();
        self.link(number).map(|link| act(&mut link.session, now, &mut Inbox::default())).unwrap_or_default()
    }

    fn handle_fix_message(&mut self, number: u64, message: &Message<'_>) {
        let (now, now_us) = (self.now(), self.now_us);
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.last_in_us = now_us;
        let Some(link) = connection.fix.as_deref_mut() else { return };
        let (mut inbox, was_up) = (Inbox::default(), self.fix.up.contains_key(&number));
        let sequence = link.session.next_in();
        link.session.handle_bytes(now, message.as_bytes(), &mut inbox);
        if inbox.asks_to_log_on {
            self.decide_fix_logon(number, message);
        }
        if inbox.is_over {
            self.log_out_fix(number, message);
        }
        if was_up && !inbox.is_for_application {
            self.charge_for_answer(number, message.msg_type());
        }
        if inbox.is_for_application {
            self.counters.requests.add(1);
            let done = self.handle_fix_request(number, sequence, message);
            self.refuse_if(number, sequence, message, done);
        }
        self.drop_fix_when_over(number);
    }

    /// What a request asks, if its client may.
    fn handle_fix_request(
        &mut self,
        number: u64,
        sequence: u64,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let Some((account, _)) = self.fix.up.get(&number).copied() else { return Ok(()) };
        let caller = Caller { number, account, sequence };
        let refused =
            |reason, text| Refusal::Field { error: FieldError { tag: 0, reason }, text: Some(text) };
        let price = price_of(message.msg_type());
        let is_of_orders = matches!(price, Some((Need::Trade(_), _)));
        let outcome = match price {
            Some((need, pool)) if self.is_fix_allowed(number, need) => Ok(pool),
            Some(_) => Err(refused(SessionRejectReason::OTHER, ErrorCode::Forbidden.message())),
            None => Err(refused(
                SessionRejectReason::INVALID_MSG_TYPE,
                "the venue does not take messages of this type",
            )),
        };
        // What is refused costs as well.
        if !self.charge_fix(number, account, *outcome.as_ref().unwrap_or(&CreditPool::NonMatching)) {
            return Ok(());
        }
        outcome?;
        if is_of_orders && self.may_wait(account, number) {
            let look = match message.msg_type() {
                MsgType::ORDER_CANCEL_REPLACE_REQUEST => self.look_of_edit(account, orders::look_of(message)),
                _ => orders::look_of(message),
            };
            let asked = Asked::Fix(caller);
            let queued = self.queue(number, account, look, asked, message.as_bytes());
            if queued.map_err(|fault| refused(SessionRejectReason::OTHER, fault.code.message()))? {
                return Ok(());
            }
        }
        self.act_by_fix(caller, message)
    }

    /// Whether the key that logged on may do something.
    fn is_fix_allowed(&self, number: u64, need: Need) -> bool {
        self.connections.get(&number).is_some_and(|own| allows(&own.scope, need))
    }

    /// Does what a request asks that waited for others.
    pub(super) fn do_fix_request(&mut self, caller: Caller, message: &Message<'_>) {
        let done = self.act_by_fix(caller, message);
        self.refuse_if(caller.number, caller.sequence, message, done);
    }

    /// What a request waits for did not come.
    pub(super) fn refuse_fix_late(&mut self, caller: Caller, message: &Message<'_>) {
        let reason = SessionRejectReason::OTHER;
        let text = Some(ErrorCode::TimedOut.message());
        let refusal = Refusal::Field { error: FieldError { tag: 0, reason }, text };
        self.refuse_if(caller.number, caller.sequence, message, Err(refusal));
    }

    fn refuse_if(&mut self, number: u64, sequence: u64, message: &Message<'_>, done: Result<(), Refusal>) {
        if let Err(refusal) = done {
            self.counters.refused.add(1);
            self.refuse_fix_message(number, sequence, message, refusal);
        }
    }

    fn act_by_fix(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        self.fix.asking = Some((caller.number, caller.sequence, message.msg_type()));
        let done = self.act_on(caller, message);
        self.fix.asking = None;
        done
    }

    fn act_on(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let Caller { number, account, .. } = caller;
        match message.msg_type() {
            MsgType::NEW_ORDER_SINGLE => self.enter_by_fix(caller, message)?,
            MsgType::ORDER_CANCEL_REPLACE_REQUEST => self.replace_by_fix(caller, message)?,
            MsgType::ORDER_CANCEL_REQUEST => self.cancel_by_fix(caller, message)?,
            MsgType::ORDER_MASS_CANCEL_REQUEST => self.mass_cancel_by_fix(caller, message)?,
            MsgType::ORDER_MASS_STATUS_REQUEST => self.mass_status(caller, message)?,
            MsgType::MASS_QUOTE => self.mass_quote_by_fix(caller, message)?,
            MsgType::QUOTE_CANCEL => self.cancel_quotes_by_fix(caller, message)?,
            MsgType::PROTECTION_LIMITS => self.protection_limits(caller, message)?,
            MsgType::PROTECTION_RESET => self.protection_reset(caller, message)?,
            MsgType::TRADE_CAPTURE_REQUEST => self.trade_capture(caller, message)?,
            MsgType::SECURITY_DEFINITION_REQUEST => self.security_definition(number, message)?,
            MsgType::MARKET_DATA_REQUEST => self.market_data_request(number, message)?,
            MsgType::SECURITY_LIST_REQUEST => self.security_list(number, message)?,
            MsgType::SECURITY_STATUS_REQUEST => self.security_status(number, message)?,
            MsgType::REQUEST_FOR_POSITIONS => self.positions_by_fix(number, account, message)?,
            _ => self.user_request(number, account, message)?,
        }
        Ok(())
    }

    /// Takes credits; as over JSON-RPC a client without any is sent away.
    fn charge_fix(&mut self, number: u64, account: usize, pool: CreditPool) -> bool {
        let is_paid = self.charge(number, Some(account), pool).is_ok();
        if !is_paid {
            self.with_session(number, |session, now, _| {
                session.end_with_reject(now, ErrorCode::TooManyRequests.message());
            });
        }
        is_paid
    }

    /// What the session itself answers or refuses costs as much as a sign of life by JSON-RPC; a Heartbeat does only where there
    /// was another within a second.
    fn charge_for_answer(&mut self, number: u64, msg_type: MsgType) {
        let now_us = self.now_us;
        let Some(link) = self.link(number) else { return };
        if msg_type == MsgType::HEARTBEAT && now_us >= link.next_heartbeat_us {
            link.next_heartbeat_us = now_us + HEARTBEAT_US;
            return;
        }
        if let Some((account, _)) = self.fix.up.get(&number).copied() {
            self.charge_fix(number, account, CreditPool::NonMatching);
        }
    }

    fn refuse_fix_message(&mut self, number: u64, sequence: u64, message: &Message<'_>, refusal: Refusal) {
        let msg_type = message.msg_type();
        let (error, text) = match refusal {
            Refusal::Field { error, text } => (error, text.unwrap_or(error.reason.text())),
            Refusal::Business { text, .. } => {
                (FieldError { tag: 0, reason: SessionRejectReason::OTHER }, text)
            }
        };
        let reject = written(&Reject {
            ref_seq_num: sequence,
            ref_tag_id: Some(u64::from(error.tag)).filter(|tag| *tag != 0),
            ref_msg_type: Some(msg_type.as_str()),
            reason: Some(u64::from(shown_reason(error.reason).0)),
            text: Some(text),
        });
        self.send_fix(number, reject);
    }

    /// Sends a message; a client that does not read until there is no room is given up.
    fn send_fix(&mut self, number: u64, outgoing: Option<Outgoing>) {
        let Some(outgoing) = outgoing else { return };
        let outgoing = match outgoing.is_too_long() {
            true => self.too_long(number, outgoing.msg_type),
            false => Some(outgoing),
        };
        let Some(outgoing) = outgoing else { return };
        let Some(Outgoing { msg_type, fields }) = self.delay_fix(number, outgoing) else { return };
        let Some(fields) = fields else { return };
        let sent = self.with_session(number, |session, now, _| {
            let sent = session.send_with(now, msg_type, |writer| writer.fields(&fields));
            if sent == Err(SendError::Full) {
                session.end_with_reject(now, TOO_SLOW);
            }
            sent.err()
        });
        match sent {
            Some(SendError::Full) => self.drop_fix_when_over(number),
            Some(_) => {}
            None => self.counters.notifications.add(1),
        }
    }

    /// What is sent in the place of a message that is longer than any may be: whoever goes on without it would not know.
    fn too_long(&mut self, number: u64, msg_type: MsgType) -> Option<Outgoing> {
        self.counters.too_long.add(1);
        let Some((_, sequence, asked)) = self.fix.asking.filter(|(own, ..)| *own == number) else {
            return written(&BusinessReject {
                ref_msg_type: msg_type.as_str(),
                reason: 0,
                ref_seq_num: None,
                ref_id: None,
                text: Some("what was to be told is longer than 1 MiB and is left out: ask for the state"),
            });
        };
        written(&Reject {
            ref_seq_num: sequence,
            ref_tag_id: None,
            ref_msg_type: Some(asked.as_str()),
            reason: Some(u64::from(SessionRejectReason::OTHER.0)),
            text: Some("the answer is longer than 1 MiB: ask for less at a time"),
        })
    }

    /// What waits to be sent to a client by FIX.
    #[must_use]
    pub fn fix_output(&self, number: u64) -> &[u8] {
        let link = self.connections.get(&number).and_then(|connection| connection.fix.as_deref());
        link.map_or(&[], |link| link.session.output())
    }

    /// So much of [`fix_output`](Front::fix_output) was sent.
    pub fn handle_fix_sent(&mut self, number: u64, count: usize, now_us: u64) {
        self.now_us = now_us;
        self.with_session(number, |session, now, _| session.handle_sent(now, count));
        self.send_status_reports(number);
    }

    /// True once the client's connection is to be closed, when it has what waits or does not take it.
    #[must_use]
    pub fn is_fix_over(&self, number: u64) -> bool {
        let link = self.connections.get(&number).and_then(|connection| connection.fix.as_deref());
        link.is_none_or(|link| link.session.close_reason().is_some())
    }

    /// The venue stops: clients by FIX are told.
    pub fn end_fix(&mut self, now_us: u64) {
        self.now_us = now_us;
        let numbers: Vec<u64> = self.connections.keys().copied().collect();
        for number in numbers {
            self.with_session(number, |session, now, _| session.end(now, "the venue stops"));
        }
    }

    /// What is due: heartbeats, and the best levels of books for who wants them each time.
    pub(super) fn run_fix(&mut self) {
        // What the venue decides itself comes with no command.
        let followed: Vec<usize> = self.fix.states.keys().copied().collect();
        self.tell_states(&followed);
        let numbers: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.fix.is_some())
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            self.miss_fix_heartbeat(number);
            self.with_session(number, |session, now, _| {
                if session.poll_timeout().is_some_and(|due| due <= now) {
                    session.handle_timeout(now);
                }
            });
            self.end_idle_fix(number);
            self.flush_feeds(number);
            self.drop_fix_when_over(number);
        }
    }

    /// A client that asked for no heartbeats is left when it is silent for as long as others may be; and a connection ends
    /// that is to end for another reason.
    fn end_idle_fix(&mut self, number: u64) {
        let now_us = self.now_us;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let is_idle = now_us.saturating_sub(connection.last_in_us) >= IDLE_US;
        if is_idle && connection.end.is_none() {
            connection.end = Some("idle");
            self.counters.silent_clients.add(1);
        }
        if let Some(reason) = connection.end
            && !self.is_fix_over(number)
        {
            self.with_session(number, |session, now, _| session.end(now, reason));
        }
    }

    /// A session that is over is told of nothing more.
    fn drop_fix_when_over(&mut self, number: u64) {
        use tickpath_fix::session::CloseReason;
        let reason = self.link(number).and_then(|link| link.session.close_reason());
        if reason.is_some() && self.fix.up.contains_key(&number) {
            match reason {
                Some(CloseReason::PeerSilent | CloseReason::GapNotFilled) => {
                    self.counters.silent_clients.add(1)
                }
                // What the session says itself may be what there is no room for.
                Some(CloseReason::OutputFull | CloseReason::Ended(TOO_SLOW)) => {
                    self.counters.slow_clients.add(1)
                }
                _ => {}
            }
            self.leave_fix(number);
        }
    }

    /// A client by FIX is gone or logged out.
    pub(super) fn leave_fix(&mut self, number: u64) {
        self.fix.up.remove(&number);
        if let Some(link) = self.link(number) {
            (link.securities, link.positions) = (None, None);
            link.feeds.clear();
            link.index_feeds.clear();
            link.captures.clear();
            link.status_reports.clear();
            link.statuses.clear();
        }
        self.forget_books();
    }

    /// Tells clients by FIX what a command did.
    pub(super) fn tell_fix(
        &mut self,
        touched: &[usize],
        trades: &[(usize, Trade)],
        changes: &BTreeMap<usize, Changes>,
    ) {
        let answered = self.fix.answered.take();
        if self.fix.up.is_empty() {
            return;
        }
        self.tell_feeds(touched, trades);
        self.tell_states(touched);
        let clients: Vec<(u64, usize)> =
            self.fix.up.iter().map(|(number, (account, _))| (*number, *account)).collect();
        for (number, account) in clients {
            // Who may not ask for orders is not told of them.
            if !self.is_fix_allowed(number, Need::Trade(Access::Read)) {
                continue;
            }
            if let Some(changes) = changes.get(&account).filter(|changes| !changes.is_empty()) {
                self.tell_reports(number, account, changes, answered);
                self.tell_captures(number, changes);
                self.tell_positions(number, account, changes);
            }
        }
    }
}

/// What a message needs and costs; none of one that is not taken.
fn price_of(msg_type: MsgType) -> Option<(Need, CreditPool)> {
    Some(match msg_type {
        MsgType::NEW_ORDER_SINGLE | MsgType::ORDER_CANCEL_REPLACE_REQUEST | MsgType::ORDER_CANCEL_REQUEST => {
            (Need::Trade(Access::ReadWrite), CreditPool::Matching)
        }
        MsgType::MASS_QUOTE | MsgType::QUOTE_CANCEL => (Need::Trade(Access::ReadWrite), CreditPool::Quotes),
        MsgType::PROTECTION_LIMITS | MsgType::PROTECTION_RESET => {
            (Need::Trade(Access::ReadWrite), CreditPool::NonMatching)
        }
        MsgType::ORDER_MASS_CANCEL_REQUEST => (Need::Trade(Access::ReadWrite), CreditPool::CancelAll),
        MsgType::ORDER_MASS_STATUS_REQUEST
        | MsgType::REQUEST_FOR_POSITIONS
        | MsgType::TRADE_CAPTURE_REQUEST => (Need::Trade(Access::Read), CreditPool::NonMatching),
        MsgType::USER_REQUEST => (Need::Account(Access::Read), CreditPool::NonMatching),
        MsgType::SECURITY_LIST_REQUEST => (Need::Login, CreditPool::GetInstruments),
        MsgType::MARKET_DATA_REQUEST => (Need::Login, CreditPool::Subscribe),
        MsgType::SECURITY_STATUS_REQUEST | MsgType::SECURITY_DEFINITION_REQUEST => {
            (Need::Login, CreditPool::NonMatching)
        }
        _ => return None,
    })
}

/// A message without its header, [too long](Outgoing::is_too_long) where no message may be as long; none when a text of it
/// has a separator.
fn written<'a, B: Body<'a>>(body: &B) -> Option<Outgoing> {
    let mut len = MESSAGE_LEN_FIRST;
    loop {
        let mut bytes = vec![0; len];
        let mut writer = Writer::new(&mut bytes, B::MSG_TYPE);
        body.encode(&mut writer);
        match writer.into_fields() {
            Ok(found) => {
                bytes.truncate(found.end);
                bytes.drain(..found.start);
                return Some(Outgoing { msg_type: B::MSG_TYPE, fields: Some(bytes) });
            }
            Err(WriteError::BufferTooShort { .. }) if len < BODY_LEN_MAX => len = (len * 4).min(BODY_LEN_MAX),
            Err(WriteError::BufferTooShort { .. }) => {
                return Some(Outgoing { msg_type: B::MSG_TYPE, fields: None });
            }
            Err(_) => return None,
        }
    }
}

/// A text that a field may have: not empty, without a separator.
fn text(text: &str) -> Option<&str> {
    (!text.is_empty() && !text.contains('\u{1}')).then_some(text)
}

/// An id that the front keeps has at most so many bytes.
fn check_id(id: &str, tag: u32) -> Result<(), FieldError> {
    if id.len() > ID_LEN_MAX { Err(out_of_range(tag)) } else { Ok(()) }
}

/// The reasons that Deribit gives: a wrong value, a type that is not taken, and all others.
fn shown_reason(reason: SessionRejectReason) -> SessionRejectReason {
    match reason {
        SessionRejectReason::BAD_FORMAT
        | SessionRejectReason::OUT_OF_RANGE
        | SessionRejectReason::NO_VALUE => SessionRejectReason::BAD_FORMAT,
        SessionRejectReason::INVALID_MSG_TYPE => reason,
        _ => SessionRejectReason::OTHER,
    }
}

/// What a request lacks.
const fn missing(tag: u32) -> FieldError {
    FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING }
}

/// A value that is none of those allowed.
const fn out_of_range(tag: u32) -> FieldError {
    FieldError { tag, reason: SessionRejectReason::OUT_OF_RANGE }
}

/// A client's number as JSON-RPC has it.
fn number_of(decimal: FixDecimal, tag: u32) -> Result<Decimal, FieldError> {
    let decimal = decimal.normalized();
    Decimal::new(decimal.mantissa(), decimal.scale()).ok_or(out_of_range(tag))
}

fn decimal_of(decimal: Decimal) -> FixDecimal {
    FixDecimal::new(decimal.mantissa(), decimal.scale())
}

/// Money with eight digits after the point, as figures are shown.
fn figure_of(money: Money) -> FixDecimal {
    decimal_of(crate::listing::figure(money).decimal())
}

/// Why a request was refused, in Deribit's words.
fn words_of(fault: &Fault) -> String {
    let message = fault.code.message();
    match (fault.limit, fault.param, fault.reason) {
        (Some(limit), ..) => format!("{message} {}", decimal_of(limit)),
        (None, "", "") => message.to_owned(),
        (None, "", reason) => format!("{message}: {reason}"),
        (None, param, reason) => format!("{message}: {param}: {reason}"),
    }
}
