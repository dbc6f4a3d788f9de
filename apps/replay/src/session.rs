//! The parts of a pass over a file that do not depend on its format: progress, pacing, stop and report.

use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_agent::StopSignal;
use tickpath_capture::{Format, InputMeter};
use tickpath_recording::{EndReason, Listener, Pass, RecordedProtocol, RecordingReport, Replay, Source};

use crate::cost::{Output, peak_rss_bytes};
use crate::error::Result;
use crate::options::{ReplayOptions, Speed};
use crate::pace::Pacer;
use crate::report::FileReport;

/// Minimum interval between progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file read so far; for a compressed file, compressed bytes.
    pub bytes: u64,
    /// Size of the file in bytes; 0 if unknown.
    pub bytes_total: u64,
    /// Number of messages read so far.
    pub messages: u64,
    /// Time since the replay of the current file started.
    pub elapsed: Duration,
    /// Index of the current file, counted from 0.
    pub file: usize,
}

/// One pass over a file: reports progress, paces messages, watches the stop signal and creates the report.
pub(crate) struct Session<'a> {
    /// The file and its format.
    pub(crate) path: &'a Path,
    format: Format,
    pub(crate) options: &'a ReplayOptions,
    pub(crate) stop: &'a StopSignal,
    observer: &'a mut dyn FnMut(&Progress),
    pacer: Pacer,
    started: Instant,
    last_progress: Instant,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        path: &'a Path,
        format: Format,
        options: &'a ReplayOptions,
        stop: &'a StopSignal,
        observer: &'a mut dyn FnMut(&Progress),
    ) -> Session<'a> {
        let now = Instant::now();
        Session {
            path,
            format,
            options,
            stop,
            observer,
            pacer: Pacer::new(options.speed),
            started: now,
            last_progress: now,
        }
    }

    /// Reports the progress; true when the pass is over. Call it before each block.
    ///
    /// # Errors
    /// The error of the first row of a table that could not be written.
    pub(crate) fn is_over(
        &mut self,
        pass: &mut Pass<Output<'_, impl Listener>>,
        meter: &InputMeter,
    ) -> Result<bool> {
        pass.listener.exporter.check()?;
        if self.stop.is_stopped() {
            pass.ended.get_or_insert(EndReason::Stopped);
        }
        if self.last_progress.elapsed() >= PROGRESS_INTERVAL {
            self.last_progress = Instant::now();
            let progress = Progress {
                bytes: meter.position(),
                bytes_total: meter.len(),
                messages: pass.message_count(),
                elapsed: self.started.elapsed(),
                file: 0,
            };
            (self.observer)(&progress);
        }
        Ok(pass.ended.is_some())
    }

    /// True if every message may be applied to the books as soon as it is read: there is no pacing, limit,
    /// window end, comparison with the reference model, or listener that needs the books.
    pub(crate) fn may_apply_at_once(&self, pass: &Pass<Output<'_, impl Listener>>) -> bool {
        let ReplayOptions { limit, to, check_every, .. } = self.options;
        let is_all_selected = limit.is_none() && to.is_none() && check_every.is_none();
        !self.is_paced() && is_all_selected && !pass.listener.wants_books()
    }

    /// True if packets and messages are paced.
    pub(crate) fn is_paced(&self) -> bool {
        self.options.speed != Speed::Max
    }

    /// Waits until at least one of `len` packets or messages is due, and returns how many are; `None` on a
    /// stop request.
    pub(crate) fn wait(
        &mut self,
        pass: &mut Pass<Output<'_, impl Listener>>,
        len: usize,
        ts_of: impl Fn(usize) -> Option<u64>,
    ) -> Option<usize> {
        let due = self.pacer.wait(len, ts_of, self.stop);
        if due.is_none() {
            pass.ended = Some(EndReason::Stopped);
        }
        due
    }

    /// Records the error that ended the reading, or, after a stop request, that the pass was stopped.
    pub(crate) fn read_failed<P: RecordedProtocol>(
        &self,
        pass: &mut Pass<Output<'_, impl Listener>>,
        replay: &mut Replay<P>,
        error: &impl ToString,
    ) {
        if self.stop.is_stopped() {
            pass.ended = Some(EndReason::Stopped);
        } else {
            replay.read_failed(|| error.to_string());
        }
    }

    /// Applies messages at their due times.
    pub(crate) fn apply<P: RecordedProtocol>(
        &mut self,
        pass: &mut Pass<Output<'_, impl Listener>>,
        replay: &mut Replay<P>,
        messages: &[P::Message<'_>],
        source: Source<'_>,
        place: impl Fn(usize) -> String,
    ) {
        let mut start = 0;
        while start < messages.len() {
            let (rest, from_ns) = (&messages[start..], replay.from_ns());
            let waits_for_time =
                |message: &&P::Message<'_>| P::ts_ns(message) >= from_ns && !source.is_snapshot::<P>(message);
            let ts_of = |index: usize| Some(&rest[index]).filter(waits_for_time).map(P::ts_ns);
            let Some(due) = self.wait(pass, rest.len(), ts_of) else { return };
            replay.apply(pass, &rest[..due], source, |index| place(start + index));
            start += due;
        }
    }

    /// Returns the report on recording `index` of the file, counted from 0.
    pub(crate) fn report(
        &self,
        pass: &Pass<Output<'_, impl Listener>>,
        index: usize,
        recording: RecordingReport,
    ) -> FileReport {
        let (decode, books) = pass.listener.costs(index);
        FileReport {
            path: self.path.to_owned(),
            format: self.format,
            decode,
            books,
            peak_rss_bytes: peak_rss_bytes(),
            elapsed: self.started.elapsed(),
            rows: None,
            exported: pass.listener.exporter.rows(index),
            schema: None,
            definitions: Vec::new(),
            frames: None,
            recording,
        }
    }
}
