//! Messages of each format as the tape sees them.

use tickpath_capture::{EventKind, Format, IgnoredReason, RecordedEvent, RecordingInfo, Status};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{Message, YesNo, message_len};
use tickpath_nasdaq::wire::Stock;
use tickpath_types::{Price, Qty};

use crate::captures::{iex, xdp};
use crate::event_books::instrument_id;
use crate::moment::Calendar;
use crate::tape::{Seen, SeenTrade};

/// What is known about the recording that a message is from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) format: Format,
    /// What its types of messages are called.
    pub(crate) types: Types,
    pub(crate) info: RecordingInfo,
    pub(crate) calendar: Calendar,
    /// By index of instrument; ITCH tells its symbols in its messages.
    pub(crate) symbols: &'a [String],
    /// True when all messages are part of a snapshot, whatever they say themselves.
    pub(crate) is_snapshot: bool,
}

impl Source<'_> {
    /// Whether a message is part of a snapshot.
    pub(crate) fn is_snapshot<M: RecordedMessage>(&self, message: &M) -> bool {
        self.is_snapshot || message.is_snapshot()
    }
}

/// Types of messages, of formats and protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Types {
    Itch,
    Dbn,
    Lobster,
    Iex,
    Xdp,
}

impl Types {
    /// What a type is called.
    pub(crate) const fn name(self, code: u8) -> &'static str {
        match self {
            Types::Itch => itch_name(code),
            Types::Dbn => dbn_name(code),
            Types::Lobster => lobster_name(code),
            Types::Iex => iex::type_name(code),
            Types::Xdp => xdp::type_name(code),
        }
    }

    /// A type as the format writes it; `?` for what is none.
    pub(crate) fn code(self, code: u8) -> String {
        match self {
            _ if self.name(code) == UNKNOWN => "?".to_owned(),
            Types::Xdp => code.to_string(),
            _ => char::from(code).to_string(),
        }
    }
}

/// The name of what is no type.
const UNKNOWN: &str = "Unknown type";

/// A message of a recording.
pub(crate) trait RecordedMessage {
    /// Its time, as the recording counts.
    fn ts_ns(&self) -> u64;

    /// Whether it is part of a snapshot, which builds the books and is none of what happened.
    fn is_snapshot(&self) -> bool {
        false
    }

    /// What it says; `number` is its number in the file.
    fn see<'s>(&'s self, number: u64, source: Source<'s>) -> Seen<'s>;
}

/// Where an ITCH message has its time.
const ITCH_TIME: std::ops::Range<usize> = 5..11;
/// Where an ITCH message has its stock locate.
const ITCH_LOCATE: std::ops::Range<usize> = 1..3;

impl RecordedMessage for &[u8] {
    #[inline]
    fn ts_ns(&self) -> u64 {
        match self.get(ITCH_TIME) {
            // The end of a snapshot has no time.
            _ if is_end_of_snapshot(self) => 0,
            Some([a, b, c, d, e, f]) => u64::from_be_bytes([0, 0, *a, *b, *c, *d, *e, *f]),
            _ => 0,
        }
    }

    fn see<'s>(&'s self, number: u64, _source: Source<'s>) -> Seen<'s> {
        let code = self.first().copied().unwrap_or_default();
        if is_end_of_snapshot(self) {
            return Seen { is_snapshot: true, ..blank(number, 0, 0, code) };
        }
        if message_len(code) != Some(self.len()) {
            return Seen { is_malformed: true, ..blank(number, self.ts_ns(), 0, code) };
        }
        let instrument = match self.get(ITCH_LOCATE) {
            Some([high, low]) => u16::from_be_bytes([*high, *low]),
            _ => 0,
        };
        let mut seen = blank(number, self.ts_ns(), instrument, code);
        match code {
            // Nothing more to be seen, and most frequent.
            b'D' | b'X' => seen.needs_order = true,
            _ => see_itch(self, &mut seen),
        }
        seen
    }
}

/// GLIMPSE's own message, with which a snapshot of ITCH messages ends.
#[inline]
pub(crate) fn is_end_of_snapshot(message: &[u8]) -> bool {
    matches!(message, [b'G', ..] if message.len() == EndOfSnapshot::LEN)
}

