//! Days of ITCH messages whose contents are unfavourable for the books of a feed.
//!
//! Three of the days are a generated ordinary day with one property changed: its prices or its order
//! references. The other two have a book with one very long queue, and a book with very many levels. Each day
//! is applied to books with the limits of the row `itch_books_500`, which is the limit of each row here.

use std::collections::HashMap;

use tickpath_book::{BooksById, FastBooks, Indexed, PackedBooks};
use tickpath_feed::{BookBuilder, BuilderCounters, IgnoreUpdates, MessageBooks};
use tickpath_flowgen::{ItchDay, ItchDayConfig};
use tickpath_nasdaq::itch50::{
    AddOrder, AddOrderMpid, BuySell, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace,
};
use tickpath_nasdaq::wire::Stock;
use tickpath_reference::ReferenceBooks;
use tickpath_types::Rng;
use zerocopy::{Immutable, IntoBytes};

use super::prelude::*;
use crate::itch_books;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[row("itch_crossed", "ns")
            .note(
                "a message of a day whose books are crossed all the time while they trade: the ordinary flow of \
                 500 symbols with the bids moved above the asks",
            )
            .limit("itch_books_500")
            .goal(Goal::RatioAtMost(WORST_RATIO))],
        |lab| open(lab, crossed),
    ),
    on_one_core(
        &[row("itch_one_level", "ns")
            .note(
                "a message of a day with one level: new orders, cancels at random places of its queue, \
                 executions at the front",
            )
            .limit("itch_books_500")
            .goal(Goal::RatioAtMost(WORST_RATIO))],
        |lab| open(lab, one_level),
    ),
    on_one_core(
        &[row("itch_levels_100k", "ns")
            .note("a message of a day with one book, whose orders come and go at random levels of both sides")
            .limit("itch_books_500")
            .goal(Goal::RatioAtMost(WORST_RATIO))],
        |lab| open(lab, many_levels),
    ),
    on_one_core(
        &[row("itch_collisions", "ns")
            .note(
                "a message of the worst of several days whose order references collide in a hash table: the \
                 ordinary flow with other references",
            )
            .limit("itch_books_500")
            .goal(Goal::RatioAtMost(WORST_RATIO))],
        |lab| open(lab, colliding),
    ),
    on_one_core(
        &[row("itch_outside_window", "ns")
            .note(
                "a message of a day whose prices fit no window of neighbouring prices: the ordinary flow of 500 \
                 symbols with a random price for each order",
            )
            .limit("itch_books_500")
            .goal(Goal::RatioAtMost(WORST_RATIO))],
        |lab| open(lab, outside_window),
    ),
];

/// Maximum ratio of the time per message to that of an ordinary day.
const WORST_RATIO: f64 = 3.0;
/// Number of messages of each row in a full round, and the minimum in a smaller one.
const MESSAGES: usize = 2_000_000;
const MESSAGES_MIN: u64 = 80_000;
/// Number of messages for each resting order.
const MESSAGES_PER_LIVE: u64 = 25;
const SEED: u64 = 24;
/// Distance of consecutive order references, as on an ordinary day.
const REF_STEP: u64 = 4;

/// A day in Nasdaq's file format, and the result that it must have.
struct AdverseDay {
    /// Description of the day for the row's note.
    name: String,
    file: Vec<u8>,
    expected: Outcome,
}

/// The final state of the books and of their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    counters: BuilderCounters,
    orders: u32,
    levels: u32,
    state_hash: u64,
}

impl Outcome {
    fn of<B: BooksById>(builder: &BookBuilder<B>) -> Outcome {
        let (books, counters) = (builder.books(), *builder.counters());
        let (orders, levels) = (books.order_count(), books.level_count());
        Outcome { counters, orders, levels, state_hash: books.state_hash() }
    }
}

