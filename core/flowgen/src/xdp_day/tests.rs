use std::collections::HashMap;

use tickpath_nyse::{DeliveryFlag, HEADER_LEN, Message, PACKET_LEN_MAX, Packet, SendTime};
use xxhash_rust::xxh3::xxh3_64;

use super::lines::LINE_B_LATER_NS;
use super::*;
use tickpath_feed::LossConfig;

use crate::ItchDayConfig;

const FLOW: ItchDayConfig = ItchDayConfig { messages: 40_000, symbols: 90, live: 2_000, seed: 7 };
const SMALL: XdpDayConfig = XdpDayConfig { flow: FLOW, ..XdpDayConfig::xdp_500() };

fn packets(config: XdpDayConfig) -> Vec<XdpPacket> {
    let mut day = XdpDay::new(config).unwrap();
    let packets: Vec<XdpPacket> = std::iter::from_fn(|| day.next_packet()).collect();
    let counters = day.counters();
    assert_eq!(counters.packets, packets.len() as u64);
    assert_eq!(counters.bytes, packets.iter().map(|packet| packet.bytes().len() as u64).sum::<u64>());
    packets
}

#[test]
fn a_seed_gives_the_same_capture_for_ever() {
    let capture = |config| {
        let mut bytes = pcap_header().to_vec();
        let mut day = XdpDay::new(config).unwrap();
        std::iter::from_fn(|| day.next_packet()).for_each(|packet| append_record(&packet, &mut bytes));
        bytes
    };
    let flow = ItchDayConfig { messages: 20_000, symbols: 25, live: 1_000, seed: 1 };
    let small = XdpDayConfig { flow, ..SMALL };
    let bytes = capture(small);
    assert_eq!(bytes, capture(small));
    assert_ne!(bytes, capture(XdpDayConfig { flow: ItchDayConfig { seed: 2, ..flow }, ..small }));
    assert_eq!((bytes.len(), format!("{:016x}", xxh3_64(&bytes))), (1_084_012, "2e13ea4c660d7ee4".into()));
}

/// Each channel has consecutive sequence numbers, and times never decrease.
#[test]
fn each_channel_is_one_row_of_messages() {
    let mut next: HashMap<u8, u32> = HashMap::new();
    let (mut last_ns, mut message_count) = (0, 0);
    let mut seconds: HashMap<u8, u32> = HashMap::new();
    let mut times: HashMap<u8, u64> = HashMap::new();
    let mut symbol_seqs: HashMap<u32, u32> = HashMap::new();
    for packet in packets(SMALL) {
        assert!(packet.ts_ns >= last_ns, "packets arrive in order");
        last_ns = packet.ts_ns;
        let parsed = Packet::parse(packet.bytes()).unwrap();
        assert_eq!(parsed.send_time(), SendTime::of_nanos(round_down(packet.ts_ns)));
        let next = next.entry(packet.channel).or_insert(1);
        assert_eq!((parsed.sequence(), parsed.message_count()), (*next, packet.message_count));
        *next += u32::from(packet.message_count);
        message_count += u64::from(packet.message_count);
        for (_, message) in parsed.messages() {
            let (nanos, symbol) = match Message::parse(message).unwrap() {
                Message::SequenceNumberReset(_) => {
                    assert_eq!(parsed.delivery_flag(), DeliveryFlag::SEQUENCE_RESET);
                    assert_eq!((parsed.sequence(), parsed.message_count()), (1, 1));
                    continue;
                }
                Message::SourceTimeReference(message) => {
                    let second = message.source_time.get();
                    assert_eq!(message.id.get(), u32::from(packet.channel));
                    assert!(seconds.insert(packet.channel, second).unwrap_or(0) < second);
                    continue;
                }
                Message::SymbolIndexMapping(_) | Message::SymbolClear(_) => continue,
                Message::Imbalance(message) => (message.source_time_ns.get(), message.symbol_index.get()),
                Message::SecurityStatus(status) => (status.source_time_ns.get(), status.symbol_index.get()),
                Message::Unknown(_) => panic!("an unknown message"),
                // All other types have nanoseconds and symbol index at the same offsets.
                _ => {
                    let field = |at: usize| u32::from_le_bytes(*message[at..].first_chunk().unwrap());
                    (field(4), field(8))
                }
            };
            let ts = u64::from(seconds[&packet.channel]) * NANOS_PER_SECOND + u64::from(nanos);
            assert!(ts <= packet.ts_ns && ts + SMALL.window_ns >= packet.ts_ns, "it waits for the window");
            assert!(times.insert(packet.channel, ts).unwrap_or(0) <= ts);
            let seq = symbol_seqs.entry(symbol).or_insert(0);
            *seq += 1;
            let at = if matches!(message[2], 34 | 105) { 16 } else { 12 };
            assert_eq!(u32::from_le_bytes(*message[at..].first_chunk().unwrap()), *seq, "symbol {symbol}");
        }
    }
    let mut day = XdpDay::new(SMALL).unwrap();
    while day.next_packet().is_some() {}
    assert_eq!(message_count, day.counters().messages);
    assert_eq!(symbol_seqs.len(), FLOW.symbols as usize);
}

/// Bytes that are constant in all recorded messages of a type, as ranges of offsets.
const CONSTANT: &[(u16, &[(usize, usize)])] = &[
    (2, &[(5, 12)]),
    (34, &[(21, 43), (45, 46)]),
    (100, &[(20, 22), (23, 24), (38, 39)]),
    (102, &[(20, 22), (23, 25)]),
    (103, &[(20, 22), (23, 24), (37, 39)]),
    (104, &[(20, 22), (23, 24), (28, 30), (31, 32), (40, 42)]),
    (105, &[(32, 36), (48, 52), (56, 64), (64, 65), (66, 67), (72, 73)]),
    (110, &[(29, 30)]),
    (111, &[]),
];

