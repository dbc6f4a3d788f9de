//! `tickpath ticks watch`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use tickpath_agent::StopSignal;
use tickpath_config::{Duration, print_stderr};
use tickpath_monitor::Mode;
use tickpath_shm::{Folder, SegmentName};
use tickpath_ticks_app::client::{ClientConfig, SegmentPlace};
use tickpath_ticks_app::watch::{Output, WatchOptions, print, watch};
use tickpath_types::Symbol;

use super::ADDRESS;
use crate::commands::{json, outputs};

/// Default number of displayed symbols.
const TOP: usize = 20;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath ticks watch
  tickpath ticks watch 127.0.0.1:9201 --symbols DMGE,TPYN --for 10s
  tickpath ticks watch --no-tui --json -
  tickpath ticks watch --shm ticks     and elsewhere: tickpath shm watch ticks")]
pub struct Args {
    /// Host and port of the server
    #[arg(value_name = "ADDR", value_parser = parse_address, default_value = ADDRESS)]
    address: String,
    /// Subscribe only to these symbols
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = parse_symbol)]
    symbols: Vec<Symbol>,
    /// Share the symbol cache under this name with other programs, see `tickpath shm`
    #[arg(long, value_name = "NAME")]
    shm: Option<String>,
    /// Write every tick as a line of CSV, `-` for standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the figures at the end as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Stop after this time, e.g. 10s or 5m
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<Duration>,
    /// Print a line a second even on a terminal
    #[arg(long, visible_alias = "plain")]
    no_tui: bool,
    /// Exit when the connection is lost
    #[arg(long)]
    no_reconnect: bool,
    /// Number of displayed symbols
    #[arg(long, value_name = "N", default_value_t = TOP)]
    top: usize,
}

fn parse_address(text: &str) -> Result<String, String> {
    let has_port =
        text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if has_port { Ok(text.to_owned()) } else { Err("give host and port, such as 127.0.0.1:9200".to_owned()) }
}

fn parse_symbol(text: &str) -> anyhow::Result<Symbol> {
    Ok(Symbol::new(text)?)
}

impl Args {
    fn options(&self) -> anyhow::Result<WatchOptions> {
        let segment = |name: &String| {
            Ok::<_, anyhow::Error>(SegmentPlace {
                folder: Folder::usual_path(),
                name: SegmentName::new(name)?,
            })
        };
        Ok(WatchOptions {
            client: ClientConfig {
                address: self.address.clone(),
                symbols: self.symbols.clone(),
                segment: self.shm.as_ref().map(segment).transpose()?,
                reconnects: !self.no_reconnect,
                seed: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64),
            },
            csv: self.csv.clone(),
            duration: self.duration.map(|Duration(time)| std::time::Duration::from_nanos(time.0)),
            output: match (self.is_standard_output_taken(), self.no_tui) {
                (true, _) => Output::Silent,
                (false, true) => Output::View(Mode::Plain),
                (false, false) => Output::View(Mode::Auto),
            },
            rows_max: self.top.max(1),
        })
    }

    /// Returns whether the CSV or JSON output uses standard output, which only one output may use.
    fn is_standard_output_taken(&self) -> bool {
        [&self.csv, &self.json].into_iter().flatten().any(|path| path.as_os_str() == "-")
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = args.options()?;
    let files = [("--csv", args.csv.as_deref()), ("--json", args.json.as_deref())];
    let files: Vec<_> = files.into_iter().filter_map(|(flag, path)| path.map(|path| (flag, path))).collect();
    outputs::check(&files, &[])?;
    let stop = StopSignal::on_signals()?;
    let report = watch(&options, &stop)?;
    // Write the figures to their file even if the text cannot be printed.
    let printed = if options.output == Output::Silent { Ok(()) } else { print(&report) };
    if let Some(path) = &args.json {
        json::write(path, &format!("{:#}", report.to_json()))?;
    }
    printed?;
    if options.output == Output::Silent
        && let Some(warning) = report.warning()
    {
        print_stderr(format_args!("tickpath: {warning}"));
    }
    Ok(if report.warning().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
