//! Applies a real capture of IEX's DEEP feed repeatedly, from segments in memory to books.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use tickpath_book::{BookLimits, BooksById, Indexed, PackedBooks};
use tickpath_capture::{Packets, decompress};
use tickpath_feed::iex::BookBuilder;
use tickpath_feed::{
    Arbiter, ArbiterConfig, BuilderCounters, IexStream, IexTp, IgnoreUpdates, Line, MessageBooks,
    MessageListener,
};
use tickpath_iex::{Feed, Segment};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, Sequence};

use super::prelude::*;
use super::recorded::data_file;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("iex_decode", "ns").note(
        "a message of a real DEEP 1.0 capture in memory: segment checked, numbering followed by the \
             arbiter, decoded, applied to books of 7.8 k symbols; the capture over and over, each time into \
             new books, whose creation is not timed",
    )],
    open,
)];

/// The capture: test traffic with 11 sequence resets, mostly symbol data sent before the open.
const CAPTURE: &str = "iex/deep10_20170425_part1.pcap.gz";
/// Approximate number of messages of a full round.
const MESSAGES: usize = 4_000_000;
/// Limits of the books, larger than the number of symbols and levels in the capture.
const LIMITS: BookLimits = BookLimits::new(InstrumentId(8_191), 1 << 16);

/// The segments of a capture, stored contiguously.
struct Capture {
    bytes: Vec<u8>,
    segments: Vec<Range<usize>>,
    outcome: Outcome,
}

/// The result of one pass over the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    counters: BuilderCounters,
    symbols: u16,
    state_hash: u64,
}

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let path = data_file(CAPTURE)?;
    let capture = Capture::load(&path).with_context(|| path.display().to_string())?;
    let (messages, of_books) = (capture.outcome.counters.messages, capture.split_messages()?[0].len() as u64);
    ensure!(of_books > 0, "the capture changes no book");
    let passes = (lab.context.effort.count(MESSAGES) as u64).div_ceil(messages);
    each_round(lab, move |context| {
        let (mut all, mut book, mut others) = (0, 0, 0);
        for _ in 0..passes {
            all += capture.pass(context)?;
            let ticks = capture.pass_split(context)?;
            (book, others) = (book + ticks.0, others + ticks.1);
        }
        let book = context.nanos_each(book, passes * of_books);
        let others = context.nanos_each(others, passes * (messages - of_books));
        let note = format!(
            "{messages} messages; of these, applied alone, {of_books} of the books {book:.1} ns and the others {others:.1} ns"
        );
        let each = context.nanos_each(all, passes * messages);
        Ok([Sample::with_note(each, note)])
    })
}

impl Capture {
    fn load(path: &Path) -> anyhow::Result<Capture> {
        let (mut bytes, mut segments) = (Vec::new(), Vec::new());
        let mut packets = Packets::new(decompress(File::open(path)?)?);
        while let Some(packet) = packets.next_packet()? {
            let start = bytes.len();
            bytes.extend_from_slice(packet.payload);
            segments.push(start..bytes.len());
        }
        let mut reference_books = empty::<Indexed<ReferenceBooks>>();
        apply(&bytes, &segments, &mut reference_books)?;
        let outcome = Outcome::of(&reference_books);
        Ok(Capture { bytes, segments, outcome })
    }

    /// Returns the ticks of one pass into new books. Creation and check of the books are not timed.
    fn pass(&self, context: &Context) -> anyhow::Result<u64> {
        let mut books = empty::<PackedBooks>();
        let ticks = context.timed(|| apply(black_box(&self.bytes), &self.segments, &mut books))?;
        let (outcome, expected) = (Outcome::of(&books), self.outcome);
        ensure!(
            outcome == expected,
            "the books end as {outcome:?} and their reference model as {expected:?}"
        );
        Ok(ticks)
    }

    /// Separates the messages that change books from all others.
    fn split_messages(&self) -> anyhow::Result<[Vec<&[u8]>; 2]> {
        let [mut of_books, mut others] = [Vec::new(), Vec::new()];
        for range in &self.segments {
            for (_, message) in Segment::parse(&self.bytes[range.clone()])?.messages() {
                let is_level = matches!(message.first(), Some(b'8' | b'5'));
                if is_level { &mut of_books } else { &mut others }.push(message);
            }
        }
        Ok([of_books, others])
    }

    /// Returns the ticks to apply only the messages that change books, and to apply only all others.
    fn pass_split(&self, context: &Context) -> anyhow::Result<(u64, u64)> {
        let [of_books, others] = self.split_messages()?;
        let timed = |messages: &[&[u8]]| {
            let mut books = empty::<PackedBooks>();
            let ticks = context.timed(|| {
                for (message, sequence) in messages.iter().zip(1..) {
                    books.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
                }
                Ok(())
            })?;
            ensure!(books.counters().messages == messages.len() as u64, "not every message was applied");
            Ok(ticks)
        };
        Ok((timed(black_box(&of_books))?, timed(black_box(&others))?))
    }
}

fn empty<B: BooksById>() -> BookBuilder<B> {
    BookBuilder::new(Feed::Deep10, B::new(LIMITS))
}

/// Receives the arbiter's messages and applies them to the books.
struct Books<'a, B>(&'a mut BookBuilder<B>);

impl<B: BooksById> MessageListener<IexStream> for Books<'_, B> {
    #[inline(always)]
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        self.0.handle_message(sequence, message, &mut IgnoreUpdates);
    }

    fn on_lost(&mut self, _: Sequence, _: u64) {
        self.0.handle_lost(&mut IgnoreUpdates);
    }

    fn on_restart(&mut self) {
        self.0.handle_restart(&mut IgnoreUpdates);
    }
}

/// Applies every segment in order; a sequence reset empties the books.
fn apply(
    bytes: &[u8],
    segments: &[Range<usize>],
    books: &mut BookBuilder<impl BooksById>,
) -> anyhow::Result<()> {
    let mut arbiter = Arbiter::<IexTp>::new(ArbiterConfig { hold_messages: 1, ..ArbiterConfig::default() });
    for range in segments {
        arbiter.handle_packet(Nanos(1), Line::A, &bytes[range.clone()], &mut Books(books));
    }
    let counters = arbiter.counters();
    let faults = counters.lines[Line::A as usize].malformed + counters.gaps_opened;
    ensure!(faults == 0, "{faults} segments are malformed or do not continue where the last one ended");
    Ok(())
}

impl Outcome {
    fn of<B: BooksById>(books: &BookBuilder<B>) -> Outcome {
        Outcome {
            counters: *books.counters(),
            symbols: books.symbol_count(),
            state_hash: books.books().state_hash(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the capture is available, its message counts equal those of its data sheet.
    #[test]
    fn the_capture_matches_its_data_sheet() {
        let Ok(path) = data_file(CAPTURE) else { return println!("skipped: {CAPTURE} is not there") };
        let capture = Capture::load(&path).unwrap();
        let Outcome { counters, symbols, state_hash } = capture.outcome;
        assert_eq!(
            (counters.messages, symbols, capture.split_messages().unwrap()[0].len()),
            (329_936, 7_802, 18_915)
        );
        assert_eq!(state_hash, 0xb9c4_a651_a910_d49f);
    }
}
