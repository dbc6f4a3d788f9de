//! Replay of a log: the same inputs must give the same outputs, byte for byte.
//!
//! [`replay`] rebuilds the gateway core from the log, feeds it every recorded input at its recorded time, and
//! compares all outputs with the recorded ones. A log with missing records is rejected, as the consequences
//! of those records are unknown.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use tickpath_deribit::envelope::{Id, Inbound};
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{RequestError, SessionEvent};
use tickpath_fix::{Message, Parsed};
use tickpath_gateway_core::{AdminCommand, Control, Core, EventSink, Life, Policy, RiskLimit, Venue};
use tickpath_gateway_protocol::{Event, Request, SessionId};
use tickpath_types::Nanos;
use zerocopy::FromBytes;

use crate::config::GatewayConfig;
use crate::event_log::{LogError, LogReader, Origin, RecordKind, Tail};
use crate::recorder::{Answer, Sink, TapedDoor, TapedVenue, client, link};

/// A log cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Records are missing: the buffer or the disk was full.
    #[error("{}: records are missing before number {sequence}: what followed from them is not known", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// Sequence number of the record after the gap.
        sequence: u64,
    },
    /// The files are not those of one run from its start.
    #[error("{}: {what}", path.display())]
    Files {
        /// The file.
        path: PathBuf,
        /// The defect, and what to do.
        what: &'static str,
    },
    /// The meaning of a record is unknown to this version.
    #[error("record {sequence} cannot be understood: read the log with the program that wrote it")]
    Unknown {
        /// Sequence number of the record.
        sequence: u64,
    },
    /// The configuration in the log is no longer valid.
    #[error("the configuration in the log: {0}")]
    Config(#[from] tickpath_config::ConfigError),
}

/// A difference between a recorded output and the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Sequence number of the input.
    pub sequence: u64,
    /// The recorded output as text; `None` if there is no further one.
    pub recorded: Option<String>,
    /// The replay's output as text; `None` if there is no further one.
    pub found: Option<String>,
}

/// Result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Number of inputs replayed.
    pub inputs: u64,
    /// Number of outputs compared.
    pub outputs: u64,
    /// The first difference, where the replay ended.
    pub difference: Option<Difference>,
    /// The log ends in the middle of a run: it is still being written, or its writer was killed.
    pub is_open: bool,
}

/// An output: its kind, its origin and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Output {
    kind: RecordKind,
    origin: Origin,
    payload: Vec<u8>,
}

impl Output {
    fn words(&self) -> String {
        let text = match self.kind {
            RecordKind::Event | RecordKind::Broadcast => {
                Event::read_from_bytes(&self.payload).map(|event| event.to_string()).ok()
            }
            _ => std::str::from_utf8(&self.payload).map(str::to_owned).ok(),
        };
        let text = text.unwrap_or_else(|| format!("{:?}", self.payload));
        format!("{} stream={} client={} {text}", self.kind.name(), self.origin.stream, self.origin.client)
    }
}

/// An input, with its recorded outputs and answers.
struct Input {
    kind: RecordKind,
    origin: Origin,
    sequence: u64,
    time: Nanos,
    number: Nanos,
    payload: Vec<u8>,
    outputs: Vec<Output>,
    answers: Vec<Answer>,
}

/// Outputs of the replay, and the recorded answers of the environment.
#[derive(Default)]
struct Again {
    outputs: Vec<Output>,
    answers: std::vec::IntoIter<Answer>,
    /// The core made a query that is not recorded.
    is_lost: bool,
}

impl Sink for Again {
    fn output(&mut self, kind: RecordKind, origin: Origin, write: impl FnOnce(&mut Vec<u8>)) {
        let mut payload = Vec::new();
        write(&mut payload);
        self.outputs.push(Output { kind, origin, payload });
    }

    fn answer(&mut self, real: Answer) -> Answer {
        self.answers.next().unwrap_or_else(|| {
            self.is_lost = true;
            real
        })
    }
}

/// An environment that ignores all outputs.
struct Nobody;

impl EventSink for Nobody {
    fn send(&mut self, _: u32, _: Event) {}
    fn broadcast(&mut self, _: Event) {}
    fn follow(&mut self, _: u32, _: u32) {}
    fn room(&self, _: u32) -> usize {
        0
    }
}

impl Venue for Nobody {
    fn request<'a>(
        &mut self,
        _: Nanos,
        _: usize,
        _: Method,
        _: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        Err(RequestError::NotReady)
    }
    fn check(&mut self, _: Nanos, _: usize, _: Method) -> Result<(), RequestError> {
        Err(RequestError::NotReady)
    }
    fn send_fix<'a>(
        &mut self,
        _: Nanos,
        _: usize,
        _: &impl tickpath_fix::Body<'a>,
    ) -> Result<i64, RequestError> {
        Err(RequestError::NotReady)
    }
    fn set_rehearsal(&mut self, _: bool) {}
    fn subscribe(&mut self, _: usize, _: &str) {}
    fn unsubscribe(&mut self, _: usize, _: &str) {}
    fn resubscribe(&mut self, _: usize, _: &str) {}
    fn connect(&mut self, _: usize, _: Nanos) {}
    fn settled_channels(&self, _: usize) -> Option<usize> {
        None
    }
    fn is_refused(&self, _: usize, _: &str) -> bool {
        false
    }
}

