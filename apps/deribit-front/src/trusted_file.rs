//! The file of the addresses where each key's secret was right. Without it nothing but trust is lost.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use tickpath_admission::TRUSTED_TEXT_LEN_MAX;
use tickpath_types::Nanos;

use crate::front::Front;
use crate::line_file::replace_file;
use crate::server::LabelStore;

/// How often it is written at most.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// The file, replaced as a whole by a thread that ends then: the front's own does not wait for the disk.
pub(crate) struct TrustedFile {
    path: PathBuf,
    /// Returns the text that it could not write.
    writer: Option<JoinHandle<Option<String>>>,
    /// The text to write next.
    text: Option<String>,
    next_at: Nanos,
}

impl TrustedFile {
    /// Reads the file. A line says where it is damaged, or missing though the front is not new.
    pub(crate) fn open(store: &LabelStore, front: &mut Front, is_new: bool) -> (TrustedFile, Option<String>) {
        let mut path = store.path.clone().into_os_string();
        path.push(".trusted");
        let path = PathBuf::from(path);
        let mut text = Vec::new();
        let read = File::open(&path)
            // One byte more than it may have, so that a longer one is damaged.
            .and_then(|file| file.take(TRUSTED_TEXT_LEN_MAX as u64 + 1).read_to_end(&mut text));
        let is_read = read.is_ok();
        let state = match read {
            Ok(_) => front.recall_trusted(&text).err().map(|error| format!("is {error}")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (!is_new).then(|| "is missing".to_owned())
            }
            Err(error) => Some(format!("cannot be read: {error}")),
        };
        let notice = state.map(|state| {
            format!(
                "{} {state}: until keys log in again, floods of wrong secrets may delay them",
                path.display()
            )
        });
        // A new front has an empty file, so that a missing one is noticed.
        let text = (notice.is_some() || !is_read).then(|| front.trusted_text());
        (TrustedFile { path, writer: None, text, next_at: Nanos::ZERO }, notice)
    }

    /// Begins to write what is new, unless the last time was a moment ago.
    pub(crate) fn write_at(&mut self, now: Nanos, front: &mut Front) {
        if now < self.next_at || self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
            return;
        }
        self.next_at = now + INTERVAL;
        self.take_new(front);
        let Some(text) = self.text.clone() else { return };
        let path = self.path.clone();
        let write = move || replace_file(&path, text.as_bytes()).is_err().then_some(text);
        // If the system refuses a thread, the next call tries again.
        self.writer = thread::Builder::new().name("trusted-logins".to_owned()).spawn(write).ok();
        self.text.take_if(|_| self.writer.is_some());
    }

    /// Writes what is new, before the end.
    pub(crate) fn finish(&mut self, front: &mut Front) {
        self.take_new(front);
        // A failed write only loses trust.
        let _ = self.text.take().map(|text| replace_file(&self.path, text.as_bytes()));
    }

    /// Collects the text to write: the new pairs, or the text of a failed write.
    fn take_new(&mut self, front: &mut Front) {
        let unwritten = self.writer.take().and_then(|writer| writer.join().ok().flatten());
        self.text = front.poll_trusted().or(self.text.take()).or(unwritten);
    }
}
