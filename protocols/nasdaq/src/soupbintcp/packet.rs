//! Packets and their encoding.

use super::{HEADER_LEN, LoginAccepted, LoginRejectReason, LoginRequest, PAYLOAD_LEN_MAX};

/// A packet of either direction.
///
/// Source: SoupBinTCP 3.00 and 4.1: `u16 length | type | payload`, big-endian; the length counts the
/// type and the payload.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// `+`, both ways: human-readable text, to be ignored.
    Debug(&'a [u8]),
    /// `A`, to the client: the server accepts the login.
    LoginAccepted(LoginAccepted),
    /// `J`, to the client: the server refuses the login, and then closes the connection.
    LoginRejected(LoginRejectReason),
    /// `S`, to the client: the next sequenced message. It has no number field: both sides count the messages.
    SequencedData(&'a [u8]),
    /// `H`, to the client: the server's heartbeat.
    ServerHeartbeat,
    /// `Z`, to the client: no further message will come in this session.
    EndOfSession,
    /// `L`, to the server: the client logs in.
    LoginRequest(LoginRequest),
    /// `U`, to the server, in editions 4.x also to the client: a message without a sequence number, which is
    /// lost if the connection breaks.
    UnsequencedData(&'a [u8]),
    /// `R`, to the server: the client's heartbeat.
    ClientHeartbeat,
    /// `O`, to the server: the client logs out.
    LogoutRequest,
}

/// The buffer is shorter than the packet: provide a larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet needs {needed} bytes and the buffer has {len}: give it more room")]
pub struct BufferTooShort {
    /// Length of the packet in bytes, its header included.
    pub needed: usize,
    /// Length of the buffer in bytes.
    pub len: usize,
}

/// The reason why a message could not be framed; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The login is not accepted yet, or the connection is over.
    #[error("the session is not logged in: wait for the login, or connect again")]
    NotLoggedIn,
    /// The buffer is too short.
    #[error(transparent)]
    BufferTooShort(#[from] BufferTooShort),
}

impl Packet<'_> {
    /// Returns the type byte of the packet.
    #[must_use]
    pub const fn packet_type(&self) -> u8 {
        match self {
            Packet::Debug(_) => b'+',
            Packet::LoginAccepted(_) => b'A',
            Packet::LoginRejected(_) => b'J',
            Packet::SequencedData(_) => b'S',
            Packet::ServerHeartbeat => b'H',
            Packet::EndOfSession => b'Z',
            Packet::LoginRequest(_) => b'L',
            Packet::UnsequencedData(_) => b'U',
            Packet::ClientHeartbeat => b'R',
            Packet::LogoutRequest => b'O',
        }
    }

    /// Writes the packet at the start of `out` and returns its length, header included.
    ///
    /// # Errors
    /// [`BufferTooShort`] if `out` is too short, and always if the payload exceeds [`PAYLOAD_LEN_MAX`].
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooShort> {
        match self {
            Packet::Debug(payload) | Packet::SequencedData(payload) | Packet::UnsequencedData(payload) => {
                put(out, self.packet_type(), &[payload])
            }
            Packet::LoginAccepted(accepted) => put(
                out,
                self.packet_type(),
                &[&accepted.session.right_justified().0, &ascii_number::<20>(accepted.next_sequence.0)],
            ),
            Packet::LoginRejected(reason) => put(out, self.packet_type(), &[&[reason.0]]),
            Packet::LoginRequest(login) => put_login(out, login),
            Packet::ServerHeartbeat
            | Packet::EndOfSession
            | Packet::ClientHeartbeat
            | Packet::LogoutRequest => put(out, self.packet_type(), &[]),
        }
    }
}

/// Frames the message that `write` writes at the start of the buffer that it receives; `write` returns the
/// message's length. Returns the length of the packet, header included.
///
/// # Errors
/// The error of `write`, or [`SendError::BufferTooShort`] when not even the header fits.
///
/// # Panics
/// When `write` returns more than the buffer's length.
#[inline]
pub(super) fn encode_data_with<E: From<SendError>>(
    out: &mut [u8],
    packet_type: u8,
    write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<usize, E> {
    let len = out.len();
    let Some((header, space)) = out.split_first_chunk_mut::<HEADER_LEN>() else {
        return Err(SendError::from(BufferTooShort { needed: HEADER_LEN, len }).into());
    };
    let space_len = space.len().min(PAYLOAD_LEN_MAX);
    let payload_len = write(&mut space[..space_len])?;
    assert!(payload_len <= space_len, "the writer says that it wrote past its room");
    let [high, low] = ((payload_len + 1) as u16).to_be_bytes();
    *header = [high, low, packet_type];
    Ok(HEADER_LEN + payload_len)
}

fn put_login(out: &mut [u8], login: &LoginRequest) -> Result<usize, BufferTooShort> {
    let session = login.session.right_justified().0;
    let sequence = ascii_number::<20>(login.sequence.0);
    let timeout =
        login.heartbeat_timeout.map(|timeout| ascii_number::<5>((timeout.0 / 1_000_000).min(99_999)));
    let timeout = timeout.as_ref().map_or(&[][..], |digits| digits.as_slice());
    put(out, b'L', &[&login.username.0.0, &login.password.0.0, &session, &sequence, timeout])
}

fn put(out: &mut [u8], packet_type: u8, parts: &[&[u8]]) -> Result<usize, BufferTooShort> {
    let payload_len: usize = parts.iter().map(|part| part.len()).sum();
    let needed = HEADER_LEN + payload_len;
    let too_short = BufferTooShort { needed, len: out.len() };
    if payload_len > PAYLOAD_LEN_MAX {
        return Err(too_short);
    }
    let [high, low] = ((payload_len + 1) as u16).to_be_bytes();
    let (header, mut rest) =
        out.get_mut(..needed).and_then(|out| out.split_first_chunk_mut::<HEADER_LEN>()).ok_or(too_short)?;
    *header = [high, low, packet_type];
    for part in parts {
        let (field, after) = rest.split_at_mut(part.len());
        field.copy_from_slice(part);
        rest = after;
    }
    Ok(needed)
}

/// Returns `value` as ASCII digits, padded with spaces on the left to `N` bytes. `value` must have at
/// most `N` digits.
pub(crate) fn ascii_number<const N: usize>(mut value: u64) -> [u8; N] {
    let mut digits = [b' '; N];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    digits
}
