//! Scenarios of a session: received messages, sent messages, and callbacks of the application.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_fix::deribit::{Credentials, NewOrderSingle, SideCode};
use tickpath_fix::session::{
    CloseReason, CompId, GapPolicy, Header, Listener, LogonDecision, LogonRequest, Logout, MemoryStore,
    NoStore, Refusal, Reject, ResendPolicy, ResetPolicy, Role, SendError, Session, SessionConfig, Store,
};
use tickpath_fix::{Decimal, FieldError, Message, MsgType, Parsed, SessionRejectReason, Writer, tag};
use tickpath_types::Nanos;

const START: Nanos = Nanos(1_767_225_600_000_000_000); // 2026-01-01

/// A listener that records its callbacks.
struct Told {
    lines: Vec<String>,
    decision: LogonDecision,
}

impl Listener for Told {
    fn on_message(&mut self, header: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        self.lines.push(format!("{} {}", header.msg_type.as_str(), header.sequence));
        match message.find(tag::TEXT).map(|field| field.value) {
            Some(b"unknown type") => {
                Err(FieldError { tag: tag::MSG_TYPE, reason: SessionRejectReason::INVALID_MSG_TYPE }.into())
            }
            Some(b"not_implemented") => {
                let error = FieldError { tag: 0, reason: SessionRejectReason::OTHER };
                Err(Refusal::Field { error, text: Some("not_implemented") })
            }
            Some(b"not now") => Err(Refusal::Business { reason: 4, text: "closed" }),
            _ => Ok(()),
        }
    }
    fn on_logon_request(&mut self, request: &LogonRequest<'_>) -> LogonDecision {
        let heartbeat = request.heartbeat.0 / 1_000_000_000;
        self.lines.push(format!("logon request {} {heartbeat}", request.header.sequence));
        self.decision
    }
    fn on_logged_on(&mut self) {
        self.lines.push("logged on".into());
    }
    fn on_reject(&mut self, reject: &Reject<'_>) {
        self.lines.push(format!("reject {} {}", reject.ref_seq_num, reject.text.unwrap_or("")));
    }
    fn on_logout(&mut self, text: Option<&str>) {
        self.lines.push(format!("logout {}", text.unwrap_or("")));
    }
    fn on_gap(&mut self, expected: u64, received: u64) {
        self.lines.push(format!("gap {expected} {received}"));
    }
}

type Names = (CompId, CompId);

struct Story<S> {
    session: Session<S>,
    told: Told,
    now: Nanos,
    /// Names of the peer and of us.
    names: Names,
}

/// Writes a message `35|tag=value|...`, with default names and time.
fn message(text: &str, names: Names, now: Nanos) -> Vec<u8> {
    let (msg_type, fields) = text.split_once('|').unwrap_or((text, ""));
    let mut buffer = vec![0; 4096];
    let mut writer = Writer::new(&mut buffer, MsgType::new(msg_type));
    let fields: Vec<(u32, &str)> = fields
        .split('|')
        .filter_map(|field| field.split_once('='))
        .map(|(tag, value)| (tag.parse().unwrap(), value))
        .collect();
    let given = |wanted| fields.iter().any(|(tag, _)| *tag == wanted);
    if !given(49) {
        writer.value(49, names.0.as_str());
    }
    if !given(56) {
        writer.value(56, names.1.as_str());
    }
    if !given(52) {
        writer.time(52, now);
    }
    for (tag, value) in fields {
        if value != "-" {
            writer.value(tag, value);
        }
    }
    let len = writer.finish().unwrap();
    buffer.truncate(len);
    buffer
}

/// All messages in `bytes` as `35|tag=value|...`, without names and times.
fn texts(mut bytes: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    while !bytes.is_empty() {
        let Parsed::Complete { message, len } = Message::parse(bytes) else { panic!("{bytes:?}") };
        let mut text = String::new();
        for field in message.fields() {
            let field = field.unwrap();
            let value = String::from_utf8_lossy(field.value);
            match field.tag {
                35 => text.push_str(&value),
                49 | 56 | 52 => {}
                122 => text.push_str("|122"),
                tag => text.push_str(&format!("|{tag}={value}")),
            }
        }
        texts.push(text);
        bytes = &bytes[len..];
    }
    texts
}

impl<S: Store> Story<S> {
    fn new(config: SessionConfig, store: S) -> Story<S> {
        let names = (config.target.unwrap_or(CompId::from("D").unwrap()), config.sender);
        let told = Told { lines: Vec::new(), decision: LogonDecision::Accept };
        Story { session: Session::new(config, store), told, now: START, names }
    }

    #[track_caller]
    fn receives(&mut self, texts: &[&str]) {
        let bytes: Vec<u8> = texts.iter().flat_map(|text| message(text, self.names, self.now)).collect();
        self.receives_bytes(&bytes);
    }

