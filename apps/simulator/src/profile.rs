//! The parameters of a run, all of them derived from its seed.

use tickpath_exchange::{DaySettings, Phase, RateLimit, Schedule, ScheduleStep, UserLimits};
use tickpath_journal::Policy;
use tickpath_simnet::{DatagramFaults, StreamFaults};
use tickpath_types::{Nanos, Qty, Rng, SelfTradePrevention};

use crate::client::ClientBehaviour;
use crate::faults::{DiskFailure, FaultEvent, FaultLevel};
use crate::hosts::{VENUE, client_host, feed_host};

/// All parameters that a seed determines before the run begins.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) policy: Policy,
    pub(crate) clients: usize,
    pub(crate) feeds: usize,
    pub(crate) instruments: u16,
    pub(crate) behaviour: Vec<ClientBehaviour>,
    /// Each client's grace period between a disconnect and the cancel of its orders; `None`: no cancel.
    pub(crate) graces: Vec<Option<Nanos>>,
    pub(crate) limits: Vec<UserLimits>,
    /// Self-trade prevention, by client.
    pub(crate) preventions: Vec<SelfTradePrevention>,
    pub(crate) day: DaySettings,
    /// Duration of the phase with requests and faults, before recovery.
    pub(crate) active: Nanos,
    pub(crate) snapshot_every: u64,
    pub(crate) segment_len: u64,
    /// Time of the machines' clocks at the start of the run, in nanoseconds since the Unix epoch.
    pub(crate) epoch: u64,
    pub(crate) fault_events: Vec<(Nanos, FaultEvent)>,
    /// Maximum time for which a part of the system gets no CPU time.
    pub(crate) starvation_max: Nanos,
}

/// 2 January 2024, 14:30 UTC.
const EPOCH: u64 = 1_704_205_800_000_000_000;
/// Seconds from [`EPOCH`] to midnight.
const TO_MIDNIGHT: u64 = 34_200;
const DAY_SECONDS: u64 = 24 * 3_600;

impl Profile {
    pub(crate) fn new(seed: u64, fault_level: FaultLevel) -> Profile {
        let mut rng = Rng::new(seed ^ 0x70_72_6f_66_69_6c_65);
        let rng = &mut rng;
        let clients = 2 + rng.below(4) as usize;
        let feeds = 1 + rng.below(2) as usize;
        let has_faults = fault_level == FaultLevel::Full;
        let active = Nanos::from_millis(200 + rng.below(1_000));
        let behaviour = (0..clients).map(|_| behaviour(rng, has_faults)).collect();
        let graces = (0..clients).map(|_| grace(rng)).collect();
        let starvation_max = Nanos::from_millis(if rng.below(2) == 0 { 5 } else { 60 });
        let fault_events = match has_faults {
            true => random_fault_events(rng, active, [clients, feeds], starvation_max),
            false => Vec::new(),
        };
        let is_near_midnight = rng.below(12) == 0;
        let before_midnight = EPOCH + (TO_MIDNIGHT * 1_000_000_000) - rng.below(active.0);
        let epoch = if is_near_midnight { before_midnight } else { EPOCH + rng.below(1_000_000_000) };
        Profile {
            policy: [Policy::Async, Policy::Group, Policy::Sync][rng.below(3) as usize],
            clients,
            feeds,
            instruments: 1 + rng.below(3) as u16,
            behaviour,
            graces,
            active,
            snapshot_every: [50, 200, 100_000][rng.below(3) as usize],
            segment_len: [16 << 10, 64 << 10][rng.below(2) as usize],
            epoch,
            fault_events,
            starvation_max,
            limits: (0..clients).map(|_| limits(rng)).collect(),
            preventions: (0..clients).map(|_| prevention(rng)).collect(),
            day: day(rng, epoch),
        }
    }

