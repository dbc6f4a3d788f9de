//! Finds the packets in a stream of bytes.

use tickpath_types::{Nanos, Sequence};

use super::{LoginAccepted, LoginRejectReason, LoginRequest, Packet, Password, Session, Username};
use crate::wire::Alpha;

/// The reason why bytes are not SoupBinTCP: close the connection, since no later packet can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The length field is zero, but must count the type byte.
    #[error("a packet of length zero: close the connection")]
    NoType,
    /// No packet has this type.
    #[error("no packet has type {packet_type:#04x}: close the connection")]
    UnknownType {
        /// The type byte.
        packet_type: u8,
    },
    /// The payload's length is wrong for the packet's type.
    #[error("a packet '{}' with a payload of {len} bytes: close the connection", *packet_type as char)]
    WrongLength {
        /// The type byte.
        packet_type: u8,
        /// Length of the payload in bytes.
        len: usize,
    },
    /// A numeric field is not a number: it must have digits, padded with spaces.
    #[error("{field} in a packet '{}' is not a number: close the connection", *packet_type as char)]
    NotANumber {
        /// The type byte.
        packet_type: u8,
        /// Name of the field.
        field: &'static str,
    },
}

/// Reads the packet at the start of `bytes`. Returns the packet and its length in bytes, or `None` until the
/// packet is complete.
///
/// # Errors
/// [`FrameError`] when the bytes are not a packet. A wrong length or type fails before the payload arrives.
#[inline]
pub fn next_packet(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>, FrameError> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<2>() else {
        return Ok(None);
    };
    let len = usize::from(u16::from_be_bytes(*prefix));
    if len == 0 {
        return Err(FrameError::NoType);
    }
    let Some((&packet_type, after_type)) = rest.split_first() else {
        return Ok(None);
    };
    check_len(packet_type, len - 1)?;
    let Some(payload) = after_type.get(..len - 1) else {
        return Ok(None);
    };
    let packet = match packet_type {
        b'S' => Packet::SequencedData(payload),
        b'U' => Packet::UnsequencedData(payload),
        b'H' => Packet::ServerHeartbeat,
        b'R' => Packet::ClientHeartbeat,
        b'+' => Packet::Debug(payload),
        b'Z' => Packet::EndOfSession,
        b'O' => Packet::LogoutRequest,
        b'J' => Packet::LoginRejected(LoginRejectReason(payload[0])),
        b'A' => Packet::LoginAccepted(login_accepted(payload)?),
        b'L' => Packet::LoginRequest(login_request(payload)?),
        _ => return Err(FrameError::UnknownType { packet_type }),
    };
    Ok(Some((packet, 2 + len)))
}

/// Returns the length in bytes of the packet at the start of `bytes`, header included; `None` until two bytes
/// have arrived.
///
/// A packet may have up to 64 KiB. A receiver closes the connection if its buffer is too small for a packet.
#[inline]
#[must_use]
pub fn packet_len(bytes: &[u8]) -> Option<usize> {
    bytes.first_chunk().map(|len| 2 + usize::from(u16::from_be_bytes(*len)))
}

const LOGIN_LEN: usize = 46;
const LOGIN_LEN_4_1: usize = 51;

/// Refuses a wrong length before the payload arrives: a peer must not make the receiver buffer 64 KiB for a
/// heartbeat.
#[inline]
fn check_len(packet_type: u8, len: usize) -> Result<(), FrameError> {
    let fits = match packet_type {
        b'S' | b'U' | b'+' => true,
        b'H' | b'R' | b'Z' | b'O' => len == 0,
        b'J' => len == 1,
        b'A' => len == 30,
        b'L' => len == LOGIN_LEN || len == LOGIN_LEN_4_1,
        _ => return Err(FrameError::UnknownType { packet_type }),
    };
    if fits { Ok(()) } else { Err(FrameError::WrongLength { packet_type, len }) }
}

/// Returns the `N` bytes at `offset` of a payload whose length has been checked.
fn field<const N: usize>(payload: &[u8], offset: usize) -> [u8; N] {
    payload[offset..offset + N].try_into().expect("a slice of N bytes is an array of N bytes")
}

fn login_accepted(payload: &[u8]) -> Result<LoginAccepted, FrameError> {
    Ok(LoginAccepted {
        session: Session(field(payload, 0)).left_justified(),
        next_sequence: Sequence(number(&field::<20>(payload, 10), b'A', "sequence number")?),
    })
}

fn login_request(payload: &[u8]) -> Result<LoginRequest, FrameError> {
    let heartbeat_timeout = if payload.len() == LOGIN_LEN_4_1 {
        let millis = number(&field::<5>(payload, 46), b'L', "heartbeat time-out")?;
        Some(Nanos::from_millis(millis))
    } else {
        None
    };
    Ok(LoginRequest {
        username: Username(Alpha(field(payload, 0))),
        password: Password(Alpha(field(payload, 6))),
        session: Session(field(payload, 16)).left_justified(),
        sequence: Sequence(number(&field::<20>(payload, 26), b'L', "requested sequence number")?),
        heartbeat_timeout,
    })
}

fn number(text: &[u8], packet_type: u8, field: &'static str) -> Result<u64, FrameError> {
    parse_ascii_number(text).ok_or(FrameError::NotANumber { packet_type, field })
}

/// Parses decimal digits that are padded with spaces on the left or, as some clients do, on the right.
pub(crate) fn parse_ascii_number(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}
