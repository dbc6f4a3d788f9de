//! All channels as one agent.

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

/// How often what others read is brought up to date.
const PUBLISH_INTERVAL: Nanos = Nanos::from_millis(100);
/// How often channels look at what is seldom there.
const BACKGROUND_INTERVAL: Nanos = Nanos::from_millis(1);
/// Suspect books that wait to be told of; of more only the number is.
const SUSPECTS_MAX: usize = 1_024;

/// One channel as it is told of.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    /// Its name.
    pub name: String,
    /// What it has done.
    pub status: ChannelStatus,
}

/// Books with the names of their channels.
pub type NamedBooks = Vec<(String, BookStatus)>;

/// What can be read of a running handler, and afterwards, by who watches it.
pub struct LiveView {
    names: Vec<String>,
    published: seqlock::Reader<(), ChannelStatus>,
    /// What was read last, and room for what is read next.
    statuses: [Vec<ChannelStatus>; 2],
    suspects: spsc::Consumer<(u16, Suspect)>,
    untold: Arc<Counter>,
    untold_seen: u64,
    books: Arc<Mutex<NamedBooks>>,
}

impl LiveView {
    /// The lines that wait to be told, each once, and how many more there were.
    #[must_use]
    pub fn take_told(&mut self) -> (Vec<String>, u64) {
        let LiveView { names, suspects, .. } = self;
        let lines = std::iter::from_fn(|| suspects.try_pop()).map(|(channel, suspect)| {
            let Suspect { instrument: InstrumentId(id), symbol, reason } = suspect;
            let book = symbol.map_or_else(|| format!("instrument {id}"), |symbol| symbol.to_string());
            let why = reason.map_or("it contradicted itself", |reason| reason.as_str());
            format!("channel '{}': the book of {book} is suspect: {why}", names[usize::from(channel)])
        });
        let lines = lines.collect();
        let untold = self.untold.read();
        (lines, untold - std::mem::replace(&mut self.untold_seen, untold))
    }

    /// The channels, some moments ago.
    #[must_use]
    pub fn channels(&mut self) -> Vec<ChannelReport> {
        let [latest, room] = &mut self.statuses;
        // Who met a write every time keeps what was read before.
        if self.published.try_read(room).is_ok() {
            std::mem::swap(latest, room);
        }
        let statuses = self.names.iter().zip(&self.statuses[0]);
        statuses.map(|(name, status)| ChannelReport { name: name.clone(), status: *status }).collect()
    }

    /// The books that were asked for, with their channels, once the handler has closed.
    #[must_use]
    pub fn books(&self) -> NamedBooks {
        self.books.lock().map(|books| books.clone()).unwrap_or_default()
    }
}

/// A command to a running handler, and where its answer goes.
#[derive(Debug)]
pub enum LiveCommand {
    /// What it has done, and every book that is not live.
    Status(SyncSender<LiveReport>),
    /// Read the book of a symbol anew, in every channel that has it.
    Resync(Symbol, SyncSender<Vec<(String, ResyncOutcome)>>),
}

/// The channels of a handler, and books of theirs.
#[derive(Clone, Debug, Default)]
pub struct LiveReport {
    /// The channels.
    pub channels: Vec<ChannelReport>,
    /// Books with their channels: in an answer to a command those that are not live, and at the end those of the configured symbols.
    pub books: NamedBooks,
}

impl LiveReport {
    /// True when every book is consistent with its market.
    #[must_use]
    pub fn is_believable(&self) -> bool {
        self.channels.iter().all(|channel| channel.status.is_believable())
    }

    /// The reason why the run is incomplete or its books cannot be trusted, in one line; `None` when neither is so.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let lost: u64 = self.channels.iter().map(|channel| channel.status.lines.messages_lost).sum();
        if lost > 0 {
            return Some(format!(
                "{} were lost for good; the counts above say where",
                counted(lost, "message")
            ));
        }
        (!self.is_believable()).then(|| "some books cannot be trusted; the counts above say why".to_owned())
    }
}

