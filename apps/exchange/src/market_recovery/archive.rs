//! Messages that are no longer in memory, out of the journal: they follow from the commands in it.

use std::net::SocketAddrV4;
use std::sync::Arc;

use tickpath_journal::{DurableView, Reader, SessionName, Snapshots, Storage};
use tickpath_lockfree::spsc;
use tickpath_matching::Command;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder, Session};
use tickpath_types::{Nanos, Sequence};

use super::RecoveryCounters;
use crate::message_store::MessageStore;
use crate::replica::{Definition, Replica};

/// Requests that wait for the archive, and answers that wait to be sent; further requests are dropped and counted.
const RING_CAPACITY: usize = 16;
/// Commands applied at a time.
const COMMANDS_PER_RUN: usize = 1 << 13;
/// A snapshot is read at most so often: requests for now this, now that must not keep the disk busy.
const REWIND_INTERVAL: Nanos = Nanos::from_millis(200);
/// The state that was read is forgotten after so long without a request.
const KEPT_FOR: Nanos = Nanos::from_secs(30);

/// A request that takes longer has no answer, so that it does not hold up those behind it.
const TIME_MAX: Nanos = Nanos::from_secs(2);
/// Messages that the state keeps at least, so that what is wanted is still there when the rest of its packet is.
const MESSAGES_KEPT_MIN: usize = 1 << 16;

/// Messages `first..end` are wanted.
#[derive(Clone, Copy)]
pub(crate) struct ArchiveRequest {
    pub(crate) to: SocketAddrV4,
    pub(crate) first: u64,
    pub(crate) end: u64,
}

/// A packet that is to be sent.
#[derive(Clone, Copy)]
pub(crate) struct ArchiveAnswer {
    pub(crate) to: SocketAddrV4,
    pub(crate) message_count: u16,
    len: u16,
    bytes: [u8; DATAGRAM_LEN_MAX],
}

