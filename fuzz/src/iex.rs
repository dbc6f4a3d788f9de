//! The properties of `tickpath-iex`'s decoders, and of the books built from their output.

use tickpath_book::{BookLimits, BooksById, Indexed, PackedBooks};
use tickpath_feed::iex::BookBuilder;
use tickpath_feed::{IgnoreUpdates, MessageBooks};
use tickpath_iex::gap_fill::Request;
use tickpath_iex::{Feed, Header, Listener, Message, Segment, SegmentBuilder, decode, message_len_min, snap};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Sequence};

struct IgnoreMessages;
impl Listener for IgnoreMessages {}

/// Checks IEX-TP: a segment is written back to the same bytes, every truncation of it is an error, and both
/// message readers agree.
pub fn iex_segment(data: &[u8]) {
    let Ok(segment) = Segment::parse(data) else { return };
    let header = segment.header();
    let (first, offset) = (segment.sequence(), segment.stream_offset());
    let id = header.protocol_id.get();
    let mut builder = SegmentBuilder::resuming(
        vec![0; data.len()],
        id,
        header.channel.get(),
        header.session.get(),
        first,
        offset,
    );
    for (sequence, message) in segment.messages() {
        assert_eq!(sequence, builder.next_sequence());
        builder.push(message).expect("it fitted before");
        let parsed = Message::parse(message);
        assert_eq!(decode(message, &mut IgnoreMessages).err(), parsed.err());
        if let Ok(Message::Unknown(unknown)) = parsed {
            assert_eq!(message_len_min(unknown[0]), None);
        }
    }
    assert_eq!(segment.next_sequence(), builder.next_sequence());
    let written = builder.finish(segment.send_time());
    // Not compared: the reserved byte, which has no meaning, and the time, as one before the epoch reads as
    // the epoch.
    assert_eq!((&written[2..32], &written[40..]), (&data[2..32], &data[40..]));
    for len in 0..data.len() {
        let cut = if len < Header::LEN {
            "a segment shorter than its header"
        } else {
            "a segment of another length than its header says"
        };
        assert_eq!(Segment::parse(&data[..len]).err().map(|error| error.0), Some(cut));
    }
}

/// Checks gap fill and SNAP: a message has its declared length, and is written back to the same bytes.
pub fn iex_recovery(data: &[u8]) {
    if let Ok(Some((request, len))) = Request::parse_prefix(data) {
        let header = request.header;
        let (id, channel, session) = (header.protocol_id.get(), header.channel.get(), header.session.get());
        let mut buffer = [0; Request::LEN_MAX];
        let written =
            Request::encode(id, channel, session, request.ranges, &mut buffer).expect("as many as were read");
        assert_eq!(written, &data[..len]);
        assert!((0..len).all(|len| Request::parse_prefix(&data[..len]) == Ok(None)));
    }
    let mut rest = data;
    while let Ok(Some((frame, len))) = snap::next_frame(rest) {
        let mut buffer = vec![0; snap::FRAME_LEN_MAX];
        if let Some(written) = snap::encode(&frame, &mut buffer) {
            let reparsed = snap::next_frame(&buffer[..written]);
            assert!(matches!(reparsed, Ok(Some((_, read))) if read == written));
        }
        rest = &rest[len..];
    }
}

/// Builds books of each feed from messages, each prefixed with its length: the fast books end in the state of
/// the reference model.
pub fn iex_books(data: &[u8]) {
    let limits = BookLimits::new(InstrumentId(4), 32);
    for feed in Feed::ALL {
        let mut fast = BookBuilder::new(feed, PackedBooks::new(limits));
        let mut reference = BookBuilder::new(feed, Indexed::<ReferenceBooks>::new(limits));
        let (mut messages, mut rest) = (Vec::new(), data);
        while let Some((&len, after)) = rest.split_first() {
            let (message, after) = after.split_at(usize::from(len).min(after.len()));
            messages.push(message);
            rest = after;
        }
        fast.handle_messages(Sequence(1), messages.iter().copied(), &mut IgnoreUpdates);
        reference.handle_messages(Sequence(1), messages.iter().copied(), &mut IgnoreUpdates);
        assert_eq!(fast.books().state_hash(), reference.books().state_hash());
        assert_eq!(fast.counters(), reference.counters());
    }
}
