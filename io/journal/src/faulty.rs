//! An in-memory disk with fault injection, for tests and for simulations of whole systems.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tickpath_types::Rng;

use crate::{SharedBytes, Storage, StorageFile};

/// Sector size, in bytes. The disk writes a sector completely or not at all.
const SECTOR_LEN: u64 = 512;
/// Denominator of the fault probabilities.
const MILLION: u64 = 1_000_000;

/// Kinds and probabilities of the injected faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFaults {
    /// Maximum total length of all files, in bytes; beyond it, writes fail as on a full disk.
    pub capacity: u64,
    /// Probability of a write failure, in millionths; part of the data is written.
    pub write_failures_ppm: u32,
    /// Probability of a sync failure, in millionths. Part of the unsynced data is lost although reads still
    /// show it, and the next sync succeeds without it, as on Linux.
    pub sync_failures_ppm: u32,
}

impl Default for DiskFaults {
    /// A disk of 1 GiB without faults.
    fn default() -> Self {
        DiskFaults { capacity: 1 << 30, write_failures_ppm: 0, sync_failures_ppm: 0 }
    }
}

/// Counts of syncs and faults so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Number of syncs.
    pub syncs: u64,
    /// Number of failed writes.
    pub failed_writes: u64,
    /// Number of failed syncs.
    pub failed_syncs: u64,
    /// Number of writes and allocations refused because the disk was full.
    pub disk_full: u64,
    /// Number of crashes, each with the loss of unsynced data.
    pub crashes: u64,
    /// Number of written but unsynced sectors that a crash lost or tore.
    pub lost_sectors: u64,
}

/// An in-memory disk whose faults all follow from a seed. Clones share the disk.
///
/// Writes go to a cache, which survives the death of a process ([`FaultyDisk::kill`]). After a power loss
/// ([`FaultyDisk::crash`]) the disk keeps one of these parts of the unsynced data: nothing, everything, a
/// prefix of the bytes in write order, or any subset of the sectors. It keeps a prefix of the name changes.
/// After a kill or a crash, each file opened earlier fails every operation: it belongs to the dead process.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    inner: Arc<Mutex<Disk>>,
}

#[derive(Debug)]
struct Disk {
    rng: Rng,
    faults: DiskFaults,
    counters: DiskCounters,
    files: Vec<Contents>,
    /// Files by name, as the process sees them.
    names: BTreeMap<String, usize>,
    /// Files by name, as on the disk.
    stable_names: BTreeMap<String, usize>,
    /// Name changes that are not on the disk yet.
    changes: Vec<Change>,
    /// Number of the current process: files of an earlier one are invalid.
    process: u64,
    /// The lock that the current process holds, if any.
    lock: Weak<()>,
    fail_writes: u32,
    fail_syncs: u32,
    /// Number of changes still to happen before the planned power loss; `None` if none is planned.
    crash_in: Option<u64>,
}

/// Names that change together, each with its new file; `None` for a removed name.
type Change = Vec<(String, Option<usize>)>;

#[derive(Debug, Default)]
struct Contents {
    cached: Vec<u8>,
    stable: Vec<u8>,
    /// Sectors that differ from the disk, in write order.
    dirty: Vec<u64>,
    is_dirty: BTreeSet<u64>,
    /// Number of failed syncs. As on Linux, each handle open at that time reports the failure once.
    failed_syncs: u32,
}

/// An open file of a [`FaultyDisk`].
#[derive(Debug)]
pub struct FaultyFile {
    disk: FaultyDisk,
    file: usize,
    process: u64,
    /// Number of the file's failed syncs that this handle has reported, or that preceded its opening.
    failures_seen: u32,
}

