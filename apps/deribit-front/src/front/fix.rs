//! Clients that use FIX 4.4 in Deribit's dialect: the same accounts, orders and markets.
//!
//! Source: Deribit, "FIX API". This module decodes requests, calls the functions that JSON-RPC uses, and
//! encodes the outcome. Sequence numbers begin at 1 with each connection, and messages are not resent.

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

/// Maximum length of a client message, in bytes.
pub(crate) const FIX_MESSAGE_MAX: usize = 32 << 10;
/// Maximum length of a stored request id, in bytes.
const ID_LEN_MAX: usize = 128;
/// Period in which one Heartbeat is free, in microseconds.
const HEARTBEAT_US: u64 = 1_000_000;
/// First buffer size for encoding a message, in bytes.
const MESSAGE_LEN_FIRST: usize = 4 << 10;
/// Maximum message length without the header, which is added later, in bytes.
const BODY_LEN_MAX: usize = MESSAGE_LEN_MAX - (1 << 10);

/// Sender of a request.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    /// Number of the connection.
    number: u64,
    account: usize,
    /// MsgSeqNum of the message.
    sequence: u64,
}

/// Outcome of a request.
#[derive(Clone, Copy)]
pub(super) enum FixDone<'a> {
    /// One order, with its immediate trades.
    Order { number: u64, trades: &'a [UserTrade] },
    /// The cancelled orders.
    Many(&'a [u64]),
    /// The outcome of a mass quote or quote cancel.
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

/// FIX state of one connection.
pub(crate) struct FixLink {
    session: Session<NoStore>,
    /// Place of the key that logged on.
    key: usize,
    feeds: Vec<Feed>,
    index_feeds: Vec<IndexFeed>,
    /// Request id of the subscription to all instrument states.
    securities: Option<String>,
    /// Request ids of the subscriptions to the state of one instrument, with its place.
    statuses: Vec<(String, usize)>,
    /// Request id and currency of the position subscription.
    positions: Option<(String, String)>,
    /// Request ids and instruments of the trade capture subscriptions.
    captures: Vec<(String, usize)>,
    /// Pending mass status reports, oldest first.
    status_reports: VecDeque<StatusReports>,
    /// Time from which the next Heartbeat is free, in microseconds since 1970.
    next_heartbeat_us: u64,
    /// True if reports are sent only for requests.
    is_unsubscribed: bool,
    /// True if only orders of this connection are reported.
    is_own_only: bool,
    /// True if each fill gets a separate report.
    has_fills_apart: bool,
}

impl FixLink {
    /// Creates the state of a new connection, which must log on.
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

/// FIX state shared by all connections.
pub(super) struct FixState {
    /// Logged-on connections with their account and CompID.
    up: BTreeMap<u64, (usize, CompId)>,
    /// Logon clock of each key.
    clocks: Vec<LogonClock>,
    /// Books as the subscribers know them, by the place of the listing; only those with subscribers.
    published: HashMap<usize, Levels>,
    /// Latest published states of instruments, by the place of the listing.
    states: BTreeMap<usize, u64>,
    /// Connection and order of the report that already answered the current request.
    answered: Option<(u64, u64)>,
    /// Number of reports written, used for report ids.
    reports: u64,
    /// Current request: its connection, MsgSeqNum and type.
    asking: Option<(u64, u64, MsgType)>,
    /// True while a reply is sent that a fault delays.
    is_late: bool,
    /// Delayed messages in time order: time in microseconds since 1970, connection and message.
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

/// Effects of one message on its session.
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

/// An outbound message without its header.
pub(super) struct Outgoing {
    msg_type: MsgType,
    /// Encoded fields; none if the message would exceed the maximum length.
    fields: Option<Vec<u8>>,
}

impl Outgoing {
    const fn is_too_long(&self) -> bool {
        self.fields.is_none()
    }
}

impl Front {
    /// Handles bytes of a FIX client; returns the number of bytes consumed. The caller keeps the rest.
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

    /// Handles a request, if its client has the access right.
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
        // A rejected request costs credits too.
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

    /// Returns true if the key that logged on has the access right.
    fn is_fix_allowed(&self, number: u64, need: Need) -> bool {
        self.connections.get(&number).is_some_and(|own| allows(&own.scope, need))
    }

    /// Handles a request that waited for others.
    pub(super) fn do_fix_request(&mut self, caller: Caller, message: &Message<'_>) {
        let done = self.act_by_fix(caller, message);
        self.refuse_if(caller.number, caller.sequence, message, done);
    }

    /// Rejects a request whose awaited order was not confirmed in time.
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

    /// Consumes credits; disconnects a client without any left, as over JSON-RPC.
    fn charge_fix(&mut self, number: u64, account: usize, pool: CreditPool) -> bool {
        let is_paid = self.charge(number, Some(account), pool).is_ok();
        if !is_paid {
            self.with_session(number, |session, now, _| {
                session.end_with_reject(now, ErrorCode::TooManyRequests.message());
            });
        }
        is_paid
    }

    /// Charges messages that the session itself answers or rejects like a JSON-RPC heartbeat. A Heartbeat is
    /// free if no other came within the last second.
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

    /// Sends a message; ends the session of a client whose output buffer is full.
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

    /// Returns the message sent instead of one above the maximum length, so that the client notices the loss.
    fn too_long(&mut self, number: u64, msg_type: MsgType) -> Option<Outgoing> {
        self.counters.too_long.add(1);
        let Some((_, sequence, asked)) = self.fix.asking.filter(|(own, ..)| *own == number) else {
            return written(&BusinessReject {
                ref_msg_type: msg_type.as_str(),
                reason: 0,
                ref_seq_num: None,
                ref_id: None,
                text: Some("the report is longer than 1 MiB and is left out: request the state"),
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

    /// Returns the bytes to be sent to a FIX client.
    #[must_use]
    pub fn fix_output(&self, number: u64) -> &[u8] {
        let link = self.connections.get(&number).and_then(|connection| connection.fix.as_deref());
        link.map_or(&[], |link| link.session.output())
    }

    /// Records that `count` bytes of [`fix_output`](Front::fix_output) were sent.
    pub fn handle_fix_sent(&mut self, number: u64, count: usize, now_us: u64) {
        self.now_us = now_us;
        self.with_session(number, |session, now, _| session.handle_sent(now, count));
        self.send_status_reports(number);
    }

    /// Returns true if the connection must be closed once its output is sent or the client stops reading.
    #[must_use]
    pub fn is_fix_over(&self, number: u64) -> bool {
        let link = self.connections.get(&number).and_then(|connection| connection.fix.as_deref());
        link.is_none_or(|link| link.session.close_reason().is_some())
    }

    /// Logs out all FIX clients because the venue stops.
    pub fn end_fix(&mut self, now_us: u64) {
        self.now_us = now_us;
        let numbers: Vec<u64> = self.connections.keys().copied().collect();
        for number in numbers {
            self.with_session(number, |session, now, _| session.end(now, "the venue stops"));
        }
    }

    /// Does the due work: heartbeats, and periodic updates of the best book levels.
    pub(super) fn run_fix(&mut self) {
        // State changes by the venue itself come without a command.
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

    /// Ends a connection that is silent for as long as others may be, if it did not request heartbeats. Also
    /// ends a connection with another reason to close.
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

    /// Removes the state of an ended session.
    fn drop_fix_when_over(&mut self, number: u64) {
        use tickpath_fix::session::CloseReason;
        let reason = self.link(number).and_then(|link| link.session.close_reason());
        if reason.is_some() && self.fix.up.contains_key(&number) {
            match reason {
                Some(CloseReason::PeerSilent | CloseReason::GapNotFilled) => {
                    self.counters.silent_clients.add(1)
                }
                // The session's own message may be the one that did not fit into the buffer.
                Some(CloseReason::OutputFull | CloseReason::Ended(TOO_SLOW)) => {
                    self.counters.slow_clients.add(1)
                }
                _ => {}
            }
            self.leave_fix(number);
        }
    }

    /// Removes the subscriptions of a FIX client that disconnected or logged out.
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

    /// Publishes the changes by a command to FIX clients.
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
            // Clients without read access to orders get no reports.
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

/// Returns the access and the credits that a message requires; none for an unsupported message.
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

/// Encodes a message without its header, marked [too long](Outgoing::is_too_long) above the maximum length.
/// Returns none if a text contains a separator.
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

/// Returns a text that a field can hold: not empty, without a separator.
fn text(text: &str) -> Option<&str> {
    (!text.is_empty() && !text.contains('\u{1}')).then_some(text)
}

/// Checks the length of an id that the front stores.
fn check_id(id: &str, tag: u32) -> Result<(), FieldError> {
    if id.len() > ID_LEN_MAX { Err(out_of_range(tag)) } else { Ok(()) }
}

/// Maps a reject reason to those that Deribit uses: wrong value, unsupported type, and other.
fn shown_reason(reason: SessionRejectReason) -> SessionRejectReason {
    match reason {
        SessionRejectReason::BAD_FORMAT
        | SessionRejectReason::OUT_OF_RANGE
        | SessionRejectReason::NO_VALUE => SessionRejectReason::BAD_FORMAT,
        SessionRejectReason::INVALID_MSG_TYPE => reason,
        _ => SessionRejectReason::OTHER,
    }
}

/// Returns the error for a missing field.
const fn missing(tag: u32) -> FieldError {
    FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING }
}

/// Returns the error for a value outside the allowed ones.
const fn out_of_range(tag: u32) -> FieldError {
    FieldError { tag, reason: SessionRejectReason::OUT_OF_RANGE }
}

/// Converts a FIX number to a JSON-RPC number.
fn number_of(decimal: FixDecimal, tag: u32) -> Result<Decimal, FieldError> {
    let decimal = decimal.normalized();
    Decimal::new(decimal.mantissa(), decimal.scale()).ok_or(out_of_range(tag))
}

fn decimal_of(decimal: Decimal) -> FixDecimal {
    FixDecimal::new(decimal.mantissa(), decimal.scale())
}

/// Returns an amount with eight decimals, as amounts are displayed.
fn figure_of(money: Money) -> FixDecimal {
    decimal_of(crate::listing::figure(money).decimal())
}

/// Returns the text of a rejection, in Deribit's wording.
fn words_of(fault: &Fault) -> String {
    let message = fault.code.message();
    match (fault.limit, fault.param, fault.reason) {
        (Some(limit), ..) => format!("{message} {}", decimal_of(limit)),
        (None, "", "") => message.to_owned(),
        (None, "", reason) => format!("{message}: {reason}"),
        (None, param, reason) => format!("{message}: {param}: {reason}"),
    }
}