    /// Returns random connection faults for a level from 0 (no faults) to 8.
    pub(crate) fn stream_faults(level: u64, rng: &mut Rng) -> StreamFaults {
        if level == 0 {
            return StreamFaults::NONE;
        }
        let ppm = |rng: &mut Rng, max: u64| (rng.below(2) * rng.below(max * level / 8 + 1)) as u32;
        StreamFaults {
            delay_min: Nanos(1_000 + rng.below(50_000)),
            jitter: Nanos(rng.below(200_000 * level)),
            spike_ppm: ppm(rng, 20_000),
            spike_max: Nanos::from_millis(40),
            window: 1 << (11 + rng.below(6)),
            short_write_ppm: ppm(rng, 500_000),
            short_read_ppm: ppm(rng, 500_000),
            reset_ppm: ppm(rng, 10_000),
            refusal_ppm: ppm(rng, 200_000),
        }
    }

    /// Returns random datagram faults for a level from 0 (no faults) to 8.
    pub(crate) fn datagram_faults(level: u64, rng: &mut Rng) -> DatagramFaults {
        if level == 0 {
            return DatagramFaults::NONE;
        }
        let ppm = |rng: &mut Rng, max: u64| (rng.below(2) * rng.below(max * level / 8 + 1)) as u32;
        DatagramFaults {
            loss_ppm: ppm(rng, 300_000),
            duplicate_ppm: ppm(rng, 100_000),
            delay_min: Nanos(1_000 + rng.below(20_000)),
            jitter: Nanos(rng.below(40_000 * level)),
            spike_ppm: ppm(rng, 20_000),
            spike_max: Nanos::from_millis(10),
        }
    }
}

/// Draws the grace period of cancel-on-disconnect; `None` disables it.
pub(crate) fn grace(rng: &mut Rng) -> Option<Nanos> {
    match rng.below(4) {
        0 => Some(Nanos::ZERO),
        1 => Some(Nanos::from_millis(rng.below(300))),
        _ => None,
    }
}

pub(crate) fn limits(rng: &mut Rng) -> UserLimits {
    let mut some = |max: u64| (rng.below(4) == 0).then(|| 1 + rng.below(max));
    let rate = some(1_000).map(|per_second| RateLimit { per_second: 50 + per_second as u32, burst: 20 });
    UserLimits {
        rate,
        open_orders: some(20).map(|orders| orders as u32),
        order_qty: some(80).map(Qty),
        order_notional: some(80_000_000),
    }
}

pub(crate) fn prevention(rng: &mut Rng) -> SelfTradePrevention {
    match rng.below(8) {
        0 => SelfTradePrevention::CancelNewest,
        1 => SelfTradePrevention::CancelOldest,
        2 => SelfTradePrevention::CancelBoth,
        3 | 4 => SelfTradePrevention::Decrement,
        _ => SelfTradePrevention::None,
    }
}

/// Draws the day's settings. A quarter of the runs have a schedule, which changes phases in the first three
/// seconds of the run and may end the day.
fn day(rng: &mut Rng, epoch: u64) -> DaySettings {
    let mut day = DaySettings {
        imbalance_interval: Nanos::from_millis(20 + rng.below(200)),
        pause: Nanos::from_millis(20 + rng.below(200)),
        price_band_ppm: (rng.below(3) == 0).then(|| 1_000 + rng.below(4_000) as u32),
        schedule: None,
    };
    if rng.below(4) == 0 {
        let now = (epoch / 1_000_000_000 % DAY_SECONDS) as u32;
        let step = |second: u32, phase| ScheduleStep { second, phase, instruments: None };
        let later = |seconds: u32| now.saturating_add(seconds).min(DAY_SECONDS as u32 - 1);
        let mut steps = vec![step(0, Phase::Start), step(1, Phase::Open)];
        if now > 1 {
            let phase_pairs = [
                [Phase::Auction, Phase::Open],
                [Phase::Halt, Phase::Resume],
                [Phase::PreClose, Phase::Close],
                [Phase::EndOfDay, Phase::Open],
                [Phase::EndOfDay, Phase::PreOpen],
            ];
            let [first, second] = phase_pairs[rng.below(phase_pairs.len() as u64) as usize];
            steps.push(step(later(1), first));
            steps.push(step(later(1 + rng.below(2) as u32), second));
            steps.push(step(later(3), Phase::Open));
        }
        day.schedule = Some(Schedule { utc_offset: 0, steps });
    }
    day
}

