//! One recording in a capture: its books, and what is known of its messages.

use std::any::Any;
use std::borrow::Cow;

use tickpath_nyse::SendTime;
use tickpath_types::{InstrumentId, Zone};

use crate::books::{BookPair, BookSize};
use crate::error::Result;
use crate::listener::{Listener, WorkStep};
use crate::moment::Calendar;
use crate::protocol::{RecordedProtocol, Source};
use crate::protocol_name::Protocol;
use crate::replay::{Ended, Pass, Replay};
use crate::report::RecordingReport;
use crate::selection::Selection;

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
    /// Which it is.
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
    fn learn_calendar(&mut self, _selection: &Selection, _run: &Run<'_>, _calendar: &mut Calendar) {}
}

/// One recording in a capture.
pub(crate) struct CapturedRecording<P: PacketProtocol> {
    /// Its name in reports.
    pub(crate) name: String,
    pub(crate) replay: Replay<P>,
    /// True when its window is over.
    is_ended: bool,
}

impl<P: PacketProtocol> CapturedRecording<P> {
    /// A recording whose first packet was captured at `ts_ns`.
    pub(super) fn new(name: String, protocol: P, selection: &Selection, ts_ns: u64) -> Self {
        let mut calendar = selection.calendar(protocol.info().time_base, Zone::EASTERN);
        calendar.date.get_or_insert(calendar.zone.date_at(ts_ns));
        CapturedRecording { name, replay: Replay::new(protocol, calendar), is_ended: false }
    }

    /// Whether its messages are still wanted.
    pub(crate) fn is_open<L>(&self, pass: &Pass<L>) -> bool {
        !self.is_ended && pass.ended.is_none()
    }

    /// Makes the books, with room for every instrument that a number can name.
    pub(crate) fn create_books(&mut self, selection: &Selection, file_len: u64) {
        self.replay.create_books(selection, || BookSize::of_file(file_len, InstrumentId(u16::MAX)));
    }

    /// Takes the name of an instrument that no message of the sequence told.
    pub(crate) fn learn(&mut self, selection: &Selection, instrument: u16, name: &[u8]) {
        self.replay.state.instrument(instrument, Some(name), selection);
    }
}

/// A recording of any protocol, see [`CapturedRecording`] and [`PacketProtocol`].
pub(crate) trait AnyRecording<L> {
    /// Itself, for who knows its protocol.
    fn as_any(&mut self) -> &mut dyn Any;

    /// Its name in reports.
    fn name(&self) -> &str;

    fn protocol(&self) -> Protocol;

    /// True when its window is over.
    fn is_ended(&self) -> bool;

    /// Takes messages to the books and the listener.
    fn apply(&mut self, pass: &mut Pass<L>, run: &Run<'_>, file_len: u64) -> Result;

    /// See [`PacketProtocol::unpack`].
    fn unpack<'a>(&self, payload: &'a [u8]) -> (SendTime, Vec<&'a [u8]>);

    /// See [`PacketProtocol::lose`].
    fn lose(&mut self, channel: u8, next: u64);

    /// See [`PacketProtocol::restart`].
    fn restart(&mut self, channel: u8);

    /// The report, at the end of the capture.
    fn finish(self: Box<Self>, pass: &mut Pass<L>) -> RecordingReport;
}

impl<P: PacketProtocol, L: Listener> AnyRecording<L> for CapturedRecording<P> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn protocol(&self) -> Protocol {
        P::PROTOCOL
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn apply(&mut self, pass: &mut Pass<L>, run: &Run<'_>, file_len: u64) -> Result {
        if !self.is_open(pass) {
            return Ok(());
        }
        let replay = &mut self.replay;
        replay.protocol.learn_calendar(&pass.selection, run, &mut replay.calendar);
        replay.begin(pass, run.recording)?;
        self.create_books(&pass.selection, file_len);
        pass.listener.on_step(WorkStep::Other);
        let replay = &mut self.replay;
        let messages = replay.protocol.place(run);
        pass.listener.on_step(WorkStep::Framed);
        let info = replay.protocol.info();
        let source = Source { info, symbols: &[], is_snapshot: run.is_snapshot };
        let messages = replay.decode(pass, &messages, &source)?;
        replay.apply(pass, messages, source, |index| run.place(index));
        // The other recordings continue to the end of their windows.
        if pass.ended == Some(Ended::Window) {
            self.is_ended = true;
            pass.ended = None;
        }
        Ok(())
    }

    fn unpack<'a>(&self, payload: &'a [u8]) -> (SendTime, Vec<&'a [u8]>) {
        P::unpack(payload)
    }

    fn lose(&mut self, channel: u8, next: u64) {
        self.replay.protocol.lose(&mut self.replay.pair, channel, next);
    }

    fn restart(&mut self, channel: u8) {
        let instruments = self.replay.protocol.restart(&mut self.replay.pair, channel);
        self.replay.state.forget(&instruments);
    }

    fn finish(self: Box<Self>, pass: &mut Pass<L>) -> RecordingReport {
        if self.is_ended {
            pass.ended.get_or_insert(Ended::Window);
        }
        self.replay.finish(pass)
    }
}
