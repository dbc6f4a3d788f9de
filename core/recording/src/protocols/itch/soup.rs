//! Extracts messages from a TCP stream of SoupBinTCP packets.

use tickpath_nasdaq::soupbintcp::{self, Session};

use super::{is_end_of_snapshot, is_of_snapshot, is_whole};
use crate::{Segment, StreamData, StreamReader};

/// Maximum bytes of a stream's first messages that are held until they are known to be a snapshot or not.
const OPENING_BYTES_MAX: usize = 64 << 20;

/// The byte stream that the server sends on a SoupBinTCP connection.
#[derive(Debug, Default)]
pub(super) struct SoupStream {
    stream: StreamReader,
    /// The beginning of an incomplete packet.
    buffer: Vec<u8>,
    /// True while packet boundaries are known: from the first packet on; after a gap, from a segment that
    /// begins with a packet.
    is_joined: bool,
    /// True if `--protocol` names ITCH: then any SoupBinTCP sequenced data count as ITCH.
    is_requested: bool,
    /// The first messages, held while they may be a snapshot; `None` once that is decided.
    opening: Option<Messages>,
    session: Option<Session>,
    malformed: u64,
}

/// Copies of messages, in one buffer.
#[derive(Debug, Default)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    snapshot_len: usize,
}

impl Messages {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.snapshot_len = 0;
    }

    fn push(&mut self, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.ends.push(self.bytes.len());
    }

    /// Number of leading messages that form a snapshot.
    pub(super) const fn snapshot_len(&self) -> usize {
        self.snapshot_len
    }

    /// The messages in order.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl SoupStream {
    pub(super) fn new(is_requested: bool) -> SoupStream {
        SoupStream { is_requested, opening: Some(Messages::default()), ..SoupStream::default() }
    }

    /// Handles a segment, and replaces `out` with the messages that are now complete.
    pub(super) fn handle_segment(&mut self, segment: &Segment, payload: &[u8], out: &mut Messages) {
        out.clear();
        let mut stream = std::mem::take(&mut self.stream);
        stream.handle_segment(segment, payload, &mut |data| self.take(data, out));
        self.stream = stream;
    }

    /// Outputs, at the end of the capture, the messages held behind a gap or as a possible snapshot.
    pub(super) fn finish(&mut self, out: &mut Messages) {
        out.clear();
        let mut stream = std::mem::take(&mut self.stream);
        stream.finish(&mut |data| self.take(data, out));
        self.stream = stream;
        // Without an end-of-snapshot message, the held messages are not a snapshot.
        if let Some(opening) = self.opening.take() {
            *out = opening;
        }
    }

    /// Session named in the server's login response, if that was captured.
    pub(super) const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Number of times that the stream had invalid packet data.
    pub(super) const fn malformed(&self) -> u64 {
        self.malformed
    }

    pub(super) const fn stream(&self) -> &StreamReader {
        &self.stream
    }

    fn take(&mut self, data: StreamData<'_>, out: &mut Messages) {
        match data {
            StreamData::Broken => {
                self.buffer.clear();
                self.is_joined = false;
            }
            StreamData::Bytes(bytes) => {
                self.is_joined = self.is_joined || is_soup_of_itch(bytes, self.is_requested);
                if self.is_joined {
                    self.buffer.extend_from_slice(bytes);
                    self.take_packets(out);
                }
            }
        }
    }

    fn take_packets(&mut self, out: &mut Messages) {
        let mut at = 0;
        loop {
            match soupbintcp::next_packet(&self.buffer[at..]) {
                Ok(Some((packet, len))) => {
                    at += len;
                    match packet {
                        soupbintcp::Packet::SequencedData(message) => {
                            take_message(&mut self.opening, message, out);
                        }
                        soupbintcp::Packet::LoginAccepted(accepted) => self.session = Some(accepted.session),
                        _ => {}
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    self.malformed += 1;
                    self.is_joined = false;
                    self.buffer.clear();
                    return;
                }
            }
        }
        self.buffer.drain(..at);
    }
}

/// Appends the next message of a stream to `out`, or to `opening` while that may still be a snapshot.
fn take_message(opening: &mut Option<Messages>, message: &[u8], out: &mut Messages) {
    let Some(held) = opening else { return out.push(message) };
    held.push(message);
    let is_end = is_end_of_snapshot(message);
    // A GLIMPSE snapshot includes the session's system event.
    let may_be_snapshot = is_of_snapshot(message) || message.first() == Some(&b'S');
    if is_end {
        held.snapshot_len = held.ends.len();
    }
    if is_end || !may_be_snapshot || held.bytes.len() > OPENING_BYTES_MAX {
        // `out` is empty, since the stream has output no message yet.
        *out = std::mem::take(held);
        *opening = None;
    }
}

/// True when bytes of a TCP stream begin with SoupBinTCP packets of a server that sends ITCH: an accepted
/// login followed by ITCH messages, or ITCH messages directly; any sequenced data when ITCH is requested.
pub(super) fn is_soup_of_itch(bytes: &[u8], is_requested: bool) -> bool {
    let mut rest = bytes;
    while let Ok(Some((packet, len))) = soupbintcp::next_packet(rest) {
        match packet {
            soupbintcp::Packet::SequencedData(message) => return is_requested || is_whole(message),
            soupbintcp::Packet::LoginAccepted(_)
            | soupbintcp::Packet::ServerHeartbeat
            | soupbintcp::Packet::Debug(_) => rest = &rest[len..],
            _ => return false,
        }
    }
    false
}
