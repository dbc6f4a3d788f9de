//! The main loop of a live handler.

use std::collections::HashSet;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tickpath_agent::{Runner, StopSignal, ThreadPlan, TscClock};
use tickpath_net::Kernel;
use tickpath_types::Nanos;

use super::admin::open_socket;
use super::config::LiveConfig;
use super::handler::{ChannelReport, LiveHandler, LiveReport, LiveView};
use super::report::{status_line, warnings};
use super::section::ChannelSection;

/// Capacity of the command queue.
const COMMANDS_MAX: usize = 4;
/// Interval at which the main loop checks the stop signal and the state of the handler.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const STATUS_INTERVAL: Nanos = Nanos::from_secs(1);

/// A message from a running handler to the user.
#[derive(Debug)]
pub enum Notice {
    /// Description of an endpoint: a channel's addresses, or the path of the segment or the command socket.
    Endpoint(String),
    /// A problem that the user should know about, reported once.
    Warning(String),
    /// The current state of all channels in one line, each second.
    Status(String),
}

/// Runs a live handler until `stop`, or for `time`. `path` is the configuration file, if any: relative
/// `file:` secrets begin at its folder, and a file that contains a secret must be private.
///
/// # Errors
/// A message of one line that says what to do.
pub fn run(
    config: &LiveConfig,
    path: Option<&Path>,
    stop: &StopSignal,
    time: Option<Nanos>,
    mut notice: impl FnMut(Notice),
) -> anyhow::Result<LiveReport> {
    let clock = TscClock::shared();
    let (sender, commands) = sync_channel(COMMANDS_MAX);
    let (handler, mut view) = LiveHandler::open(&Kernel, config, path, clock.now(), commands)?;
    for channel in &config.channels {
        notice(Notice::Endpoint(endpoint(channel)));
        if channel.line_a.is_some() && channel.senders().is_any() {
            notice(Notice::Warning(format!(
                "channel '{}': packets from every address are accepted: name the publisher's in sources",
                channel.name
            )));
        }
    }
    if let Some(path) = handler.segment_path() {
        notice(Notice::Endpoint(format!("outputs: {path}")));
    }
    let socket = match &config.admin.socket {
        Some(path) => {
            notice(Notice::Endpoint(format!("commands: {}", path.display())));
            Some(open_socket(path, sender)?)
        }
        None => None,
    };
    let threads_stop = StopSignal::new();
    let plan = ThreadPlan {
        name: "feed".to_owned(),
        core: config.feed.core,
        idle: config.feed.idle,
        warm_up_interval: None,
        agents: vec![Box::new(handler)],
        cycle: vec![],
    };
    let runner = Runner::start(vec![plan], clock, threads_stop.clone())?;
    for warning in runner.warnings() {
        notice(Notice::Warning(warning.to_owned()));
    }
    let (start, mut status_reporter) = (clock.now(), StatusReporter { at: clock.now(), messages: vec![] });
    let mut reported = ReportedWarnings::default();
    while !stop.is_stopped() && !runner.is_finished() {
        std::thread::sleep(POLL_INTERVAL);
        let now = clock.now();
        report_suspects(&mut view, &mut notice);
        let channels = view.channels();
        reported.notify(&channels, &mut notice);
        status_reporter.notify(now, &channels, &mut notice);
        if time.is_some_and(|time| now.since(start) >= time) {
            break;
        }
    }
    threads_stop.stop();
    let ended = runner.join();
    drop(socket);
    report_suspects(&mut view, &mut notice);
    ended?;
    let report = LiveReport { channels: view.channels(), books: view.books() };
    reported.notify(&report.channels, &mut notice);
    for silent in report.channels.iter().filter(|channel| channel.status.is_silent()) {
        notice(Notice::Warning(format!(
            "channel '{}': no packet arrived: check its groups, its interface and its sources",
            silent.name
        )));
    }
    Ok(report)
}

fn endpoint(channel: &ChannelSection) -> String {
    let lines = [("line A", channel.line_a), ("line B", channel.line_b), ("server", channel.server)];
    let lines = lines.iter().filter_map(|(name, at)| at.map(|at| format!("{name} {at}")));
    let lines = lines.collect::<Vec<_>>().join(", ");
    format!("channel '{}': {}, {lines}, on {}", channel.name, channel.protocol.as_str(), channel.interface)
}

fn report_suspects(view: &mut LiveView, notice: &mut impl FnMut(Notice)) {
    let (lines, more) = view.take_suspects();
    lines.into_iter().for_each(|line| notice(Notice::Warning(line)));
    if more > 0 {
        notice(Notice::Warning(format!("{more} more books are suspect: tickpath feed status lists them")));
    }
}

/// The warnings already reported, each with the index of its channel.
#[derive(Default)]
struct ReportedWarnings(HashSet<(usize, &'static str)>);

impl ReportedWarnings {
    fn notify(&mut self, channels: &[ChannelReport], notice: &mut impl FnMut(Notice)) {
        for (index, channel) in channels.iter().enumerate() {
            for (_, warning) in
                warnings(&channel.status).into_iter().filter(|(has_happened, _)| *has_happened)
            {
                if self.0.insert((index, warning)) {
                    notice(Notice::Warning(format!("channel '{}': {warning}", channel.name)));
                }
            }
        }
    }
}

struct StatusReporter {
    at: Nanos,
    messages: Vec<u64>,
}

impl StatusReporter {
    fn notify(&mut self, now: Nanos, channels: &[ChannelReport], notice: &mut impl FnMut(Notice)) {
        let passed = now.since(self.at);
        if passed < STATUS_INTERVAL {
            return;
        }
        self.at = now;
        let counts: Vec<u64> = channels.iter().map(|channel| channel.status.builder.messages).collect();
        let lines = channels.iter().enumerate().map(|(index, channel)| {
            let before = self.messages.get(index).copied().unwrap_or(0);
            let new = u128::from(counts[index].saturating_sub(before));
            let rate = new * 1_000_000_000 / u128::from(passed.0.max(1));
            status_line(channel, u64::try_from(rate).unwrap_or(u64::MAX))
        });
        notice(Notice::Status(lines.collect::<Vec<_>>().join(" | ")));
        self.messages = counts;
    }
}
