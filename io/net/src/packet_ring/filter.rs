//! A packet filter for the kernel (classic BPF) that accepts only datagrams to the joined groups.

use std::net::SocketAddrV4;

use socket2::SockFilter;

/// Offsets of fields in the IPv4 header (RFC 791).
const FLAGS_AND_OFFSET: u32 = 6;
const PROTOCOL: u32 = 9;
const DESTINATION: u32 = 16;
/// Offset of the destination port after the IPv4 header (RFC 768).
const UDP_DESTINATION: u32 = 2;

const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const LOAD_HALF_BEHIND_HEADER: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
/// Instruction that loads the length of the IPv4 header at offset `k` into the index register, for `BPF_IND`.
const HEADER_LEN: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Returns a filter that accepts UDP datagrams to the address and port of one of `groups`. A packet begins
/// with its IPv4 header. A datagram's first fragment is accepted, so that [`PacketRing`](super::PacketRing)
/// counts it; later ones, which have no port, are not.
pub(super) fn accepting(groups: &[SocketAddrV4]) -> Vec<SockFilter> {
    let op =
        |code: u32, if_true: u8, if_false: u8, k: u32| SockFilter::new(code as u16, if_true, if_false, k);
    let drop = || op(RETURN, 0, 0, 0);
    let mut program = vec![
        op(LOAD_BYTE, 0, 0, PROTOCOL),
        op(IF_EQUAL, 1, 0, libc::IPPROTO_UDP as u32),
        drop(),
        op(LOAD_HALF, 0, 0, FLAGS_AND_OFFSET),
        op(IF_ANY_BIT, 0, 1, 0x1fff),
        drop(),
        op(HEADER_LEN, 0, 0, 0),
    ];
    for group in groups {
        program.extend([
            op(LOAD_WORD, 0, 0, DESTINATION),
            op(IF_EQUAL, 0, 3, u32::from(*group.ip())),
            op(LOAD_HALF_BEHIND_HEADER, 0, 0, UDP_DESTINATION),
            op(IF_EQUAL, 0, 1, u32::from(group.port())),
            op(RETURN, 0, 0, u32::MAX),
        ]);
    }
    program.push(drop());
    program
}
