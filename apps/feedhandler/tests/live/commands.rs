//! Tests of commands through the Unix socket, and of a whole run with its report.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::json;
use tickpath_agent::StopSignal;
use tickpath_feedhandler::live::{
    ChannelSection, LiveConfig, Notice, ProtocolName, run, send_command, summary, to_json,
};
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_net::{MulticastSender, SendStatus, free_multicast_group};
use tickpath_test_support::{wait_for, wait_until};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, Nanos, OrderId, Price, Qty, Sequence, Side,
    Symbol, SystemEventCode,
};

/// Returns a configuration with one line and the admin socket `socket`, and the line's group.
fn one_channel(socket: &Path) -> (LiveConfig, SocketAddrV4) {
    let group = free_multicast_group().unwrap();
    let mut config = LiveConfig::default();
    config.admin.socket = Some(socket.to_owned());
    config.channels.push(ChannelSection {
        line_a: Some(group),
        max_instruments: 4,
        max_orders: 64,
        ..ChannelSection::new("one", ProtocolName::Itch)
    });
    config.finish().unwrap();
    (config, group)
}

#[test]
fn a_handler_answers_commands_and_reports_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("feed.sock");
    let (config, group) = one_channel(&socket);
    let missing = send_command(&socket, "status").unwrap_err().to_string();
    assert!(missing.contains("no feed handler listens"), "{missing}");

    let stop = StopSignal::new();
    let stopper = stop.clone();
    let handler = std::thread::spawn(move || {
        let (mut endpoints, mut warnings) = (vec![], vec![]);
        let report = run(&config, None, &stop, None, |notice| match notice {
            Notice::Endpoint(line) => endpoints.push(line),
            Notice::Warning(line) => warnings.push(line),
            Notice::Status(_) => {}
        });
        (report.unwrap(), endpoints, warnings)
    });
    let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
    let packet = one_packet();
    let status = wait_for("an answer of the handler", || {
        // The handler drops duplicates and invalid packets, so the packets can be sent repeatedly.
        for datagram in [&packet[..], b"hello", &packet[..packet.len() - 1]] {
            assert_eq!(sender.send(datagram).unwrap(), SendStatus::Sent);
        }
        send_command(&socket, "status").ok().filter(|status| status["channels"][0]["messages"] == 2)
    });
    assert_eq!(status["ok"], true);
    assert_eq!(
        status["channels"][0]["health"],
        json!({"live": 1, "recovering": 0, "stale": 0, "suspect": 0})
    );
    let refused = send_command(&socket, "resync ALPHA").unwrap();
    assert_eq!(refused["ok"], false);
    assert!(refused["error"].as_str().unwrap().contains("no snapshots"), "{refused}");
    assert_eq!(send_command(&socket, "resync ABSENT").unwrap()["error"], "no channel has ABSENT");
    assert_eq!(send_command(&socket, "dance").unwrap()["error"], "status, or resync SYMBOL");
    stopper.stop();
    let (report, endpoints, warnings) = handler.join().unwrap();
    assert!(report.is_consistent() && report.fault().is_none() && !socket.exists());
    // The warning is reported once, for any number of occurrences and any thread timing.
    let of_invalid_packets = "channel 'one': packets of another protocol, or damaged ones: dropped";
    assert_eq!(warnings.iter().filter(|line| *line == of_invalid_packets).count(), 1, "{warnings:?}");
    assert!(
        !warnings.iter().any(|line| is_about_unnamed_senders(line)),
        "of this machine alone: {warnings:?}"
    );
    assert!(endpoints.iter().any(|line| line.contains("channel 'one': itch, line A")), "{endpoints:?}");
    let json = to_json(&report.channels, &report.books);
    assert_eq!(json["books"][0]["bid"], json!({"price": "100.0000", "qty": 7}));
    assert!(summary(&report.channels[0]).contains("1 live"), "{}", summary(&report.channels[0]));
}

/// Both packets contain only the day's system events, so that no book is stale.
#[test]
fn lost_messages_are_a_fault_even_with_consistent_books() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("feed.sock");
    let (mut config, group) = one_channel(&socket);
    config.channels[0].sources = Some(vec![]);
    let stop = StopSignal::new();
    let stopper = stop.clone();
    let handler = std::thread::spawn(move || {
        let mut warnings = vec![];
        let report = run(&config, None, &stop, None, |notice| {
            if let Notice::Warning(line) = notice {
                warnings.push(line);
            }
        });
        (report.unwrap(), warnings)
    });
    let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
    wait_until("the loss", || {
        for sequence in [1, 1_001] {
            assert_eq!(sender.send(&system_event(sequence)).unwrap(), SendStatus::Sent);
        }
        send_command(&socket, "status").is_ok_and(|status| messages_lost(&status) > 0)
    });
    stopper.stop();
    let (report, warnings) = handler.join().unwrap();
    assert!(is_about_unnamed_senders(&warnings[0]), "an empty list of senders names none: {warnings:?}");
    assert!(report.is_consistent(), "no book is known");
    let fault = report.fault().unwrap();
    assert!(fault.starts_with("999 messages were lost for good"), "{fault}");
}

fn is_about_unnamed_senders(line: &str) -> bool {
    line == "channel 'one': packets from every address are accepted: name the publisher's in sources"
}

fn messages_lost(status: &serde_json::Value) -> u64 {
    status["channels"][0]["gaps"]["messages_lost"].as_u64().unwrap()
}

fn system_event(sequence: u64) -> Vec<u8> {
    let sequence = Sequence(sequence);
    let mut builder = PacketBuilder::new([0; 256], Session::new("DAY").unwrap(), sequence);
    let kind = MarketEventKind::System(SystemEventCode::StartOfMessages);
    let event = MarketEvent { sequence, command: sequence, ts: Nanos(1), instrument: InstrumentId(0), kind };
    builder.push(&market_event_message(&event, None).unwrap()).unwrap();
    builder.finish().to_vec()
}

fn one_packet() -> Vec<u8> {
    let symbol = Symbol::new("ALPHA").unwrap();
    let instrument = Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000));
    let add =
        MarketEventKind::Add { order_id: OrderId(5), side: Side::Buy, price: Price(1_000_000), qty: Qty(7) };
    let mut builder = PacketBuilder::new([0; 256], Session::new("DAY").unwrap(), Sequence(1));
    for kind in [MarketEventKind::Directory, add] {
        let (sequence, command, ts) = (Sequence(1), Sequence(1), Nanos(1));
        let event = MarketEvent { sequence, command, ts, instrument: instrument.id, kind };
        builder.push(&market_event_message(&event, Some(&instrument)).unwrap()).unwrap();
    }
    builder.finish().to_vec()
}
