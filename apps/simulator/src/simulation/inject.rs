//! Injects the faults of a run, and ends them.

use tickpath_exchange::{AdminCommand, BandWidth, LimitsChange, Phase};
use tickpath_journal::DiskFaults;
use tickpath_simnet::HostId;
use tickpath_types::{BrokenReason, InstrumentId, MatchId, Nanos, Price, Qty, SessionId, TradingState};

use super::{FaultEnd, Simulation, UNAUTHORISED_HOST};
use crate::client::Client;
use crate::faults::{DiskFailure, FaultEvent};
use crate::hosts::{DOWN_MAX, LINES, ORDER_ENTRY, VENUE};
use crate::profile::Profile;
use crate::recovery::SNAPSHOTS;
use crate::{HostFailure, trader};

impl Simulation {
    pub(super) fn inject_due(&mut self) {
        while let Some((_, event)) = self.faults.events.pop_if(|(at, _)| *at <= self.now) {
            self.inject(event);
        }
    }

    fn inject(&mut self, event: FaultEvent) {
        let now = self.now;
        match event {
            FaultEvent::KillVenue => self.crash_venue(HostFailure::Process, "venue killed"),
            FaultEvent::CutPower => self.crash_venue(HostFailure::Power, "venue lost power"),
            FaultEvent::CutPowerAfter(changes) => {
                self.count("power cut during a write");
                self.node.disk.crash_after(changes);
            }
            FaultEvent::StopVenue if self.node.is_alive() => {
                self.restart_venue("venue stopped and started");
            }
            FaultEvent::StopVenue => {}
            FaultEvent::KillClient(place) => {
                self.count("client killed");
                let restart_at = now + Nanos(self.rng.below(DOWN_MAX.0));
                self.clients[place].crash(now, restart_at);
            }
            FaultEvent::KillFeed(place) => {
                self.count("feed handler killed");
                self.feeds[place].end(Some(now));
                self.feeds[place].restart_at = now + Nanos(self.rng.below(DOWN_MAX.0));
            }
            FaultEvent::Cut(host, time) => {
                self.network.wires().network.cut(VENUE, host);
                self.faults.ends.push((now + time, FaultEnd::Cut(host)));
            }
            FaultEvent::Network(level) => self.set_network_faults(level),
            FaultEvent::Disk(failure, time) => self.set_disk_faults_for(failure, time),
            FaultEvent::Starve(part, time) => {
                self.count("part starved");
                let part = part % self.faults.starved.len();
                self.faults.starved[part] = self.faults.starved[part].max(now + time);
            }
            FaultEvent::StepClock(host, ahead_ns) => self.step_clock(host, ahead_ns),
            FaultEvent::Connects(count, time) => self.connect_unauthorised(count, time),
            FaultEvent::Admin(bits) => self.send_admin_command(bits),
            FaultEvent::AddInstrument(place) => {
                if self.node.command(AdminCommand::AddInstrument(self.additions.instrument(place))) {
                    self.count("instruments added");
                }
            }
            FaultEvent::KillReader => {
                let restart_at = now + Nanos(self.rng.below(DOWN_MAX.0));
                if let Some((_, reader)) = &mut self.copies {
                    reader.crash(now, restart_at);
                    self.count("reader of drop copies killed");
                }
            }
            FaultEvent::KillTrader(place) => {
                self.count("trader killed");
                self.traders[place].crash(now);
            }
            FaultEvent::StopTrader(place) => {
                self.count("trader stopped and started");
                self.traders[place].stop(now);
            }
            FaultEvent::StallTrader(place, time) => self.stall_trader(place, now + time),
        }
    }

    fn crash_venue(&mut self, failure: HostFailure, counted: &'static str) {
        if self.node.is_alive() {
            self.count(counted);
            self.node.crash(self.now, failure);
            self.schedule_restart();
        }
    }

    fn step_clock(&mut self, host: HostId, ahead_ns: i64) {
        let is_venue = host == VENUE;
        self.count(if is_venue { "clock stepped" } else { "trader's clock stepped" });
        self.faults.clock_steps.extend(is_venue.then_some(self.now));
        let ahead = self.profile.epoch.saturating_add_signed(ahead_ns) as i64;
        self.network.wires().network.set_clock(host, ahead);
    }

    fn stall_trader(&mut self, place: usize, end: Nanos) {
        self.count("trader stalled");
        let first = self.faults.starved.len() - trader::AGENTS * (self.traders.len() - place);
        for until in &mut self.faults.starved[first..first + trader::AGENTS] {
            *until = (*until).max(end);
        }
    }

