//! Measures what a venue without work costs, and how soon it answers after a pause:
//!
//! ```sh
//! cargo build --release && cargo run --release -p tickpath-exchange --example idle -- \
//!     target/release/tickpath configs/exchange.toml TEST01
//! ```
//!
//! Starts `PROGRAM exchange --config FILE`, leaves it alone for ten seconds, and prints the share of a core that all its
//! threads took and its resident memory. With a test user it then asks for the account's next number a hundred times, each
//! time after a second of silence, and prints how long the answers took: the request goes through the log like an order.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

const IDLE: Duration = Duration::from_secs(10);
const MESSAGES: usize = 100;
const SILENCE: Duration = Duration::from_secs(1);
/// The client is awake so long before it sends: what is measured is the venue's sleep.
const AWAKE: Duration = Duration::from_millis(5);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, config, users @ ..] = &arguments[..] else {
        anyhow::bail!("name the program and the venue's configuration: idle PROGRAM FILE [TEST_USER]");
    };
    let venue = Venue::start(program, config)?;
    let (start, before) = (Instant::now(), venue.cpu_time()?);
    sleep(IDLE);
    println!("idle cpu       {:.2}% of a core", share(venue.cpu_time()? - before, start.elapsed()));
    println!("idle memory    {} MB resident", venue.resident_bytes()? / 1_000_000);
    let Some(user) = users.first() else { return Ok(()) };

    let mut client = Client::log_in(venue.order_entry, user)?;
    let (start, before) = (Instant::now(), venue.cpu_time()?);
    let mut times = Vec::with_capacity(MESSAGES);
    for _ in 0..MESSAGES {
        client.be_silent()?;
        times.push(client.ask()?);
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_nanos() as f64 / 1_000.0;
    println!(
        "response       p50 {:.1} us, p90 {:.1}, p99 {:.1}, each after 1 s of silence",
        at(50),
        at(90),
        at(99)
    );
    println!("cpu meanwhile  {:.2}% of a core", share(venue.cpu_time()? - before, start.elapsed()));
    Ok(())
}

fn share(part: Duration, of: Duration) -> f64 {
    100.0 * part.as_secs_f64() / of.as_secs_f64()
}

struct Venue {
    process: Child,
    order_entry: SocketAddr,
}

impl Venue {
    fn start(program: &str, config: &str) -> anyhow::Result<Venue> {
        let mut process = Command::new(program)
            .args(["exchange", "--config", config])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let output = process.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(output).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("order entry"));
        let address = line.as_deref().and_then(|line| line.split_whitespace().nth(2)).map(str::parse);
        let order_entry = address.context("the venue did not open: see its message")??;
        // Later lines are read and dropped: a full pipe would stop the venue.
        std::thread::spawn(move || lines.for_each(drop));
        sleep(Duration::from_secs(2));
        Ok(Venue { process, order_entry })
    }

    /// Time on a core of all threads.
    fn cpu_time(&self) -> anyhow::Result<Duration> {
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let schedule = std::fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += schedule.split_whitespace().next().context("no schedstat")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        let stopped = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let ended = stopped.and_then(|_| self.process.wait());
        if let Err(error) = ended {
            eprintln!("the venue was not stopped: {error}");
        }
    }
}

/// A client that spins: its own sleep is not measured.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn log_in(address: SocketAddr, user: &str) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut client = Client { stream, received: Vec::new() };
        client.send(b'L', format!("{user:<6}{:<10}{:10}{:>20}", "test", "", 0).as_bytes())?;
        ensure!(client.next_of(b"AJ")? == b'A', "the venue refused the login of '{user}'");
        Ok(client)
    }

    fn send(&mut self, kind: u8, payload: &[u8]) -> anyhow::Result<()> {
        let mut packet = (payload.len() as u16 + 1).to_be_bytes().to_vec();
        packet.push(kind);
        packet.extend(payload);
        Ok(self.stream.write_all(&packet)?)
    }

    /// Spins until a packet of one of these kinds came.
    fn next_of(&mut self, kinds: &[u8]) -> anyhow::Result<u8> {
        loop {
            while let Some(kind) = self.take_packet() {
                if kinds.contains(&kind) {
                    return Ok(kind);
                }
            }
            self.receive()?;
        }
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => anyhow::bail!("the venue closed the connection"),
            Ok(count) => self.received.extend(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn take_packet(&mut self) -> Option<u8> {
        let len = usize::from(u16::from_be_bytes(*self.received.first_chunk()?));
        let kind = *self.received.get(2)?;
        (self.received.len() >= 2 + len).then(|| {
            self.received.drain(..2 + len);
            kind
        })
    }

    fn be_silent(&mut self) -> anyhow::Result<()> {
        let end = Instant::now() + SILENCE;
        sleep(SILENCE - AWAKE);
        while Instant::now() < end {
            self.receive()?;
        }
        while self.take_packet().is_some() {}
        Ok(())
    }

    /// Asks for the next number of an order, in OUCH's shortest message.
    fn ask(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.send(b'U', b"Q")?;
        self.next_of(b"S")?;
        Ok(start.elapsed())
    }
}
