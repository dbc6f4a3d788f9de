//! Properties of arbitrary bytes and arbitrary messages.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use proptest::prelude::*;
use tickpath_fix::deribit::{
    EntryType, ExecutionReport, Fill, FillLiquidity, MarketDataIncremental, MarketDataRequest,
    MarketDataSnapshot, MdChange, MdEntry, MdEntryType, MdUpdateAction, NewOrderSingle, OrdStatus, Position,
    PositionReport, QtyType, RequestedSymbol, Security, SecurityAltId, SecurityList, SideCode,
    SubscriptionRequestType, TickRule,
};
use tickpath_fix::{
    Body, DECIMAL_LEN_MAX, Decimal, Group, Message, Parsed, SCALE_MAX, TIME_LEN_MAX, parse_time, write_time,
};
use tickpath_types::Nanos;

fn decimal() -> impl Strategy<Value = Decimal> {
    (any::<i64>(), 0..=SCALE_MAX).prop_map(|(mantissa, scale)| Decimal::new(mantissa.max(-i64::MAX), scale))
}

fn text() -> impl Strategy<Value = String> {
    "[ -~]{1,40}"
}

/// Encodes and decodes a body. Checks that the result is equal, and that truncated messages are incomplete.
#[track_caller]
fn round_trip<'a, B: Body<'a> + PartialEq + std::fmt::Debug>(body: &B, buffer: &'a mut [u8]) {
    let len = body.write_bare(buffer).unwrap();
    let bytes: &'a [u8] = &buffer[..len];
    for truncated in 0..len {
        assert!(matches!(Message::parse(&bytes[..truncated]), Parsed::NeedMore { .. }));
    }
    let Parsed::Complete { message, len: read } = Message::parse(bytes) else { panic!("{bytes:?}") };
    assert_eq!((read, message.msg_type()), (len, B::MSG_TYPE));
    assert_eq!(&B::decode(&message).unwrap(), body);
}