fn see_itch<'s>(message: &'s [u8], seen: &mut Seen<'s>) {
    let Ok(message) = Message::parse(message) else { return };
    match message {
        Message::AddOrder(m) => see_add(seen, &m.stock, m.price.get()),
        Message::AddOrderMpid(m) => see_add(seen, &m.stock, m.price.get()),
        Message::OrderReplace(m) => {
            seen.needs_order = true;
            seen.order_price = Some(m.price.get());
            seen.replaced = m.original_order_ref.get().0;
        }
        Message::OrderExecuted(m) => {
            let trade = trade(None, m.executed_shares.get(), "executed");
            see_execution(seen, SeenTrade { order_id: m.order_ref.get().0, ..trade });
        }
        Message::OrderExecutedWithPrice(m) => {
            let trade = trade(Some(m.execution_price.get()), m.executed_shares.get(), "executed_with_price");
            let counts = m.printable != YesNo::NO;
            see_execution(seen, SeenTrade { order_id: m.order_ref.get().0, counts, ..trade });
        }
        Message::NonCrossTrade(m) => {
            seen.symbol = Some(&m.stock.0);
            seen.trade = Some(trade(Some(m.price.get()), m.shares.get(), "hidden"));
        }
        Message::CrossTrade(m) => {
            seen.symbol = Some(&m.stock.0);
            seen.trade = Some(trade(Some(m.cross_price.get()), m.shares.get(), "cross"));
        }
        Message::StockTradingAction(m) => {
            seen.symbol = Some(&m.stock.0);
            seen.state = m.trading_state.state();
        }
        Message::StockDirectory(m) => seen.symbol = Some(&m.stock.0),
        Message::SystemEvent(m) => seen.stage = m.event_code.stage(),
        _ => {}
    }
}

fn see_add<'s>(seen: &mut Seen<'s>, stock: &'s Stock, price: Price) {
    seen.symbol = Some(&stock.0);
    seen.order_price = Some(price);
    seen.is_add = true;
}

pub(crate) fn see_execution(seen: &mut Seen<'_>, trade: SeenTrade) {
    seen.needs_order = true;
    seen.is_execution = true;
    seen.trade = Some(trade);
}

pub(crate) const fn trade(price: Option<Price>, qty: Qty, kind: &'static str) -> SeenTrade {
    SeenTrade { price, qty, aggressor: None, kind, counts: true, order_id: 0 }
}

pub(crate) const fn blank<'s>(number: u64, ts_ns: u64, instrument: u16, code: u8) -> Seen<'s> {
    Seen {
        number,
        ts_ns,
        instrument,
        channel: 0,
        code,
        symbol: None,
        state: None,
        stage: None,
        is_malformed: false,
        is_snapshot: false,
        needs_order: false,
        order_price: None,
        is_add: false,
        is_execution: false,
        replaced: 0,
        trade: None,
    }
}

impl RecordedMessage for RecordedEvent {
    #[inline]
    fn ts_ns(&self) -> u64 {
        self.ts_ns
    }

    #[inline]
    fn is_snapshot(&self) -> bool {
        self.is_snapshot
    }

    fn see<'s>(&'s self, number: u64, source: Source<'s>) -> Seen<'s> {
        let instrument = instrument_id(self.instrument).map_or(0, |id| id.0);
        let mut seen = blank(number, self.ts_ns, instrument, event_code(source.format, &self.kind));
        seen.symbol = source.symbols.get(self.instrument as usize).map(String::as_bytes);
        seen.is_snapshot = self.is_snapshot;
        match self.kind {
            EventKind::Add { level, .. } => {
                seen.is_add = true;
                seen.order_price = Some(level.price);
            }
            EventKind::Modify { level, .. } => seen.order_price = Some(level.price),
            EventKind::Replace { price, order_id, .. } => {
                seen.needs_order = true;
                seen.replaced = order_id;
                seen.order_price = Some(price);
            }
            EventKind::Delete { .. } | EventKind::Reduce { .. } => seen.needs_order = true,
            EventKind::Fill { order_id, qty, side, price, in_auction } => {
                // Where fills have the outcome in another record, the trade is one of its own as well.
                let has_own_records = source.info.sums_fills;
                seen.is_execution = true;
                seen.needs_order = !has_own_records && !in_auction;
                let aggressor = side.filter(|_| !in_auction).map(|side| side.opposite());
                let counts = !has_own_records;
                seen.trade = Some(SeenTrade { aggressor, counts, order_id, ..trade(price, qty, "executed") });
            }
            EventKind::Trade { order_id, price, qty, aggressor, is_hidden } => {
                let kind = match (is_hidden, source.info.sums_fills) {
                    (true, _) => "hidden",
                    (false, true) => "trade",
                    (false, false) => "cross",
                };
                seen.trade = Some(SeenTrade { aggressor, order_id, ..trade(Some(price), qty, kind) });
            }
            EventKind::Status(Status::Trading(state)) => seen.state = Some(state),
            EventKind::Status(Status::System(stage)) => seen.stage = Some(stage),
            EventKind::Ignored(reason) => seen.is_malformed = is_malformed(reason),
            EventKind::Clear => {}
        }
        seen
    }
}

