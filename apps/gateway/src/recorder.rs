//! The machine between clients and venue, with everything that goes in and comes out written down.
//!
//! [`Recorded`] is used as the [`Core`] in it is. Each input is recorded with its time before it is dealt with, then what
//! follows from it, then what the machine learned from its surroundings meanwhile ([`RecordKind::Answers`]): so the same can
//! be done again ([`replay`](crate::replay)). A look at the clock that led to nothing leaves no record. Without a log the
//! core is called as it is.
//!
//! Messages that the session alone deals with - logins, heartbeats - are recorded without the bytes of replies, which hold
//! tokens.

mod tape;

use std::cell::RefCell;
use std::ops::Deref;

use tickpath_deribit::envelope::Inbound;
use tickpath_deribit::scan::ScanError;
use tickpath_deribit::session::SessionEvent;
use tickpath_fix::{Message, MsgType};
use tickpath_gateway_core::{AdminCommand, Control, Core, Door, Life, Venue};
use tickpath_gateway_protocol::Request;
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

use crate::event_log::{EventLog, LogEnd, Origin, RecordKind};

use tape::Tape;
pub(crate) use tape::{Answer, Sink, TapedDoor, TapedVenue};

/// Words of [`RecordKind::Link`] records.
pub(crate) mod link {
    /// A login on the connection is done.
    pub(crate) const READY: &[u8] = b"ready";
    /// Something else of the session that the core only counts.
    pub(crate) const OTHER: &[u8] = b"session";
    /// The connection is being made.
    pub(crate) const BEGUN: &[u8] = b"begun";
    /// The connection stands.
    pub(crate) const OPENED: &[u8] = b"opened";
    /// The login may trade: the record's origin time is 1, or 0 where it may not.
    pub(crate) const SCOPE: &[u8] = b"scope";
    /// The connection was lost.
    pub(crate) const LOST: &[u8] = b"lost";
    /// The request whose number stands in the record's origin time has no reply: it came too late.
    pub(crate) const UNANSWERED: &[u8] = b"unanswered";
    /// The same, since the connection was lost.
    pub(crate) const UNANSWERED_LOST: &[u8] = b"unanswered, lost";
    /// The clocks were compared: the record's origin time is by how much they differ.
    pub(crate) const AHEAD: &[u8] = b"clocks";
    /// The gateway is to stop.
    pub(crate) const STOP: &[u8] = b"stop";
}

/// Words of [`RecordKind::Client`] records.
pub(crate) mod client {
    /// One that may trade came; the record's account is the user's place.
    pub(crate) const JOINED_TO_TRADE: &[u8] = b"joined, trades";
    /// One that may not came.
    pub(crate) const JOINED: &[u8] = b"joined";
    /// It is gone.
    pub(crate) const LEFT: &[u8] = b"left";
}

/// What stands in a message's place that may hold tokens.
const WITHHELD: &[u8] = b"(a reply of the session, withheld)";

/// What was read last, until it is known what it was.
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
    /// A core that was made with `life`, and its log.
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

    /// Ends the log when everything recorded is on the disk.
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
        door: &mut impl Door,
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
        door: &mut impl Door,
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

    /// As [`Core::rehearse`]: nothing happens, so nothing is recorded.
    pub fn rehearse(&mut self, now: Nanos, door: &mut impl Door, venue: &mut impl Venue) {
        self.core.rehearse(now, door, venue);
    }

    /// As [`Core::read`].
    ///
    /// # Errors
    /// As there.
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

    /// Records what was read last and did not concern the core.
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
        door: &mut impl Door,
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
        door: &mut impl Door,
    ) {
        self.input(RecordKind::VenueIn, of_stream(stream), received, Nanos::ZERO, message.as_bytes());
        if !self.is_on {
            return self.core.handle_fix(stream, received, message, door);
        }
        self.core.handle_fix(stream, received, message, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// Records a message of a FIX session that does not concern the core. An answered Logon may repeat credentials.
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
        door: &mut impl Door,
    ) {
        let word = if is_lost { link::UNANSWERED_LOST } else { link::UNANSWERED };
        self.link(stream, now, id as u64, word);
        self.core.handle_unanswered(stream, id, is_lost, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_begun`].
    pub fn handle_begun(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
        self.link(stream, now, 0, link::BEGUN);
        self.core.handle_begun(stream, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_opened`].
    pub fn handle_opened(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
        self.link(stream, now, 0, link::OPENED);
        self.core.handle_opened(stream, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_scope`].
    pub fn handle_scope(&mut self, stream: usize, now: Nanos, may_trade: bool, door: &mut impl Door) {
        self.link(stream, now, may_trade.into(), link::SCOPE);
        self.core.handle_scope(stream, now, may_trade, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::handle_lost`].
    pub fn handle_lost(&mut self, stream: usize, now: Nanos, door: &mut impl Door) {
        self.link(stream, now, 0, link::LOST);
        self.core.handle_lost(stream, now, &mut TapedDoor::new(door, &self.tape));
        self.tape.get_mut().settle();
    }

    /// As [`Core::poll`].
    #[inline]
    pub fn poll(&mut self, now: Nanos, door: &mut impl Door, venue: &mut impl Venue) -> usize {
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

    /// What can be asked of the core; what changes it goes through the log.
    fn deref(&self) -> &Core {
        &self.core
    }
}

/// Streams are numbered as clients know them, from 1.
fn of_stream(stream: usize) -> Origin {
    Origin { stream: stream as u8 + 1, ..Origin::default() }
}
