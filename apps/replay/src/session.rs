//! One pass over one recording: blocks of messages into the books, the twin and the tape.

use std::time::{Duration, Instant};

use tickpath_agent::StopSignal;
use tickpath_book::{BookLimits, BooksById, Indexed, PlainBooks};
use tickpath_capture::InputMeter;
use tickpath_nasdaq::itch50::Checksum;
use tickpath_types::{InstrumentId, MarketUpdate, UpdateKind};

use crate::apply::{ApplyMessages, Contradictions, Updates};
use crate::check::Twin;
use crate::cost::CostMeter;
use crate::exports::Exporter;
use crate::fold::Fold;
use crate::integrity::Integrity;
use crate::message::{RecordedMessage, Source};
use crate::options::{ORDERS_MAX_DEFAULT, ReplayOptions, Speed};
use crate::pace::Pacer;
use crate::run::{Progress, ReplayError};
use crate::tape::{Tape, TapeState, Window};

/// Room for orders is never below this, so that a small file has enough whatever its compression.
const ORDERS_MIN: u32 = 1 << 16;
/// At most one message adds an order in so many bytes of a file, however well it is compressed.
const FILE_BYTES_PER_ORDER: u64 = 4;
/// Messages that go to the books and then to the tape together: enough for the clock to cost nothing, few enough
/// for their updates to stay in the nearest caches.
pub(crate) const PART_LEN: usize = 512;
/// Progress is told no more often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Why a pass ended before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At the number of messages that was asked for.
    Limit,
    /// At the end of the window.
    Window,
    /// Because it was told to.
    Stopped,
}

/// Everything that one pass keeps beside the books.
pub(crate) struct Session<'a> {
    pub(crate) options: &'a ReplayOptions,
    pub(crate) tape: Tape<'a>,
    pub(crate) decode: CostMeter,
    pub(crate) books: CostMeter,
    /// Of the messages of an ITCH file.
    pub(crate) itch: Checksum,
    /// Of the events of any other.
    pub(crate) fold: Fold,
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
    has_window: bool,
}

/// What a session keeps of one recording, while another one of the same file goes on.
pub(crate) struct PassState {
    tape: TapeState,
    decode: CostMeter,
    books: CostMeter,
    itch: Checksum,
    fold: Fold,
    has_window: bool,
}

impl PassState {
    /// Before the first message.
    pub(crate) fn new() -> PassState {
        PassState {
            tape: TapeState::new(),
            decode: CostMeter::new(),
            books: CostMeter::new(),
            itch: Checksum::default(),
            fold: Fold::default(),
            has_window: false,
        }
    }

    /// Takes the name of an instrument that no message of the sequence told.
    pub(crate) fn learn(&mut self, session: &mut Session<'_>, instrument: u16, name: &[u8]) {
        session.swap(self);
        session.tape.learn(instrument, name);
        session.swap(self);
    }

