//! Quick and step-by-step readers agree on every message, valid or broken, and on the position of errors.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use tickpath_deribit::envelope::{Id, Inbound, Visitor};
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    AccountSummary, Auth, Book, BookLevel, BookLevels, BookSummary, BookUpdate, EditOrder, GroupedBook,
    Instrument, MassQuote, MassQuoteResult, Order, OrderBook, OrderReply, PlaceOrder, Position, PublicTrade,
    Quote, Ticker, TransactionLog, UserChanges, UserTrade,
};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;

/// Recorded frames of the venue.
const FRAMES: &[&str] = &[
    include_str!("data/channels.jsonl"),
    include_str!("data/http_get_instrument.json"),
    include_str!("data/http_get_instrument_option.json"),
    include_str!("data/http_get_last_trades_perpetual_with_combo_tags.json"),
    include_str!("data/http_get_order_book.json"),
    include_str!("data/recorded_options.jsonl"),
    include_str!("data/user_channels.jsonl"),
    include_str!("data/ws_error.json"),
    include_str!("data/ws_order_buy_response.json"),
    include_str!("data/ws_order_cancel_response.json"),
    include_str!("data/ws_order_stop_market_no_filled_amount.json"),
    include_str!("data/ws_portfolio.json"),
    include_str!("data/ws_quote.json"),
    include_str!("data/ws_subscribe_response.json"),
    include_str!("data/ws_ticker.json"),
    include_str!("data/ws_trades.json"),
];
/// Number of mutated copies per frame.
const MUTATIONS: u32 = 60;
/// Text to insert into frames: forms that are read step by step, and invalid JSON.
const PIECES: &[&str] = &[
    " ",
    "\n",
    ",",
    "}",
    "]",
    "{",
    "[",
    "\"",
    "\\",
    "\\n",
    "\\u00e9",
    "\u{e9}",
    "0",
    "-",
    ".",
    ".50",
    "e3",
    "E-7",
    "00",
    "1234567",
    "123456789012345678",
    "99999999999999999999",
    "null",
    "true",
    "\"\"",
    "\"x\":1,",
    "\"price\":\"market_price\",",
    "\"label\":\"a\\\"b\",",
    "\"amount\":0.0100,",
    "\u{7}",
];

/// Compares the results of both readers for a message, and their positions.
fn compare<'a, T: Field<'a> + PartialEq + Debug>(text: &'a str) {
    let read = |mut scanner: Scanner<'a>| T::read(&mut scanner).map(|value| (value, scanner.at()));
    let scanner = Scanner::new(text);
    assert_eq!(read(scanner.clone()), read(scanner.clone().plain()), "{text}");
    assert_eq!(read(scanner.clone().strict()), read(scanner.strict().plain()), "{text}");
}

fn compare_all(text: &str) {
    compare::<OrderReply<'_>>(text);
    compare::<Order<'_>>(text);
    compare::<UserTrade<'_>>(text);
    compare::<UserChanges<'_>>(text);
    compare::<Position<'_>>(text);
    compare::<AccountSummary<'_>>(text);
    compare::<Instrument<'_>>(text);
    compare::<Ticker<'_>>(text);
    compare::<Quote<'_>>(text);
    compare::<OrderBook<'_>>(text);
    compare::<Book<'_>>(text);
    compare::<GroupedBook<'_>>(text);
    compare::<Auth<'_>>(text);
    compare::<PlaceOrder<'_>>(text);
    compare::<EditOrder<'_>>(text);
    compare::<List<'_, PublicTrade<'_>>>(text);
    compare::<List<'_, Text<'_>>>(text);
    compare::<BookSummary<'_>>(text);
    compare::<MassQuote<'_>>(text);
    compare::<MassQuoteResult<'_>>(text);
    compare::<TransactionLog<'_>>(text);
    let update = |mut scanner: Scanner<'_>| {
        let mut levels = BookLevels::default();
        let update = BookUpdate::read(&mut scanner, &mut levels);
        format!("{:?}", update.map(|update| (update, levels, scanner.at())))
    };
    assert_eq!(update(Scanner::new(text)), update(Scanner::new(text).plain()), "{text}");
    let each = |mut scanner: Scanner<'_>| {
        let mut trades = Vec::new();
        let mut order = Order::default();
        let read = OrderReply::read_each(&mut scanner, &mut order, |trade| trades.push(trade.clone()));
        format!("{:?}", read.map(|()| (order, trades, scanner.at())))
    };
    assert_eq!(each(Scanner::new(text)), each(Scanner::new(text).plain()), "{text}");
}

/// Reads the content of a frame in the same pass.
#[derive(Default)]
struct OnePass(String);

impl<'a> Visitor<'a> for OnePass {
    fn on_result(&mut self, id: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        self.0 += &format!("{id:?} {:?}", OrderReply::read(result)?);
        Ok(())
    }

