//! Replays Databento DBN files. The schema mbo has order events. In the other schemas, levels build the
//! books; trades and definitions go to the report.

use std::time::Duration;

use tickpath_capture::{DbnDefinition, DbnFile, DbnLevels, Format, RecordingFile};
use tickpath_config::Zone;
use tickpath_recording::{
    BookSize, DbnLevelRecords, DbnOrders, DbnRecord, DbnSchema, Listener, Pass, RecordedProtocol, Replay,
    Source, WorkStep,
};
use tickpath_types::InstrumentId;

use super::events::{self, INSTRUMENTS_MIN};
use crate::cost::Output;
use crate::error::Result;
use crate::file_format::{FileFormat, Reports};
use crate::report::FileReport;
use crate::session::Session;

/// Number of records in a block.
const BLOCK_LEN: usize = 1_024;

/// Registry entry of DBN.
pub(crate) static DBN: FileFormat = FileFormat {
    format: Format::Dbn,
    json_name: "dbn",
    title: |report| match report.schema {
        None => "DBN, market by order".to_owned(),
        Some(schema) => format!("DBN, {}", schema.name()),
    },
    has_dates: true,
    date_in_name: |_| None,
    has_order_book_files: false,
};

pub(super) fn replay(
    file: RecordingFile,
    session: &mut Session<'_>,
    pass: Pass<Output<'_, impl Listener>>,
) -> Reports {
    Ok(vec![match DbnFile::of(file)? {
        DbnFile::Orders(recording) => events::replay::<DbnOrders>(recording, None, session, pass)?,
        DbnFile::Levels(file) => replay_levels(*file, session, pass)?,
    }])
}

/// Replays a file of a schema without orders.
fn replay_levels(
    mut file: DbnLevels,
    session: &mut Session<'_>,
    mut pass: Pass<Output<'_, impl Listener>>,
) -> Result<FileReport> {
    let (schema, meter) = (file.schema(), file.meter().clone());
    let levels = DbnLevelRecords { schema };
    let info = levels.info();
    let calendar = pass.selection.calendar(info.time_base, Zone::UTC);
    let mut replay = Replay::new(levels, calendar);
    replay.begin(&mut pass, 0)?;
    let mut records: Vec<DbnRecord> = Vec::with_capacity(BLOCK_LEN);
    let mut definitions: Vec<DbnDefinition> = Vec::new();
    let mut is_last = false;
    while !is_last && !session.is_over(&mut pass, &meter)? {
        let read_before = meter.read_ns();
        pass.listener.on_step(WorkStep::Other);
        records.clear();
        while records.len() < BLOCK_LEN && !is_last {
            match file.next_record() {
                Ok(Some(record)) => {
                    replay.digest(&record);
                    records.push(record);
                    definitions.extend(file.take_definition());
                }
                Ok(None) => is_last = true,
                Err(error) => {
                    session.read_failed(&mut pass, &mut replay, &error);
                    is_last = true;
                }
            }
        }
        let unpacking = Duration::from_nanos(meter.read_ns() - read_before);
        pass.listener.step_excluding(unpacking, WorkStep::Framed);
        pass.listener.on_step(WorkStep::Decoded(records.len()));
        let source = Source { info, symbols: file.symbols(), is_snapshot: false };
        let selected = replay.messages_to_handle(&mut pass, &records, &source)?;
        if schema.level_count() > 0 {
            let named = file.symbols().len().max(INSTRUMENTS_MIN).min(usize::from(u16::MAX)) as u16;
            let max_orders = u32::from(named) * 2 * schema.level_count() as u32;
            let size = BookSize { max_instrument: InstrumentId(named), max_orders };
            replay.create_books(&pass.selection, || size);
        }
        let first = pass.message_count() + 1;
        let place = |index: usize| format!("message {}", first + index as u64);
        session.apply(&mut pass, &mut replay, &records[..selected], source, place);
    }
    let mut report = session.report(&pass, 0, replay.finish(&pass));
    report.schema = Some(schema);
    let chosen = &session.options.symbols;
    definitions.retain(|definition| chosen.is_empty() || chosen.contains(&definition.symbol));
    report.definitions = definitions;
    if schema == DbnSchema::Definition {
        // A file of definitions has no book messages, so the report's reservations about books do not apply.
        report.recording.reservations.clear();
    }
    Ok(report)
}
