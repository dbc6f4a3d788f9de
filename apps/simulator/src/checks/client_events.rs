//! Order events that clients received. A received message counts if its bytes equal the expected message.

use tickpath_types::{Nanos, OrderEventKind};

use super::Case;

/// One order event: its time at the venue, and its kind.
pub(super) type TimedOrderEvent = (Nanos, OrderEventKind);

/// An event that a client received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ReceivedEvent {
    Order(TimedOrderEvent),
    StartOfDay,
}

/// Returns all events that a client received; `None` if it missed a message or the log lost commands.
pub(super) fn all_events(case: &Case<'_>, place: usize) -> Option<Vec<ReceivedEvent>> {
    let (received, stream) = (case.views.received_streams.get(place)?, &case.truth.streams[place]);
    if !case.views.losses.is_empty() {
        return None;
    }
    // A trader does not request messages from before its start, so expected messages that it lacks count as
    // received.
    let is_trader = case.observed.traders.iter().any(|instance| instance.user == place);
    let len = received.len().max(stream.len());
    let mut events = Vec::with_capacity(len);
    for index in 0..len {
        let expected = stream.get(index);
        let unrequested = || expected.filter(|_| is_trader).map(|message| &message.bytes);
        let message = received.get(index).and_then(Option::as_ref).or_else(unrequested)?;
        // Skip an unexpected message: the checker `streams` reports it.
        let Some(expected) = expected.filter(|expected| expected.bytes == *message) else { continue };
        match expected.event {
            Some(event) => events.push(ReceivedEvent::Order((event.ts, event.kind))),
            None if is_start_of_day(message) => events.push(ReceivedEvent::StartOfDay),
            None => {}
        }
    }
    Some(events)
}

/// Returns true if the message is OUCH's System Event for the start of the day.
fn is_start_of_day(message: &[u8]) -> bool {
    const EVENT_CODE_AT: usize = 9;
    message.first() == Some(&b'S') && message.get(EVENT_CODE_AT) == Some(&b'S')
}

/// Returns the order events among [`all_events`] of a client.
pub(super) fn of_client(case: &Case<'_>, place: usize) -> Option<Vec<TimedOrderEvent>> {
    let of_order = |event| match event {
        ReceivedEvent::Order(order_event) => Some(order_event),
        ReceivedEvent::StartOfDay => None,
    };
    Some(all_events(case, place)?.into_iter().filter_map(of_order).collect())
}
