//! A whole synthetic day of NYSE's Integrated Feed.

mod capture;
mod channel;
mod config;
mod convert;

use std::collections::VecDeque;

use tickpath_nasdaq::itch50::{self, MESSAGE_LEN_MAX};
use tickpath_nyse::PACKET_LEN_MAX;

use crate::{ItchDay, LossModel};
pub use capture::{append_record, pcap_header, xdp_group};
pub use config::{XdpDayConfig, XdpDayError};
use convert::{Convert, Converter};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Midnight in New York at the beginning of 20 November 2026, in seconds since the Unix epoch.
const MIDNIGHT_SECS: u64 = 1_795_150_800;
/// The venue's clock counts in steps of so many nanoseconds.
const CLOCK_STEP_NS: u64 = 256;
/// How much later a packet arrives by line B than by line A.
const LINE_B_LATER_NS: u64 = 14_000;
/// The market, and its product: NYSE's Integrated Feed.
const MARKET_ID: u16 = 1;
const PRODUCT_ID: u8 = 11;
/// Symbol indexes are the market's own, for all days: they do not begin at 1 and have gaps.
const SYMBOL_INDEX_FIRST: u32 = 1_003;
const SYMBOL_INDEX_STEP: u32 = 7;

/// The venue's index of a security.
const fn symbol_index(security: usize) -> u32 {
    SYMBOL_INDEX_FIRST + SYMBOL_INDEX_STEP * security as u32
}

/// A time at the resolution of the venue's clock.
const fn round_down(ns: u64) -> u64 {
    ns - ns % CLOCK_STEP_NS
}

/// One packet of the day as it arrives.
#[derive(Clone, Copy)]
pub struct XdpPacket {
    /// When, in nanoseconds since the Unix epoch.
    pub ts_ns: u64,
    /// The channel, from 1.
    pub channel: u8,
    /// The line, 0 for A and 1 for B.
    pub line: u8,
    /// Number of its first message.
    pub sequence: u32,
    /// How many messages it has.
    pub message_count: u8,
    len: u16,
    bytes: [u8; PACKET_LEN_MAX],
}

impl XdpPacket {
    fn new(ts_ns: u64, channel: u8, sequence: u32, message_count: u8, packet: &[u8]) -> XdpPacket {
        let mut bytes = [0; PACKET_LEN_MAX];
        bytes[..packet.len()].copy_from_slice(packet);
        XdpPacket { ts_ns, channel, line: 0, sequence, message_count, len: packet.len() as u16, bytes }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for XdpPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let XdpPacket { ts_ns, channel, line, sequence, message_count, .. } = self;
        write!(f, "{ts_ns} channel {channel} line {line}: {message_count} messages from {sequence}")
    }
}

/// What a day holds so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpDayCounters {
    /// Messages, each once, whatever lines it was sent on.
    pub messages: u64,
    /// Packets that arrived, on all lines.
    pub packets: u64,
    /// Packets that were lost on their way.
    pub lost: u64,
    /// Bytes of the packets that arrived.
    pub bytes: u64,
    /// Packets with messages that were sent on line A, lost or not.
    pub filled: u64,
    by_type: [u64; 256],
}

impl Default for XdpDayCounters {
    fn default() -> XdpDayCounters {
        XdpDayCounters { messages: 0, packets: 0, lost: 0, bytes: 0, filled: 0, by_type: [0; 256] }
    }
}

impl XdpDayCounters {
    /// Messages of a type.
    #[must_use]
    pub fn of_type(&self, message_type: u16) -> u64 {
        self.by_type.get(usize::from(message_type)).copied().unwrap_or(0)
    }

    /// The types that came, with their messages, in the order of their numbers.
    pub fn by_type(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.by_type).filter(|(_, count)| *count > 0)
    }

    /// Notes a message, and the time reference before it if they were two.
    fn note(&mut self, message_type: u16, count: u64) {
        self.messages += count;
        self.by_type[usize::from(message_type)] += 1;
        self.by_type[usize::from(tickpath_nyse::SourceTimeReference::TYPE)] += count - 1;
    }
}

/// Makes the packets of one synthetic day, in the order of their arrival; a seed gives the same bytes on every machine.
///
/// The order flow is that of the [`ItchDay`] of the same settings, message for message, so that the books of the two have
/// the same levels at every time:
///
/// - **Start**: a sequence number reset on each channel, then for each symbol its index mapping, a symbol clear and its
///   status. Symbols are dealt to the channels in turn; one channel is one partition. Prices have six decimals, and four
///   from 500 dollars on.
/// - **Time**: a time reference on each channel in each second with messages; nanoseconds in steps of 256.
/// - **Orders**: adds, deletes and executions as there; a reduction is a modification with the rest of the volume; of
///   replacements with another price one in four is a modification of the same order. Hidden trades, retail indicators,
///   crosses with a correction now and then, imbalances, broken trades.
/// - **Sessions**: early 04:00, core 09:30, late 16:00, closed 20:00 Eastern Time, a status for each symbol. At the close
///   the orders that are left vanish without a word, as the specification has it.
/// - **Packets**: a packet is sent when the next message has no room in its 1400 bytes, or when its first message has
///   waited for [`window_ns`](XdpDayConfig::window_ns).
/// - **Lines**: line B has the same packets 14 microseconds later. [`loss`](XdpDayConfig::loss) takes some away.
///
/// ```
/// use tickpath_sim::{ItchDayConfig, XdpDay, XdpDayConfig};
///
/// let flow = ItchDayConfig::itch_500().scaled(1_000);
/// let mut day = XdpDay::new(XdpDayConfig { flow, ..XdpDayConfig::xdp_500() }).unwrap();
/// let mut messages = 0;
/// while let Some(packet) = day.next_packet() {
///     messages += u64::from(packet.message_count);
/// }
/// assert_eq!(messages, day.counters().messages);
/// assert!(day.counters().of_type(100) > 8_000);
/// ```
#[derive(Debug)]
pub struct XdpDay {
    flow: ItchDay,
    converter: Converter,
    config: XdpDayConfig,
    loss: LossModel,
    /// Packets on their way, by line.
    on_line: [VecDeque<XdpPacket>; 2],
    is_over: bool,
}

