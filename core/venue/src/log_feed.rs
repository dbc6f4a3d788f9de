//! A feed of all commands in the venue's log and their events, for readers that need every event.

use tickpath_lockfree::wake::Waker;
use tickpath_matching::EventListener;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::log_follower::LogFollower;
use crate::matcher::VenueEngine;
use crate::replica::Replica;
use crate::stored_log::{LogReadError, StoredLog};

/// Receives the events of each command in order, followed by a call of `on_applied`.
pub trait LogListener: EventListener {
    /// Called after all events of the command; `engine` has the state after the command.
    fn on_applied(&mut self, command: &LogCommand, engine: &VenueEngine);
}

/// The feed can no longer follow the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFeedError {
    /// The log cannot be read, or a snapshot needed to follow it is unusable.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// The log no longer begins with its first command, so the first events cannot be recomputed.
    #[error("the journal does not begin with its first command: start the venue with --new-session")]
    Cut,
}

/// A feed of all durable commands of a venue's journal, from the first, with their events. It reads the log
/// itself and applies the commands to a separate engine, so a slow feed does not delay the venue.
pub struct LogFeed {
    log: Box<dyn StoredLog>,
    /// `None` until `run_once` has opened the log.
    follower: Option<LogFollower>,
    /// Name of the journal's session; each session numbers its commands from 1.
    pub session: String,
    /// Number of the session's restarts that may have lost commands after their responses were sent. Later
    /// commands may reuse the sequence numbers of the lost ones.
    pub generation: u32,
}

impl LogFeed {
    /// A feed of `log`, whose session has this name and generation.
    #[must_use]
    pub fn new(log: Box<dyn StoredLog>, session: String, generation: u32) -> LogFeed {
        LogFeed { log, follower: None, session, generation }
    }

    /// Passes up to `max` newly durable commands to `listener`; returns their number.
    ///
    /// # Errors
    /// [`LogFeedError`] when the feed can no longer follow the log.
    pub fn run_once(
        &mut self,
        max: usize,
        mut listener: &mut dyn LogListener,
    ) -> Result<usize, LogFeedError> {
        let log = &*self.log;
        let limit = log.durable();
        let follower = match &mut self.follower {
            Some(follower) => follower,
            none => {
                let is_first = |replica: &Replica| replica.last_command() == Sequence(0);
                none.insert(LogFollower::from_snapshot(log, is_first)?.ok_or(LogFeedError::Cut)?)
            }
        };
        let mut count = 0;
        while count < max
            && follower.advance(log, limit, |replica, command| {
                replica.apply_to(command, &mut listener);
                listener.on_applied(command, &replica.engine);
            })?
        {
            count += 1;
        }
        Ok(count)
    }

    /// Sequence number of the last durable command.
    #[must_use]
    pub fn durable(&self) -> Sequence {
        self.log.durable()
    }

    /// Makes newly durable commands wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.log.wake_by(waker);
    }
}
