//! Parsing of Deribit messages from the receive buffer into the data that a strategy reads.

use serde_json::Value;
use tickpath_deribit::envelope::{Id, Inbound, Visitor};
use tickpath_deribit::messages::{BookLevels, BookUpdate, Order, OrderReply};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;

use super::prelude::*;
use crate::measurement::RowSpec;
use crate::support::deribit_serde as peer;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("serde_json_book", "ns").note(
            "the messages of deribit_parse_book read by serde_json into derived structures: the same members, \
             numbers as f64, texts borrowed; the groups of both rows and of the crate sonic-rs take turns",
        ),
        #[cfg(feature = "peers")]
        row("sonic_rs_book", "ns").note("the same structures read by sonic-rs"),
        BOOK_ROW,
        row("serde_json_order", "ns").note(
            "the replies of deribit_parse_order read by serde_json, under the conditions of serde_json_book",
        ),
        #[cfg(feature = "peers")]
        row("sonic_rs_order", "ns").note("the same structures read by sonic-rs"),
        ORDER_ROW,
    ],
    open,
)];

const BOOK_ROW: RowSpec = beside_peer(
    row("deribit_parse_book", "ns")
        .note(
            "a change or snapshot of a book of Deribit, as recorded, out of the receive buffer: the frame and \
             all of its levels in one pass, numbers exact, each checked against another reader",
        )
        .reference("6.9 us published"),
    "sonic_rs_book",
    "serde_json_book",
);

const ORDER_ROW: RowSpec = beside_peer(
    row("deribit_parse_order", "ns")
        .note(
            "a reply to an order, as recorded, with its trade, more than 1 KB: the frame, the order and each of \
             its trades in one pass, numbers exact, checked against another reader",
        )
        .reference("6.9 us published"),
    "sonic_rs_order",
    "serde_json_order",
);

/// Sets the limit: the row of sonic-rs, with the goal of a third of its time, or that of serde_json in a build
/// without sonic-rs.
const fn beside_peer(spec: RowSpec, sonic_rs: &'static str, serde_json: &'static str) -> RowSpec {
    if cfg!(feature = "peers") {
        spec.limit(sonic_rs).goal(Goal::RatioAtMost(0.333))
    } else {
        spec.limit(serde_json)
    }
}

/// Recorded notifications of Deribit about order books, one per line.
const BOOKS: &str = include_str!("../../data/deribit-book-changes.jsonl");
/// Two order replies, one per line. The first, of 1,178 bytes, combines a recorded order, its recorded trade
/// and the envelope of a recorded reply. The second, for a resting order, is shorter.
const ORDERS: &str = include_str!("../../data/deribit-order-replies.jsonl");
/// Number of timed groups in a full round, and passes over the messages in each group.
const GROUPS: usize = 400;
const PASSES: u64 = 50;

/// A digest of the parsed values, so that the compiler cannot skip parsing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Digest {
    messages: u64,
    items: u64,
    sum: i64,
}

impl Digest {
    fn add(&mut self, number: Decimal) {
        self.add_item(number.mantissa().wrapping_add(number.scale().into()));
    }

    fn add_float(&mut self, number: f64) {
        self.add_item(number.to_bits() as i64);
    }

    fn add_item(&mut self, item: i64) {
        self.items += 1;
        self.sum = self.sum.wrapping_mul(31).wrapping_add(item);
    }
}

/// Digests of the messages in a file: of exact numbers, and of the peers' floating point numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    exact: Digest,
    float: Digest,
}

struct Books {
    levels: BookLevels,
    digest: Digest,
}

