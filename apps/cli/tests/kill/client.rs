//! A client of the venue that keeps every message received, and decodes messages without the system's codecs.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_nasdaq::ouch50;
use tickpath_test_support::{Deadline, soup};
use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, InstrumentId, OrderRequest, Price, Qty, Side, Symbol,
    TimeInForce, UserRefNum,
};

/// Time-out of one read from the socket.
const READ_TIMEOUT: Duration = Duration::from_millis(1);

/// The client of one user. It keeps its state while the venue is killed and restarted.
pub struct Client {
    pub user: String,
    /// The bytes of every sequenced message received so far, from message 1 on.
    pub messages: Vec<Vec<u8>>,
    /// The last UserRefNum used, whether the venue received it or not.
    last_ref: u32,
    random: Xoshiro256PlusPlus,
}

/// Error: the connection is closed.
pub struct Disconnected;

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    pub fn new(user: String, random: Xoshiro256PlusPlus) -> Client {
        Client { user, messages: Vec::new(), last_ref: 0, random }
    }

    /// Trades until the connection is lost. Logs in again after every 50 to 2,049 steps.
    pub fn trade(&mut self, address: &str) {
        while let Ok(mut connection) = self.log_in(address, self.messages.len() as u64 + 1) {
            let requests = 50 + self.random.next_u64() % 2_000;
            for _ in 0..requests {
                if self.step(&mut connection).is_err() {
                    return;
                }
            }
        }
    }

    /// Sends 1 to 4 random requests, and reads the available messages.
    fn step(&mut self, connection: &mut Connection) -> Result<(), Disconnected> {
        let mut bytes = Vec::new();
        for _ in 0..1 + self.random.next_u64() % 4 {
            bytes.extend(packet(&self.request()));
        }
        connection.stream.write_all(&bytes).map_err(|_| Disconnected)?;
        connection.read(&mut self.messages)
    }

    /// Logs in from message 1, sends one more request, and reads the stream up to its answer. Checks that the
    /// stream begins with all messages received before.
    pub fn verify_replay(&mut self, address: &str) -> Result<(), String> {
        let failed = |what: &str| format!("{}: {what}", self.user);
        let mut connection =
            self.log_in(address, 1).map_err(|Disconnected| failed("cannot log in from message 1"))?;
        // An order without quantity is refused, and its answer follows all earlier messages.
        self.last_ref += 1;
        let last =
            OrderRequest::Enter(EnterOrder { qty: Qty::ZERO, ..order(self.last_ref, Side::Buy, 1, 0) });
        connection.stream.write_all(&packet(&last)).map_err(|_| failed("gone"))?;
        let mut replayed: Vec<Vec<u8>> = Vec::new();
        let deadline = Deadline::start();
        loop {
            let before = replayed.len();
            connection.read(&mut replayed).map_err(|Disconnected| failed("gone while it was read again"))?;
            if replayed[before..].iter().any(|message| is_rejection_of(message, self.last_ref)) {
                break;
            }
            if deadline.is_over() {
                return Err(failed("no answer to the last request"));
            }
        }
        compare(&self.messages, &replayed).map_err(|problem| failed(&problem))?;
        self.messages = replayed;
        Ok(())
    }

    fn log_in(&self, address: &str, next: u64) -> Result<Connection, Disconnected> {
        let stream = TcpStream::connect(address).map_err(|_| Disconnected)?;
        stream.set_nodelay(true).map_err(|_| Disconnected)?;
        stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(|_| Disconnected)?;
        let mut connection = Connection { stream, received: Vec::new() };
        connection.stream.write_all(&soup::login(&self.user, "test", "", next)).map_err(|_| Disconnected)?;
        let deadline = Deadline::start();
        while !deadline.is_over() {
            match connection.take().map_err(|_| Disconnected)? {
                Some(SoupPacket::Accepted(first)) if first == next => return Ok(connection),
                // Retry: the venue has not yet noticed the end of the previous connection.
                Some(SoupPacket::Rejected) => return self.log_in(address, next),
                Some(_) => return Err(Disconnected),
                None => connection.fill()?,
            }
        }
        Err(Disconnected)
    }

    fn request(&mut self) -> OrderRequest {
        let mut below = |bound: u64| self.random.next_u64() % bound;
        let (what, side) = (below(10), if below(2) == 0 { Side::Buy } else { Side::Sell });
        let (qty, price) = (1 + below(20), 990_000 + below(20) as i64 * 1_000);
        let old = self.last_ref.saturating_sub(below(30) as u32).max(1);
        if what < 3 {
            let qty = if what == 0 { Qty(qty / 2) } else { Qty::ZERO };
            return OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(old), qty });
        }
        self.last_ref += 1;
        let enter = order(self.last_ref, side, qty, price);
        match what {
            3 => OrderRequest::Replace(enter.replacing(UserRefNum(old))),
            4 => OrderRequest::Enter(EnterOrder { time_in_force: TimeInForce::Ioc, ..enter }),
            _ => OrderRequest::Enter(enter),
        }
    }
}

