//! Parsing of Deribit messages from the receive buffer into the data that a strategy reads.

use serde_json::Value;
use tickpath_deribit::envelope::{Id, Inbound, Visitor};
use tickpath_deribit::messages::{BookLevels, BookUpdate, Order, OrderReply};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("deribit_parse_book", "ns")
            .note(
                "a change or snapshot of a book of Deribit, as recorded, out of the receive buffer: the \
                 frame and all of its levels in one pass, numbers exact, each checked against another reader",
            )
            .reference("6.9 us published; sonic-rs 369 ns on this kind of host"),
        row("deribit_parse_order", "ns")
            .note(
                "a reply to an order, as recorded, with its trade, more than 1 KB: the frame, the order and \
                 each of its trades in one pass, numbers exact, checked against another reader",
            )
            .reference("6.9 us published; sonic-rs 724 ns on this kind of host"),
    ],
    open,
)];

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
        self.items += 1;
        self.sum =
            self.sum.wrapping_mul(31).wrapping_add(number.mantissa()).wrapping_add(number.scale().into());
    }
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

/// Computes the expected digest independently, from the frames that serde parses. `read` appends the numbers
/// of a frame to the vector; the lowest bit of its result is added to `messages`.
fn expected(
    lines: &str,
    read: impl for<'f> Fn(&'f Value, &mut Vec<&'f Value>) -> Option<u64>,
) -> anyhow::Result<Digest> {
    let mut digest = Digest::default();
    for line in lines.lines() {
        let frame: Value = serde_json::from_str(line)?;
        let mut numbers = Vec::new();
        digest.messages += read(&frame, &mut numbers).context("a field is missing")? & 1;
        for number in numbers {
            digest.add(number.to_string().parse()?);
        }
    }
    Ok(digest)
}

fn expected_books() -> anyhow::Result<Digest> {
    expected(BOOKS, |frame, numbers| {
        let data = &frame["params"]["data"];
        for side in ["bids", "asks"] {
            numbers.extend(data[side].as_array()?.iter().flat_map(|level| [&level[1], &level[2]]));
        }
        data["change_id"].as_u64()
    })
}

fn expected_orders(replies: &str) -> anyhow::Result<Digest> {
    expected(replies, |frame, numbers| {
        let (order, trades) = (&frame["result"]["order"], frame["result"]["trades"].as_array()?);
        numbers.extend(trades.iter().flat_map(|trade| [&trade["price"], &trade["amount"]]));
        numbers.extend([&order["amount"], &order["filled_amount"]]);
        order["creation_timestamp"].as_u64()
    })
}

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let books = expected_books()?;
    let orders = ORDERS.lines().map(|reply| Ok((reply, expected_orders(reply)?)));
    let orders = orders.collect::<anyhow::Result<Vec<(&str, Digest)>>>()?;
    each_round(lab, move |context| Ok([round_of_books(context, books)?, round_of_orders(context, &orders)?]))
}

fn round_of_books(context: &Context, expected: Digest) -> anyhow::Result<Sample> {
    let mut visitor = Books { levels: BookLevels::with_capacity(64), digest: Digest::default() };
    let nanos = time(context, BOOKS, |frame| {
        Inbound::parse_with(frame, &mut visitor).map(drop).context("a recorded change of a book")
    })?;
    check(visitor.digest, expected, context)?;
    Ok(Sample::with_note(nanos, note(context, BOOKS)?))
}

/// Measures each reply. The sample's value is the time of the longest one; its note has the others.
fn round_of_orders(context: &Context, replies: &[(&'static str, Digest)]) -> anyhow::Result<Sample> {
    let mut found = Vec::with_capacity(replies.len());
    for (reply, expected) in replies {
        let mut visitor = Orders::default();
        let nanos = time(context, reply, |frame| {
            Inbound::parse_with(frame, &mut visitor).map(drop).context("a recorded reply to an order")
        })?;
        check(visitor.digest, *expected, context)?;
        found.push((reply.len(), nanos));
    }
    let (len, nanos) = found.iter().copied().max_by_key(|(len, _)| *len).context("there are replies")?;
    let others = found.iter().filter(|other| other.0 != len);
    let others: Vec<String> =
        others.map(|(len, nanos)| format!("one of {len} bytes takes {nanos:.0} ns")).collect();
    let note = format!("{len} bytes; {}", others.join(", "));
    Ok(Sample::with_note(nanos, note))
}

/// Returns the time per message in nanoseconds: the median over groups of passes.
fn time(
    context: &Context,
    file: &'static str,
    mut read: impl FnMut(&'static str) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let frames: Vec<&str> = file.lines().collect();
    let mut groups = Vec::new();
    for _ in 0..context.effort.count(GROUPS) {
        groups.push(context.timed(|| {
            for _ in 0..PASSES {
                frames.iter().try_for_each(|frame| read(black_box(frame)))?;
            }
            Ok(())
        })?);
    }
    Ok(context.quantile_ns(&mut groups, 0.5) / (PASSES * frames.len() as u64) as f64)
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

fn note(context: &Context, file: &'static str) -> anyhow::Result<String> {
    let (count, len) = (file.lines().count(), file.lines().map(str::len).sum::<usize>());
    let utf8 = time(context, file, |frame| {
        let _ = black_box(std::str::from_utf8(black_box(frame.as_bytes())));
        Ok(())
    })?;
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
        let mut visitor = Books { levels: BookLevels::default(), digest: Digest::default() };
        for line in BOOKS.lines() {
            Inbound::parse_with(line, &mut visitor).unwrap();
        }
        assert_eq!(visitor.digest, books);
        let mut visitor = Orders::default();
        for line in ORDERS.lines() {
            Inbound::parse_with(line, &mut visitor).unwrap();
        }
        assert_eq!(visitor.digest, orders);
    }
}
