//! Reader of Nasdaq's ITCH 5.0 day files, which have the BinaryFILE format.

use std::io::Read;

use tickpath_nasdaq::itch50::framing::{Frame, FramingError, Lengths, next_frame};
use tickpath_nasdaq::itch50::{MESSAGE_LEN_MAX, Message, YesNo};
use tickpath_nasdaq::wire::Stock;
use tickpath_types::{Price, Qty, Side, Symbol};

use crate::window::Window;
use crate::{
    EventKind, EventReader, IgnoredReason, Level, Position, ReadError, RecordedEvent, RecordingInfo, Status,
};

/// Value in `by_locate` for a stock locate without an instrument index.
const UNSEEN: u32 = u32::MAX;
/// The stock locate of messages about no instrument.
const WHOLE_SYSTEM: u16 = 0;
/// Number of stock locates.
const LOCATE_COUNT: usize = 1 << 16;

/// Reads a decompressed ITCH 5.0 BinaryFILE. The variant whose length fields are all zero is supported too.
pub struct ItchReader<R> {
    window: Window<R>,
    lengths: Option<Lengths>,
    symbols: Vec<String>,
    /// Index of each instrument, by stock locate.
    by_locate: Box<[u32]>,
    /// Offset of the last message read, including its length field.
    last_offset: u64,
    is_finished: bool,
}

impl<R: Read> ItchReader<R> {
    /// Creates a reader of one file.
    pub fn new(reader: R) -> Self {
        ItchReader {
            window: Window::new(reader),
            lengths: None,
            symbols: Vec::new(),
            by_locate: vec![UNSEEN; LOCATE_COUNT].into_boxed_slice(),
            last_offset: 0,
            is_finished: false,
        }
    }

    /// Returns the instrument index of a stock locate, which is added if it is new. Until a message gives the
    /// ticker, the symbol is `#` and the locate.
    fn instrument(&mut self, locate: u16, stock: Option<Stock>) -> u32 {
        let index = &mut self.by_locate[usize::from(locate)];
        if *index == UNSEEN {
            *index = self.symbols.len() as u32;
            self.symbols.push(format!("#{locate}"));
        }
        let symbol = &mut self.symbols[*index as usize];
        if let Some(stock) = stock.filter(|_| symbol.starts_with('#')) {
            Symbol(stock.0).as_str().clone_into(symbol);
        }
        *index
    }

    /// Converts a message to an event. Every message starts with type, locate, tracking number and time.
    fn event(&mut self, message: &[u8]) -> RecordedEvent {
        let (kind, stock) = match Message::parse(message) {
            Ok(message) => kind(&message),
            Err(_) => (EventKind::Ignored(IgnoredReason::MalformedMessage), None),
        };
        let is_message = kind != EventKind::Ignored(IgnoredReason::MalformedMessage);
        let (instrument, ts_ns) = match message {
            [_, l0, l1, _, _, t0, t1, t2, t3, t4, t5, ..] if is_message => {
                let instrument = match u16::from_be_bytes([*l0, *l1]) {
                    WHOLE_SYSTEM => 0,
                    locate => self.instrument(locate, stock),
                };
                (instrument, u64::from_be_bytes([0, 0, *t0, *t1, *t2, *t3, *t4, *t5]))
            }
            _ => (0, 0),
        };
        RecordedEvent { ts_ns, instrument, ends_transaction: true, is_snapshot: false, kind }
    }

    /// Returns the lengths of the next message and of its whole frame; `None` at the end of the data.
    fn next_message(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        loop {
            let data = self.window.data();
            // The first three bytes determine the kind of length fields.
            if data.len() >= 3 {
                let lengths = *self.lengths.get_or_insert_with(|| Lengths::detect(data));
                match next_frame(data, lengths) {
                    Ok(Some((Frame::Message(message), used))) => return Ok(Some((message.len(), used))),
                    Ok(Some((Frame::EndOfSession, _))) => return Ok(None),
                    Ok(None) => {}
                    Err(error) => return Err(malformed(error, self.window.offset())),
                }
            }
            if !self.window.fill()? {
                return match self.window.data() {
                    [] | [0, 0] => Ok(None),
                    _ => Err(ReadError::Truncated { offset: self.window.offset() }),
                };
            }
        }
    }
}

