//! Recording wrappers for the core's two output ports.

use std::cell::RefCell;
use std::io::Write;

use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_core::{AdminCommand, EventSink, Life, Venue};
use tickpath_gateway_protocol::Event;
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

use crate::event_log::{EventLog, LogEnd, Origin, RecordKind};

/// Maximum length of the core's FIX messages without the header, in bytes: each names one order.
const FIX_LEN_MAX: usize = 1 << 10;

/// An answer of the core's environment: its kind, and a number.
pub(crate) type Answer = [u64; 2];

/// Receiver of outputs, which also decides the environment's answers.
pub(crate) trait Sink {
    /// Takes an output of the core.
    fn output(&mut self, kind: RecordKind, origin: Origin, write: impl FnOnce(&mut Vec<u8>));

    /// Returns the answer to the core's query; `real` is the environment's current answer.
    fn answer(&mut self, real: Answer) -> Answer;
}

/// The log, and the records not yet written to it.
pub(super) struct Tape {
    log: EventLog,
    /// Time of the current input.
    now: Nanos,
    /// The current input is a timer poll that is not recorded yet.
    is_poll_pending: bool,
    /// An input followed the latest recorded timer poll, so the next poll may have work.
    is_dirty: bool,
    answers: Vec<u8>,
    scratch: Vec<u8>,
}

impl Tape {
    pub(super) fn new(log: EventLog) -> Tape {
        Tape {
            log,
            now: Nanos::ZERO,
            is_poll_pending: false,
            is_dirty: true,
            answers: Vec::with_capacity(4 << 10),
            scratch: Vec::with_capacity(64 << 10),
        }
    }

    pub(super) fn start(&mut self, life: &Life, now: Nanos) {
        let [first, second] = life.session.0;
        self.scratch.clear();
        for word in [first, second, life.label_session, life.seed, life.ahead_ns] {
            self.scratch.extend_from_slice(&word.to_le_bytes());
        }
        self.log.record(RecordKind::Start, Origin::default(), now, Nanos::ZERO, &self.scratch);
    }

    pub(super) fn finish(&mut self) -> LogEnd {
        std::mem::replace(&mut self.log, EventLog::off()).finish()
    }

    pub(super) fn input(
        &mut self,
        kind: RecordKind,
        origin: Origin,
        time: Nanos,
        number: Nanos,
        payload: &[u8],
    ) {
        self.now = time;
        self.is_dirty = true;
        self.log.record(kind, origin, time, number, payload);
    }

    /// Records a message that the session handled.
    pub(super) fn session(&mut self, origin: Origin, time: Nanos, payload: &[u8]) {
        self.log.record(RecordKind::Session, origin, time, Nanos::ZERO, payload);
    }

    /// Records an admin command, with the account's index.
    pub(super) fn admin(&mut self, now: Nanos, command: &AdminCommand) {
        self.scratch.clear();
        let out = &mut self.scratch;
        // Writing to a Vec cannot fail.
        let _ = match command {
            AdminCommand::Status => Ok(()),
            AdminCommand::Kill => out.write_all(b"kill"),
            AdminCommand::Release => out.write_all(b"release"),
            AdminCommand::SetLimits(account, None) => write!(out, "limits {account} none"),
            AdminCommand::SetLimits(account, Some(limit)) => {
                let text = |value: Option<i64>| value.unwrap_or(-1);
                let (size, value) = (text(limit.order_size_max), text(limit.notional_max));
                write!(out, "limits {account} {size} {value} {}", text(limit.open_orders_max.map(i64::from)))
            }
        };
        self.now = now;
        self.is_dirty = true;
        self.log.record(RecordKind::Admin, Origin::default(), now, Nanos::ZERO, &self.scratch);
    }

    /// Completes the current input.
    pub(super) fn settle(&mut self) {
        if !self.answers.is_empty() {
            self.log.record(RecordKind::Answers, Origin::default(), self.now, Nanos::ZERO, &self.answers);
            self.answers.clear();
        }
    }

