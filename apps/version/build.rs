//! Determines the commit of the build, if there is one.

use std::path::Path;
use std::process::Command;

/// Git pathspecs of the programs' sources. A change of another file does not make the build `-dirty`.
const SOURCES: [&str; 11] = [
    ":(top,glob)core/*/src/**",
    ":(top,glob)protocols/*/src/**",
    ":(top,glob)io/*/src/**",
    ":(top,glob)apps/*/src/**",
    ":(top,glob)apps/*/data/**",
    ":(top,glob)apps/*/build.rs",
    ":(top,glob)configs/*",
    ":(top,glob)**/Cargo.toml",
    ":(top)Cargo.lock",
    ":(top)rust-toolchain.toml",
    ":(top).cargo",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Git writes these files at each commit, checkout and reset.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let of_sources = |args: &[&str]| git(&[args, &["--"], &SOURCES].concat()).unwrap_or_default();
    // An edit of a source recompiles the programs anyway. Cargo rebuilds at every build if a path is missing.
    for path in of_sources(&["ls-files"]).lines().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    // Do not lock the index: a concurrent commit may need the lock.
    let changed = of_sources(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]);
    // `lab bench --record` refuses a commit with this suffix.
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=TICKPATH_COMMIT={commit}{dirty}");
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let format = format!("--format=(%h{dirty} %cs)");
    let commit = git(&["log", "-1", &format]).map_or_else(String::new, |commit| format!(" {commit}"));
    println!("cargo::rustc-env=TICKPATH_VERSION={version}{commit}");
}

/// Returns the trimmed output of git; `None` without git or a repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
