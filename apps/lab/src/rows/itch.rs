//! Decoding of a whole day of ITCH 5.0, and building all of its books.

use std::rc::Rc;

use tickpath_book::PackedBooks;
use tickpath_feed::{BookBuilder, IgnoreUpdates};
use tickpath_nasdaq::itch50::{self, Checksum};

use super::prelude::*;
use crate::day::StandardDay;
use crate::itch_books::{self, frames};
use crate::lab::Day;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("itch_decode", "ns")
                .note(
                    "a message of the day itch-8000 out of its file: framed, decoded through the listener \
                     that the books use, every field folded into a checksum",
                )
                .reference("CppTrader 14 ns"),
            row("itch_books", "ns")
                .note(
                    "a message of the day itch-8000 out of its file into full order-by-order books; \
                     updates are not requested, and none are made",
                )
                .reference("itch-book 60 ns"),
        ],
        open_8000,
    ),
    on_one_core(
        &[row("itch_books_500", "ns")
            .note("the same of itch-500")
            .reference("itch-order-book, levels only, 36 ns; CppTrader 41 to 168 ns")],
        open_500,
    ),
];

fn open_8000(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_8000)?;
    each_round(lab, move |context| Ok([decode(&day, context)?, books(&day, context)?]))
}

fn open_500(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_500)?;
    each_round(lab, move |context| Ok([books(&day, context)?]))
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

/// Returns the nanoseconds to decode a message and apply it to the books of all securities.
fn books(day: &Rc<Day>, context: &Context) -> anyhow::Result<f64> {
    let config = &day.standard.config;
    let mut builder: BookBuilder<PackedBooks> = itch_books::empty(config);
    let elapsed = context.timed(|| {
        itch_books::apply(&mut builder, &day.file.bytes, &mut IgnoreUpdates);
        Ok(())
    })?;
    itch_books::check(&builder, &day.standard)?;
    Ok(context.nanos_each(elapsed, config.messages))
}
