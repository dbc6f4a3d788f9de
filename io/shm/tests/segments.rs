//! Tests of segments of market data: names, quotes, updates, and writers that end.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use tempfile::TempDir;
use tickpath_lockfree::broadcast::Lagged;
use tickpath_lockfree::table::{NoEntry, ReadError};
use tickpath_shm::{
    Damage, Folder, NameError, Reclaimed, SegmentConfig, SegmentName, SegmentReader, SegmentWriter, ShmError,
    WriterState, reclaim, reclaim_unfinished, verify,
};
use tickpath_test_support::{Deadline, PATIENCE, this_test, until, wait_until};
use tickpath_types::{MarketUpdate, Nanos, PriceLevel, TopOfBook, UpdateKind};
use zerocopy::FromZeros;

/// Environment variable that passes the segment's folder to the writer in a child process.
const CHILD_FOLDER: &str = "TICKPATH_SHM_TEST_FOLDER";

struct Site {
    _place: TempDir,
    folder: Folder,
    name: SegmentName,
}

fn site() -> Site {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(&place.path().join("shm")).unwrap();
    Site { _place: place, folder, name: SegmentName::new("feed").unwrap() }
}

const SMALL: SegmentConfig =
    SegmentConfig { rows: 8, stream_capacity: 4, time_base: tickpath_shm::TimeBase::Midnight };

impl Site {
    /// Creates a writer once the name is free. A child process that another test starts briefly inherits the
    /// descriptors of this process, and with them the lock of a writer that has ended.
    fn writer(&self) -> SegmentWriter {
        until(|| match self.try_writer() {
            Err(ShmError::InUse { .. }) => None,
            made => Some(made.unwrap()),
        })
    }

    /// Reclaims the segment. A child process that another test starts briefly inherits this process's locks.
    fn reclaim(&self) -> Reclaimed {
        until(|| Some(reclaim(&self.folder, &self.name).unwrap()).filter(|it| *it != Reclaimed::Kept))
    }

    fn try_writer(&self) -> Result<SegmentWriter, ShmError> {
        SegmentWriter::create(&self.folder, &self.name, &SMALL, Nanos(5))
    }

    fn reader(&self) -> SegmentReader {
        self.try_reader().unwrap()
    }

    fn try_reader(&self) -> Result<SegmentReader, ShmError> {
        SegmentReader::open(&self.folder, &self.name)
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.file(&self.name)
    }

    fn damage(&self) -> Damage {
        match self.try_reader() {
            Err(ShmError::Damaged { damage, .. }) => damage,
            other => panic!("{other:?}"),
        }
    }
}

fn quote(number: u64) -> TopOfBook {
    TopOfBook {
        bid: PriceLevel { price: number as i64, qty: !number },
        ask: PriceLevel { price: -(number as i64), qty: number ^ 77 },
        last_price: number as i64 + 1,
        ts_event: number,
        last_qty: number as u32,
        ..TopOfBook::default()
    }
}

fn update(sequence: u64) -> MarketUpdate {
    MarketUpdate { sequence, kind: UpdateKind::Trade as u8, ..MarketUpdate::new_zeroed() }
}

