//! Marks: the last line of each line file, stored in a separate file, so that a missing end is detected.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::line_file::{Position, replace_file};

/// Identifier of the machine's current boot, on Linux.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Bytes of one file's mark with its line end: a name, two numbers, a boot id and a checksum.
const SLOT_LEN: usize = 96;
/// Boot id field of a mark whose lines are on the disk: they survive a power loss.
const ON_DISK: &str = "-";

/// Position of the last written line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) end: Position,
    /// True if the line survives a power loss, false if it may be lost.
    pub(crate) is_on_disk: bool,
}

impl Mark {
    fn write(self, name: &str, boot: &str) -> Vec<u8> {
        let Position { number, checksum } = self.end;
        let boot = if self.is_on_disk { ON_DISK } else { boot };
        let text = format!("{name} {number} {checksum:08x} {boot}");
        let line = format!("{text} {:08x}", crc32c::crc32c(text.as_bytes()));
        format!("{line:<width$}\n", width = SLOT_LEN - 1).into_bytes()
    }

    /// Parses the mark of a slot, with the boot during which it was written.
    fn read(slot: &[u8], name: &str) -> Option<(Mark, String)> {
        let parts: Vec<&str> = std::str::from_utf8(slot).ok()?.split_whitespace().collect();
        let [_, number, of_lines, boot, _] = parts.as_slice() else { return None };
        let end =
            Position { number: number.parse().ok()?, checksum: u32::from_str_radix(of_lines, 16).ok()? };
        let mark = Mark { end, is_on_disk: *boot == ON_DISK };
        (mark.write(name, boot) == slot).then(|| (mark, (*boot).to_owned()))
    }
}

/// Marks, each with whether its lines must exist: a power loss may have removed the others. Or the problem of
/// the file: damaged or missing.
pub(crate) type Found = Result<Vec<(Mark, bool)>, &'static str>;

/// The file of marks.
pub(crate) struct Marks {
    file: Arc<File>,
    boot: Arc<str>,
}

impl Marks {
    /// Reads the marks of a file, by name.
    pub(crate) fn read(path: &Path, names: &[&str]) -> io::Result<Found> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err("missing")),
            Err(error) => return Err(error),
        };
        let boot = boot_id();
        let slots = bytes.chunks(SLOT_LEN).map(Some).chain(std::iter::repeat(None));
        let marks = names.iter().zip(slots).map(|(name, slot)| {
            let (mark, of) = Mark::read(slot?, name)?;
            Some((mark, mark.is_on_disk || of == boot))
        });
        Ok(marks.collect::<Option<_>>().ok_or("damaged"))
    }

    /// Creates or replaces a file of marks.
    pub(crate) fn create(path: &Path, marks: &[(&str, Mark)]) -> io::Result<()> {
        let boot = boot_id();
        let bytes: Vec<u8> = marks.iter().flat_map(|(name, mark)| mark.write(name, &boot)).collect();
        replace_file(path, &bytes)
    }

    pub(crate) fn open(path: &Path) -> io::Result<Marks> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Marks { file: Arc::new(file), boot: boot_id().into() })
    }

    /// Returns the slot of one file's mark.
    pub(crate) fn slot(&self, place: usize, name: &'static str) -> MarkSlot {
        MarkSlot(Some(Slot { file: Arc::clone(&self.file), boot: Arc::clone(&self.boot), place, name }))
    }
}

/// The slot of one file's mark in the marks file.
pub(crate) struct MarkSlot(Option<Slot>);

struct Slot {
    file: Arc<File>,
    boot: Arc<str>,
    place: usize,
    name: &'static str,
}

impl MarkSlot {
    /// Returns a slot that stores no mark.
    #[cfg(test)]
    pub(crate) const fn none() -> MarkSlot {
        MarkSlot(None)
    }

    /// A crash of the process or a power loss leaves the old or the new mark: a mark fits into one sector.
    pub(crate) fn write(&self, mark: Mark) -> io::Result<()> {
        let Some(slot) = &self.0 else { return Ok(()) };
        slot.file.write_all_at(&mark.write(slot.name, &slot.boot), (slot.place * SLOT_LEN) as u64)
    }
}

/// Returns the current boot's id, or a text that is no boot id where it is unknown.
fn boot_id() -> String {
    let text = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    let id: String = text.chars().filter(|letter| !letter.is_whitespace()).take(40).collect();
    if id.is_empty() { "unknown".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["labels", "records"];

    #[test]
    fn marks_come_back_or_are_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        assert_eq!(Marks::read(&path, &NAMES).unwrap(), Err("missing"));
        Marks::create(&path, &NAMES.map(|name| (name, Mark::default()))).unwrap();
        let marks = Marks::open(&path).unwrap();
        let end = Position { number: u64::MAX, checksum: u32::MAX };
        marks.slot(1, "records").write(Mark { end, is_on_disk: true }).unwrap();
        let of = |end, is_on_disk| (Mark { end, is_on_disk }, true);
        let read = || Marks::read(&path, &NAMES).unwrap();
        assert_eq!(read(), Ok(vec![of(Position::default(), false), of(end, true)]));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), NAMES.len() * SLOT_LEN);
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            std::fs::write(&path, &changed).unwrap();
            assert_eq!(read(), Err("damaged"), "byte {place}");
        }
        std::fs::write(&path, &bytes[..SLOT_LEN]).unwrap();
        assert_eq!(read(), Err("damaged"));
    }

    /// Lines from before the machine's boot may be lost, unless they were on the disk.
    #[test]
    fn a_mark_of_before_the_machine_was_started_is_no_promise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        let end = Position { number: 7, checksum: 1 };
        let mark = |is_on_disk| Mark { end, is_on_disk }.write("labels", "00000000-another-start");
        std::fs::write(&path, [mark(false), mark(true)].concat()).unwrap();
        let read = Marks::read(&path, &["labels", "labels"]).unwrap().unwrap();
        assert_eq!(read.iter().map(|mark| mark.1).collect::<Vec<_>>(), [false, true]);
    }
}
