//! The log read while it is written, for who must know everything that happened.

use tickpath_lockfree::wake::Waker;
use tickpath_matching::EventListener;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::log_follower::LogFollower;
use crate::matcher::VenueEngine;
use crate::replica::Replica;
use crate::stored_log::{LogReadError, StoredLog};

/// Hears of each command: its events, in order, and then that it was applied.
pub trait LogListener: EventListener {
    /// All events of the command have been told; `engine` is as it left it.
    fn on_applied(&mut self, command: &LogCommand, engine: &VenueEngine);
}

/// The log cannot be followed any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFeedError {
    /// It cannot be read, or decided otherwise than this program does.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// Start the venue with `--new-session`: what was before the beginning cannot be known.
    #[error("the journal does not begin with its first command: start the venue with --new-session")]
    Cut,
}

/// Every command of a venue's journal from the first on, as far as it is durable, with what it caused: one more reading
/// of the log, by a separate engine, which no duty cycle of the venue knows of.
pub struct LogFeed {
    log: Box<dyn StoredLog>,
    /// Once it has begun.
    follower: Option<LogFollower>,
    /// Name of the journal's session: with another one commands are numbered from 1 again.
    pub session: String,
    /// The session's generation: how many starts there were before which answered commands may have been lost. Numbers of
    /// commands of an earlier generation may be in use again.
    pub generation: u32,
}

impl LogFeed {
    /// Of a log whose session has this name and generation.
    #[must_use]
    pub fn new(log: Box<dyn StoredLog>, session: String, generation: u32) -> LogFeed {
        LogFeed { log, follower: None, session, generation }
    }

    /// Publishes to `listener` what is durable and was not published yet, `max` commands at most; returns how many.
    ///
    /// # Errors
    /// [`LogFeedError`] as it says.
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

    /// Has what becomes durable wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.log.wake_by(waker);
    }
}
