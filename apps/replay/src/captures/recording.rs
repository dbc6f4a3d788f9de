//! One recording in a capture: its books, and what is known of its messages.

use std::any::Any;
use std::borrow::Cow;
use std::mem::swap;
use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_capture::{Format, InputMeter};
use tickpath_config::Zone;
use tickpath_nyse::SendTime;
use tickpath_types::InstrumentId;

use crate::books::{BookPair, BookSize};
use crate::error::Result;
use crate::exports::ExportedRows;
use crate::moment::Calendar;
use crate::options::{Protocol, ReplayOptions};
use crate::protocol::{RecordedProtocol, Source};
use crate::report::{Ended, FileReport};
use crate::session::Session;
use crate::tape::RecordingState;

/// Messages of one recording that follow each other in the file, and the packets that they came in.
#[derive(Debug, Default)]
pub(crate) struct Run<'a> {
    pub(crate) recording: usize,
    pub(crate) messages: Vec<&'a [u8]>,
    /// The packets that they came in.
    pub(crate) packets: Vec<PacketMark>,
    /// True when they are a snapshot.
    pub(crate) is_snapshot: bool,
}

/// A packet of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketMark {
    /// Its first message, counted in the run.
    pub(crate) first: usize,
    /// Its number in the file.
    pub(crate) number: u64,
    /// When it was captured; `None` of one that was held.
    pub(crate) ts_ns: Option<u64>,
    pub(crate) origin: Origin,
}

/// The channel and send time that hold for the messages of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    /// The channel, counted in the capture; of ITCH 0.
    pub(crate) channel: u8,
    /// Of XDP.
    pub(crate) sent: SendTime,
}

impl<'a> Run<'a> {
    /// The messages of each packet, with what that says about them.
    pub(crate) fn by_packet(&self) -> impl Iterator<Item = (Origin, &[&'a [u8]])> {
        self.packets.iter().enumerate().map(|(index, packet)| {
            let end = self.packets.get(index + 1).map_or(self.messages.len(), |next| next.first);
            (packet.origin, &self.messages[packet.first..end])
        })
    }

    /// The packet that a message came in, as text.
    fn place(&self, index: usize) -> String {
        let at = self.packets.partition_point(|packet| packet.first <= index);
        let number = at.checked_sub(1).map_or(0, |at| self.packets[at].number);
        format!("packet {number}")
    }
}

/// A protocol whose messages come in packets.
pub(crate) trait PacketProtocol: RecordedProtocol {
    /// Its name.
    const PROTOCOL: Protocol;

    /// The messages of a run with what their place tells.
    fn place<'r, 'a>(&mut self, run: &'r Run<'a>) -> Cow<'r, [Self::Message<'a>]>;

    /// When a packet that was read before was sent, where books need that, and its messages.
    fn unpack(payload: &[u8]) -> (SendTime, Vec<&[u8]>);

    /// Messages of a channel were lost for good before this one, its next.
    fn lose(&mut self, books: &mut BookPair<Self>, channel: u8, next: u64);

    /// The numbering of a channel restarted, and its books with it: the instruments of which nothing is known any more.
    fn restart(&mut self, books: &mut BookPair<Self>, channel: u8) -> Vec<u16>;

    /// Finds out from the next messages what times of the recording mean, where that is not known.
    fn learn_calendar(&mut self, _options: &ReplayOptions, _run: &Run<'_>, _calendar: &mut Calendar) {}
}

/// One recording in a capture.
pub(crate) struct CapturedRecording<P: PacketProtocol> {
    /// Its name in reports.
    pub(crate) name: String,
    pub(crate) protocol: P,
    pub(crate) pair: BookPair<P>,
    state: RecordingState,
    calendar: Calendar,
    read: u64,
    exported: ExportedRows,
    /// True when its window is over.
    is_ended: bool,
}

impl<P: PacketProtocol> CapturedRecording<P> {
    /// A recording whose first packet was captured at `ts_ns`.
    pub(super) fn new(name: String, protocol: P, options: &ReplayOptions, ts_ns: u64) -> Self {
        let mut calendar = options.calendar(protocol.info().time_base, Zone::EASTERN);
        calendar.date.get_or_insert(calendar.zone.date_at(ts_ns));
        CapturedRecording {
            name,
            protocol,
            pair: BookPair::NONE,
            state: RecordingState::new(),
            calendar,
            read: 0,
            exported: ExportedRows::default(),
            is_ended: false,
        }
    }

    /// Whether its messages are still wanted.
    pub(crate) fn is_open(&self, session: &Session<'_>) -> bool {
        !self.is_ended && session.ended.is_none()
    }

