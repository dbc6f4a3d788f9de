//! Access to recorded data: committed files, optional files, and the payloads of captured packets.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// Returns the path of a file or folder in the crate's test data.
pub fn committed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// Returns the UDP payloads of a little-endian pcap of Ethernet frames, gzipped or not.
pub fn payloads(file: &Path) -> Vec<Vec<u8>> {
    let mut data = std::fs::read(file).unwrap();
    if data.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut data);
        GzDecoder::new(&packed[..]).read_to_end(&mut data).unwrap();
    }
    assert_eq!(data[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
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
    assert_eq!((be16(frame, 12), frame[23]), (0x0800, 17), "UDP in IPv4");
    let udp = &frame[14 + usize::from(frame[14] & 0x0f) * 4..];
    &udp[8..be16(udp, 4)]
}
