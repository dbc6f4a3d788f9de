//! Damage to one file of a journal's folder.

use std::fs;
use std::path::{Path, PathBuf};

use tickpath_journal::{ACKNOWLEDGED_FILE, GENERATION_FILE};

/// Page size of the file system.
const PAGE: usize = 4_096;

/// Random numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// The kind of file that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Segment,
    Snapshot,
    Generation,
    Acknowledged,
}

impl Target {
    pub const ALL: [Target; 4] =
        [Target::Segment, Target::Snapshot, Target::Generation, Target::Acknowledged];

    pub fn name(self) -> &'static str {
        match self {
            Target::Segment => "segment",
            Target::Snapshot => "snapshot",
            Target::Generation => "generation",
            Target::Acknowledged => "acknowledged",
        }
    }

    fn is(self, name: &str) -> bool {
        match self {
            Target::Segment => name.ends_with(".journal") || name == "prepared.segment",
            Target::Snapshot => name.starts_with("snapshot-"),
            Target::Generation => name == GENERATION_FILE,
            Target::Acknowledged => name == ACKNOWLEDGED_FILE,
        }
    }
}

/// Damages the bytes of a file; false if the file is too short for this damage.
type Damage = fn(&mut Vec<u8>, &mut Random) -> bool;

/// All kinds of damage. `removed` changes no bytes: the caller removes the file.
pub fn kinds() -> [(&'static str, Damage); 5] {
    [
        ("bit", |bytes, random| flip(bytes, random)),
        ("zeroes", |bytes, random| zero(bytes, random)),
        ("cut", cut),
        ("swapped", |bytes, random| swap(bytes, random)),
        ("removed", |_, _| true),
    ]
}

/// Damages a random file of the folder. Returns the kind of file, the kind of damage, and the path.
pub fn damage(folder: &Path, random: &mut Random) -> (Target, &'static str, PathBuf) {
    loop {
        // Choose segments in five of eight cases.
        let target = Target::ALL[random.below(8).saturating_sub(4)];
        let (kind, damage) = kinds()[random.below(5)];
        let names = files(folder, |name| target.is(name));
        let path = folder.join(&names[random.below(names.len())]);
        let mut bytes = fs::read(&path).unwrap();
        let before = bytes.clone();
        if !damage(&mut bytes, random) {
            continue;
        }
        if kind == "removed" {
            fs::remove_file(&path).unwrap();
        } else if bytes != before {
            fs::write(&path, &bytes).unwrap();
        } else {
            continue;
        }
        return (target, kind, path);
    }
}

/// Removes all files that record where the log ends: those of the acknowledged end and the generation, the
/// latest snapshot, and the close mark, which is a segment without records.
pub fn remove_end_marks(folder: &Path) {
    let snapshot = files(folder, |name| Target::Snapshot.is(name)).pop();
    let beside = [ACKNOWLEDGED_FILE, GENERATION_FILE].map(str::to_owned);
    let close_mark = files(folder, |name| name.ends_with(".journal")).pop();
    for name in beside.into_iter().chain(close_mark).chain(snapshot) {
        fs::remove_file(folder.join(name)).unwrap();
    }
}

/// Flips a bit in the last record of the log.
pub fn flip_in_the_last_record(folder: &Path, random: &mut Random) {
    let path = folder.join(files(folder, |name| name.ends_with(".journal")).pop().unwrap());
    let mut bytes = fs::read(&path).unwrap();
    let end = used(&bytes);
    bytes[end - 1 - random.below(32)] ^= 1 << random.below(8);
    fs::write(path, bytes).unwrap();
}

/// Names of the matching files, in ascending order.
fn files(folder: &Path, is_match: impl Fn(&str) -> bool) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| is_match(name)).collect();
    names.sort_unstable();
    names
}

/// Length of the file `bytes` without its trailing zeroes, which were never written.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// A random offset in the [`used`] part of a file; in half of the cases, in its last two pages.
fn place(bytes: &[u8], random: &mut Random) -> usize {
    let used = used(bytes).max(1);
    let near = if random.below(2) == 0 { used.min(2 * PAGE) } else { used };
    used - 1 - random.below(near)
}

/// Length of the unit that `zero` and `swap` change: a page, less for short files.
fn page(bytes: &[u8]) -> usize {
    if bytes.len() > PAGE { PAGE } else { (bytes.len() / 4).next_multiple_of(16).max(16) }
}

fn flip(bytes: &mut [u8], random: &mut Random) -> bool {
    let at = place(bytes, random);
    bytes.get_mut(at).map(|byte| *byte ^= 1 << random.below(8)).is_some()
}

fn zero(bytes: &mut [u8], random: &mut Random) -> bool {
    let from = place(bytes, random) / page(bytes) * page(bytes);
    let to = (from + page(bytes)).min(bytes.len());
    bytes[from..to].fill(0);
    true
}

fn cut(bytes: &mut Vec<u8>, random: &mut Random) -> bool {
    let len = place(bytes, random);
    bytes.truncate(len);
    true
}

fn swap(bytes: &mut [u8], random: &mut Random) -> bool {
    let page = page(bytes);
    let pages = bytes.len() / page;
    if pages < 2 {
        return false;
    }
    let (one, other) = (place(bytes, random) / page, random.below(pages));
    if one >= pages {
        return false;
    }
    (0..page).for_each(|at| bytes.swap(one * page + at, other * page + at));
    true
}
