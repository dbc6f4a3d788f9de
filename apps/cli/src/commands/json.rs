//! `--json FILE`.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Writes a value to a file, or to standard output for `-`. A file is whole or not there: it is written
/// beside its place first.
pub fn write(path: &Path, value: &serde_json::Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    if path.as_os_str() == "-" {
        return Ok(std::io::stdout().write_all(text.as_bytes())?);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
