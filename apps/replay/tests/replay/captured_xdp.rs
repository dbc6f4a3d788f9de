//! Captures of NYSE XDP: generated days, with losses, and recorded packets.

use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig};
use tickpath_replay::ReplayOptions;
use tickpath_test_support::recorded;

use crate::captured::Capture;
use crate::support::{checked, run};

const A: &str = "224.0.59.76:11076";
const B: &str = "224.0.59.204:11076";

/// Returns the packets of a generated day, each with its channel.
pub fn day() -> Vec<(u8, Vec<u8>)> {
    let flow = ItchDayConfig::itch_500().scaled(1_000);
    let mut day = XdpDay::new(XdpDayConfig { flow, lines: 1, ..XdpDayConfig::xdp_500() }).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = day.next_packet() {
        packets.push((packet.channel, packet.bytes().to_vec()));
    }
    packets
}

/// Returns the packets of the day's busiest channel.
fn packets() -> Vec<Vec<u8>> {
    let day = day();
    let len = |channel: u8| {
        day.iter().filter(|(known, _)| *known == channel).map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let busiest = (0..=u8::MAX).max_by_key(|channel| len(*channel)).unwrap();
    day.into_iter().filter(|(channel, _)| *channel == busiest).map(|(_, bytes)| bytes).collect()
}

fn sparse_check() -> ReplayOptions {
    ReplayOptions { check_every: Some(100_000), ..ReplayOptions::default() }
}

#[test]
fn a_generated_day_gives_consistent_books() {
    let mut capture = Capture::new();
    for packet in packets() {
        capture.udp(A, &packet);
    }
    let report = capture.run(&sparse_check());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(report.integrity.time_backwards.count, 0, "{report}");
    let found = report.capture.as_ref().unwrap();
    assert_eq!((found.protocol.name(), found.name.as_str()), ("xdp", "NYSE XDP Integrated Feed"));
    assert_eq!((found.channels.len(), found.channels[0].gaps), (1, 0));
    assert!(
        report.messages > 1_000 && report.statistics.iter().any(|(_, found)| found.executions > 0),
        "{report}"
    );
    assert!(report.by_type.iter().any(|entry| entry.code == "100" && entry.name == "Add Order"));
}

#[test]
fn lines_are_identified_by_their_packets_and_fill_each_others_gaps() {
    let packets = packets();
    let mut line_a = Capture::new();
    packets.iter().for_each(|packet| {
        line_a.udp(A, packet);
    });
    let mut both = Capture::new();
    for (index, packet) in packets.iter().enumerate() {
        if index % 7 != 3 {
            both.udp(A, packet);
        }
        if index % 5 != 4 || index % 7 == 3 {
            both.udp(B, packet);
        }
    }
    let (line_a, both) = (line_a.run(&sparse_check()), both.run(&sparse_check()));
    assert!(both.is_trustworthy(), "{:?}", both.contradictions);
    let channels = &both.capture.as_ref().unwrap().channels;
    assert_eq!((channels.len(), channels[0].lines.len()), (1, 2), "{both}");
    assert_eq!((channels[0].restarts, channels[0].disagreements), (0, 0), "{both}");
    assert_eq!((both.messages, both.checksum), (line_a.messages, line_a.checksum));
    assert_eq!(format!("{:?}", both.tops), format!("{:?}", line_a.tops));
}

#[test]
fn channels_have_separate_numbers() {
    let mut capture = Capture::new();
    let mut active = std::collections::BTreeSet::new();
    for (channel, bytes) in &day() {
        // The fourth byte of a packet is its number of messages.
        if bytes[3] > 0 {
            active.insert(*channel);
        }
        capture.udp(&format!("224.0.59.{}:11000", 1 + channel), bytes);
    }
    let report = capture.run(&sparse_check());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(report.capture.as_ref().unwrap().channels.len(), active.len(), "{report}");
    assert!(active.len() > 1);
}

#[test]
fn a_lost_packet_is_reported() {
    let mut capture = Capture::new();
    for (index, packet) in packets().iter().enumerate().filter(|(index, _)| *index != 20) {
        capture.ns += 200_000_000 * u64::from(index == 30);
        capture.udp(A, packet);
    }
    let report = capture.run(&sparse_check());
    let text = report.contradictions.join("\n");
    assert!(text.contains("1 gap(s) on channel 224.0.59.76:11076"), "{text}");
    assert_eq!(report.model.as_ref().unwrap().difference, None);
}

#[test]
fn recorded_packets_are_read() {
    let folder = "nyse_xdp/integrated_pillar_v2.5_20220223";
    let mut codes = Vec::new();
    for name in [
        "AddOrderMessage",
        "CrossTradeMessage",
        "DeleteOrderMessage",
        "ImbalanceMessage",
        "OrderExecutionMessage",
        "ReplaceOrderMessage",
        "SecurityStatusMessage",
        "SourceTimeReferenceMessage",
        "StockSummaryMessage",
    ] {
        let Some(path) = recorded(&format!("{folder}/{name}.pcap")) else { return };
        let report = run(&path, &ReplayOptions { decode_only: true, ..ReplayOptions::default() });
        assert!(report.is_trustworthy(), "{name}: {:?}", report.contradictions);
        assert!(report.span.unwrap().0.to_string().starts_with("2022-02-23 1"), "{name}: {report}");
        codes.extend(report.by_type.iter().map(|entry| entry.code.clone()));
        // A message of an unmapped symbol counts as unmapped; its order reference is not checked.
        let report = run(&path, &checked());
        assert_eq!(report.integrity.unknown_references.count, 0, "{name}");
        let is_about_a_symbol = !["SourceTimeReferenceMessage", "StockSummaryMessage"].contains(&name);
        assert_eq!(report.integrity.unmapped.count > 0, is_about_a_symbol, "{name}");
        assert_eq!(report.is_trustworthy(), !is_about_a_symbol, "{name}");
    }
    codes.sort();
    codes.dedup();
    assert_eq!(codes, ["100", "102", "103", "104", "105", "110", "111", "2", "223", "34"]);
}
