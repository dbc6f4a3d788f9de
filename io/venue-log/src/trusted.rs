//! The file of trusted logins, beside the journal.

use std::io;

use tickpath_admin::TrustedLogins;
use tickpath_admission::{TRUSTED_TEXT_LEN_MAX, TrustedPeers};
use tickpath_journal::{Storage, StorageFile};
use tickpath_venue::UserRegistry;

/// Name of the file in the journal's folder.
const FILE: &str = "trusted-logins";
/// The same while it is being written.
const UNFINISHED: &str = "trusted-logins.unfinished";

/// Reads the file. Where it is damaged, or missing though there `should_be` one, a line says so.
pub fn open_trusted_logins<S: Storage>(
    storage: S,
    users: UserRegistry,
    should_be: bool,
) -> (TrustedLogins, Option<String>) {
    let mut known = TrustedPeers::new(users.room());
    let state = TrustedLogins::recall(&mut known, read(&storage), should_be, |name| users.find(name));
    let notice = state.map(|state| {
        format!(
            "{FILE} in the journal's folder {state}: until users log in again, floods of wrong passwords \
             may delay them"
        )
    });
    let write = move |known: &TrustedPeers<_>| {
        write(&storage, &known.text(|user| users.get(user).map(|user| user.name())))
    };
    (TrustedLogins::new(known, write), notice)
}

fn read<S: Storage>(storage: &S) -> io::Result<Option<Vec<u8>>> {
    if !storage.list()?.iter().any(|name| name == FILE) {
        return Ok(None);
    }
    // One byte more than it may have, so that a longer one is damaged.
    let mut text = vec![0; TRUSTED_TEXT_LEN_MAX + 1];
    let (file, mut len) = (storage.open(FILE)?, 0);
    while len < text.len() {
        match file.read_at(&mut text[len..], len as u64)? {
            0 => break,
            more => len += more,
        }
    }
    text.truncate(len);
    Ok(Some(text))
}

/// At any time the file has the old lines or the new ones.
fn write<S: Storage>(storage: &S, text: &str) -> io::Result<()> {
    let mut file = storage.create(UNFINISHED)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.sync()?;
    storage.rename(UNFINISHED, FILE)?;
    storage.sync_names()
}
