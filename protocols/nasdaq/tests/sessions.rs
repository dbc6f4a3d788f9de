//! Scenarios of SoupBinTCP connections: two sides and a wire, in simulated time.
#![allow(clippy::unwrap_used, reason = "functions that tests share do not count as tests")]

use tickpath_nasdaq::soupbintcp::{
    CONTROL_LEN_MAX, ClientEvent, ClientSession, FrameError, LoginAccepted, LoginRejectReason, LoginRequest,
    PEER_TIMEOUT_MAX, PEER_TIMEOUT_MIN, Packet, Password, SendError, ServerEvent, ServerSession, Session,
    SessionError, Username, next_packet, packet_len,
};
use tickpath_types::{Nanos, Sequence};

const START: Nanos = Nanos::from_secs(100);

fn at(millis: u64) -> Nanos {
    START + Nanos::from_millis(millis)
}

/// Both sides, and the bytes in flight to each.
struct Line {
    client: ClientSession,
    server: ServerSession,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Line {
    fn new(config: LoginRequest) -> Line {
        Line {
            client: ClientSession::new(config, START),
            server: ServerSession::new(START),
            to_server: Vec::new(),
            to_client: Vec::new(),
        }
    }

    /// Creates a line whose login was accepted at the start, in session DAY1 from message 1.
    fn logged_in() -> Line {
        let mut line = Line::new(config());
        line.transmit(START);
        assert_eq!(line.server_hears(START).as_deref(), Ok("login TRADER from 1"));
        assert!(line.server.accept(day(), Sequence(1)));
        line.transmit(START);
        assert_eq!(line.client_hears(START).as_deref(), Ok("accepted DAY1 next 1"));
        line
    }

    /// Lets both sides send what is due.
    fn transmit(&mut self, now: Nanos) {
        let mut out = [0; CONTROL_LEN_MAX];
        let len = self.client.poll_transmit(now, &mut out);
        self.to_server.extend(&out[..len]);
        let len = self.server.poll_transmit(now, &mut out);
        self.to_client.extend(&out[..len]);
    }

    /// Delivers all bytes in flight to the server; returns its events as text.
    fn server_hears(&mut self, now: Nanos) -> Result<String, SessionError> {
        let mut heard = Vec::new();
        while let Some((event, used)) = self.server.handle_bytes(now, &self.to_server)? {
            heard.push(match event {
                ServerEvent::LoginRequest(login) => {
                    assert!(login.password.matches("secret"));
                    format!("login {} from {}", login.username, login.sequence)
                }
                ServerEvent::Message(message) => format!("message {}", message.escape_ascii()),
                ServerEvent::Heartbeat => "heartbeat".to_owned(),
                ServerEvent::Debug(text) => format!("debug {}", text.escape_ascii()),
                ServerEvent::LogoutRequest => "logout".to_owned(),
            });
            self.to_server.drain(..used);
            if self.server.is_closed() {
                break;
            }
        }
        Ok(heard.join(", "))
    }

    fn client_hears(&mut self, now: Nanos) -> Result<String, SessionError> {
        let mut heard = Vec::new();
        while let Some((event, used)) = self.client.handle_bytes(now, &self.to_client)? {
            heard.push(match event {
                ClientEvent::LoginAccepted { session, next_sequence } => {
                    format!("accepted {session} next {next_sequence}")
                }
                ClientEvent::LoginRejected(reason) => format!("rejected {reason:?}"),
                ClientEvent::Message { sequence, message } => {
                    format!("{sequence} {}", message.escape_ascii())
                }
                ClientEvent::Unsequenced(message) => format!("unsequenced {}", message.escape_ascii()),
                ClientEvent::Heartbeat => "heartbeat".to_owned(),
                ClientEvent::Debug(text) => format!("debug {}", text.escape_ascii()),
                ClientEvent::EndOfSession => "end of session".to_owned(),
            });
            self.to_client.drain(..used);
            if self.client.is_closed() {
                break;
            }
        }
        Ok(heard.join(", "))
    }

    fn server_says(&mut self, now: Nanos, message: &[u8]) -> Sequence {
        let mut out = [0; 64];
        let (len, sequence) = self.server.encode_message(now, &mut out, message).unwrap();
        self.to_client.extend(&out[..len]);
        sequence
    }

    fn client_says(&mut self, now: Nanos, message: &[u8]) {
        let mut out = [0; 64];
        let len = frame(&self.client, &mut out, message).unwrap();
        self.client.sent(now);
        self.to_server.extend(&out[..len]);
    }
}

fn frame(client: &ClientSession, out: &mut [u8], message: &[u8]) -> Result<usize, SendError> {
    client.frame_message_with(out, |room| {
        room[..message.len()].copy_from_slice(message);
        Ok(message.len())
    })
}

fn config() -> LoginRequest {
    LoginRequest::new("TRADER", "secret").unwrap()
}

fn day() -> Session {
    Session::new("DAY1").unwrap()
}

/// Returns the worked example: USER, secret, the current session from its start.
fn login_of_user() -> Vec<u8> {
    [&b"\x00\x2fLUSER  secret    "[..], &[b' '; 10], &[b' '; 19], b"1"].concat()
}

fn encoded(packet: Packet<'_>) -> Vec<u8> {
    let mut out = [0; 128];
    let len = packet.encode(&mut out).unwrap();
    out[..len].to_vec()
}

#[test]
fn the_login_is_the_one_of_the_fact_sheet() {
    let mut client = ClientSession::new(LoginRequest::new("USER", "secret").unwrap(), START);
    let mut out = [0; CONTROL_LEN_MAX];
    let len = client.poll_transmit(START, &mut out);
    assert_eq!(&out[..len], login_of_user());
    assert_eq!(client.poll_transmit(START, &mut out), 0, "once");
}

#[test]
fn messages_flow_both_ways_and_are_counted() {
    let mut line = Line::logged_in();
    assert_eq!(line.server_says(START, b"one"), Sequence(1));
    assert_eq!(line.server_says(START, b""), Sequence(2));
    assert_eq!(line.server_says(START, b"three"), Sequence(3));
    assert_eq!(line.client_hears(START).as_deref(), Ok("1 one, 2 , 3 three"));
    line.client_says(START, b"order");
    assert_eq!(line.server_hears(START).as_deref(), Ok("message order"));
    assert_eq!(line.client.next_sequence(), line.server.next_sequence());
}

#[test]
fn packets_arrive_in_any_pieces() {
    let mut line = Line::logged_in();
    line.server_says(START, b"one");
    line.server_says(START, b"two");
    let bytes = std::mem::take(&mut line.to_client);
    let mut heard = Vec::new();
    for byte in bytes {
        line.to_client.push(byte);
        heard.push(line.client_hears(START).unwrap());
    }
    heard.retain(|text| !text.is_empty());
    assert_eq!(heard, ["1 one", "2 two"]);
}

#[test]
fn a_lost_connection_is_resumed_without_loss_or_repetition() {
    let mut line = Line::logged_in();
    let said: [&[u8]; 4] = [b"one", b"two", b"three", b"four"];
    for message in said {
        line.server_says(START, message);
    }
    let half = line.to_client.len() / 2;
    line.to_client.truncate(half);
    assert_eq!(line.client_hears(START).as_deref(), Ok("1 one, 2 two"));

    let mut line = Line::new(line.client.resume());
    line.transmit(START);
    assert_eq!(line.server_hears(START).as_deref(), Ok("login TRADER from 3"));
    line.server.accept(day(), Sequence(3));
    line.transmit(START);
    for message in &said[2..] {
        line.server_says(START, message);
    }
    assert_eq!(line.client_hears(START).as_deref(), Ok("accepted DAY1 next 3, 3 three, 4 four"));
}

#[test]
fn the_largest_number_a_server_can_claim_is_not_passed() {
    let mut line = Line::new(config());
    line.transmit(START);
    let next_sequence = Sequence(u64::MAX);
    line.to_client.extend(encoded(Packet::LoginAccepted(LoginAccepted { session: day(), next_sequence })));
    line.to_client.extend(encoded(Packet::SequencedData(b"x")));
    line.to_client.extend(encoded(Packet::SequencedData(b"y")));
    let max = u64::MAX;
    assert_eq!(line.client_hears(START), Ok(format!("accepted DAY1 next {max}, {max} x, {max} y")));
}

#[test]
fn a_refused_login_ends_the_connection() {
    for (reason, text) in [
        (LoginRejectReason::NOT_AUTHORIZED, "rejected 'A' (not authorized: check user name and password)"),
        (
            LoginRejectReason::SESSION_NOT_AVAILABLE,
            "rejected 'S' (session not available: check the requested session)",
        ),
    ] {
        let mut line = Line::new(config());
        line.transmit(START);
        line.server_hears(START).unwrap();
        assert!(line.server.reject(reason));
        assert!(!line.server.is_closed(), "the refusal is still to be sent");
        line.transmit(START);
        assert!(line.server.is_closed());
        assert_eq!(line.client_hears(START).as_deref(), Ok(text));
        assert!(line.client.is_closed());
        assert_eq!(line.client.handle_bytes(START, b"").err(), Some(SessionError::Closed));
    }
}

#[test]
fn a_verdict_without_a_login_does_nothing() {
    let mut server = ServerSession::new(START);
    assert!(!server.accept(day(), Sequence(1)));
    assert!(!server.reject(LoginRejectReason::NOT_AUTHORIZED));
    assert_eq!(server.poll_transmit(START, &mut [0; CONTROL_LEN_MAX]), 0);
    assert!(!server.is_closed());
}

#[test]
fn bytes_wait_while_a_login_is_judged() {
    let mut line = Line::new(config());
    line.transmit(START);
    line.to_server.extend(encoded(Packet::ClientHeartbeat));
    assert_eq!(line.server_hears(START).as_deref(), Ok("login TRADER from 1"));
    assert_eq!(line.server_hears(START).as_deref(), Ok(""));
    line.server.accept(day(), Sequence(1));
    assert_eq!(line.server_hears(START).as_deref(), Ok("heartbeat"));
}

#[test]
fn each_side_speaks_after_a_second_of_its_own_silence() {
    let mut line = Line::logged_in();
    line.transmit(at(999));
    assert!(line.to_client.is_empty() && line.to_server.is_empty());
    line.transmit(at(1000));
    assert_eq!(line.client_hears(at(1000)).as_deref(), Ok("heartbeat"));
    assert_eq!(line.server_hears(at(1000)).as_deref(), Ok("heartbeat"));
    // A message replaces a heartbeat.
    line.client_says(at(1500), b"order");
    line.server_says(at(1600), b"answer");
    line.transmit(at(2499));
    assert_eq!(line.server_hears(at(2499)).as_deref(), Ok("message order"));
    assert_eq!(line.client_hears(at(2499)).as_deref(), Ok("1 answer"));
    line.transmit(at(2500));
    assert_eq!((line.server_hears(at(2500)).as_deref(), line.to_client.len()), (Ok("heartbeat"), 0));
    line.transmit(at(2599));
    assert!(line.to_client.is_empty());
    line.transmit(at(2600));
    assert_eq!(line.client_hears(at(2600)).as_deref(), Ok("heartbeat"));
}

#[test]
fn a_silent_peer_is_given_up_after_fifteen_seconds() {
    let silent = SessionError::PeerSilent { timeout: Nanos::from_secs(15) };
    let mut line = Line::logged_in();
    assert_eq!(line.server.handle_timeout(at(14_999)), Ok(()));
    assert_eq!(line.server.handle_timeout(at(15_000)), Err(silent));
    assert!(line.server.is_closed());
    assert_eq!(line.client.handle_timeout(at(15_000)), Err(silent));
    assert_eq!(frame(&line.client, &mut [0; 64], b"x"), Err(SendError::NotLoggedIn));
    assert_eq!(line.client.poll_transmit(at(16_000), &mut [0; CONTROL_LEN_MAX]), 0);
}

#[test]
fn half_a_packet_is_no_sign_of_life() {
    let mut line = Line::logged_in();
    line.to_server.extend(b"\x00\x20Uabc");
    assert_eq!(line.server_hears(at(14_000)).as_deref(), Ok(""));
    assert!(line.server.handle_timeout(at(15_000)).is_err());
}

#[test]
fn a_login_must_come_in_time_and_be_answered_in_time() {
    let late = SessionError::LoginTimeout { timeout: Nanos::from_secs(30) };
    let mut server = ServerSession::new(START);
    assert_eq!(server.handle_timeout(at(29_999)), Ok(()));
    assert_eq!(server.handle_timeout(at(30_000)), Err(late));

    let mut line = Line::new(config());
    line.transmit(START);
    line.server_hears(START).unwrap();
    assert_eq!(line.client.handle_timeout(at(29_999)), Ok(()));
    assert_eq!(line.client.handle_timeout(at(30_000)), Err(late));
    assert_eq!(line.server.handle_timeout(at(30_000)), Err(late), "the application never judged it");
    assert!(!line.server.accept(day(), Sequence(1)), "too late");
}

#[test]
fn edition_4_1_lets_the_client_choose_its_time_out_within_bounds() {
    for (wish, granted) in [
        (Nanos::from_secs(5), Nanos::from_secs(5)),
        (Nanos::from_millis(1), PEER_TIMEOUT_MIN),
        (Nanos::from_millis(99_999), PEER_TIMEOUT_MAX),
    ] {
        let mut config = config();
        config.heartbeat_timeout = Some(wish);
        let mut line = Line::new(config);
        line.transmit(START);
        assert_eq!(line.to_server.len(), 54);
        line.server_hears(START).unwrap();
        line.server.accept(day(), Sequence(1));
        line.transmit(START);
        assert_eq!(line.server.handle_timeout(START + granted - Nanos(1)), Ok(()));
        let silent = SessionError::PeerSilent { timeout: granted };
        assert_eq!(line.server.handle_timeout(START + granted), Err(silent));
    }
}

#[test]
fn a_client_logs_out() {
    let mut line = Line::logged_in();
    line.client.logout();
    assert!(!line.client.is_active() && !line.client.is_closed());
    line.transmit(at(10));
    assert!(line.client.is_closed());
    assert_eq!(line.server_hears(at(10)).as_deref(), Ok("logout"));
    assert!(line.server.is_closed());
}

#[test]
fn a_session_ends() {
    let mut line = Line::logged_in();
    line.server_says(START, b"last");
    line.server.end_session();
    assert_eq!(line.server.encode_message(START, &mut [0; 64], b"more"), Err(SendError::NotLoggedIn));
    line.transmit(START);
    assert!(line.server.is_closed());
    assert_eq!(line.client_hears(START).as_deref(), Ok("1 last, end of session"));
    assert!(line.client.is_closed());
}

#[test]
fn packets_out_of_place_close_the_connection() {
    let login = LoginRequest {
        username: Username::new("A").unwrap(),
        password: Password::new("b").unwrap(),
        session: Session::BLANK,
        sequence: Sequence(1),
        heartbeat_timeout: None,
    };
    // To a server before and after the login.
    for packet in [Packet::UnsequencedData(b"x"), Packet::ClientHeartbeat, Packet::ServerHeartbeat] {
        let mut server = ServerSession::new(START);
        let error = server.handle_bytes(START, &encoded(packet)).unwrap_err();
        assert_eq!(error, SessionError::UnexpectedPacket { packet_type: packet.packet_type() });
        assert!(server.is_closed());
    }
    for packet in [Packet::LoginRequest(login), Packet::SequencedData(b"x"), Packet::EndOfSession] {
        let mut line = Line::logged_in();
        line.to_server.extend(encoded(packet));
        let packet_type = packet.packet_type();
        assert_eq!(line.server_hears(START), Err(SessionError::UnexpectedPacket { packet_type }));
    }
    // To a client before and after the login.
    for packet in [Packet::SequencedData(b"x"), Packet::ServerHeartbeat, Packet::EndOfSession] {
        let mut line = Line::new(config());
        line.transmit(START);
        line.to_client.extend(encoded(packet));
        let packet_type = packet.packet_type();
        assert_eq!(line.client_hears(START), Err(SessionError::UnexpectedPacket { packet_type }));
    }
    for packet in [Packet::LoginRejected(LoginRejectReason(b'A')), Packet::LogoutRequest] {
        let mut line = Line::logged_in();
        line.to_client.extend(encoded(packet));
        let packet_type = packet.packet_type();
        assert_eq!(line.client_hears(START), Err(SessionError::UnexpectedPacket { packet_type }));
    }
}

#[test]
fn text_for_people_is_passed_on_at_any_time() {
    let mut line = Line::new(config());
    line.transmit(START);
    line.to_client.extend(encoded(Packet::Debug(b"welcome")));
    assert_eq!(line.client_hears(START).as_deref(), Ok("debug welcome"));
    let mut server = ServerSession::new(START);
    assert!(matches!(server.handle_bytes(START, b"\x00\x03+hi"), Ok(Some((ServerEvent::Debug(b"hi"), 5)))));
}

#[test]
fn what_is_no_packet_is_refused_as_early_as_it_can_be() {
    let refused = |bytes: &[u8]| next_packet(bytes).unwrap_err();
    assert_eq!(refused(b"\x00\x00"), FrameError::NoType);
    assert_eq!(refused(b"\xff\xffx"), FrameError::UnknownType { packet_type: b'x' });
    assert_eq!(refused(b"\xff\xffR"), FrameError::WrongLength { packet_type: b'R', len: 65534 });
    assert_eq!(refused(b"\x00\x01J"), FrameError::WrongLength { packet_type: b'J', len: 0 });
    assert_eq!(refused(b"\x00\x30L"), FrameError::WrongLength { packet_type: b'L', len: 47 });
    let mut login = login_of_user();
    login[48] = b'x';
    let field = "requested sequence number";
    assert_eq!(refused(&login), FrameError::NotANumber { packet_type: b'L', field });
    login[48] = b' ';
    assert_eq!(refused(&login), FrameError::NotANumber { packet_type: b'L', field });
    login[29..49].copy_from_slice(b"18446744073709551616");
    assert_eq!(refused(&login), FrameError::NotANumber { packet_type: b'L', field });
    login[29..49].copy_from_slice(b"18446744073709551615");
    assert!(next_packet(&login).unwrap().is_some());
    for len in 0..login.len() {
        assert!(next_packet(&login[..len]).unwrap().is_none(), "{len} bytes are not a whole packet");
        assert_eq!(packet_len(&login[..len]), (len >= 2).then_some(login.len()));
    }
}

#[test]
fn a_buffer_too_short_is_said_and_uses_no_number() {
    let mut line = Line::logged_in();
    let mut out = [0; 7];
    let error = line.server.encode_message(START, &mut out, b"hello").unwrap_err();
    assert!(
        matches!(error, SendError::BufferTooShort(short) if (short.needed, short.len) == (8, 7)),
        "{error}"
    );
    assert!(line.server.encode_message(START, &mut out[..2], b"").is_err());
    assert_eq!(line.server.encode_message(START, &mut out, b"hell").unwrap(), (7, Sequence(1)));
}

#[test]
fn packets_are_laid_out_as_the_fact_sheet_says() {
    let accepted = LoginAccepted { session: day(), next_sequence: Sequence(5) };
    for (packet, bytes) in [
        (Packet::LoginAccepted(accepted), &b"\x00\x1fA      DAY1                   5"[..]),
        (Packet::LoginRejected(LoginRejectReason::NOT_AUTHORIZED), b"\x00\x02JA"),
        (Packet::SequencedData(b"abc"), b"\x00\x04Sabc"),
        (Packet::UnsequencedData(b""), b"\x00\x01U"),
        (Packet::ServerHeartbeat, b"\x00\x01H"),
        (Packet::ClientHeartbeat, b"\x00\x01R"),
        (Packet::EndOfSession, b"\x00\x01Z"),
        (Packet::LogoutRequest, b"\x00\x01O"),
    ] {
        assert_eq!(encoded(packet), bytes);
        let (read, used) = next_packet(bytes).unwrap().unwrap();
        assert_eq!((format!("{read:?}"), used), (format!("{packet:?}"), bytes.len()));
    }
}
