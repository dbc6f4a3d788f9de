//! An append-only file of lines. Each line has a number and a checksum of itself and all earlier lines, which
//! reveals changed, added, moved or removed lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use tickpath_config::folder_of;

use crate::marks::{Mark, MarkSlot};

/// Maximum bytes waiting to be written. Beyond it no lines are added any more: the file remains a prefix of
/// the full sequence.
const WAITING_MAX: usize = 16 << 20;

/// Bytes preallocated on the disk for further lines, so that a full disk is detected before it loses a line.
const ROOM: u64 = 4 << 20;

/// End of a sequence of lines: the number of the last line, and the checksum of all lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) number: u64,
    pub(crate) checksum: u32,
}

impl Position {
    /// Returns the position before the first line of a file that replaces another and continues its numbers.
    fn restart(self) -> Position {
        Position { checksum: 0, ..self }
    }

    fn next(self, text: &[u8]) -> Position {
        let number = self.number + 1;
        let checksum = crc32c::crc32c_append(self.checksum, &number.to_le_bytes());
        Position { number, checksum: crc32c::crc32c_append(checksum, text) }
    }

    /// Appends lines to `out` in the file format: number, checksum and text.
    fn write_lines(&mut self, texts: &[u8], out: &mut Vec<u8>) {
        for text in texts.split_inclusive(|byte| *byte == b'\n') {
            *self = self.next(text.strip_suffix(b"\n").unwrap_or(text));
            // Writing to a vector cannot fail.
            let _ = write!(out, "{} {:08x} ", self.number, self.checksum);
            out.extend_from_slice(text);
        }
    }

    /// Parses the position and the text of a line of the file.
    fn parse(line: &[u8]) -> Option<(Position, &[u8])> {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let mut word = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
        let (number, checksum) = (word()?, word()?);
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if checksum.len() != 8 || !checksum.bytes().all(is_hex) || number.starts_with('+') {
            return None;
        }
        let position =
            Position { number: number.parse().ok()?, checksum: u32::from_str_radix(checksum, 16).ok()? };
        Some((position, parts.next()?))
    }
}

/// The lines of a file up to the first damage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Texts of the lines, with line ends.
    pub(crate) texts: Vec<u8>,
    pub(crate) end: Position,
    /// Bytes of the file that they occupy.
    pub(crate) len: u64,
    /// First damaged line, from 1.
    pub(crate) damaged: Option<usize>,
    /// True if the lines are plain text without numbers and checksums.
    pub(crate) is_plain: bool,
}

impl Lines {
    /// Reads a file whose lines up to `kept` are known to have been written. An incomplete last line after
    /// them is ignored, because it was never acknowledged.
    pub(crate) fn read(bytes: &[u8], kept: Position) -> Lines {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = Lines::default();
        let first = bytes[..whole].split(|byte| *byte == b'\n').next().unwrap_or_default();
        if kept == Position::default() && !first.is_empty() && Position::parse(first).is_none() {
            return Lines {
                texts: bytes[..whole].to_vec(),
                len: whole as u64,
                is_plain: true,
                ..Lines::default()
            };
        }
        for (line, count) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').zip(1..) {
            let known = Position::parse(line).filter(|(position, text)| {
                let before = match count {
                    1 => Position { number: position.number.wrapping_sub(1), checksum: 0 },
                    _ => lines.end,
                };
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                let is_kept = position.number != kept.number || *position == kept;
                before.number < u64::MAX && before.next(text) == *position && is_kept
            });
            let Some((position, text)) = known else {
                lines.damaged = Some(count);
                break;
            };
            lines.texts.extend_from_slice(text);
            lines.len += line.len() as u64;
            lines.end = position;
        }
        lines
    }
}

/// The file, opened for appending.
pub(crate) struct LineFile {
    file: File,
    path: PathBuf,
    is_synced: bool,
    /// Length of the complete lines in the file.
    len: u64,
    /// Positions of the last line in the file, and of the last waiting line.
    written: Position,
    last: Position,
    mark: MarkSlot,
    /// Complete lines not written yet; they precede later ones, because the order matters.
    waiting: Vec<u8>,
    is_given_up: bool,
    /// End of the preallocated part of the file.
    room_to: u64,
    /// Error of the latest write.
    error: Option<Errno>,
}

