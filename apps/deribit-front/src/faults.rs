//! Fault injection: faults of a venue and of its network, for testing clients.
//!
//! Off unless the table `[deribit.faults]` or a test enables a fault. Faults follow from the seed and from
//! the requests of the clients. All faults are counted.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_agent::Counter;

use crate::connection::Frame;
use crate::pending::RequestId;

/// Probability 1, in millionths.
const ALWAYS_PPM: u32 = 1_000_000;
/// Maximum number of delayed replies; a further reply is sent at once.
pub(crate) const DELAYED_MAX: usize = 4_096;

macro_rules! fault_kinds {
    ($( $(#[doc = $doc:literal])+ $kind:ident = $key:literal, )*) => {
        /// Kinds of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FaultKind {
            $( $(#[doc = $doc])+ $kind, )*
        }

        impl FaultKind {
            /// All kinds.
            pub const ALL: &[FaultKind] = &[$(FaultKind::$kind),*];

            /// Its key in `[deribit.faults]`.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $( FaultKind::$kind => $key, )*
                }
            }
        }
    };
}

fault_kinds! {
    /// The connection is cut without notice. Its chance applies to each connection, each second. When enabled
    /// for the next time, it cuts all connections.
    Cut = "cut",
    /// Nothing is read or sent any more, while the connection stays open; it ends when the time is over. Its
    /// chance applies like that of `Cut`.
    HalfOpen = "half_open",
    /// The connection ends before an order request is read.
    RequestLost = "request_lost",
    /// An order request is executed and its connection ends before the reply.
    ReplyCut = "reply_cut",
    /// An order request is executed and its reply is never sent; the connection stays open.
    ReplyLost = "reply_lost",
    /// An order request is executed at once and its reply is delayed.
    ReplySlow = "reply_slow",
    /// An order request is rejected with 10028 and not executed.
    RateLimited = "rate_limited",
    /// An order request is rejected with a retryable code and not executed.
    Refused = "refused",
    /// The access token expires early: private requests are rejected with 13009 until it is renewed.
    TokenExpired = "token_expired",
    /// All tokens of the connection are revoked, including refresh tokens: only another login helps.
    TokensRevoked = "tokens_revoked",
    /// A valid FIX Logon is rejected.
    LogonRefused = "logon_refused",
    /// A heartbeat or a test request is not sent.
    HeartbeatMissed = "heartbeat_missed",
    /// A book change is sent twice.
    BookDuplicated = "book_duplicated",
    /// A book change is sent after the one that follows it.
    BookSwapped = "book_swapped",
    /// A book change is not sent.
    BookDropped = "book_dropped",
    /// The venue closes every connection, and refuses new ones with status 503 and 11051 for a while. Its
    /// chance applies each second.
    Maintenance = "maintenance",
}

/// Checked fault plan: the chances and durations of all faults.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Seed of the fault schedule.
    pub seed: u64,
    /// Chance of each kind, in millionths, by its place in [`FaultKind::ALL`].
    pub ppm: [u32; FaultKind::ALL.len()],
    /// Duration of a half-open connection, in microseconds.
    pub half_open_us: u64,
    /// Duration of maintenance, in microseconds.
    pub maintenance_us: u64,
    /// Delay of a slow reply, in microseconds.
    pub reply_delay_us: u64,
    /// Time after 08:00 UTC during which order requests are rejected with 10041, in microseconds; 0 for none.
    pub settlement_us: u64,
}

#[derive(Default)]
struct Slot {
    ppm: AtomicU32,
    /// Number of opportunities at which the fault is certain, whatever its chance.
    next: AtomicU32,
    happened: Counter,
}

struct Shared {
    slots: [Slot; FaultKind::ALL.len()],
    /// True once any chance was above 0.
    is_armed: AtomicBool,
}

/// Enables and disables faults while the venue runs, and counts their occurrences.
#[derive(Clone)]
pub struct FaultSwitch(Arc<Shared>);

impl FaultSwitch {
    fn new(plan: &FaultPlan) -> FaultSwitch {
        let slots = plan.ppm.map(|ppm| Slot { ppm: AtomicU32::new(ppm), ..Slot::default() });
        let is_armed = AtomicBool::new(plan.ppm.iter().any(|ppm| *ppm > 0));
        FaultSwitch(Arc::new(Shared { slots, is_armed }))
    }

    fn slot(&self, kind: FaultKind) -> &Slot {
        &self.0.slots[kind as usize]
    }

    /// Sets the chance of a fault, in millionths.
    pub fn set(&self, kind: FaultKind, ppm: u32) {
        self.slot(kind).ppm.store(ppm.min(ALWAYS_PPM), Ordering::Relaxed);
        self.0.is_armed.store(true, Ordering::Release);
    }

    /// Makes the fault happen at the next `times` opportunities.
    pub fn happen_next(&self, kind: FaultKind, times: u32) {
        self.slot(kind).next.store(times, Ordering::Relaxed);
        self.0.is_armed.store(true, Ordering::Release);
    }

    /// Disables all faults. Current half-open connections and maintenance last until their end.
    pub fn stop(&self) {
        for slot in &self.0.slots {
            slot.ppm.store(0, Ordering::Relaxed);
            slot.next.store(0, Ordering::Relaxed);
        }
    }

    /// Number of occurrences.
    #[must_use]
    pub fn count(&self, kind: FaultKind) -> u64 {
        self.slot(kind).happened.read()
    }

