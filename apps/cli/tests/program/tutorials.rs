//! Runs the commands of the tutorials: each page from its beginning to its end, as a reader would.
//!
//! A block fenced as `console` has commands after `$ `, each followed by its expected output. In the
//! output, a line `...` matches any number of lines, and a word with a digit matches any word. Commands of a
//! `console background` block run until a `console stop` block or the end of the page, when they are
//! interrupted, the latest first. Any other block with a path after its language is the content of that file.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use tickpath_net::free_multicast_group;
use tickpath_test_support::Running;

use crate::support::repository;

#[test]
fn first_trade() {
    run_page("first-trade");
}

#[test]
fn recorded_day() {
    run_page("recorded-day");
}

#[test]
fn latency_report() {
    run_page("latency-report");
}

#[test]
fn class_exchange() {
    run_page("class-exchange");
}

#[test]
fn own_strategy() {
    // Keep the folder between runs, so that cargo reuses the compiled crates.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-strategy");
    let project = folder.join("tickpath");
    let _ = std::fs::remove_dir_all(&project);
    std::fs::create_dir_all(&project).unwrap();
    for name in ["Cargo.toml", "apps", "core", "io", "protocols", "test-support"] {
        symlink(repository().join(name), project.join(name)).unwrap();
    }
    let addresses = copy_configs(&project);
    // Use this repository's lock file: the package versions in it are already on this machine.
    std::fs::create_dir_all(folder.join("my-strategy")).unwrap();
    std::fs::copy(repository().join("Cargo.lock"), folder.join("my-strategy/Cargo.lock")).unwrap();
    run_steps("own-strategy", &folder, &addresses);
}

/// A command of a page and its expected output; or a file to write, with its path as `command` and its lines
/// as `output`.
struct Step {
    kind: String,
    command: String,
    output: Vec<String>,
}

fn run_page(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let addresses = copy_configs(folder.path());
    run_steps(name, folder.path(), &addresses);
}

fn run_steps(name: &str, folder: &Path, addresses: &BTreeMap<String, String>) {
    let page = std::fs::read_to_string(repository().join(format!("docs/tutorials/{name}.md"))).unwrap();
    let mut background: Vec<Running> = Vec::new();
    let steps = steps(&page);
    assert!(!steps.is_empty());
    for step in steps {
        if step.kind == FILE {
            let path = folder.join(&step.command);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, step.output.join("\n")).unwrap();
            continue;
        }
        let mut command = bash(folder, &moved(&step.command, addresses));
        if step.kind == "stop" {
            background.drain(..).rev().for_each(stop);
        }
        if step.kind == "background" {
            let mut running = Running::spawn(command);
            let expected = step.output.iter().filter(|line| *line != "...");
            expected
                .for_each(|line| running.wait_for_line(line, |actual| is_line(line, actual).then_some(())));
            background.push(running);
            continue;
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{name}: $ {}\n{text}", step.command);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let expected: Vec<&str> = step.output.iter().map(String::as_str).collect();
        assert!(
            is_output(&expected, &lines),
            "{name}: $ {}\n{text}\nis not\n{}",
            step.command,
            expected.join("\n")
        );
    }
    background.drain(..).rev().for_each(stop);
}

pub fn stop(running: Running) {
    running.interrupt();
    let printed = running.join();
    assert_eq!(printed.code, Some(0), "{}\n{}", printed.out, printed.err);
}

/// Copies the sample configurations, with free addresses. Returns the free addresses, keyed by
/// those that they replace.
pub fn copy_configs(folder: &Path) -> BTreeMap<String, String> {
    std::fs::create_dir(folder.join("configs")).unwrap();
    let mut addresses = BTreeMap::new();
    for entry in std::fs::read_dir(repository().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for word in text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')) {
            if word.parse::<std::net::SocketAddrV4>().is_ok() && !addresses.contains_key(word) {
                addresses.insert(word.to_owned(), free_address(word));
            }
        }
        std::fs::write(folder.join("configs").join(path.file_name().unwrap()), moved(&text, &addresses))
            .unwrap();
    }
    addresses
}

fn free_address(like: &str) -> String {
    match like.starts_with("239.") {
        true => free_multicast_group().unwrap().to_string(),
        false => TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string(),
    }
}

pub fn moved(text: &str, addresses: &BTreeMap<String, String>) -> String {
    addresses.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

pub fn bash(folder: &Path, command: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_tickpath")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{0}:{0}/examples:{path}", programs.display());
    // The last command replaces the shell, so that a signal reaches it.
    let (before, last) = command.rsplit_once("&& ").unwrap_or(("", command));
    let and = if before.is_empty() { "" } else { "&& " };
    let exec = if command.contains([';', '|', '>']) { "" } else { "exec " };
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("{before}{and}{exec}{last}")]).current_dir(folder).stdin(Stdio::null());
    // Compile release builds without optimisation, to save time.
    bash.env("PATH", path).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_NET_OFFLINE", "true");
    bash
}

/// [`Step::kind`] of a step that writes a file instead of running a command.
const FILE: &str = "file";

fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut kind) = (Vec::<Step>::new(), None);
    for line in page.lines() {
        if let Some(info) = line.strip_prefix("```") {
            kind = info.strip_prefix("console").map(|kind| kind.trim().to_owned());
            if let (None, Some((_, path))) = (&kind, info.split_once(' ')) {
                kind = Some(FILE.to_owned());
                steps.push(Step { kind: FILE.to_owned(), command: path.to_owned(), output: Vec::new() });
            }
        } else if kind.as_deref() == Some(FILE) {
            steps.last_mut().expect("the file's step").output.push(line.to_owned());
        } else if let Some(kind) = &kind {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    steps.push(Step { kind: kind.clone(), command: command.to_owned(), output: Vec::new() });
                }
                None => steps.last_mut().expect("a block begins with a command").output.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Returns whether `lines` match the `expected` ones, in which `...` matches any number of lines.
fn is_output(expected: &[&str], lines: &[&str]) -> bool {
    match (expected, lines) {
        ([], lines) => lines.is_empty(),
        (["...", rest @ ..], _) => (0..=lines.len()).any(|skipped| is_output(rest, &lines[skipped..])),
        ([first, rest @ ..], [line, others @ ..]) => is_line(first, line) && is_output(rest, others),
        (_, []) => false,
    }
}

fn is_line(expected: &str, line: &str) -> bool {
    let (expected, found): (Vec<&str>, Vec<&str>) =
        (expected.split_whitespace().collect(), line.split_whitespace().collect());
    let is_word =
        |(word, other): (&&str, &&str)| word == other || word.contains(|c: char| c.is_ascii_digit());
    expected.len() == found.len() && expected.iter().zip(&found).all(is_word)
}

#[test]
fn expected_output_may_have_gaps_and_varying_words() {
    assert!(is_output(&["...", "a 1 b", "..."], &["x", "a 27 b", "y", "z"]));
    assert!(is_output(&["a", "..."], &["a"]) && is_output(&[], &[]));
    assert!(
        !is_output(&["a 1 b"], &["a 27 c"]) && !is_output(&["a"], &["a", "b"]) && !is_output(&["a"], &[])
    );
}
