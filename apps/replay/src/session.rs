//! One pass over one recording: blocks of messages into the books, the twin and the tape.

use std::time::{Duration, Instant};

use tickpath_agent::StopSignal;
use tickpath_book::BooksById;
use tickpath_capture::{Format, InputMeter};
use tickpath_types::{InstrumentId, MarketUpdate, UpdateKind};

use crate::books::BookPair;
use crate::error::Result;
use crate::exports::Exporter;
use crate::integrity::Integrity;
use crate::moment::Calendar;
use crate::options::{ReplayOptions, Speed};
use crate::pace::Pacer;
use crate::protocol::{RecordedProtocol, Source};
use crate::report::Ended;
use crate::tape::{Tape, Window};
use crate::updates::{Contradictions, Updates};

/// Messages that go to the books and then to the tape together: enough for the clock to cost nothing, few enough
/// for their updates to stay in the nearest caches.
pub(crate) const PART_LEN: usize = 512;
/// Progress is told no more often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file that were read, as they are stored.
    pub bytes: u64,
    /// Size of the file in bytes; 0 when it is not known.
    pub bytes_total: u64,
    /// Messages so far.
    pub messages: u64,
    /// Time since the start of the file.
    pub elapsed: Duration,
    /// Which of the files, counted from 0.
    pub file: usize,
}

