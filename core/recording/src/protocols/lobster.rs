//! LOBSTER message files.

use tickpath_types::Zone;

use super::events::EventFormat;
use crate::EventKind;

/// The event format of LOBSTER message files.
pub struct Lobster;

impl EventFormat for Lobster {
    const ZONE: Zone = Zone::EASTERN;
    const IS_ORDERED_BY_TIME: bool = true;

    fn code(kind: &EventKind) -> u8 {
        match kind {
            EventKind::Add { .. } => b'1',
            EventKind::Reduce { .. } => b'2',
            EventKind::Delete { .. } => b'3',
            EventKind::Fill { .. } => b'4',
            EventKind::Trade { is_hidden: true, .. } => b'5',
            EventKind::Trade { .. } => b'6',
            EventKind::Status(_) => b'7',
            _ => b'?',
        }
    }

    fn name(code: u8) -> &'static str {
        match code {
            b'1' => "New limit order",
            b'2' => "Cancellation in part",
            b'3' => "Deletion",
            b'4' => "Execution",
            b'5' => "Execution of a hidden order",
            b'6' => "Cross trade",
            b'7' => "Trading halt",
            _ => "Other",
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{SystemEventCode, TradingState};

    use super::super::events::Events;
    use super::*;
    use crate::protocol::{RecordedProtocol, Source};
    use crate::{RecordedEvent, RecordingInfo, Status};

    #[test]
    fn events_publish_the_state_of_session_and_instrument() {
        let source = Source { info: RecordingInfo::ORDER_BY_ORDER, symbols: &[], is_snapshot: false };
        let view = |kind| {
            let event = RecordedEvent { ts_ns: 1, kind, ..RecordedEvent::NOTHING };
            let view = Events::<Lobster>::view(&event, 1, source);
            (view.state, view.stage)
        };
        let halted = EventKind::Status(Status::Trading(TradingState::Halted));
        assert_eq!(view(halted), (Some(TradingState::Halted), None));
        let open = EventKind::Status(Status::System(SystemEventCode::StartOfMarketHours));
        assert_eq!(view(open), (None, Some(SystemEventCode::StartOfMarketHours)));
        assert_eq!(view(EventKind::Clear), (None, None));
    }
}
