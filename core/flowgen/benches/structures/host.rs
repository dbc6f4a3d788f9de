//! The machine, and the time that it gives to this thread.

use std::fs::read_to_string;
use std::process::Command;
use std::time::Instant;

/// Processor, cores and kernel, as far as they are told.
pub fn machine() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}

/// Runnable threads on average over 1, 5 and 15 minutes.
pub fn load() -> String {
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// The commit, marked when files differ from it.
pub fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Time that this thread ran, where the kernel tells it; otherwise time that passed. On a machine with other work a
/// run of seconds is interrupted again and again, and only the first is the structure's own.
pub struct Stopwatch {
    ran: Option<u64>,
    start: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch { ran: ran_nanos(), start: Instant::now() }
    }

    /// Nanoseconds since the start.
    pub fn nanos(&self) -> u64 {
        let passed = self.start.elapsed().as_nanos() as u64;
        self.ran.zip(ran_nanos()).map_or(passed, |(start, end)| end - start)
    }

    /// What it measures, in words.
    pub fn what(&self) -> &'static str {
        self.ran.map_or("time passed", |_| "time on the processor")
    }
}

/// What the scheduler has given to this thread so far.
fn ran_nanos() -> Option<u64> {
    read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}
