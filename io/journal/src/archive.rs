//! Archiving of a session, before another one begins in the same folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::{ACKNOWLEDGED_FILE, Folder, GENERATION_FILE, OpenError, SessionName, Storage, session_of};

/// Error when archiving the session of a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The log cannot be opened or moved.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The current or an archived session has this name. Clients tell sessions apart by name: choose another
    /// name for the next session, or none.
    #[error(
        "an earlier session has the name {session} as well: remove the session's name from the configuration, or choose \
         a name that no session had"
    )]
    SameName {
        /// The name that both sessions have.
        session: SessionName,
    },
    /// The archive holds this file already, from another session of the same name: move that folder away.
    #[error("{file} exists already, from another session of this name: move its folder away")]
    Exists {
        /// Name of the file.
        file: String,
    },
}

/// Moves the log and the snapshots of the session in `folder` into a subfolder with the session's name, so
/// that the next session, named `next` if given, starts empty. Returns the subfolder; `None` when there was
/// no session.
///
/// # Errors
/// [`ArchiveError`] when a venue runs on the folder, the log is damaged, this or an archived session has the
/// name `next`, or the system refuses. A retry continues with the files not yet moved.
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
    // The segments move from last to first, then the generation file, which means nothing without them. The
    // acknowledged file, which names the session, moves last: until then, a start reports a missing log.
    segments.sort_unstable_by(|a, b| b.cmp(a));
    let exists = |name: &&str| folder.join(name).exists();
    segments.extend(
        [GENERATION_FILE, ACKNOWLEDGED_FILE].iter().filter(|name| exists(name)).map(ToString::to_string),
    );
    let files = || others.iter().chain(&segments);
    if let Some(existing) = files().map(|name| archive.join(name)).find(|file| file.exists()) {
        return Err(ArchiveError::Exists { file: existing.display().to_string() });
    }
    for name in files() {
        std::fs::rename(folder.join(name), archive.join(name)).map_err(error(&archive))?;
    }
    // The archive is synced first, so that each file has a name in one of the folders after a power loss.
    kept.sync_names().map_err(error(&archive))?;
    storage.sync_names().map_err(error(folder))?;
    Ok(Some(archive))
}

fn error(path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let file = path.display().to_string();
    move |source| OpenError::Io { file, source }
}
