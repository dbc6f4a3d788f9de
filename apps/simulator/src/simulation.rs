//! The native venue, its clients, feed handlers and traders, stepped in one thread.

mod inject;

use std::collections::BTreeMap;

use tickpath_exchange::{AdminCommand, JournalSettings, Phase};
use tickpath_journal::{DiskFaults, FaultyDisk, Policy};
use tickpath_simnet::{HostId, Network, SocketId};
use tickpath_types::{InstrumentId, InstrumentTable, Nanos, Rng, SessionId};

use crate::additions::Additions;
use crate::client::{Client, ClientBehaviour};
use crate::copies::{self, CopyProfile};
use crate::faults::{FaultEvent, FaultLevel};
use crate::feed::Feed;
use crate::flow::Flow;
use crate::hosts::{DOWN_MAX, LINES, ORDER_ENTRY, VENUE, client_host, feed_host, user_name};
use crate::net::SimNetwork;
use crate::node::{AGENTS, Node};
use crate::profile::Profile;
use crate::recovery::RecoveryProfile;
use crate::trader::{self, Trader};
use crate::trader_profile::{self, TraderProfile};
use crate::venue::{instruments, venue_settings};
use crate::{Line, Log, Observed, Setup, Timed, Violation, check};

const UNAUTHORISED_HOST: HostId = HostId(1_000);
/// Maximum time step while there is work, in nanoseconds.
const BUSY_STEP_MAX: u64 = 20_000;
/// Maximum time step while idle: timers run at least this often.
const IDLE_STEP_MAX: Nanos = Nanos::from_millis(20);
/// Maximum idle time step while a feed handler lacks messages.
const GAP_STEP_MAX: Nanos = Nanos::from_millis(1);
/// Rounds without work after which time jumps to the next event.
const IDLE_ROUNDS: u32 = 4;
/// Idle time after which a run ends, once the system has recovered: longer than two heartbeats.
const QUIET_TIME: Nanos = Nanos::from_millis(2_500);
const RECOVERY_MAX: Nanos = Nanos::from_secs(120);
/// Interval at which the simulated operator ends auctions during recovery.
const OPEN_INTERVAL: Nanos = Nanos::from_millis(100);
/// Number of parts for drop copies: the endpoint and its reader.
const COPY_PARTS: usize = 2;
/// Maximum delay of scheduled actions without starvation: timer interval, login check and longest idle step.
const REACTION: Nanos = Nanos::from_millis(60);

/// Names of the counters in `Outcome::consequences`. All other counters count injected faults.
const CONSEQUENCES: [&str; 20] = [
    "connections_above_backlog",
    "connections_cut",
    "connections_unheard",
    "datagrams_cut",
    "datagrams_unreceived",
    "deaths",
    "full_windows",
    "instruments added",
    "half_closes",
    "power_losses",
    "resets_by_close",
    "restarted for its drop copies",
    "restarted for its snapshots",
    "starts refused",
    "starts with commands lost",
    "traders' fills",
    "traders' lives",
    "traders' lost market updates",
    "traders' orders open at the end",
    "traders' orders taken after all",
];

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Observations of the run.
    pub observed: Observed,
    /// The violated guarantees.
    pub violations: Vec<Violation>,
    /// Number of injections of each fault; faults that were not injected are absent.
    pub faults: BTreeMap<&'static str, u64>,
    /// Counts, by name, of the effects of faults, such as cut connections, and of events that need no fault.
    pub consequences: BTreeMap<&'static str, u64>,
}

/// The venue, its clients, feed handlers and traders, network and disk, in one thread under virtual time.
///
/// The seed determines everything, bit for bit: requests, scheduling, faults and their times. After a while
/// the faults stop and the system recovers; [`check`] then checks the final state.
pub struct Simulation {
    profile: Profile,
    rng: Rng,
    now: Nanos,
    network: SimNetwork,
    node: Node,
    clients: Vec<Client>,
    feeds: Vec<Feed>,
    /// The drop copy profile and the reader.
    copies: Option<(CopyProfile, Client)>,
    traders: Vec<Trader>,
    additions: Additions,
    faults: FaultSchedule,
    recovery_phase: RecoveryPhase,
    rounds: Rounds,
    counts: BTreeMap<&'static str, u64>,
}