impl<'a> Visitor<'a> for Books {
    #[inline]
    fn on_data(&mut self, _: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        let update = black_box(BookUpdate::read(data, &mut self.levels)?);
        self.digest.messages += update.change_id & 1;
        for level in self.levels.bids.iter().chain(&self.levels.asks) {
            self.digest.add(level.price);
            self.digest.add(level.amount);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Orders<'a> {
    order: Order<'a>,
    digest: Digest,
}

impl<'a> Visitor<'a> for Orders<'a> {
    #[inline]
    fn on_result(&mut self, _: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        let digest = &mut self.digest;
        OrderReply::read_each(result, &mut self.order, |trade| {
            let trade = black_box(trade);
            digest.add(trade.price);
            digest.add(trade.amount);
        })?;
        let order = black_box(&self.order);
        digest.messages += order.creation_timestamp & 1;
        digest.add(order.amount);
        digest.add(order.filled());
        Ok(())
    }
}

/// Adds a notification as a peer reads it.
fn add_peer_book(notification: &peer::BookNotification<'_>, digest: &mut Digest) {
    let book = &black_box(notification).params.data;
    digest.messages += book.change_id & 1;
    for peer::Level(_, price, amount) in book.bids.iter().chain(&book.asks) {
        digest.add_float(*price);
        digest.add_float(*amount);
    }
}

/// Adds a reply as a peer reads it.
fn add_peer_order(reply: &peer::OrderReply<'_>, digest: &mut Digest) {
    let peer::OrderResult { order, trades } = &black_box(reply).result;
    for trade in trades {
        digest.add_float(trade.price);
        digest.add_float(trade.amount);
    }
    digest.messages += order.creation_timestamp & 1;
    digest.add_float(order.amount);
    digest.add_float(order.filled_amount.unwrap_or_default());
}

/// Computes the expected digests independently, from the frames that serde parses without a structure. `read`
/// appends the numbers of a frame to the vector; the lowest bit of its result is added to `messages`.
fn expected(
    lines: &str,
    read: impl for<'f> Fn(&'f Value, &mut Vec<&'f Value>) -> Option<u64>,
) -> anyhow::Result<Expected> {
    let Expected { mut exact, mut float } = Expected::default();
    for line in lines.lines() {
        let frame: Value = serde_json::from_str(line)?;
        let mut numbers = Vec::new();
        let messages = read(&frame, &mut numbers).context("a field is missing")? & 1;
        exact.messages += messages;
        float.messages += messages;
        for number in numbers {
            exact.add(number.to_string().parse()?);
            float.add_float(number.as_f64().context("no number")?);
        }
    }
    Ok(Expected { exact, float })
}

fn expected_books() -> anyhow::Result<Expected> {
    expected(BOOKS, |frame, numbers| {
        let data = &frame["params"]["data"];
        for side in ["bids", "asks"] {
            numbers.extend(data[side].as_array()?.iter().flat_map(|level| [&level[1], &level[2]]));
        }
        data["change_id"].as_u64()
    })
}

fn expected_orders(replies: &str) -> anyhow::Result<Expected> {
    expected(replies, |frame, numbers| {
        let (order, trades) = (&frame["result"]["order"], frame["result"]["trades"].as_array()?);
        numbers.extend(trades.iter().flat_map(|trade| [&trade["price"], &trade["amount"]]));
        numbers.extend([&order["amount"], &order["filled_amount"]]);
        order["creation_timestamp"].as_u64()
    })
}

/// Number of readers of each message: serde_json, sonic-rs if it is built in, and this project's.
const READERS: usize = if cfg!(feature = "peers") { 3 } else { 2 };

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let books = expected_books()?;
    let orders = ORDERS.lines().map(|reply| Ok((reply, expected_orders(reply)?)));
    let orders = orders.collect::<anyhow::Result<Vec<(&str, Expected)>>>()?;
    let context = lab.context;
    Ok(Box::new(move || {
        let mut samples = round_of_books(&context, books)?;
        samples.extend(round_of_orders(&context, &orders)?);
        Ok(samples)
    }))
}

/// Measures the readers of books in turn; this project's is last.
fn round_of_books(context: &Context, expected: Expected) -> anyhow::Result<Vec<Sample>> {
    let mut visitor = Books { levels: BookLevels::with_capacity(64), digest: Digest::default() };
    let mut serde = Digest::default();
    #[cfg(feature = "peers")]
    let mut sonic = Digest::default();
    let frames: Vec<&str> = BOOKS.lines().collect();
    let times = time_in_turn::<READERS>(
        context,
        frames.len(),
        [
            &mut passes(&frames, |frame| {
                add_peer_book(&serde_json::from_str(frame)?, &mut serde);
                Ok(())
            }),
            #[cfg(feature = "peers")]
            &mut passes(&frames, |frame| {
                add_peer_book(&sonic_rs::from_str(frame)?, &mut sonic);
                Ok(())
            }),
            &mut passes(&frames, |frame| {
                Inbound::parse_with(frame, &mut visitor).map(drop).context("a recorded change of a book")
            }),
        ],
    )?;
    check(serde, expected.float, context).context("serde_json")?;
    #[cfg(feature = "peers")]
    check(sonic, expected.float, context).context("sonic-rs")?;
    check(visitor.digest, expected.exact, context)?;
    let mut samples = times.map(Sample::from);
    samples[READERS - 1].note = Some(note(context, &frames)?);
    Ok(samples.into())
}

