//! The file of the addresses where each key's secret was right. Without it only trust is lost.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tickpath_admin::{TrustedLogin, TrustedLogins};
use tickpath_admission::{TRUSTED_TEXT_LEN_MAX, TrustedPeers};
use tickpath_agent::BackgroundThread;
use tickpath_lockfree::spsc;

use crate::front::Front;
use crate::line_file::replace_file;
use crate::server::LabelStore;

/// How often it is written at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file, replaced as a whole on another thread. Dropped, it has all pairs.
pub(crate) struct TrustedFile {
    // Dropped before the thread, whose last run takes what is in it.
    new: spsc::Producer<TrustedLogin>,
    _thread: BackgroundThread,
}

impl TrustedFile {
    /// Reads the file. A line says where it is damaged, or missing though the front is not new.
    pub(crate) fn open(
        store: &LabelStore,
        front: &mut Front,
        is_new: bool,
    ) -> anyhow::Result<(TrustedFile, Option<String>)> {
        let mut path = store.path.clone().into_os_string();
        path.push(".trusted");
        let path = std::path::PathBuf::from(path);
        let names = front.key_ids();
        let mut known = TrustedPeers::new(names.len());
        let place = |name: &str| names.iter().position(|known| known == name);
        let state = TrustedLogins::recall(&mut known, read(&path), !is_new, place);
        let notice = state.map(|state| {
            format!(
                "{} {state}: until keys log in again, floods of wrong secrets may delay them",
                path.display()
            )
        });
        front.recall_trusted(known.clone());
        let mut logins = TrustedLogins::new(known, move |known| {
            let text = known.text(|key| names.get(key).map(String::as_str));
            replace_file(&path, text.as_bytes())
        });
        let new = logins.sink();
        let thread = BackgroundThread::repeat("trusted-logins", move || {
            // A failed write is repeated; it only loses trust.
            logins.run_once().ok();
            Some(INTERVAL)
        });
        let thread = thread.context("the thread that writes trusted logins")?;
        Ok((TrustedFile { new, _thread: thread }, notice))
    }

    /// Takes the latest pairs, to be written.
    pub(crate) fn take(&mut self, front: &mut Front) {
        while let Some(pair) = front.poll_trusted() {
            // One that the full ring does not take is trusted until the front stops.
            let _ = self.new.try_push(pair);
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    // One byte more than it may have, so that a longer one is damaged.
    file.take(TRUSTED_TEXT_LEN_MAX as u64 + 1).read_to_end(&mut text)?;
    Ok(Some(text))
}
