//! CPU time of the processes that this program has waited for.

use std::fs;
use std::time::Duration;

/// CPU time used so far, in clock ticks.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    ticks: u64,
}

/// Clock ticks per second in `/proc`; the same on every Linux (USER_HZ).
const TICKS_PER_SECOND: u64 = 100;

impl CpuTime {
    /// User and system time of all children that have ended, and of theirs; `None` without `/proc`.
    pub fn of_children() -> Option<CpuTime> {
        CpuTime::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Reads `cutime` and `cstime`, the fields 16 and 17 of `/proc/PID/stat`. Source: proc_pid_stat(5).
    fn parse(stat: &str) -> Option<CpuTime> {
        // The second field is the program's name in parentheses, which may hold blanks and parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut times = fields.split(' ').skip(13).map_while(|field| field.parse::<u64>().ok());
        Some(CpuTime { ticks: times.next()? + times.next()? })
    }

    /// The time used since `start`.
    pub fn since(self, start: CpuTime) -> Duration {
        Duration::from_millis((self.ticks - start.ticks) * 1_000 / TICKS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_children_are_added() {
        let stat = "42 (a) name) S 1 42 42 0 -1 4194560 0 0 0 0 11 12 1300 140 20 0 1 0 99";
        assert_eq!(CpuTime::parse(stat).unwrap().ticks, 1_440);
        assert!(CpuTime::parse("42 (a) S 1").is_none());
    }

    #[test]
    fn a_child_that_works_is_counted() {
        let start = CpuTime::of_children().unwrap();
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", work]).status().unwrap().success());
        assert!(!CpuTime::of_children().unwrap().since(start).is_zero());
    }
}
