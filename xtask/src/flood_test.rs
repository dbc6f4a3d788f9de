//! Opens silent connections at every endpoint of a venue, and measures logins meanwhile.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::interrupt::Interrupt;
use crate::options;
use crate::print_stdout::print_stdout;

/// Default number of silent connections.
const CONNECTIONS: u64 = 2_000;
/// Duration of the attack on each endpoint, in seconds.
const SECONDS: u64 = 60;
/// Upper bound of the 99th percentile of login times, in milliseconds.
const P99_MAX_MS: f64 = 100.0;
/// Description of the results after Ctrl-C.
const MEANING: &str = "endpoints without a line above have no result";
/// Prefix of the line about an endpoint.
const LINE: &str = "flood ";

/// Runs the flood test with `options`; true when every login succeeded in time.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let [connections, seconds] =
        options::numbers(options, [("--connections", CONNECTIONS), ("--seconds", SECONDS)])?;
    ensure!(connections > 0 && seconds > 0, "--connections and --seconds must be at least 1");
    let interrupt = Interrupt::on_signals()?;
    let test = "-p tickpath-deribit-front --test it";
    let is_built = Command::new(&format!("cargo test --release {test} --no-run")).run(root)?.success();
    interrupt.check("nothing was attacked")?;
    ensure!(is_built, "the test does not build");
    let command = Command::new(&format!(
        "cargo test --release {test} -- --nocapture --exact flood::silent_connections_block_no_endpoint"
    ))
    .env("FLOOD_CONNECTIONS", connections.to_string())
    .env("FLOOD_SECONDS", seconds.to_string());
    print_stdout(&command);
    let mut process = command.spawn_apart(root)?;
    let printed = process.stdout.take().context("the process was started with a pipe")?;
    let mut slow = Vec::new();
    for line in BufReader::new(printed).lines().map_while(Result::ok) {
        print_stdout(&line);
        if interrupt.is_raised() {
            let _ = process.kill();
        }
        slow.extend(too_slow(&line));
    }
    let status = process.wait()?;
    interrupt.check(MEANING)?;
    slow.iter().for_each(print_stdout);
    Ok(status.success() && slow.is_empty())
}

/// Returns the failure of an endpoint whose line shows times beyond the limit.
fn too_slow(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix(LINE)?.split_once(':')?;
    let p99 = rest.split_once("p99 ")?.1.split_once(" ms")?.0.parse().unwrap_or(f64::INFINITY);
    (p99 >= P99_MAX_MS)
        .then(|| format!("{name}: 99 of 100 logins took up to {p99} ms, above {P99_MAX_MS} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_answers_late_is_named() {
        let line = |p99| {
            format!("flood GLIMPSE: 9 silent connections, 1 of 1 logins, p50 1.00 ms, p99 {p99} ms, and")
        };
        assert_eq!(too_slow(&line("99.99")), None);
        assert!(too_slow(&line("100.00")).is_some_and(|text| text.starts_with("GLIMPSE: ")));
        assert_eq!(too_slow("test result: ok"), None);
    }
}
