//! Arbitration of XDP packets from two lines.

use tickpath_feed::xdp::Packets;
use tickpath_feed::{Arbiter, ArbiterConfig, Framing, Line, LossConfig, MessageListener, PacketKind};
use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig};
use tickpath_nyse::{
    DeliveryFlag, MessageUnavailable, PacketBuilder, SendTime, SequenceNumberReset, SourceTimeReference,
};
use tickpath_types::{Nanos, Sequence};

#[derive(Default)]
struct Seen {
    next: u64,
    count: u64,
    lost: u64,
}

impl MessageListener<()> for Seen {
    fn on_message(&mut self, sequence: Sequence, _: &[u8]) {
        assert!(sequence.0 >= self.next, "in order, each once");
        self.next = sequence.0 + 1;
        self.count += 1;
    }
    fn on_lost(&mut self, _: Sequence, count: u64) {
        self.lost += count;
    }
}

fn packet(flag: DeliveryFlag, sequence: u32, count: u32) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; 1400], sequence);
    for _ in 0..count {
        builder.push(&SourceTimeReference::new(1, 0, 5)).unwrap();
    }
    builder.finish(flag, SendTime { secs: 1, nanos: 2 }).to_vec()
}

#[test]
fn headers_state_the_packet_kind() {
    let header = |bytes: &[u8], near| Packets::header(bytes, near).unwrap();
    let original = header(&packet(DeliveryFlag::ORIGINAL, 7, 3), 5);
    assert_eq!((original.kind, original.first, original.end()), (PacketKind::Messages, 7, 10));
    assert_eq!((original.sent_ns, original.is_reset), (1_000_000_002, false));
    let heartbeat = header(&packet(DeliveryFlag::HEARTBEAT, 9, 0), 5);
    assert_eq!((heartbeat.kind, heartbeat.first, heartbeat.count), (PacketKind::Heartbeat, 9, 0));
    assert_eq!(header(&packet(DeliveryFlag::REFRESH_PART, 2, 1), 5).kind, PacketKind::OutOfBand);
    assert!(!header(&packet(DeliveryFlag::FAILOVER, 2, 1), 5).is_reset);
    let mut builder = PacketBuilder::new([0; 100], 1);
    builder.push(&SequenceNumberReset::new(1, 2, 11, 1)).unwrap();
    for flag in [DeliveryFlag::SEQUENCE_RESET, DeliveryFlag::FAILOVER] {
        let reset = header(builder.finish(flag, SendTime::default()), 1_000_000);
        assert_eq!((reset.first, reset.count, reset.is_reset), (1, 1, true));
    }
    builder.start_at(0);
    builder.push(&MessageUnavailable::new(20, 29, 11, 1)).unwrap();
    let unavailable = header(builder.finish(DeliveryFlag::UNAVAILABLE, SendTime::default()), 20);
    assert_eq!((unavailable.kind, unavailable.first, unavailable.count), (PacketKind::Unavailable, 20, 10));
    // The 32-bit sequence numbers wrap.
    let next = header(&packet(DeliveryFlag::ORIGINAL, 1, 1), u64::from(u32::MAX));
    assert_eq!(next.first, (1 << 32) + 1);
    assert_eq!(Packets::header(&[0; 15], 1), None);
    assert!(Packets::messages(&packet(DeliveryFlag::ORIGINAL, 1, 3)[..40]).is_none());
}

#[test]
fn a_request_names_the_first_and_the_last_number() {
    let missing = Packets::request((), Sequence((1 << 32) + 5), 10);
    assert_eq!((missing.begin_seq_num, missing.end_seq_num), (5, 14));
}

/// Messages lost on one line arrive on the other, and those lost on both are reported as lost.
#[test]
fn two_lines_with_losses_give_one_sequence() {
    let flow = ItchDayConfig { messages: 30_000, symbols: 20, live: 1_000, seed: 5 };
    let loss = LossConfig { seed: 9, loss_ppm: 20_000, common_ppm: 0 };
    let config = XdpDayConfig { flow, channels: 1, lines: 2, loss, ..XdpDayConfig::xdp_500() };
    let mut day = XdpDay::new(config).unwrap();
    let mut arbiter: Arbiter<Packets> = Arbiter::new(ArbiterConfig::default());
    let mut seen = Seen::default();
    let mut last = 0;
    while let Some(packet) = day.next_packet() {
        let line = if packet.line == 0 { Line::A } else { Line::B };
        last = packet.ts_ns;
        arbiter.handle_timeout(Nanos(packet.ts_ns), &mut seen);
        arbiter.handle_packet(Nanos(packet.ts_ns), line, packet.bytes(), &mut seen);
        // No server answers.
        while arbiter.poll_request().is_some() {}
    }
    for second in 1..60 {
        arbiter.handle_timeout(Nanos(last) + Nanos::from_secs(second), &mut seen);
        while arbiter.poll_request().is_some() {}
    }
    assert!(day.counters().lost > 100);
    // Line B delivered the messages that line A lost.
    assert!(arbiter.counters().lines[1].first_messages > 300, "{:?}", arbiter.counters());
    assert_eq!(seen.count + seen.lost, day.counters().messages);
    assert!(seen.lost > 0 && seen.lost < day.counters().messages / 100, "{}", seen.lost);
}
