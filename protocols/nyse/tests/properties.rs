//! Generated messages and packets round-trip, at the lengths of all versions; arbitrary bytes cause no panic.
#![allow(clippy::unwrap_used)]

use crate::samples;
use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_nyse::{
    DeliveryFlag, HEADER_LEN, Listener, MESSAGE_TYPES, Message, PACKET_LEN_MAX, Packet, PacketBuilder,
    PushError, RefreshHeader, SendTime, decode, message_len, message_len_min,
};
use zerocopy::IntoBytes;

/// Creates a message of this type and length, filled with repetitions of `bytes`.
fn message(message_type: u16, len: usize, bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![0; len];
    for (to, from) in message.iter_mut().zip(bytes.iter().cycle()) {
        *to = *from;
    }
    message[..2].copy_from_slice(&(len as u16).to_le_bytes());
    message[2..4].copy_from_slice(&message_type.to_le_bytes());
    message
}

/// Encodes a decoded message; each `$name` is a variant of `Message`.
macro_rules! written {
    ($message:expr, $($name:ident)*) => {
        match $message {
            $( Message::$name(message) => message.as_bytes().to_vec(), )*
            Message::Unknown(bytes) => bytes.to_vec(),
            _ => unreachable!("every type is named"),
        }
    };
}

fn encoded(message: Message<'_>) -> Vec<u8> {
    written!(
        message,
        SequenceNumberReset SourceTimeReference SymbolIndexMapping RetransmissionRequest RequestResponse
        HeartbeatResponse SymbolIndexMappingRequest RefreshRequest MessageUnavailable SymbolClear SecurityStatus
        RefreshHeader AddOrder ModifyOrder DeleteOrder OrderExecution ReplaceOrder Imbalance AddOrderRefresh
        NonDisplayedTrade CrossTrade TradeCancel CrossCorrection RetailPriceImprovement StockSummary
    )
}

proptest! {
    #[test]
    fn a_message_round_trips(kind in 0..MESSAGE_TYPES.len(), bytes in vec(any::<u8>(), 1..80)) {
        let message_type = MESSAGE_TYPES[kind];
        let bytes = message(message_type, message_len(message_type).unwrap(), &bytes);
        let parsed = Message::parse(&bytes).unwrap();
        let text = format!("{parsed:?}");
        prop_assert!(!text.is_empty());
        prop_assert_eq!(encoded(parsed), bytes);
    }

    #[test]
    fn fields_of_a_later_version_are_ignored(
        kind in 0..MESSAGE_TYPES.len(),
        more in 1_usize..40,
        bytes in vec(any::<u8>(), 1..120),
    ) {
        let message_type = MESSAGE_TYPES[kind];
        let len = message_len(message_type).unwrap();
        let longer = message(message_type, len + more, &bytes);
        prop_assert_eq!(&encoded(Message::parse(&longer).unwrap())[..], &longer[..len]);
    }

    #[test]
    fn missing_fields_of_an_earlier_version_are_zero(kind in 0..MESSAGE_TYPES.len(), less in 1_usize..12, byte: u8) {
        let message_type = MESSAGE_TYPES[kind];
        let (len, len_min) = (message_len(message_type).unwrap(), message_len_min(message_type).unwrap());
        let shorter = message(message_type, len - less.min(len - 4), &[byte]);
        match Message::parse(&shorter) {
            Ok(parsed) => {
                prop_assert!(shorter.len() >= len_min);
                let encoded = encoded(parsed);
                prop_assert_eq!(&encoded[..shorter.len()], &shorter[..]);
                prop_assert!(encoded[shorter.len()..].iter().all(|byte| *byte == 0));
            }
            Err(error) => {
                prop_assert!(shorter.len() < len_min);
                prop_assert!(error.0.contains("shorter"), "{}", error);
            }
        }
    }

    #[test]
    fn packets_round_trip(
        kinds in vec(0..MESSAGE_TYPES.len(), 0..60),
        sequence: u32,
        nanos in 0_u64..4_000_000_000_000_000_000,
    ) {
        let messages: Vec<Vec<u8>> = kinds
            .iter()
            .map(|kind| message(MESSAGE_TYPES[*kind], message_len(MESSAGE_TYPES[*kind]).unwrap(), &[7]))
            .collect();
        let mut builder = PacketBuilder::new([0; PACKET_LEN_MAX], sequence);
        let mut expected = Vec::new();
        for message in &messages {
            if builder.push_bytes(message).is_ok() {
                expected.push((sequence.wrapping_add(expected.len() as u32), &message[..]));
            }
        }
        let time = SendTime::of_nanos(nanos);
        prop_assert_eq!(time.as_nanos(), nanos);
        let bytes = builder.finish(DeliveryFlag::ORIGINAL, time);
        let packet = Packet::parse(bytes).unwrap();
        prop_assert_eq!(packet.send_time(), time);
        prop_assert_eq!(usize::from(packet.message_count()), expected.len());
        let mut read = packet.messages();
        prop_assert_eq!(read.by_ref().collect::<Vec<_>>(), expected);
        prop_assert!(read.finish());
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert_eq!(packet.messages().count(), usize::from(packet.message_count()));
        }
        let _ = Message::parse(&bytes);
    }
}

