//! The process's limit of open files.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files, including sockets, to `requested`, or as far as permitted. Returns the new
/// limit, which is never lower than before.
pub fn raise_open_files(requested: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= requested {
        return Ok(soft);
    }
    // A privileged process may exceed the hard limit.
    if requested > hard && setrlimit(Resource::RLIMIT_NOFILE, requested, requested).is_ok() {
        return Ok(requested);
    }
    let granted = requested.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, granted, hard)?;
    Ok(granted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_never_lowered() {
        let before = raise_open_files(0).unwrap();
        let after = raise_open_files(before + 1).unwrap();
        assert!(after == before || after == before + 1);
        assert_eq!(raise_open_files(0).unwrap(), after);
    }
}
