//! The journal alone: replay speed, and the time until a record is durable.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use tickpath_agent::pin_current_thread;
use tickpath_book::FastBooks;
use tickpath_journal::{
    AppendError, Folder, InspectOptions, Journal, JournalConfig, Opened, Policy, Reader, SessionName, State,
    WorkerThread, open, read_ahead,
};
use tickpath_matching::{COMMAND_LEN_MAX, Command, Engine, EventListener, Owner};
use tickpath_types::{MarketEvent, Nanos, OrderEvent, Sequence};

use super::matching::SLICE;
use super::prelude::*;
use crate::support::load::workload;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_two_cores(
        &[
            row("replay_matching", "M/s").note(
                "the commands of journal_replay matched alone by such an engine: decoded before in slices of \
                 512, which wait in the cache; the time of all slices",
            ),
            row("journal_replay", "M/s")
                .note(
                    "commands of the matching row's load out of the journal's files, in the page cache: checked \
                     and decoded on one core, and matched on another by an engine that ignores events, as at \
                     a restart; in turns with replay_matching",
                )
                .limit("replay_matching")
                .goal(Goal::RatioAtLeast(0.7))
                .reference("LMAX replays"),
        ],
        open_replay,
    ),
    on_one_core(
        &[
            row("fdatasync", "us")
                .note("bare 104 bytes written over zeroes of a file in the temporary folder and synced, p50"),
            row("journal_group_ack", "us")
                .note(
                    "a record of as many bytes appended under policy group until it may be answered, in \
                     turns with fdatasync on the same disk, p50",
                )
                .limit("fdatasync")
                .goal(Goal::RatioAtMost(1.2)),
        ],
        open_group,
    ),
];

/// The session that is journaled.
const SESSION: &str = "LAB";
/// Number of commands in a full round of replay.
pub(super) const COMMANDS: usize = 5_000_000;
/// Number of appended records, and of bare writes, timed in a full round.
const ACKNOWLEDGEMENTS: usize = 1_000;
/// Record payload in place of an encoded command.
const PAYLOAD: [u8; 76] = [0x5a; 76];
/// Length of the payload's journal record, in bytes.
const RECORD_LEN: usize = 104;
/// Time given to the journal's thread to prepare the next segment before the first round.
const PREPARATION: Nanos = Nanos::from_secs(1);

/// A journal and the thread that writes it.
pub(super) struct Log {
    journal: Journal<Folder>,
    storage: Folder,
    session: SessionName,
    _thread: WorkerThread,
}

impl Log {
    pub(super) fn open(folder: &Path, policy: Policy) -> anyhow::Result<Log> {
        let storage = Folder::new(folder)?;
        let session = SessionName::new(SESSION)?;
        let config = JournalConfig { policy, payload_len_max: COMMAND_LEN_MAX, ..JournalConfig::default() };
        let Opened { journal, worker, .. } = open(&storage, session, config, &InspectOptions::default())?;
        let thread = WorkerThread::start(worker)?;
        Ok(Log { journal, storage, session, _thread: thread })
    }

    pub(super) fn append(&mut self, encode: impl Fn(&mut [u8]) -> usize) -> anyhow::Result<()> {
        let next = self.journal.last_appended().next();
        loop {
            match self.journal.append_with(next, &encode) {
                Ok(()) => return Ok(()),
                Err(AppendError::Full) => self.poll()?,
                Err(error) => bail!(error),
            }
        }
    }

    fn poll(&mut self) -> anyhow::Result<()> {
        self.journal.poll();
        match self.journal.state() {
            State::Failed(failure) => bail!("{failure}"),
            _ => Ok(()),
        }
    }

    pub(super) fn wait_until_durable(&mut self) -> anyhow::Result<()> {
        while !self.journal.is_all_durable() {
            self.poll()?;
        }
        Ok(())
    }
}

/// Ignores events: a replay has no listeners.
pub(super) struct IgnoredEvents;

impl EventListener for IgnoredEvents {
    fn on_order_event(&mut self, event: &OrderEvent) {
        black_box(event.is_reply);
    }

    fn on_market_event(&mut self, event: &MarketEvent) {
        black_box(event.sequence);
    }
}

type ReplayEngine = Engine<FastBooks<Owner>>;

