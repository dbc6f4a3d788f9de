//! A file of lines that is appended to. Each line has its number and a checksum of itself and all lines before it, so that
//! a line that was changed, added, moved or removed shows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use tickpath_config::folder_of;

use crate::marks::{Mark, MarkSlot};

/// Bytes that may wait for the file to take them. Once there are more, nothing is added any more: what is in the file stays
/// what was first.
const WAITING_MAX: usize = 16 << 20;

/// Bytes that are set aside on the disk for further lines: a full disk is noticed before a line needs what is not there.
const ROOM: u64 = 4 << 20;

/// The end of a sequence of lines: the number of the last one, and the checksum of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) number: u64,
    pub(crate) checksum: u32,
}

impl Position {
    /// Before the first line of a file whose lines follow those of the file that it replaces.
    fn restart(self) -> Position {
        Position { checksum: 0, ..self }
    }

    fn next(self, text: &[u8]) -> Position {
        let number = self.number + 1;
        let checksum = crc32c::crc32c_append(self.checksum, &number.to_le_bytes());
        Position { number, checksum: crc32c::crc32c_append(checksum, text) }
    }

    /// Appends lines of text as the file has them: number, checksum and text each.
    fn write_lines(&mut self, texts: &[u8], out: &mut Vec<u8>) {
        for text in texts.split_inclusive(|byte| *byte == b'\n') {
            *self = self.next(text.strip_suffix(b"\n").unwrap_or(text));
            // Writing into a vector does not fail.
            let _ = write!(out, "{} {:08x} ", self.number, self.checksum);
            out.extend_from_slice(text);
        }
    }

    /// The position and the text of a line as the file has it.
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

/// The lines of a file, as far as they are what was written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Their texts, each with its end of line.
    pub(crate) texts: Vec<u8>,
    pub(crate) end: Position,
    /// Bytes of the file that they take.
    pub(crate) len: u64,
    /// The first line, from 1, that is not what was written.
    pub(crate) damaged: Option<usize>,
    /// The file has lines of an older version of the program, which have no checksums.
    pub(crate) is_plain: bool,
}

impl Lines {
    /// Reads a file of which the lines up to `kept` are known to have been written. Behind them a line that was cut short is
    /// left out: it was never acknowledged.
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

/// The file, open at its end.
pub(crate) struct LineFile {
    file: File,
    path: PathBuf,
    is_synced: bool,
    /// Of the whole lines in the file.
    len: u64,
    /// The last line of the file, and the last of those that wait.
    written: Position,
    last: Position,
    mark: MarkSlot,
    /// Lines that the file did not take, whole: they come before all that follow, as their places mean something.
    waiting: Vec<u8>,
    is_given_up: bool,
    /// The disk has room for the file up to here.
    room_to: u64,
    /// Why the system refused the latest lines.
    error: Option<Errno>,
}

impl LineFile {
    /// Opens the file, which may be new, for its owner alone. It ends with these lines: what is behind them is taken away.
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

    /// Puts whole lines in the place of all that are there: at any time the file has the ones or the others. False when that
    /// could not be done, and the others stay.
    pub(crate) fn replace(&mut self, texts: &[u8]) -> bool {
        let done = self.try_replace(texts);
        self.note(&done);
        done.is_ok()
    }

    pub(crate) fn try_replace(&mut self, texts: &[u8]) -> io::Result<()> {
        // A file without lines has no numbers that others could follow.
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

    /// Whether further lines will be taken, as many as come in some time: sets room aside for them where there is less than
    /// half of it left. A file system that cannot do that is trusted until it refuses a line.
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
        // What was refused is tried again.
        self.waiting.is_empty() || self.append(b"")
    }

    /// Adds whole lines; false when they could not be written. They are tried again with the next, in their order.
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
            // A part of a line in the middle would make the file unreadable.
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

    /// Brings all lines to the disk, before the end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.mark.write(self.mark_of(true))
    }

    /// Why the system refused the latest lines; none while it takes them.
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

/// Puts bytes in the place of a file, which may be new, for its owner alone: at any time, also after the loss of power,
/// the file has all old bytes or all new ones.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".new");
    // What is left of an earlier attempt, or was put there by somebody else: it is not written through.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    new.write_all(bytes)?;
    new.sync_data()?;
    std::fs::rename(&beside, path)?;
    // Else the loss of power may bring the old ones back.
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
        // A file that cannot be written, as one on a full disk.
        let good = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        assert!(!file.append(b"2\n"));
        assert!(!file.has_room(), "what waits is refused still");
        assert_eq!(file.error(), Some(Errno::EBADF));
        (file.file, file.is_given_up, file.room_to) = (good, false, 0);
        assert!(file.has_room() && file.append(b"3\n"));
        assert_eq!((texts(&path), file.error()), (b"1\n2\n3\n".to_vec(), None));
        assert!(file.replace(b"4\n") && file.append(b"5\n"));
        assert_eq!(texts(&path), b"4\n5\n");
        assert_eq!(file.written.number, 5, "numbers go on where a file is replaced");
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

    /// Every change of a file shows, but for a cut at the end of a line, which the mark tells of.
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
        // Removed, repeated, swapped, and the first one gone.
        for (places, damaged) in
            [(&[0, 2, 3][..], 2), (&[0, 1, 1, 2, 3], 3), (&[0, 2, 1, 3], 2), (&[1, 2, 3], 1)]
        {
            assert_eq!(Lines::read(&of(places), end).damaged, Some(damaged), "{places:?}");
        }
        // Each bit of each byte.
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                let read = Lines::read(&changed, end);
                assert!(read.damaged.is_some() || read.end.number < end.number, "byte {place} bit {bit}");
            }
        }
        // A cut file lacks its end and nothing else.
        for len in 0..bytes.len() {
            let read = Lines::read(&bytes[..len], end);
            assert!(
                read.damaged.is_none() && read.end.number < end.number && good.texts.starts_with(&read.texts)
            );
        }
        // A file of another history does not end as this one was marked.
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