/// The rebuilt core.
struct Machine {
    core: Core,
    control: Control,
    sink: RefCell<Again>,
    replayed: Replayed,
}

/// Replays the files of one run, in order, up to the first difference.
///
/// # Errors
/// [`ReplayError`] if the files are incomplete or not one run from its start.
pub fn replay(files: &[PathBuf]) -> Result<Replayed, ReplayError> {
    let mut config = None;
    let mut machine: Option<Machine> = None;
    let mut group: Option<Input> = None;
    let mut tail = Tail::Continued;
    let mut session = None;
    for (part, path) in files.iter().enumerate() {
        let wrong = |what| ReplayError::Files { path: path.clone(), what };
        let mut reader = LogReader::open(path)?;
        let header = reader.header().clone();
        if header.part as usize != part || tail != Tail::Continued {
            return Err(wrong("name all files of the run in their order, from the first on"));
        }
        if *session.get_or_insert(header.session) != header.session {
            return Err(wrong("it is of another run: name the files of one run"));
        }
        loop {
            let missing = reader.missing();
            let Some(record) = reader.next()? else { break };
            let (kind, origin, sequence) = (record.kind, record.origin, record.sequence);
            let (time, number, payload) = (record.time, record.origin_time, record.payload.to_vec());
            if reader.missing() > missing {
                return Err(ReplayError::Missing { path: path.clone(), sequence });
            }
            match kind {
                RecordKind::Config => {
                    config.get_or_insert(payload);
                }
                RecordKind::Start => {
                    let text = config.as_deref().and_then(|text| std::str::from_utf8(text).ok());
                    let text = text.ok_or(ReplayError::Unknown { sequence })?;
                    let life = life_of(&payload).ok_or(ReplayError::Unknown { sequence })?;
                    machine = Some(Machine::new(text, life)?);
                }
                _ if kind.is_output() => {
                    let group = group.as_mut().ok_or(ReplayError::Unknown { sequence })?;
                    group.outputs.push(Output { kind, origin, payload });
                }
                RecordKind::Answers => {
                    let group = group.as_mut().ok_or(ReplayError::Unknown { sequence })?;
                    group.answers.extend(answers_of(&payload));
                }
                _ if kind.is_input() => {
                    let machine = machine.as_mut().ok_or_else(|| {
                        wrong("it does not begin with the start of a run: name its first file")
                    })?;
                    if let Some(last) = group.take()
                        && !machine.repeat(last, false)?
                    {
                        return Ok(machine.replayed.clone());
                    }
                    let (outputs, answers) = (Vec::new(), Vec::new());
                    group = Some(Input { kind, origin, sequence, time, number, payload, outputs, answers });
                }
                _ => {}
            }
        }
        tail = reader.tail();
    }
    let first = files.first().map_or(Path::new(""), PathBuf::as_path);
    let mut machine = machine
        .ok_or_else(|| ReplayError::Files { path: first.to_owned(), what: "there is no run in it" })?;
    machine.replayed.is_open = tail != Tail::Ended;
    if let Some(last) = group {
        // If the writer was killed, outputs of the last input may be missing.
        let is_open = machine.replayed.is_open;
        machine.repeat(last, is_open)?;
    }
    Ok(machine.replayed)
}

fn life_of(payload: &[u8]) -> Option<Life> {
    let (words, rest) = payload.as_chunks::<8>();
    let &[first, second, label_session, seed, ahead_ns] = words else { return None };
    let word = u64::from_le_bytes;
    let session = SessionId([word(first), word(second)]);
    let life =
        Life { session, label_session: word(label_session), seed: word(seed), ahead_ns: word(ahead_ns) };
    rest.is_empty().then_some(life)
}

fn answers_of(payload: &[u8]) -> impl Iterator<Item = Answer> + '_ {
    let (pairs, _) = payload.as_chunks::<16>();
    pairs.iter().map(|pair| {
        let (words, _) = pair.as_chunks::<8>();
        [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
    })
}

impl Machine {
    fn new(config: &str, life: Life) -> Result<Machine, ReplayError> {
        let settings = GatewayConfig::parse("log", config)?.settings()?;
        let (policy, control) = Policy::new(&settings);
        let core = Core::new(settings, life, policy);
        Ok(Machine { core, control, sink: RefCell::default(), replayed: Replayed::default() })
    }

