//! A whole synthetic day of Nasdaq TotalView-ITCH 5.0.

mod announce;
mod config;
mod flow;
mod message;
mod resting;
mod schedule;
mod symbol;
mod weights;

use tickpath_nasdaq::itch50::{CrossType, EventCode, MESSAGE_LEN_MAX};
use tickpath_types::{Nanos, Price};

use crate::ConfigError;

pub use config::ItchDayConfig;
use flow::Flow;
use message::{At, Buffer};

const START_OF_MARKET_HOURS: Nanos = Nanos::from_secs(9 * 3_600 + 30 * 60);
const END_OF_MARKET_HOURS: Nanos = Nanos::from_secs(16 * 3_600);
const END_OF_SYSTEM_HOURS: Nanos = Nanos::from_secs(20 * 3_600);
const END_OF_MESSAGES: Nanos = Nanos::from_secs(20 * 3_600 + 5 * 60);

/// Counters of a day so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItchDayCounters {
    /// Number of messages.
    pub messages: u64,
    /// Number of resting orders at this time.
    pub live: u32,
    /// Maximum number of resting orders at any time.
    pub live_max: u32,
    /// Number of assigned order references, all distinct.
    pub order_refs: u64,
    by_type: [u64; 256],
}

impl ItchDayCounters {
    /// Message types that occurred, each with its count, in the order of their letters.
    pub fn by_type(&self) -> impl Iterator<Item = (u8, u64)> {
        (0..=u8::MAX).zip(self.by_type).filter(|(_, count)| *count > 0)
    }
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Before system hours, with the index of the next message.
    Prologue(u64),
    /// Order flow, up to the end of the session.
    Orders,
    /// The opening or the close: its system event, then the cross of each security.
    Boundary {
        is_opening: bool,
        index: u64,
    },
    /// End of system hours (0), then end of messages (1).
    Epilogue(u64),
    Over,
}

/// Generates the messages of one synthetic day, in order. A seed gives the same bytes on every machine.
///
/// The day models a day of Nasdaq TotalView-ITCH 5.0:
///
/// - **Session**: system events O 03:04, S 04:00, Q 09:30, M 16:00, E 20:00, C 20:05 US Eastern. Before
///   system hours, each security has a stock directory entry, trading action, Reg SHO indicator and four
///   market makers' positions. Each security has a cross at the opening and at the close, with imbalances in
///   the five or ten minutes before it.
/// - **Mix**, of all messages: replaces 8 percent, executions 2, cancels 1, adds with attribution 1, hidden
///   trades 0.5, imbalances 1.4, executions at another price 0.05, rarely a broken trade. The other 86
///   percent are adds and deletes; an order that an execution removed has no delete.
/// - **Live orders** rise to [`ItchDayConfig::live`] in the first seven eighths of the pre-market's messages.
///   They stay there from opening to close and are then deleted; a few percent remain at the end. The
///   pre-market takes 2.5 messages for each live order (at least 4 percent of all), the post-market 2 (at
///   least 2 percent).
/// - **Activity**: a security's share of messages follows 1 / (rank + 8), Zipf's law with exponent 1, and its
///   live orders follow the square root of that. While books fill and empty, its messages follow its live
///   orders.
/// - **Time**: the message rate depends on the time of day. Messages come in clusters, microseconds apart,
///   and three in four messages of a cluster concern one security. Cluster sizes follow a power law of
///   exponent 1, up to 512.
/// - **Orders**: newer orders are deleted, replaced or reduced more often, by a power law, so lifetimes range
///   from microseconds to hours. Half of the replacements concern the order that was replaced last. Distances
///   from the reference price follow a power law of exponent 1. Executions take the front of the best level.
/// - **Prices** follow a reference price for each security. It walks in steps of 1/8192 of itself, and waits
///   until orders that it has passed are removed. No message leaves a book crossed or locked.
/// - **References** increase over the whole day in multiples of 4, like those of one real matching engine.
///
/// Memory is proportional to live orders and securities, independent of the number of messages.
///
/// ```
/// use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
/// use tickpath_flowgen::{ItchDay, ItchDayConfig};
///
/// let mut day = ItchDay::new(ItchDayConfig::itch_500().scaled(1_000)).unwrap();
/// let mut message = [0; MESSAGE_LEN_MAX];
/// let mut bytes = 0;
/// while let Some(len) = day.next_message(&mut message) {
///     bytes += message[..len].len();
/// }
/// assert_eq!(day.counters().messages, 20_000);
/// assert!(day.counters().by_type().next().is_some_and(|(kind, count)| kind == b'A' && count > 8_000));
/// assert!(bytes > 500_000);
/// ```
#[derive(Debug)]
pub struct ItchDay {
    flow: Flow,
    stage: Stage,
    counters: ItchDayCounters,
}

