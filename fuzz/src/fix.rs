//! The properties of `tickpath-fix`: its parser, its messages, its session.

use tickpath_fix::deribit::{
    Credentials, ExecutionReport, MarketDataIncremental, MarketDataReject, MarketDataRequest,
    MarketDataSnapshot, MassQuote, MassQuoteAck, NewOrderSingle, OrderCancelReject,
    OrderCancelReplaceRequest, OrderCancelRequest, OrderMassCancelReport, OrderMassCancelRequest,
    OrderMassStatusRequest, PositionReport, ProtectionLimits, ProtectionReset, ProtectionResult, QuoteCancel,
    RequestForPositions, SecurityDefinition, SecurityDefinitionRequest, SecurityList, SecurityListRequest,
    SecurityStatus, SecurityStatusRequest, TradeCaptureAck, TradeCaptureReport, TradeCaptureRequest,
    UserRequest, UserResponse,
};
use tickpath_fix::session::{
    Header, Listener, MemoryStore, Refusal, Reject, Role, Session, SessionConfig, SessionStats,
};
use tickpath_fix::{Body, Message, MsgType, Parsed, WriteError, Writer};
use tickpath_types::Nanos;

/// Checks a receive buffer: its contents are skipped or form messages, which every reader handles without a
/// panic. Also reads the body as a separate message, with the correct length and checksum.
pub fn fix(data: &[u8]) {
    stream(data);
    let start = data.windows(3).position(|window| window == b"35=").unwrap_or(0);
    let end = data.windows(4).rposition(|window| window == b"\x0110=").map_or(data.len(), |at| at + 1);
    let body = data.get(start..end).unwrap_or(&[]);
    let mut mended = format!("8=FIX.4.4\x019={}\x01", body.len()).into_bytes();
    mended.extend(body);
    let sum = mended.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    mended.extend(format!("10={sum:03}\x01").bytes());
    stream(&mended);
}

fn stream(data: &[u8]) {
    let mut rest = data;
    loop {
        rest = match Message::parse(rest) {
            Parsed::NeedMore { len_min } => {
                assert!(len_min > rest.len());
                return;
            }
            Parsed::Garbled { error, skip } => {
                assert!(skip > 0 && skip <= rest.len());
                assert_eq!(error.to_string().lines().count(), 1);
                &rest[skip..]
            }
            Parsed::Complete { message, len } => {
                assert_eq!(message.as_bytes(), &rest[..len]);
                read(&message);
                &rest[len..]
            }
        };
    }
}

