//! Measures what a venue without work costs, and how soon it answers after a pause:
//!
//! ```sh
//! cargo build --release && cargo run --release -p tickpath-exchange --example idle -- \
//!     target/release/tickpath configs/exchange.toml TEST01
//! ```
//!
//! Starts `PROGRAM exchange --config FILE`, leaves it alone for ten seconds, and prints the share of a core that all its
//! threads took and its resident memory. With a test user it then asks for the account's next number a hundred times, each
//! time after a second of silence: the request goes through the log like an order. An answer's time ends when it reaches
//! the client's socket, so the client's own sleep is not in it.
//!
//! Two limits of this machine are measured in turn with it, each after a second of silence too: an echo by a thread that
//! sleeps in `read`, and a write and fdatasync of one block, for which the policies `group` and `sync` wait.

use std::fs::File;
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

const IDLE: Duration = Duration::from_secs(10);
const MESSAGES: usize = 100;
const SILENCE: Duration = Duration::from_secs(1);

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

    println!("answers        {MESSAGES} of each kind, each after 1 s of silence: {} s", 3 * MESSAGES);
    let folder = Path::new(config).parent().context("the configuration is a file")?;
    let mut client = Client::log_in(venue.order_entry, user)?;
    let mut echo = Echo::start()?;
    let disk = Disk::new(folder)?;
    let (mut answers, mut echoes, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..MESSAGES {
        sleep(SILENCE);
        answers.push(client.ask()?);
        sleep(SILENCE);
        echoes.push(echo.ask()?);
        sleep(SILENCE);
        syncs.push(disk.sync()?);
    }
    let answer = print("venue's answer", &mut answers);
    let echo = print("bare echo", &mut echoes);
    let sync = print("bare fdatasync", &mut syncs);
    println!(
        "ratio of p50   {:.2} to the echo, {:.2} to echo and fdatasync",
        answer / echo,
        answer / (echo + sync)
    );
    Ok(())
}

/// Prints the percentiles and returns the median, in microseconds.
fn print(name: &str, times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let [p50, p90, p99] =
        [50, 90, 99].map(|part| times[times.len() * part / 100].as_nanos() as f64 / 1_000.0);
    println!("{name:<15}p50 {p50:.1} us, p90 {p90:.1}, p99 {p99:.1}");
    p50
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

/// A connection that learns when the kernel had each answer.
struct Stamped {
    stream: TcpStream,
    received: Vec<u8>,
    /// When the latest of it reached the socket.
    received_at: SystemTime,
}

impl Stamped {
    fn connect(address: SocketAddr) -> anyhow::Result<Stamped> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::ReceiveTimestampns, &true)?;
        Ok(Stamped { stream, received: Vec::new(), received_at: SystemTime::now() })
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let mut bytes = [0; 4096];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let message =
            recvmsg::<()>(self.stream.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        ensure!(message.bytes > 0, "the connection was closed");
        let stamp = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
            _ => None,
        });
        let count = message.bytes;
        self.received_at = SystemTime::UNIX_EPOCH + stamp.context("the kernel stamps what it receives")?;
        self.received.extend(&bytes[..count]);
        Ok(())
    }
}

struct Client(Stamped);

impl Client {
    fn log_in(address: SocketAddr, user: &str) -> anyhow::Result<Client> {
        let mut client = Client(Stamped::connect(address)?);
        client.send(b'L', format!("{user:<6}{:<10}{:10}{:>20}", "test", "", 0).as_bytes())?;
        ensure!(client.next_of(b"AJ")? == b'A', "the venue refused the login of '{user}'");
        Ok(client)
    }

    fn send(&mut self, kind: u8, payload: &[u8]) -> anyhow::Result<()> {
        let mut packet = (payload.len() as u16 + 1).to_be_bytes().to_vec();
        packet.push(kind);
        packet.extend(payload);
        Ok(self.0.stream.write_all(&packet)?)
    }

    /// Waits until a packet of one of these kinds came.
    fn next_of(&mut self, kinds: &[u8]) -> anyhow::Result<u8> {
        loop {
            while let Some(kind) = self.take_packet() {
                if kinds.contains(&kind) {
                    return Ok(kind);
                }
            }
            self.0.receive()?;
        }
    }

    fn take_packet(&mut self) -> Option<u8> {
        let received = &mut self.0.received;
        let len = usize::from(u16::from_be_bytes(*received.first_chunk()?));
        let kind = *received.get(2)?;
        (received.len() >= 2 + len).then(|| {
            received.drain(..2 + len);
            kind
        })
    }

    /// Asks for the next number of an order, in OUCH's shortest message.
    fn ask(&mut self) -> anyhow::Result<Duration> {
        let start = SystemTime::now();
        self.send(b'U', b"Q")?;
        self.next_of(b"S")?;
        Ok(self.0.received_at.duration_since(start)?)
    }
}

/// A thread that sleeps until it can send back what it gets.
struct Echo(Stamped);

impl Echo {
    fn start() -> anyhow::Result<Echo> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let echo = Echo(Stamped::connect(listener.local_addr()?)?);
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        // It ends with the connection.
        std::thread::spawn(move || {
            let mut byte = [0];
            while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
        });
        Ok(echo)
    }

    fn ask(&mut self) -> anyhow::Result<Duration> {
        let start = SystemTime::now();
        self.0.stream.write_all(b"?")?;
        self.0.receive()?;
        Ok(self.0.received_at.duration_since(start)?)
    }
}

/// A file whose blocks are allocated, as those of a log are.
struct Disk(File);

impl Disk {
    /// One in `folder` that has no name.
    fn new(folder: &Path) -> anyhow::Result<Disk> {
        let path = folder.join(".idle-sync");
        let file = File::create(&path)?;
        std::fs::remove_file(path)?;
        file.write_all_at(&[0; 4096], 0)?;
        file.sync_all()?;
        Ok(Disk(file))
    }

    fn sync(&self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.0.write_all_at(&[1; 64], 0)?;
        self.0.sync_data()?;
        Ok(start.elapsed())
    }
}
