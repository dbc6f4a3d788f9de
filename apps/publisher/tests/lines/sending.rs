//! Tests of the packets that are sent on the lines.

use std::net::Ipv4Addr;

use tickpath_config::Speed;
use tickpath_feed::{Arbiter, ArbiterConfig, IexStream, IexTp, Line, MessageListener};
use tickpath_iex::{Feed, Segment, SegmentBuilder};
use tickpath_net::MulticastReceiver;
use tickpath_publisher::{Publication, PublishOptions};
use tickpath_test_support::listen;
use tickpath_types::{Nanos, Sequence};

use super::recordings::{START_NS, append_udp, iex_day, iex_messages, write, xdp_day};
use super::{Publisher, options, receive};

#[derive(Default)]
struct Messages(Vec<Vec<u8>>, u64);

impl MessageListener<IexStream> for Messages {
    fn on_message(&mut self, _: Sequence, message: &[u8]) {
        self.0.push(message.to_vec());
    }
    fn on_lost(&mut self, _: Sequence, count: u64) {
        self.1 += count;
    }
}

/// Line A drops some packets on purpose; line B carries all packets.
#[test]
fn both_lines_carry_the_recording_and_one_drops_packets() {
    let folder = tempfile::tempdir().unwrap();
    let file = iex_day(folder.path(), Feed::Deep10, 2_000);
    let options = PublishOptions { drop_a_ppm: 200_000, seed: 7, ..options(&file) };
    let publication = Publication::open(options.clone()).unwrap();
    let join = |group| MulticastReceiver::join(group, Ipv4Addr::LOCALHOST).unwrap();
    let (mut a, mut b) = (join(options.line_a), join(options.line_b.unwrap()));
    let publisher = Publisher::begin(publication);

    let (mut of_a, mut of_b) = (0, 0);
    let (mut arbiter, mut messages) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Messages::default());
    // Line B alone delivers all messages.
    while messages.0.len() < 2_000 {
        arbiter.handle_packet(Nanos(1), Line::B, &receive(&mut b), &mut messages);
        of_b += 1;
    }
    assert_eq!((messages.0, messages.1), (iex_messages(Feed::Deep10, 2_000), 0));
    // A heartbeat on line A follows the last segment.
    while !Segment::parse(&receive(&mut a)).unwrap().is_heartbeat() {
        of_a += 1;
    }
    let report = publisher.stop();
    let [line_a, line_b] = report.channels[0].lines[..] else { panic!("two lines") };
    assert_eq!((of_a + line_a.dropped, of_b), (of_b, 2_000_u64.div_ceil(7)));
    assert!(line_a.dropped > 20 && line_b.dropped == 0, "{report}");
    assert_eq!((report.channels[0].messages, report.unknown), (2_000, 0));
}

#[test]
fn packets_are_paced_and_heartbeats_fill_idle_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = tickpath_flowgen::pcap_header().to_vec();
    let messages = iex_messages(Feed::Deep10, 20);
    let mut builder = tickpath_iex::SegmentBuilder::new([0; 1_400], Feed::Deep10, 1, 3);
    let to = "224.0.0.9:9".parse().unwrap();
    for (number, message) in messages.iter().enumerate() {
        builder.push(message).unwrap();
        let ts_ns = START_NS + number as u64 * 500_000_000;
        append_udp(ts_ns, to, builder.finish(Nanos(ts_ns)), &mut bytes);
    }
    let file = write(folder.path(), "slow.pcap", &bytes);
    // Ten recorded seconds at twenty times the speed, without linger time.
    let options = PublishOptions {
        speed: Speed::Hundredths(2_000),
        linger: Nanos::ZERO,
        recovery: None,
        ..options(&file)
    };
    let start = std::time::Instant::now();
    let report = Publisher::start(options).finish();
    assert!(start.elapsed().as_millis() >= 9_500 / 20, "{:?}", start.elapsed());
    assert!(report.is_whole(), "{report}");
    assert_eq!((report.channels[0].packets, report.channels[0].service.len()), (20, 0));
}

