//! Handshake frames on the socket, before the rings exist: the client's hello, and a welcome or a refusal.
//!
//! A frame is eight bytes - length of the body and kind of the frame, both `u32` little-endian - and a body
//! of fixed layout. After a welcome the gateway passes the memory of the rings (`docs/shm.md`, Channels); no
//! frame follows. The end of the socket signals that the other process has exited.

use std::fmt;

use thiserror::Error;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::field::{FieldKind, FieldType, structures};
use crate::{Event, Request, Reserved, SessionId, Text};

/// `TICKGATE`, read as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TICKGATE");
/// Version of frames, events and requests. Both ends must use the same one.
pub const VERSION: u32 = 1;
/// Length in bytes of the prefix before a body.
pub const PREFIX_LEN: usize = 8;
/// Length in bytes of the longest frame.
pub const FRAME_LEN_MAX: usize = PREFIX_LEN + size_of::<Welcome>();
/// Maximum length of a password in bytes.
pub const PASSWORD_LEN_MAX: usize = 64;

/// Bits of [`Hello::flags`].
pub mod wish {
    /// The client wants to send orders.
    pub const TRADING: u32 = 1;
}

/// Bits of [`Welcome::capabilities`].
pub mod capability {
    /// The user may send orders, and the client wants to.
    pub const TRADING: u32 = 1;
    /// The gateway cancels the client's orders when the client disconnects.
    pub const CANCEL_ON_DISCONNECT: u32 = 2;
    /// The venue is a production venue.
    pub const PRODUCTION: u32 = 4;
    /// Nothing is sent to the venue.
    pub const DRY_RUN: u32 = 8;
}

/// A password for the handshake. It is never shown, and its memory is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Password {
    len: u64,
    bytes: [u8; PASSWORD_LEN_MAX],
}

impl Password {
    /// A password; `None` when it is longer than [`PASSWORD_LEN_MAX`].
    #[must_use]
    pub fn new(password: &[u8]) -> Option<Password> {
        let mut bytes = [0; PASSWORD_LEN_MAX];
        bytes.get_mut(..password.len())?.copy_from_slice(password);
        Some(Password { len: password.len() as u64, bytes })
    }

    /// Bytes of the password.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(PASSWORD_LEN_MAX)]
    }

    fn is_valid(&self) -> bool {
        self.len <= PASSWORD_LEN_MAX as u64 && self.bytes[self.len as usize..].iter().all(|byte| *byte == 0)
    }
}

impl Default for Password {
    fn default() -> Password {
        Password { len: 0, bytes: [0; PASSWORD_LEN_MAX] }
    }
}

impl Drop for Password {
    fn drop(&mut self) {
        self.bytes.fill(0);
        // Keeps the compiler from removing the write of zeros.
        std::hint::black_box(&mut self.bytes);
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The client's hello.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Hello {
    magic: u64,
    /// [`VERSION`] of the client.
    pub version: u32,
    /// [`wish`].
    pub flags: u32,
    event_len: u32,
    request_len: u32,
    /// Name of the client; two clients may have the same one.
    pub name: Text<32>,
    /// The user.
    pub user: Text<32>,
    /// The user's password.
    pub password: Password,
}

impl Hello {
    /// A hello of this version.
    #[must_use]
    pub fn new(name: Text<32>, user: Text<32>, password: Password, wants_trading: bool) -> Hello {
        Hello {
            magic: MAGIC,
            version: VERSION,
            flags: if wants_trading { wish::TRADING } else { 0 },
            event_len: size_of::<Event>() as u32,
            request_len: size_of::<Request>() as u32,
            name,
            user,
            password,
        }
    }

    /// Whether the client wants to send orders.
    #[must_use]
    pub const fn wants_trading(&self) -> bool {
        self.flags & wish::TRADING != 0
    }

