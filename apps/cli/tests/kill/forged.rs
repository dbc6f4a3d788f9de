//! Violations that the kill test must find, in forged observations.

use tickpath_nasdaq::ouch50;
use tickpath_types::{
    Liquidity, MatchId, Nanos, OrderEvent, OrderEventKind, OrderId, OrderState, Price, Qty, Sequence,
    SessionId, Side, UserRefNum,
};

use crate::check_trades;
use crate::client::{compare, order, symbol};

fn message(kind: OrderEventKind) -> Vec<u8> {
    let event =
        OrderEvent { command: Sequence(1), session: SessionId(1), ts: Nanos::ZERO, is_reply: false, kind };
    let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
    let len = ouch50::encode_event(&event, |_| Some(symbol()), &mut bytes).unwrap();
    bytes[..len].to_vec()
}

fn accepted(user_ref: u32, qty: u64) -> Vec<u8> {
    let order = order(user_ref, Side::Buy, qty, 1_000_000);
    message(OrderEventKind::Accepted { order, order_id: OrderId(user_ref.into()), state: OrderState::Live })
}

fn executed(user_ref: u32, qty: u64, price: i64, match_id: u64) -> Vec<u8> {
    message(OrderEventKind::Executed {
        user_ref: UserRefNum(user_ref),
        qty: Qty(qty),
        price: Price(price),
        liquidity: Liquidity::Added,
        match_id: MatchId(match_id),
    })
}

/// Returns the messages of two users: 10 of 10 traded in two executions.
fn told() -> [Vec<Vec<u8>>; 2] {
    let one = vec![accepted(1, 10), executed(1, 4, 100, 1), executed(1, 6, 100, 2)];
    let other = vec![accepted(1, 4), executed(1, 4, 100, 1), accepted(2, 9), executed(2, 6, 100, 2)];
    [one, other]
}

/// Returns the violation found after this change.
fn found(change: impl Fn(&mut [Vec<Vec<u8>>; 2])) -> String {
    let mut told = told();
    change(&mut told);
    let told: Vec<&[Vec<u8>]> = told.iter().map(Vec::as_slice).collect();
    check_trades(&told).unwrap_err()
}

#[test]
fn what_was_told_and_is_not_there_any_more_is_found() {
    let [told, _] = told();
    assert_eq!(compare(&told, &told), Ok(()));
    let more: Vec<_> = told.iter().cloned().chain([accepted(9, 1)]).collect();
    assert_eq!(compare(&told, &more), Ok(()), "more may be there than was received");
    assert!(compare(&told, &told[..2]).unwrap_err().contains("message 3 was"), "the end is lost");
    assert!(compare(&told, &[]).unwrap_err().contains("message 1 was"));
    let mut other = told.clone();
    other.remove(1);
    assert!(compare(&told, &other).unwrap_err().contains("message 2 was"), "one is lost in between");
    other = told.clone();
    other.insert(1, told[1].clone());
    assert!(compare(&told, &other).unwrap_err().contains("message 3 was"), "one is doubled");
    for byte in 0..told[1].len() {
        let mut other = told.clone();
        other[1][byte] ^= 1;
        assert!(compare(&told, &other).unwrap_err().contains("message 2 was"), "byte {byte} is another");
    }
}

#[test]
fn executions_that_are_lost_doubled_or_unlike_are_found() {
    let whole = told();
    assert_eq!(check_trades(&[&whole[0], &whole[1]]), Ok(2));
    assert!(found(|told| _ = told[0].pop()).contains("execution 2 has the sides [(6"), "one side alone");
    assert!(found(|told| told[1].push(executed(2, 3, 100, 2))).contains("execution 2"), "three sides");
    assert!(found(|told| told[0].push(executed(1, 1, 100, 3))).contains("traded more"));
    assert!(
        found(|told| told[1].push(executed(7, 1, 100, 3))).contains("order 7 traded more"),
        "of no order"
    );
    assert!(found(|told| told[0][1] = executed(1, 4, 101, 1)).contains("execution 1"), "at two prices");
    assert!(found(|told| told[0][1] = executed(1, 3, 100, 1)).contains("execution 1"), "of two quantities");
    assert!(found(|told| told[1].push(accepted(1, 4))).contains("accepted twice"));
}