/// Everything that one pass keeps beside the books.
pub(crate) struct Session<'a> {
    pub(crate) options: &'a ReplayOptions,
    pub(crate) tape: Tape<'a>,
    /// Messages read so far.
    pub(crate) number: u64,
    pub(crate) ended: Option<Ended>,
    stop: &'a StopSignal,
    observer: &'a mut dyn FnMut(&Progress),
    pacer: Pacer,
    /// Of packets, where they and not their messages are waited for.
    packet_pacer: Option<Pacer>,
    /// What the messages at hand did to the books.
    pub(crate) updates: Updates,
    started: Instant,
    last_progress: Instant,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        options: &'a ReplayOptions,
        exporter: &'a mut Exporter,
        stop: &'a StopSignal,
        observer: &'a mut dyn FnMut(&Progress),
    ) -> Session<'a> {
        let now = Instant::now();
        Session {
            options,
            tape: Tape::new(options, exporter),
            number: 0,
            ended: None,
            stop,
            observer,
            pacer: Pacer::new(options.speed),
            packet_pacer: None,
            updates: Updates::default(),
            started: now,
            last_progress: now,
        }
    }

    /// From now on packets are waited for, by the time of their capture, and messages no more: true when there is anything
    /// to wait for.
    pub(crate) fn pace_packets(&mut self) -> bool {
        let pacer = std::mem::replace(&mut self.pacer, Pacer::new(Speed::Max));
        let is_paced = self.options.speed != Speed::Max;
        self.packet_pacer = is_paced.then_some(pacer);
        is_paced
    }

    /// Waits until a packet that was captured at `ts_ns` is due: false when told to stop.
    pub(crate) fn wait_for_packet(&mut self, ts_ns: u64) -> bool {
        let Some(pacer) = &mut self.packet_pacer else { return true };
        let is_due = pacer.wait(1, |_| Some(ts_ns), self.stop).is_some();
        if !is_due {
            self.ended = Some(Ended::Stopped);
        }
        is_due
    }

    /// Records the error that ended the reading; none when the replay was stopped while it waited for a pipe.
    pub(crate) fn read_failed(&mut self, error: &impl ToString) {
        if self.stop.is_stopped() {
            self.ended = Some(Ended::Stopped);
        } else {
            self.tape.state.integrity.read_error.get_or_insert_with(|| error.to_string());
        }
    }

    /// The signal that ends the replay.
    pub(crate) const fn stop(&self) -> &'a StopSignal {
        self.stop
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Before each block: tells the progress; true when the pass is over.
    pub(crate) fn is_over(&mut self, meter: &InputMeter) -> bool {
        if self.stop.is_stopped() {
            self.ended.get_or_insert(Ended::Stopped);
        }
        if self.last_progress.elapsed() >= PROGRESS_INTERVAL {
            self.last_progress = Instant::now();
            let progress = Progress {
                bytes: meter.position(),
                bytes_total: meter.len(),
                messages: self.number,
                elapsed: self.started.elapsed(),
                file: 0,
            };
            (self.observer)(&progress);
        }
        self.ended.is_some()
    }

    /// Whether every message may go to the books as soon as it is read: nobody waits for its time, stops before its end,
    /// or looks at the books in between.
    pub(crate) fn may_apply_at_once(&self) -> bool {
        let ReplayOptions { speed, limit, to, check_every, .. } = self.options;
        let is_all_wanted = limit.is_none() && to.is_none();
        *speed == Speed::Max && is_all_wanted && check_every.is_none() && !self.tape.exporter.wants_depth()
    }

    /// Begins the recording of a file: its tables and times are those of the protocol.
    pub(crate) fn begin<P: RecordedProtocol>(
        &mut self,
        protocol: &P,
        format: Format,
        calendar: Calendar,
    ) -> Result<Source<'static>> {
        protocol.check_exports(&self.options.exports)?;
        let info = protocol.info();
        self.tape.exporter.count_from(&calendar);
        self.tape.set_price_decimals(info.price_decimals);
        Ok(Source { format, info, calendar, symbols: &[], is_snapshot: false })
    }

    /// How many of a block's messages are wanted: up to the limit and the end of the window.
    pub(crate) fn wanted<P: RecordedProtocol>(
        &mut self,
        messages: &[P::Message<'_>],
        source: &Source<'_>,
    ) -> Result<usize> {
        let is_live = |message: &P::Message<'_>| P::ts_ns(message) > 0 && !source.is_snapshot::<P>(message);
        if let (false, Some(first)) =
            (self.tape.state.has_window, messages.iter().find(|message| is_live(message)))
        {
            self.tape.state.window = Window::resolve(self.options, &source.calendar, P::ts_ns(first))?;
            self.tape.state.has_window = true;
        }
        let mut len = messages.len();
        if let Some(limit) = self.options.limit {
            let left = limit - self.number;
            if left <= len as u64 {
                (len, self.ended) = (left as usize, Some(Ended::Limit));
            }
        }
        let to_ns = self.tape.state.window.to_ns;
        if to_ns < u64::MAX
            && let Some(end) =
                messages[..len].iter().position(|message| P::ts_ns(message) >= to_ns && is_live(message))
        {
            (len, self.ended) = (end, Some(Ended::Window));
        }
        Ok(len)
    }

    /// Decodes the wanted messages of a block, and returns them; `framing` is the time that it took to find the messages.
    pub(crate) fn decode<'m, 'p, P: RecordedProtocol>(
        &mut self,
        messages: &'m [P::Message<'p>],
        source: &Source<'_>,
        framing: Duration,
    ) -> Result<&'m [P::Message<'p>]> {
        let messages = &messages[..self.wanted::<P>(messages, source)?];
        let begin = Instant::now();
        messages.iter().for_each(|message| P::fold(message, &mut self.tape.state.checksums));
        self.tape.state.decode.record(framing + begin.elapsed(), messages.len());
        Ok(messages)
    }

    /// Takes a block to books, twin and tape; the time that the books took is added to `framing`, what it
    /// took to find the messages.
    pub(crate) fn apply<P: RecordedProtocol>(
        &mut self,
        messages: &[P::Message<'_>],
        source: Source<'_>,
        pair: &mut BookPair<P>,
        framing: Duration,
        place: impl Fn(usize) -> String,
    ) -> Result {
        let BookPair { books, twin } = pair;
        let (mut start, mut elapsed) = (0, framing);
        while start < messages.len() {
            let rest = &messages[start..];
            let from_ns = self.tape.state.window.from_ns;
            let is_waited_for =
                |message: &&P::Message<'_>| P::ts_ns(message) >= from_ns && !source.is_snapshot::<P>(message);
            let ts_of = |index: usize| Some(&rest[index]).filter(is_waited_for).map(P::ts_ns);
            let Some(due) = self.pacer.wait(rest.len(), ts_of, self.stop) else {
                self.ended = Some(Ended::Stopped);
                break;
            };
            let room = twin.as_ref().map_or(u64::MAX, |twin| twin.room(self.number).max(1));
            let at_once = if self.tape.exporter.wants_depth() { 1 } else { due.min(PART_LEN) };
            let part = &rest[..at_once.min(usize::try_from(room).unwrap_or(usize::MAX))];
            let first = self.number + 1;
            self.updates.start(part.len());
            if let Some(books) = books {
                let begin = Instant::now();
                P::apply(books, first, part, &mut self.updates);
                elapsed += begin.elapsed();
                if let Some(twin) = twin {
                    let name = |instrument| self.tape.name(instrument);
                    twin.follow(first, part, &self.updates, P::orders(books), &name, |index| {
                        place(start + index)
                    });
                }
            }
            self.see::<P>(part, source, books.as_ref().map(P::orders), |index| place(start + index))?;
            start += part.len();
        }
        if books.is_some() {
            self.tape.state.books.record(elapsed, start);
        }
        Ok(())
    }

    /// Takes messages that were just applied, and what they did, to the tape.
    pub(crate) fn see<P: RecordedProtocol>(
        &mut self,
        messages: &[P::Message<'_>],
        source: Source<'_>,
        books: Option<&impl BooksById>,
        place: impl Fn(usize) -> String,
    ) -> Result {
        for found in &self.updates.contradictions {
            take_contradictions(&mut self.tape.state.integrity, found, &place);
        }
        let mut updates = self.updates.list.iter().peekable();
        for (index, message) in messages.iter().enumerate() {
            let number = self.number + 1 + index as u64;
            // Of several updates of one message the last has its prices, and one of a state says less than another.
            let mut update: Option<&MarketUpdate> = None;
            while let Some(next) = updates.next_if(|update| update.sequence == number) {
                if update.is_none() || next.kind() != Some(UpdateKind::Status) {
                    update = Some(next);
                }
            }
            let mut seen = P::see(message, number, source);
            seen.is_snapshot |= source.is_snapshot;
            self.tape.message(&seen, update, books.is_some(), || place(index))?;
            if let (Some(books), Some(_), true) = (books, update, self.tape.exporter.wants_depth()) {
                let known = &self.tape.state.instruments[usize::from(seen.instrument)];
                if known.is_chosen && !seen.is_snapshot && self.tape.state.window.contains(seen.ts_ns) {
                    let symbol = known.symbol.as_deref().unwrap_or_default();
                    let instrument = InstrumentId(seen.instrument);
                    self.tape.exporter.depth(seen.ts_ns, number, symbol, instrument, books)?;
                }
            }
        }
        self.number += messages.len() as u64;
        Ok(())
    }
}

/// Counts what contradicted the books in some messages, which begin at their places.
fn take_contradictions(integrity: &mut Integrity, found: &Contradictions, place: impl Fn(usize) -> String) {
    let (first, last) = (*found.messages.start(), *found.messages.end());
    let places = || match first == last {
        true => place(first),
        false => match (place(first), place(last)) {
            (first, last) if first == last => first,
            (first, last) => format!("{first} to {last}"),
        },
    };
    integrity.beyond_quantity.add_all(found.beyond_qty, places);
    integrity.duplicate_references.add_all(found.duplicate_order, places);
    integrity.refused.add_all(found.refused, places);
    integrity.unmapped.add_all(found.unmapped, places);
    integrity.symbol_gaps.add_all(found.symbol_gaps, places);
}
