//! A trader's machine. Each instance runs three agents: feed handler, engine and order gateway. A simulated
//! operator starts and stops the instances.

use std::sync::atomic::Ordering;

use tickpath_agent::{Agent, TscClock};
use tickpath_simnet::{HostFailure, HostId, StreamEvent};
use tickpath_timing::NoTrace;
use tickpath_trader::{AgentSettings, TraderAgents, TraderTracers};
use tickpath_trading::EngineConfig;
use tickpath_types::{Nanos, Rng, SessionId, Side};

use crate::feed::Recorder;
use crate::hosts::DOWN_MAX;
use crate::net::SimNetwork;
use crate::strategy::{Silence, Silenceable};
use crate::trader_profile::TraderProfile;
use crate::wiretap::Wiretap;
use crate::{FeedInstance, TraderEnd, TraderInstance};

/// Number of agents: feed handler, engine, order gateway.
pub(crate) const AGENTS: usize = 3;
/// Number of the first trader's feed handler.
const FIRST_FEED: u32 = 100;
/// Timeout for the cancels of a stopping trader's orders, as in the product.
const CANCEL_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Mean number of idle duty cycles of an agent per warm-up run.
const WARM_UP_INTERVAL: u64 = 16;

type Agents = TraderAgents<Silenceable, NoTrace, SimNetwork>;

pub(crate) struct Trader {
    number: u32,
    /// Index of the trader's user.
    user: usize,
    profile: TraderProfile,
    settings: AgentSettings,
    network: SimNetwork,
    rng: Rng,
    pub(crate) tap: Wiretap,
    instance: Option<Instance>,
    /// Time of the next start, while the trader is down.
    restart_at: Nanos,
    /// True once the trader no longer trades.
    is_over: bool,
    /// Agents of the last instance, kept so that the venue does not see them disconnect before it stops.
    finished_agents: Option<Agents>,
    pub(crate) instances: Vec<TraderInstance>,
    pub(crate) feeds: Vec<FeedInstance>,
}

struct Instance {
    agents: Agents,
    recorder: Recorder,
    silence: Silence,
    started_at: Nanos,
    first_connection: u32,
    /// Machine clock minus virtual time at the start; the instance's clock is virtual time plus this.
    clock_offset: u64,
    /// Deadline for cancelling the instance's open orders, once the instance is stopping.
    end_deadline: Option<Nanos>,
}

impl Instance {
    fn agent(&mut self, place: usize) -> &mut dyn Agent {
        match place {
            0 => &mut self.agents.feed_handler,
            1 => &mut self.agents.engine,
            _ => &mut self.agents.gateway,
        }
    }

    /// Cancels the instance's orders and sets the deadline of its end.
    fn stop(&mut self, now: Nanos) {
        self.agents.kill.pull();
        self.end_deadline.get_or_insert(now + CANCEL_TIMEOUT);
    }

    fn has_stopped(&self) -> bool {
        self.agents.engine.desk().stopped().is_some()
    }

    fn open_orders(&self) -> usize {
        self.agents.engine.desk().orders().total_open()
    }

    fn is_logged_in(&self) -> bool {
        self.agents.view.gateway.logged_in.read() == 1
    }

    /// Returns true if the instance is logged in and no order waits for an answer.
    fn is_answered(&self) -> bool {
        let desk = self.agents.engine.desk();
        let mut orders = desk.instruments().iter().flat_map(|instrument| {
            Side::BOTH.into_iter().flat_map(|side| desk.orders().open(instrument.id, side))
        });
        self.is_logged_in() && desk.is_connected() && orders.all(|order| order.is_answered())
    }
}

impl Trader {
    pub(crate) fn new(
        number: u32,
        user: usize,
        profile: TraderProfile,
        settings: AgentSettings,
        network: SimNetwork,
    ) -> Trader {
        network.wires().tap.hosts.insert(profile.host);
        Trader {
            number,
            user,
            settings,
            network,
            rng: Rng::new(profile.seed),
            tap: Wiretap::new(SessionId(user as u16 + 1)),
            instance: None,
            restart_at: profile.joins_at,
            is_over: false,
            finished_agents: None,
            instances: Vec::new(),
            feeds: Vec::new(),
            profile,
        }
    }

