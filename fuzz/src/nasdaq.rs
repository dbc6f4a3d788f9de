//! The properties of `tickpath-nasdaq`'s decoders.

use tickpath_book::{BookLimits, BooksById, DirectBooks, PackedBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks, UpdateListener};
use tickpath_nasdaq::itch50::framing::{Frame, Frames, Lengths, next_frame};
use tickpath_nasdaq::itch50::{self, Message, message_len};
use tickpath_nasdaq::moldudp64::{Header, Kind, Packet, PacketBuilder, Request};
use tickpath_nasdaq::ouch50::{self, Answer, Inbound, Options, Outbound, RequestError, TagValue};
use tickpath_nasdaq::soupbintcp::{
    self, CONTROL_LEN_MAX, ClientEvent, ClientSession, LoginRejectReason, LoginRequest, ServerEvent,
    ServerSession, Session, SessionError,
};
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, OrderEvent, Sequence, SessionId, Symbol};
use zerocopy::{Immutable, IntoBytes};

/// Buffer length for the longest message written here: a whole OUCH message with 64 KiB of options.
const BUFFER_LEN: usize = 70_000;

/// Checks ITCH 5.0: both readers agree, a message has the length of its type, and every truncation is an
/// error.
pub fn itch(data: &[u8]) {
    struct Count(usize);
    impl itch50::Listener for Count {
        fn on_unknown(&mut self, message_type: u8, message: &[u8]) {
            assert_eq!(message.first(), Some(&message_type));
            assert_eq!(message_len(message_type), None);
            self.0 += 1;
        }
    }
    let mut unknown = Count(0);
    let decoded = itch50::decode(data, &mut unknown);
    let parsed = Message::parse(data);
    assert_eq!(decoded.err(), parsed.err());
    match parsed {
        Ok(Message::Unknown(message)) => assert_eq!((message, unknown.0), (data, 1)),
        Ok(message) => {
            assert_eq!(message_len(data[0]), Some(data.len()));
            assert!(!format!("{message:?}").is_empty());
            for len in 0..data.len() {
                assert!(Message::parse(&data[..len]).is_err());
            }
        }
        Err(_) => assert_eq!(unknown.0, 0),
    }
}

/// Checks MoldUDP64, downstream and request: a packet is written back to the same bytes.
pub fn mold(data: &[u8]) {
    if let Ok(packet) = Packet::parse(data) {
        let messages: Vec<_> = packet.messages().collect();
        assert_eq!(messages.len(), usize::from(packet.message_count()));
        assert_eq!(packet.sequence().0 + messages.len() as u64, packet.next_sequence().0);
        if packet.kind() == Kind::EndOfSession {
            let header = Header::end_of_session(packet.session(), packet.sequence());
            assert_eq!(header.as_bytes(), data);
        } else {
            let mut builder = PacketBuilder::new(vec![0; data.len()], packet.session(), packet.sequence());
            for (number, message) in messages {
                assert_eq!(number, builder.next_sequence());
                builder.push(message).expect("it fitted before");
            }
            assert_eq!(builder.finish(), data);
        }
    }
    if let Ok(request) = Request::parse(data) {
        assert_eq!(request.to_bytes(), data);
    }
}

/// Checks BinaryFILE: the messages with their lengths equal the file, up to where reading stopped.
pub fn binaryfile(data: &[u8]) {
    for lengths in [Lengths::Prefixed, Lengths::Implied] {
        let mut frames = Frames::new(data, lengths);
        let mut rebuilt = Vec::new();
        let mut offset = 0;
        while let Some(Ok(message)) = frames.next() {
            let (frame, used) = next_frame(&data[offset..], lengths).expect("read").expect("read");
            assert_eq!(frame, Frame::Message(message));
            offset += used;
            let prefix = if lengths == Lengths::Prefixed { message.len() as u16 } else { 0 };
            rebuilt.extend(prefix.to_be_bytes());
            rebuilt.extend(message);
        }
        if frames.is_end_of_session() {
            rebuilt.extend([0, 0]);
        }
        assert_eq!(rebuilt, data[..frames.offset()]);
        assert!(frames.next().is_none(), "finished");
    }
}