/// Checks a message: its fields, written again, form the same message. Every structure that can be read from
/// the message is written and read again.
fn read(message: &Message<'_>) {
    let mut buffer = vec![0; message.as_bytes().len() + 16];
    let mut writer = Writer::new(&mut buffer, message.msg_type());
    let mut is_right = true;
    for field in message.fields().skip(1) {
        match field {
            Ok(field) => writer.copy(field),
            Err(error) => {
                is_right = false;
                assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
    let len = writer.finish().expect("it is no longer than it was");
    if is_right {
        let Parsed::Complete { message: reparsed, .. } = Message::parse(&buffer[..len]) else { panic!() };
        assert!(reparsed.fields().skip(1).eq(message.fields().skip(1)));
    }
    macro_rules! round_trips {
        ($($name:ident)*) => { $(
            if let Ok(body) = $name::decode(message)
                && let Some(bytes) = written(&body, message.as_bytes().len())
            {
                let Parsed::Complete { message: reparsed, .. } = Message::parse(&bytes) else { panic!() };
                assert_eq!($name::decode(&reparsed), Ok(body));
            }
        )* };
    }
    // Use all readers, whatever the message type: each accepts all fields.
    round_trips! {
        Credentials ExecutionReport MarketDataIncremental MarketDataReject MarketDataRequest MarketDataSnapshot
        MassQuote MassQuoteAck NewOrderSingle OrderCancelReject OrderCancelReplaceRequest OrderCancelRequest
        OrderMassCancelReport OrderMassCancelRequest OrderMassStatusRequest PositionReport ProtectionLimits
        ProtectionReset ProtectionResult QuoteCancel Reject RequestForPositions SecurityDefinition
        SecurityDefinitionRequest SecurityList SecurityListRequest SecurityStatus SecurityStatusRequest
        TradeCaptureAck TradeCaptureReport TradeCaptureRequest UserRequest UserResponse
    }
}

/// Writes the body as a message; `None` for groups with wrong entries, and for data that contain a separator.
fn written<'a>(body: &impl Body<'a>, len: usize) -> Option<Vec<u8>> {
    body.check().ok()?;
    let mut buffer = vec![0; len * 2 + 64];
    match body.write_bare(&mut buffer) {
        Ok(len) => Some(buffer[..len].to_vec()),
        Err(WriteError::BadValue { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

struct ReceivedNumbers(Vec<u64>);

impl Listener for ReceivedNumbers {
    fn on_message(&mut self, header: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        self.0.push(header.sequence);
        NewOrderSingle::decode(message)?;
        Ok(())
    }
}

/// Checks a client's messages, one line of fields each: the application sees increasing sequence numbers, and
/// the result does not depend on the pieces in which the bytes arrive.
pub fn fix_session(data: &[u8]) {
    let now = Nanos(1_767_225_600_000_000_000);
    let stream: Vec<u8> = data.split(|&byte| byte == b'\n').flat_map(framed).collect();
    let run = |config: SessionConfig, piece_len: usize| -> (Vec<u64>, Vec<u8>, SessionStats) {
        let mut session =
            Session::new(SessionConfig { garbled_max: u32::MAX, ..config }, MemoryStore::new(8, 999));
        let (mut seen, mut sent, mut buffer) = (ReceivedNumbers(Vec::new()), Vec::new(), Vec::new());
        session.accept(now).expect("it is new");
        for piece in stream.chunks(piece_len) {
            buffer.extend(piece);
            let done = session.handle_bytes(now, &buffer, &mut seen);
            buffer.drain(..done);
            sent.extend(session.output());
            session.handle_sent(now, usize::MAX);
        }
        assert!(session.next_in() >= 1 && session.next_out() >= 1);
        session.handle_timeout(session.poll_timeout().unwrap_or(now));
        (seen.0, sent, SessionStats { garbled: 0, ..session.stats() })
    };
    let standard =
        SessionConfig { sending_time_tolerance: None, ..SessionConfig::standard(Role::Acceptor, "V", None) };
    for config in [standard, SessionConfig { sender: standard.sender, ..SessionConfig::deribit_server() }] {
        let whole = run(config, usize::MAX);
        assert!(whole.0.is_sorted_by(|a, b| a < b));
        let mut rest = whole.1.as_slice();
        while !rest.is_empty() {
            let Parsed::Complete { len, .. } = Message::parse(rest) else {
                panic!("a session writes messages")
            };
            rest = &rest[len..];
        }
        let pieces = run(config, 7);
        assert_eq!(pieces.0, whole.0);
    }
}

/// Converts a line `35|tag=value|...` to a message with sender `C` and target `V`. Returns a line that is no
/// message unchanged.
fn framed(line: &[u8]) -> Vec<u8> {
    let mut parts = line.split(|&byte| byte == b'|');
    let name = parts.next().and_then(|name| std::str::from_utf8(name).ok());
    let Some(name) = name.filter(|name| (1..=4).contains(&name.len())) else { return line.to_vec() };
    let mut buffer = vec![0; line.len() + 64];
    let mut writer = Writer::new(&mut buffer, MsgType::new(name));
    writer.field(49, b"C");
    writer.field(56, b"V");
    for part in parts {
        let at = part.iter().position(|&byte| byte == b'=').unwrap_or(0);
        let tag = std::str::from_utf8(&part[..at]).ok().and_then(|tag| tag.parse().ok()).unwrap_or(0);
        writer.field(tag, &part[(at + 1).min(part.len())..]);
    }
    match writer.finish() {
        Ok(len) => buffer[..len].to_vec(),
        Err(_) => line.to_vec(),
    }
}
