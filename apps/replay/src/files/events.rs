//! Files of recorded events in DBN and LOBSTER format.

use std::io::Read;
use std::time::Duration;

use tickpath_capture::{CaptureError, Position, ReadError, Recording};
use tickpath_recording::{
    BookSize, EVENT_GROUP_LEN, EventFormat, Events, Listener, PART_LEN, Pass, RecordedEvent, Replay, Source,
    WorkStep, apply_at_once, size_of_events,
};
use tickpath_types::InstrumentId;

use crate::cost::Output;
use crate::error::Result;
use crate::order_book_rows::RowCheck;
use crate::report::FileReport;
use crate::session::Session;

/// Maximum number of events in a block.
const BLOCK_LEN: usize = 4_096;
/// One block in this many is read completely before it is applied, so that the time for reading is measured.
/// The events of all other blocks are applied as they are read.
const READ_FIRST_EVERY: u64 = 16;
/// Minimum number of instruments for which the books have capacity.
pub(super) const INSTRUMENTS_MIN: usize = 1_024;

/// A block of events.
struct Block {
    events: Vec<RecordedEvent>,
    /// Position in the file at which each event starts.
    positions: Vec<Position>,
    is_last: bool,
}

/// Replays a recording, and compares it with the order book rows if `rows` is given.
pub(super) fn replay<F: EventFormat>(
    mut recording: Recording,
    mut rows: Option<RowCheck<Box<dyn Read + Send>>>,
    session: &mut Session<'_>,
    mut pass: Pass<Output<'_, impl Listener>>,
) -> Result<FileReport> {
    let (meter, info) = (recording.meter().clone(), recording.reader().info());
    let calendar = pass.selection.calendar(info.time_base, F::ZONE);
    let mut replay = Replay::new(Events::<F>::new(info), calendar);
    replay.begin(&mut pass, 0)?;
    let may_apply_at_once = session.may_apply_at_once(&pass);
    let mut block = Block {
        events: Vec::with_capacity(BLOCK_LEN),
        positions: Vec::with_capacity(BLOCK_LEN),
        is_last: false,
    };
    for block_number in 0_u64.. {
        if block.is_last || session.is_over(&mut pass, &meter)? {
            break;
        }
        let is_read_first = !may_apply_at_once || block_number.is_multiple_of(READ_FIRST_EVERY);
        let is_applied = !is_read_first && replay.has_books();
        read(&mut recording, &mut block, session, &mut pass, &mut replay, is_applied);
        let source = Source { info, symbols: recording.reader().symbols(), is_snapshot: false };
        let selected = replay.messages_to_handle(&mut pass, &block.events, &source)?;
        let selected = &block.events[..selected];
        if !is_applied {
            pass.listener.on_step(WorkStep::Other);
            pass.listener.on_step(WorkStep::Decoded(block.events.len()));
        }
        let is_whole_file = block.is_last && pass.message_count() == 0;
        replay.create_books(&pass.selection, || match is_whole_file {
            true => size_of_events(selected),
            false => {
                let named =
                    recording.reader().symbols().len().max(INSTRUMENTS_MIN).min(usize::from(u16::MAX));
                BookSize::of_file(meter.len(), InstrumentId(named as u16))
            }
        });
        let first = pass.message_count() + 1;
        if let Some(rows) = &mut rows {
            (first..).zip(selected).for_each(|(number, event)| rows.message(number, event));
        }
        let place = |index: usize| format!("message {} ({})", first + index as u64, block.positions[index]);
        if is_applied {
            replay.publish(&mut pass, selected, source, place);
            pass.listener.on_step(WorkStep::Done(selected.len()));
        } else {
            session.apply(&mut pass, &mut replay, selected, source, place);
        }
    }
    let is_whole = pass.ended.is_none() && !replay.is_read_failed();
    let rows = rows.map(|rows| rows.finish(is_whole));
    let mut report = session.report(&pass, 0, replay.finish(&pass));
    let difference = rows.as_ref().and_then(|rows| rows.first_difference.clone());
    report.recording.contradictions.extend(difference);
    report.rows = rows;
    Ok(report)
}

/// Reads the next events and adds them to the checksum. The cost of this step excludes the time for reading
/// and unpacking the file.
///
/// With `is_applied`, applies each group of events as soon as it is read, while the caches still hold it.
fn read<F: EventFormat>(
    recording: &mut Recording,
    block: &mut Block,
    session: &Session<'_>,
    pass: &mut Pass<Output<'_, impl Listener>>,
    replay: &mut Replay<Events<F>>,
    is_applied: bool,
) {
    block.events.clear();
    block.positions.clear();
    let len_max = if is_applied { PART_LEN } else { BLOCK_LEN };
    pass.begin_part(if is_applied { PART_LEN } else { 0 });
    let mut event = RecordedEvent::NOTHING;
    let mut applied_len = 0;
    let read_before = recording.meter().read_ns();
    pass.listener.on_step(WorkStep::Other);
    while block.events.len() < len_max && !block.is_last {
        match recording.read_event(&mut event) {
            Ok(true) => {
                replay.digest(&event);
                block.events.push(event);
                block.positions.push(recording.reader().position());
                if is_applied && block.events.len() - applied_len == EVENT_GROUP_LEN {
                    apply_at_once(replay, pass, applied_len, &block.events[applied_len..]);
                    applied_len = block.events.len();
                }
            }
            Ok(false) => block.is_last = true,
            Err(CaptureError::Read {
                source: ReadError::Malformed { position: Position::Line(line), what },
                ..
            }) => replay.count_malformed(|| format!("line {line} ({what})")),
            Err(error) => {
                match error {
                    CaptureError::Read { source, .. } => session.read_failed(pass, replay, &source),
                    error => session.read_failed(pass, replay, &error),
                }
                block.is_last = true;
            }
        }
    }
    if is_applied {
        apply_at_once(replay, pass, applied_len, &block.events[applied_len..]);
    }
    let unpacking = Duration::from_nanos(recording.meter().read_ns() - read_before);
    pass.listener.step_excluding(unpacking, WorkStep::Framed);
}
