//! Events as text; related events share a line. `s2 1` is the order with `UserRefNum` 1 of session 2, `#1` an
//! order id, and `m1` a match id.
//!
//! | text | events |
//! |---|---|
//! | `accepted as #1` | the reply `Accepted` with the order exactly as entered, in the state `Live` |
//! | `rests as #1`, `rests as #1 showing 20` | the same, and all or part of the order is added to the book |
//! | `s2 1 takes 30 @ 10.00 of s1 1 #1 m1` | the execution, sent to both owners and the public |
//! | `s2 1 takes 30 @ 10.00 of s1 1, a hidden sell, m1` | the same with an undisplayed resting order |
//! | `s1 1 and s2 1 trade 30 @ 10.00 OpeningCross m1` | the execution in a cross, sent to both owners |
//! | `s1 1 shows 20 as #2, sell @ 10.00` | the next part is added to the book, and the owner is informed |
//! | two events with `;` between them | a cancel or a reduction: the owner's event, then the public one |

use tickpath_matching::{Command, CommandKind};
use tickpath_types::*;

use crate::common::Event;

/// The lines that describe the events of a command.
pub fn format_events(command: &Command, mut events: &[Event]) -> Vec<String> {
    let mut lines = Vec::new();
    while let [first, rest @ ..] = events {
        let formatted = accepted(command, events).or_else(|| execution(events)).or_else(|| pair(events));
        let (line, len) = formatted.unwrap_or_else(|| (show(first), 1));
        lines.push(line);
        events = &rest[len - 1..];
    }
    lines
}

/// Line for an order that was accepted exactly as entered, and the number of events in the line.
fn accepted(command: &Command, events: &[Event]) -> Option<(String, usize)> {
    let [Event::Order(reply), rest @ ..] = events else { return None };
    let CommandKind::Order(OrderRequest::Enter(entered)) = command.kind else { return None };
    let OrderEventKind::Accepted { order, order_id: id, state: OrderState::Live } = reply.kind else {
        return None;
    };
    if order != entered || reply.session != command.session || !reply.is_reply {
        return None;
    }
    if let [Event::Market(added), ..] = rest
        && let MarketEventKind::Add { order_id, side, price, qty } = added.kind
        && (added.instrument, order_id, side, price) == (order.instrument, id, order.side, order.price)
    {
        let part = if qty == order.qty { String::new() } else { format!(" showing {qty}") };
        return Some((format!("rests as #{id}{part}"), 2));
    }
    Some((format!("accepted as #{id}"), 1))
}

/// Line for all events of one execution, and the number of events in the line.
fn execution(events: &[Event]) -> Option<(String, usize)> {
    let [Event::Order(first), Event::Order(second), rest @ ..] = events else { return None };
    let (one, liquidity, traded) = side_of_execution(first)?;
    let (other, rested, again) = side_of_execution(second)?;
    if traded != again {
        return None;
    }
    let (qty, price, match_id) = traded;
    let amount = format!("{qty} @ {}", money(price));
    if liquidity == rested && matches!(rested, Liquidity::OpeningCross | Liquidity::ClosingCross) {
        return Some((format!("{one} and {other} trade {amount} {liquidity:?} m{match_id}"), 2));
    }
    let [Event::Market(public), ..] = rest else { return None };
    let of = match (liquidity, rested, public.kind) {
        (Liquidity::Removed, Liquidity::Added, MarketEventKind::Executed { order_id, qty, match_id })
            if (qty, match_id) == (traded.0, traded.2) =>
        {
            format!("{other} #{order_id}")
        }
        (
            Liquidity::Removed,
            Liquidity::AddedHidden,
            MarketEventKind::Traded { side, qty, price, match_id },
        ) if (qty, price, match_id) == traded => format!("{other}, a hidden {side},"),
        _ => return None,
    };
    Some((format!("{one} takes {amount} of {of} m{match_id}"), 3))
}

type Traded = (Qty, Price, MatchId);

/// One side of an execution: the order, its liquidity flag, and the trade.
fn side_of_execution(event: &OrderEvent) -> Option<(String, Liquidity, Traded)> {
    match event.kind {
        OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } if !event.is_reply => {
            Some((format!("s{} {user_ref}", event.session), liquidity, (qty, price, match_id)))
        }
        _ => None,
    }
}

/// Line for the owner's and the public event of one change, and the number of events in the line.
fn pair(events: &[Event]) -> Option<(String, usize)> {
    let [first, second, ..] = events else { return None };
    let line = match (first, second) {
        (Event::Market(public), Event::Order(owner)) => match (public.kind, owner.kind) {
            (
                MarketEventKind::Add { order_id, side, price, qty },
                OrderEventKind::Restated { user_ref, order_id: id, display_qty },
            ) if (id, display_qty) == (order_id, qty) && !owner.is_reply => {
                format!("s{} {user_ref} shows {qty} as #{id}, {side} @ {}", owner.session, money(price))
            }
            _ => return None,
        },
        (Event::Order(owner), Event::Market(public)) => match (owner.kind, public.kind) {
            (OrderEventKind::Canceled { .. }, MarketEventKind::Deleted { .. })
            | (
                OrderEventKind::Canceled { .. } | OrderEventKind::Modified { .. },
                MarketEventKind::Reduced { .. },
            ) => {
                format!("{}; {}", show(first), show_market_event(public))
            }
            _ => return None,
        },
        _ => return None,
    };
    Some((line, 2))
}