    #[track_caller]
    fn receives_bytes(&mut self, bytes: &[u8]) {
        let done = self.session.handle_bytes(self.now, bytes, &mut self.told);
        assert_eq!(done, bytes.len());
    }

    #[track_caller]
    fn sends(&mut self, expected: &[&str]) {
        assert_eq!(texts(self.session.output()), expected);
        let len = self.session.output().len();
        self.session.handle_sent(self.now, len);
    }

    #[track_caller]
    fn tells(&mut self, expected: &[&str]) {
        assert_eq!(self.told.lines, expected);
        self.told.lines.clear();
    }

    #[track_caller]
    fn closes(&self, reason: CloseReason) {
        assert_eq!(self.session.close_reason(), Some(reason));
    }

    #[track_caller]
    fn stays(&self) {
        assert_eq!(self.session.close_reason(), None);
    }

    /// Advances the time, and performs all due actions.
    fn passes(&mut self, secs: u64) {
        let until = self.now + Nanos::from_secs(secs);
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.session.handle_timeout(self.now);
        }
        self.now = until;
    }

    fn order(&mut self, id: &str) -> Result<u64, SendError> {
        let order = NewOrderSingle {
            cl_ord_id: id,
            side: SideCode::BUY,
            order_qty: Decimal::from(10),
            symbol: "BTC-PERPETUAL",
            ..NewOrderSingle::default()
        };
        self.session.send(self.now, &order)
    }
}

fn order_text(sequence: u64, id: &str) -> String {
    format!("D|34={sequence}|11={id}|54=1|38=10|55=BTC-PERPETUAL")
}

fn client() -> Story<MemoryStore> {
    let config = SessionConfig::standard(Role::Initiator, "CLIENT", Some("VENUE"));
    Story::new(config, MemoryStore::new(16, 1 << 14))
}

fn venue() -> Story<MemoryStore> {
    let config = SessionConfig::standard(Role::Acceptor, "VENUE", None);
    Story::new(config, MemoryStore::new(16, 1 << 14))
}

fn client_that_is_up() -> Story<MemoryStore> {
    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.sends(&["A|34=1|98=0|108=30"]);
    story.receives(&["A|34=1|98=0|108=30"]);
    story.tells(&["logged on"]);
    story
}

fn venue_that_is_up() -> Story<MemoryStore> {
    let mut story = venue();
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    story.sends(&["A|34=1|98=0|108=30"]);
    story.tells(&["logon request 1 30", "logged on"]);
    story
}

#[test]
fn an_initiator_logs_on_first_and_sends_when_it_is_answered() {
    let mut story = client();
    assert_eq!(story.order("a"), Err(SendError::NotLoggedOn));
    let credentials = Credentials { username: Some("me"), password: Some("pw"), ..Credentials::default() };
    story.session.connect(story.now, &credentials).unwrap();
    assert_eq!(story.session.connect(story.now, &credentials), Err(SendError::Connected));
    story.sends(&["A|34=1|98=0|108=30|553=me|554=pw"]);
    assert_eq!(story.order("a"), Err(SendError::NotLoggedOn));
    story.receives(&["A|34=1|98=0|108=20"]);
    story.tells(&["logged on"]);
    assert_eq!(story.order("a"), Ok(2));
    story.sends(&[&order_text(2, "a")]);
    assert_eq!((story.session.next_in(), story.session.next_out()), (2, 3));
    // The interval in the reply applies.
    assert_eq!(story.session.poll_timeout(), Some(START + Nanos::from_secs(20)));
}

#[test]
fn an_acceptor_answers_a_logon_with_the_same_interval() {
    let mut story = venue_that_is_up();
    assert_eq!(story.session.peer().as_str(), "D");
    story.receives(&["D|34=2|11=x"]);
    story.tells(&["D 2"]);
    story.stays();
}

#[test]
fn anything_before_a_logon_ends_the_connection() {
    let mut story = venue();
    story.session.accept(story.now).unwrap();
    story.receives(&["D|34=1|11=x"]);
    story.sends(&[]);
    story.closes(CloseReason::NotLogon);
    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["0|34=1"]);
    story.closes(CloseReason::NotLogon);
}

#[test]
fn a_refused_logon_is_a_logout() {
    let mut story = venue();
    story.told.decision = LogonDecision::Refuse("invalid_credentials");
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    story.sends(&["5|34=1|58=invalid_credentials"]);
    story.closes(CloseReason::LogonDenied("invalid_credentials"));
    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["5|34=1|58=invalid_credentials"]);
    story.tells(&["logout invalid_credentials"]);
    story.closes(CloseReason::LogonRefused);
    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["3|34=1|45=1|58=no"]);
    story.tells(&["reject 1 no"]);
    story.closes(CloseReason::LogonRefused);
}

