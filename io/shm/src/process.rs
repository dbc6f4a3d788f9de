//! Who writes a segment, and whether that process still runs.

use std::{fs, io, process};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Where Linux says by which start it runs: a random number of 128 bits.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Field of `/proc/PID/stat` with the start of the process, counted from the field after its name.
const START_FIELD: usize = 19;

/// A process, so that no other is taken for it: numbers of processes are given again, and after a start of the system
/// times begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WriterId {
    /// Its process id.
    pub pid: u32,
    /// The user it runs as.
    pub uid: u32,
    /// When it started, in the kernel's clock ticks since the system did.
    pub start_ticks: u64,
    /// Start of the system under which it runs.
    pub boot: [u8; 16],
}

impl WriterId {
    /// This process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn this_process() -> io::Result<WriterId> {
        let pid = process::id();
        let no_stat = || io::Error::other("/proc says nothing of this process: mount it");
        Ok(WriterId {
            pid,
            uid: nix::unistd::geteuid().as_raw(),
            start_ticks: start_ticks(pid).ok_or_else(no_stat)?,
            boot: boot_id()?,
        })
    }

    /// Whether it still runs. A process that this one cannot see, as in another container, counts as gone.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot) && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// State of a segment's writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterState {
    /// It runs.
    Alive,
    /// It went in good order; nothing more comes.
    Closed,
    /// Its process is gone without a word; the last values may be old, and an entry may have stayed half written.
    Gone,
}

fn boot_id() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string(BOOT_ID)?;
    let no_id = || io::Error::other(format!("{BOOT_ID} holds no number"));
    let id = u128::from_str_radix(&text.trim().replace('-', ""), 16).map_err(|_| no_id())?;
    Ok(id.to_be_bytes())
}

/// `None` when there is no such process, or it has ended and only its parent has not noticed.
fn start_ticks(pid: u32) -> Option<u64> {
    parse_start(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a process is in brackets and may hold anything, brackets too.
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
    fn this_process_lives_and_others_with_its_number_do_not() {
        let this = WriterId::this_process().unwrap();
        assert!(this.is_alive());
        assert!(!WriterId { start_ticks: this.start_ticks + 1, ..this }.is_alive());
        assert!(!WriterId { boot: [0; 16], ..this }.is_alive());
        assert!(!WriterId { pid: u32::MAX, ..this }.is_alive());
    }

    #[test]
    fn names_with_brackets_are_skipped_and_what_has_ended_is_gone() {
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 2 1 0 0 20 0 1 0 4711 5 6";
        assert_eq!(parse_start(&format!("9 (a) S 1) S {rest}")), Some(4711));
        assert_eq!(parse_start(&format!("9 (a) Z {rest}")), None);
        for cut in ["", "9", "9 (a", "9 (a)", "9 (a) S 1 2"] {
            assert_eq!(parse_start(cut), None, "{cut}");
        }
    }
}
