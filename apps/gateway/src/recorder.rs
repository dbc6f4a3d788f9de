//! The gateway core with a log of all its inputs and outputs.
//!
//! [`Recorded`] is used in place of its [`Core`]. It records each input with its time before the core handles
//! it, then the outputs, then the answers of the core's environment ([`RecordKind::Answers`]), so that
//! [`replay`](crate::replay) can repeat all of it. A timer poll without consequences leaves no record.
//! Without a log, calls go directly to the core.
//!
//! Messages that only the session handles - logins, heartbeats - are recorded without the bytes of replies,
//! which hold tokens.

mod tape;

use std::cell::RefCell;
use std::ops::Deref;

use tickpath_deribit::envelope::Inbound;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::SessionEvent;
use tickpath_fix::{Message, MsgType};
use tickpath_gateway_core::{AdminCommand, Control, Core, EventSink, Life, Venue};
use tickpath_gateway_protocol::Request;
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

use crate::event_log::{EventLog, LogEnd, Origin, RecordKind};

use tape::Tape;
pub(crate) use tape::{Answer, Sink, TapedDoor, TapedVenue};

/// Payloads of [`RecordKind::Link`] records.
pub(crate) mod link {
    /// Login on the connection completed.
    pub(crate) const READY: &[u8] = b"ready";
    /// Another session event, which the core only counts.
    pub(crate) const OTHER: &[u8] = b"session";
    /// The connection attempt started.
    pub(crate) const BEGUN: &[u8] = b"begun";
    /// The connection is established.
    pub(crate) const OPENED: &[u8] = b"opened";
    /// Trading right of the login: the record's origin time is 1 if it may trade, otherwise 0.
    pub(crate) const SCOPE: &[u8] = b"scope";
    /// The connection was lost.
    pub(crate) const LOST: &[u8] = b"lost";
    /// A request timed out; the record's origin time is its number.
    pub(crate) const UNANSWERED: &[u8] = b"unanswered";
    /// A request is unanswered because the connection was lost; the origin time is its number.
    pub(crate) const UNANSWERED_LOST: &[u8] = b"unanswered, lost";
    /// The clocks were compared: the record's origin time is their difference.
    pub(crate) const AHEAD: &[u8] = b"clocks";
    /// The gateway is asked to stop.
    pub(crate) const STOP: &[u8] = b"stop";
}

/// Payloads of [`RecordKind::Client`] records.
pub(crate) mod client {
    /// A client that may trade connected; the record's account is the user's index.
    pub(crate) const JOINED_TO_TRADE: &[u8] = b"joined, trades";
    /// A client that may not trade connected.
    pub(crate) const JOINED: &[u8] = b"joined";
    /// A client disconnected.
    pub(crate) const LEFT: &[u8] = b"left";
}

/// Placeholder for a message that may hold tokens.
const WITHHELD: &[u8] = b"(a reply of the session, withheld)";

/// Kind of the message read last, until it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Nothing,
    Reply,
    Other,
}

/// A [`Core`] and its log.
pub struct Recorded {
    core: Core,
    tape: RefCell<Tape>,
    is_on: bool,
    text: Vec<u8>,
    read: Read,
    read_stream: usize,
}

impl Recorded {
    /// Wraps a core that was created with `life`, and its log.
    #[must_use]
    pub fn new(core: Core, life: Life, now: Nanos, log: EventLog) -> Recorded {
        let is_on = log.is_on();
        let mut tape = Tape::new(log);
        tape.start(&life, now);
        Recorded {
            core,
            tape: RefCell::new(tape),
            is_on,
            text: Vec::with_capacity(64 << 10),
            read: Read::Nothing,
            read_stream: 0,
        }
    }

    /// Ends the log once everything recorded is on disk.
    pub fn finish(&mut self) -> LogEnd {
        self.is_on = false;
        self.tape.get_mut().finish()
    }

    fn input(&mut self, kind: RecordKind, origin: Origin, time: Nanos, number: Nanos, payload: &[u8]) {
        if self.is_on {
            self.tape.get_mut().input(kind, origin, time, number, payload);
        }
    }

    fn link(&mut self, stream: usize, now: Nanos, number: u64, word: &[u8]) {
        self.input(RecordKind::Link, of_stream(stream), now, Nanos(number), word);
    }

    /// As [`Core::set_ahead`].
    pub fn set_ahead(&mut self, now: Nanos, ahead_ns: u64) {
        self.input(RecordKind::Link, Origin::default(), now, Nanos(ahead_ns), link::AHEAD);
        self.core.set_ahead(ahead_ns);
    }

    /// As [`Core::stop`].
    pub fn stop(&mut self, now: Nanos) {
        self.input(RecordKind::Link, Origin::default(), now, Nanos::ZERO, link::STOP);
        self.core.stop();
    }