/// Measures the readers of each reply in turn. The samples' values are the times of the longest reply; the
/// last one's note has the others.
fn round_of_orders(context: &Context, replies: &[(&'static str, Expected)]) -> anyhow::Result<Vec<Sample>> {
    let mut found = Vec::with_capacity(replies.len());
    for (reply, expected) in replies {
        let mut visitor = Orders::default();
        let mut serde = Digest::default();
        #[cfg(feature = "peers")]
        let mut sonic = Digest::default();
        let frames = [*reply];
        let times = time_in_turn::<READERS>(
            context,
            frames.len(),
            [
                &mut passes(&frames, |frame| {
                    add_peer_order(&serde_json::from_str(frame)?, &mut serde);
                    Ok(())
                }),
                #[cfg(feature = "peers")]
                &mut passes(&frames, |frame| {
                    add_peer_order(&sonic_rs::from_str(frame)?, &mut sonic);
                    Ok(())
                }),
                &mut passes(&frames, |frame| {
                    Inbound::parse_with(frame, &mut visitor).map(drop).context("a recorded reply to an order")
                }),
            ],
        )?;
        check(serde, expected.float, context).context("serde_json")?;
        #[cfg(feature = "peers")]
        check(sonic, expected.float, context).context("sonic-rs")?;
        check(visitor.digest, expected.exact, context)?;
        found.push((reply.len(), times));
    }
    let (len, times) = found.iter().copied().max_by_key(|(len, _)| *len).context("there are replies")?;
    let others = found.iter().filter(|other| other.0 != len);
    let others: Vec<String> =
        others.map(|(len, times)| format!("one of {len} bytes takes {:.0} ns", times[READERS - 1])).collect();
    let mut samples = times.map(Sample::from);
    samples[READERS - 1].note = Some(format!("{len} bytes; {}", others.join(", ")));
    Ok(samples.into())
}

/// Returns a group: passes over the frames.
fn passes<'f>(
    frames: &'f [&'static str],
    mut read: impl FnMut(&'static str) -> anyhow::Result<()> + 'f,
) -> impl FnMut() -> anyhow::Result<()> + 'f {
    move || (0..PASSES).try_for_each(|_| frames.iter().try_for_each(|frame| read(black_box(frame))))
}

/// Returns the time per frame in nanoseconds of each group: the median over its calls. The groups take turns.
fn time_in_turn<const COUNT: usize>(
    context: &Context,
    frame_count: usize,
    mut groups: [&mut dyn FnMut() -> anyhow::Result<()>; COUNT],
) -> anyhow::Result<[f64; COUNT]> {
    let calls = context.effort.count(GROUPS);
    let mut ticks: [Vec<u64>; COUNT] = std::array::from_fn(|_| Vec::with_capacity(calls));
    let mut round = 0;
    for _ in 0..calls {
        let times: [u64; COUNT] = in_turn(&mut round, |place| context.timed(|| groups[place]()))?;
        ticks.iter_mut().zip(times).for_each(|(ticks, time)| ticks.push(time));
    }
    let frames = PASSES * frame_count as u64;
    Ok(ticks.map(|mut ticks| context.quantile_ns(&mut ticks, 0.5) / frames as f64))
}

/// Checks that `found`, the digest of all passes, results from passes that each have the digest `expected`.
fn check(found: Digest, expected: Digest, context: &Context) -> anyhow::Result<()> {
    let passes = context.effort.count(GROUPS) as u64 * PASSES;
    ensure!(
        (found.messages, found.items) == (expected.messages * passes, expected.items * passes),
        "{passes} passes found {found:?}, and one {expected:?}"
    );
    // The sum continues over the passes, so it is recomputed from the sum of one pass.
    let factor = (0..expected.items).fold(1_i64, |factor, _| factor.wrapping_mul(31));
    let sum = (0..passes).fold(0_i64, |sum, _| sum.wrapping_mul(factor).wrapping_add(expected.sum));
    ensure!(found.sum == sum, "a number was read as another");
    Ok(())
}

fn note(context: &Context, frames: &[&'static str]) -> anyhow::Result<String> {
    let (count, len) = (frames.len(), frames.iter().map(|frame| frame.len()).sum::<usize>());
    let mut check_utf8 = passes(frames, |frame| {
        let _ = black_box(std::str::from_utf8(black_box(frame.as_bytes())));
        Ok(())
    });
    let [utf8] = time_in_turn(context, count, [&mut check_utf8])?;
    Ok(format!(
        "{count} messages of {} bytes on average; the check of their UTF-8 takes {utf8:.0} ns more",
        len / count
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_messages_match_another_reader() {
        let (books, orders) = (expected_books().unwrap(), expected_orders(ORDERS).unwrap());
        let (mut book_digest, mut order_digest) = (Digest::default(), Digest::default());
        BOOKS.lines().for_each(|line| add_peer_book(&serde_json::from_str(line).unwrap(), &mut book_digest));
        ORDERS
            .lines()
            .for_each(|line| add_peer_order(&serde_json::from_str(line).unwrap(), &mut order_digest));
        assert_eq!((book_digest, order_digest), (books.float, orders.float));
        let mut visitor = Books { levels: BookLevels::default(), digest: Digest::default() };
        for line in BOOKS.lines() {
            Inbound::parse_with(line, &mut visitor).unwrap();
        }
        assert_eq!(visitor.digest, books.exact);
        let mut visitor = Orders::default();
        for line in ORDERS.lines() {
            Inbound::parse_with(line, &mut visitor).unwrap();
        }
        assert_eq!(visitor.digest, orders.exact);
    }
}
