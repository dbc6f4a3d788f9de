//! Test that a live handler's duty cycles never allocate.

use tickpath_agent::{counts_allocations, thread_allocations};
use tickpath_feedhandler::live::ProtocolName;
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, Nanos, OrderId, Price, Qty, Sequence, Side,
    Symbol,
};

use crate::rig::Rig;

/// Number of messages of the day.
const DAY: u64 = 4_000;
/// Sequence number of the message that both lines lose: a delete.
const LOST: u64 = 1_010;

/// Returns the message of this sequence number: a directory message, an add, a delete of the order added
/// eight messages before, or once the delete of an unknown order.
fn message(sequence: u64) -> Vec<u8> {
    let instrument = |id: u16| {
        let symbol = Symbol::new(&format!("S{id}")).unwrap();
        Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000))
    };
    let id = (sequence % 4 + 1) as u16;
    let kind = match sequence {
        1..=4 => MarketEventKind::Directory,
        2_500 => MarketEventKind::Deleted { order_id: OrderId(77_777) },
        _ if (sequence - 5) % 16 < 8 => MarketEventKind::Add {
            order_id: OrderId(sequence),
            side: Side::Buy,
            price: Price(1_000_000),
            qty: Qty(7),
        },
        _ => MarketEventKind::Deleted { order_id: OrderId(sequence - 8) },
    };
    let event = MarketEvent {
        sequence: Sequence(sequence),
        command: Sequence(1),
        ts: Nanos(sequence),
        instrument: InstrumentId(id),
        kind,
    };
    market_event_message(&event, Some(&instrument(id))).unwrap().as_ref().to_vec()
}

#[test]
fn duty_cycles_do_not_allocate() {
    assert!(counts_allocations());
    let mut rig = Rig::open(ProtocolName::Itch, |_| {});
    // Count only the handler's allocations.
    let mut allocations = 0;
    for first in 1..=DAY {
        let mut packet = PacketBuilder::new([0; 256], Session::new("DAY").unwrap(), Sequence(first));
        packet.push(&message(first)).unwrap();
        let packet = packet.finish().to_vec();
        if first != LOST {
            rig.send_unread(0, &packet);
        }
        if first % 10 != 0 && first != LOST {
            rig.send_unread(1, &packet);
        }
        // Advance the time so far that all periodic work is due.
        rig.now = rig.now + Nanos::from_millis(3);
        let before = thread_allocations();
        (0..4).for_each(|_| rig.run_cycle());
        allocations += thread_allocations() - before;
    }
    assert_eq!(allocations, 0);
    let status = &rig.view.channels()[0].status;
    assert!(status.next_sequence > DAY - 100 && status.lines.messages_lost == 1, "{status:#?}");
    let (suspects, more) = rig.view.take_suspects();
    assert_eq!((suspects.len(), more), (1, 0), "{suspects:?}");
    assert!(suspects[0].contains("the book of S1 is suspect: a message about an order that does not rest"));
}
