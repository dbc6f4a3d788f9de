//! The properties of `tickpath-nyse`'s decoders, and of the books built from its messages.

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::xdp::{BookBuilder, Channel, Packets};
use tickpath_feed::{Framing, IgnoreUpdates, MessageBooks};
use tickpath_nyse::{
    Listener, Message, PACKET_LEN_MAX, Packet, PacketBuilder, decode, message_len, message_len_min,
};
use tickpath_types::{InstrumentId, Nanos, Sequence};

/// Checks XDP: messages are written back to the same bytes, both readers agree, and books accept any
/// messages.
pub fn xdp(data: &[u8]) {
    let limits = BookLimits::new(InstrumentId(3), 16);
    let mut builder = BookBuilder::new(PackedBooks::new(limits), Nanos(0));
    message(data);
    builder.handle_message_on(Channel(0), Sequence(1), data, &mut IgnoreUpdates);
    let header = Packets::header(data, 1);
    let Ok(packet) = Packet::parse(data) else {
        assert!(Packets::messages(data).is_none());
        return;
    };
    assert!(
        header.is_some_and(|header| header.first.checked_add(header.count).is_some()) || header.is_none()
    );
    let messages: Vec<_> = packet.messages().collect();
    assert_eq!(messages.len(), usize::from(packet.message_count()));
    if data.len() <= PACKET_LEN_MAX {
        let mut written = PacketBuilder::new([0; PACKET_LEN_MAX], packet.sequence());
        for (number, bytes) in &messages {
            assert_eq!(*number, written.next_sequence());
            written.push_bytes(bytes).expect("it fitted before");
        }
        let time = packet.send_time();
        assert_eq!(written.finish(packet.delivery_flag(), time), data);
    }
    for (_, bytes) in &messages {
        message(bytes);
    }
    // Apply the packet twice: the second time, many orders rest already. Applying its messages one by one
    // gives the same books.
    let mut alone = BookBuilder::new(PackedBooks::new(limits), Nanos(0));
    alone.handle_message_on(Channel(0), Sequence(1), data, &mut IgnoreUpdates);
    for _ in 0..2 {
        builder.handle_packet(Channel(0), &packet, &mut IgnoreUpdates);
        for (number, bytes) in &messages {
            alone.handle_message_on(Channel(0), Sequence(u64::from(*number)), bytes, &mut IgnoreUpdates);
        }
    }
    let (together, alone_is) = (builder.instruments(), alone.instruments());
    assert_eq!(together.counters(), alone_is.counters());
    assert_eq!(together.books().state_hash(), alone_is.books().state_hash());
    assert_eq!(builder.instruments().counters().messages, 1 + 2 * messages.len() as u64);
}

/// Checks that both readers return the same result for one message.
fn message(bytes: &[u8]) {
    struct Count(usize);
    impl Listener for Count {
        fn on_unknown(&mut self, message_type: u16, _: &[u8]) {
            assert_eq!(message_len(message_type), None);
            self.0 += 1;
        }
    }
    let mut unknown = Count(0);
    let decoded = decode(bytes, &mut unknown);
    let parsed = Message::parse(bytes);
    assert_eq!(decoded.err(), parsed.err());
    match parsed {
        Ok(Message::Unknown(message)) => assert_eq!((message, unknown.0), (bytes, 1)),
        Ok(message) => {
            let message_type = u16::from_le_bytes([bytes[2], bytes[3]]);
            assert!(message_len_min(message_type).is_some_and(|len_min| len_min <= bytes.len()));
            assert!(!format!("{message:?}").is_empty());
            for len in 0..bytes.len() {
                assert!(Message::parse(&bytes[..len]).is_err());
            }
        }
        Err(_) => assert_eq!(unknown.0, 0),
    }
}
