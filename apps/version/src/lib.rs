//! Version and commit of the build.
//!
//! Both change with each commit and with the first edit after it. They are here and never inlined, so that a
//! change recompiles only this crate.

/// The version, and the commit and its date if known: `0.1.0 (0123abc 2026-01-31)`. The commit ends in
/// `-dirty` if sources differed from it.
#[inline(never)]
#[must_use]
pub fn version() -> &'static str {
    env!("TICKPATH_VERSION")
}

/// The full hash of the commit, with `-dirty` where sources differed from it; `None` outside a repository.
#[inline(never)]
#[must_use]
pub fn commit() -> Option<&'static str> {
    option_env!("TICKPATH_COMMIT")
}