/// The day's messages have the lengths and constant bytes of recorded ones, and times in steps of 256 ns.
#[test]
fn messages_resemble_the_recorded_ones() {
    let recorded = include_str!("../../../../protocols/nyse/tests/data/packets.hex");
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let mut real: HashMap<u16, Vec<u8>> = HashMap::new();
    for line in recorded.lines().filter(|line| line.starts_with("integrated/")) {
        let bytes = hex(line.split_once(' ').unwrap().1);
        for (_, message) in Packet::parse(&bytes).unwrap().messages() {
            real.insert(u16::from_le_bytes([message[2], message[3]]), message.to_vec());
        }
    }
    let mut compared: HashMap<u16, u32> = HashMap::new();
    for packet in packets(SMALL) {
        assert!(packet.bytes().len() <= PACKET_LEN_MAX && packet.bytes().len() > HEADER_LEN);
        for (_, message) in Packet::parse(packet.bytes()).unwrap().messages() {
            let message_type = u16::from_le_bytes([message[2], message[3]]);
            let Some(real) = real.get(&message_type) else { continue };
            let (_, constant) = CONSTANT.iter().find(|(of, _)| *of == message_type).unwrap();
            assert_eq!(message.len(), real.len(), "type {message_type}");
            for &(from, to) in *constant {
                assert_eq!(message[from..to], real[from..to], "type {message_type}, bytes {from} to {to}");
            }
            // The venue's clock has steps of 256 ns, so the lowest byte is zero in both messages.
            let nanos_at = if matches!(message_type, 2 | 34 | 105) { 8 } else { 4 };
            assert_eq!((message[nanos_at], real[nanos_at]), (0, 0), "type {message_type}");
            *compared.entry(message_type).or_default() += 1;
        }
    }
    for (message_type, _) in CONSTANT {
        assert!(compared[message_type] > 0, "type {message_type} did not come");
    }
}

#[test]
fn bursts_fill_packets() {
    let mean = |config: XdpDayConfig| {
        let mut day = XdpDay::new(config).unwrap();
        while day.next_packet().is_some() {}
        day.counters().messages as f64 / day.counters().filled as f64
    };
    let (alone, burst) = (mean(XdpDayConfig { window_ns: 0, ..SMALL }), mean(SMALL));
    let full = mean(XdpDayConfig { window_ns: NANOS_PER_SECOND, ..SMALL });
    assert!(alone < burst && burst < full, "{alone} {burst} {full}");
}

#[test]
fn line_b_has_the_same_packets_later_and_losses_are_counted() {
    let both = packets(XdpDayConfig { lines: 2, ..SMALL });
    let line = |line| both.iter().filter(move |packet| packet.line == line);
    assert_eq!(line(0).count(), line(1).count());
    for (a, b) in line(0).zip(line(1)) {
        assert_eq!((a.bytes(), a.channel, a.ts_ns + LINE_B_LATER_NS), (b.bytes(), b.channel, b.ts_ns));
    }
    assert!(both.windows(2).all(|pair| pair[0].ts_ns <= pair[1].ts_ns));
    assert_eq!(packets(SMALL).len(), line(0).count());

    let loss = LossConfig { seed: 3, loss_ppm: 100_000, common_ppm: 0 };
    let mut day = XdpDay::new(XdpDayConfig { lines: 2, loss, ..SMALL }).unwrap();
    let arrived = std::iter::from_fn(|| day.next_packet()).count();
    assert_eq!(arrived as u64 + day.counters().lost, both.len() as u64);
    assert!(day.counters().lost > both.len() as u64 / 20);
}

#[test]
fn a_quiet_channel_sends_a_heartbeat_every_second() {
    let flow = ItchDayConfig { messages: 1_000, symbols: 2, live: 10, seed: 1 };
    let packets = packets(XdpDayConfig { flow, heartbeats: true, channels: 1, ..SMALL });
    let beats = packets.iter().filter(|packet| packet.message_count == 0);
    assert!(beats.clone().count() > 50_000);
    assert!(beats.clone().all(|packet| packet.bytes().len() == HEADER_LEN));
    assert!(packets.windows(2).all(|pair| pair[1].ts_ns - pair[0].ts_ns <= NANOS_PER_SECOND));
}

#[test]
fn settings_out_of_range_are_named() {
    let error = |config: XdpDayConfig| XdpDay::new(config).unwrap_err().to_string();
    assert!(error(XdpDayConfig { channels: 0, ..SMALL }).contains("channels is 0: choose 1 to 16"));
    assert!(error(XdpDayConfig { channels: 17, ..SMALL }).contains("channels is 17"));
    assert!(error(XdpDayConfig { lines: 3, ..SMALL }).contains("lines is 3"));
    assert!(error(XdpDayConfig { window_ns: 1_000_000_001, ..SMALL }).contains("window is"));
    let flow = ItchDayConfig { live: 0, ..FLOW };
    assert!(error(XdpDayConfig { flow, ..SMALL }).contains("live is 0"));
    let flow = ItchDayConfig { messages: 2_000_000_000, ..FLOW };
    assert!(error(XdpDayConfig { flow, ..SMALL }).contains("messages is 2000000000"));
}
