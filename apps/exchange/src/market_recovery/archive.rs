//! Messages that are no longer in memory, out of the journal: they follow from the commands in it.

use std::net::SocketAddrV4;
use std::sync::Arc;

use tickpath_agent::{WaitSet, Waker};
use tickpath_journal::{DurableView, Reader, SessionName, Snapshots, Storage};
use tickpath_lockfree::spsc;
use tickpath_matching::Command;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder, Session};
use tickpath_types::{Nanos, Sequence};
use tickpath_venue::{Definition, MarketImage, MessageStore, Replica};

use super::counters::RecoveryCounters;

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
/// Messages that a state reads on for although there is a snapshot before them.
const NEAR: u64 = 1 << 17;
/// After every command.
const END: Sequence = Sequence(u64::MAX);
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
    /// Does some of what is asked for; returns how much there was to do.
    fn poll(&mut self, now: Nanos) -> usize;
    /// Does the same for a state of the market that covers everything published by now.
    fn catch_up(&mut self, now: Nanos) -> CatchUp;
    /// Has each request wake the thread behind `waker`.
    fn wake_by(&self, waker: &Waker);
    /// Says what it waits for.
    fn wait_for(&self, now: Nanos, wait: &mut WaitSet);
}

/// How a state of the market out of the journal stands.
pub(super) enum CatchUp {
    /// So much was done; there is more.
    Working(usize),
    /// Here it is.
    There(Box<MarketImage>),
    /// The journal cannot be read.
    Impossible,
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
    /// The state is on its way from the newest snapshot to the end.
    is_catching_up: bool,
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
    /// Here the next snapshot begins: what is far behind it is reached sooner from there.
    nearer: Sequence,
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
            is_catching_up: false,
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
            let last = state.replica.last_command();
            let is_near = last < state.nearer || request.first < store.next_sequence() + NEAR;
            let can_reach = last < state.until && is_near;
            store.oldest() <= request.first && (request.first < store.next_sequence() || can_reach)
        };
        if !self.state.as_ref().is_some_and(is_usable) {
            if now < self.next_rewind {
                return Progress::Working(0);
            }
            self.rewind_at(now, request.first);
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

    fn rewind_at(&mut self, now: Nanos, first: u64) {
        self.next_rewind = now + REWIND_INTERVAL;
        self.state = self.rewind(first);
        self.counters.archive_rewinds.add(1);
    }

    /// The newest snapshot that has the message, or comes before it.
    fn rewind(&mut self, first: u64) -> Option<State<S>> {
        // The one before is let go of first: two of them would need twice the memory.
        self.state = None;
        let listed = self.snapshots.list().ok()?;
        let (mut newer, mut oldest) = (Vec::new(), self.oldest);
        for sequence in listed.into_iter().rev() {
            let snapshot = self.snapshots.read(sequence).ok().and_then(Result::ok);
            let Some(mut replica) = snapshot.and_then(|snapshot| Replica::decode(&snapshot.payload).ok())
            else {
                newer.push((sequence, None));
                continue;
            };
            if store(&replica).oldest() <= first {
                let until = first_that_differs(&newer, replica.definition());
                let messages = &mut replica.streams.market.messages;
                *messages = messages.resized(messages.capacity().max(MESSAGES_KEPT_MIN));
                let reader = Reader::open(&self.storage, self.name, sequence.next()).ok()?;
                let usable = newer.iter().rev().find(|(_, definition)| definition.is_some());
                let nearer = usable.map_or(END, |(sequence, _)| *sequence);
                return Some(State { replica, reader, until, nearer });
            }
            oldest = store(&replica).oldest();
            newer.push((sequence, Some(replica.definition().clone())));
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
    fn wake_by(&self, waker: &Waker) {
        self.port.requests.wake_by(waker);
    }

    fn wait_for(&self, _now: Nanos, wait: &mut WaitSet) {
        // The journal may be read, or the answers sent, in a moment.
        if self.request.is_some() || self.is_catching_up {
            wait.soon();
        }
        if self.state.is_some() {
            wait.until(self.latest + KEPT_FOR);
        }
    }

    fn catch_up(&mut self, now: Nanos) -> CatchUp {
        self.latest = now;
        if !self.is_catching_up {
            if now < self.next_rewind {
                return CatchUp::Working(0);
            }
            self.rewind_at(now, END.0);
            self.is_catching_up = true;
        }
        let Some(state) = &mut self.state else {
            self.is_catching_up = false;
            return CatchUp::Impossible;
        };
        // What was published is safe: what is safe by now covers it.
        let durable = self.durable.durable();
        match state.read_on(durable, |_| true) {
            Ok(_) if state.replica.last_command() >= durable => {
                self.is_catching_up = false;
                CatchUp::There(Box::new(MarketImage::of(&state.replica)))
            }
            Ok(count) => CatchUp::Working(count),
            Err(Unreadable) => {
                (self.state, self.is_catching_up) = (None, false);
                self.counters.archive_errors.add(1);
                CatchUp::Impossible
            }
        }
    }

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

/// Where commands begin that another definition decided; `newer` has the newest snapshot first, without a definition where
/// it cannot be used. What follows such a one is believed as soon as the next one is of the same definition again.
fn first_that_differs(newer: &[(Sequence, Option<Definition>)], definition: &Definition) -> Sequence {
    let mut unknown_since = None;
    for (sequence, other) in newer.iter().rev() {
        match other {
            None => _ = unknown_since.get_or_insert(*sequence),
            Some(other) if other == definition => unknown_since = None,
            Some(_) => return unknown_since.unwrap_or(*sequence),
        }
    }
    unknown_since.unwrap_or(END)
}

/// The log, or a command in it, cannot be read.
struct Unreadable;

impl<S: Storage> State<S> {
    /// Applies commands until a packet of what is wanted is there.
    fn advance(&mut self, request: ArchiveRequest, durable: Sequence) -> Result<Progress, Unreadable> {
        let limit = self.until.min(durable);
        let enough = request.end.min(request.first + MESSAGES_PER_PACKET);
        let count = self.read_on(limit, |replica| store(replica).next_sequence() < enough)?;
        let store = store(&self.replica);
        let is_complete = store.next_sequence() >= enough;
        // The next record, or the next snapshot, is there in a moment; unless everything that is safe was read.
        let is_over = is_complete || (limit == durable && self.replica.last_command() >= durable);
        let has_more = count == COMMANDS_PER_RUN && !is_complete;
        Ok(match store.message(request.first) {
            Some(_) if !has_more => Progress::Found,
            None if is_over => Progress::Impossible,
            _ => Progress::Working(count),
        })
    }

    /// Applies commands up to `limit` while more are wanted, some at a time; how many there were.
    fn read_on(
        &mut self,
        limit: Sequence,
        mut wants_more: impl FnMut(&Replica) -> bool,
    ) -> Result<usize, Unreadable> {
        let mut count = 0;
        while count < COMMANDS_PER_RUN && wants_more(&self.replica) {
            let Some(record) = self.reader.next(limit).map_err(|_| Unreadable)? else { break };
            let command = Command::decode(record.payload).map_err(|_| Unreadable)?;
            self.replica.apply(&command);
            count += 1;
        }
        Ok(count)
    }
}

/// Messages that a packet holds at most: the shortest has 12 bytes.
const MESSAGES_PER_PACKET: u64 = (DATAGRAM_LEN_MAX / 14) as u64;

fn store(replica: &Replica) -> &MessageStore {
    &replica.streams.market.messages
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tickpath_journal::{DiskFaults, FaultyDisk, Policy};
    use tickpath_matching::{CommandKind, EngineLimits};
    use tickpath_types::{Instrument, InstrumentId, Price, Qty, SessionId, Symbol, SystemEventCode};

    use super::*;
    use crate::journal::{JournalSettings, Recovered, recover};

    const COMMANDS: u64 = 300;
    const NOW: Nanos = Nanos::from_secs(1);
    const ASKER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);

    fn definition() -> Definition {
        let instrument = Instrument {
            id: InstrumentId(1),
            symbol: Symbol::new("ALPHA").unwrap(),
            tick_size: Price(100),
            lot_size: Qty(1),
            max_qty: Qty(1_000),
            reference_price: Price(1_000_000),
            collar_low: Price(900_000),
            collar_high: Price(1_100_000),
        };
        let limits = EngineLimits {
            max_open_orders: 64,
            max_sessions: 2,
            max_index_pages: 4,
            ..EngineLimits::default()
        };
        Definition {
            instruments: vec![instrument],
            limits,
            users: vec!["ANNA".to_owned()],
            retained_responses: 256,
            retained_messages: 16,
        }
    }

    /// An archive of a log of stages of the day, one message each.
    fn archive() -> (JournalArchive<FaultyDisk>, ArchiveLink) {
        let disk = FaultyDisk::new(1, DiskFaults::default());
        let name = SessionName::new("TODAY").unwrap();
        let settings = JournalSettings::new("", Policy::Async);
        let Recovered { journal: mut log, mut worker, .. } =
            recover(&disk, &settings, name, definition()).unwrap();
        for sequence in (1..=COMMANDS).map(Sequence) {
            let (session, kind) = (SessionId(0), CommandKind::System(SystemEventCode::StartOfMarketHours));
            let command = Command { sequence, session, ts: NOW, kind };
            log.append_with(sequence, |out| command.encode(out)).unwrap();
            while log.durable() < sequence {
                log.poll();
                worker.run_once();
            }
        }
        let (link, port) = ArchiveLink::new();
        let (session, counters) = (Session::new("TODAY").unwrap(), Arc::default());
        let archive = JournalArchive::new(disk, name, session, log.durable_view(), 1_400, port, counters);
        (archive, link)
    }

    fn ask(link: &mut ArchiveLink, first: u64) {
        let request = ArchiveRequest { to: ASKER, first, end: first + 5 };
        assert!(link.requests.try_push(request).is_ok());
    }

    #[test]
    fn a_request_that_has_no_answer_holds_up_nobody() {
        let (mut archive, mut link) = archive();
        [COMMANDS + 1, 7, COMMANDS + 100, 20].into_iter().for_each(|first| ask(&mut link, first));
        (0..4).for_each(|_| _ = archive.poll(NOW));
        assert_eq!(archive.counters.archive_too_old.read(), 2);
        let mut answered = vec![];
        link.answers.drain(4, |answer| answered.push(answer.message_count));
        assert_eq!(answered, [5, 5]);
        assert_eq!(archive.counters.archive_rewinds.read(), 1);
    }

    #[test]
    fn a_state_out_of_the_journal_covers_everything_that_is_safe() {
        let (mut archive, mut link) = archive();
        let CatchUp::There(image) = archive.catch_up(NOW) else { panic!("the log is short") };
        assert_eq!(image.next_sequence(), Sequence(COMMANDS + 1));
        ask(&mut link, 7);
        archive.poll(NOW);
        assert_eq!(link.answers.len(), 1, "the same state answers");
    }

    #[test]
    fn only_another_definition_ends_a_state() {
        let mut other = definition();
        other.retained_messages += 1;
        let [same, other] = [&definition(), &other].map(|definition| Some(definition.clone()));
        let of = |definitions: &[&Option<Definition>]| {
            let numbered = definitions.iter().zip((1..).map(|number| Sequence(1_000 - 100 * number)));
            let newer: Vec<_> = numbered.map(|(definition, at)| (at, (*definition).clone())).collect();
            first_that_differs(&newer, &definition())
        };
        assert_eq!(of(&[]), END);
        assert_eq!(of(&[&same, &same]), END);
        assert_eq!(of(&[&other, &other, &same]), Sequence(800));
        // One that cannot be used may have been of another.
        assert_eq!(of(&[&same, &None, &same]), END);
        assert_eq!(of(&[&other, &None, &same]), Sequence(800));
        assert_eq!(of(&[&None, &None, &same]), Sequence(800));
    }
}
