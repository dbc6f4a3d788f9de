//! Reads recordings as packets with their times.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use anyhow::{Context as _, bail};
use tickpath_capture::{Format, InputMeter, ItchBlocks, PacketCounters, Packets, RecordingFile, Transport};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder, Session};
use tickpath_types::Sequence;

/// Maximum time in ns between the first and the last message of a packet that is built from an ITCH file.
const SHARED_PACKET_NS: u64 = 20_000;
/// Byte range of the time stamp in an ITCH message.
const TIMESTAMP: std::ops::Range<usize> = 5..11;

/// One packet of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed {
    /// Time of the packet in nanoseconds: its capture time, or the time stamp of its first ITCH message.
    pub(crate) ts_ns: u64,
    pub(crate) dst: Option<SocketAddrV4>,
    pub(crate) payload: Vec<u8>,
}

/// Reads the packets of a recording in constant memory.
pub(crate) struct Source {
    reader: Reader,
    meter: InputMeter,
}

enum Reader {
    Capture { packets: Box<Packets<Box<dyn std::io::Read + Send>>>, tcp: u64 },
    Itch(Box<ItchFile>),
}

impl Source {
    /// Opens a capture, or a file of ITCH messages, which are framed in MoldUDP64 with this session name.
    pub(crate) fn open(path: &Path, session: Session) -> anyhow::Result<Source> {
        let file = RecordingFile::open(path)?;
        let (format, meter) = (file.format(), file.meter().clone());
        let reader = match format {
            Format::Pcap | Format::PcapNg => Reader::Capture { packets: Box::new(Packets::of(file)), tcp: 0 },
            Format::Itch => Reader::Itch(Box::new(ItchFile::new(ItchBlocks::of(file), session))),
            other => {
                bail!(
                    "{} is {other:?}: --publish sends captures (pcap, pcapng) and ITCH files",
                    path.display()
                )
            }
        };
        Ok(Source { reader, meter })
    }

    /// Returns the progress of reading the file.
    pub(crate) fn meter(&self) -> &InputMeter {
        &self.meter
    }

    /// Reads the next packet into `timed`; false at the end.
    pub(crate) fn next(&mut self, timed: &mut Timed) -> anyhow::Result<bool> {
        match &mut self.reader {
            Reader::Itch(file) => file.next(timed).context("the recording ends here"),
            Reader::Capture { packets, tcp } => loop {
                let Some(packet) = packets.next_packet().context("the recording ends here")? else {
                    return Ok(false);
                };
                if packet.transport != Transport::Udp {
                    *tcp += 1;
                    continue;
                }
                (timed.ts_ns, timed.dst) = (packet.ts_ns, Some(packet.dst));
                timed.payload.clear();
                timed.payload.extend_from_slice(packet.payload);
                return Ok(true);
            },
        }
    }

    /// Returns the number of TCP packets, which are skipped, and the counters of the capture's frames.
    pub(crate) fn skipped_counts(&self) -> (u64, PacketCounters) {
        match &self.reader {
            Reader::Capture { packets, tcp } => (*tcp, *packets.counters()),
            Reader::Itch(_) => (0, PacketCounters::default()),
        }
    }
}

/// Reads a file of ITCH messages and packs the messages into MoldUDP64 packets.
struct ItchFile {
    blocks: ItchBlocks<Box<dyn std::io::Read + Send>>,
    builder: PacketBuilder<Box<[u8]>>,
    /// Time of each packet of the current block, and the packet's end offset in `bytes`.
    packets: Vec<(u64, usize)>,
    bytes: Vec<u8>,
    taken: usize,
}

impl ItchFile {
    fn new(blocks: ItchBlocks<Box<dyn std::io::Read + Send>>, session: Session) -> ItchFile {
        let buffer = vec![0; DATAGRAM_LEN_MAX].into_boxed_slice();
        let builder = PacketBuilder::new(buffer, session, Sequence(1));
        ItchFile { blocks, builder, packets: Vec::new(), bytes: Vec::new(), taken: 0 }
    }

    fn next(&mut self, timed: &mut Timed) -> anyhow::Result<bool> {
        while self.taken == self.packets.len() {
            if !self.fill()? {
                return Ok(false);
            }
        }
        let start = self.taken.checked_sub(1).map_or(0, |before| self.packets[before].1);
        let (ts_ns, end) = self.packets[self.taken];
        self.taken += 1;
        let group = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        (timed.ts_ns, timed.dst) = (ts_ns, Some(group));
        timed.payload.clear();
        timed.payload.extend_from_slice(&self.bytes[start..end]);
        Ok(true)
    }

    /// Packs the messages of the next block into packets; returns false at the end of the file.
    fn fill(&mut self) -> anyhow::Result<bool> {
        self.packets.clear();
        self.bytes.clear();
        self.taken = 0;
        if !self.blocks.fill()? {
            return Ok(false);
        }
        let ItchFile { blocks, builder, packets, bytes, .. } = self;
        let mut finish = |builder: &mut PacketBuilder<Box<[u8]>>, ts_ns| {
            if !builder.is_empty() {
                bytes.extend_from_slice(builder.finish());
                packets.push((ts_ns, bytes.len()));
                builder.start_next();
            }
        };
        let mut first_ns = 0;
        for message in blocks.block().messages {
            let ts_ns = message
                .get(TIMESTAMP)
                .map_or(first_ns, |time| time.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)));
            if !builder.has_capacity_for(message.len()) || ts_ns.saturating_sub(first_ns) > SHARED_PACKET_NS {
                finish(builder, first_ns);
            }
            if builder.is_empty() {
                first_ns = ts_ns;
            }
            builder.push(message).ok().context("a message is longer than a packet")?;
        }
        finish(builder, first_ns);
        Ok(true)
    }
}
