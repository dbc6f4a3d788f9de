//! Tests on generated, truncated and damaged captures.

use super::frame::LinkLayer;
use super::*;
use tickpath_recording::Segment;
use tickpath_types::Rng;

/// An IPv4 packet with a UDP datagram around a payload.
fn ip(payload: &[u8]) -> Vec<u8> {
    let total = (28 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 9, 17, 0, 0, 10, 0, 0, 1, 233, 54, 12, 1]);
    packet.extend([0x12, 0x34, 0x67, 0x21]);
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

fn ethernet(tags: &[u16], ethertype: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for tag in tags {
        frame.extend(tag.to_be_bytes());
        frame.extend([0, 7]);
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(rest);
    frame
}

fn classic(magic: u32, is_big: bool, link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = word(magic).to_vec();
    file.extend(if is_big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    [0, 0, 65_535, link].iter().for_each(|value| file.extend(word(*value)));
    for (index, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        [100 + index as u32, 5, len, len].iter().for_each(|value| file.extend(word(*value)));
        file.extend(frame);
    }
    file
}

fn block(kind: u32, body: &[u8], is_big: bool) -> Vec<u8> {
    let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [word(kind), word(len)].concat();
    block.extend(body);
    block.resize(len as usize - 4, 0);
    block.extend(word(len));
    block
}

/// A pcapng section: an Ethernet interface with times in nanoseconds, a raw one in microseconds, and packets.
fn section(is_big: bool) -> Vec<u8> {
    let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file =
        block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat(), is_big);
    let options = [&half(9)[..], &half(1), &[9, 0, 0, 0], &half(0), &half(0)].concat();
    file.extend(block(1, &[&half(1)[..], &half(0), &word(0), &options].concat(), is_big));
    file.extend(block(1, &[&half(101)[..], &half(0), &word(0)].concat(), is_big));
    // A custom block, which is skipped.
    file.extend(block(0x0bad, &[1; 40], is_big));
    for (interface, frame) in [(0, ethernet(&[], 0x0800, &ip(b"eth"))), (1, ip(b"raw"))] {
        let units = 1_700_000_000_000_000_123_u64;
        let len = word(frame.len() as u32);
        let head = [word(interface), word((units >> 32) as u32), word(units as u32), len, len].concat();
        file.extend(block(6, &[&head[..], &frame].concat(), is_big));
    }
    file.extend(block(3, &[&word(60)[..], &[0; 60]].concat(), is_big));
    file
}

type Delivered = (u64, Vec<u8>);

fn read(bytes: &[u8]) -> (Vec<Delivered>, PacketCounters, Option<ReadError>) {
    let mut packets = Packets::new(bytes);
    let mut found = Vec::new();
    let error = loop {
        match packets.next_packet() {
            Ok(Some(packet)) => found.push((packet.ts_ns, packet.payload.to_vec())),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let after = packets.next_packet();
    assert!(matches!(after, Ok(None)), "after the end there is nothing: {after:?} {error:?}");
    (found, *packets.counters(), error)
}

#[test]
fn every_classic_variant_gives_its_packets_and_times() {
    let frames = [ethernet(&[], 0x0800, &ip(b"one")), ethernet(&[], 0x0800, &ip(b"two"))];
    for (magic, ns) in [(0xa1b2_c3d4, 5_000), (0xa1b2_3c4d, 5)] {
        for is_big in [false, true] {
            let (found, counters, error) = read(&classic(magic, is_big, 1, &frames));
            assert!(error.is_none());
            let times = [100_000_000_000 + ns, 101_000_000_000 + ns];
            assert_eq!(found, [(times[0], b"one".to_vec()), (times[1], b"two".to_vec())]);
            assert_eq!((counters.frames, counters.udp), (2, 2));
        }
    }
}

#[test]
fn sections_have_interfaces_and_byte_orders_of_their_own() {
    let (found, counters, error) = read(&[section(false), section(true)].concat());
    assert!(error.is_none(), "{error:?}");
    let first = [(1_700_000_000_000_000_123, b"eth".to_vec()), (u64::MAX, b"raw".to_vec())];
    let mut first = first.to_vec();
    first[1].0 = 1_700_000_000_000_000_123_u64.saturating_mul(1_000);
    assert_eq!(found, [first.clone(), first].concat());
    assert_eq!((counters.frames, counters.udp, counters.skipped[Skip::Time.index()]), (6, 4, 2));
}

#[test]
fn link_layers_lead_to_the_same_payload() {
    let sll = |ethertype: u16| [&[0; 14][..], &ethertype.to_be_bytes(), &ip(b"x")].concat();
    let sll2 = [&[8, 0][..], &[0; 18], &ip(b"x")].concat();
    let with_trailer = [ethernet(&[], 0x0800, &ip(b"x")), vec![0xee; 20]].concat();
    for (link, frame) in [
        (LinkLayer::Ethernet, ethernet(&[0x8100], 0x0800, &ip(b"x"))),
        (LinkLayer::Ethernet, ethernet(&[0x88a8, 0x8100], 0x0800, &ip(b"x"))),
        (LinkLayer::Ethernet, with_trailer),
        (LinkLayer::LinuxSll, sll(0x0800)),
        (LinkLayer::LinuxSll2, sll2),
        (LinkLayer::Raw, ip(b"x")),
        (LinkLayer::Loopback, [&[2, 0, 0, 0][..], &ip(b"x")].concat()),
        (LinkLayer::Loopback, [&[0, 0, 0, 2][..], &ip(b"x")].concat()),
    ] {
        let datagram = decode(link, &frame, false).unwrap();
        assert_eq!(datagram.payload, b"x", "{link:?}");
        assert_eq!(datagram.src, "10.0.0.1:4660".parse().unwrap());
        assert_eq!(datagram.dst, "233.54.12.1:26401".parse().unwrap());
        for len in 0..frame.len().min(30) {
            assert_eq!(decode(link, &frame[..len], true), Err(Skip::Cut), "{link:?} {len}");
        }
    }
}

#[test]
fn frames_without_payload_have_a_reason() {
    let changed = |at: usize, value: u8| {
        let mut packet = ip(b"payload");
        packet[at] = value;
        decode(LinkLayer::Raw, &packet, false).map(|_| ())
    };
    for (at, value, reason) in [
        (0, 0x65, Skip::Ipv6),
        (0, 0x44, Skip::Malformed),
        (0, 0x35, Skip::Malformed),
        (3, 19, Skip::Malformed),
        (3, 200, Skip::Malformed),
        (6, 0x20, Skip::Fragment),
        (7, 1, Skip::Fragment),
        (9, 1, Skip::Transport),
        (25, 7, Skip::Malformed),
        (25, 200, Skip::Malformed),
    ] {
        assert_eq!(changed(at, value), Err(reason), "{at} {value:#x}");
    }
    let tags = [0x8100; 5];
    for (frame, reason) in [
        (ethernet(&[], 0x0806, &[0; 46]), Skip::NotIp),
        (ethernet(&[], 0x86dd, &[0; 46]), Skip::Ipv6),
        (ethernet(&tags, 0x0800, &ip(b"x")), Skip::Malformed),
    ] {
        assert_eq!(decode(LinkLayer::Ethernet, &frame, false), Err(reason));
    }
    assert_eq!(decode(LinkLayer::Other, &ip(b"x"), false), Err(Skip::LinkLayer));
}

#[test]
fn tcp_segments_have_their_stream_position() {
    let mut packet = ip(b"");
    packet[9] = 6;
    packet.truncate(24);
    packet.extend(77_u32.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x60, 0x12, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    packet.extend(b"data");
    packet[3] = packet.len() as u8;
    let datagram = decode(LinkLayer::Raw, &packet, false).unwrap();
    let segment = Segment { sequence: 77, is_syn: true, is_fin: false, is_reset: false };
    assert_eq!((datagram.transport, datagram.payload), (Transport::Tcp(segment), &b"data"[..]));
    packet[32] = 0x40;
    assert_eq!(decode(LinkLayer::Raw, &packet, false), Err(Skip::Malformed));
}

#[test]
fn a_file_cut_at_any_byte_gives_whole_packets_and_the_position() {
    let frames = [ethernet(&[], 0x0800, &ip(b"one")), ethernet(&[], 0x0806, &[0; 46])];
    for file in [classic(0xa1b2_c3d4, false, 1, &frames), section(false)] {
        let (whole, ..) = read(&file);
        for len in 1..file.len() {
            let (found, _, error) = read(&file[..len]);
            assert!(whole.starts_with(&found), "{len}");
            match error {
                Some(ReadError::Truncated { offset }) => assert!(offset <= len as u64, "{len}"),
                None => {
                    // A file cut after a whole record is valid, but not with three more bytes.
                    let (more, _, error) = read(&[&file[..len], &[0; 3]].concat());
                    assert_eq!((more.len(), error.is_some()), (found.len(), true), "{len}");
                }
                Some(other) => panic!("{len}: {other}"),
            }
        }
    }
}

#[test]
fn lengths_beyond_the_bounds_are_errors_with_the_position() {
    let mut file = classic(0xa1b2_c3d4, false, 1, &[ethernet(&[], 0x0800, &ip(b"one"))]);
    let end = file.len();
    file.extend([0; 8]);
    file.extend((PACKET_LEN_MAX as u32 + 1).to_le_bytes());
    file.extend([0; 4]);
    let (found, _, error) = read(&file);
    let error = error.unwrap().to_string();
    assert_eq!(found.len(), 1);
    assert!(error.contains("262145 bytes") && error.contains(&format!("at byte {end} ")), "{error}");
    // Packets of the maximum length are read.
    let longest = ethernet(&[], 0x0806, &vec![0; PACKET_LEN_MAX - 14]);
    let (_, counters, error) = read(&classic(0xa1b2_c3d4, false, 1, &[longest.clone(), longest]));
    assert!(error.is_none() && counters.skipped[Skip::NotIp.index()] == 2);

    let start = section(false);
    for (kind, body, what) in [
        (6, vec![9; 20], "interface 151587081"),
        (6, vec![0; 12], "too short"),
        (6, [&[0; 12][..], &[200, 0, 0, 0], &[200, 0, 0, 0]].concat(), "more than its block has"),
        (1, vec![1, 0, 0, 0], "too short"),
        (1, [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[9, 0, 1, 0, 60, 0, 0, 0]].concat(), "resolution"),
    ] {
        let (found, _, error) = read(&[start.clone(), block(kind, &body, false)].concat());
        let error = error.unwrap().to_string();
        assert_eq!(found.len(), 2);
        assert!(error.contains(what) && error.contains(&format!("at byte {} ", start.len())), "{error}");
    }
    let mut lengths = block(6, &[0; 20], false);
    *lengths.last_mut().unwrap() = 1;
    let error = read(&[start, lengths].concat()).2.unwrap().to_string();
    assert!(error.contains("two lengths differ"), "{error}");
}

#[test]
fn long_blocks_are_skipped_in_constant_memory() {
    let mut file = section(false);
    file.extend(block(0x0bad, &vec![7; 3 * WINDOW_LEN], false));
    let whole = [file.clone(), section(true)].concat();
    let (found, _, error) = read(&whole);
    assert!(error.is_none() && found.len() == 4);
    let (found, _, error) = read(&file[..file.len() - 8]);
    assert!(matches!(error, Some(ReadError::Truncated { .. })) && found.len() == 2);
}

#[test]
fn damaged_compression_is_an_error_after_all_packets_before_it() {
    use std::io::Write;
    let frames: Vec<Vec<u8>> = (0..5_000_u32)
        .map(|n| ethernet(&[], 0x0800, &ip(&n.wrapping_mul(2_654_435_761).to_be_bytes().repeat(20))))
        .collect();
    let file = classic(0xa1b2_c3d4, false, 1, &frames);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&file).unwrap();
    let good = encoder.finish().unwrap();
    let read_gz = |bytes: Vec<u8>| {
        let mut packets = Packets::new(crate::decompress(std::io::Cursor::new(bytes)).unwrap());
        let mut count = 0;
        loop {
            match packets.next_packet() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return (count, None),
                Err(error) => return (count, Some(error)),
            }
        }
    };
    assert!(matches!(read_gz(good.clone()), (5_000, None)));
    let (count, error) = read_gz(good[..good.len() / 2].to_vec());
    assert!(
        count > 1_000 && count < 5_000 && matches!(error, Some(ReadError::Truncated { .. })),
        "{count} {error:?}"
    );
    let mut bad = good.clone();
    let at = bad.len() - 6;
    bad[at] ^= 0xff;
    let (count, error) = read_gz(bad);
    assert!(count == 5_000 && matches!(error, Some(ReadError::Damaged { .. })), "{count} {error:?}");
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Rng::new(1);
    let mut random = |below: usize| rng.below(below as u64) as usize;
    let frames = [ethernet(&[0x8100], 0x0800, &ip(b"one")), ethernet(&[], 0x0800, &ip(b"two"))];
    let files = [classic(0xa1b2_c3d4, true, 1, &frames), section(false), section(true)];
    for _ in 0..3_000 {
        let mut file = files[random(files.len())].clone();
        for _ in 0..1 + random(4) {
            let at = random(file.len());
            file[at] = random(256) as u8;
        }
        read(&file);
    }
}

#[test]
fn the_fast_path_equals_the_general_decoder() {
    let whole = ethernet(&[], 0x0800, &ip(b"payload of some length"));
    assert!(frame::udp_fast_path(&whole).is_some(), "or nothing is compared");
    let mut rng = Rng::new(2);
    let mut next = |below: usize| rng.below(below as u64) as usize;
    let mut plain = 0;
    for _ in 0..200_000 {
        let mut frame = whole.clone();
        // Add padding, or shorten the frame.
        frame.resize((frame.len() + next(8)).saturating_sub(next(12)), 0);
        for _ in 0..next(3) {
            let at = 12 + next(30);
            if let Some(byte) = frame.get_mut(at) {
                *byte = [next(256) as u8, byte.wrapping_add(1), byte.wrapping_sub(1), 0][next(4)];
            }
        }
        if let Some(datagram) = frame::udp_fast_path(&frame) {
            plain += 1;
            assert_eq!(decode(LinkLayer::Ethernet, &frame, false), Ok(datagram), "{frame:?}");
        }
    }
    assert!(plain > 10_000, "{plain}");
}