/// Two groups with equal packets are recognised as lines of one channel.
#[test]
fn the_lines_of_a_recording_are_one_channel() {
    let folder = tempfile::tempdir().unwrap();
    let publication = Publication::open(options(&xdp_day(folder.path(), 2))).unwrap();
    let config = publication.feed_config();
    assert_eq!(config.matches("[[channel]]").count(), 2, "{config}");
    let ports: Vec<_> = config.lines().filter(|line| line.starts_with("line_a")).collect();
    assert_ne!(ports[0], ports[1], "each channel has separate ports");
    let report = Publisher::begin(publication).stop();
    assert!(report.is_stopped && !report.is_whole());
}

#[test]
fn other_files_and_truncated_ones_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |file: &std::path::Path| {
        Publication::open(options(file)).err().map(|error| format!("{error:#}")).unwrap_or_default()
    };
    let nothing = write(folder.path(), "nothing.pcap", &tickpath_flowgen::pcap_header());
    assert!(refused(&nothing).contains("no packets of ITCH, XDP or IEX"), "{}", refused(&nothing));
    let text = write(folder.path(), "text", b"neither a capture nor messages");
    assert!(!refused(&text).is_empty());

    let whole = std::fs::read(iex_day(folder.path(), Feed::Deep10, 500)).unwrap();
    let cut = write(folder.path(), "cut.pcap", &whole[..whole.len() - 5]);
    let options = PublishOptions { linger: Nanos::ZERO, recovery: None, ..options(&cut) };
    let report = Publisher::start(options).finish();
    assert!(report.read_error.is_some() && !report.is_whole(), "{report}");
    assert_eq!(report.channels[0].messages, 500 - 500 % 7);
    assert_eq!(report.to_json()["whole"], false);
}

#[test]
fn the_printed_configuration_has_the_day_and_capacity_for_the_instruments() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = tickpath_flowgen::pcap_header().to_vec();
    let mut builder = SegmentBuilder::new([0; 1_400], Feed::Deep10, 1, 9);
    let to = "224.67.0.199:16642".parse().unwrap();
    for symbols in (0..2_000_u64).collect::<Vec<_>>().chunks(10) {
        for symbol in symbols {
            let mut message = [b' '; 18];
            message[10..].copy_from_slice(format!("S{symbol:<7}").as_bytes());
            builder.push(&message).unwrap();
        }
        append_udp(START_NS, to, builder.finish(Nanos(START_NS)), &mut bytes);
    }
    let file = write(folder.path(), "many.pcap", &bytes);
    let text = Publication::open(options(&file)).unwrap().feed_config();
    assert!(text.starts_with("[feed]\nsession_date = \"2023-11-14\"\n"), "{text}");
    assert!(text.contains("\nmax_instruments = 2500\n"), "{text}");
    let few = iex_day(folder.path(), Feed::Deep10, 100);
    let text = Publication::open(options(&few)).unwrap().feed_config();
    assert!(!text.contains("max_instruments"), "{text}");
}

/// The instrument capacity is derived from the stock locates, since a recording may lack directory messages.
#[test]
fn a_used_port_is_an_error_and_locates_without_a_directory_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = vec![];
    for locate in [7_u16, 2_000] {
        let mut delete = [0; 19];
        delete[0] = b'D';
        delete[1..3].copy_from_slice(&locate.to_be_bytes());
        bytes.extend([0, 19]);
        bytes.extend(delete);
    }
    let file = write(folder.path(), "day.itch", &bytes);
    let text = Publication::open(options(&file)).unwrap().feed_config();
    assert!(text.contains("\nmax_instruments = 2500\n"), "{text}");
    let (_taken, address) = listen();
    // The services of IEX use three consecutive ports: UDP, then TCP on the port in use, then TCP.
    let first = std::net::SocketAddrV4::new(*address.ip(), address.port() - 1);
    let file = iex_day(folder.path(), Feed::Deep10, 100);
    let refused = Publication::open(PublishOptions { recovery: Some(first), ..options(&file) });
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("is in use: give another port, or none, by --serve-recovery"), "{refused}");
}
