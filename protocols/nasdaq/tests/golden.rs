//! Checks encoding and decoding against worked examples and excerpts of real captures.
//!
//! The captured messages are short excerpts of Open-Markets-Initiative/omi-data-packets
//! (Nasdaq.Equities.TotalView.Itch.v5.0, Nasdaq.Equities.TotalView.Itch.v5.0.20230822 and
//! Nasdaq.Nsm.Ouch.v5.0), which its owner collected from public sources. The expected values were read by
//! hand from the tables of the specification.
#![allow(clippy::unwrap_used, reason = "functions that tests share do not count as tests")]

use tickpath_nasdaq::itch50::*;
use tickpath_nasdaq::wire::{Alpha, Stock};
use tickpath_nasdaq::{itch50, ouch50};
use tickpath_types::{InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Side, UserRefNum};
use zerocopy::IntoBytes;

/// Decodes hexadecimal text.
fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "odd number of digits in {text}");
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

const TS: Nanos = Nanos(34_200_000_000_123);

fn stock(text: &str) -> Stock {
    Stock::new(text).unwrap()
}

#[test]
fn worked_examples_are_written() {
    for (message, bytes) in [
        (
            AddOrder::new(7, 3, TS, 1001, BuySell::BUY, 300, stock("AAPL"), 1_891_234).as_bytes(),
            "41000700031f1aced9f07b00000000000003e9420000012c4141504c20202020001cdba2",
        ),
        (
            OrderExecuted::new(7, 3, TS, 1001, 100, 5001).as_bytes(),
            "45000700031f1aced9f07b00000000000003e9000000640000000000001389",
        ),
        (
            OrderExecutedWithPrice::new(7, 3, TS, 1002, 50, 5002, YesNo::YES, 1_892_400).as_bytes(),
            "43000700031f1aced9f07b00000000000003ea00000032000000000000138a59001ce030",
        ),
        (
            OrderReplace::new(7, 3, TS, 1001, 1003, 400, 1_891_000).as_bytes(),
            "55000700031f1aced9f07b00000000000003e900000000000003eb00000190001cdab8",
        ),
    ] {
        assert_eq!(message, hex(bytes));
    }
}

/// A listener that keeps the last decoded message as text.
#[derive(Default)]
struct Last(String);

impl Listener for Last {
    fn on_add_order(&mut self, message: &AddOrder) {
        self.0 = format!("{message:?}");
    }
}

#[test]
fn a_worked_example_is_read_and_shown() {
    let mut last = Last::default();
    itch50::decode(
        &hex("41000700031f1aced9f07b00000000000003e9420000012c4141504c20202020001cdba2"),
        &mut last,
    )
    .unwrap();
    assert_eq!(
        last.0,
        "AddOrder { message_type: 65, stock_locate: InstrumentId(7), tracking_number: U16(3), \
         timestamp: Nanos(34200000000123), order_ref: OrderId(1001), side: 'B' (buy), shares: Qty(300), \
         stock: \"AAPL    \", price: Price(1891234) }"
    );
}

/// Decodes a captured message of type `$kind` and runs `$checks`; every truncation must be an error.
macro_rules! captured {
    ($kind:ident, $bytes:literal, |$message:ident| $checks:block) => {
        let bytes = hex($bytes);
        let Ok(Message::$kind($message)) = Message::parse(&bytes) else { panic!("{}", $bytes) };
        $checks
        assert_eq!($message.as_bytes(), bytes);
        for len in 1..bytes.len() {
            assert!(Message::parse(&bytes[..len]).is_err(), "{} cut to {len}", $bytes);
        }
    };
}