#[test]
fn a_decision_may_come_later_and_what_is_behind_the_logon_waits() {
    let mut story = venue();
    story.told.decision = LogonDecision::Later;
    story.session.accept(story.now).unwrap();
    let logon = message("A|34=1|98=0|108=30", story.names, story.now);
    let order = message("D|34=2|11=x", story.names, story.now);
    let both = [logon.clone(), order.clone()].concat();
    assert_eq!(story.session.handle_bytes(story.now, &both, &mut story.told), logon.len());
    assert_eq!(story.session.handle_bytes(story.now, &order, &mut story.told), 0);
    story.sends(&[]);
    story.session.decide_logon(story.now, LogonDecision::Accept, &mut story.told);
    story.sends(&["A|34=1|98=0|108=30"]);
    story.receives_bytes(&order);
    story.tells(&["logon request 1 30", "logged on", "D 2"]);
    // A decision without a pending Logon changes nothing.
    story.session.decide_logon(story.now, LogonDecision::Refuse("late"), &mut story.told);
    story.stays();
    let mut story = venue();
    story.told.decision = LogonDecision::Later;
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    story.passes(11);
    story.closes(CloseReason::LogonTimeout);
}

#[test]
fn a_wrong_logon_is_refused() {
    let check = |text: &str, sent: &[&str]| {
        let mut story = venue();
        story.session.accept(story.now).unwrap();
        story.receives(&[text]);
        story.sends(sent);
        assert!(story.session.close_reason().is_some(), "{text}");
        assert!(!story.session.is_up());
    };
    check("A|34=1|98=0", &["5|34=1|58=required tag missing"]);
    check("A|34=1|98=0|108=x", &["5|34=1|58=incorrect data format for value"]);
    check("A|34=1|98=1|108=30", &["5|34=1|58=value is incorrect (out of range) for this tag"]);
    check("A|34=1|98=0|108=3601", &["5|34=1|58=value is incorrect (out of range) for this tag"]);
    check("A|34=2|98=0|108=30|141=Y", &["5|34=1|58=value is incorrect (out of range) for this tag"]);
    check("A|98=0|108=30", &["5|34=1|58=required tag missing"]);
    check("A|34=1|98=0|108=30|52=20250101-00:00:00", &["5|34=1|58=SendingTime accuracy problem"]);
    check("A|34=1|56=SOMEBODY|98=0|108=30", &[]);
}

#[test]
fn without_a_logon_the_connection_ends() {
    let mut story = venue();
    story.session.accept(story.now).unwrap();
    story.passes(9);
    story.stays();
    story.passes(1);
    story.closes(CloseReason::LogonTimeout);
    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.passes(10);
    story.closes(CloseReason::LogonTimeout);
}

#[test]
fn heartbeats_fill_a_silence_and_a_test_request_asks_a_silent_peer() {
    let mut story = client_that_is_up();
    story.passes(29);
    story.sends(&[]);
    story.passes(1);
    story.sends(&["0|34=2"]);
    story.passes(5);
    story.sends(&[]);
    story.passes(1);
    story.sends(&["1|34=3|112=1"]);
    story.receives(&["0|34=2|112=1"]);
    story.passes(35);
    story.sends(&["0|34=4"]);
    story.passes(1);
    story.sends(&["1|34=5|112=2"]);
    story.passes(29);
    story.stays();
    story.passes(1);
    story.sends(&["5|34=6|58=no answer to a TestRequest"]);
    story.closes(CloseReason::PeerSilent);
}

#[test]
fn any_message_shows_that_the_peer_lives() {
    let mut story = client_that_is_up();
    story.passes(36);
    story.sends(&["0|34=2", "1|34=3|112=1"]);
    story.receives(&["8|34=2|39=0"]);
    story.passes(30);
    story.sends(&["0|34=4"]);
    story.stays();
}

#[test]
fn an_interval_of_zero_means_no_heartbeats() {
    let mut story = venue();
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=0"]);
    story.sends(&["A|34=1|98=0|108=0"]);
    assert_eq!(story.session.poll_timeout(), None);
}

#[test]
fn a_test_request_is_answered_with_its_id() {
    let mut story = venue_that_is_up();
    story.receives(&["1|34=2|112=anybody in there?", "1|34=3"]);
    story.sends(&["0|34=2|112=anybody in there?", "3|34=3|45=3|371=112|372=1|373=1|58=required tag missing"]);
}

#[test]
fn missing_messages_are_asked_for_once_and_come_in_order() {
    let mut story = client_that_is_up();
    story.receives(&["8|34=2|39=0", "8|34=4|39=0", "8|34=5|39=0"]);
    story.sends(&["2|34=2|7=3|16=0"]);
    story.tells(&["8 2", "gap 3 4"]);
    let orig = "122=20260101-00:00:00";
    story.receives(&[
        &format!("8|34=3|43=Y|{orig}|39=0"),
        &format!("8|34=4|43=Y|{orig}|39=0"),
        &format!("8|34=5|43=Y|{orig}|39=0"),
        "8|34=6|39=0",
        "8|34=8|39=0",
    ]);
    story.tells(&["8 3", "8 4", "8 5", "8 6", "gap 7 8"]);
    story.sends(&["2|34=3|7=7|16=0"]);
    let stats = story.session.stats();
    assert_eq!((stats.gaps, stats.beyond_gap), (2, 3));
}

