//! The agent that runs all channels.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use tickpath_agent::{Agent, AgentError, Counter, WaitSet};
use tickpath_config::counted;
use tickpath_lockfree::{seqlock, spsc};
use tickpath_net::Network;
use tickpath_types::{InstrumentId, Nanos, Symbol};

use super::channel::{BookStatus, ChannelStatus, LiveFeed, ResyncOutcome};
use super::config::LiveConfig;
use super::outputs::{Segment, Suspect};
use super::protocol::Opening;
use super::protocols::protocol;
use super::section::ChannelSection;

/// Interval at which the statuses of the channels are published.
const PUBLISH_INTERVAL: Nanos = Nanos::from_millis(100);
/// Interval of the channels' background work.
const BACKGROUND_INTERVAL: Nanos = Nanos::from_millis(1);
/// Capacity of the queue of suspect books; books that do not fit are only counted.
const SUSPECTS_MAX: usize = 1_024;

/// The name and status of one channel.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    /// Name of the channel.
    pub name: String,
    /// Status of the channel.
    pub status: ChannelStatus,
}

/// Books with the names of their channels.
pub type NamedBooks = Vec<(String, BookStatus)>;

/// The published state of a running or closed handler, for its observers.
pub struct LiveView {
    names: Vec<String>,
    published: seqlock::Reader<(), ChannelStatus>,
    /// The latest statuses read, and a buffer for the next read.
    statuses: [Vec<ChannelStatus>; 2],
    suspects: spsc::Consumer<(u16, Suspect)>,
    unreported: Arc<Counter>,
    unreported_read: u64,
    books: Arc<Mutex<NamedBooks>>,
}

impl LiveView {
    /// Returns one message per queued suspect book, and the number of suspect books since the last call that
    /// did not fit in the queue.
    #[must_use]
    pub fn take_suspects(&mut self) -> (Vec<String>, u64) {
        let LiveView { names, suspects, .. } = self;
        let lines = std::iter::from_fn(|| suspects.try_pop()).map(|(channel, suspect)| {
            let Suspect { instrument: InstrumentId(id), symbol, reason } = suspect;
            let book = symbol.map_or_else(|| format!("instrument {id}"), |symbol| symbol.to_string());
            let reason = reason.map_or("its messages contradict each other", |reason| reason.as_str());
            format!("channel '{}': the book of {book} is suspect: {reason}", names[usize::from(channel)])
        });
        let lines = lines.collect();
        let unreported = self.unreported.read();
        (lines, unreported - std::mem::replace(&mut self.unreported_read, unreported))
    }

    /// Returns the latest published statuses of the channels.
    #[must_use]
    pub fn channels(&mut self) -> Vec<ChannelReport> {
        let [latest, buffer] = &mut self.statuses;
        // If every attempt to read collided with a write, keep the previous statuses.
        if self.published.try_read(buffer).is_ok() {
            std::mem::swap(latest, buffer);
        }
        let statuses = self.names.iter().zip(&self.statuses[0]);
        statuses.map(|(name, status)| ChannelReport { name: name.clone(), status: *status }).collect()
    }

    /// Returns the books of the configured symbols with their channels; empty until the handler has closed.
    #[must_use]
    pub fn books(&self) -> NamedBooks {
        self.books.lock().map(|books| books.clone()).unwrap_or_default()
    }
}

/// A command to a running handler, with the sender for its answer.
#[derive(Debug)]
pub enum LiveCommand {
    /// Report the status, and every book that is not live.
    Status(SyncSender<LiveReport>),
    /// Resync the book of a symbol, in every channel that has it.
    Resync(Symbol, SyncSender<Vec<(String, ResyncOutcome)>>),
}

/// A report on a handler's channels and books.
#[derive(Clone, Debug, Default)]
pub struct LiveReport {
    /// Name and status of each channel.
    pub channels: Vec<ChannelReport>,
    /// Books with the names of their channels. The answer to a command lists those that are not live; the
    /// final report lists those of the configured symbols.
    pub books: NamedBooks,
}

impl LiveReport {
    /// Returns whether [`ChannelStatus::is_consistent`] holds for every channel.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.channels.iter().all(|channel| channel.status.is_consistent())
    }

    /// Returns one line on why the run is incomplete or its books cannot be trusted; `None` for a good run.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let lost: u64 = self.channels.iter().map(|channel| channel.status.lines.messages_lost).sum();
        if lost > 0 {
            return Some(format!("{} were lost for good; see the counts above", counted(lost, "message")));
        }
        (!self.is_consistent()).then(|| "some books cannot be trusted; see the counts above".to_owned())
    }
}

/// The agent that runs channels of any protocols, with their books and outputs.
///
/// A duty cycle processes at most one batch of packets from each channel in turn.
pub struct LiveHandler {
    channels: Vec<Box<dyn LiveFeed>>,
    segment: Option<Segment>,
    commands: Receiver<LiveCommand>,
    /// Latest status of each channel, in the order of `channels`.
    statuses: Vec<ChannelStatus>,
    last_received: Vec<Nanos>,
    published: seqlock::Writer<(), ChannelStatus>,
    suspects: spsc::Producer<(u16, Suspect)>,
    unreported: Arc<Counter>,
    books: Arc<Mutex<NamedBooks>>,
    latest: Nanos,
    next_publish: Nanos,
    next_background: Nanos,
}