    pub(super) fn begin_poll(&mut self, now: Nanos) {
        self.now = now;
        self.is_poll_pending = true;
        if self.is_dirty {
            self.keep_poll();
        }
    }

    /// Records the pending timer poll, as it has consequences.
    fn keep_poll(&mut self) {
        self.is_poll_pending = false;
        self.is_dirty = false;
        self.log.record(RecordKind::Time, Origin::default(), self.now, Nanos::ZERO, b"");
    }

    pub(super) fn end_poll(&mut self, work: usize) {
        if self.is_poll_pending && work > 0 {
            self.keep_poll();
        }
        if self.is_poll_pending {
            // The poll had no consequences, so its answers are not needed.
            self.is_poll_pending = false;
            self.answers.clear();
        }
        self.settle();
    }
}

impl Sink for Tape {
    #[inline]
    fn output(&mut self, kind: RecordKind, origin: Origin, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_poll_pending {
            self.keep_poll();
        }
        self.scratch.clear();
        write(&mut self.scratch);
        self.log.record(kind, origin, self.now, Nanos::ZERO, &self.scratch);
    }

    #[inline]
    fn answer(&mut self, real: Answer) -> Answer {
        for word in real {
            self.answers.extend_from_slice(&word.to_le_bytes());
        }
        real
    }
}

/// The client port, with every output recorded.
pub(crate) struct TapedDoor<'a, D, S> {
    door: &'a mut D,
    sink: &'a RefCell<S>,
}

impl<'a, D, S> TapedDoor<'a, D, S> {
    pub(crate) fn new(door: &'a mut D, sink: &'a RefCell<S>) -> TapedDoor<'a, D, S> {
        TapedDoor { door, sink }
    }
}

fn of_client(client: u32) -> Origin {
    Origin { client, ..Origin::default() }
}

impl<D: EventSink, S: Sink> EventSink for TapedDoor<'_, D, S> {
    #[inline]
    fn send(&mut self, client: u32, event: Event) {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(event.as_bytes());
        self.sink.borrow_mut().output(RecordKind::Event, of_client(client), write);
        self.door.send(client, event);
    }

    #[inline]
    fn broadcast(&mut self, event: Event) {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(event.as_bytes());
        self.sink.borrow_mut().output(RecordKind::Broadcast, Origin::default(), write);
        self.door.broadcast(event);
    }

    fn follow(&mut self, client: u32, symbol: u32) {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(&symbol.to_le_bytes());
        self.sink.borrow_mut().output(RecordKind::Follow, of_client(client), write);
        self.door.follow(client, symbol);
    }

    #[inline]
    fn room(&self, client: u32) -> usize {
        let real = self.door.room(client) as u64;
        self.sink.borrow_mut().answer([0, real])[1] as usize
    }
}

/// The venue port, with every output recorded.
pub(crate) struct TapedVenue<'a, V, S> {
    venue: &'a mut V,
    sink: &'a RefCell<S>,
}

impl<'a, V, S> TapedVenue<'a, V, S> {
    pub(crate) fn new(venue: &'a mut V, sink: &'a RefCell<S>) -> TapedVenue<'a, V, S> {
        TapedVenue { venue, sink }
    }
}

impl<V, S: Sink> TapedVenue<'_, V, S> {
    fn say(&self, stream: usize, words: &[&str]) {
        let origin = Origin { stream: stream as u8 + 1, ..Origin::default() };
        self.sink.borrow_mut().output(RecordKind::VenueOut, origin, |out| {
            words.iter().for_each(|word| out.extend_from_slice(word.as_bytes()));
        });
    }
}

