//! The session that ends when another begins in its folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::{ACKNOWLEDGED_FILE, Folder, GENERATION_FILE, OpenError, SessionName, Storage, session_of};

/// The session of a folder was not put aside.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// As it says.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// Give the next session another name, or none: clients know by it whether their numbers still count.
    #[error(
        "an earlier session is called {session} as well: leave the session's name out of the configuration, or give the \
         next one a name that none had before"
    )]
    SameName {
        /// The name.
        session: SessionName,
    },
    /// Move that file away: it is of another session of this name, and would be lost.
    #[error("{file} is there already, of another session of this name: move its folder away")]
    Exists {
        /// The file.
        file: String,
    },
}

/// Moves the log and the snapshots of the session in `folder` into a folder below it that has the session's name, so
/// that the next one, which may be called `next`, begins anew. Returns that folder; `None` when there was no session.
///
/// # Errors
/// [`ArchiveError`] when a venue runs on the folder, the log is damaged, the next session cannot be told from this one or
/// from one that is kept there, or the system refuses. What was moved already is not moved again by the next try.
pub fn archive(folder: &Path, next: Option<SessionName>) -> Result<Option<PathBuf>, ArchiveError> {
    let storage = Folder::new(folder).map_err(error(folder))?;
    let _lock = storage.lock().map_err(error(folder))?.ok_or(OpenError::InUse)?;
    let Some(session) = session_of(&storage)? else {
        return Ok(None);
    };
    let is_known = |next: &SessionName| *next == session || folder.join(next.to_string()).exists();
    if let Some(session) = next.filter(is_known) {
        return Err(ArchiveError::SameName { session });
    }
    let archive = folder.join(session.to_string());
    let kept = Folder::new(&archive).map_err(error(&archive))?;
    let names = storage.list().map_err(error(folder))?;
    let (mut segments, others): (Vec<_>, Vec<_>) = names
        .into_iter()
        .filter(|name| {
            name.ends_with(".journal") || name.starts_with("snapshot") || name.ends_with(".segment")
        })
        .partition(|name| name.ends_with(".journal"));
    // The first segment goes after the others, then its generation, which is of no meaning without it, and last the file
    // that names the session too: until it is gone, a start says that the log is missing.
    segments.sort_unstable_by(|a, b| b.cmp(a));
    let is_there = |name: &&str| folder.join(name).exists();
    segments.extend(
        [GENERATION_FILE, ACKNOWLEDGED_FILE].iter().filter(|name| is_there(name)).map(ToString::to_string),
    );
    let files = || others.iter().chain(&segments);
    if let Some(there) = files().map(|name| archive.join(name)).find(|file| file.exists()) {
        return Err(ArchiveError::Exists { file: there.display().to_string() });
    }
    for name in files() {
        std::fs::rename(folder.join(name), archive.join(name)).map_err(error(&archive))?;
    }
    // In this order: whatever a loss of power takes back, each file has a name.
    kept.sync_names().map_err(error(&archive))?;
    storage.sync_names().map_err(error(folder))?;
    Ok(Some(archive))
}

fn error(path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let file = path.display().to_string();
    move |source| OpenError::Io { file, source }
}