impl LiveHandler {
    /// Joins the lines of every channel and creates the outputs. Returns the handler and its view. `now`
    /// counts from the Unix epoch; `path` is the configuration file, which may contain secrets.
    ///
    /// # Errors
    /// A message of one line that says what to change.
    pub fn open<N: Network>(
        network: &N,
        config: &LiveConfig,
        path: Option<&std::path::Path>,
        now: Nanos,
        commands: Receiver<LiveCommand>,
    ) -> anyhow::Result<(LiveHandler, LiveView)> {
        let segment = Segment::create(&config.outputs, now).context("outputs")?;
        let (symbols, midnight) = (config.symbols()?, config.midnight(now)?);
        let open_channel = |section: &ChannelSection| {
            let symbols = symbols.clone();
            protocol(section.protocol).open(Opening { network, section, path, symbols, midnight })
        };
        let channels = config.channels.iter().map(open_channel).collect::<anyhow::Result<Vec<_>>>()?;
        let statuses = vec![ChannelStatus::default(); channels.len()];
        let (published, reader) = seqlock::cell((), &statuses);
        let (suspects, suspect_reader) = spsc::channel(SUSPECTS_MAX);
        let (unreported, books) = (Arc::<Counter>::default(), Arc::<Mutex<NamedBooks>>::default());
        let view = LiveView {
            names: channels.iter().map(|channel| channel.name().to_owned()).collect(),
            published: reader,
            statuses: [statuses.clone(), statuses.clone()],
            suspects: suspect_reader,
            unreported: Arc::clone(&unreported),
            unreported_read: 0,
            books: Arc::clone(&books),
        };
        let handler = LiveHandler {
            last_received: vec![now; channels.len()],
            channels,
            segment,
            commands,
            statuses,
            published,
            suspects,
            unreported,
            books,
            latest: now,
            next_publish: Nanos::ZERO,
            next_background: Nanos::ZERO,
        };
        Ok((handler, view))
    }

    /// Returns the path of the shared memory segment; `None` if none is configured.
    #[must_use]
    pub fn segment_path(&self) -> Option<String> {
        self.segment.as_ref().map(Segment::path)
    }

    /// Updates the status of every channel.
    fn update_statuses(&mut self) {
        let statuses = self.statuses.iter_mut().zip(&mut self.last_received);
        for (channel, (status, last_received)) in self.channels.iter().zip(statuses) {
            let received = std::mem::replace(status, channel.status()).received;
            if status.received != received {
                *last_received = self.latest;
            }
            status.quiet = self.latest.since(*last_received);
        }
    }

    fn reports(&mut self) -> Vec<ChannelReport> {
        self.update_statuses();
        let mut reports = Vec::with_capacity(self.channels.len());
        for (channel, status) in self.channels.iter().zip(&self.statuses) {
            reports.push(ChannelReport { name: channel.name().to_owned(), status: *status });
        }
        reports
    }

    fn listed(&self, is_selected: &dyn Fn(&BookStatus) -> bool) -> NamedBooks {
        let mut listed = vec![];
        for channel in &self.channels {
            let books = channel.books(is_selected).into_iter();
            listed.extend(books.map(|book| (channel.name().to_owned(), book)));
        }
        listed
    }

    /// Executes one command, if any. It may allocate, because commands are rare and come from a user.
    fn take_command(&mut self) -> bool {
        match self.commands.try_recv() {
            Ok(LiveCommand::Status(answer)) => {
                let books = self.listed(&|book| book.health != tickpath_types::BookHealth::Live);
                // The requester may have disconnected.
                let _ = answer.try_send(LiveReport { channels: self.reports(), books });
                true
            }
            Ok(LiveCommand::Resync(symbol, answer)) => {
                let LiveHandler { channels, segment, .. } = self;
                let outcomes = channels
                    .iter_mut()
                    .map(|channel| (channel.name().to_owned(), channel.resync(symbol, segment)))
                    .collect();
                let _ = answer.try_send(outcomes);
                true
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => false,
        }
    }

    /// Queues the books that became suspect, each once; books beyond the queue's capacity are only counted.
    fn queue_suspects(&mut self) {
        let LiveHandler { channels, suspects, unreported, .. } = self;
        for (number, channel) in (0..).zip(channels) {
            let mut refused = 0;
            let more = channel.drain_suspects(&mut |suspect| {
                refused += u64::from(suspects.try_push((number, suspect)).is_err());
            });
            unreported.add(more + refused);
        }
    }

    fn publish(&mut self) {
        if let Some(segment) = &mut self.segment {
            segment.heartbeat(self.latest);
        }
        self.update_statuses();
        self.published.write(&(), self.statuses.iter().copied());
        self.queue_suspects();
    }
}

impl Agent for LiveHandler {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = 0;
        for channel in &mut self.channels {
            work += channel.do_work(now, &mut self.segment).map_err(|error| {
                AgentError::fatal(format!("channel '{}': cannot read: {error}", channel.name()))
            })?;
        }
        if now >= self.next_background {
            (self.latest, self.next_background) = (now, now + BACKGROUND_INTERVAL);
            for channel in &mut self.channels {
                work += channel.do_background_work(now, &mut self.segment);
            }
            work += usize::from(self.take_command());
            if now >= self.next_publish {
                self.next_publish = now + PUBLISH_INTERVAL;
                self.publish();
            }
        }
        Ok(work)
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        self.channels.iter().for_each(|channel| channel.wait_for(wait));
        wait.until(self.next_background);
    }

    fn role_name(&self) -> &'static str {
        "feed"
    }

    fn on_close(&mut self) {
        self.queue_suspects();
        self.update_statuses();
        for (channel, status) in self.channels.iter().zip(&mut self.statuses) {
            status.state_hash = channel.state_hash();
        }
        self.published.write(&(), self.statuses.iter().copied());
        let books = self.listed(&|_| true);
        if let Ok(mut listed) = self.books.lock() {
            *listed = books;
        }
    }
}
