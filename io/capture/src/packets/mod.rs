//! Reads packets from pcap and pcapng files, and decodes several link layers down to UDP and TCP payloads.

mod blocks;
mod classic;
mod frame;
mod record;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::net::SocketAddrV4;
use std::ops::Range;

use blocks::Blocks;
use classic::Classic;
use frame::{Datagram, LinkLayer, Skip, decode, udp_fast_path};
use record::{Record, Step};

use tickpath_recording::{Packet, Transport};

use crate::input::Input;
use crate::window::Window;
use crate::{Format, Position, ReadError, RecordingFile};

pub use record::PACKET_LEN_MAX;

/// Length of the read-ahead buffer in bytes: longer than any record or block that contains a packet.
const WINDOW_LEN: usize = PACKET_LEN_MAX + 128 * 1024;

/// Numbers of frames read, by transport, and of frames skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Number of frames read, including skipped ones.
    pub frames: u64,
    /// Number of UDP datagrams.
    pub udp: u64,
    /// Number of TCP segments.
    pub tcp: u64,
    skipped: [u64; Skip::COUNT],
}

impl PacketCounters {
    /// The number of skipped frames for each reason, with the reason's description.
    #[must_use]
    pub fn skipped(&self) -> [(&'static str, u64); Skip::COUNT] {
        Skip::ALL.map(|reason| (reason.description(), self.skipped[reason.index()]))
    }
}

/// The file's format, detected from the file header.
enum Framing {
    Unknown,
    Classic(Classic),
    Blocks(Blocks),
}

/// Parser state, kept from one [`PacketBlock`] to the next.
struct State {
    framing: Framing,
    counters: PacketCounters,
    /// Number of bytes of a skipped block that were not read yet.
    skip: u64,
    malformed: Option<String>,
}

/// Reads the packets of a decompressed capture file in constant memory. The file is pcapng, or pcap with
/// times in micro- or nanoseconds, in either byte order.
///
/// Reading and parsing are two calls, so that each can be timed separately: [`Packets::fill`] reads data,
/// [`Packets::block`] returns the packets in it without copying. [`Packets::next_packet`] does both and
/// returns one packet.
///
/// ```
/// use tickpath_capture::{Packets, Transport};
///
/// // The header of a pcap file, of frames that begin with an IPv4 header, and one of them.
/// let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
/// file.extend([10, 0, 0, 0, 7, 0, 0, 0, 30, 0, 0, 0, 30, 0, 0, 0]);
/// file.extend([0x45, 0, 0, 30, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1, 233, 1, 1, 1]);
/// file.extend([0, 9, 0, 10, 0, 10, 0, 0, b'h', b'i']);
/// let mut packets = Packets::new(&file[..]);
/// let packet = packets.next_packet()?.expect("there is one");
/// assert_eq!((packet.ts_ns, packet.payload, packet.transport), (10_000_007_000, &b"hi"[..], Transport::Udp));
/// assert_eq!(packet.dst.to_string(), "233.1.1.1:10");
/// assert!(packets.next_packet()?.is_none());
/// # Ok::<(), tickpath_capture::ReadError>(())
/// ```
pub struct Packets<R> {
    window: Window<R>,
    state: State,
    /// Number of bytes of the window that were parsed; `fill` discards them.
    taken: usize,
    is_finished: bool,
}

impl Packets<Input> {
    /// Creates a reader of an open file, whose format should be [`Format::Pcap`] or [`Format::PcapNg`].
    #[must_use]
    pub fn of(file: RecordingFile) -> Self {
        Packets::new(file.input)
    }
}

impl<R: Read> Packets<R> {
    /// Creates a reader of one file.
    pub fn new(reader: R) -> Self {
        let state = State {
            framing: Framing::Unknown,
            counters: PacketCounters::default(),
            skip: 0,
            malformed: None,
        };
        Packets { window: Window::of_len(reader, WINDOW_LEN), state, taken: 0, is_finished: false }
    }

    /// Counters of the frames read and skipped so far.
    #[must_use]
    pub const fn counters(&self) -> &PacketCounters {
        &self.state.counters
    }

    /// Reads more data; false at the end of the file. Returns as soon as a pipe has any data.
    ///
    /// # Errors
    /// [`ReadError`] with its position. All packets before it were returned; later calls return false.
    pub fn fill(&mut self) -> Result<bool, ReadError> {
        if self.is_finished {
            return Ok(false);
        }
        self.window.consume(std::mem::take(&mut self.taken));
        let outcome = self.read();
        self.is_finished = !matches!(outcome, Ok(true));
        outcome
    }

    fn read(&mut self) -> Result<bool, ReadError> {
        let offset = self.window.offset();
        if let Some(what) = self.state.malformed.take() {
            return Err(self.window.damage_or(ReadError::malformed(Position::Byte(offset), what), None));
        }
        loop {
            let skipped = self.state.skip.min(self.window.data().len() as u64);
            self.window.consume(skipped as usize);
            self.state.skip -= skipped;
            if skipped > 0 && self.state.skip == 0 && !self.window.data().is_empty() {
                return Ok(true);
            }
            self.window.compact();
            match self.window.fill() {
                Ok(true) if self.state.skip == 0 => return Ok(true),
                Ok(true) => {}
                Ok(false) if !self.window.is_at_end() => return Ok(true),
                Ok(false) => {
                    let is_whole = self.window.data().is_empty() && self.state.skip == 0;
                    let offset = self.window.offset();
                    return if is_whole { Ok(false) } else { Err(ReadError::Truncated { offset }) };
                }
                Err(error) => return Err(error.after(self.window.offset())),
            }
        }
    }