impl AdverseDay {
    /// Determines the required result by the books `B`. Fails if an order is missing, used twice or refused:
    /// the day would then be invalid.
    fn new<B: BooksById>(name: String, file: Vec<u8>) -> anyhow::Result<AdverseDay> {
        let mut builder = empty::<B>();
        itch_books::apply(&mut builder, &file, &mut IgnoreUpdates);
        let expected = Outcome::of(&builder);
        let BuilderCounters { messages, crossed, .. } = expected.counters;
        let valid = BuilderCounters { messages, crossed, ..BuilderCounters::default() };
        ensure!(expected.counters == valid, "{name}: the messages are invalid: {:?}", expected.counters);
        Ok(AdverseDay { name, file, expected })
    }

    /// Returns the nanoseconds per message of one pass into new books. Creation and check of the books are
    /// not timed.
    fn pass(&self, context: &Context) -> anyhow::Result<f64> {
        let mut builder = empty::<PackedBooks>();
        let ticks = context.timed(|| {
            itch_books::apply(&mut builder, &self.file, &mut IgnoreUpdates);
            Ok(())
        })?;
        let (outcome, expected) = (Outcome::of(&builder), &self.expected);
        ensure!(outcome == *expected, "{}: the books end as {outcome:?}, not as {expected:?}", self.name);
        Ok(context.nanos_each(ticks, expected.counters.messages))
    }
}

/// Creates books with the limits of `itch_books_500` in a full round.
fn empty<B: BooksById>() -> BookBuilder<B> {
    itch_books::empty(&ItchDayConfig::itch_500())
}

/// Prepares the rounds of a row: the worst of the days that `days` generates with a number of messages in
/// total.
fn open(lab: &Lab<'_>, days: fn(u64) -> anyhow::Result<Vec<AdverseDay>>) -> anyhow::Result<Round> {
    let days = days((lab.context.effort.count(MESSAGES) as u64).max(MESSAGES_MIN))?;
    each_round(lab, move |context| {
        let mut found = Vec::new();
        for day in &days {
            found.push((day.pass(context)?, day));
        }
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let (worst, day) = found.first().context("a row has at least one day")?;
        let Outcome { counters, orders, levels, .. } = day.expected;
        let mut note = format!(
            "{} messages, at the end {orders} orders at {levels} levels, {} times crossed",
            counters.messages, counters.crossed
        );
        if let Some((least, _)) = found.get(1..).and_then(<[_]>::last) {
            note += &format!("; worst: {}; the best of {} days {least:.1} ns", day.name, found.len());
        }
        Ok([Sample::with_note(*worst, note)])
    })
}

/// Generates an ordinary day of up to 500 symbols in Nasdaq's file format.
fn ordinary(messages: u64) -> anyhow::Result<Vec<u8>> {
    let live = (messages / MESSAGES_PER_LIVE) as u32;
    let small = ItchDayConfig::itch_500().with_messages(messages);
    let config = ItchDayConfig { live, seed: SEED, ..small.with_symbols(small.symbols.min(live / 2)) };
    let mut day = ItchDay::new(config)?;
    let mut file = Vec::new();
    while day.append_frames(1 << 16, &mut file) > 0 {}
    Ok(file)
}

/// Offsets in bytes of fields in messages about orders. A replace message has the new order's reference and
/// price instead of the symbol's fields.
const ORDER_REF: usize = 11;
const NEW_ORDER_REF: usize = 19;
const SIDE: usize = 19;
const ADD_PRICE: usize = 32;
const REPLACE_PRICE: usize = 31;

/// Calls `change` with each message of a file.
fn change_messages(file: &mut [u8], mut change: impl FnMut(&mut [u8])) {
    let mut rest = file;
    while let Some((prefix, behind)) = rest.split_first_chunk_mut() {
        let Some((message, behind)) = behind.split_at_mut_checked(usize::from(u16::from_be_bytes(*prefix)))
        else {
            return;
        };
        change(message);
        rest = behind;
    }
}

