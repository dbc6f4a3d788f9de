//! A program under measurement, with its memory and processor time.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running program under measurement. A drop sends it the signal `end` if it still runs.
pub(crate) struct Program {
    pub(crate) child: Child,
    end: Signal,
}

impl Program {
    /// Starts a program without standard input; a drop sends it the signal `end`.
    pub(crate) fn start(command: &mut Command, end: Signal) -> anyhow::Result<Program> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Program { child, end })
    }

    /// Starts a program and reads its output until `address` extracts an address from a line.
    pub(crate) fn start_listening(
        command: &mut Command,
        end: Signal,
        address: impl Fn(&str) -> Option<&str>,
    ) -> anyhow::Result<(Program, Option<String>)> {
        let mut program = Program::start(command.stdout(Stdio::piped()), end)?;
        let output = program.child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| address(&line).map(str::to_owned));
        // Read and drop later lines, because a full pipe would block the program.
        thread::spawn(move || lines.for_each(drop));
        Ok((program, address))
    }

    /// Waits for the program's end, and reads the report that it wrote.
    pub(crate) fn report(&mut self, path: &Path, name: &str) -> anyhow::Result<serde_json::Value> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the {name} ended with {status}");
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }

    /// Returns the bytes in line `name` of `/proc/PID/status`: `VmRSS` is current memory, `VmHWM` the peak.
    pub(crate) fn memory_bytes(&self, name: &str) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path)?;
        let of_line =
            |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB")?.parse().ok();
        let kilobytes: Option<u64> = status.lines().find_map(of_line);
        Ok(kilobytes.with_context(|| format!("{path} has no {name}"))? * 1_024)
    }

    /// Returns the processor time so far, summed over the threads that exist now.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let mut nanos = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let schedule = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = schedule.split_whitespace().next().context("the kernel keeps no schedstat")?;
            nanos += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Do not signal a process that was waited for: its id may be reused.
        if let Ok(None) = self.child.try_wait() {
            let _ = kill(Pid::from_raw(self.child.id().cast_signed()), self.end);
            let _ = self.child.wait();
        }
    }
}
