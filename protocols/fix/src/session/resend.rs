//! Outgoing messages: adds headers, and resends messages that the peer requests.

use tickpath_types::Nanos;

use super::header::is_header;
use super::machine::ADMIN_RESERVE;
use super::output::Output;
use super::{CompId, SessionStats, Store, Stored};
use crate::error::WriteError;
use crate::message::{Message, MsgType, Parsed};
use crate::tag;
use crate::writer::Writer;

/// Maximum number of messages resent per call; the next call continues.
const RESEND_BATCH: usize = 64;

/// Numbers to resend, both ends included; the end may exceed the last number sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) next: u64,
    pub(super) end: u64,
}

/// Outgoing side of a session: adds headers.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) out: Output,
    sender: CompId,
    pub(super) target: CompId,
    pub(super) last_sent: Nanos,
    pub(super) sent: u64,
}

impl Wire {
    pub(super) fn new(out: Output, sender: CompId, target: CompId) -> Wire {
        Wire { out, sender, target, last_sent: Nanos::ZERO, sent: 0 }
    }

    /// Writes a message and returns it; `reserve` bytes stay free.
    #[inline]
    pub(super) fn write(
        &mut self,
        now: Nanos,
        msg_type: MsgType,
        sequence: u64,
        reserve: usize,
        body: impl Fn(&mut Writer<'_>),
    ) -> Result<&[u8], WriteError> {
        let Wire { out, sender, target, .. } = self;
        let written = out.append(reserve, |buffer| {
            let mut writer = Writer::new(buffer, msg_type);
            writer.field(tag::SENDER_COMP_ID, sender.as_bytes());
            writer.field(tag::TARGET_COMP_ID, target.as_bytes());
            writer.value(tag::MSG_SEQ_NUM, sequence);
            writer.time(tag::SENDING_TIME, now);
            body(&mut writer);
            writer.finish()
        })?;
        self.last_sent = now;
        self.sent += 1;
        Ok(written)
    }

    /// Resends the stored messages of a range and skips the others. Returns the rest that did not fit.
    pub(super) fn send_again(
        &mut self,
        now: Nanos,
        mut range: Range,
        store: &impl Store,
        stats: &mut SessionStats,
    ) -> Option<Range> {
        for _ in 0..RESEND_BATCH {
            if range.next > range.end {
                return None;
            }
            let stored = store.next(now, range.next).filter(|stored| stored.sequence <= range.end);
            let sent = match stored {
                Some(stored) if stored.sequence == range.next => self.repeat(now, stored).map(|()| {
                    stats.resent += 1;
                    range.next + 1
                }),
                Some(stored) => self.skip(now, range.next, stored.sequence),
                None => self.skip(now, range.next, range.end + 1),
            };
            match sent {
                Ok(next) => range.next = next,
                Err(_) => break,
            }
        }
        (range.next <= range.end).then_some(range)
    }

    /// Resends a message with PossDupFlag and its original sending time. Skips one that cannot be resent.
    fn repeat(&mut self, now: Nanos, stored: Stored<'_>) -> Result<(), WriteError> {
        let Parsed::Complete { message, .. } = Message::parse(stored.bytes) else {
            return self.skip(now, stored.sequence, stored.sequence + 1).map(|_| ());
        };
        let first_sent = message.find(tag::SENDING_TIME);
        let written = self.write(now, message.msg_type(), stored.sequence, ADMIN_RESERVE / 2, |writer| {
            writer.value(tag::POSS_DUP_FLAG, true);
            if let Some(first_sent) = first_sent {
                writer.field(tag::ORIG_SENDING_TIME, first_sent.value);
            }
            message.fields().map_while(Result::ok).filter(|field| !is_header(field.tag)).for_each(|field| {
                writer.copy(field);
            });
        });
        let written = written.map(|_| ());
        match written {
            Err(_) if self.out.bytes().is_empty() => {
                self.skip(now, stored.sequence, stored.sequence + 1).map(|_| ())
            }
            written => written,
        }
    }

    /// Sends a gap fill up to `next`, and returns `next`.
    fn skip(&mut self, now: Nanos, sequence: u64, next: u64) -> Result<u64, WriteError> {
        self.write(now, MsgType::SEQUENCE_RESET, sequence, ADMIN_RESERVE / 2, |writer| {
            writer.value(tag::POSS_DUP_FLAG, true);
            writer.time(tag::ORIG_SENDING_TIME, now);
            writer.value(tag::NEW_SEQ_NO, next);
            writer.value(tag::GAP_FILL_FLAG, true);
        })?;
        Ok(next)
    }
}