#[test]
fn missing_messages_that_do_not_come_end_the_connection() {
    let mut story = client_that_is_up();
    story.receives(&["8|34=3|39=0"]);
    story.passes(20);
    story.receives(&["8|34=2|43=Y|122=20260101-00:00:00|39=0"]);
    story.passes(29);
    story.stays();
    story.passes(1);
    story.closes(CloseReason::GapNotFilled);
}

#[test]
fn a_number_that_is_too_low_ends_the_connection() {
    let mut story = client_that_is_up();
    story.receives(&["8|34=2|39=0", "8|34=1|39=0", "8|34=3|39=0"]);
    story.tells(&["8 2"]);
    story.sends(&["5|34=2|58=MsgSeqNum too low, expecting 3 but received 1"]);
    story.closes(CloseReason::SequenceTooLow { expected: 3, received: 1 });
}

#[test]
fn a_repetition_is_ignored() {
    let mut story = client_that_is_up();
    story.receives(&["8|34=2|39=0", "8|34=2|43=Y|122=20260101-00:00:00|39=0", "4|34=1|43=Y|123=Y|36=2"]);
    story.tells(&["8 2"]);
    story.sends(&[]);
    story.stays();
    assert_eq!((story.session.stats().duplicates, story.session.next_in()), (2, 3));
}

#[test]
fn a_message_without_a_number_ends_the_connection() {
    let mut story = client_that_is_up();
    story.receives(&["8|39=0"]);
    story.sends(&["5|34=2|58=MsgSeqNum is missing"]);
    story.closes(CloseReason::SequenceMissing);
}

#[test]
fn a_resend_repeats_messages_and_skips_the_sessions_own() {
    let mut story = client_that_is_up();
    story.order("a").unwrap();
    story.passes(30);
    story.order("b").unwrap();
    story.order("c").unwrap();
    story.sends(&[&order_text(2, "a"), "0|34=3", &order_text(4, "b"), &order_text(5, "c")]);
    story.receives(&["2|34=2|7=1|16=0"]);
    let again = |sequence: u64, id: &str| {
        order_text(sequence, id).replace(&format!("34={sequence}"), &format!("34={sequence}|43=Y|122"))
    };
    story.sends(&[
        "4|34=1|43=Y|122|36=2|123=Y",
        &again(2, "a"),
        "4|34=3|43=Y|122|36=4|123=Y",
        &again(4, "b"),
        &again(5, "c"),
    ]);
    story.receives(&["2|34=3|7=3|16=4"]);
    story.sends(&["4|34=3|43=Y|122|36=4|123=Y", &again(4, "b")]);
    assert_eq!((story.session.next_out(), story.session.stats().resent), (6, 4));
    // A resent message has its original sending time.
    story.receives(&["2|34=4|7=2|16=2"]);
    let Parsed::Complete { message, .. } = Message::parse(story.session.output()) else { panic!() };
    assert_eq!(message.find(122).unwrap().value, b"20260101-00:00:00.000");
    assert_eq!(message.find(52).unwrap().value, b"20260101-00:00:30.000");
}

#[test]
fn stale_orders_are_skipped() {
    let config = SessionConfig::standard(Role::Initiator, "CLIENT", Some("VENUE"));
    let store = MemoryStore::new(16, 1 << 14).with_age_max(Nanos::from_secs(5));
    let mut story = Story::new(config, store);
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    story.order("a").unwrap();
    story.passes(6);
    story.order("b").unwrap();
    story.session.handle_sent(story.now, usize::MAX);
    story.receives(&["2|34=2|7=1|16=0"]);
    story.sends(&["4|34=1|43=Y|122|36=3|123=Y", "D|34=3|43=Y|122|11=b|54=1|38=10|55=BTC-PERPETUAL"]);
}

#[test]
fn a_wrong_resend_request_is_rejected() {
    let mut story = client_that_is_up();
    story.receives(&["2|34=2|7=0|16=0", "2|34=3|7=2|16=0", "2|34=4|7=1|16=x", "2|34=5|7=1"]);
    // A Reject is the only session message that is resent.
    story.sends(&[
        "3|34=2|45=2|371=7|372=2|373=5|58=value is incorrect (out of range) for this tag",
        "3|34=3|45=4|371=16|372=2|373=6|58=incorrect data format for value",
        "3|34=4|45=5|371=16|372=2|373=1|58=required tag missing",
        "3|34=2|43=Y|122|45=2|371=7|372=2|373=5|58=value is incorrect (out of range) for this tag",
        "3|34=3|43=Y|122|45=4|371=16|372=2|373=6|58=incorrect data format for value",
        "3|34=4|43=Y|122|45=5|371=16|372=2|373=1|58=required tag missing",
    ]);
}

