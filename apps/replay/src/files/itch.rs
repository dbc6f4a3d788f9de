//! Files of Nasdaq TotalView-ITCH 5.0.

use tickpath_capture::{Format, ItchBlocks, RecordingFile};
use tickpath_config::Zone;
use tickpath_recording::{
    BookSize, Itch, Listener, Pass, RecordedProtocol, Replay, Source, WorkStep, size_of_messages,
};
use tickpath_types::InstrumentId;

use crate::cost::Output;
use crate::file_format::{FileFormat, Reports};
use crate::session::Session;

/// Registry entry of ITCH files.
pub(crate) static ITCH: FileFormat = FileFormat {
    format: Format::Itch,
    json_name: "itch50",
    title: |_| "ITCH 5.0".to_owned(),
    has_dates: false,
    date_in_name: |_| None,
    has_order_book_files: false,
};

/// Replays a file: decodes blocks of messages and applies them to the books.
pub(super) fn replay(
    file: RecordingFile,
    session: &mut Session<'_>,
    mut pass: Pass<Output<'_, impl Listener>>,
) -> Reports {
    let meter = file.meter().clone();
    let mut blocks = ItchBlocks::of(file);
    let itch = Itch::default();
    let source = Source { info: itch.info(), symbols: &[], is_snapshot: false };
    let calendar = pass.selection.calendar(source.info.time_base, Zone::EASTERN);
    let mut replay = Replay::new(itch, calendar);
    replay.begin(&mut pass, 0)?;
    while !session.is_over(&mut pass, &meter)? {
        match blocks.fill() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                session.read_failed(&mut pass, &mut replay, &error);
                break;
            }
        }
        let is_whole_file = blocks.is_at_end() && pass.message_count() == 0;
        pass.listener.on_step(WorkStep::Other);
        let block = blocks.block();
        pass.listener.on_step(WorkStep::Framed);
        replay.create_books(&pass.selection, || match is_whole_file {
            true => size_of_messages(&block.messages),
            false => BookSize::of_file(meter.len(), InstrumentId(u16::MAX)),
        });
        let place = |index| format!("byte {}", block.offset_of(index));
        let messages = replay.decode(&mut pass, &block.messages, &source)?;
        session.apply(&mut pass, &mut replay, messages, source, place);
    }
    Ok(vec![session.report(&pass, 0, replay.finish(&pass))])
}