impl<V: Venue, S: Sink> Venue for TapedVenue<'_, V, S> {
    #[inline]
    fn request<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        let origin = Origin { stream: stream as u8 + 1, ..Origin::default() };
        self.sink.borrow_mut().output(RecordKind::VenueOut, origin, |out| {
            out.extend_from_slice(method.name().as_bytes());
            out.push(b' ');
            params.write(out);
        });
        let real = self.venue.request(now, stream, method, params);
        result_of(self.sink.borrow_mut().answer(answer_of(&real)))
    }

    #[inline]
    fn check(&mut self, now: Nanos, stream: usize, method: Method) -> Result<(), RequestError> {
        let real = self.venue.check(now, stream, method).map(|()| 0);
        result_of(self.sink.borrow_mut().answer(answer_of(&real))).map(|_| ())
    }

    /// Records the message without the header that the session adds.
    #[inline]
    fn send_fix<'a>(
        &mut self,
        now: Nanos,
        stream: usize,
        body: &impl tickpath_fix::Body<'a>,
    ) -> Result<i64, RequestError> {
        let origin = Origin { stream: stream as u8 + 1, ..Origin::default() };
        self.sink.borrow_mut().output(RecordKind::VenueOut, origin, |out| {
            let start = out.len();
            out.resize(start + FIX_LEN_MAX, 0);
            let len = body.write_bare(&mut out[start..]).unwrap_or(0);
            out.truncate(start + len);
        });
        let real = self.venue.send_fix(now, stream, body);
        result_of(self.sink.borrow_mut().answer(answer_of(&real)))
    }

    fn set_rehearsal(&mut self, is_rehearsal: bool) {
        self.venue.set_rehearsal(is_rehearsal);
    }

    fn subscribe(&mut self, stream: usize, channel: &str) {
        self.say(stream, &["subscribe ", channel]);
        self.venue.subscribe(stream, channel);
    }

    fn unsubscribe(&mut self, stream: usize, channel: &str) {
        self.say(stream, &["unsubscribe ", channel]);
        self.venue.unsubscribe(stream, channel);
    }

    fn resubscribe(&mut self, stream: usize, channel: &str) {
        self.say(stream, &["resubscribe ", channel]);
        self.venue.resubscribe(stream, channel);
    }

    fn connect(&mut self, stream: usize, now: Nanos) {
        self.say(stream, &["connect"]);
        self.venue.connect(stream, now);
    }

    fn requests_left(&self, stream: usize, now: Nanos) -> Option<u64> {
        let real = match self.venue.requests_left(stream, now) {
            Some(count) => [1, count],
            None => [0, 0],
        };
        let [is_known, count] = self.sink.borrow_mut().answer(real);
        (is_known == 1).then_some(count)
    }

    fn settled_channels(&self, stream: usize) -> Option<usize> {
        let real = match self.venue.settled_channels(stream) {
            Some(count) => [1, count as u64],
            None => [0, 0],
        };
        let [is_settled, count] = self.sink.borrow_mut().answer(real);
        (is_settled == 1).then_some(count as usize)
    }

    fn is_refused(&self, stream: usize, channel: &str) -> bool {
        let real = u64::from(self.venue.is_refused(stream, channel));
        self.sink.borrow_mut().answer([0, real])[1] == 1
    }
}

fn answer_of(result: &Result<i64, RequestError>) -> Answer {
    match *result {
        Ok(id) => [0, id as u64],
        Err(RequestError::NotReady) => [1, 0],
        Err(RequestError::NoKey) => [2, 0],
        Err(RequestError::TooManyPending) => [3, 0],
        Err(RequestError::RateLimit { wait_ns }) => [4, wait_ns],
        Err(RequestError::TooLarge) => [5, 0],
        // A newer library version's error; the core treats it as this one.
        Err(_) => [1, 0],
    }
}

fn result_of([what, number]: Answer) -> Result<i64, RequestError> {
    Err(match what {
        0 => return Ok(number as i64),
        2 => RequestError::NoKey,
        3 => RequestError::TooManyPending,
        4 => RequestError::RateLimit { wait_ns: number },
        5 => RequestError::TooLarge,
        _ => RequestError::NotReady,
    })
}
