//! The program as a process.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tickpath_net::free_multicast_group;

/// How long a process may take for anything.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub fn tickpath() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.env_remove("RUST_BACKTRACE").timeout(PATIENCE);
    command
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a finished run printed.
pub struct Printed {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn run(args: &[&str]) -> Printed {
    let output = tickpath().args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Printed { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The run failed with one line on standard error that has these words, and printed nothing else.
pub fn assert_refused(args: &[&str], words: &[&str]) {
    let printed = run(args);
    assert!(printed.code.is_some_and(|code| code != 0), "{args:?} ended with {:?}", printed.code);
    assert_eq!(printed.err.lines().count(), 1, "{args:?}: {}", printed.err);
    assert!(printed.err.starts_with("tickpath: "), "{args:?}: {}", printed.err);
    for word in words {
        assert!(printed.err.contains(word), "{args:?}: no '{word}' in {}", printed.err);
    }
    assert_eq!(printed.out, "", "{args:?}");
}

/// Ctrl-C.
pub fn interrupt(child: &Child) {
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// A process that runs until it is told to stop; dropped, it is killed.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
    errors: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(args: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(args).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        Running::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut err = child.stderr.take().unwrap();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            text
        });
        Running { child, lines, heard: Vec::new(), errors: Some(errors) }
    }

    /// The next line that `find` finds something in.
    pub fn hear<R>(&mut self, what: &str, mut find: impl FnMut(&str) -> Option<R>) -> R {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let printed = self.end();
                panic!("no {what} in\n{}\n{}", printed.out, printed.err);
            };
            let found = find(&line);
            self.heard.push(line);
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// True once Ctrl-C does not merely kill it.
    pub fn catches_interrupt(&self) -> bool {
        self.has_interrupt_in("SigCgt:")
    }

    /// True where Ctrl-C has no effect because whatever started the tests ignores it, as shells do in the background.
    pub fn ignores_interrupt(&self) -> bool {
        self.has_interrupt_in("SigIgn:")
    }

    fn has_interrupt_in(&self, signals: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix(signals)).unwrap();
        // SIGINT is the second signal.
        u64::from_str_radix(set.trim(), 16).unwrap() & 1 << 1 != 0
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        interrupt(&self.child);
    }

    /// Waits for the end that is near, and gives everything that was printed.
    pub fn join(self) -> Printed {
        self.join_within(PATIENCE)
    }

    /// The same of a process that may take so long.
    pub fn join_within(mut self, patience: Duration) -> Printed {
        let deadline = Instant::now() + patience;
        while self.status().is_none() && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        let is_over = self.status().is_some();
        let printed = self.end();
        assert!(is_over, "the process does not end:\n{}\n{}", printed.out, printed.err);
        printed
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    fn end(&mut self) -> Printed {
        if self.status().is_none() {
            let _ = self.child.kill();
        }
        let status = self.child.wait().unwrap();
        // As shells have it, also of a process that does not catch Ctrl-C.
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        self.heard.extend(self.lines.iter());
        let err = self.errors.take().map(|errors| errors.join().unwrap()).unwrap_or_default();
        Printed { code, out: self.heard.join("\n"), err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with the configuration of a venue on free ports and groups, and of its traders.
pub struct Site {
    folder: tempfile::TempDir,
    lines: String,
}

impl Site {
    pub fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let (line_a, line_b) = (free_multicast_group().unwrap(), free_multicast_group().unwrap());
        let site = Site { folder, lines: format!("line_a = '{line_a}'\nline_b = '{line_b}'\n") };
        site.write("instruments.toml", "[[instrument]]\nsymbol = 'ONLY'\nreference_price = '100.00'\n");
        site.write(
            "exchange.toml",
            &format!(
                "instruments = 'instruments.toml'\n\
                 [order_entry]\naddress = '127.0.0.1:0'\ntest_users = ['TEST01', 'TEST02']\n\
                 [market_data]\nretransmission = '127.0.0.1:0'\n{}\
                 [market_data.snapshots]\ngroup = '{}'\n",
                site.lines,
                free_multicast_group().unwrap()
            ),
        );
        site
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Leaves the folder as it is, for a look at it.
    #[allow(dead_code)] // of the other suite
    pub fn keep(mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts the venue; returns it with the addresses of order entry and retransmission.
    pub fn start_venue(&self) -> (Running, String, String) {
        let mut venue = Running::start(&["exchange", "--config", &self.path("exchange.toml")]);
        let mut address = |name: &str| {
            venue.hear(name, |line| {
                line.trim_start().strip_prefix(name)?.split_whitespace().next().map(str::to_owned)
            })
        };
        let (order_entry, retransmission) = (address("order entry"), address("retransmission"));
        (venue, order_entry, retransmission)
    }

    /// The configuration of a trader with the `random` strategy.
    pub fn trader(&self, user: &str, seed: u64, order_entry: &str, retransmission: &str) -> String {
        self.write(
            &format!("{user}.toml"),
            &format!(
                "instruments = 'instruments.toml'\nstrategy = 'random'\nseed = {seed}\nstop_after_silence = '60s'\n\
                 [order_entry]\naddress = '{order_entry}'\nuser = '{user}'\npassword = 'test'\n\
                 [market_data]\nretransmission = '{retransmission}'\n{}",
                self.lines
            ),
        )
    }
}
