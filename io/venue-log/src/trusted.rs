//! The file of trusted logins in the journal's folder.

use std::io;

use tickpath_admin::TrustedLogins;
use tickpath_admission::{TRUSTED_TEXT_LEN_MAX, TrustedPeers};
use tickpath_journal::{Storage, StorageFile};
use tickpath_venue::UserRegistry;

/// Name of the file of trusted logins, in the journal's folder.
const FILE: &str = "trusted-logins";
/// Name of that file while it is written.
const UNFINISHED: &str = "trusted-logins.unfinished";

/// Reads the file of trusted logins. Also returns a notice if the file is damaged, or if it is missing
/// although `is_expected`.
pub fn open_trusted_logins<S: Storage>(
    storage: S,
    users: UserRegistry,
    is_expected: bool,
) -> (TrustedLogins, Option<String>) {
    let mut known = TrustedPeers::new(users.capacity());
    let state = TrustedLogins::load(&mut known, read(&storage), is_expected, |name| users.find(name));
    let notice = state.map(|state| {
        format!(
            "{FILE} in the journal's folder {state}: until users log in again, floods of wrong passwords \
             may delay them"
        )
    });
    let write = move |known: &TrustedPeers<_>| {
        let text = known.text(|user| users.get(user).map(|user| user.name()));
        storage.replace(UNFINISHED, FILE, text.as_bytes())
    };
    (TrustedLogins::new(known, write), notice)
}

fn read<S: Storage>(storage: &S) -> io::Result<Option<Vec<u8>>> {
    if !storage.has(FILE)? {
        return Ok(None);
    }
    // Read one byte more than the maximum, to detect a file that is too long.
    let mut text = vec![0; TRUSTED_TEXT_LEN_MAX + 1];
    let len = storage.open(FILE)?.read_start(&mut text)?;
    text.truncate(len);
    Ok(Some(text))
}
