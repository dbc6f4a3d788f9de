//! Time to decode a book change and an order reply: the best of several rounds, in one thread.
//!
//! `cargo bench -p tickpath-deribit`, or `cargo bench -p tickpath-deribit -- order` to select by name.
#![allow(clippy::disallowed_methods, reason = "it measures time and prints")]

use std::hint::black_box;
use std::time::Instant;

use tickpath_deribit::envelope::{Id, Inbound, Visitor};
use tickpath_deribit::messages::{BookLevels, BookUpdate, Order, OrderReply};
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;

const BOOK: &str = concat!(
    r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.BTC-PERPETUAL.100ms","data":{"#,
    r#""type":"change","timestamp":1622627435737,"prev_change_id":31479598064,"#,
    r#""instrument_name":"BTC-PERPETUAL","change_id":31479598217,"bids":[["delete",36779.0,0.0],"#,
    r#"["new",36809.5,254870.0]],"asks":[["delete",37462.5,0.0],["change",37394.0,42670.0]]}}}"#
);
/// An immediately filled order, with its trade.
const ORDER: &str = concat!(
    r#"{"jsonrpc":"2.0","id":3,"result":{"order":{"label":"YwACqyGDa0UAAQAAAAAA","price":92100.0,"#,
    r#""user_id":10580,"amount":10.0,"direction":"buy","time_in_force":"immediate_or_cancel","#,
    r#""instrument_name":"BTC-PERPETUAL","web":false,"api":false,"order_id":"74365704227","#,
    r#""creation_timestamp":1765505266849,"replaced":false,"filled_amount":10.0,"#,
    r#""last_update_timestamp":1765505266849,"post_only":false,"reduce_only":false,"#,
    r#""average_price":92037.0,"mmp":false,"contracts":1.0,"order_state":"filled","order_type":"limit","#,
    r#""is_liquidation":false,"risk_reducing":false},"trades":[{"label":"YwACqyGDa0UAAQAAAAAA","#,
    r#""timestamp":1765505266849,"state":"filled","price":92037.0,"user_id":10580,"amount":10.0,"#,
    r#""direction":"buy","index_price":92035.22,"instrument_name":"BTC-PERPETUAL","#,
    r#""trade_seq":123024306,"api":false,"mark_price":92035.41,"order_id":"74365704227","#,
    r#""matching_id":null,"tick_direction":0,"profit_loss":-4e-07,"post_only":false,"#,
    r#""reduce_only":false,"self_trade":false,"mmp":false,"contracts":1.0,"trade_id":"208465104","#,
    r#""fee_currency":"BTC","fee":5e-08,"order_type":"limit","risk_reducing":false,"liquidity":"T"}]},"#,
    r#""usIn":1767978363485278,"usOut":1767978363495053,"usDiff":9775,"testnet":false}"#
);
/// Number of rounds per measurement; a test runs only one.
const ROUNDS: usize = 1_000;
const REPEATS: u32 = 1_000;

/// Decodes the order and each of its trades.
#[derive(Default)]
struct OrderVisitor<'a> {
    order: Order<'a>,
    trades: usize,
}

impl<'a> Visitor<'a> for OrderVisitor<'a> {
    fn on_result(&mut self, _: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        self.trades = 0;
        OrderReply::read_each(result, &mut self.order, |trade| {
            self.trades += usize::from(!black_box(trade).api);
        })?;
        black_box(&self.order);
        Ok(())
    }
}

struct BookVisitor {
    levels: BookLevels,
    change_id: u64,
}

impl<'a> Visitor<'a> for BookVisitor {
    fn on_data(&mut self, _: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        self.change_id = BookUpdate::read(data, &mut self.levels)?.change_id;
        Ok(())
    }
}

/// Best and median round, in tenths of a nanosecond per call.
fn measure(name: &str, len: usize, mut call: impl FnMut()) {
    let mut words = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    if words.peek().is_some() && !words.any(|word| name.contains(&word)) {
        call();
        return;
    }
    let count = if std::env::args().any(|arg| arg == "--bench") { ROUNDS } else { 1 };
    let mut rounds: Vec<u128> = (0..count)
        .map(|_| {
            let start = Instant::now();
            (0..REPEATS).for_each(|_| call());
            start.elapsed().as_nanos() * 10 / u128::from(REPEATS)
        })
        .collect();
    rounds.sort_unstable();
    let (best, median) = (rounds[0], rounds[count / 2]);
    println!(
        "{name} ({len} B): best {}.{} ns, median {}.{} ns",
        best / 10,
        best % 10,
        median / 10,
        median % 10
    );
}

fn main() {
    let mut book = BookVisitor { levels: BookLevels::with_capacity(16), change_id: 0 };
    measure("book change, one pass", BOOK.len(), || {
        black_box(Inbound::parse_with(black_box(BOOK), &mut book)).expect("the message is good");
    });
    assert_eq!((book.change_id, book.levels.bids.len()), (31_479_598_217, 2));
    measure("book change, with its UTF-8 checked and two passes", BOOK.len(), || {
        let inbound = Inbound::parse(black_box(BOOK).as_bytes()).expect("the message is good");
        let Inbound::Notification(notification) = inbound else { panic!("a notification") };
        black_box(BookUpdate::read(&mut notification.data.scanner(), &mut book.levels)).expect("a book");
    });
    let mut order = OrderVisitor::default();
    measure("order reply and its trade, one pass", ORDER.len(), || {
        black_box(Inbound::parse_with(black_box(ORDER), &mut order)).expect("the message is good");
    });
    assert_eq!(order.trades, 1);
    measure("order reply, checked only", ORDER.len(), || {
        black_box(Inbound::parse(black_box(ORDER).as_bytes())).expect("the message is good");
    });
}
