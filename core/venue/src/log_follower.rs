//! A replica that applies a log, starting from a snapshot.

use tickpath_faults::failpoint;
use tickpath_types::Sequence;

use crate::log_command::LogCommand;
use crate::replica::Replica;
use crate::stored_log::{LogReadError, LogResult, StoredCommands, StoredLog};

/// A replica that starts from a snapshot and follows the log. When it reaches a later snapshot, it continues
/// from that snapshot's state, which may have other users or bounds.
pub struct LogFollower {
    replica: Replica,
    commands: Box<dyn StoredCommands>,
    /// Last commands of the snapshots still to be reached, newest first; listed once, at the start.
    ahead: Vec<Sequence>,
}

impl LogFollower {
    /// Starts from the newest snapshot that `is_usable` accepts. `None` if it accepts none, or if the log
    /// begins after that snapshot.
    ///
    /// # Errors
    /// [`LogReadError`] when the log cannot be read.
    pub fn from_snapshot(
        log: &dyn StoredLog,
        is_usable: impl Fn(&Replica) -> bool,
    ) -> LogResult<Option<Self>> {
        let limit = log.durable();
        let mut ahead = log.snapshots()?;
        ahead.retain(|sequence| *sequence <= limit);
        ahead.reverse();
        for place in 0..ahead.len() {
            // Skip a snapshot that is unusable or was removed: start from an older one and follow the log.
            let Some(replica) = log.replica(ahead[place]).filter(|replica| is_usable(replica)) else {
                continue;
            };
            let first = ahead[place].next();
            failpoint!(CopyMissed: first = first.next());
            let Some(commands) = log.commands_from(first)? else { return Ok(None) };
            ahead.truncate(place);
            return Ok(Some(LogFollower { replica, commands, ahead }));
        }
        Ok(None)
    }

    /// Passes the log's next command to `apply`; returns false if there is none up to `limit`.
    ///
    /// # Errors
    /// [`LogReadError`] when the log cannot be read, or users or bounds changed at an unusable snapshot.
    pub fn advance(
        &mut self,
        log: &dyn StoredLog,
        limit: Sequence,
        apply: impl FnOnce(&mut Replica, &LogCommand),
    ) -> LogResult<bool> {
        let Some(command) = self.commands.next(limit)? else { return Ok(false) };
        apply(&mut self.replica, &command);
        let sequence = command.sequence();
        while self.ahead.last().is_some_and(|ahead| *ahead <= sequence) {
            let Some(reached) = self.ahead.pop().filter(|reached| *reached == sequence) else { continue };
            match log.replica(reached) {
                Some(replica) => self.replica = replica,
                None => self.skip(log, reached)?,
            }
        }
        Ok(true)
    }

    /// Skips the unusable snapshot `sequence`; fails if the next usable one has other users or bounds.
    fn skip(&self, log: &dyn StoredLog, sequence: Sequence) -> LogResult<()> {
        let next = self.ahead.iter().rev().find_map(|ahead| log.replica(*ahead));
        match next {
            Some(next) if next.definition() != self.replica.definition() => {
                Err(LogReadError::DefinitionUnknown(sequence))
            }
            _ => Ok(()),
        }
    }

    /// The replica after the last command passed to `apply`.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }
}
