//! The figure that `tickpath replay` prints for the books, beside that of the books alone.

use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;

use tempfile::NamedTempFile;
use tickpath_book::PackedBooks;
use tickpath_feed::{BookBuilder, UpdateListener};
use tickpath_replay::{FileReport, ReplayOptions, replay};
use tickpath_types::MarketUpdate;

use super::prelude::*;
use crate::day::StandardDay;
use crate::itch_books;
use crate::lab::Day;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[
        row("itch_updates_500", "ns")
            .note(
                "as itch_books_500, and an update for each message: what changed, and both best levels after it",
            )
            .limit("itch_books_500"),
        row("replay_books_500", "ns")
            .note(
                "the mean figure of `tickpath replay` for the same work, in turn with itch_updates_500: framing, \
                 decoding and checks, full books, and an update for each message, which it keeps for its \
                 statistics",
            )
            .limit("itch_updates_500")
            .goal(Goal::RatioAtMost(1.25)),
    ],
    open,
)];

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_500)?;
    let file = RecordedDay::of(&day)?;
    let stop = lab.options.stop.clone();
    let mut rounds = 0;
    each_round(lab, move |context| {
        let mut note = String::new();
        let [updates, replay] = in_turn(&mut rounds, |place| match place {
            1 => {
                let report = file.replay(&day, &stop)?;
                let cost = report.books.context("the replay measured no books")?;
                note = format!("{:.1} ns median of {} blocks", cost.median_ns, cost.blocks);
                Ok(cost.mean_ns)
            }
            _ => books_with_updates(&day, context),
        })?;
        Ok([Sample::from(updates), Sample::with_note(replay, note)])
    })
}

/// The file of a day.
struct RecordedDay {
    path: PathBuf,
    /// The file of a day that is not cached; removed at the end.
    _temporary: Option<NamedTempFile>,
}

impl RecordedDay {
    fn of(day: &Day) -> anyhow::Result<RecordedDay> {
        if let Ok(path) = &day.file.cached {
            return Ok(RecordedDay { path: path.clone(), _temporary: None });
        }
        let mut file = tempfile::Builder::new().suffix(".itch").tempfile()?;
        file.write_all(&day.file.bytes)?;
        Ok(RecordedDay { path: file.path().to_owned(), _temporary: Some(file) })
    }

    /// Replays the file and checks the report.
    fn replay(&self, day: &Day, stop: &StopSignal) -> anyhow::Result<FileReport> {
        let mut report = replay(&self.path, &ReplayOptions::default(), stop, &mut |_| {})?;
        let report = report.files.pop().context("the replay has no report")?;
        let expected = &day.standard;
        ensure!(report.is_trustworthy(), "the replay finds contradictions: {:?}", report.contradictions);
        let found = (report.messages, report.checksum, report.integrity.orders_left);
        ensure!(
            found == (expected.config.messages, expected.checksum, u64::from(expected.live)),
            "messages, checksum and orders left are {found:?}"
        );
        Ok(report)
    }
}

/// Takes updates and drops them.
struct Drop;

impl UpdateListener for Drop {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        black_box(update);
    }
}

/// Returns the nanoseconds per message of `itch_updates_500`.
fn books_with_updates(day: &Day, context: &Context) -> anyhow::Result<f64> {
    let config = &day.standard.config;
    let mut builder: BookBuilder<PackedBooks> = itch_books::empty(config);
    let elapsed = context.timed(|| {
        itch_books::apply(&mut builder, &day.file.bytes, &mut Drop);
        Ok(())
    })?;
    itch_books::check(&builder, &day.standard)?;
    Ok(context.nanos_each(elapsed, config.messages))
}