    pub(crate) fn host(&self) -> HostId {
        self.profile.host
    }

    /// Returns the time of the next start; `None` while an instance runs.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.instance.is_none().then_some(self.restart_at)
    }

    /// Returns true while the trader lacks market data.
    pub(crate) fn is_behind(&self, published: u64, instruments: u16) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.recorder.is_behind(published, instruments))
    }

    /// Returns true if the trader no longer trades, is logged in and up to date, and awaits no answer.
    pub(crate) fn is_quiescent(&self, published: u64, instruments: u16) -> bool {
        self.is_over
            && self.instance.as_ref().is_some_and(|instance| {
                let is_done = !self.profile.is_stopped_in_the_end
                    || instance.has_stopped() && instance.open_orders() == 0;
                is_done
                    && instance.end_deadline.is_none()
                    && instance.is_answered()
                    && !instance.recorder.is_behind(published, instruments)
            })
    }

    /// Acts as the simulated operator: starts the trader, and stops it when it can no longer trade. Returns
    /// true if the trader started or ended. `recovering_since` is set once the faults have ended.
    pub(crate) fn operate(&mut self, now: Nanos, recovering_since: Option<Nanos>) -> bool {
        self.is_over |= recovering_since.is_some_and(|at| now >= at + self.profile.ends_after);
        let Some(instance) = &mut self.instance else {
            let is_due = now >= self.restart_at;
            if is_due {
                self.start(now, recovering_since.is_some());
            }
            return is_due;
        };
        if self.is_over {
            instance.silence.store(true, Ordering::Relaxed);
            if self.profile.is_stopped_in_the_end && instance.is_logged_in() {
                instance.agents.kill.pull();
            }
        }
        let can_recover = self.settings.feed.snapshots.is_any();
        let is_stale = recovering_since.is_some() && !can_recover && instance.recorder.has_lost();
        let is_kill_pulled = instance.agents.kill.is_pulled();
        // A trader that stopped itself must restart. So must one whose kill switch was pulled, if it is not
        // logged in: its session may no longer exist.
        let is_unusable = instance.has_stopped() && (!is_kill_pulled || !instance.is_logged_in());
        if instance.recorder.has_session_changed() || is_stale || is_unusable {
            instance.stop(now);
        }
        let has_ended = instance.has_stopped() && instance.open_orders() == 0;
        if instance.end_deadline.is_some_and(|by| has_ended || now >= by) {
            self.end(now);
            return true;
        }
        false
    }

    fn start(&mut self, now: Nanos, is_recovering: bool) {
        self.network.wires().network.power_on(self.host());
        let clock = self.network.wires().network.clock(self.host());
        TscClock::simulate(clock);
        let silence = Silence::default();
        let count = self.settings.limits.len();
        let strategy = Silenceable::warmed_up(self.profile.kind, count, self.rng.next(), silence.clone());
        let mut settings = self.settings.clone();
        if is_recovering {
            // The silent market at the end of a run must not stop the trader.
            settings.engine = EngineConfig { silence_stop: None, ..settings.engine };
        }
        let tracers = TraderTracers { feed_handler: NoTrace, engine: NoTrace, gateway: NoTrace };
        let agents =
            TraderAgents::open_on(&self.network, &settings, strategy, TscClock::simulated(), tracers)
                .expect("the simulated network has room for the group, and the settings go together");
        let gateway = agents.gateway.reconnecting_after(self.profile.reconnect_after);
        let agents = TraderAgents { gateway, ..agents };
        let (view, updates) = (agents.feed.clone(), agents.updates.clone());
        let recorder =
            Recorder::new(FIRST_FEED + self.number, now, view, updates, settings.feed.max_instrument);
        let mut instance = Instance {
            agents,
            recorder,
            silence,
            started_at: now,
            first_connection: self.tap.connection_count() + 1,
            clock_offset: clock.0 - now.0,
            end_deadline: None,
        };
        for place in 0..AGENTS {
            instance
                .agent(place)
                .on_start()
                .expect("on the simulated network a connection can always be begun");
        }
        self.instance = Some(instance);
        self.take_tapped(now);
    }

    /// Runs one duty cycle of an agent; returns the amount of work.
    pub(crate) fn step(&mut self, now: Nanos, place: usize) -> usize {
        let Some(instance) = &mut self.instance else { return 0 };
        let clock = Nanos(now.0 + instance.clock_offset);
        TscClock::simulate(clock);
        let agent = instance.agent(place);
        let result = match agent.do_work(clock) {
            Ok(0) => agent.do_background_work(clock),
            other => other,
        };
        if matches!(result, Ok(0)) && self.rng.below(WARM_UP_INTERVAL) == 0 {
            agent.warm_up(clock);
        }
        instance.recorder.take_updates();
        self.take_tapped(now);
        match result {
            Ok(work) => work,
            Err(error) if !error.is_fatal() => 0,
            Err(_) => {
                self.end(now);
                1
            }
        }
    }

    fn take_tapped(&mut self, now: Nanos) {
        let parts = std::mem::take(&mut self.network.wires().tap.streams);
        parts.into_iter().for_each(|(socket, part)| self.tap.take(now, socket, part));
    }

    /// Handles the network's event on a connection of this trader; returns false for another connection.
    pub(crate) fn on_stream_event(&mut self, stream_event: &StreamEvent) -> bool {
        self.tap.on_stream_event(stream_event)
    }

    /// Makes the trader cancel its orders and end; the operator then starts it again.
    pub(crate) fn stop(&mut self, now: Nanos) {
        if let Some(instance) = &mut self.instance {
            instance.stop(now);
        }
    }

    /// Crashes the trader's process, or cuts the power of its machine.
    pub(crate) fn crash(&mut self, now: Nanos) {
        let Some(instance) = self.instance.take() else { return };
        if self.rng.below(2) == 0 {
            self.network.wires().network.kill(self.host(), HostFailure::Power);
        }
        drop(self.record_end(instance, Some((now, TraderEnd::Killed))));
        self.schedule_restart(now);
    }

    /// Ends the instance as the product does, by closing its agents, and schedules the next start.
    fn end(&mut self, now: Nanos) {
        let Some(mut instance) = self.instance.take() else { return };
        TscClock::simulate(Nanos(now.0 + instance.clock_offset));
        (1..AGENTS).for_each(|place| instance.agent(place).on_close());
        drop(self.record_end(instance, Some((now, TraderEnd::Stopped))));
        self.schedule_restart(now);
    }

    /// Ends the instance at the end of the run.
    pub(crate) fn finish(&mut self) {
        let Some(instance) = self.instance.take() else { return };
        self.finished_agents = Some(self.record_end(instance, None));
    }

    /// Records the results of an instance; returns its agents.
    fn record_end(&mut self, instance: Instance, ended: Option<(Nanos, TraderEnd)>) -> Agents {
        let Instance { mut agents, recorder, started_at, first_connection, .. } = instance;
        agents.feed_handler.on_close();
        self.feeds.push(recorder.finish(ended.map(|(at, _)| at)));
        let desk = agents.engine.desk();
        let ids = || desk.instruments().iter().map(|instrument| instrument.id);
        let lists = ids().flat_map(|id| Side::BOTH.map(|side| desk.orders().open(id, side)));
        let live = |id| desk.features(id).filter(|features| features.is_live());
        self.instances.push(TraderInstance {
            trader: self.number,
            user: self.user,
            started_at,
            ended,
            first_connection,
            limits: self.profile.limits,
            positions: desk.positions().iter().map(|(_, position)| *position).collect(),
            open_qty: ids().map(|id| Side::BOTH.map(|side| desk.orders().open_qty(id, side))).collect(),
            markets: ids().map(|id| live(id).map(|features| *features.bbo())).collect(),
            orders: lists.flatten().copied().collect(),
            counters: *desk.counters(),
            reopened: desk.orders().counters().reopened,
            lost_updates: agents.view.snapshot().map_or(0, |snapshot| snapshot.lost_updates),
        });
        agents
    }

    fn schedule_restart(&mut self, now: Nanos) {
        self.take_tapped(now);
        self.restart_at = now + Nanos(1 + self.rng.below(DOWN_MAX.0));
    }
}
