//! The Python programs: in a separate environment, created once per run of the tests.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the interpreter with the packages of `tests/interop/python/requirements.txt`; `None`, with a
/// message, without Python.
///
/// # Panics
/// If the packages cannot be installed, with a message that says what to do.
pub fn interpreter() -> Option<&'static Path> {
    static INTERPRETER: OnceLock<Option<PathBuf>> = OnceLock::new();
    INTERPRETER.get_or_init(install).as_deref()
}

fn install() -> Option<PathBuf> {
    let started = Command::new("python3").arg("--version").stdin(Stdio::null()).output();
    if matches!(started, Err(error) if error.kind() == ErrorKind::NotFound) {
        let _ = writeln!(
            std::io::stderr(),
            "tests/interop is skipped: there is no 'python3': install Python of version 3.11 or later with venv"
        );
        return None;
    }
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interop-python");
    std::fs::create_dir_all(&target).unwrap();
    // Two test programs with the same target folder must not build into it at once.
    let lock = File::create(target.join("lock")).unwrap();
    lock.lock().unwrap();
    let python = target.join("venv/bin/python");
    let requirements = std::fs::read_to_string(folder().join("requirements.txt")).unwrap();
    let done = target.join("installed.txt");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == requirements) {
        return Some(python);
    }
    let make = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "the packages of tests/interop/python/requirements.txt cannot be installed: let pip reach its index once; later \
             runs need no network\n{text}"
        );
    };
    make(Command::new("python3").args(["-m", "venv"]).arg(target.join("venv")));
    make(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(folder().join("requirements.txt")),
    );
    std::fs::write(done, requirements).unwrap();
    Some(python)
}

/// Runs a program of `tests/interop/python`.
pub fn command(python: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.arg("-B").arg(folder().join(program)).args(args).stdin(Stdio::null());
    command
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/python")
}
