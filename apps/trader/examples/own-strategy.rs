//! A custom strategy: buys when the best bid's quantity is much larger than the best ask's, and sells in
//! the opposite case. Start a venue, then:
//! `cargo run --release -p tickpath-trader --example own-strategy -- configs/trader.toml`

use std::path::Path;

use tickpath_trading::{Bbo, Context, NewOrder, Strategy, WarmUp};
use tickpath_types::{InstrumentId, Side};

/// Minimum ratio of the larger best quantity to the smaller one.
const RATIO: u64 = 5;

struct Imbalance;

impl Strategy for Imbalance {
    fn name(&self) -> &str {
        "imbalance"
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        let Bbo { bid: Some((bid, bid_qty)), ask: Some((ask, ask_qty)) } = cx.bbo(instrument) else { return };
        let (side, price) = match (bid_qty.0 / ask_qty.0, ask_qty.0 / bid_qty.0) {
            (RATIO.., _) => (Side::Buy, ask),
            (_, RATIO..) => (Side::Sell, bid),
            _ => return,
        };
        let clip = cx.limits(instrument).map_or(0, |limits| limits.clip.0);
        if cx.open_count(instrument) == 0 && clip > 0 {
            // Ignore a rejection for risk, order rate or an inconsistent book: the engine counts it.
            let _ = cx.enter(&NewOrder::ioc(instrument, side, tickpath_types::Qty(clip), price));
        }
    }
}

const USAGE: &str = "Usage: own-strategy [FILE]

Trades an imbalance of the best quantities until Ctrl-C. FILE is a trader's configuration [default: configs/trader.toml];
its strategy is not used. Start a venue first: tickpath exchange --config configs/exchange.toml --flow";

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let config = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => "configs/trader.toml",
        ["-h" | "--help"] => {
            println!("{USAGE}");
            return Ok(());
        }
        [file] if !file.starts_with('-') => file,
        _ => anyhow::bail!("{} is not one file; see own-strategy --help", args.join(" ")),
    };
    // While the engine is idle, a second instance runs, to keep the strategy's code in the CPU caches.
    tickpath_trader::run(Path::new(config), WarmUp::of(|| Imbalance))
}
