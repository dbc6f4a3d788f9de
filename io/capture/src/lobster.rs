//! LOBSTER message files.
//!
//! Source: LOBSTER "Message file": `time,type,order id,size,price,direction`, one event a line; time in
//! seconds after midnight with up to nine decimals, price in 10^-4, direction 1 for a buy and -1 for a
//! sell limit order (in an execution, that of the resting order). A level-n file has only the events that
//! touch the best n levels.

use std::hint::select_unpredictable;
use std::io::Read;

use tickpath_lockfree::cpu;
use tickpath_types::{Price, Qty, Side, TradingState};

use crate::digits::{self, WORD_LEN};
use crate::window::Window;
use crate::{
    Depth, EventKind, EventReader, Level, Position, ReadError, RecordedEvent, RecordingInfo, Status,
};

/// Maximum length of a line in bytes.
pub const LOBSTER_LINE_LEN_MAX: usize = 256;

/// Reads a LOBSTER message file, already decompressed, with or without a header.
pub struct LobsterReader<R> {
    window: Window<R>,
    symbols: Vec<String>,
    depth: Depth,
    /// Number of the next line, counted from 1.
    line: u64,
    is_finished: bool,
}

impl<R: Read> LobsterReader<R> {
    /// Creates a reader of one instrument's file. Pass `symbol` and `depth`: the file contains neither.
    pub fn new(reader: R, symbol: &str, depth: Depth) -> Self {
        LobsterReader {
            window: Window::new(reader),
            symbols: vec![symbol.to_owned()],
            depth,
            line: 1,
            is_finished: false,
        }
    }

    /// Reads the next event from a line that [`parse_usual`] does not accept.
    #[cold]
    #[inline(never)]
    fn read_unusual(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError> {
        while !self.is_finished {
            let found = self.window.next_line(self.line, LOBSTER_LINE_LEN_MAX);
            self.is_finished = !matches!(found, Ok(Some(_)));
            let Some((len, is_ended)) = found? else { break };
            let line = self.window.data()[..len].trim_ascii_end();
            let is_blank = line.is_empty() || (self.line == 1 && is_header(line));
            let parsed = parse(line);
            let offset = self.window.offset();
            self.window.consume(len + usize::from(is_ended));
            let line = self.line;
            self.line += 1;
            match parsed {
                _ if is_blank => {}
                Ok(parsed) => {
                    *event = parsed;
                    return Ok(true);
                }
                Err(_) if !is_ended => {
                    self.is_finished = true;
                    return Err(ReadError::Truncated { offset });
                }
                Err(what) => return Err(ReadError::malformed(Position::Line(line), what)),
            }
        }
        Ok(false)
    }
}

impl<R: Read> EventReader for LobsterReader<R> {
    #[inline(always)]
    fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError> {
        if !self.is_finished
            && let Some((usual, len)) = parse_usual(self.window.data())
        {
            *event = usual;
            self.window.consume(len);
            self.line += 1;
            return Ok(true);
        }
        self.read_unusual(event)
    }

    fn position(&self) -> Position {
        Position::Line(self.line.saturating_sub(1).max(1))
    }

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn info(&self) -> RecordingInfo {
        RecordingInfo { depth: self.depth, ..RecordingInfo::ORDER_BY_ORDER }
    }
}

/// True for a line of column names. LOBSTER writes none, but collections of its files have them.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_alphabetic) && line.contains(&b',')
}

/// Maximum offset of the end of the fifth column in a line that [`parse_usual`] reads.
const USUAL_LEN_MAX: usize = 56;
/// Number of bytes that [`parse_usual`] requires: it reads whole words, also past the end of a number.
const USUAL_TEXT_LEN: usize = USUAL_LEN_MAX + 3 * WORD_LEN;

