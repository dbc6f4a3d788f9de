//! Replays the messages of one file through the books, their reference model and the listener.

use tickpath_types::{InstrumentId, MarketUpdate, UpdateKind};

use crate::books::{BookPair, BookSize};
use crate::error::Result;
use crate::integrity::Integrity;
use crate::listener::{Listener, WorkStep};
use crate::moment::Calendar;
use crate::protocol::{RecordedProtocol, Source};
use crate::selection::Selection;
use crate::state::RecordingState;
use crate::updates::{Contradictions, Updates};

/// Number of messages applied to the books and then passed to the listener together: enough to amortise the
/// time measurement, and few enough for their updates to stay in the L1 or L2 cache.
pub const PART_LEN: usize = 512;

/// The pass over one file, shared by all of its recordings.
pub struct Pass<L> {
    /// The selection of messages, symbols and output.
    pub selection: Selection,
    /// Receives the messages, trades and prices.
    pub listener: L,
    /// The reason why the pass ended before the end of the file, if it did.
    pub ended: Option<EndReason>,
    /// Number of messages handled so far, in all recordings.
    message_count: u64,
    /// The book updates of the messages applied last.
    pub(crate) updates: Updates,
}

impl<L> Pass<L> {
    /// Creates the pass before its first message.
    pub fn new(selection: Selection, listener: L) -> Pass<L> {
        Pass { selection, listener, ended: None, message_count: 0, updates: Updates::default() }
    }

    /// Number of messages handled so far, in all recordings.
    pub const fn message_count(&self) -> u64 {
        self.message_count
    }

    /// Begins a part: a group of at most `len` messages for [`apply_at_once`](crate::apply_at_once).
    pub fn begin_part(&mut self, len: usize) {
        self.updates.start(len);
    }
}

/// The reason why a pass ended before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The maximum number of messages (`--limit`) was reached.
    Limit,
    /// The end of the window (`--to`) was reached.
    Window,
    /// The caller stopped the pass.
    Stopped,
}

/// The replay of one recording.
pub struct Replay<P: RecordedProtocol> {
    pub(crate) protocol: P,
    pub(crate) calendar: Calendar,
    pub(crate) pair: BookPair<P>,
    pub(crate) state: RecordingState,
    /// Number of the recording's messages handled so far.
    pub(crate) message_count: u64,
}

impl<P: RecordedProtocol> Replay<P> {
    /// Creates the replay of a recording whose times are interpreted by `calendar`.
    pub fn new(protocol: P, calendar: Calendar) -> Replay<P> {
        let state = RecordingState::new(protocol.info().price_decimals);
        Replay { protocol, calendar, pair: BookPair::NONE, state, message_count: 0 }
    }

    /// Announces the recording to the listener; `recording` is its number in the file, from 0.
    ///
    /// # Errors
    /// When requested tables have no data in the recording.
    pub fn begin<L: Listener>(&self, pass: &mut Pass<L>, recording: usize) -> Result {
        self.protocol.check_tables(pass.selection.tables)?;
        pass.listener.on_recording(recording, &self.calendar, self.protocol.info().price_decimals);
        Ok(())
    }

    /// Creates the books and the reference model that `selection` requests, if the books do not exist yet.
    pub fn create_books(&mut self, selection: &Selection, size: impl FnOnce() -> BookSize) {
        self.pair.create(&self.protocol, selection, &self.calendar, size);
    }

    /// True once books were created.
    pub const fn has_books(&self) -> bool {
        self.pair.books.is_some()
    }

    /// Counts an invalid message, at the position that `place` describes.
    pub fn count_malformed(&mut self, place: impl FnOnce() -> String) {
        self.state.integrity.malformed.add(place);
    }

    /// Records the error that ended the reading.
    pub fn read_failed(&mut self, error: impl FnOnce() -> String) {
        self.state.integrity.read_error.get_or_insert_with(error);
    }

    /// True when reading ended with an error.
    pub const fn is_read_failed(&self) -> bool {
        self.state.integrity.read_error.is_some()
    }

    /// Start of the window, in the recording's time; 0 until the first message determines the window.
    pub const fn from_ns(&self) -> u64 {
        self.state.window.from_ns
    }

