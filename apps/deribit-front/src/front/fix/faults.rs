//! Faults of FIX clients: lost, cut and delayed replies, and missed heartbeats.

use super::{Front, Outgoing};
use crate::faults::{DELAYED_MAX, Fate, FaultKind};
use crate::pending::ReplyTo;

impl Front {
    /// Sends a reply, unless a fault loses or delays it.
    pub(super) fn send_fix_reply(&mut self, to: &ReplyTo, send: impl FnOnce(&mut Front)) {
        match self.faults.fate(to.connection, &to.id) {
            None => send(self),
            Some(Fate::Lost) => {}
            Some(Fate::Cut) => self.faults.cut(to.connection),
            Some(Fate::Late) => {
                self.fix.is_late = true;
                send(self);
                self.fix.is_late = false;
            }
        }
    }

    /// Delays a message if a fault requires it and the queue has capacity; else returns it.
    pub(super) fn delay_fix(&mut self, number: u64, outgoing: Outgoing) -> Option<Outgoing> {
        if !self.fix.is_late || self.fix.delayed.len() >= DELAYED_MAX {
            return Some(outgoing);
        }
        let due_us = self.now_us + self.faults.plan.reply_delay_us;
        self.fix.delayed.push_back((due_us, number, outgoing));
        None
    }

    /// Sends the delayed messages that are due.
    pub(in crate::front) fn send_delayed_fix(&mut self) {
        let now_us = self.now_us;
        while let Some((_, number, outgoing)) =
            self.fix.delayed.pop_front_if(|(due_us, ..)| *due_us <= now_us)
        {
            self.send_fix(number, Some(outgoing));
        }
    }

    /// Postpones a due heartbeat or test request if a fault requires it.
    pub(super) fn miss_fix_heartbeat(&mut self, number: u64) {
        if !self.faults.switch.is_armed() {
            return;
        }
        let is_due = self.with_session(number, |session, now, _| session.is_heartbeat_due(now));
        if is_due && self.faults.happens(FaultKind::HeartbeatMissed) {
            self.with_session(number, |session, now, _| session.put_off_heartbeat(now));
        }
    }
}