/// Parses the line at the start of `text` if it has the usual form; also returns its length with the newline.
/// The usual form is six columns of digits; only the direction may have a sign. The order id has up to 16
/// digits, the time up to nine decimals, and other numbers up to 8 digits. The result is that of [`parse`];
/// `None` for other lines, which [`parse`] must handle.
#[inline(always)]
fn parse_usual(text: &[u8]) -> Option<(RecordedEvent, usize)> {
    let text = text.first_chunk::<USUAL_TEXT_LEN>()?;
    let word = |at: usize| text.get(at..)?.first_chunk::<WORD_LEN>().copied();
    // Find the ends of all columns first, so that the CPU can parse the columns in parallel.
    let mut others = cpu::non_digits(text.first_chunk::<64>()?);
    let mut next_other = || {
        let at = others.trailing_zeros() as usize;
        others &= others.wrapping_sub(1);
        at
    };
    let (point, time, kind, id) = (next_other(), next_other(), next_other(), next_other());
    let (size, price) = (next_other(), next_other());
    let is = |at: usize, byte: u8| text.get(at).is_some_and(|found| *found == byte);
    let is_usual = is(point, b'.') && [time, kind, id, size, price].into_iter().all(|at| is(at, b','));
    // Number of decimals of the time, and of digits of the order id, the size and the price.
    let decimals_len = time.wrapping_sub(point + 1);
    let (id_len, size_len, price_len) =
        (id.wrapping_sub(kind + 1), size.wrapping_sub(id + 1), price.wrapping_sub(size + 1));
    let is_short = |len: usize| (1..=WORD_LEN).contains(&len);
    let are_short = is_short(point) && is_short(size_len) && is_short(price_len);
    if !(is_usual
        && are_short
        && price < USUAL_LEN_MAX
        && decimals_len <= 9
        && kind == time + 2
        && (1..=2 * WORD_LEN).contains(&id_len))
    {
        return None;
    }
    // No branch on the side or on trailing zeros of the time: a CPU cannot predict them.
    let is_sell = is(price + 1, b'-');
    let direction = price + 1 + usize::from(is_sell);
    let end = direction + 1 + usize::from(is(direction + 1, b'\r'));
    if !(is(direction, b'1') && is(end, b'\n')) {
        return None;
    }
    let seconds = digits::number(word(0)?, point as u32);
    let ninth = if decimals_len == 9 { u64::from(*text.get(point + 9)? - b'0') } else { 0 };
    let ns = digits::decimals(word(point + 1)?, decimals_len as u32) * 10 + ninth;
    let event_type = i64::from(text.get(time + 1)? - b'0');
    let id_high = digits::number(word(kind + 1)?, (id_len as u32).saturating_sub(WORD_LEN as u32));
    let id_low_at = kind + 1 + id_len.saturating_sub(WORD_LEN);
    let id_low = digits::number(word(id_low_at)?, id_len.min(WORD_LEN) as u32);
    let qty = Qty(digits::number(word(id + 1)?, size_len as u32));
    let price = Price(digits::number(word(size + 1)?, price_len as u32) as i64);
    let side = select_unpredictable(is_sell, Side::Sell, Side::Buy);
    let order_id = id_high * 100_000_000 + id_low;
    let event = event(seconds * 1_000_000_000 + ns, event_type, order_id, qty, Level { side, price })?;
    Some((event, end + 1))
}

/// Parses one line; the error describes the problem.
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
    event(ts_ns, event_type, order_id, Qty(qty), Level { side, price }).ok_or("a type that is not 1 to 7")
}

/// Makes an event from the columns of a line; `None` for an unknown type.
#[inline(always)]
fn event(ts_ns: u64, event_type: i64, order_id: u64, qty: Qty, level: Level) -> Option<RecordedEvent> {
    let Level { side, price } = level;
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
        _ => return None,
    };
    Some(RecordedEvent { ts_ns, instrument: 0, ends_transaction: true, is_snapshot: false, kind })
}