    /// The packets in the data read by [`Packets::fill`]; possibly none. If the iterator is dropped early,
    /// the next block begins with the packets that it did not return.
    #[inline]
    pub fn block(&mut self) -> PacketBlock<'_> {
        PacketBlock { data: self.window.data(), state: &mut self.state, taken: &mut self.taken }
    }

    /// Reads the next packet; `None` at the end.
    ///
    /// # Errors
    /// As [`Packets::fill`].
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        loop {
            if let Some(found) = self.state.find(self.window.data(), &mut self.taken) {
                return Ok(Some(found.packet(self.window.data())));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }
}

/// Iterator over the packets in the data that is in memory; see [`Packets::block`].
pub struct PacketBlock<'a> {
    data: &'a [u8],
    state: &'a mut State,
    taken: &'a mut usize,
}

impl<'a> Iterator for PacketBlock<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        if let Some(packet) = self.state.fast_path(self.data, self.taken) {
            return Some(packet);
        }
        self.state.find(self.data, self.taken).map(|found| found.packet(self.data))
    }
}

/// A packet, with its payload as a range of the window's data.
struct PacketLocation {
    number: u64,
    ts_ns: u64,
    src: SocketAddrV4,
    dst: SocketAddrV4,
    transport: Transport,
    payload: Range<usize>,
}

impl PacketLocation {
    #[inline]
    fn packet(self, data: &[u8]) -> Packet<'_> {
        let PacketLocation { number, ts_ns, src, dst, transport, payload } = self;
        Packet { number, ts_ns, src, dst, transport, payload: &data[payload] }
    }
}

impl State {
    /// Returns the packet at offset `taken` if [`udp_fast_path`] accepts it. Otherwise leaves `taken`
    /// unchanged; [`State::find`] then handles the packet.
    #[inline]
    fn fast_path<'a>(&mut self, data: &'a [u8], taken: &mut usize) -> Option<Packet<'a>> {
        let Framing::Classic(classic) = &self.framing else { return None };
        let Step::Record(record, len) = classic.next(data.get(*taken..)?) else { return None };
        if record.link != LinkLayer::Ethernet || self.skip > 0 || self.malformed.is_some() {
            return None;
        }
        let Datagram { src, dst, transport, payload } = udp_fast_path(record.frame)?;
        *taken += len;
        self.counters.frames += 1;
        self.counters.udp += 1;
        Some(Packet { number: self.counters.frames, ts_ns: record.ts_ns, src, dst, transport, payload })
    }

    /// Returns the first UDP or TCP packet in `data` from offset `taken`; skips other frames.
    #[inline(never)]
    fn find(&mut self, data: &[u8], taken: &mut usize) -> Option<PacketLocation> {
        while self.skip == 0 && self.malformed.is_none() {
            let rest = &data[*taken..];
            let step = match &mut self.framing {
                Framing::Classic(classic) => classic.next(rest),
                Framing::Blocks(blocks) => blocks.next(rest),
                Framing::Unknown => self.begin(rest),
            };
            match step {
                Step::Record(record, len) => {
                    *taken += len;
                    if let Some(found) = self.datagram(&record, data) {
                        return Some(found);
                    }
                }
                Step::WithoutTime(len) => {
                    *taken += len;
                    self.counters.frames += 1;
                    self.counters.skipped[Skip::Time.index()] += 1;
                }
                Step::Skip(len) => {
                    let here = len.min(rest.len() as u64);
                    *taken += here as usize;
                    self.skip = len - here;
                }
                Step::Incomplete => return None,
                Step::Malformed(what) => self.malformed = Some(what),
            }
        }
        None
    }

    /// Counts a frame, which must be a slice of `data`, and returns its packet; `None` if it is skipped.
    #[inline]
    fn datagram(&mut self, record: &Record<'_>, data: &[u8]) -> Option<PacketLocation> {
        self.counters.frames += 1;
        let datagram = match decode(record.link, record.frame, record.is_cut) {
            Ok(datagram) => datagram,
            Err(reason) => {
                self.counters.skipped[reason.index()] += 1;
                return None;
            }
        };
        *match datagram.transport {
            Transport::Udp => &mut self.counters.udp,
            Transport::Tcp(_) => &mut self.counters.tcp,
        } += 1;
        let start = datagram.payload.as_ptr() as usize - data.as_ptr() as usize;
        Some(PacketLocation {
            number: self.counters.frames,
            ts_ns: record.ts_ns,
            src: datagram.src,
            dst: datagram.dst,
            transport: datagram.transport,
            payload: start..start + datagram.payload.len(),
        })
    }

    /// Detects the format from the file header.
    #[cold]
    fn begin<'a>(&mut self, data: &'a [u8]) -> Step<'a> {
        let Some(magic) = data.first_chunk::<4>() else { return Step::Incomplete };
        match Format::of_bytes(magic) {
            Ok(Format::PcapNg) => {
                self.framing = Framing::Blocks(Blocks::new());
                Step::Skip(0)
            }
            Ok(Format::Pcap) => match Classic::parse(data) {
                Some((classic, len)) => {
                    self.framing = Framing::Classic(classic);
                    Step::Skip(len as u64)
                }
                None => Step::Incomplete,
            },
            _ => Step::Malformed("neither pcap nor pcapng".to_owned()),
        }
    }
}