/// Checks the feed's books: groups of messages in the packed books have the same effects as single messages in
/// plain books. The tables are tiny, so that buckets overflow and bounds are reached.
pub fn itch_books(data: &[u8]) {
    #[derive(Default)]
    struct Updates(Vec<MarketUpdate>);
    impl UpdateListener for Updates {
        fn on_update(&mut self, update: &MarketUpdate) {
            self.0.push(*update);
        }
    }
    // A message that the data cuts short is damaged.
    let mut left = data;
    let mut messages = Vec::new();
    while let Some((len, behind)) = left.split_first() {
        let (message, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        messages.push(message);
        left = behind;
    }
    for max_orders in [1, 2, 40] {
        let limits = BookLimits::new(InstrumentId(4), max_orders);
        let mut packed = BookBuilder::new(PackedBooks::new(limits));
        let mut without_updates = BookBuilder::new(PackedBooks::new(limits));
        let mut direct = BookBuilder::new(DirectBooks::new(limits));
        let (mut of_packed, mut of_direct) = (Updates::default(), Updates::default());
        packed.handle_batch(Sequence(1), messages.iter().copied(), &mut of_packed);
        without_updates.handle_batch(Sequence(1), messages.iter().copied(), &mut IgnoreUpdates);
        for (message, sequence) in messages.iter().zip(1..) {
            direct.handle_message(Sequence(sequence), message, &mut of_direct);
        }
        assert!(of_packed.0 == of_direct.0, "the updates differ");
        for builder in [&packed, &without_updates] {
            assert_eq!(builder.counters(), direct.counters());
            assert_eq!(builder.books().state_hash(), direct.books().state_hash());
            assert_eq!(builder.books().level_count(), direct.books().level_count());
        }
    }
}

/// Splits a stream into pieces, each with its arrival time. The stream's first byte determines lengths and
/// times.
pub(crate) struct Pieces<'a> {
    left: &'a [u8],
    state: u8,
    now: Nanos,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        let (&state, left) = data.split_first().unwrap_or((&0, &[]));
        Pieces { left, state, now: Nanos(1) }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = (Nanos, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        self.state = self.state.wrapping_mul(5).wrapping_add(1);
        let len = (usize::from(self.state % 64) + 1).min(self.left.len());
        let (piece, left) = self.left.split_at(len);
        self.left = left;
        self.now = self.now + Nanos::from_millis(u64::from(self.state) * 8);
        Some((self.now, piece))
    }
}

/// Checks a server whose client sends anything: every event consumes its packet's bytes, and after an error
/// or a logout the connection is over.
pub fn soup_server(data: &[u8]) {
    let mut server = ServerSession::new(Nanos(0));
    let mut received = Vec::new();
    let mut out = [0; CONTROL_LEN_MAX];
    for (now, piece) in Pieces::new(data) {
        received.extend(piece);
        loop {
            let before = received.len();
            let (used, login) = match server.handle_bytes(now, &received) {
                Ok(None) => break,
                Ok(Some((ServerEvent::LoginRequest(login), used))) => (used, Some(login)),
                Ok(Some((ServerEvent::Message(message), used))) => {
                    assert_eq!(received[3..used], *message);
                    (used, None)
                }
                Ok(Some((_, used))) => (used, None),
                Err(_) => {
                    assert!(server.is_closed());
                    assert_eq!(server.poll_transmit(now, &mut out), 0);
                    return;
                }
            };
            assert!((1..=before).contains(&used));
            received.drain(..used);
            if let Some(login) = login {
                assert!(!format!("{login:?}").contains("Password(Alpha"));
                let is_welcome = login.sequence.0 % 2 == 1;
                let done = if is_welcome {
                    server.accept(Session::new("FUZZ").expect("a name"), login.sequence)
                } else {
                    server.reject(LoginRejectReason::NOT_AUTHORIZED)
                };
                assert!(done);
            }
            let len = server.poll_transmit(now, &mut out);
            assert!(
                len == 0
                    || matches!(soupbintcp::next_packet(&out[..len]), Ok(Some((_, used))) if used == len)
            );
            if server.is_closed() {
                assert_eq!(server.handle_bytes(now, &received).err(), Some(SessionError::Closed));
                return;
            }
        }
        if server.handle_timeout(now).is_err() {
            assert!(server.is_closed());
            assert_eq!(server.poll_transmit(now, &mut out), 0);
            return;
        }
    }
}

