//! All channels as one agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex};

use tickpath_agent::{Agent, AgentError};
use tickpath_book::{BookLimits, BooksById, DirectBooks};
use tickpath_config::ConfigError;
use tickpath_feed::{BookBuilder, IexTp, MoldUdp64, iex, xdp};
use tickpath_iex::Feed;
use tickpath_iex::wire::Alpha;
use tickpath_nasdaq::soupbintcp::ClientConfig;
use tickpath_net::NetError;
use tickpath_shm::ShmError;
use tickpath_types::{InstrumentId, Nanos, Symbol};

use super::channel::{BookStatus, ChannelStatus, Gate, LiveChannel, LiveFeed, Open, ResyncOutcome};
use super::config::{ChannelSection, LiveConfig, ProtocolName};
use super::iex::IexRecovery;
use super::itch::ItchRecovery;
use super::lines::LineSockets;
use super::outputs::{ChannelOutput, Segment};
use super::soup::SoupChannel;
use super::xdp::{SendTimes, XdpRecovery};

/// How often what others read is brought up to date.
const PUBLISH_INTERVAL: Nanos = Nanos::from_millis(100);
/// How often channels look at what is seldom there.
const BACKGROUND_INTERVAL: Nanos = Nanos::from_millis(1);
/// Lines of trouble that wait to be told; of more only the number is.
const LINES_MAX: usize = 1_000;

/// Why a feed handler did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A line cannot be joined.
    #[error("channel '{channel}': {source}")]
    Net {
        /// Which.
        channel: String,
        /// What the system said.
        source: NetError,
    },
    /// The outputs cannot be made.
    #[error("outputs: {0}")]
    Outputs(#[from] ShmError),
}

/// One channel as it is told of.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    /// Its name.
    pub name: String,
    /// What it has done.
    pub status: ChannelStatus,
}

/// What can be read of a running handler.
#[derive(Default)]
pub struct LiveView {
    /// Its channels, some moments ago.
    pub channels: Mutex<Vec<ChannelReport>>,
    /// Lines to be told, each once.
    pub told: Mutex<Vec<String>>,
    /// Lines that found no room.
    pub untold: Mutex<u64>,
    /// The books that were asked for, with each channel's name, once the handler has closed.
    pub books: Mutex<Vec<(String, BookStatus)>>,
    has_told: AtomicBool,
}

impl LiveView {
    /// The lines that wait to be told, and how many more there were.
    #[must_use]
    pub fn take_told(&self) -> (Vec<String>, u64) {
        if !self.has_told.swap(false, Ordering::AcqRel) {
            return (vec![], 0);
        }
        let lines = self.told.lock().map(|mut told| std::mem::take(&mut *told)).unwrap_or_default();
        let untold = self.untold.lock().map(|mut untold| std::mem::take(&mut *untold)).unwrap_or(0);
        (lines, untold)
    }

    /// The channels, some moments ago.
    #[must_use]
    pub fn channels(&self) -> Vec<ChannelReport> {
        self.channels.lock().map(|channels| channels.clone()).unwrap_or_default()
    }
}

/// A command to a running handler, and where its answer goes.
#[derive(Debug)]
pub enum LiveCommand {
    /// What it has done, and every book that is not live.
    Status(SyncSender<LiveStatus>),
    /// Read the book of a symbol anew, in every channel that has it.
    Resync(Symbol, SyncSender<Vec<(String, ResyncOutcome)>>),
}

/// The answer to [`LiveCommand::Status`].
#[derive(Clone, Debug, Default)]
pub struct LiveStatus {
    /// The channels.
    pub channels: Vec<ChannelReport>,
    /// Books that are not live, with their channels.
    pub books: Vec<(String, BookStatus)>,
}

/// Channels of any protocols, their books, and what they put out.
///
/// A duty cycle takes up to a batch of packets of each channel in turn.
pub struct LiveHandler {
    channels: Vec<Box<dyn LiveFeed>>,
    segment: Option<Segment>,
    commands: Receiver<LiveCommand>,
    view: Arc<LiveView>,
    next_publish: Nanos,
    next_background: Nanos,
}

impl LiveHandler {
    /// Joins the lines of every channel and makes the outputs. `now` counts from the Unix epoch; `path` is the file of
    /// the configuration, for the secrets that it names.
    ///
    /// # Errors
    /// [`LiveError`] in one line that says what to change.
    pub fn open(
        config: &LiveConfig,
        path: Option<&std::path::Path>,
        now: Nanos,
        commands: Receiver<LiveCommand>,
        view: Arc<LiveView>,
    ) -> Result<LiveHandler, LiveError> {
        let segment = Segment::create(&config.outputs, now)?;
        let (symbols, midnight) = (config.symbols()?, config.midnight(now)?);
        let channels = config
            .channels
            .iter()
            .map(|section| open_channel(section, path, symbols.clone(), midnight))
            .collect::<Result<_, _>>()?;
        let (next_publish, next_background) = (Nanos::ZERO, Nanos::ZERO);
        Ok(LiveHandler { channels, segment, commands, view, next_publish, next_background })
    }

    /// Where the outputs are; `None` without outputs.
    #[must_use]
    pub fn segment_path(&self) -> Option<String> {
        self.segment.as_ref().map(Segment::path)
    }

    fn reports(&self, with_hash: bool) -> Vec<ChannelReport> {
        let mut reports = Vec::with_capacity(self.channels.len());
        for channel in &self.channels {
            let state_hash = if with_hash { channel.state_hash() } else { 0 };
            let status = ChannelStatus { state_hash, ..channel.status() };
            reports.push(ChannelReport { name: channel.name().to_owned(), status });
        }
        reports
    }