fn order_ref(message: &[u8], at: usize) -> u64 {
    message[at..][..8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Replaces the price of each new order by `price` of its side, its price and its reference.
fn change_prices(file: &mut [u8], price: impl Fn(BuySell, u32, u64) -> u32) {
    let mut sides = HashMap::new();
    change_messages(file, |message| {
        let (order, side, at) = match message[0] {
            AddOrder::TYPE | AddOrderMpid::TYPE => {
                let side = BuySell(message[SIDE]);
                (order_ref(message, ORDER_REF), Some(side), ADD_PRICE)
            }
            OrderReplace::TYPE => {
                let replaced = order_ref(message, ORDER_REF);
                (order_ref(message, NEW_ORDER_REF), sides.remove(&replaced), REPLACE_PRICE)
            }
            OrderDelete::TYPE => {
                sides.remove(&order_ref(message, ORDER_REF));
                return;
            }
            _ => return,
        };
        let side = side.expect("a replaced order was added before");
        sides.insert(order, side);
        let field: &mut [u8; 4] = (&mut message[at..at + 4]).try_into().expect("four bytes");
        *field = price(side, u32::from_be_bytes(*field), order).to_be_bytes();
    });
}

/// A day whose bids are 100.00 above their ordinary prices, so that they cross the asks.
fn crossed(messages: u64) -> anyhow::Result<Vec<AdverseDay>> {
    const SHIFT: u32 = 1_000_000;
    let mut file = ordinary(messages)?;
    change_prices(&mut file, |side, price, _| if side == BuySell::BUY { price + SHIFT } else { price });
    let day = AdverseDay::new::<Indexed<ReferenceBooks>>("crossed".to_owned(), file)?;
    // About half of the messages add an order.
    let crossed = day.expected.counters.crossed;
    ensure!(crossed > messages / 3, "only {crossed} of {messages} messages leave their book crossed");
    Ok(vec![day])
}

/// A day on which each order has a random price below 2^31: the bids in the lower half, the asks in the upper
/// one, in units of a hundredth of a cent.
fn outside_window(messages: u64) -> anyhow::Result<Vec<AdverseDay>> {
    const HALF: u32 = 1 << 30;
    let mut file = ordinary(messages)?;
    change_prices(&mut file, |side, _, order| {
        let random = Rng::new(order).below(u64::from(HALF)) as u32;
        if side == BuySell::BUY { random | 1 } else { HALF + random }
    });
    Ok(vec![AdverseDay::new::<Indexed<ReferenceBooks>>("random prices".to_owned(), file)?])
}

/// Numerator of 2^64 divided by the golden ratio, the usual multiplier of multiplicative hashing.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Multipliers of the two versions of FxHash, the hash of the Rust compiler.
const FX: [u64; 2] = [0xf135_7aea_2e62_a9c5, 0x517c_c1b7_2722_0a95];

/// Days with the same ordinary flow and different families of order references.
fn colliding(messages: u64) -> anyhow::Result<Vec<AdverseDay>> {
    let families = families();
    let ordinary = ordinary(messages / families.len() as u64)?;
    let days = families.into_iter().map(|(name, reference)| {
        let mut file = ordinary.clone();
        change_references(&mut file, reference);
        AdverseDay::new::<Indexed<ReferenceBooks>>(name, file)
    });
    days.collect()
}

/// Replaces the reference of the n-th new order by `reference(n)`, from 1.
fn change_references(file: &mut [u8], reference: impl Fn(u64) -> u64) {
    let mut known = HashMap::new();
    let mut change = |message: &mut [u8], at: usize| {
        let next = known.len() as u64 + 1;
        let new = *known.entry(order_ref(message, at)).or_insert_with(|| reference(next));
        message[at..at + 8].copy_from_slice(&new.to_be_bytes());
    };
    change_messages(file, |message| match message[0] {
        OrderReplace::TYPE => {
            change(message, ORDER_REF);
            change(message, NEW_ORDER_REF);
        }
        AddOrder::TYPE
        | AddOrderMpid::TYPE
        | OrderExecuted::TYPE
        | OrderExecutedWithPrice::TYPE
        | OrderCancel::TYPE
        | OrderDelete::TYPE => change(message, ORDER_REF),
        _ => {}
    });
}

/// A function from the number of an order, from 1, to its reference; all results differ.
type Reference = Box<dyn Fn(u64) -> u64>;

/// Families of references that collide in some hash, each with a description. The members of the first
/// families have one home bucket in a table that adds a product of an id's upper bits with a public factor to
/// its lower ones, for several sizes of table and bucket. The table of `core/book` does the same with a
/// secret factor, for which such a family cannot be chosen.
fn families() -> Vec<(String, Reference)> {
    let mut families: Vec<(String, Reference)> = Vec::new();
    for bits in 18..=20_u32 {
        for shared in 0..=2_u32 {
            let name = format!("one of 2^{bits} buckets, each the home of {} neighbouring ids", 1 << shared);
            families.push((name, Box::new(move |number| one_bucket(number, bits) << shared)));
        }
    }
    let mut add = |name: &str, reference: Reference| families.push((name.to_owned(), reference));
    add("multiples of 2^20", Box::new(|number| number << 20));
    add("multiples of 2^32", Box::new(|number| number << 32));
    add("equal high bits", Box::new(|number| 0xabcd_ef01 << 32 | number << 2));
    add("reversed bits", Box::new(u64::reverse_bits));
    add("equal halves", Box::new(|number| number << 32 | number));
    for multiplier in [GOLDEN, FX[0], FX[1]] {
        let inverse = inverse(multiplier);
        let name = format!("small products with {multiplier:#x}");
        families.push((name, Box::new(move |number| number.wrapping_mul(inverse))));
    }
    families
}

/// The id with these upper bits whose lower `bits` bits cancel the hash of the upper ones.
fn one_bucket(upper: u64, bits: u32) -> u64 {
    const BUCKET: u64 = 1_234;
    let scatter = upper.wrapping_mul(GOLDEN) >> 32;
    upper << bits | BUCKET.wrapping_sub(scatter) & ((1 << bits) - 1)
}

/// The factor whose product with an odd number is 1 modulo 2^64, by Newton's method.
fn inverse(odd: u64) -> u64 {
    let step = |guess: u64, _| guess.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(guess)));
    // An odd number is its own inverse modulo 8. Each step doubles the number of correct bits.
    (0..5).fold(odd, step)
}

