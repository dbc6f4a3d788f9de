//! Well-formed initial inputs: one of every message of each protocol.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tickpath_exchange::{COPY_HEADER_LEN, DropCopy, LogCommand};
use tickpath_journal::{DiskFaults, FaultyDisk, InspectOptions, JournalConfig, Policy, SessionName, open};
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{COMMAND_LEN_MAX, Command, CommandKind};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{
    AddOrder, BuySell, EventCode, MESSAGE_TYPES, OrderDelete, OrderExecuted, OrderReplace,
    StockTradingAction, StockTradingState, SystemEvent, message_len,
};
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Request, Session};
use tickpath_nasdaq::ouch50::{self, Inbound, Outbound, TagValue, encode_with_options};
use tickpath_nasdaq::soupbintcp::{
    LoginAccepted, LoginRejectReason, LoginRequest, Packet, Password, Username,
};
use tickpath_nasdaq::wire::{Alpha, Stock};
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message as ticks_message;
use tickpath_ticks::request::encode_subscribe;
use tickpath_types::{
    ClientOrderId, InstrumentId, Nanos, Price, RejectReason, Sequence, SessionId, Symbol, UserRefNum,
};
use zerocopy::IntoBytes;

/// Every ITCH message, filled with a digit, which is a valid code in many fields.
#[must_use]
pub fn itch() -> Vec<Vec<u8>> {
    let message = |message_type: &u8| {
        let mut bytes = vec![b'1'; message_len(*message_type).unwrap_or(1)];
        bytes[0] = *message_type;
        bytes
    };
    MESSAGE_TYPES.iter().map(message).collect()
}

/// Recorded XDP packets, a packet with every message, and single messages.
#[must_use]
pub fn xdp() -> Vec<Vec<u8>> {
    let byte = |hex: &str| u8::from_str_radix(hex, 16).expect("the file has digits");
    let recorded = include_str!("../../protocols/nyse/tests/data/packets.hex");
    let lines =
        recorded.lines().filter_map(|line| line.strip_prefix('#').is_none().then(|| line.split_once(' '))?);
    let mut seeds: Vec<Vec<u8>> =
        lines.map(|(_, hex)| (0..hex.len()).step_by(2).map(|at| byte(&hex[at..at + 2])).collect()).collect();
    let mut builder = tickpath_nyse::PacketBuilder::new([0; tickpath_nyse::PACKET_LEN_MAX], 7);
    for message_type in tickpath_nyse::MESSAGE_TYPES {
        let mut message = vec![b'1'; tickpath_nyse::message_len(*message_type).unwrap_or(4)];
        let len = message.len() as u16;
        message[..2].copy_from_slice(&len.to_le_bytes());
        message[2..4].copy_from_slice(&message_type.to_le_bytes());
        builder.push_bytes(&message).expect("all of them have room in one packet");
        seeds.push(message);
    }
    let time = tickpath_nyse::SendTime { secs: 1_795_150_800, nanos: 256 };
    seeds.push(builder.finish(tickpath_nyse::DeliveryFlag::ORIGINAL, time).to_vec());
    seeds
}