/// Checks a client whose server sends anything: sequence numbers have no gap, and after an error or an end
/// the connection is over.
pub fn soup_client(data: &[u8]) {
    let config = LoginRequest::new("FUZZ", "secret").expect("short names");
    let mut client = ClientSession::new(config, Nanos(0));
    let mut received = Vec::new();
    let mut out = [0; CONTROL_LEN_MAX];
    let mut expected = None;
    assert_eq!(client.poll_transmit(Nanos(0), &mut out), 49);
    for (now, piece) in Pieces::new(data) {
        received.extend(piece);
        loop {
            let before = received.len();
            let used = match client.handle_bytes(now, &received) {
                Ok(None) => break,
                Ok(Some((event, used))) => {
                    match event {
                        ClientEvent::LoginAccepted { next_sequence, .. } => expected = Some(next_sequence),
                        ClientEvent::Message { sequence, message } => {
                            assert_eq!(Some(sequence), expected);
                            assert_eq!(received[3..used], *message);
                            expected = Some(Sequence(sequence.0.saturating_add(1)));
                        }
                        _ => {}
                    }
                    used
                }
                Err(_) => {
                    assert!(client.is_closed());
                    assert_eq!(client.poll_transmit(now, &mut out), 0);
                    return;
                }
            };
            assert!((1..=before).contains(&used));
            received.drain(..used);
            let _ = client.poll_transmit(now, &mut out);
            if client.is_closed() {
                return;
            }
        }
        if client.handle_timeout(now).is_err() {
            assert!(client.is_closed());
            assert_eq!(client.poll_transmit(now, &mut out), 0);
            return;
        }
    }
    assert_eq!(client.resume().sequence, expected.unwrap_or(Sequence(1)));
}

/// Returns lookups between symbols and instruments: every symbol is instrument 1, whose symbol is `symbol`.
fn round_trip_lookups(symbol: [u8; 8]) -> (impl Fn(Symbol) -> Option<InstrumentId>, Option<Symbol>) {
    (|_| Some(InstrumentId(1)), Some(Symbol(symbol)))
}

/// Checks OUCH 5.0 from a client: a message is written back to the same bytes, and a request survives a round
/// trip.
pub fn ouch_inbound(data: &[u8]) {
    match Inbound::parse(data) {
        Ok(Inbound::EnterOrder(message, options)) => check_written(message, options, data),
        Ok(Inbound::ReplaceOrder(message, options)) => check_written(message, options, data),
        Ok(Inbound::CancelOrder(message, options)) => check_written(message, options, data),
        Ok(Inbound::ModifyOrder(message, options)) => check_written(message, options, data),
        Ok(Inbound::MassCancel(message, options)) => check_written(message, options, data),
        Ok(Inbound::DisableOrderEntry(message, options)) => check_written(message, options, data),
        Ok(Inbound::EnableOrderEntry(message, options)) => check_written(message, options, data),
        Ok(Inbound::AccountQuery(message, options)) => check_written(message, options, data),
        Ok(other) => panic!("a message that is not checked: {other:?}"),
        Err(_) => {}
    }
    let at = if data.first() == Some(&ouch50::MassCancel::TYPE) { 9 } else { 10 };
    let symbol = data.get(at..at + 8).map_or([b' '; 8], |bytes| bytes.try_into().expect("eight bytes"));
    let (instrument_of, symbol) = round_trip_lookups(symbol);
    match ouch50::decode_request(data, &instrument_of) {
        Ok(request) => {
            let mut out = [0; ouch50::MESSAGE_LEN_MAX];
            let len = ouch50::encode_request(&request, |_| symbol, &mut out).expect("it came from a message");
            assert_eq!(ouch50::decode_request(&out[..len], &instrument_of), Ok(request));
        }
        Err(RequestError::Malformed(error)) => assert_eq!(Inbound::parse(data), Err(error)),
        Err(_) => {}
    }
}

