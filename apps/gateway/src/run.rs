//! Runs a gateway until it is stopped.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tickpath_agent::{StopSignal, TscClock};
use tickpath_config::{Console, absolute, counted, print_stderr};
use tickpath_gateway_core::Bans;
use tickpath_gateway_protocol::GatewayState;
use tickpath_types::Nanos;

use crate::admin::AdminName;
use crate::config::GatewayConfig;
use crate::metrics::{MetricsServer, event_log_sampler};
use crate::notes::NoteLines;
use crate::process::{Endpoints, Gateway, GatewayView};
use crate::view::view_sampler;

/// Interval at which messages are polled.
const NOTES_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of progress lines.
const PROGRESS_INTERVAL: Nanos = Nanos::from_secs(10);
/// Interval of lines that report the orders still to be cancelled at the end.
const CLOSE_INTERVAL: Nanos = Nanos::from_secs(1);
/// Maximum wait for the cancellation of clients' orders: if the venue cancels the rest, and if it does not.
const CLOSE_PATIENCE: [Nanos; 2] = [Nanos(1_500_000_000), Nanos::from_secs(120)];

/// Runs a gateway until `stop` is raised: prints its endpoints, its state changes and its failures. `file` is
/// the configuration's path, for the secrets in it. `folder` is the folder of the market data segment, the
/// default one when absent.
///
/// # Errors
/// An error in one line that says what to do, or the error that ended the gateway's thread.
pub fn run(
    config: &GatewayConfig,
    file: Option<&Path>,
    folder: Option<&Path>,
    stop: &StopSignal,
) -> anyhow::Result<()> {
    let clock = TscClock::shared();
    let mut console = Console::default();
    let Gateway { agent, endpoints, notes, control, closing, bans, view, metrics, log_counters, admin } =
        Gateway::build(config, file, folder, clock)?;
    let samplers = vec![view_sampler(Arc::clone(&view)), event_log_sampler(log_counters)];
    let served = config
        .metrics_listen_address
        .map(|address| MetricsServer::start(address, metrics, samplers))
        .transpose()
        .context("metrics_listen_address")?;
    let threads_stop = StopSignal::new();
    let runner = agent.start(config, clock, threads_stop.clone())?;
    runner.warnings().for_each(|warning| print_stderr(format_args!("warning: {warning}")));
    let found_by_name = AdminName::publish(&config.name, &config.admin_socket());
    if let Err(error) = &found_by_name {
        print_stderr(format_args!(
            "warning: commands do not find this gateway by its name, only by --config or --socket: {error}"
        ));
    }
    print_endpoints(&mut console, config, &endpoints, served.as_ref());
    if control.is_killed() {
        print_stderr("warning: the kill switch is on: no order leaves until tickpath gateway release");
    }
    let mut state = GatewayState::default();
    let mut watch = Watch::new(config, bans);
    let mut lines = NoteLines::default();
    let mut next_progress = clock.now() + PROGRESS_INTERVAL;
    let mut last_use = use_of(&view);
    while !stop.is_stopped() && !threads_stop.is_stopped() {
        notes.try_iter().for_each(|note| lines.push(clock.now(), note));
        lines.poll(clock.now()).into_iter().for_each(print_stderr);
        let state_now = GatewayState(view.state.read() as u8);
        if state_now != state {
            state = state_now;
            let by = if state == GatewayState::READY {
                format!(", orders over {}", endpoints.orders)
            } else {
                String::new()
            };
            console.print_stdout(format_args!("{state}{by}: {}", progress_line(&view)));
            if state == GatewayState::READY {
                // First the waiting messages: they are older.
                lines.finish().into_iter().for_each(print_stderr);
                lines.recovered().into_iter().for_each(print_stderr);
            }
        }
        watch.look(config, &view, clock.now());
        if clock.now() >= next_progress {
            next_progress = clock.now() + PROGRESS_INTERVAL;
            let use_now = use_of(&view);
            if use_now != last_use {
                console.print_stdout(progress_line(&view));
                last_use = use_now;
            }
        }
        std::thread::sleep(NOTES_INTERVAL);
    }
    closing.stop();
    wait_for_cancels(&mut console, config, &view, &threads_stop, clock);
    threads_stop.stop();
    let ended = runner.join();
    drop((admin, found_by_name));
    notes.try_iter().for_each(|note| lines.push(clock.now(), note));
    lines.finish().into_iter().for_each(print_stderr);
    console.print_stdout(progress_line(&view));
    console.finish()?;
    ended?;
    say_what_stands(config, &view)
}

/// Waits until the venue has confirmed that clients' orders are cancelled, or the maximum wait has passed.
fn wait_for_cancels(
    console: &mut Console,
    config: &GatewayConfig,
    view: &GatewayView,
    ended: &StopSignal,
    clock: TscClock,
) {
    let begun = clock.now();
    let patience = CLOSE_PATIENCE[usize::from(!config.venue.cancel_on_disconnect)];
    let mut next_line = begun + CLOSE_INTERVAL;
    while view.is_closed.read() == 0 && !ended.is_stopped() && clock.now().since(begun) < patience {
        std::thread::sleep(NOTES_INTERVAL);
        let left = view.cancels_left.read();
        if clock.now() >= next_line && left > 0 {
            next_line = clock.now() + CLOSE_INTERVAL;
            console.print_stdout(format_args!(
                "stopping: {} still to be cancelled; a second Ctrl-C leaves them at the venue",
                counted(left, "order")
            ));
        }
    }
}

