//! Shows every event of a gateway, one per line. The library answers the gateway's pings.
//!
//! `cargo run --release -p gateway-clients --bin subscribe-all -- SOCKET --user NAME`

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Parser;
use gateway_clients::{Args, run};
use tickpath_config::{print_stderr, print_stdout};
use tickpath_gateway_protocol::{EventKind, ReferenceData};

/// Show every event of a gateway
#[derive(Parser)]
struct SubscribeAll {
    #[command(flatten)]
    args: Args,
    /// End after this number of events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Also show pings and timers
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let SubscribeAll { args, count, verbose } = SubscribeAll::parse();
    // Names of instruments, and whether they are selected.
    let mut symbols: HashMap<u32, (String, bool)> = HashMap::new();
    let mut left = count;
    let ended = run(&args, |_, event| {
        if let Some(reference) = event.body::<ReferenceData>() {
            let name = reference.name.to_string();
            let is_wanted = args.wants(&name);
            symbols.insert(event.header.symbol, (name, is_wanted));
        }
        let is_quiet = matches!(event.header.kind, EventKind::PING | EventKind::TIMER);
        let symbol = symbols.get(&event.header.symbol);
        if is_quiet && !verbose || symbol.is_some_and(|(_, is_wanted)| !is_wanted) {
            return Ok(ControlFlow::Continue(()));
        }
        let name = symbol.map_or("", |(name, _)| name);
        print_stdout(format_args!("{name}{}{event}", if name.is_empty() { "" } else { " " }))?;
        left = left.map(|left| left.saturating_sub(1));
        Ok(if left == Some(0) { ControlFlow::Break(ExitCode::SUCCESS) } else { ControlFlow::Continue(()) })
    });
    ended.unwrap_or_else(|error| {
        print_stderr(format_args!("error: {error:#}"));
        ExitCode::FAILURE
    })
}