#[test]
fn names_quotes_and_updates_arrive() {
    let site = site();
    let mut writer = site.writer();
    let reader = site.reader();
    let mut stream = reader.stream().unwrap();
    assert_eq!((writer.rows(), reader.rows(), reader.named(), reader.heartbeat()), (8, 8, 0, Nanos(5)));
    assert_eq!((reader.find("ALPHA"), reader.try_read(3)), (None, Ok(TopOfBook::default())));

    writer.name(3, "ALPHA").unwrap();
    writer.name(0, "BTC-PERPETUAL").unwrap();
    writer.write(3, &quote(9)).unwrap();
    for sequence in 1..=3 {
        writer.send(&update(sequence));
    }
    assert_eq!((reader.find("ALPHA"), reader.find("BTC-PERPETUAL"), reader.named()), (Some(3), Some(0), 2));
    assert_eq!(reader.symbols().map(|(index, _)| index).collect::<Vec<_>>(), [0, 3]);
    assert_eq!((reader.try_read(3), reader.try_read(0)), (Ok(quote(9)), Ok(TopOfBook::default())));
    assert_eq!(reader.entry(3).unwrap().writes(), 1);
    for sequence in 1..=3 {
        assert_eq!(stream.try_recv(), Ok(Some(update(sequence))));
    }
    assert_eq!(stream.try_recv(), Ok(None));
    for sequence in 4..=10 {
        writer.send(&update(sequence));
    }
    assert_eq!(stream.try_recv(), Err(Lagged(3)));
    assert_eq!(stream.try_recv(), Ok(Some(update(7))));

    writer.heartbeat(Nanos(99));
    assert_eq!((reader.heartbeat(), reader.quotes_written()), (Nanos(99), 1));
    writer.name(3, "OTHER").unwrap();
    assert_eq!((reader.find("ALPHA"), reader.find("OTHER"), reader.named()), (None, Some(3), 3));
    let verified = verify(&reader);
    assert_eq!((verified.symbols, verified.quotes, verified.updates), (2, 1, 4));
    assert_eq!(verified.problems, [""; 0]);
}

#[test]
fn requests_beyond_the_bounds_are_rejected() {
    let site = site();
    let mut writer = site.writer();
    writer.write(7, &quote(1)).unwrap();
    assert_eq!(writer.write(8, &quote(1)), Err(NoEntry));
    assert_eq!(writer.name(8, "A"), Err(NameError::NoRow { index: 8, rows: 8 }));
    for bad in ["", "A B", "\u{1b}[2J", &"X".repeat(49)] {
        assert_eq!(writer.name(0, bad), Err(NameError::Text), "{bad:?}");
    }
    let reader = site.reader();
    assert_eq!((reader.try_read(8), reader.symbol(8)), (Err(ReadError::NoEntry), None));
    for bad in ["", ".", "..", "a/b", "a b", &"x".repeat(65)] {
        assert!(matches!(SegmentName::new(bad), Err(ShmError::Name(_))), "{bad:?}");
    }
    let problems = verify(&reader).problems;
    assert_eq!(problems, ["row 7: it has quotes and no name"]);
}

#[test]
fn there_is_one_writer_and_the_next_one_makes_a_new_generation() {
    let site = site();
    assert!(matches!(site.try_reader(), Err(ShmError::Missing { .. })));
    let mut first = site.writer();
    first.name(1, "ALPHA").unwrap();
    first.write(1, &quote(1)).unwrap();
    let pid = Some(std::process::id());
    let error = site.try_writer().unwrap_err();
    assert!(matches!(error, ShmError::InUse { pid: found, .. } if found == pid), "{error}");
    assert_eq!(reclaim(&site.folder, &site.name).unwrap(), Reclaimed::Kept);

    let old = site.reader();
    assert_eq!(
        (old.writer_state(), old.is_replaced(), old.header().generation),
        (WriterState::Alive, false, 1)
    );
    drop(first);
    assert_eq!((old.writer_state(), old.is_replaced()), (WriterState::Closed, false));
    assert_eq!(old.try_read(1), Ok(quote(1)), "what was written last stays");

    let second = site.writer();
    assert!(old.is_replaced() && old.is_whole());
    assert_eq!(old.try_read(1), Ok(quote(1)));
    let new = site.reader();
    assert_eq!((new.header().generation, new.find("ALPHA"), new.is_replaced()), (2, None, false));
    drop(second);
    assert_eq!(site.reclaim(), Reclaimed::Removed);
    assert!(new.is_replaced());
    assert!(matches!(reclaim(&site.folder, &site.name), Err(ShmError::Missing { .. })));
    assert_eq!(site.folder.names().unwrap(), []);
}

#[test]
fn the_lock_of_a_closed_segment_is_waited_for() {
    let site = site();
    let first = site.writer();
    let path = first.path().to_owned();
    drop(first);
    // Hold the lock briefly, as a child process does while it is being started.
    let held = std::fs::File::open(path).unwrap();
    held.lock().unwrap();
    let (begun, begins) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let next = scope.spawn(|| {
            begun.send(()).unwrap();
            site.try_writer()
        });
        begins.recv().unwrap();
        drop(held);
        assert_eq!(next.join().unwrap().unwrap().header().generation, 2);
    });
}

