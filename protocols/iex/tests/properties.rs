//! Properties of decoding and encoding that hold for any bytes and any messages.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use proptest::prelude::*;
use tickpath_iex::gap_fill::Request;
use tickpath_iex::{Feed, Listener, Message, Segment, SegmentBuilder, decode, message_len_min, snap};
use tickpath_types::Nanos;

struct IgnoreAll;
impl Listener for IgnoreAll {}

proptest! {
    #[test]
    fn both_readers_agree_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
        prop_assert_eq!(decode(&bytes, &mut IgnoreAll).err(), Message::parse(&bytes).err());
        if let Ok(Message::Unknown(_)) = Message::parse(&bytes) {
            prop_assert_eq!(message_len_min(bytes[0]), None);
        }
    }

    #[test]
    fn pushed_messages_round_trip(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
    ) {
        let mut builder = SegmentBuilder::new(vec![0; 2_000], Feed::DeepPlus10, 4, 5);
        for message in &messages {
            builder.push(message).unwrap();
        }
        let bytes = builder.finish(Nanos(1)).to_vec();
        let segment = Segment::parse(&bytes).unwrap();
        let read: Vec<_> = segment.messages().map(|(_, message)| message.to_vec()).collect();
        prop_assert_eq!(read, messages);
        prop_assert_eq!(segment.next_sequence(), builder.next_sequence());
        for len in 0..bytes.len() {
            prop_assert!(Segment::parse(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Segment::parse(&bytes);
        let _ = Request::parse_prefix(&bytes);
        let _ = snap::next_frame(&bytes);
    }
}
