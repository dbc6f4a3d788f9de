//! Description of the machine, and measurement of this thread's CPU time.

use std::fs::read_to_string;
use std::process::Command;
use std::time::Instant;

/// Processor, cores and kernel, as far as they are known.
pub fn machine() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}

/// Average number of runnable threads over 1, 5 and 15 minutes.
pub fn load() -> String {
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Commit of the working tree, marked if files differ from it.
pub fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Measures the CPU time of this thread, or elapsed time if the kernel does not report CPU time. Only CPU
/// time excludes other work on the machine, which interrupts a run of seconds many times.
pub struct Stopwatch {
    ran: Option<u64>,
    start: Instant,
}

impl Stopwatch {
    /// Starts the measurement.
    pub fn start() -> Stopwatch {
        Stopwatch { ran: ran_nanos(), start: Instant::now() }
    }

    /// Nanoseconds since the start.
    pub fn nanos(&self) -> u64 {
        let passed = self.start.elapsed().as_nanos() as u64;
        self.ran.zip(ran_nanos()).map_or(passed, |(start, end)| end - start)
    }

    /// Description of the measured quantity.
    pub fn what(&self) -> &'static str {
        self.ran.map_or("elapsed time", |_| "CPU time")
    }
}

/// CPU time of this thread so far, in nanoseconds, from the scheduler.
fn ran_nanos() -> Option<u64> {
    read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}
