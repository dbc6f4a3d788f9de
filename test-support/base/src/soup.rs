//! SoupBinTCP 3.00, implemented from its specification, without the codecs under test.

/// Builds a packet with its length and type.
#[must_use]
pub fn packet(packet_type: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len() + 1).unwrap();
    [&len.to_be_bytes(), &[packet_type][..], payload].concat()
}

/// Builds a login that requests the messages of `session`, or of the current one if empty, from `sequence`
/// on.
#[must_use]
pub fn login(user: &str, password: &str, session: &str, sequence: u64) -> Vec<u8> {
    packet(b'L', format!("{user:<6}{password:<10}{session:>10}{sequence:>20}").as_bytes())
}

/// Builds the acceptance of a login: the next message has sequence number `sequence`.
#[must_use]
pub fn login_accepted(session: &str, sequence: u64) -> Vec<u8> {
    packet(b'A', format!("{session:>10}{sequence:>20}").as_bytes())
}
