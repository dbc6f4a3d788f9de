//! Recorded market data that is not part of the repository.

use std::env;
use std::path::{Path, PathBuf};

/// Returns a file or folder of recorded market data: below `TICKPATH_DATA`, or in `shared/data` beside the
/// workspace. `None`, with a printed line, if it is absent.
#[must_use]
pub fn recorded(path: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let found = env::var_os("TICKPATH_DATA").map_or_else(beside, PathBuf::from).join(path);
    if !found.exists() {
        eprintln!("skipped: no recorded data at {}", found.display());
        return None;
    }
    Some(found)
}