/// The pending faults, and the faults in progress.
#[derive(Default)]
struct FaultSchedule {
    /// Pending events, the next one last.
    events: Vec<(Nanos, FaultEvent)>,
    /// Pending ends of faults.
    ends: Vec<(Nanos, FaultEnd)>,
    unauthorised: Vec<(Nanos, SocketId)>,
    /// Time at which each part gets CPU time again.
    starved: Vec<Nanos>,
    venue_restart_at: Nanos,
    /// Times at which the venue's clock was stepped.
    clock_steps: Vec<Nanos>,
}

/// The recovery phase: the time without faults at the end of a run.
#[derive(Default)]
struct RecoveryPhase {
    has_begun: bool,
    began_at: Nanos,
    /// Earliest time at which the operator next ends all auctions.
    opens_at: Nanos,
}

/// State of the scheduler, which steps every part once per round, unless the part is starved.
#[derive(Default)]
struct Rounds {
    /// Number of consecutive rounds without work.
    idle: u32,
    quiet_since: Nanos,
    order: Vec<usize>,
}

/// The end of a lasting fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultEnd {
    Cut(HostId),
    Disk,
}

/// Creates the network, with each host's clock.
fn network(profile: &Profile, traders: &[TraderProfile], seed: u64) -> SimNetwork {
    let mut network = Network::new(seed, Nanos::ZERO);
    network.watch_streams_of(VENUE);
    let (clients, feeds) = ((0..profile.clients).map(client_host), (0..profile.feeds).map(feed_host));
    let hosts = clients.chain(feeds).chain([VENUE, copies::HOST]);
    hosts.for_each(|host| network.set_clock(host, profile.epoch as i64));
    for trader in traders {
        network.set_clock(trader.host, (profile.epoch + trader.clock_ahead) as i64);
    }
    SimNetwork::new(network, VENUE)
}

fn journal_settings(profile: &Profile, recovery: &RecoveryProfile) -> JournalSettings {
    recovery.journal(JournalSettings {
        segment_len: profile.segment_len,
        buffer_len: 8 << 10,
        snapshot_every: profile.snapshot_every,
        ..JournalSettings::new("", profile.policy)
    })
}

fn clients(profile: &Profile, network: &SimNetwork, known: &InstrumentTable, rng: &mut Rng) -> Vec<Client> {
    let reset_sequence = (profile.policy == Policy::Async).then_some(1);
    (0..profile.clients)
        .map(|place| {
            let host = client_host(place);
            Client::new(
                SessionId(host.0),
                &user_name(place),
                network.of(host),
                ORDER_ENTRY,
                ClientBehaviour { reset_sequence, ..profile.behaviour[place] },
                Some(Flow::new(known.clone(), profile.instruments.into())),
                rng.next(),
            )
        })
        .collect()
}

/// Returns all fault events of a run, in descending order of time.
fn fault_events(
    profile: &Profile,
    traders: &[TraderProfile],
    copies: Option<&CopyProfile>,
    additions: &Additions,
) -> Vec<(Nanos, FaultEvent)> {
    let mut events = profile.fault_events.clone();
    events.extend(traders.iter().flat_map(|trader| trader.fault_events.iter().copied()));
    events.extend(copies.iter().flat_map(|copies| copies.fault_events.iter().copied()));
    events.extend(additions.fault_events.iter().copied());
    events.sort_by_key(|(at, _)| *at);
    events.reverse();
    events
}

