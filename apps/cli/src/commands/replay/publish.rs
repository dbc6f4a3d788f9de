//! `tickpath replay --publish`.

use std::io::{IsTerminal, Write, stderr};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use tickpath_agent::{StopSignal, TscClock};
use tickpath_config::{ByteSize, Duration, Fraction, Speed, print_stderr, print_stdout};
use tickpath_nasdaq::moldudp64::Session;
use tickpath_publisher::{MAX_ORDERS_DEFAULT, Publication, PublishOptions, PublishProgress};

use super::super::{INTERRUPTED, json};

/// Options for sending a recording by multicast, so that feed handlers receive it live.
#[derive(clap::Args)]
#[command(next_help_heading = "Publishing")]
pub struct PublishArgs {
    /// Publish the capture (ITCH, XDP, IEX) or ITCH file on these lines in real time; further channels use
    /// the next ports. The default of --speed is then 1x
    #[arg(long, value_name = "GROUP:PORT[,GROUP:PORT]", value_delimiter = ',', num_args = 1,
        conflicts_with_all = ["symbols", "from", "to", "limit", "check", "orderbook", "decode_only", "bbo", "trades",
        "depth_out", "max_orders"])]
    pub publish: Vec<SocketAddrV4>,
    /// Address of the sending interface of the lines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", requires = "publish")]
    interface: Ipv4Addr,
    /// Serve gap recovery and late joiners at this address, on PORT and the next ports [default: free ports]
    #[arg(long, value_name = "ADDRESS[:PORT]", requires = "publish", value_parser = parse_recovery)]
    serve_recovery: Option<SocketAddrV4>,
    /// Fraction of packets that line A drops, such as 1%
    #[arg(long, value_name = "SHARE", default_value = "0", requires = "publish")]
    drop_a: Fraction,
    /// Fraction of packets that line B drops
    #[arg(long, value_name = "SHARE", default_value = "0", requires = "publish")]
    drop_b: Fraction,
    /// Seed of the drops
    #[arg(long, value_name = "N", default_value_t = 1, requires = "publish")]
    seed: u64,
    /// Time from opening the endpoints to the first packet
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "publish")]
    start_after: Duration,
    /// Time from the last packet to the end, during which recovery continues
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "publish")]
    linger: Duration,
    /// Size of each channel's store for recovery; older messages are reported as unavailable
    #[arg(long, value_name = "BYTES", default_value = "64MiB", requires = "publish")]
    store: ByteSize,
    /// Maximum number of orders per channel in snapshots
    #[arg(long, value_name = "N", default_value_t = MAX_ORDERS_DEFAULT, requires = "publish")]
    snapshot_orders: u32,
    /// Session name of a file without one: 1 to 10 characters
    #[arg(long, value_name = "NAME", default_value = "TICKPATH", requires = "publish")]
    session: String,
    /// Also write the feed handler's configuration to a file
    #[arg(long, value_name = "FILE", requires = "publish")]
    feed_config: Option<PathBuf>,
}

fn parse_recovery(text: &str) -> anyhow::Result<SocketAddrV4> {
    let message = || format!("'{text}' is not an address: write 127.0.0.1 or 127.0.0.1:20000");
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => Ok(SocketAddrV4::new(address, 0)),
        _ => text.parse().with_context(message),
    }
}

impl PublishArgs {
    fn options(&self, file: &Path, speed: Option<Speed>) -> anyhow::Result<PublishOptions> {
        let (line_a, line_b) = match self.publish.as_slice() {
            [line] => (*line, None),
            [line_a, line_b] => (*line_a, Some(*line_b)),
            _ => bail!(
                "--publish takes one line or two, GROUP:PORT or GROUP:PORT,GROUP:PORT: further channels use the ports after them"
            ),
        };
        ensure!(line_b.is_some() || self.drop_b.ppm == 0, "--drop-b needs line B: give --publish two lines");
        let session = Session::new(&self.session);
        Ok(PublishOptions {
            line_b,
            interface: self.interface,
            speed: speed.unwrap_or(Speed::Hundredths(100)),
            recovery: self.serve_recovery,
            drop_a_ppm: self.drop_a.ppm,
            drop_b_ppm: self.drop_b.ppm,
            seed: self.seed,
            start_after: self.start_after.0,
            linger: self.linger.0,
            store_bytes: usize::try_from(self.store.0)
                .context("--store: above this machine's address space: give less")?,
            max_orders: self.snapshot_orders.clamp(1, 100_000_000),
            session: session.context("--session: write 1 to 10 letters and digits")?,
            ..PublishOptions::new(file, line_a)
        })
    }

    /// Publishes the file until its end or Ctrl-C.
    pub fn run(
        &self,
        files: &[PathBuf],
        speed: Option<Speed>,
        json_file: Option<&Path>,
    ) -> anyhow::Result<ExitCode> {
        let [file] = files else { bail!("--publish sends one recording: name one file") };
        json::check(json_file)?;
        let is_json_alone = json_file.is_some_and(|path| path.as_os_str() == "-");
        let publication = Publication::open(self.options(file, speed)?)?;
        let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
        let config = publication.feed_config();
        if let Some(path) = &self.feed_config {
            std::fs::write(path, &config).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let message = format!("# for tickpath feed --config: what is being published\n{}", config.trim_end());
        if is_json_alone {
            print_stderr(message)
        } else {
            print_stdout(message)?
        }
        let report = publication.run(TscClock::shared(), &stop, &mut show_progress);
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        if !is_json_alone {
            print_stdout(&report)?;
        } else if let Some(error) = &report.read_error {
            print_stderr(format_args!("tickpath: {}: {error}", file.display()));
        }
        if let Some(path) = json_file {
            json::write(path, &format!("{:#}", report.to_json()))?;
        }
        if report.is_stopped {
            print_stderr(format_args!("tickpath: interrupted: the report covers what was published"));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Overwrites the progress line on standard error; does nothing unless it is a terminal.
fn show_progress(progress: &PublishProgress) {
    if stderr().is_terminal() {
        let percent = (progress.bytes * 100).checked_div(progress.bytes_total).unwrap_or(0).min(100);
        // A failure to write to the terminal must not stop the command.
        let _ = write!(stderr(), "\r\x1b[K{percent:>3}% {} packets published", progress.packets);
    }
}