#[test]
fn a_resend_reaches_up_to_what_was_sent_since_it_was_asked_for() {
    let mut story = client_that_is_up();
    story.order("a").unwrap();
    story.sends(&[&order_text(2, "a")]);
    story.receives(&["2|34=2|7=2|16=0", "1|34=3|112=T"]);
    // The peer drops the Heartbeat after its gap, and would wait for it.
    story.sends(&[
        "0|34=3|112=T",
        "D|34=2|43=Y|122|11=a|54=1|38=10|55=BTC-PERPETUAL",
        "4|34=3|43=Y|122|36=4|123=Y",
    ]);
    story.order("b").unwrap();
    story.sends(&[&order_text(4, "b")]);
}

#[test]
fn a_logout_that_cannot_be_written_ends_the_connection() {
    let mut story = client_that_is_up();
    story.session.logout(story.now, &Logout { text: Some("a\x01b"), ..Logout::default() });
    story.sends(&[]);
    story.closes(CloseReason::BadValue { tag: tag::TEXT });
}

#[test]
fn both_sides_may_miss_messages_at_once() {
    let mut story = client_that_is_up();
    story.order("a").unwrap();
    story.sends(&[&order_text(2, "a")]);
    // Its request is processed, although messages before it are missing.
    story.receives(&["2|34=4|7=2|16=0"]);
    story.sends(&["D|34=2|43=Y|122|11=a|54=1|38=10|55=BTC-PERPETUAL", "2|34=3|7=2|16=0"]);
    story.receives(&["4|34=2|43=Y|123=Y|36=5", "8|34=5|39=0"]);
    story.tells(&["gap 2 4", "8 5"]);
}

#[test]
fn a_resend_goes_on_when_there_is_room() {
    let config = SessionConfig {
        output_len: 3000,
        ..SessionConfig::standard(Role::Initiator, "CLIENT", Some("VENUE"))
    };
    let mut story = Story::new(config, MemoryStore::new(200, 1 << 16));
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    story.session.handle_sent(story.now, usize::MAX);
    for order in 0..150 {
        assert_eq!(story.order(&order.to_string()), Ok(order + 2));
        story.session.handle_sent(story.now, usize::MAX);
    }
    story.receives(&["2|34=2|7=1|16=0"]);
    assert_eq!(story.order("later"), Err(SendError::Full));
    let mut again = Vec::new();
    while !story.session.output().is_empty() {
        again.extend(texts(story.session.output()));
        let len = story.session.output().len();
        story.session.handle_sent(story.now, len);
    }
    assert_eq!(again.len(), 151);
    assert!(again[150].contains("34=151|") && again[150].contains("11=149|"));
    assert_eq!(story.order("later"), Ok(152));
}

#[test]
fn a_gap_fill_skips_numbers_and_must_go_up() {
    let mut story = client_that_is_up();
    story.receives(&["4|34=2|123=Y|36=10", "8|34=10|39=0", "4|34=11|123=Y|36=11", "8|34=12|39=0"]);
    story.tells(&["8 10", "8 12"]);
    story.sends(&["3|34=2|45=11|371=36|372=4|373=5|58=value is incorrect (out of range) for this tag"]);
}

#[test]
fn a_reset_sets_the_number_whatever_its_own_and_only_upward() {
    let mut story = client_that_is_up();
    story.receives(&["4|34=77|36=20", "8|34=20|39=0", "4|34=1|123=N|36=5", "8|34=21|39=0"]);
    story.tells(&["8 20", "8 21"]);
    story.sends(&["3|34=2|45=1|371=36|372=4|373=5|58=value is incorrect (out of range) for this tag"]);
    story.stays();
}

#[test]
fn a_logout_is_answered_and_its_sender_closes() {
    let mut story = client_that_is_up();
    story.receives(&["5|34=2|58=end of day"]);
    story.sends(&["5|34=2"]);
    story.tells(&["logout end of day"]);
    story.stays();
    story.session.handle_closed();
    story.closes(CloseReason::LoggedOut);
    // A peer that logs out without closing is disconnected.
    let mut story = client_that_is_up();
    story.receives(&["5|34=2"]);
    story.passes(10);
    story.closes(CloseReason::LoggedOut);
}

#[test]
fn a_logout_waits_for_its_answer() {
    let mut story = client_that_is_up();
    story.session.logout(story.now, &Logout { text: Some("bye"), dont_cancel_on_disconnect: Some(true) });
    story.sends(&["5|34=2|58=bye|9003=Y"]);
    assert_eq!(story.order("a"), Err(SendError::NotLoggedOn));
    story.receives(&["8|34=2|39=0"]);
    story.stays();
    story.receives(&["5|34=3"]);
    story.tells(&["8 2"]);
    story.closes(CloseReason::LoggedOut);
    let mut story = client_that_is_up();
    story.session.logout(story.now, &Logout::default());
    story.passes(10);
    story.closes(CloseReason::LogoutTimeout);
}

