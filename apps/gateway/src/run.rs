//! Runs a gateway until it is stopped.

use std::path::Path;
use std::time::Duration;

use tickpath_agent::{StopSignal, TscClock};
use tickpath_config::{Console, tell};
use tickpath_gateway_protocol::GatewayState;
use tickpath_types::Nanos;

use crate::config::GatewayConfig;
use crate::metrics::{MetricsServer, event_log_sampler};
use crate::process::{Endpoints, Gateway, GatewayView};

/// How often notes are looked for.
const NOTES_INTERVAL: Duration = Duration::from_millis(20);
/// How often a progress line is printed.
const PROGRESS_INTERVAL: Nanos = Nanos::from_secs(10);

/// Runs a gateway until `stop` is raised: prints where it can be reached, then how it stands, and what goes wrong. `file` is
/// the configuration's, for the secrets in it; `folder` is where the segment of market data lies, the usual one when absent.
///
/// # Errors
/// What cannot be opened, found or read, in one line that says what to do; and what ended the gateway's thread.
pub fn run(
    config: &GatewayConfig,
    file: Option<&Path>,
    folder: Option<&Path>,
    stop: &StopSignal,
) -> anyhow::Result<()> {
    let clock = TscClock::shared();
    let mut console = Console::default();
    let Gateway { agent, endpoints, notes, control, view, metrics, log_counters, admin } =
        Gateway::build(config, file, folder, clock)?;
    let served = config
        .metrics_listen_address
        .map(|address| MetricsServer::start(address, metrics, vec![event_log_sampler(log_counters)]))
        .transpose()?;
    let threads_stop = StopSignal::new();
    let runner = agent.start(config, clock, threads_stop.clone())?;
    runner.warnings().for_each(|warning| tell(format_args!("warning: {warning}")));
    print_endpoints(&mut console, config, &endpoints, served.as_ref());
    if control.is_killed() {
        tell("warning: the kill switch is on: no order leaves until tickpath gateway release");
    }
    let mut state = GatewayState::default();
    let mut next_progress = clock.now() + PROGRESS_INTERVAL;
    while !stop.is_stopped() && !threads_stop.is_stopped() {
        notes.try_iter().for_each(tell);
        let state_now = GatewayState(view.state.read() as u8);
        if state_now != state {
            state = state_now;
            let by = if state == GatewayState::READY {
                format!(", orders over {}", endpoints.orders)
            } else {
                String::new()
            };
            console.say(format_args!("{state}{by}: {}", progress_line(&view)));
        }
        if clock.now() >= next_progress {
            next_progress = clock.now() + PROGRESS_INTERVAL;
            console.say(progress_line(&view));
        }
        std::thread::sleep(NOTES_INTERVAL);
    }
    threads_stop.stop();
    let ended = runner.join();
    drop(admin);
    notes.try_iter().for_each(tell);
    console.say(progress_line(&view));
    console.finish()?;
    ended?;
    Ok(())
}

fn print_endpoints(
    console: &mut Console,
    config: &GatewayConfig,
    endpoints: &Endpoints,
    metrics: Option<&MetricsServer>,
) {
    let dry = if config.dry_run { ", a dry run: no order leaves" } else { "" };
    let money = if config.production { ", real money" } else { "" };
    console.say(format_args!("gateway '{}' is open{money}{dry}; stop it with Ctrl-C", config.name));
    console.say(format_args!("  clients          {}", endpoints.socket.display()));
    console.say(format_args!("  market data      {}", endpoints.segment.display()));
    console.say(format_args!("  commands         {}", config.admin_socket().display()));
    if let Some(metrics) = metrics {
        console.say(format_args!("  metrics          http://{}/metrics", metrics.address()));
    }
    console.say(format_args!("  venue            {}   orders over {}", endpoints.venue, endpoints.orders));
}

fn progress_line(view: &GatewayView) -> String {
    format!(
        "{} instruments | {} clients | {} requests, {} refused here | {} open orders | {} messages of the venue, {} events of market data | {} connections lost",
        view.instruments.read(),
        view.clients.read(),
        view.requests.read(),
        view.refused.read(),
        view.open_orders.read(),
        view.messages.read(),
        view.broadcasts.read(),
        view.losses.read(),
    )
}
