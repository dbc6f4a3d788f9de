//! One recording in a capture: its books, and the runs of messages that are applied to them.

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
use crate::replay::{EndReason, Pass, Replay};
use crate::report::RecordingReport;
use crate::selection::Selection;

/// Consecutive messages of one recording, applied together, with marks of the packets that carried them.
#[derive(Debug, Default)]
pub(crate) struct MessageRun<'a> {
    pub(crate) recording: usize,
    pub(crate) messages: Vec<&'a [u8]>,
    pub(crate) packets: Vec<PacketMark>,
    /// True when the messages are a snapshot.
    pub(crate) is_snapshot: bool,
}

/// The start of a packet's messages in a [`MessageRun`], and the packet's number and origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketMark {
    /// Index of the packet's first message in the run.
    pub(crate) first: usize,
    /// Number of the packet in the file.
    pub(crate) number: u64,
    /// Capture time; `None` for a packet that was held until the messages before it arrived or were lost.
    pub(crate) ts_ns: Option<u64>,
    pub(crate) origin: Origin,
}

/// Channel and send time of a packet's messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    /// Index of the channel in the books of its recording; 0 for ITCH.
    pub(crate) channel: u8,
    /// Send time of the packet, for XDP only.
    pub(crate) sent: SendTime,
}

impl<'a> MessageRun<'a> {
    /// The messages of each packet, with their origin.
    pub(crate) fn by_packet(&self) -> impl Iterator<Item = (Origin, &[&'a [u8]])> {
        self.packets.iter().enumerate().map(|(index, packet)| {
            let end = self.packets.get(index + 1).map_or(self.messages.len(), |next| next.first);
            (packet.origin, &self.messages[packet.first..end])
        })
    }

    /// Text for reports that names the packet of message `index`, such as `packet 7`.
    fn position_text(&self, index: usize) -> String {
        let at = self.packets.partition_point(|packet| packet.first <= index);
        let number = at.checked_sub(1).map_or(0, |at| self.packets[at].number);
        format!("packet {number}")
    }
}

/// A protocol whose messages come in packets.
pub(crate) trait PacketProtocol: RecordedProtocol {
    /// Identity of the protocol, for selections and reports.
    const PROTOCOL: Protocol;

    /// Returns the messages of a run, with context from earlier messages, such as the mapping of a symbol
    /// index.
    fn messages_of<'r, 'a>(&mut self, run: &'r MessageRun<'a>) -> Cow<'r, [Self::Message<'a>]>;

    /// Returns the send time of a held packet (XDP only, otherwise zero) and its messages.
    fn unpack(payload: &[u8]) -> (SendTime, Vec<&[u8]>);

    /// Handles the loss of a channel's messages before sequence number `next`.
    fn handle_loss(&mut self, books: &mut BookPair<Self>, channel: u8, next: u64);

    /// Resets a channel's state here and in the books when its sequence numbers restart; returns the ids of
    /// its instruments.
    fn restart(&mut self, books: &mut BookPair<Self>, channel: u8) -> Vec<u16>;

    /// Sets the calendar's zones and date from the messages of a run, until the zones are known; ITCH only.
    fn detect_calendar(&mut self, _selection: &Selection, _run: &MessageRun<'_>, _calendar: &mut Calendar) {}
}

/// One recording in a capture.
pub(crate) struct CapturedRecording<P: PacketProtocol> {
    /// Name of the recording in reports.
    pub(crate) name: String,
    pub(crate) replay: Replay<P>,
    /// True once a message at or after the end of the window was read.
    is_ended: bool,
}

impl<P: PacketProtocol> CapturedRecording<P> {
    /// Creates a recording whose first packet was captured at `ts_ns`.
    pub(super) fn new(name: String, protocol: P, selection: &Selection, ts_ns: u64) -> Self {
        let mut calendar = selection.calendar(protocol.info().time_base, Zone::EASTERN);
        calendar.date.get_or_insert(calendar.zone.date_at(ts_ns));
        CapturedRecording { name, replay: Replay::new(protocol, calendar), is_ended: false }
    }

    /// True until the recording or the whole pass has ended.
    pub(crate) fn is_open<L>(&self, pass: &Pass<L>) -> bool {
        !self.is_ended && pass.ended.is_none()
    }

    /// Creates the books, with capacity for every 16-bit instrument id.
    pub(crate) fn create_books(&mut self, selection: &Selection, file_len: u64) {
        self.replay.create_books(selection, || BookSize::of_file(file_len, InstrumentId(u16::MAX)));
    }

    /// Records the name of an instrument from an out-of-band message.
    pub(crate) fn set_name(&mut self, selection: &Selection, instrument: u16, name: &[u8]) {
        self.replay.state.instrument(instrument, Some(name), selection);
    }
}

/// A [`CapturedRecording`] of any [`PacketProtocol`].
pub(crate) trait AnyRecording<L> {
    /// The recording as `Any`, for callers that know its protocol.
    fn as_any(&mut self) -> &mut dyn Any;

    /// Name of the recording in reports.
    fn name(&self) -> &str;

    fn protocol(&self) -> Protocol;

    /// True once a message at or after the end of the window was read.
    fn is_ended(&self) -> bool;

    /// Applies messages to the books and passes them to the listener.
    fn apply(&mut self, pass: &mut Pass<L>, run: &MessageRun<'_>, file_len: u64) -> Result;

    /// See [`PacketProtocol::unpack`].
    fn unpack<'a>(&self, payload: &'a [u8]) -> (SendTime, Vec<&'a [u8]>);

    /// See [`PacketProtocol::handle_loss`].
    fn handle_loss(&mut self, channel: u8, next: u64);

    /// See [`PacketProtocol::restart`].
    fn restart(&mut self, channel: u8);

    /// Returns the report of the recording at the end of the capture.
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

    fn apply(&mut self, pass: &mut Pass<L>, run: &MessageRun<'_>, file_len: u64) -> Result {
        if !self.is_open(pass) {
            return Ok(());
        }
        let replay = &mut self.replay;
        replay.protocol.detect_calendar(&pass.selection, run, &mut replay.calendar);
        replay.begin(pass, run.recording)?;
        self.create_books(&pass.selection, file_len);
        pass.listener.on_step(WorkStep::Other);
        let replay = &mut self.replay;
        let messages = replay.protocol.messages_of(run);
        pass.listener.on_step(WorkStep::Framed);
        let info = replay.protocol.info();
        let source = Source { info, symbols: &[], is_snapshot: run.is_snapshot };
        let messages = replay.decode(pass, &messages, &source)?;
        replay.apply(pass, messages, source, |index| run.position_text(index));
        // Clear `pass.ended`, because the other recordings continue to the end of their windows.
        if pass.ended == Some(EndReason::Window) {
            self.is_ended = true;
            pass.ended = None;
        }
        Ok(())
    }

    fn unpack<'a>(&self, payload: &'a [u8]) -> (SendTime, Vec<&'a [u8]>) {
        P::unpack(payload)
    }

    fn handle_loss(&mut self, channel: u8, next: u64) {
        self.replay.protocol.handle_loss(&mut self.replay.pair, channel, next);
    }

    fn restart(&mut self, channel: u8) {
        let instruments = self.replay.protocol.restart(&mut self.replay.pair, channel);
        self.replay.state.clear_trading_states(&instruments);
    }

    fn finish(self: Box<Self>, pass: &mut Pass<L>) -> RecordingReport {
        if self.is_ended {
            pass.ended.get_or_insert(EndReason::Window);
        }
        self.replay.finish(pass)
    }
}
