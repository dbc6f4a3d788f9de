//! Each reader's stream of copies, from the newest messages or from a second reading of the log.

use std::collections::VecDeque;

use tickpath_lockfree::wake::Waker;
use tickpath_types::{Nanos, Sequence};

use super::store::{CopyPosition, CopyStore, Entry, Watched, count};
use crate::log_follower::LogFollower;
use crate::replica::Replica;
use crate::stored_log::{LogReadError, LogResult, StoredLog};

/// Maximum number of commands that one call of `follow` or `advance_rewind` reads from the log.
const COMMANDS_PER_RUN: usize = 1 << 12;
/// A rewind reads no more commands while this number of messages is queued for its reader.
const REWOUND_MAX: usize = 1 << 10;
/// Maximum time for which a rewinding reader may accept no message; other readers may be waiting to rewind.
pub const REWIND_TIMEOUT: Nanos = Nanos::from_secs(10);

/// Follows a log up to its durable end, and gives each reader the messages to the users that it watches.
///
/// Keeps the newest messages. For a reader that starts before them the log is read again (a rewind), for one
/// reader at a time.
pub struct CopyStreams {
    log: Box<dyn StoredLog>,
    /// Number of messages to keep.
    retained: usize,
    /// Maximum number of messages that one call of `follow` stores.
    messages_per_run: usize,
    live: Option<Live>,
    rewind: Option<Rewind>,
}

/// The main reading of the log, which follows its durable end.
struct Live {
    follower: LogFollower,
    store: CopyStore,
    /// Messages of the last command beyond `messages_per_run`; the next calls of `follow` store them. The end
    /// of the day, for example, causes many.
    waiting: VecDeque<Entry>,
    /// The command up to which the log must be read before readers may start.
    ready_at: Sequence,
}

/// A second reading of the log, for a reader that starts before the kept messages.
struct Rewind {
    follower: LogFollower,
    /// Key of the rewinding reader: its connection index.
    key: usize,
    /// Number, in the reader's stream, of the next message that the rewind will read from the log.
    next_number: u64,
    /// Number of the first message that the reader requested.
    first_requested: u64,
    /// Messages to be sent to the reader.
    out: VecDeque<Entry>,
    /// Time at which the reader last accepted a message.
    last_progress: Nanos,
}

/// The source of a reader's next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySource {
    /// The store of the newest messages, from this position.
    Store(u64),
    /// The queue of messages that the rewind has read for the reader.
    Rewind,
}

/// The response to a reader that requests copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStart {
    /// The stream starts with this message number, from this source.
    At(u64, CopySource),
    /// The requested number is above that of the next message, or the log cannot supply the message.
    NotAvailable,
    /// The log is being read again for another reader.
    Busy,
}

/// The result of one call of [`CopyStreams::advance_rewind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindRun {
    /// The call read this number of commands, and the rewind continues.
    Read(usize),
    /// The reader has accepted no message for 10 s.
    Stalled,
    /// The rewind can no longer read the log.
    Lost,
}

/// The result of one call of [`CopyStreams::follow`].
pub struct FollowRun {
    /// Amount of work: commands read and waiting messages stored; 0 when there was none.
    pub work: usize,
    /// Number of messages added to the store.
    pub messages: usize,
    /// The last command whose messages are all in the store.
    pub last_command: Sequence,
}

impl CopyStreams {
    /// Creates streams of `log`. They keep the newest `retained` messages, and each call of
    /// [`follow`](Self::follow) stores up to `messages_per_run`.
    #[must_use]
    pub fn new(log: Box<dyn StoredLog>, retained: usize, messages_per_run: usize) -> CopyStreams {
        CopyStreams { log, retained, messages_per_run, live: None, rewind: None }
    }

    /// Registers `waker`: the log wakes the waker's thread when commands become durable.
    pub fn wake_by(&self, waker: &Waker) {
        self.log.wake_by(waker);
    }

    /// Reads some of the durable commands and stores their messages.
    ///
    /// # Errors
    /// [`LogReadError`] when the log cannot be followed any more.
    pub fn follow(&mut self) -> LogResult<FollowRun> {
        let log = &*self.log;
        let limit = log.durable();
        let live = match &mut self.live {
            Some(live) => live,
            live => {
                let follower = LogFollower::from_snapshot(log, |_| true)?.ok_or(LogReadError::NoSnapshot)?;
                let store = CopyStore::new(self.retained, follower.replica().next_numbers().collect());
                live.insert(Live { follower, store, waiting: VecDeque::new(), ready_at: limit })
            }
        };
        let Live { follower, store, waiting, .. } = live;
        // At most half the capacity, so that a reader that is behind by less than the other half loses nothing.
        let messages_max = self.messages_per_run.min(store.capacity().div_ceil(2));
        let waited = waiting.len().min(messages_max);
        waiting.drain(..waited).for_each(|entry| store.push(entry));
        let (mut messages, mut commands) = (waited, 0);
        while commands < COMMANDS_PER_RUN
            && messages < messages_max
            && follower.advance(log, limit, |replica, command| {
                replica.apply_with_messages(command, |user, number, message| {
                    let entry = Entry::new(user, number, message);
                    if messages < messages_max {
                        store.push(entry);
                        messages += 1;
                    } else {
                        waiting.push_back(entry);
                    }
                });
            })?
        {
            commands += 1;
        }
        let last = follower.replica().last_command().0 - u64::from(!waiting.is_empty());
        Ok(FollowRun { work: waited + commands, messages, last_command: Sequence(last) })
    }

