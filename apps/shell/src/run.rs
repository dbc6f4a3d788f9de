//! A shell from start to end: commands from the command line, a script, or a person.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use nix::errno::Errno;
use serde::Serialize;
use serde_json::value::RawValue;
use tickpath_config::{print_stderr, print_stdout};

use crate::config::ShellConfig;
use crate::execute::{Done, LOOK};
use crate::interactive;
use crate::keeper::Keeper;
use crate::link::Link;
use crate::log::Module;
use crate::shell::{Failure, Interrupt, Shell};
use crate::stopwatch::{Figures, Readable};
use crate::words::commands;

/// The source of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Text(String),
    /// A file; `-` is standard input.
    Script(PathBuf),
    /// A person at a terminal; without a terminal, standard input.
    Person,
}

/// Options of a shell.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The configuration.
    pub config: ShellConfig,
    /// The configuration file.
    pub config_file: Option<PathBuf>,
    /// A file with the key.
    pub key_file: Option<PathBuf>,
    /// The source of commands.
    pub source: Source,
    /// True if orders are checked and shown, not sent.
    pub is_dry_run: bool,
    /// True if the shell continues after a failed command.
    pub keeps_going: bool,
    /// True if standard output is reserved for other output.
    pub is_silent: bool,
    /// True to keep results for the [`Report`]; otherwise memory does not grow with the commands.
    pub is_reported: bool,
    /// Modules that are logged from the start.
    pub log: Vec<Module>,
    /// True if no pane is shown on a terminal.
    pub has_no_pane: bool,
}

/// The outcome of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All commands succeeded.
    Done,
    /// A command failed.
    Failed,
    /// Ended by Ctrl-C or SIGTERM.
    Interrupted,
}

/// The report of a shell.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The venue.
    pub url: String,
    /// True if nothing was sent.
    pub dry_run: bool,
    /// The commands in order; empty unless a report was requested.
    pub commands: Vec<CommandReport>,
    /// The stopwatches.
    pub stopwatch: Vec<Figures>,
    /// The outcome.
    #[serde(skip)]
    pub ended: Ended,
}

/// The report of a command.
#[derive(Debug, Serialize)]
pub struct CommandReport {
    /// The command line.
    pub command: String,
    /// `done`, or the kind of failure: `invalid`, `limit`, `not_connected`, `refused`, `timeout`, `lost`,
    /// `not_done`, `unknown`, `interrupted`.
    pub status: &'static str,
    /// The reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The venue's error code, if it refused the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The venue's unchanged result: numbers keep their digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// A remark on the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Time from the command to the send, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_ns: Option<u64>,
    /// Time from the command to the answer, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_ns: Option<u64>,
    /// Duration of the whole command, in nanoseconds.
    pub total_ns: u64,
}

/// Runs a shell until it ends.
///
/// # Errors
/// An invalid configuration, an unreadable script, an output error. Failed commands are in the report
/// instead.
pub fn run(options: &RunOptions, interrupt: Interrupt) -> anyhow::Result<Report> {
    let config = ShellConfig { file: options.config_file.clone(), ..options.config.clone() };
    config.check()?;
    let url = config.checked_venue()?;
    let key = config.key(options.config_file.as_deref(), options.key_file.as_deref())?;
    let script = match &options.source {
        Source::Text(text) => Some(text.clone()),
        Source::Script(path) if path.as_os_str() != "-" => Some(read_script(path)?),
        Source::Script(_) | Source::Person => None,
    };
    let link = Link::open(config, url, key.clone())?;
    let mut shell = Shell::new(link, key, options.is_dry_run, interrupt);
    shell.key_place = options.config.key_place(options.config_file.as_deref(), options.key_file.as_deref());
    shell.link().log(options.log.clone());
    (shell.is_silent, shell.is_reported) = (options.is_silent, options.is_reported);
    let keeper = Keeper::start(shell.shared_link())?;
    let mut runner = Runner { options, commands: Vec::new(), has_failed: false, is_person: false };
    let result = match script {
        Some(text) => runner.run_all(&mut shell, &text).map(drop),
        None if options.source == Source::Person && std::io::stdin().is_terminal() => {
            runner.is_person = true;
            interactive::run(&mut shell, &mut runner, options)
        }
        None => runner.run_lines(&mut shell, std::io::stdin()),
    };
    if let Some(word) = shell.parting_word() {
        print_stderr(format_args!("tickpath: {word}"));
    }
    keeper.stop();
    let mut link = shell.link();
    link.disconnect();
    let ended = match (shell.interrupt.is_raised(), runner.has_failed) {
        (true, _) => Ended::Interrupted,
        (false, true) if !runner.is_person => Ended::Failed,
        _ => Ended::Done,
    };
    let (url, stopwatch) = (link.url().to_string(), link.watches.figures().collect());
    while let Some(line) = link.next_log() {
        print_stderr(visible(&line));
    }
    let ended = match result {
        // Completed commands are reported anyway.
        Err(error) if options.is_reported => {
            print_stderr(format_args!("tickpath: {error:#}"));
            Ended::Failed
        }
        result => result.map(|()| ended)?,
    };
    Ok(Report { url, dry_run: options.is_dry_run, commands: runner.commands, stopwatch, ended })
}

fn read_script(path: &std::path::Path) -> anyhow::Result<String> {
    tickpath_config::read_text(path, tickpath_config::TEXT_LEN_MAX)
        .with_context(|| format!("cannot read the script {}", path.display()))
}