impl LineFile {
    /// Opens or creates the file with owner-only access, and truncates everything after `lines`.
    pub(crate) fn open(path: &Path, lines: &Lines, mark: MarkSlot, is_synced: bool) -> io::Result<LineFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        if file.metadata()?.len() > lines.len {
            file.set_len(lines.len)?;
        }
        Ok(LineFile {
            file,
            path: path.to_owned(),
            is_synced,
            len: lines.len,
            written: lines.end,
            last: lines.end,
            mark,
            waiting: Vec::new(),
            is_given_up: false,
            room_to: 0,
            error: None,
        })
    }

    /// Atomically replaces all lines: the file always has the old or the new ones. Returns false if that
    /// fails and the old ones remain.
    pub(crate) fn replace(&mut self, texts: &[u8]) -> bool {
        let done = self.try_replace(texts);
        self.note(&done);
        done.is_ok()
    }

    pub(crate) fn try_replace(&mut self, texts: &[u8]) -> io::Result<()> {
        // A file without lines has no numbers to continue.
        let mut last = if texts.is_empty() { Position::default() } else { self.last.restart() };
        let mut lines = Vec::new();
        last.write_lines(texts, &mut lines);
        replace_file(&self.path, &lines)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        (self.len, self.room_to, self.is_given_up) = (lines.len() as u64, 0, false);
        self.waiting.clear();
        (self.written, self.last) = (last, last);
        self.mark.write(self.mark_of(true))
    }

    /// Returns true if the lines of the near future fit: preallocates space when less than half of it is
    /// left. A file system without preallocation is trusted until a write fails.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.room_to < self.len + ROOM / 2 {
            match fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, self.len as i64, ROOM as i64) {
                Ok(()) => self.room_to = self.len + ROOM,
                Err(Errno::EOPNOTSUPP | Errno::EINTR) => {}
                Err(errno) => {
                    self.error = Some(errno);
                    return false;
                }
            }
        }
        // Retries failed lines.
        self.waiting.is_empty() || self.append(b"")
    }

    /// Appends complete lines. Returns false if the write fails; the next call retries them, in order.
    pub(crate) fn append(&mut self, texts: &[u8]) -> bool {
        self.is_given_up |= self.waiting.len() + texts.len() > WAITING_MAX && !self.waiting.is_empty();
        if self.is_given_up {
            return false;
        }
        self.last.write_lines(texts, &mut self.waiting);
        let done = self.try_append();
        self.note(&done);
        done.is_ok()
    }

    fn try_append(&mut self) -> io::Result<()> {
        if let Err(error) = self.file.write_all(&self.waiting) {
            // An incomplete line in the middle would make the file unreadable.
            self.is_given_up = self.file.set_len(self.len).is_err();
            return Err(error);
        }
        self.len += self.waiting.len() as u64;
        self.waiting.clear();
        self.written = self.last;
        if self.is_synced {
            self.file.sync_data()?;
        }
        self.mark.write(self.mark_of(self.is_synced))
    }

    /// Syncs all lines to the disk; called before the end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.mark.write(self.mark_of(true))
    }

    /// Returns the error of the latest write; none if it succeeded.
    pub(crate) fn error(&self) -> Option<Errno> {
        self.error
    }

    fn mark_of(&self, is_on_disk: bool) -> Mark {
        Mark { end: self.written, is_on_disk }
    }

    fn note(&mut self, done: &io::Result<()>) {
        let errno = |error: &io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        self.error = done.as_ref().err().map(errno);
    }
}