impl ArchiveAnswer {
    pub(crate) fn datagram(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The publisher's end: asks, and sends what comes.
pub(crate) struct ArchiveLink {
    pub(crate) requests: spsc::Producer<ArchiveRequest>,
    pub(crate) answers: spsc::Consumer<ArchiveAnswer>,
}

/// The archive's end.
pub(super) struct ArchivePort {
    requests: spsc::Consumer<ArchiveRequest>,
    answers: spsc::Producer<ArchiveAnswer>,
}

impl ArchiveLink {
    /// Both ends.
    pub(super) fn new() -> (ArchiveLink, ArchivePort) {
        let (request, requests) = spsc::channel(RING_CAPACITY);
        let (answer, answers) = spsc::channel(RING_CAPACITY);
        (ArchiveLink { requests: request, answers }, ArchivePort { requests, answers: answer })
    }
}

/// Whatever storage is below.
pub(super) trait Archive: Send {
    fn poll(&mut self, now: Nanos) -> usize;
}

/// Answers requests one after another: reads the newest snapshot that does not come too late, applies commands until
/// the messages are there, and keeps the state for what is asked for next.
pub(super) struct JournalArchive<S: Storage> {
    storage: S,
    name: SessionName,
    session: Session,
    snapshots: Snapshots<S>,
    durable: DurableView,
    packet_bytes: usize,
    port: ArchivePort,
    /// The one at hand, and when it was taken.
    request: Option<(ArchiveRequest, Nanos)>,
    state: Option<State<S>>,
    next_rewind: Nanos,
    latest: Nanos,
    /// Messages before this one are in no snapshot.
    oldest: u64,
    counters: Arc<RecoveryCounters>,
}

struct State<S: Storage> {
    replica: Replica,
    reader: Reader<S>,
    /// What follows was decided by other bounds: a newer snapshot begins here.
    until: Sequence,
}

/// How a request stands.
enum Progress {
    Working(usize),
    /// What there is of it is in the state.
    Found,
    /// It is nowhere.
    Impossible,
}

impl<S: Storage> JournalArchive<S> {
    pub(super) fn new(
        storage: S,
        name: SessionName,
        session: Session,
        durable: DurableView,
        packet_bytes: usize,
        port: ArchivePort,
        counters: Arc<RecoveryCounters>,
    ) -> JournalArchive<S> {
        JournalArchive {
            snapshots: Snapshots::new(storage.clone(), name),
            storage,
            name,
            session,
            durable,
            packet_bytes: packet_bytes.min(DATAGRAM_LEN_MAX),
            port,
            request: None,
            state: None,
            next_rewind: Nanos::ZERO,
            latest: Nanos::ZERO,
            oldest: 0,
            counters,
        }
    }

    fn progress(&mut self, now: Nanos, request: ArchiveRequest) -> Progress {
        if request.first < self.oldest {
            return Progress::Impossible;
        }
        let is_usable = |state: &State<S>| {
            let store = store(&state.replica);
            let is_past = state.replica.last_command() >= state.until;
            store.oldest() <= request.first && (request.first < store.next_sequence() || !is_past)
        };
        if !self.state.as_ref().is_some_and(is_usable) {
            if now < self.next_rewind {
                return Progress::Working(0);
            }
            self.next_rewind = now + REWIND_INTERVAL;
            self.state = self.rewind(request.first);
            self.counters.archive_rewinds.add(1);
        }
        let Some(state) = &mut self.state else { return Progress::Impossible };
        match state.advance(request, self.durable.durable()) {
            Ok(progress) => progress,
            Err(Unreadable) => {
                self.state = None;
                self.counters.archive_errors.add(1);
                Progress::Impossible
            }
        }
    }

    /// The newest snapshot that has the message, or comes before it.
    fn rewind(&mut self, first: u64) -> Option<State<S>> {
        // The one before is let go of first: two of them would need twice the memory.
        self.state = None;
        let listed = self.snapshots.list().ok()?;
        let (mut newer, mut oldest) = (Vec::new(), self.oldest);
        for sequence in listed.into_iter().rev() {
            let Ok(Ok(snapshot)) = self.snapshots.read(sequence) else { continue };
            let Ok(mut replica) = Replica::decode(&snapshot.payload) else { continue };
            if store(&replica).oldest() <= first {
                let until = first_that_differs(&newer, replica.definition());
                let messages = &mut replica.told.market.messages;
                *messages = messages.resized(messages.capacity().max(MESSAGES_KEPT_MIN));
                let reader = Reader::open(&self.storage, self.name, sequence.next()).ok()?;
                return Some(State { replica, reader, until });
            }
            oldest = store(&replica).oldest();
            newer.push((sequence, replica.definition().clone()));
        }
        self.oldest = oldest;
        None
    }

    /// Hands on a packet of what is wanted; false when there is no room for it yet.
    fn answer(&mut self, request: ArchiveRequest) -> bool {
        let Some(state) = &self.state else { return true };
        let mut bytes = [0; DATAGRAM_LEN_MAX];
        let room = &mut bytes[..self.packet_bytes];
        let mut packet = PacketBuilder::new(room, self.session, Sequence(request.first));
        for message in
            (request.first..request.end).map_while(|sequence| store(&state.replica).message(sequence))
        {
            if packet.push(message).is_err() {
                break;
            }
        }
        let (len, message_count) = (packet.finish().len() as u16, packet.message_count());
        let answer = ArchiveAnswer { to: request.to, message_count, len, bytes };
        let is_taken = self.port.answers.try_push(answer).is_ok();
        self.counters.archive_answers.add(u64::from(is_taken));
        is_taken
    }
}

impl<S: Storage> Archive for JournalArchive<S> {
    fn poll(&mut self, now: Nanos) -> usize {
        let waiting = self.request.take().or_else(|| Some((self.port.requests.try_pop()?, now)));
        let Some((request, since)) = waiting else {
            if self.state.is_some() && now.since(self.latest) >= KEPT_FOR {
                self.state = None;
            }
            return 0;
        };
        self.latest = now;
        match self.progress(now, request) {
            Progress::Working(count) if now.since(since) < TIME_MAX => {
                self.request = Some((request, since));
                count
            }
            Progress::Found => {
                if !self.answer(request) {
                    self.request = Some((request, since));
                }
                1
            }
            Progress::Working(_) | Progress::Impossible => {
                self.counters.archive_too_old.add(1);
                1
            }
        }
    }
}

/// Where commands begin that another definition decided; `newer` has the newest snapshot first.
fn first_that_differs(newer: &[(Sequence, Definition)], definition: &Definition) -> Sequence {
    let differing = newer.iter().rev().find(|(_, other)| other != definition);
    differing.map_or(Sequence(u64::MAX), |(sequence, _)| *sequence)
}

/// The log, or a command in it, cannot be read.
struct Unreadable;

impl<S: Storage> State<S> {
    /// Applies commands until a packet of what is wanted is there.
    fn advance(&mut self, request: ArchiveRequest, durable: Sequence) -> Result<Progress, Unreadable> {
        let limit = self.until.min(durable);
        let enough = request.end.min(request.first + MESSAGES_PER_PACKET);
        let mut count = 0;
        while store(&self.replica).next_sequence() < enough {
            if count == COMMANDS_PER_RUN {
                return Ok(Progress::Working(count));
            }
            // The next snapshot goes on, or the next record is there in a moment.
            let Some(record) = self.reader.next(limit).map_err(|_| Unreadable)? else {
                let is_there = store(&self.replica).message(request.first).is_some();
                // Everything that is safe was read.
                let is_nowhere = limit == durable && self.replica.last_command() >= durable;
                return Ok(match is_there {
                    true => Progress::Found,
                    false if is_nowhere => Progress::Impossible,
                    false => Progress::Working(count),
                });
            };
            let command = Command::decode(record.payload).map_err(|_| Unreadable)?;
            self.replica.apply(&command);
            count += 1;
        }
        let is_there = store(&self.replica).message(request.first).is_some();
        Ok(if is_there { Progress::Found } else { Progress::Impossible })
    }
}

/// Messages that a packet holds at most: the shortest has 12 bytes.
const MESSAGES_PER_PACKET: u64 = (DATAGRAM_LEN_MAX / 14) as u64;

fn store(replica: &Replica) -> &MessageStore {
    &replica.told.market.messages
}