#[test]
fn captured_order_messages_are_read() {
    captured!(AddOrder, "41159800001f1aced85306000000000166b53e420000064049564f4f20202020000d55ac", |add| {
        assert_eq!(add.stock_locate.get(), InstrumentId(5528));
        assert_eq!(add.timestamp.get(), Nanos(34_199_999_894_278), "just before 09:30");
        assert_eq!(add.order_ref.get(), OrderId(23_508_286));
        assert_eq!((add.side.side(), add.shares.get()), (Some(Side::Buy), Qty(1600)));
        assert_eq!((add.stock.as_str(), add.price.get()), ("IVOO", Price(873_900)));
    });
    captured!(
        AddOrderMpid,
        "4606ca00001f1aced99936000000000120be75530000006443415359202020200026fd40464c5455",
        |add| {
            assert_eq!((add.side, add.shares.get()), (BuySell::SELL, Qty(100)));
            assert_eq!((add.stock.as_str(), add.price.get()), ("CASY", Price(2_555_200)));
            assert_eq!(add.attribution.as_str(), "FLTU");
        }
    );
    captured!(OrderExecuted, "45092900021f1aced8f061000000000166929a00000019000000000003e63b", |executed| {
        assert_eq!(executed.executed_shares.get(), Qty(25));
        assert_eq!(executed.match_number.get(), MatchId(255_547));
        assert_eq!(executed.tracking_number.get(), 2);
    });
    captured!(
        OrderExecutedWithPrice,
        "4313e400011f1aceebb03b00000000013113de0000133e000000000003e65d4e00036e20",
        |executed| {
            assert_eq!((executed.executed_shares.get(), executed.printable), (Qty(4926), YesNo::NO));
            assert_eq!(executed.execution_price.get(), Price(224_800));
        }
    );
    captured!(OrderCancel, "5824c500001f1acefe785d0000000002041a0000000064", |cancel| {
        assert_eq!(cancel.canceled_shares.get(), Qty(100));
        assert_eq!(cancel.order_ref.get(), OrderId(33_823_232));
    });
    captured!(OrderDelete, "440dbd00001f1aced85ad80000000001668bd6", |delete| {
        assert_eq!(delete.order_ref.get(), OrderId(23_497_686));
    });
    captured!(
        OrderReplace,
        "551db300001f1aced771e90000000000e6897f000000000145f2c700000064001036c8",
        |replace| {
            assert_eq!(replace.original_order_ref.get(), OrderId(15_108_479));
            assert_eq!(replace.new_order_ref.get(), OrderId(21_361_351));
            assert_eq!((replace.shares.get(), replace.price.get()), (Qty(100), Price(1_062_600)));
        }
    );
}

#[test]
fn captured_trades_and_auctions_are_read() {
    captured!(
        NonCrossTrade,
        "5002ed00021f1acee926bc0000000000000000420000000241534d4c202020200067afc0000000000003e655",
        |trade| {
            assert_eq!((trade.stock.as_str(), trade.price.get()), ("ASML", Price(6_795_200)));
            assert_eq!((trade.order_ref.get(), trade.shares.get()), (OrderId(0), Qty(2)));
        }
    );
    captured!(
        CrossTrade,
        "51202700021f1acee5dc8700000000000015c950544758202020200002fc10000000000003e6494f",
        |cross| {
            assert_eq!((cross.stock.as_str(), cross.shares.get()), ("PTGX", Qty(5577)));
            assert_eq!((cross.cross_price.get(), cross.cross_type), (Price(195_600), CrossType::OPENING));
        }
    );
    captured!(
        NetOrderImbalance,
        "49193e00001f1acede0ab2000000000000000100000000000000004e4d444320202020200007161000071610000716104f4c",
        |noii| {
            assert_eq!((noii.paired_shares.get(), noii.imbalance_shares.get()), (Qty(1), Qty(0)));
            assert_eq!(noii.stock.as_str(), "MDC");
            assert_eq!(noii.current_reference_price.get(), Price(464_400));
            assert_eq!(noii.imbalance_direction, ImbalanceDirection::NONE);
            assert_eq!(
                (noii.cross_type, noii.price_variation),
                (CrossType::OPENING, PriceVariation::BELOW_1)
            );
        }
    );
    captured!(
        LuldAuctionCollar,
        "4a2c3800001f6474066cf65a565a5a5420202000041f78000509d80003b60000000001",
        |collar| {
            assert_eq!((collar.stock.as_str(), collar.extension.get()), ("ZVZZT", 1));
            assert_eq!(collar.upper_price.get(), Price(330_200));
            assert_eq!(collar.lower_price.get(), Price(243_200));
        }
    );
}

