//! The option `--json FILE`.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tickpath_config::{OutputFile, print_stdout};

use super::outputs;

/// Rejects a path that cannot be written. Called before the work, so that its result is not lost.
pub fn check(path: Option<&Path>) -> anyhow::Result<()> {
    match path {
        Some(path) if path.as_os_str() != "-" => outputs::check(&[("--json", path)], &[]),
        _ => Ok(()),
    }
}

/// Writes JSON to a file, completely or not at all, or to standard output for `-`.
pub fn write(path: &Path, json: &str) -> anyhow::Result<()> {
    let mut text = json.trim_end().to_owned();
    if path.as_os_str() == "-" {
        return Ok(print_stdout(text)?);
    }
    text.push('\n');
    OutputFile::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.finish()))
        .with_context(|| format!("cannot write {}", path.display()))
}
