//! Configuration and counters of a session.

use arrayvec::ArrayString;
use tickpath_types::Nanos;

/// SenderCompID or TargetCompID of a session, at most 64 bytes.
pub type CompId = ArrayString<64>;

/// Role of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connects, and sends the Logon.
    Initiator,
    /// Accepts a connection, and replies to the Logon.
    Acceptor,
}

/// Policy for resetting sequence numbers to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetPolicy {
    /// Never on our initiative: numbers continue with the next connection.
    Keep,
    /// With each connection, by ResetSeqNumFlag in the Logon. For an acceptor, as [`ResetPolicy::Keep`].
    Flagged,
    /// With each connection without a flag, by prior agreement of both sides.
    Silent,
}

/// Policy for missing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapPolicy {
    /// Request them. Later messages are dropped until then, because they are resent as well.
    Request,
    /// Close the connection: its state must be rebuilt.
    Close,
}

/// Policy for resend requests of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendPolicy {
    /// Resend the messages in the store, and skip the others.
    Answer,
    /// Close the connection: messages are never resent.
    Close,
}

/// Policy for SequenceReset messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceResetPolicy {
    /// As in the standard: a gap fill is part of the sequence, a reset is not, and neither has a reply.
    Standard,
    /// As at Deribit: the number of the message is ignored, and the reply is a ResendRequest from and to the
    /// number expected after the reset.
    Deribit,
}

/// Configuration of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// Role of the session.
    pub role: Role,
    /// Our name, the SenderCompID of our messages.
    pub sender: CompId,
    /// Name of the peer; `None` for an acceptor that accepts any name in a Logon.
    pub target: Option<CompId>,
    /// Heartbeat interval that an initiator requests, in whole seconds; zero for none.
    pub heartbeat: Nanos,
    /// Maximum heartbeat interval that an acceptor grants.
    pub heartbeat_max: Nanos,
    /// Whether a Logon includes EncryptMethod, which is always 0.
    pub says_encrypt_method: bool,
    /// Whether to reply to a Heartbeat with one, as Deribit does, except after a TestRequest. One side only.
    pub echoes_heartbeats: bool,
    /// Policy for resetting sequence numbers.
    pub reset: ResetPolicy,
    /// Policy for missing messages.
    pub gap: GapPolicy,
    /// Policy for resend requests.
    pub resend: ResendPolicy,
    /// Policy for SequenceReset messages.
    pub sequence_reset: SequenceResetPolicy,
    /// Maximum deviation of SendingTime from `now`; `None` to ignore SendingTime.
    pub sending_time_tolerance: Option<Nanos>,
    /// Timeout of a Logon, of its reply, and of the reply to a Logout.
    pub logon_timeout: Nanos,
    /// Timeout for the arrival of a missing message.
    pub gap_timeout: Nanos,
    /// Maximum length of a received message, in bytes; the receive buffer must hold it.
    pub message_len_max: usize,
    /// Maximum number of garbled messages per connection; one more closes it.
    pub garbled_max: u32,
    /// Output capacity in bytes. On overflow, application messages fail, and session messages close it.
    pub output_len: usize,
}

impl SessionConfig {
    /// Creates the configuration of a standard session.
    ///
    /// # Panics
    /// If a name is longer than 64 bytes.
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

    /// Creates the configuration of a Deribit client: a new connection resets numbers, and a gap closes it.
    ///
    /// # Panics
    /// If the name is longer than 64 bytes.
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

    /// Creates the configuration of the venue's side of [`SessionConfig::deribit_client`].
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

/// Counters of a session, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStats {
    /// Messages received, excluding garbled ones.
    pub received: u64,
    /// Messages written, including resent ones.
    pub sent: u64,
    /// Garbled messages.
    pub garbled: u64,
    /// Rejected messages.
    pub rejected: u64,
    /// Duplicates of earlier messages.
    pub duplicates: u64,
    /// Messages dropped after a gap.
    pub beyond_gap: u64,
    /// Gaps in the sequence numbers.
    pub gaps: u64,
    /// Resent messages.
    pub resent: u64,
}