/// Upper bound of a script's line, in bytes; longer input is not a script.
const LINE_MAX: usize = 64 << 10;

/// The outcome of a command, or of a line of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Continue with the next command.
    Next,
    /// A command failed, or Ctrl-C: the rest of the line is skipped.
    Failed,
    /// End the shell.
    End,
}

/// Executes commands in order, prints their results, and records them.
pub(crate) struct Runner<'o> {
    options: &'o RunOptions,
    commands: Vec<CommandReport>,
    has_failed: bool,
    is_person: bool,
}

/// Upper bound of recorded commands; a person at a terminal may type more.
const REPORTED_MAX: usize = 100_000;

impl Runner<'_> {
    /// Executes the commands of a text, up to the first failure unless the shell keeps going.
    pub(crate) fn run_all(&mut self, shell: &mut Shell, text: &str) -> anyhow::Result<Flow> {
        for command in commands(text) {
            match self.run_one(shell, &command)? {
                Flow::End => return Ok(Flow::End),
                Flow::Failed if !self.options.keeps_going => return Ok(Flow::Failed),
                _ => {}
            }
            if shell.interrupt.is_raised() {
                return Ok(Flow::Failed);
            }
        }
        Ok(Flow::Next)
    }

    /// Executes lines as they arrive, for example from a pipe, and services the link meanwhile.
    fn run_lines(&mut self, shell: &mut Shell, input: impl AsFd) -> anyhow::Result<()> {
        let mut text = Vec::new();
        let mut has_ended = false;
        while !has_ended && !shell.interrupt.is_raised() {
            shell.link().poll();
            self.tell_notes(shell);
            if !shell.link().wait_with(input.as_fd(), LOOK) {
                continue;
            }
            let mut buffer = [0; 4096];
            let len = match nix::unistd::read(&input, &mut buffer) {
                Ok(len) => len,
                Err(Errno::EINTR | Errno::EAGAIN) => continue,
                Err(error) => return Err(error).context("cannot read the script on standard input"),
            };
            has_ended = len == 0;
            text.extend_from_slice(&buffer[..len]);
            let whole = match has_ended {
                true => text.len(),
                false => text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            };
            let lines: Vec<u8> = text.drain(..whole).collect();
            anyhow::ensure!(text.len() <= LINE_MAX, "a line of the script is longer than {LINE_MAX} bytes");
            let lines =
                std::str::from_utf8(&lines).context("the script on standard input is no UTF-8 text")?;
            if self.run_all(shell, lines)? != Flow::Next {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Executes one command.
    pub(crate) fn run_one(&mut self, shell: &mut Shell, command: &str) -> anyhow::Result<Flow> {
        let start = Instant::now();
        let result = shell.execute(command);
        let total_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.tell_notes(shell);
        let (flow, printed) = match &result {
            Ok(done) => (if done.is_end { Flow::End } else { Flow::Next }, self.print(done)),
            Err(failure) => {
                self.has_failed = true;
                print_stderr(format_args!(
                    "tickpath: {}: {}",
                    short(command),
                    one_line(&failure.to_string())
                ));
                (Flow::Failed, Ok(()))
            }
        };
        if self.options.is_reported && self.commands.len() < REPORTED_MAX {
            self.commands.push(report(command, result, total_ns));
        }
        printed?;
        Ok(flow)
    }

    /// Whether the shell continues after a failure.
    pub(crate) fn keeps_going(&self) -> bool {
        self.options.keeps_going
    }

    fn tell_notes(&self, shell: &Shell) {
        // Printed without locking the link, like all output.
        let mut lines: Vec<String> = Vec::new();
        let mut link = shell.link();
        lines.extend(std::iter::from_fn(|| Some(visible(&link.next_log()?))));
        lines.extend(std::iter::from_fn(|| Some(format!("tickpath: {}", one_line(&link.next_note()?)))));
        drop(link);
        lines.iter().for_each(print_stderr);
    }

    fn print(&self, done: &Done) -> anyhow::Result<()> {
        if self.options.is_silent {
            return Ok(());
        }
        if !done.text.is_empty() {
            print_stdout(visible(&done.text))?;
        }
        if let (Some((send, total)), true) = (done.times, self.is_person) {
            print_stdout(format_args!(
                "({} to the socket, {} to the answer)",
                Readable(send),
                Readable(total)
            ))?;
        }
        Ok(())
    }
}

fn report(command: &str, result: Result<Done, Failure>, total_ns: u64) -> CommandReport {
    let mut report = CommandReport {
        command: command.to_owned(),
        status: "done",
        error: None,
        code: None,
        result: None,
        note: None,
        send_ns: None,
        answer_ns: None,
        total_ns,
    };
    match result {
        Ok(done) => {
            report.note = done.note;
            report.result = done.json.and_then(|json| RawValue::from_string(json).ok());
            if let Some((send, total)) = done.times {
                (report.send_ns, report.answer_ns) = (Some(send.0), Some(total.0));
            }
        }
        Err(failure) => {
            report.status = failure.kind();
            report.error = Some(failure.to_string());
            if let Failure::Refused { code, .. } = failure {
                report.code = Some(code);
            }
        }
    }
    report
}

/// The command's first words, for error messages in a log.
fn short(command: &str) -> String {
    command.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn one_line(text: &str) -> String {
    visible(&text.replace('\n', "; "))
}

/// Replaces control characters, which terminals obey, in third-party names, labels and messages.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|each| if each.is_control() && each != '\n' { '\u{fffd}' } else { each }).collect()
}
