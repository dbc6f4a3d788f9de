//! Files of the front beside the journal: the clients' labels, its records, and tokens. Each is a file of
//! lines; a file of marks has the last line of each.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tickpath_config::folder_of;

use crate::line_file::{LineFile, Lines, Position};
use crate::marks::{Mark, Marks};
use crate::server::LabelStore;

/// Names of the files, in the order of their marks.
const NAMES: [&str; 3] = ["labels", "records", "tokens"];

/// Error of a file beside the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SideFileError {
    /// A damaged file; restore it from a copy made after the last stop.
    #[error("line {line} of {path} is damaged: {RESTORE}")]
    Damaged {
        /// Path of the file.
        path: String,
        /// Damaged line, from 1.
        line: usize,
    },
    /// A truncated file; restore it from a copy made after the last stop.
    #[error("{path} lacks its end, from line number {next} to {kept}: {RESTORE}")]
    Cut {
        /// Path of the file.
        path: String,
        /// First missing line.
        next: u64,
        /// Last line that was written.
        kept: u64,
    },
    /// An unusable file of marks; restore it from a copy made after the last stop.
    #[error("{path}, which records the lengths of the files beside it, is {state}: {RESTORE}")]
    Marks {
        /// Path of the file of marks.
        path: String,
        /// Its state: damaged or missing.
        state: &'static str,
    },
    /// A system error.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// The system error.
        source: io::Error,
    },
}

/// Remedy for a damaged file: an older journal would undo acknowledged requests.
const RESTORE: &str = "it was not changed; restore it from a copy made after the last stop, keep the journal, or see \
                       'Damaged files' in docs/deribit.md";

/// The files, opened for appending.
pub(crate) struct SideFiles {
    pub(crate) labels: LineFile,
    pub(crate) records: LineFile,
    pub(crate) tokens: LineFile,
}

/// Contents of the files, and messages for the operator.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) labels: Vec<u8>,
    pub(crate) records: Vec<u8>,
    pub(crate) tokens: Vec<u8>,
    pub(crate) notices: Vec<String>,
}

/// One of the files, as found at the start.
struct Found {
    path: PathBuf,
    /// Its lines; if the file is rewritten, numbering continues after them.
    lines: Lines,
    is_rewritten: bool,
}

impl SideFiles {
    /// Opens or creates the files of a journal's session and reads their contents. If one of them is damaged,
    /// nothing is changed.
    pub(crate) fn open(store: &LabelStore, session: &str) -> Result<(SideFiles, Kept), SideFileError> {
        let mut notices = Vec::new();
        let folder = folder_of(&store.path);
        std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
        let marks_path = path_of(store, session, "marks");
        let state = Marks::read(&marks_path, &NAMES).map_err(|source| failed(&marks_path, source))?;
        let marks = state.clone().unwrap_or_else(|_| vec![(Mark::default(), true); NAMES.len()]);
        let mut found = Vec::new();
        for (name, (mark, is_promised)) in NAMES.iter().zip(marks) {
            found.push(find(store, session, name, mark, is_promised, &mut notices)?);
        }
        let witness = store.journal.join(format!("deribit-front.{}", plain(session)));
        if let Err(state) = state {
            // Missing marks are valid for files without checksums, and for no files at all.
            let has_lines = found.iter().any(|file| file.lines.end != Position::default());
            if has_lines || witness.exists() || state == "damaged" {
                accept(store, SideFileError::Marks { path: shown(&marks_path), state }, &mut notices)?;
            }
        }
        let files = SideFiles::write(store, &marks_path, state.is_ok(), &found);
        let files = files.map_err(|source| failed(&marks_path, source))?;
        // This file in the journal's folder reveals that side files existed, should all of them be missing.
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&witness);
        made.map_err(|source| failed(&witness, source))?;
        let mut texts = found.into_iter().map(|file| file.lines.texts);
        let mut next = || texts.next().unwrap_or_default();
        let (labels, records, tokens) = (next(), next(), next());
        Ok((files, Kept { labels, records, tokens, notices }))
    }

    fn write(
        store: &LabelStore,
        marks_path: &Path,
        is_marked: bool,
        found: &[Found],
    ) -> io::Result<SideFiles> {
        if !is_marked {
            let mark = |file: &Found| match file.is_rewritten {
                true => Mark::default(),
                false => Mark { end: file.lines.end, is_on_disk: false },
            };
            let marks: Vec<_> = NAMES.iter().zip(found).map(|(name, file)| (*name, mark(file))).collect();
            Marks::create(marks_path, &marks)?;
        }
        let marks = Marks::open(marks_path)?;
        let open = |place: usize| -> io::Result<LineFile> {
            let Found { path, lines, is_rewritten } = &found[place];
            let mut file = LineFile::open(path, lines, marks.slot(place, NAMES[place]), store.is_synced)?;
            if *is_rewritten {
                file.try_replace(&lines.texts)?;
            }
            Ok(file)
        };
        Ok(SideFiles { labels: open(0)?, records: open(1)?, tokens: open(2)? })
    }

    pub(crate) const fn each(&mut self) -> [&mut LineFile; 3] {
        [&mut self.labels, &mut self.records, &mut self.tokens]
    }
}

