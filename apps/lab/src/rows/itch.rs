//! Decoding of a whole day of ITCH 5.0, and building all of its books.

use std::rc::Rc;

use tickpath_book::{BooksById, PackedBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_nasdaq::itch50::{self, Checksum};
use tickpath_types::{InstrumentId, Side};

use super::prelude::*;
use crate::day::StandardDay;
use crate::itch_books::{self, frames};
use crate::itch_touch;
use crate::lab::Day;
use crate::textbook_books::TextbookBooks;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("itch_walk", "ns").note(
                "a message of the day itch-8000 out of its file: framed, and its bytes and type folded into a \
                 number",
            ),
            row("itch_decode", "ns")
                .note(
                    "a message of the day itch-8000 out of its file: framed, decoded through the listener \
                     that the books use, every field folded into a checksum",
                )
                .limit("itch_walk")
                .goal(Goal::RatioAtMost(1.5))
                .reference("CppTrader 14 ns"),
            row("itch_touch", "ns").note(
                "a message of the day itch-8000: only the cache lines that it needs in a fixed compact \
                 layout, touched in groups of 32 with look-ahead",
            ),
            row("itch_decode_and_touch", "ns").note("itch_decode and itch_touch of the same round, added"),
            row("itch_books", "ns")
                .note(
                    "a message of the day itch-8000 out of its file into full order-by-order books; \
                     updates are not requested, and none are made",
                )
                .limit("itch_decode_and_touch")
                .goal(Goal::RatioAtMost(2.5))
                .reference("itch-book 60 ns"),
            row("textbook_books", "ns")
                .note(
                    "a message of the same day into books without queues: a HashMap of orders, whose memory is in \
                     use before, and a BTreeMap of each side's levels",
                )
                .limit("itch_books")
                .goal(Goal::RatioAtLeast(5.0)),
        ],
        open_8000,
    ),
    on_one_core(
        &[
            row("itch_touch_500", "ns").note("itch_touch of the day itch-500"),
            row("itch_decode_and_touch_500", "ns")
                .note("decoding of the day itch-500 and itch_touch_500 in the same round, added"),
            row("itch_books_500", "ns")
                .note("itch_books of the day itch-500")
                .limit("itch_decode_and_touch_500")
                .goal(Goal::RatioAtMost(2.2))
                .reference("itch-order-book, levels only, 36 ns; CppTrader 41 to 168 ns"),
            row("textbook_books_500", "ns")
                .note("textbook_books of the day itch-500")
                .limit("itch_books_500")
                .goal(Goal::RatioAtLeast(5.0)),
        ],
        open_500,
    ),
];

fn open_8000(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_8000)?;
    let mut touching = itch_touch::prepare(&day.file.bytes, day.standard.live)?;
    each_round(lab, move |context| {
        let walk = walk(&day, context)?;
        let decode = decode(&day, context)?;
        let touch = touch(&day, &mut touching, context)?;
        let (books, textbook) = books_and_textbook(&day, context)?;
        Ok([walk, decode, touch, decode + touch, books, textbook])
    })
}

fn open_500(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_500)?;
    let mut touching = itch_touch::prepare(&day.file.bytes, day.standard.live)?;
    each_round(lab, move |context| {
        let decode = decode(&day, context)?;
        let touch = touch(&day, &mut touching, context)?;
        let (books, textbook) = books_and_textbook(&day, context)?;
        Ok([touch, decode + touch, books, textbook])
    })
}

/// Returns the nanoseconds to frame a message and fold its bytes and its type into a number.
fn walk(day: &Rc<Day>, context: &Context) -> anyhow::Result<f64> {
    let (mut sum, mut messages) = (0_u64, 0);
    let elapsed = context.timed(|| {
        for message in frames(black_box(&day.file.bytes)) {
            let (words, _) = message.as_chunks::<8>();
            let folded = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
            // The last eight bytes include those behind the last whole word.
            let last = message.last_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
            let message_type = message.first().copied().unwrap_or_default();
            sum = sum.rotate_left(1) ^ folded ^ last ^ u64::from(message_type);
            messages += 1;
        }
        Ok(())
    })?;
    black_box(sum);
    let expected = day.standard.config.messages;
    ensure!(messages == expected, "{messages} messages of {expected} were there");
    Ok(context.nanos_each(elapsed, messages))
}

/// Returns the nanoseconds to decode a message and fold every field into a checksum.
fn decode(day: &Rc<Day>, context: &Context) -> anyhow::Result<f64> {
    let mut listener = Checksum::default();
    let mut messages = 0;
    let elapsed = context.timed(|| {
        for message in frames(black_box(&day.file.bytes)) {
            itch50::decode(message, &mut listener)?;
            messages += 1;
        }
        Ok(())
    })?;
    let expected = day.standard.config.messages;
    ensure!(messages == expected, "{messages} messages of {expected} were there");
    ensure!(black_box(listener.get()) == day.standard.checksum, "the checksum is not the day's");
    Ok(context.nanos_each(elapsed, messages))
}

/// Returns the nanoseconds per message of the day to touch the memory that all messages need.
fn touch(day: &Rc<Day>, touching: &mut dyn FnMut() -> u64, context: &Context) -> anyhow::Result<f64> {
    let elapsed = context.timed(|| {
        black_box(touching());
        Ok(())
    })?;
    Ok(context.nanos_each(elapsed, day.standard.config.messages))
}

/// Returns the nanoseconds to decode a message and apply it to the feed's books of all securities, and to
/// textbook books, which must end equal.
fn books_and_textbook(day: &Rc<Day>, context: &Context) -> anyhow::Result<(f64, f64)> {
    let config = &day.standard.config;
    let mut builder: BookBuilder<PackedBooks> = itch_books::empty(config);
    let of_books = context.timed(|| {
        itch_books::apply(&mut builder, &day.file.bytes, &mut IgnoreUpdates);
        Ok(())
    })?;
    itch_books::check(&builder, &day.standard)?;
    let mut textbook = TextbookBooks::new(&itch_books::book_limits(config));
    let mut messages = 0;
    let of_textbook = context.timed(|| {
        messages = textbook.apply(black_box(&day.file.bytes))?;
        Ok(())
    })?;
    ensure!(messages == config.messages, "{messages} messages of {} were there", config.messages);
    let books = builder.books();
    ensure!(textbook.order_count() == books.order_count() as usize, "the textbook books have other orders");
    for locate in 0..=config.symbols as u16 {
        for side in Side::BOTH {
            let levels = books.levels(InstrumentId(locate), side);
            let levels: Vec<_> = levels.map(|level| (level.price, level.qty, level.order_count)).collect();
            ensure!(textbook.levels(locate, side) == levels, "book {locate} differs from the textbook book");
        }
    }
    Ok((context.nanos_each(of_books, config.messages), context.nanos_each(of_textbook, config.messages)))
}
