//! Generators of every request and every answer that OUCH can express.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tickpath_nasdaq::ouch50;
use tickpath_types::*;

fn user_ref() -> impl Strategy<Value = UserRefNum> {
    any::<u32>().prop_map(UserRefNum)
}

fn qty() -> impl Strategy<Value = Qty> {
    any::<u32>().prop_map(|qty| Qty(qty.into()))
}

fn price() -> impl Strategy<Value = Price> {
    prop_oneof![1 => Just(Price::MARKET), 9 => limit()]
}

fn limit() -> impl Strategy<Value = Price> {
    (0..=ouch50::PRICE_MAX as i64).prop_map(Price)
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

fn order_id() -> impl Strategy<Value = OrderId> {
    any::<u64>().prop_map(OrderId)
}

fn match_id() -> impl Strategy<Value = MatchId> {
    any::<u64>().prop_map(MatchId)
}

fn state() -> impl Strategy<Value = OrderState> {
    prop_oneof![Just(OrderState::Live), Just(OrderState::Dead)]
}

fn liquidity() -> impl Strategy<Value = Liquidity> {
    use Liquidity::{Added, AddedHidden, ClosingCross, OpeningCross, Removed};
    select(vec![Added, Removed, AddedHidden, OpeningCross, ClosingCross])
}

/// Generates any order that OUCH can express, valid or not.
fn order() -> impl Strategy<Value = EnterOrder> {
    use TimeInForce::{Day, Gtt, Ioc};
    let what = (user_ref(), side(), qty(), price(), select(vec![Day, Ioc, Gtt]));
    let options = (any::<bool>(), prop_oneof![Just(Qty::ZERO), qty()], prop_oneof![Just(Qty::ZERO), qty()]);
    let terms = (any::<bool>(), prop_oneof![Just(0), any::<u32>()]);
    let echoed = (select(b"APRO".to_vec()), select(b"YN".to_vec()), any::<[u8; 14]>());
    (what, options, terms, echoed).prop_map(|(what, options, terms, echoed)| {
        let (user_ref, side, qty, price, time_in_force) = what;
        let (post_only, min_qty, display_qty) = options;
        let (is_hidden, expire_at) = terms;
        let (capacity, intermarket_sweep, text) = echoed;
        let special = OrderInstructions { stop_price: Price(0), display_qty, expire_at, is_hidden };
        EnterOrder {
            user_ref,
            instrument: InstrumentId(1),
            side,
            qty,
            price,
            time_in_force,
            post_only,
            min_qty,
            special: (special != OrderInstructions::default()).then_some(special),
            attributes: OrderAttributes {
                display: if is_hidden { b'N' } else { b'Y' },
                capacity,
                intermarket_sweep,
                cross_type: b'N',
            },
            client_order_id: ClientOrderId(text),
        }
    })
}

fn mass_cancel() -> impl Strategy<Value = MassCancel> {
    (user_ref(), select(vec![InstrumentId(0), InstrumentId(1)]), option::of(side()), any::<[u8; 4]>())
        .prop_map(|(user_ref, instrument, side, firm)| MassCancel { user_ref, instrument, side, firm })
}

fn order_entry() -> impl Strategy<Value = SetOrderEntry> {
    (user_ref(), any::<bool>(), any::<[u8; 4]>()).prop_map(|(user_ref, is_enabled, firm)| SetOrderEntry {
        user_ref,
        is_enabled,
        firm,
    })
}

/// Generates any request of a client.
pub fn request() -> impl Strategy<Value = OrderRequest> {
    let replace = (user_ref(), order()).prop_map(|(orig_user_ref, order)| {
        // A replacement has neither capacity nor cross type.
        let OrderAttributes { capacity, cross_type, .. } = OrderAttributes::default();
        let attributes = OrderAttributes { capacity, cross_type, ..order.attributes };
        OrderRequest::Replace(EnterOrder { attributes, ..order }.replacing(orig_user_ref))
    });
    prop_oneof![
        3 => order().prop_map(OrderRequest::Enter),
        3 => replace,
        1 => (user_ref(), qty())
            .prop_map(|(user_ref, qty)| OrderRequest::Cancel(CancelOrder { user_ref, qty })),
        1 => (user_ref(), any::<u8>(), qty()).prop_map(|(user_ref, side_marking, qty)| {
            OrderRequest::Modify(ModifyOrder { user_ref, side_marking, qty })
        }),
        1 => mass_cancel().prop_map(OrderRequest::MassCancel),
        1 => order_entry().prop_map(OrderRequest::SetOrderEntry),
    ]
}

/// Generates every kind of event that OUCH encodes without loss: no GTC orders, and no reject reasons that
/// share an OUCH code.
pub fn event_kind() -> impl Strategy<Value = OrderEventKind> {
    let reject = (0..=u8::MAX).filter_map(RejectReason::from_code);
    let reject: Vec<RejectReason> =
        reject.filter(|reason| ouch50::RejectCode::from(*reason).reason() == Some(*reason)).collect();
    let cancel: Vec<CancelReason> = (0..=u8::MAX).filter_map(CancelReason::from_code).collect();
    // Check that the filters leave most of the reasons.
    assert!(reject.len() >= 24 && cancel.len() >= 9);
    let broken: Vec<BrokenReason> = (0..=u8::MAX).filter_map(BrokenReason::from_code).collect();
    let strategies: Vec<SelfTradePrevention> = (1..=4).filter_map(SelfTradePrevention::from_code).collect();
    let prevented = (user_ref(), (qty(), qty()), limit(), liquidity(), select(strategies)).prop_map(
        |(user_ref, (decrement, prevented), price, liquidity, strategy)| OrderEventKind::SelfTradePrevented {
            user_ref,
            decrement,
            prevented,
            price,
            liquidity,
            strategy,
        },
    );
    prop_oneof![
        (order(), order_id(), state()).prop_map(|(order, order_id, state)| OrderEventKind::Accepted {
            order,
            order_id,
            state
        }),
        (order(), user_ref(), order_id(), state()).prop_map(|(order, orig_user_ref, order_id, state)| {
            OrderEventKind::Replaced { order, orig_user_ref, order_id, state }
        }),
        (user_ref(), qty(), select(cancel)).prop_map(|(user_ref, decrement, reason)| {
            OrderEventKind::Canceled { user_ref, decrement, reason }
        }),
        (user_ref(), any::<u8>(), qty()).prop_map(|(user_ref, side_marking, qty)| {
            OrderEventKind::Modified { user_ref, side_marking, qty }
        }),
        (user_ref(), qty(), limit(), liquidity(), match_id()).prop_map(
            |(user_ref, qty, price, liquidity, match_id)| OrderEventKind::Executed {
                user_ref,
                qty,
                price,
                liquidity,
                match_id
            }
        ),
        prevented,
        (user_ref(), order_id(), qty()).prop_map(|(user_ref, order_id, display_qty)| {
            OrderEventKind::Restated { user_ref, order_id, display_qty }
        }),
        (user_ref(), order_id(), limit()).prop_map(|(user_ref, order_id, price)| OrderEventKind::Triggered {
            user_ref,
            order_id,
            price
        }),
        (user_ref(), match_id(), select(broken))
            .prop_map(|(user_ref, match_id, reason)| OrderEventKind::Broken { user_ref, match_id, reason }),
        mass_cancel().prop_map(OrderEventKind::MassCanceled),
        order_entry().prop_map(OrderEventKind::OrderEntrySet),
        (user_ref(), select(reject), any::<[u8; 14]>()).prop_map(|(user_ref, reason, text)| {
            OrderEventKind::Rejected { user_ref, reason, client_order_id: ClientOrderId(text) }
        }),
    ]
}