#[test]
fn a_connection_that_ends_without_a_logout_says_so_and_numbers_go_on() {
    let mut story = client_that_is_up();
    story.order("a").unwrap();
    story.session.handle_closed();
    story.closes(CloseReason::TransportClosed);
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.stays();
    story.sends(&["A|34=3|98=0|108=30"]);
    // The peer missed the order: it logs on, and requests it.
    story.receives(&["A|34=2|98=0|108=30", "2|34=3|7=2|16=0"]);
    story.tells(&["logged on"]);
    story.sends(&["D|34=2|43=Y|122|11=a|54=1|38=10|55=BTC-PERPETUAL", "4|34=3|43=Y|122|36=4|123=Y"]);
}

#[test]
fn a_logon_beyond_a_gap_is_taken_and_the_rest_asked_for() {
    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=5|98=0|108=30"]);
    story.tells(&["gap 1 5", "logged on"]);
    story.sends(&["A|34=1|98=0|108=30", "2|34=2|7=1|16=0"]);
    story.receives(&["4|34=1|43=Y|123=Y|36=6", "8|34=6|39=0"]);
    story.tells(&["8 6"]);
    // A Logon below the expected number ends the session.
    let config = SessionConfig::standard(Role::Initiator, "CLIENT", Some("VENUE"));
    let mut story = Story::new(config, NoStore);
    story.session = story.session.with_sequences(9, 4);
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=5|98=0|108=30"]);
    story.sends(&["A|34=4|98=0|108=30", "5|34=5|58=MsgSeqNum too low, expecting 9 but received 5"]);
    story.closes(CloseReason::SequenceTooLow { expected: 9, received: 5 });
}

#[test]
fn a_reset_flag_sets_both_sides_to_one() {
    let config = SessionConfig {
        reset: ResetPolicy::Flagged,
        ..SessionConfig::standard(Role::Initiator, "CLIENT", Some("VENUE"))
    };
    let mut story = Story::new(config, NoStore);
    story.session = story.session.with_sequences(9, 4);
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.sends(&["A|34=1|98=0|108=30|141=Y"]);
    story.receives(&["A|34=1|98=0|108=30|141=Y"]);
    story.tells(&["logged on"]);
    assert_eq!((story.session.next_in(), story.session.next_out()), (2, 2));

    let mut story = venue();
    story.session = story.session.with_sequences(9, 4);
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=30|141=Y"]);
    story.sends(&["A|34=1|98=0|108=30|141=Y"]);
    assert_eq!((story.session.next_in(), story.session.next_out()), (2, 2));

    let mut story = client();
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=1|98=0|108=30|141=Y"]);
    assert!(matches!(story.session.close_reason(), Some(CloseReason::BadLogon(_))));
}

#[test]
fn wrong_names_end_the_connection() {
    for wrong in ["8|34=2|49=SOMEBODY|39=0", "8|34=2|56=SOMEBODY|39=0"] {
        let mut story = client_that_is_up();
        story.receives(&[wrong]);
        story.sends(&[
            "3|34=2|45=2|372=8|373=9|58=CompID problem",
            "5|34=3|58=SenderCompID or TargetCompID is wrong",
        ]);
        story.closes(CloseReason::CompId);
    }
}

#[test]
fn a_clock_that_is_far_off_ends_the_connection() {
    let mut story = client_that_is_up();
    story.receives(&["8|34=2|39=0|52=20260101-00:01:59"]);
    story.tells(&["8 2"]);
    story.receives(&["8|34=3|39=0|52=20260101-00:02:01"]);
    story.sends(&[
        "3|34=2|45=3|371=52|372=8|373=10|58=SendingTime accuracy problem",
        "5|34=3|58=SendingTime accuracy problem",
    ]);
    story.closes(CloseReason::SendingTime);
}

#[test]
fn a_repetition_says_when_it_was_first_sent() {
    let mut story = client_that_is_up();
    story.receives(&["8|34=2|43=Y|39=0", "8|34=3|39=0"]);
    story.sends(&["3|34=2|45=2|371=122|372=8|373=1|58=required tag missing"]);
    story.tells(&["8 3"]);
}

#[test]
fn garbled_bytes_use_up_no_number_and_are_bounded() {
    let mut story = client_that_is_up();
    let good = message("8|34=2|39=0", story.names, story.now);
    let mut bad = good.clone();
    bad[30] ^= 1;
    story.receives_bytes(&[b"noise".to_vec(), bad.clone(), good].concat());
    story.tells(&["8 2"]);
    story.sends(&[]);
    story.stays();
    assert_eq!(story.session.stats().garbled, 2);
    story.receives_bytes(&bad.repeat(8));
    story.stays();
    story.receives_bytes(&bad);
    assert!(matches!(story.session.close_reason(), Some(CloseReason::Garbled(_))));
}

