//! What a thousand clients take of a ticks server's memory: a process of its own, with real connections.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tickpath_agent::StopSignal;
use tickpath_ticks::message::{EndOfStream, Hello, Tick};
use tickpath_ticks::parser::{TickListener, TickParser};
use tickpath_ticks::request::encode_subscribe;
use tickpath_ticks::seal::seal;
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

use super::process::{cpu_time, memory_bytes};
use super::{Lab, Prepared, Sample};

/// Clients of a full measurement.
const CLIENTS: usize = 1_000;
/// How long the server at a paced rate runs, not as long as it would bear a client that says nothing; and from its first
/// ticks on how long the processor's use is measured.
const RUNNING: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(2);
/// As long as anybody could want to measure.
const UNENDING: Duration = Duration::from_secs(600);
/// What takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Ticks of each client before anything is measured.
const TICKS_EACH: u64 = 1_000;

pub(super) fn open(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let program = match lab.program_beside("ticks") {
        Ok(program) => program,
        Err(why) => return Ok(Prepared::Missing(why)),
    };
    let clients = lab.context.effort.count(CLIENTS).max(10);
    let stop = lab.options.stop.clone();
    // One socket each, and what else is open.
    let files = tickpath_net::raise_open_files(clients as u64 + 256)?;
    if files < clients as u64 + 256 {
        let why = format!("the limit of open files is {files}: raise it by ulimit -n 2048");
        return Ok(Prepared::Missing(why));
    }
    Ok(Prepared::Ready(Box::new(move || {
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
        Ok(vec![Sample { note: Some(note), ..Sample::new("ticks_server_rss", bytes as f64 / 1e6) }])
    })))
}

/// The program as a server; killed when dropped.
struct Server {
    child: Child,
    /// What it prints, open until it ends.
    output: BufReader<ChildStdout>,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Default)]
struct Counted {
    ticks: u64,
    has_ended: bool,
}

impl TickListener for Counted {
    fn on_ticks(&mut self, ticks: &[Tick]) {
        self.ticks += ticks.len() as u64;
    }

    fn on_end_of_stream(&mut self, _: &EndOfStream) {
        self.has_ended = true;
    }
}

struct Client {
    stream: TcpStream,
    parser: Box<TickParser>,
    counted: Counted,
}

impl Server {
    fn start(program: &OsStr, rate: &str, time: Duration, report: &Path) -> anyhow::Result<Server> {
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--rate", rate, "--for"])
            .arg(format!("{}s", time.as_secs()))
            .arg("--json")
            .arg(report)
            .stdout(Stdio::piped())
            .spawn()
            .context("the server does not start")?;
        let output = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
        let mut server = Server { child, output, address: String::new() };
        let mut line = String::new();
        server.output.read_line(&mut line)?;
        // `ticks of 100 symbols at 127.0.0.1:9200; ...`
        let after = line.split(" at ").nth(1).and_then(|rest| rest.split(';').next());
        server.address = after.context("the server did not say where it listens")?.to_owned();
        Ok(server)
    }

    fn connect(&self) -> anyhow::Result<Client> {
        let mut stream = TcpStream::connect(&self.address)?;
        let mut request = seal(Hello::client(0, Nanos(0))).as_bytes().to_vec();
        encode_subscribe(1, &[], &mut request);
        stream.write_all(&request)?;
        stream.set_nonblocking(true)?;
        Ok(Client {
            stream,
            parser: Box::new(TickParser::with_buffer(16 << 10)),
            counted: Counted::default(),
        })
    }

    /// The most memory that the process had at a time, in bytes, once all clients have had their ticks.
    fn with_clients(&mut self, clients: usize, stop: &StopSignal) -> anyhow::Result<u64> {
        let mut clients = (0..clients).map(|_| self.connect()).collect::<anyhow::Result<Vec<_>>>()?;
        listen(&mut clients, stop, |client| client.counted.ticks >= TICKS_EACH)?;
        let lost: u64 = clients.iter().map(|client| client.parser.stats().lost).sum();
        ensure!(lost == 0, "{lost} ticks were lost");
        memory_bytes(self.child.id(), "VmHWM")
    }

    /// Part of a core in percent; the client stays to the end.
    fn with_one_client(&mut self, stop: &StopSignal) -> anyhow::Result<f64> {
        let mut client = [self.connect()?];
        listen(&mut client, stop, |client| client.counted.ticks >= TICKS_EACH)?;
        let (before, start) = (cpu_time(self.child.id())?, Instant::now());
        listen(&mut client, stop, |_| start.elapsed() >= MEASURED)?;
        let cpu = cpu_time(self.child.id())? - before;
        let percent = 100.0 * cpu.as_secs_f64() / start.elapsed().as_secs_f64();
        listen(&mut client, stop, |client| client.counted.has_ended)?;
        Ok(percent)
    }

    /// Thousands of system calls a second, as the server counted them by its end.
    fn system_calls(&mut self, report: &Path) -> anyhow::Result<f64> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report)?)?;
        let calls = ["writes", "other_calls", "sleeps"].map(|name| report[name].as_f64());
        let calls: Option<f64> = calls.into_iter().sum();
        let seconds = report["elapsed_s"].as_f64();
        calls.zip(seconds).map(|(calls, seconds)| calls / seconds / 1e3).context("the report lacks a count")
    }
}

/// Reads what comes until all are done.
fn listen(
    clients: &mut [Client],
    stop: &StopSignal,
    is_done: impl Fn(&Client) -> bool,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut room = vec![0; 64 << 10];
    while !clients.iter().all(&is_done) {
        ensure!(!stop.is_stopped(), "interrupted");
        ensure!(start.elapsed() < PATIENCE, "no ticks for {} s: is the host overloaded?", PATIENCE.as_secs());
        for client in &mut *clients {
            match client.stream.read(&mut room) {
                Ok(0) => bail!("the connection was closed"),
                Ok(count) => client.parser.feed(&room[..count], &mut client.counted)?,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
