//! What a process under measurement takes of the machine.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;

/// Memory of a process by a line of `/proc/PID/status`, in bytes: `VmRSS` for now, `VmHWM` for the most so far.
pub(super) fn memory_bytes(pid: u32, name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let of_line =
        |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB")?.parse().ok();
    let kilobytes: Option<u64> = status.lines().find_map(of_line);
    Ok(kilobytes.with_context(|| format!("/proc/{pid}/status has no {name}"))? * 1_024)
}

/// Processor time of a process so far: the sum over the threads that run now.
pub(super) fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let schedule = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = schedule.split_whitespace().next().context("the kernel keeps no schedstat")?;
        nanos += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}