fn open_replay(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let workload = workload(&lab.context, COMMANDS);
    let folder = tempfile::tempdir()?;
    let mut log = Log::open(folder.path(), Policy::Async)?;
    for command in workload.opening.iter().chain(&workload.commands) {
        log.append(|out| command.encode(out))?;
    }
    log.wait_until_durable()?;
    let (instruments, limits) = (workload.instruments, workload.limits);
    let (state_hash, last) = (workload.state_hash, log.journal.last_appended());
    let mut round = 0;
    each_round(lab, move |context| {
        let (log, _folder) = (&log, &folder);
        let ticks: [_; 2] = in_turn(&mut round, |place| {
            let mut engine: ReplayEngine = Engine::new(&instruments, limits)?;
            let ticks = match place {
                0 => match_alone(context, log, last, &mut engine)?,
                _ => replay(context, log, last, &mut engine)?,
            };
            ensure!(engine.state_hash() == state_hash, "the log led to another state than its commands");
            Ok(ticks)
        })?;
        Ok(ticks.map(|ticks| last.0 as f64 * 1_000.0 / context.clock.ticks_to_nanos(ticks).0 as f64))
    })
}

/// Replays the log up to `last`; returns the ticks of the whole replay.
fn replay(context: &Context, log: &Log, last: Sequence, engine: &mut ReplayEngine) -> anyhow::Result<u64> {
    let far = context.far()?;
    let pinned = OnceLock::new();
    let start = context.clock.ticks();
    let mut reader = Reader::open(&log.storage, log.session, Sequence(1))?;
    read_ahead(
        &mut reader,
        last,
        |record, commands| {
            // The thread that reads begins on the core of this one.
            pinned.get_or_init(|| pin_current_thread(far)).clone().map_err(|error| anyhow::anyhow!(error))?;
            Ok(Command::decode_to(record.payload, |command| commands.push(command))?)
        },
        |commands| {
            engine.apply_batch(commands, &mut IgnoredEvents);
            Ok::<_, anyhow::Error>(())
        },
    )?;
    Ok(context.clock.ticks() - start)
}

/// Replays the log up to `last`; returns the ticks of the matching alone.
fn match_alone(
    context: &Context,
    log: &Log,
    last: Sequence,
    engine: &mut ReplayEngine,
) -> anyhow::Result<u64> {
    let mut reader = Reader::open(&log.storage, log.session, Sequence(1))?;
    let mut slice = Vec::with_capacity(SLICE);
    let mut ticks = 0;
    while read_batch(&mut reader, last, &mut slice)? {
        let start = context.clock.ticks();
        engine.apply_batch(black_box(&slice[..]), &mut IgnoredEvents);
        ticks += context.clock.ticks() - start;
    }
    Ok(ticks)
}

/// Replaces the commands of `batch` by the next ones of the log up to `last`, as many as its capacity;
/// returns whether there are any.
fn read_batch(reader: &mut Reader<Folder>, last: Sequence, batch: &mut Vec<Command>) -> anyhow::Result<bool> {
    batch.clear();
    while batch.len() < batch.capacity() {
        let Some(record) = reader.next(last)? else { break };
        Command::decode_to(record.payload, |command| batch.push(command))?;
    }
    Ok(!batch.is_empty())
}

fn open_group(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let folder = tempfile::tempdir()?;
    let mut log = Log::open(folder.path(), Policy::Group)?;
    let bare = tempfile::tempfile()?;
    bare.write_all_at(&vec![0; RECORD_LEN * ACKNOWLEDGEMENTS * 2], 0).context("no room for the bare file")?;
    bare.sync_all()?;
    // Let the journal's thread prepare the next segment before the measurement.
    let clock = lab.context.clock;
    let prepared = clock.now() + PREPARATION;
    while clock.now() < prepared {
        log.poll()?;
        std::thread::yield_now();
    }
    let count = lab.context.effort.count(ACKNOWLEDGEMENTS);
    each_round(lab, move |context| {
        let _folder = &folder;
        let mut ticks = [Vec::with_capacity(count), Vec::with_capacity(count)];
        for place in 0..count {
            let start = context.clock.ticks();
            sync_bare(&bare, place)?;
            ticks[0].push(context.clock.ticks() - start);
            let start = context.clock.ticks();
            log.append(|out| {
                out[..PAYLOAD.len()].copy_from_slice(black_box(&PAYLOAD));
                PAYLOAD.len()
            })?;
            log.wait_until_durable()?;
            ticks[1].push(context.clock.ticks() - start);
        }
        Ok(ticks.map(|mut ticks| context.quantile_ns(&mut ticks, 0.5) / 1_000.0))
    })
}

/// Overwrites the zeroes of slot `place`, of [`RECORD_LEN`] bytes, and syncs the file.
fn sync_bare(file: &File, place: usize) -> anyhow::Result<()> {
    file.write_all_at(black_box(&[0x5a; RECORD_LEN]), (place * RECORD_LEN) as u64)?;
    Ok(file.sync_data()?)
}
