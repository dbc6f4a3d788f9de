//! Runs the `tickpath` program as a process.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tickpath_net::free_multicast_group;
use tickpath_test_support::{PATIENCE, ProcessOutput, Running};

pub fn tickpath() -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.env_remove("RUST_BACKTRACE").timeout(PATIENCE);
    command
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn run(args: &[&str]) -> ProcessOutput {
    let output = tickpath().args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    ProcessOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Checks that a run with `args` fails and prints only one line, on standard error, with all of `words`.
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

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(args).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command
}

/// Starts the program, with threads that read its output continuously.
pub fn spawn(args: &[&str]) -> Running {
    Running::spawn(program(args))
}

/// Starts the program without a thread that reads its standard output: the test must read it.
pub fn spawn_unread(args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = program(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// Waits until a program started by [`spawn_unread`] exits; returns its exit code and its standard error.
pub fn end_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A temporary folder for the configurations of a venue and its traders, with free ports and groups.
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

    /// Prevents the folder's removal on drop, so that it can be inspected; returns its path.
    #[allow(dead_code)] // used only by the kill test
    pub fn persist(mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts the venue; returns its process, its order entry address and its retransmission address.
    pub fn start_venue(&self) -> (Running, String, String) {
        let mut venue = spawn(&["exchange", "--config", &self.path("exchange.toml")]);
        let mut address = |name: &str| {
            venue.wait_for_line(name, |line| {
                line.trim_start().strip_prefix(name)?.split_whitespace().next().map(str::to_owned)
            })
        };
        let (order_entry, retransmission) = (address("order entry"), address("retransmission"));
        (venue, order_entry, retransmission)
    }

    /// Writes the configuration of a trader with the `random` strategy; returns the file's path.
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