    fn on_data(&mut self, channel: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        let mut levels = BookLevels::default();
        let update = BookUpdate::read(data, &mut levels)?;
        self.0 += &format!("{channel} {update:?} {levels:?}");
        Ok(())
    }
}

/// A visitor that requires only valid JSON of results and data.
struct Unread;

impl Visitor<'_> for Unread {}

fn compare_frame(frame: &str) {
    let read = |scanner: Scanner<'_>| {
        let mut one_pass = OnePass::default();
        let inbound = format!("{:?}", Inbound::read(scanner, &mut one_pass));
        (inbound, one_pass.0)
    };
    assert_eq!(read(Scanner::new(frame)), read(Scanner::new(frame).plain()), "{frame}");
    assert_eq!(
        Inbound::read(Scanner::new(frame), &mut Unread),
        Inbound::read(Scanner::new(frame).plain(), &mut Unread),
        "{frame}"
    );
}

/// The result or the data of a frame.
fn inner(frame: &str) -> &str {
    let at = frame.find("\"result\":").or_else(|| frame.find("\"data\":")).unwrap_or(0);
    let at = at + frame[at..].find(':').map_or(0, |colon| colon + 1);
    &frame[at..]
}

/// A copy of a frame with a piece inserted, removed or replaced.
fn mutated(frame: &str, random: u64) -> String {
    let place = |bits: u64| {
        let mut place = (bits % (frame.len() as u64 + 1)) as usize;
        while !frame.is_char_boundary(place) {
            place -= 1;
        }
        place
    };
    let (start, piece) = (place(random >> 32), PIECES[random as usize % PIECES.len()]);
    let end = place((start as u64 + (random >> 8) % 9).min(frame.len() as u64));
    match random >> 16 & 3 {
        0 => format!("{}{piece}{}", &frame[..start], &frame[start..]),
        1 => format!("{}{}", &frame[..start.min(end)], &frame[end.max(start)..]),
        2 => format!("{}{piece}{}", &frame[..start.min(end)], &frame[end.max(start)..]),
        _ => frame[..start].to_owned(),
    }
}

#[test]
fn every_message_is_read_alike() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    for frame in FRAMES.iter().flat_map(|file| file.lines()) {
        compare_frame(frame);
        compare_all(inner(frame));
        for element in inner(frame).match_indices(":[{").map(|(at, _)| &inner(frame)[at + 2..]) {
            compare_all(element);
        }
        for _ in 0..MUTATIONS {
            let frame = mutated(frame, next());
            compare_frame(&frame);
            compare_all(inner(&frame));
        }
    }
}

#[test]
fn members_come_in_any_order_once_or_twice() {
    let order = concat!(
        r#"{"order_id":"1","amount":10,"x":[{}],"instrument_name":"A","label":"l","direction":"sell","api":true,"#,
        r#""creation_timestamp":1,"order_state":"open","label":"a\"b","last_update_timestamp":2,"order_type":"new type","#,
        r#""trigger_price":"","average_price":null,"amount":2.50}"#
    );
    compare_all(order);
    let read = Order::read(&mut Scanner::new(order)).unwrap();
    assert_eq!(
        (read.label_text().to_string(), read.amount.to_string()),
        ("a\"b".to_owned(), "2.5".to_owned())
    );
    assert_eq!((read.trigger_price, read.average_price, read.api, read.web), (None, None, true, false));
    // Nesting one level too deep, and just within the limit, in a skipped value.
    for depth in [62, 63, 64] {
        let text = order.replace("[{}]", &("[".repeat(depth) + &"]".repeat(depth)));
        compare_all(&text);
        assert_eq!(Order::read(&mut Scanner::new(&text)).is_ok(), depth < 64);
    }
}

#[test]
fn every_number_is_read_alike() {
    let signs = ["", "-", "--", "+"];
    let wholes =
        ["", "0", "00", "7", "42", "0012", "36779", "1234567", "12345678", "123456789", "1234567890123456"];
    let long = ["12345678901234567", "999999999999999999", "9223372036854775807", "9223372036854775808"];
    let fractions =
        ["", ".", ".0", ".00", ".5", ".50", ".05", ".0500", ".1234567", ".123456789012345678", ".x", ".-1"];
    let exponents = ["", "e3", "E-7", "e+2", "e", "e-", "e400", "x"];
    let ends = ["", ",", "}", "]", " ", ",\"tick_direction\":12345678"];
    for sign in signs {
        for whole in wholes.iter().chain(&long) {
            for fraction in fractions {
                for exponent in exponents {
                    for end in ends {
                        let text = format!("{sign}{whole}{fraction}{exponent}{end}");
                        compare::<Decimal>(&text);
                        compare::<Number<'_>>(&text);
                        compare::<u64>(&text);
                        compare::<u8>(&text);
                        compare::<i64>(&text);
                        compare::<Option<Decimal>>(&text);
                        let level = format!("[\"new\",{text},{text}]");
                        compare::<BookLevel>(&level);
                    }
                }
            }
        }
    }
}