impl<R: Read> EventReader for ItchReader<R> {
    fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError> {
        if self.is_finished {
            return Ok(false);
        }
        let found = self.next_message();
        self.is_finished = !matches!(found, Ok(Some(_)));
        let Some((len, used)) = found? else { return Ok(false) };
        let mut message = [0; MESSAGE_LEN_MAX];
        // A frame longer than any message is invalid: pass an empty message, which is reported as malformed.
        let kept = len.min(MESSAGE_LEN_MAX);
        let start = used - len;
        message[..kept].copy_from_slice(&self.window.data()[start..start + kept]);
        self.last_offset = self.window.offset();
        self.window.consume(used);
        *event = self.event(if kept == len { &message[..kept] } else { &[] });
        Ok(true)
    }

    fn position(&self) -> Position {
        Position::Byte(self.last_offset)
    }

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn info(&self) -> RecordingInfo {
        RecordingInfo::ORDER_BY_ORDER
    }
}

/// Converts a framing error at an offset into a read error.
pub(crate) fn malformed(error: FramingError, offset: u64) -> ReadError {
    let what = match error {
        FramingError::UnknownType { message_type, .. } => {
            format!("message type {message_type:#04x}, whose length is not known,")
        }
        _ => "a length field that is not zero, unlike those before,".to_owned(),
    };
    ReadError::malformed(Position::Byte(offset), what)
}

/// The event of a message, and the ticker if the message has one.
fn kind(message: &Message<'_>) -> (EventKind, Option<Stock>) {
    let or_invalid =
        |kind: Option<EventKind>| kind.unwrap_or(EventKind::Ignored(IgnoredReason::InvalidField));
    match message {
        Message::AddOrder(m) => (
            or_invalid(add(m.order_ref.get().0, m.side.side(), m.price.get(), m.shares.get())),
            Some(m.stock),
        ),
        Message::AddOrderMpid(m) => (
            or_invalid(add(m.order_ref.get().0, m.side.side(), m.price.get(), m.shares.get())),
            Some(m.stock),
        ),
        Message::OrderExecuted(m) => (fill(m.order_ref.get().0, m.executed_shares.get(), None, false), None),
        // An execution marked as not printable is reported by the trade message of its cross.
        Message::OrderExecutedWithPrice(m) => {
            let (order_id, qty) = (m.order_ref.get().0, m.executed_shares.get());
            (fill(order_id, qty, Some(m.execution_price.get()), m.printable == YesNo::NO), None)
        }
        Message::OrderCancel(m) => {
            let (order_id, by) = (m.order_ref.get().0, m.canceled_shares.get());
            (EventKind::Reduce { order_id, by, level: None }, None)
        }
        Message::OrderDelete(m) => {
            (EventKind::Delete { order_id: m.order_ref.get().0, level: None, qty: None }, None)
        }
        Message::OrderReplace(m) => {
            let (order_id, new_order_id) = (m.original_order_ref.get().0, m.new_order_ref.get().0);
            (EventKind::Replace { order_id, new_order_id, price: m.price.get(), qty: m.shares.get() }, None)
        }
        // The side field of this message has been a constant since 2014 and has no meaning.
        Message::NonCrossTrade(m) => (trade(m.price.get(), m.shares.get(), true), Some(m.stock)),
        Message::CrossTrade(m) => (trade(m.cross_price.get(), m.shares.get(), false), Some(m.stock)),
        Message::StockTradingAction(m) => {
            let status = m.trading_state.state().map(|state| EventKind::Status(Status::Trading(state)));
            (or_invalid(status), Some(m.stock))
        }
        Message::SystemEvent(m) => {
            (or_invalid(m.event_code.stage().map(|stage| EventKind::Status(Status::System(stage)))), None)
        }
        Message::StockDirectory(m) => (EventKind::Ignored(IgnoredReason::OtherRecord), Some(m.stock)),
        Message::BrokenTrade(_) => (EventKind::Ignored(IgnoredReason::BrokenTrade), None),
        Message::Unknown(_) => (EventKind::Ignored(IgnoredReason::MalformedMessage), None),
        _ => (EventKind::Ignored(IgnoredReason::OtherRecord), None),
    }
}

fn add(order_id: u64, side: Option<Side>, price: Price, qty: Qty) -> Option<EventKind> {
    side.map(|side| EventKind::Add { order_id, level: Level { side, price }, qty })
}

const fn fill(order_id: u64, qty: Qty, price: Option<Price>, in_auction: bool) -> EventKind {
    EventKind::Fill { order_id, qty, side: None, price, in_auction }
}

const fn trade(price: Price, qty: Qty, is_hidden: bool) -> EventKind {
    EventKind::Trade { order_id: 0, price, qty, aggressor: None, is_hidden }
}
