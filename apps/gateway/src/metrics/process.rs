//! Resource usage of the process, as the kernel reports it.

use std::fs;

use super::MetricsText;

/// Clock ticks per second of the times in `/proc/self/stat` on Linux (`_SC_CLK_TCK`).
const TICKS_PER_SECOND: u64 = 100;

/// Writes the usage that is available; nothing without `/proc`.
pub(super) fn write(text: &mut MetricsText) {
    if let Some((user, system, threads)) =
        fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(times)
    {
        text.family("process_cpu_milliseconds_total", "counter", "Time on a core.");
        text.value(&[("mode", "user")], user * 1_000 / TICKS_PER_SECOND);
        text.value(&[("mode", "system")], system * 1_000 / TICKS_PER_SECOND);
        text.family("process_threads", "gauge", "Threads.");
        text.value(&[], threads);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    if let Some(resident) = field("VmRSS") {
        text.family("process_resident_bytes", "gauge", "Memory that is resident.");
        text.value(&[], resident * 1_024);
    }
    text.family(
        "process_context_switches_total",
        "counter",
        "Times that a thread gave its core up, or lost it.",
    );
    for (kind, name) in
        [("voluntary", "voluntary_ctxt_switches"), ("involuntary", "nonvoluntary_ctxt_switches")]
    {
        if let Some(count) = field(name) {
            text.value(&[("kind", kind)], count);
        }
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        text.family("process_open_files", "gauge", "Open files and sockets.");
        text.value(&[], files.count() as u64);
    }
}

/// User time, system time and threads: fields 14, 15 and 20; source: proc_pid_stat(5). The name before them
/// may contain any characters, including parentheses.
fn times(stat: &str) -> Option<(u64, u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse().ok();
    Some((field(14)?, field(15)?, field(20)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 90 0 0 0 12 34 0 0 20 0 5 0 1 2 3";
        assert_eq!(times(stat), Some((12, 34, 5)));
        assert_eq!(times("7 (a"), None);
        assert_eq!(times("7 (a) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_takes_something() {
        let mut text = MetricsText::new("g");
        write(&mut text);
        let text = text.finish();
        for name in ["process_threads", "process_resident_bytes", "process_open_files"] {
            let line = text.lines().find(|line| line.starts_with(&format!("tickpath_gateway_{name}{{")));
            assert!(!line.unwrap().ends_with(" 0"), "{text}");
        }
    }
}