proptest! {
    #[test]
    fn decimals_are_read_as_they_are_written(number in decimal()) {
        let mut out = [0; DECIMAL_LEN_MAX];
        let read = Decimal::parse(number.write(&mut out)).unwrap();
        prop_assert_eq!((read.mantissa(), read.scale()), (number.mantissa(), number.scale()));
        prop_assert_eq!(number.normalized(), number);
    }

    #[test]
    fn times_are_read_as_they_are_written(nanos in 0..18_334_598_399_000_000_000_u64) {
        let mut out = [0; TIME_LEN_MAX];
        let read = parse_time(write_time(Nanos(nanos), &mut out)).unwrap();
        prop_assert_eq!(read, Nanos::from_millis(nanos / 1_000_000));
    }

    #[test]
    fn no_bytes_make_a_number_or_a_time_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = Decimal::parse(&bytes);
        let _ = parse_time(&bytes);
        let text: Vec<u8> = bytes.iter().map(|byte| b"0123456789-.:"[usize::from(*byte) % 13]).collect();
        let _ = parse_time(&text);
        if let Some(number) = Decimal::parse(&text) {
            let mut out = [0; DECIMAL_LEN_MAX];
            prop_assert_eq!(Decimal::parse(number.write(&mut out)), Some(number));
        }
    }

    #[test]
    fn orders_and_reports_are_read_as_they_are_written(
        id in text(), label in prop::option::of(text()), numbers in prop::collection::vec(decimal(), 4),
        nanos in 0..2_000_000_000_000_000_000_u64, fills in prop::collection::vec((text(), decimal()), 0..6),
        flags in any::<(bool, bool)>(),
    ) {
        let mut buffer = vec![0; 8192];
        let order = NewOrderSingle {
            cl_ord_id: &id,
            side: if flags.0 { SideCode::BUY } else { SideCode::SELL },
            order_qty: numbers[0],
            symbol: "BTC-PERPETUAL",
            price: flags.1.then_some(numbers[1]),
            label: label.as_deref(),
            valid_until_time: flags.0.then_some(Nanos::from_millis(nanos / 1_000_000)),
            mm_protection: Some(flags.1),
            ..NewOrderSingle::default()
        };
        round_trip(&order, &mut buffer);
        let fills: Vec<Fill<'_>> = fills
            .iter()
            .map(|(id, number)| Fill {
                fill_exec_id: id,
                fill_px: *number,
                fill_qty: numbers[2],
                liquidity: flags.0.then_some(FillLiquidity::ADDED),
            })
            .collect();
        let report = ExecutionReport {
            ord_status: OrdStatus::PARTIALLY_FILLED,
            order_id: Some(&id),
            transact_time: Some(Nanos::from_millis(nanos / 1_000_000)),
            avg_px: Some(numbers[3]),
            text: label.as_deref(),
            qty_type: Some(QtyType::UNITS),
            fills: Group::of(&fills),
            ..ExecutionReport::default()
        };
        let mut buffer = vec![0; 8192];
        round_trip(&report, &mut buffer);
    }

    #[test]
    fn books_and_lists_are_read_as_they_are_written(
        levels in prop::collection::vec((decimal(), decimal(), any::<bool>()), 0..20), name in text(),
    ) {
        let mut buffer = vec![0; 16384];
        let entries: Vec<MdEntry<'_>> = levels
            .iter()
            .map(|(price, size, is_bid)| MdEntry {
                entry_type: if *is_bid { MdEntryType::BID } else { MdEntryType::OFFER },
                price: Some(*price),
                size: Some(*size),
                ..MdEntry::default()
            })
            .collect();
        let snapshot = MarketDataSnapshot {
            symbol: &name,
            entries: Group::of(&entries),
            ..MarketDataSnapshot::default()
        };
        round_trip(&snapshot, &mut buffer);
        let changes: Vec<MdChange<'_>> = levels
            .iter()
            .map(|(price, size, is_bid)| MdChange {
                action: if *is_bid { MdUpdateAction::NEW } else { MdUpdateAction::DELETE },
                entry_type: MdEntryType::BID,
                price: Some(*price),
                size: Some(*size),
                trade_seq: is_bid.then_some(&name),
                ..MdChange::default()
            })
            .collect();
        let incremental = MarketDataIncremental {
            symbol: &name,
            changes: Group::of(&changes),
            ..MarketDataIncremental::default()
        };
        let mut buffer = vec![0; 16384];
        round_trip(&incremental, &mut buffer);
        let rules: Vec<TickRule<'_>> = levels
            .iter()
            .map(|level| TickRule { start_price: level.0, increment: level.1, ..TickRule::default() })
            .collect();
        let ids = [SecurityAltId { id: "7", source: Some(101) }];
        let securities: Vec<Security<'_>> = levels
            .iter()
            .take(3)
            .map(|level| Security {
                symbol: &name,
                strike_price: Some(level.0),
                alt_ids: Group::of(&ids),
                tick_rules: Group::of(&rules[..2.min(rules.len())]),
                ..Security::default()
            })
            .collect();
        let list = SecurityList {
            security_req_id: "r",
            text: Some("t"),
            securities: Group::of(&securities),
            ..SecurityList::default()
        };
        let mut buffer = vec![0; 16384];
        round_trip(&list, &mut buffer);
    }

    #[test]
    fn requests_and_positions_are_read_as_they_are_written(names in prop::collection::vec(text(), 0..5)) {
        let symbols: Vec<_> = names.iter().map(|symbol| RequestedSymbol { symbol }).collect();
        let kind = |entry_type| EntryType { entry_type, ..EntryType::default() };
        let kinds = [kind(MdEntryType::BID), kind(MdEntryType::TRADE)];
        let request = MarketDataRequest {
            md_req_id: "1",
            subscription: SubscriptionRequestType::SUBSCRIBE,
            entry_types: Group::of(&kinds),
            symbols: Group::of(&symbols),
            ..MarketDataRequest::default()
        };
        let mut buffer = vec![0; 4096];
        round_trip(&request, &mut buffer);
        let positions: Vec<Position<'_>> = names
            .iter()
            .map(|symbol| Position { pos_type: "TQ", symbol: Some(symbol), ..Position::default() })
            .collect();
        let report = PositionReport { positions: Group::of(&positions), ..PositionReport::default() };
        let mut buffer = vec![0; 4096];
        round_trip(&report, &mut buffer);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let framed = [b"8=FIX.4.4\x019=".as_slice(), &bytes].concat();
        for bytes in [&bytes, &framed] {
            if let Parsed::Garbled { skip, .. } = Message::parse(bytes) {
                prop_assert!(skip > 0 && skip <= bytes.len());
            }
        }
    }
}
