//! A whole synthetic day of NYSE's Integrated Feed.

mod capture;
mod channel;
mod clock;
mod config;
mod convert;
mod counters;
mod packet;

use std::collections::VecDeque;

use tickpath_nasdaq::itch50::{self, MESSAGE_LEN_MAX};

use tickpath_feed::LossModel;

use crate::ItchDay;
pub use capture::{append_record, pcap_header, xdp_group};
use clock::{MIDNIGHT_SECS, NANOS_PER_SECOND, round_down};
pub use config::{XdpDayConfig, XdpDayError};
use convert::{Convert, Converter};
pub use counters::XdpDayCounters;
pub use packet::XdpPacket;

/// How much later a packet arrives by line B than by line A.
const LINE_B_LATER_NS: u64 = 14_000;

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
/// use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig};
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
