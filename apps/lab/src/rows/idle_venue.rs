//! An idle venue: its processor use, and its response time after a pause.
//!
//! The venue is `tickpath-exchange` with the default configuration: agents that sleep, and a journal under
//! policy `group`. A client sends OUCH's shortest message, the account query, which passes through the
//! journal like an order. The response time ends when the answer reaches the client's socket, so it excludes
//! the wake-up of the client's thread.

use std::ffi::OsString;
use std::fs;
use std::io::{IoSliceMut, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use tickpath_net::free_multicast_group;

use super::prelude::*;
use crate::context::Effort;
use crate::statistics::median;
use crate::support::process::Program;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
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
            .limit("idle_echo"),
    ],
    open,
)];

/// Idle time over which processor time is counted in a full round.
const IDLE: Duration = Duration::from_secs(10);
/// Number of messages sent to the venue in a full round; five rounds send a hundred.
const MESSAGES: usize = 20;
/// Idle time before each echo, each file sync and each message.
const SILENCE: Duration = Duration::from_secs(1);
/// Time from the venue's start to the first measurement.
const SETTLING: Duration = Duration::from_secs(2);
/// Name of the test user.
const USER: &str = "LAB";

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let program = lab.sibling_program("exchange")?;
    each_round(lab, move |context| measure(&program, context.effort))
}

fn measure(program: &OsString, effort: Effort) -> anyhow::Result<[Sample; 4]> {
    let folder = tempfile::tempdir()?;
    let (venue, order_entry) = start_venue(program, folder.path(), &format!("test_users = [\"{USER}\"]"))?;
    let idle = if effort == Effort::Full { IDLE } else { IDLE / 10 };
    let (start, before) = (Instant::now(), venue.cpu_time()?);
    thread::sleep(idle);
    let cpu = (venue.cpu_time()? - before).as_secs_f64() / start.elapsed().as_secs_f64();
    let resident = venue.memory_bytes("VmRSS")?;

    let mut client = log_in(order_entry, USER)?;
    let mut echo = start_echo()?;
    // Allocate the blocks of the file for bare syncs before they are timed, as in a journal's file.
    let file = tempfile::tempfile_in(&folder)?;
    file.write_all_at(&[0; 4096], 0)?;
    file.sync_all()?;
    // The account query, which requests the user's next UserRefNum.
    let question = packet(b'U', b"Q");
    let (mut answers, mut echoes, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.count(MESSAGES) {
        thread::sleep(SILENCE);
        echoes.push(micros(echo.round_trip(b"?", |received| received.drain(..).next().is_some())?));
        thread::sleep(SILENCE);
        let start = Instant::now();
        file.write_all_at(&[1; 64], 0)?;
        file.sync_data()?;
        syncs.push(micros(start.elapsed()));
        thread::sleep(SILENCE);
        answers.push(micros(client.round_trip(&question, |received| has_packet_of(received, b'S'))?));
    }
    let p50 = |times: &[f64]| median(times).context("a round has messages");
    let note = format!("a bare fdatasync after the same silence {:.0} us", p50(&syncs)?);
    let answer = Sample::with_note(p50(&answers)?, note);
    Ok([(100.0 * cpu).into(), (resident as f64 / 1e6).into(), p50(&echoes)?.into(), answer])
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1_000.0
}

/// Starts the program with a configuration that sets addresses, and these keys of `order_entry`, and leaves all
/// other settings at their defaults.
pub(super) fn start_venue(
    program: &OsString,
    folder: &Path,
    order_entry: &str,
) -> anyhow::Result<(Program, SocketAddr)> {
    fs::write(folder.join("instruments.toml"), instruments())?;
    let config = folder.join("exchange.toml");
    fs::write(&config, configuration(order_entry)?)?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&config);
    let (program, address) = Program::start_listening(&mut command, Signal::SIGINT, |line| {
        line.split_whitespace().nth(2).filter(|_| line.contains("order entry"))
    })?;
    let order_entry = address.context("the venue did not open: see its message")?.parse()?;
    thread::sleep(SETTLING);
    Ok((program, order_entry))
}

/// Eight instruments, as in the sample configuration.
fn instruments() -> String {
    let entry = |number| {
        let prices = "reference_price = \"100.00\"\ntick_size = \"0.01\"\n";
        format!("[[instrument]]\nsymbol = \"LAB{number}\"\n{prices}\n")
    };
    (1..=8).map(entry).collect()
}

fn configuration(order_entry: &str) -> anyhow::Result<String> {
    let [line_a, line_b, snapshots]: [SocketAddrV4; 3] =
        [free_multicast_group()?, free_multicast_group()?, free_multicast_group()?];
    Ok(format!(
        r#"instruments = "instruments.toml"
[order_entry]
address = "127.0.0.1:0"
{order_entry}
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

/// A TCP connection on which the kernel stamps the arrival of received data.
pub(super) struct TimestampedStream {
    stream: TcpStream,
    received: Vec<u8>,
}

impl TimestampedStream {
    fn connect(address: SocketAddr) -> anyhow::Result<TimestampedStream> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::ReceiveTimestampns, &true)?;
        Ok(TimestampedStream { stream, received: Vec::new() })
    }

    /// Sends a request and returns the time until the kernel received the answer that `is_answered` accepts.
    fn round_trip(
        &mut self,
        request: &[u8],
        is_answered: impl Fn(&mut Vec<u8>) -> bool,
    ) -> anyhow::Result<Duration> {
        let start = SystemTime::now();
        self.stream.write_all(request)?;
        loop {
            let received_at = self.receive()?;
            if is_answered(&mut self.received) {
                return Ok(received_at.duration_since(start)?);
            }
        }
    }

    fn receive(&mut self) -> anyhow::Result<SystemTime> {
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
        let received_at = SystemTime::UNIX_EPOCH + stamp.context("the kernel stamps what it receives")?;
        self.received.extend(&bytes[..count]);
        Ok(received_at)
    }
}

/// Builds a SoupBinTCP packet.
fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u16 + 1).to_be_bytes()[..], &[kind], payload].concat()
}

/// Removes packets from the front up to and including one of `kind`; returns whether one was found.
fn has_packet_of(received: &mut Vec<u8>, kind: u8) -> bool {
    while let Some(len) = received.first_chunk().map(|len| 2 + usize::from(u16::from_be_bytes(*len)))
        && received.len() >= len
    {
        if received.drain(..len).nth(2) == Some(kind) {
            return true;
        }
    }
    false
}

/// Connects a test user and logs it in.
pub(super) fn log_in(address: SocketAddr, user: &str) -> anyhow::Result<TimestampedStream> {
    let mut client = TimestampedStream::connect(address)?;
    let login = packet(b'L', format!("{user:<6}{:<10}{:10}{:>20}", "test", "", 0).as_bytes());
    client
        .round_trip(&login, |received| has_packet_of(received, b'A'))
        .context("the venue refused the login")?;
    Ok(client)
}

/// Opens a connection to a thread that sleeps until data arrive and sends them back.
fn start_echo() -> anyhow::Result<TimestampedStream> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let echo = TimestampedStream::connect(listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    // The thread ends when the connection closes.
    thread::spawn(move || {
        let mut byte = [0];
        while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
    });
    Ok(echo)
}
