//! Parameters of market data recovery. They are drawn from a separate random stream, so that the run's
//! other random choices stay the same.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_exchange::{JournalSettings, MarketRecoverySettings, SnapshotSettings};
use tickpath_feed::ArbiterConfig;
use tickpath_feedhandler::{FeedSettings, LineReader, Senders, SnapshotSources};
use tickpath_types::{InstrumentId, Nanos, Rng};

use crate::hosts::{LINES, RETRANSMISSION};

const GLIMPSE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_003);
/// Group and port of the multicast snapshots.
pub(crate) const SNAPSHOTS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 3), 8_003);
/// Upper bound of the number of messages that a run publishes.
const MESSAGES_MAX: usize = 1 << 16;
/// Upper bound of the number of log snapshots in a run.
pub(crate) const ALL_SNAPSHOTS: usize = 1 << 16;
/// Number of retransmission requests after which an impatient feed handler gives up a gap.
const IMPATIENT_REQUESTS_MAX: u32 = 2;

/// Settings of the venue's recovery services, and of the feed handlers that use them.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryProfile {
    pub(crate) retained_messages: usize,
    keep_snapshots: Option<usize>,
    snapshots: Option<SnapshotSettings>,
    feeds: Vec<FeedProfile>,
}

#[derive(Clone, Copy, Debug)]
struct FeedProfile {
    joins_at: Nanos,
    max_requests: u32,
    max_gap_messages: u64,
    hold_messages: usize,
    has_glimpse: bool,
    has_channel: bool,
}

impl RecoveryProfile {
    pub(crate) fn new(seed: u64, feeds: usize, active: Nanos) -> RecoveryProfile {
        let rng = &mut Rng::new(seed ^ 0x72_65_63_6f_76_65_72_79);
        let snapshots = (rng.below(2) == 0).then(|| SnapshotSettings {
            glimpse: GLIMPSE,
            max_connections: 1 + rng.below(3) as usize,
            time_max: Nanos::from_secs(5),
            interval: Nanos::from_millis(1 + rng.below(50)),
            ..SnapshotSettings::new(SNAPSHOTS)
        });
        let retained_messages = [MESSAGES_MAX, MESSAGES_MAX, 32][rng.below(3) as usize];
        // Without snapshots, some feed handlers never give up a gap: the log must keep all messages.
        let is_all_needed = snapshots.is_none() && retained_messages < MESSAGES_MAX;
        let feed = |place| FeedProfile::new(place, rng, active, snapshots.is_some());
        RecoveryProfile {
            feeds: (0..feeds).map(feed).collect(),
            keep_snapshots: is_all_needed.then_some(ALL_SNAPSHOTS),
            retained_messages,
            snapshots,
        }
    }

    pub(crate) fn market_recovery(&self) -> MarketRecoverySettings {
        MarketRecoverySettings { snapshots: self.snapshots.clone(), ..MarketRecoverySettings::default() }
    }

    pub(crate) fn journal(&self, journal: JournalSettings) -> JournalSettings {
        JournalSettings { keep_snapshots: self.keep_snapshots.unwrap_or(journal.keep_snapshots), ..journal }
    }

    /// Returns the time of a feed handler's first start.
    pub(crate) fn joins_at(&self, place: usize) -> Nanos {
        self.feeds[place].joins_at
    }

    /// Returns the settings of a feed handler.
    pub(crate) fn feed(&self, place: usize, max_instrument: InstrumentId) -> FeedSettings {
        let profile = &self.feeds[place];
        FeedSettings {
            feed: 0,
            line_a: LINES[0],
            line_b: LINES[1],
            interface: Ipv4Addr::LOCALHOST,
            senders: Senders::of(None, Ipv4Addr::LOCALHOST, None),
            reader: LineReader::Sockets,
            max_instrument,
            symbols: vec![],
            max_orders: 1 << 12,
            arbiter: ArbiterConfig {
                hold_messages: 1 << 12,
                max_requests: profile.max_requests,
                max_gap_messages: profile.max_gap_messages,
                ..ArbiterConfig::default()
            },
            retransmission: Some(RETRANSMISSION),
            loss: None,
            snapshots: SnapshotSources {
                senders: Senders::of(None, Ipv4Addr::LOCALHOST, None),
                glimpse: profile.has_glimpse.then_some(GLIMPSE),
                channel: profile.has_channel.then_some(SNAPSHOTS),
                hold_messages: profile.hold_messages,
            },
        }
    }
}

impl FeedProfile {
    /// Draws the profile of feed handler `place`. With snapshots, every feed handler eventually gives up a
    /// gap and recovers. Without them, only those with an odd `place` give up, and are then restarted.
    fn new(place: usize, rng: &mut Rng, active: Nanos, has_snapshots: bool) -> FeedProfile {
        let sources = if has_snapshots { 1 + rng.below(3) } else { 0 };
        let is_impatient = place % 2 == 1 || rng.below(2) == 0;
        let is_late = has_snapshots && rng.below(2) == 0;
        let late = rng.below(active.0);
        FeedProfile {
            joins_at: Nanos(if is_late { late } else { 0 }),
            max_requests: match (is_impatient && (has_snapshots || place % 2 == 1), has_snapshots) {
                (true, _) => IMPATIENT_REQUESTS_MAX,
                (false, true) => 10 * IMPATIENT_REQUESTS_MAX,
                (false, false) => u32::MAX,
            },
            max_gap_messages: if has_snapshots { [u64::MAX, 100][rng.below(2) as usize] } else { u64::MAX },
            hold_messages: [1 << 12, 16][rng.below(2) as usize],
            has_glimpse: sources & 1 == 1,
            has_channel: sources & 2 == 2,
        }
    }
}