#[test]
fn a_message_with_a_wrong_field_is_rejected_and_uses_up_its_number() {
    let mut story = client_that_is_up();
    story.receives_bytes(&message_of(
        b"8\x0149=VENUE\x0156=CLIENT\x0134=2\x0152=20260101-00:00:00\x0139=\x01",
    ));
    story.receives_bytes(&message_of(
        b"8\x0149=VENUE\x0156=CLIENT\x0134=3\x0152=20260101-00:00:00\x01x=1\x01",
    ));
    story.receives_bytes(&message_of(
        b"8\x0149=VENUE\x0156=CLIENT\x0134=4\x0152=20260101-00:00:00\x0134=4\x01",
    ));
    story.receives_bytes(&message_of(b"8\x0149=VENUE\x0156=CLIENT\x0134=5\x0152=yesterday\x01"));
    story.sends(&[
        "3|34=2|45=2|371=39|372=8|373=4|58=tag specified without a value",
        "3|34=3|45=3|372=8|373=0|58=invalid tag number",
        "3|34=4|45=4|371=34|372=8|373=13|58=tag appears more than once",
        "3|34=5|45=5|371=52|372=8|373=6|58=incorrect data format for value",
    ]);
    story.tells(&[]);
    assert_eq!(story.session.next_in(), 6);
}

/// A message of raw fields after `35=`.
fn message_of(body: &[u8]) -> Vec<u8> {
    let body = [b"35=", body].concat();
    let mut message = [format!("8=FIX.4.4\x019={}\x01", body.len()).as_bytes(), &body].concat();
    let sum = message.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    message.extend(format!("10={sum:03}\x01").bytes());
    message
}

#[test]
fn what_the_application_does_not_take_is_answered() {
    let mut story = venue_that_is_up();
    story.receives(&["ZZ|34=2|58=unknown type", "AN|34=3|58=not_implemented", "D|34=4|58=not now", "D|34=5"]);
    story.sends(&[
        "3|34=2|45=2|371=35|372=ZZ|373=11|58=invalid MsgType",
        "3|34=3|45=3|372=AN|373=99|58=not_implemented",
        "j|34=4|372=D|380=4|45=4|58=closed",
    ]);
    story.tells(&["ZZ 2", "AN 3", "D 4", "D 5"]);
    assert_eq!(story.session.stats().rejected, 3);
}

#[test]
fn a_reject_is_told_and_never_rejected() {
    let mut story = client_that_is_up();
    story.receives(&[
        "3|34=2|45=1|373=99|58=connection_too_slow",
        "3|34=3|58=no number",
        "A|34=4|98=0|108=30",
    ]);
    story.tells(&["reject 1 connection_too_slow"]);
    story.sends(&["3|34=2|45=4|371=35|372=A|373=99|58=other"]);
}

#[test]
fn a_full_output_gives_messages_back_and_a_peer_that_never_reads_is_left() {
    let config = SessionConfig { output_len: 3000, ..SessionConfig::standard(Role::Acceptor, "VENUE", None) };
    let mut story = Story::new(config, NoStore);
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    let sent = (0..100).take_while(|_| story.order("x").is_ok()).count();
    assert!((3..20).contains(&sent), "{sent}");
    assert_eq!(story.order("x"), Err(SendError::Full));
    assert_eq!(story.session.next_out(), 2 + sent as u64);
    for sequence in 2..100 {
        story.receives(&[&format!("1|34={sequence}|112=x")]);
    }
    story.closes(CloseReason::OutputFull);
    assert!(story.session.output().len() <= 3000);
}

#[test]
fn a_value_with_a_separator_is_not_sent() {
    let mut story = client_that_is_up();
    assert_eq!(story.order("a\x0138=999"), Err(SendError::BadValue { tag: 11 }));
    assert_eq!(story.order(""), Err(SendError::BadValue { tag: 11 }));
    story.sends(&[]);
    assert_eq!(story.order("a"), Ok(2));
}

#[test]
fn a_deribit_client_begins_at_one_and_closes_on_what_is_missing() {
    let mut story = Story::new(SessionConfig::deribit_client("D"), NoStore);
    for _ in 0..2 {
        story.session.connect(story.now, &Credentials::default()).unwrap();
        story.sends(&["A|34=1|108=30"]);
        story.receives(&["A|34=1|108=30"]);
        story.tells(&["logged on"]);
        story.receives(&["8|34=3|39=0"]);
        story.tells(&["gap 2 3"]);
        story.closes(CloseReason::Gap { expected: 2, received: 3 });
        story.session.handle_closed();
    }
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=1|108=30", "2|34=2|7=1|16=1"]);
    story.closes(CloseReason::ResendRequested { begin: 1 });
}

