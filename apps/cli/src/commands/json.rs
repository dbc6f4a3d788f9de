//! `--json FILE`.

use std::path::Path;

use anyhow::Context;
use tickpath_config::say;

/// Writes JSON to a file, or to standard output for `-`. A file is whole or not there: it is written
/// beside its place first.
pub fn write(path: &Path, json: &str) -> anyhow::Result<()> {
    let mut text = json.trim_end().to_owned();
    if path.as_os_str() == "-" {
        say(text);
        return Ok(());
    }
    text.push('\n');
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
