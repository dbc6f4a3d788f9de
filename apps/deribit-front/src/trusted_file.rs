//! File of the addresses from which each key's secret was correct. Losing it only loses this trust.

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

/// Minimum interval between writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file, replaced as a whole on another thread. All pairs are written when it is dropped.
pub(crate) struct TrustedFile {
    // Dropped before the thread, so that its last run writes the remaining pairs.
    new: spsc::Producer<TrustedLogin>,
    _thread: BackgroundThread,
}

impl TrustedFile {
    /// Reads the file. Returns a message if it is damaged, or missing although the front is not new.
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
        let state = TrustedLogins::load(&mut known, read(&path), !is_new, place);
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
            // A failed write is retried; only trust is lost.
            logins.run_once().ok();
            Some(INTERVAL)
        });
        let thread = thread.context("the thread that writes trusted logins")?;
        Ok((TrustedFile { new, _thread: thread }, notice))
    }

    /// Passes the latest pairs to the writing thread.
    pub(crate) fn take(&mut self, front: &mut Front) {
        while let Some(pair) = front.poll_trusted() {
            // A pair that does not fit into the full ring is trusted until the front stops.
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
    // Reads one byte beyond the limit, so that a longer file counts as damaged.
    file.take(TRUSTED_TEXT_LEN_MAX as u64 + 1).read_to_end(&mut text)?;
    Ok(Some(text))
}
