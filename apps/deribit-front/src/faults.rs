//! Faults on demand: what a venue and the way to it can do to a client, so that clients can be tried.
//!
//! Off unless the table `[deribit.faults]` says otherwise, or a test switches one on. What happens follows from the seed
//! and from what clients do, and everything is counted.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_agent::Counter;

use crate::connection::Frame;
use crate::pending::RequestId;

/// All of a chance.
const ALWAYS_PPM: u32 = 1_000_000;
/// Replies that wait for their time at most; a further one leaves at once.
pub(crate) const DELAYED_MAX: usize = 4_096;

macro_rules! fault_kinds {
    ($( $(#[doc = $doc:literal])+ $kind:ident = $key:literal, )*) => {
        /// What can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FaultKind {
            $( $(#[doc = $doc])+ $kind, )*
        }

        impl FaultKind {
            /// All of them.
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
    /// The cable is pulled: the connection ends without a word. Its chance is taken for each connection each second;
    /// switched on for the next time, it is all connections.
    Cut = "cut",
    /// Nothing is read and nothing sent any more, while the connection stands; it ends when the time is over. Its chance
    /// is taken as that of `Cut`.
    HalfOpen = "half_open",
    /// The connection ends before an order's request is read.
    RequestLost = "request_lost",
    /// An order's request is done and its connection ends before the reply.
    ReplyCut = "reply_cut",
    /// An order's request is done and its reply never sent; the connection stands.
    ReplyLost = "reply_lost",
    /// An order's request is done at once and its reply sent late.
    ReplySlow = "reply_slow",
    /// An order's request is refused with 10028 and not done.
    RateLimited = "rate_limited",
    /// An order's request is refused with one of the codes after which it may be sent again, and not done.
    Refused = "refused",
    /// The access token ends before its time: the private request, and those after it, are refused with 13009 until it is
    /// renewed.
    TokenExpired = "token_expired",
    /// All tokens of the connection end, those to renew with too: only another login helps.
    TokensRevoked = "tokens_revoked",
    /// A Logon by FIX is refused although everything in it is right.
    LogonRefused = "logon_refused",
    /// A heartbeat, or a question for a sign of life, is not sent.
    HeartbeatMissed = "heartbeat_missed",
    /// A change of a book is sent twice.
    BookDuplicated = "book_duplicated",
    /// A change of a book is sent after the one that follows it.
    BookSwapped = "book_swapped",
    /// A change of a book is not sent.
    BookDropped = "book_dropped",
    /// The venue closes every connection, and refuses new ones with status 503 and 11051 for a while. Its chance is taken
    /// each second.
    Maintenance = "maintenance",
}

/// What is to go wrong how often, checked.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Of what happens when.
    pub seed: u64,
    /// The chance of each kind, in millionths, by its place in [`FaultKind::ALL`].
    pub ppm: [u32; FaultKind::ALL.len()],
    /// How long a connection is half open, in microseconds.
    pub half_open_us: u64,
    /// How long maintenance takes, in microseconds.
    pub maintenance_us: u64,
    /// How late a slow reply is, in microseconds.
    pub reply_delay_us: u64,
    /// For how long after 08:00 UTC requests about orders are refused with 10041, in microseconds; 0 for not at all.
    pub settlement_us: u64,
}

#[derive(Default)]
struct Slot {
    ppm: AtomicU32,
    /// So many times it happens whatever the chance.
    next: AtomicU32,
    happened: Counter,
}

struct Shared {
    slots: [Slot; FaultKind::ALL.len()],
    /// Some chance is above 0, or was.
    is_armed: AtomicBool,
}

/// Switches faults on and off while the venue runs, and tells how often they happened.
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

    /// The chance of a fault from now on, in millionths.
    pub fn set(&self, kind: FaultKind, ppm: u32) {
        self.slot(kind).ppm.store(ppm.min(ALWAYS_PPM), Ordering::Relaxed);
        self.0.is_armed.store(true, Ordering::Release);
    }

    /// The next so many times that it can happen, it does.
    pub fn happen_next(&self, kind: FaultKind, times: u32) {
        self.slot(kind).next.store(times, Ordering::Relaxed);
        self.0.is_armed.store(true, Ordering::Release);
    }

    /// Nothing goes wrong from now on. A connection that is half open, and maintenance, go on to their end.
    pub fn stop(&self) {
        for slot in &self.0.slots {
            slot.ppm.store(0, Ordering::Relaxed);
            slot.next.store(0, Ordering::Relaxed);
        }
    }

    /// How often it happened.
    #[must_use]
    pub fn count(&self, kind: FaultKind) -> u64 {
        self.slot(kind).happened.read()
    }

    /// Whether something may go wrong, or did.
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

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// It is to be dropped without a word.
    Cut,
    /// Nothing is to be read from it or written to it.
    Silent,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Cut,
    Late,
}

/// The faults of a front.
pub(crate) struct Faults {
    pub(crate) switch: FaultSwitch,
    pub(crate) plan: FaultPlan,
    random: Xoshiro256PlusPlus,
    /// Replies that are not to come as they should.
    fates: Vec<(u64, RequestId, Fate)>,
    /// Replies that leave later, in the order of their times, in microseconds since 1970.
    delayed: VecDeque<(u64, u64, Frame)>,
    /// Changes that leave after the next one, by connection and channel.
    held: HashMap<(u64, String), Frame>,
    /// Connections that are half open, until when; 0 for those that are to be cut now.
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

    /// One of some things, drawn.
    pub(crate) fn any_of<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        let place = self.random.next_u64() % (things.len().max(1) as u64);
        things.get(place as usize).copied()
    }

    /// Whether it happens now.
    pub(crate) fn happens(&mut self, kind: FaultKind) -> bool {
        self.switch.is_armed() && (self.is_next(kind) || self.is_drawn(kind))
    }

    /// Whether it was switched on for the next time.
    pub(crate) fn is_next(&self, kind: FaultKind) -> bool {
        let slot = self.switch.slot(kind);
        let take = |times: u32| times.checked_sub(1);
        let is_next = slot.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if is_next {
            slot.happened.add(1);
        }
        is_next
    }

    /// Whether its chance comes up.
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

    /// Half-open connections whose time is over end.
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

    /// What becomes of a reply, where it is not to come as it should.
    pub(crate) fn fate(&mut self, number: u64, id: &RequestId) -> Option<Fate> {
        let place = self.fates.iter().position(|(of, own, _)| *of == number && own == id)?;
        Some(self.fates.swap_remove(place).2)
    }

    /// Keeps a reply for later; gives it back where too many wait.
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

    /// What is sent in place of a change of a book: none, one or two messages.
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