    /// Replays an input; returns false on a difference. If outputs `may_lack`, only the recorded ones are
    /// compared.
    fn repeat(&mut self, input: Input, may_lack: bool) -> Result<bool, ReplayError> {
        let sequence = input.sequence;
        let has_answers = !input.answers.is_empty();
        let (recorded, answers) = (input.outputs.clone(), input.answers.clone());
        *self.sink.get_mut() = Again { answers: answers.into_iter(), ..Again::default() };
        self.give(input)?;
        let found = std::mem::take(self.sink.get_mut());
        self.replayed.inputs += 1;
        let count = if may_lack { recorded.len() } else { recorded.len().max(found.outputs.len()) };
        // Without the answers given after the log was cut off, the outputs that follow from them are unknown.
        let count = if may_lack && !has_answers { 0 } else { count };
        for place in 0..count {
            let (then, now) = (recorded.get(place), found.outputs.get(place));
            if then != now {
                let words = |output: Option<&Output>| output.map(Output::words);
                self.replayed.difference =
                    Some(Difference { sequence, recorded: words(then), found: words(now) });
                return Ok(false);
            }
            self.replayed.outputs += 1;
        }
        let asks_otherwise = found.is_lost || found.answers.len() > 0;
        if asks_otherwise && !may_lack {
            let words = |what: &str| Some(what.to_owned());
            self.replayed.difference = Some(Difference {
                sequence,
                recorded: words("other questions to the surroundings"),
                found: words("more or fewer questions to the surroundings"),
            });
            return Ok(false);
        }
        Ok(true)
    }

    fn give(&mut self, input: Input) -> Result<(), ReplayError> {
        let Input { kind, origin, sequence, time, number, payload, .. } = input;
        let unknown = || ReplayError::Unknown { sequence };
        let Machine { core, control, sink, .. } = self;
        let (mut no_door, mut no_venue) = (Nobody, Nobody);
        let mut door = TapedDoor::new(&mut no_door, sink);
        let mut venue = TapedVenue::new(&mut no_venue, sink);
        // Converts to the core's index; irrelevant for records without a stream.
        let stream = usize::from(origin.stream).saturating_sub(1);
        match kind {
            RecordKind::Time => {
                core.poll(time, &mut door, &mut venue);
            }
            RecordKind::Request => {
                let request = Request::read_from_bytes(&payload).map_err(|_| unknown())?;
                core.handle_request(time, origin.client, &request, &mut door, &mut venue);
            }
            RecordKind::Client => match &payload[..] {
                client::JOINED_TO_TRADE => core.handle_join(origin.client, origin.account, true),
                client::JOINED => core.handle_join(origin.client, origin.account, false),
                client::LEFT => core.handle_leave(origin.client),
                _ => return Err(unknown()),
            },
            RecordKind::VenueIn if core.speaks_fix(stream) => {
                let Parsed::Complete { message, .. } = Message::parse(&payload) else {
                    return Err(unknown());
                };
                core.handle_fix(stream, time, &message, &mut door);
            }
            RecordKind::VenueIn => {
                let text = std::str::from_utf8(&payload).map_err(|_| unknown())?;
                let event = match core.read(stream, text).map_err(|_| unknown())? {
                    Inbound::Notification(notification) => SessionEvent::Notification(notification),
                    Inbound::Response(response) => {
                        let Some(Id::Number(id)) = response.id else { return Err(unknown()) };
                        // The core identifies a reply by its number alone.
                        SessionEvent::Reply { id, method: Method::Test, response }
                    }
                    _ => return Err(unknown()),
                };
                core.handle_event(stream, time, event, &mut door);
            }
            RecordKind::Link => match &payload[..] {
                link::READY => core.handle_event(stream, time, SessionEvent::Ready, &mut door),
                link::OTHER => {
                    let event = SessionEvent::Subscribed { accepted: 0, refused: 0 };
                    core.handle_event(stream, time, event, &mut door);
                }
                link::BEGUN => core.handle_begun(stream, time, &mut door),
                link::OPENED => core.handle_opened(stream, time, &mut door),
                link::SCOPE => core.handle_scope(stream, time, number.0 == 1, &mut door),
                link::LOST => core.handle_lost(stream, time, &mut door),
                link::UNANSWERED => core.handle_unanswered(stream, number.0 as i64, false, time, &mut door),
                link::UNANSWERED_LOST => {
                    core.handle_unanswered(stream, number.0 as i64, true, time, &mut door)
                }
                link::AHEAD => core.set_ahead(number.0),
                link::STOP => core.stop(),
                _ => return Err(unknown()),
            },
            RecordKind::Admin => {
                let command = command_of(&payload).ok_or_else(unknown)?;
                core.handle_admin(&command, control, &mut door);
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

/// Parses a recorded command.
fn command_of(payload: &[u8]) -> Option<AdminCommand> {
    let words: Vec<&str> = std::str::from_utf8(payload).ok()?.split(' ').collect();
    match words[..] {
        ["kill"] => Some(AdminCommand::Kill),
        ["release"] => Some(AdminCommand::Release),
        ["limits", account, "none"] => Some(AdminCommand::SetLimits(account.parse().ok()?, None)),
        ["limits", account, size, value, orders] => {
            let number =
                |text: &str| text.parse::<i64>().ok().map(|value| Some(value).filter(|value| *value >= 0));
            let open_orders_max = number(orders)?.and_then(|orders| u32::try_from(orders).ok());
            let limit =
                RiskLimit { order_size_max: number(size)?, notional_max: number(value)?, open_orders_max };
            Some(AdminCommand::SetLimits(account.parse().ok()?, Some(limit)))
        }
        _ => None,
    }
}
