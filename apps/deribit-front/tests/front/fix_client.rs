//! A FIX client connected directly to the front.

use tickpath_deribit_front::Transport;
use tickpath_fix::deribit::{Credentials, NewOrderSingle, RAW_DATA_LEN_MAX, SideCode, password, raw_data};
use tickpath_fix::session::{Header, Listener, NoStore, Refusal, Reject, Session, SessionConfig};
use tickpath_fix::{Body, Decimal, Message, MsgType, Parsed};
use tickpath_types::Nanos;

use crate::front::support::Venue;

pub const PERPETUAL: &str = "BTC-PERPETUAL";
pub const OPTION: &str = "BTC-25DEC26-60000-C";

/// Received messages, oldest first, and the venue's Logout text.
#[derive(Default)]
pub struct Received {
    pub messages: Vec<Vec<u8>>,
    pub logout: Option<String>,
    pub is_up: bool,
}

impl Listener for Received {
    fn on_message(&mut self, _: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        crate::front::fix_dictionary::check(message);
        self.messages.push(message.as_bytes().to_vec());
        Ok(())
    }

    fn on_logged_on(&mut self) {
        self.is_up = true;
    }

    fn on_reject(&mut self, reject: &Reject<'_>) {
        let mut bytes = vec![0; 1024];
        let len = reject.write_bare(&mut bytes).unwrap();
        self.messages.push(bytes[..len].to_vec());
    }

    fn on_logout(&mut self, text: Option<&str>) {
        self.logout = Some(text.unwrap_or_default().to_owned());
    }
}

/// A FIX client connected directly to the front.
pub struct Client {
    pub number: u64,
    pub session: Session<NoStore>,
    pub got: Received,
    pub unsent: Vec<u8>,
}

/// Returns the credentials of a Logon with a nonce and a timestamp.
pub fn logon<'a>(
    id: &'a str,
    timestamp_ms: u64,
    raw: &'a mut [u8; RAW_DATA_LEN_MAX],
    word: &'a mut [u8; 44],
) -> Credentials<'a> {
    let raw = raw_data(timestamp_ms, &[7; 32], raw).unwrap();
    *word = password(raw, format!("{id}-secret").as_bytes());
    Credentials {
        raw_data: Some(raw),
        username: Some(id),
        password: Some(std::str::from_utf8(word).unwrap()),
        ..Credentials::default()
    }
}

impl Client {
    pub fn connect(venue: &mut Venue, name: &str) -> Client {
        Client {
            number: venue.front.open(Transport::Fix, venue.now_us),
            session: Session::new(SessionConfig::deribit_client(name), NoStore),
            got: Received::default(),
            unsent: Vec::new(),
        }
    }

    pub fn login(venue: &mut Venue, id: &str) -> Client {
        Client::login_as(venue, id, id, |_| {})
    }

    /// Logs on; `change` modifies the credentials.
    pub fn login_as(
        venue: &mut Venue,
        id: &str,
        name: &str,
        change: impl FnOnce(&mut Credentials<'_>),
    ) -> Client {
        let mut client = Client::connect(venue, name);
        venue.now_us += 1_000;
        let (mut raw, mut word) = ([0; RAW_DATA_LEN_MAX], [0; 44]);
        let mut credentials = logon(id, venue.now_us / 1_000, &mut raw, &mut word);
        change(&mut credentials);
        client.session.connect(Nanos::from_micros(venue.now_us), &credentials).unwrap();
        client.pump(venue);
        client
    }

    /// Passes bytes in both directions until none are left.
    pub fn pump(&mut self, venue: &mut Venue) {
        let now = Nanos::from_micros(venue.now_us);
        loop {
            let out = self.session.output().to_vec();
            self.session.handle_sent(now, out.len());
            self.unsent.extend_from_slice(&out);
            let done = venue.front.handle_fix(self.number, &self.unsent, venue.now_us);
            self.unsent.drain(..done);
            venue.settle();
            let back = venue.front.fix_output(self.number).to_vec();
            venue.front.handle_fix_sent(self.number, back.len(), venue.now_us);
            self.session.handle_bytes(now, &back, &mut self.got);
            if out.is_empty() && back.is_empty() {
                break;
            }
        }
    }

    pub fn send<'a>(&mut self, venue: &mut Venue, body: &impl Body<'a>) {
        self.session.send(Nanos::from_micros(venue.now_us), body).unwrap();
        self.pump(venue);
    }

    /// Returns the oldest unread message, which must have this type.
    #[track_caller]
    pub fn next(&mut self, venue: &mut Venue, msg_type: MsgType) -> Vec<u8> {
        self.pump(venue);
        assert!(!self.got.messages.is_empty(), "no {msg_type:?} came");
        let bytes = self.got.messages.remove(0);
        assert_eq!(message(&bytes).msg_type(), msg_type, "{}", shown(&bytes));
        bytes
    }

    #[track_caller]
    pub fn report(&mut self, venue: &mut Venue) -> Vec<u8> {
        self.next(venue, MsgType::EXECUTION_REPORT)
    }

    #[track_caller]
    pub fn is_told_nothing(&mut self, venue: &mut Venue) {
        self.pump(venue);
        let texts: Vec<String> = self.got.messages.iter().map(|bytes| shown(bytes)).collect();
        assert_eq!(texts, Vec::<String>::new());
    }
}

pub fn message(bytes: &[u8]) -> Message<'_> {
    match Message::parse(bytes) {
        Parsed::Complete { message, len } if len == bytes.len() => message,
        other => panic!("{other:?}"),
    }
}

pub fn read<'a, B: Body<'a>>(bytes: &'a [u8]) -> B {
    let body = B::decode(&message(bytes)).unwrap_or_else(|error| panic!("{error}: {}", shown(bytes)));
    body.check().unwrap();
    body
}

pub fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\u{1}', "|")
}

pub fn decimal(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).unwrap()
}

pub fn order<'a>(id: &'a str, side: SideCode, contracts: i64, price: &str) -> NewOrderSingle<'a> {
    NewOrderSingle {
        cl_ord_id: id,
        side,
        order_qty: Decimal::from(contracts),
        price: Some(decimal(price)),
        symbol: PERPETUAL,
        ..NewOrderSingle::default()
    }
}
