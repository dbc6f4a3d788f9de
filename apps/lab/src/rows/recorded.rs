//! Applies real recordings repeatedly: reads the uncompressed file contents in memory and builds full books.

mod books;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tickpath_book::{FastBooks, OrderBooks};
use tickpath_capture::{DbnReader, Depth, EventReader, LobsterReader, RecordedEvent, decompress};
use tickpath_reference::ReferenceBooks;

use books::RecordedBooks;

use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[row("dbn_books", "ns")
            .note(
                "a record out of DBN bytes in memory, read as tickpath replay reads it, into full \
                 order-by-order books; the files over and over, each time into new books, whose creation is not \
                 timed",
            )
            .reference("hftbacktest depth 14-53 ns/update, price levels only")],
        |lab| open(lab, &DBN_FILES),
    ),
    on_one_core(
        &[row("lobster_books", "ns")
            .note(
                "a line of a LOBSTER message file in memory, text parsed as tickpath replay parses it, into \
                 full order-by-order books; the file over and over, each time into new books, whose creation is \
                 not timed",
            )
            .reference("hftbacktest depth 14-53 ns/update, price levels only")],
        |lab| open(lab, &LOBSTER_FILES),
    ),
];

/// Approximate number of messages of a full round.
const MESSAGES: usize = 2_000_000;
/// Environment variable for the folder of the recordings; the default is `shared/data` beside the repository.
const DATA_VARIABLE: &str = "TICKPATH_DATA";
const DATA_DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

/// A recording in memory, uncompressed, in its file format.
struct Recording {
    bytes: Vec<u8>,
    format: Format,
    /// Expected result of a pass, computed with the reference model.
    outcome: Outcome,
    /// Maximum number of orders that rest at a time.
    live_max: u32,
}

#[derive(Clone, Copy)]
enum Format {
    Dbn,
    Lobster { levels: u32 },
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
    [("lobster/AMZN_2012-06-21_message_level1_part1.csv.gz", Format::Lobster { levels: 1 })];
/// Maximum number of orders, larger than in any recording.
const ORDERS_MAX: u32 = 1 << 18;

fn open(lab: &Lab<'_>, files: &[(&str, Format)]) -> anyhow::Result<Round> {
    let load = |(file, format): &(&str, Format)| {
        let path = data_file(file)?;
        Recording::load(&path, *format).with_context(|| path.display().to_string())
    };
    let recordings: Vec<Recording> = files.iter().map(load).collect::<anyhow::Result<_>>()?;
    let events: u64 = recordings.iter().map(|recording| recording.outcome.events).sum();
    let passes = (lab.context.effort.count(MESSAGES) as u64).div_ceil(events);
    let note = note(&recordings, files);
    each_round(lab, move |context| {
        let mut ticks = 0;
        for _ in 0..passes {
            for recording in &recordings {
                ticks += recording.pass(context)?;
            }
        }
        let each = context.nanos_each(ticks, passes * events);
        Ok([Sample::with_note(each, note.clone())])
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

impl Recording {
    fn load(path: &Path, format: Format) -> anyhow::Result<Recording> {
        let mut bytes = Vec::new();
        decompress(File::open(path)?)?.read_to_end(&mut bytes)?;
        let (outcome, live_max) = match format {
            Format::Dbn => reference_outcome(DbnReader::new(&bytes[..])?)?,
            Format::Lobster { levels } => reference_outcome(lobster(&bytes, levels))?,
        };
        Ok(Recording { bytes, format, outcome, live_max })
    }

    /// Returns the ticks of one pass into new books, so that no state remains from the last pass. Creation
    /// and check of the books are not timed.
    fn pass(&self, context: &Context) -> anyhow::Result<u64> {
        let bytes = black_box(&self.bytes[..]);
        let (ticks, outcome) = match self.format {
            Format::Dbn => timed(context, DbnReader::new(bytes)?, self.live_max),
            Format::Lobster { levels } => timed(context, lobster(bytes, levels), self.live_max),
        }?;
        let expected = self.outcome;
        ensure!(
            outcome == expected,
            "the books end as {outcome:?} and their reference model as {expected:?}"
        );
        Ok(ticks)
    }
}

fn lobster(bytes: &[u8], levels: u32) -> LobsterReader<&[u8]> {
    LobsterReader::new(bytes, "LOBSTER", Depth::Partial { levels: Some(levels) })
}

/// Returns the ticks to read all events and apply them to books, and the final state of the books.
fn timed(context: &Context, mut reader: impl EventReader, live_max: u32) -> anyhow::Result<(u64, Outcome)> {
    let mut books = RecordedBooks::<FastBooks>::new(live_max, reader.info());
    let mut event = RecordedEvent::NOTHING;
    let ticks = context.timed(|| {
        // Apply each event at once, while the branch predictor and caches are still warm from reading it.
        while reader.read_event(&mut event)? {
            books.handle_event(&event);
        }
        Ok(())
    })?;
    Ok((ticks, Outcome::of(&books)?))
}

/// Returns the final state of the reference model, and the maximum number of resting orders.
fn reference_outcome(mut reader: impl EventReader) -> anyhow::Result<(Outcome, u32)> {
    let mut books = RecordedBooks::<ReferenceBooks>::new(ORDERS_MAX, reader.info());
    let mut live_max = 0;
    while let Some(event) = reader.next_event()? {
        books.handle_event(&event);
        live_max = live_max.max(books.books().order_count());
    }
    Ok((Outcome::of(&books)?, live_max))
}

impl Outcome {
    fn of<B: OrderBooks<()>>(books: &RecordedBooks<B>) -> anyhow::Result<Outcome> {
        ensure!(books.contradictions == 0, "{} events contradict the books", books.contradictions);
        Ok(Outcome {
            events: books.events,
            unknown: books.unknown,
            live: books.books().order_count(),
            state_hash: books.books().state_hash(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tickpath_agent::StopSignal;
    use tickpath_replay::{ReplayOptions, replay};

    use super::*;

    /// If the recordings are available, the measured books end in the same state as those of
    /// `tickpath replay`.
    #[test]
    fn measured_books_match_replay() {
        for (file, format) in DBN_FILES.iter().chain(&LOBSTER_FILES) {
            let Ok(path) = data_file(file) else {
                println!("skipped: {file} is not there");
                continue;
            };
            let recording = Recording::load(&path, *format).unwrap();
            let report = replay(&path, &ReplayOptions::default(), &StopSignal::new(), &mut |_| {}).unwrap();
            let report = &report.files[0];
            assert_eq!(recording.outcome.events, report.messages);
            assert_eq!(u64::from(recording.outcome.live), report.integrity.orders_left);
            assert_eq!(recording.outcome.unknown, report.integrity.unknown_references.count);
        }
    }
}
