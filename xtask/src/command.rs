//! A command to run, and the same command as text to repeat it by hand.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Child, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// A program with its arguments and additional environment variables.
#[derive(Clone, Debug)]
pub struct Command {
    words: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Command {
    /// Splits a line at blanks; a word cannot contain a blank.
    pub fn new(line: &str) -> Command {
        Command { words: line.split_whitespace().map(str::to_owned).collect(), env: Vec::new() }
    }

    /// Adds a variable to the command's environment.
    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Command {
        self.env.push((name, value.into()));
        self
    }

    /// Runs the command in `root` with the input and output of this program.
    pub fn run(&self, root: &Path) -> Result<ExitStatus> {
        self.process(root).status().with_context(|| format!("cannot run '{self}'"))
    }

    /// Starts the command in `root` in a separate process group, which a terminal's Ctrl-C does not reach.
    /// Its input and output are pipes.
    pub fn spawn_apart(&self, root: &Path) -> Result<Child> {
        let mut process = self.process(root);
        process.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        process.spawn().with_context(|| format!("cannot run '{self}'"))
    }

    /// Runs the command in `root` without output; returns whether it succeeded.
    pub fn succeeds_quietly(&self, root: &Path) -> bool {
        let status = self.process(root).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn process(&self, root: &Path) -> process::Command {
        let mut process = process::Command::new(&self.words[0]);
        process.args(&self.words[1..]).current_dir(root).envs(self.env.iter().map(|(k, v)| (k, v)));
        process
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

/// Quotes the text for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+=:,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_a_shell_reads_it() {
        let command = Command::new("cargo test --bench *").env("RUSTFLAGS", "--cfg loom");
        assert_eq!(command.to_string(), "RUSTFLAGS='--cfg loom' cargo test --bench '*'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_command_runs_with_its_environment_and_reports_failure() {
        let here = Path::new(".");
        assert!(Command::new("true").succeeds_quietly(here));
        assert!(!Command::new("false").run(here).unwrap().success());
        assert!(Command::new("printenv XTASK_TEST").env("XTASK_TEST", "1").succeeds_quietly(here));
        let missing = Command::new("no-such-program-of-xtask").run(here).unwrap_err();
        assert!(missing.to_string().contains("no-such-program-of-xtask"));
    }
}