impl Simulation {
    /// Creates a run.
    #[must_use]
    pub fn new(seed: u64, fault_level: FaultLevel) -> Simulation {
        let profile = Profile::new(seed, fault_level);
        let recovery = RecoveryProfile::new(seed, profile.feeds, profile.active);
        let copies = CopyProfile::new(seed, fault_level, profile.clients, profile.active);
        let traders = TraderProfile::all(seed, fault_level, profile.active);
        let mut rng = Rng::new(seed);
        let network = network(&profile, &traders, rng.next());
        let instruments = instruments(profile.instruments);
        let additions = Additions::new(seed, profile.instruments, profile.active);
        let max_instrument = InstrumentId(additions.max_id());
        let disk = FaultyDisk::new(rng.next(), DiskFaults::default());
        let mut settings = venue_settings(&profile, &recovery, &instruments);
        settings.limits.max_instruments = additions.max_id();
        trader_profile::add_users(&traders, &mut settings);
        let mut journal = journal_settings(&profile, &recovery);
        if let Some(copies) = &copies {
            settings.users.push(copies.user(&settings.users));
            journal = copies.journal(journal);
        }
        let node = Node::new(settings, journal, disk, network.clone());
        let clients = clients(&profile, &network, &additions.table(&instruments), &mut rng);
        let feeds: Vec<Feed> = (0..profile.feeds)
            .map(|place| {
                let host = feed_host(place);
                let settings = recovery.feed(place, max_instrument);
                Feed::new(place as u32, host, network.of(host), settings, recovery.joins_at(place))
            })
            .collect();
        let events = fault_events(&profile, &traders, copies.as_ref(), &additions);
        let copies = copies.map(|copies| {
            let reader = copies.reader(&network, profile.policy, profile.clients + traders.len());
            (copies, reader)
        });
        // Order of parts: venue agents, disk, follower, clients, feed handlers, drop copies, trader agents.
        let copy_parts = if copies.is_some() { COPY_PARTS } else { 0 };
        let parts =
            AGENTS + 2 + profile.clients + profile.feeds + copy_parts + trader::AGENTS * traders.len();
        let traders = (0..).zip(traders).map(|(number, trader)| {
            let user = profile.clients + number as usize;
            let feed = recovery.feed(number as usize % profile.feeds, max_instrument);
            let settings = trader.settings(user, feed, &instruments);
            let network = network.of(trader.host);
            Trader::new(number, user, trader, settings, network)
        });
        let traders = traders.collect();
        Simulation {
            rng,
            now: Nanos::ZERO,
            network,
            node,
            clients,
            feeds,
            copies,
            traders,
            additions,
            faults: FaultSchedule { events, starved: vec![Nanos::ZERO; parts], ..FaultSchedule::default() },
            recovery_phase: RecoveryPhase::default(),
            rounds: Rounds { order: (0..parts).collect(), ..Rounds::default() },
            counts: BTreeMap::new(),
            profile,
        }
    }

    /// Runs to the end and checks the observations.
    #[must_use]
    pub fn run(mut self) -> Outcome {
        while !self.is_over() {
            self.round();
        }
        self.finish()
    }

    fn is_over(&self) -> bool {
        let is_quiet = self.rounds.idle > 0 && self.now >= self.rounds.quiet_since + QUIET_TIME;
        self.recovery_phase.has_begun && (is_quiet || self.now >= self.recovery_phase.began_at + RECOVERY_MAX)
    }