#[test]
fn a_deribit_server_answers_a_sequence_reset_with_a_resend_request() {
    let mut story = Story::new(SessionConfig::deribit_server(), NoStore);
    story.session.accept(story.now).unwrap();
    // SendingTime is ignored.
    story.receives(&["A|34=1|108=5|52=-"]);
    story.sends(&["A|34=1|108=5"]);
    story.receives(&["4|34=1|36=10", "4|34=99|36=5", "4|34=1|123=Y|36=12", "D|34=12|11=x"]);
    story.sends(&["2|34=2|7=10|16=10", "2|34=3|7=10|16=10", "2|34=4|7=12|16=12"]);
    story.tells(&["logon request 1 5", "logged on", "D 12"]);
    story.receives(&["D|34=15|11=y"]);
    story.sends(&["2|34=5|7=13|16=0"]);
    story.receives(&["2|34=13|7=1|16=0"]);
    story.sends(&["4|34=1|43=Y|122|36=6|123=Y"]);
}

#[test]
fn two_sessions_understand_each_other() {
    let mut client = Story::new(SessionConfig::deribit_client("D"), NoStore);
    let mut venue = Story::new(SessionConfig::deribit_server(), NoStore);
    client.session.connect(START, &Credentials::default()).unwrap();
    venue.session.accept(START).unwrap();
    let now = START;
    let exchange = |client: &mut Story<NoStore>, venue: &mut Story<NoStore>| {
        while !client.session.output().is_empty() || !venue.session.output().is_empty() {
            let bytes = client.session.output().to_vec();
            client.session.handle_sent(now, bytes.len());
            venue.receives_bytes(&bytes);
            let bytes = venue.session.output().to_vec();
            venue.session.handle_sent(now, bytes.len());
            client.receives_bytes(&bytes);
        }
    };
    exchange(&mut client, &mut venue);
    assert!(client.session.is_up() && venue.session.is_up());
    for order in 0..10 {
        client.order(&order.to_string()).unwrap();
    }
    exchange(&mut client, &mut venue);
    assert_eq!(venue.told.lines.len(), 2 + 10);
    client.session.logout(now, &Logout::default());
    exchange(&mut client, &mut venue);
    client.closes(CloseReason::LoggedOut);
    venue.session.handle_closed();
    venue.closes(CloseReason::LoggedOut);
}

#[test]
fn policies_can_be_chosen_one_by_one() {
    let config = SessionConfig {
        gap: GapPolicy::Close,
        resend: ResendPolicy::Answer,
        ..SessionConfig::standard(Role::Initiator, "CLIENT", Some("VENUE"))
    };
    let mut story = Story::new(config, NoStore);
    story.session.connect(story.now, &Credentials::default()).unwrap();
    story.receives(&["A|34=1|98=0|108=30", "2|34=2|7=1|16=0"]);
    story.sends(&["A|34=1|98=0|108=30", "4|34=1|43=Y|122|36=2|123=Y"]);
    story.receives(&["8|34=9|39=0"]);
    story.sends(&["5|34=2|58=messages are missing"]);
    story.closes(CloseReason::Gap { expected: 3, received: 9 });
}

#[test]
fn deribit_echoes_heartbeats_but_for_answers_to_its_questions() {
    let config =
        SessionConfig { echoes_heartbeats: true, ..SessionConfig::standard(Role::Acceptor, "VENUE", None) };
    let mut story = Story::new(config, MemoryStore::new(16, 1 << 14));
    story.session.accept(story.now).unwrap();
    story.receives(&["A|34=1|98=0|108=30"]);
    story.sends(&["A|34=1|98=0|108=30"]);
    story.receives(&["0|34=2"]);
    story.sends(&["0|34=2"]);
    story.receives(&["0|34=3|112=1"]);
    story.sends(&[]);
    assert!(SessionConfig::deribit_server().echoes_heartbeats);
    assert!(!SessionConfig::deribit_client("A").echoes_heartbeats, "two that echo would never end");
}

#[test]
fn a_heartbeat_that_is_due_can_be_put_off() {
    let mut story = venue_that_is_up();
    assert!(!story.session.is_heartbeat_due(story.now));
    let due = story.now + Nanos::from_secs(30);
    assert!(story.session.is_heartbeat_due(due));
    story.session.put_off_heartbeat(due);
    assert!(!story.session.is_heartbeat_due(due));
    // A TestRequest that is due as well.
    let later = due + Nanos::from_secs(30);
    story.session.put_off_heartbeat(later);
    story.session.handle_timeout(later);
    story.sends(&[]);
    let last = later + Nanos::from_secs(30);
    story.session.handle_timeout(last);
    story.sends(&["0|34=2"]);
}