/// Writes the messages of a day about one symbol.
struct DayWriter {
    file: Vec<u8>,
    messages: u64,
    stock: Stock,
}

impl DayWriter {
    fn new() -> DayWriter {
        DayWriter { file: Vec::new(), messages: 0, stock: Stock::new("LAB").expect("at most 8 characters") }
    }

    /// Time of the next message: each follows the previous one after a microsecond.
    fn ts(&self) -> Nanos {
        Nanos::from_secs(10 * 3_600) + Nanos(self.messages * 1_000)
    }

    fn put(&mut self, message: &(impl IntoBytes + Immutable)) {
        let bytes = message.as_bytes();
        self.file.extend((bytes.len() as u16).to_be_bytes());
        self.file.extend(bytes);
        self.messages += 1;
    }

    fn add(&mut self, order: u64, side: BuySell, qty: u32, price: u32) {
        self.put(&AddOrder::new(1, 0, self.ts(), order, side, qty, self.stock, price));
    }

    fn delete(&mut self, order: u64) {
        self.put(&OrderDelete::new(1, 0, self.ts(), order));
    }
}

/// Number of shares of each new order of the days below.
const QTY: u32 = 100;

/// A day with one level, whose queue grows to a twentieth of the number of messages: 100,000 orders in a full
/// round. Later, in about equal numbers, orders arrive and leave. Of those that leave, one in ten is executed
/// at the front; the others are cancelled at random places.
fn one_level(messages: u64) -> anyhow::Result<Vec<AdverseDay>> {
    const PRICE: u32 = 1_000_000;
    let live_max = messages as usize / 20;
    let (mut rng, mut day) = (Rng::new(SEED), DayWriter::new());
    let reference = |order: usize| order as u64 * REF_STEP;
    // Quantity of each order in the order of the queue; 0 for an order that has left.
    let mut queue = vec![0];
    let (mut front, mut live) = (1, 0);
    while day.messages < messages {
        if live < live_max {
            day.add(reference(queue.len()), BuySell::BUY, QTY, PRICE);
            queue.push(QTY);
            live += 1;
            continue;
        }
        while queue[front] == 0 {
            front += 1;
        }
        // One removal in eight takes only a part of the order.
        let is_part = rng.below(8) == 0;
        let part = |left: u32, rng: &mut Rng| match is_part && left > 1 {
            true => 1 + rng.below(u64::from(left) - 1) as u32,
            false => left,
        };
        if rng.below(10) == 0 {
            let qty = part(queue[front], &mut rng);
            day.put(&OrderExecuted::new(1, 0, day.ts(), reference(front), qty, day.messages));
            queue[front] -= qty;
            live -= usize::from(queue[front] == 0);
            continue;
        }
        let order = loop {
            let order = front + rng.below((queue.len() - front) as u64) as usize;
            if queue[order] > 0 {
                break order;
            }
        };
        let qty = part(queue[order], &mut rng);
        if qty == queue[order] {
            day.delete(reference(order));
            live -= 1;
        } else {
            day.put(&OrderCancel::new(1, 0, day.ts(), reference(order), qty));
        }
        queue[order] -= qty;
    }
    // The reference model walks a whole queue for each removal, so a long queue has other books to compare.
    let name = "one level".to_owned();
    let day = match messages <= MESSAGES_MIN {
        true => AdverseDay::new::<Indexed<ReferenceBooks>>(name, day.file)?,
        false => AdverseDay::new::<Indexed<FastBooks>>(name, day.file)?,
    };
    ensure!(day.expected.levels == 1, "{} levels are open", day.expected.levels);
    ensure!(day.expected.orders as usize + 1 >= live_max, "only {} orders rest", day.expected.orders);
    Ok(vec![day])
}