    /// Makes the books, with room for every instrument that a number can name.
    pub(crate) fn create_books(&mut self, options: &ReplayOptions, meter: &InputMeter) {
        let size = || BookSize::of_file(meter, InstrumentId(u16::MAX));
        self.pair.create(&self.protocol, options, &self.calendar, size);
    }

    /// Takes the name of an instrument that no message of the sequence told.
    pub(crate) fn learn(&mut self, session: &mut Session<'_>, instrument: u16, name: &[u8]) {
        self.in_own_state(session, |_, session| session.tape.learn(instrument, name));
    }

    /// Does some work while the session has the state of this recording.
    fn in_own_state<'o, R>(
        &mut self,
        session: &mut Session<'o>,
        work: impl FnOnce(&mut Self, &mut Session<'o>) -> R,
    ) -> R {
        swap(&mut session.tape.state, &mut self.state);
        let result = work(self, session);
        swap(&mut session.tape.state, &mut self.state);
        result
    }

    fn source(&self, format: Format) -> Source<'static> {
        let (info, calendar) = (self.protocol.info(), self.calendar);
        Source { format, info, calendar, symbols: &[], is_snapshot: false }
    }
}

/// A recording of any protocol, see [`CapturedRecording`] and [`PacketProtocol`].
pub(crate) trait AnyRecording: Any {
    /// Its name in reports.
    fn name(&self) -> &str;

    fn protocol(&self) -> Protocol;

    /// True when its window is over.
    fn is_ended(&self) -> bool;

    /// Takes messages to the books and the tape; `framing` is what it took to find them.
    fn apply(
        &mut self,
        session: &mut Session<'_>,
        run: &Run<'_>,
        meter: &InputMeter,
        framing: Duration,
    ) -> Result;

    /// See [`PacketProtocol::unpack`].
    fn unpack<'a>(&self, payload: &'a [u8]) -> (SendTime, Vec<&'a [u8]>);

    /// See [`PacketProtocol::lose`].
    fn lose(&mut self, channel: u8, next: u64);

    /// See [`PacketProtocol::restart`].
    fn restart(&mut self, channel: u8);

    /// The report, at the end of the capture.
    fn finish(self: Box<Self>, path: &Path, format: Format, session: &mut Session<'_>) -> FileReport;
}

impl<P: PacketProtocol> AnyRecording for CapturedRecording<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn protocol(&self) -> Protocol {
        P::PROTOCOL
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn apply(
        &mut self,
        session: &mut Session<'_>,
        run: &Run<'_>,
        meter: &InputMeter,
        framing: Duration,
    ) -> Result {
        if !self.is_open(session) {
            return Ok(());
        }
        self.protocol.learn_calendar(session.options, run, &mut self.calendar);
        session.tape.exporter.go_to(run.recording);
        session.tape.exporter.count_from(&self.calendar);
        self.in_own_state(session, |recording, session| {
            let (number, rows) = (session.number, session.tape.exporter.rows());
            recording.protocol.check_exports(&session.options.exports)?;
            recording.create_books(session.options, meter);
            let begin = Instant::now();
            let messages = recording.protocol.place(run);
            let framing = framing + begin.elapsed();
            let source = Source { is_snapshot: run.is_snapshot, ..recording.source(Format::Pcap) };
            let messages = session.decode::<P>(&messages, &source, framing)?;
            session.apply(messages, source, &mut recording.pair, framing, |index| run.place(index))?;
            recording.read += session.number - number;
            recording.exported.add(&session.tape.exporter.rows().since(&rows));
            // The other recordings go on to the end of their windows.
            if session.ended == Some(Ended::Window) {
                recording.is_ended = true;
                session.ended = None;
            }
            Ok(())
        })
    }

    fn unpack<'a>(&self, payload: &'a [u8]) -> (SendTime, Vec<&'a [u8]>) {
        P::unpack(payload)
    }

    fn lose(&mut self, channel: u8, next: u64) {
        self.protocol.lose(&mut self.pair, channel, next);
    }

    fn restart(&mut self, channel: u8) {
        let instruments = self.protocol.restart(&mut self.pair, channel);
        self.state.forget(&instruments);
    }

    fn finish(mut self: Box<Self>, path: &Path, format: Format, session: &mut Session<'_>) -> FileReport {
        if self.is_ended && session.ended.is_none() {
            session.ended = Some(Ended::Window);
        }
        let source = self.source(format);
        let pair = std::mem::replace(&mut self.pair, BookPair::NONE);
        let mut report = self.in_own_state(session, |recording, session| {
            session.conclude(path, &recording.protocol, source, pair, None)
        });
        report.messages_read = self.read;
        report.exported = self.exported;
        report
    }
}