#[test]
fn one_of_many_concurrent_writers_wins() {
    let site = site();
    for round in 1..=20 {
        let start = || -> Vec<_> {
            thread::scope(|scope| {
                let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| site.try_writer())).collect();
                starts.into_iter().map(|start| start.join().unwrap()).collect()
            })
        };
        // Retry, because a child process being started may hold the lock, as in `Site::writer`.
        let writers = until(|| Some(start()).filter(|writers| writers.iter().any(Result::is_ok)));
        let winners: Vec<_> = writers.iter().filter_map(|writer| writer.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1, "{writers:?}");
        assert_eq!(site.reader().header().generation, round);
        for loser in writers.iter().filter_map(|writer| writer.as_ref().err()) {
            assert!(matches!(loser, ShmError::InUse { .. } | ShmError::ConcurrentChange(_)), "{loser}");
        }
    }
    assert_eq!(fs::read_dir(site.folder.path()).unwrap().count(), 1, "nothing is left lying about");
}

#[test]
fn a_damaged_segment_is_refused_and_can_be_replaced_or_reclaimed() {
    let site = site();
    let len = site.writer().header().file_len;
    let file = OpenOptions::new().write(true).open(site.file()).unwrap();
    let reader = site.reader();
    file.set_len(len - 4096).unwrap();
    assert!(!reader.is_whole());
    assert_eq!(site.damage(), Damage::Length { stated: len, found: len - 4096 });
    file.set_len(100).unwrap();
    assert_eq!(site.damage(), Damage::Short(100));
    file.set_len(len).unwrap();
    assert_eq!(site.damage(), Damage::Checksum);
    file.write_all_at(b"something else, as it seems", 0).unwrap();
    assert_eq!(site.damage(), Damage::Magic);
    drop(reader);

    let writer = site.writer();
    assert_eq!(site.reader().header().generation, 1);
    drop(writer);
    fs::write(site.file(), b"").unwrap();
    assert_eq!(site.damage(), Damage::Short(0));
    assert_eq!(site.reclaim(), Reclaimed::Removed);
}

#[test]
fn files_that_others_could_have_written_are_rejected() {
    let site = site();
    drop(site.writer());
    fs::set_permissions(site.file(), Permissions::from_mode(0o620)).unwrap();
    assert!(matches!(site.try_reader(), Err(ShmError::NotPrivate(_))));
    assert!(matches!(site.try_writer(), Err(ShmError::NotPrivate(_))));
    fs::set_permissions(site.file(), Permissions::from_mode(0o600)).unwrap();
    fs::rename(site.file(), site.folder.path().join("elsewhere")).unwrap();
    symlink(site.folder.path().join("elsewhere"), site.file()).unwrap();
    assert!(matches!(site.try_reader(), Err(ShmError::NotAFile(_))));
    assert!(matches!(site.try_writer(), Err(ShmError::NotAFile(_))));
    fs::remove_file(site.file()).unwrap();
    nix::unistd::mkfifo(&site.file(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(site.try_reader(), Err(ShmError::NotAFile(_))));
    fs::set_permissions(site.folder.path(), Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Folder::open(site.folder.path()), Err(ShmError::NotPrivate(_))));
    assert!(matches!(Folder::open(Path::new("/dev/null")), Err(ShmError::NotPrivate(_))));
}