const fn is_malformed(reason: IgnoredReason) -> bool {
    !matches!(reason, IgnoredReason::OtherRecord | IgnoredReason::BrokenTrade)
}

/// The letter or digit that the format has for an event.
const fn event_code(format: Format, kind: &EventKind) -> u8 {
    match (format, kind) {
        (Format::Lobster, EventKind::Add { .. }) => b'1',
        (Format::Lobster, EventKind::Reduce { .. }) => b'2',
        (Format::Lobster, EventKind::Delete { .. }) => b'3',
        (Format::Lobster, EventKind::Fill { .. }) => b'4',
        (Format::Lobster, EventKind::Trade { is_hidden: true, .. }) => b'5',
        (Format::Lobster, EventKind::Trade { .. }) => b'6',
        (Format::Lobster, EventKind::Status(_)) => b'7',
        (_, EventKind::Add { .. }) => b'A',
        (_, EventKind::Delete { .. } | EventKind::Reduce { .. }) => b'C',
        (_, EventKind::Modify { .. } | EventKind::Replace { .. }) => b'M',
        (_, EventKind::Fill { .. }) => b'F',
        (_, EventKind::Trade { .. }) => b'T',
        (_, EventKind::Clear) => b'R',
        (_, EventKind::Ignored(IgnoredReason::OtherRecord)) => b'N',
        (_, _) => b'?',
    }
}

const fn dbn_name(code: u8) -> &'static str {
    match code {
        b'A' => "Add",
        b'C' => "Cancel",
        b'M' => "Modify",
        b'F' => "Fill",
        b'T' => "Trade",
        b'R' => "Clear book",
        b'D' => "Definition",
        b'N' => "Other record",
        _ => "Record with a field out of range",
    }
}

const fn lobster_name(code: u8) -> &'static str {
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

const fn itch_name(code: u8) -> &'static str {
    match code {
        b'S' => "System Event",
        b'R' => "Stock Directory",
        b'H' => "Stock Trading Action",
        b'Y' => "Reg SHO Restriction",
        b'L' => "Market Participant Position",
        b'V' => "MWCB Decline Level",
        b'W' => "MWCB Status",
        b'K' => "IPO Quoting Period Update",
        b'J' => "LULD Auction Collar",
        b'h' => "Operational Halt",
        b'A' => "Add Order",
        b'F' => "Add Order with MPID",
        b'E' => "Order Executed",
        b'C' => "Order Executed with Price",
        b'X' => "Order Cancel",
        b'D' => "Order Delete",
        b'U' => "Order Replace",
        b'P' => "Trade (hidden order)",
        b'Q' => "Cross Trade",
        b'B' => "Broken Trade",
        b'I' => "Net Order Imbalance",
        b'N' => "Retail Price Improvement",
        b'O' => "Direct Listing Price Discovery",
        b'G' => "End of Snapshot",
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use tickpath_config::Zone;
    use tickpath_types::{SystemEventCode, TradingState};

    use super::*;

    #[test]
    fn events_publish_the_state_of_session_and_instrument() {
        let info = crate::itch::INFO;
        let (zone, midnight) = (Zone::EASTERN, Zone::EASTERN);
        let calendar = Calendar { base: info.time_base, zone, midnight, date: None };
        let source = Source {
            format: Format::Lobster,
            types: Types::Lobster,
            info,
            calendar,
            symbols: &[],
            is_snapshot: false,
        };
        let seen = |kind| {
            let event = RecordedEvent { ts_ns: 1, kind, ..RecordedEvent::NOTHING };
            let seen = event.see(1, source);
            (seen.state, seen.stage)
        };
        let halted = EventKind::Status(Status::Trading(TradingState::Halted));
        assert_eq!(seen(halted), (Some(TradingState::Halted), None));
        let open = EventKind::Status(Status::System(SystemEventCode::StartOfMarketHours));
        assert_eq!(seen(open), (None, Some(SystemEventCode::StartOfMarketHours)));
        assert_eq!(seen(EventKind::Clear), (None, None));
    }
}
