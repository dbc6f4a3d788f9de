//! Labels on disk: a line each, as JSON has texts, in the order of their numbers.

use std::io;

use tickpath_deribit::scan::Scanner;
use tickpath_deribit::text::Text;

use crate::labels::Labels;
use crate::line_file::LineFile;
use crate::server::LabelStore;

/// The file, to be appended to.
pub(crate) struct LabelFile(LineFile);

impl LabelFile {
    /// Opens the file, which may be new, and reads what is there.
    pub(crate) fn open(store: &LabelStore) -> io::Result<(LabelFile, Labels)> {
        let (file, bytes) = LineFile::open(&store.path, store.is_synced)?;
        let mut names = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = Scanner::from_bytes(line).and_then(|mut scanner| scanner.text());
            let text = text.map_err(|_| {
                let line = names.len() + 1;
                io::Error::other(format!(
                    "line {line} is no label: put the file back from a copy, or remove it"
                ))
            })?;
            names.push(text.to_cow().into_owned());
        }
        Ok((LabelFile(file), Labels::restored(names)))
    }

    /// As [`LineFile::has_room`].
    pub(crate) fn has_room(&mut self) -> bool {
        self.0.has_room()
    }

    /// Adds labels. Those that cannot be written now are written before the next ones: a label's place is its number.
    pub(crate) fn append(&mut self, labels: &[String]) {
        let mut bytes = Vec::new();
        for label in labels {
            Text::new(label).write(&mut bytes);
            bytes.push(b'\n');
        }
        self.0.append(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

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
