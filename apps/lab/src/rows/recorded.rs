//! Applies DBN and LOBSTER recordings repeatedly: reads the uncompressed file contents in memory and builds
//! full books.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use tickpath_book::{BookLimits, BooksById, Indexed, PackedBooks};
use tickpath_capture::{DbnReader, Depth, EventReader, LobsterReader, RecordedEvent, decompress};
use tickpath_feed::IgnoreUpdates;
use tickpath_flowgen::ItchDayConfig;
use tickpath_recording::{Digest, EVENT_GROUP_LEN, EventBooks, EventKind};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Qty};

use super::prelude::*;
use crate::event_days;
use crate::touch::{Order, Recorder, side_index};

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("dbn_decode_and_touch", "ns").note(
                "a record of the day of dbn_books: read into an event, every field folded into a checksum; and, \
                 added, the cache lines that it needs in the layout of itch_touch",
            ),
            row("dbn_books", "ns")
                .note(
                    "a record out of DBN bytes in memory, read as tickpath replay reads it, into full \
                     order-by-order books of 500 symbols; a day with the order flow of generate itch",
                )
                .limit("dbn_decode_and_touch")
                .goal(Goal::RatioAtMost(2.4))
                .reference("hftbacktest depth 14-53 ns/update, price levels only"),
        ],
        |lab| {
            let flow = flow(lab, DBN_MESSAGES, ItchDayConfig::itch_500().symbols);
            open_generated(lab, &flow, event_days::dbn(&flow)?, Format::Dbn)
        },
    ),
    on_one_core(
        &[row("dbn_recorded", "ns").note(
            "as dbn_books, with recordings of one instrument of CME: the files over and over, each time into new \
             books, whose creation is not timed",
        )],
        |lab| open_recorded(lab, &DBN_FILES),
    ),
    on_one_core(
        &[
            row("lobster_decode_and_touch", "ns").note(
                "a line of the day of lobster_books: parsed into an event, every field folded into a checksum; \
                 and, added, the cache lines that it needs in the layout of itch_touch",
            ),
            row("lobster_books", "ns")
                .note(
                    "a line of a LOBSTER message file in memory, text parsed as tickpath replay parses it, into \
                     the full order-by-order books of its symbol; a day with the order flow of generate itch",
                )
                .limit("lobster_decode_and_touch")
                .goal(Goal::RatioAtMost(2.4))
                .reference("hftbacktest depth 14-53 ns/update, price levels only"),
        ],
        |lab| {
            let flow = flow(lab, LOBSTER_MESSAGES, 1);
            let format = Format::Lobster { levels: None };
            open_generated(lab, &flow, event_days::lobster(&flow)?, format)
        },
    ),
    on_one_core(
        &[row("lobster_recorded", "ns").note(
            "as lobster_books, with a recording of the best level of one stock of Nasdaq: the file over and over, \
             each time into new books, whose creation is not timed",
        )],
        |lab| open_recorded(lab, &LOBSTER_FILES),
    ),
];

/// Messages of the order flow of a generated day in a full round, and number of them for each resting order.
const DBN_MESSAGES: usize = 2_500_000;
const LOBSTER_MESSAGES: usize = 1_000_000;
const MESSAGES_PER_LIVE: u64 = 25;
/// Minimum number of messages of a generated day.
const MESSAGES_MIN: u64 = 50_000;
/// Approximate number of messages of recordings in a full round.
const RECORDED_MESSAGES: usize = 2_000_000;
/// Environment variable for the folder of the recordings; the default is `shared/data` beside the repository.
const DATA_VARIABLE: &str = "TICKPATH_DATA";
const DATA_DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

/// A recording in memory, uncompressed, in its file format.
struct Recording {
    bytes: Vec<u8>,
    format: Format,
    /// Expected result of a pass, computed with the reference model.
    outcome: Outcome,
    /// Checksum of all fields of all events.
    checksum: u64,
    /// Limits of the books.
    limits: BookLimits,
    /// Maximum number of orders that rest at a time.
    live_max: u32,
    /// Touches the memory that all events need.
    touching: Box<dyn FnMut() -> u64>,
}

