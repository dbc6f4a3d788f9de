//! Work whose instructions are counted: this program runs itself under callgrind.
//!
//! Many hosts, above all virtual ones, have no hardware counters, and other load disturbs hardware counts.
//! A simulator gives the same counts everywhere.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::lab::{Lab, Missing};

/// Work that a separate process does under callgrind.
pub(crate) struct CountedWork {
    /// Values of the process's first argument that select this work; no two works share one.
    pub(crate) names: &'static [&'static str],
    /// Callgrind's pattern for the name of the function to count; its callees are counted too.
    pub(crate) function: &'static str,
    /// Does the work with all of the process's arguments; returns its result.
    pub(crate) run: fn(&[String]) -> anyhow::Result<String>,
}

/// One run of counted work, with its arguments and its expected result.
pub(crate) struct Call<'a> {
    /// Description of the work in the progress message `counting WHAT under callgrind`.
    pub(crate) what: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) input: &'a [u8],
    /// Result that the work must print.
    pub(crate) expected: String,
    pub(crate) with_caches: bool,
}

/// Callgrind's counts, and the simulated caches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) instructions: u64,
    /// Conditional and indirect branches that the simulated predictor mispredicted.
    pub(crate) branch_misses: u64,
    /// Reads and writes that missed the first level of the data cache.
    pub(crate) first_level_misses: u64,
    /// Data reads and writes that missed the last-level cache.
    pub(crate) last_level_misses: u64,
    pub(crate) caches: Vec<String>,
}

impl CountedWork {
    /// Counts the instructions of this work. The arguments of its process are its name and `argument`.
    ///
    /// # Errors
    /// As [`count`](CountedWork::count).
    pub(crate) fn instructions(
        &self,
        lab: &Lab<'_>,
        what: String,
        argument: &str,
        expected: String,
    ) -> anyhow::Result<u64> {
        let arguments = vec![self.names[0].to_owned(), argument.to_owned()];
        let call = Call { what, arguments, input: &[], expected, with_caches: false };
        Ok(self.count(lab, &call)?.instructions)
    }

    /// Does the work in a separate process under callgrind and returns the counts.
    ///
    /// # Errors
    /// [`Missing`], with the reason why there are no counts.
    pub(crate) fn count(&self, lab: &Lab<'_>, call: &Call<'_>) -> anyhow::Result<Counted> {
        let counted = lab.counting_command().and_then(|command| {
            lab.print_progress(format_args!("counting {} under callgrind", call.what));
            self.callgrind(command, call)
        });
        counted.map_err(|error| Missing(format!("{error:#}")).into())
    }

    fn callgrind(&self, command: &[OsString], call: &Call<'_>) -> anyhow::Result<Counted> {
        let folder = tempfile::tempdir().context("callgrind needs a folder to write to")?;
        let profile = folder.path().join("callgrind.out");
        let mut out_file = OsString::from("--callgrind-out-file=");
        out_file.push(&profile);
        let mut valgrind = Command::new("valgrind");
        let toggle = format!("--toggle-collect={}", self.function);
        valgrind.args(["--tool=callgrind", "-q"]).arg(toggle).arg(out_file);
        if call.with_caches {
            valgrind.args(["--cache-sim=yes", "--branch-sim=yes"]);
        }
        valgrind.args(command).args(&call.arguments);
        valgrind.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match valgrind.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("valgrind counts instructions, and it is not installed: apt-get install valgrind")
            }
            other => other.context("valgrind does not start")?,
        };
        // Check the child's status first: its reason for an early end says more than the broken pipe.
        let written = child.stdin.take().context("the pipe was requested")?.write_all(call.input);
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "{}", last_line(&output.stderr, output.status));
        written.context("the input could not be written to the program")?;
        let found = String::from_utf8_lossy(&output.stdout);
        ensure!(
            found.trim() == call.expected,
            "under callgrind the work ends as '{}', not '{}'",
            found.trim(),
            call.expected
        );
        let text = fs::read_to_string(&profile).context("callgrind left no profile")?;
        parse(&text).context("callgrind's profile cannot be read")
    }
}

fn last_line(stderr: &[u8], status: std::process::ExitStatus) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| format!("valgrind ended with {status}"), |line| format!("valgrind: {line}"))
}

/// Parses the totals of a profile: `events:` names the columns of `summary:`, `desc:` the caches.
fn parse(profile: &str) -> anyhow::Result<Counted> {
    let line = |key: &str| profile.lines().find_map(|line| line.strip_prefix(key));
    let names = line("events:").context("no line 'events:'")?;
    let sums = line("summary:").or_else(|| line("totals:")).context("no line 'summary:'")?;
    let sums = sums.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let columns: Vec<(&str, u64)> = names.split_whitespace().zip(sums).collect();
    let sum = |wanted: &[&str]| -> u64 {
        columns.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, sum)| sum).sum()
    };
    let caches = profile.lines().filter_map(|line| line.strip_prefix("desc: "));
    let caches = caches.filter(|words| words.starts_with("D1 cache:") || words.starts_with("LL cache:"));
    let counted = Counted {
        instructions: sum(&["Ir"]),
        branch_misses: sum(&["Bcm", "Bim"]),
        first_level_misses: sum(&["D1mr", "D1mw"]),
        last_level_misses: sum(&["DLmr", "DLmw"]),
        caches: caches.map(str::to_owned).collect(),
    };
    // Callgrind finds the counted function by its symbol.
    ensure!(counted.instructions > 0, "nothing was counted: was the program stripped of its symbols?");
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_by_the_names_of_their_columns() {
        let profile = "version: 1\ndesc: I1 cache: 32768 B, 64 B, 8-way associative\n\
                       desc: D1 cache: 49152 B, 64 B, 12-way associative\n\
                       desc: LL cache: 268435456 B, 64 B, 16-way associative\n\
                       events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\
                       summary: 100 50 25 1 7 3 1 2 1 20 4 10 5\n";
        let Counted { instructions, branch_misses, first_level_misses, last_level_misses, caches } =
            parse(profile).unwrap();
        assert_eq!([instructions, branch_misses, first_level_misses, last_level_misses], [100, 9, 10, 3]);
        assert_eq!(caches.len(), 2);
        let plain = parse("events: Ir\nsummary: 7\n").unwrap();
        assert_eq!(plain, Counted { instructions: 7, ..Counted::default() });
    }

    #[test]
    fn invalid_profiles_are_errors() {
        for profile in ["", "events: Ir\n", "events: Ir\nsummary: x\n", "events: Ir\nsummary: 0\n"] {
            assert!(parse(profile).is_err(), "{profile:?}");
        }
    }
}
