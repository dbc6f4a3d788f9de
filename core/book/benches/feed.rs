//! Benchmark of the books under a feed's load: orders found by id, added near the best price, reduced,
//! replaced and deleted, over a few hundred and over thousands of books.
//!
//! `cargo bench -p tickpath-book --bench feed` prints nanoseconds per message: the median over slices of 1024
//! messages, so that a preemption or a stall of the host spoils only one slice. Without `--bench` it runs a
//! short load and compares the result with the reference model.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::time::Instant;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{BookLimits, FastBooks, Order, OrderBooks, OrderIndex};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// Number of messages timed together.
const SLICE: usize = 1024;

/// A message as a feed handler has decoded it.
#[derive(Clone, Copy)]
enum Message {
    Add(Order<()>),
    Reduce(u64, Qty),
    Delete(u64),
    Replace(u64, Order<()>),
}

/// Parameters of the generated messages.
struct Load {
    instruments: u16,
    open_orders: usize,
    messages: usize,
}

/// Generates messages that add `load.open_orders` orders. Of each 100 later messages, 47 add, 42 delete, 7
/// reduce and 4 replace, as in a day of ITCH. Three in four of those that change an order name a recent one.
/// Lower instrument ids are more frequent.
fn generate(load: &Load) -> Vec<Message> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut below = |bound: usize| ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize;
    let mut open: Vec<(u64, Order<()>)> = Vec::new();
    let mut last_id = 0;
    let mut messages = Vec::with_capacity(load.open_orders + load.messages);
    while messages.len() < load.open_orders + load.messages {
        let kind = if messages.len() < load.open_orders { 0 } else { below(100) };
        let chosen = match open.len() {
            0 => 0,
            len if below(4) == 0 => below(len),
            len => len - 1 - below(len.min(load.open_orders / 20)),
        };
        // The product of two uniform numbers makes orders far from the mid rarer.
        let away = (below(40) * below(40) / 40 + 1) as i64 * 100;
        let side = Side::BOTH[below(2)];
        let squared = below(usize::from(load.instruments)) * below(usize::from(load.instruments));
        let instrument = InstrumentId((squared / usize::from(load.instruments)) as u16);
        let mut order = Order {
            id: OrderId(last_id + 1),
            instrument,
            side,
            price: Price(1_000_000 - side.sign() * away),
            qty: Qty(100 * (1 + below(10) as u64)),
            data: (),
        };
        messages.push(match kind {
            0..47 => {
                last_id += 1;
                open.push((last_id, order));
                Message::Add(order)
            }
            47..54 => {
                let (id, open) = &mut open[chosen];
                let qty = Qty(open.qty.0 / 2);
                open.qty.0 -= qty.0;
                Message::Reduce(*id, qty)
            }
            54..58 => {
                last_id += 1;
                let (id, old) = open.swap_remove(chosen);
                (order.instrument, order.side) = (old.instrument, old.side);
                order.price = Price(1_000_000 - old.side.sign() * away);
                open.push((last_id, order));
                Message::Replace(id, order)
            }
            _ => Message::Delete(open.swap_remove(chosen).0),
        });
    }
    messages
}

#[inline(never)]
fn apply<B: OrderBooks<()>>(books: &mut B, index: &mut OrderIndex, messages: &[Message]) {
    let enter = |books: &mut B, index: &mut OrderIndex, order: Order<()>| {
        let handle = books.add(order).expect("the books are large enough");
        index.insert(order.id.0, handle).expect("the index is large enough");
    };
    for message in messages {
        match *message {
            Message::Add(order) => enter(books, index, order),
            Message::Reduce(id, qty) => {
                books.reduce(index.find(id).expect("it is open"), qty);
            }
            Message::Delete(id) => {
                books.remove(index.remove(id).expect("it is open"));
            }
            Message::Replace(id, order) => {
                books.remove(index.remove(id).expect("it is open"));
                enter(books, index, order);
            }
        }
    }
}

fn new<B: OrderBooks<()>>(load: &Load) -> (B, OrderIndex) {
    let max_orders = load.open_orders as u32 * 2;
    let books = B::new(BookLimits::new(InstrumentId(load.instruments), max_orders));
    (books, OrderIndex::new(max_orders))
}

fn measure(load: &Load, passes: usize) {
    let messages = generate(load);
    let (opening, messages) = messages.split_at(load.open_orders);
    let mut slices = Vec::new();
    for _ in 0..passes {
        let (mut books, mut index) = new::<FastBooks>(load);
        apply(&mut books, &mut index, opening);
        let mut waiting = Vec::with_capacity(SLICE);
        for slice in messages.chunks(SLICE) {
            // Copy the messages first, so that they are in the cache, as after decoding.
            waiting.clear();
            waiting.extend_from_slice(slice);
            let start = Instant::now();
            apply(&mut books, &mut index, std::hint::black_box(&waiting));
            slices.push(start.elapsed().as_nanos() as f64 / slice.len() as f64);
        }
        assert!(books.order_count() as usize > load.open_orders / 2);
    }
    slices.sort_by(f64::total_cmp);
    println!(
        "feed, {} books: {:.1} ns a message (median slice; 10% {:.1}, 90% {:.1}), {} open orders",
        load.instruments,
        slices[slices.len() / 2],
        slices[slices.len() / 10],
        slices[slices.len() * 9 / 10],
        load.open_orders,
    );
}

fn main() {
    let small = Load { instruments: 20, open_orders: 500, messages: 5_000 };
    let messages = generate(&small);
    let (mut fast, mut index) = new::<FastBooks>(&small);
    apply(&mut fast, &mut index, &messages);
    let (mut reference, mut index) = new::<ReferenceBooks>(&small);
    apply(&mut reference, &mut index, &messages);
    assert_eq!(fast.state_hash(), reference.state_hash());
    if std::env::args().any(|argument| argument == "--bench") {
        measure(&Load { instruments: 500, open_orders: 200_000, messages: 2_000_000 }, 3);
        measure(&Load { instruments: 8_000, open_orders: 1_000_000, messages: 2_000_000 }, 2);
    }
}