fn integer(field: &[u8]) -> Option<i64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Parses decimal seconds into nanoseconds. Drops decimals beyond the ninth, which are floating-point noise.
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
    use tickpath_types::Rng;

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

    /// Generates a random line. Most columns are valid and short; some are too long or invalid.
    fn random_line(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
        const ODD: [&str; 14] = [
            "",
            "-1",
            "+1",
            "-",
            "0",
            "01",
            "1 ",
            "x",
            "1.5",
            ".",
            "\u{e9}",
            "18446744073709551616",
            "1\r",
            "-1\r",
        ];
        let mut digits = |len_max: usize| -> String {
            let len = 1 + random(len_max);
            (0..len).map(|_| char::from(b'0' + random(10) as u8)).collect()
        };
        let (seconds, decimals) = (digits(9), digits(10));
        let mut columns = vec![
            format!("{seconds}.{decimals}"),
            digits(1),
            digits(17),
            digits(9),
            digits(9),
            "1".to_owned(),
        ];
        if random(2) == 0 {
            columns[5] = "-1".to_owned();
        }
        match random(8) {
            0 => columns[random(6)] = ODD[random(ODD.len())].to_owned(),
            1 => columns.truncate(random(6)),
            2 => columns.push("null".to_owned()),
            _ => {}
        }
        let mut line = columns.join(",").into_bytes();
        if random(4) == 0 && !line.is_empty() {
            let at = random(line.len());
            line[at] = random(256) as u8;
        }
        line
    }

    #[test]
    fn usual_lines_are_parsed_like_any_line() {
        let mut rng = Rng::new(1);
        let mut random = |below: usize| rng.below(below as u64) as usize;
        let (mut usual, mut unusual) = (0, 0);
        for _ in 0..100_000 {
            let line = random_line(&mut random);
            let mut text = line.clone();
            text.extend([&b"\n"[..], b"\r\n", b",\n", b""][random(4)]);
            let what_follows = [b'1', b',', b'\n', b'.'][random(4)];
            text.resize(text.len() + USUAL_TEXT_LEN, what_follows);
            let Some((event, len)) = parse_usual(&text) else {
                unusual += 1;
                continue;
            };
            usual += 1;
            assert_eq!(text[len - 1], b'\n');
            let line = &text[..len - 1];
            assert!(!line.contains(&b'\n'));
            assert_eq!(parse(line.trim_ascii_end()), Ok(event), "{}", String::from_utf8_lossy(line));
        }
        assert!(usual > 10_000 && unusual > 10_000, "{usual} {unusual}");
    }

    #[test]
    fn a_usual_line_may_have_columns_of_maximum_length() {
        let usual = |line: &str| {
            let mut text = line.as_bytes().to_vec();
            text.resize(USUAL_TEXT_LEN.max(line.len()), b'0');
            parse_usual(&text)
        };
        let longest = "12357599.123456789,4,1234567890123456,12345678,12345678,-1\r\n";
        assert_eq!(longest.find(",-1"), Some(USUAL_LEN_MAX - 1));
        assert_eq!(usual(longest).map(|(_, len)| len), Some(longest.len()));
        for line in [
            "34200.01746,1,16113575,18,5853300,1\n",
            "34200.017459617,3,0,1,2238200,-1\n",
            "0.,7,1,0,0,1\n",
            "99999999.5,1,1,1,1,-1\r\n",
        ] {
            let (event, len) = usual(line).unwrap();
            assert_eq!((parse(line.trim_ascii_end().as_bytes()), line.len()), (Ok(event), len), "{line}");
        }
        for line in [
            "100000000.5,1,1,1,1,1\n",
            "1.1234567890,1,1,1,1,1\n",
            "1.5,1,12345678901234567,1,1,1\n",
            "1.5,1,1,123456789,1,1\n",
            "1.5,1,1,1,123456789,1\n",
            "35000,7,0,0,-1,-1\n",
            "35000.5,7,0,0,-1,-1\n",
            "1.5,8,1,1,1,1\n",
            "1.5,01,1,1,1,1\n",
            "1.5,1,1,1,1,1,0\n",
        ] {
            assert_eq!(usual(line), None, "{line}");
        }
    }
}
