//! Published messages that are no longer in memory, recomputed from the commands in the log.

use std::sync::Arc;

use tickpath_lockfree::spsc;
use tickpath_lockfree::wake::Waker;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder, Session};
use tickpath_types::{Nanos, Sequence};

use super::counters::RecoveryCounters;
use crate::market_image::MarketImage;
use crate::message_log::MessageStore;
use crate::replica::{Definition, Replica};
use crate::stored_log::{LogResult, StoredCommands, StoredLog};

/// Capacity of the request ring and the answer ring. The publisher drops requests while their ring is full.
const RING_CAPACITY: usize = 16;
const COMMANDS_PER_RUN: usize = 1 << 13;
/// Minimum time between reads of a snapshot, so that requests for distant messages do not overload the disk.
const REWIND_INTERVAL: Nanos = Nanos::from_millis(200);
/// Time without a request after which the archive drops its replica, to free the memory.
const STATE_TTL: Nanos = Nanos::from_secs(30);
/// Maximum time spent on a request, so that it does not delay later ones; a slower request gets no answer.
const TIME_MAX: Nanos = Nanos::from_secs(2);
/// Messages less than this far ahead of the state are reached by applying commands, not from a snapshot.
const NEAR: u64 = 1 << 17;
/// A sequence number above those of all commands.
const END: Sequence = Sequence(u64::MAX);
/// Minimum number of recomputed messages kept, so that all messages of a packet are in memory together.
const MESSAGES_KEPT_MIN: usize = 1 << 16;

/// A request for the messages `first..end`; the answer goes to the address `to`.
#[derive(Clone, Copy)]
pub struct ArchiveRequest<P> {
    /// Address of the requester.
    pub to: P,
    /// Sequence number of the first message.
    pub first: u64,
    /// Sequence number after the last message.
    pub end: u64,
}

/// A packet that answers a request.
#[derive(Clone, Copy)]
pub struct ArchiveAnswer<P> {
    /// Address of the requester.
    pub to: P,
    /// Number of messages in the packet.
    pub message_count: u16,
    len: u16,
    bytes: [u8; DATAGRAM_LEN_MAX],
}

