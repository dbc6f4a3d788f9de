//! Commands through the Unix socket, and a whole run with its report.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::json;
use tickpath_agent::StopSignal;
use tickpath_feedhandler::live::{
    ChannelSection, LiveConfig, Notice, ProtocolName, ask, run, summary, to_json,
};
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_net::{MulticastSender, SendStatus, free_multicast_group};
use tickpath_test_support::{wait_for, wait_until};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, Nanos, OrderId, Price, Qty, Sequence, Side,
    Symbol, SystemEventCode,
};

/// Returns the configuration of a handler with one line, at a free group, and its admin socket.
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
fn a_running_handler_answers_and_reports_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("feed.sock");
    let (config, group) = one_channel(&socket);
    let missing = ask(&socket, "status").unwrap_err().to_string();
    assert!(missing.contains("no feed handler listens"), "{missing}");

    let stop = StopSignal::new();
    let stopper = stop.clone();
    let handler = std::thread::spawn(move || {
        let (mut said, mut troubles) = (vec![], vec![]);
        let report = run(&config, None, &stop, None, |notice| match notice {
            Notice::Endpoint(line) => said.push(line),
            Notice::Trouble(line) => troubles.push(line),
            Notice::Status(_) => {}
        });
        (report.unwrap(), said, troubles)
    });
    let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
    let packet = one_packet();
    let status = wait_for("an answer of the handler", || {
        // Copies of received packets are harmless, and so are invalid packets.
        for datagram in [&packet[..], b"hello", &packet[..packet.len() - 1]] {
            assert_eq!(sender.send(datagram).unwrap(), SendStatus::Sent);
        }
        ask(&socket, "status").ok().filter(|status| status["channels"][0]["messages"] == 2)
    });
    assert_eq!(status["ok"], true);
    assert_eq!(
        status["channels"][0]["health"],
        json!({"live": 1, "recovering": 0, "stale": 0, "suspect": 0})
    );
    let refused = ask(&socket, "resync ALPHA").unwrap();
    assert_eq!(refused["ok"], false);
    assert!(refused["error"].as_str().unwrap().contains("no snapshots"), "{refused}");
    assert_eq!(ask(&socket, "resync ABSENT").unwrap()["error"], "no channel knows ABSENT");
    assert_eq!(ask(&socket, "dance").unwrap()["error"], "status, or resync SYMBOL");
    stopper.stop();
    let (report, said, troubles) = handler.join().unwrap();
    assert!(report.is_believable() && report.fault().is_none() && !socket.exists());
    // Reported once, for any number of occurrences and any thread timing.
    let of_strangers = "channel 'one': packets came that are not of its protocol, or damaged: dropped";
    assert_eq!(troubles.iter().filter(|line| *line == of_strangers).count(), 1, "{troubles:?}");
    assert!(!troubles.iter().any(|line| is_of_unnamed_senders(line)), "of this machine alone: {troubles:?}");
    assert!(said.iter().any(|line| line.contains("channel 'one': itch, line A")), "{said:?}");
    let json = to_json(&report.channels, &report.books);
    assert_eq!(json["books"][0]["bid"], json!({"price": "100.0000", "qty": 7}));
    assert!(summary(&report.channels[0]).contains("1 live"), "{}", summary(&report.channels[0]));
}

/// Both packets hold the day's system events, so that no book is stale.
#[test]
fn messages_that_were_lost_for_good_are_a_fault_whatever_the_books_say() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("feed.sock");
    let (mut config, group) = one_channel(&socket);
    config.channels[0].sources = Some(vec![]);
    let stop = StopSignal::new();
    let stopper = stop.clone();
    let handler = std::thread::spawn(move || {
        let mut troubles = vec![];
        let report = run(&config, None, &stop, None, |notice| {
            if let Notice::Trouble(line) = notice {
                troubles.push(line);
            }
        });
        (report.unwrap(), troubles)
    });
    let mut sender = MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
    wait_until("the loss", || {
        for sequence in [1, 1_001] {
            assert_eq!(sender.send(&system_event(sequence)).unwrap(), SendStatus::Sent);
        }
        ask(&socket, "status").is_ok_and(|status| as_count(&status) > 0)
    });
    stopper.stop();
    let (report, troubles) = handler.join().unwrap();
    assert!(is_of_unnamed_senders(&troubles[0]), "an empty list of senders names none: {troubles:?}");
    assert!(report.is_believable(), "no book is known");
    let fault = report.fault().unwrap();
    assert!(fault.starts_with("999 messages were lost for good"), "{fault}");
}

fn is_of_unnamed_senders(line: &str) -> bool {
    line == "channel 'one': packets from every address are taken: name the publisher's in sources"
}

fn as_count(status: &serde_json::Value) -> u64 {
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
