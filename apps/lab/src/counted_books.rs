//! Counts the instructions that apply a day of ITCH messages to order books.

use std::hint::black_box;
use std::io::Read;

use anyhow::bail;
use tickpath_book::{BooksById, Indexed, PackedBooks};
use tickpath_feed::{BookBuilder, MessageBooks, UpdateListener};
use tickpath_flowgen::ItchDayConfig;
use tickpath_reference::ReferenceBooks;
use tickpath_types::MarketUpdate;

use crate::counted::{Call, Counted, CountedWork};
use crate::day::StandardDay;
use crate::day_file;
use crate::itch_books;
use crate::lab::Lab;

/// Arguments that select the fast books or their reference model.
pub(crate) const FAST: &str = "fast";
pub(crate) const REFERENCE: &str = "plain";

/// Work that reads a day's file from standard input and applies it to books. Its arguments are the kind of
/// books, and the numbers of messages, symbols and live orders of the day.
pub(crate) const WORK: CountedWork =
    CountedWork { names: &[FAST, REFERENCE], function: "*counted_pass*", run };

/// Counts the instructions of one pass of a day through books.
///
/// # Errors
/// As [`CountedWork::count`]; the run was stopped.
pub(crate) fn count(
    lab: &Lab<'_>,
    day: &StandardDay,
    books: &str,
    with_caches: bool,
) -> anyhow::Result<Counted> {
    let config = &day.config;
    let bytes = day_file::generate_uncached(day, &lab.options.stop)?;
    let sizes = [config.messages, u64::from(config.symbols), u64::from(config.live)];
    let call = Call {
        what: format!("{} through the {books} books", day.name),
        arguments: std::iter::once(books.to_owned()).chain(sizes.map(|it| it.to_string())).collect(),
        input: &bytes,
        expected: result_text(config.messages, day.live, day.state_hash),
        with_caches,
    };
    WORK.count(lab, &call)
}

fn run(arguments: &[String]) -> anyhow::Result<String> {
    let [books, messages, symbols, live] = arguments else {
        bail!("this command is for `lab bench`, which gives it books, messages, symbols and live orders");
    };
    let config = ItchDayConfig {
        messages: messages.parse()?,
        symbols: symbols.parse()?,
        live: live.parse()?,
        seed: 0,
    };
    let mut file = Vec::new();
    std::io::stdin().lock().read_to_end(&mut file)?;
    Ok(match books == FAST {
        true => outcome::<PackedBooks>(&config, &file),
        false => outcome::<Indexed<ReferenceBooks>>(&config, &file),
    })
}

fn outcome<B: BooksById>(config: &ItchDayConfig, file: &[u8]) -> String {
    let mut builder = itch_books::empty::<B>(config);
    counted_pass(&mut builder, file);
    let books = builder.books();
    result_text(builder.counters().messages, books.order_count(), books.state_hash())
}

fn result_text(messages: u64, live: u32, state_hash: u64) -> String {
    format!("{messages} messages, {live} live orders, {state_hash:#018x}")
}

/// The counted pass. Callgrind finds it by this unique name.
#[inline(never)]
fn counted_pass<B: BooksById>(builder: &mut BookBuilder<B>, file: &[u8]) {
    itch_books::apply(builder, file, &mut OpaqueListener);
}

/// Uses every update. Otherwise the compiler would omit those parts of an update's construction that it finds
/// unused, and these differ between the kinds of books.
struct OpaqueListener;

impl UpdateListener for OpaqueListener {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        black_box(update);
    }
}
