//! The machine on which the figures were measured.

use std::fs;

use tickpath_agent::{ClockSource, Host, Jitter};
use tickpath_types::Nanos;

/// The machine, the cores used, and the CPU time that the machine did not give to the run.
#[derive(Clone, Debug)]
pub struct HostView {
    /// The machine.
    pub host: Host,
    /// Time source of the clock that timed the run.
    pub clock: ClockSource,
    /// Core of the thread that measured.
    pub near_core: usize,
    /// Core of the thread at the other end; `None` if the process may use only one core.
    pub far_core: Option<usize>,
    /// Gaps in the execution of a spinning thread, over all rounds.
    pub jitter: Jitter,
    /// Share of the cores' time that the kernel reports as stolen, 0 to 1; `None` if it does not report it.
    pub kernel_steal: Option<f64>,
}

impl HostView {
    /// Share of the time that the host took, in percent: the larger of the spinning thread's loss and the
    /// kernel's figure, because some hosts report nothing to the kernel.
    pub(crate) fn steal_percent(&self) -> f64 {
        self.jitter.lost_share().max(self.kernel_steal.unwrap_or_default()) * 100.0
    }
}

/// Steal time of some cores from `/proc/stat`, measured from [`StealTime::start`].
pub(crate) struct StealTime {
    cores: Vec<usize>,
    start: Option<[u64; 2]>,
}

impl StealTime {
    pub(crate) fn start(cores: &[usize]) -> StealTime {
        StealTime { cores: cores.to_vec(), start: stolen(&proc_stat(), cores) }
    }

    /// Returns the stolen share of the time since the start, 0 to 1.
    pub(crate) fn share(&self) -> Option<f64> {
        let [stolen, all] = stolen(&proc_stat(), &self.cores)?;
        let [stolen_then, all_then] = self.start?;
        Some((stolen - stolen_then) as f64 / (all - all_then).max(1) as f64)
    }
}

fn proc_stat() -> String {
    fs::read_to_string("/proc/stat").unwrap_or_default()
}

/// Sums of stolen time and total time over the cores, in the kernel's units.
///
/// Source: proc(5): `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; `user` and `nice`
/// include the guest times.
fn stolen(stat: &str, cores: &[usize]) -> Option<[u64; 2]> {
    const STEAL: usize = 7;
    let of_core = |core: &usize| {
        let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} ")))?;
        let times: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        Some([*times.get(STEAL)?, times[..=STEAL].iter().sum()])
    };
    let sum = |[a, b]: [u64; 2], [c, d]: [u64; 2]| [a + c, b + d];
    cores.iter().map(of_core).try_fold([0, 0], |all, core| core.map(|core| sum(all, core)))
}

/// Adds the gaps of two periods.
pub(crate) fn sum(a: Jitter, b: Jitter) -> Jitter {
    Jitter {
        elapsed: a.elapsed + b.elapsed,
        gaps_over_1us: a.gaps_over_1us + b.gaps_over_1us,
        gaps_over_10us: a.gaps_over_10us + b.gaps_over_10us,
        gaps_over_100us: a.gaps_over_100us + b.gaps_over_100us,
        gaps_over_1ms: a.gaps_over_1ms + b.gaps_over_1ms,
        gap_max: Nanos(a.gap_max.0.max(b.gap_max.0)),
        lost: a.lost + b.lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_time_is_that_of_the_cores_named() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 5 80 0 0 1 4 7 0\ncpu1 10 0 0 84 0 0 0 6 0 0\n";
        assert_eq!(stolen(stat, &[0]), Some([4, 100]));
        assert_eq!(stolen(stat, &[0, 1]), Some([10, 200]));
        assert_eq!(stolen(stat, &[0, 2]), None, "the kernel says nothing of that core");
        assert_eq!(stolen("cpu0 1 2 3\n", &[0]), None, "an old kernel");
    }

    #[test]
    fn gaps_add_up_and_the_longest_stays() {
        let gaps = |lost, gap_max| Jitter {
            elapsed: Nanos(1_000),
            gaps_over_1us: 2,
            gap_max: Nanos(gap_max),
            lost: Nanos(lost),
            ..Jitter::default()
        };
        let both = sum(gaps(100, 70), gaps(300, 60));
        assert_eq!((both.elapsed, both.gaps_over_1us, both.gap_max), (Nanos(2_000), 4, Nanos(70)));
        assert_eq!(both.lost_share(), 0.2);
    }
}
