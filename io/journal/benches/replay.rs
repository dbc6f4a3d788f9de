//! Measures the speed of reading, decoding and applying a log, and the duration of a restart.
//!
//! `cargo bench -p tickpath-journal --bench replay [-- --dir FOLDER]` journals the workload of
//! `tickpath_matching`, then reads it from the page cache, as after a process crash. It checks the final
//! state before it prints a time. Without `--bench` it runs a short version of each measurement.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use tickpath_book::FastBooks;
use tickpath_journal::{
    AppendError, Folder, InspectOptions, JournalConfig, OpenError, Opened, Policy, Reader, Record,
    SessionName, Snapshots, WorkerThread, open, read_ahead,
};
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_matching::{COMMAND_LEN_MAX, Command, Engine, EventListener, Owner};
use tickpath_types::{MarketEvent, OrderEvent, Sequence};

type Fast = Engine<FastBooks<Owner>>;

/// Counts events and discards them, as a replay does.
#[derive(Default)]
struct Count(u64);

impl EventListener for Count {
    fn on_order_event(&mut self, event: &OrderEvent) {
        black_box(event.is_reply);
        self.0 += 1;
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        black_box(event.sequence);
        self.0 += 1;
    }
}

struct Log {
    folder: Folder,
    session: SessionName,
    config: JournalConfig,
    last: Sequence,
}

impl Log {
    /// Journals all commands, with a snapshot before the last `tail` commands.
    fn write(within: &Path, workload: &Workload, tail: usize) -> Log {
        let folder = Folder::new(within).expect("the folder is writable");
        let session = SessionName::new("BENCH").expect("a name");
        let config = JournalConfig { policy: Policy::Async, ..JournalConfig::default() };
        let Opened { mut journal, worker, .. } =
            open(&folder, session, config, &InspectOptions::default()).expect("an empty folder opens");
        let _thread = WorkerThread::start(worker).expect("one thread more");
        let mut engine: Fast =
            Engine::new(&workload.instruments, workload.limits).expect("sound instruments");
        let commands = workload.opening.len() + workload.commands.len();
        for (place, command) in workload.opening.iter().chain(&workload.commands).enumerate() {
            while let Err(error) = journal.append_with(command.sequence, |out| command.encode(out)) {
                assert_eq!(error, AppendError::Full);
                journal.poll();
            }
            engine.apply(command, &mut Count::default());
            if place + 1 == commands - tail {
                let mut bytes = Vec::new();
                engine.snapshot(&mut bytes);
                Snapshots::new(folder.clone(), session)
                    .write(command.sequence, engine.state_hash(), &bytes)
                    .expect("the disk works");
            }
        }
        while !journal.is_all_durable() {
            journal.poll();
        }
        Log { folder, session, config, last: journal.last_appended() }
    }

    fn reader(&self, from: Sequence) -> Reader<Folder> {
        Reader::open(&self.folder, self.session, from).expect("the log is there")
    }

    /// Applies the records from sequence `from` to the end of the log, as a restart does.
    fn replay(&self, engine: &mut Fast, from: Sequence, out: &mut Count) {
        let decode = |record: Record<'_>, commands: &mut Vec<Command>| {
            Command::decode_to(record.payload, |command| commands.push(command))
                .expect("commands were written");
            Ok::<_, OpenError>(())
        };
        let accept = |commands: &[Command]| {
            engine.apply_batch(commands, out);
            Ok(())
        };
        read_ahead(&mut self.reader(from), self.last, decode, accept).expect("the log is whole");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let named =
        arguments.iter().position(|argument| argument == "--dir").and_then(|at| arguments.get(at + 1));
    let within = named.map_or_else(|| std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")), Into::into);
    let (rounds, command_count, tail) = if is_bench { (9, 5_000_000, 500_000) } else { (1, 5_000, 500) };
    let open_order_count = if is_bench { 100_000 } else { 500 };
    let workload =
        Workload::generate(&WorkloadConfig { open_order_count, command_count, ..WorkloadConfig::default() });
    let folder = tempfile::tempdir_in(within).expect("the folder is writable");
    let log = Log::write(folder.path(), &workload, tail);
    let total = log.last.0 as f64;

    let mut times = [const { Vec::new() }; 4];
    let mut encodes = Vec::new();
    for _ in 0..rounds {
        let mut bytes = [0; COMMAND_LEN_MAX];
        let start = Instant::now();
        for command in &workload.commands {
            black_box(command.encode(black_box(&mut bytes)));
        }
        encodes.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let (mut reader, mut len) = (log.reader(Sequence(1)), 0);
        while let Some(record) = reader.next(log.last).expect("the log is whole") {
            len += record.payload.len();
        }
        times[0].push(start.elapsed().as_secs_f64());
        assert!(len > 24 * total as usize);

        let start = Instant::now();
        let mut reader = log.reader(Sequence(1));
        while let Some(record) = reader.next(log.last).expect("the log is whole") {
            black_box(Command::decode(record.payload).expect("commands were written"));
        }
        times[1].push(start.elapsed().as_secs_f64());

        let mut engine: Fast =
            Engine::new(&workload.instruments, workload.limits).expect("sound instruments");
        let mut count = Count::default();
        let start = Instant::now();
        log.replay(&mut engine, Sequence(1), &mut count);
        times[2].push(start.elapsed().as_secs_f64());
        assert_eq!(engine.state_hash(), workload.state_hash);
        assert!(count.0 > workload.event_count);

        let start = Instant::now();
        let newest =
            Snapshots::new(log.folder.clone(), log.session).newest(log.last).expect("the disk works");
        let snapshot = newest.snapshot.expect("it was written");
        let mut engine =
            Fast::restore(&workload.instruments, workload.limits, &snapshot.payload).expect("it is good");
        assert_eq!(engine.state_hash(), snapshot.state_hash);
        let options = InspectOptions { from: snapshot.sequence.next(), ..InspectOptions::default() };
        let opened = open(&log.folder, log.session, log.config, &options).expect("the log is whole");
        assert_eq!(opened.found.last_sequence(), log.last);
        log.replay(&mut engine, snapshot.sequence.next(), &mut Count::default());
        times[3].push(start.elapsed().as_secs_f64());
        assert_eq!(engine.state_hash(), workload.state_hash);
    }
    encodes.sort_by(f64::total_cmp);
    println!("encode: {:.1} M commands/s", command_count as f64 / encodes[encodes.len() / 2] / 1e6);
    for (name, times) in ["read", "read and decode", "read, decode and apply"].iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let rate = |time: f64| total / time / 1e6;
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{name}: {:.1} M records/s (worst {:.1})", rate(median), rate(worst));
    }
    let restarts = &mut times[3];
    restarts.sort_by(f64::total_cmp);
    let (median, worst) = (restarts[restarts.len() / 2], restarts[restarts.len() - 1]);
    println!(
        "restart of {:.1} M commands, {tail} after the snapshot, {open_order_count} open orders: {:.0} ms (worst {:.0})",
        total / 1e6,
        median * 1e3,
        worst * 1e3
    );
}