    fn check(self) -> Result<Hello, FrameError> {
        if self.magic != MAGIC {
            return Err(FrameError::Malformed);
        }
        let lens = (size_of::<Event>() as u32, size_of::<Request>() as u32);
        if self.version != VERSION || (self.event_len, self.request_len) != lens {
            return Err(FrameError::Version { version: self.version });
        }
        let is_valid = self.flags & !wish::TRADING == 0
            && self.name.is_valid()
            && self.user.is_valid()
            && !self.name.is_empty()
            && !self.user.is_empty()
            && self.password.is_valid();
        if is_valid { Ok(self) } else { Err(FrameError::Malformed) }
    }
}

structures! {
    /// The gateway accepts the client; the rings follow.
    Welcome "welcome" {
        /// The gateway instance.
        session: SessionId,
        /// The client's number, from 1.
        client: u32,
        /// [`capability`].
        capabilities: u32,
        /// Period of the gateway's pings in nanoseconds.
        heartbeat_ns: u64,
        /// The gateway's monotonic clock, in nanoseconds.
        clock_ns: u64,
        /// The gateway's UTC clock at the same moment, in nanoseconds since the Unix epoch.
        clock_utc_ns: u64,
        /// Generation of the broadcast ring's segment.
        generation: u64,
        /// Number of broadcast events already sent: the client starts after them.
        broadcast_sequence: u64,
        /// Name of that segment.
        segment: Text<64>,
        /// Folder of that segment.
        folder: Text<160>,
        /// The gateway's name.
        gateway: Text<32>,
        /// The venue.
        exchange: Text<32>,
        /// Number of the gateway in its events.
        source: u8,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// The gateway rejects the client.
    Refusal "refusal" {
        /// Reason of the refusal.
        reason: RefusalReason,
        /// [`VERSION`] of the gateway.
        version: u32,
        /// Remaining time of a ban, in nanoseconds.
        retry_after_ns: u64,
    }
}

/// Reason why a client is rejected. A number without a name belongs to another version.
#[derive(Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct RefusalReason(pub u32);

impl RefusalReason {
    /// No such user, or a wrong password: both give the same answer.
    pub const CREDENTIALS: RefusalReason = RefusalReason(1);
    /// The user has sent too many requests, or too many wrong passwords, and is banned for a while.
    pub const BANNED: RefusalReason = RefusalReason(2);
    /// The gateway's version differs.
    pub const VERSION: RefusalReason = RefusalReason(3);
    /// The gateway has its maximum number of clients.
    pub const TOO_MANY: RefusalReason = RefusalReason(4);
    /// The gateway is stopping.
    pub const STOPPING: RefusalReason = RefusalReason(5);
    /// The user has no permission to trade, and the client wants to send orders.
    pub const NO_TRADING: RefusalReason = RefusalReason(6);
    /// The client's message is not a valid hello.
    pub const MALFORMED: RefusalReason = RefusalReason(7);
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            RefusalReason::CREDENTIALS => "wrong user or password",
            RefusalReason::BANNED => "the user is shut out for a while: try again later",
            RefusalReason::VERSION => "the gateway has another version: use the same on both sides",
            RefusalReason::TOO_MANY => {
                "the gateway has as many clients as it takes: stop one, or raise its clients_max"
            }
            RefusalReason::STOPPING => "the gateway is stopping",
            RefusalReason::NO_TRADING => {
                "the user may not trade: give it an account, or connect without trading"
            }
            RefusalReason::MALFORMED => "the gateway did not understand: use the same version on both sides",
            RefusalReason(code) => {
                return write!(f, "refused for reason {code}, which this version does not know");
            }
        })
    }
}

impl fmt::Debug for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FieldType for RefusalReason {
    const KIND: FieldKind = FieldKind::Code;

    fn show_field(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

impl Welcome {
    fn check(self) -> Result<Welcome, FrameError> {
        let texts = self.segment.is_valid() && self.folder.is_valid();
        let names = self.gateway.is_valid() && self.exchange.is_valid();
        if texts && names && self.client != 0 { Ok(self) } else { Err(FrameError::Malformed) }
    }
}

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// To the gateway.
    Hello(Hello),
    /// To the client.
    Welcome(Welcome),
    /// To the client.
    Refusal(Refusal),
}

/// Error in the bytes of a frame: close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes are not a frame of this protocol.
    #[error("it is no frame of a gateway")]
    Malformed,
    /// The bytes are of another version.
    #[error("it speaks version {version}, this program version {VERSION}: use the same on both sides")]
    Version {
        /// Version of the other end.
        version: u32,
    },
}

const HELLO: u32 = 1;
const WELCOME: u32 = 2;
const REFUSAL: u32 = 3;

/// Length in bytes of the frame with this prefix, including the prefix; at most [`FRAME_LEN_MAX`].
///
/// # Errors
/// [`FrameError::Malformed`] for an unknown kind or a wrong length.
pub fn frame_len(prefix: [u8; PREFIX_LEN]) -> Result<usize, FrameError> {
    let [a, b, c, d, e, f, g, h] = prefix;
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    let expected = match u32::from_le_bytes([e, f, g, h]) {
        HELLO => size_of::<Hello>(),
        WELCOME => size_of::<Welcome>(),
        REFUSAL => size_of::<Refusal>(),
        _ => return Err(FrameError::Malformed),
    };
    if len == expected { Ok(PREFIX_LEN + len) } else { Err(FrameError::Malformed) }
}

impl Frame {
    /// Decodes the frame at the start of `bytes`: the frame and its length, `None` while it is incomplete.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are not a valid frame.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
        let Some(prefix) = bytes.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
        let len = frame_len(*prefix)?;
        let Some(body) = bytes.get(PREFIX_LEN..len) else { return Ok(None) };
        let frame = match u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]) {
            HELLO => Frame::Hello(read::<Hello>(body)?.check()?),
            WELCOME => Frame::Welcome(read::<Welcome>(body)?.check()?),
            _ => Frame::Refusal(read(body)?),
        };
        Ok(Some((frame, len)))
    }

    /// Writes the frame to the start of `out` and returns its length. `None` when `out` is shorter.
    #[must_use]
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        match self {
            Frame::Hello(body) => write(HELLO, body.as_bytes(), out),
            Frame::Welcome(body) => write(WELCOME, body.as_bytes(), out),
            Frame::Refusal(body) => write(REFUSAL, body.as_bytes(), out),
        }
    }
}

fn read<T: FromBytes + FromZeros>(body: &[u8]) -> Result<T, FrameError> {
    T::read_from_bytes(body).map_err(|_| FrameError::Malformed)
}

fn write(kind: u32, body: &[u8], out: &mut [u8]) -> Option<usize> {
    let len = PREFIX_LEN + body.len();
    let out = out.get_mut(..len)?;
    out[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
    out[4..PREFIX_LEN].copy_from_slice(&kind.to_le_bytes());
    out[PREFIX_LEN..].copy_from_slice(body);
    Some(len)
}
