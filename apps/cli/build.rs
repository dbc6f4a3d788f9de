//! Tells the programs which commit they are built from, where there is one.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Written at each commit, checkout and reset.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=TICKPATH_COMMIT={commit}");
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit =
        git(&["log", "-1", "--format=%h %cs"]).map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=TICKPATH_VERSION={version}{commit}");
}

/// The trimmed output of git; `None` where there is no git or no repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