    /// Advances time, and runs every part that is not starved, in random order.
    fn round(&mut self) {
        self.advance_time();
        self.inject_due();
        self.end_faults();
        if !self.recovery_phase.has_begun && self.now >= self.profile.active {
            self.end_all_faults();
        }
        if self.recovery_phase.has_begun
            && self.now >= self.recovery_phase.opens_at
            && self.node.is_in_auction()
        {
            // End all auctions. An auction that a command began lasts until the next command, and the venue
            // publishes repeatedly while it lasts.
            self.recovery_phase.opens_at = self.now + OPEN_INTERVAL;
            self.node.command(AdminCommand::Phase { phase: Phase::Open, instrument: None });
        }
        if self.recovery_phase.has_begun {
            // The simulated operator restarts a venue without market data snapshots or drop copies.
            if self.node.are_snapshots_behind() {
                self.restart_venue("restarted for its snapshots");
            } else if self.node.have_copies_failed() {
                self.restart_venue("restarted for its drop copies");
            }
        }
        let mut work = self.start_due_processes();
        let mut order = std::mem::take(&mut self.rounds.order);
        self.shuffle(&mut order);
        for part in &order {
            if self.now >= self.faults.starved[*part] {
                work += self.step(*part);
            }
        }
        self.rounds.order = order;
        self.distribute_stream_events();
        self.rounds.idle = if work > 0 { 0 } else { self.rounds.idle + 1 };
        if work > 0 && !self.is_calm() || !self.is_quiescent() {
            self.rounds.quiet_since = self.now;
        }
    }

    /// Returns true once the system is quiescent after the faults; heartbeats do not make it busy again.
    fn is_calm(&self) -> bool {
        self.recovery_phase.has_begun && self.is_quiescent()
    }

    fn is_quiescent(&self) -> bool {
        let (published, instruments) = (self.node.published(), self.node.instrument_count());
        self.node.is_alive()
            && self.node.is_quiescent()
            && self.clients().all(Client::is_quiescent)
            && self.feeds.iter().all(|feed| feed.is_alive() && !feed.is_behind(published, instruments))
            && self.traders.iter().all(|trader| trader.is_quiescent(published, instruments))
    }

    fn advance_time(&mut self) {
        let step = match self.rounds.idle < IDLE_ROUNDS {
            true => Nanos(1 + self.rng.below(BUSY_STEP_MAX)),
            false => self.time_to_next(),
        };
        self.now = self.now + step;
        self.network.wires().network.advance(self.now);
    }

    /// Returns the time until the next event, limited to the maximum idle step.
    fn time_to_next(&self) -> Nanos {
        let (published, instruments) = (self.node.published(), self.node.instrument_count());
        let is_behind =
            self.feeds.iter().any(|feed| feed.is_alive() && feed.is_behind(published, instruments))
                || self.traders.iter().any(|trader| trader.is_behind(published, instruments));
        let max = if is_behind { GAP_STEP_MAX } else { IDLE_STEP_MAX };
        let arrival = self.network.wires().network.next_arrival();
        let clients = self.clients().map(Client::next_due);
        let starved = self.faults.starved.iter().copied();
        let feeds = self.feeds.iter().filter(|feed| !feed.is_alive()).map(|feed| feed.restart_at);
        let next = clients
            .chain(starved)
            .chain(feeds)
            .chain(self.traders.iter().filter_map(Trader::next_due))
            .chain(arrival)
            .chain(self.faults.events.last().map(|(at, _)| *at))
            .chain(self.faults.ends.iter().map(|(at, _)| *at))
            .chain((!self.node.is_alive()).then_some(self.faults.venue_restart_at))
            .chain((!self.recovery_phase.has_begun).then_some(self.profile.active))
            .filter(|at| *at > self.now)
            .min();
        let until = next.map_or(max, |at| Nanos(at.0 - self.now.0));
        until.min(max).max(Nanos(1))
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for place in (1..order.len()).rev() {
            order.swap(place, self.rng.below(place as u64 + 1) as usize);
        }
    }

    fn step(&mut self, part: usize) -> usize {
        let step = match part {
            0..AGENTS => self.node.step_agent(self.now, part),
            AGENTS => self.node.step_disk(self.now),
            _ if part == AGENTS + 1 => self.node.step_follower(self.now),
            _ => self.step_other(part - AGENTS - 2),
        };
        step.unwrap_or_else(|| {
            self.schedule_restart();
            1
        })
    }

