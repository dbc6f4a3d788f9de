//! The state machine of a session, with the handling of each message.

mod logon;

use tickpath_types::Nanos;

use self::logon::write_logon;
use super::header::{Read, optional};
use super::output::Output;
use super::resend::{Range, Wire};
use super::{
    BusinessReject, CloseReason, CompId, GapPolicy, Header, Listener, Logout, Refusal, Reject, ResendPolicy,
    ResetPolicy, Role, SendError, SequenceResetPolicy, SessionConfig, SessionStats, Store,
};
use crate::body::Body;
use crate::error::{FieldError, FrameError, SessionRejectReason, WriteError};
use crate::message::{Message, MsgType, Parsed};
use crate::tag;
use crate::writer::Writer;

/// Bytes of the output that application messages leave free for session messages.
pub(super) const ADMIN_RESERVE: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Disconnected,
    /// We have sent a Logon, and wait for the reply.
    LogonSent,
    /// We wait for a Logon.
    LogonAwaited,
    /// A Logon has arrived, and its decision is pending.
    LogonPending(Pending),
    Up,
    /// We have sent a Logout, and wait for the reply.
    LogoutSent,
    /// We have replied to a Logout: its sender closes the connection.
    LogoutAnswered,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    sequence: u64,
    heartbeat: Nanos,
    resets: bool,
    says_encrypt_method: bool,
}

/// A gap: messages up to `last` are missing.
#[derive(Clone, Copy, Debug)]
struct Gap {
    last: u64,
    deadline: Nanos,
}

/// One session with one peer, over successive connections.
///
/// A new connection starts with [`connect`](Session::connect) or [`accept`](Session::accept). Afterwards, in
/// any order: pass received bytes to [`handle_bytes`](Session::handle_bytes), call
/// [`handle_timeout`](Session::handle_timeout) at the time of [`poll_timeout`](Session::poll_timeout), and
/// send [`output`](Session::output) and report the sent bytes to [`handle_sent`](Session::handle_sent). Once
/// [`close_reason`](Session::close_reason) is set, send the rest and close.
#[derive(Clone, Debug)]
pub struct Session<S> {
    config: SessionConfig,
    store: S,
    wire: Wire,
    state: State,
    /// Deadline of `state`, if it has one.
    state_deadline: Nanos,
    peer_is_known: bool,
    next_in: u64,
    next_out: u64,
    heartbeat: Nanos,
    last_received: Nanos,
    /// Time of an unanswered TestRequest.
    test_request_at: Option<Nanos>,
    test_requests: u64,
    gap: Option<Gap>,
    resend: Option<Range>,
    garbled: u32,
    close_reason: Option<CloseReason>,
    stats: SessionStats,
}

impl<S: Store> Session<S> {
    /// Creates a session without a connection; allocates all its memory.
    #[must_use]
    pub fn new(config: SessionConfig, store: S) -> Session<S> {
        Session {
            wire: Wire::new(Output::new(config.output_len), config.sender, config.target.unwrap_or_default()),
            store,
            state: State::Disconnected,
            state_deadline: Nanos::MAX,
            peer_is_known: config.target.is_some(),
            next_in: 1,
            next_out: 1,
            heartbeat: config.heartbeat,
            last_received: Nanos::ZERO,
            test_request_at: None,
            test_requests: 0,
            gap: None,
            resend: None,
            garbled: 0,
            close_reason: None,
            stats: SessionStats::default(),
            config,
        }
    }

    /// Sets the next expected and the next sent number, to continue those of an earlier run.
    #[must_use]
    pub fn with_sequences(mut self, next_in: u64, next_out: u64) -> Session<S> {
        (self.next_in, self.next_out) = (next_in.max(1), next_out.max(1));
        self
    }

