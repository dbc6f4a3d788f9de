//! ITCH files: blocks of raw messages straight into the feed's books.

use std::path::Path;
use std::time::Instant;

use tickpath_book::{FastBooks, Indexed, PlainBooks};
use tickpath_capture::{Depth, Format, ItchBlocks, PRICE_DECIMALS, RecordingFile, RecordingInfo, TimeBase};
use tickpath_config::Zone;
use tickpath_feed::BookBuilder;
use tickpath_nasdaq::itch50;
use tickpath_types::InstrumentId;

use crate::apply::ApplyMessages;
use crate::check::Twin;
use crate::integrity::Judgement;
use crate::message::{Source, Types};
use crate::report::FileReport;
use crate::run::ReplayError;
use crate::session::{BookSize, Session};

pub(crate) const INFO: RecordingInfo = RecordingInfo {
    time_base: TimeBase::Midnight,
    depth: Depth::Full,
    sums_fills: false,
    price_decimals: PRICE_DECIMALS,
};

type Books = BookBuilder<Indexed<FastBooks>>;
type Plain = BookBuilder<Indexed<PlainBooks>>;

pub(crate) fn replay(
    path: &Path,
    file: RecordingFile,
    mut session: Session<'_>,
) -> Result<FileReport, ReplayError> {
    let meter = file.meter().clone();
    let mut blocks = ItchBlocks::of(file);
    let calendar = session.options.calendar(INFO.time_base, Zone::EASTERN);
    session.tape.exporter.count_from(&calendar);
    let source = Source {
        format: Format::Itch,
        types: Types::Itch,
        info: INFO,
        calendar,
        symbols: &[],
        is_snapshot: false,
    };
    let mut books: Option<Books> = None;
    let mut twin: Option<Twin<Plain>> = None;
    while !session.is_over(&meter) {
        match blocks.fill() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                session.read_failed(&error);
                break;
            }
        }
        let is_whole_file = blocks.is_at_end() && session.number == 0;
        let begin = Instant::now();
        let block = blocks.block();
        let framing = begin.elapsed();
        let wanted = session.wanted(&block.messages, &source)?;
        let messages = &block.messages[..wanted];
        if books.is_none() && !session.options.decode_only {
            let size = match is_whole_file {
                true => size_of(messages).with_options(session.options),
                false => BookSize::of_file(session.options, &meter, InstrumentId(u16::MAX)),
            };
            books = Some(BookBuilder::new(size.empty()));
            twin = session.options.check_every.map(|every| Twin::new(BookBuilder::new(size.empty()), every));
        }
        let begin = Instant::now();
        for message in messages {
            // What is malformed is counted where it is named.
            let _ = itch50::decode(message, &mut session.itch);
        }
        session.decode.record(framing + begin.elapsed(), messages.len());
        let place = |index| format!("byte {}", block.offset_of(index));
        session.apply(messages, source, &mut books, &mut twin, framing, place)?;
    }
    let judgement = Judgement { is_full_depth: true, is_ordered_by_time: true, has_books: books.is_some() };
    let names = |instrument| session.tape.name(instrument);
    let twin = twin
        .zip(books.as_ref())
        .map(|(twin, books)| twin.finish::<&[u8]>(ApplyMessages::books(books), &names));
    let books = books.as_ref().map(ApplyMessages::books);
    Ok(FileReport::of(path, source, &mut session, books, twin, None, judgement))
}

/// The room that the messages of a whole file need.
fn size_of(messages: &[&[u8]]) -> BookSize {
    let locates = messages.iter().filter_map(|message| message.get(1..3)?.try_into().ok());
    let last = locates.map(u16::from_be_bytes).max().unwrap_or_default();
    BookSize { max_instrument: InstrumentId(last), max_orders: messages.len() as u32 + 1 }
}