#[derive(Clone, Copy)]
enum Format {
    Dbn,
    Lobster { levels: Option<u32> },
}

/// The result of one pass over a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    events: u64,
    unknown: u64,
    live: u32,
    state_hash: u64,
}

/// Order-by-order recordings from CME: a snapshot, and a day that begins with one.
const DBN_FILES: [(&str, Format); 2] = [
    ("databento/esh4-glbx-mdp3-20231224.mbo.dbn.zst", Format::Dbn),
    ("databento/esh4-glbx-mdp3-20231225.mbo.dbn.zst", Format::Dbn),
];
/// Order-by-order recordings from Nasdaq, limited to events at the best level.
const LOBSTER_FILES: [(&str, Format); 1] =
    [("lobster/AMZN_2012-06-21_message_level1_part1.csv.gz", Format::Lobster { levels: Some(1) })];
/// Limits of the reference model's books, larger than any recording.
const REFERENCE_LIMITS: BookLimits = BookLimits::new(InstrumentId(1_000), 1 << 20);

/// Settings of a generated day.
fn flow(lab: &Lab<'_>, messages: usize, symbols: u32) -> ItchDayConfig {
    let messages = (lab.context.effort.count(messages) as u64).max(MESSAGES_MIN);
    ItchDayConfig { messages, symbols, live: (messages / MESSAGES_PER_LIVE) as u32, seed: 1 }
}

fn open_generated(
    lab: &Lab<'_>,
    flow: &ItchDayConfig,
    bytes: Vec<u8>,
    format: Format,
) -> anyhow::Result<Round> {
    let mut day = Recording::new(bytes, format)?;
    ensure!(day.outcome.unknown == 0, "{:?}: events about orders that do not rest", day.outcome);
    let note = format!(
        "{} events, up to {} live orders of {} symbols",
        day.outcome.events, day.live_max, flow.symbols
    );
    each_round(lab, move |context| {
        let ticks = [day.decode(context)?, day.touch(context)?, day.books(context)?];
        let [decode, touch, books] = ticks.map(|ticks| context.nanos_each(ticks, day.outcome.events));
        let limit = Sample::with_note(decode + touch, format!("{decode:.1} + {touch:.1} ns"));
        Ok([limit, Sample::with_note(books, note.clone())])
    })
}

fn open_recorded(lab: &Lab<'_>, files: &[(&str, Format)]) -> anyhow::Result<Round> {
    let load = |(file, format): &(&str, Format)| {
        let path = data_file(file)?;
        let mut bytes = Vec::new();
        decompress(File::open(&path)?)?.read_to_end(&mut bytes)?;
        Recording::new(bytes, *format).with_context(|| path.display().to_string())
    };
    let mut recordings: Vec<Recording> = files.iter().map(load).collect::<anyhow::Result<_>>()?;
    let events: u64 = recordings.iter().map(|recording| recording.outcome.events).sum();
    let passes = (lab.context.effort.count(RECORDED_MESSAGES) as u64).div_ceil(events);
    let note = note(&recordings, files);
    each_round(lab, move |context| {
        let (mut decode, mut touch, mut books) = (0, 0, 0);
        for _ in 0..passes {
            for recording in &mut recordings {
                decode += recording.decode(context)?;
                touch += recording.touch(context)?;
                books += recording.books(context)?;
            }
        }
        let [decode, touch, books] = [decode, touch, books].map(|it| context.nanos_each(it, passes * events));
        let note = format!(
            "{note}; decode and touch, as in the limits of generated days, {decode:.1} + {touch:.1} ns"
        );
        Ok([Sample::with_note(books, note)])
    })
}

/// Returns the path of a recording; [`Missing`] if it does not exist.
pub(super) fn data_file(name: &str) -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os(DATA_VARIABLE).map_or_else(|| PathBuf::from(DATA_DEFAULT), PathBuf::from);
    let path = folder.join(name);
    let remedy = || format!("there is no {}: name the folder with it in {DATA_VARIABLE}", path.display());
    if path.is_file() { Ok(path) } else { bail!(Missing(remedy())) }
}

