//! A venue without work: what it costs, and how soon it answers after a pause.
//!
//! The venue is `tickpath-exchange` as a user starts it, with the defaults of its configuration: agents that sleep, and a
//! journal under policy `group`. A client asks for the next number of an order, OUCH's shortest message, which goes through
//! the log like an order. The time of an answer ends when it reaches the client's socket, so the client's own wake-up is
//! not in it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use tickpath_net::free_multicast_group;

use crate::context::Effort;
use crate::measurement::{Goal, Lab, Measurement, Round, Sample, each_round, row};
use crate::statistics::median;
use crate::support::process::Program;

pub(super) const MEASUREMENTS: &[Measurement] = &[Measurement {
    rows: &[
        row("idle_cpu", "% of a core")
            .note(
                "processor time of all threads of `tickpath exchange` with its defaults while there is no \
                 work",
            )
            .goal(Goal::ValueAtMost(3.0)),
        row("idle_memory", "MB").note("resident memory of the same venue").goal(Goal::ValueAtMost(120.0)),
        row("idle_echo", "us")
            .note("bare loopback TCP echo by a thread that sleeps in read, after 1 s of silence, p50"),
        row("idle_answer", "us")
            .note(
                "request to answer of the same venue after 1 s of silence, p50; policy `group`: the answer \
                 waits for an fdatasync",
            )
            .limit("idle_echo")
            .goal(Goal::ValueAtMost(100.0)),
    ],
    open,
    ..Measurement::ON_ONE_CORE
}];

/// Time without work over which processor time is counted in a full round.
const IDLE: Duration = Duration::from_secs(10);
/// Messages of a full round: a hundred in five rounds.
const MESSAGES: usize = 20;
/// Time without work before each message.
const SILENCE: Duration = Duration::from_secs(1);
/// Time from the venue's opening to the first look at it.
const SETTLING: Duration = Duration::from_secs(2);
/// The test user.
const USER: &str = "LAB";

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let program = lab.program_beside("exchange")?;
    each_round(lab, move |context| measure(&program, context.effort))
}

fn measure(program: &OsString, effort: Effort) -> anyhow::Result<[Sample; 4]> {
    let folder = tempfile::tempdir()?;
    let venue = Venue::start(program, folder.path())?;
    let idle = if effort == Effort::Full { IDLE } else { IDLE / 10 };
    let (start, before) = (Instant::now(), venue.program.cpu_time()?);
    thread::sleep(idle);
    let cpu = (venue.program.cpu_time()? - before).as_secs_f64() / start.elapsed().as_secs_f64();
    let resident = venue.program.memory_bytes("VmRSS")?;

    let mut client = Client::log_in(venue.order_entry)?;
    let mut echo = Echo::start()?;
    let disk = Disk::new(folder.path())?;
    let (mut answers, mut echoes, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.count(MESSAGES) {
        thread::sleep(SILENCE);
        echoes.push(micros(echo.ask()?));
        thread::sleep(SILENCE);
        syncs.push(micros(disk.sync()?));
        thread::sleep(SILENCE);
        answers.push(micros(client.ask()?));
    }
    let p50 = |times: &[f64]| median(times).context("a round has messages");
    let note = format!("a bare fdatasync after the same silence {:.0} us", p50(&syncs)?);
    let answer = Sample::with_note(p50(&answers)?, note);
    Ok([(100.0 * cpu).into(), (resident as f64 / 1e6).into(), p50(&echoes)?.into(), answer])
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1_000.0
}

/// The venue's program.
struct Venue {
    program: Program,
    order_entry: SocketAddr,
}

impl Venue {
    /// Starts the program with a configuration that sets addresses and leaves the rest at its defaults.
    fn start(program: &OsString, folder: &Path) -> anyhow::Result<Venue> {
        fs::write(folder.join("instruments.toml"), instruments())?;
        let config = folder.join("exchange.toml");
        fs::write(&config, configuration()?)?;
        let mut command = Command::new(program);
        let mut program =
            Program::start(command.arg("--config").arg(&config).stdout(Stdio::piped()), Signal::SIGINT)?;
        let output = program.child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(output).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("order entry"));
        let address = line.as_deref().and_then(|line| line.split_whitespace().nth(2)).map(str::parse);
        let order_entry = address.context("the venue did not open: see its message")??;
        // Later lines are read and dropped: a full pipe would stop the venue.
        thread::spawn(move || lines.for_each(drop));
        thread::sleep(SETTLING);
        Ok(Venue { program, order_entry })
    }
}

/// Eight instruments, as in the sample configuration.
fn instruments() -> String {
    (1..=8).fold(String::new(), |mut text, number| {
        let entry = "reference_price = \"100.00\"\ntick_size = \"0.01\"\n";
        writeln!(text, "[[instrument]]\nsymbol = \"LAB{number}\"\n{entry}").expect("a string takes any text");
        text
    })
}

fn configuration() -> anyhow::Result<String> {
    let [line_a, line_b, snapshots]: [SocketAddrV4; 3] =
        [free_multicast_group()?, free_multicast_group()?, free_multicast_group()?];
    Ok(format!(
        r#"instruments = "instruments.toml"
[order_entry]
address = "127.0.0.1:0"
test_users = ["{USER}"]
[market_data]
line_a = "{line_a}"
line_b = "{line_b}"
retransmission = "127.0.0.1:0"
[market_data.snapshots]
glimpse = "127.0.0.1:0"
group = "{snapshots}"
[journal]
policy = "group"
folder = "journal"
"#
    ))
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
    fn log_in(address: SocketAddr) -> anyhow::Result<Client> {
        let mut client = Client(Stamped::connect(address)?);
        client.send(b'L', format!("{USER:<6}{:<10}{:10}{:>20}", "test", "", 0).as_bytes())?;
        ensure!(client.next_of(b"AJ")? == b'A', "the venue refused the login");
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
        thread::spawn(move || {
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
    /// A file without a name, on the disk of `folder`.
    fn new(folder: &Path) -> anyhow::Result<Disk> {
        let file = tempfile::tempfile_in(folder)?;
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
