//! Decoding a whole day of ITCH 5.0, and building every book of it.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::ensure;
use tickpath_book::DirectBooks;
use tickpath_feed::{BookBuilder, BooksAlone};
use tickpath_nasdaq::itch50::{self, Checksum};

use super::{Lab, Prepared, Round, Sample};
use crate::context::Context;
use crate::day::StandardDay;
use crate::itch_books::{self, frames};
use crate::lab::Day;

pub(super) fn open_8000(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let (day, context) = (lab.day(StandardDay::itch_8000)?, lab.context);
    let round: Round = Box::new(move || {
        Ok(vec![
            Sample::new("itch_decode", decode(&day, &context)?),
            Sample::new("itch_books", books(&day, &context)?),
        ])
    });
    Ok(Prepared::Ready(round))
}

pub(super) fn open_500(lab: &Lab<'_>) -> anyhow::Result<Prepared> {
    let (day, context) = (lab.day(StandardDay::itch_500)?, lab.context);
    let round: Round = Box::new(move || Ok(vec![Sample::new("itch_books_500", books(&day, &context)?)]));
    Ok(Prepared::Ready(round))
}

/// Nanoseconds a message, every field of it folded into the checksum.
fn decode(day: &Rc<Day>, context: &Context) -> anyhow::Result<f64> {
    let mut listener = Checksum::default();
    let start = context.clock.ticks();
    let mut messages = 0;
    for message in frames(black_box(&day.bytes)) {
        itch50::decode(message, &mut listener)?;
        messages += 1;
    }
    let elapsed = context.clock.ticks() - start;
    let expected = day.standard.config.messages;
    ensure!(messages == expected, "{messages} messages of {expected} were there");
    ensure!(black_box(listener.get()) == day.standard.outcome.checksum, "the checksum is not the day's");
    Ok(context.nanos_each(elapsed, messages))
}

/// Nanoseconds a message, decoded and applied to the books of all securities.
fn books(day: &Rc<Day>, context: &Context) -> anyhow::Result<f64> {
    let config = &day.standard.config;
    let mut builder: BookBuilder<DirectBooks> = itch_books::empty(config);
    let start = context.clock.ticks();
    itch_books::apply(&mut builder, &day.bytes, &mut BooksAlone);
    let elapsed = context.clock.ticks() - start;
    itch_books::check(&builder, config, &day.standard.outcome)?;
    Ok(context.nanos_each(elapsed, config.messages))
}
