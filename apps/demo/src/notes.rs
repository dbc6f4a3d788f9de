//! Notes of a demonstration for its user: its endpoints, and the cost of its idle threads.

use tickpath_agent::{Host, IdleStrategy};
use tickpath_exchange::Endpoints;

use crate::market::Market;
use crate::settings::DemoSettings;

/// Describes the idle strategy and its cost. By default a demonstration's agents do not sleep, unlike those
/// of a venue or a trader.
pub(crate) fn idle_note(settings: &DemoSettings) -> anyhow::Result<String> {
    let placement = settings.placement_on(&Host::describe().cores_allowed)?;
    let threads = placement.threads.len();
    let cost = match placement.idle {
        IdleStrategy::Park => "sleep while there is nothing to do",
        _ => "take a core each, also while there is nothing to do",
    };
    let idle = format!("{:?}", placement.idle).to_lowercase();
    Ok(format!("idle = \"{idle}\": {threads} threads {cost}"))
}

/// Returns the addresses for other clients, in lines that fit into the last row of a terminal of 80 columns.
pub(crate) fn endpoints(market: &Market, settings: &DemoSettings) -> Vec<String> {
    let Endpoints { order_entry, line_a, line_b, retransmission, .. } = market.endpoints;
    let mut endpoints = vec![
        format!("orders {order_entry} OUCH 5.0"),
        settings.guests.describe(),
        format!("line A {line_a} ITCH 5.0"),
        format!("line B {line_b} ITCH 5.0"),
        format!("requests {retransmission} MoldUDP64"),
    ];
    endpoints.extend(settings.admin.iter().map(|admin| format!("admin {}", admin.socket.display())));
    endpoints
}
