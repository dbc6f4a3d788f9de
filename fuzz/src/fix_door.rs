//! The properties of the Deribit front's FIX acceptor. Whatever clients send, the answers are whole messages,
//! numbered consecutively and bounded. The positions of the accounts sum to zero, and a restart changes
//! nothing.

use serde_json::Value;
use tickpath_deribit_front::Transport;
use tickpath_fix::deribit::{Credentials, RAW_DATA_LEN_MAX, password, raw_data};
use tickpath_fix::session::{NoStore, Session, SessionConfig};
use tickpath_fix::{Message, MsgType, Parsed, Writer, tag};
use tickpath_types::Nanos;

use crate::front::state;
use crate::front::support::Venue;

/// Maximum number of messages in a run.
const LINES_MAX: usize = 64;
/// Maximum length of the answers to one message: the venue has four instruments and at most one order per
/// line.
const ANSWER_MAX: usize = 1 << 18;

/// One client and its session.
struct Client {
    number: u64,
    name: &'static str,
    /// Sequence number of the client's next message.
    next: u64,
    /// Sequence number of the venue's next message.
    next_back: u64,
}

impl Client {
    /// Logs a client on, with cancel on disconnect.
    fn login(venue: &mut Venue, name: &'static str) -> Client {
        venue.now_us += 1_000;
        let mut session = Session::new(SessionConfig::deribit_client(name), NoStore);
        let mut raw = [0; RAW_DATA_LEN_MAX];
        let raw = raw_data(venue.now_us / 1_000, &[7; 32], &mut raw).expect("the nonce has 32 bytes");
        let word = password(raw, format!("{name}-secret").as_bytes());
        let credentials = Credentials {
            raw_data: Some(raw),
            username: Some(name),
            password: Some(std::str::from_utf8(&word).expect("base64 is text")),
            cancel_on_disconnect: Some(true),
            ..Credentials::default()
        };
        session.connect(Nanos::from_micros(venue.now_us), &credentials).expect("it is new");
        let number = venue.front.open(Transport::Fix, venue.now_us);
        let mut client = Client { number, name, next: 2, next_back: 1 };
        client.send(venue, session.output());
        assert!(!venue.front.is_fix_over(number), "the logon is right");
        client
    }

    /// Sends bytes and checks the answers.
    fn send(&mut self, venue: &mut Venue, bytes: &[u8]) {
        let done = venue.front.handle_fix(self.number, bytes, venue.now_us);
        assert!(done <= bytes.len());
        venue.settle();
        self.read(venue);
    }

    /// Checks that the venue's output consists of messages with consecutive numbers.
    fn read(&mut self, venue: &mut Venue) {
        let out = venue.front.fix_output(self.number);
        assert!(out.len() <= ANSWER_MAX, "{} bytes", out.len());
        let len = out.len();
        let mut rest = out;
        while !rest.is_empty() {
            let Parsed::Complete { message, len } = Message::parse(rest) else {
                panic!("the venue writes messages")
            };
            let sequence: u64 = message
                .find(tag::MSG_SEQ_NUM)
                .and_then(|field| field.read().ok())
                .expect("every message has a number");
            let fills = message.msg_type() == MsgType::SEQUENCE_RESET;
            if !fills {
                assert_eq!(sequence, self.next_back);
                self.next_back += 1;
            }
            rest = &rest[len..];
        }
        venue.front.handle_fix_sent(self.number, len, venue.now_us);
    }

    /// Converts a line `35|tag=value|...` to the client's next message. Returns a line that is no message
    /// unchanged.
    fn framed(&mut self, line: &[u8]) -> Vec<u8> {
        let mut parts = line.split(|&byte| byte == b'|');
        let name = parts.next().and_then(|name| std::str::from_utf8(name).ok());
        let Some(name) = name.filter(|name| (1..=4).contains(&name.len())) else { return line.to_vec() };
        let mut buffer = vec![0; line.len() + 96];
        let mut writer = Writer::new(&mut buffer, MsgType::new(name));
        writer.field(tag::SENDER_COMP_ID, self.name.as_bytes());
        writer.field(tag::TARGET_COMP_ID, b"DERIBITSERVER");
        writer.value(tag::MSG_SEQ_NUM, self.next);
        for part in parts {
            let at = part.iter().position(|&byte| byte == b'=').unwrap_or(0);
            let tag = std::str::from_utf8(&part[..at]).ok().and_then(|tag| tag.parse().ok()).unwrap_or(0);
            writer.field(tag, &part[(at + 1).min(part.len())..]);
        }
        match writer.finish() {
            Ok(len) => {
                self.next += 1;
                buffer.truncate(len);
                buffer
            }
            Err(_) => line.to_vec(),
        }
    }
}

/// Sends a message per line: even lines for one account, odd lines for the other, with a third of a second
/// between them. A client that was disconnected logs on again.
pub fn fix_door(data: &[u8]) {
    let mut venue = Venue::new();
    let mut clients = [Client::login(&mut venue, "anna"), Client::login(&mut venue, "bert")];
    for (number, line) in data.split(|byte| *byte == b'\n').take(LINES_MAX).enumerate() {
        let own = &mut clients[number % 2];
        let bytes = own.framed(line);
        own.send(&mut venue, &bytes);
        venue.wait(333_333);
        for client in &mut clients {
            client.read(&mut venue);
            if venue.front.is_fix_over(client.number) {
                venue.front.close(client.number, venue.now_us);
                venue.settle();
                *client = Client::login(&mut venue, client.name);
            }
        }
    }
    for client in &clients {
        venue.front.close(client.number, venue.now_us);
    }
    venue.settle();
    let before = state(&mut venue);
    for name in ["BTC-PERPETUAL", "ETH_USDC-PERPETUAL", "BTC-25DEC26-60000-C"] {
        let size = |account: &Value| account[name]["size"].as_f64().expect("a position has a size");
        assert!(before.iter().map(size).sum::<f64>().abs() < 1e-6, "{name}: {before:?}");
    }
    assert_eq!(state(&mut venue.restarted(Vec::new())), before);
}