/// Checks that `replayed` begins with all of `messages`, the messages received before.
pub fn compare(messages: &[Vec<u8>], replayed: &[Vec<u8>]) -> Result<(), String> {
    let same = messages.iter().zip(replayed).take_while(|(messages, replayed)| messages == replayed).count();
    match messages.get(same) {
        None => Ok(()),
        Some(was) => Err(format!(
            "message {} was {was:02x?}, and is {:02x?} now; {} were received, {} are there",
            same + 1,
            replayed.get(same),
            messages.len(),
            replayed.len()
        )),
    }
}

enum SoupPacket {
    Accepted(u64),
    Rejected,
    Message(Vec<u8>),
    Other,
}

impl Connection {
    /// Reads from the socket for at most [`READ_TIMEOUT`], and adds the complete messages to `messages`.
    fn read(&mut self, messages: &mut Vec<Vec<u8>>) -> Result<(), Disconnected> {
        let outcome = self.fill();
        // If the connection ended, also take the messages before its end: the user received them.
        while let Some(soup_packet) = self.take()? {
            if let SoupPacket::Message(message) = soup_packet {
                messages.push(message);
            }
        }
        outcome
    }

    fn fill(&mut self) -> Result<(), Disconnected> {
        let mut bytes = [0; 1 << 16];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Disconnected),
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
            Err(_) => Err(Disconnected),
        }
    }

    /// Returns the next SoupBinTCP packet, `None` if it is incomplete. A packet has a two-byte length, a type
    /// and a payload.
    fn take(&mut self) -> Result<Option<SoupPacket>, Disconnected> {
        let Some(prefix) = self.received.first_chunk::<2>() else { return Ok(None) };
        let end = 2 + usize::from(u16::from_be_bytes(*prefix));
        let Some(packet) = self.received.get(2..end) else { return Ok(None) };
        let (kind, payload) = packet.split_first().ok_or(Disconnected)?;
        let soup_packet = match kind {
            // Login Accepted: ten characters of session name, then the next sequence number as text.
            b'A' => {
                let text = payload.get(10..30).and_then(|text| std::str::from_utf8(text).ok());
                SoupPacket::Accepted(text.and_then(|text| text.trim().parse().ok()).ok_or(Disconnected)?)
            }
            b'J' => SoupPacket::Rejected,
            b'S' => SoupPacket::Message(payload.to_vec()),
            _ => SoupPacket::Other,
        };
        self.received.drain(..end);
        Ok(Some(soup_packet))
    }
}

pub fn symbol() -> Symbol {
    Symbol::new("ONLY").unwrap()
}

/// A decoded OUCH 5.0 message about an order.
#[derive(Debug, PartialEq)]
pub enum OuchMessage {
    /// The order was accepted, as a new order or as a replacement.
    Accepted {
        user_ref: u32,
        qty: u32,
    },
    Executed {
        user_ref: u32,
        qty: u32,
        price: u64,
        match_id: u64,
    },
    Rejected {
        user_ref: u32,
    },
    Other,
}

pub fn decode(message: &[u8]) -> OuchMessage {
    let number = |at: usize, width: usize| {
        let field = message.get(at..at + width).unwrap_or_else(|| panic!("{message:02x?} is too short"));
        field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let short = |at: usize| number(at, 4) as u32;
    match message.first() {
        Some(b'A') => OuchMessage::Accepted { user_ref: short(9), qty: short(14) },
        Some(b'U') => OuchMessage::Accepted { user_ref: short(13), qty: short(18) },
        Some(b'E') => OuchMessage::Executed {
            user_ref: short(9),
            qty: short(13),
            price: number(17, 8),
            match_id: number(26, 8),
        },
        Some(b'J') => OuchMessage::Rejected { user_ref: short(9) },
        _ => OuchMessage::Other,
    }
}

fn is_rejection_of(message: &[u8], user_ref: u32) -> bool {
    decode(message) == OuchMessage::Rejected { user_ref }
}

pub fn order(user_ref: u32, side: Side, qty: u64, price: i64) -> EnterOrder {
    EnterOrder {
        client_order_id: ClientOrderId(*b"kill-test     "),
        ..EnterOrder::limit(UserRefNum(user_ref), InstrumentId(1), side, Qty(qty), Price(price))
    }
}

fn packet(request: &OrderRequest) -> Vec<u8> {
    let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
    let len = ouch50::encode_request(request, |_| Some(symbol()), &mut bytes).unwrap();
    soup::packet(b'U', &bytes[..len])
}
