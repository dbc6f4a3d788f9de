//! Selects the ticks to send to a subscriber that listed symbols, and to a slow subscriber.

use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{Skipped, TICK_LEN, Tick};
use zerocopy::{FromZeros, IntoBytes};

use super::backlog::Backlog;
use super::directory::{Subscription, symbol_of};
use super::tick_writer::SymbolState;

/// Maximum number of ticks in a selection: 56 KiB.
const SELECTION_MAX: usize = 1_024;

/// Buffer for the ticks of one write, shared by all subscribers.
pub(super) struct TickSelection {
    ticks: Box<[Tick]>,
    places: Box<[u64]>,
    len: usize,
}

impl TickSelection {
    pub(super) fn new() -> TickSelection {
        let ticks = vec![Tick::new_zeroed(); SELECTION_MAX].into();
        TickSelection { ticks, places: vec![0; SELECTION_MAX].into(), len: 0 }
    }

    /// Copies the ticks of the subscribed symbols at the places `from..end`. Returns the next place to
    /// examine: `end`, or less if the buffer is full.
    pub(super) fn fill(
        &mut self,
        backlog: &Backlog,
        subscription: &Subscription,
        from: u64,
        end: u64,
    ) -> u64 {
        self.len = 0;
        let mut place = from;
        while place < end {
            for tick in backlog.ticks(place, end) {
                if self.len == SELECTION_MAX {
                    return place;
                }
                // Write unconditionally to avoid a branch; `len` decides whether the tick is kept.
                self.ticks[self.len] = *tick;
                self.places[self.len] = place;
                self.len += usize::from(subscription.has(symbol_of(tick)));
                place += 1;
            }
        }
        place
    }

    /// Returns the bytes of the selected ticks, to be sent.
    pub(super) fn bytes(&self) -> &[u8] {
        self.ticks[..self.len].as_bytes()
    }

    /// Returns the place of the selected tick at index `at`.
    pub(super) fn place(&self, at: usize) -> u64 {
        self.places[at]
    }

    /// Returns the bytes of the selected tick at index `at`.
    pub(super) fn tick(&self, at: usize) -> [u8; TICK_LEN] {
        let mut bytes = [0; TICK_LEN];
        bytes.copy_from_slice(self.ticks[at].as_bytes());
        bytes
    }

    /// Appends to `out` a sample of the `missed` messages: the latest quote of each subscribed symbol, if the
    /// backlog retains it, and [`Skipped`] messages with the numbers of messages omitted between the quotes.
    /// Returns the number of quotes.
    pub(super) fn sample(
        &mut self,
        backlog: &Backlog,
        subscription: &Subscription,
        states: &[SymbolState],
        end: u64,
        missed: u64,
        out: &mut Vec<u8>,
    ) -> u64 {
        let from = end - backlog.retained();
        // Places of the symbols' latest quotes, at most as many as `self.places` holds.
        let quotes =
            states.iter().zip(0_u16..).filter(|(state, at)| state.quoted > from && subscription.has(*at));
        let count = quotes.map(|(state, _)| state.quoted - 1).zip(&mut self.places).fold(
            0,
            |count, (quote, place)| {
                *place = quote;
                count + 1
            },
        );
        self.places[..count].sort_unstable();
        let (mut place, mut kept, mut left_out) = (from, 0, 0);
        // `missed` includes the messages before `from`, which the backlog no longer retains.
        let mut unreported = missed - count_chosen(backlog, subscription, from, end);
        for quote in &self.places[..count] {
            unreported += count_chosen(backlog, subscription, place, *quote);
            if unreported > 0 {
                out.extend_from_slice(with_checksum(Skipped::new(quote + 1, unreported)).as_bytes());
                left_out += unreported;
                unreported = 0;
            }
            out.extend_from_slice(backlog.ticks(*quote, quote + 1).as_bytes());
            kept += 1;
            place = quote + 1;
        }
        unreported += count_chosen(backlog, subscription, place, end);
        if unreported > 0 {
            out.extend_from_slice(with_checksum(Skipped::new(end + 1, unreported)).as_bytes());
        }
        debug_assert_eq!(left_out + unreported + kept, missed);
        kept
    }
}

/// Returns the number of ticks of the subscribed symbols at the places `from..end`.
fn count_chosen(backlog: &Backlog, subscription: &Subscription, from: u64, end: u64) -> u64 {
    if *subscription == Subscription::All {
        return end - from;
    }
    let (mut place, mut count) = (from, 0);
    while place < end {
        let ticks = backlog.ticks(place, end);
        count += ticks.iter().filter(|tick| subscription.has(symbol_of(tick))).count();
        place += ticks.len() as u64;
    }
    count as u64
}
