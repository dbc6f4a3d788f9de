//! LOBSTER message files.
//!
//! Source: LOBSTER "Message file": `time,type,order id,size,price,direction`, one event a line; time in
//! seconds after midnight with up to nine decimals, price in 10^-4, direction 1 for a buy and -1 for a
//! sell limit order - of the resting order, in an execution. A level-n file has only the events that
//! touch the best n levels.

use std::io::Read;

use tickpath_types::{Price, Qty, Side, TradingState};

use crate::window::Window;
use crate::{
    Depth, EventKind, EventReader, Level, Position, ReadError, RecordedEvent, RecordingInfo, Status, TimeBase,
};

/// Longest line that is accepted, in bytes.
pub const LOBSTER_LINE_LEN_MAX: usize = 256;

/// Reads a LOBSTER message file, already decompressed, with or without a header.
pub struct LobsterReader<R> {
    window: Window<R>,
    symbols: Vec<String>,
    depth: Depth,
    /// The line that comes next, counted from 1.
    line: u64,
    is_finished: bool,
}

impl<R: Read> LobsterReader<R> {
    /// A reader of one instrument's messages; the file itself names neither it nor its depth.
    pub fn new(reader: R, symbol: &str, depth: Depth) -> Self {
        LobsterReader {
            window: Window::new(reader),
            symbols: vec![symbol.to_owned()],
            depth,
            line: 1,
            is_finished: false,
        }
    }

    /// The length of the next line without its end, and whether it has one.
    fn next_line(&mut self) -> Result<Option<(usize, bool)>, ReadError> {
        loop {
            let data = self.window.data();
            if let Some(len) = data.iter().take(LOBSTER_LINE_LEN_MAX + 1).position(|byte| *byte == b'\n') {
                return Ok(Some((len, true)));
            }
            if data.len() > LOBSTER_LINE_LEN_MAX {
                let what = format!("a line of more than {LOBSTER_LINE_LEN_MAX} bytes");
                return Err(ReadError::malformed(Position::Line(self.line), what));
            }
            if !self.window.fill()? {
                let len = self.window.data().len();
                return Ok((len != 0).then_some((len, false)));
            }
        }
    }
}

impl<R: Read> EventReader for LobsterReader<R> {
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, ReadError> {
        while !self.is_finished {
            let (len, is_ended) = match self.next_line() {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => {
                    self.is_finished = true;
                    return Err(error);
                }
            };
            let line = self.window.data()[..len].trim_ascii_end();
            let is_blank = line.is_empty() || (self.line == 1 && is_header(line));
            let event = parse(line);
            let offset = self.window.offset();
            self.window.consume(len + usize::from(is_ended));
            let line = self.line;
            self.line += 1;
            match event {
                _ if is_blank => {}
                Ok(event) => return Ok(Some(event)),
                Err(_) if !is_ended => {
                    self.is_finished = true;
                    return Err(ReadError::Truncated { offset });
                }
                Err(what) => return Err(ReadError::malformed(Position::Line(line), what)),
            }
        }
        self.is_finished = true;
        Ok(None)
    }

    fn position(&self) -> Position {
        Position::Line(self.line.saturating_sub(1).max(1))
    }

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn info(&self) -> RecordingInfo {
        RecordingInfo { time_base: TimeBase::Midnight, depth: self.depth, sums_fills: false }
    }
}

/// True for a line of column names; LOBSTER itself writes none, collections of its files do.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_alphabetic) && line.contains(&b',')
}