/// Checks OUCH 5.0 from a venue: a message is written back to the same bytes, and an answer survives a round
/// trip.
pub fn ouch_outbound(data: &[u8]) {
    match Outbound::parse(data) {
        Ok(Outbound::SystemEvent(message, options)) => check_written(message, options, data),
        Ok(Outbound::Accepted(message, options)) => check_written(message, options, data),
        Ok(Outbound::Replaced(message, options)) => check_written(message, options, data),
        Ok(Outbound::Canceled(message, options)) => check_written(message, options, data),
        Ok(Outbound::AiqCanceled(message, options)) => {
            assert!(format!("{message:?} {options:?}").starts_with("AiqCanceled"));
        }
        Ok(Outbound::Executed(message, options)) => check_written(message, options, data),
        Ok(Outbound::BrokenTrade(message, options)) => check_written(message, options, data),
        Ok(Outbound::PriceCorrection(message, options)) => check_written(message, options, data),
        Ok(Outbound::Rejected(message, options)) => check_written(message, options, data),
        Ok(Outbound::CancelPending(message, options)) => check_written(message, options, data),
        Ok(Outbound::CancelReject(message, options)) => check_written(message, options, data),
        Ok(Outbound::PriorityUpdate(message, options)) => check_written(message, options, data),
        Ok(Outbound::Modified(message, options)) => check_written(message, options, data),
        Ok(Outbound::Restated(message, options)) => check_written(message, options, data),
        Ok(Outbound::MassCancelResponse(message, options)) => check_written(message, options, data),
        Ok(Outbound::DisableOrderEntryResponse(message, options)) => check_written(message, options, data),
        Ok(Outbound::EnableOrderEntryResponse(message, options)) => check_written(message, options, data),
        Ok(Outbound::QueryResponse(message, options)) => check_written(message, options, data),
        Ok(other) => panic!("a message that is not checked: {other:?}"),
        Err(_) => {}
    }
    let at = match data.first() {
        Some(&ouch50::Replaced::TYPE) => 22,
        Some(&ouch50::MassCancelResponse::TYPE) => 17,
        _ => 18,
    };
    let symbol = data.get(at..at + 8).map_or([b' '; 8], |bytes| bytes.try_into().expect("eight bytes"));
    let (instrument_of, symbol) = round_trip_lookups(symbol);
    if let Ok(Answer::Order(answer)) = ouch50::decode_event(data, &instrument_of) {
        let event = OrderEvent {
            command: Sequence(1),
            session: SessionId(1),
            ts: answer.ts,
            is_reply: true,
            kind: answer.kind,
        };
        let mut out = [0; ouch50::MESSAGE_LEN_MAX];
        let len = ouch50::encode_event(&event, |_| symbol, &mut out).expect("it came from a message");
        match ouch50::decode_event(&out[..len], &instrument_of) {
            Ok(Answer::Order(reparsed)) => assert_eq!((reparsed.kind, reparsed.ts), (answer.kind, answer.ts)),
            other => panic!("{other:?}"),
        }
    }
}

/// Checks that a message and its options are written back to `data`, where an empty list of options may be
/// absent.
fn check_written<M: IntoBytes + Immutable>(message: &M, options: Options<'_>, data: &[u8]) {
    let tags: Vec<TagValue<'_>> = options.iter().collect();
    let mut out = vec![0; BUFFER_LEN];
    let len = ouch50::encode_with_options(message, &tags, &mut out).expect("it was read");
    if data.len() == size_of::<M>() {
        assert!(tags.is_empty());
        assert_eq!(message.as_bytes(), data);
    } else {
        assert_eq!(&out[..len], data);
    }
}
