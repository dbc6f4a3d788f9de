//! The memory of `tickpath shell`: its peak heap, and its leaks.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::prelude::*;
use crate::support::deribit_venue::{CHANGES, CHANNEL, CLIENT_ID, Certificates, SECRET, VenueEnd};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("shell_heap", "KiB")
            .note(
                "the most heap that `tickpath shell` had at once, its message history and what the allocator \
                 needs included, by massif",
            )
            .goal(Goal::ValueAtMost(2_048.0))
            .reference("586 KiB published"),
        row("shell_leaks", "bytes")
            .note("bytes that the same session lost, by memcheck")
            .goal(Goal::ValueAtMost(0.0))
            .reference("0 after a leak was mended"),
    ],
    open,
)];

/// Sleep of the venue's thread when idle.
const REST: Duration = Duration::from_micros(200);

/// The shell's commands: a login over TLS, a market data subscription, two orders, and the history.
fn commands() -> String {
    let buy = "buy BTC-PERPETUAL 10 50000.5";
    format!(
        "connect; subscribe {CHANNEL}; wait {CHANNEL} {CHANGES}; {buy}; {buy}; show 20; stopwatch; unsubscribe {CHANNEL}"
    )
}

/// Measures once, because the result is the same in each round.
fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let program = lab.sibling_program("shell")?;
    Ok(once(measure(&program)?))
}

fn measure(program: &OsString) -> anyhow::Result<[Sample; 2]> {
    let (certificates, folder) = (Certificates::make()?, tempfile::tempdir()?);
    let file = |name: &str| folder.path().join(name);
    let run = |valgrind: &[OsString]| run(program, valgrind, &certificates, &file("shell.toml"));
    let massif = file("massif.out");
    let mut out_file = OsString::from("--massif-out-file=");
    out_file.push(&massif);
    run(&["--tool=massif".into(), "--peak-inaccuracy=0.0".into(), out_file])?;
    let heap = peak(&std::fs::read_to_string(&massif).context("massif left no file")?)?;

    let log = file("memcheck.log");
    let mut log_file = OsString::from("--log-file=");
    log_file.push(&log);
    run(&["--leak-check=full".into(), log_file])?;
    let [lost, reachable] = leaks(&std::fs::read_to_string(&log).context("memcheck left no file")?)?;
    let note = format!("{CHANGES} changes of a book and two orders over TLS");
    let reachable = format!("and {reachable} bytes at the end that something still points at");
    Ok([Sample::with_note(heap as f64 / 1024.0, note), Sample::with_note(lost as f64, reachable)])
}

/// Writes the shell's configuration to the file `config`, and runs the shell under valgrind against a venue.
fn run(
    program: &OsString,
    valgrind: &[OsString],
    certificates: &Certificates,
    config: &Path,
) -> anyhow::Result<()> {
    let mut venue = VenueEnd::open(certificates)?;
    // The request timeout is 300 s, because the shell is slow under valgrind.
    std::fs::write(config, venue.shell_config(certificates, 300))?;
    let output = venue.serve_during(REST, || shell(program, valgrind, config))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the shell ended with {}: {}", output.status, stderr.trim());
    ensure!(
        stdout.matches("open: buy 10 BTC-PERPETUAL").count() >= 2,
        "the shell's output lacks the orders: {stdout}"
    );
    Ok(())
}

fn shell(program: &OsString, valgrind: &[OsString], config: &Path) -> anyhow::Result<Output> {
    let mut command = Command::new("valgrind");
    command.args(valgrind).arg(program).arg("--config").arg(config).arg("-c").arg(commands());
    command.env("TICKPATH_CLIENT_ID", CLIENT_ID).env("TICKPATH_CLIENT_SECRET", SECRET).stdin(Stdio::null());
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!(Missing(
                "valgrind watches memory, and it is not installed: apt-get install valgrind".to_owned()
            ))
        }
        other => other.context("valgrind does not start"),
    }
}

/// Returns the peak heap size in bytes from massif's output, including the allocator's overhead.
fn peak(massif: &str) -> anyhow::Result<u64> {
    let sizes = |key: &'static str| {
        massif.lines().filter_map(move |line| line.strip_prefix(key)).map(|size| size.trim().parse::<u64>())
    };
    let mut most = 0;
    for (heap, extra) in sizes("mem_heap_B=").zip(sizes("mem_heap_extra_B=")) {
        most = most.max(heap? + extra?);
    }
    ensure!(most > 0, "massif's file has no sizes");
    Ok(most)
}

/// Returns the bytes that memcheck reports as lost, directly or indirectly, and as still reachable.
fn leaks(memcheck: &str) -> anyhow::Result<[u64; 2]> {
    if memcheck.contains("All heap blocks were freed") {
        return Ok([0, 0]);
    }
    let bytes = |key: &str| -> anyhow::Result<u64> {
        let rest = memcheck.split_once(key).with_context(|| format!("memcheck's log has no '{key}'"))?.1;
        let number = rest.split_whitespace().next().context("a number follows")?;
        Ok(number.replace(',', "").parse()?)
    };
    Ok([bytes("definitely lost:")? + bytes("indirectly lost:")?, bytes("still reachable:")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_output_is_parsed() {
        let massif = "snapshot=0\nmem_heap_B=0\nmem_heap_extra_B=0\n#-\nmem_heap_B=1000\nmem_heap_extra_B=24\nmem_heap_B=5\nmem_heap_extra_B=3\n";
        assert_eq!(peak(massif).unwrap(), 1024);
        assert!(peak("desc: x").is_err());
        let log = "==1== LEAK SUMMARY:\n==1==    definitely lost: 1,024 bytes in 2 blocks\n==1==    indirectly lost: 8 bytes in 1 blocks\n==1==      possibly lost: 0 bytes in 0 blocks\n==1==    still reachable: 72,704 bytes in 1 blocks\n";
        assert_eq!(leaks(log).unwrap(), [1032, 72_704]);
        assert_eq!(leaks("==1== All heap blocks were freed -- no leaks are possible").unwrap(), [0, 0]);
        assert!(leaks("").is_err());
    }
}