    /// The states of these instruments are not known any more.
    pub(crate) fn forget(&mut self, instruments: &[u16]) {
        self.tape.forget(instruments);
    }
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
            decode: CostMeter::new(),
            books: CostMeter::new(),
            itch: Checksum::default(),
            fold: Fold::default(),
            number: 0,
            ended: None,
            stop,
            observer,
            pacer: Pacer::new(options.speed),
            packet_pacer: None,
            updates: Updates::default(),
            started: now,
            last_progress: now,
            has_window: false,
        }
    }

    /// Goes over to another recording of the same file, whose state this one's takes the place of. Numbers of messages
    /// count on.
    pub(crate) fn swap(&mut self, state: &mut PassState) {
        use std::mem::swap;
        self.tape.swap(&mut state.tape);
        swap(&mut self.decode, &mut state.decode);
        swap(&mut self.books, &mut state.books);
        swap(&mut self.itch, &mut state.itch);
        swap(&mut self.fold, &mut state.fold);
        swap(&mut self.has_window, &mut state.has_window);
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
            self.tape.integrity.read_error.get_or_insert_with(|| error.to_string());
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

    /// How many of a block's messages are wanted: up to the limit and the end of the window.
    pub(crate) fn wanted<M: RecordedMessage>(
        &mut self,
        messages: &[M],
        source: &Source<'_>,
    ) -> Result<usize, ReplayError> {
        let is_live = |message: &M| message.ts_ns() > 0 && !source.is_snapshot(message);
        if let (false, Some(first)) = (self.has_window, messages.iter().find(|message| is_live(message))) {
            self.tape.window = Window::resolve(self.options, &source.calendar, first.ts_ns())?;
            self.has_window = true;
        }
        let mut len = messages.len();
        if let Some(limit) = self.options.limit {
            let left = limit - self.number;
            if left <= len as u64 {
                (len, self.ended) = (left as usize, Some(Ended::Limit));
            }
        }
        let to_ns = self.tape.window.to_ns;
        if to_ns < u64::MAX
            && let Some(end) =
                messages[..len].iter().position(|message| message.ts_ns() >= to_ns && is_live(message))
        {
            (len, self.ended) = (end, Some(Ended::Window));
        }
        Ok(len)
    }

    /// Takes a block to books, twin and tape; the time that the books took is added to `framing`, what it
    /// took to find the messages.
    pub(crate) fn apply<M, F, P>(
        &mut self,
        messages: &[M],
        source: Source<'_>,
        books: &mut Option<F>,
        twin: &mut Option<Twin<P>>,
        framing: Duration,
        place: impl Fn(usize) -> String,
    ) -> Result<(), ReplayError>
    where
        M: RecordedMessage,
        F: ApplyMessages<M>,
        P: ApplyMessages<M, Books = Indexed<PlainBooks>>,
    {
        let (mut start, mut elapsed) = (0, framing);
        while start < messages.len() {
            let rest = &messages[start..];
            let from_ns = self.tape.window.from_ns;
            let is_waited_for = |message: &&M| message.ts_ns() >= from_ns && !source.is_snapshot(*message);
            let ts_of = |index: usize| Some(&rest[index]).filter(is_waited_for).map(M::ts_ns);
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
                books.apply(first, part, &mut self.updates);
                elapsed += begin.elapsed();
                if let Some(twin) = twin {
                    let name = |instrument| self.tape.name(instrument);
                    twin.follow(first, part, &self.updates, books.books(), &name, |index| {
                        place(start + index)
                    });
                }
            }
            self.see(part, source, books.as_ref().map(|books| books.books()), |index| place(start + index))?;
            start += part.len();
        }
        if books.is_some() {
            self.books.record(elapsed, start);
        }
        Ok(())
    }

    /// Takes messages that were just applied, and what they did, to the tape.
    pub(crate) fn see<M: RecordedMessage>(
        &mut self,
        messages: &[M],
        source: Source<'_>,
        books: Option<&impl BooksById>,
        place: impl Fn(usize) -> String,
    ) -> Result<(), ReplayError> {
        for found in &self.updates.contradictions {
            take_contradictions(&mut self.tape.integrity, found, &place);
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
            let mut seen = message.see(number, source);
            seen.is_snapshot |= source.is_snapshot;
            self.tape.message(&seen, update, books.is_some(), || place(index))?;
            if let (Some(books), Some(_), true) = (books, update, self.tape.exporter.wants_depth()) {
                let known = &self.tape.instruments[usize::from(seen.instrument)];
                if known.is_chosen && !seen.is_snapshot && self.tape.window.contains(seen.ts_ns) {
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

/// How much room the books of a recording need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BookSize {
    pub(crate) max_instrument: InstrumentId,
    pub(crate) max_orders: u32,
}

impl BookSize {
    /// For a file of which no more is known than its length.
    pub(crate) fn of_file(
        options: &ReplayOptions,
        meter: &InputMeter,
        max_instrument: InstrumentId,
    ) -> BookSize {
        let by_len = match meter.len() {
            0 => ORDERS_MAX_DEFAULT,
            len => u32::try_from(len / FILE_BYTES_PER_ORDER).unwrap_or(u32::MAX),
        };
        let max_orders = by_len.clamp(ORDERS_MIN, ORDERS_MAX_DEFAULT);
        BookSize { max_instrument, max_orders }.with_options(options)
    }

    /// With the room for orders that the options ask for, if they do.
    pub(crate) fn with_options(self, options: &ReplayOptions) -> BookSize {
        BookSize { max_orders: options.orders_max.unwrap_or(self.max_orders), ..self }
    }

    fn limits(self) -> BookLimits {
        let limits = BookLimits::new(self.max_instrument, self.max_orders);
        // Of many orders not every one has a level of its own.
        BookLimits { max_levels: self.max_orders.min(ORDERS_MIN.max(self.max_orders / 2)), ..limits }
    }

    /// Books of this size.
    pub(crate) fn empty<B: BooksById>(self) -> B {
        B::new(self.limits())
    }
}
