//! Well-formed inputs to start from: one of every message of each protocol.

use tickpath_nasdaq::itch50::{MESSAGE_TYPES, message_len};
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Request, Session};
use tickpath_nasdaq::ouch50::{self, Inbound, Outbound, TagValue, encode_with_options};
use tickpath_nasdaq::soupbintcp::{
    LoginAccepted, LoginRejectReason, LoginRequest, Packet, Password, Username,
};
use tickpath_nasdaq::wire::Alpha;
use tickpath_types::{Nanos, Sequence};
use zerocopy::IntoBytes;

/// Every ITCH message, filled with a digit, which is a listed code in many fields.
#[must_use]
pub fn itch() -> Vec<Vec<u8>> {
    let message = |message_type: &u8| {
        let mut bytes = vec![b'1'; message_len(*message_type).unwrap_or(1)];
        bytes[0] = *message_type;
        bytes
    };
    MESSAGE_TYPES.iter().map(message).collect()
}

/// A MoldUDP64 packet of messages, the two packets without, and a request.
#[must_use]
pub fn mold() -> Vec<Vec<u8>> {
    let session = Session(*b"SESSION001");
    let mut builder = PacketBuilder::new([0; 256], session, Sequence(5));
    for message in [&b"abc"[..], b"", b"defgh", &[b'1'; 36]] {
        builder.push(message).expect("there is room");
    }
    vec![
        builder.finish().to_vec(),
        Header::heartbeat(session, Sequence(9)).as_bytes().to_vec(),
        Header::end_of_session(session, Sequence(9)).as_bytes().to_vec(),
        Request { session, sequence: Sequence(5), message_count: 3 }.to_bytes().to_vec(),
    ]
}

/// A BinaryFILE that ends with its marker, and one whose lengths are zero.
#[must_use]
pub fn binaryfile() -> Vec<Vec<u8>> {
    let (mut prefixed, mut implied) = (Vec::new(), Vec::new());
    for message in itch() {
        prefixed.extend((message.len() as u16).to_be_bytes());
        prefixed.extend(&message);
        implied.extend([0, 0]);
        implied.extend(&message);
    }
    prefixed.extend([0, 0]);
    vec![prefixed, implied]
}

fn stream(packets: &[Packet<'_>]) -> Vec<u8> {
    // The first byte chooses the pieces that the stream arrives in.
    let mut bytes = vec![7];
    for packet in packets {
        let mut out = [0; 128];
        let len = packet.encode(&mut out).expect("there is room");
        bytes.extend(&out[..len]);
    }
    bytes
}

fn login(sequence: u64, heartbeat_timeout: Option<Nanos>) -> Packet<'static> {
    Packet::LoginRequest(LoginRequest {
        username: Username(Alpha(*b"FUZZ  ")),
        password: Password::new("secret").expect("a short password"),
        session: Session::BLANK,
        sequence: Sequence(sequence),
        heartbeat_timeout,
    })
}

/// What a client sends, from login to logout, in both editions.
#[must_use]
pub fn soup_server() -> Vec<Vec<u8>> {
    let rest = [
        Packet::UnsequencedData(b"order"),
        Packet::ClientHeartbeat,
        Packet::Debug(b"text"),
        Packet::UnsequencedData(b""),
        Packet::LogoutRequest,
    ];
    vec![
        stream(&[&[login(1, None)][..], &rest].concat()),
        stream(&[&[login(7, Some(Nanos::from_secs(5)))][..], &rest].concat()),
        stream(&[login(2, None)]),
    ]
}

/// What a server sends, from the verdict to the end of the session.
#[must_use]
pub fn soup_client() -> Vec<Vec<u8>> {
    let session = Session::new("DAY1").expect("a name");
    vec![
        stream(&[
            Packet::Debug(b"welcome"),
            Packet::LoginAccepted(LoginAccepted { session, next_sequence: Sequence(3) }),
            Packet::SequencedData(b"three"),
            Packet::ServerHeartbeat,
            Packet::SequencedData(b""),
            Packet::UnsequencedData(b"loose"),
            Packet::SequencedData(b"five"),
            Packet::EndOfSession,
        ]),
        stream(&[Packet::LoginRejected(LoginRejectReason::NOT_AUTHORIZED)]),
    ]
}

/// Bytes of every type that `is_read` takes, grown until they are long enough, with and without options.
fn ouch(is_read: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let options = [TagValue::MinQty(50), TagValue::PostOnly(b'P'), TagValue::Firm(Alpha(*b"FIRM"))];
    let mut tail = [0; 64];
    let len = encode_with_options(b"", &options, &mut tail).expect("there is room");
    let mut seeds = Vec::new();
    for message_type in 0..=u8::MAX {
        for fixed_len in 1..=80 {
            let mut fixed = vec![b'0'; fixed_len];
            fixed[0] = message_type;
            for tail in [&[][..], &[0, 0], &tail[..len]] {
                let message = [&fixed[..], tail].concat();
                if is_read(&message) {
                    seeds.push(message);
                }
            }
        }
    }
    seeds
}

/// Every OUCH message of a client, and an order that the venue takes.
#[must_use]
pub fn ouch_inbound() -> Vec<Vec<u8>> {
    let mut seeds = ouch(|bytes| Inbound::parse(bytes).is_ok());
    let order = ouch50::EnterOrder::new(
        1,
        ouch50::SideMarking::BUY,
        100,
        *b"AAPL    ",
        1_891_234,
        ouch50::TimeInForceCode::IOC,
        ouch50::Display::VISIBLE,
        ouch50::Capacity::PRINCIPAL,
        ouch50::YesNo::NO,
        ouch50::CrossType::CONTINUOUS,
        *b"ORDER0000001  ",
    );
    let mut out = [0; 128];
    let len = encode_with_options(&order, &[TagValue::MinQty(50), TagValue::PostOnly(b'P')], &mut out)
        .expect("there is room");
    seeds.push(out[..len].to_vec());
    seeds
}

/// Every OUCH message of a venue, and an accepted order that a client takes.
#[must_use]
pub fn ouch_outbound() -> Vec<Vec<u8>> {
    let mut seeds = ouch(|bytes| Outbound::parse(bytes).is_ok());
    let accepted = seeds.iter().filter(|seed| [b'A', b'U'].contains(&seed[0])).cloned();
    let sided: Vec<Vec<u8>> = accepted
        .map(|mut seed| {
            let side_at = if seed[0] == b'U' { 17 } else { 13 };
            seed[side_at] = b'B';
            seed
        })
        .collect();
    seeds.extend(sided);
    seeds
}