    /// Returns the clients, and the reader of drop copies.
    fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter().chain(self.copies.iter().map(|(_, reader)| reader))
    }

    fn clients_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.clients.iter_mut().chain(self.copies.iter_mut().map(|(_, reader)| reader))
    }

    fn step_other(&mut self, place: usize) -> Option<usize> {
        let time_of_day = self.node.time_of_day();
        if let Some(client) = self.clients.get_mut(place) {
            return Some(client.step(self.now, time_of_day).into());
        }
        let place = place - self.profile.clients;
        if let Some(feed) = self.feeds.get_mut(place) {
            return Some(feed.step());
        }
        let place = place - self.profile.feeds;
        match &mut self.copies {
            Some(_) if place == 0 => self.node.step_copies(self.now),
            Some((_, reader)) if place == 1 => Some(reader.step(self.now, time_of_day).into()),
            copies => {
                let place = place - if copies.is_some() { COPY_PARTS } else { 0 };
                let trader = &mut self.traders[place / trader::AGENTS];
                Some(trader.step(self.now, place % trader::AGENTS))
            }
        }
    }

    fn schedule_restart(&mut self) {
        self.faults.venue_restart_at = self.now + Nanos(self.rng.below(DOWN_MAX.0));
    }

    /// Starts the venue and feed handlers that are due, and lets the operator act on traders.
    fn start_due_processes(&mut self) -> usize {
        let mut work = 0;
        if !self.node.is_alive() && self.now >= self.faults.venue_restart_at {
            self.node.power_on();
            if !self.node.start(self.now) {
                self.repair_for_start();
                self.schedule_restart();
            } else {
                // After another power failure, the operator must accept the loss again.
                self.node.journal.accept_loss = false;
                if self.node.has_lost_commands() {
                    self.count("starts with commands lost");
                }
            }
            work += 1;
        }
        for feed in &mut self.feeds {
            if feed.has_session_changed() || self.recovery_phase.has_begun && feed.is_stale() {
                // The simulated operator restarts a feed handler after a session change or with stale books.
                feed.end(Some(self.now));
            }
            if !feed.is_alive() && self.now >= feed.restart_at {
                feed.start(self.now).expect("the simulated network has room for the group");
                work += 1;
            }
        }
        let recovering_since = self.recovery_phase.has_begun.then_some(self.recovery_phase.began_at);
        for trader in &mut self.traders {
            work += usize::from(trader.operate(self.now, recovering_since));
        }
        work
    }

    /// Handles a failed start: the operator repairs the disk and, under `async`, accepts the loss.
    fn repair_for_start(&mut self) {
        self.count("starts refused");
        self.node.disk.set_faults(DiskFaults::default());
        self.faults.ends.retain(|(_, end)| *end != FaultEnd::Disk);
        if self.profile.policy == Policy::Async {
            self.node.journal.accept_loss = true;
        }
    }

    fn restart_venue(&mut self, reason: &'static str) {
        self.count(reason);
        self.stop_venue();
        self.schedule_restart();
    }

    fn stop_venue(&mut self) {
        let network = self.network.clone();
        let mut at = self.now;
        self.node.stop(self.now, |now| {
            network.wires().network.advance(now);
            at = now;
        });
        self.now = at;
    }

    fn distribute_stream_events(&mut self) {
        let events = self.network.wires().network.take_stream_events();
        for event in &events {
            // An event that no client or trader accepts belongs to a connection of the unauthorised host.
            let _ = self.clients_mut().any(|client| client.on_stream_event(event))
                || self.traders.iter_mut().any(|trader| trader.on_stream_event(event));
        }
    }

    fn count(&mut self, fault: &'static str) {
        *self.counts.entry(fault).or_default() += 1;
    }

    fn finish(mut self) -> Outcome {
        let ended_at = self.now;
        let is_quiescent = self.is_quiescent();
        self.feeds.iter_mut().for_each(|feed| feed.end(None));
        self.traders.iter_mut().for_each(Trader::finish);
        let network = self.network.clone();
        let last = self.node.stop(ended_at, |now| network.wires().network.advance(now)).unwrap_or_default();
        self.distribute_stream_events();
        let observed = self.observe(ended_at, last);
        self.count_trading(&observed);
        let (consequences, faults) =
            self.counted().into_iter().partition(|(name, _)| CONSEQUENCES.contains(name));
        let mut violations = check(&observed);
        if !is_quiescent {
            let text = format!("the system is not quiet {RECOVERY_MAX} after the last fault");
            violations.insert(0, Violation { check: "healing", text });
        }
        Outcome { observed, violations, faults, consequences }
    }

    /// Counts the traders' instances, fills, orders and lost updates, to show that the checkers had cases to
    /// check.
    fn count_trading(&mut self, observed: &Observed) {
        for instance in &observed.traders {
            let positions = instance.positions.iter();
            let fills = positions.map(|position| position.bought().fill_count + position.sold().fill_count);
            let open = if instance.ended.is_none() { instance.orders.len() as u64 } else { 0 };
            for (name, count) in [
                ("traders' lives", 1),
                ("traders' fills", fills.sum()),
                ("traders' orders open at the end", open),
                ("traders' orders taken after all", instance.reopened),
                ("traders' lost market updates", instance.lost_updates),
            ] {
                *self.counts.entry(name).or_default() += count;
            }
        }
    }

    fn counted(&self) -> BTreeMap<&'static str, u64> {
        let mut faults = self.counts.clone();
        let disk = self.node.disk.counters();
        let of_disk = [
            ("failed_writes", disk.failed_writes),
            ("failed_syncs", disk.failed_syncs),
            ("disk_full", disk.disk_full),
            ("sectors_lost_or_torn", disk.lost_sectors),
        ];
        let wires = self.network.wires();
        faults.retain(|_, count| *count > 0);
        let routine = ["datagrams", "connections", "segments"];
        let of_network = wires.network.counters().iter().filter(|(name, _)| !routine.contains(name));
        faults.extend(of_network.chain(of_disk).filter(|(_, count)| *count > 0));
        faults
    }

    fn observe(&mut self, ended_at: Nanos, last: crate::FinalVenue) -> Observed {
        let tap = std::mem::take(&mut self.network.wires().tap);
        let line = |group| if group == LINES[0] { Line::A } else { Line::B };
        let published = tap.to_groups.into_iter().filter(|(_, group, _)| LINES.contains(group));
        let failures = std::mem::take(&mut self.node.copy_failures);
        let users = self.node.settings.users.len();
        let copies = self.copies.as_ref().map(|(copies, reader)| copies.observe(reader, users, failures));
        let (mut feeds, mut traders) = (Vec::new(), Vec::new());
        self.feeds.iter_mut().for_each(|feed| feeds.append(&mut feed.instances));
        for trader in &mut self.traders {
            traders.append(&mut trader.instances);
            feeds.append(&mut trader.feeds);
        }
        let clients = self.clients.iter().map(|client| &client.log);
        let logs = clients.chain(self.traders.iter().map(|trader| &trader.tap.log));
        let settings = &self.node.settings;
        let schedule = settings.day.schedule.iter();
        Observed {
            setup: Setup {
                instruments: settings.instruments.as_slice().to_vec(),
                limits: settings.limits,
                policy: self.profile.policy,
                users: settings.users.clone(),
                schedule: schedule.flat_map(|schedule| &schedule.steps).map(|step| step.second).collect(),
                reaction_max: self.profile.starvation_max + REACTION,
            },
            clients: logs.cloned().collect(),
            copies,
            venue: self.node.events.clone(),
            published: published
                .map(|(at, group, bytes)| Timed { at, value: (line(group), bytes) })
                .collect(),
            retransmitted: tap.answers,
            feeds,
            traders,
            log: Log { snapshots: self.node.snapshots().unwrap_or_default(), ..self.node.log.clone() },
            last,
            ended_at,
            clock_steps: std::mem::take(&mut self.faults.clock_steps),
        }
    }
}