impl<P> ArchiveAnswer<P> {
    /// Bytes of the packet.
    #[must_use]
    pub fn datagram(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The publisher's end of the rings: sends requests, and receives the packets that answer them.
pub struct ArchiveLink<P> {
    /// Sends requests.
    pub requests: spsc::Producer<ArchiveRequest<P>>,
    /// Receives answers.
    pub answers: spsc::Consumer<ArchiveAnswer<P>>,
}

/// The archive's end of the rings.
pub struct ArchivePort<P> {
    requests: spsc::Consumer<ArchiveRequest<P>>,
    answers: spsc::Producer<ArchiveAnswer<P>>,
}

impl<P: Copy + Send> ArchiveLink<P> {
    /// Creates both ends of the rings.
    #[must_use]
    pub fn new() -> (ArchiveLink<P>, ArchivePort<P>) {
        let (request, requests) = spsc::channel(RING_CAPACITY);
        let (answer, answers) = spsc::channel(RING_CAPACITY);
        (ArchiveLink { requests: request, answers }, ArchivePort { requests, answers: answer })
    }
}

/// The progress of building a market state from the log.
pub enum CatchUp {
    /// Work remains. The value is the number of commands that this call applied.
    Working(usize),
    /// The market state is complete.
    Done(Box<MarketImage>),
    /// The log cannot be read, or it has no usable snapshot.
    Impossible,
}

/// Answers requests one after another: reads the newest snapshot before the requested messages, applies
/// commands until these messages are recomputed, and keeps the resulting state for the next request.
pub struct MessageArchive<P> {
    log: Box<dyn StoredLog>,
    session: Session,
    packet_bytes: usize,
    port: ArchivePort<P>,
    /// The current request, and the time at which it was taken.
    request: Option<(ArchiveRequest<P>, Nanos)>,
    state: Option<State>,
    /// True while the state advances from the newest snapshot to the log's durable end.
    is_catching_up: bool,
    next_rewind: Nanos,
    latest: Nanos,
    /// Sequence number of the first message that can be recomputed from a snapshot; 0 until known.
    oldest: u64,
    counters: Arc<RecoveryCounters>,
}

struct State {
    replica: Replica,
    commands: Box<dyn StoredCommands>,
    /// Last command that may be applied: later ones may need another definition, from a newer snapshot.
    definition_end: Sequence,
    /// Last command of the next usable snapshot, from which distant messages are reached faster.
    next_snapshot: Sequence,
}

/// The progress of a request.
enum Progress {
    Working(usize),
    /// The requested messages, or the available part of them, are in the state.
    Found,
    /// The messages are not available.
    Impossible,
}

impl<P: Copy + Send> MessageArchive<P> {
    /// An archive of `log`; its packets have at most `packet_bytes` bytes and name the market data `session`.
    #[must_use]
    pub fn new(
        log: Box<dyn StoredLog>,
        session: Session,
        packet_bytes: usize,
        port: ArchivePort<P>,
        counters: Arc<RecoveryCounters>,
    ) -> MessageArchive<P> {
        MessageArchive {
            log,
            session,
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

    fn progress(&mut self, now: Nanos, request: ArchiveRequest<P>) -> Progress {
        if request.first < self.oldest {
            return Progress::Impossible;
        }
        let is_usable = |state: &State| {
            let store = store(&state.replica);
            let last = state.replica.last_command();
            let is_near = last < state.next_snapshot || request.first < store.next_sequence() + NEAR;
            let can_reach = last < state.definition_end && is_near;
            store.oldest() <= request.first && (request.first < store.next_sequence() || can_reach)
        };
        if !self.state.as_ref().is_some_and(is_usable) {
            if now < self.next_rewind {
                return Progress::Working(0);
            }
            self.rewind_at(now, request.first);
        }
        let Some(state) = &mut self.state else { return Progress::Impossible };
        state.advance(request.first, request.end, self.log.durable()).unwrap_or_else(|_| {
            self.on_error();
            Progress::Impossible
        })
    }

    /// Drops the state after a failed read of the log.
    fn on_error(&mut self) {
        (self.state, self.is_catching_up) = (None, false);
        self.counters.archive_errors.add(1);
    }

    fn rewind_at(&mut self, now: Nanos, first: u64) {
        self.next_rewind = now + REWIND_INTERVAL;
        self.state = self.rewind(first);
        self.counters.archive_rewinds.add(1);
    }

    /// The state of the newest snapshot whose kept messages begin at or before `first`.
    fn rewind(&mut self, first: u64) -> Option<State> {
        // Drop the previous state first: two at a time would need twice the memory.
        self.state = None;
        let listed = self.log.snapshots().ok()?;
        let (mut newer, mut oldest) = (Vec::new(), self.oldest);
        for sequence in listed.into_iter().rev() {
            let Some(mut replica) = self.log.replica(sequence) else {
                newer.push((sequence, None));
                continue;
            };
            if store(&replica).oldest() <= first {
                let definition_end = first_that_differs(&newer, replica.definition());
                let messages = &mut replica.streams.market.messages;
                *messages = messages.resized(messages.capacity().max(MESSAGES_KEPT_MIN));
                let commands = self.log.commands_from(sequence.next()).ok().flatten()?;
                let usable = newer.iter().rev().find(|(_, definition)| definition.is_some());
                let next_snapshot = usable.map_or(END, |(sequence, _)| *sequence);
                return Some(State { replica, commands, definition_end, next_snapshot });
            }
            oldest = store(&replica).oldest();
            newer.push((sequence, Some(replica.definition().clone())));
        }
        self.oldest = oldest;
        None
    }

    /// Sends one packet with as many requested messages as fit; false when the ring is full.
    fn answer(&mut self, request: ArchiveRequest<P>) -> bool {
        let Some(state) = &self.state else { return true };
        let mut bytes = [0; DATAGRAM_LEN_MAX];
        let buffer = &mut bytes[..self.packet_bytes];
        let mut packet = PacketBuilder::new(buffer, self.session, Sequence(request.first));
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

    /// Makes each request wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.port.requests.wake_by(waker);
    }

    /// True while a request is being worked on, or `catch_up` has begun and is not done.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.request.is_some() || self.is_catching_up
    }

    /// Time at which the state is dropped unless a request arrives before; `None` without a state.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.state.as_ref().map(|_| self.latest + STATE_TTL)
    }

    /// Does part of the work of building a market state that covers all messages published so far.
    pub fn catch_up(&mut self, now: Nanos) -> CatchUp {
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
        // Only the messages of durable commands are published, so the durable log covers all of them.
        let durable = self.log.durable();
        match state.apply_commands(durable, |_| true) {
            Ok(_) if state.replica.last_command() >= durable => {
                self.is_catching_up = false;
                CatchUp::Done(Box::new(MarketImage::of(&state.replica)))
            }
            Ok(count) => CatchUp::Working(count),
            Err(_) => {
                self.on_error();
                CatchUp::Impossible
            }
        }
    }

    /// Does part of the work on the current or next request; returns 0 if it could do nothing.
    pub fn poll(&mut self, now: Nanos) -> usize {
        let waiting = self.request.take().or_else(|| Some((self.port.requests.try_pop()?, now)));
        let Some((request, since)) = waiting else {
            if self.state.is_some() && now.since(self.latest) >= STATE_TTL {
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

/// Returns the last command known to be decided under `definition`; `END` if no later one differs. `newer`
/// lists the later snapshots, newest first, with `None` for unusable ones. The definition is assumed to be
/// unchanged across an unusable snapshot if the next usable one has the same definition.
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

impl State {
    /// Applies commands until the messages `first..end`, or as many as fit into a packet, are available.
    fn advance(&mut self, first: u64, end: u64, durable: Sequence) -> LogResult<Progress> {
        let limit = self.definition_end.min(durable);
        let enough = end.min(first + MESSAGES_PER_PACKET);
        let count = self.apply_commands(limit, |replica| store(replica).next_sequence() < enough)?;
        let store = store(&self.replica);
        let is_complete = store.next_sequence() >= enough;
        // Continue while durable commands remain: after `limit`, the next call reads another snapshot.
        let is_over = is_complete || (limit == durable && self.replica.last_command() >= durable);
        let has_more = count == COMMANDS_PER_RUN && !is_complete;
        Ok(match store.message(first) {
            Some(_) if !has_more => Progress::Found,
            None if is_over => Progress::Impossible,
            _ => Progress::Working(count),
        })
    }

    /// Applies commands up to `limit` while `wants_more`, at most `COMMANDS_PER_RUN`; returns their number.
    fn apply_commands(
        &mut self,
        limit: Sequence,
        mut wants_more: impl FnMut(&Replica) -> bool,
    ) -> LogResult<usize> {
        let mut count = 0;
        while count < COMMANDS_PER_RUN && wants_more(&self.replica) {
            let Some(command) = self.commands.next(limit)? else { break };
            self.replica.apply(&command);
            count += 1;
        }
        Ok(count)
    }
}

/// Maximum number of messages in a packet: the shortest message takes 14 bytes with its length field.
const MESSAGES_PER_PACKET: u64 = (DATAGRAM_LEN_MAX / 14) as u64;

fn store(replica: &Replica) -> &MessageStore {
    &replica.streams.market.messages
}

#[cfg(test)]
mod tests {
    use tickpath_matching::{CommandKind, EngineLimits};
    use tickpath_test_support::instrument;
    use tickpath_types::{SessionId, SystemEventCode};

    use super::*;
    use crate::log_command::LogCommand;

    const COMMANDS: u64 = 300;
    const NOW: Nanos = Nanos::from_secs(1);
    const REQUESTER: u32 = 9;

    fn definition() -> Definition {
        let limits = EngineLimits {
            max_open_orders: 64,
            max_sessions: 2,
            max_index_pages: 4,
            ..EngineLimits::default()
        };
        Definition {
            instruments: vec![instrument(1, "ALPHA")],
            limits,
            users: vec!["ANNA".to_owned()],
            retained_responses: 256,
            retained_messages: 16,
        }
    }

    /// A log of commands that each publish one system event; its only snapshot precedes them.
    struct Stages;

    impl StoredLog for Stages {
        fn durable(&self) -> Sequence {
            Sequence(COMMANDS)
        }

        fn snapshots(&self) -> LogResult<Vec<Sequence>> {
            Ok(vec![Sequence(0)])
        }

        fn replica(&self, _: Sequence) -> Option<Replica> {
            Replica::new(definition()).ok()
        }

        fn commands_from(&self, first: Sequence) -> LogResult<Option<Box<dyn StoredCommands>>> {
            Ok(Some(Box::new(StagesFrom(first))))
        }

        fn wake_by(&self, _: &Waker) {}
    }

    struct StagesFrom(Sequence);

    impl StoredCommands for StagesFrom {
        fn next(&mut self, limit: Sequence) -> LogResult<Option<LogCommand>> {
            if self.0 > limit {
                return Ok(None);
            }
            let (sequence, kind) = (self.0, CommandKind::System(SystemEventCode::StartOfMarketHours));
            self.0 = sequence.next();
            Ok(Some(LogCommand::new(sequence, SessionId(0), NOW, kind.into())))
        }
    }

    fn archive() -> (MessageArchive<u32>, ArchiveLink<u32>) {
        let (link, port) = ArchiveLink::new();
        let session = Session::new("TODAY").unwrap();
        (MessageArchive::new(Box::new(Stages), session, 1_400, port, Arc::default()), link)
    }

    fn request(link: &mut ArchiveLink<u32>, first: u64) {
        let request = ArchiveRequest { to: REQUESTER, first, end: first + 5 };
        assert!(link.requests.try_push(request).is_ok());
    }

    #[test]
    fn an_unanswerable_request_delays_no_other() {
        let (mut archive, mut link) = archive();
        [COMMANDS + 1, 7, COMMANDS + 100, 20].into_iter().for_each(|first| request(&mut link, first));
        (0..4).for_each(|_| _ = archive.poll(NOW));
        assert_eq!(archive.counters.archive_too_old.read(), 2);
        let mut answered = vec![];
        link.answers.drain(4, |answer| answered.push(answer.message_count));
        assert_eq!(answered, [5, 5]);
        assert_eq!(archive.counters.archive_rewinds.read(), 1);
    }

    #[test]
    fn a_state_rebuilt_from_the_log_covers_all_durable_commands() {
        let (mut archive, mut link) = archive();
        let CatchUp::Done(image) = archive.catch_up(NOW) else { panic!("the log is short") };
        assert_eq!(image.next_sequence(), Sequence(COMMANDS + 1));
        request(&mut link, 7);
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
        // The definition ends at an unusable snapshot, unless the next usable one has the same definition.
        assert_eq!(of(&[&same, &None, &same]), END);
        assert_eq!(of(&[&other, &None, &same]), Sequence(800));
        assert_eq!(of(&[&None, &None, &same]), Sequence(800));
    }
}