pub(crate) fn behaviour(rng: &mut Rng, has_faults: bool) -> ClientBehaviour {
    let rare = |rng: &mut Rng, max: u64| if has_faults { rng.below(2) * rng.below(max) } else { 0 };
    ClientBehaviour {
        pause: Nanos::from_micros(300 + rng.below(8_000)),
        burst_max: 1 + rng.below(8),
        leave_ppt: rare(rng, 30),
        stall_ppt: rare(rng, 20),
        stall_max: Nanos::from_millis(200),
        repeat_ppt: if has_faults { rng.below(500) } else { 0 },
        wrong_password_ppt: rare(rng, 100),
        backoff_max: Nanos::from_millis(1 + rng.below(100)),
        peer_timeout: Nanos::from_secs(3 + rng.below(12)),
        heartbeat: Nanos::from_millis(200 + rng.below(800)),
        reset_sequence: None,
    }
}

/// Returns a random clock step in nanoseconds: in either direction, up to a random limit of 1 us to 10 s.
pub(crate) fn clock_step(rng: &mut Rng) -> i64 {
    let size = 10_u64.pow(3 + rng.below(8) as u32);
    rng.below(2 * size) as i64 - size as i64
}

/// Draws the fault events of a run. Each kind occurs in about half of the runs, so that the combinations of
/// kinds differ between runs.
fn random_fault_events(
    rng: &mut Rng,
    active: Nanos,
    [clients, feeds]: [usize; 2],
    starvation_max: Nanos,
) -> Vec<(Nanos, FaultEvent)> {
    let kinds = rng.next();
    let mut fault_events = Vec::new();
    let short = |rng: &mut Rng| Nanos::from_millis(1 + rng.below(300));
    for kind in (0..14).filter(|kind| kinds >> kind & 1 == 1) {
        let count = match kind {
            0..4 => 1 + rng.below(3),
            10 => 4 + rng.below(20),
            _ => 1 + rng.below(6),
        };
        for _ in 0..count {
            let at = Nanos(rng.below(active.0));
            let event = match kind {
                0 => FaultEvent::KillVenue,
                1 => FaultEvent::CutPower,
                2 => FaultEvent::CutPowerAfter(rng.below(40)),
                3 => FaultEvent::StopVenue,
                4 => FaultEvent::KillClient(rng.below(clients as u64) as usize),
                5 => FaultEvent::KillFeed(rng.below(feeds as u64) as usize),
                6 => FaultEvent::Cut(client_host(rng.below(clients as u64) as usize), short(rng)),
                7 => FaultEvent::Cut(feed_host(rng.below(feeds as u64) as usize), short(rng)),
                8 => FaultEvent::Network(rng.below(9)),
                9 => {
                    let failure = [DiskFailure::Writes, DiskFailure::Syncs, DiskFailure::Full];
                    FaultEvent::Disk(failure[rng.below(3) as usize], short(rng))
                }
                10 => {
                    let part = rng.below(32) as usize;
                    FaultEvent::Starve(part, Nanos(1 + rng.below(starvation_max.0)))
                }
                11 => FaultEvent::StepClock(VENUE, clock_step(rng)),
                12 => FaultEvent::Connects(1 + rng.below(200), short(rng)),
                _ => FaultEvent::Admin(rng.next()),
            };
            fault_events.push((at, event));
        }
    }
    // In runs with network faults (kind 8), the network is faulty from the start.
    if kinds >> 8 & 1 == 1 {
        fault_events.push((Nanos::ZERO, FaultEvent::Network(1 + rng.below(8))));
    }
    fault_events.sort_by_key(|(at, _)| *at);
    fault_events
}
