//! Identification of a segment's writer, and whether its process still runs.

use std::{fs, io, process};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// File with the random 128-bit id of the current system boot on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Index of the process's start time among the fields of `/proc/PID/stat` after the process name.
const START_FIELD: usize = 19;

/// Identifies a process uniquely. Its id alone does not: ids are reused, and start times repeat across boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WriterId {
    /// Process id.
    pub pid: u32,
    /// User id of the process.
    pub uid: u32,
    /// Start time of the process, in the kernel's clock ticks since boot.
    pub start_ticks: u64,
    /// Id of the system boot during which the process runs.
    pub boot: [u8; 16],
}

impl WriterId {
    /// Returns the identification of this process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn this_process() -> io::Result<WriterId> {
        let pid = process::id();
        let no_stat = || io::Error::other("/proc has no entry of this process: mount /proc");
        Ok(WriterId {
            pid,
            uid: nix::unistd::geteuid().as_raw(),
            start_ticks: start_ticks(pid).ok_or_else(no_stat)?,
            boot: boot_id()?,
        })
    }

    /// Returns whether the process still runs. A process that is not visible,
    /// as in another container, counts as ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot) && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// State of a segment's writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterState {
    /// The writer runs.
    Alive,
    /// The writer ended normally; no more data follows.
    Closed,
    /// The process died without closing. The last values may be old, and an entry may be half written.
    Dead,
}

fn boot_id() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string(BOOT_ID)?;
    let no_id = || io::Error::other(format!("{BOOT_ID} does not hold a number"));
    let id = u128::from_str_radix(&text.trim().replace('-', ""), 16).map_err(|_| no_id())?;
    Ok(id.to_be_bytes())
}

/// Returns the start time of a process; `None` when it does not exist or is a zombie.
fn start_ticks(pid: u32) -> Option<u64> {
    parse_start(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the start time in `/proc/PID/stat`. The process name there is in parentheses and may contain
/// anything, even parentheses.
fn parse_start(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let is_running = !matches!(fields.next()?, "Z" | "X");
    fields.nth(START_FIELD - 1)?.parse().ok().filter(|_| is_running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_others_with_its_pid_are_not() {
        let this = WriterId::this_process().unwrap();
        assert!(this.is_alive());
        assert!(!WriterId { start_ticks: this.start_ticks + 1, ..this }.is_alive());
        assert!(!WriterId { boot: [0; 16], ..this }.is_alive());
        assert!(!WriterId { pid: u32::MAX, ..this }.is_alive());
    }

    #[test]
    fn names_with_brackets_are_skipped_and_zombies_are_not_alive() {
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 2 1 0 0 20 0 1 0 4711 5 6";
        assert_eq!(parse_start(&format!("9 (a) S 1) S {rest}")), Some(4711));
        assert_eq!(parse_start(&format!("9 (a) Z {rest}")), None);
        for cut in ["", "9", "9 (a", "9 (a)", "9 (a) S 1 2"] {
            assert_eq!(parse_start(cut), None, "{cut}");
        }
    }
}