/// Reports the orders left at the venue when the gateway ends; an error if they should have been cancelled.
fn say_what_stands(config: &GatewayConfig, view: &GatewayView) -> anyhow::Result<()> {
    let (open, wanted) = (view.open_orders.read(), view.cancels_left.read());
    if wanted > 0 && !config.venue.cancel_on_disconnect {
        anyhow::bail!(
            "orders that were to be cancelled and may still be open at the venue, {wanted}: look there, or start the gateway again"
        );
    }
    if wanted > 0 {
        print_stderr(format_args!(
            "orders that are not confirmed as cancelled, {wanted}: the venue cancels those of this run as its connections end"
        ));
    }
    if open > wanted {
        let what = if config.venue.cancel_on_disconnect {
            "the venue cancels those of this run as its connections end"
        } else {
            "clients.cancel_on_disconnect leaves them there"
        };
        print_stderr(format_args!("open orders of clients at the end, {}: {what}", open - wanted));
    }
    Ok(())
}

/// Warnings to the operator, each printed once per occurrence.
struct Watch {
    unreadable: u64,
    elsewhere: u64,
    is_empty: bool,
    bans: Bans,
    /// End of the last ban reported for each user.
    told: Vec<Nanos>,
}

impl Watch {
    fn new(config: &GatewayConfig, bans: Bans) -> Watch {
        let told = vec![Nanos::ZERO; config.users.len()];
        Watch { unreadable: 0, elsewhere: 0, is_empty: false, bans, told }
    }

    fn look(&mut self, config: &GatewayConfig, view: &GatewayView, now: Nanos) {
        let unreadable = view.unreadable.read();
        if std::mem::replace(&mut self.unreadable, unreadable) != unreadable {
            print_stderr(unreadable_line(config, unreadable));
        }
        let elsewhere = view.elsewhere.read();
        if std::mem::replace(&mut self.elsewhere, elsewhere) != elsewhere {
            print_stderr(format_args!(
                "warning: another program enters or changes orders under the name '{}' ({elsewhere} so far): another gateway of this name? They are left to it; give each gateway of an account a different name",
                config.name
            ));
        }
        let is_empty = view.listed.read() > 0 && view.instruments.read() == 0;
        if !std::mem::replace(&mut self.is_empty, is_empty) && is_empty {
            print_stderr(format_args!(
                "warning: none of the venue's {} instruments matches symbols.include: no market data, no orders",
                view.listed.read()
            ));
        }
        for (place, (name, user)) in config.users.iter().enumerate() {
            let Some(until) = self.bans.until(now, place).filter(|until| *until > self.told[place]) else {
                continue;
            };
            self.told[place] = until;
            print_stderr(format_args!(
                "user {name} is banned for {} s: more than {} requests in {}",
                until.since(now).0.div_ceil(1_000_000_000),
                user.request_limit,
                user.monitor_period
            ));
        }
    }
}

fn unreadable_line(config: &GatewayConfig, count: u64) -> String {
    let what = if config.venue.trade_beside_unreadable { "are" } else { "are not" };
    match count {
        0 => "every open order at the venue can be read again".to_owned(),
        _ => format!(
            "warning: {count} open orders at the venue cannot be read and may be this gateway's: new orders in their instruments {what} sent; cancel them there"
        ),
    }
}

fn print_endpoints(
    console: &mut Console,
    config: &GatewayConfig,
    endpoints: &Endpoints,
    metrics: Option<&MetricsServer>,
) {
    let dry = if config.dry_run { ", a dry run: no order leaves" } else { "" };
    let money = if config.production { ", real money" } else { "" };
    console.print_stdout(format_args!("gateway '{}' is open{money}{dry}; stop it with Ctrl-C", config.name));
    console.print_stdout(format_args!("  clients          {}", absolute(&endpoints.socket).display()));
    console.print_stdout(format_args!("  market data      {}", endpoints.segment.display()));
    console.print_stdout(format_args!("  commands         {}", absolute(&config.admin_socket()).display()));
    console
        .print_stdout(format_args!("  kill switch      {} while it is on", endpoints.kill_marker.display()));
    if let Some(metrics) = metrics {
        console.print_stdout(format_args!("  metrics          http://{}/metrics", metrics.address()));
    }
    console.print_stdout(format_args!(
        "  venue            {}   orders over {}",
        endpoints.venue, endpoints.orders
    ));
}

/// Counts that show activity of the venue or a client; failed connection attempts are not among them.
fn use_of(view: &GatewayView) -> [u64; 6] {
    [&view.instruments, &view.clients, &view.requests, &view.refused, &view.open_orders, &view.messages]
        .map(|count| count.read())
}

fn progress_line(view: &GatewayView) -> String {
    format!(
        "{} | {} | {}, {} refused here | {} | {} of the venue, {} of market data | {} lost",
        counted(view.instruments.read(), "instrument"),
        counted(view.clients.read(), "client"),
        counted(view.requests.read(), "request"),
        view.refused.read(),
        counted(view.open_orders.read(), "open order"),
        counted(view.messages.read(), "message"),
        counted(view.broadcasts.read(), "event"),
        counted(view.losses.read(), "connection"),
    )
}
