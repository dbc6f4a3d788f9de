//! Heartbeats, cancel on disconnect, and connection status.

use tickpath_deribit::codes::CancelOnDisconnectScope;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::{
    CancelOnDisconnect, Hello, SetCancelOnDisconnect, SetHeartbeat, Test, Version,
};
use tickpath_deribit::request::{Request, write_heartbeat, write_test_request};
use tickpath_deribit::text::Text;

use super::{Answer, Front, IDLE_US};
use crate::connection::{Frame, Heartbeat, Transport};
use crate::fault::Fault;
use crate::faults::FaultKind;
use crate::json::{Json, Object, json};
use crate::record::Record;

/// API version that the front reports.
const VERSION: &str = "1.2.26";

fn ok() -> Answer {
    Ok(Some(json(&Text::new("ok"))))
}

impl Front {
    pub(super) fn hello(&self, request: &Request<'_>) -> Answer {
        let _: Hello<'_> = request.params()?;
        Ok(Some(json(&Version { version: Text::new(VERSION) })))
    }

    pub(super) fn test(&self, request: &Request<'_>) -> Answer {
        let test: Test<'_> = request.params()?;
        if test.expected_result.is_some_and(|wanted| wanted == "exception") {
            return Err(Fault::because(ErrorCode::Error, "as expected"));
        }
        Ok(Some(json(&Version { version: Text::new(VERSION) })))
    }

    pub(super) fn time(&self) -> Answer {
        Ok(Some(json(&self.now_ms())))
    }

    pub(super) fn status(&self) -> Answer {
        let status =
            Object::new().with("locked", Text::new("false")).with("locked_indices", Json(b"[]".to_vec()));
        Ok(Some(status.end()))
    }

    pub(super) fn set_heartbeat(&mut self, number: u64, request: &Request<'_>) -> Answer {
        self.needs_websocket(number)?;
        let SetHeartbeat { interval } = request.params()?;
        if interval < SetHeartbeat::INTERVAL_MIN {
            return Err(Fault::param("interval", "value must be at least 10"));
        }
        let interval_us = u64::from(interval) * 1_000_000;
        let next_us = self.now_us + interval_us;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.heartbeat = Some(Heartbeat { interval_us, next_us, asked_us: None });
        }
        ok()
    }

    pub(super) fn disable_heartbeat(&mut self, number: u64) -> Answer {
        self.needs_websocket(number)?;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.heartbeat = None;
        }
        ok()
    }

    pub(super) fn set_cancel_on_disconnect(
        &mut self,
        number: u64,
        account: usize,
        request: &Request<'_>,
        is_enabled: bool,
    ) -> Answer {
        self.needs_websocket(number)?;
        let SetCancelOnDisconnect { scope } = request.params()?;
        if scope == Some(CancelOnDisconnectScope::Account) {
            let account = self.accounts[account].name.clone();
            self.decide(&Record::CancelOnDisconnect { account, is_enabled });
        } else if let Some(connection) = self.connections.get_mut(&number) {
            connection.cancels_on_disconnect = is_enabled;
        }
        ok()
    }

    pub(super) fn cancel_on_disconnect(&self, number: u64, account: usize, request: &Request<'_>) -> Answer {
        let asked: SetCancelOnDisconnect = request.params()?;
        let scope = asked.scope.unwrap_or(CancelOnDisconnectScope::Connection);
        let of_connection = || self.connections.get(&number).is_some_and(|own| own.cancels_on_disconnect);
        let enabled = match scope {
            CancelOnDisconnectScope::Account => self.accounts[account].cancels_on_disconnect,
            _ => of_connection(),
        };
        Ok(Some(json(&CancelOnDisconnect { scope, enabled })))
    }

    /// Sends heartbeats and test requests, and closes silent connections.
    pub(super) fn run_heartbeats(&mut self) {
        let now_us = self.now_us;
        let mut frames = Vec::new();
        for (number, connection) in &mut self.connections {
            if connection.end.is_some() || connection.transport != Transport::WebSocket {
                continue;
            }
            let silent_us = now_us.saturating_sub(connection.last_in_us);
            if silent_us >= IDLE_US {
                connection.end = Some("idle");
                self.counters.silent_clients.add(1);
                continue;
            }
            let Some(heartbeat) = &mut connection.heartbeat else { continue };
            if heartbeat.asked_us.is_some_and(|asked| now_us >= asked + heartbeat.interval_us) {
                connection.end = Some("no sign of life");
                self.counters.silent_clients.add(1);
            } else if now_us >= heartbeat.next_us {
                heartbeat.next_us = now_us + heartbeat.interval_us;
                if self.faults.happens(FaultKind::HeartbeatMissed) {
                    continue;
                }
                let mut bytes = Vec::new();
                if silent_us >= heartbeat.interval_us && heartbeat.asked_us.is_none() {
                    heartbeat.asked_us = Some(now_us);
                    write_test_request(&mut bytes);
                } else {
                    write_heartbeat(&mut bytes);
                }
                frames.push((*number, bytes));
            }
        }
        for (number, bytes) in frames {
            self.push(number, Frame { bytes, error: None });
        }
    }
}