    /// Returns the number of messages to handle, from the start of a block. Sets `pass.ended` if the block
    /// reaches the limit or the end of the window.
    ///
    /// # Errors
    /// When `--from` or `--to` needs an unknown date, or the window is empty.
    pub fn messages_to_handle<L>(
        &mut self,
        pass: &mut Pass<L>,
        messages: &[P::Message<'_>],
        source: &Source<'_>,
    ) -> Result<usize> {
        let is_live = |message: &P::Message<'_>| P::ts_ns(message) > 0 && !source.is_snapshot::<P>(message);
        if let (false, Some(first)) =
            (self.state.has_window, messages.iter().find(|message| is_live(message)))
        {
            self.state.window = pass.selection.window(&self.calendar, P::ts_ns(first))?;
            self.state.has_window = true;
        }
        let mut len = messages.len();
        if let Some(limit) = pass.selection.limit {
            let left = limit - pass.message_count;
            if left <= len as u64 {
                (len, pass.ended) = (left as usize, Some(EndReason::Limit));
            }
        }
        let to_ns = self.state.window.to_ns;
        if to_ns < u64::MAX
            && let Some(end) =
                messages[..len].iter().position(|message| P::ts_ns(message) >= to_ns && is_live(message))
        {
            (len, pass.ended) = (end, Some(EndReason::Window));
        }
        Ok(len)
    }

    /// Adds all fields of a message to the checksum.
    #[inline]
    pub fn digest(&mut self, message: &P::Message<'_>) {
        P::digest(message, &mut self.state.checksums);
    }

    /// Decodes a block's messages, up to the limit or the end of the window, and adds them to the checksum.
    /// Returns these messages.
    ///
    /// # Errors
    /// As [`Replay::messages_to_handle`].
    pub fn decode<'m, 'p, L: Listener>(
        &mut self,
        pass: &mut Pass<L>,
        messages: &'m [P::Message<'p>],
        source: &Source<'_>,
    ) -> Result<&'m [P::Message<'p>]> {
        let messages = &messages[..self.messages_to_handle(pass, messages, source)?];
        pass.listener.on_step(WorkStep::Other);
        messages.iter().for_each(|message| P::digest(message, &mut self.state.checksums));
        pass.listener.on_step(WorkStep::Decoded(messages.len()));
        Ok(messages)
    }

    /// Applies messages to the books and the reference model, and passes them to the listener.
    pub fn apply<L: Listener>(
        &mut self,
        pass: &mut Pass<L>,
        messages: &[P::Message<'_>],
        source: Source<'_>,
        place: impl Fn(usize) -> String,
    ) {
        let mut start = 0;
        while start < messages.len() {
            let BookPair { books, model } = &mut self.pair;
            let rest = &messages[start..];
            let to_comparison = model
                .as_ref()
                .map_or(u64::MAX, |model| model.messages_to_comparison(pass.message_count).max(1));
            let at_once = if pass.listener.wants_books() { 1 } else { rest.len().min(PART_LEN) };
            let part = &rest[..at_once.min(usize::try_from(to_comparison).unwrap_or(usize::MAX))];
            let first = pass.message_count + 1;
            pass.updates.start(part.len());
            if let Some(books) = books {
                if let ([message], true) = (part, pass.listener.wants_books())
                    && self.state.window.contains(P::ts_ns(message))
                    && !source.is_snapshot::<P>(message)
                {
                    pass.listener.before_message(P::ts_ns(message), P::orders(books));
                }
                pass.listener.on_step(WorkStep::Other);
                P::apply(books, first, part, &mut pass.updates);
                pass.listener.on_step(WorkStep::Applied);
                if let Some(model) = model {
                    let name = |instrument| self.state.name(instrument);
                    model.apply_and_compare(first, part, &pass.updates, P::orders(books), &name, |index| {
                        place(start + index)
                    });
                }
            }
            self.publish(pass, part, source, |index| place(start + index));
            start += part.len();
        }
        pass.listener.on_step(WorkStep::Done(if self.has_books() { start } else { 0 }));
    }

    /// Passes messages that were just applied, and their effects, to counts, statistics and the listener.
    pub fn publish<L: Listener>(
        &mut self,
        pass: &mut Pass<L>,
        messages: &[P::Message<'_>],
        source: Source<'_>,
        place: impl Fn(usize) -> String,
    ) {
        let (state, books) = (&mut self.state, self.pair.books.as_ref().map(P::orders));
        for found in &pass.updates.contradictions {
            take_contradictions(&mut state.integrity, found, &place);
        }
        let mut updates = pass.updates.list.iter().peekable();
        for (index, message) in messages.iter().enumerate() {
            let number = pass.message_count + 1 + index as u64;
            // Of several updates of one message, use the last that is not a status update, or else the first.
            let mut update: Option<&MarketUpdate> = None;
            while let Some(next) = updates.next_if(|update| update.sequence == number) {
                if update.is_none() || next.kind() != Some(UpdateKind::Status) {
                    update = Some(next);
                }
            }
            let mut view = P::view(message, number, source);
            view.is_snapshot |= source.is_snapshot;
            state.message(&view, update, books.is_some(), &pass.selection, &mut pass.listener, || {
                place(index)
            });
            if let (Some(books), Some(_), true) = (books, update, pass.listener.wants_books()) {
                let known = &state.instruments[usize::from(view.instrument)];
                if known.is_chosen && !view.is_snapshot && state.window.contains(view.ts_ns) {
                    let symbol = known.symbol.as_deref().unwrap_or_default();
                    pass.listener.on_book(&view, symbol, InstrumentId(view.instrument), books);
                }
            }
        }
        pass.message_count += messages.len() as u64;
        self.message_count += messages.len() as u64;
    }
}

/// Counts contradictions between a range of messages and the books; `place` describes a message's position.
fn take_contradictions(integrity: &mut Integrity, found: &Contradictions, place: impl Fn(usize) -> String) {
    let (first, last) = (*found.messages.start(), *found.messages.end());
    let places = || match first == last {
        true => place(first),
        false => match (place(first), place(last)) {
            (first, last) if first == last => first,
            (first, last) => format!("{first} to {last}"),
        },
    };
    let Integrity { beyond_quantity, duplicate_references, refused, unmapped, symbol_gaps, .. } = integrity;
    let findings = [beyond_quantity, duplicate_references, refused, unmapped, symbol_gaps];
    findings.into_iter().zip(found.counts).for_each(|(finding, count)| finding.add_all(count, places));
}
