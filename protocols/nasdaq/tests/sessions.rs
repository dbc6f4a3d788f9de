//! Scenarios of SoupBinTCP connections: a client, a server and the bytes in flight, in simulated time.
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

/// Client and server of a connection, and the bytes in flight to each of them.
struct Connection {
    client: ClientSession,
    server: ServerSession,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Connection {
    fn new(config: LoginRequest) -> Connection {
        Connection {
            client: ClientSession::new(config, START),
            server: ServerSession::new(START),
            to_server: Vec::new(),
            to_client: Vec::new(),
        }
    }

    /// Creates a connection whose login was accepted at `START`, in session DAY1 from message 1.
    fn logged_in() -> Connection {
        let mut connection = Connection::new(config());
        connection.transmit(START);
        assert_eq!(connection.server_receives(START).as_deref(), Ok("login TRADER from 1"));
        assert!(connection.server.accept(day(), Sequence(1)));
        connection.transmit(START);
        assert_eq!(connection.client_receives(START).as_deref(), Ok("accepted DAY1 next 1"));
        connection
    }

    /// Lets both sides send the control packets that are due.
    fn transmit(&mut self, now: Nanos) {
        let mut out = [0; CONTROL_LEN_MAX];
        let len = self.client.poll_transmit(now, &mut out);
        self.to_server.extend(&out[..len]);
        let len = self.server.poll_transmit(now, &mut out);
        self.to_client.extend(&out[..len]);
    }

    /// Delivers all bytes in flight to the server; returns its events as text.
    fn server_receives(&mut self, now: Nanos) -> Result<String, SessionError> {
        let mut received = Vec::new();
        while let Some((event, used)) = self.server.handle_bytes(now, &self.to_server)? {
            received.push(match event {
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
        Ok(received.join(", "))
    }

    fn client_receives(&mut self, now: Nanos) -> Result<String, SessionError> {
        let mut received = Vec::new();
        while let Some((event, used)) = self.client.handle_bytes(now, &self.to_client)? {
            received.push(match event {
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
        Ok(received.join(", "))
    }

    fn server_sends(&mut self, now: Nanos, message: &[u8]) -> Sequence {
        let mut out = [0; 64];
        let (len, sequence) = self.server.encode_message(now, &mut out, message).unwrap();
        self.to_client.extend(&out[..len]);
        sequence
    }

    fn client_sends(&mut self, now: Nanos, message: &[u8]) {
        let mut out = [0; 64];
        let len = frame(&self.client, &mut out, message).unwrap();
        self.client.sent(now);
        self.to_server.extend(&out[..len]);
    }
}

fn frame(client: &ClientSession, out: &mut [u8], message: &[u8]) -> Result<usize, SendError> {
    client.frame_message_with(out, |space| {
        space[..message.len()].copy_from_slice(message);
        Ok(message.len())
    })
}

fn config() -> LoginRequest {
    LoginRequest::new("TRADER", "secret").unwrap()
}

fn day() -> Session {
    Session::new("DAY1").unwrap()
}

/// Returns the bytes of a Login Request: user USER, password secret, current session, from message 1.
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
    let mut connection = Connection::logged_in();
    assert_eq!(connection.server_sends(START, b"one"), Sequence(1));
    assert_eq!(connection.server_sends(START, b""), Sequence(2));
    assert_eq!(connection.server_sends(START, b"three"), Sequence(3));
    assert_eq!(connection.client_receives(START).as_deref(), Ok("1 one, 2 , 3 three"));
    connection.client_sends(START, b"order");
    assert_eq!(connection.server_receives(START).as_deref(), Ok("message order"));
    assert_eq!(connection.client.next_sequence(), connection.server.next_sequence());
}

#[test]
fn packets_arrive_in_any_pieces() {
    let mut connection = Connection::logged_in();
    connection.server_sends(START, b"one");
    connection.server_sends(START, b"two");
    let bytes = std::mem::take(&mut connection.to_client);
    let mut received = Vec::new();
    for byte in bytes {
        connection.to_client.push(byte);
        received.push(connection.client_receives(START).unwrap());
    }
    received.retain(|text| !text.is_empty());
    assert_eq!(received, ["1 one", "2 two"]);
}

#[test]
fn a_lost_connection_is_resumed_without_loss_or_repetition() {
    let mut connection = Connection::logged_in();
    let sent: [&[u8]; 4] = [b"one", b"two", b"three", b"four"];
    for message in sent {
        connection.server_sends(START, message);
    }
    let half = connection.to_client.len() / 2;
    connection.to_client.truncate(half);
    assert_eq!(connection.client_receives(START).as_deref(), Ok("1 one, 2 two"));

    let mut connection = Connection::new(connection.client.resume());
    connection.transmit(START);
    assert_eq!(connection.server_receives(START).as_deref(), Ok("login TRADER from 3"));
    connection.server.accept(day(), Sequence(3));
    connection.transmit(START);
    for message in &sent[2..] {
        connection.server_sends(START, message);
    }
    assert_eq!(connection.client_receives(START).as_deref(), Ok("accepted DAY1 next 3, 3 three, 4 four"));
}

#[test]
fn the_sequence_stops_at_the_largest_number() {
    let mut connection = Connection::new(config());
    connection.transmit(START);
    let next_sequence = Sequence(u64::MAX);
    connection
        .to_client
        .extend(encoded(Packet::LoginAccepted(LoginAccepted { session: day(), next_sequence })));
    connection.to_client.extend(encoded(Packet::SequencedData(b"x")));
    connection.to_client.extend(encoded(Packet::SequencedData(b"y")));
    let max = u64::MAX;
    assert_eq!(connection.client_receives(START), Ok(format!("accepted DAY1 next {max}, {max} x, {max} y")));
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
        let mut connection = Connection::new(config());
        connection.transmit(START);
        connection.server_receives(START).unwrap();
        assert!(connection.server.reject(reason));
        assert!(!connection.server.is_closed(), "the refusal is still to be sent");
        connection.transmit(START);
        assert!(connection.server.is_closed());
        assert_eq!(connection.client_receives(START).as_deref(), Ok(text));
        assert!(connection.client.is_closed());
        assert_eq!(connection.client.handle_bytes(START, b"").err(), Some(SessionError::Closed));
    }
}

#[test]
fn an_answer_without_a_login_does_nothing() {
    let mut server = ServerSession::new(START);
    assert!(!server.accept(day(), Sequence(1)));
    assert!(!server.reject(LoginRejectReason::NOT_AUTHORIZED));
    assert_eq!(server.poll_transmit(START, &mut [0; CONTROL_LEN_MAX]), 0);
    assert!(!server.is_closed());
}

#[test]
fn bytes_wait_while_a_login_is_checked() {
    let mut connection = Connection::new(config());
    connection.transmit(START);
    connection.to_server.extend(encoded(Packet::ClientHeartbeat));
    assert_eq!(connection.server_receives(START).as_deref(), Ok("login TRADER from 1"));
    assert_eq!(connection.server_receives(START).as_deref(), Ok(""));
    connection.server.accept(day(), Sequence(1));
    assert_eq!(connection.server_receives(START).as_deref(), Ok("heartbeat"));
}

#[test]
fn each_side_sends_a_heartbeat_after_an_idle_second() {
    let mut connection = Connection::logged_in();
    connection.transmit(at(999));
    assert!(connection.to_client.is_empty() && connection.to_server.is_empty());
    connection.transmit(at(1000));
    assert_eq!(connection.client_receives(at(1000)).as_deref(), Ok("heartbeat"));
    assert_eq!(connection.server_receives(at(1000)).as_deref(), Ok("heartbeat"));
    // A message postpones the next heartbeat.
    connection.client_sends(at(1500), b"order");
    connection.server_sends(at(1600), b"answer");
    connection.transmit(at(2499));
    assert_eq!(connection.server_receives(at(2499)).as_deref(), Ok("message order"));
    assert_eq!(connection.client_receives(at(2499)).as_deref(), Ok("1 answer"));
    connection.transmit(at(2500));
    assert_eq!(
        (connection.server_receives(at(2500)).as_deref(), connection.to_client.len()),
        (Ok("heartbeat"), 0)
    );
    connection.transmit(at(2599));
    assert!(connection.to_client.is_empty());
    connection.transmit(at(2600));
    assert_eq!(connection.client_receives(at(2600)).as_deref(), Ok("heartbeat"));
}

#[test]
fn an_idle_peer_times_out_after_fifteen_seconds() {
    let silent = SessionError::PeerSilent { timeout: Nanos::from_secs(15) };
    let mut connection = Connection::logged_in();
    assert_eq!(connection.server.handle_timeout(at(14_999)), Ok(()));
    assert_eq!(connection.server.handle_timeout(at(15_000)), Err(silent));
    assert!(connection.server.is_closed());
    assert_eq!(connection.client.handle_timeout(at(15_000)), Err(silent));
    assert_eq!(frame(&connection.client, &mut [0; 64], b"x"), Err(SendError::NotLoggedIn));
    assert_eq!(connection.client.poll_transmit(at(16_000), &mut [0; CONTROL_LEN_MAX]), 0);
}

#[test]
fn half_a_packet_does_not_count_as_activity() {
    let mut connection = Connection::logged_in();
    connection.to_server.extend(b"\x00\x20Uabc");
    assert_eq!(connection.server_receives(at(14_000)).as_deref(), Ok(""));
    assert!(connection.server.handle_timeout(at(15_000)).is_err());
}

#[test]
fn a_login_and_its_answer_have_a_deadline() {
    let late = SessionError::LoginTimeout { timeout: Nanos::from_secs(30) };
    let mut server = ServerSession::new(START);
    assert_eq!(server.handle_timeout(at(29_999)), Ok(()));
    assert_eq!(server.handle_timeout(at(30_000)), Err(late));

    let mut connection = Connection::new(config());
    connection.transmit(START);
    connection.server_receives(START).unwrap();
    assert_eq!(connection.client.handle_timeout(at(29_999)), Ok(()));
    assert_eq!(connection.client.handle_timeout(at(30_000)), Err(late));
    assert_eq!(connection.server.handle_timeout(at(30_000)), Err(late), "the application never judged it");
    assert!(!connection.server.accept(day(), Sequence(1)), "too late");
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
        let mut connection = Connection::new(config);
        connection.transmit(START);
        assert_eq!(connection.to_server.len(), 54);
        connection.server_receives(START).unwrap();
        connection.server.accept(day(), Sequence(1));
        connection.transmit(START);
        assert_eq!(connection.server.handle_timeout(START + granted - Nanos(1)), Ok(()));
        let silent = SessionError::PeerSilent { timeout: granted };
        assert_eq!(connection.server.handle_timeout(START + granted), Err(silent));
    }
}

#[test]
fn a_client_logs_out() {
    let mut connection = Connection::logged_in();
    connection.client.logout();
    assert!(!connection.client.is_active() && !connection.client.is_closed());
    connection.transmit(at(10));
    assert!(connection.client.is_closed());
    assert_eq!(connection.server_receives(at(10)).as_deref(), Ok("logout"));
    assert!(connection.server.is_closed());
}

#[test]
fn a_session_ends() {
    let mut connection = Connection::logged_in();
    connection.server_sends(START, b"last");
    connection.server.end_session();
    assert_eq!(connection.server.encode_message(START, &mut [0; 64], b"more"), Err(SendError::NotLoggedIn));
    connection.transmit(START);
    assert!(connection.server.is_closed());
    assert_eq!(connection.client_receives(START).as_deref(), Ok("1 last, end of session"));
    assert!(connection.client.is_closed());
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
    // Packets that a server must not receive, before and after the login.
    for packet in [Packet::UnsequencedData(b"x"), Packet::ClientHeartbeat, Packet::ServerHeartbeat] {
        let mut server = ServerSession::new(START);
        let error = server.handle_bytes(START, &encoded(packet)).unwrap_err();
        assert_eq!(error, SessionError::UnexpectedPacket { packet_type: packet.packet_type() });
        assert!(server.is_closed());
    }
    for packet in [Packet::LoginRequest(login), Packet::SequencedData(b"x"), Packet::EndOfSession] {
        let mut connection = Connection::logged_in();
        connection.to_server.extend(encoded(packet));
        let packet_type = packet.packet_type();
        assert_eq!(connection.server_receives(START), Err(SessionError::UnexpectedPacket { packet_type }));
    }
    // Packets that a client must not receive, before and after the login.
    for packet in [Packet::SequencedData(b"x"), Packet::ServerHeartbeat, Packet::EndOfSession] {
        let mut connection = Connection::new(config());
        connection.transmit(START);
        connection.to_client.extend(encoded(packet));
        let packet_type = packet.packet_type();
        assert_eq!(connection.client_receives(START), Err(SessionError::UnexpectedPacket { packet_type }));
    }
    for packet in [Packet::LoginRejected(LoginRejectReason(b'A')), Packet::LogoutRequest] {
        let mut connection = Connection::logged_in();
        connection.to_client.extend(encoded(packet));
        let packet_type = packet.packet_type();
        assert_eq!(connection.client_receives(START), Err(SessionError::UnexpectedPacket { packet_type }));
    }
}

#[test]
fn debug_text_is_passed_on_at_any_time() {
    let mut connection = Connection::new(config());
    connection.transmit(START);
    connection.to_client.extend(encoded(Packet::Debug(b"welcome")));
    assert_eq!(connection.client_receives(START).as_deref(), Ok("debug welcome"));
    let mut server = ServerSession::new(START);
    assert!(matches!(server.handle_bytes(START, b"\x00\x03+hi"), Ok(Some((ServerEvent::Debug(b"hi"), 5)))));
}

#[test]
fn invalid_packets_are_rejected_as_early_as_possible() {
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
fn a_short_buffer_is_an_error_and_uses_no_number() {
    let mut connection = Connection::logged_in();
    let mut out = [0; 7];
    let error = connection.server.encode_message(START, &mut out, b"hello").unwrap_err();
    assert!(
        matches!(error, SendError::BufferTooShort(short) if (short.needed, short.len) == (8, 7)),
        "{error}"
    );
    assert!(connection.server.encode_message(START, &mut out[..2], b"").is_err());
    assert_eq!(connection.server.encode_message(START, &mut out, b"hell").unwrap(), (7, Sequence(1)));
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