/// Returns the path of a file of a journal's session.
fn path_of(store: &LabelStore, session: &str, name: &str) -> PathBuf {
    let mut path = store.path.clone().into_os_string();
    path.push(format!(".{}.{name}", plain(session)));
    path.into()
}

/// Converts a session's name for use in a file name.
fn plain(session: &str) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '.' };
    session.chars().map(plain).collect()
}

/// Reads one of the files and compares it with its mark.
fn find(
    store: &LabelStore,
    session: &str,
    name: &str,
    mark: Mark,
    is_promised: bool,
    notices: &mut Vec<String>,
) -> Result<Found, SideFileError> {
    let path = path_of(store, session, name);
    let mut bytes = read(&path)?;
    let kept = mark.end;
    if bytes.is_none() && name == NAMES[0] && kept == Position::default() {
        // The legacy format has one file of labels for all sessions. It is left in place.
        bytes = read(&store.path)?;
    }
    let mut lines = Lines::read(bytes.as_deref().unwrap_or_default(), kept);
    let mut is_rewritten = lines.is_plain;
    if lines.is_plain {
        notices.push(format!(
            "the Deribit front's {name} had no checksums: they are written with them from now on"
        ));
    }
    let next = lines.end.number + 1;
    let is_cut = lines.damaged.is_none() && next <= kept.number;
    if is_cut && !is_promised {
        notices.push(format!(
            "the Deribit front's {name} lack their end, line numbers {next} to {}, which the machine lost with its power",
            kept.number
        ));
    } else if is_cut || lines.damaged.is_some() {
        let path_shown = shown(&path);
        let error = match lines.damaged {
            Some(line) => SideFileError::Damaged { path: path_shown, line },
            None => SideFileError::Cut { path: path_shown, next, kept: kept.number },
        };
        accept(store, error, notices)?;
        if bytes.is_some() {
            let aside = aside(&path);
            std::fs::copy(&path, &aside).map_err(|source| failed(&aside, source))?;
            notices.push(format!("{} is kept as {}", path.display(), aside.display()));
        }
    }
    is_rewritten |= is_cut || lines.damaged.is_some();
    if kept.number > lines.end.number {
        lines.end = kept;
    }
    Ok(Found { path, lines, is_rewritten })
}

/// Returns the error, or only adds it to the messages if losses are accepted.
fn accept(store: &LabelStore, error: SideFileError, notices: &mut Vec<String>) -> Result<(), SideFileError> {
    if !store.accepts_loss {
        return Err(error);
    }
    let text = error.to_string();
    notices.push(format!("accepted: {}", text.split(": ").next().unwrap_or_default()));
    Ok(())
}

/// Returns an unused name for a damaged file.
fn aside(path: &Path) -> PathBuf {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        PathBuf::from(name)
    };
    (1..).map(named).find(|name| !name.exists()).expect("there are fewer files than numbers")
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, SideFileError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed(path, source)),
    }
}