/// Recorded FIX messages.
#[must_use]
pub fn fix() -> Vec<Vec<u8>> {
    let recorded = include_bytes!("../../protocols/fix/tests/data/messages.txt");
    recorded.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// The messages of a FIX client, from logon to logout: fields only, one message per line; see
/// [`fix_session`](crate::fix_session()).
#[must_use]
pub fn fix_session() -> Vec<Vec<u8>> {
    let all = [
        "A|34=1|108=30",
        "D|34=2|11=a|54=1|38=10|55=BTC-PERPETUAL|44=100.5",
        "1|34=3|112=x",
        "2|34=4|7=1|16=0",
        "4|34=5|36=9|123=Y",
        "4|34=1|36=20",
        "8|34=20|39=0|1362=1|1363=a|1364=1|1365=1",
        "3|34=25|45=1|58=no",
        "0|34=21|43=Y|122=20260101-00:00:00",
        "5|34=21|58=bye",
    ];
    let lines = |lines: &[&str]| lines.join("\n").into_bytes();
    vec![lines(&all), lines(&all[..3]), lines(&[all[0], all[3], all[3]]), lines(&[all[0], all[9]])]
}

/// A MoldUDP64 packet with messages, a heartbeat, an end of session, and a request.
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

/// A BinaryFILE that ends with its marker, and one whose length prefixes are zero.
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

/// Messages that change books, each prefixed with its length: every message of the protocol, then adds,
/// replacements and removals of few orders.
#[must_use]
pub fn itch_books() -> Vec<Vec<u8>> {
    use tickpath_nasdaq::itch50::{AddOrder, BuySell, OrderCancel, OrderDelete, OrderExecuted, OrderReplace};
    use tickpath_nasdaq::wire::Stock;
    use zerocopy::IntoBytes;

    fn put(stream: &mut Vec<u8>, message: &[u8]) {
        stream.push(message.len() as u8);
        stream.extend(message);
    }
    let mut every = Vec::new();
    for message in itch() {
        put(&mut every, &message);
    }
    let stock = Stock::new("FUZZ").expect("four letters");
    let mut flow = Vec::new();
    for step in 0..60_u64 {
        let (locate, ts) = (1 + (step % 3) as u16, Nanos(step));
        let (id, other) = (step * 7 % 11, 40 + step % 5);
        let price = 10_000 + (step * 13 % 9) as u32 * 100;
        let side = [BuySell::BUY, BuySell::SELL][step as usize % 2];
        put(&mut flow, AddOrder::new(locate, 0_u16, ts, id, side, 100, stock, price).as_bytes());
        match step % 5 {
            0 => put(&mut flow, OrderDelete::new(locate, 0_u16, ts, id).as_bytes()),
            1 => put(&mut flow, OrderReplace::new(locate, 0_u16, ts, id, other, 50, price + 100).as_bytes()),
            2 => put(&mut flow, OrderCancel::new(locate, 0_u16, ts, id, 30).as_bytes()),
            3 => put(&mut flow, OrderExecuted::new(locate, 0_u16, ts, other, 100, step).as_bytes()),
            _ => {}
        }
    }
    vec![every, flow]
}

fn stream(packets: &[Packet<'_>]) -> Vec<u8> {
    // The first byte selects the pieces in which the stream arrives.
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

/// The messages of a client, from login to logout, in both editions of SoupBinTCP.
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

/// The messages of a server, from the answer to the login to the end of the session.
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

/// The messages of a snapshot server, with live messages in between. Snapshots: of two instruments, of one
/// after another, one that is too old, one with contradictory orders.
#[must_use]
pub fn glimpse() -> Vec<Vec<u8>> {
    let now = Nanos(34_200_000_000_000);
    let stock = |locate| Stock::new(["ONE", "TWO"][usize::from(locate) - 1]).expect("a symbol");
    let directory = |locate: u16| {
        let mut message = [b'1'; 39];
        message[0] = b'R';
        message[1..3].copy_from_slice(&locate.to_be_bytes());
        message[11..19].copy_from_slice(&stock(locate).0);
        message.to_vec()
    };
    let trading = |locate| {
        let state = StockTradingState::TRADING;
        let action =
            StockTradingAction::new(locate, 0, now, stock(locate), state, Alpha::BLANK, Alpha::BLANK);
        action.as_bytes().to_vec()
    };
    let add = |locate, order, side, price| {
        AddOrder::new(locate, 0, now, order, side, 100, stock(locate), price).as_bytes().to_vec()
    };
    let end = |next| EndOfSnapshot::of(Sequence(next)).as_bytes().to_vec();
    let one =
        [directory(1), trading(1), add(1, 1, BuySell::BUY, 1_000_000), add(1, 2, BuySell::SELL, 1_000_300)];
    let two = [directory(2), trading(2), add(2, 3, BuySell::BUY, 500_000)];
    let twice = [directory(2), add(2, 4, BuySell::BUY, 500_000), add(2, 4, BuySell::SELL, 400_000)];
    let live = [
        OrderExecuted::new(1, 0, now, 1, 40, 7).as_bytes().to_vec(),
        OrderDelete::new(2, 0, now, 3).as_bytes().to_vec(),
    ];
    let seed = |scope: u8, snapshots: &[&[Vec<u8>]]| {
        let session = Session::new("DAY1").expect("a name");
        let accepted = Packet::LoginAccepted(LoginAccepted { session, next_sequence: Sequence(1) });
        let live = live.iter().map(|message| Packet::UnsequencedData(message));
        let snapshots = snapshots.iter().flat_map(|messages| messages.iter());
        let packets: Vec<Packet<'_>> = [accepted]
            .into_iter()
            .chain(live.clone())
            .chain(snapshots.map(|message| Packet::SequencedData(message)))
            .chain(live)
            .chain([Packet::EndOfSession])
            .collect();
        [&[scope][..], &stream(&packets)].concat()
    };
    vec![
        seed(0, &[&one, &two, &[end(11)]]),
        seed(1, &[&one, &[end(11)], &two, &[end(12)]]),
        seed(0, &[&one, &[end(9)]]),
        seed(1, &[&one, &twice, &[end(10)]]),
    ]
}

/// Copies of every message that a venue sends.
#[must_use]
pub fn drop_copy() -> Vec<Vec<u8>> {
    let copied = |(number, message): (u64, Vec<u8>)| {
        let mut out = vec![0; COPY_HEADER_LEN + message.len()];
        let copy = DropCopy { user: ["ANNA", "TEST01", "B"][number as usize % 3], number, message: &message };
        copy.encode(&mut out).expect("there is room");
        out
    };
    (1..).zip(ouch_outbound()).map(copied).collect()
}

/// Messages of every type and length that `is_read` accepts, filled with digits, with and without options.
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

/// Every OUCH message of a client, and an order that the venue accepts.
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

/// Every OUCH message of a venue, and an acceptance that a client understands.
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

/// Databento's own test file of two records, unchanged, and the same with its records repeated.
#[must_use]
pub fn dbn() -> Vec<Vec<u8>> {
    /// Bytes of a record of schema MBO.
    const RECORD_LEN: usize = 56;
    let file = include_bytes!("../../io/capture/tests/data/test_data.mbo.v3.dbn.zst");
    let plain = zstd::decode_all(&file[..]).expect("a whole file");
    let records = plain[plain.len() - 2 * RECORD_LEN..].to_vec();
    vec![plain.clone(), [plain, records].concat()]
}

/// A LOBSTER message of every type, with and without column names.
#[must_use]
pub fn lobster() -> Vec<Vec<u8>> {
    let lines = "34200.017459617,1,16113575,18,5853300,1\n34200.1,2,16113575,3,5853300,1\n\
                 34200.2,1,16113584,18,5853400,-1\n34200.25,4,16113584,8,5853400,-1\n\
                 34201,5,0,9,5853350,-1\n34202,6,-1,9,5853350,1\n34203,7,0,0,-1,-1\n34204,7,0,0,1,-1\n\
                 34205,3,16113575,15,5853300,1\n";
    vec![lines.as_bytes().to_vec(), format!("Time,Type,OrderID,Size,Price,Direction\r\n{lines}").into_bytes()]
}

/// Rows of a LOBSTER order book file of one level and of two, with an empty level.
#[must_use]
pub fn lobster_book() -> Vec<Vec<u8>> {
    let one = "9999999999,0,5853300,18\n9999999999,0,5853300,15\n5853400,18,5853300,15\n";
    let two = "Ask1,AskSize1,Bid1,BidSize1,Ask2,AskSize2,Bid2,BidSize2\r\n\
               5853400,18,5853300,15,5853500,200,-9999999999,0\r\n";
    vec![one.as_bytes().to_vec(), two.as_bytes().to_vec()]
}

/// A short, consistent day of one symbol, with length prefixes and with implied lengths.
fn itch_days() -> Vec<Vec<u8>> {
    let now = |ms: u64| Nanos(34_200_000_000_000 + ms * 1_000_000);
    let stock = Stock::new("FUZZ").expect("a symbol");
    let trading = StockTradingState::TRADING;
    let messages: Vec<Vec<u8>> = vec![
        SystemEvent::new(0, 0, now(0), EventCode::START_OF_MESSAGES).as_bytes().to_vec(),
        SystemEvent::new(0, 0, now(1), EventCode::START_OF_MARKET_HOURS).as_bytes().to_vec(),
        StockTradingAction::new(1, 0, now(2), stock, trading, Alpha::BLANK, Alpha::BLANK).as_bytes().to_vec(),
        AddOrder::new(1, 0, now(3), 1, BuySell::BUY, 100, stock, 1_000_000).as_bytes().to_vec(),
        AddOrder::new(1, 0, now(4), 2, BuySell::SELL, 200, stock, 1_000_300).as_bytes().to_vec(),
        OrderExecuted::new(1, 0, now(5), 1, 40, 7).as_bytes().to_vec(),
        OrderReplace::new(1, 0, now(6), 2, 3, 150, 1_000_200).as_bytes().to_vec(),
        OrderDelete::new(1, 0, now(7), 3).as_bytes().to_vec(),
        SystemEvent::new(0, 0, now(8), EventCode::END_OF_MARKET_HOURS).as_bytes().to_vec(),
    ];
    let framed = |is_given: bool| {
        let frame = |message: &Vec<u8>| {
            let len = if is_given { message.len() as u16 } else { 0 };
            [&len.to_be_bytes()[..], message].concat()
        };
        messages.iter().flat_map(frame).collect()
    };
    vec![framed(true), framed(false)]
}

/// ITCH files of every message and of a short day, with length prefixes and with implied lengths.
#[must_use]
pub fn itch_blocks() -> Vec<Vec<u8>> {
    [binaryfile(), itch_days()].concat()
}

/// The first file of each format, in gzip and in Zstandard, and a gzip file of two members.
#[must_use]
pub fn compressed() -> Vec<Vec<u8>> {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory has room")
    };
    let plain = [itch_days().remove(0), itch_days().remove(1), dbn().remove(0), lobster().remove(0)];
    let zstd = |bytes: &Vec<u8>| zstd::encode_all(&bytes[..], 1).expect("memory has room");
    let (first, second) = plain[0].split_at(40);
    let mut seeds: Vec<Vec<u8>> = plain.iter().map(|bytes| gzip(bytes)).collect();
    seeds.extend(plain.iter().map(zstd));
    seeds.push([gzip(first), gzip(second)].concat());
    seeds
}

/// A file of every format, plain and compressed, and LOBSTER messages with their order book.
#[must_use]
pub fn replay_file() -> Vec<Vec<u8>> {
    let with_rows = b"1,1,1,5,100,1\n2,1,2,5,90,1\n3,4,1,5,100,1\n\n\
        9999999999,0,100,5,9999999999,0,-9999999999,0\n9999999999,0,100,5,9999999999,0,90,5\n\
        9999999999,0,90,5,9999999999,0,-9999999999,0\n";
    let plain = [itch_days(), dbn(), lobster()].concat();
    [plain, compressed(), vec![with_rows.to_vec()]].concat()
}

/// A segment of a few records under each policy, with and without its zero padding.
#[must_use]
pub fn journal() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for policy in Policy::ALL {
        let disk = FaultyDisk::new(1, DiskFaults::default());
        let session = SessionName::new("SESSION001").expect("a name");
        let config =
            JournalConfig { policy, segment_len: 4096, buffer_len: 1024, ..JournalConfig::default() };
        let mut opened =
            open(&disk, session, config, &InspectOptions::default()).expect("an empty disk has room");
        for (sequence, payload) in (1..).zip([&b"one"[..], b"three", &[7; 100], b"x"]) {
            opened.journal.append(Sequence(sequence), payload).expect("there is room");
            while opened.journal.poll() + opened.worker.run_once() > 0 {}
        }
        let whole = disk.contents("00000000000000000001.journal").expect("it was written");
        let end = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        seeds.extend([whole[..end.next_multiple_of(8)].to_vec(), whole]);
    }
    seeds
}

/// Logs of a gateway: with a record of every kind, and truncated.
#[must_use]
pub fn gateway_log() -> Vec<Vec<u8>> {
    use tickpath_gateway::event_log::{FileHeader, Origin, RecordHeader, RecordKind};
    let (start, clock) = (Nanos(1_795_362_361_000_000_000), Nanos(5));
    let header =
        FileHeader { part: 0, session: [7; 16], start, clock, sequence: 0, name: "deribit".to_owned() };
    let mut whole = header.write().to_vec();
    let texts =
        [&b"{\"jsonrpc\":\"2.0\",\"id\":1}"[..], &[0; 184], &[0; 120], b"name = 'x'", b"", &[0xff; 9]];
    for (sequence, (kind, text)) in (0..).zip(RecordKind::ALL.iter().zip(texts.iter().cycle())) {
        let origin = Origin { stream: 1, account: 2, client: 3 };
        let header = RecordHeader { kind: *kind, origin, sequence, time: Nanos(9), origin_time: Nanos(8) };
        header.write(text, &mut whole);
    }
    let cut = whole[..whole.len() - 11].to_vec();
    let mut zeros = cut.clone();
    zeros.resize(whole.len() + 100, 0);
    vec![whole, cut, zeros]
}

/// The first commands of a workload, and commands of every kind, built from bytes that are valid codes.
#[must_use]
pub fn command() -> Vec<Vec<u8>> {
    let config = WorkloadConfig { open_order_count: 100, command_count: 100, ..WorkloadConfig::default() };
    let workload = Workload::generate(&config);
    let encoded = |command: &Command| {
        let mut bytes = vec![0; COMMAND_LEN_MAX];
        let len = command.encode(&mut bytes);
        bytes.truncate(len);
        bytes
    };
    let refusal = CommandKind::GatewayReject {
        user_ref: UserRefNum(7),
        reason: RejectReason::Halted,
        client_order_id: ClientOrderId::default(),
    };
    let (sequence, session, ts) = (Sequence(1), SessionId(0), Nanos(1));
    let refusal = Command { sequence, session, ts, kind: refusal };
    let commands = workload.opening.iter().take(12).chain(&workload.commands).chain([&refusal]);
    let mut seeds: Vec<Vec<u8>> = commands.map(encoded).collect();
    for (kind, fill) in (0..=u8::MAX).flat_map(|kind| [0, 1, b'E', b'H', b'O'].map(|fill| (kind, fill))) {
        let mut bytes = [fill; COMMAND_LEN_MAX];
        bytes[..8].copy_from_slice(&[kind, 1, 0, 0, 0, 0, 0, 0]);
        let is_command = |len: &usize| LogCommand::decode(&bytes[..*len]).is_ok();
        seeds.extend((0..=COMMAND_LEN_MAX).find(is_command).map(|len| bytes[..len].to_vec()));
    }
    seeds
}

/// One frame of each kind, and an event and a request with levels and text.
#[must_use]
pub fn gateway_frame() -> Vec<Vec<u8>> {
    use tickpath_gateway_protocol::frame::{
        FRAME_LEN_MAX, Frame, Hello, Password, Refusal, RefusalReason, Welcome,
    };
    use tickpath_gateway_protocol::{
        CreateOrder, Event, EventKind, Fixed, MarketByPrice, OrderAck, Request, Side, Text,
    };
    let text = |text| Text::<32>::cut(text);
    let password = Password::new(b"secret").expect("it is short");
    let welcome =
        Welcome { client: 1, gateway: text("deribit"), exchange: text("deribit"), ..Welcome::default() };
    let refusal = Refusal { reason: RefusalReason::BANNED, version: 1, retry_after_ns: 5 };
    let frames = [
        Frame::Hello(Hello::new(text("maker"), text("alice"), password, true)),
        Frame::Welcome(welcome),
        Frame::Refusal(refusal),
    ];
    let mut seeds: Vec<Vec<u8>> = frames
        .iter()
        .map(|frame| {
            let mut bytes = vec![0; FRAME_LEN_MAX];
            let len = frame.encode(&mut bytes).expect("there is room");
            bytes.truncate(len);
            bytes
        })
        .collect();
    let book = MarketByPrice { bids: 1, asks: 1, ..MarketByPrice::default() };
    let mut event = Event::of(&OrderAck { text: Text::cut("not_enough_funds"), ..OrderAck::default() });
    seeds.extend([Event::of(&book).as_bytes().to_vec(), event.as_bytes().to_vec()]);
    event.header.kind = EventKind::STATISTICS;
    seeds.push(event.as_bytes().to_vec());
    let order = CreateOrder { price: Fixed::ONE, side: Side::BUY, ..CreateOrder::default() };
    seeds.push(Request::of(&order).as_bytes().to_vec());
    seeds
}

/// A segment of shared memory; changes to a valid segment's counts, name, quote and stream; an event segment.
#[must_use]
pub fn segment() -> Vec<Vec<u8>> {
    let place = tempfile::tempdir().expect("a folder can be made");
    let folder = tickpath_shm::Folder::create(place.path()).expect("it is ours");
    let name = tickpath_shm::SegmentName::new("seed").expect("it is a name");
    let whole = crate::shm::valid_segment(&folder, &name);
    // Positions count from the end of the checksummed bytes: the counts, then names, quotes and stream on a
    // page each.
    let patch = |place: u16, value: u8| [&place.to_le_bytes()[..], &[value]].concat();
    let page = |number: u16| number * 4_096 - 256;
    let changes =
        [patch(0, 2), patch(16, 0xff), patch(page(1) + 8, 0x1b), patch(page(2), 7), patch(page(3), 0xff)];
    let events =
        crate::shm::valid_events(&folder, &tickpath_shm::SegmentName::new("events").expect("it is a name"));
    vec![whole, changes.concat(), changes[3].clone(), events]
}

/// Streams of the ticks protocol: one of all symbols with every message, one of listed symbols.
#[must_use]
pub fn ticks() -> Vec<Vec<u8>> {
    use ticks_message::{
        EndOfStream, EndReason, Heartbeat, Hello, Place, Quote, Refused, RefusedReason, Scope, Skipped,
        Status, Subscribed, SymbolDefinition, Trade,
    };
    let place =
        |sequence: u64| Place { instrument: InstrumentId(1), symbol_sequence: sequence as u32, sequence };
    let price = Price(1_000_000);
    let symbol = Symbol(*b"ALPHA   ");
    let stream = |scope| {
        let quote =
            |sequence| with_checksum(Quote::new(place(sequence), Nanos(1), (price, 3), (price, 4), 5));
        let state = tickpath_types::TradingState::Halted;
        [
            with_checksum(Hello::server(1, 7, 1_000, 2, Nanos(1))).as_bytes(),
            with_checksum(Subscribed::new(1, 1, scope, 1)).as_bytes(),
            with_checksum(SymbolDefinition::new(place(1), symbol, price, Price(100), 0)).as_bytes(),
            quote(1).as_bytes(),
            quote(2).as_bytes(),
            with_checksum(Trade::new(place(3), Nanos(1), price, 5, None, 5, 0)).as_bytes(),
            with_checksum(Heartbeat::new(4, Nanos(2))).as_bytes(),
            with_checksum(Status::new(place(4), Nanos(1), state, 0)).as_bytes(),
            with_checksum(Refused::new(5, 2, RefusedReason::TooManySymbols, 2)).as_bytes(),
            with_checksum(Skipped::new(9, 4)).as_bytes(),
            quote(9).as_bytes(),
            quote(12).as_bytes(),
            with_checksum(EndOfStream::new(13, EndReason::ServerStops, Nanos(3))).as_bytes(),
        ]
        .concat()
    };
    vec![stream(Scope::All), stream(Scope::Listed)]
}

/// The messages of clients of the ticks protocol.
#[must_use]
pub fn ticks_requests() -> Vec<Vec<u8>> {
    let symbols: Vec<Symbol> = (0..280_u16).map(|_| Symbol(*b"ALPHA   ")).collect();
    [0, 2, 280]
        .iter()
        .map(|count| {
            let mut stream = with_checksum(ticks_message::Hello::client(0, Nanos(1))).as_bytes().to_vec();
            encode_subscribe(1, &symbols[..*count], &mut stream);
            stream.extend(with_checksum(ticks_message::Heartbeat::new(0, Nanos(0))).as_bytes());
            stream
        })
        .collect()
}

/// Captures: real packets of MoldUDP64 and of IEX-TP, a pcapng file, and TCP segments.
#[must_use]
pub fn packets() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../apps/replay/tests/data/itch_multiple_packets.pcap").to_vec(),
        include_bytes!("../../apps/replay/tests/data/iex_quote_update.pcap").to_vec(),
        pcapng(),
        pcap_of_tcp(),
    ]
}