    fn listed(&self, wanted: &dyn Fn(&BookStatus) -> bool) -> Vec<(String, BookStatus)> {
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
                let _ = answer.try_send(LiveStatus { channels: self.reports(false), books });
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

    /// Hands over what is to be told: once for each book that became suspect.
    #[cold]
    fn tell(&mut self) {
        let Ok(mut lines) = self.view.told.lock() else { return };
        let mut more = 0;
        for channel in self.channels.iter_mut().filter(|channel| channel.has_told()) {
            let (told, untold) = channel.take_told();
            more += untold;
            for (symbol, InstrumentId(id), reason) in told {
                if lines.len() >= LINES_MAX {
                    more += 1;
                    continue;
                }
                let name = symbol.map_or_else(|| format!("instrument {id}"), |symbol| symbol.to_string());
                let why = reason.map_or("it contradicted itself", |reason| reason.as_str());
                lines.push(format!("channel '{}': the book of {name} is suspect: {why}", channel.name()));
            }
        }
        if more > 0
            && let Ok(mut untold) = self.view.untold.lock()
        {
            *untold += more;
        }
        self.view.has_told.store(true, Ordering::Release);
    }

    fn publish(&mut self, now: Nanos) {
        if let Some(segment) = &mut self.segment {
            segment.heartbeat(now);
        }
        // Who reads takes a moment to copy it: the next time will do.
        if let Ok(mut channels) = self.view.channels.try_lock() {
            if channels.len() != self.channels.len() {
                *channels = self.reports(false);
            }
            for (report, channel) in channels.iter_mut().zip(&self.channels) {
                report.status = channel.status();
            }
        }
        if self.channels.iter().any(|channel| channel.has_told()) {
            self.tell();
        }
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
            self.next_background = now + BACKGROUND_INTERVAL;
            for channel in &mut self.channels {
                work += channel.do_background_work(now, &mut self.segment);
            }
            work += usize::from(self.take_command());
            if now >= self.next_publish {
                self.next_publish = now + PUBLISH_INTERVAL;
                self.publish(now);
            }
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        "feed"
    }

    fn on_close(&mut self) {
        self.tell();
        let reports = self.reports(true);
        if let Ok(mut channels) = self.view.channels.lock() {
            *channels = reports;
        }
        let books = self.listed(&|_| true);
        if let Ok(mut listed) = self.view.books.lock() {
            *listed = books;
        }
    }
}

/// Lets through what is of the feed.
struct OfFeed(Feed);

impl<B> Gate<B> for OfFeed {
    #[inline]
    fn admits(&mut self, datagram: &[u8], _: &mut B) -> bool {
        // What is too short to say is left to the arbiter, which counts it as malformed.
        datagram.get(2..4).is_none_or(|id| id == self.0.protocol_id().to_le_bytes())
    }
}

fn open_channel(
    section: &ChannelSection,
    path: Option<&std::path::Path>,
    symbols: Vec<Symbol>,
    midnight: Nanos,
) -> Result<Box<dyn LiveFeed>, LiveError> {
    let name = section.name.clone();
    let net = |source| LiveError::Net { channel: name.clone(), source };
    let last = InstrumentId(section.max_instruments);
    let books = DirectBooks::new(BookLimits::new(last, section.max_orders));
    let output = ChannelOutput::new(last, symbols);
    let secret = |secret: &Option<tickpath_config::Secret>| {
        secret.as_ref().map_or(Ok(String::new()), |secret| secret.resolve(path))
    };
    let login = || -> Result<ClientConfig, LiveError> {
        let wrong =
            || ConfigError::value(format!("channel '{name}': user has at most 6 characters, password 10"));
        Ok(ClientConfig::new(&section.user, &secret(&section.password)?).ok_or_else(wrong)?)
    };
    if let Some(server) = section.server {
        let books = BookBuilder::new(books);
        return Ok(Box::new(SoupChannel::new(
            name.clone(),
            server,
            login()?,
            &section.core(),
            books,
            output,
        )));
    }
    let lines = LineSockets::join(section).map_err(net)?;
    Ok(match section.protocol {
        ProtocolName::Itch | ProtocolName::ItchSoup => Box::new(LiveChannel {
            recovery: ItchRecovery::open(section, login()?).map_err(net)?,
            channel: tickpath_feed::Channel::<_, MoldUdp64>::new(&section.core(), BookBuilder::new(books)),
            name: name.clone(),
            lines,
            gate: Open,
            output,
        }),
        ProtocolName::Xdp => Box::new(LiveChannel {
            recovery: XdpRecovery::open(section).map_err(net)?,
            channel: tickpath_feed::Channel::<_, xdp::Packets>::new(
                &section.core(),
                xdp::LiveBooks::new(books, xdp::Channel(section.channel_id), midnight),
            ),
            name: name.clone(),
            lines,
            gate: SendTimes,
            output,
        }),
        ProtocolName::IexDeep
        | ProtocolName::IexDeepPlus
        | ProtocolName::IexTops
        | ProtocolName::IexTops15 => {
            let feed = section.protocol.iex_feed().expect("each of these is a feed of IEX");
            let token = Alpha::new(&secret(&section.token)?).ok_or_else(|| {
                ConfigError::value(format!("channel '{name}': a token has at most 40 characters"))
            })?;
            Box::new(LiveChannel {
                recovery: IexRecovery::open(section, token).map_err(net)?,
                channel: tickpath_feed::Channel::<_, IexTp>::new(
                    &section.core(),
                    iex::BookBuilder::new(feed, books).since(midnight),
                ),
                name: name.clone(),
                lines,
                gate: OfFeed(feed),
                output,
            })
        }
    })
}
