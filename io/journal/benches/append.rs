//! Measures the cost of an append, and the time to durability compared with a bare write and `fdatasync`.
//!
//! `cargo bench -p tickpath-journal --bench append [-- --dir FOLDER]` uses the disk of the folder, by default
//! the target folder's. Rounds of the journal and of bare system calls alternate, so that a slow phase of the
//! disk affects both. The line "the same again" is a second measurement of the bare calls, which shows the
//! noise. Without `--bench` it runs a short version of each measurement.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use tickpath_journal::{
    AppendError, Folder, InspectOptions, Journal, JournalConfig, Opened, Policy, SessionName, State,
    WorkerThread, open,
};
use tickpath_types::Sequence;

/// A payload as long as that of a new order.
const PAYLOAD: [u8; 76] = [0x5a; 76];
/// Length of a record with this payload, in bytes.
const RECORD_LEN: usize = 104;

struct Running {
    journal: Journal<Folder>,
    next: Sequence,
    _thread: WorkerThread,
    _folder: tempfile::TempDir,
}

impl Running {
    fn new(within: &Path, policy: Policy) -> Running {
        let folder = tempfile::tempdir_in(within).expect("the folder is writable");
        let storage = Folder::new(folder.path()).expect("it was just made");
        let session = SessionName::new("BENCH").expect("a name");
        let config = JournalConfig { policy, ..JournalConfig::default() };
        let Opened { journal, worker, .. } =
            open(&storage, session, config, &InspectOptions::default()).expect("an empty folder opens");
        let thread = WorkerThread::start(worker).expect("one thread more");
        let mut running = Running { journal, next: Sequence(1), _thread: thread, _folder: folder };
        // Give the worker a second to prepare the next segment, which is not part of the measurement.
        for _ in 0..200 {
            running.poll();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        running
    }

    fn poll(&mut self) {
        self.journal.poll();
        assert!(!matches!(self.journal.state(), State::Failed(_)), "{:?}", self.journal.state());
    }

    fn append(&mut self) {
        loop {
            match self.journal.append(self.next, black_box(&PAYLOAD)) {
                Ok(()) => break,
                Err(AppendError::Full) => self.poll(),
                Err(error) => panic!("{error}"),
            }
        }
        self.next = self.next.next();
    }

    /// Appends `count` records and polls after every `batch` of them. Returns the seconds until all are
    /// durable.
    fn stream(&mut self, count: usize, batch: usize) -> f64 {
        let start = Instant::now();
        for place in 1..=count {
            self.append();
            if place % batch == 0 {
                self.poll();
            }
        }
        while !self.journal.is_all_durable() {
            self.poll();
        }
        start.elapsed().as_secs_f64()
    }

    /// Returns the seconds from the append of one record until it is durable.
    fn one(&mut self) -> f64 {
        self.stream(1, 1)
    }
}

/// The baseline: bare writes and syncs of a file that is filled with zeroes and synced in advance.
struct Bare {
    file: File,
    offset: u64,
}

impl Bare {
    fn new(within: &Path) -> Bare {
        let file = tempfile::tempfile_in(within).expect("the folder is writable");
        file.write_all_at(&vec![0; 64 << 20], 0).expect("there is room");
        file.sync_all().expect("the disk works");
        Bare { file, offset: 0 }
    }

    fn one(&mut self) -> f64 {
        let start = Instant::now();
        self.file.write_all_at(black_box(&[0x5a; RECORD_LEN]), self.offset).expect("the disk works");
        self.file.sync_data().expect("the disk works");
        self.offset += RECORD_LEN as u64;
        start.elapsed().as_secs_f64()
    }
}

fn quantiles(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000] * 1e6;
    format!("p50 {:.1} us, p90 {:.1}, p99 {:.1}", at(500), at(900), at(990))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let named =
        arguments.iter().position(|argument| argument == "--dir").and_then(|at| arguments.get(at + 1));
    let within = named.map_or_else(|| std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")), Into::into);
    let (rounds, each, count) = if is_bench { (15, 100, 200_000) } else { (1, 2, 100) };

    let mut group = Running::new(&within, Policy::Group);
    let mut asynchronous = Running::new(&within, Policy::Async);
    let (mut bare, mut control) = (Bare::new(&within), Bare::new(&within));
    let mut acknowledged = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for _ in 0..each {
            acknowledged[0].push(group.one());
            acknowledged[1].push(bare.one());
            acknowledged[2].push(control.one());
        }
    }
    for (name, times) in
        ["group, one record", "bare write and fdatasync", "the same again"].iter().zip(&mut acknowledged)
    {
        println!("{name}: {}", quantiles(times));
    }
    let mut rates = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        rates[0].push(count as f64 / asynchronous.stream(count, 1) / 1e6);
        rates[1].push(count as f64 / asynchronous.stream(count, 32) / 1e6);
        rates[2].push(count as f64 / group.stream(count, 1) / 1e6);
        rates[3].push(count as f64 / group.stream(count, 32) / 1e6);
    }
    let names = ["async, poll each", "async, poll each 32nd", "group, poll each", "group, poll each 32nd"];
    for (name, rates) in names.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        println!("{name}: {:.2} M records/s (median of {})", rates[rates.len() / 2], rates.len());
    }
}