fn failed(path: &Path, source: io::Error) -> SideFileError {
    SideFileError::Io { path: shown(path), source }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    struct Site {
        folder: tempfile::TempDir,
        accepts_loss: bool,
    }

    impl Site {
        /// Creates files with three labels, three records, and tokens that were replaced once.
        fn new() -> Site {
            let site = Site { folder: tempfile::tempdir().unwrap(), accepts_loss: false };
            let (mut files, kept) = site.open().unwrap();
            assert!(kept.labels.is_empty() && kept.notices.is_empty());
            assert!(files.tokens.append(b"t1\n") && files.tokens.replace(b"t2\nt3\n"));
            for line in ["a\n", "b\n", "c\n"] {
                assert!(files.labels.append(line.as_bytes()) && files.records.append(line.as_bytes()));
            }
            site
        }

        fn open(&self) -> Result<(SideFiles, Kept), SideFileError> {
            let (path, journal) =
                (self.folder.path().join("deribit-labels"), self.folder.path().join("journal"));
            std::fs::create_dir_all(&journal).unwrap();
            let accepts_loss = self.accepts_loss;
            SideFiles::open(&LabelStore { path, journal, is_synced: false, accepts_loss }, "A/1")
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(format!("deribit-labels.A.1.{name}"))
        }

        fn bytes(&self, name: &str) -> Vec<u8> {
            std::fs::read(self.path(name)).unwrap()
        }

        fn all(&self) -> Vec<(PathBuf, Vec<u8>)> {
            let files = std::fs::read_dir(self.folder.path()).unwrap();
            let mut all: Vec<_> = files
                .map(|file| file.unwrap().path())
                .filter(|path| path.is_file())
                .map(|path| (path.clone(), std::fs::read(path).unwrap()))
                .collect();
            all.sort();
            all
        }

        /// Checks that the start fails and changes nothing, and with accepted losses keeps the damaged file.
        fn refuses(&mut self, what: &str) -> Kept {
            let before = self.all();
            let error = self.open().map(|_| ()).unwrap_err().to_string();
            assert!(
                error.contains(what) && error.contains("keep the journal") && !error.contains("remove"),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1);
            assert_eq!(self.all(), before, "{error}");
            self.accepts_loss = true;
            let kept = self.open().unwrap().1;
            self.accepts_loss = false;
            let again = self.open().unwrap().1;
            assert_eq!(
                (&again.labels, &again.records, &again.tokens),
                (&kept.labels, &kept.records, &kept.tokens)
            );
            assert!(again.notices.is_empty() && !kept.notices.is_empty(), "{kept:?} {again:?}");
            kept
        }
    }

    #[test]
    fn what_was_written_comes_back_and_a_line_cut_short_does_not() {
        let site = Site::new();
        for half in ["", "4 0123", "4 01234567 d"] {
            std::fs::write(site.path("labels"), [&site.bytes("labels"), half.as_bytes()].concat()).unwrap();
            let (_, kept) = site.open().unwrap();
            assert_eq!(
                (kept.labels.as_slice(), kept.tokens.as_slice()),
                (&b"a\nb\nc\n"[..], &b"t2\nt3\n"[..])
            );
            assert!(kept.notices.is_empty());
        }
        let (mut files, _) = site.open().unwrap();
        assert!(files.labels.append(b"d\n"));
        assert_eq!(site.open().unwrap().1.labels, b"a\nb\nc\nd\n");
    }

    /// One file is damaged in a random way: the start fails, or no line is missing and none is added.
    #[test]
    fn no_damage_changes_what_comes_back() {
        const TRIALS: u64 = 300;
        let site = Site::new();
        let (mut files, _) = site.open().unwrap();
        for number in 0..200 {
            let line = format!("{{\"number\":{number},\"what\":\"settled\"}}\n");
            files.each().iter_mut().for_each(|file| assert!(file.append(line.as_bytes())));
        }
        let contents = |kept: Kept| [kept.labels, kept.records, kept.tokens];
        let good = contents(site.open().unwrap().1);
        let names = ["labels", "records", "tokens", "marks"];
        let whole = names.map(|name| site.bytes(name));
        let mut refused = 0;
        for seed in 0..TRIALS {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut below = |end: usize| (rng.next_u64() % end as u64) as usize;
            names
                .iter()
                .zip(&whole)
                .for_each(|(name, bytes)| std::fs::write(site.path(name), bytes).unwrap());
            let place = below(names.len());
            let mut bytes = whole[place].clone();
            let at = below(bytes.len());
            match below(6) {
                0 | 1 => bytes[at] ^= 1 << below(8),
                2 => bytes.truncate(at),
                3 => {
                    let end = (at + 1 + below(4_096)).min(bytes.len());
                    bytes[at..end].fill(0);
                }
                4 => {
                    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
                    let (one, other) = (below(lines.len()), below(lines.len()));
                    let mut swapped = lines.clone();
                    swapped.swap(one, other);
                    bytes = swapped.concat();
                }
                _ => bytes = whole[(place + 1) % names.len()].clone(),
            }
            match (below(20), bytes == whole[place]) {
                (0, false) => std::fs::remove_file(site.path(names[place])).unwrap(),
                _ => std::fs::write(site.path(names[place]), &bytes).unwrap(),
            }
            match site.open() {
                Err(_) => refused += 1,
                Ok((_, kept)) => assert_eq!(contents(kept), good, "seed {seed}"),
            }
        }
        assert!(refused > TRIALS / 2, "{refused} of {TRIALS} were refused");
    }

    #[test]
    fn an_edited_a_cut_and_a_missing_file_are_refused() {
        for name in NAMES {
            let mut site = Site::new();
            let bytes = site.bytes(name);
            let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
            std::fs::write(site.path(name), &bytes[..last]).unwrap();
            let aside = format!("{}.damaged-1", site.path(name).display());
            site.refuses("lacks its end");
            assert_eq!(std::fs::read(aside).unwrap(), &bytes[..last]);
            let mut site = Site::new();
            std::fs::remove_file(site.path(name)).unwrap();
            site.refuses("lacks its end");
            let mut site = Site::new();
            // A line appended by an editor, and a changed line.
            std::fs::write(site.path(name), [&bytes[..], b"forged\n"].concat()).unwrap();
            site.refuses("is damaged");
            let mut site = Site::new();
            std::fs::write(site.path(name), String::from_utf8(bytes).unwrap().replacen(['b', '3'], "x", 1))
                .unwrap();
            site.refuses("is damaged");
        }
    }

    #[test]
    fn what_is_accepted_is_lost_and_no_number_comes_again() {
        let mut site = Site::new();
        let bytes = site.bytes("records");
        std::fs::write(site.path("records"), String::from_utf8(bytes).unwrap().replacen(" b\n", " x\n", 1))
            .unwrap();
        let kept = site.refuses("line 2");
        assert_eq!((kept.records.as_slice(), kept.labels.as_slice()), (&b"a\n"[..], &b"a\nb\nc\n"[..]));
        assert!(String::from_utf8(site.bytes("records")).unwrap().starts_with("4 "));
    }

    #[test]
    fn files_that_are_gone_together_are_refused() {
        let mut site = Site::new();
        site.all().iter().for_each(|(path, _)| std::fs::remove_file(path).unwrap());
        let kept = site.refuses("is missing");
        assert!(kept.labels.is_empty() && kept.records.is_empty() && kept.tokens.is_empty());
    }

    #[test]
    fn marks_that_are_gone_or_damaged_are_refused() {
        let mut site = Site::new();
        std::fs::remove_file(site.path("marks")).unwrap();
        assert_eq!(site.refuses("is missing").labels, b"a\nb\nc\n");
        let mut site = Site::new();
        let mut bytes = site.bytes("marks");
        bytes[100] ^= 1;
        std::fs::write(site.path("marks"), bytes).unwrap();
        assert_eq!(site.refuses("is damaged").records, b"a\nb\nc\n");
    }

    /// A power loss may remove the end of a journal that is not synced.
    #[test]
    fn what_the_machine_lost_with_its_power_is_said() {
        let site = Site::new();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let marks: Vec<u8> = NAMES
            .iter()
            .enumerate()
            .flat_map(|(place, name)| {
                let slot = &site.bytes("marks")[place * 96..][..96];
                let line = String::from_utf8(slot.to_vec()).unwrap();
                let text = line.trim_end().rsplit_once(' ').unwrap().0.replace(boot.trim(), &"0".repeat(36));
                assert!(text.starts_with(name));
                format!("{:<95}\n", format!("{text} {:08x}", crc32c::crc32c(text.as_bytes()))).into_bytes()
            })
            .collect();
        std::fs::write(site.path("marks"), marks).unwrap();
        let bytes = site.bytes("records");
        std::fs::write(site.path("records"), &bytes[..bytes.len() - 3]).unwrap();
        let kept = site.open().unwrap().1;
        assert_eq!((kept.records.as_slice(), kept.labels.as_slice()), (&b"a\nb\n"[..], &b"a\nb\nc\n"[..]));
        assert_eq!(kept.notices.len(), 1, "{:?}", kept.notices);
        assert!(site.open().unwrap().1.notices.is_empty(), "one notice, once");
    }

    #[test]
    fn files_of_an_older_version_are_read_and_get_checksums_once() {
        let site = Site { folder: tempfile::tempdir().unwrap(), accepts_loss: false };
        std::fs::write(site.folder.path().join("deribit-labels"), "\"a\"\n\"b\"\n").unwrap();
        std::fs::write(site.path("records"), "{\"after\":1}\n{\"aft").unwrap();
        let (mut files, kept) = site.open().unwrap();
        assert_eq!(
            (kept.labels.as_slice(), kept.records.as_slice()),
            (&b"\"a\"\n\"b\"\n"[..], &b"{\"after\":1}\n"[..])
        );
        assert_eq!(kept.notices.len(), 2);
        assert!(files.labels.append(b"\"c\"\n"));
        let again = site.open().unwrap().1;
        assert_eq!((again.labels.as_slice(), again.notices.len()), (&b"\"a\"\n\"b\"\n\"c\"\n"[..], 0));
        assert_eq!(again.records, kept.records);
        let old = std::fs::read(site.folder.path().join("deribit-labels")).unwrap();
        assert_eq!(old, b"\"a\"\n\"b\"\n", "the old file stays");
        // Restored over the new file, the legacy file is not valid.
        std::fs::write(site.path("records"), "{\"after\":1}\n").unwrap();
        assert!(site.open().is_err());
    }
}