    /// True once all commands that were durable at the first call of [`follow`](Self::follow) have been read:
    /// readers may start.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.live.as_ref().is_some_and(|live| {
            live.follower.replica().last_command() >= live.ready_at && live.waiting.is_empty()
        })
    }

    /// Starts the stream of the reader `key` at message `number`; 0 is the next new message.
    pub fn start(&mut self, key: usize, watched: &Watched, number: u64, now: Nanos) -> CopyStart {
        let Some(live) = &self.live else { return CopyStart::NotAvailable };
        let number = if number == 0 { live.store.next_number(watched) } else { number };
        match live.store.find(watched, number) {
            CopyPosition::At(at) => return CopyStart::At(number, CopySource::Store(at)),
            CopyPosition::Beyond => return CopyStart::NotAvailable,
            CopyPosition::Before if self.rewind.is_some() => return CopyStart::Busy,
            CopyPosition::Before => {}
        }
        let is_before = |replica: &Replica| count(watched, replica.next_numbers()) < number;
        let follower = LogFollower::from_snapshot(&*self.log, is_before);
        // The error itself is not needed here: `follow` reports an unreadable log.
        let Ok(Some(follower)) = follower else { return CopyStart::NotAvailable };
        let next_number = 1 + count(watched, follower.replica().next_numbers());
        let out = VecDeque::with_capacity(REWOUND_MAX);
        self.rewind =
            Some(Rewind { follower, key, next_number, first_requested: number, out, last_progress: now });
        CopyStart::At(number, CopySource::Rewind)
    }

    /// Key of the rewinding reader, if any.
    #[must_use]
    pub fn rewinding(&self) -> Option<usize> {
        self.rewind.as_ref().map(|rewind| rewind.key)
    }

    /// Continues the rewind for its reader, which watches these users. `takes_all` is true when the reader's
    /// connection has no unsent data. If the part of the log to be read was removed, the result is
    /// [`RewindRun::Lost`]; other readers are not affected.
    pub fn advance_rewind(&mut self, watched: &Watched, takes_all: bool, now: Nanos) -> RewindRun {
        let (Some(rewind), Some(live)) = (&mut self.rewind, &self.live) else { return RewindRun::Read(0) };
        // The reader cannot accept a message while none is available, so the timeout restarts.
        if rewind.out.is_empty() && takes_all {
            rewind.last_progress = now;
        }
        match rewind.read_log(&*self.log, live.follower.replica().last_command(), watched) {
            Ok(_) if now.since(rewind.last_progress) >= REWIND_TIMEOUT => RewindRun::Stalled,
            Ok(count) => RewindRun::Read(count),
            Err(_) => RewindRun::Lost,
        }
    }

    /// The reader's next message, if available.
    pub fn next(&mut self, source: &mut CopySource, watched: &Watched, now: Nanos) -> Option<Entry> {
        let live = self.live.as_ref()?;
        if *source == CopySource::Rewind {
            let rewind = self.rewind.as_mut()?;
            if let Some(entry) = rewind.out.pop_front() {
                rewind.last_progress = now;
                return Some(entry);
            }
            // Once the rewind has reached the kept messages, the reader continues from the store.
            let next = rewind.next_number.max(rewind.first_requested);
            let CopyPosition::At(at) = live.store.find(watched, next) else { return None };
            *source = CopySource::Store(at);
            self.rewind = None;
        }
        let CopySource::Store(at) = source else { return None };
        while let Some(entry) = live.store.entry(*at) {
            *at += 1;
            if watched[usize::from(entry.user)] {
                return Some(*entry);
            }
        }
        None
    }

    /// False when the reader's next message was overwritten: end the stream then, as it would have a gap.
    #[must_use]
    pub fn is_kept(&self, source: CopySource) -> bool {
        let (CopySource::Store(at), Some(live)) = (source, &self.live) else { return true };
        at >= live.store.next() || live.store.entry(at).is_some()
    }

    /// True when the reader has taken all messages in the store.
    #[must_use]
    pub fn is_sent(&self, source: CopySource) -> bool {
        self.live.as_ref().is_none_or(|live| source == CopySource::Store(live.store.next()))
    }

    /// True when all durable commands have been read and their messages are in the store.
    #[must_use]
    pub fn is_caught_up(&self) -> bool {
        self.live.as_ref().is_none_or(|live| {
            live.follower.replica().last_command() >= self.log.durable() && live.waiting.is_empty()
        })
    }

    /// Ends the stream of the reader `key`; drops its rewind, if any.
    pub fn end(&mut self, key: usize) {
        self.rewind.take_if(|rewind| rewind.key == key);
    }
}

impl Rewind {
    /// Reads commands while `out` has capacity for their messages; returns the number of commands.
    fn read_log(&mut self, log: &dyn StoredLog, limit: Sequence, watched: &Watched) -> LogResult<usize> {
        let Rewind { follower, next_number, first_requested, out, .. } = self;
        let mut commands = 0;
        while commands < COMMANDS_PER_RUN
            && out.len() < REWOUND_MAX
            && follower.advance(log, limit, |replica, command| {
                replica.apply_with_messages(command, |user, number, message| {
                    if watched.get(user) == Some(&true) {
                        if *next_number >= *first_requested {
                            out.push_back(Entry::new(user, number, message));
                        }
                        *next_number += 1;
                    }
                });
            })?
        {
            commands += 1;
        }
        Ok(commands)
    }
}
