//! The session that ends when another begins in its folder.

use std::io;
use std::path::{Path, PathBuf};

use tickpath_journal::{Folder, OpenError, Storage, session_of};

/// Moves the log and the snapshots of the session in `folder` into a folder below it that has the session's name, so
/// that the next one begins anew. Returns that folder; `None` when there was no session.
///
/// # Errors
/// [`OpenError`] when a venue runs on the folder, the log is damaged, or the system refuses. What was moved already is
/// moved by the next try.
pub fn archive(folder: &Path) -> Result<Option<PathBuf>, OpenError> {
    let storage = Folder::new(folder).map_err(error(folder))?;
    let _lock = storage.lock().map_err(error(folder))?.ok_or(OpenError::InUse)?;
    let Some(session) = session_of(&storage)? else {
        return Ok(None);
    };
    let archive = folder.join(session.to_string());
    std::fs::create_dir_all(&archive).map_err(error(&archive))?;
    let names = storage.list().map_err(error(folder))?;
    let (mut segments, others): (Vec<_>, Vec<_>) = names
        .into_iter()
        .filter(|name| {
            name.ends_with(".journal") || name.starts_with("snapshot") || name.ends_with(".segment")
        })
        .partition(|name| name.ends_with(".journal"));
    // The first segment goes last: until then the session can be told by it.
    segments.sort_unstable_by(|a, b| b.cmp(a));
    for name in others.iter().chain(&segments) {
        std::fs::rename(folder.join(name), archive.join(name)).map_err(error(&archive))?;
    }
    storage.sync_names().map_err(error(folder))?;
    Ok(Some(archive))
}

fn error(path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let file = path.display().to_string();
    move |source| OpenError::Io { file, source }
}