fn money(price: Price) -> String {
    match price {
        Price::MARKET => "market".to_owned(),
        Price(units) => format!("{}.{:02}", units / 10_000, units % 10_000 / 100),
    }
}

fn show(event: &Event) -> String {
    match event {
        Event::Order(event) => {
            let reply = if event.is_reply { "!" } else { "" };
            format!("s{}{reply} {}", event.session, show_order_event(&event.kind))
        }
        Event::Market(event) => format!("* {}", show_market_event(event)),
    }
}

fn show_order_event(kind: &OrderEventKind) -> String {
    match kind {
        OrderEventKind::Accepted { order, order_id, state } => {
            format!(
                "accepted {} as #{order_id} {state:?} {} @ {}",
                order.user_ref,
                order.qty,
                money(order.price)
            )
        }
        OrderEventKind::Replaced { order, orig_user_ref, order_id, state } => format!(
            "replaced {orig_user_ref} by {} as #{order_id} {state:?} {} {} @ {}",
            order.user_ref,
            order.side,
            order.qty,
            money(order.price)
        ),
        OrderEventKind::Canceled { user_ref, decrement, reason } => {
            format!("canceled {user_ref} -{decrement} {reason:?}")
        }
        OrderEventKind::Modified { user_ref, side_marking, qty } => {
            format!("modified {user_ref} {} {qty}", char::from(*side_marking))
        }
        OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
            format!("executed {user_ref} {qty} @ {} {liquidity:?} m{match_id}", money(*price))
        }
        OrderEventKind::SelfTradePrevented { user_ref, decrement, prevented, price, liquidity, strategy } => {
            format!(
                "prevented {user_ref} -{decrement} of {prevented} @ {} {liquidity:?} {strategy:?}",
                money(*price)
            )
        }
        OrderEventKind::Restated { user_ref, order_id, display_qty } => {
            format!("restated {user_ref} as #{order_id} showing {display_qty}")
        }
        OrderEventKind::Triggered { user_ref, order_id, price } => {
            format!("triggered {user_ref} as #{order_id} @ {}", money(*price))
        }
        OrderEventKind::Broken { user_ref, match_id, reason } => {
            format!("broken {user_ref} m{match_id} {reason:?}")
        }
        OrderEventKind::MassCanceled(request) => format!("mass-canceled {}", request.user_ref),
        OrderEventKind::OrderEntrySet(set) => {
            format!("order-entry {} {}", set.user_ref, if set.is_enabled { "enabled" } else { "disabled" })
        }
        OrderEventKind::Rejected { user_ref, reason, client_order_id } => {
            let text = String::from_utf8_lossy(&client_order_id.0);
            format!("rejected {user_ref} {reason:?} {}", text.trim()).trim_end().to_owned()
        }
    }
}

fn show_market_event(event: &MarketEvent) -> String {
    match event.kind {
        MarketEventKind::System(code) => format!("{code:?}"),
        MarketEventKind::Directory => format!("directory {}", event.instrument),
        MarketEventKind::TradingAction(state) => format!("{state:?} {}", event.instrument),
        MarketEventKind::Add { order_id, side, price, qty } => {
            format!("add #{order_id} {side} {qty} @ {}", money(price))
        }
        MarketEventKind::Executed { order_id, qty, match_id } => {
            format!("executed #{order_id} {qty} m{match_id}")
        }
        MarketEventKind::ExecutedAt { order_id, qty, price, match_id } => {
            format!("executed #{order_id} {qty} m{match_id} at {}", money(price))
        }
        MarketEventKind::Traded { side, qty, price, match_id } => {
            format!("traded {side} {qty} @ {} m{match_id}", money(price))
        }
        MarketEventKind::Cross { qty, price, match_id, kind } => {
            format!("cross {kind:?} {qty} @ {} m{match_id}", money(price))
        }
        MarketEventKind::TradeBroken { match_id } => format!("broken m{match_id}"),
        MarketEventKind::Imbalance(Imbalance { paired, imbalance, side, price, .. }) => {
            let side = side.map_or("none".to_owned(), |side| side.to_string());
            format!("imbalance {paired} paired {imbalance} {side} @ {}", money(price))
        }
        MarketEventKind::PriceBand { reference, low, high } => {
            format!("band {} {} {}", money(reference), money(low), money(high))
        }
        MarketEventKind::Reduced { order_id, qty } => format!("reduced #{order_id} -{qty}"),
        MarketEventKind::Deleted { order_id } => format!("deleted #{order_id}"),
        MarketEventKind::Replaced { old_order_id, order_id, price, qty } => {
            format!("replaced #{old_order_id} by #{order_id} {qty} @ {}", money(price))
        }
    }
}