fn note(recordings: &[Recording], files: &[(&str, Format)]) -> String {
    let words = recordings.iter().zip(files).map(|(recording, (file, _))| {
        let Outcome { events, unknown, .. } = recording.outcome;
        let name = file.rsplit('/').next().unwrap_or_default();
        let unknown = match unknown {
            0 => String::new(),
            count => format!(", {count} about orders older than the file"),
        };
        format!("{name} ({events} messages{unknown}, up to {} live orders)", recording.live_max)
    });
    words.collect::<Vec<_>>().join(" and ")
}

/// Calls a function with a reader of a recording's bytes.
macro_rules! with_reader {
    ($bytes:expr, $format:expr, $function:ident($($argument:expr),*)) => {
        match $format {
            Format::Dbn => $function(DbnReader::new($bytes)?, $($argument),*),
            Format::Lobster { levels } => {
                $function(LobsterReader::new($bytes, "LOBSTER", Depth::Partial { levels }), $($argument),*)
            }
        }
    };
}

impl Recording {
    fn new(bytes: Vec<u8>, format: Format) -> anyhow::Result<Recording> {
        let (outcome, live_max, checksum) = with_reader!(&bytes[..], format, reference_outcome())?;
        let (recorder, symbols) = with_reader!(&bytes[..], format, record())?;
        // A recording of the best levels does not report the end of each order.
        let is_complete = matches!(format, Format::Dbn | Format::Lobster { levels: None });
        let recorded = recorder.order_count();
        ensure!(
            !is_complete || recorded == outcome.live as usize,
            "{recorded} orders are recorded: {outcome:?}"
        );
        let limits = BookLimits::new(InstrumentId(symbols), live_max + live_max / 4 + 1_000);
        let touching = recorder.finish();
        Ok(Recording { bytes, format, outcome, checksum, limits, live_max, touching })
    }

    /// Returns the ticks to read all events.
    fn decode(&self, context: &Context) -> anyhow::Result<u64> {
        let (ticks, checksum) = with_reader!(black_box(&self.bytes[..]), self.format, timed_decode(context))?;
        ensure!(checksum == self.checksum, "the checksum of all events is {checksum:#018x}");
        Ok(ticks)
    }

    /// Returns the ticks to touch the memory that all events need.
    fn touch(&mut self, context: &Context) -> anyhow::Result<u64> {
        context.timed(|| {
            black_box((self.touching)());
            Ok(())
        })
    }

    /// Returns the ticks of one pass into new books, so that no state remains from the last pass. Creation
    /// and check of the books are not timed.
    fn books(&self, context: &Context) -> anyhow::Result<u64> {
        let bytes = black_box(&self.bytes[..]);
        let (ticks, outcome) = with_reader!(bytes, self.format, timed_books(context, self.limits))?;
        let expected = self.outcome;
        ensure!(
            outcome == expected,
            "the books end as {outcome:?} and their reference model as {expected:?}"
        );
        Ok(ticks)
    }
}

fn timed_decode(mut reader: impl EventReader, context: &Context) -> anyhow::Result<(u64, u64)> {
    let (mut event, mut digest) = (RecordedEvent::NOTHING, Digest::default());
    let ticks = context.timed(|| {
        while reader.read_event(&mut event)? {
            digest.event(&event);
        }
        Ok(())
    })?;
    Ok((ticks, black_box(digest.checksum)))
}

/// Returns the ticks to read all events and apply them to books, and the final state of the books.
fn timed_books(
    mut reader: impl EventReader,
    context: &Context,
    limits: BookLimits,
) -> anyhow::Result<(u64, Outcome)> {
    let mut books = EventBooks::new(PackedBooks::new(limits), reader.info());
    let mut group = [RecordedEvent::NOTHING; EVENT_GROUP_LEN];
    let ticks = context.timed(|| {
        loop {
            let mut len = 0;
            while len < group.len() && reader.read_event(&mut group[len])? {
                len += 1;
            }
            books.handle_events(1, &group[..len], &mut IgnoreUpdates, |_, _, _, _| {});
            if len < group.len() {
                return Ok(());
            }
        }
    })?;
    Ok((ticks, Outcome::of(&books)?))
}