#[test]
fn captured_status_messages_are_read() {
    captured!(SystemEvent, "53000000001f1acedb02f051", |event| {
        assert_eq!(event.event_code, EventCode::START_OF_MARKET_HOURS);
        assert_eq!(event.stock_locate.get(), InstrumentId(0));
    });
    captured!(StockTradingAction, "482c3d00001f1e7036e4655a585a5a5420202050204c554450", |action| {
        assert_eq!((action.stock.as_str(), action.reason.as_str()), ("ZXZZT", "LUDP"));
        assert_eq!(action.trading_state, StockTradingState::PAUSED);
        assert_eq!(action.reserved, Alpha(*b" "));
    });
    captured!(RegShoRestriction, "5924bd00001f1ad5cc18b7534f50412020202031", |restriction| {
        assert_eq!(restriction.reg_sho_action, RegShoAction::RESTRICTED);
    });
    captured!(
        MarketParticipantPosition,
        "4c0e0200001f36f0d08a7652494c594642494f20202020594e45",
        |position| {
            assert_eq!((position.mpid.as_str(), position.stock.as_str()), ("RILY", "FBIO"));
            assert_eq!(position.market_maker_mode, MarketMakerMode::NORMAL);
            assert_eq!(position.participant_state, ParticipantState::EXCUSED);
        }
    );
}

#[test]
fn the_order_entry_example_is_read_and_written() {
    let bytes =
        hex("4f0000000142000000644141504c2020202000000000001cdba23059504e4e4f524445523030303030303120200000");
    let Ok(ouch50::Inbound::EnterOrder(order, options)) = ouch50::Inbound::parse(&bytes) else { panic!() };
    assert_eq!(order.user_ref.get(), UserRefNum(1));
    assert_eq!((order.side.side(), order.quantity.get()), (Some(Side::Buy), Qty(100)));
    assert_eq!((order.symbol.as_str(), order.price.get()), ("AAPL", Price(1_891_234)));
    assert_eq!(order.time_in_force, ouch50::TimeInForceCode::DAY);
    assert_eq!((order.display, order.capacity), (ouch50::Display::VISIBLE, ouch50::Capacity::PRINCIPAL));
    assert_eq!(order.client_order_id.as_str(), "ORDER0000001");
    assert!(options.is_empty());
    let mut out = [0; 64];
    let len = ouch50::encode_with_options(order, &[], &mut out).unwrap();
    assert_eq!(out[..len], bytes);
}

#[test]
fn captured_order_entry_is_read() {
    let bytes = hex("4f0000007154000000e143564c54202020200000000000099db83059414e4e\
         4838465542384956202020202020000605024c494d45");
    let Ok(ouch50::Inbound::EnterOrder(order, options)) = ouch50::Inbound::parse(&bytes) else { panic!() };
    assert_eq!((order.user_ref.get(), order.side), (UserRefNum(0x71), ouch50::SideMarking::SELL_SHORT));
    assert_eq!((order.symbol.as_str(), order.price.get()), ("CVLT", Price(630_200)));
    assert_eq!(options.iter().collect::<Vec<_>>(), [ouch50::TagValue::Firm(Alpha(*b"LIME"))]);

    let bytes = hex("410000289b4d64af8700753a8d42000000284144424520202020000000000048e7483559\
         000000000f56b4f5414e4e4c3736383237303120202020202020000905024d4c524f021230");
    let Ok(ouch50::Outbound::Accepted(accepted, options)) = ouch50::Outbound::parse(&bytes) else { panic!() };
    assert_eq!(accepted.timestamp.get(), Nanos(44_647_483_486_087));
    assert_eq!((accepted.order.symbol.as_str(), accepted.order.price.get()), ("ADBE", Price(4_777_800)));
    assert_eq!(accepted.order.time_in_force, ouch50::TimeInForceCode::GTX);
    assert_eq!(accepted.order.order_state, ouch50::OrderStateCode::LIVE);
    let tags = [ouch50::TagValue::Firm(Alpha(*b"MLRO")), ouch50::TagValue::BboWeight(b'0')];
    assert_eq!(options.iter().collect::<Vec<_>>(), tags);

    let bytes = hex("430000289b4d68131700753a8d0000002855");
    let Ok(ouch50::Outbound::Canceled(canceled, _)) = ouch50::Outbound::parse(&bytes) else { panic!() };
    assert_eq!((canceled.quantity.get(), canceled.reason), (Qty(40), ouch50::CancelReasonCode::USER));

    let bytes = hex("5800752e7100000000");
    let Ok(ouch50::Inbound::CancelOrder(cancel, _)) = ouch50::Inbound::parse(&bytes) else { panic!() };
    assert_eq!((cancel.user_ref.get(), cancel.quantity.get()), (UserRefNum(7_679_601), Qty(0)));
}