impl ItchDay {
    /// Creates a day at its start.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting to change.
    pub fn new(config: ItchDayConfig) -> Result<ItchDay, ConfigError> {
        let securities = config.check()?;
        let flow = Flow::new(config.order_flow_messages(), securities, config.live, config.seed);
        let counters =
            ItchDayCounters { messages: 0, live: 0, live_max: 0, order_refs: 0, by_type: [0; 256] };
        Ok(ItchDay { flow, stage: Stage::Prologue(0), counters })
    }

    /// Writes the next message at the start of `out` and returns its length; `None` after the last.
    #[inline]
    pub fn next_message(&mut self, out: &mut [u8; MESSAGE_LEN_MAX]) -> Option<usize> {
        let len = loop {
            match self.stage {
                Stage::Orders => match self.flow.next_message(out) {
                    Some(len) => break len,
                    None => self.end_session(),
                },
                _ => break self.announce(out)?,
            }
        };
        self.counters.messages += 1;
        self.counters.by_type[usize::from(out[0])] += 1;
        self.counters.live_max = self.counters.live_max.max(self.flow.resting.total());
        Some(len)
    }

    /// Appends up to `count` messages in BinaryFILE format, each after its two-byte length. Returns their
    /// number, which is smaller only at the end of the day.
    pub fn append_frames(&mut self, count: usize, out: &mut Vec<u8>) -> usize {
        let mut message = [0; MESSAGE_LEN_MAX];
        for appended in 0..count {
            let Some(len) = self.next_message(&mut message) else { return appended };
            out.extend_from_slice(&(len as u16).to_be_bytes());
            out.extend_from_slice(&message[..len]);
        }
        count
    }

    /// Counters of the day so far.
    #[must_use]
    pub fn counters(&self) -> ItchDayCounters {
        let (live, order_refs) = (self.flow.resting.total(), self.flow.ref_count);
        ItchDayCounters { live, order_refs, ..self.counters.clone() }
    }

    /// Current reference price of a security; `security` is its locate code less one.
    pub(crate) fn reference_price(&self, security: usize) -> Price {
        self.flow.securities.list[security].reference_price()
    }

    fn end_session(&mut self) {
        self.stage = match self.flow.schedule.session() {
            schedule::Session::PreMarket => Stage::Boundary { is_opening: true, index: 0 },
            schedule::Session::Market => Stage::Boundary { is_opening: false, index: 0 },
            schedule::Session::PostMarket => Stage::Epilogue(0),
        };
    }

    /// Writes a message outside the order flow and returns its length; `None` during the flow or at the end.
    fn announce(&mut self, out: &mut Buffer) -> Option<usize> {
        let securities = self.flow.securities.list.len() as u64;
        let len = match self.stage {
            Stage::Prologue(index) => {
                let is_last = index + 1 == announce::prologue_len(securities);
                self.stage = if is_last { Stage::Orders } else { Stage::Prologue(index + 1) };
                announce::prologue(index, &self.flow.securities.list, &mut self.flow.rng, out)
            }
            Stage::Boundary { is_opening, index } => {
                let len = self.boundary(is_opening, index, out);
                self.stage = if index < securities {
                    Stage::Boundary { is_opening, index: index + 1 }
                } else {
                    self.flow.schedule.next_session();
                    Stage::Orders
                };
                len
            }
            Stage::Epilogue(0) => {
                self.stage = Stage::Epilogue(1);
                announce::system_event(EventCode::END_OF_SYSTEM_HOURS, END_OF_SYSTEM_HOURS, out)
            }
            Stage::Epilogue(_) => {
                self.stage = Stage::Over;
                announce::system_event(EventCode::END_OF_MESSAGES, END_OF_MESSAGES, out)
            }
            Stage::Orders | Stage::Over => return None,
        };
        Some(len)
    }

    fn boundary(&mut self, is_opening: bool, index: u64, out: &mut Buffer) -> usize {
        let (ts, event, cross_type) = if is_opening {
            (START_OF_MARKET_HOURS, EventCode::START_OF_MARKET_HOURS, CrossType::OPENING)
        } else {
            (END_OF_MARKET_HOURS, EventCode::END_OF_MARKET_HOURS, CrossType::CLOSING)
        };
        let Some(security) = index.checked_sub(1).map(|security| security as usize) else {
            return announce::system_event(event, ts, out);
        };
        let match_id = self.flow.next_match();
        let Flow { securities, rng, .. } = &mut self.flow;
        announce::cross(At { ts, security }, &securities.list[security], cross_type, match_id, rng, out)
    }
}

#[cfg(test)]
mod tests;
