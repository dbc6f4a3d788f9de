//! Lists capture files, and reads the payloads of their packets.

use std::path::{Path, PathBuf};

/// Returns the capture files in a folder of recorded data, sorted by name.
pub fn captures(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"))
        .collect();
    files.sort();
    files
}

/// Returns the UDP or TCP payloads of a little-endian pcap file of Ethernet frames; skips VLAN tags.
pub fn payloads(file: &Path) -> Vec<Vec<u8>> {
    let data = std::fs::read(file).unwrap();
    assert!([[0x4d, 0x3c, 0xb2, 0xa1], [0xd4, 0xc3, 0xb2, 0xa1]].contains(&data[..4].try_into().unwrap()));
    let mut records = &data[24..];
    let mut payloads = Vec::new();
    while !records.is_empty() {
        let len = u32::from_le_bytes(records[8..12].try_into().unwrap()) as usize;
        payloads.push(payload(&records[16..16 + len]).to_vec());
        records = &records[16 + len..];
    }
    payloads
}

fn payload(frame: &[u8]) -> &[u8] {
    let be16 = |bytes: &[u8], at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let mut ethertype = 12;
    while be16(frame, ethertype) == 0x8100 {
        ethertype += 4;
    }
    let ip = &frame[ethertype + 2..];
    let ip = &ip[..be16(ip, 2)];
    let transport = &ip[usize::from(ip[0] & 0x0f) * 4..];
    match ip[9] {
        17 => &transport[8..],
        6 => &transport[usize::from(transport[12] >> 4) * 4..],
        other => panic!("IP protocol {other}"),
    }
}
