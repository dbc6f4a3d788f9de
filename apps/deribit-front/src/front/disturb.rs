//! Fault injection into requests, replies and connections.

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::request::Request;
use tickpath_deribit::text::Text;

use super::{Answer, Front};
use crate::connection::{Frame, Transport};
use crate::fault::Fault;
use crate::faults::{Fate, FaultKind, FaultSwitch, Outage};
use crate::json::Object;
use crate::pending::ReplyTo;

/// Error codes after which a request may be sent again, because nothing of it was executed.
const REFUSALS: [ErrorCode; 6] = [
    ErrorCode::Retry,
    ErrorCode::SettlementInProgress,
    ErrorCode::MatchingEngineQueueFull,
    ErrorCode::TooManyConcurrentRequests,
    ErrorCode::InternalServerError,
    ErrorCode::TemporarilyUnavailable,
];

impl Front {
    /// Returns the switch for enabling and disabling faults.
    #[must_use]
    pub fn faults(&self) -> FaultSwitch {
        self.faults.switch.clone()
    }

    /// Returns the injected outage of a connection, if any.
    #[must_use]
    pub fn poll_outage(&self, number: u64) -> Option<Outage> {
        self.faults.outage(number)
    }

    /// Returns the reply to a request during maintenance; none otherwise.
    #[must_use]
    pub fn maintenance(&self) -> Option<Frame> {
        if self.now_us >= self.faults.maintenance_until_us {
            return None;
        }
        let code = ErrorCode::SystemMaintenance;
        let error = Object::new().with("code", code.code()).with("message", Text::new(code.message()));
        let bytes = Object::new().with("jsonrpc", Text::new("2.0")).with("error", error.json()).end();
        Some(Frame { bytes, error: Some(code.code()) })
    }

    /// Applies faults to a private request; returns its outcome if a fault occurred.
    pub(super) fn disturb(&mut self, number: u64, request: &Request<'_>, to: &ReplyTo) -> Option<Answer> {
        let is_websocket =
            self.connections.get(&number).is_some_and(|own| own.transport == Transport::WebSocket);
        if !request.method.is_private() || !is_websocket {
            return None;
        }
        if self.faults.happens(FaultKind::TokensRevoked) {
            self.end_login(number, true);
        } else if self.faults.happens(FaultKind::TokenExpired) {
            self.end_login(number, false);
        }
        if !request.method.is_matching() {
            return None;
        }
        self.disturb_order(to).map(|done| done.map(|()| None))
    }

    /// Applies faults to an order request: returns its outcome if it is lost or rejected.
    pub(super) fn disturb_order(&mut self, to: &ReplyTo) -> Option<Result<(), Fault>> {
        let number = to.connection;
        if self.faults.happens(FaultKind::RequestLost) {
            self.faults.cut(number);
            return Some(Ok(()));
        }
        let (day_us, end_us) = (86_400_000_000, 8 * 3_600_000_000);
        if (self.now_us + day_us - end_us) % day_us < self.faults.plan.settlement_us {
            return Some(Err(Fault::new(ErrorCode::SettlementInProgress)));
        }
        if self.faults.happens(FaultKind::Refused)
            && let Some(code) = self.faults.any_of(&REFUSALS)
        {
            return Some(Err(Fault::new(code)));
        }
        if self.faults.happens(FaultKind::RateLimited) {
            return Some(Err(Fault::new(ErrorCode::TooManyRequests)));
        }
        let fates = [
            (FaultKind::ReplyCut, Fate::Cut),
            (FaultKind::ReplyLost, Fate::Lost),
            (FaultKind::ReplySlow, Fate::Late),
        ];
        for (kind, fate) in fates {
            if self.faults.happens(kind) {
                self.faults.doom(number, to.id.clone(), fate);
                break;
            }
        }
        None
    }

    /// Applies the fault of a reply, if any; returns the frame if it is sent now.
    pub(super) fn disturb_reply(&mut self, to: &ReplyTo, frame: Frame) -> Option<Frame> {
        match self.faults.fate(to.connection, &to.id) {
            None => Some(frame),
            Some(Fate::Lost) => None,
            Some(Fate::Cut) => {
                self.faults.cut(to.connection);
                None
            }
            Some(Fate::Late) => self.faults.delay(to.connection, frame, self.now_us),
        }
    }

    /// Sends the delayed replies that are due.
    pub(super) fn send_delayed(&mut self) {
        while let Some((number, frame)) = self.faults.due(self.now_us) {
            self.push(number, frame);
        }
        self.send_delayed_fix();
    }

    /// Applies connection faults, several times a second: enabled ones at once, random ones at whole seconds.
    pub(super) fn disturb_connections(&mut self, is_second: bool) {
        self.faults.end_silence(self.now_us);
        if !self.faults.switch.is_armed() {
            return;
        }
        let is_maintenance = self.faults.is_next(FaultKind::Maintenance)
            || (is_second && self.faults.is_drawn(FaultKind::Maintenance));
        if is_maintenance {
            self.faults.maintenance_until_us = self.now_us + self.faults.plan.maintenance_us;
            for connection in self.connections.values_mut() {
                connection.end.get_or_insert(MAINTENANCE);
            }
        }
        let is_cut = self.faults.is_next(FaultKind::Cut);
        let is_silent = self.faults.is_next(FaultKind::HalfOpen);
        for (number, connection) in &self.connections {
            if connection.transport == Transport::Http {
                continue;
            }
            if is_cut || (is_second && self.faults.is_drawn(FaultKind::Cut)) {
                self.faults.cut(*number);
            } else if is_silent || (is_second && self.faults.is_drawn(FaultKind::HalfOpen)) {
                self.faults.silence(*number, self.now_us);
            }
        }
    }
}

/// Close reason of connections when maintenance begins.
pub(crate) const MAINTENANCE: &str = "system_maintenance";