/// Returns the final state of the reference model, the maximum number of resting orders, and the checksum of
/// all events.
fn reference_outcome(mut reader: impl EventReader) -> anyhow::Result<(Outcome, u32, u64)> {
    let mut books = EventBooks::new(Indexed::<ReferenceBooks>::new(REFERENCE_LIMITS), reader.info());
    let (mut live_max, mut digest) = (0, Digest::default());
    while let Some(event) = reader.next_event()? {
        digest.event(&event);
        books.handle_events(1, &[event], &mut IgnoreUpdates, |_, _, _, _| {});
        live_max = live_max.max(books.books().order_count());
    }
    Ok((Outcome::of(&books)?, live_max, digest.checksum))
}

/// Returns the changes of orders, and the number of symbols.
fn record(mut reader: impl EventReader) -> anyhow::Result<(Recorder, u16)> {
    let do_fills_change_books = !reader.info().sums_fills;
    let mut recorder = Recorder::default();
    while let Some(event) = reader.next_event()? {
        let instrument = u16::try_from(event.instrument)?;
        match event.kind {
            EventKind::Add { order_id, level, qty } => {
                recorder.add(order_id, side_index(instrument, level.side), level.price, qty);
            }
            EventKind::Delete { order_id, qty: None, .. } => _ = recorder.remove(order_id),
            EventKind::Delete { order_id, qty: Some(by), .. } | EventKind::Reduce { order_id, by, .. } => {
                recorder.reduce(order_id, by);
            }
            EventKind::Fill { order_id, qty, in_auction: false, .. } if do_fills_change_books => {
                recorder.reduce(order_id, qty);
            }
            EventKind::Modify { order_id, level, qty } => {
                let (side, price) = (side_index(instrument, level.side), level.price);
                let keeps_place =
                    |order: &Order| (order.side, order.price) == (side, price) && qty <= order.qty;
                match recorder.order(order_id).filter(|order| keeps_place(order)) {
                    Some(order) => recorder.reduce(order_id, Qty(order.qty.0 - qty.0)),
                    None => {
                        recorder.remove(order_id);
                        recorder.add(order_id, side, price, qty);
                    }
                }
            }
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                recorder.replace(order_id, new_order_id, price, qty);
            }
            EventKind::Clear => recorder.clear(instrument),
            EventKind::Fill { .. }
            | EventKind::Trade { .. }
            | EventKind::Status(_)
            | EventKind::Ignored(_) => {}
        }
    }
    Ok((recorder, u16::try_from(reader.symbols().len())?))
}

