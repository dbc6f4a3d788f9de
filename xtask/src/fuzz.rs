//! Runs the fuzz targets under libFuzzer.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::target_dir;

/// Memory limit of a target in MB, high because recordings are read into books.
const MEMORY_MB_MAX: u32 = 4_096;

/// Returns the missing prerequisite and its remedy, if any. Installs `cargo-fuzz` if only that is missing.
pub fn missing_tool(root: &Path) -> Option<&'static str> {
    if !Command::new("cargo +nightly --version").succeeds_quietly(root) {
        return Some(
            "libFuzzer needs a nightly compiler; install it with: rustup toolchain install nightly --profile minimal",
        );
    }
    let probe = Command::new("cargo fuzz --version");
    let install = Command::new("cargo install cargo-fuzz --locked");
    let is_there =
        probe.succeeds_quietly(root) || install.succeeds_quietly(root) && probe.succeeds_quietly(root);
    (!is_there).then_some("cargo-fuzz is missing; install it with: cargo install cargo-fuzz")
}

/// Returns the command that writes the initial inputs, then one command per target that runs it.
pub fn commands(root: &Path, seconds: u64) -> Result<Vec<Command>> {
    let manifest = fs::read_to_string(root.join("fuzz/targets/Cargo.toml"))
        .context("cannot read fuzz/targets/Cargo.toml")?;
    let targets = targets(&manifest);
    ensure!(!targets.is_empty(), "fuzz/targets/Cargo.toml names no [[bin]]");
    let target_dir = target_dir().join("fuzz").display().to_string();
    let seeds =
        Command::new("cargo run --package tickpath-fuzz --example write-seeds -- fuzz/targets/corpus");
    let run = |name: &&str| {
        Command::new(&format!(
            "cargo +nightly fuzz run --fuzz-dir fuzz/targets {name} -- -max_total_time={seconds} -rss_limit_mb={MEMORY_MB_MAX} \
             -verbosity=0 -print_funcs=0"
        ))
        .env("CARGO_TARGET_DIR", &target_dir)
    };
    Ok(std::iter::once(seeds).chain(targets.iter().map(run)).collect())
}

/// Names of the programs in a manifest, in the manifest's order.
fn targets(manifest: &str) -> Vec<&str> {
    let mut lines = manifest.lines().map(str::trim);
    let mut names = Vec::new();
    while lines.any(|line| line == "[[bin]]") {
        let name = lines.by_ref().find_map(|line| line.strip_prefix("name = "));
        names.extend(name.map(|name| name.trim_matches('"')));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn every_target_has_a_run() {
        let manifest =
            "[package]\nname = \"a\"\n[[bin]]\nname = \"itch\"\npath = \"x\"\n\n[[bin]]\nname = \"mold\"\n";
        assert_eq!(targets(manifest), ["itch", "mold"]);
        let count = fs::read_dir(root().join("fuzz/targets/fuzz_targets")).unwrap().count();
        assert_eq!(commands(root(), 60).unwrap().len(), 1 + count);
    }
}
