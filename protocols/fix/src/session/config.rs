//! What a session is told at its start, and what it counts.

use arrayvec::ArrayString;
use tickpath_types::Nanos;

/// Name of a side of a session: SenderCompID or TargetCompID, at most 64 bytes.
pub type CompId = ArrayString<64>;

/// Who speaks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connects and sends the Logon.
    Initiator,
    /// Is connected to and answers it.
    Acceptor,
}

/// When sequence numbers begin at 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetPolicy {
    /// Never on our own: they go on with the next connection.
    Keep,
    /// With each connection, and the Logon says so (ResetSeqNumFlag). For an acceptor as [`ResetPolicy::Keep`].
    Flagged,
    /// With each connection, and nothing is said: both sides know.
    Silent,
}

/// What is done when messages are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapPolicy {
    /// They are asked for. What comes before them is dropped, as it is sent again with them.
    Request,
    /// The connection is closed: its state has to be built anew.
    Close,
}

/// What is done when the peer asks for messages again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendPolicy {
    /// What the store has is sent again, the rest is skipped.
    Answer,
    /// The connection is closed: nothing is ever sent again.
    Close,
}

/// How a SequenceReset is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceResetPolicy {
    /// By the standard: a gap fill has its place in the sequence, a reset has none, neither is answered.
    Standard,
    /// As Deribit does: the number of the message does not matter, and the answer is a ResendRequest from and to the
    /// number that is expected then.
    Deribit,
}

/// What a session is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// Who speaks first.
    pub role: Role,
    /// Our name, which our messages have as SenderCompID.
    pub sender: CompId,
    /// The peer's; `None` at an acceptor that takes the name that a Logon gives.
    pub target: Option<CompId>,
    /// Interval of heartbeats that an initiator asks for, in whole seconds; zero for none.
    pub heartbeat: Nanos,
    /// Longest interval that an acceptor grants.
    pub heartbeat_max: Nanos,
    /// Whether a Logon names EncryptMethod, which is always 0.
    pub says_encrypt_method: bool,
    /// Whether a Heartbeat is answered by one, as Deribit does, unless it answers a TestRequest. Never at both sides.
    pub echoes_heartbeats: bool,
    /// When sequence numbers begin at 1 again.
    pub reset: ResetPolicy,
    /// What is done when messages are missing.
    pub gap: GapPolicy,
    /// What is done when the peer asks for messages again.
    pub resend: ResendPolicy,
    /// How a SequenceReset is taken.
    pub sequence_reset: SequenceResetPolicy,
    /// How far SendingTime may be from `now`; `None` when it does not matter.
    pub sending_time_tolerance: Option<Nanos>,
    /// How long a Logon, its answer, and the answer of a Logout may take.
    pub logon_timeout: Nanos,
    /// How long it may take until a missing message comes.
    pub gap_timeout: Nanos,
    /// Longest message that is read, in bytes; the receive buffer must hold it.
    pub message_len_max: usize,
    /// How many garbled messages a connection may have; one more closes it.
    pub garbled_max: u32,
    /// Bytes that wait to be sent; a message that does not fit is given back, and the session's own close it.
    pub output_len: usize,
}

impl SessionConfig {
    /// A session by the standard.
    ///
    /// # Panics
    /// When a name is longer than 64 bytes.
    #[must_use]
    pub fn standard(role: Role, sender: &str, target: Option<&str>) -> SessionConfig {
        let name = |name| CompId::from(name).expect("a name has at most 64 bytes");
        SessionConfig {
            role,
            sender: name(sender),
            target: target.map(name),
            heartbeat: Nanos::from_secs(30),
            heartbeat_max: Nanos::from_secs(3600),
            says_encrypt_method: true,
            echoes_heartbeats: false,
            reset: ResetPolicy::Keep,
            gap: GapPolicy::Request,
            resend: ResendPolicy::Answer,
            sequence_reset: SequenceResetPolicy::Standard,
            sending_time_tolerance: Some(Nanos::from_secs(120)),
            logon_timeout: Nanos::from_secs(10),
            gap_timeout: Nanos::from_secs(30),
            message_len_max: 1 << 16,
            garbled_max: 10,
            output_len: 1 << 18,
        }
    }

    /// A client of Deribit: numbers begin at 1 with each connection, and what is missing closes it.
    ///
    /// # Panics
    /// When the name is longer than 64 bytes.
    #[must_use]
    pub fn deribit_client(sender: &str) -> SessionConfig {
        SessionConfig {
            says_encrypt_method: false,
            reset: ResetPolicy::Silent,
            gap: GapPolicy::Close,
            resend: ResendPolicy::Close,
            sending_time_tolerance: None,
            message_len_max: crate::MESSAGE_LEN_MAX,
            garbled_max: 0,
            ..SessionConfig::standard(Role::Initiator, sender, Some("DERIBITSERVER"))
        }
    }

    /// The venue's side of [`SessionConfig::deribit_client`].
    #[must_use]
    pub fn deribit_server() -> SessionConfig {
        SessionConfig {
            says_encrypt_method: false,
            echoes_heartbeats: true,
            reset: ResetPolicy::Silent,
            sequence_reset: SequenceResetPolicy::Deribit,
            sending_time_tolerance: None,
            garbled_max: 0,
            ..SessionConfig::standard(Role::Acceptor, "DERIBITSERVER", None)
        }
    }
}

/// What a session has seen, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Messages received, garbled ones not counted.
    pub received: u64,
    /// Messages written, those that are sent again included.
    pub sent: u64,
    /// Bytes that were no message.
    pub garbled: u64,
    /// Messages that were rejected.
    pub rejected: u64,
    /// Messages that were seen before.
    pub duplicates: u64,
    /// Messages dropped because earlier ones were missing.
    pub beyond_gap: u64,
    /// Times that messages were missing.
    pub gaps: u64,
    /// Messages sent again.
    pub resent: u64,
}
