//! Labels on disk: a line each, as JSON has texts, in the order of their numbers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use tickpath_deribit::scan::Scanner;
use tickpath_deribit::text::Text;

use crate::labels::Labels;
use crate::server::LabelStore;

/// The file, to be appended to.
pub(crate) struct LabelFile {
    file: File,
    is_synced: bool,
}

impl LabelFile {
    /// Opens the file, which may be new, and reads what is there. A last line that was cut short is taken away.
    pub(crate) fn open(store: &LabelStore) -> io::Result<(LabelFile, Labels)> {
        if let Some(folder) = store.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(&store.path)?;
        let bytes = std::fs::read(&store.path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
        }
        let mut names = Vec::new();
        for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = Scanner::from_bytes(line).and_then(|mut scanner| scanner.text());
            let text = text.map_err(|_| {
                let line = names.len() + 1;
                io::Error::other(format!(
                    "line {line} is no label: put the file back from a copy, or remove it"
                ))
            })?;
            names.push(text.to_cow().into_owned());
        }
        Ok((LabelFile { file, is_synced: store.is_synced }, Labels::restored(names)))
    }

    /// Adds labels. One that cannot be written is lost with the next start.
    pub(crate) fn append(&mut self, labels: &[String]) {
        let mut bytes = Vec::new();
        for label in labels {
            Text::new(label).write(&mut bytes);
            bytes.push(b'\n');
        }
        if self.file.write_all(&bytes).is_ok() && self.is_synced {
            let _ = self.file.sync_data();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_and_a_torn_line_does_not() {
        let folder = std::env::temp_dir().join(format!("tickpath-labels-{}", std::process::id()));
        let store = LabelStore { path: folder.join("labels"), is_synced: true };
        let (mut file, labels) = LabelFile::open(&store).unwrap();
        assert_eq!(labels.name(1), "");
        file.append(&["a \"b\"\n".to_owned(), "\u{e9}".to_owned()]);
        let mut torn = OpenOptions::new().append(true).open(&store.path).unwrap();
        torn.write_all(b"\"half").unwrap();
        let (mut file, labels) = LabelFile::open(&store).unwrap();
        assert_eq!((labels.name(1), labels.name(2), labels.name(3)), ("a \"b\"\n", "\u{e9}", ""));
        file.append(&["c".to_owned()]);
        assert_eq!(LabelFile::open(&store).unwrap().1.name(3), "c");
        std::fs::write(&store.path, "no label\n").unwrap();
        assert!(LabelFile::open(&store).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