#[test]
fn listener_and_message_agree() {
    #[derive(Default)]
    struct MessageCounts(u32, u32);
    impl Listener for MessageCounts {
        fn on_add_order(&mut self, _: &tickpath_nyse::AddOrder) {
            self.0 += 1;
        }
        fn on_unknown(&mut self, message_type: u16, message: &[u8]) {
            assert_eq!(u16::from_le_bytes([message[2], message[3]]), message_type);
            self.1 += 1;
        }
    }
    let mut counts = MessageCounts::default();
    for (_, bytes) in samples::samples() {
        for (_, message) in Packet::parse(&bytes).unwrap().messages() {
            decode(message, &mut counts).unwrap();
        }
    }
    assert_eq!((counts.0, counts.1), (2, 1), "two adds, and the quote of the other feed");
}

#[test]
fn the_short_refresh_header_is_identified_by_its_length() {
    let long = RefreshHeader::new(1, 3, 77, 5);
    assert_eq!(long.covered(), Some((77, 5)));
    let bytes = RefreshHeader::short(2, 3);
    let Ok(Message::RefreshHeader(short)) = Message::parse(&bytes) else { panic!("no refresh header") };
    assert_eq!((short.current_refresh_pkt.get(), short.total_refresh_pkts.get()), (2, 3));
    assert_eq!(short.covered(), None);
}

#[test]
fn a_packet_is_limited_to_1400_bytes_and_255_messages() {
    let mut builder = PacketBuilder::new([0; 4096], 1);
    let small = message(99, 4, &[0]);
    for _ in 0..255 {
        builder.push_bytes(&small).unwrap();
    }
    assert_eq!(builder.push_bytes(&small), Err(PushError::NoCapacity { needed: 4, remaining: 0 }));
    assert_eq!((builder.remaining(), builder.next_sequence()), (0, 256));
    builder.start_next();
    assert_eq!((builder.sequence(), builder.len(), builder.is_empty()), (256, HEADER_LEN, true));
    let large = message(99, PACKET_LEN_MAX - HEADER_LEN, &[0]);
    builder.push_bytes(&large).unwrap();
    assert_eq!(builder.push_bytes(&small), Err(PushError::NoCapacity { needed: 4, remaining: 0 }));
    assert_eq!(builder.push_bytes(&small[..3]), Err(PushError::NotAMessage { len: 3 }));
    assert_eq!(builder.push_bytes(&large[..9]), Err(PushError::NotAMessage { len: 9 }));
    let bytes = builder.finish(DeliveryFlag::ORIGINAL, SendTime::default()).to_vec();
    assert_eq!(bytes.len(), PACKET_LEN_MAX);
    assert!(Packet::parse(&bytes).is_ok());
}

#[test]
fn a_heartbeat_has_no_messages_and_the_next_number() {
    let mut builder = PacketBuilder::new([0; HEADER_LEN], u32::MAX);
    let bytes = builder.finish(DeliveryFlag::HEARTBEAT, SendTime { secs: 1, nanos: 2 }).to_vec();
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.sequence(), packet.message_count(), bytes.len()), (u32::MAX, 0, 16));
    assert_eq!(packet.delivery_flag().meaning(), Some("heartbeat"));
}
