//! Messages to a session, encoded in OUCH and appended to the session's log.

use tickpath_nasdaq::ouch50::{self, EventCode, QueryResponse, SystemEvent};
use tickpath_types::{InstrumentTable, Nanos, OrderEvent, SystemEventCode, UserRefNum};
use zerocopy::IntoBytes;

use crate::message_log::SessionLog;

/// Appends an order event.
#[inline]
pub fn append_event(log: &mut SessionLog, event: &OrderEvent, instruments: &InstrumentTable) {
    log.append_with(|out| {
        ouch50::encode_event(event, |id| instruments.symbol(id), out)
            .expect("the engine's events fit OUCH: its instruments and quantities were checked at start")
    });
}

/// Appends the response to an account query.
pub fn append_query_answer(log: &mut SessionLog, ts: Nanos, next: UserRefNum) {
    log.append(QueryResponse::new(ts, next).as_bytes());
}

/// Appends the start or end of the day; OUCH has no message for other system events.
pub fn append_session_phase(log: &mut SessionLog, ts: Nanos, phase: SystemEventCode) {
    let code = match phase {
        SystemEventCode::StartOfSystemHours => EventCode::START_OF_DAY,
        SystemEventCode::EndOfSystemHours => EventCode::END_OF_DAY,
        _ => return,
    };
    log.append(SystemEvent::new(ts, code).as_bytes());
}
