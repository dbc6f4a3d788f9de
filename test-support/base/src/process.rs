//! Runs programs as processes: starts them, reads them line by line with a deadline, signals them, and kills
//! them at the end of the test.

use std::borrow::BorrowMut;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::wait::{Deadline, PATIENCE, wait_until};

/// A signal that a program may catch.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// Sends the signal to a process.
    pub fn send_to(self, child: &Child) {
        let name = match self {
            Signal::Interrupt => "INT",
            Signal::Terminate => "TERM",
        };
        let kill = format!("kill -{name} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

/// Returns the command that runs one test of this program in a separate process. `module` is the test's
/// `module_path!()`.
#[must_use]
pub fn this_test(module: &str, test: &str) -> Command {
    let name = match module.split_once("::") {
        Some((_, inner)) => format!("{inner}::{test}"),
        None => test.to_owned(),
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--nocapture", "--test-threads=1"]);
    command
}

/// The exit code and the output of a process.
#[derive(Debug)]
pub struct ProcessOutput {
    /// The exit code; 128 plus the signal's number if a signal ended it, as in shells.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// A running process. It is killed on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    read: Vec<String>,
    errors: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a process. Its output is read continuously, so that it never blocks on a full pipe.
    #[must_use]
    pub fn spawn(mut command: impl BorrowMut<Command>) -> Running {
        let command = command.borrow_mut();
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
        Running { child, lines, read: Vec::new(), errors: Some(errors) }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads lines of standard output until `find` returns a result for one.
    #[track_caller]
    pub fn wait_for_line<R>(&mut self, what: &str, mut find: impl FnMut(&str) -> Option<R>) -> R {
        let deadline = Deadline::start();
        loop {
            let Ok(line) = self.lines.recv_timeout(deadline.remaining()) else {
                let printed = self.end();
                panic!("no {what} in\n{}\n{}", printed.out, printed.err);
            };
            let found = find(&line);
            self.read.push(line);
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        signal.send_to(&self.child);
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Sends SIGINT, like Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(Signal::Interrupt);
    }

    /// True if the process ignores Ctrl-C, as it inherits from the program that started the tests; a shell
    /// does so for background jobs.
    #[must_use]
    pub fn ignores_interrupt(&self) -> bool {
        self.has_interrupt_in("SigIgn:")
    }

    /// Waits until the process has a handler for Ctrl-C.
    pub fn wait_for_interrupt_handler(&self) {
        wait_until("the handler of Ctrl-C", || self.has_interrupt_in("SigCgt:"));
    }

    fn has_interrupt_in(&self, signals: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix(signals)).unwrap();
        // SIGINT is the second signal.
        u64::from_str_radix(set.trim(), 16).unwrap() & 1 << 1 != 0
    }

    /// Waits for the end of the process, and returns its complete output.
    #[track_caller]
    pub fn join(self) -> ProcessOutput {
        self.join_within(PATIENCE)
    }

    /// Waits for the end of a process that needs up to `patience`.
    #[track_caller]
    pub fn join_within(mut self, patience: Duration) -> ProcessOutput {
        let deadline = Deadline::after(patience);
        while self.status().is_none() && !deadline.is_over() {
            thread::sleep(Duration::from_millis(1));
        }
        let is_over = self.status().is_some();
        let printed = self.end();
        assert!(is_over, "the process does not end:\n{}\n{}", printed.out, printed.err);
        printed
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    fn end(&mut self) -> ProcessOutput {
        if self.status().is_none() {
            let _ = self.child.kill();
        }
        let status = self.child.wait().unwrap();
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        self.read.extend(self.lines.iter());
        let err = self.errors.take().map(|errors| errors.join().unwrap()).unwrap_or_default();
        ProcessOutput { code, out: self.read.join("\n"), err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Running {
        Running::spawn(Command::new("sh").args(["-c", script]).stdin(Stdio::null()))
    }

    #[test]
    fn output_is_read_by_line_and_completed_by_join() {
        let mut running = shell("echo one; echo two; echo no >&2; echo three; exit 3");
        assert_eq!(running.wait_for_line("the second line", |line| (line == "two").then_some(2)), 2);
        let printed = running.join();
        assert_eq!((printed.code, printed.out.as_str()), (Some(3), "one\ntwo\nthree"));
        assert_eq!(printed.err, "no\n");
    }

    /// Not a test: the process that the next test starts.
    #[test]
    #[allow(clippy::print_stdout)] // its parent waits for the line
    fn child() {
        if std::env::var_os("TICKPATH_TEST_SUPPORT_CHILD").is_some() {
            println!("\nhere");
            thread::sleep(PATIENCE);
        }
    }

    #[test]
    fn dropping_the_handle_kills_the_process() {
        let mut running =
            Running::spawn(this_test(module_path!(), "child").env("TICKPATH_TEST_SUPPORT_CHILD", "1"));
        running.wait_for_line("its line", |line| (line == "here").then_some(()));
        let status = format!("/proc/{}/status", running.id());
        assert!(std::path::Path::new(&status).exists());
        drop(running);
        assert!(!std::path::Path::new(&status).exists());
    }

    #[test]
    fn signals_end_a_process_with_their_exit_code() {
        let mut running = shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done");
        running.wait_for_line("its start", |line| (line == "ready").then_some(()));
        running.signal(Signal::Terminate);
        assert_eq!(running.join().code, Some(5));
        let running = shell("kill -TERM $$; sleep 60");
        assert_eq!(running.join().code, Some(128 + 15));
    }
}