    /// Returns true if a fault may happen or has happened.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.0.is_armed.load(Ordering::Acquire)
    }
}

impl fmt::Display for FaultSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let happened = FaultKind::ALL.iter().filter(|kind| self.count(**kind) > 0);
        f.write_str("faults")?;
        for kind in happened {
            write!(f, " {} {}", kind.key(), self.count(*kind))?;
        }
        Ok(())
    }
}

impl fmt::Debug for FaultSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Outage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// The connection must be closed without notice.
    Cut,
    /// Nothing must be read from it or written to it.
    Silent,
}

/// Fault of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Cut,
    Late,
}

/// The fault state of a front.
pub(crate) struct Faults {
    pub(crate) switch: FaultSwitch,
    pub(crate) plan: FaultPlan,
    random: Xoshiro256PlusPlus,
    /// Faults of pending replies, by connection and request.
    fates: Vec<(u64, RequestId, Fate)>,
    /// Delayed replies in time order, in microseconds since 1970, with their connection.
    delayed: VecDeque<(u64, u64, Frame)>,
    /// Book changes held back until after the next one, by connection and channel.
    held: HashMap<(u64, String), Frame>,
    /// End of the outage of each half-open connection; 0 for connections to be cut now.
    outages: HashMap<u64, u64>,
    pub(crate) maintenance_until_us: u64,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Faults {
        Faults {
            switch: FaultSwitch::new(&plan),
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed),
            plan,
            fates: Vec::new(),
            delayed: VecDeque::new(),
            held: HashMap::new(),
            outages: HashMap::new(),
            maintenance_until_us: 0,
        }
    }

    /// Draws one of `things`.
    pub(crate) fn any_of<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        let place = self.random.next_u64() % (things.len().max(1) as u64);
        things.get(place as usize).copied()
    }

    /// Decides whether the fault happens now.
    pub(crate) fn happens(&mut self, kind: FaultKind) -> bool {
        self.switch.is_armed() && (self.is_next(kind) || self.is_drawn(kind))
    }

    /// Consumes one certain occurrence, if any is left.
    pub(crate) fn is_next(&self, kind: FaultKind) -> bool {
        let slot = self.switch.slot(kind);
        let take = |times: u32| times.checked_sub(1);
        let is_next = slot.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if is_next {
            slot.happened.add(1);
        }
        is_next
    }

    /// Draws whether the fault happens by chance.
    pub(crate) fn is_drawn(&mut self, kind: FaultKind) -> bool {
        let slot = self.switch.slot(kind);
        let ppm = slot.ppm.load(Ordering::Relaxed);
        let is_drawn = ppm > 0 && self.random.next_u64() % u64::from(ALWAYS_PPM) < u64::from(ppm);
        if is_drawn {
            slot.happened.add(1);
        }
        is_drawn
    }

    pub(crate) fn outage(&self, number: u64) -> Option<Outage> {
        match self.outages.get(&number)? {
            0 => Some(Outage::Cut),
            _ => Some(Outage::Silent),
        }
    }

    pub(crate) fn cut(&mut self, number: u64) {
        self.outages.insert(number, 0);
    }

    pub(crate) fn silence(&mut self, number: u64, now_us: u64) {
        self.outages.entry(number).or_insert(now_us + self.plan.half_open_us.max(1));
    }

    /// Ends half-open connections whose time is over.
    pub(crate) fn end_silence(&mut self, now_us: u64) {
        for until in self.outages.values_mut().filter(|until| **until <= now_us) {
            *until = 0;
        }
    }

    pub(crate) fn forget(&mut self, number: u64) {
        self.outages.remove(&number);
        self.fates.retain(|(of, ..)| *of != number);
        self.held.retain(|(of, _), _| *of != number);
    }

    pub(crate) fn doom(&mut self, number: u64, id: RequestId, fate: Fate) {
        self.fates.push((number, id, fate));
    }

    /// Returns the fault of a reply, if any, and removes it.
    pub(crate) fn fate(&mut self, number: u64, id: &RequestId) -> Option<Fate> {
        let place = self.fates.iter().position(|(of, own, _)| *of == number && own == id)?;
        Some(self.fates.swap_remove(place).2)
    }

    /// Delays a reply; gives it back when too many are delayed.
    pub(crate) fn delay(&mut self, number: u64, frame: Frame, now_us: u64) -> Option<Frame> {
        if self.delayed.len() == DELAYED_MAX {
            return Some(frame);
        }
        self.delayed.push_back((now_us + self.plan.reply_delay_us, number, frame));
        None
    }

    pub(crate) fn due(&mut self, now_us: u64) -> Option<(u64, Frame)> {
        self.delayed.pop_front_if(|(at, ..)| *at <= now_us).map(|(_, number, frame)| (number, frame))
    }

    /// Returns the messages to send instead of a book change: none, one or two.
    pub(crate) fn disturb_book(&mut self, number: u64, name: &str, frame: Frame) -> [Option<Frame>; 2] {
        if self.happens(FaultKind::BookDropped) {
            return [None, None];
        }
        if let Some(held) = self.held.remove(&(number, name.to_owned())) {
            return [Some(frame), Some(held)];
        }
        if self.happens(FaultKind::BookSwapped) {
            self.held.insert((number, name.to_owned()), frame);
            return [None, None];
        }
        if self.happens(FaultKind::BookDuplicated) {
            return [Some(frame.clone()), Some(frame)];
        }
        [Some(frame), None]
    }
}