/// A day with one book. A tenth of the messages fill it: in a full round with 200,000 orders at more than
/// 100,000 levels. Later orders arrive at random levels, and random orders leave.
fn many_levels(messages: u64) -> anyhow::Result<Vec<AdverseDay>> {
    const TICK: u64 = 100;
    let live_max = messages / 10;
    // Of this number of prices, about seven in ten have an order.
    let prices = live_max * 4 / 5;
    let (mut rng, mut day) = (Rng::new(SEED), DayWriter::new());
    let (mut live, mut next) = (Vec::new(), REF_STEP);
    while day.messages < messages {
        if (live.len() as u64) < live_max {
            let place = rng.below(prices);
            let side = if place < prices / 2 { BuySell::BUY } else { BuySell::SELL };
            day.add(next, side, QTY, ((place + 1) * TICK) as u32);
            live.push(next);
            next += REF_STEP;
        } else {
            let order = live.swap_remove(rng.below(live.len() as u64) as usize);
            day.delete(order);
        }
    }
    let day = AdverseDay::new::<Indexed<ReferenceBooks>>("many levels".to_owned(), day.file)?;
    ensure!(u64::from(day.expected.levels) >= messages / 20, "only {} levels are open", day.expected.levels);
    Ok(vec![day])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn references_of_a_family_differ() {
        for (name, reference) in families() {
            let found: HashSet<u64> = (1..=100_000).map(&reference).collect();
            assert_eq!(found.len(), 100_000, "{name}");
        }
        assert_eq!(inverse(GOLDEN).wrapping_mul(GOLDEN), 1);
        let scatter = |id: u64| (id >> 19).wrapping_mul(GOLDEN) >> 32;
        let homes: HashSet<u64> = (1..100)
            .map(|upper| one_bucket(upper, 19))
            .map(|id| id.wrapping_add(scatter(id)) & ((1 << 19) - 1))
            .collect();
        assert_eq!(homes.len(), 1, "all have one home bucket");
    }

    #[test]
    fn a_day_is_the_same_each_time() {
        for days in [crossed, one_level, many_levels, outside_window] {
            let [first, second] = [days(MESSAGES_MIN).unwrap(), days(MESSAGES_MIN).unwrap()];
            assert!(first.iter().zip(&second).all(|(a, b)| a.file == b.file && a.expected == b.expected));
        }
    }
}
