//! Writes the logs to be damaged: a venue in a separate process is stopped or killed under load.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tickpath_agent::{Invoker, StopSignal, TscClock};
use tickpath_exchange::{JournalSettings, VenueSettings};
use tickpath_journal::Policy;
use tickpath_net::{MulticastReceiver, free_multicast_group};
use tickpath_types::Side;

use super::client::{Link, Market};
use super::damages::Random;
use crate::support::{USERS, build, enter, ioc, request_packet, settings};

/// Name of the test that runs the venue in a separate process; then that process's environment variables.
const PROCESS: &str = "venue_process";
const FOLDER: &str = "DAMAGE_VENUE_FOLDER";
const POLICY: &str = "DAMAGE_VENUE_POLICY";
const LINE: &str = "DAMAGE_VENUE_LINE";
/// Start of the line that the process prints once it accepts orders.
const OPEN: &str = "venue open at ";
/// Maximum wait for responses, or for the end of the connections.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sleep in a polling loop.
const REST: Duration = Duration::from_micros(100);
/// Number of orders that each user sends in one write.
const BURST: u32 = 170;

/// A log on the disk, and its clients' records.
pub struct Log {
    pub policy: Policy,
    is_killed: bool,
    folder: TempDir,
    /// Session name and all messages of each user, from the first message on.
    pub recorded: Vec<(String, Vec<Vec<u8>>)>,
    pub market: Market,
}

impl Log {
    pub fn name(&self) -> String {
        format!("{} {}", self.policy, if self.is_killed { "killed" } else { "stopped" })
    }

    /// Copies the log, so that the copy can be damaged.
    pub fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        copy
    }
}

/// Settings of the venue that writes the log, and of the venues that later start on the log.
pub fn venue_settings(folder: &Path, policy: Policy) -> VenueSettings {
    let mut settings = settings();
    settings.journal = Some(JournalSettings {
        segment_len: 64 << 10,
        buffer_len: 16 << 10,
        snapshot_every: 400,
        ..JournalSettings::new(folder, policy)
    });
    settings.retained_responses = 1 << 14;
    settings.retained_messages = 1 << 14;
    settings.limits.max_open_orders_per_session = 300;
    settings
}

/// The process of a venue; killed on drop.
struct Process {
    child: Child,
    address: SocketAddrV4,
}