    fn set_network_faults(&mut self, level: u64) {
        let streams = Profile::stream_faults(level, &mut self.rng);
        let groups = [Some(LINES[0]), Some(LINES[1]), None];
        let datagrams = groups.map(|group| (group, Profile::datagram_faults(level, &mut self.rng)));
        // The snapshot channel has line B's fault probabilities, with separate draws.
        let of_snapshots = (Some(SNAPSHOTS), datagrams[1].1);
        let mut wires = self.network.wires();
        wires.network.set_stream_faults(streams);
        let all = datagrams.into_iter().chain([of_snapshots]);
        all.for_each(|(group, faults)| wires.network.set_datagram_faults(group, faults));
    }

    fn set_disk_faults_for(&mut self, failure: DiskFailure, time: Nanos) {
        let mut faults = DiskFaults::default();
        match failure {
            DiskFailure::Writes => faults.write_failures_ppm = 20_000,
            DiskFailure::Syncs => faults.sync_failures_ppm = 20_000,
            DiskFailure::Full => faults.capacity = self.profile.segment_len * 2,
        }
        self.node.disk.set_faults(faults);
        self.faults.ends.push((self.now + time, FaultEnd::Disk));
    }

    fn connect_unauthorised(&mut self, count: u64, time: Nanos) {
        let network = self.network.of(UNAUTHORISED_HOST);
        for _ in 0..count {
            self.count("unauthorised connections");
            self.faults.unauthorised.push((self.now + time, network.connect(ORDER_ENTRY)));
        }
    }

    fn send_admin_command(&mut self, bits: u64) {
        let users = self.profile.clients + self.traders.len();
        let user = SessionId(1 + (bits >> 8) as u16 % users as u16);
        let instrument = InstrumentId(1 + (bits >> 24) as u16 % self.node.instrument_count());
        let state = [TradingState::Halted, TradingState::Trading][(bits >> 40) as usize % 2];
        let one = (bits >> 41 & 1 == 1).then_some(instrument);
        let many = bits >> 48;
        let command = match bits % 20 {
            0..3 => AdminCommand::SetTradingState { instrument, state },
            3 => AdminCommand::Kill(Some(user)),
            4 => AdminCommand::Unkill(Some(user)),
            5 => AdminCommand::Kill(None),
            6 => AdminCommand::Unkill(None),
            7 => AdminCommand::Disconnect(user),
            8 => AdminCommand::SuspendInstrument { instrument },
            9 => AdminCommand::SetPriceBand {
                instrument: one,
                width: [BandWidth::Off, BandWidth::Price(Price(100 * (1 + many as i64 % 8)))]
                    [many as usize % 2],
                reference: None,
            },
            10 | 11 => AdminCommand::BreakTrade {
                match_id: MatchId(1 + many % 64),
                reason: BrokenReason::Supervisory,
            },
            12 => AdminCommand::SetLimits {
                session: user,
                change: LimitsChange {
                    order_qty: Some(many.is_multiple_of(2).then_some(Qty(1 + many % 60))),
                    open_orders: Some(many.is_multiple_of(3).then_some(many as u32 % 20 + 1)),
                    ..LimitsChange::default()
                },
            },
            13 | 14 => AdminCommand::Phase { phase: Phase::Open, instrument: None },
            _ => {
                let phase = Phase::ALL[many as usize % Phase::ALL.len()];
                AdminCommand::Phase { phase, instrument: one.filter(|_| !phase.is_of_venue()) }
            }
        };
        if self.node.command(command) {
            self.count("administrator's commands");
        }
    }

    pub(super) fn end_faults(&mut self) {
        let now = self.now;
        for (_, end) in self.faults.ends.extract_if(.., |(at, _)| *at <= now) {
            match end {
                // If another cut of the same host is in progress, it ends as well.
                FaultEnd::Cut(host) => self.network.wires().network.heal(VENUE, host),
                FaultEnd::Disk => self.node.disk.set_faults(DiskFaults::default()),
            }
        }
        for (_, socket) in self.faults.unauthorised.extract_if(.., |(until, _)| *until <= now) {
            self.network.wires().network.close(socket);
        }
    }

    /// Ends all faults and begins the recovery phase.
    pub(super) fn end_all_faults(&mut self) {
        self.recovery_phase.has_begun = true;
        self.recovery_phase.began_at = self.now;
        self.rounds.quiet_since = self.now;
        self.faults.events.clear();
        for (at, _) in &mut self.faults.ends {
            *at = self.now;
        }
        self.end_faults();
        self.set_network_faults(0);
        self.node.disk.set_faults(DiskFaults::default());
        self.node.disk.crash_after(u64::MAX);
        self.faults.starved.iter_mut().for_each(|until| *until = Nanos::ZERO);
        self.clients_mut().for_each(Client::quiesce);
        self.feeds.iter_mut().for_each(|feed| feed.restart_at = Nanos::ZERO);
        for (_, socket) in self.faults.unauthorised.drain(..) {
            self.network.wires().network.close(socket);
        }
    }
}