/// Reads one line; the error says what is wrong with it.
pub(crate) fn parse(line: &[u8]) -> Result<RecordedEvent, &'static str> {
    let mut fields = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut next = || fields.next().ok_or("fewer than six columns");
    let ts_ns = time_ns(next()?).ok_or("a time that is not seconds after midnight")?;
    let event_type = integer(next()?).ok_or("a type that is not a number")?;
    let order_id = integer(next()?).and_then(|id| u64::try_from(id).ok()).ok_or("an order id below zero")?;
    let qty = integer(next()?).and_then(|size| u64::try_from(size).ok()).ok_or("a size below zero")?;
    let price = Price(integer(next()?).ok_or("a price that is not a number")?);
    let side = match next()? {
        b"1" => Side::Buy,
        b"-1" => Side::Sell,
        _ => return Err("a direction that is neither 1 nor -1"),
    };
    let (qty, level) = (Qty(qty), Level { side, price });
    let kind = match event_type {
        1 => EventKind::Add { order_id, level, qty },
        2 => EventKind::Reduce { order_id, by: qty, level: Some(level) },
        3 => EventKind::Delete { order_id, level: Some(level), qty: Some(qty) },
        4 => EventKind::Fill { order_id, qty, side: Some(side), price: Some(price), in_auction: false },
        5 => EventKind::Trade { order_id: 0, price, qty, aggressor: Some(side.opposite()), is_hidden: true },
        6 => EventKind::Trade { order_id: 0, price, qty, aggressor: None, is_hidden: false },
        7 => EventKind::Status(Status::Trading(match price.0 {
            -1 => TradingState::Halted,
            0 => TradingState::QuotationOnly,
            _ => TradingState::Trading,
        })),
        _ => return Err("a type that is not 1 to 7"),
    };
    Ok(RecordedEvent { ts_ns, instrument: 0, ends_transaction: true, kind })
}

fn integer(field: &[u8]) -> Option<i64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Decimal seconds as nanoseconds; decimals beyond the ninth are noise of floating point and dropped.
fn time_ns(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut ns = 0_u64;
    for place in 0..9 {
        ns = ns * 10 + decimals.as_bytes().get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_meaning() {
        let level = Level { side: Side::Sell, price: Price(2_238_200) };
        let kind = |event_type: &str| {
            parse(format!("34200.01746,{event_type},77,5,2238200,-1").as_bytes()).unwrap().kind
        };
        assert_eq!(kind("1"), EventKind::Add { order_id: 77, level, qty: Qty(5) });
        assert_eq!(kind("2"), EventKind::Reduce { order_id: 77, by: Qty(5), level: Some(level) });
        assert_eq!(kind("3"), EventKind::Delete { order_id: 77, level: Some(level), qty: Some(Qty(5)) });
        assert!(matches!(kind("4"), EventKind::Fill { order_id: 77, side: Some(Side::Sell), .. }));
        assert!(matches!(kind("5"), EventKind::Trade { is_hidden: true, aggressor: Some(Side::Buy), .. }));
        assert!(matches!(kind("6"), EventKind::Trade { is_hidden: false, aggressor: None, .. }));
        let halt = parse(b"35000,7,0,0,-1,-1").unwrap();
        assert_eq!(halt.kind, EventKind::Status(Status::Trading(TradingState::Halted)));
        assert_eq!(halt.ts_ns, 35_000_000_000_000);
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(time_ns(b"34200.01746"), Some(34_200_017_460_000));
        assert_eq!(time_ns(b"34200.189607670"), Some(34_200_189_607_670));
        assert_eq!(time_ns(b"1.12345678912"), Some(1_123_456_789));
        for bad in [&b""[..], b"-1.0", b"1.2.3", b"x", b"1.-2", b"99999999999999999999"] {
            assert_eq!(time_ns(bad), None);
        }
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_is_read() {
        let text =
            b"Time,Type,OrderId,Size,Price,Direction\r\n\n1,1,5,5,100,1\r\n1,9,5,5,100,1\n2,3,5,5,100,1";
        let mut reader = LobsterReader::new(&text[..], "ABC", Depth::Full);
        assert!(reader.next_event().unwrap().is_some());
        let error = reader.next_event().unwrap_err();
        assert!(matches!(error, ReadError::Malformed { position: Position::Line(4), .. }), "{error}");
        assert_eq!(reader.next_event().unwrap().map(|event| event.ts_ns), Some(2_000_000_000));
        assert!(reader.next_event().unwrap().is_none());
    }

    #[test]
    fn a_line_may_be_as_long_as_the_bound() {
        let line = |len: usize| {
            let mut line = b"1,1,5,5,100,1,".to_vec();
            line.resize(len, b'x');
            line.push(b'\n');
            line
        };
        let at_bound = line(LOBSTER_LINE_LEN_MAX);
        assert!(LobsterReader::new(&at_bound[..], "ABC", Depth::Full).next_event().unwrap().is_some());
        let beyond = line(LOBSTER_LINE_LEN_MAX + 1);
        let mut reader = LobsterReader::new(&beyond[..], "ABC", Depth::Full);
        assert!(matches!(reader.next_event(), Err(ReadError::Malformed { .. })));
        assert!(reader.next_event().unwrap().is_none());
    }
}
