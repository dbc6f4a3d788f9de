//! The properties of `tickpath-gateway-protocol`: frames of the handshake, and items that a process wrote to
//! a ring.

use tickpath_gateway_protocol::frame::{FRAME_LEN_MAX, Frame, PREFIX_LEN, frame_len};
use tickpath_gateway_protocol::{Event, Request, body_fields};
use zerocopy::FromBytes;

/// Checks the bytes of a socket: a frame is decoded completely or not at all, and encodes to the same bytes.
/// Also reads the bytes as an event and as a request, each of which is displayed in one printable line.
pub fn gateway_frame(data: &[u8]) {
    let decoded = Frame::decode(data);
    if let Some(prefix) = data.first_chunk::<PREFIX_LEN>() {
        assert!(frame_len(*prefix).is_ok_and(|len| len <= FRAME_LEN_MAX) || decoded.is_err());
    }
    if let Ok(Some((frame, len))) = &decoded {
        let mut bytes = [0; FRAME_LEN_MAX];
        assert_eq!(frame.encode(&mut bytes), Some(*len));
        assert_eq!(bytes[..*len], data[..*len]);
        for end in 0..*len {
            assert_eq!(Frame::decode(&data[..end]), Ok(None));
        }
    }
    if let Ok((event, _)) = Event::read_from_prefix(data) {
        assert!(event.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        let end = body_fields(event.header.kind)
            .and_then(|fields| fields.last().map(|last| last.offset + last.len));
        assert!(end.is_none_or(|end| end <= 112));
    }
    if let Ok((request, _)) = Request::read_from_prefix(data) {
        assert!(request.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}
