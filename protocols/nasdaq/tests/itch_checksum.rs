//! Tests of the checksum that [`Checksum`] computes of decoded messages.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_nasdaq::itch50::{Checksum, MESSAGE_TYPES, decode, message_len};

fn checksum(messages: &[&[u8]]) -> u64 {
    let mut checksum = Checksum::default();
    messages.iter().for_each(|message| decode(message, &mut checksum).unwrap());
    checksum.get()
}

#[test]
fn every_byte_of_every_message_counts() {
    for message_type in MESSAGE_TYPES {
        let len = message_len(*message_type).unwrap();
        let mut message: Vec<u8> = (0..len as u8).map(|byte| byte.wrapping_mul(37) ^ 0x5a).collect();
        message[0] = *message_type;
        let plain = checksum(&[&message]);
        assert_eq!(checksum(&[&message]), plain);
        for byte in 1..len {
            let mut changed = message.clone();
            changed[byte] ^= 1;
            assert_ne!(checksum(&[&changed]), plain, "byte {byte} of {}", *message_type as char);
        }
    }
}

#[test]
fn order_length_and_unknown_messages_count() {
    let (event, other) = ([b'S'; 12], [b'D'; 19]);
    assert_ne!(checksum(&[&event, &other]), checksum(&[&other, &event]));
    assert_ne!(checksum(&[&event, &event]), checksum(&[&event]));
    assert_ne!(checksum(&[b"z123"]), checksum(&[b"z124"]));
    assert_ne!(checksum(&[b"z12"]), checksum(&[b"z120"]));
}
