//! Memory of a ticks server with a thousand TCP clients, as a separate process.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tickpath_ticks::parser::TickParser;

use super::prelude::*;
use super::ticks_server::{Client, Counted};
use crate::support::process::Program;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("ticks_server_rss", "MB")
        .note("the most memory that the process of a ticks server had with 1,000 clients")
        .goal(Goal::ValueAtMost(12.0))
        .reference("8.2 MB with one client")],
    open,
)];

/// Number of clients in a full measurement.
const CLIENTS: usize = 1_000;
/// Running time of the server with one client, shorter than its timeout for silent clients; and the time
/// within it during which the server's processor use is measured.
const RUNNING: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(2);
/// Running time of the server with many clients: longer than any measurement.
const UNENDING: Duration = Duration::from_secs(600);
/// Maximum time until all clients have received their ticks.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of ticks that each client receives before the measurement starts.
const TICKS_EACH: u64 = 1_000;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let program = lab.sibling_program("ticks")?;
    let clients = lab.context.effort.count(CLIENTS).max(10);
    let stop = lab.options.stop.clone();
    // Each client needs one socket; 256 are a reserve for other files.
    let files = tickpath_net::raise_open_files(clients as u64 + 256)?;
    if files < clients as u64 + 256 {
        bail!(Missing(format!("the limit of open files is {files}: raise it by ulimit -n 2048")));
    }
    each_round(lab, move |_| {
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report.json");
        let mut server = Server::start(&program, "1K/s", UNENDING, &report)?;
        let bytes = server.with_clients(clients, &stop)?;
        drop(server);
        let mut paced = Server::start(&program, "100K/s", RUNNING, &report)?;
        let cpu_percent = paced.with_one_client(&stop)?;
        let calls = paced.system_calls(&report)?;
        let note = format!(
            "{clients} clients of 100 symbols at 1 K ticks/s; at 100 K/s with one client, writes each millisecond: \
             {cpu_percent:.0}% of a core, {calls:.1} K system calls a second"
        );
        Ok([Sample::with_note(bytes as f64 / 1e6, note)])
    })
}

/// A ticks server in a separate process, and its address.
struct Server {
    program: Program,
    address: String,
}

impl Server {
    fn start(program: &OsStr, rate: &str, time: Duration, report: &Path) -> anyhow::Result<Server> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--rate", rate, "--for"]);
        command.arg(format!("{}s", time.as_secs())).arg("--json").arg(report);
        // SIGKILL is safe: no data are lost. The server prints `ticks of 100 symbols at 127.0.0.1:9200; ...`.
        let (program, address) = Program::start_listening(&mut command, Signal::SIGKILL, |line| {
            line.split(" at ").nth(1).and_then(|rest| rest.split(';').next())
        })?;
        Ok(Server { program, address: address.context("the server did not say where it listens")? })
    }

    fn connect(&self) -> anyhow::Result<Client<Counted>> {
        Client::connect(&self.address, TickParser::with_buffer(64 << 10), Counted::default(), Nanos(0))
    }

    /// Returns the peak memory of the process in bytes, once all clients have received their ticks.
    fn with_clients(&mut self, clients: usize, stop: &StopSignal) -> anyhow::Result<u64> {
        let mut clients = (0..clients).map(|_| self.connect()).collect::<anyhow::Result<Vec<_>>>()?;
        listen(&mut clients, stop, |client| client.sink.ticks >= TICKS_EACH)?;
        let lost: u64 = clients.iter().map(|client| client.parser.stats().lost).sum();
        ensure!(lost == 0, "{lost} ticks were lost");
        self.program.memory_bytes("VmHWM")
    }

    /// Returns the server's processor use in percent of a core while one client is connected.
    fn with_one_client(&mut self, stop: &StopSignal) -> anyhow::Result<f64> {
        let mut client = [self.connect()?];
        listen(&mut client, stop, |client| client.sink.ticks >= TICKS_EACH)?;
        let (before, start) = (self.program.cpu_time()?, Instant::now());
        listen(&mut client, stop, |_| start.elapsed() >= MEASURED)?;
        let cpu = self.program.cpu_time()? - before;
        let percent = 100.0 * cpu.as_secs_f64() / start.elapsed().as_secs_f64();
        listen(&mut client, stop, |client| client.sink.has_ended)?;
        Ok(percent)
    }

    /// Returns the thousands of system calls per second, from the server's final report.
    fn system_calls(&mut self, report: &Path) -> anyhow::Result<f64> {
        let report = self.program.report(report, "server")?;
        let calls = ["writes", "other_calls", "sleeps"].map(|name| report[name].as_f64());
        let calls: Option<f64> = calls.into_iter().sum();
        let seconds = report["elapsed_s"].as_f64();
        calls.zip(seconds).map(|(calls, seconds)| calls / seconds / 1e3).context("the report lacks a count")
    }
}

/// Reads the data of all clients until `is_done` is true for each; fails after [`PATIENCE`] or a stop.
fn listen(
    clients: &mut [Client<Counted>],
    stop: &StopSignal,
    is_done: impl Fn(&Client<Counted>) -> bool,
) -> anyhow::Result<()> {
    let start = Instant::now();
    while !clients.iter().all(&is_done) {
        ensure!(!stop.is_stopped(), "interrupted");
        ensure!(start.elapsed() < PATIENCE, "no ticks for {} s: is the host overloaded?", PATIENCE.as_secs());
        for client in &mut *clients {
            client.poll()?;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
