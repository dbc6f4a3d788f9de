//! `tickpath generate xdp`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time;

use serde_json::{Map, Value, json};
use tickpath_config::{Duration, Fraction, thousands};
use tickpath_feed::LossConfig;
use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig, XdpDayCounters, append_record, pcap_header};
use tickpath_types::Nanos;

use super::super::INTERRUPTED;
use super::{FlowArgs, Outputs, Written, deliver, is_standard_output, percent, print_summary};

/// Number of packets generated, hashed and written together.
const BATCH: usize = 1_024;

#[derive(clap::Args)]
pub struct XdpArgs {
    /// Output file; compressed when the name ends in .gz or .zst, "-" is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Standard day with the defaults for the following settings
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Preset::Xdp500)]
    preset: Preset,
    #[command(flatten)]
    flow: FlowArgs,
    /// Number of channels, 1 to 16 [default: the preset's]
    #[arg(long, value_name = "N")]
    channels: Option<u8>,
    /// Number of lines, 1 or 2: line B has the same packets 14 microseconds later
    #[arg(long, value_name = "N", default_value_t = 1)]
    lines: u8,
    /// Maximum time that a packet waits to fill
    #[arg(long, value_name = "TIME", default_value = "100us")]
    window: Duration,
    /// Write a heartbeat for each second without a packet on a channel
    #[arg(long)]
    heartbeats: bool,
    /// Fraction of packets lost on each line, such as 0.1%
    #[arg(long, value_name = "SHARE", default_value = "0")]
    loss: Fraction,
    /// Fraction of these losses that affect both lines
    #[arg(long, value_name = "SHARE", default_value = "0")]
    common_loss: Fraction,
    /// Write the summary as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Preset {
    #[value(name = "xdp-500")]
    Xdp500,
    #[value(name = "xdp-8000")]
    Xdp8000,
}

impl XdpArgs {
    fn config(&self) -> XdpDayConfig {
        let preset = match self.preset {
            Preset::Xdp500 => XdpDayConfig::xdp_500(),
            Preset::Xdp8000 => XdpDayConfig::xdp_8000(),
        };
        let flow = self.flow.apply_to(preset.flow);
        XdpDayConfig {
            flow,
            channels: self.channels.unwrap_or(preset.channels),
            lines: self.lines,
            window_ns: self.window.0.0,
            heartbeats: self.heartbeats,
            loss: LossConfig { seed: flow.seed, loss_ppm: self.loss.ppm, common_ppm: self.common_loss.ppm },
        }
    }
}

pub fn run(args: &XdpArgs) -> anyhow::Result<ExitCode> {
    let outputs = Outputs { day: &args.output, json: args.json.as_deref() };
    let config = args.config();
    let mut day = XdpDay::new(config)?;
    let mut is_begun = false;
    let append = |batch: &mut Vec<u8>| {
        if !std::mem::replace(&mut is_begun, true) {
            batch.extend_from_slice(&pcap_header());
        }
        let before = batch.len();
        let mut messages = 0;
        for packet in std::iter::from_fn(|| day.next_packet()).take(BATCH) {
            append_record(&packet, batch);
            messages += if packet.line == 0 { u64::from(packet.message_count) } else { 0 };
        }
        (batch.len() > before).then_some(messages)
    };
    let Some((written, time)) = deliver(&outputs, config.flow.messages, append)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let Some(written) = written else { return Ok(ExitCode::SUCCESS) };
    let summary = Summary { config, written, counters: day.counters(), time };
    print_summary(&outputs, &summary.text(&args.output), &summary.json(&args.output))
}

struct Summary<'a> {
    config: XdpDayConfig,
    written: Written,
    counters: &'a XdpDayCounters,
    time: time::Duration,
}

impl Summary<'_> {
    fn mean_per_packet(&self) -> f64 {
        self.counters.messages as f64 / self.counters.filled.max(1) as f64
    }

    fn text(&self, path: &Path) -> String {
        let XdpDayConfig { flow, channels, lines, window_ns, heartbeats, loss } = self.config;
        let ItchDayConfig { messages, symbols, live, seed } = flow;
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<18}{value}");
        };
        let name =
            if is_standard_output(path) { "standard output".into() } else { path.display().to_string() };
        line("written", name);
        let heartbeats = if heartbeats { " --heartbeats" } else { "" };
        line(
            "settings",
            format!(
                "--messages {messages} --symbols {symbols} --live {live} --seed {seed} --channels {channels} \
                 --lines {lines} --window {} --loss {} --common-loss {}{heartbeats}",
                Duration(Nanos(window_ns)),
                Fraction { ppm: loss.loss_ppm },
                Fraction { ppm: loss.common_ppm }
            ),
        );
        line("messages", thousands(self.counters.messages));
        let per_packet = format!("{:.2} messages a packet", self.mean_per_packet());
        let lost = thousands(self.counters.lost);
        line("packets", format!("{}, {lost} lost; {per_packet}", thousands(self.counters.packets)));
        line("bytes", self.written.bytes_text());
        line("symbols", format!("{} on {channels} channels", thousands(symbols)));
        line("xxh3", format!("{:016x}", self.written.xxh3));
        let seconds = self.time.as_secs_f64();
        let rate = self.counters.messages as f64 / seconds.max(1e-9) / 1e6;
        line("seconds", format!("{seconds:.2} ({rate:.1} million messages a second)"));
        let mut types: Vec<(u16, u64)> = self.counters.by_type().collect();
        types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (message_type, count) in types {
            let percent = percent(count, self.counters.messages);
            line(&format!("  {message_type}"), format!("{:>14} {percent:>9.4} %", thousands(count)));
        }
        text
    }

    fn json(&self, path: &Path) -> Value {
        let XdpDayConfig { flow, channels, lines, window_ns, heartbeats, loss } = self.config;
        let seconds = self.time.as_secs_f64();
        let by_type: Map<String, Value> = self
            .counters
            .by_type()
            .map(|(message_type, count)| {
                let share = json!({ "messages": count, "percent": percent(count, self.counters.messages) });
                (message_type.to_string(), share)
            })
            .collect();
        json!({
            "file": path.display().to_string(),
            "format": "xdp-pcap",
            "settings": {
                "messages": flow.messages,
                "symbols": flow.symbols,
                "live": flow.live,
                "seed": flow.seed,
                "channels": channels,
                "lines": lines,
                "window_ns": window_ns,
                "heartbeats": heartbeats,
                "loss_ppm": loss.loss_ppm,
                "common_loss_ppm": loss.common_ppm,
            },
            "messages": self.counters.messages,
            "packets": self.counters.packets,
            "packets_lost": self.counters.lost,
            "messages_per_packet": self.mean_per_packet(),
            "bytes": self.written.bytes,
            "file_bytes": self.written.file_bytes,
            "xxh3": format!("{:016x}", self.written.xxh3),
            "by_type": by_type,
            "seconds": seconds,
            "messages_per_second": self.counters.messages as f64 / seconds.max(1e-9),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_window_is_that_of_the_standard_day() {
        let window: Duration = "100us".parse().unwrap();
        assert_eq!(window.0.0, XdpDayConfig::xdp_500().window_ns);
    }
}
