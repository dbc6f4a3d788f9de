//! Logon, in both roles.

use tickpath_types::Nanos;

use super::{CompId, Pending, Session, State, logout_text};
use crate::body::Body;
use crate::error::{FieldError, SessionRejectReason};
use crate::message::{Message, MsgType};
use crate::session::header::{Read, optional};
use crate::session::{CloseReason, Listener, LogonDecision, LogonRequest, Reject, ResetPolicy, Role, Store};
use crate::tag;
use crate::writer::Writer;

impl<S: Store> Session<S> {
    pub(super) fn handle_logon(
        &mut self,
        now: Nanos,
        read: &Read<'_>,
        message: &Message<'_>,
        listener: &mut impl Listener,
    ) {
        let header = &read.header;
        if header.msg_type != MsgType::LOGON {
            return self.close(CloseReason::NotLogon);
        }
        if !self.peer_is_known {
            let Some(peer) = comp_id(header.sender) else { return self.close(CloseReason::CompId) };
            self.wire.target = peer;
        }
        if !self.comp_ids_are_right(header) {
            return self.close(CloseReason::CompId);
        }
        let pending = match self.read_logon(now, read, message) {
            Ok(pending) => pending,
            Err(error) => return self.deny(now, error.reason.text(), CloseReason::BadLogon(error)),
        };
        if pending.resets {
            self.reset_numbers();
        }
        if header.sequence < self.next_in {
            return self.close_too_low(now, header.sequence);
        }
        self.enter(State::LogonPending(pending), self.state_deadline);
        let request = LogonRequest {
            header: *header,
            heartbeat: pending.heartbeat,
            resets: pending.resets,
            message: *message,
        };
        let decision = listener.on_logon_request(&request);
        self.decide_logon(now, decision, listener);
    }

    /// Validates a Logon in both roles.
    fn read_logon(&self, now: Nanos, read: &Read<'_>, message: &Message<'_>) -> Result<Pending, FieldError> {
        let wrong = |tag, reason| FieldError { tag, reason };
        if let Some(error) = read.error {
            return Err(error);
        }
        if read.header.sequence == 0 {
            return Err(wrong(tag::MSG_SEQ_NUM, SessionRejectReason::REQUIRED_TAG_MISSING));
        }
        self.check_times(now, &read.header)?;
        let encrypt_method = optional::<u64>(message, tag::ENCRYPT_METHOD)?;
        if encrypt_method.is_some_and(|method| method != 0) {
            return Err(wrong(tag::ENCRYPT_METHOD, SessionRejectReason::OUT_OF_RANGE));
        }
        let secs = match optional::<u64>(message, tag::HEART_BT_INT)? {
            Some(secs) => secs,
            None if self.config.role == Role::Initiator => self.heartbeat.0 / 1_000_000_000,
            None => return Err(wrong(tag::HEART_BT_INT, SessionRejectReason::REQUIRED_TAG_MISSING)),
        };
        let resets = optional(message, tag::RESET_SEQ_NUM_FLAG)?.unwrap_or(false);
        if secs > self.config.heartbeat_max.0 / 1_000_000_000 {
            return Err(wrong(tag::HEART_BT_INT, SessionRejectReason::OUT_OF_RANGE));
        }
        if resets && read.header.sequence != 1 {
            return Err(wrong(tag::MSG_SEQ_NUM, SessionRejectReason::OUT_OF_RANGE));
        }
        let says_encrypt_method = encrypt_method.is_some();
        let heartbeat = Nanos::from_secs(secs);
        Ok(Pending { sequence: read.header.sequence, heartbeat, resets, says_encrypt_method })
    }

    /// Decides about a deferred Logon ([`LogonDecision::Later`]); without one, does nothing.
    pub fn decide_logon(&mut self, now: Nanos, decision: LogonDecision, listener: &mut impl Listener) {
        let State::LogonPending(pending) = self.state else { return };
        match decision {
            LogonDecision::Later => {}
            LogonDecision::Refuse(text) => self.deny(now, text, CloseReason::LogonDenied(text)),
            LogonDecision::Accept => {
                self.heartbeat = pending.heartbeat;
                self.admin(now, MsgType::LOGON, |writer| {
                    write_logon(writer, pending.says_encrypt_method, pending.heartbeat, pending.resets);
                });
                self.logged_on(now, pending.sequence, listener);
            }
        }
    }

    pub(super) fn handle_logon_answer(
        &mut self,
        now: Nanos,
        read: &Read<'_>,
        message: &Message<'_>,
        listener: &mut impl Listener,
    ) {
        match read.header.msg_type {
            MsgType::LOGON => {}
            MsgType::LOGOUT => {
                listener.on_logout(logout_text(message));
                return self.close(CloseReason::LogonRefused);
            }
            MsgType::REJECT => {
                if let Ok(reject) = Reject::decode(message) {
                    listener.on_reject(&reject);
                }
                return self.close(CloseReason::LogonRefused);
            }
            _ => return self.close(CloseReason::NotLogon),
        }
        if !self.comp_ids_are_right(&read.header) {
            return self.close(CloseReason::CompId);
        }
        let answer = match self.read_logon(now, read, message) {
            Ok(answer) => answer,
            Err(error) => return self.deny(now, error.reason.text(), CloseReason::BadLogon(error)),
        };
        if answer.resets && self.config.reset == ResetPolicy::Keep {
            // Our Logon continued the old numbers: this reset was not requested.
            let reason = SessionRejectReason::OUT_OF_RANGE;
            let error = FieldError { tag: tag::RESET_SEQ_NUM_FLAG, reason };
            return self.deny(now, "ResetSeqNumFlag was not asked for", CloseReason::BadLogon(error));
        }
        if answer.sequence < self.next_in {
            return self.close_too_low(now, answer.sequence);
        }
        self.heartbeat = answer.heartbeat;
        self.logged_on(now, answer.sequence, listener);
    }

    fn logged_on(&mut self, now: Nanos, sequence: u64, listener: &mut impl Listener) {
        if self.state == State::Closed {
            return;
        }
        self.enter(State::Up, Nanos::MAX);
        if sequence == self.next_in {
            self.advance(now, sequence.saturating_add(1));
        } else {
            self.handle_gap(now, sequence, listener);
        }
        if self.state == State::Up {
            listener.on_logged_on();
        }
    }
}

fn comp_id(name: &[u8]) -> Option<CompId> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    CompId::from(name).ok()
}

pub(super) fn write_logon(
    writer: &mut Writer<'_>,
    says_encrypt_method: bool,
    heartbeat: Nanos,
    resets: bool,
) {
    if says_encrypt_method {
        writer.value(tag::ENCRYPT_METHOD, 0_u64);
    }
    writer.value(tag::HEART_BT_INT, heartbeat.0 / 1_000_000_000);
    if resets {
        writer.value(tag::RESET_SEQ_NUM_FLAG, true);
    }
}