impl XdpDay {
    /// A day at its start.
    ///
    /// # Errors
    /// [`XdpDayError`] names the setting to change.
    pub fn new(config: XdpDayConfig) -> Result<XdpDay, XdpDayError> {
        config.check()?;
        let flow = ItchDay::new(config.flow)?;
        let mut converter = Converter::new(config.channels, config.flow.symbols, config.window_ns);
        for security in 0..config.flow.symbols as usize {
            converter.choose_scale(security, flow.reference_price(security));
        }
        let loss = LossModel::new(&config.loss);
        Ok(XdpDay { flow, converter, config, loss, on_line: Default::default(), is_over: false })
    }

    /// The next packet that arrives; `None` after the last.
    pub fn next_packet(&mut self) -> Option<XdpPacket> {
        loop {
            while !self.is_over && !self.knows_next() {
                self.advance();
            }
            let packet = self.arriving()?;
            let sequence = u64::from(packet.channel) << 32 | u64::from(packet.sequence);
            if packet.message_count > 0 && self.loss.drops(usize::from(packet.line), sequence) {
                self.converter.counters.lost += 1;
                continue;
            }
            self.converter.counters.packets += 1;
            self.converter.counters.bytes += u64::from(packet.len);
            return Some(packet);
        }
    }

    /// What came so far, but for the messages, which are counted as they are made.
    #[must_use]
    pub const fn counters(&self) -> &XdpDayCounters {
        &self.converter.counters
    }

    /// True when nothing that is still to be made can arrive before what waits on the lines: line A is never late.
    fn knows_next(&self) -> bool {
        !self.on_line[0].is_empty()
    }

    /// The packet that arrives first.
    fn arriving(&mut self) -> Option<XdpPacket> {
        let due = |line: &VecDeque<XdpPacket>| line.front().map_or(u64::MAX, |packet| packet.ts_ns);
        let line = usize::from(due(&self.on_line[1]) < due(&self.on_line[0]));
        self.on_line[line].pop_front()
    }

    /// Takes the next message of the flow, after what is due before it.
    fn advance(&mut self) {
        let mut message = [0; MESSAGE_LEN_MAX];
        let Some(len) = self.flow.next_message(&mut message) else {
            self.finish();
            return;
        };
        let ts = message[TIMESTAMP].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte));
        self.send_due(round_down(MIDNIGHT_SECS * NANOS_PER_SECOND + ts));
        let XdpDay { converter, config, on_line, .. } = self;
        let mut filled = 0;
        let mut out = |packet| enqueue(config.lines, on_line, packet, &mut filled);
        let mut convert = Convert { converter, out: &mut out };
        itch50::decode(&message[..len], &mut convert).expect("the day's messages are whole");
        self.converter.counters.filled += filled;
    }

    /// Sends the packets and heartbeats whose time has come before `now_ns`.
    fn send_due(&mut self, now_ns: u64) {
        let XdpDay { converter, config, on_line, .. } = self;
        let mut filled = 0;
        loop {
            let due = |channel: &channel::Channel| channel.due_ns(config.heartbeats);
            let Some(next) = converter.channels.iter_mut().min_by_key(|channel| due(channel)) else { break };
            let due_ns = due(next);
            if due_ns > now_ns {
                break;
            }
            next.send_due(due_ns, &mut |packet| enqueue(config.lines, on_line, packet, &mut filled));
        }
        self.converter.counters.filled += filled;
    }

    /// The day's messages are over: what still waits is sent.
    fn finish(&mut self) {
        self.is_over = true;
        let XdpDay { converter, config, on_line, .. } = self;
        let mut filled = 0;
        let mut waiting: Vec<_> =
            converter.channels.iter_mut().filter(|channel| channel.due_ns(false) < u64::MAX).collect();
        waiting.sort_by_key(|channel| channel.due_ns(false));
        for channel in waiting {
            let due_ns = channel.due_ns(false);
            channel.flush(due_ns, &mut |packet| enqueue(config.lines, on_line, packet, &mut filled));
        }
        self.converter.counters.filled += filled;
    }
}

/// Where ITCH messages have their time.
const TIMESTAMP: std::ops::Range<usize> = 5..11;

/// Puts a packet on its lines, and counts it if it has messages.
fn enqueue(lines: u8, on_line: &mut [VecDeque<XdpPacket>; 2], packet: XdpPacket, filled: &mut u64) {
    *filled += u64::from(packet.message_count > 0);
    on_line[0].push_back(packet);
    if lines == 2 {
        on_line[1].push_back(XdpPacket { ts_ns: packet.ts_ns + LINE_B_LATER_NS, line: 1, ..packet });
    }
}

#[cfg(test)]
mod tests;