    /// Starts a new connection as initiator: writes a Logon with the additional fields `credentials`.
    ///
    /// # Errors
    /// [`SendError`] if there is a connection, or the Logon cannot be written; nothing changes then.
    pub fn connect<'a>(&mut self, now: Nanos, credentials: &impl Body<'a>) -> Result<(), SendError> {
        self.begin(now, State::LogonSent)?;
        let (heartbeat, flagged) = (self.config.heartbeat, self.config.reset == ResetPolicy::Flagged);
        let says_encrypt_method = self.config.says_encrypt_method;
        let written = self.wire.write(now, MsgType::LOGON, self.next_out, 0, |writer| {
            write_logon(writer, says_encrypt_method, heartbeat, flagged);
            credentials.encode(writer);
        });
        match written {
            Ok(_) => self.next_out += 1,
            Err(error) => {
                self.state = State::Disconnected;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Starts an accepted connection: waits for a Logon.
    ///
    /// # Errors
    /// [`SendError::Connected`] if there is a connection.
    pub fn accept(&mut self, now: Nanos) -> Result<(), SendError> {
        self.begin(now, State::LogonAwaited)
    }

    fn begin(&mut self, now: Nanos, state: State) -> Result<(), SendError> {
        if !matches!(self.state, State::Disconnected | State::Closed) {
            return Err(SendError::Connected);
        }
        self.wire.out.clear();
        let is_reset = match self.config.reset {
            ResetPolicy::Keep => false,
            ResetPolicy::Flagged => self.config.role == Role::Initiator,
            ResetPolicy::Silent => true,
        };
        if is_reset {
            self.reset_numbers();
        }
        self.peer_is_known = self.config.target.is_some();
        (self.gap, self.resend, self.test_request_at) = (None, None, None);
        (self.garbled, self.close_reason) = (0, None);
        self.heartbeat = self.config.heartbeat;
        (self.last_received, self.wire.last_sent) = (now, now);
        self.enter(state, now + self.config.logon_timeout);
        Ok(())
    }

    fn reset_numbers(&mut self) {
        (self.next_in, self.next_out) = (1, 1);
        self.store.clear();
    }

    fn enter(&mut self, state: State, deadline: Nanos) {
        (self.state, self.state_deadline) = (state, deadline);
    }

    /// Handles the end of the connection, by either side.
    pub fn handle_closed(&mut self) {
        if !matches!(self.state, State::Disconnected | State::Closed) {
            let was_orderly = self.state == State::LogoutAnswered;
            self.close(if was_orderly { CloseReason::LoggedOut } else { CloseReason::TransportClosed });
        }
        self.wire.out.clear();
        self.enter(State::Disconnected, Nanos::MAX);
    }

    /// Processes received bytes and returns the number consumed. The caller keeps the rest and appends to it.
    ///
    /// The buffer must hold [`message_len_max`](SessionConfig::message_len_max) bytes. While a Logon awaits
    /// its decision, nothing after it is processed.
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], listener: &mut impl Listener) -> usize {
        let mut done = 0;
        while !matches!(self.state, State::LogonPending(_)) {
            if matches!(self.state, State::Disconnected | State::Closed) {
                return bytes.len();
            }
            match Message::parse_within(&bytes[done..], self.config.message_len_max) {
                Parsed::NeedMore { .. } => break,
                Parsed::Complete { message, len } => {
                    done += len;
                    self.handle_message(now, &message, listener);
                }
                Parsed::Garbled { error, skip } => {
                    done += skip;
                    self.handle_garbled(error);
                }
            }
        }
        self.send_again(now);
        done
    }

    #[cold]
    fn handle_garbled(&mut self, error: FrameError) {
        self.stats.garbled += 1;
        self.garbled += 1;
        if self.garbled > self.config.garbled_max {
            self.close(CloseReason::Garbled(error));
        }
    }

    #[inline]
    fn handle_message(&mut self, now: Nanos, message: &Message<'_>, listener: &mut impl Listener) {
        self.stats.received += 1;
        (self.last_received, self.test_request_at) = (now, None);
        if message.msg_type().is_admin() {
            listener.on_session_message(message);
        }
        let read = Header::read(message);
        match self.state {
            State::Up | State::LogoutSent => self.handle_in_session(now, &read, message, listener),
            State::LogonAwaited => self.handle_logon(now, &read, message, listener),
            State::LogonSent => self.handle_logon_answer(now, &read, message, listener),
            State::LogoutAnswered | State::LogonPending(_) | State::Disconnected | State::Closed => {}
        }
    }

    #[inline]
    fn handle_in_session(
        &mut self,
        now: Nanos,
        read: &Read<'_>,
        message: &Message<'_>,
        listener: &mut impl Listener,
    ) {
        let Read { header, error } = read;
        if !self.comp_ids_are_right(header) {
            self.reject(now, header, FieldError { tag: 0, reason: SessionRejectReason::COMP_ID }, None);
            return self.deny(now, "SenderCompID or TargetCompID is wrong", CloseReason::CompId);
        }
        if header.msg_type == MsgType::SEQUENCE_RESET && self.is_free_reset(message) {
            return self.handle_reset(now, header, message);
        }
        if header.sequence == 0 {
            return self.deny(now, "MsgSeqNum is missing", CloseReason::SequenceMissing);
        }
        if header.sequence < self.next_in {
            return self.handle_too_low(now, header);
        }
        if header.sequence > self.next_in {
            return self.handle_too_high(now, header, message, listener);
        }
        self.advance(now, header.sequence.saturating_add(1));
        if let Some(error) = *error {
            return self.refuse(now, header, error.into());
        }
        if let Err(error) = self.check_times(now, header) {
            self.reject(now, header, error, None);
            if error.reason == SessionRejectReason::SENDING_TIME {
                self.deny(now, error.reason.text(), CloseReason::SendingTime);
            }
            return;
        }
        let taken = if header.msg_type.is_admin() {
            self.handle_admin(now, header, message, listener).map_err(Refusal::from)
        } else {
            listener.on_message(header, message)
        };
        if let Err(refusal) = taken {
            self.refuse(now, header, refusal);
        }
    }

    fn handle_admin(
        &mut self,
        now: Nanos,
        header: &Header<'_>,
        message: &Message<'_>,
        listener: &mut impl Listener,
    ) -> Result<(), FieldError> {
        match header.msg_type {
            MsgType::TEST_REQUEST => {
                let id = message.require(tag::TEST_REQ_ID)?;
                self.admin(now, MsgType::HEARTBEAT, |writer| writer.copy(id));
            }
            MsgType::HEARTBEAT if self.echoes(message) => self.admin(now, MsgType::HEARTBEAT, |_| {}),
            MsgType::RESEND_REQUEST => self.handle_resend_request(message)?,
            MsgType::REJECT => listener.on_reject(&Reject::decode(message)?),
            MsgType::SEQUENCE_RESET => self.handle_gap_fill(now, header, message)?,
            MsgType::LOGOUT => self.handle_logout(now, message, listener),
            MsgType::LOGON => {
                return Err(FieldError { tag: tag::MSG_TYPE, reason: SessionRejectReason::OTHER });
            }
            _ => {}
        }
        Ok(())
    }

    /// True if a Heartbeat needs a reply: not if it is itself a reply.
    fn echoes(&self, heartbeat: &Message<'_>) -> bool {
        self.config.echoes_heartbeats && heartbeat.find(tag::TEST_REQ_ID).is_none()
    }

    fn handle_logout(&mut self, now: Nanos, message: &Message<'_>, listener: &mut impl Listener) {
        if self.state == State::LogoutSent {
            return self.close(CloseReason::LoggedOut);
        }
        listener.on_logout(logout_text(message));
        self.admin(now, MsgType::LOGOUT, |_| {});
        if self.state != State::Closed {
            self.enter(State::LogoutAnswered, now + self.config.logon_timeout);
        }
    }

    /// Handles a number that was used before: a duplicate, or the end of the session.
    #[cold]
    fn handle_too_low(&mut self, now: Nanos, header: &Header<'_>) {
        if header.is_poss_dup {
            self.stats.duplicates += 1;
        } else {
            self.close_too_low(now, header.sequence);
        }
    }

    /// Handles a gap. Two types are processed nevertheless: otherwise a peer that requests messages would
    /// wait as we do, and a peer that logs out sends nothing more.
    #[cold]
    fn handle_too_high(
        &mut self,
        now: Nanos,
        header: &Header<'_>,
        message: &Message<'_>,
        listener: &mut impl Listener,
    ) {
        match header.msg_type {
            MsgType::LOGOUT => return self.handle_logout(now, message, listener),
            MsgType::RESEND_REQUEST => {
                if let Err(error) = self.handle_resend_request(message) {
                    self.reject(now, header, error, None);
                }
                self.send_again(now);
            }
            _ => self.stats.beyond_gap += 1,
        }
        self.handle_gap(now, header.sequence, listener);
    }

    #[cold]
    fn handle_gap(&mut self, now: Nanos, received: u64, listener: &mut impl Listener) {
        if self.state == State::Closed {
            return;
        }
        if let Some(gap) = &mut self.gap {
            gap.last = gap.last.max(received);
            return;
        }
        let expected = self.next_in;
        self.stats.gaps += 1;
        listener.on_gap(expected, received);
        match self.config.gap {
            GapPolicy::Close => {
                self.deny(now, "messages are missing", CloseReason::Gap { expected, received })
            }
            GapPolicy::Request => {
                self.gap = Some(Gap { last: received, deadline: now + self.config.gap_timeout });
                self.request_resend(now, expected, 0);
            }
        }
    }

    fn request_resend(&mut self, now: Nanos, begin: u64, end: u64) {
        self.admin(now, MsgType::RESEND_REQUEST, |writer| {
            writer.value(tag::BEGIN_SEQ_NO, begin);
            writer.value(tag::END_SEQ_NO, end);
        });
    }

    /// Records that everything before `next` has arrived.
    #[inline]
    fn advance(&mut self, now: Nanos, next: u64) {
        self.next_in = next;
        if let Some(gap) = &mut self.gap {
            gap.deadline = now + self.config.gap_timeout;
            if next > gap.last {
                self.gap = None;
            }
        }
    }

    /// True if a SequenceReset is not part of the sequence itself.
    fn is_free_reset(&self, message: &Message<'_>) -> bool {
        let is_gap_fill = matches!(optional(message, tag::GAP_FILL_FLAG), Ok(Some(true)));
        self.config.sequence_reset == SequenceResetPolicy::Deribit || !is_gap_fill
    }

    fn handle_reset(&mut self, now: Nanos, header: &Header<'_>, message: &Message<'_>) {
        let new = message.require(tag::NEW_SEQ_NO).and_then(|field| {
            let new: u64 = field.read()?;
            if new < self.next_in { Err(field.error(SessionRejectReason::OUT_OF_RANGE)) } else { Ok(new) }
        });
        if let Ok(new) = new {
            self.advance(now, new);
        }
        match (self.config.sequence_reset, new) {
            (SequenceResetPolicy::Deribit, _) => self.request_resend(now, self.next_in, self.next_in),
            (SequenceResetPolicy::Standard, Err(error)) => self.reject(now, header, error, None),
            (SequenceResetPolicy::Standard, Ok(_)) => {}
        }
    }

    /// Handles a gap fill in sequence: skips the numbers from its own up to the new one.
    fn handle_gap_fill(
        &mut self,
        now: Nanos,
        header: &Header<'_>,
        message: &Message<'_>,
    ) -> Result<(), FieldError> {
        let field = message.require(tag::NEW_SEQ_NO)?;
        let new: u64 = field.read()?;
        if new <= header.sequence {
            return Err(field.error(SessionRejectReason::OUT_OF_RANGE));
        }
        self.advance(now, new);
        Ok(())
    }

    fn handle_resend_request(&mut self, message: &Message<'_>) -> Result<(), FieldError> {
        let begin_field = message.require(tag::BEGIN_SEQ_NO)?;
        let end_field = message.require(tag::END_SEQ_NO)?;
        let (begin, end): (u64, u64) = (begin_field.read()?, end_field.read()?);
        if self.config.resend == ResendPolicy::Close {
            self.close(CloseReason::ResendRequested { begin });
            return Ok(());
        }
        if begin == 0 || begin >= self.next_out {
            return Err(begin_field.error(SessionRejectReason::OUT_OF_RANGE));
        }
        if end != 0 && end < begin {
            return Err(end_field.error(SessionRejectReason::OUT_OF_RANGE));
        }
        self.resend = Some(Range { next: begin, end: if end == 0 { u64::MAX } else { end } });
        Ok(())
    }

    /// Continues resending as far as it fits, up to the last number sent by now. Messages sent after the
    /// peer's request are part of its gap as well.
    fn send_again(&mut self, now: Nanos) {
        if let Some(range) = self.resend
            && matches!(self.state, State::Up | State::LogoutSent)
        {
            let sent = Range { end: range.end.min(self.next_out - 1), ..range };
            let rest = self.wire.send_again(now, sent, &self.store, &mut self.stats);
            self.resend = rest.map(|rest| Range { end: range.end, ..rest });
        }
    }

    fn comp_ids_are_right(&self, header: &Header<'_>) -> bool {
        header.sender == self.wire.target.as_bytes() && header.target == self.config.sender.as_bytes()
    }

    /// Validates the times of a message, unless they are ignored.
    #[inline]
    fn check_times(&self, now: Nanos, header: &Header<'_>) -> Result<(), FieldError> {
        let Some(tolerance) = self.config.sending_time_tolerance else { return Ok(()) };
        let missing = |tag| FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING };
        let sent = header.sending_time.ok_or(missing(tag::SENDING_TIME))?;
        let wrong = |tag| Err(FieldError { tag, reason: SessionRejectReason::SENDING_TIME });
        if now.since(sent).max(sent.since(now)) > tolerance {
            return wrong(tag::SENDING_TIME);
        }
        if header.is_poss_dup && header.msg_type != MsgType::SEQUENCE_RESET {
            let first_sent = header.orig_sending_time.ok_or(missing(tag::ORIG_SENDING_TIME))?;
            if first_sent > sent {
                return wrong(tag::ORIG_SENDING_TIME);
            }
        }
        Ok(())
    }

    /// Replies to a rejected message.
    #[cold]
    fn refuse(&mut self, now: Nanos, header: &Header<'_>, refusal: Refusal) {
        match refusal {
            Refusal::Field { error, text } => self.reject(now, header, error, text),
            Refusal::Business { reason, text } => {
                self.stats.rejected += 1;
                let reject = BusinessReject {
                    ref_msg_type: header.msg_type.as_str(),
                    reason,
                    ref_seq_num: Some(header.sequence),
                    ref_id: None,
                    text: Some(text),
                };
                self.admin(now, MsgType::BUSINESS_MESSAGE_REJECT, |writer| reject.encode(writer));
            }
        }
    }

    /// Replies with a Reject, except to a Reject: two sides that misunderstand each other would never stop.
    #[cold]
    fn reject(&mut self, now: Nanos, header: &Header<'_>, error: FieldError, text: Option<&'static str>) {
        self.stats.rejected += 1;
        if header.msg_type == MsgType::REJECT {
            return;
        }
        let reject = Reject {
            ref_seq_num: header.sequence,
            ref_tag_id: (error.tag != 0).then_some(u64::from(error.tag)),
            ref_msg_type: Some(header.msg_type.as_str()),
            reason: Some(u64::from(error.reason.0)),
            text: Some(text.unwrap_or(error.reason.text())),
        };
        self.admin(now, MsgType::REJECT, |writer| reject.encode(writer));
    }

    #[cold]
    fn close_too_low(&mut self, now: Nanos, received: u64) {
        use std::io::Write;
        let expected = self.next_in;
        let mut text = [0; 96];
        let mut rest = &mut text[..];
        let _ = write!(rest, "MsgSeqNum too low, expecting {expected} but received {received}");
        let free = rest.len();
        let text = std::str::from_utf8(&text[..96 - free]).unwrap_or("MsgSeqNum too low");
        self.deny(now, text, CloseReason::SequenceTooLow { expected, received });
    }

    /// Logs out, and closes without waiting for a reply.
    #[cold]
    fn deny(&mut self, now: Nanos, text: &str, reason: CloseReason) {
        self.admin(now, MsgType::LOGOUT, |writer| writer.value(tag::TEXT, text));
        self.close(reason);
    }

    #[cold]
    fn close(&mut self, reason: CloseReason) {
        self.close_reason.get_or_insert(reason);
        self.enter(State::Closed, Nanos::MAX);
    }

    /// Writes a session message. If even this does not fit, the peer is not reading, and the session closes.
    fn admin(&mut self, now: Nanos, msg_type: MsgType, body: impl Fn(&mut Writer<'_>)) {
        if self.state == State::Closed {
            return;
        }
        match self.wire.write(now, msg_type, self.next_out, 0, body) {
            Ok(message) => {
                if msg_type == MsgType::REJECT || !msg_type.is_admin() {
                    self.store.put(now, self.next_out, message);
                }
                self.next_out += 1;
            }
            Err(WriteError::BadValue { tag }) => self.close(CloseReason::BadValue { tag }),
            Err(WriteError::BufferTooShort { .. }) => self.close(CloseReason::OutputFull),
        }
    }

    /// Sends an application message, and returns its sequence number.
    ///
    /// # Errors
    /// [`SendError`]; then nothing is sent and no number is used.
    #[inline]
    pub fn send<'a>(&mut self, now: Nanos, body: &impl Body<'a>) -> Result<u64, SendError> {
        self.send_with(now, msg_type_of(body), |writer| body.encode(writer))
    }

    /// Sends an application message with the fields that `write` writes, and returns its sequence number.
    ///
    /// `write` may be called twice if the buffer must be compacted.
    ///
    /// # Errors
    /// [`SendError`]; then nothing is sent and no number is used.
    #[inline]
    pub fn send_with(
        &mut self,
        now: Nanos,
        msg_type: MsgType,
        write: impl Fn(&mut Writer<'_>),
    ) -> Result<u64, SendError> {
        if self.state != State::Up {
            return Err(SendError::NotLoggedOn);
        }
        if self.resend.is_some() {
            return Err(SendError::Full);
        }
        let sequence = self.next_out;
        let message = self.wire.write(now, msg_type, sequence, ADMIN_RESERVE, write)?;
        self.store.put(now, sequence, message);
        self.next_out += 1;
        Ok(sequence)
    }

    /// Logs out: the connection closes after the peer's reply, or after a timeout.
    pub fn logout(&mut self, now: Nanos, logout: &Logout<'_>) {
        match self.state {
            State::Up => {
                self.admin(now, MsgType::LOGOUT, |writer| logout.encode(writer));
                if self.state != State::Closed {
                    self.enter(State::LogoutSent, now + self.config.logon_timeout);
                }
            }
            State::LogonSent | State::LogonAwaited | State::LogonPending(_) => {
                self.close(CloseReason::LoggedOut)
            }
            _ => {}
        }
    }

    /// Ends the session for an application reason with a Logout, without waiting for a reply.
    pub fn end(&mut self, now: Nanos, text: &'static str) {
        if matches!(self.state, State::Up | State::LogoutSent) {
            self.deny(now, text, CloseReason::Ended(text));
        } else {
            self.close(CloseReason::Ended(text));
        }
    }

    /// As [`end`](Session::end), but with a Reject of the same text before the Logout, as Deribit does when a
    /// client is too slow.
    pub fn end_with_reject(&mut self, now: Nanos, text: &'static str) {
        if self.state == State::Up {
            let reject = Reject {
                ref_seq_num: self.next_in - 1,
                reason: Some(u64::from(SessionRejectReason::OTHER.0)),
                text: Some(text),
                ..Reject::default()
            };
            self.admin(now, MsgType::REJECT, |writer| reject.encode(writer));
        }
        self.end(now, text);
    }

    /// Deadline of [`handle_timeout`](Session::handle_timeout); `None` if only received bytes have an effect.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let mut next = self.state_deadline;
        if self.state == State::Up {
            next = next.min(self.gap.map_or(Nanos::MAX, |gap| gap.deadline));
            if self.heartbeat > Nanos::ZERO {
                next = next.min(self.wire.last_sent + self.heartbeat).min(self.silent_at());
            }
        }
        (next < Nanos::MAX).then_some(next)
    }

    /// Time at which a silent peer is tested, or disconnected after a test.
    fn silent_at(&self) -> Nanos {
        match self.test_request_at {
            Some(asked_at) => asked_at + self.heartbeat,
            None => self.last_received + Nanos(self.heartbeat.0 + self.heartbeat.0 / 5),
        }
    }

    /// Performs the actions that are due at `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if now >= self.state_deadline {
            return self.close(match self.state {
                State::LogoutSent => CloseReason::LogoutTimeout,
                State::LogoutAnswered => CloseReason::LoggedOut,
                _ => CloseReason::LogonTimeout,
            });
        }
        if self.state != State::Up {
            return;
        }
        if self.gap.is_some_and(|gap| now >= gap.deadline) {
            return self.deny(now, "missing messages did not come", CloseReason::GapNotFilled);
        }
        if self.heartbeat > Nanos::ZERO {
            self.keep_alive(now);
        }
        self.send_again(now);
    }

    fn keep_alive(&mut self, now: Nanos) {
        if now >= self.silent_at() {
            if self.test_request_at.is_some() {
                return self.deny(now, "no answer to a TestRequest", CloseReason::PeerSilent);
            }
            self.test_requests += 1;
            let id = self.test_requests;
            self.admin(now, MsgType::TEST_REQUEST, |writer| writer.value(tag::TEST_REQ_ID, id));
            self.test_request_at = Some(now);
        }
        if now >= self.wire.last_sent + self.heartbeat {
            self.admin(now, MsgType::HEARTBEAT, |_| {});
        }
    }

    /// True if a heartbeat or a TestRequest is due at `now`.
    #[must_use]
    pub fn is_heartbeat_due(&self, now: Nanos) -> bool {
        self.state == State::Up
            && self.heartbeat > Nanos::ZERO
            && now >= self.silent_at().min(self.wire.last_sent + self.heartbeat)
    }

    /// Pretends that a message due by [`is_heartbeat_due`](Session::is_heartbeat_due) has just been sent, for
    /// a simulated venue that misses a heartbeat.
    pub fn put_off_heartbeat(&mut self, now: Nanos) {
        self.wire.last_sent = now;
        if now >= self.silent_at() {
            self.last_received = now;
        }
    }

    /// Bytes to send.
    #[inline]
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.wire.out.bytes()
    }

    /// Removes `count` sent bytes from [`output`](Session::output).
    #[inline]
    pub fn handle_sent(&mut self, now: Nanos, count: usize) {
        self.wire.out.consume(count);
        self.send_again(now);
    }

    /// Reason to close the connection; `None` while it stays open.
    #[must_use]
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// True if application messages may be sent.
    #[inline]
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// True if a message of up to `len` bytes would be accepted now.
    #[inline]
    #[must_use]
    pub fn has_room(&self, len: usize) -> bool {
        self.is_up() && self.resend.is_none() && self.wire.out.has_room(len + ADMIN_RESERVE)
    }

    /// Name of the peer; empty until its Logon.
    #[must_use]
    pub const fn peer(&self) -> &CompId {
        &self.wire.target
    }

    /// Next expected sequence number.
    #[must_use]
    pub const fn next_in(&self) -> u64 {
        self.next_in
    }

    /// Next sequence number to send.
    #[must_use]
    pub const fn next_out(&self) -> u64 {
        self.next_out
    }

    /// Counters of the session.
    #[must_use]
    pub const fn stats(&self) -> SessionStats {
        SessionStats { sent: self.wire.sent, ..self.stats }
    }
}

fn msg_type_of<'a, B: Body<'a>>(_: &B) -> MsgType {
    B::MSG_TYPE
}

fn logout_text<'a>(message: &Message<'a>) -> Option<&'a str> {
    optional(message, tag::TEXT).ok().flatten()
}
