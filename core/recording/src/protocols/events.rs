//! The protocol of recorded events, such as those of DBN and LOBSTER.

use std::marker::PhantomData;

use tickpath_book::BooksById;
use tickpath_types::{Nanos, Zone};

use super::event_books::{EventBooks, instrument_id};
use crate::books::BookSize;
use crate::digest::Checksums;
use crate::protocol::{RecordedProtocol, Source};
use crate::replay::{Pass, Replay};
use crate::updates::Updates;
use crate::view::{MessageView, TradeInfo};
use crate::{EventKind, IgnoredReason, RecordedEvent, RecordingInfo, Status};

/// A format of recorded events.
pub trait EventFormat: 'static {
    /// Time zone of the exchange.
    const ZONE: Zone;
    /// True if the times of a recording's events never run backwards.
    const IS_ORDERED_BY_TIME: bool;

    /// The format's letter or digit for an event.
    fn code(kind: &EventKind) -> u8;

    /// The name of the event type with this letter or digit.
    fn name(code: u8) -> &'static str;
}

/// One recording in event format `F`.
pub struct Events<F> {
    info: RecordingInfo,
    format: PhantomData<F>,
}

impl<F> Events<F> {
    /// Creates a recording with these properties.
    #[must_use]
    pub const fn new(info: RecordingInfo) -> Events<F> {
        Events { info, format: PhantomData }
    }
}

impl<F: EventFormat> RecordedProtocol for Events<F> {
    type Message<'a> = RecordedEvent;
    type Books<B: BooksById> = EventBooks<B>;
    const IS_ORDERED_BY_TIME: bool = F::IS_ORDERED_BY_TIME;

    fn info(&self) -> RecordingInfo {
        self.info
    }

    fn books<B: BooksById>(&self, empty: B, _midnight: Nanos) -> EventBooks<B> {
        EventBooks::new(empty, self.info)
    }

    fn orders<B: BooksById>(books: &EventBooks<B>) -> &B {
        books.books()
    }

    #[inline(never)]
    fn apply<B: BooksById>(
        books: &mut EventBooks<B>,
        first: u64,
        events: &[RecordedEvent],
        updates: &mut Updates,
    ) {
        apply_from(books, first, 0, events, updates);
    }

    fn unreported<B: BooksById>(books: &EventBooks<B>) -> u64 {
        books.unreported()
    }

    #[inline]
    fn ts_ns(event: &RecordedEvent) -> u64 {
        event.ts_ns
    }

    #[inline]
    fn is_snapshot(event: &RecordedEvent) -> bool {
        event.is_snapshot
    }

    #[inline]
    fn view<'s>(event: &'s RecordedEvent, number: u64, source: Source<'s>) -> MessageView<'s> {
        let instrument = instrument_id(event.instrument).map_or(0, |id| id.0);
        let mut view = MessageView::new(number, event.ts_ns, instrument, F::code(&event.kind));
        view.symbol = source.symbols.get(event.instrument as usize).map(String::as_bytes);
        view.is_snapshot = event.is_snapshot;
        match event.kind {
            EventKind::Add { level, .. } => {
                view.order.is_add = true;
                view.order.price = Some(level.price);
            }
            EventKind::Modify { level, .. } => view.order.price = Some(level.price),
            EventKind::Replace { price, order_id, .. } => {
                view.order.must_rest = true;
                view.order.replaced = order_id;
                view.order.price = Some(price);
            }
            EventKind::Delete { .. } | EventKind::Reduce { .. } => view.order.must_rest = true,
            EventKind::Fill { order_id, qty, side, price, in_auction } => {
                // With `sums_fills`, a separate record reports the trade: count that record, not the fill.
                let has_own_records = source.info.sums_fills;
                view.order.is_execution = true;
                view.order.must_rest = !has_own_records && !in_auction;
                let aggressor = side.filter(|_| !in_auction).map(|side| side.opposite());
                let counts = !has_own_records;
                view.trade =
                    Some(TradeInfo { aggressor, counts, order_id, ..TradeInfo::new(price, qty, "executed") });
            }
            EventKind::Trade { order_id, price, qty, aggressor, is_hidden } => {
                let kind = match (is_hidden, source.info.sums_fills) {
                    (true, _) => "hidden",
                    (false, true) => "trade",
                    (false, false) => "cross",
                };
                view.trade =
                    Some(TradeInfo { aggressor, order_id, ..TradeInfo::new(Some(price), qty, kind) });
            }
            EventKind::Status(Status::Trading(state)) => view.state = Some(state),
            EventKind::Status(Status::System(stage)) => view.stage = Some(stage),
            EventKind::Ignored(reason) => view.is_malformed = is_malformed(reason),
            EventKind::Clear => {}
        }
        view
    }

    #[inline]
    fn digest(event: &RecordedEvent, checksums: &mut Checksums) {
        checksums.others.event(event);
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(F::name(code))
    }
}

const fn is_malformed(reason: IgnoredReason) -> bool {
    !matches!(reason, IgnoredReason::OtherRecord | IgnoredReason::BrokenTrade)
}

/// Applies events of a block to books; `first` is the number of the first one in the file, and `start` its index
/// in the block.
fn apply_from<B: BooksById>(
    books: &mut EventBooks<B>,
    first: u64,
    start: usize,
    events: &[RecordedEvent],
    updates: &mut Updates,
) {
    books.handle_events(first, events, updates, |updates, index, before, after| {
        updates.record(before, after, || start + index..=start + index);
    });
}

/// Applies the events from index `start` of a part (a group of events) to the books as soon as they are read.
/// Call [`Pass::begin_part`] before the part, and [`Replay::publish`] after it.
#[inline]
pub fn apply_at_once<F: EventFormat, L>(
    replay: &mut Replay<Events<F>>,
    pass: &mut Pass<L>,
    start: usize,
    events: &[RecordedEvent],
) {
    if let Some(books) = &mut replay.pair.books {
        let first = pass.message_count() + 1 + start as u64;
        apply_from(books, first, start, events, &mut pass.updates);
    }
}

/// Book capacity that suffices if `events` are all events of the file.
#[must_use]
pub fn size_of_events(events: &[RecordedEvent]) -> BookSize {
    let last = events.iter().filter_map(|event| instrument_id(event.instrument)).max();
    BookSize { max_instrument: last.unwrap_or_default(), max_orders: events.len() as u32 + 1 }
}