impl Outcome {
    fn of<B: BooksById>(books: &EventBooks<B>) -> anyhow::Result<Outcome> {
        let counters = books.counters();
        let contradictions = counters.beyond_qty + counters.duplicate_order + counters.refused;
        ensure!(contradictions == 0, "the events contradict the books: {counters:?}");
        Ok(Outcome {
            events: counters.messages,
            unknown: counters.unknown_order,
            live: books.books().order_count(),
            state_hash: books.books().state_hash(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tickpath_agent::StopSignal;
    use tickpath_capture::{Position, ReadError};
    use tickpath_recording::{Level, PRICE_DECIMALS, RecordingInfo, TimeBase};
    use tickpath_replay::{ReplayOptions, replay};

    use tickpath_types::{OrderId, Price, Rng, Side};

    use super::*;

    /// Reads events from memory.
    struct Events<'a>(std::slice::Iter<'a, RecordedEvent>, RecordingInfo);

    impl EventReader for Events<'_> {
        fn read_event(&mut self, event: &mut RecordedEvent) -> Result<bool, ReadError> {
            let next = self.0.next();
            *event = next.copied().unwrap_or(RecordedEvent::NOTHING);
            Ok(next.is_some())
        }

        fn position(&self) -> Position {
            Position::Byte(0)
        }

        fn symbols(&self) -> &[String] {
            &[]
        }

        fn info(&self) -> RecordingInfo {
            self.1
        }
    }

    /// Orders of which each belongs to one instrument, and all changes of them.
    fn random_kind(rng: &mut Rng) -> (u32, EventKind) {
        let order_id = rng.below(40);
        let level = Level { side: Side::BOTH[rng.below(2) as usize], price: Price(rng.below(4) as i64 + 1) };
        let (qty, new_order_id) = (Qty(rng.below(5)), 2 * rng.below(20) + order_id % 2);
        let kind = match rng.below(20) {
            0..8 => EventKind::Add { order_id, level, qty: Qty(qty.0 + 1) },
            8 => EventKind::Delete { order_id, level: None, qty: None },
            9 => EventKind::Delete { order_id, level: None, qty: Some(qty) },
            10 => EventKind::Reduce { order_id, by: qty, level: None },
            11..16 => EventKind::Modify { order_id, level, qty },
            16 => EventKind::Replace { order_id, new_order_id, price: level.price, qty: Qty(qty.0 + 1) },
            17 if rng.below(20) == 0 => EventKind::Clear,
            _ => EventKind::Fill { order_id, qty, side: None, price: None, in_auction: rng.below(4) == 0 },
        };
        (order_id as u32 % 2, kind)
    }

    #[test]
    fn the_orders_with_recorded_memory_are_those_of_the_books() {
        for seed in 1..40 {
            let mut rng = Rng::new(seed);
            let (time_base, depth) = (TimeBase::Midnight, Depth::Full);
            let info =
                RecordingInfo { time_base, depth, sums_fills: seed % 2 == 0, price_decimals: PRICE_DECIMALS };
            let mut books = EventBooks::new(Indexed::<ReferenceBooks>::new(REFERENCE_LIMITS), info);
            let mut events = Vec::new();
            for _ in 0..400 {
                let (instrument, kind) = random_kind(&mut rng);
                let is_resting = |id| books.books().find(OrderId(id)).is_some();
                let repeats = match kind {
                    EventKind::Add { order_id, .. } => is_resting(order_id),
                    EventKind::Replace { new_order_id, .. } => is_resting(new_order_id),
                    _ => false,
                };
                if !repeats {
                    let event = RecordedEvent { instrument, kind, ..RecordedEvent::NOTHING };
                    books.handle_events(1, &[event], &mut IgnoreUpdates, |_, _, _, _| {});
                    events.push(event);
                    let (recorder, _) = record(Events(events.iter(), info)).unwrap();
                    assert_eq!(recorder.order_count(), books.books().order_count() as usize, "{events:?}");
                    for id in 0..40 {
                        let expected = books.books().find(OrderId(id)).map(|order| {
                            (side_index(order.instrument.0 - 1, order.side), order.price, order.qty)
                        });
                        let found = recorder.order(id).map(|order| (order.side, order.price, order.qty));
                        assert_eq!(found, expected, "order {id} after {events:?}");
                    }
                }
            }
        }
    }

    /// If the recordings are available, the measured books end in the same state as those of
    /// `tickpath replay`.
    #[test]
    fn measured_books_match_replay() {
        for (file, format) in DBN_FILES.iter().chain(&LOBSTER_FILES) {
            let Ok(path) = data_file(file) else {
                println!("skipped: {file} is not there");
                continue;
            };
            let mut bytes = Vec::new();
            decompress(File::open(&path).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
            let recording = Recording::new(bytes, *format).unwrap();
            let report = replay(&path, &ReplayOptions::default(), &StopSignal::new(), &mut |_| {}).unwrap();
            let report = &report.files[0];
            assert_eq!(recording.outcome.events, report.messages);
            assert_eq!(u64::from(recording.outcome.live), report.integrity.orders_left);
            assert_eq!(recording.outcome.unknown, report.integrity.unknown_references.count);
        }
    }
}
