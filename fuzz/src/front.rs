//! The properties of the Deribit front: whatever clients request, replies are JSON, the positions of the
//! accounts sum to zero, and a restart changes nothing.

use serde_json::{Value, json};

#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../apps/deribit-front/tests/front/support.rs"]
pub(crate) mod support;

use support::Venue;

/// Maximum number of requests in a run.
const LINES_MAX: usize = 64;

/// Sends a request per line: even lines for one account, odd lines for the other, and every eighth line
/// without a login. A second passes between two lines.
pub fn deribit_front(data: &[u8]) {
    let mut venue = Venue::new();
    let clients = [venue.login("anna"), venue.login("bert"), venue.connect()];
    for (number, line) in data.split(|byte| *byte == b'\n').take(LINES_MAX).enumerate() {
        let client = clients[if number % 8 == 7 { 2 } else { number % 2 }];
        venue.front.handle_frame(client, line, venue.now_us);
        venue.settle();
        // Panics unless each frame is JSON.
        for client in clients {
            venue.frames(client);
        }
        venue.wait(1_000_001);
    }
    let before = state(&mut venue);
    for name in ["BTC-PERPETUAL", "ETH_USDC-PERPETUAL", "BTC-25DEC26-60000-C"] {
        let sizes =
            before.iter().map(|account| account[name]["size"].as_f64().expect("a position has a size"));
        let sum: f64 = sizes.sum();
        assert!(sum.abs() < 1e-6, "{name}: {before:?}");
    }
    let labels = Vec::new();
    assert_eq!(state(&mut venue.restarted(labels)), before);
}

/// Returns the state of the accounts of `anna` and `bert`.
pub(crate) fn state(venue: &mut Venue) -> Vec<Value> {
    ["anna", "bert"]
        .map(|name| {
            let client = venue.login(name);
            let mut state = json!({});
            for name in ["BTC-PERPETUAL", "ETH_USDC-PERPETUAL", "BTC-25DEC26-60000-C"] {
                let asked = json!({ "instrument_name": name });
                state[name] = venue.ok(client, "private/get_position", asked);
                // Not compared: the margin of orders includes quotes, which end with the venue.
                state[name]["open_orders_margin"] = Value::Null;
            }
            for currency in ["BTC", "USDC"] {
                let asked = json!({ "currency": currency });
                let summary = venue.ok(client, "private/get_account_summary", asked);
                state[currency] = json!([summary["balance"], summary["equity"], summary["session_rpl"]]);
            }
            state
        })
        .to_vec()
}
