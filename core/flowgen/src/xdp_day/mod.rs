//! A whole synthetic day of NYSE's Integrated Feed.

mod capture;
mod channel;
mod clock;
mod config;
mod convert;
mod lines;

use tickpath_nasdaq::itch50::{self, MESSAGE_LEN_MAX};

use crate::{ConfigError, ItchDay};
pub use capture::{append_record, pcap_header, xdp_group};
use channel::Channel;
use clock::{MIDNIGHT_SECS, NANOS_PER_SECOND, round_down};
pub use config::XdpDayConfig;
use convert::Converter;
use lines::Lines;
pub use lines::{XdpDayCounters, XdpPacket};

/// Generates the packets of a synthetic day in order of arrival. A seed gives the same bytes on any machine.
///
/// The order flow is that of the [`ItchDay`] with the same settings, message for message, so that the books
/// of both have the same levels at all times:
///
/// - **Start**: a sequence number reset on each channel, then for each symbol its index mapping, a symbol
///   clear and its status. Symbols are assigned to the channels in turn; one channel is one partition. Prices
///   have six decimals, or four if the symbol starts at 500 dollars or more.
/// - **Time**: a time reference on each channel in each second with messages; nanoseconds in steps of 256.
/// - **Orders**: adds, deletes and executions as in the ITCH day. A reduction is a modification to the
///   remaining volume. One in four replacements with a new price is sent as a modification of the order.
///   There are hidden trades, retail indicators, crosses, rare cross corrections, imbalances and broken
///   trades.
/// - **Sessions**: early 04:00, core 09:30, late 16:00, closed 20:00 Eastern Time, with a status for each
///   symbol. Orders that remain at the end are removed without a message, as XDP specifies.
/// - **Packets**: a packet is sent when the next message would exceed its 1400 bytes, or when its first
///   message has waited for [`window_ns`](XdpDayConfig::window_ns).
/// - **Lines**: line B has the same packets 14 microseconds later.
///   [`loss`](XdpDayConfig::loss) drops packets on both.
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
/// assert!(day.counters().by_type().any(|(kind, count)| kind == 100 && count > 8_000));
/// ```
#[derive(Debug)]
pub struct XdpDay {
    flow: ItchDay,
    converter: Converter,
    heartbeats: bool,
    is_over: bool,
}

impl XdpDay {
    /// Creates a day at its start.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting to change.
    pub fn new(config: XdpDayConfig) -> Result<XdpDay, ConfigError> {
        config.check()?;
        let flow = ItchDay::new(config.flow)?;
        let references = (0..config.flow.symbols as usize).map(|security| flow.reference_price(security));
        let converter = Converter::new(config.channels, Lines::new(&config), references);
        Ok(XdpDay { flow, converter, heartbeats: config.heartbeats, is_over: false })
    }

    /// Returns the next packet that arrives; `None` after the last.
    pub fn next_packet(&mut self) -> Option<XdpPacket> {
        loop {
            while !self.is_over && !self.converter.lines.is_next_known() {
                self.advance();
            }
            let (arrives, packet) = self.converter.lines.next()?;
            if arrives {
                return Some(packet);
            }
        }
    }

    /// Counters of the day so far; messages are counted when they are generated.
    #[must_use]
    pub const fn counters(&self) -> &XdpDayCounters {
        &self.converter.lines.counters
    }

    /// Sends everything that is due before the next message of the flow, then converts that message.
    fn advance(&mut self) {
        let mut message = [0; MESSAGE_LEN_MAX];
        let Some(len) = self.flow.next_message(&mut message) else {
            self.finish();
            return;
        };
        let ts = message[TIMESTAMP].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte));
        self.send_due(round_down(MIDNIGHT_SECS * NANOS_PER_SECOND + ts));
        itch50::decode(&message[..len], &mut self.converter).expect("the day's messages are whole");
    }

    /// Sends the packets and heartbeats that are due by `now_ns`.
    fn send_due(&mut self, now_ns: u64) {
        let Converter { channels, lines, .. } = &mut self.converter;
        let due = |channel: &Channel| channel.due_ns(self.heartbeats);
        while let Some(next) = channels.iter_mut().min_by_key(|channel| due(channel))
            && due(next) <= now_ns
        {
            next.send_due(due(next), lines);
        }
    }

    /// Ends the day and sends all pending packets.
    fn finish(&mut self) {
        self.is_over = true;
        let Converter { channels, lines, .. } = &mut self.converter;
        let mut waiting: Vec<_> = channels.iter_mut().filter(|it| it.due_ns(false) < u64::MAX).collect();
        waiting.sort_by_key(|channel| channel.due_ns(false));
        for channel in waiting {
            channel.flush(channel.due_ns(false), lines);
        }
    }
}

/// Byte range of the timestamp in ITCH messages.
const TIMESTAMP: std::ops::Range<usize> = 5..11;

#[cfg(test)]
mod tests;
