//! A live reading of the log, for readers that need every event.

use tickpath_lockfree::wake::Waker;
use tickpath_matching::EventListener;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::log_follower::LogFollower;
use crate::matcher::VenueEngine;
use crate::replica::Replica;
use crate::stored_log::{LogReadError, StoredLog};

/// Receives the events of each command, in order, and then `on_applied`.
pub trait LogListener: EventListener {
    /// Called after all events of the command; `engine` has the state after the command.
    fn on_applied(&mut self, command: &LogCommand, engine: &VenueEngine);
}

/// The log cannot be followed any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFeedError {
    /// The log cannot be read, or its commands were decided differently than this program decides.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// Start the venue with `--new-session`: the events before the log's beginning are unknown.
    #[error("the journal does not begin with its first command: start the venue with --new-session")]
    Cut,
}

/// All durable commands of a venue's journal from the first, with their events. This is a separate reading of
/// the log, by a separate engine; the venue's duty cycles do not depend on it.
pub struct LogFeed {
    log: Box<dyn StoredLog>,
    /// `None` until it has begun.
    follower: Option<LogFollower>,
    /// Name of the journal's session; another session numbers its commands from 1 again.
    pub session: String,
    /// The session's generation: the number of starts before which answered commands may have been lost.
    /// Numbers of commands of an earlier generation may be in use again.
    pub generation: u32,
}

impl LogFeed {
    /// A feed of a log whose session has this name and generation.
    #[must_use]
    pub fn new(log: Box<dyn StoredLog>, session: String, generation: u32) -> LogFeed {
        LogFeed { log, follower: None, session, generation }
    }

    /// Publishes new durable commands to `listener`, at most `max`; returns their number.
    ///
    /// # Errors
    /// [`LogFeedError`].
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

    /// The last command that is durable now.
    #[must_use]
    pub fn durable(&self) -> Sequence {
        self.log.durable()
    }

    /// Makes newly durable commands wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.log.wake_by(waker);
    }
}
