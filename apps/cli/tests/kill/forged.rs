//! Forged client messages with violations that the checks of the kill test must find.

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

/// Returns the messages of two users. Two executions, of 4 and of 6, fill the first user's order of 10.
fn messages() -> [Vec<Vec<u8>>; 2] {
    let one = vec![accepted(1, 10), executed(1, 4, 100, 1), executed(1, 6, 100, 2)];
    let other = vec![accepted(1, 4), executed(1, 4, 100, 1), accepted(2, 9), executed(2, 6, 100, 2)];
    [one, other]
}

/// Returns the violation that `check_trades` finds in the messages after `change`.
fn found(change: impl Fn(&mut [Vec<Vec<u8>>; 2])) -> String {
    let mut messages = messages();
    change(&mut messages);
    let messages: Vec<&[Vec<u8>]> = messages.iter().map(Vec::as_slice).collect();
    check_trades(&messages).unwrap_err()
}

#[test]
fn lost_and_changed_messages_are_found() {
    let [messages, _] = messages();
    assert_eq!(compare(&messages, &messages), Ok(()));
    let more: Vec<_> = messages.iter().cloned().chain([accepted(9, 1)]).collect();
    assert_eq!(compare(&messages, &more), Ok(()), "more may be there than was received");
    assert!(compare(&messages, &messages[..2]).unwrap_err().contains("message 3 was"), "the end is lost");
    assert!(compare(&messages, &[]).unwrap_err().contains("message 1 was"));
    let mut other = messages.clone();
    other.remove(1);
    assert!(compare(&messages, &other).unwrap_err().contains("message 2 was"), "one is lost in between");
    other = messages.clone();
    other.insert(1, messages[1].clone());
    assert!(compare(&messages, &other).unwrap_err().contains("message 3 was"), "one is doubled");
    for byte in 0..messages[1].len() {
        let mut other = messages.clone();
        other[1][byte] ^= 1;
        assert!(compare(&messages, &other).unwrap_err().contains("message 2 was"), "byte {byte} is another");
    }
}

#[test]
fn lost_duplicate_and_unequal_executions_are_found() {
    let whole = messages();
    assert_eq!(check_trades(&[&whole[0], &whole[1]]), Ok(2));
    assert!(
        found(|messages| _ = messages[0].pop()).contains("execution 2 has the sides [(6"),
        "one side alone"
    );
    assert!(
        found(|messages| messages[1].push(executed(2, 3, 100, 2))).contains("execution 2"),
        "three sides"
    );
    assert!(found(|messages| messages[0].push(executed(1, 1, 100, 3))).contains("traded more"));
    assert!(
        found(|messages| messages[1].push(executed(7, 1, 100, 3))).contains("order 7 traded more"),
        "of no order"
    );
    assert!(
        found(|messages| messages[0][1] = executed(1, 4, 101, 1)).contains("execution 1"),
        "at two prices"
    );
    assert!(
        found(|messages| messages[0][1] = executed(1, 3, 100, 1)).contains("execution 1"),
        "of two quantities"
    );
    assert!(found(|messages| messages[1].push(accepted(1, 4))).contains("accepted twice"));
}