/// Channels of any protocols, their books, and what they put out.
///
/// A duty cycle takes up to a batch of packets of each channel in turn.
pub struct LiveHandler {
    channels: Vec<Box<dyn LiveFeed>>,
    segment: Option<Segment>,
    commands: Receiver<LiveCommand>,
    /// What each channel had done when it was last looked at, and when something of it came.
    statuses: Vec<ChannelStatus>,
    heard: Vec<Nanos>,
    published: seqlock::Writer<(), ChannelStatus>,
    suspects: spsc::Producer<(u16, Suspect)>,
    untold: Arc<Counter>,
    books: Arc<Mutex<NamedBooks>>,
    latest: Nanos,
    next_publish: Nanos,
    next_background: Nanos,
}

impl LiveHandler {
    /// Joins the lines of every channel and makes the outputs: the handler, and what is read of it. `now` counts from the
    /// Unix epoch; `path` is the file of the configuration, for the secrets that it names.
    ///
    /// # Errors
    /// In one line that says what to change.
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
        let (suspects, told) = spsc::channel(SUSPECTS_MAX);
        let (untold, books) = (Arc::<Counter>::default(), Arc::<Mutex<NamedBooks>>::default());
        let view = LiveView {
            names: channels.iter().map(|channel| channel.name().to_owned()).collect(),
            published: reader,
            statuses: [statuses.clone(), statuses.clone()],
            suspects: told,
            untold: Arc::clone(&untold),
            untold_seen: 0,
            books: Arc::clone(&books),
        };
        let handler = LiveHandler {
            heard: vec![now; channels.len()],
            channels,
            segment,
            commands,
            statuses,
            published,
            suspects,
            untold,
            books,
            latest: now,
            next_publish: Nanos::ZERO,
            next_background: Nanos::ZERO,
        };
        Ok((handler, view))
    }

    /// Where the outputs are; `None` without outputs.
    #[must_use]
    pub fn segment_path(&self) -> Option<String> {
        self.segment.as_ref().map(Segment::path)
    }

    /// Looks at what every channel has done.
    fn look(&mut self) {
        let statuses = self.statuses.iter_mut().zip(&mut self.heard);
        for (channel, (status, heard)) in self.channels.iter().zip(statuses) {
            let received = std::mem::replace(status, channel.status()).received;
            if status.received != received {
                *heard = self.latest;
            }
            status.quiet = self.latest.since(*heard);
        }
    }

    fn reports(&mut self) -> Vec<ChannelReport> {
        self.look();
        let mut reports = Vec::with_capacity(self.channels.len());
        for (channel, status) in self.channels.iter().zip(&self.statuses) {
            reports.push(ChannelReport { name: channel.name().to_owned(), status: *status });
        }
        reports
    }

    fn listed(&self, wanted: &dyn Fn(&BookStatus) -> bool) -> NamedBooks {
        let mut listed = vec![];
        for channel in &self.channels {
            let books = channel.books(wanted).into_iter();
            listed.extend(books.map(|book| (channel.name().to_owned(), book)));
        }
        listed
    }

    /// Takes one command, if there is one. Formats and allocates: somebody asked for it.
    fn take_command(&mut self) -> bool {
        match self.commands.try_recv() {
            Ok(LiveCommand::Status(answer)) => {
                let books = self.listed(&|book| book.health != tickpath_types::BookHealth::Live);
                // Who asked may have gone.
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

    /// Hands over the books that became suspect, each once.
    fn tell(&mut self) {
        let LiveHandler { channels, suspects, untold, .. } = self;
        for (number, channel) in (0..).zip(channels) {
            let mut refused = 0;
            let more = channel.drain_suspects(&mut |suspect| {
                refused += u64::from(suspects.try_push((number, suspect)).is_err());
            });
            untold.add(more + refused);
        }
    }

    fn publish(&mut self) {
        if let Some(segment) = &mut self.segment {
            segment.heartbeat(self.latest);
        }
        self.look();
        self.published.write(&(), self.statuses.iter().copied());
        self.tell();
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
        self.tell();
        self.look();
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