impl Process {
    fn start(folder: &Path, policy: Policy, line: SocketAddrV4) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &test_name(PROCESS), "--nocapture"])
            .envs([(POLICY, policy.to_string()), (LINE, line.to_string())])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| Some(line.ok()?.split_once(OPEN)?.1.parse().unwrap()));
        // Read the remaining output, so that the process never blocks on a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Process { child, address: address.expect("the venue starts") }
    }

    /// Sends SIGTERM, so that the venue stops normally.
    fn stop(&mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Sends SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the end of the process. `Child::wait` would close its input, which ends the process.
    fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(REST);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a log with two runs of a venue. The first run is killed, the second is killed or stopped.
pub fn write_log(policy: Policy, is_killed: bool, seed: u64) -> Log {
    let folder = tempfile::tempdir().unwrap();
    // Another test may take the group's port first, so retry.
    let join = |_| {
        let line = free_multicast_group().ok()?;
        Some((line, MulticastReceiver::join(line, Ipv4Addr::LOCALHOST).ok()?))
    };
    let (line, mut receiver) = (0..20).find_map(join).unwrap();
    let mut recorded: Vec<(String, Vec<Vec<u8>>)> = USERS.iter().map(|_| Default::default()).collect();
    let mut market = Market::default();
    let mut random = Random(seed);
    let mut next_ref = 1;
    for (instance, is_killed) in [true, is_killed].into_iter().enumerate() {
        let mut process = Process::start(folder.path(), policy, line);
        let mut links: Vec<Link> = USERS
            .iter()
            .zip(&recorded)
            .map(|(user, (_, recorded))| Link::log_in(process.address, user, recorded.len() as u64 + 1))
            .collect();
        let mut read = |links: &mut Vec<Link>, what: &str, is_enough: &dyn Fn(&[Link]) -> bool| {
            let deadline = Instant::now() + PATIENCE;
            while !is_enough(links) {
                market.read(&mut receiver);
                if links.iter_mut().map(Link::read).filter(|read| *read).count() == 0 {
                    thread::sleep(REST);
                }
                assert!(Instant::now() < deadline, "{policy}, life {instance}: {what} did not come");
            }
        };
        read(&mut links, "the login", &|links| links.iter().all(|link| link.accepted.is_some()));
        for _ in 0..3 {
            burst(&mut links, &mut next_ref, &mut random);
            let last = next_ref - 1;
            read(&mut links, "every answer", &|links| {
                links.iter().all(|link| link.answer_to(last).is_some())
            });
        }
        if is_killed {
            // Kill the process while responses to the last orders are being sent.
            let count: usize = links.iter().map(|link| link.messages.len()).sum();
            burst(&mut links, &mut next_ref, &mut random);
            let more = count + random.below(200);
            read(&mut links, "an answer", &|links| {
                links.iter().map(|link| link.messages.len()).sum::<usize>() >= more
            });
            process.kill();
        } else {
            process.stop();
        }
        read(&mut links, "the end", &|links| links.iter().all(|link| link.is_closed));
        assert_eq!(process.wait().success(), !is_killed, "{policy}, life {instance}");
        market.read(&mut receiver);
        for (link, (session, recorded)) in links.into_iter().zip(&mut recorded) {
            let (name, next) = link.accepted.unwrap();
            assert_eq!(next, recorded.len() as u64 + 1);
            assert!(session.is_empty() || *session == name, "nothing was damaged yet");
            *session = name;
            recorded.extend(link.messages);
        }
    }
    Log { policy, is_killed, folder, recorded, market }
}

/// Full name of a test of this module, as `--exact` expects it.
fn test_name(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

/// Sends one write of orders for each user; many of the orders trade.
fn burst(links: &mut [Link], next_ref: &mut u32, random: &mut Random) {
    for (place, link) in links.iter_mut().enumerate() {
        let mut bytes = Vec::new();
        for user_ref in *next_ref..*next_ref + BURST {
            let side = if place == 0 { Side::Sell } else { Side::Buy };
            let (qty, price) = (1 + random.below(9) as u64, 1_000_000 + random.below(5) as i64 * 100);
            let order = if random.below(3) == 0 { ioc } else { enter };
            bytes.extend(request_packet(&order(user_ref, side, qty, price)));
        }
        link.send(&bytes);
    }
    *next_ref += BURST;
}

/// The venue's process, started by [`Process::start`]. Does nothing without the environment variables.
#[test]
fn venue_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let of = |name: &str| std::env::var(name).unwrap();
    let policy = Policy::ALL.into_iter().find(|policy| policy.to_string() == of(POLICY)).unwrap();
    let mut settings = venue_settings(Path::new(&folder), policy);
    settings.line_a = of(LINE).parse().unwrap();
    let stop = StopSignal::on_signals().unwrap();
    // End this process when the campaign closes its standard input.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let clock = TscClock::system();
    let venue = build(&settings).unwrap();
    let journal = venue.journal.unwrap().start().unwrap();
    let mut agents = Invoker::new("venue", venue.agents, &[]).unwrap();
    agents.start().unwrap();
    println!("{OPEN}{}", venue.endpoints.order_entry);
    std::io::stdout().flush().unwrap();
    while !stop.is_stopped() {
        if agents.run_once(clock.now()).unwrap() == 0 {
            thread::sleep(REST);
        }
    }
    while !agents.finish(clock.now()).unwrap() {
        thread::sleep(REST);
    }
    agents.close();
    drop(agents);
    drop(journal);
}