/// Atomically replaces or creates a file with owner-only access: even after a power loss, the file has all
/// old or all new bytes.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".new");
    // A left-over or foreign file is removed and never written through.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    new.write_all(bytes)?;
    new.sync_data()?;
    std::fs::rename(&beside, path)?;
    // Without this sync, a power loss may restore the old bytes.
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &Path) -> Vec<u8> {
        let lines = Lines::read(&std::fs::read(path).unwrap(), Position::default());
        assert_eq!((lines.damaged, lines.is_plain), (None, false));
        lines.texts
    }

    #[test]
    fn lines_that_were_not_taken_come_before_those_that_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut file = LineFile::open(&path, &Lines::default(), MarkSlot::none(), false).unwrap();
        assert!(file.append(b"1\n"));
        // A file whose writes fail, as on a full disk.
        let good = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        assert!(!file.append(b"2\n"));
        assert!(!file.has_room(), "what waits is refused still");
        assert_eq!(file.error(), Some(Errno::EBADF));
        (file.file, file.is_given_up, file.room_to) = (good, false, 0);
        assert!(file.has_room() && file.append(b"3\n"));
        assert_eq!((texts(&path), file.error()), (b"1\n2\n3\n".to_vec(), None));
        assert!(file.replace(b"4\n") && file.append(b"5\n"));
        assert_eq!(texts(&path), b"4\n5\n");
        assert_eq!(file.written.number, 5, "numbers continue where a file is replaced");
        (file.file, file.waiting) = (File::open(&path).unwrap(), vec![b'\n'; WAITING_MAX]);
        assert!(!file.append(b"4\n") && file.is_given_up, "no more than may wait");
    }

    #[test]
    fn a_link_in_the_place_of_the_new_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, beside, other) =
            (folder.path().join("lines"), folder.path().join("lines.new"), folder.path().join("other"));
        std::fs::write(&other, b"kept").unwrap();
        std::os::unix::fs::symlink(&other, &beside).unwrap();
        replace_file(&path, b"new").unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap()),
            (b"new".into(), b"kept".into())
        );
        std::fs::write(&beside, b"left of an earlier attempt").unwrap();
        replace_file(&path, b"newer").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
    }

    /// Every change of the file is detected, except truncation at a line end, which the mark detects.
    #[test]
    fn lines_are_what_was_written_or_they_are_damaged() {
        let (mut bytes, mut end) = (Vec::new(), Position::default());
        end.write_lines(b"one\ntwo\nthree\nfour\n", &mut bytes);
        let good = Lines::read(&bytes, end);
        assert_eq!(
            (good.texts.as_slice(), good.damaged, good.end),
            (&b"one\ntwo\nthree\nfour\n"[..], None, end)
        );
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let of = |places: &[usize]| places.iter().map(|place| lines[*place]).collect::<Vec<_>>().concat();
        // Removed, repeated and swapped lines, and a missing first line.
        for (places, damaged) in
            [(&[0, 2, 3][..], 2), (&[0, 1, 1, 2, 3], 3), (&[0, 2, 1, 3], 2), (&[1, 2, 3], 1)]
        {
            assert_eq!(Lines::read(&of(places), end).damaged, Some(damaged), "{places:?}");
        }
        // Every bit of every byte.
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                let read = Lines::read(&changed, end);
                assert!(read.damaged.is_some() || read.end.number < end.number, "byte {place} bit {bit}");
            }
        }
        // A truncated file lacks its end and nothing else.
        for len in 0..bytes.len() {
            let read = Lines::read(&bytes[..len], end);
            assert!(
                read.damaged.is_none() && read.end.number < end.number && good.texts.starts_with(&read.texts)
            );
        }
        // A file with another history does not end at the mark of this one.
        let (mut other, mut other_end) = (Vec::new(), Position::default());
        other_end.write_lines(b"one\ntwo\nthree\nforged\n", &mut other);
        assert_eq!(Lines::read(&other, end).damaged, Some(4));
    }

    #[test]
    fn lines_of_an_older_version_have_no_checksums() {
        let old = Lines::read(b"\"a\"\n\"b c\"\n\"cut", Position::default());
        assert_eq!((old.is_plain, old.texts.as_slice(), old.len), (true, &b"\"a\"\n\"b c\"\n"[..], 10));
        let mut end = Position::default();
        end.write_lines(b"x\n", &mut Vec::new());
        assert_eq!(
            Lines::read(b"\"a\"\n", end).damaged,
            Some(1),
            "once there are checksums, there are no others"
        );
    }
}