    /// As [`Core::handle_admin`].
    pub fn handle_admin(
        &mut self,
        now: Nanos,
        command: &AdminCommand,
        control: &Control,
        door: &mut impl EventSink,
    ) {
        if !self.is_on || *command == AdminCommand::Status {
            return self.core.handle_admin(command, control, door);
        }
        self.tape.get_mut().admin(now, command);
        self.core.handle_admin(command, control, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_join`].
    pub fn handle_join(&mut self, now: Nanos, number: u32, user: u16, may_trade: bool) {
        let word = if may_trade { client::JOINED_TO_TRADE } else { client::JOINED };
        let origin = Origin { client: number, account: user, stream: 0 };
        self.input(RecordKind::Client, origin, now, Nanos::ZERO, word);
        self.core.handle_join(number, user, may_trade);
    }

    /// As [`Core::handle_leave`].
    pub fn handle_leave(&mut self, now: Nanos, number: u32) {
        let origin = Origin { client: number, ..Origin::default() };
        self.input(RecordKind::Client, origin, now, Nanos::ZERO, client::LEFT);
        self.core.handle_leave(number);
    }

    /// As [`Core::handle_request`].
    #[inline]
    pub fn handle_request(
        &mut self,
        now: Nanos,
        client: u32,
        request: &Request,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        if !self.is_on {
            return self.core.handle_request(now, client, request, door, venue);
        }
        let origin = Origin { client, account: request.header.account, stream: 0 };
        let made = Nanos(request.header.create_ns);
        self.input(RecordKind::Request, origin, now, made, request.as_bytes());
        let (mut door, mut venue) = (TapedDoor::new(door, &self.tape), TapedVenue::new(venue, &self.tape));
        self.core.handle_request(now, client, request, &mut door, &mut venue);
        self.tape.get_mut().settle();
    }

    /// As [`Core::rehearse`]: a warm-up has no effects, so nothing is recorded.
    pub fn rehearse(&mut self, now: Nanos, door: &mut impl EventSink, venue: &mut impl Venue) {
        self.core.rehearse(now, door, venue);
    }

    /// As [`Core::read`].
    ///
    /// # Errors
    /// As [`Core::read`].
    #[inline]
    pub fn read<'f>(&mut self, now: Nanos, stream: usize, text: &'f str) -> Result<Inbound<'f>, ScanError> {
        if !self.is_on {
            return self.core.read(stream, text);
        }
        self.keep_unread(now);
        self.text.clear();
        self.text.extend_from_slice(text.as_bytes());
        self.read_stream = stream;
        let inbound = self.core.read(stream, text);
        self.read = if matches!(inbound, Ok(Inbound::Response(_))) { Read::Reply } else { Read::Other };
        inbound
    }

    /// Records the message read last if it did not concern the core.
    fn keep_unread(&mut self, now: Nanos) {
        let payload = match self.read {
            Read::Nothing => return,
            Read::Reply => WITHHELD,
            Read::Other => &self.text,
        };
        self.tape.get_mut().session(of_stream(self.read_stream), now, payload);
        self.read = Read::Nothing;
    }

    /// As [`Core::handle_event`].
    #[inline]
    pub fn handle_event(
        &mut self,
        stream: usize,
        received: Nanos,
        event: SessionEvent<'_>,
        door: &mut impl EventSink,
    ) {
        if !self.is_on {
            return self.core.handle_event(stream, received, event, door);
        }
        match event {
            SessionEvent::Reply { .. } | SessionEvent::Notification(_) => {
                let tape = self.tape.get_mut();
                tape.input(RecordKind::VenueIn, of_stream(stream), received, Nanos::ZERO, &self.text);
                self.read = Read::Nothing;
            }
            SessionEvent::Ready => self.link(stream, received, 0, link::READY),
            _ => self.link(stream, received, 0, link::OTHER),
        }
        self.core.handle_event(stream, received, event, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_fix`].
    #[inline]
    pub fn handle_fix(
        &mut self,
        stream: usize,
        received: Nanos,
        message: &Message<'_>,
        door: &mut impl EventSink,
    ) {
        self.input(RecordKind::VenueIn, of_stream(stream), received, Nanos::ZERO, message.as_bytes());
        if !self.is_on {
            return self.core.handle_fix(stream, received, message, door);
        }
        self.core.handle_fix(stream, received, message, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// Records a FIX session message that does not concern the core. A Logon reply may repeat credentials.
    pub fn keep_session_message(&mut self, stream: usize, now: Nanos, message: &Message<'_>) {
        if self.is_on {
            let payload = if message.msg_type() == MsgType::LOGON { WITHHELD } else { message.as_bytes() };
            self.tape.get_mut().session(of_stream(stream), now, payload);
        }
    }

    /// As [`Core::handle_unanswered`].
    pub fn handle_unanswered(
        &mut self,
        stream: usize,
        id: i64,
        is_lost: bool,
        now: Nanos,
        door: &mut impl EventSink,
    ) {
        let word = if is_lost { link::UNANSWERED_LOST } else { link::UNANSWERED };
        self.link(stream, now, id as u64, word);
        self.core.handle_unanswered(stream, id, is_lost, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_begun`].
    pub fn handle_begun(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        self.link(stream, now, 0, link::BEGUN);
        self.core.handle_begun(stream, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_opened`].
    pub fn handle_opened(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        self.link(stream, now, 0, link::OPENED);
        self.core.handle_opened(stream, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_scope`].
    pub fn handle_scope(&mut self, stream: usize, now: Nanos, may_trade: bool, door: &mut impl EventSink) {
        self.link(stream, now, may_trade.into(), link::SCOPE);
        self.core.handle_scope(stream, now, may_trade, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_lost`].
    pub fn handle_lost(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        self.link(stream, now, 0, link::LOST);
        self.core.handle_lost(stream, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::poll`].
    #[inline]
    pub fn poll(&mut self, now: Nanos, door: &mut impl EventSink, venue: &mut impl Venue) -> usize {
        if !self.is_on {
            return self.core.poll(now, door, venue);
        }
        self.tape.get_mut().begin_poll(now);
        let (mut door, mut venue) = (TapedDoor::new(door, &self.tape), TapedVenue::new(venue, &self.tape));
        let work = self.core.poll(now, &mut door, &mut venue);
        self.tape.get_mut().end_poll(work);
        work
    }
}

impl Deref for Recorded {
    type Target = Core;

    /// Gives read access to the core; changes go through the log.
    fn deref(&self) -> &Core {
        &self.core
    }
}

/// Origin of a stream; streams are numbered from 1, as for clients.
fn of_stream(stream: usize) -> Origin {
    Origin { stream: stream as u8 + 1, ..Origin::default() }
}
