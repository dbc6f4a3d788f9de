//! A file of lines that is appended to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The file, open at its end.
pub(crate) struct LineFile {
    file: File,
    is_synced: bool,
}

impl LineFile {
    /// Opens the file, which may be new, for its owner alone, and reads what is there. A last line that was cut short is
    /// taken away.
    pub(crate) fn open(path: &Path, is_synced: bool) -> io::Result<(LineFile, Vec<u8>)> {
        use std::os::unix::fs::OpenOptionsExt as _;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut bytes = std::fs::read(path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            bytes.truncate(whole);
        }
        Ok((LineFile { file, is_synced }, bytes))
    }

    /// Adds whole lines; false when they could not be written.
    pub(crate) fn append(&mut self, lines: &[u8]) -> bool {
        self.file.write_all(lines).is_ok() && (!self.is_synced || self.file.sync_data().is_ok())
    }
}