#[test]
fn the_file_is_for_its_user_alone() {
    let site = site();
    let _writer = site.writer();
    assert_eq!(fs::metadata(site.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(site.folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn invalid_values_are_found() {
    let site = site();
    let mut writer = site.writer();
    writer.name(1, "ALPHA").unwrap();
    for sequence in 1..=4 {
        writer.send(&update(sequence));
    }
    let header = *writer.header();
    drop(writer);
    let file = OpenOptions::new().write(true).open(site.file()).unwrap();
    let put = |offset: u64, value: u64| file.write_all_at(&value.to_le_bytes(), offset).unwrap();
    put(header.layout.names_offset + 2 * 64 + 8, 0x1b);
    put(header.layout.names_offset + 2 * 64, 2);
    put(header.layout.quotes_offset + 64, 7);
    put(header.layout.stream_offset + 2 * 64 + 128, 3);
    let reader = site.reader();
    assert_eq!(reader.try_read(1), Err(ReadError::Busy));
    assert_eq!(reader.symbol(2), None);
    let verified = verify(&reader);
    let expected = [
        "row 1: its quote was never completely written",
        "row 2: its name is not printable",
        "update 1 of 4 is missing",
    ];
    assert_eq!((verified.problems, verified.problem_count), (expected.map(str::to_owned).to_vec(), 3));
}

/// Not a test: the writer that other tests start as a process and kill.
#[test]
fn child_writer() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let folder = Folder::open(Path::new(&folder)).unwrap();
    let name = SegmentName::new("feed").unwrap();
    let mut writer = SegmentWriter::create(&folder, &name, &SMALL, Nanos(5)).unwrap();
    writer.name(1, "ALPHA").unwrap();
    // If the test that started this writer dies before killing it, the writer ends by itself.
    let deadline = Deadline::after(2 * PATIENCE);
    for number in 1.. {
        for row in 0..8 {
            writer.write(row, &quote(number)).unwrap();
        }
        writer.send(&update(number));
        if number % 1_000 == 0 && deadline.is_over() {
            return;
        }
    }
}

fn start_child(site: &Site) -> Child {
    this_test(module_path!(), "child_writer")
        .env(CHILD_FOLDER, site.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_writer_is_dead_and_its_data_is_whole() {
    let site = site();
    let mut child = start_child(&site);
    wait_until("the writer", || site.try_reader().is_ok_and(|reader| reader.find("ALPHA").is_some()));
    let reader = site.reader();
    let mut stream = reader.stream().unwrap();
    assert_eq!((reader.writer_state(), reader.header().writer.pid), (WriterState::Alive, child.id()));
    assert!(matches!(site.try_writer(), Err(ShmError::InUse { pid, .. }) if pid == Some(child.id())));
    let (mut reads, mut last, mut sequence) = (0, [0; 8], 0);
    until(|| {
        for (row, last) in last.iter_mut().enumerate() {
            let Ok(read) = reader.try_read(row) else { continue };
            assert!(read == quote(read.ts_event) || read == TopOfBook::default(), "torn: {read:?}");
            assert!(read.ts_event >= *last);
            (*last, reads) = (read.ts_event, reads + 1);
        }
        if let Ok(Some(read)) = stream.try_recv() {
            assert!(read == update(read.sequence) && read.sequence > sequence);
            sequence = read.sequence;
        }
        (reads > 20_000 && sequence > 0).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(reader.writer_state(), WriterState::Dead);
    // The writer was killed at a random point: a row being written stays busy; the other rows are readable.
    let readable = (0..8).filter(|row| reader.try_read(*row).is_ok()).count();
    assert!(readable >= 7, "{readable}");
    let next = site.writer();
    assert!(reader.is_replaced());
    assert_eq!(next.header().generation, 2);
}

#[test]
fn only_unfinished_files_of_killed_writers_are_removed() {
    let site = site();
    let writer = site.writer();
    let left = site.folder.path().join(".feed.1.0.new");
    fs::write(&left, b"").unwrap();
    let being_made = fs::File::create(site.folder.path().join(".feed.1.1.new")).unwrap();
    being_made.try_lock().unwrap();
    // Opening a FIFO must not block the call.
    let pipe = site.folder.path().join(".feed.1.2.new");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(reclaim_unfinished(&site.folder).unwrap(), 2);
    assert!(!left.exists() && site.file().exists());
    drop((being_made, writer));
    assert_eq!(reclaim_unfinished(&site.folder).unwrap(), 1);
    assert_eq!(site.folder.names().unwrap(), std::slice::from_ref(&site.name));
}

#[test]
fn a_segment_without_a_stream_has_none() {
    let site = site();
    let config = SegmentConfig { stream_capacity: 0, ..SMALL };
    let mut writer = SegmentWriter::create(&site.folder, &site.name, &config, Nanos(1)).unwrap();
    writer.send(&update(1));
    let reader = site.reader();
    assert!(reader.stream().is_none());
    assert_eq!(verify(&reader).problems, [""; 0]);
}