/// A pcapng section: a raw IP interface with nanosecond time stamps, and a datagram.
fn pcapng() -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, body, &len].concat()
    };
    let header = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let interface = [101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let frame = ip_packet(17, &[0x30, 0x39, 0x67, 0x21, 0, 12, 0, 0, b'd', b'a', b't', b'a']);
    let len = (frame.len() as u32).to_le_bytes();
    let packet = [&[0; 12][..], &len, &len, &frame].concat();
    [block(0x0a0d_0d0a, &header), block(1, &interface), block(6, &packet)].concat()
}

/// A pcap file with three segments of a TCP stream, the last two out of order.
fn pcap_of_tcp() -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    for (sequence, flags) in [(9_u32, 2), (14, 0), (10, 0)] {
        let mut segment = [&[0x30, 0x39, 0x67, 0x21][..], &sequence.to_be_bytes(), &[0; 4]].concat();
        segment.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
        segment.extend(if flags == 0 { &b"data"[..] } else { b"" });
        let frame = ip_packet(6, &segment);
        let len = frame.len() as u32;
        file.extend([1, 5, len, len].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}

fn ip_packet(protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20 + segment.len() as u8, 0, 0, 0, 0, 9, protocol, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(segment);
    packet
}

/// One message of every type of IEX, filled with a digit.
fn iex_messages() -> impl Iterator<Item = Vec<u8>> {
    tickpath_iex::MESSAGE_TYPES.iter().map(|message_type| {
        let len = tickpath_iex::message_len_min(*message_type).expect("it is listed");
        let mut message = vec![b'1'; len];
        message[0] = *message_type;
        message
    })
}

/// A segment of every feed, with a message of every type, and a heartbeat.
#[must_use]
pub fn iex_segment() -> Vec<Vec<u8>> {
    let segment = |feed| {
        let mut builder = tickpath_iex::SegmentBuilder::new([0; 1_400], feed, 1, 9);
        iex_messages().for_each(|message| builder.push(&message).expect("there is room"));
        vec![builder.finish(Nanos(7)).to_vec(), builder.finish(Nanos(8)).to_vec()]
    };
    tickpath_iex::Feed::ALL.into_iter().flat_map(segment).collect()
}

/// A request for gap fill, and every frame of SNAP.
#[must_use]
pub fn iex_recovery() -> Vec<Vec<u8>> {
    use tickpath_iex::gap_fill::{Range, Request};
    use tickpath_iex::snap::{ErrorCode, Frame, SnapshotRequest, encode};

    let heartbeat = iex_segment().remove(1);
    let header = tickpath_iex::Segment::parse(&heartbeat).expect("as it was written").header();
    let token = tickpath_iex::wire::Alpha(*b"0123456789012345678901234567890123456789");
    let request = SnapshotRequest { token, channel: 1, session: 9, minimum: Sequence(5) };
    let mut frames = vec![Frame::Request(request), Frame::Start { total_len: 99 }];
    let messages: Vec<Vec<u8>> = iex_messages().collect();
    frames.extend(messages.iter().map(|message| Frame::Data { header, message }));
    frames.extend([Frame::End { sequence: Sequence(5) }, Frame::Error(ErrorCode::NOT_YET)]);
    let mut stream = Vec::new();
    for frame in &frames {
        let mut buffer = [0; 200];
        let len = encode(frame, &mut buffer).expect("there is room");
        stream.extend_from_slice(&buffer[..len]);
    }
    let mut buffer = [0; Request::LEN_MAX];
    let ranges = [Range::new(1, 5), Range::new(9, 9)];
    let gap_fill = Request::encode(0x8004, 1, 9, &ranges, &mut buffer).expect("two ranges");
    vec![stream, gap_fill.to_vec()]
}

/// Messages that change books, each prefixed with its length.
#[must_use]
pub fn iex_books() -> Vec<Vec<u8>> {
    use tickpath_iex::{AddOrder, OrderExecuted, OrderModify, PriceLevelUpdate, QuoteUpdate, wire::Ticker};

    let ticker = |index: usize| Ticker::new(["A", "B"][index % 2]).expect("one character");
    let mut stream = Vec::new();
    let mut put = |message: &[u8]| {
        stream.push(message.len() as u8);
        stream.extend_from_slice(message);
    };
    for index in 0..12_usize {
        let (side, symbol) = (tickpath_types::Side::BOTH[index / 2 % 2], ticker(index));
        let (id, price) = (tickpath_types::OrderId(index as u64 % 5), 100 + index as i64 % 4);
        let (size, is_complete) = ((index as u32 * 7) % 40, index % 3 != 0);
        put(PriceLevelUpdate::of(side, is_complete, Nanos(1), symbol, size, price).as_bytes());
        put(AddOrder::new(side, Nanos(1), symbol, id, size, price).as_bytes());
        put(OrderModify::new(index as u8, Nanos(1), symbol, id, size + 1, price).as_bytes());
        put(OrderExecuted::new(0, Nanos(1), symbol, id, 3, price, 1).as_bytes());
        put(QuoteUpdate::new(0, Nanos(1), symbol, size, price, price + 1, size).as_bytes());
    }
    iex_messages().for_each(|message| put(&message));
    vec![stream]
}

/// Recorded replies and notifications of the Deribit API, and small handwritten ones.
#[must_use]
pub fn deribit_inbound() -> Vec<Vec<u8>> {
    const RECORDED: [&str; 9] = [
        include_str!("../../protocols/deribit/tests/data/channels.jsonl"),
        include_str!("../../protocols/deribit/tests/data/user_channels.jsonl"),
        include_str!("../../protocols/deribit/tests/data/ws_error.json"),
        include_str!("../../protocols/deribit/tests/data/ws_order_buy_response.json"),
        include_str!("../../protocols/deribit/tests/data/ws_order_cancel_response.json"),
        include_str!("../../protocols/deribit/tests/data/ws_order_stop_market_no_filled_amount.json"),
        include_str!("../../protocols/deribit/tests/data/ws_portfolio.json"),
        include_str!("../../protocols/deribit/tests/data/http_get_instrument.json"),
        include_str!("../../protocols/deribit/tests/data/http_get_order_book.json"),
    ];
    const BY_HAND: [&str; 4] = [
        r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#,
        r#"{"result":"a\"\u00e9\ud83d\ude00\/","id":"x"}"#,
        r#"[1e-5,-0.0,3.2E+4,9223372036854775807,0.0028213400122472977]"#,
        r#" { "id" : 1 , "result" : [ true , false , null , { } ] } "#,
    ];
    let lines = RECORDED.iter().flat_map(|file| file.lines()).chain(BY_HAND);
    lines.map(|line| line.as_bytes().to_vec()).collect()
}

/// Requests to the Deribit API.
#[must_use]
pub fn deribit_request() -> Vec<Vec<u8>> {
    const REQUESTS: [&str; 5] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"private/buy","params":{"instrument_name":"A","amount":10,"type":"limit","price":5042.5,"label":"a\"b","post_only":true}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"private\/edit","params":{"order_id":"1","amount":20.0,"price":1e3}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"public/auth","params":{"grant_type":"client_signature","client_id":"A","timestamp":1576074319000,"nonce":"n","data":"","signature":"00"}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"public/subscribe","params":{"channels":["book.A.raw","trades.any.any.100ms"]}}"#,
        r#"{"id":"x","method":"private/get_user_trades_by_instrument","params":{"instrument_name":"A","count":5,"sorting":"asc"}}"#,
    ];
    REQUESTS.iter().map(|request| request.as_bytes().to_vec()).collect()
}

