//! The log read again, for what users were sent.

use tickpath_faults::{Fault, is_planted};
use tickpath_journal::{DurableView, OpenError, Reader, SessionName, Snapshots, Storage};
use tickpath_matching::{CodecError, Command};
use tickpath_types::Sequence;
use tickpath_venue::Replica;
use tickpath_venue::drop_copy::{Watched, count};

/// There can be no drop copies until the venue is started again; the venue itself continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DropCopyError {
    /// The log cannot be read: look at the file, or at the disk.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// A record is no command: another version of the program wrote it.
    #[error("record {sequence} of the journal is no command: {source}")]
    Command {
        /// Which.
        sequence: Sequence,
        /// Why.
        source: CodecError,
    },
    /// No snapshot is there to begin with: restore one from a copy.
    #[error("the journal has no snapshot that can be used")]
    NoSnapshot,
    /// Restore it from a copy.
    #[error(
        "the snapshot of command {sequence} cannot be used, and what follows it was decided by other users or bounds than what \
         came before"
    )]
    DefinitionUnknown {
        /// The last command that it covers.
        sequence: Sequence,
    },
}

/// The log and its snapshots, while the venue writes them.
#[derive(Clone)]
pub(crate) struct Source<S: Storage> {
    pub(crate) storage: S,
    pub(crate) session: SessionName,
    pub(crate) durable: DurableView,
}

/// A venue's log read from a snapshot on.
pub(crate) struct Reading<S: Storage> {
    source: Source<S>,
    replica: Replica,
    reader: Reader<S>,
    /// Snapshots ahead: what follows one of them may have been decided by other bounds than what came before.
    ahead: Vec<Sequence>,
}

impl<S: Storage> Source<S> {
    fn snapshots(&self) -> Snapshots<S> {
        Snapshots::new(self.storage.clone(), self.session)
    }

    /// From the newest snapshot on.
    pub(crate) fn read_newest(&self) -> Result<Reading<S>, DropCopyError> {
        self.read_from(|_| true)?.ok_or(DropCopyError::NoSnapshot)
    }

    /// From the newest snapshot on before which the watched users were sent fewer messages than `number`; `None` when the
    /// log begins later.
    pub(crate) fn read_before(
        &self,
        watched: &Watched,
        number: u64,
    ) -> Result<Option<Reading<S>>, DropCopyError> {
        self.read_from(|replica| count(watched, replica.next_numbers()) < number)
    }

    /// From the first command on; `None` when the log begins later.
    pub(crate) fn read_all(&self) -> Result<Option<Reading<S>>, DropCopyError> {
        self.read_from(|replica| replica.last_command() == Sequence(0))
    }

    fn read_from(&self, is_good: impl Fn(&Replica) -> bool) -> Result<Option<Reading<S>>, DropCopyError> {
        let limit = self.durable.durable();
        let mut ahead = self.snapshots().list()?;
        ahead.retain(|sequence| *sequence <= limit);
        ahead.reverse();
        for place in 0..ahead.len() {
            // One that cannot be used, or was removed meanwhile, is passed over: an older one leads there too.
            let Some(replica) = self.restore(ahead[place]) else { continue };
            if !is_good(&replica) {
                continue;
            }
            let covered = ahead[place].0 + u64::from(is_planted(Fault::CopyMissed));
            let reader = match Reader::open(&self.storage, self.session, Sequence(covered).next()) {
                Err(OpenError::OutOfRange { .. }) => return Ok(None),
                opened => opened?,
            };
            ahead.truncate(place);
            return Ok(Some(Reading { source: self.clone(), replica, reader, ahead }));
        }
        Ok(None)
    }

    fn restore(&self, sequence: Sequence) -> Option<Replica> {
        let snapshot = self.snapshots().read(sequence).ok()?.ok()?;
        Replica::decode(&snapshot.payload).ok()
    }
}

impl<S: Storage> Reading<S> {
    /// Takes the next command, if it is at most `limit` and there; `heard` gets the messages that it causes. False when
    /// there is none.
    pub(crate) fn step(
        &mut self,
        limit: Sequence,
        heard: impl FnMut(usize, u64, &[u8]),
    ) -> Result<bool, DropCopyError> {
        self.advance(limit, |replica, command| replica.apply_with_messages(command, heard))
    }

    /// Takes the next command likewise, and lets `apply` give it to the replica.
    pub(crate) fn advance(
        &mut self,
        limit: Sequence,
        apply: impl FnOnce(&mut Replica, &Command),
    ) -> Result<bool, DropCopyError> {
        let Some(record) = self.reader.next(limit)? else { return Ok(false) };
        let sequence = record.sequence;
        let command =
            Command::decode(record.payload).map_err(|source| DropCopyError::Command { sequence, source })?;
        apply(&mut self.replica, &command);
        while self.ahead.last().is_some_and(|ahead| *ahead <= sequence) {
            let Some(reached) = self.ahead.pop().filter(|reached| *reached == sequence) else { continue };
            match self.source.restore(reached) {
                Some(replica) => self.replica = replica,
                None => self.pass_over(reached)?,
            }
        }
        Ok(true)
    }

    /// A snapshot that cannot be used matters where what follows was decided by another definition, which the next one
    /// tells.
    fn pass_over(&self, sequence: Sequence) -> Result<(), DropCopyError> {
        let next = self.ahead.iter().rev().find_map(|ahead| self.source.restore(*ahead));
        match next {
            Some(next) if next.definition() != self.replica.definition() => {
                Err(DropCopyError::DefinitionUnknown { sequence })
            }
            _ => Ok(()),
        }
    }

    /// The number of each user's next message.
    pub(crate) fn next_numbers(&self) -> impl Iterator<Item = u64> {
        self.replica.next_numbers()
    }

    pub(crate) fn last_command(&self) -> Sequence {
        self.replica.last_command()
    }
}
