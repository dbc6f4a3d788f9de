//! Version and commit of the build.
//!
//! Both strings change with each commit and with the first edit after it. They have a separate crate and are
//! never inlined, so that a change recompiles only this crate.

/// Returns the version, with the commit and its date if known: `0.1.0 (0123abc 2026-01-31)`. The commit ends
/// in `-dirty` if sources differed from it.
#[inline(never)]
#[must_use]
pub fn version() -> &'static str {
    env!("TICKPATH_VERSION")
}

/// Returns the commit's full hash, with `-dirty` if sources differed from it; `None` outside a repository.
#[inline(never)]
#[must_use]
pub fn commit() -> Option<&'static str> {
    option_env!("TICKPATH_COMMIT")
}