/// Conversations with the Deribit front by FIX: fields only, one message per line, of two accounts in turn;
/// see [`fix_door`](crate::fix_door()).
#[must_use]
pub fn fix_door() -> Vec<Vec<u8>> {
    // A heartbeat, which only uses up the other account's turn.
    const NOTHING: &str = "0";
    let orders = [
        "D|11=a|54=2|38=100|44=60000|55=BTC-PERPETUAL|100010=desk",
        "D|11=b|54=1|38=40|40=1|55=BTC-PERPETUAL",
        "G|11=a|54=2|38=90|44=60010|55=BTC-PERPETUAL|40=2|18=6",
        "D|11=c|54=1|38=20|854=0|44=60010|59=3|55=BTC-PERPETUAL",
        "AF|584=s|585=7",
        "AF|584=c|585=1|9014=1",
        "F|100010=desk|55=BTC-PERPETUAL",
        "q|11=q|530=7",
        "AN|710=p|724=0|263=1",
        "BE|923=u|924=4|553=bert|15=BTC",
        "D|11=d|54=1|38=1|40=S|99=61000|5127=3|55=BTC-PERPETUAL",
        "D|11=e|54=1|38=0.5|44=0.01|55=BTC-25DEC26-60000-C|62=20991231-00:00:00",
        "5|58=bye|9003=Y",
    ];
    let followed = [
        "V|262=m|263=1|264=0|265=1|267=3|269=0|269=1|269=2|146=2|55=BTC-PERPETUAL|55=BTC_USDC",
        // A recorded request of a client.
        "V|55=BTC-PERPETUAL|262=203|263=1|264=20|265=1|267=3|269=0|269=1|269=2",
        "x|320=l|559=0|263=1|15=BTC",
        "V|262=n|263=1|264=10|265=0|267=2|269=3|269=6|55=BTC-PERPETUAL",
        "e|324=e|55=BTC-PERPETUAL|263=1",
        "AD|568=t|569=0|55=BTC-PERPETUAL",
        "D|11=f|54=1|38=10|44=59990|55=BTC-PERPETUAL",
        "D|11=g|54=2|38=10|44=59990|55=BTC-PERPETUAL|59=4",
        "V|262=m|263=2",
        "c|320=d|321=3|15=BTC",
    ];
    let quotes = [
        "MM|20114=r|15=BTC|9019=g|20116=10|20112=1|20110=0.01|20119=5",
        NOTHING,
        "i|117=q|9019=g|296=1|302=s|304=2|295=2|299=1|55=BTC-PERPETUAL|132=59990|134=100|133=60010|135=100|299=2|55=BTC_USDC|132=59000|134=1",
        "D|11=t|54=2|38=80|40=1|55=BTC-PERPETUAL",
        "MM|20114=a|15=BTC|9019=g",
        NOTHING,
        "MZ|20114=z|15=BTC|9019=g",
        NOTHING,
        "i|117=w|9019=g|296=1|302=s|295=1|299=1|55=BTC-PERPETUAL|132=59980|134=5|18=6A",
        NOTHING,
        "Z|1166=c|298=6|302=s|9031=Y",
    ];
    let session = [
        "1|112=hello",
        "2|7=1|16=0",
        "4|36=20",
        "8=FIX.4.4",
        "2|7=1|16=0|34=9",
        "3|45=1|58=no",
        "A|98=0|108=30",
        "ZZ|58=what",
    ];
    let lines = |lines: &[&str]| lines.join("\n").into_bytes();
    vec![lines(&orders), lines(&followed), lines(&quotes), lines(&session)]
}

