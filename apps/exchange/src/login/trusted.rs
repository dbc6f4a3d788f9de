//! The pairs of user and address whose password was right, in a file beside the journal.
//!
//! Duty cycles hand over what is new by rings; the file is written on another thread.

use std::io;
use std::net::Ipv4Addr;

use tickpath_admission::{TRUSTED_TEXT_LEN_MAX, TrustedPeers};
use tickpath_journal::{Storage, StorageFile};
use tickpath_lockfree::spsc;
use tickpath_venue::UserRegistry;

/// Name of the file in the journal's folder.
const FILE: &str = "trusted-logins";
/// The same while it is being written.
const UNFINISHED: &str = "trusted-logins.unfinished";
/// New pairs that wait to be written; further ones are trusted until the venue stops.
const RING_CAPACITY: usize = 1 << 10;

/// A user's place in the roster, and the address where its password was right.
pub(crate) type TrustedLogin = (u32, Ipv4Addr);

/// Writes the file. None of its failures costs more than trust: a password is then checked as from a new address.
pub(crate) struct TrustedLogins<S> {
    storage: S,
    users: UserRegistry,
    known: TrustedPeers<Ipv4Addr>,
    new: Vec<spsc::Consumer<TrustedLogin>>,
    is_written: bool,
}

impl<S: Storage> TrustedLogins<S> {
    /// Reads the file. Where it is damaged, or missing though there `should_be` one, a line says so.
    pub(crate) fn open(
        storage: S,
        users: UserRegistry,
        should_be: bool,
    ) -> (TrustedLogins<S>, Option<String>) {
        let mut known = TrustedPeers::new(users.room());
        let state = match read(&storage) {
            Ok(None) if should_be => Some("is missing".to_owned()),
            Ok(None) => None,
            Ok(Some(text)) => {
                let taken = known.take_text(&text, |name| users.find(name));
                taken.err().map(|error| format!("is {error}"))
            }
            Err(error) => Some(format!("cannot be read: {error}")),
        };
        let notice = state.map(|state| {
            format!(
                "{FILE} in the journal's folder {state}: until users log in again, floods of wrong passwords \
                 may delay them"
            )
        });
        // A new journal has an empty file, so that a missing one is noticed.
        (TrustedLogins { storage, users, known, new: Vec::new(), is_written: false }, notice)
    }

    /// The pairs so far.
    pub(crate) fn known(&self) -> TrustedPeers<Ipv4Addr> {
        self.known.clone()
    }

    /// Ring for the new pairs of an endpoint.
    pub(crate) fn sink(&mut self) -> spsc::Producer<TrustedLogin> {
        let (sink, new) = spsc::channel(RING_CAPACITY);
        self.new.push(new);
        sink
    }

    /// Takes what is new, and writes the file where it lacks something; returns how many pairs were new.
    ///
    /// # Errors
    /// The error of the system; the next call tries again.
    pub(crate) fn run_once(&mut self) -> io::Result<usize> {
        let mut count = 0;
        for new in &mut self.new {
            while let Some((user, address)) = new.try_pop() {
                self.known.record(user as usize, address);
                count += 1;
            }
        }
        self.is_written &= !self.known.take_changed();
        if !self.is_written {
            let text = self.known.text(|user| self.users.get(user).map(|user| user.name()));
            write(&self.storage, &text)?;
            self.is_written = true;
        }
        Ok(count)
    }
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