impl FaultyDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new(seed: u64, faults: DiskFaults) -> FaultyDisk {
        let disk = Disk {
            rng: Rng::new(seed),
            faults,
            counters: DiskCounters::default(),
            files: Vec::new(),
            names: BTreeMap::new(),
            stable_names: BTreeMap::new(),
            changes: Vec::new(),
            process: 0,
            lock: Weak::new(),
            fail_writes: 0,
            fail_syncs: 0,
            crash_in: None,
        };
        FaultyDisk { inner: Arc::new(Mutex::new(disk)) }
    }

    /// Kills the process; all its writes stay.
    pub fn kill(&self) {
        self.disk().kill();
    }

    /// Loses power: kills the process and keeps only part of the unsynced data.
    pub fn crash(&self) {
        self.disk().crash();
    }

    /// Lets `changes` more writes, syncs and name changes happen, and loses power instead of the next one.
    pub fn crash_after(&self, changes: u64) {
        self.disk().crash_in = Some(changes);
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.disk().faults = faults;
    }

    /// Makes the next `count` writes fail.
    pub fn fail_writes(&self, count: u32) {
        self.disk().fail_writes = count;
    }

    /// Makes the next `count` syncs of files fail.
    pub fn fail_syncs(&self, count: u32) {
        self.disk().fail_syncs = count;
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counters(&self) -> DiskCounters {
        self.disk().counters
    }

    /// Returns a file's bytes as the process sees them; `None` when there is no such file.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        disk.names.get(name).map(|file| disk.files[*file].cached.clone())
    }

    /// Creates a file whose bytes are all on the disk.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut disk = self.disk();
        disk.add(name, Contents { stable: bytes.clone(), cached: bytes, ..Contents::default() });
        disk.sync_names();
    }

    fn handle(&self, disk: &Disk, file: usize) -> FaultyFile {
        let failures_seen = disk.files[file].failed_syncs;
        FaultyFile { disk: self.clone(), file, process: disk.process, failures_seen }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // Ignore that the lock is poisoned: the thread that panicked reports the panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next() % bound.max(1)
    }

    /// Returns whether a fault occurs now. A count `forced` above zero makes it occur, and is decremented;
    /// otherwise the probability is `ppm` millionths.
    fn is_fault_due(&mut self, ppm: u32, forced: impl Fn(&mut Disk) -> &mut u32) -> bool {
        if *forced(self) > 0 {
            *forced(self) -= 1;
            return true;
        }
        ppm > 0 && self.below(MILLION) < u64::from(ppm)
    }

    fn add(&mut self, name: &str, contents: Contents) -> usize {
        let file = self.files.len();
        self.files.push(contents);
        self.names.insert(name.to_owned(), file);
        self.changes.push(vec![(name.to_owned(), Some(file))]);
        file
    }

    fn sync_names(&mut self) {
        self.changes.clear();
        self.stable_names = self.names.clone();
    }

    fn check_capacity(&mut self, file: usize, len: u64) -> io::Result<()> {
        let others: u64 =
            self.names.values().filter(|other| **other != file).map(|other| self.files[*other].len()).sum();
        if others.saturating_add(len) > self.faults.capacity {
            self.counters.disk_full += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn kill(&mut self) {
        self.process += 1;
        self.lock = Weak::new();
        self.crash_in = None;
    }

    /// Counts a change towards the planned power loss, and loses power if it is due. Call before each change.
    fn before_change(&mut self) -> io::Result<()> {
        match &mut self.crash_in {
            Some(0) => {
                self.crash();
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Some(changes) => {
                *changes -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn crash(&mut self) {
        self.kill();
        self.counters.crashes += 1;
        for file in 0..self.files.len() {
            let contents = std::mem::take(&mut self.files[file]);
            self.files[file] = self.after_power_loss(contents);
        }
        let survive = self.below(self.changes.len() as u64 + 1) as usize;
        for (name, file) in self.changes.drain(..).take(survive).flatten() {
            match file {
                Some(file) => _ = self.stable_names.insert(name, file),
                None => _ = self.stable_names.remove(&name),
            }
        }
        self.names = self.stable_names.clone();
    }

    fn after_power_loss(&mut self, contents: Contents) -> Contents {
        let Contents { cached, mut stable, dirty, .. } = contents;
        let mode = self.below(4);
        let prefix = self.below(dirty.len() as u64 + 1) as usize;
        // If only the file's length is unsynced, the disk keeps the old or the new length.
        if cached.len() != stable.len() && (!dirty.is_empty() || self.below(2) == 0) {
            stable.resize(cached.len(), 0);
        }
        for (place, sector) in dirty.iter().enumerate() {
            let from = (sector * SECTOR_LEN) as usize;
            let to = (from + SECTOR_LEN as usize).min(cached.len()).min(stable.len());
            if from >= to {
                continue;
            }
            let kept = match mode {
                0 => 0,
                1 => to - from,
                2 if place < prefix => to - from,
                // The prefix ends within this sector: keep the sector's first bytes.
                2 if place == prefix => self.below((to - from) as u64) as usize,
                2 => 0,
                _ if self.below(2) == 0 => to - from,
                _ => 0,
            };
            stable[from..from + kept].copy_from_slice(&cached[from..from + kept]);
            self.counters.lost_sectors += u64::from(kept < to - from);
        }
        Contents { cached: stable.clone(), stable, ..Contents::default() }
    }
}

impl Contents {
    fn len(&self) -> u64 {
        self.cached.len() as u64
    }

    fn write(&mut self, bytes: &[u8], offset: u64) {
        let (from, to) = (offset as usize, offset as usize + bytes.len());
        if to > self.cached.len() {
            self.cached.resize(to, 0);
        }
        self.cached[from..to].copy_from_slice(bytes);
        if bytes.is_empty() {
            return;
        }
        for sector in offset / SECTOR_LEN..=(to as u64 - 1) / SECTOR_LEN {
            if self.is_dirty.insert(sector) {
                self.dirty.push(sector);
            }
        }
    }

    /// Writes the dirty sectors for which `keep` returns true to the disk. Later syncs ignore the others.
    fn sync(&mut self, mut keep: impl FnMut() -> bool) {
        self.stable.resize(self.cached.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let from = (sector * SECTOR_LEN) as usize;
            let to = (from + SECTOR_LEN as usize).min(self.cached.len());
            if from < to && keep() {
                self.stable[from..to].copy_from_slice(&self.cached[from..to]);
            }
        }
        self.is_dirty.clear();
    }
}

impl Storage for FaultyDisk {
    type File = FaultyFile;
    type Lock = Arc<()>;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<FaultyFile> {
        let disk = self.disk();
        let file = *disk.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(&disk, file))
    }

    fn create(&self, name: &str) -> io::Result<FaultyFile> {
        let mut disk = self.disk();
        disk.before_change()?;
        let file = disk.add(name, Contents::default());
        Ok(self.handle(&disk, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.before_change()?;
        let file = disk.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.names.insert(to.to_owned(), file);
        disk.changes.push(vec![(from.to_owned(), None), (to.to_owned(), Some(file))]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.before_change()?;
        disk.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        disk.changes.push(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.before_change()?;
        disk.sync_names();
        Ok(())
    }

    fn boot(&self) -> Option<u128> {
        Some(1 + u128::from(self.disk().counters.crashes))
    }

    fn lock(&self) -> io::Result<Option<Arc<()>>> {
        let mut disk = self.disk();
        if disk.lock.strong_count() > 0 {
            return Ok(None);
        }
        let lock = Arc::new(());
        disk.lock = Arc::downgrade(&lock);
        Ok(Some(lock))
    }
}

impl FaultyFile {
    /// Returns the disk, if the process that opened the file is still alive.
    fn disk_if_alive(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk.disk();
        if disk.process == self.process { Ok(disk) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

impl StorageFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk_if_alive()?.files[self.file].len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.disk_if_alive()?;
        let cached = &disk.files[self.file].cached;
        let from = (offset as usize).min(cached.len());
        let len = out.len().min(cached.len() - from);
        out[..len].copy_from_slice(&cached[from..from + len]);
        Ok(len)
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk_if_alive()?;
        disk.before_change()?;
        let end = (offset + bytes.len() as u64).max(disk.files[self.file].len());
        disk.check_capacity(self.file, end)?;
        let ppm = disk.faults.write_failures_ppm;
        if disk.is_fault_due(ppm, |disk| &mut disk.fail_writes) {
            disk.counters.failed_writes += 1;
            let arrived = disk.below(bytes.len() as u64) as usize;
            disk.files[self.file].write(&bytes[..arrived], offset);
            return Err(io::Error::from_raw_os_error(nix::libc::EIO));
        }
        disk.files[self.file].write(bytes, offset);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.disk_if_alive()?;
        disk.before_change()?;
        disk.counters.syncs += 1;
        let ppm = disk.faults.sync_failures_ppm;
        let mut contents = std::mem::take(&mut disk.files[self.file]);
        let fails = disk.is_fault_due(ppm, |disk| &mut disk.fail_syncs);
        if fails {
            disk.counters.failed_syncs += 1;
            contents.failed_syncs += 1;
            contents.sync(|| disk.below(2) == 0);
        } else {
            contents.sync(|| true);
        }
        let failures = contents.failed_syncs;
        disk.files[self.file] = contents;
        drop(disk);
        if std::mem::replace(&mut self.failures_seen, failures) != failures {
            Err(io::Error::from_raw_os_error(nix::libc::EIO))
        } else {
            Ok(())
        }
    }

    fn allocate(&mut self, len: u64) -> io::Result<()> {
        let mut disk = self.disk_if_alive()?;
        disk.before_change()?;
        disk.check_capacity(self.file, len)?;
        let cached = &mut disk.files[self.file].cached;
        if (cached.len() as u64) < len {
            cached.resize(len as usize, 0);
        }
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut disk = self.disk_if_alive()?;
        disk.before_change()?;
        let contents = &mut disk.files[self.file];
        contents.cached.truncate(len as usize);
        Ok(())
    }

    fn share(self, _: usize) -> io::Result<Box<dyn SharedBytes>> {
        Ok(Box::new(self))
    }
}

impl SharedBytes for FaultyFile {
    fn write(&mut self, bytes: &[u8], at: usize) {
        // A dead process writes nothing.
        if let Ok(mut disk) = self.disk_if_alive() {
            disk.files[self.file].write(bytes, at as u64);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk_with(bytes: &[u8], seed: u64) -> (FaultyDisk, FaultyFile) {
        let disk = FaultyDisk::new(seed, DiskFaults::default());
        let mut file = disk.create("a").unwrap();
        file.allocate(4096).unwrap();
        file.sync().unwrap();
        disk.sync_names().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        (disk, file)
    }

    #[test]
    fn synced_data_survives_and_the_rest_partly() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..200 {
            let (disk, mut file) = disk_with(&[1; 1024], seed);
            file.sync().unwrap();
            file.write_all_at(&[2; 2048], 1024).unwrap();
            disk.crash();
            let bytes = disk.contents("a").unwrap();
            assert_eq!((bytes.len(), &bytes[..1024]), (4096, &[1; 1024][..]));
            outcomes.insert(bytes);
            assert!(file.sync().is_err(), "the process is dead");
        }
        assert!(outcomes.len() > 20, "{}", outcomes.len());
    }

    #[test]
    fn a_killed_process_leaves_its_writes() {
        let (disk, _file) = disk_with(&[1; 100], 1);
        disk.kill();
        assert_eq!(disk.contents("a").unwrap()[..100], [1; 100]);
    }

    #[test]
    fn a_sync_after_a_failed_sync_proves_nothing() {
        let lost = (0..50).any(|seed| {
            let (disk, mut file) = disk_with(&[1; 1024], seed);
            disk.fail_syncs(1);
            assert!(file.sync().is_err());
            assert!(file.sync().is_ok());
            disk.crash();
            disk.contents("a").unwrap()[..1024] != [1; 1024]
        });
        assert!(lost);
    }

    #[test]
    fn every_handle_reports_a_failed_sync_once() {
        let (disk, mut file) = disk_with(&[1; 1024], 1);
        let mut other = disk.open("a").unwrap();
        disk.fail_syncs(1);
        assert!(file.sync().is_err());
        assert!(disk.open("a").unwrap().sync().is_ok(), "opened afterwards");
        assert!(other.sync().is_err());
        assert!(other.sync().is_ok() && file.sync().is_ok());
    }

    #[test]
    fn names_are_lost_with_power_unless_they_were_synced() {
        let survived = (0..50).filter(|seed| {
            let disk = FaultyDisk::new(*seed, DiskFaults::default());
            disk.create("a").unwrap();
            disk.crash();
            disk.contents("a").is_some()
        });
        assert!((1..50).contains(&survived.count()));
    }

    #[test]
    fn a_full_disk_refuses() {
        let disk = FaultyDisk::new(1, DiskFaults { capacity: 1000, ..DiskFaults::default() });
        let mut file = disk.create("a").unwrap();
        file.allocate(1000).unwrap();
        file.write_all_at(&[1; 1000], 0).unwrap();
        let error = file.write_all_at(&[1], 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.counters().disk_full, 1);
    }
}