/// Conversations with the Deribit front: one request per line, of two accounts in turn.
#[must_use]
pub fn deribit_front() -> Vec<Vec<u8>> {
    const PERPETUAL: &str = "BTC-PERPETUAL";
    let request =
        |method: &str, params: &str| format!(r#"{{"id":1,"method":"{method}","params":{{{params}}}}}"#);
    let order = |side: &str, rest: &str| {
        request(&format!("private/{side}"), &format!(r#""instrument_name":"{PERPETUAL}",{rest}"#))
    };
    let trades = [
        order("sell", r#""amount":1000,"price":60000,"label":"a""#),
        order("buy", r#""amount":400,"price":60000"#),
        request("private/edit", r#""order_id":"5","amount":900,"price":60100"#),
        order("close_position", r#""type":"market""#),
        request("private/cancel", r#""order_id":"5""#),
        request("private/cancel_all", r#""detailed":true"#),
    ];
    let linked = [
        order(
            "buy",
            r#""amount":100,"price":59900,"linked_order_type":"one_triggers_one_cancels_other","otoco_config":[{"direction":"sell","price":60500},{"direction":"sell","type":"stop_market","trigger":"mark_price","trigger_price":59000}]"#,
        ),
        order("sell", r#""amount":40,"price":59900"#),
        order("sell", r#""amount":10,"type":"trailing_stop","trigger":"index_price","trigger_offset":100"#),
        order("buy", r#""amount":10,"price":60500"#),
        request("private/get_open_orders", r#""type":"trigger_all""#),
    ];
    let quotes = [
        request("private/enable_cancel_on_disconnect", ""),
        request("private/enable_cancel_on_disconnect", r#""scope":"account""#),
        request(
            "private/set_mmp_config",
            r#""index_name":"btc_usd","interval":1,"frozen_time":1,"quantity_limit":0.01,"mmp_group":"g""#,
        ),
        request(
            "private/set_self_trading_config",
            r#""mode":"reject_taker","extended_to_subaccounts":false"#,
        ),
        request(
            "private/mass_quote",
            r#""quote_id":"q","mmp_group":"g","detailed":true,"quotes":[{"instrument_name":"BTC-PERPETUAL","quote_set_id":"s","bid":{"price":59990,"amount":1000},"ask":{"price":60010,"amount":1000}}]"#,
        ),
        order("sell", r#""amount":1000,"price":59990"#),
        request("private/cancel_quotes", r#""cancel_type":"all","freeze_quotes":true"#),
    ];
    let options = [
        request("private/sell", r#""instrument_name":"BTC-25DEC26-60000-C","amount":1,"price":0.05"#),
        request("private/buy", r#""instrument_name":"BTC-25DEC26-60000-C","amount":1,"price":0.05"#),
        request(
            "private/get_transaction_log",
            r#""currency":"BTC","start_timestamp":0,"end_timestamp":4000000000000"#,
        ),
        request("private/get_settlement_history_by_currency", r#""currency":"BTC""#),
        request(
            "public/get_funding_rate_history",
            r#""instrument_name":"BTC-PERPETUAL","start_timestamp":0,"end_timestamp":4000000000000"#,
        ),
        request(
            "private/subscribe",
            r#""channels":["book.BTC-PERPETUAL.raw","user.changes.any.any.raw","user.portfolio.btc"]"#,
        ),
        request("public/fork_token", r#""refresh_token":"x","session_name":"y""#),
        request("public/get_delivery_prices", r#""index_name":"btc_usd""#),
    ];
    [&trades[..], &linked, &quotes, &options].map(|lines| lines.join("\n").into_bytes()).to_vec()
}

/// Byte streams that a peer may send to a web server.
#[must_use]
pub fn web() -> Vec<Vec<u8>> {
    crate::web::memory::seeds()
}
