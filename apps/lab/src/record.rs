//! Recorded reports: `results/DATE-MACHINE/bench-TIME.json`, the source of the figures in documents.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tickpath_agent::Host;

use crate::context::Effort;
use crate::report::BenchReport;

/// Suffix of the commit of a program built with uncommitted changes; `apps/version/build.rs` writes it.
const DIRTY: &str = "-dirty";
/// Maximum number of reports in one folder with the same time in seconds.
const SAME_TIME_MAX: usize = 100;

/// Checks whether a run's report may be recorded; call it before spending minutes on the run.
///
/// # Errors
/// The run is not a full run, or the measured code is not committed.
pub fn check_recordable(effort: Effort, commit: Option<&str>) -> anyhow::Result<()> {
    ensure!(effort == Effort::Full, "only full runs are recorded: leave --quick out");
    let commit = commit.context("the commit is not known: build in a git repository")?;
    ensure!(
        !commit.ends_with(DIRTY),
        "built with uncommitted changes ({commit}): commit them and build again"
    );
    Ok(())
}

impl BenchReport {
    /// Writes the report as JSON to a new file below `folder` and returns its path.
    ///
    /// # Errors
    /// As [`check_recordable`]; the file cannot be written.
    pub fn record(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        check_recordable(self.effort, self.commit.as_deref())?;
        let (date, time) = self
            .date()
            .split_once('T')
            .map(|(date, time)| (date.to_owned(), time.replace([':', 'Z'], "")))
            .context("a date has a time")?;
        let folder = folder.join(format!("{date}-{}", machine(&self.host.host)));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for number in 1..=SAME_TIME_MAX {
            let again = if number == 1 { String::new() } else { format!("-{number}") };
            let path = folder.join(format!("bench-{time}{again}.json"));
            match File::create_new(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => {
                    let mut file = created.with_context(|| format!("cannot make {}", path.display()))?;
                    writeln!(file, "{}", self.to_json())
                        .with_context(|| format!("cannot write {}", path.display()))?;
                    return Ok(path);
                }
            }
        }
        anyhow::bail!("{} has {SAME_TIME_MAX} reports of this second: run it again", folder.display())
    }
}

/// Returns a short name of the machine: its CPU and its cores, as in `epyc-2vcpu`.
fn machine(host: &Host) -> String {
    let is_general = |word: &str| ["intel", "amd", "cpu", "processor", "core", "family"].contains(&word);
    let words = host.cpu_model.split([' ', ',', '(', ')', '-']).map(str::to_ascii_lowercase);
    let is_name =
        |word: &String| word.len() > 2 && word.chars().all(|c| c.is_ascii_alphabetic()) && !is_general(word);
    let cpu = words.into_iter().find(is_name).unwrap_or_else(|| "cpu".to_owned());
    let kind = if host.is_virtual { "vcpu" } else { "core" };
    format!("{cpu}-{}{kind}", host.cores_allowed.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BenchOptions, bench};

    #[test]
    fn every_report_is_recorded_in_a_separate_file() {
        let filter = vec!["host_jitter".to_owned()];
        let commit = Some("0123456789".to_owned());
        let options =
            BenchOptions { filter, rounds: 1, effort: Effort::Smoke, commit, ..BenchOptions::default() };
        let mut report = bench(&options).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(report.record(folder.path()).unwrap_err().to_string().contains("only full runs"));
        report.effort = Effort::Full;
        let paths = [1, 2].map(|_| report.record(folder.path()).unwrap());
        assert_ne!(paths[0], paths[1]);
        for path in paths {
            let json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(json["commit"], "0123456789");
            let name = path.strip_prefix(folder.path()).unwrap().to_string_lossy().into_owned();
            assert!(
                name.starts_with(&json["date"].as_str().unwrap()[..10]) && name.contains("/bench-"),
                "{name}"
            );
        }
        for (commit, error) in
            [(None, "the commit is not known"), (Some("0123456789-dirty"), "built with uncommitted changes")]
        {
            report.commit = commit.map(str::to_owned);
            let refused = report.record(folder.path()).unwrap_err().to_string();
            assert!(refused.starts_with(error), "{refused}");
        }
    }

    #[test]
    fn a_machine_is_named_by_its_cpu_and_cores() {
        let name = |model: &str, is_virtual| {
            machine(&Host {
                cpu_model: model.to_owned(),
                is_virtual,
                cores_allowed: vec![0, 1],
                ..Host::describe()
            })
        };
        assert_eq!(name("AMD EPYC, family 25 model 17 stepping 1", true), "epyc-2vcpu");
        assert_eq!(name("Intel(R) Xeon(R) Processor, family 6 model 207 stepping 2", true), "xeon-2vcpu");
        assert_eq!(
            name("AMD Ryzen 9 7950X 16-Core Processor, family 25 model 97 stepping 2", false),
            "ryzen-2core"
        );
        assert_eq!(name("implementer 0x41 part 0xd0c", true), "implementer-2vcpu");
    }
}
