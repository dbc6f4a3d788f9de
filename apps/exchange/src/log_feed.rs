//! The log read while it is written, for who must know everything that happened.

use tickpath_agent::Waker;
use tickpath_book::FastBooks;
use tickpath_journal::Storage;
use tickpath_matching::{Command, Engine, EventListener, Owner};
use tickpath_types::Sequence;

use crate::drop_copy::DropCopyError;
use crate::drop_copy::reading::{Reading, Source};

/// The venue's matching engine.
pub type VenueEngine = Engine<FastBooks<Owner>>;

/// Hears of each command: its events, in order, and then that it was applied.
pub trait LogListener: EventListener {
    /// All events of the command have been told; `engine` is as it left it.
    fn on_applied(&mut self, command: &Command, engine: &VenueEngine);
}

/// The log cannot be followed any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFeedError {
    /// It cannot be read, or decided otherwise than this program does.
    #[error(transparent)]
    Log(#[from] DropCopyError),
    /// Start the venue with `--new-session`: what was before the beginning cannot be known.
    #[error("the journal does not begin with its first command: start the venue with --new-session")]
    Cut,
}

/// Every command of a venue's journal from the first on, as far as it is safe, with what it caused: one more reading of the
/// log, by an engine of its own, which no duty cycle of the venue knows of.
pub struct LogFeed {
    feed: Box<dyn Feed>,
    generation: u32,
}

trait Feed: Send {
    fn run_once(&mut self, max: usize, listener: &mut dyn LogListener) -> Result<usize, LogFeedError>;
    fn durable(&self) -> Sequence;
    fn session(&self) -> String;
    fn wake_by(&self, waker: &Waker);
}

struct Following<S: Storage> {
    source: Source<S>,
    /// Once it has begun.
    reading: Option<Reading<S>>,
}

impl LogFeed {
    pub(crate) fn new<S: Storage>(source: Source<S>, generation: u32) -> LogFeed {
        LogFeed { feed: Box::new(Following { source, reading: None }), generation }
    }

    /// Tells of what is safe and not told yet, `max` commands at most; returns how many.
    ///
    /// # Errors
    /// [`LogFeedError`] as it says.
    pub fn run_once(&mut self, max: usize, listener: &mut dyn LogListener) -> Result<usize, LogFeedError> {
        self.feed.run_once(max, listener)
    }

    /// The last command that is safe now.
    #[must_use]
    pub fn durable(&self) -> Sequence {
        self.feed.durable()
    }

    /// Has what becomes safe wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.feed.wake_by(waker);
    }

    /// Name of the journal's session: with another one commands are numbered anew.
    #[must_use]
    pub fn session(&self) -> String {
        self.feed.session()
    }

    /// The session's generation: how many starts there were before which answered commands may have been lost. Numbers of
    /// commands of an earlier generation may be in use again.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }
}

impl<S: Storage> Feed for Following<S> {
    fn run_once(&mut self, max: usize, mut listener: &mut dyn LogListener) -> Result<usize, LogFeedError> {
        let limit = self.source.durable.durable();
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => none.insert(self.source.read_all()?.ok_or(LogFeedError::Cut)?),
        };
        let mut count = 0;
        while count < max
            && reading.advance(limit, |replica, command| {
                replica.apply_to(command, &mut listener);
                listener.on_applied(command, &replica.engine);
            })?
        {
            count += 1;
        }
        Ok(count)
    }

    fn durable(&self) -> Sequence {
        self.source.durable.durable()
    }

    fn session(&self) -> String {
        self.source.session.to_string()
    }

    fn wake_by(&self, waker: &Waker) {
        self.source.durable.wake_by(waker);
    }
}
